//! Delimited text: CSV, TSV and other separators, quoted as in RFC 4180.
//!
//! The separator and the header are found by looking unless given; the label column is the one named
//! `label`, `class`, `target` or `y`, otherwise the last, unless given; columns of words become one
//! feature per word, see [`TableEncoding`](super::TableEncoding).

mod fields;
mod sniff;

use std::path::Path;

use super::options::ReadOptions;
use super::table::{LoadedTable, load};
use crate::error::{Error, Result};
use fields::Text;

/// Reads delimited text that came from `path`.
pub(super) fn read(bytes: &[u8], path: &Path, options: &ReadOptions) -> Result<LoadedTable> {
    let delimiter = options.delimiter.unwrap_or_else(|| sniff::delimiter(bytes));
    let sample = Text { bytes, delimiter, path, skip_first: false };
    let records = sample.first_records()?;
    let Some(first) = records.first() else {
        let message = if bytes.is_empty() { "the file is empty" } else { "the file has no rows" };
        return Err(Error::Format { path: path.to_owned(), message: message.into() });
    };
    let words: Vec<String> =
        first.iter().map(|f| String::from_utf8_lossy(f.trim_ascii()).into_owned()).collect();
    let header = match (&options.header, &options.encoding) {
        (Some(given), _) => *given,
        (None, Some(encoding)) if encoding.named && encoding.is_header(&words) => true,
        // The only row of a later file is data even if it is all words.
        (None, Some(_)) if records.len() == 1 => false,
        (None, _) => sniff::has_header(&records),
    };
    let text = Text { skip_first: header, ..sample };
    let names: Vec<String> = (words.iter().enumerate())
        .map(
            |(j, word)| {
                if header && !word.is_empty() { word.clone() } else { format!("x{}", j + 1) }
            },
        )
        .collect();
    load(&text, names, header, options)
}
