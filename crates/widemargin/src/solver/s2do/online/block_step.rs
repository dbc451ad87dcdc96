//! A step on many patterns at once: their variables in turn, the worst first, and one update of all
//! scores after it.

use std::marker::PhantomData;

use super::patterns::{Patterns, Variable};
use crate::numeric::InstructionSet;
use crate::numeric::simd::{Real, accumulate_columns, run_plain};
use crate::solver::s2do::shared::block::Block;
use crate::solver::s2do::shared::block_rows::BlockRows;
use crate::solver::s2do::shared::table::Table;

/// Scores that are brought up to date at a time, so that they and the rows stay in the cache.
const SCORE_CHUNK: usize = 2048;

/// Changes of some patterns that the scores do not know of yet.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// The patterns.
    pub patterns: Vec<usize>,
    /// The change of each coefficient, pattern after pattern, one per column.
    pub amounts: Vec<f64>,
    /// Variables that moved, by how much, and their gradients before.
    moves: Vec<(Variable, f64, f64)>,
}

impl Patterns {
    /// Improves the variables of the patterns `block`, whose kernel values among each other are
    /// `values[v * n + w]`, until none violates the optimality conditions by more than `tol` or
    /// `max_steps` are spent. Returns the steps, and the changes for [`update_all`](Self::update_all).
    ///
    /// # Panics
    /// When the classes of the block do not ascend, or there is not one value per pair.
    pub(crate) fn solve_together<T: Real>(
        &mut self,
        block: &[usize],
        values: &[T],
        tol: f64,
        max_steps: u64,
        set: InstructionSet,
    ) -> (u64, Changes) {
        let n = block.len();
        assert_eq!(values.len(), n * n, "one kernel value per pair");
        let mut table = self.table(block);
        let (rows, precision) = (Square { values, size: n }, PhantomData::<(T, T)>);
        let work = Block { table: &mut table, rows, constant: 0.0, tol, max_steps, precision };
        let (steps, touched, _) = run_plain(set, work);
        let mut changes = Changes::default();
        for (w, &i) in block.iter().enumerate().filter(|(w, _)| touched[*w]) {
            changes.patterns.push(i);
            for (c, column) in table.alpha.iter().enumerate() {
                let step = column[w] - self.alpha[i * self.classes + c];
                if step != 0.0 {
                    changes.moves.push(((i, c), step, self.gradient((i, c))));
                }
            }
            let alpha: Vec<f64> = table.alpha.iter().map(|column| column[w]).collect();
            changes.amounts.extend(self.exchange(i, &alpha));
        }
        (steps, changes)
    }

    /// The named patterns as the batch solver sees them, with projected scores.
    fn table(&self, block: &[usize]) -> Table {
        let pick = |values: &[f64]| block.iter().map(|&i| values[i]).collect::<Vec<f64>>();
        let codes: Vec<u32> = block.iter().map(|&i| self.codes[i]).collect();
        assert!(codes.is_sorted(), "patterns in the order of their classes");
        let (upper, diagonal) = (pick(&self.upper), pick(&self.diagonal));
        let mut table = Table::new(self.loss, self.classes, codes, upper, diagonal);
        let mean = self.score.get(self.classes).map(|mean| pick(mean));
        for (w, &i) in block.iter().enumerate() {
            let mean = mean.as_ref().map_or(0.0, |mean| mean[w]);
            for c in 0..self.classes {
                table.alpha[c][w] = self.alpha[i * self.classes + c];
                table.score[c][w] = self.score[c][i] - mean;
            }
        }
        if self.is_simplex() {
            table.sum = pick(&self.sum);
        }
        table
    }

    /// Gives pattern `i` other variables; returns the change of its coefficients, one per column.
    fn exchange(&mut self, i: usize, alpha: &[f64]) -> Vec<f64> {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        self.coefficients(i, &mut before);
        self.alpha[i * self.classes..(i + 1) * self.classes].copy_from_slice(alpha);
        self.coefficients(i, &mut after);
        after.iter_mut().zip(&before).for_each(|(after, before)| *after -= before);
        self.sum[i] = self.rounded_sum(i);
        after
    }

    /// Adds what `changes` mean to all scores, given the kernel rows of its patterns; returns the
    /// gain Δ·(g + g′)/2.
    ///
    /// # Panics
    /// When there is not a row for every pattern, as long as the scores.
    pub(crate) fn update_all<T: Real>(
        &mut self,
        rows: &[&[T]],
        changes: &Changes,
        set: InstructionSet,
    ) -> f64 {
        let amounts: Vec<T> = changes.amounts.iter().map(|&amount| T::from_f64(amount)).collect();
        let n = self.len();
        for start in (0..n).step_by(SCORE_CHUNK) {
            let range = start..(start + SCORE_CHUNK).min(n);
            let parts: Vec<&[T]> = rows.iter().map(|row| &row[range.clone()]).collect();
            let mut sums: Vec<&mut [f64]> =
                self.score.iter_mut().map(|column| &mut column[range.clone()]).collect();
            accumulate_columns(set, &mut sums, &parts, &amounts);
        }
        let of = |(variable, step, before): &(Variable, f64, f64)| {
            0.5 * step * (before + self.gradient(*variable))
        };
        let gain = changes.moves.iter().map(of).sum::<f64>();
        self.dual += gain;
        gain
    }
}

/// The kernel matrix of a block, row after row.
struct Square<'a, T> {
    values: &'a [T],
    size: usize,
}

impl<T> BlockRows<T> for Square<'_, T> {
    #[inline(always)]
    fn holds(&self, _: usize) -> bool {
        true
    }

    fn fetch(&mut self, _: &[u32]) {}

    #[inline(always)]
    fn row(&self, example: usize) -> &[T] {
        &self.values[example * self.size..(example + 1) * self.size]
    }
}
