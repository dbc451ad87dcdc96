//! The matrix of one sub-problem over segments of kernel rows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::forms::forms;
use super::requests::Requests;
use super::{Buffer, CompactRows, KernelRows, MatrixRows, Row, RowCaching};
use crate::context::Context;
use crate::error::Result;
use crate::kernel::KernelBlocks;
use crate::numeric::parallel::Scratches;
use crate::numeric::simd::Real;

/// Feature products up to which computing a value again costs less than keeping it.
const CHEAP_PRODUCTS: usize = 64;

/// The matrix of one sub-problem.
pub(crate) struct RowsView<'a, T: Real> {
    rows: &'a KernelRows<T>,
    segments: Vec<usize>,
    pieces: Vec<usize>,
    context: &'a Context,
    /// Variables whose rows were asked for.
    requests: Requests,
    /// Keys of cached parts that no other sub-problem needs.
    private: Mutex<Vec<usize>>,
}

impl<'a, T: Real> RowsView<'a, T> {
    pub(super) fn new(
        rows: &'a KernelRows<T>,
        segments: Vec<usize>,
        pieces: Vec<usize>,
        context: &'a Context,
    ) -> Self {
        let requests = Requests::new(pieces.last().copied().unwrap_or(0));
        Self { rows, segments, pieces, context, requests, private: Mutex::new(Vec::new()) }
    }

    /// Row of the data behind every variable.
    pub(crate) fn data_rows(&self) -> Vec<usize> {
        self.segments.iter().flat_map(|&s| self.rows.segment(s)).collect()
    }

    /// Σ over columns c of bᵀKᵢb, b being column c of `coefficients`, for every kernel Kᵢ of a weighted sum,
    /// without its weight and none for any other kernel; the coefficients of a variable, one per column, stand one after another. Only
    /// values between rows with coefficients are computed, block after block.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted) when `context` asks to stop.
    pub(crate) fn term_forms(
        &self,
        coefficients: &[f64],
        columns: usize,
        context: &Context,
    ) -> Result<Vec<f64>> {
        let mut by_row: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for (v, own) in coefficients.chunks_exact(columns).enumerate() {
            if own.iter().any(|value| *value != 0.0) {
                let sums = by_row.entry(self.row(v)).or_insert_with(|| vec![0.0; columns]);
                sums.iter_mut().zip(own).for_each(|(sum, value)| *sum += value);
            }
        }
        let rows: Vec<usize> = by_row.keys().copied().collect();
        let own: Vec<f64> = by_row.into_values().flatten().collect();
        let among = self.rows.blocks().subset(&rows);
        forms(&among.terms(), &own, columns, context)
    }

    /// The rows of variables that are not zero, ascending, with the sum of the variables of each.
    fn row_coefficients(&self, beta: &[f64]) -> (Vec<usize>, Vec<f64>) {
        let mut terms: Vec<(usize, f64)> =
            (0..beta.len()).filter(|&v| beta[v] != 0.0).map(|v| (self.row(v), beta[v])).collect();
        terms.sort_by_key(|&(row, _)| row);
        terms.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1 += later.1;
            }
            same
        });
        terms.into_iter().unzip()
    }

    fn product_with(
        &self,
        blocks: &KernelBlocks<T>,
        rows: &[usize],
        coefficients: &[f64],
    ) -> Vec<f64> {
        let of = |s| self.rows.combine(blocks, rows, coefficients, s, self.context);
        self.each_segment(of).concat()
    }
}

impl<T: Real> Drop for RowsView<'_, T> {
    fn drop(&mut self) {
        let private = self.private.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.rows.cache.remove(private);
    }
}

impl<T: Real> RowsView<'_, T> {
    /// Row of the data behind variable `v`.
    fn row(&self, v: usize) -> usize {
        let k = self.pieces.partition_point(|&start| start <= v) - 1;
        self.rows.segments[self.segments[k]] + v - self.pieces[k]
    }

    /// Segments after which they repeat.
    fn distinct(&self) -> usize {
        let count = self.segments.len();
        let (first, second) = self.segments.split_at(count / 2);
        if first == second { count / 2 } else { count }
    }

    /// Counts rows as asked for, against all distinct segments.
    fn ask(&self, rows: &[usize]) {
        let first = |k: &usize| !self.segments[..*k].contains(&self.segments[*k]);
        let distinct: Vec<usize> = (0..self.segments.len()).filter(first).collect();
        let segment = |k: usize| self.rows.segment(self.segments[k]);
        let entries = distinct.iter().map(|&k| segment(k).len()).sum();
        for row in rows {
            if let Some(&k) = distinct.iter().find(|&&k| segment(k).contains(row)) {
                self.requests.ask(self.pieces[k] + row - segment(k).start, entries);
            }
        }
    }

    /// `of(s)` for the segment of every piece, evaluated once per distinct segment.
    fn each_segment<V: Clone>(&self, mut of: impl FnMut(usize) -> V) -> Vec<V> {
        let mut values: Vec<V> = Vec::with_capacity(self.segments.len());
        for (k, &s) in self.segments.iter().enumerate() {
            let value = match self.segments[..k].iter().position(|&earlier| earlier == s) {
                Some(earlier) => values[earlier].clone(),
                None => of(s),
            };
            values.push(value);
        }
        values
    }
}

