//! One line of LIBSVM text after the other, into rows.

use super::super::assemble::{Real, RowsPart};
use super::super::number::{byte_at, decimal_prefix, number, whole_prefix};
use super::super::place::{Fault, quoted};
use super::super::source::BYTE_ORDER_MARK;
use super::rules::Rules;

/// Whole numbers below this are exact doubles.
const LARGEST_EXACT_INTEGER: f64 = (1_u64 << 53) as f64;

/// The rows of one chunk.
pub(super) struct Parsed<T> {
    pub(super) offset: usize,
    pub(super) rows: RowsPart<T>,
    pub(super) labels: Vec<f64>,
    pub(super) labels_are_whole: bool,
    pub(super) labels_are_numbers: bool,
    pub(super) groups: Vec<i64>,
    pub(super) first_with_group: Option<usize>,
    pub(super) first_without_group: Option<usize>,
    pub(super) largest: Option<u32>,
    pub(super) has_index_zero: bool,
}

impl<T> Parsed<T> {
    pub(super) fn new(offset: usize, bytes: usize) -> Self {
        // Dense decimals take eight bytes and more per value; shorter ones let the vectors grow.
        let values = bytes / 8;
        Self {
            offset,
            rows: RowsPart {
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
pub(super) fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    while is_blank(byte_at(bytes, at)) {
        at += 1;
    }
    at
}

pub(super) fn token(bytes: &[u8], at: usize) -> &[u8] {
    let rest = &bytes[at.min(bytes.len())..];
    let length = rest.iter().position(|b| ends_token(*b)).unwrap_or(rest.len());
    &rest[..length]
}

fn shown(token: &[u8]) -> String {
    if token.is_empty() { "the end of the line".into() } else { quoted(token) }
}

/// The place after the comment at `at`, which is its line end or the end of the text.
pub(super) fn skip_comment(bytes: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |newline| at + newline)
}

pub(super) fn parse_lines<T: Real>(
    bytes: &[u8],
    rules: &Rules,
    out: &mut Parsed<T>,
) -> std::result::Result<(), Fault> {
    let mut at = 0;
    let mut largest_plus_one = 0;
    while at < bytes.len() {
        at = row_start(bytes, at);
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
    out.largest = out.largest.max((largest_plus_one as u32).checked_sub(1));
    Ok(())
}

/// Past the blanks at the beginning of a line, and past byte order marks: files with a mark that were joined have
/// marks in the middle.
pub(super) fn row_start(bytes: &[u8], at: usize) -> usize {
    let mut at = skip_blanks(bytes, at);
    while bytes[at..].starts_with(BYTE_ORDER_MARK) {
        at = skip_blanks(bytes, at + BYTE_ORDER_MARK.len());
    }
    at
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
