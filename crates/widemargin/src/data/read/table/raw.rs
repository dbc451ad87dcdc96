//! The columns of a table as read, before anything is encoded.

use crate::error::Error;

/// Code of a missing word.
pub(in crate::data::read) const MISSING: u32 = u32::MAX;

/// How the values of a column are to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::data::read) enum Reading {
    /// As numbers if all are, else as words.
    Guess,
    /// As numbers; anything else is an error.
    Numbers,
    /// As words, even if they spell numbers.
    Words,
    /// As words of which none is missing: each as it stands, the empty one too.
    Text,
    /// Not at all.
    Skip,
}

/// One column.
pub(in crate::data::read) enum RawColumn {
    /// Numbers; NaN is a missing one.
    Numbers(Vec<f64>),
    /// Codes into the list of words; [`MISSING`] is a missing one.
    Words { codes: Vec<u32>, words: Vec<String> },
    /// Left out.
    Skipped,
}

/// A table of named columns, all of `rows` rows.
pub(in crate::data::read) struct RawTable<'a> {
    pub(in crate::data::read) rows: usize,
    pub(in crate::data::read) names: Vec<String>,
    /// Whether the names come from the file and are all different.
    pub(in crate::data::read) named: bool,
    pub(in crate::data::read) columns: Vec<RawColumn>,
    /// Makes an error about row and column (both from 0): expected, found.
    pub(in crate::data::read) error_at: &'a dyn Fn(usize, usize, String, String) -> Error,
}

/// Whether a field stands for a missing value.
pub(in crate::data::read) fn is_missing(field: &[u8]) -> bool {
    match field.len() {
        0 => true,
        1 => field == b"?",
        2..=4 => ["na", "n/a", "nan", "null"]
            .iter()
            .any(|word| field.eq_ignore_ascii_case(word.as_bytes())),
        _ => false,
    }
}
