//! LIBSVM / SVMlight text: `label[,label...] [qid:n] index:value ... [# comment]`, one row per line.
//!
//! Every value is the `f64` nearest to its decimal text, indices must strictly ascend within a row,
//! and whatever breaks the format is reported with line and column.
//! The index base is 0 exactly when the index 0 occurs in the file, unless declared; the `0:serial`
//! of LIBSVM's precomputed kernels is therefore column 0 of the table.
//! Inside a rayon pool the text is parsed in chunks at once, with the same result as in one piece.

use std::path::Path;

use rayon::prelude::*;

use super::assemble::{Part, Real, assemble};
use super::number::{byte_at, decimal_prefix, number, whole, whole_prefix};
use super::options::{IndexBase, LabelColumn, Precision, ReadOptions};
use super::place::{Fault, quoted};
use crate::data::{Dataset, Labels};
use crate::error::{Error, Result};

const CHUNK_BYTES: usize = 1 << 20;
const LARGEST_EXACT_INTEGER: f64 = (1_u64 << 53) as f64;

/// A table read from LIBSVM text.
pub(super) struct LibsvmText {
    pub(super) dataset: Dataset,
    pub(super) base: IndexBase,
}

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
        Precision::F32 => read_as::<f32>(bytes, path, options, chunk),
        Precision::Auto | Precision::F64 => read_as::<f64>(bytes, path, options, chunk),
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
    let rows: usize = parts.iter().map(|p| p.rows.ends.len()).sum();
    if rows == 0 {
        let message = "expected at least one row, found only blank lines and comments".into();
        let message = if bytes.is_empty() { "the file is empty".into() } else { message };
        return Err(Error::Format { path: path.to_owned(), message });
    }
    let zero_based = match options.index_base {
        IndexBase::Zero => true,
        IndexBase::One => false,
        IndexBase::Auto => parts.iter().any(|p| p.has_index_zero),
    };
    let largest = parts.iter().filter_map(|p| p.largest).max();
    let needed = largest.map_or(0, |index| index as usize + usize::from(zero_based));
    if needed > rules.columns {
        let rules =
            Rules { smallest: 0, largest: (rules.columns as u64).saturating_sub(1), ..rules };
        return match parse_parts::<T>(bytes, &rules, chunk) {
            Err(fault) => Err(fault.in_text(path, bytes)),
            Ok(_) => Err(Error::length("features", rules.columns, needed)),
        };
    }
    let groups = groups(&parts).map_err(|f| f.in_text(path, bytes))?;
    let labels = labels(&parts, bytes, options);
    let columns = options.columns.unwrap_or(needed);
    let base = u32::from(!zero_based);
    let rows = parts.into_iter().map(|p| p.rows).collect();
    let matrix = assemble(rows, columns, base, options.layout)?;
    let mut dataset = Dataset::new(matrix, labels)?;
    if let Some(groups) = groups {
        dataset = dataset.with_groups(groups)?;
    }
    let base = if zero_based { IndexBase::Zero } else { IndexBase::One };
    Ok(LibsvmText { dataset, base })
}

/// What is admissible in the file at hand.
#[derive(Clone)]
struct Rules {
    labelled: bool,
    smallest: u64,
    largest: u64,
    columns: usize,
    declared: bool,
    allow_non_finite: bool,
}

impl Rules {
    fn new(options: &ReadOptions) -> Self {
        let most = options.max_columns.min(u32::MAX as usize);
        let columns = options.columns.map_or(most, |c| c.min(most));
        Self {
            labelled: options.label_column != LabelColumn::Absent,
            smallest: u64::from(options.index_base == IndexBase::One),
            largest: match options.index_base {
                IndexBase::Zero => (columns as u64).saturating_sub(1),
                IndexBase::One | IndexBase::Auto => columns as u64,
            },
            columns,
            declared: options.columns.is_some(),
            allow_non_finite: options.allow_non_finite,
        }
    }

