//! Tokens in columns, as words; the last column is the tag unless there is none.

use std::collections::HashMap;
use std::path::Path;

use super::super::place::Fault;
use super::SequenceOptions;
use crate::data::{Dense, Matrix, TaggedSequences};
use crate::error::{Error, Result};

/// A column of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenColumn {
    /// By place, from 0.
    Index(usize),
    /// By its name in the header.
    Name(String),
}

/// Words of tokens, column by column; equal words of a column have one number.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    /// The distinct words of every column.
    words: Vec<Vec<String>>,
    /// A number for every token and column, token by token.
    codes: Vec<u32>,
    lengths: Vec<usize>,
    tags: Option<Vec<String>>,
}

impl Tokens {
    /// Number of columns, that of the tags not counted.
    pub fn columns(&self) -> usize {
        self.words.len()
    }

    /// Length of every sequence.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// The number of the word of a token in a column.
    pub(crate) fn code(&self, token: usize, column: usize) -> u32 {
        self.codes[token * self.words.len() + column]
    }

    /// The word of a number.
    pub(crate) fn word(&self, column: usize, code: u32) -> &str {
        &self.words[column][code as usize]
    }

    pub(crate) fn tags(&self) -> Option<&[String]> {
        self.tags.as_deref()
    }

    /// The columns as numbers; NaN where a word is `unknown`.
    ///
    /// # Errors
    /// [`Error::Format`] for a word that is no number.
    pub(super) fn numbers(&self, path: &Path, unknown: &str) -> Result<TaggedSequences> {
        let columns = self.columns();
        let mut parsed: Vec<Vec<f64>> = Vec::with_capacity(columns);
        for (column, words) in self.words.iter().enumerate() {
            let number = |word: &String| match word.trim() {
                word if word == unknown => Ok(f64::NAN),
                word => word.parse().map_err(|_| {
                    let place = column + 1;
                    let message = format!("expected numbers in column {place}, found '{word}'");
                    Error::Format { path: path.to_owned(), message }
                }),
            };
            parsed.push(words.iter().map(number).collect::<Result<_>>()?);
        }
        let count = self.codes.len() / columns.max(1);
        let value = |at: usize| parsed[at % columns][self.codes[at] as usize];
        let values = (0..self.codes.len()).map(value).collect();
        let rows = Matrix::DenseF64(Dense::new(count, columns, values)?);
        TaggedSequences::new(rows, self.lengths.clone())
    }

    /// Columns separated by blanks or tabs, an empty line after every sequence.
    pub(super) fn of_columns(bytes: &[u8], path: &Path, options: &SequenceOptions) -> Result<Self> {
        let mut collected = Collector::new(options.tagged);
        let mut at = 0;
        let mut first_width = None;
        for line in bytes.split(|&b| b == b'\n') {
            let begin = at;
            at += line.len() + 1;
            let text = std::str::from_utf8(line).map_err(|error| {
                let at = begin + error.valid_up_to();
                Fault::new(at, "UTF-8 text", "other bytes").in_text(path, bytes)
            })?;
            let fields: Vec<&str> = text.split_whitespace().collect();
            if fields.is_empty() {
                collected.end();
                continue;
            }
            let width = *first_width.get_or_insert(fields.len());
            if fields.len() != width || width == usize::from(options.tagged) {
                let expected = match width == usize::from(options.tagged) {
                    true => "a column beside the tag".to_owned(),
                    false => format!("{width} columns as in the first line"),
                };
                let found = fields.len().to_string();
                return Err(Fault::new(begin, expected, found).in_text(path, bytes));
            }
            collected.token(&fields);
        }
        collected.finish(path)
    }

