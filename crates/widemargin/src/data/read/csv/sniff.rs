//! What delimited text does not say about itself: its separator and whether its first line is a header.

use super::super::number::number;
use super::super::table::is_missing;

/// Lines examined.
const SAMPLE_LINES: usize = 50;

/// The separator of `text`: of `,` tab `;` `|` and blank, the one that cuts the first lines into the
/// same number of fields, the most fields first; a comma when none occurs.
pub(super) fn delimiter(text: &[u8]) -> u8 {
    let lines = sample(text);
    let mut best = (false, 0, b',');
    for candidate in *b",\t;| " {
        let counts: Vec<usize> = lines.iter().map(|line| count(line, candidate)).collect();
        let (Some(&least), Some(&most)) = (counts.iter().min(), counts.iter().max()) else {
            continue;
        };
        // A blank separates fields only where nothing else does.
        if most == 0 || (candidate == b' ' && best.1 > 0) {
            continue;
        }
        let rank = (least == most, most, candidate);
        if (rank.0, rank.1) > (best.0, best.1) {
            best = rank;
        }
    }
    best.2
}

fn sample(text: &[u8]) -> Vec<&[u8]> {
    let lines = text.split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| !line.is_empty()).take(SAMPLE_LINES).collect()
}

fn count(line: &[u8], delimiter: u8) -> usize {
    let mut quoted = false;
    let mut count = 0;
    for &byte in line {
        match byte {
            b'"' => quoted = !quoted,
            _ if byte == delimiter && !quoted => count += 1,
            _ => {}
        }
    }
    count
}

/// Whether the first record names the columns: none of its fields is a number, and either a later
/// record of the sample has a number, or no field occurs again in its column.
pub(super) fn has_header(records: &[csv::ByteRecord]) -> bool {
    let Some((first, rest)) = records.split_first() else { return false };
    let is_number = |field: &[u8]| number(field).is_some() && !is_missing(field);
    if first.iter().any(is_number) {
        return false;
    }
    if rest.iter().any(|record| record.iter().any(is_number)) {
        return true;
    }
    let recurs = |(j, name)| rest.iter().any(|record| record.get(j) == Some(name));
    !first.iter().enumerate().any(recurs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_separator_is_found() {
        assert_eq!(delimiter(b"a,b\n1,2\n"), b',');
        assert_eq!(delimiter(b"a\tb c\n1,5\t2\n"), b'\t');
        assert_eq!(delimiter(b"1,5;2,5;x\n1;2;y\n"), b';');
        assert_eq!(delimiter(b"\"a|b\",c\n\"d\",e\n"), b',');
        assert_eq!(delimiter(b"1 2 3\n4 5 6\n"), b' ');
        assert_eq!(delimiter(b"single\n"), b',');
    }

    #[test]
    fn headers_are_told_from_rows() {
        let records = |text: &str| -> Vec<csv::ByteRecord> {
            let mut reader =
                csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
            reader.byte_records().map(Result::unwrap).collect()
        };
        assert!(has_header(&records("a,b,class\n1,2,x\n")));
        assert!(!has_header(&records("1,2,x\n3,4,y\n")));
        assert!(has_header(&records("cap,odor\nx,s\nb,s\n")));
        assert!(!has_header(&records("x,s\nb,s\nx,t\n")));
        assert!(!has_header(&records("?,s,1\nb,s,2\n")));
        assert!(has_header(&records("a,b,class\n")));
    }
}