    #[cold]
    fn bad_index(&self, at: usize, index: u64, text: &[u8], previous_end: u64) -> Fault {
        let expected = if index < self.smallest {
            "an index of at least 1 (features are declared to count from 1)".to_owned()
        } else if index > self.largest && self.declared {
            format!("an index of at most {} (the declared number of columns)", self.largest)
        } else if index > self.largest {
            format!("an index of at most {} (the limit on columns)", self.largest)
        } else if index + 1 == previous_end {
            format!("an index above {index}, which this row already has")
        } else {
            format!("an index above {}: indices of a row must ascend", previous_end - 1)
        };
        Fault::new(at, expected, quoted(text))
    }
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
    if bounds.len() == 1 {
        return Ok(vec![parse(&bounds[0])?]);
    }
    let results: Vec<_> = bounds.par_iter().map(parse).collect();
    results.into_iter().collect()
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

/// The rows of one chunk.
struct Parsed<T> {
    offset: usize,
    rows: Part<T>,
    labels: Vec<f64>,
    labels_are_whole: bool,
    labels_are_numbers: bool,
    groups: Vec<i64>,
    first_with_group: Option<usize>,
    first_without_group: Option<usize>,
    largest: Option<u32>,
    has_index_zero: bool,
}

impl<T> Parsed<T> {
    fn new(offset: usize, bytes: usize) -> Self {
        // Dense decimals take eight bytes and more per value; shorter ones let the vectors grow.
        let values = bytes / 8;
        Self {
            offset,
            rows: Part {
                ends: Vec::new(),
                indices: Vec::with_capacity(values),
                values: Vec::with_capacity(values),
            },
            labels: Vec::new(),
            labels_are_whole: true,
            labels_are_numbers: true,
            groups: Vec::new(),
            first_with_group: None,
            first_without_group: None,
            largest: None,
            has_index_zero: false,
        }
    }
}

#[inline(always)]
fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t' || byte == b'\r'
}

#[inline(always)]
fn ends_token(byte: u8) -> bool {
    is_blank(byte) || byte == b'\n' || byte == b'#'
}

#[inline(always)]
fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    while is_blank(byte_at(bytes, at)) {
        at += 1;
    }
    at
}

fn token(bytes: &[u8], at: usize) -> &[u8] {
    let rest = &bytes[at.min(bytes.len())..];
    let length = rest.iter().position(|b| ends_token(*b)).unwrap_or(rest.len());
    &rest[..length]
}

fn shown(token: &[u8]) -> String {
    if token.is_empty() { "the end of the line".into() } else { quoted(token) }
}

/// The place after the comment at `at`, which is its line end or the end of the text.
fn skip_comment(bytes: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |newline| at + newline)
}

fn parse_lines<T: Real>(
    bytes: &[u8],
    rules: &Rules,
    out: &mut Parsed<T>,
) -> std::result::Result<(), Fault> {
    let mut at = 0;
    let mut largest_plus_one = 0;
    while at < bytes.len() {
        at = skip_blanks(bytes, at);
        match byte_at(bytes, at) {
            b'\n' => at += 1,
            b'#' => at = skip_comment(bytes, at),
            _ => {
                if rules.labelled {
                    at = parse_label(bytes, at, out)?;
                }
                let row_end;
                (at, row_end) = parse_pairs(bytes, at, rules, out)?;
                largest_plus_one = largest_plus_one.max(row_end);
                out.rows.ends.push(out.rows.indices.len());
            }
        }
    }
    out.largest = (largest_plus_one as u32).checked_sub(1);
    Ok(())
}

fn parse_label<T>(
    bytes: &[u8],
    at: usize,
    out: &mut Parsed<T>,
) -> std::result::Result<usize, Fault> {
    if let Some((value, end)) = decimal_prefix(bytes, at)
        && ends_token(byte_at(bytes, end))
        && value.is_finite()
    {
        out.labels_are_whole &= value.fract() == 0.0 && value.abs() < LARGEST_EXACT_INTEGER;
        out.labels.push(value);
        return Ok(end);
    }
    let word = token(bytes, at);
    if word.contains(&b':') {
        return Err(Fault::new(at, "a label", quoted(word)));
    }
    if number(word).is_some() {
        return Err(Fault::new(at, "a finite label", quoted(word)));
    }
    if std::str::from_utf8(word).is_err() || word.iter().any(u8::is_ascii_control) {
        return Err(Fault::new(at, "a label of printable UTF-8 characters", quoted(word)));
    }
    out.labels_are_numbers = false;
    out.labels.push(f64::NAN);
    Ok(at + word.len())
}

