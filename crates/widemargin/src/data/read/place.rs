//! Where in a file something is wrong.

use std::path::Path;

use crate::error::Error;

/// A fault found at a byte of the input, before its line and column are known.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) expected: String,
    pub(crate) found: String,
}

impl Fault {
    #[cold]
    pub(crate) fn new(at: usize, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { at, expected: expected.into(), found: found.into() }
    }

    /// The error for a fault in text, whose lines end with a newline byte.
    pub(crate) fn in_text(self, path: &Path, text: &[u8]) -> Error {
        let before = &text[..self.at.min(text.len())];
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
        Error::Parse {
            path: path.to_owned(),
            line,
            column: before.len() - line_start + 1,
            expected: self.expected,
            found: self.found,
        }
    }

    /// The error for a fault in a binary file.
    pub(crate) fn in_binary(self, path: &Path) -> Error {
        Error::Parse {
            path: path.to_owned(),
            line: 1,
            column: self.at + 1,
            expected: self.expected,
            found: self.found,
        }
    }
}

/// `'text'` with what cannot be printed escaped, cut after some characters.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    const LONGEST: usize = 40;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * LONGEST)]);
    let mut shown: String = text.chars().take(LONGEST).flat_map(char::escape_default).collect();
    if text.chars().nth(LONGEST).is_some() || bytes.len() > 4 * LONGEST {
        shown.push('…');
    }
    format!("'{shown}'")
}
