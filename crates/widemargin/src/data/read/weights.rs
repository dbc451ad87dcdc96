//! Files of row weights, one number a line.

use std::path::Path;

use super::place::quoted;
use super::source;
use crate::error::{Error, Result};

/// Reads a weight of at least 0 per line; blank lines and text after `#` do not count.
///
/// # Errors
/// [`Error::Io`], or [`Error::Parse`] with line and column.
pub fn read_weights(path: impl AsRef<Path>) -> Result<Vec<f64>> {
    let path = path.as_ref();
    parse_weights(&source::read_all(path)?, path)
}

/// Reads the content of a file of weights; `path` names it in errors.
///
/// # Errors
/// [`Error::Parse`] with line and column.
pub fn parse_weights(bytes: &[u8], path: &Path) -> Result<Vec<f64>> {
    let text = String::from_utf8_lossy(source::without_byte_order_mark(bytes));
    let mut weights = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let word = line.split('#').next().unwrap_or_default().trim();
        if word.is_empty() {
            continue;
        }
        match word.parse::<f64>() {
            Ok(weight) if weight.is_finite() && weight >= 0.0 => weights.push(weight),
            _ => {
                return Err(Error::Parse {
                    path: path.to_owned(),
                    line: index + 1,
                    column: line.len() - line.trim_start().len() + 1,
                    expected: "a weight of at least 0".into(),
                    found: quoted(word.as_bytes()),
                });
            }
        }
    }
    Ok(weights)
}
