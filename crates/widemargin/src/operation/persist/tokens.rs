//! Words of a text file with the place where each stands.

use std::path::Path;
use std::str::FromStr;

use crate::data::read::number::{byte_at, decimal_prefix, number};
use crate::error::{Error, Result};

/// Longest stretch of a file quoted in an error.
const LONGEST_QUOTE: usize = 40;

/// A word and its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) text: &'a [u8],
    pub(super) line: usize,
    pub(super) column: usize,
}

/// Walks through a text file word by word.
pub(super) struct Tokens<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    at: usize,
    line: usize,
    line_start: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(path: &'a Path, bytes: &'a [u8]) -> Self {
        Self { path, bytes, at: 0, line: 1, line_start: 0 }
    }

    /// The next word, on this line or a later one.
    pub(super) fn next(&mut self) -> Option<Token<'a>> {
        loop {
            if let Some(token) = self.next_on_line() {
                return Some(token);
            }
            if !self.next_line() {
                return None;
            }
        }
    }

    /// The next word on this line.
    pub(super) fn next_on_line(&mut self) -> Option<Token<'a>> {
        let rest = &self.bytes[self.at..];
        let blank = rest.iter().take_while(|&&b| b.is_ascii_whitespace() && b != b'\n').count();
        let start = self.at + blank;
        let length = self.bytes[start..].iter().take_while(|b| !b.is_ascii_whitespace()).count();
        self.at = start + length;
        (length > 0).then(|| Token {
            text: &self.bytes[start..start + length],
            line: self.line,
            column: start - self.line_start + 1,
        })
    }

    /// Goes to the next line; `false` at the end of the file.
    pub(super) fn next_line(&mut self) -> bool {
        match self.bytes[self.at..].iter().position(|&b| b == b'\n') {
            Some(offset) => {
                self.at += offset + 1;
                self.line += 1;
                self.line_start = self.at;
                self.at < self.bytes.len()
            }
            None => {
                self.at = self.bytes.len();
                false
            }
        }
    }

    /// An error at a word.
    pub(super) fn unexpected(&self, token: Token<'_>, expected: impl Into<String>) -> Error {
        self.error(token.line, token.column, expected, quote(token.text))
    }

    /// An error at the end of the line or file reached.
    pub(super) fn missing(&self, expected: impl Into<String>) -> Error {
        let found =
            if self.at == self.bytes.len() { "the end of the file" } else { "the end of the line" };
        self.error(self.line, self.at - self.line_start + 1, expected, found.into())
    }

    /// An error at a place.
    pub(super) fn error(
        &self,
        line: usize,
        column: usize,
        expected: impl Into<String>,
        found: String,
    ) -> Error {
        Error::Parse { path: self.path.into(), line, column, expected: expected.into(), found }
    }

    /// The next word, on this line or a later one, as a finite number.
    #[inline]
    pub(super) fn next_finite(&mut self, missing: &str, expected: &str) -> Result<f64> {
        while let Some(blank @ (b' ' | b'\n')) = self.bytes.get(self.at) {
            self.at += 1;
            if *blank == b'\n' {
                (self.line, self.line_start) = (self.line + 1, self.at);
            }
        }
        if let Some((value, end)) = decimal_prefix(self.bytes, self.at)
            && byte_at(self.bytes, end).is_ascii_whitespace()
            && value.is_finite()
        {
            self.at = end;
            return Ok(value);
        }
        let token = self.next().ok_or_else(|| self.missing(missing))?;
        self.parse_finite(token, expected)
    }

    /// A word as a number.
    pub(super) fn parse<T: FromStr>(&self, token: Token<'_>, expected: &str) -> Result<T> {
        let text = std::str::from_utf8(token.text).ok();
        let value = text.and_then(|text| text.parse().ok());
        value.ok_or_else(|| self.unexpected(token, expected))
    }

    /// A word as a finite number.
    pub(super) fn parse_finite(&self, token: Token<'_>, expected: &str) -> Result<f64> {
        number(token.text)
            .filter(|value| value.is_finite())
            .ok_or_else(|| self.unexpected(token, expected))
    }
}

/// A word in quotes, cut when long.
fn quote(text: &[u8]) -> String {
    if text.len() > LONGEST_QUOTE {
        format!("'{}...'", text[..LONGEST_QUOTE].escape_ascii())
    } else {
        format!("'{}'", text.escape_ascii())
    }
}
