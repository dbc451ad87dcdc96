//! Second-order SMO on a working set that fits the processor's cache.
//!
//! Every step takes i with the largest −f among the variables that can rise, then j with the
//! largest guaranteed decrease (fⱼ − fᵢ)² / (Kᵢᵢ + Kⱼⱼ − 2Kᵢⱼ) among those that can fall (WSS 2 of
//! Fan, Chen and Lin, 2005), and moves the pair to the minimum inside its box. The pass that brings
//! the gradient up to date also finds the next i.

use std::ops::Range;

use crate::context::Context;
use crate::kernel::Buffer;
use crate::numeric::InstructionSet;
use crate::numeric::simd::{Real, accumulate};
use crate::solver::pair_scan::{PAIR_WIDTH, Scan, best_partner, scan, shift_and_scan};

/// Curvature below which a pair counts as flat (LIBSVM's τ).
const FLAT: f64 = 1e-12;

/// Rows of the working set's matrix, each [`padded`], as far as they were needed.
pub(super) type InnerRows<T> = Vec<Option<Buffer<T>>>;

/// The matrix of a working set; its rows are [`padded`].
pub(super) trait InnerMatrix<T: Real> {
    /// Sees to it that row `v` is there.
    fn ensure(&mut self, v: usize);

    /// Row `v`, which is there.
    fn row(&self, v: usize) -> &[T];

    /// Adds Σ byᵥ rowᵥ to `sums`, one for each variable; the rows are there.
    fn add_rows(&self, sums: &mut Vec<f64>, variables: &[usize], by: &[f64], context: &Context) {
        let Some(&first) = variables.first() else { return };
        let len = sums.len();
        sums.resize(self.row(first).len(), 0.0);
        let rows: Vec<&[T]> = variables.iter().map(|&v| self.row(v)).collect();
        accumulate(context.instruction_set(), sums, &rows, by);
        sums.truncate(len);
    }
}

/// Brings rows of the working set's matrix when they are needed.
pub(super) trait RowSource<T: Real> {
    /// Puts row `v` into `rows`.
    fn fill(&mut self, v: usize, rows: &mut InnerRows<T>);
}

/// Rows of the matrix, each filled when it is first needed.
pub(super) struct LazyRows<'a, T: Real, S> {
    pub(super) rows: &'a mut InnerRows<T>,
    pub(super) source: S,
}

impl<T: Real, M: InnerMatrix<T>> InnerMatrix<T> for &mut M {
    fn ensure(&mut self, v: usize) {
        (**self).ensure(v);
    }

    fn row(&self, v: usize) -> &[T] {
        (**self).row(v)
    }

    fn add_rows(&self, sums: &mut Vec<f64>, variables: &[usize], by: &[f64], context: &Context) {
        (**self).add_rows(sums, variables, by, context);
    }
}

impl<T: Real, S: RowSource<T>> InnerMatrix<T> for LazyRows<'_, T, S> {
    fn ensure(&mut self, v: usize) {
        if self.rows[v].is_none() {
            self.source.fill(v, self.rows);
        }
    }

    fn row(&self, v: usize) -> &[T] {
        self.rows[v].as_deref().unwrap_or_default()
    }
}

/// Which variables can move where: 0 where they can, −∞ where not; a run of [`padded`] entries for
/// each group.
pub(super) struct Masks<T> {
    rise: Vec<f64>,
    fall: Vec<f64>,
    /// `fall` as the choice of partners reads it.
    rough_fall: Vec<T>,
    width: usize,
}

impl<T: Real> Masks<T> {
    pub(super) fn new(width: usize, groups: usize) -> Self {
        let closed = vec![f64::NEG_INFINITY; width * groups];
        let rough_fall = vec![T::from_f64(f64::NEG_INFINITY); width * groups];
        Self { rise: closed.clone(), fall: closed, rough_fall, width }
    }

    pub(super) fn set(&mut self, v: usize, group: usize, can_rise: bool, can_fall: bool) {
        let mask = |can| if can { 0.0 } else { f64::NEG_INFINITY };
        let at = group * self.width + v;
        self.rise[at] = mask(can_rise);
        self.fall[at] = mask(can_fall);
        self.rough_fall[at] = T::from_f64(mask(can_fall));
    }