    /// Delimited text with a header; neighbouring rows of one sequence.
    pub(super) fn of_table(bytes: &[u8], path: &Path, options: &SequenceOptions) -> Result<Self> {
        if bytes.is_empty() {
            return Err(Error::Format {
                path: path.to_owned(),
                message: "the file is empty".into(),
            });
        }
        let first = bytes.split(|&b| b == b'\n').next().unwrap_or_default();
        let delimiter = if first.contains(&b'\t') { b'\t' } else { b',' };
        let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(bytes);
        let fail =
            |error: csv::Error| Error::Format { path: path.to_owned(), message: error.to_string() };
        let header: Vec<String> =
            reader.headers().map_err(fail)?.iter().map(|name| name.trim().to_owned()).collect();
        let place = |column: &TokenColumn| match column {
            TokenColumn::Index(place) if *place < header.len() => Ok(*place),
            TokenColumn::Index(place) => {
                Err(Error::length("columns of the table", place + 1, header.len()))
            }
            TokenColumn::Name(name) => header.iter().position(|own| own == name).ok_or_else(|| {
                let message = format!("expected a column '{name}', found {}", header.join(", "));
                Error::Format { path: path.to_owned(), message }
            }),
        };
        let sequence = place(&options.sequence_column)?;
        let tag = match (&options.tag_column, options.tagged) {
            (_, false) => None,
            (Some(column), true) => Some(place(column)?),
            (None, true) => (0..header.len()).rev().find(|column| *column != sequence),
        };
        let is_word = |column: &usize| *column != sequence && Some(*column) != tag;
        if (0..header.len()).filter(is_word).count() == 0 || (options.tagged && tag.is_none()) {
            let beside = if options.tagged { "the sequence and the tag" } else { "the sequence" };
            let message = format!("expected a column beside {beside}, found {}", header.join(", "));
            return Err(Error::Format { path: path.to_owned(), message });
        }
        let mut collected = Collector::new(options.tagged);
        let mut last: Option<String> = None;
        for record in reader.records() {
            let record = record.map_err(fail)?;
            let own = record.get(sequence).unwrap_or_default();
            if last.as_deref().is_some_and(|last| last != own) {
                collected.end();
            }
            last = Some(own.to_owned());
            let rest = (0..header.len()).filter(is_word);
            let mut fields: Vec<&str> = rest.filter_map(|column| record.get(column)).collect();
            fields.extend(tag.and_then(|tag| record.get(tag)));
            collected.token(&fields);
        }
        collected.finish(path)
    }
}

/// Takes tokens one by one.
struct Collector {
    tokens: Tokens,
    places: Vec<HashMap<String, u32>>,
    length: usize,
    tagged: bool,
}

impl Collector {
    fn new(tagged: bool) -> Self {
        let tokens = Tokens { tags: tagged.then(Vec::new), ..Tokens::default() };
        Self { tokens, places: Vec::new(), length: 0, tagged }
    }

    fn token(&mut self, fields: &[&str]) {
        let columns = fields.len() - usize::from(self.tagged);
        self.places.resize_with(columns, HashMap::new);
        self.tokens.words.resize_with(columns, Vec::new);
        let columns = self.places.iter_mut().zip(&mut self.tokens.words);
        for (word, (places, words)) in fields.iter().zip(columns) {
            let code = match places.get(*word) {
                Some(code) => *code,
                None => {
                    let code = words.len() as u32;
                    places.insert((*word).to_owned(), code);
                    words.push((*word).to_owned());
                    code
                }
            };
            self.tokens.codes.push(code);
        }
        if let (Some(tags), Some(tag)) = (&mut self.tokens.tags, fields.last()) {
            tags.push((*tag).to_owned());
        }
        self.length += 1;
    }

    fn end(&mut self) {
        if self.length > 0 {
            self.tokens.lengths.push(std::mem::take(&mut self.length));
        }
    }

    fn finish(mut self, path: &Path) -> Result<Tokens> {
        self.end();
        match self.tokens.lengths.is_empty() {
            true => {
                let message = "expected at least one sequence, found none".into();
                Err(Error::Format { path: path.to_owned(), message })
            }
            false => Ok(self.tokens),
        }
    }
}
