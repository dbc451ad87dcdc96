//! LIBSVM / SVMlight text: `label[,label...] [qid:n] index:value ... [# comment]`, one row per line.
//!
//! Every value is the `f64` nearest to its decimal text, indices must strictly ascend within a row,
//! and whatever breaks the format is reported with line and column.
//! The index base is 0 exactly when the index 0 occurs in the file, unless declared; the `0:serial`
//! of LIBSVM's precomputed kernels is therefore column 0 of the table.
//! Inside a rayon pool the text is parsed in chunks at once, with the same result as in one piece.

mod line;
mod rules;
mod stream;
#[cfg(test)]
mod tests;

use std::path::Path;

use super::assemble::{Real, assemble};
use super::number::whole;
use super::options::{IndexBase, LabelColumn, ReadOptions, StoredPrecision};
use super::place::Fault;
use crate::data::{Dataset, Labels};
use crate::error::{Error, Result};
use crate::numeric::parallel::{self, Threads};
use line::{Parsed, parse_lines, row_start, skip_comment, token};
use rules::Rules;

const CHUNK_BYTES: usize = 1 << 20;

/// A table read from LIBSVM text.
pub(super) struct LibsvmText {
    pub(super) dataset: Dataset,
    pub(super) base: IndexBase,
}

pub(super) use stream::read_file;

/// Reads LIBSVM text that came from `path`.
pub(super) fn read(bytes: &[u8], path: &Path, options: &ReadOptions) -> Result<LibsvmText> {
    let chunk = match rayon::current_thread_index() {
        Some(_) if rayon::current_num_threads() > 1 => CHUNK_BYTES,
        _ => bytes.len(),
    };
    read_in_chunks(bytes, path, options, chunk)
}

fn read_in_chunks(
    bytes: &[u8],
    path: &Path,
    options: &ReadOptions,
    chunk: usize,
) -> Result<LibsvmText> {
    match options.precision {
        StoredPrecision::F32 => read_as::<f32>(bytes, path, options, chunk),
        StoredPrecision::Auto | StoredPrecision::F64 => read_as::<f64>(bytes, path, options, chunk),
    }
}

fn read_as<T: Real>(
    bytes: &[u8],
    path: &Path,
    options: &ReadOptions,
    chunk: usize,
) -> Result<LibsvmText> {
    let rules = Rules::new(options);
    let parts = parse_parts::<T>(bytes, &rules, chunk).map_err(|f| f.in_text(path, bytes))?;
    let extent = Extent::of(&parts, options);
    if extent.rows == 0 {
        let message = "expected at least one row, found only blank lines and comments".into();
        let message = if bytes.is_empty() { "the file is empty".into() } else { message };
        return Err(Error::Format { path: path.to_owned(), message });
    }
    if extent.columns > rules.columns {
        let rules =
            Rules { smallest: 0, largest: (rules.columns as u64).saturating_sub(1), ..rules };
        return match parse_parts::<T>(bytes, &rules, chunk) {
            Err(fault) => Err(fault.in_text(path, bytes)),
            Ok(_) => Err(Error::length("features", rules.columns, extent.columns)),
        };
    }
    let groups = groups(&parts).map_err(|f| f.in_text(path, bytes))?;
    let labels = labels(&parts, options).unwrap_or_else(|| text_or_large_labels(&parts, bytes));
    join(parts, &extent, labels, groups, options)
}

/// How far the rows of some parts reach.
struct Extent {
    rows: usize,
    columns: usize,
    zero_based: bool,
}

impl Extent {
    fn of<T>(parts: &[Parsed<T>], options: &ReadOptions) -> Self {
        let zero_based = match options.index_base {
            IndexBase::Zero => true,
            IndexBase::One => false,
            IndexBase::Auto => parts.iter().any(|p| p.has_index_zero),
        };
        let largest = parts.iter().filter_map(|p| p.largest).max();
        let columns = largest.map_or(0, |index| index as usize + usize::from(zero_based));
        Self { rows: parts.iter().map(|p| p.rows.ends.len()).sum(), columns, zero_based }
    }
}

