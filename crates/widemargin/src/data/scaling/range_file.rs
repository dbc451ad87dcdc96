//! Range files of LIBSVM's `svm-scale`, read and written byte for byte.
//!
//! ```text
//! y                       only with scaled targets
//! lower upper
//! min max
//! x
//! lower upper
//! index min max           indices ascending from 1, constant features left out
//! ```

use std::io::{self, Write};
use std::path::Path;

use super::range::{Range, RangeScaling, TargetScaling};
use crate::data::read::number::number;
use crate::data::read::place::{Fault, quoted};
use crate::data::read::{DEFAULT_MAX_COLUMNS, source};
use crate::data::write::{general, write_atomically};
use crate::error::Result;

impl RangeScaling {
    /// Writes a range file as `svm-scale -s` does.
    ///
    /// # Errors
    /// What `out` says.
    pub fn write_range_file(&self, out: &mut dyn Write) -> io::Result<()> {
        let pair = |a: f64, b: f64| format!("{} {}\n", general(a, 17), general(b, 17));
        if let Some(target) = &self.target {
            let limits = pair(target.lower, target.upper);
            write!(out, "y\n{limits}{}", pair(target.range.min, target.range.max))?;
        }
        write!(out, "x\n{}", pair(self.lower, self.upper))?;
        for (j, range) in &self.ranges {
            write!(out, "{} {}", j + 1, pair(range.min, range.max))?;
        }
        Ok(())
    }

    /// Saves a range file, all of it or nothing.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub fn save_range_file(&self, path: impl AsRef<Path>) -> Result<()> {
        write_atomically(path.as_ref(), |out| self.write_range_file(out))
    }

    /// Loads a range file as `svm-scale -r` does.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), or [`Error::Parse`](crate::Error::Parse) with line and column.
    pub fn load_range_file(path: impl AsRef<Path>) -> Result<Self> {
        let bytes = source::read_all(path.as_ref())?;
        Self::parse_range_file(&bytes, path.as_ref())
    }

    /// Reads the content of a range file; `path` names it in errors.
    ///
    /// # Errors
    /// [`Error::Parse`](crate::Error::Parse) with line and column.
    pub fn parse_range_file(bytes: &[u8], path: &Path) -> Result<Self> {
        parse(bytes).map_err(|fault| fault.in_text(path, bytes))
    }
}

type Parsed<T> = std::result::Result<T, Fault>;

fn parse(bytes: &[u8]) -> Parsed<RangeScaling> {
    let mut words = Words { bytes, at: 0 };
    let mut target = None;
    let (mut at, mut word) = words.next();
    if word == b"y" {
        let (lower, upper) = words.limits()?;
        let (min, max) = words.limits()?;
        target = Some(TargetScaling { lower, upper, range: Range { min, max } });
        (at, word) = words.next();
    }
    if word != b"x" {
        let expected = if target.is_some() { "'x'" } else { "'x' or 'y'" };
        return Err(Fault::new(at, expected, shown(word)));
    }
    let (lower, upper) = words.limits()?;
    let mut ranges = Vec::new();
    let mut columns = 0;
    loop {
        (at, word) = words.next();
        if word.is_empty() {
            return Ok(RangeScaling { lower, upper, columns, ranges, target });
        }
        let index: Option<usize> = std::str::from_utf8(word).ok().and_then(|w| w.parse().ok());
        match index {
            Some(index) if index > columns && index <= DEFAULT_MAX_COLUMNS => {
                let (start, (min, max)) = (words.at, words.numbers()?);
                if min > max {
                    let expected = "a smallest and a largest value";
                    return Err(Fault::new(start + 1, expected, format!("{min} and {max}")));
                }
                if min < max {
                    ranges.push((index as u32 - 1, Range { min, max }));
                }
                columns = index;
            }
            _ => {
                let first = columns + 1;
                let expected = format!("a feature index from {first} to {DEFAULT_MAX_COLUMNS}");
                return Err(Fault::new(at, expected, shown(word)));
            }
        }
    }
}

fn shown(word: &[u8]) -> String {
    if word.is_empty() { "the end of the file".into() } else { quoted(word) }
}

struct Words<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Words<'a> {
    /// The next word and where it begins; empty at the end.
    fn next(&mut self) -> (usize, &'a [u8]) {
        let rest = &self.bytes[self.at..];
        let blanks = rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
        let length = rest[blanks..].iter().take_while(|b| !b.is_ascii_whitespace()).count();
        let start = self.at + blanks;
        self.at = start + length;
        (start, &self.bytes[start..start + length])
    }

    fn number(&mut self) -> Parsed<f64> {
        let (at, word) = self.next();
        match number(word) {
            Some(value) if value.is_finite() => Ok(value),
            _ => Err(Fault::new(at, "a finite number", shown(word))),
        }
    }

    fn numbers(&mut self) -> Parsed<(f64, f64)> {
        Ok((self.number()?, self.number()?))
    }

    fn limits(&mut self) -> Parsed<(f64, f64)> {
        let start = self.at;
        let (lower, upper) = self.numbers()?;
        if lower < upper {
            return Ok((lower, upper));
        }
        let found = format!("{lower} and {upper}");
        Err(Fault::new(start + 1, "a lower and a larger upper limit", found))
    }
}
