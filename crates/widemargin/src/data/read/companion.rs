//! Labels that lie in a file of their own.

use std::path::Path;

use super::number::{number, whole};
use super::place::{Fault, quoted};
use super::{Format, detect, idx, npy, source};
use crate::data::{Label, Labels};
use crate::error::{Error, Result};

/// Reads IDX or NPY labels, or text with one label per line.
pub(super) fn read(path: &Path, max_unpacked: Option<u64>) -> Result<Labels> {
    parse(&source::read_all_within(path, max_unpacked)?, path)
}

/// Reads the content of a file of labels that came from `path`.
pub(super) fn parse(bytes: &[u8], path: &Path) -> Result<Labels> {
    let labels = match detect::format(bytes, path) {
        Format::Idx => idx::labels(bytes, path)?,
        Format::Npy => npy::labels(bytes, path)?,
        _ => text(bytes, path)?,
    };
    if labels.is_empty() {
        let message = "expected at least one label, found none".into();
        return Err(Error::Format { path: path.to_owned(), message });
    }
    Ok(labels)
}

fn text(bytes: &[u8], path: &Path) -> Result<Labels> {
    let mut labels = Vec::new();
    let mut start = 0;
    for line in bytes.split(|b| *b == b'\n') {
        let word = line.trim_ascii();
        if !word.is_empty() {
            let fault =
                |expected: &str| Fault::new(start, expected, quoted(word)).in_text(path, bytes);
            labels.push(label(word).map_err(fault)?);
        }
        start += line.len() + 1;
    }
    Ok(Labels::from_labels(&labels))
}

/// The label a word stands for: a whole number, a real number, or itself.
pub(super) fn label(word: &[u8]) -> std::result::Result<Label, &'static str> {
    let text = std::str::from_utf8(word).map_err(|_| "a label in UTF-8")?;
    match number(word) {
        Some(value) if !value.is_finite() => Err("a finite label"),
        Some(value) => Ok(whole(word, value).map_or(Label::Real(value), Label::Int)),
        None => Ok(Label::Text(text.to_owned())),
    }
}
