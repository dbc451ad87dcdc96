//! String kernels whose values are tables filled pair by pair, for one left string and several right ones
//! of about the same length at a time.

use std::ops::Range;
use std::sync::Arc;

use super::super::{PackedRows, Queries, check_range};
use super::alignment::Alignments;
use super::overdue::Overdue;
use super::subsequence::Subsequences;
use super::symbols;
use crate::context::Context;
use crate::data::Matrix;
use crate::error::{Error, Result};
use crate::kernel::{StringKernel, StringSimilarity};
use crate::numeric::InstructionSet;
use crate::numeric::simd::{Real, run_plain};

/// Right strings of a group.
pub(super) const LANES: usize = 8;

/// mantissa · exp(log_scale)
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) mantissa: f64,
    pub(super) log_scale: f64,
}

impl Value {
    fn ln(self) -> f64 {
        self.mantissa.ln() + self.log_scale
    }
}

/// Right strings side by side: `symbols[place][lane]`, 0 beyond the end of a string.
pub(super) struct Group<'a> {
    pub(super) symbols: &'a [[f64; LANES]],
    pub(super) lengths: [usize; LANES],
}

impl Group<'_> {
    /// Symbols of the longest string.
    pub(super) fn places(&self) -> usize {
        self.symbols.len()
    }
}

/// Packed strings.
pub(super) struct Pairs<T> {
    kernel: StringKernel,
    set: InstructionSet,
    overdue: Overdue,
    width: usize,
    strings: Arc<[PackedString]>,
    /// The string of every packed row.
    rows: Vec<usize>,
    diagonal: Vec<T>,
}

/// A string, and what values with it are divided by.
struct PackedString {
    /// Symbols, exact in double precision.
    symbols: Vec<f64>,
    /// ln K(s, s), −∞ for 0; 0 where the kernel is not normalised.
    own: f64,
}

impl<T: Real> Pairs<T> {
    /// Packs the strings of `matrix` named by `order`.
    ///
    /// # Errors
    /// As [`pack`](super::pack).
    pub(super) fn new(
        kernel: &StringKernel,
        matrix: &Matrix,
        order: &[usize],
        set: InstructionSet,
        context: Option<&Context>,
    ) -> Result<Self> {
        let overdue = Overdue::of(context);
        let stop = || context.map_or(Ok(()), Context::checkpoint);
        let (strings, diagonal) = read(kernel, (set, &overdue), matrix, order, stop)?;
        let rows = (0..strings.len()).collect();
        let width = matrix.columns();
        Ok(Self { kernel: *kernel, set, overdue, width, strings: strings.into(), rows, diagonal })
    }

    /// The strings named by `rows` with those of `left`, each in its place of `out`.
    fn values(&self, left: &[&PackedString], columns: &[usize], out: &mut [&mut [T]]) {
        // Groups of strings of about the same length waste the fewest places.
        let mut order: Vec<usize> = (0..columns.len()).collect();
        let string = |at: usize| &self.strings[columns[at]];
        order.sort_by_key(|&at| string(at).symbols.len());
        let mut side_by_side = Vec::new();
        for (left, out) in left.iter().zip(out) {
            // A group has only strings that are all less than the left one, or none of them.
            let (less, others): (Vec<usize>, Vec<usize>) =
                order.iter().partition(|&&at| is_less(&string(at).symbols, &left.symbols));
            for (swapped, part) in [(true, less), (false, others)] {
                for group in part.chunks(LANES) {
                    if self.overdue.is_late() {
                        group.iter().for_each(|&at| out[at] = T::ZERO);
                        continue;
                    }
                    let right: Vec<&PackedString> = group.iter().map(|&at| string(at)).collect();
                    let values = self.of_group(left, &right, swapped, &mut side_by_side);
                    for ((&at, right), value) in group.iter().zip(&right).zip(values) {
                        out[at] = T::from_f64(finished(&self.kernel, value, left.own, right.own));
                    }
                }
            }
        }
    }

    fn of_group(
        &self,
        left: &PackedString,
        right: &[&PackedString],
        swapped: bool,
        scratch: &mut Vec<[f64; LANES]>,
    ) -> [Value; LANES] {
        raw(&self.kernel, (self.set, &self.overdue), left, right, swapped, scratch)
    }
}

/// Whether string `a` comes before `b`: the shorter first.
fn is_less(a: &[f64], b: &[f64]) -> bool {
    match a.len() == b.len() {
        true => a.iter().zip(b).find(|(a, b)| a != b).is_some_and(|(a, b)| a < b),
        false => a.len() < b.len(),
    }
}

/// Strings with the logarithm of K(s, s), and the diagonal of the kernel, unless it is to `stop`.
fn read<T: Real>(
    kernel: &StringKernel,
    how: (InstructionSet, &Overdue),
    matrix: &Matrix,
    rows: &[usize],
    stop: impl Fn() -> Result<()>,
) -> Result<(Vec<PackedString>, Vec<T>)> {
    let name = kernel.similarity.name();
    let (mut string, mut scratch) = (Vec::new(), Vec::new());
    let (mut strings, mut sizes, mut diagonal) = (Vec::new(), Vec::new(), Vec::new());
    for &row in rows {
        stop()?;
        symbols(name, matrix, row, &mut string)?;
        let symbols = string.iter().map(|&symbol| f64::from(symbol)).collect();
        let mut packed = PackedString { symbols, own: 0.0 };
        let [value, ..] = raw(kernel, how, &packed, &[&packed], false, &mut scratch);
        how.1.check()?;
        if kernel.normalize {
            packed.own = base(kernel, value);
        }
        let own = finished(kernel, value, packed.own, packed.own);
        sizes.push((row, own.abs()));
        diagonal.push(T::from_f64(own));
        strings.push(packed);
    }
    check_range::<T>(name, sizes)?;
    Ok((strings, diagonal))
}

