//! Xw and Xᵀu over all rows, on the threads of the context, with the same bits for any number of
//! them: rows are cut into a number of parts that depends on the data alone, and the sums of the
//! parts are added in order.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::loss_derivatives::{BLOCK, slopes};
use super::problem::{Problem, add_scaled};
use super::sampled_hessian::gram;
use super::table::{Table, WeightedRows};
use crate::context::Context;
use crate::numeric::parallel::{self, Threads};
use crate::numeric::simd::{PlainLoop, run_plain};
use crate::solver::linear::rows::LinearRows;

/// Stored values below which one part is enough.
const SMALL: usize = 1 << 15;

/// Parts of larger tables: several for every thread, as processors are not equally fast.
pub(super) const PARTS: usize = 16;

/// The products of a table in memory.
pub(crate) struct Products<'a, R> {
    rows: &'a R,
    context: &'a Context,
    parallel: bool,
    parts: usize,
    /// Rows of a part.
    part: usize,
    /// Memory of earlier sums: new memory costs more than a pass over what is in it.
    spare: Mutex<Vec<Vec<f64>>>,
}

impl<'a, R: LinearRows> Products<'a, R> {
    /// Those of `rows`, on the threads of `context` unless these have other problems to solve.
    pub(crate) fn new(rows: &'a R, alone: bool, context: &'a Context) -> Self {
        // A part of its own pays only where its rows outweigh the sum it starts with.
        let parts = match rows.nonzeros() {
            n if n < SMALL || !alone => 1,
            n => PARTS.min(n / (2 * rows.width()).max(1)).max(1),
        };
        let part = rows.rows().div_ceil(parts).max(1);
        let (parallel, spare) = (context.is_parallel() && parts > 1, Mutex::default());
        Self { rows, context, parallel, parts, part, spare }
    }

    /// Zeros, one for every weight.
    fn zeros(&self) -> Vec<f64> {
        match self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            Some(mut sum) => {
                sum.fill(0.0);
                sum
            }
            None => vec![0.0; self.rows.width()],
        }
    }

    /// What `work` makes of the first row of each part and its part of a list with an entry per row,
    /// in order.
    pub(super) fn of_parts_mut<T: Send>(
        &self,
        list: &mut [f64],
        work: impl Fn(usize, &mut [f64]) -> T + Sync,
    ) -> Vec<T> {
        let parts = list.chunks_mut(self.part).enumerate();
        parallel::map(Threads::of_current_pool(self.parallel), parts, |(p, list)| {
            work(p * self.part, list)
        })
    }

    /// The sum of sums, in their order.
    fn total(&self, mut sums: impl Iterator<Item = Vec<f64>>) -> Vec<f64> {
        let mut total = sums.next().unwrap_or_else(|| self.zeros());
        for sum in sums {
            add_scaled(&mut total, 1.0, &sum);
            self.take_back(sum);
        }
        total
    }

    fn sum_over_parts(
        &self,
        list: &WeightedRows,
        visit: impl Fn(usize, f64, &mut [f64]) + Sync,
    ) -> Vec<f64> {
        let part = list.rows.len().div_ceil(self.parts).max(1);
        let sum = |(rows, factors): (&[u32], &[f64])| {
            let mut sum = self.zeros();
            for (&i, &factor) in rows.iter().zip(factors) {
                visit(i as usize, factor, &mut sum);
            }
            sum
        };
        let parts = list.rows.chunks(part).zip(list.factors.chunks(part));
        if self.parallel {
            self.total(parallel::map(Threads::CurrentPool, parts, sum).into_iter())
        } else {
            self.total(parts.map(sum))
        }
    }
}

impl<R: LinearRows> Table for Products<'_, R> {
    fn rows(&self) -> usize {
        self.rows.rows()
    }

    fn width(&self) -> usize {
        self.rows.width()
    }

    fn nonzeros(&self) -> usize {
        self.rows.nonzeros()
    }

    fn of_parts<T: Send>(&self, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
        let count = self.rows.rows();
        let range = |p: usize| (p * self.part).min(count)..((p + 1) * self.part).min(count);
        parallel::map(Threads::of_current_pool(self.parallel), (0..self.parts).map(range), work)
    }

    fn write_values(&self, weights: &[f64], values: &mut [f64]) {
        let fill = |(part, values): (usize, &mut [f64])| {
            for (k, value) in values.iter_mut().enumerate() {
                *value = self.rows.dot(part * self.part + k, weights);
            }
        };
        parallel::map(
            Threads::of_current_pool(self.parallel),
            values.chunks_mut(self.part).enumerate(),
            fill,
        );
    }

    fn differentiate(
        &self,
        problem: &Problem<'_>,
        weights: &[f64],
        slopes: &mut [f64],
    ) -> (f64, Vec<f64>) {
        let set = self.context.instruction_set();
        let parts = self.of_parts_mut(slopes, |first, slopes| {
            let (rows, gradient) = (self.rows, self.zeros());
            run_plain(set, Differentiate { rows, problem, weights, first, slopes, gradient })
        });
        let (losses, gradients): (Vec<f64>, Vec<_>) = parts.into_iter().unzip();
        (losses.iter().sum(), self.total(gradients.into_iter()))
    }

    fn transposed(&self, list: &WeightedRows) -> Vec<f64> {
        self.sum_over_parts(list, |i, factor, sum| self.rows.add(i, factor, sum))
    }

    fn transposed_squares(&self, list: &WeightedRows) -> Vec<f64> {
        self.sum_over_parts(list, |i, factor, sum| {
            self.rows.visit(i, |j, value| sum[j] += factor * value * value);
        })
    }

    fn weighted_normal(&self, list: &WeightedRows, direction: &[f64]) -> Vec<f64> {
        self.sum_over_parts(list, |i, factor, sum| {
            self.rows.add(i, factor * self.rows.dot(i, direction), sum);
        })
    }

    fn take_back(&self, sum: Vec<f64>) {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(sum);
    }

    fn weighted_gram(&self, list: &WeightedRows) -> Vec<f64> {
        let picked: Vec<(usize, f64)> = list.iter().collect();
        gram(self.rows, &picked, self.context)
    }
}

/// A pass over some rows: their slopes, their loss and its gradient.
struct Differentiate<'a, R> {
    rows: &'a R,
    problem: &'a Problem<'a>,
    weights: &'a [f64],
    first: usize,
    slopes: &'a mut [f64],
    gradient: Vec<f64>,
}

impl<R: LinearRows> PlainLoop for Differentiate<'_, R> {
    type Output = (f64, Vec<f64>);

    #[inline(always)]
    fn run(self) -> (f64, Vec<f64>) {
        let Self { rows, problem, weights, mut first, slopes: all, mut gradient } = self;
        let zero = weights.iter().all(|w| *w == 0.0);
        let mut loss = 0.0;
        for block in all.chunks_mut(BLOCK) {
            for (k, value) in block.iter_mut().enumerate() {
                *value = if zero { 0.0 } else { rows.dot(first + k, weights) };
            }
            loss += slopes(problem, first, block);
            for (k, &slope) in block.iter().enumerate() {
                if slope != 0.0 {
                    rows.add(first + k, slope, &mut gradient);
                }
            }
            first += block.len();
        }
        (loss, gradient)
    }
}