    fn run(&self, group: usize) -> Range<usize> {
        group * self.width..(group + 1) * self.width
    }

    fn of(&self, group: usize) -> (&[f64], &[f64]) {
        (&self.rise[self.run(group)], &self.fall[self.run(group)])
    }

    fn rough_fall(&self, group: usize) -> &[T] {
        &self.rough_fall[self.run(group)]
    }
}

/// A sub-problem in compact form; `gradient` and `rough_diagonal` are [`padded`].
pub(super) struct Inner<'a, T: Real, M> {
    pub(super) set: InstructionSet,
    pub(super) matrix: M,
    pub(super) beta: &'a mut [f64],
    pub(super) gradient: &'a mut [f64],
    pub(super) lower: &'a [f64],
    pub(super) upper: &'a [f64],
    pub(super) diagonal: &'a [f64],
    /// The diagonal as the choice of pairs sees it.
    pub(super) rough_diagonal: &'a [T],
    pub(super) ridge: Option<&'a [f64]>,
    pub(super) masks: Masks<T>,
    /// Group of each variable; empty when there is one group.
    pub(super) groups: &'a [u8],
    pub(super) group_count: usize,
}

/// Array length for `q` variables.
pub(super) fn padded(q: usize) -> usize {
    q.next_multiple_of(PAIR_WIDTH)
}

impl<T: Real, M: InnerMatrix<T>> Inner<'_, T, M> {
    /// Takes steps until the violation is at most `tol`; returns how many.
    pub(super) fn run(&mut self, tol: f64, max_steps: u64) -> u64 {
        let mut steps = 0;
        let mut first = scan(self.set, self.gradient, self.masks.of(0));
        loop {
            let (mut worst, mut group) = (first, 0);
            for g in 1..self.group_count {
                let other = scan(self.set, self.gradient, self.masks.of(g));
                if other.up + other.down > worst.up + worst.down {
                    (worst, group) = (other, g);
                }
            }
            let violation = worst.up + worst.down;
            let violated = violation > tol;
            if !violated || steps >= max_steps {
                return steps;
            }
            let i = worst.at;
            self.matrix.ensure(i);
            let Some(j) = self.partner(i, group, violation) else { return steps };
            self.matrix.ensure(j);
            first = self.step(i, j);
            steps += 1;
        }
    }

    fn partner(&self, i: usize, group: usize, violation: f64) -> Option<usize> {
        let at = (self.gradient[i], self.diagonal[i]);
        best_partner(
            self.set,
            at,
            (violation, FLAT),
            self.gradient,
            self.masks.rough_fall(group),
            self.rough_diagonal,
            self.matrix.row(i),
        )
    }

    /// Moves i up and j down to the pair's minimum; scans the first group on the way.
    fn step(&mut self, i: usize, j: usize) -> Scan {
        let kij = self.matrix.row(i)[j].to_f64();
        let curvature = (self.diagonal[i] + self.diagonal[j] - 2.0 * kij).max(FLAT);
        let wanted = (self.gradient[j] - self.gradient[i]) / curvature;
        let (room_i, room_j) = (self.upper[i] - self.beta[i], self.beta[j] - self.lower[j]);
        let t = wanted.min(room_i).min(room_j);
        self.beta[i] = if t >= room_i { self.upper[i] } else { self.beta[i] + t };
        self.beta[j] = if t >= room_j { self.lower[j] } else { self.beta[j] - t };
        for v in [i, j] {
            let group = self.groups.get(v).map_or(0, |&g| usize::from(g));
            let (beta, lower, upper) = (self.beta[v], self.lower[v], self.upper[v]);
            self.masks.set(v, group, beta < upper, beta > lower);
        }
        if let Some(ridge) = self.ridge {
            self.gradient[i] += t * ridge[i];
            self.gradient[j] -= t * ridge[j];
        }
        let rows = (self.matrix.row(i), self.matrix.row(j));
        shift_and_scan(self.set, self.gradient, t, rows, self.masks.of(0))
    }
}