/// K of one string with up to [`LANES`] others, before anything is normalised.
fn raw(
    kernel: &StringKernel,
    (set, overdue): (InstructionSet, &Overdue),
    left: &PackedString,
    right: &[&PackedString],
    swapped: bool,
    scratch: &mut Vec<[f64; LANES]>,
) -> [Value; LANES] {
    let places = right.iter().map(|string| string.symbols.len()).max().unwrap_or(0);
    scratch.clear();
    scratch.resize(places, [0.0; LANES]);
    let mut lengths = [0; LANES];
    for (lane, string) in right.iter().enumerate() {
        lengths[lane] = string.symbols.len();
        for (place, &symbol) in scratch.iter_mut().zip(&string.symbols) {
            place[lane] = symbol;
        }
    }
    let (left, group) = (&left.symbols[..], &Group { symbols: scratch, lengths });
    match kernel.similarity {
        StringSimilarity::Subsequence { length, decay } => {
            let length = length as usize;
            run_plain(set, Subsequences { length, decay, left, group, overdue, swapped })
        }
        StringSimilarity::Alignment { reward, penalty, open, extend, beta, .. } => {
            let [reward, penalty] = [reward, penalty].map(|score| (beta * score).exp());
            let [open, extend] = [open, extend].map(|cost| (-beta * cost).exp());
            run_plain(
                set,
                Alignments { reward, penalty, open, extend, left, group, overdue, swapped },
            )
        }
        _ => unreachable!("these kernels count substrings"),
    }
}

/// What a normalised value is measured against: ln K(s, s), or √ln K(s, s) of a logarithmic kernel.
fn base(kernel: &StringKernel, own: Value) -> f64 {
    match kernel.similarity {
        StringSimilarity::Alignment { log: true, .. } => own.ln().sqrt(),
        _ => own.ln(),
    }
}

/// The value of the kernel, given that of the pair and the bases of both strings.
fn finished(kernel: &StringKernel, value: Value, left: f64, right: f64) -> f64 {
    let log = matches!(kernel.similarity, StringSimilarity::Alignment { log: true, .. });
    match (kernel.normalize, log) {
        (false, true) => value.ln(),
        (false, false) if value.log_scale == 0.0 => value.mantissa,
        (false, false) => value.ln().exp(),
        (true, true) if left * right == 0.0 => 0.0,
        (true, true) => value.ln() / (left * right),
        (true, false) if left == f64::NEG_INFINITY || right == f64::NEG_INFINITY => 0.0,
        (true, false) => (value.ln() - 0.5 * (left + right)).exp(),
    }
}

impl<T: Real> PackedRows<T> for Pairs<T> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn columns(&self) -> usize {
        self.width
    }

    fn diagonal(&self) -> &[T] {
        &self.diagonal
    }

    fn products_per_value(&self) -> usize {
        let symbols: usize = self.rows.iter().map(|&row| self.strings[row].symbols.len()).sum();
        let mean = symbols / self.rows.len().max(1);
        (mean * mean).max(1)
    }

    fn gather(&self, rows: &[usize]) -> Queries<T> {
        let diagonal = rows.iter().map(|&row| self.diagonal[row]).collect();
        let of = rows.iter().map(|&row| self.rows[row]).collect();
        let left = PairRows { strings: Arc::clone(&self.strings), rows: of };
        Queries::new(rows.len(), Some(diagonal), left)
    }

    fn prepare(&self, queries: &Matrix, rows: &[usize]) -> Result<Queries<T>> {
        let how = (self.set, &self.overdue);
        let (strings, diagonal) = read(&self.kernel, how, queries, rows, || self.overdue.check())?;
        let left = PairRows { strings: strings.into(), rows: (0..rows.len()).collect() };
        Ok(Queries::new(rows.len(), Some(diagonal), left))
    }

    fn block(
        &self,
        left: &Queries<T>,
        rows: Range<usize>,
        columns: Range<usize>,
        out: &mut [&mut [T]],
    ) {
        let left: &PairRows = left.packed();
        let strings: Vec<&PackedString> =
            left.rows[rows].iter().map(|&row| &left.strings[row]).collect();
        self.values(&strings, &self.rows[columns], out);
    }

    fn subset(&self, keep: &[usize]) -> Arc<dyn PackedRows<T>> {
        Arc::new(Self {
            kernel: self.kernel,
            set: self.set,
            overdue: self.overdue.clone(),
            width: self.width,
            strings: Arc::clone(&self.strings),
            rows: keep.iter().map(|&row| self.rows[row]).collect(),
            diagonal: keep.iter().map(|&row| self.diagonal[row]).collect(),
        })
    }

    fn non_finite(&self) -> Option<Error> {
        self.overdue.check().err()
    }
}

/// Left strings of blocks.
struct PairRows {
    strings: Arc<[PackedString]>,
    rows: Vec<usize>,
}