fn join<T: Real>(
    parts: Vec<Parsed<T>>,
    extent: &Extent,
    labels: Labels,
    groups: Option<Vec<i64>>,
    options: &ReadOptions,
) -> Result<LibsvmText> {
    let columns = options.columns.unwrap_or(extent.columns);
    let base = u32::from(!extent.zero_based);
    let rows = parts.into_iter().map(|p| p.rows).collect();
    let matrix = assemble(rows, columns, base, options.layout)?;
    let mut dataset = Dataset::new(matrix, labels)?;
    if let Some(groups) = groups {
        dataset = dataset.with_groups(groups)?;
    }
    let base = if extent.zero_based { IndexBase::Zero } else { IndexBase::One };
    Ok(LibsvmText { dataset, base })
}

fn parse_parts<T: Real>(
    bytes: &[u8],
    rules: &Rules,
    chunk: usize,
) -> std::result::Result<Vec<Parsed<T>>, Fault> {
    let bounds = chunk_bounds(bytes, chunk);
    let parse = |bound: &(usize, usize)| {
        let mut parsed = Parsed::new(bound.0, bound.1 - bound.0);
        match parse_lines(&bytes[bound.0..bound.1], rules, &mut parsed) {
            Ok(()) => Ok(parsed),
            Err(fault) => Err(Fault { at: fault.at + bound.0, ..fault }),
        }
    };
    parallel::map(Threads::of_current_pool(bounds.len() > 1), &bounds, parse).into_iter().collect()
}

/// Cuts the text after line ends into pieces of at least `chunk` bytes (the last may be shorter).
fn chunk_bounds(bytes: &[u8], chunk: usize) -> Vec<(usize, usize)> {
    let mut bounds = Vec::new();
    let mut start = 0;
    while start < bytes.len() {
        let earliest = start.saturating_add(chunk.max(1)).min(bytes.len());
        let end = memchr::memchr(b'\n', &bytes[earliest - 1..])
            .map_or(bytes.len(), |newline| earliest + newline);
        bounds.push((start, end));
        start = end;
    }
    if bounds.is_empty() { vec![(0, 0)] } else { bounds }
}

/// The group of every row, when every row has one.
fn groups<T>(parts: &[Parsed<T>]) -> std::result::Result<Option<Vec<i64>>, Fault> {
    let Some(with) = parts.iter().find_map(|p| p.first_with_group) else {
        return Ok(None);
    };
    if let Some(without) = parts.iter().find_map(|p| p.first_without_group) {
        return Err(if with < without {
            Fault::new(without, "qid:n as in the rows before", "a row without it")
        } else {
            Fault::new(with, "no qid as in the rows before", "'qid:'")
        });
    }
    Ok(Some(parts.iter().flat_map(|p| &p.groups).copied().collect()))
}

/// The labels, unless their numbers are ambiguous.
fn labels<T>(parts: &[Parsed<T>], options: &ReadOptions) -> Option<Labels> {
    let numbers = || parts.iter().flat_map(|p| &p.labels);
    if options.label_column == LabelColumn::Absent {
        Some(Labels::None)
    } else if !parts.iter().all(|p| p.labels_are_numbers) {
        None
    } else if parts.iter().all(|p| p.labels_are_whole) {
        Some(Labels::Int(numbers().map(|v| *v as i64).collect()))
    } else if numbers().all(|v| v.fract() == 0.0) {
        None
    } else {
        Some(Labels::Real(numbers().copied().collect()))
    }
}

/// Labels that are words, or whole numbers too large for a double.
fn text_or_large_labels<T>(parts: &[Parsed<T>], bytes: &[u8]) -> Labels {
    let words = text_labels(bytes);
    if !parts.iter().all(|p| p.labels_are_numbers) {
        return Labels::Text(words);
    }
    let numbers = || parts.iter().flat_map(|p| &p.labels);
    let wholes = words.iter().zip(numbers()).map(|(w, v)| whole(w.as_bytes(), *v));
    match wholes.collect() {
        Some(wholes) => Labels::Int(wholes),
        None => Labels::Real(numbers().copied().collect()),
    }
}

/// The first word of every row, for labels that are no numbers or need more digits than a double has.
fn text_labels(bytes: &[u8]) -> Vec<String> {
    let mut labels = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        at = row_start(bytes, at);
        let word = token(bytes, at);
        if !word.is_empty() {
            labels.push(String::from_utf8_lossy(word).into_owned());
        }
        at = skip_comment(bytes, at) + 1;
    }
    labels
}
