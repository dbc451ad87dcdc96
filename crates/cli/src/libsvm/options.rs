//! LIBSVM's way of writing options: one letter, the value in the next word.
//!
//! As in LIBSVM only the letter after `-` counts, and options end at the first word that does not
//! start with `-`. A value joined to its letter (`-c10`) is understood too.

use std::ffi::OsString;
use std::str::FromStr;

use crate::failure::{CommandResult, Failure};

/// Words of a command line, taken one by one.
pub(crate) struct Words<'a> {
    words: &'a [OsString],
}

/// One option: its letter and the rest of its word.
pub(crate) struct LetterOption<'a> {
    pub(crate) letter: char,
    pub(crate) rest: &'a str,
}

impl<'a> Words<'a> {
    pub(crate) fn new(words: &'a [OsString]) -> Self {
        Self { words }
    }

    /// The next option, if the next word is one; a lone `-` is a file.
    pub(crate) fn option(&mut self) -> Option<LetterOption<'a>> {
        let (first, rest) = self.words.split_first()?;
        let mut letters = first.to_str()?.strip_prefix('-')?.chars();
        let letter = letters.next()?;
        self.words = rest;
        Some(LetterOption { letter, rest: letters.as_str() })
    }

    /// The value of an option: joined to it if that part is a number, else the next word.
    pub(crate) fn number<T: FromStr>(&mut self, option: &LetterOption<'_>) -> CommandResult<T> {
        let LetterOption { letter, rest } = *option;
        if let Ok(value) = rest.parse() {
            return Ok(value);
        }
        self.next_number(letter)
    }

    /// The next word as a number.
    pub(crate) fn next_number<T: FromStr>(&mut self, letter: char) -> CommandResult<T> {
        let word = self.next_word(letter)?;
        word.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| {
            let word = word.to_string_lossy();
            Failure::usage(format!("option -{letter}: expected a number, found '{word}'"))
        })
    }

    /// The next word, whatever it is.
    pub(crate) fn next_word(&mut self, letter: char) -> CommandResult<&'a OsString> {
        let (first, rest) = self
            .words
            .split_first()
            .ok_or_else(|| Failure::usage(format!("option -{letter}: a value is missing")))?;
        self.words = rest;
        Ok(first)
    }

    /// The words after the options.
    pub(crate) fn files(self) -> &'a [OsString] {
        self.words
    }
}

/// An option the program does not have.
pub(crate) fn unknown(option: &LetterOption<'_>) -> Failure {
    Failure::usage(format!("Unknown option: -{}", option.letter))
}

/// A switch that is 0 or 1.
pub(crate) fn switch(words: &mut Words<'_>, option: &LetterOption<'_>) -> CommandResult<bool> {
    match words.number::<i64>(option)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(Failure::usage(format!(
            "option -{}: expected 0 or 1, found {other}",
            option.letter
        ))),
    }
}
