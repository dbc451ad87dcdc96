//! Apache Parquet files, as tables: flat columns of numbers, booleans and text.
//!
//! Columns find their meaning as those of delimited text do, see [`TableEncoding`]; nulls and NaN are
//! missing values. Nested columns, decimals and the zstd codec (whose library is C) are refused.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use super::options::ReadOptions;
use super::table::{LoadedTable, MISSING, RawColumn, Reading, TableSource, load};
use crate::error::{Error, Result};

/// Values decoded at a time.
const BATCH: usize = 1 << 14;

/// Reads a Parquet file that came from `path`.
pub(super) fn read(bytes: &[u8], path: &Path, options: &ReadOptions) -> Result<LoadedTable> {
    let refuse = |message: String| Error::Format { path: path.to_owned(), message };
    // The decoder has been seen to panic on damaged files; that must not take the program down.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let file = SerializedFileReader::new(bytes::Bytes::copy_from_slice(bytes))
            .map_err(|e| refuse(e.to_string()))?;
        let columns = file.metadata().file_metadata().schema_descr().columns();
        let names: Vec<String> = columns.iter().map(|c| c.path().string()).collect();
        if names.is_empty() {
            return Err(refuse("expected at least one column, found none".into()));
        }
        load(&Table { file: &file, path }, names, true, options)
    }));
    outcome.unwrap_or_else(|panic: Box<dyn Any + Send>| {
        let fixed = panic.downcast_ref::<&str>().copied().unwrap_or("unknown");
        let reason = panic.downcast_ref::<String>().map_or(fixed, String::as_str);
        Err(refuse(format!("a damaged Parquet file ({reason})")))
    })
}

struct Table<'a, R: ChunkReader> {
    file: &'a SerializedFileReader<R>,
    path: &'a Path,
}

/// The values of a column that are there, in order, and for each row whether it has one.
struct Values<T> {
    present: Vec<bool>,
    values: Vec<T>,
}

impl<T> Values<T> {
    fn new() -> Self {
        Self { present: Vec::new(), values: Vec::new() }
    }
}

macro_rules! take {
    ($reader:expr, $out:expr, $largest:expr, $convert:expr) => {{
        let mut values = Vec::new();
        let mut levels = Vec::new();
        loop {
            values.clear();
            levels.clear();
            let (records, _, _) =
                $reader.read_records(BATCH, Some(&mut levels), None, &mut values)?;
            if records == 0 {
                break;
            }
            if levels.is_empty() {
                $out.present.resize($out.present.len() + records, true);
            } else {
                $out.present.extend(levels.iter().map(|level| *level == $largest));
            }
            $out.values.extend(values.drain(..).map($convert));
        }
    }};
}

impl<R: ChunkReader + 'static> Table<'_, R> {
    fn readers(
        &self,
        column: usize,
    ) -> impl Iterator<Item = std::result::Result<ColumnReader, ParquetError>> {
        (0..self.file.num_row_groups())
            .map(move |group| self.file.get_row_group(group)?.get_column_reader(column))
    }

    fn numbers(
        &self,
        column: usize,
        descriptor: &ColumnDescriptor,
    ) -> std::result::Result<Values<f64>, ParquetError> {
        let largest = descriptor.max_def_level();
        let unsigned = matches!(
            descriptor.converted_type(),
            ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64
        );
        let mut out = Values::new();
        for reader in self.readers(column) {
            match reader? {
                ColumnReader::BoolColumnReader(mut r) => {
                    take!(r, out, largest, |v| f64::from(u8::from(v)));
                }
                ColumnReader::Int32ColumnReader(mut r) => {
                    take!(r, out, largest, |v| if unsigned {
                        f64::from(v as u32)
                    } else {
                        v.into()
                    });
                }
                ColumnReader::Int64ColumnReader(mut r) => {
                    take!(r, out, largest, |v| if unsigned { v as u64 as f64 } else { v as f64 });
                }
                ColumnReader::FloatColumnReader(mut r) => take!(r, out, largest, f64::from),
                ColumnReader::DoubleColumnReader(mut r) => take!(r, out, largest, |v| v),
                _ => return Err(ParquetError::General("a column of another type".into())),
            }
        }
        Ok(out)
    }

    fn texts(
        &self,
        column: usize,
        descriptor: &ColumnDescriptor,
    ) -> std::result::Result<Values<ByteArray>, ParquetError> {
        let largest = descriptor.max_def_level();
        let mut out = Values::new();
        for reader in self.readers(column) {
            match reader? {
                ColumnReader::ByteArrayColumnReader(mut r) => take!(r, out, largest, |v| v),
                _ => return Err(ParquetError::General("a column of another type".into())),
            }
        }
        Ok(out)
    }