impl<'a, T: Real> MatrixRows for RowsView<'a, T> {
    type Value = T;
    type Compact = CompactRows<'a, T>;

    fn pieces(&self) -> &[usize] {
        &self.pieces
    }

    fn diagonal(&self, v: usize) -> f64 {
        self.rows.blocks().diagonal()[self.row(v)].to_f64()
    }

    fn fetch(&self, variables: &[u32]) -> Vec<Row<T>> {
        let rows: Vec<usize> = variables.iter().map(|&v| self.row(v as usize)).collect();
        let mut distinct = rows.clone();
        distinct.sort_unstable();
        distinct.dedup();
        self.ask(&distinct);
        let parts = self.each_segment(|s| {
            let (parts, new_keys) = self.rows.parts(&distinct, s, self.context);
            if self.rows.caching == RowCaching::OwnSegment {
                let segment = self.rows.segment(s);
                let own = |key: &usize| segment.contains(&(key / (self.rows.segments.len() - 1)));
                let mut private = self.private.lock().unwrap_or_else(PoisonError::into_inner);
                private.extend(new_keys.iter().filter(|key| !own(key)));
            }
            parts
        });
        rows.iter()
            .map(|row| {
                let at = distinct.partition_point(|other| other < row);
                parts.iter().map(|of_segment| Arc::clone(&of_segment[at])).collect()
            })
            .collect()
    }

    fn period(&self) -> usize {
        self.pieces[self.distinct()]
    }

    fn fetch_joined(&self, variables: &[u32], width: usize) -> Vec<Buffer<T>> {
        let rows: Vec<usize> = variables.iter().map(|&v| self.row(v as usize)).collect();
        self.ask(&rows);
        let mut joined = self.rows.buffers(rows.len(), width);
        for (&s, piece) in self.segments[..self.distinct()].iter().zip(self.pieces.windows(2)) {
            let segment = self.rows.segment(s);
            let (mut shared, mut shared_out) = (Vec::new(), Vec::new());
            let (mut private, mut private_out) = (Vec::new(), Vec::new());
            for (&row, out) in rows.iter().zip(&mut joined) {
                let out = &mut out[piece[0]..piece[1]];
                let keep = match self.rows.caching {
                    RowCaching::All => true,
                    RowCaching::OwnSegment => segment.contains(&row),
                    RowCaching::Off => false,
                };
                if keep {
                    shared.push(row);
                    shared_out.push(out);
                } else {
                    private.push(row);
                    private_out.push(out);
                }
            }
            let (parts, _) = self.rows.parts(&shared, s, self.context);
            for (part, out) in parts.iter().zip(shared_out) {
                out.copy_from_slice(part);
            }
            self.rows.ask(&private, s);
            self.rows.compute(&private, segment, &mut private_out, self.context);
        }
        for row in &mut joined {
            row[self.period()..].fill(T::ZERO);
        }
        joined
    }

    fn buffers(&self, count: usize, length: usize) -> Vec<Buffer<T>> {
        self.rows.buffers(count, length)
    }

    fn matrices(&self) -> &Scratches<Vec<T>> {
        &self.rows.matrices
    }

    fn product(&self, beta: &[f64]) -> Vec<f64> {
        let (rows, coefficients) = self.row_coefficients(beta);
        self.product_with(self.rows.blocks(), &rows, &coefficients)
    }

    fn add_products(&self, variables: &[u32], coefficients: &[f64], sums: &mut [Vec<f64>]) {
        let rows: Vec<usize> = variables.iter().map(|&v| self.row(v as usize)).collect();
        let amounts: Vec<T> = coefficients.iter().map(|&amount| T::from_f64(amount)).collect();
        for (&s, piece) in self.segments.iter().zip(self.pieces.windows(2)) {
            let mut sums: Vec<&mut [f64]> =
                sums.iter_mut().map(|column| &mut column[piece[0]..piece[1]]).collect();
            let blocks = self.rows.blocks();
            if !blocks.add_products(&rows, coefficients, self.rows.segment(s), &mut sums) {
                self.rows.combine_columns(&rows, &amounts, s, sums, self.context);
            }
        }
    }

    fn capacity(&self) -> usize {
        self.rows.cache_bytes / (2 * size_of::<T>() * self.len().max(1))
    }

    fn is_cheap(&self) -> bool {
        self.rows.blocks().products_per_value() <= CHEAP_PRODUCTS
    }

    fn compact(&self, keep: &[u32], caching: RowCaching) -> CompactRows<'a, T> {
        let kept: Vec<usize> = keep.iter().map(|&v| self.row(v as usize)).collect();
        CompactRows::new(self.rows, &kept, caching, self.context)
    }

    fn requested(&self) -> u64 {
        self.requests.entries()
    }
}
