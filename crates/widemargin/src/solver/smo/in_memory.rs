//! Problems small enough to keep all their kernel rows in memory.
//!
//! Only variables whose rows are there take part; when they are optimal among themselves, the rows
//! of the worst violators among the others join them. Rows stay, so that no step costs more than two
//! passes over the gradient, and the final check adds them up afresh instead of computing the matrix
//! again. Of a matrix whose rows repeat, as those of a regression's two copies of every row do, one copy
//! is kept.

use super::inner::{InnerRows, padded};
use crate::kernel::MatrixRows;
use crate::numeric::InstructionSet;
use crate::numeric::simd::{Real, accumulate, gather};

/// The rows that are in memory.
pub(super) struct HeldRows<T: Real> {
    /// Rows of the first variables, each [`padded`].
    rows: InnerRows<T>,
    /// Row and column v are those of v modulo this number.
    period: usize,
}

impl<T: Real> HeldRows<T> {
    /// No rows of a matrix.
    pub(super) fn of<R: MatrixRows<Value = T>>(rows: &R) -> Self {
        let period = rows.period();
        let mut held = InnerRows::new();
        held.resize_with(period, || None);
        Self { rows: held, period }
    }

    /// Whether row `v` is there.
    pub(super) fn has(&self, v: usize) -> bool {
        self.rows[v % self.period].is_some()
    }

    /// The first entries of row `v`, up to where they repeat; empty when it is not there.
    fn row(&self, v: usize) -> &[T] {
        self.rows[v % self.period].as_deref().unwrap_or_default()
    }

    /// Fetches the rows of `variables` that are not there yet.
    pub(super) fn load<R: MatrixRows<Value = T>>(&mut self, rows: &R, variables: &[u32]) {
        let first = |&v: &u32| v % self.period as u32;
        let mut missing: Vec<u32> =
            variables.iter().map(first).filter(|&v| self.rows[v as usize].is_none()).collect();
        if self.period < rows.len() {
            missing.sort_unstable();
            missing.dedup();
        }
        for (&v, row) in missing.iter().zip(rows.fetch_joined(&missing, padded(self.period))) {
            self.rows[v as usize] = Some(row);
        }
    }

    /// Writes entries of the rows of some variables at some columns, one row every `stride` places.
    pub(super) fn gather(&self, variables: &[u32], columns: &[u32], out: &mut [T], stride: usize) {
        let rows: Vec<&[T]> = variables.iter().map(|&v| self.row(v as usize)).collect();
        if columns.iter().all(|&column| (column as usize) < self.period) {
            return gather(&rows, columns, out, stride);
        }
        let first = |&column: &u32| column % self.period as u32;
        let columns: Vec<u32> = columns.iter().map(first).collect();
        gather(&rows, &columns, out, stride);
    }

    /// Adds Σ byᵥ rowᵥ to `sums`, for variables whose rows are there.
    pub(super) fn add(
        &self,
        sums: &mut Vec<f64>,
        variables: &[usize],
        by: &[f64],
        set: InstructionSet,
    ) {
        if variables.is_empty() {
            return;
        }
        let len = sums.len();
        let rows: Vec<&[T]> = variables.iter().map(|&v| self.row(v)).collect();
        if len <= self.period {
            sums.resize(padded(self.period), 0.0);
            accumulate(set, sums, &rows, by);
            sums.truncate(len);
            return;
        }
        let mut part = vec![0.0; padded(self.period)];
        accumulate(set, &mut part, &rows, by);
        for copy in sums.chunks_mut(self.period) {
            copy.iter_mut().zip(&part).for_each(|(sum, value)| *sum += value);
        }
    }

    /// The product of the matrix with `beta`, from rows in memory.
    pub(super) fn product<R: MatrixRows<Value = T>>(
        &mut self,
        rows: &R,
        beta: &[f64],
        set: InstructionSet,
    ) -> Vec<f64> {
        let used: Vec<u32> = (0..beta.len() as u32).filter(|&v| beta[v as usize] != 0.0).collect();
        self.load(rows, &used);
        let coefficients: Vec<f64> = used.iter().map(|&v| beta[v as usize]).collect();
        let used: Vec<usize> = used.iter().map(|&v| v as usize).collect();
        let mut sums = vec![0.0; beta.len()];
        self.add(&mut sums, &used, &coefficients, set);
        sums
    }
}
