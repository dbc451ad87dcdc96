//! The format of a file, by its first bytes and, for text that could be either, by its name.

use std::path::Path;

use super::Format;
use super::number::number;

/// Text looked at, in bytes.
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
        if let Some(pair) = words.next()
            && is_pair(pair)
            && !label.contains(&b'"')
        {
            return Some(Format::Libsvm);
        }
        if is_pair(label) {
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
