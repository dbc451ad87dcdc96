//! The fields of delimited text collected into columns, and the way back from a field to its place.

use std::collections::HashMap;
use std::path::Path;

use super::super::number::number;
use super::super::place::{Fault, quoted};
use super::super::table::{MISSING, RawColumn, Reading, TableSource, is_missing};
use crate::error::{Error, Result};

/// Records examined to find a header.
const SAMPLE_RECORDS: usize = 50;

/// Numbers per word from which on the words of a column are taken for mistakes.
const NUMBERS_PER_MISTAKE: usize = 9;

/// Delimited text with its separator known.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) delimiter: u8,
    pub(super) path: &'a Path,
    /// Whether the first record is a header.
    pub(super) skip_first: bool,
}

/// A column while it is read.
#[derive(Default)]
struct Column {
    numbers: Vec<f64>,
    words: usize,
    first_word: Option<usize>,
    present: usize,
}

impl Column {
    /// Whether all are whole numbers and some are too large for a double to keep.
    fn needs_more_digits(&self) -> bool {
        self.numbers.iter().any(|v| v.abs() >= (1_u64 << 53) as f64)
            && self.numbers.iter().all(|v| v.fract() == 0.0)
    }
}

impl<'a> Text<'a> {
    fn reader(&self) -> csv::Reader<&'a [u8]> {
        csv::ReaderBuilder::new()
            .delimiter(self.delimiter)
            .has_headers(false)
            .flexible(true)
            .from_reader(self.bytes)
    }

    pub(super) fn first_records(&self) -> Result<Vec<csv::ByteRecord>> {
        let records = self.reader().into_byte_records().take(SAMPLE_RECORDS);
        records.map(|record| record.map_err(|e| self.broken(&e))).collect()
    }

    fn broken(&self, error: &csv::Error) -> Error {
        Error::Format { path: self.path.to_owned(), message: error.to_string() }
    }

    /// Calls `visit(row, record)` for every record after the header; all have `width` fields.
    fn for_each_row(
        &self,
        width: usize,
        mut visit: impl FnMut(usize, &csv::ByteRecord) -> Result<()>,
    ) -> Result<usize> {
        let mut reader = self.reader();
        let mut record = csv::ByteRecord::new();
        let mut rows = 0;
        let mut in_header = self.skip_first;
        while reader.read_byte_record(&mut record).map_err(|e| self.broken(&e))? {
            if in_header {
                in_header = false;
                continue;
            }
            if record.len() != width {
                let field = record.len().min(width) - 1;
                let expected = format!("{width} fields as in the first row");
                return Err(self.error_at(rows, field, expected, record.len().to_string()));
            }
            visit(rows, &record)?;
            rows += 1;
        }
        Ok(rows)
    }

    fn take_number(
        &self,
        field: &[u8],
        column: &mut Column,
        row: usize,
        j: usize,
        reading: Reading,
        name: &str,
    ) -> Result<()> {
        if is_missing(field) {
            column.numbers.push(f64::NAN);
            return Ok(());
        }
        column.present += 1;
        match number(field) {
            Some(value) if value.is_finite() => column.numbers.push(value),
            Some(_) => {
                let expected = format!("a finite number in column '{name}'");
                return Err(self.error_at(row, j, expected, quoted(field)));
            }
            None if reading == Reading::Numbers => {
                let expected = format!("a number in column '{name}'");
                return Err(self.error_at(row, j, expected, quoted(field)));
            }
            None => {
                column.words += 1;
                column.first_word.get_or_insert(row);
                column.numbers.push(f64::NAN);
            }
        }
        Ok(())
    }

    fn check_mistakes(&self, column: &Column, j: usize, name: &str) -> Result<()> {
        let numbers = column.present - column.words;
        match column.first_word {
            Some(row) if numbers >= NUMBERS_PER_MISTAKE * column.words => {
                let expected = format!(
                    "a number in column '{name}' (numbers in {numbers} of {} rows; declare it \
                     categorical to take words)",
                    column.present
                );
                let found = self.with_field(row, j, quoted);
                Err(self.error_at(row, j, expected, found))
            }
            _ => Ok(()),
        }
    }

    /// The columns named by `wanted`, as words.
    fn words(&self, readings: &[Reading], wanted: &[usize]) -> Result<HashMap<usize, RawColumn>> {
        let width = readings.len();
        let mut known: Vec<HashMap<String, u32>> = wanted.iter().map(|_| HashMap::new()).collect();
        let mut codes: Vec<Vec<u32>> = wanted.iter().map(|_| Vec::new()).collect();
        if !wanted.is_empty() {
            self.for_each_row(width, |row, record| {
                for (k, &j) in wanted.iter().enumerate() {
                    let is_text = readings[j] == Reading::Text;
                    let field = if is_text { &record[j] } else { record[j].trim_ascii() };
                    if !is_text && is_missing(field) {
                        codes[k].push(MISSING);
                        continue;
                    }
                    let Ok(word) = std::str::from_utf8(field) else {
                        return Err(self.error_at(row, j, "text in UTF-8".into(), quoted(field)));
                    };
                    let next = known[k].len() as u32;
                    let code = match known[k].get(word) {
                        Some(code) => *code,
                        None => {
                            known[k].insert(word.to_owned(), next);
                            next
                        }
                    };
                    codes[k].push(code);
                }
                Ok(())
            })?;
        }
        let columns = wanted.iter().zip(codes.into_iter().zip(known));
        let column = |(&j, (codes, known))| (j, RawColumn::Words { codes, words: in_order(known) });
        Ok(columns.map(column).collect())
    }

    /// Applies `show` to the field of that row and column.
    fn with_field(&self, row: usize, column: usize, show: impl Fn(&[u8]) -> String) -> String {
        let place = row + usize::from(self.skip_first);
        match self.reader().into_byte_records().nth(place) {
            Some(Ok(record)) => show(record.get(column).unwrap_or_default().trim_ascii()),
            _ => show(b""),
        }
    }

    /// An error about the field of that row and column (both from 0), with its line and byte column.
    #[cold]
    fn error_at(&self, row: usize, column: usize, expected: String, found: String) -> Error {
        let mut reader = self.reader();
        let mut record = csv::ByteRecord::new();
        let mut start = 0;
        for _ in 0..=row + usize::from(self.skip_first) {
            start = reader.position().byte() as usize;
            if !matches!(reader.read_byte_record(&mut record), Ok(true)) {
                break;
            }
        }
        let at = self.field_start(start, column);
        Fault::new(at, expected, found).in_text(self.path, self.bytes)
    }

    /// The byte where a field begins, in the record that begins at or after `start`.
    fn field_start(&self, start: usize, column: usize) -> usize {
        let blank = |b: &u8| matches!(b, b'\r' | b'\n');
        let mut at = start + self.bytes[start..].iter().take_while(|b| blank(b)).count();
        let (mut passed, mut inside_quotes) = (0, false);
        while passed < column && at < self.bytes.len() {
            match self.bytes[at] {
                b'"' => inside_quotes = !inside_quotes,
                byte if byte == self.delimiter && !inside_quotes => passed += 1,
                _ => {}
            }
            at += 1;
        }
        at
    }
}

