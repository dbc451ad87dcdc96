//! What Newton's method reads of a table of rows, in memory or on disk.

use std::ops::Range;

use super::problem::Problem;
use crate::solver::Status;

/// A table X of rows.
pub(crate) trait Table: Sync {
    /// Number of rows.
    fn rows(&self) -> usize;

    /// Number of weights.
    fn width(&self) -> usize;

    /// Number of stored values.
    fn nonzeros(&self) -> usize;

    /// What `work` makes of each part of the rows, in order; the parts depend on the table alone.
    fn of_parts<T: Send>(&self, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T>;

    /// Xw, into memory that is there.
    fn write_values(&self, weights: &[f64], values: &mut [f64]);

    /// The loss at weights and its gradient, with Cᵢℓ′ of every row written to `slopes`, in one pass.
    fn differentiate(
        &self,
        problem: &Problem<'_>,
        weights: &[f64],
        slopes: &mut [f64],
    ) -> (f64, Vec<f64>);

    /// Whether there is memory for a square matrix of the weights.
    fn may_be_factored(&self) -> bool {
        true
    }

    /// Σ fᵢxᵢ over the rows of a list.
    fn transposed(&self, list: &WeightedRows) -> Vec<f64>;

    /// Σ fᵢxᵢ² over the rows of a list, feature by feature.
    fn transposed_squares(&self, list: &WeightedRows) -> Vec<f64>;

    /// Xᵀ(F(Xd)) over the rows of a list with the diagonal F of their factors, in one pass.
    fn weighted_normal(&self, list: &WeightedRows, direction: &[f64]) -> Vec<f64>;

    /// Σ fᵢxᵢxᵢᵀ over the rows of a list: the lower triangle, row by row.
    fn weighted_gram(&self, list: &WeightedRows) -> Vec<f64>;

    /// Takes the memory of a sum that is no longer needed, for another.
    fn take_back(&self, _sum: Vec<f64>) {}

    /// Why products are not what they should be, if they are not: a table on disk was left early.
    fn broken(&self) -> Option<Status> {
        None
    }

    /// Xw
    fn values(&self, weights: &[f64]) -> Vec<f64> {
        let mut values = vec![0.0; self.rows()];
        self.write_values(weights, &mut values);
        values
    }
}

/// Rows with a factor each, ascending, those of factor 0 left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct WeightedRows {
    pub(super) rows: Vec<u32>,
    pub(super) factors: Vec<f64>,
}

impl WeightedRows {
    /// The rows whose entry is not 0.
    pub(crate) fn new(factors: &[f64]) -> Self {
        let mut list = Self::default();
        list.extend(0, factors);
        list
    }

    /// Adds the rows whose entry is not 0; the first is that of row `first`.
    pub(crate) fn extend(&mut self, first: usize, factors: &[f64]) {
        let mut kept = self.rows.len();
        self.rows.resize(kept + factors.len(), 0);
        self.factors.resize(kept + factors.len(), 0.0);
        for (i, &factor) in factors.iter().enumerate() {
            (self.rows[kept], self.factors[kept]) = ((first + i) as u32, factor);
            kept += usize::from(factor != 0.0);
        }
        self.rows.truncate(kept);
        self.factors.truncate(kept);
    }

    /// One list of the rows of several, which follow each other.
    pub(crate) fn joined(mut lists: Vec<Self>) -> Self {
        if lists.len() == 1 {
            return lists.pop().unwrap_or_default();
        }
        let length = lists.iter().map(Self::len).sum();
        let (mut rows, mut factors) = (Vec::with_capacity(length), Vec::with_capacity(length));
        for list in &lists {
            rows.extend_from_slice(&list.rows);
            factors.extend_from_slice(&list.factors);
        }
        Self { rows, factors }
    }

    /// Adds a row after those there are.
    pub(crate) fn push(&mut self, row: usize, factor: f64) {
        self.rows.push(row as u32);
        self.factors.push(factor);
    }

    /// The rows and their factors.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, f64)> {
        self.rows.iter().map(|&i| i as usize).zip(self.factors.iter().copied())
    }

    /// How many rows it has.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Those of a range of rows, counted from its start.
    pub(crate) fn within(&self, range: Range<usize>) -> Self {
        let place = |row: usize| self.rows.partition_point(|&i| (i as usize) < row);
        let own = place(range.start)..place(range.end);
        let from_start = |&i: &u32| i - range.start as u32;
        Self {
            rows: self.rows[own.clone()].iter().map(from_start).collect(),
            factors: self.factors[own].to_vec(),
        }
    }
}