/// Reads the rest of a line; gives the place of the next line and the last index plus one.
#[inline]
fn parse_pairs<T: Real>(
    bytes: &[u8],
    mut at: usize,
    rules: &Rules,
    out: &mut Parsed<T>,
) -> std::result::Result<(usize, u64), Fault> {
    let mut next = rules.smallest;
    at = skip_blanks(bytes, at);
    at = parse_group(bytes, at, out)?;
    loop {
        at = skip_blanks(bytes, at);
        let (colon, index) = whole_prefix(bytes, at);
        if byte_at(bytes, colon) != b':' || colon == at {
            match byte_at(bytes, at) {
                b'\n' => return Ok((at + 1, if next == rules.smallest { 0 } else { next })),
                b'#' => {
                    at = skip_comment(bytes, at);
                    continue;
                }
                _ => return Err(bad_pair(bytes, at, colon)),
            }
        }
        if index < next || index > rules.largest {
            return Err(rules.bad_index(at, index, &bytes[at..colon], next));
        }
        let value = match decimal_prefix(bytes, colon + 1) {
            Some((value, end)) if ends_token(byte_at(bytes, end)) && value.is_finite() => {
                at = end;
                value
            }
            _ => {
                let word = token(bytes, colon + 1);
                at = colon + 1 + word.len();
                unusual_value(word, colon + 1, rules)?
            }
        };
        out.has_index_zero |= index == 0;
        next = index + 1;
        if value != 0.0 {
            out.rows.indices.push(index as u32);
            out.rows.values.push(T::from_f64(value));
        }
    }
}

#[cold]
#[inline(never)]
fn unusual_value(word: &[u8], at: usize, rules: &Rules) -> std::result::Result<f64, Fault> {
    match number(word) {
        Some(value) if rules.allow_non_finite || value.is_finite() => Ok(value),
        Some(_) => Err(Fault::new(at, "a finite number", quoted(word))),
        None => Err(Fault::new(at, "a number after ':'", shown(word))),
    }
}

#[cold]
#[inline(never)]
fn bad_pair(bytes: &[u8], at: usize, after_digits: usize) -> Fault {
    let word = token(bytes, at);
    if after_digits > at && after_digits == at + word.len() {
        Fault::new(after_digits, "':' after the index", format!("only {}", quoted(word)))
    } else {
        Fault::new(at, "index:value", quoted(word))
    }
}

