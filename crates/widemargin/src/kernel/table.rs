//! All kernel values among the rows of a data set, for who trains on parts of it again and again.

use super::KernelBlocks;
use crate::context::Context;
use crate::error::Result;
use crate::numeric::simd::Real;

/// Rows of the table that one task computes.
const TASK_ROWS: usize = 96;

/// Writes K(i, j) of all packed rows i and j into `values`, row by row, each followed by zeros up to
/// `stride`, in memory that is kept from table to table.
///
/// # Errors
/// [`Error::Interrupted`](crate::Error::Interrupted) at a time limit or a request to stop, which it looks for between tasks.
///
/// # Panics
/// When a row has no room in `stride`.
pub(crate) fn fill_table<T: Real>(
    blocks: &KernelBlocks<T>,
    stride: usize,
    values: &mut Vec<T>,
    context: &Context,
) -> Result<()> {
    let rows = blocks.len();
    assert!(rows <= stride, "room for every row");
    values.resize(rows * stride, T::ZERO);
    let task = |(t, out): (usize, &mut [T])| {
        if context.stop_request().is_some() {
            return;
        }
        let start = t * TASK_ROWS;
        let left: Vec<usize> = (start..start + out.len() / stride).collect();
        let mut slices = Vec::with_capacity(left.len());
        for row in out.chunks_exact_mut(stride) {
            let (values, padding) = row.split_at_mut(rows);
            padding.fill(T::ZERO);
            slices.push(values);
        }
        blocks.block(&left, 0..rows, &mut slices);
    };
    let chunk = (TASK_ROWS * stride).max(1);
    context.for_each(values.chunks_mut(chunk).enumerate(), task);
    context.checkpoint()
}
