//! Feature templates: what of a token's neighbourhood is a feature, in the notation of CRF++.
//!
//! A template is a line such as `U05:%x[-1,0]/%x[0,0]`. Every `%x[row,column]` is replaced by the word in that column of
//! the token `row` places further on; what results is the name of a feature with the value 1. Before the first token of
//! a sequence stand the words `_B-1`, `_B-2`, …, after the last one `_B+1`, `_B+2`, …. Empty lines and those that begin
//! with `#` are skipped, and so is a line `B`: chains always have scores of pairs of tags.

use std::collections::HashMap;
use std::fmt;

use super::read::Tokens;
use super::{Dictionary, SequenceBuilder};
use crate::error::{Error, Result};

/// Farthest token that a template may look at.
const FARTHEST: isize = 100;

/// Parts of a template.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Word { row: isize, column: usize },
}

/// A list of templates.
#[derive(Clone, Debug, PartialEq)]
pub struct Templates {
    lines: Vec<String>,
    parts: Vec<Vec<Part>>,
}

impl Templates {
    /// Reads templates, one a line.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a line that is no template, or when there are none.
    pub fn parse(text: &str) -> Result<Self> {
        let (mut lines, mut parts) = (Vec::new(), Vec::new());
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') || line == "B" {
                continue;
            }
            let own = template(line).ok_or_else(|| {
                let expected = "lines such as U05:%x[-1,0]/%x[0,0]";
                Error::parameter("templates", expected, format!("'{line}' in line {}", number + 1))
            })?;
            lines.push(line.to_owned());
            parts.push(own);
        }
        if lines.is_empty() {
            return Err(Error::parameter("templates", "at least one template", "none"));
        }
        Ok(Self { lines, parts })
    }

    /// The words from two before to two after in every column, the pairs around the token in the first column, and the
    /// pairs from two before to two after in the others.
    pub fn usual(columns: usize) -> Self {
        let mut lines = Vec::new();
        for column in 0..columns {
            for row in -2..=2 {
                lines.push(format!("U{:02}:%x[{row},{column}]", lines.len()));
            }
            let firsts = if column == 0 { -1..=0 } else { -2..=1 };
            for row in firsts {
                let next = row + 1;
                let name = lines.len();
                lines.push(format!("U{name:02}:%x[{row},{column}]/%x[{next},{column}]"));
            }
        }
        let parts = lines.iter().filter_map(|line| template(line)).collect();
        Self { lines, parts }
    }

    /// The features of tokens, and how often a name was not in a closed dictionary.
    ///
    /// # Errors
    /// [`Error::Length`] for a column that the tokens do not have.
    pub(crate) fn apply(
        &self,
        tokens: &Tokens,
        dictionary: &mut Dictionary,
    ) -> Result<(SequenceBuilder, usize)> {
        let words = self.parts.iter().flatten().filter_map(|part| match part {
            Part::Word { column, .. } => Some(*column + 1),
            Part::Text(_) => None,
        });
        let columns = words.max().unwrap_or(0);
        if columns > tokens.columns() {
            return Err(Error::length("columns of the templates", columns, tokens.columns()));
        }
        let mut known: Vec<TemplateFeatures> =
            self.parts.iter().map(|parts| TemplateFeatures::new(parts)).collect();
        let (mut builder, mut unknown, mut first) = (SequenceBuilder::default(), 0, 0);
        let mut codes = Vec::new();
        for &length in tokens.lengths() {
            for k in 0..length {
                for (parts, known) in self.parts.iter().zip(&mut known) {
                    codes.clear();
                    codes.extend(parts.iter().filter_map(|part| match part {
                        Part::Word { row, column } => {
                            Some(code(tokens, first, length, k as isize + row, *column))
                        }
                        Part::Text(_) => None,
                    }));
                    let key = known.key(&codes);
                    let place = match known.places.get(&key) {
                        Some(place) => *place,
                        None => {
                            let place = dictionary.place(&name(parts, &codes, tokens));
                            known.places.insert(key, place);
                            place
                        }
                    };
                    match place {
                        Some(place) => builder.add(place, 1.0),
                        None => unknown += 1,
                    }
                }
                builder.end_position();
            }
            builder.end_sequence();
            first += length;
        }
        Ok((builder, unknown))
    }
}

/// The features of one template found so far, so that the name of each is written once.
struct TemplateFeatures {
    /// Numbers for the first words of a template with more than two, one list for each further word.
    begun: Vec<HashMap<u64, u32>>,
    /// Place of a feature by its last word and the number of those before.
    places: HashMap<u64, Option<u32>>,
}

impl TemplateFeatures {
    fn new(parts: &[Part]) -> Self {
        let words = parts.iter().filter(|part| matches!(part, Part::Word { .. })).count();
        Self { begun: vec![HashMap::new(); words.saturating_sub(2)], places: HashMap::new() }
    }

    fn key(&mut self, codes: &[u32]) -> u64 {
        let Some((&first, rest)) = codes.split_first() else { return 0 };
        let mut before = first;
        for (begun, &word) in self.begun.iter_mut().zip(rest) {
            let next = begun.len() as u32;
            before = *begun.entry(pair(before, word)).or_insert(next);
        }
        match rest.last() {
            Some(&last) => pair(before, last),
            None => u64::from(before),
        }
    }
}

fn pair(before: u32, word: u32) -> u64 {
    u64::from(before) << 32 | u64::from(word)
}

impl fmt::Display for Templates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("\n"))
    }
}

/// The number of the word at a place of a sequence; beyond its ends one that counts down from the largest.
fn code(tokens: &Tokens, first: usize, length: usize, place: isize, column: usize) -> u32 {
    if place < 0 {
        u32::MAX - 2 * place.unsigned_abs() as u32
    } else if place as usize >= length {
        u32::MAX - 2 * (place as usize - length + 1) as u32 - 1
    } else {
        tokens.code(first + place as usize, column)
    }
}

fn name(parts: &[Part], codes: &[u32], tokens: &Tokens) -> String {
    let (mut name, mut codes) = (String::new(), codes.iter());
    for part in parts {
        match part {
            Part::Text(text) => name.push_str(text),
            Part::Word { column, .. } => {
                let code = codes.next().copied().unwrap_or(u32::MAX);
                let beyond = u32::MAX - code;
                if beyond <= 2 * FARTHEST as u32 + 1 {
                    let sign = if beyond.is_multiple_of(2) { '-' } else { '+' };
                    name.push_str(&format!("_B{sign}{}", beyond / 2));
                } else {
                    name.push_str(tokens.word(*column, code));
                }
            }
        }
    }
    name
}

fn template(line: &str) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find("%x[") {
        let (before, after) = rest.split_at(at);
        if !before.is_empty() {
            parts.push(Part::Text(before.to_owned()));
        }
        let (place, after_place) = after[3..].split_once(']')?;
        let (row, column) = place.split_once(',')?;
        let row: isize = row.trim().parse().ok()?;
        if row.abs() > FARTHEST {
            return None;
        }
        let column: u32 = column.trim().parse().ok()?;
        parts.push(Part::Word { row, column: column as usize });
        rest = after_place;
    }
    if parts.iter().all(|part| matches!(part, Part::Text(_))) {
        return None;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest.to_owned()));
    }
    Some(parts)
}
