//! The format of a file, by its first bytes and, for text that could be either, by its name.

use std::path::Path;

use super::Format;
use super::number::number;

/// Text examined, in bytes.
const SAMPLE: usize = 1 << 16;

/// The format of `bytes`, which came from `path`.
pub(super) fn format(bytes: &[u8], path: &Path) -> Format {
    match bytes {
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => return Format::Npy,
        [b'P', b'A', b'R', b'1', ..] => return Format::Parquet,
        [0, 0, 0x08 | 0x09 | 0x0b..=0x0e, 1..=255, ..] => return Format::Idx,
        _ => {}
    }
    text_format(&bytes[..bytes.len().min(SAMPLE)]).unwrap_or_else(|| by_name(path))
}

/// The format of the first line that decides it.
fn text_format(sample: &[u8]) -> Option<Format> {
    for line in sample.split(|b| *b == b'\n') {
        let line = line.split(|b| *b == b'#').next().unwrap_or_default();
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let Some(label) = words.next() else { continue };
        let numeric_label = label.split(|b| *b == b',').all(|part| number(part).is_some());
        let pair = words.next().unwrap_or_default();
        if is_pair(label) || is_pair(pair) || (numeric_label && begins_pair(pair)) {
            return Some(Format::Libsvm);
        }
        if line.iter().any(|b| matches!(b, b',' | b';' | b'\t' | b'|')) {
            return Some(Format::Csv);
        }
    }
    None
}

/// Whether `word` is `index:value` or `qid:value`.
fn is_pair(word: &[u8]) -> bool {
    match word.iter().position(|b| *b == b':') {
        Some(0) | None => false,
        Some(colon) => {
            let (index, value) = (&word[..colon], &word[colon + 1..]);
            (index.iter().all(u8::is_ascii_digit) || index == b"qid") && number(value).is_some()
        }
    }
}

/// Whether `word` is `index:` and anything; after a number that is LIBSVM text, right or wrong.
fn begins_pair(word: &[u8]) -> bool {
    let digits = word.iter().take_while(|b| b.is_ascii_digit()).count();
    digits > 0 && word.get(digits) == Some(&b':')
}

fn by_name(path: &Path) -> Format {
    let mut name = path.to_path_buf();
    let packed = ["gz", "xz", "zst", "bz2"];
    let extension = |p: &Path| p.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    if extension(&name).is_some_and(|e| packed.contains(&e.as_str())) {
        name.set_extension("");
    }
    match extension(&name).as_deref() {
        Some("csv" | "tsv" | "tab") => Format::Csv,
        Some("npy") => Format::Npy,
        Some("parquet") => Format::Parquet,
        _ => Format::Libsvm,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_decides_and_the_name_only_in_doubt() {
        let of = |text: &str, name: &str| format(text.as_bytes(), Path::new(name));
        for text in [
            "1 1:2\n",
            "# a,b\n\n1,2 3:4\n",
            "1 1:2,2:1\n",
            "cat 1:1\n",
            "1:2 3:4\n",
            "1 qid:1 1:2\n",
        ] {
            assert_eq!(of(text, "data.csv"), Format::Libsvm, "{text:?}");
        }
        for text in ["a,b\n1,2\n", "1\t2\n", "2020-01-01 12:30,5\n", "1;2\n", "x\n12:30,1\n"] {
            assert_eq!(of(text, "data.libsvm"), Format::Csv, "{text:?}");
        }
        assert_eq!(of("1\n2\n", "a.csv.gz"), Format::Csv);
        assert_eq!(of("1\n2\n", "a.TSV"), Format::Csv);
        assert_eq!(of("1\n2\n", "a"), Format::Libsvm);
        assert_eq!(format(b"\x93NUMPY...", Path::new("a")), Format::Npy);
        assert_eq!(format(&[0, 0, 8, 3, 0], Path::new("a")), Format::Idx);
        assert_eq!(format(b"PAR1...", Path::new("a")), Format::Parquet);
    }
}