fn parse_group<T>(
    bytes: &[u8],
    at: usize,
    out: &mut Parsed<T>,
) -> std::result::Result<usize, Fault> {
    if !bytes[at.min(bytes.len())..].starts_with(b"qid:") {
        if out.first_without_group.is_none() {
            out.first_without_group = Some(out.offset + at);
        }
        return Ok(at);
    }
    let start = at + 4;
    let word = token(bytes, start);
    let group = std::str::from_utf8(word).ok().and_then(|w| w.parse().ok());
    let Some(group) = group else {
        return Err(Fault::new(start, "a whole number after 'qid:'", shown(word)));
    };
    if out.first_with_group.is_none() {
        out.first_with_group = Some(out.offset + at);
    }
    out.groups.push(group);
    Ok(start + word.len())
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

fn labels<T>(parts: &[Parsed<T>], bytes: &[u8], options: &ReadOptions) -> Labels {
    if options.label_column == LabelColumn::Absent {
        return Labels::None;
    }
    let numbers = || parts.iter().flat_map(|p| &p.labels);
    if !parts.iter().all(|p| p.labels_are_numbers) {
        return Labels::Text(text_labels(bytes));
    }
    if parts.iter().all(|p| p.labels_are_whole) {
        return Labels::Int(numbers().map(|v| *v as i64).collect());
    }
    if numbers().all(|v| v.fract() == 0.0) {
        let words = text_labels(bytes);
        let wholes = words.iter().zip(numbers()).map(|(w, v)| whole(w.as_bytes(), *v));
        if let Some(wholes) = wholes.collect() {
            return Labels::Int(wholes);
        }
    }
    Labels::Real(numbers().copied().collect())
}

/// The first word of every row, for labels that are no numbers or need more digits than a double has.
fn text_labels(bytes: &[u8]) -> Vec<String> {
    let mut labels = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        at = skip_blanks(bytes, at);
        let word = token(bytes, at);
        if !word.is_empty() {
            labels.push(String::from_utf8_lossy(word).into_owned());
        }
        at = skip_comment(bytes, at) + 1;
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Layout, Matrix};
    use proptest::prelude::*;

    fn parse(text: &str, options: &ReadOptions) -> Result<LibsvmText> {
        read(text.as_bytes(), Path::new("f"), options)
    }

    fn rows(text: &str) -> (Labels, Vec<Vec<(usize, f64)>>) {
        let data = parse(text, &ReadOptions::new().layout(Layout::Sparse)).unwrap().dataset;
        let mut rows = vec![Vec::new(); data.rows()];
        for (i, row) in rows.iter_mut().enumerate() {
            data.features().for_each_nonzero(i, |j, v| row.push((j, v)));
        }
        (data.labels().clone(), rows)
    }

    #[test]
    fn a_file_with_everything_in_it() {
        let text = "# head\n\n+1 1:0.5 3:-2e-1 # tail\r\n-1\t2:.5\t \r\n  1 3:7#x\n2";
        let (labels, rows) = rows(text);
        assert_eq!(labels, Labels::Int(vec![1, -1, 1, 2]));
        let expected = vec![vec![(0, 0.5), (2, -0.2)], vec![(1, 0.5)], vec![(2, 7.0)], Vec::new()];
        assert_eq!(rows, expected);
    }

    #[test]
    fn the_index_zero_anywhere_makes_the_file_zero_based() {
        let zero = parse("1 1:1 2:2\n-1 0:5\n", &ReadOptions::new()).unwrap();
        assert_eq!((zero.base, zero.dataset.columns()), (IndexBase::Zero, 3));
        let one = parse("1 1:1 2:2\n-1 1:5\n", &ReadOptions::new()).unwrap();
        assert_eq!((one.base, one.dataset.columns()), (IndexBase::One, 2));
        let declared = ReadOptions::new().index_base(IndexBase::Zero);
        assert_eq!(parse("1 1:1 2:2\n", &declared).unwrap().dataset.columns(), 3);
    }

    #[test]
    fn rows_of_a_precomputed_kernel_keep_their_serial_numbers() {
        let (_, rows) = rows("1 0:1 1:4 2:0.5\n-1 0:2 1:0.5 2:9\n");
        assert_eq!(rows[0], [(0, 1.0), (1, 4.0), (2, 0.5)]);
        assert_eq!(rows[1], [(0, 2.0), (1, 0.5), (2, 9.0)]);
    }

    #[test]
    fn labels_are_kept_as_given() {
        assert_eq!(rows("1.5 1:1\n2 1:1\n").0, Labels::Real(vec![1.5, 2.0]));
        assert_eq!(rows("1.0 1:1\n-2e0 1:1\n").0, Labels::Int(vec![1, -2]));
        let spelt = Labels::Int(vec![9_226_748_800_000_000, i64::MAX]);
        assert_eq!(rows("922674880E7 1:1\n9223372036854775807 1:1\n").0, spelt);
        assert_eq!(rows("1e300 1:1\n2 1:1\n").0, Labels::Real(vec![1e300, 2.0]));
        assert_eq!(rows("cat 1:1\n+1 1:1\n").0, Labels::Text(vec!["cat".into(), "+1".into()]));
        assert_eq!(rows("1,3 1:1\n2 1:1\n").0, Labels::Text(vec!["1,3".into(), "2".into()]));
        let large = i64::MAX;
        assert_eq!(
            rows(&format!("{large} 1:1\n-{large} 1:1\n")).0,
            Labels::Int(vec![large, -large])
        );
        let absent = ReadOptions::new().label_column(LabelColumn::Absent);
        assert_eq!(*parse("1:2\n3:4\n", &absent).unwrap().dataset.labels(), Labels::None);
    }

    #[test]
    fn query_numbers_become_groups() {
        let data = parse("3 qid:1 1:1\n2 qid:1 2:1\n1 qid:-4\n", &ReadOptions::new()).unwrap();
        assert_eq!(data.dataset.groups(), Some([1, 1, -4].as_slice()));
    }

    #[test]
    fn explicit_zeros_count_for_the_width_but_are_not_stored() {
        let data = parse("1 1:1 5:0\n", &ReadOptions::new().layout(Layout::Sparse)).unwrap();
        let Matrix::SparseF64(m) = data.dataset.features() else { panic!("asked for sparse") };
        assert_eq!((m.columns(), m.nonzeros()), (5, 1));
    }

    fn place(text: &str, options: &ReadOptions) -> (usize, usize, String) {
        match parse(text, options) {
            Err(Error::Parse { line, column, expected, .. }) => (line, column, expected),
            other => panic!("{text:?} gave {:?}", other.map(|t| t.dataset)),
        }
    }

    #[test]
    fn faults_are_reported_where_they_stand() {
        let plain = ReadOptions::new();
        for (text, line, column) in [
            ("1 1:1\n-1 2:nan\n", 2, 6),
            ("1 1:-inf", 1, 5),
            ("1 1:1e999", 1, 5),
            ("1 3:1 3:2", 1, 7),
            ("1 3:1 2:2", 1, 7),
            ("1 1:1\n\n1 4294967295:1", 3, 3),
            ("1 99999999999999999999999:1", 1, 3),
            ("1 1:1 7", 1, 8),
            ("1 1:", 1, 5),
            ("1 1:abc", 1, 5),
            ("1 1:2x", 1, 5),
            ("1 -1:2", 1, 3),
            ("1 a:2", 1, 3),
            ("1:2 2:3", 1, 1),
            ("nan 1:1", 1, 1),
            ("1 qid:x 1:1", 1, 7),
            ("1 qid:1 1:1\n2 1:1", 2, 3),
            ("1 1:1\n2 qid:1 1:1", 2, 3),
        ] {
            let (l, c, expected) = place(text, &plain);
            assert_eq!((l, c), (line, column), "{text:?}: expected {expected}");
        }
        let declared = plain.clone().columns(2);
        assert_eq!(place("1 1:1\n1 3:1", &declared).0, 2);
        assert_eq!(place("1 0:1\n1 2:1", &declared).0, 2);
        let from_one = plain.index_base(IndexBase::One);
        assert_eq!(place("1 0:1", &from_one).1, 3);
    }

    proptest! {
        #[test]
        fn parsing_in_chunks_equals_parsing_in_one_piece(
            lines in prop::collection::vec(
                prop::sample::select(vec![
                    "1 1:2 5:0.25", "-1 2:3", "", "# note", "+1 4:1e-3 7:0", "2\r", "0 1:1 2:2 3:3",
                    "x 1:1", "1 1:1 1:1", "0.5 9:9", "1 0:3 2:1",
                ]),
                0..30,
            ),
            chunk in 1_usize..40,
            dense in any::<bool>(),
        ) {
            let text = lines.join("\n");
            let layout = if dense { Layout::Dense } else { Layout::Sparse };
            let options = ReadOptions::new().layout(layout);
            let path = Path::new("f");
            let whole = read_in_chunks(text.as_bytes(), path, &options, text.len());
            let pieces = read_in_chunks(text.as_bytes(), path, &options, chunk);
            match (whole, pieces) {
                (Ok(a), Ok(b)) => {
                    prop_assert_eq!(a.dataset, b.dataset);
                    prop_assert_eq!(a.base, b.base);
                }
                (Err(a), Err(b)) => prop_assert_eq!(a.to_string(), b.to_string()),
                (a, b) => prop_assert!(false, "{:?} {:?}", a.map(|t| t.dataset), b.map(|t| t.dataset)),
            }
        }
    }
}
