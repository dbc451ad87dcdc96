//! Xw and Xᵀu over all rows, on the threads of the context, with the same bits for any number of
//! them: rows are cut into a number of parts that depends on the data alone, and the sums of the
//! parts are added in order.

use rayon::prelude::*;

use crate::context::Context;
use crate::kernel::LinearRows;

/// Stored values below which one part is enough.
const SMALL: usize = 1 << 17;

/// Parts of larger tables.
const PARTS: usize = 8;

/// The products of one table.
pub(super) struct Products<'a, R> {
    rows: &'a R,
    parallel: bool,
    /// Rows of a part.
    part: usize,
}

impl<'a, R: LinearRows> Products<'a, R> {
    pub(super) fn new(rows: &'a R, context: &Context) -> Self {
        // A part of its own pays only where its rows outweigh the sum it starts with.
        let parts = match rows.nonzeros() {
            n if n < SMALL => 1,
            n => PARTS.min(n / (2 * rows.width()).max(1)).max(1),
        };
        let part = rows.rows().div_ceil(parts).max(1);
        Self { rows, parallel: context.is_parallel() && parts > 1, part }
    }

    /// Xw
    pub(super) fn values(&self, weights: &[f64]) -> Vec<f64> {
        let mut values = vec![0.0; self.rows.rows()];
        self.write_values(weights, &mut values);
        values
    }

    /// Xw, into memory that is there.
    pub(super) fn write_values(&self, weights: &[f64], values: &mut [f64]) {
        let fill = |(part, values): (usize, &mut [f64])| {
            for (k, value) in values.iter_mut().enumerate() {
                *value = self.rows.dot(part * self.part + k, weights);
            }
        };
        if self.parallel {
            values.par_chunks_mut(self.part).enumerate().for_each(fill);
        } else {
            values.chunks_mut(self.part).enumerate().for_each(fill);
        }
    }

    /// Σ of(i) · xᵢ
    pub(super) fn transposed(&self, of: impl Fn(usize) -> f64 + Sync) -> Vec<f64> {
        self.sum_over_parts(|i, sum| {
            let factor = of(i);
            if factor != 0.0 {
                self.rows.add(i, factor, sum);
            }
        })
    }

    /// Σ of(i) · xᵢ², feature by feature.
    pub(super) fn transposed_squares(&self, of: impl Fn(usize) -> f64 + Sync) -> Vec<f64> {
        self.sum_over_parts(|i, sum| {
            let factor = of(i);
            if factor != 0.0 {
                self.rows.visit(i, |j, value| sum[j] += factor * value * value);
            }
        })
    }

    /// Xᵀ(D(Xd)) for a diagonal D, in one pass.
    pub(super) fn weighted_normal(&self, weights: &[f64], direction: &[f64]) -> Vec<f64> {
        self.sum_over_parts(|i, sum| {
            if weights[i] != 0.0 {
                let factor = weights[i] * self.rows.dot(i, direction);
                self.rows.add(i, factor, sum);
            }
        })
    }

    fn sum_over_parts(&self, visit: impl Fn(usize, &mut [f64]) + Sync) -> Vec<f64> {
        let (rows, width) = (self.rows.rows(), self.rows.width());
        let sum = |start: usize| {
            let mut sum = vec![0.0; width];
            for i in start..(start + self.part).min(rows) {
                visit(i, &mut sum);
            }
            sum
        };
        let starts: Vec<usize> = (0..rows).step_by(self.part).collect();
        let parts: Vec<Vec<f64>> = if self.parallel {
            starts.into_par_iter().map(sum).collect()
        } else {
            starts.into_iter().map(sum).collect()
        };
        let mut parts = parts.into_iter();
        let mut total = parts.next().unwrap_or_else(|| vec![0.0; width]);
        for part in parts {
            super::problem::add_scaled(&mut total, 1.0, &part);
        }
        total
    }
}