    fn column(&self, j: usize, reading: Reading, name: &str, is_label: bool) -> Result<RawColumn> {
        let descriptor = self.file.metadata().file_metadata().schema_descr().column(j);
        let damaged = |e: ParquetError| self.refuse(format!("column '{name}': {e}"));
        if descriptor.max_rep_level() > 0 {
            return Err(self.refuse(format!("column '{name}' is nested; expected plain values")));
        }
        let decimal = matches!(descriptor.logical_type_ref(), Some(LogicalType::Decimal { .. }))
            || descriptor.converted_type() == ConvertedType::DECIMAL;
        match descriptor.physical_type() {
            Type::INT96 | Type::FIXED_LEN_BYTE_ARRAY => {
                Err(self.refuse(format!("column '{name}' holds neither numbers nor text")))
            }
            _ if decimal => Err(self.refuse(format!("column '{name}' holds decimals"))),
            Type::BYTE_ARRAY if reading == Reading::Numbers => {
                Err(self.refuse(format!("column '{name}': expected numbers, found text")))
            }
            Type::BYTE_ARRAY => {
                let texts = self.texts(j, &descriptor).map_err(damaged)?;
                let words = self.words(texts, j, |text| {
                    std::str::from_utf8(text.data()).ok().map(str::to_owned)
                });
                if reading == Reading::Text { words.map(without_gaps) } else { words }
            }
            _ => {
                let numbers = self.numbers(j, &descriptor).map_err(damaged)?;
                if matches!(reading, Reading::Words | Reading::Text) {
                    let words = self.words(numbers, j, |v| Some(v.to_string()));
                    return if reading == Reading::Text { words.map(without_gaps) } else { words };
                }
                let mut values = numbers.values.into_iter();
                let column: Vec<f64> = (numbers.present.iter())
                    .map(
                        |present| {
                            if *present { values.next().unwrap_or(f64::NAN) } else { f64::NAN }
                        },
                    )
                    .collect();
                if let Some(row) = column.iter().position(|v| v.is_infinite()) {
                    let what = if is_label { "label" } else { "number" };
                    let expected = format!("a finite {what} in column '{name}'");
                    return Err(self.error_at(row, j, expected, column[row].to_string()));
                }
                Ok(RawColumn::Numbers(column))
            }
        }
    }

    fn words<T>(
        &self,
        values: Values<T>,
        column: usize,
        spell: impl Fn(&T) -> Option<String>,
    ) -> Result<RawColumn> {
        let mut known = HashMap::new();
        let mut words = Vec::new();
        let mut codes = Vec::with_capacity(values.present.len());
        let mut next = values.values.iter();
        for (row, present) in values.present.iter().enumerate() {
            let Some(value) = present.then(|| next.next()).flatten() else {
                codes.push(MISSING);
                continue;
            };
            let Some(word) = spell(value) else {
                return Err(self.error_at(
                    row,
                    column,
                    "text in UTF-8".into(),
                    "other bytes".into(),
                ));
            };
            let code = *known.entry(word).or_insert_with_key(|word: &String| {
                words.push(word.clone());
                words.len() as u32 - 1
            });
            codes.push(code);
        }
        Ok(RawColumn::Words { codes, words })
    }
}

/// The same words, missing ones being empty.
fn without_gaps(column: RawColumn) -> RawColumn {
    let RawColumn::Words { mut codes, mut words } = column else { return column };
    if codes.contains(&MISSING) {
        let empty = words.iter().position(String::is_empty).unwrap_or_else(|| {
            words.push(String::new());
            words.len() - 1
        });
        codes.iter_mut().filter(|code| **code == MISSING).for_each(|code| *code = empty as u32);
    }
    RawColumn::Words { codes, words }
}

impl<R: ChunkReader + 'static> TableSource for Table<'_, R> {
    fn refuse(&self, message: String) -> Error {
        Error::Format { path: self.path.to_owned(), message }
    }

    fn error_at(&self, row: usize, _column: usize, expected: String, found: String) -> Error {
        self.refuse(format!("row {}: expected {expected}, found {found}", row + 1))
    }

    fn columns(
        &self,
        readings: &[Reading],
        names: &[String],
        label: Option<usize>,
    ) -> Result<(usize, Vec<RawColumn>)> {
        let rows = usize::try_from(self.file.metadata().file_metadata().num_rows()).unwrap_or(0);
        if rows == 0 {
            return Err(self.refuse("expected at least one row, found none".into()));
        }
        let mut columns = Vec::with_capacity(readings.len());
        for (j, (&reading, name)) in readings.iter().zip(names).enumerate() {
            columns.push(match reading {
                Reading::Skip => RawColumn::Skipped,
                _ => self.column(j, reading, name, Some(j) == label)?,
            });
            let found = match columns.last() {
                Some(RawColumn::Numbers(values)) => values.len(),
                Some(RawColumn::Words { codes, .. }) => codes.len(),
                _ => rows,
            };
            if found != rows {
                let message = format!("column '{name}': expected {rows} rows, found {found}");
                return Err(self.refuse(message));
            }
        }
        Ok((rows, columns))
    }
}
