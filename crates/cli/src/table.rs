//! Plain-text tables for people.

use std::fmt::Write;

use crate::terminal::one_line;

/// Lines of `name  value`, the names padded to one width.
#[derive(Default)]
pub(crate) struct Summary {
    lines: Vec<(String, String)>,
}

impl Summary {
    /// Adds a line.
    pub(crate) fn line(&mut self, name: &str, value: impl ToString) -> &mut Self {
        self.lines.push((name.to_owned(), one_line(&value.to_string()).into_owned()));
        self
    }

    /// The lines as text.
    pub(crate) fn text(&self) -> String {
        let width = self.lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for (name, value) in &self.lines {
            let _ = writeln!(text, "{name:width$}  {value}");
        }
        text
    }
}

/// A table with the first column left- and the others right-aligned.
pub(crate) fn grid(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| one_line(cell).into_owned()).collect())
        .collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|c| c.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            let _ = match column {
                0 => write!(line, "{cell:<width$}"),
                _ => write!(line, "  {cell:>width$}"),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A count with thousands separated by spaces.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Seconds with a unit that suits them.
pub(crate) fn duration(seconds: f64) -> String {
    if seconds < 0.001 {
        format!("{:.0} µs", seconds * 1e6)
    } else if seconds < 1.0 {
        format!("{:.1} ms", seconds * 1e3)
    } else if seconds < 120.0 {
        format!("{seconds:.2} s")
    } else {
        let whole = seconds.round() as u64;
        format!("{} min {} s", whole / 60, whole % 60)
    }
}

/// Bytes with a unit that suits them.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.2} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_by_three() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1 234 567");
    }

    #[test]
    fn columns_line_up() {
        let rows = [vec!["", "aa", "b"], vec!["long", "1", "22"]];
        let rows: Vec<Vec<String>> =
            rows.iter().map(|r| r.iter().map(|c| (*c).to_owned()).collect()).collect();
        assert_eq!(grid(&rows), "      aa   b\nlong   1  22\n");
    }

    #[test]
    fn terminals_are_given_nothing_to_obey() {
        let mut summary = Summary::default();
        summary.line("classes", "a\u{1b}[2Jb, c\nd, \u{9b}31m");
        assert_eq!(summary.text(), "classes  a\\u001b[2Jb, c\\nd, \\u009b31m\n");
        let rows = [vec!["\u{7}x\r".to_owned(), "ä".to_owned()]];
        assert_eq!(grid(&rows), "\\u0007x\\r  ä\n");
    }

    #[test]
    fn times_and_sizes_have_units() {
        assert_eq!(duration(0.000_25), "250 µs");
        assert_eq!(duration(0.25), "250.0 ms");
        assert_eq!(duration(179.8), "3 min 0 s");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(3 << 30), "3.00 GiB");
    }
}
