//! Problems small enough to be their own working set.
//!
//! Rows come a batch at a time, the row that is needed with those of the worst violators, and stay:
//! the final check adds them up afresh instead of computing the matrix again.

use super::inner::{InnerRows, Masks, RowSource};
use super::select::likely_next;
use crate::kernel::{Buffer, InstructionSet, MatrixRows, Real, accumulate};

/// Whole rows, fetched together with those of the worst violators.
pub(super) struct Batched<'a, R>(pub(super) &'a R);

impl<T: Real, R: MatrixRows<Value = T>> RowSource<T> for Batched<'_, R> {
    fn fill(&mut self, v: usize, masks: &Masks<T>, gradient: &[f64], rows: &mut InnerRows<T>) {
        let batch = likely_next(v, gradient, masks, rows);
        let fetched = self.0.fetch_joined(&batch, gradient.len());
        for (&w, row) in batch.iter().zip(fetched) {
            rows[w as usize] = Some(row);
        }
    }
}

/// The product of the matrix with `beta`, from the rows held and those still to be fetched.
pub(super) fn product<R: MatrixRows>(
    matrix: &R,
    rows: &mut InnerRows<R::Value>,
    beta: &[f64],
    width: usize,
    set: InstructionSet,
) -> Vec<f64> {
    let used: Vec<u32> = (0..beta.len() as u32).filter(|&v| beta[v as usize] != 0.0).collect();
    let missing: Vec<u32> = used.iter().copied().filter(|&v| rows[v as usize].is_none()).collect();
    for (&v, row) in missing.iter().zip(matrix.fetch_joined(&missing, width)) {
        rows[v as usize] = Some(row);
    }
    let parts: Vec<&[R::Value]> = used
        .iter()
        .filter_map(|&v| rows[v as usize].as_ref().map(|row: &Buffer<_>| &row[..]))
        .collect();
    let coefficients: Vec<f64> = used.iter().map(|&v| beta[v as usize]).collect();
    let mut sums = vec![0.0; width];
    accumulate(set, &mut sums, &parts, &coefficients);
    sums.truncate(beta.len());
    sums
}