impl TableSource for Text<'_> {
    fn refuse(&self, message: String) -> Error {
        Error::Format { path: self.path.to_owned(), message }
    }

    fn error_at(&self, row: usize, column: usize, expected: String, found: String) -> Error {
        self.error_at(row, column, expected, found)
    }

    fn columns(
        &self,
        readings: &[Reading],
        names: &[String],
        label: Option<usize>,
    ) -> Result<(usize, Vec<RawColumn>)> {
        let width = readings.len();
        let mut columns: Vec<Column> = readings.iter().map(|_| Column::default()).collect();
        let rows = self.for_each_row(width, |row, record| {
            for (j, (field, column)) in record.iter().zip(&mut columns).enumerate() {
                if matches!(readings[j], Reading::Guess | Reading::Numbers) {
                    self.take_number(field.trim_ascii(), column, row, j, readings[j], &names[j])?;
                }
            }
            Ok(())
        })?;
        if rows == 0 {
            let message = "expected at least one row, found only a header".into();
            return Err(Error::Format { path: self.path.to_owned(), message });
        }
        for (j, column) in columns.iter().enumerate() {
            if Some(j) != label {
                self.check_mistakes(column, j, &names[j])?;
            }
        }
        let is_words = |j: usize| {
            matches!(readings[j], Reading::Words | Reading::Text)
                || columns[j].words > 0
                || (Some(j) == label && columns[j].needs_more_digits())
        };
        let wanted: Vec<usize> = (0..width).filter(|j| is_words(*j)).collect();
        let mut word_columns = self.words(readings, &wanted)?;
        let columns = columns
            .into_iter()
            .enumerate()
            .map(|(j, column)| match (word_columns.remove(&j), readings[j]) {
                (Some(words), _) => words,
                (None, Reading::Skip) => RawColumn::Skipped,
                (None, _) => RawColumn::Numbers(column.numbers),
            })
            .collect();
        Ok((rows, columns))
    }
}

fn in_order(known: HashMap<String, u32>) -> Vec<String> {
    let mut words: Vec<(String, u32)> = known.into_iter().collect();
    words.sort_unstable_by_key(|(_, code)| *code);
    words.into_iter().map(|(word, _)| word).collect()
}
