//! Some rows of a table in the place of all, for a first guess of the weights.

use std::ops::Range;

use super::problem::{Problem, RowLoss};
use super::table::Table;
use super::tuning::newton::{SAMPLE_ROWS_PER_WEIGHT, STRIDE};
use crate::numeric::random::Generator;
use crate::solver::linear::rows::LinearRows;

/// Whether a sample of the rows determines the weights well.
pub(super) fn is_worthwhile(rows: usize, width: usize) -> bool {
    rows >= STRIDE * SAMPLE_ROWS_PER_WEIGHT * width
}

/// One row out of every so many, both sides of two as equal in number as they allow, with costs
/// that make up for it.
pub(super) struct Sample<'a, R> {
    rows: &'a R,
    picked: Vec<u32>,
    targets: Vec<f64>,
    costs: Vec<f64>,
}

impl<'a, R: LinearRows> Sample<'a, R> {
    /// A row at random out of about every `stride` of each part of a table.
    pub(super) fn new(
        rows: &'a R,
        table: &impl Table,
        problem: &Problem<'_>,
        stride: usize,
        seed: u64,
    ) -> Self {
        let sided = problem.loss.tube() == 0.0;
        let side = |i: usize| usize::from(sided && problem.targets[i] > 0.0);
        let second: usize = table.of_parts(|part| part.map(side).sum::<usize>()).iter().sum();
        let strides = strides([rows.rows() - second, second], stride);
        let pick = |part: Range<usize>| {
            let mut generator = Generator::new(seed ^ (part.start as u64) << 32);
            let mut picked = Vec::with_capacity(2 * part.len() / stride);
            // How many rows of each side come before the next that is chosen, and how many of its
            // `stride` then follow.
            let mut before = strides.map(|stride| generator.below(stride));
            let mut after = [0, 1].map(|s: usize| strides[s] - 1 - before[s]);
            for i in part {
                let s = side(i);
                if before[s] > 0 {
                    before[s] -= 1;
                    continue;
                }
                picked.push(i as u32);
                let chosen = generator.below(strides[s]);
                before[s] = after[s] + chosen;
                after[s] = strides[s] - 1 - chosen;
            }
            picked
        };
        let picked = table.of_parts(pick).concat();
        let targets = picked.iter().map(|&i| problem.targets[i as usize]).collect();
        let cost = |&i: &u32| strides[side(i as usize)] as f64 * problem.costs[i as usize];
        let costs = picked.iter().map(cost).collect();
        Self { rows, picked, targets, costs }
    }

    /// The problem of the sample.
    pub(super) fn problem(&self, loss: RowLoss) -> Problem<'_> {
        Problem { loss, targets: &self.targets, costs: &self.costs, shift: 0.0 }
    }
}

/// One row in how many of each side makes one in `stride` of all.
fn strides(sides: [usize; 2], stride: usize) -> [usize; 2] {
    let wanted = ((sides[0] + sides[1]) / stride).max(1);
    let rare = usize::from(sides[1] < sides[0]);
    let own = (2 * sides[rare]).div_ceil(wanted).max(1);
    let rest = (wanted - (sides[rare] / own).min(wanted - 1)).max(1);
    let mut strides = [(sides[1 - rare]).div_ceil(rest).max(1); 2];
    strides[rare] = own;
    strides
}

impl<R: LinearRows> LinearRows for Sample<'_, R> {
    fn rows(&self) -> usize {
        self.picked.len()
    }

    fn width(&self) -> usize {
        self.rows.width()
    }

    fn nonzeros(&self) -> usize {
        self.rows.nonzeros() / self.rows.rows().max(1) * self.picked.len()
    }

    #[inline(always)]
    fn dot(&self, i: usize, weights: &[f64]) -> f64 {
        self.rows.dot(self.picked[i] as usize, weights)
    }

    #[inline(always)]
    fn add(&self, i: usize, factor: f64, weights: &mut [f64]) {
        self.rows.add(self.picked[i] as usize, factor, weights);
    }

    #[inline(always)]
    fn prefetch(&self, i: usize) {
        if let Some(&row) = self.picked.get(i) {
            self.rows.prefetch(row as usize);
        }
    }

    #[inline(always)]
    fn add_pairs(&self, i: usize, factor: f64, matrix: &mut [f64]) {
        self.rows.add_pairs(self.picked[i] as usize, factor, matrix);
    }

    #[inline(always)]
    fn visit(&self, i: usize, visit: impl FnMut(usize, f64)) {
        self.rows.visit(self.picked[i] as usize, visit);
    }
}
