//! All kernel values among the rows of a data set, for repeated trainings on parts of it.

use super::{Kernel, KernelBlocks};
use crate::context::Context;
use crate::data::{Dense, Matrix, memory};
use crate::error::Result;
use crate::numeric::simd::Real;

/// Rows of the table that one task computes.
const TASK_ROWS: usize = 96;

impl Kernel {
    /// K(x, z) of every row x of `queries` with every row z of `rows`.
    ///
    /// # Errors
    /// Those of a kernel that does not suit the rows, [`Error::TooLarge`](crate::Error::TooLarge) when the
    /// table does not fit in memory, [`Error::Interrupted`](crate::Error::Interrupted) at a request to stop.
    pub fn values(&self, queries: &Matrix, rows: &Matrix, context: &Context) -> Result<Dense<f64>> {
        let (count, width) = (queries.rows(), rows.rows());
        let what = || format!("a table of {count} times {width} kernel values");
        memory::check(what, 8 * count as u128 * width as u128)?;
        let mut values = vec![0.0; count * width];
        if values.is_empty() {
            return Dense::new(count, width, values);
        }
        let blocks = KernelBlocks::<f64>::new(self, rows, None, context)?;
        let task = |(t, out): (usize, &mut [f64])| {
            context.checkpoint()?;
            let start = t * TASK_ROWS;
            let left = blocks.prepare(queries, start..start + out.len() / width)?;
            blocks.query_block(&left, 0..left.len(), 0..width, out, width);
            Ok(())
        };
        context.try_for_each(values.chunks_mut(TASK_ROWS * width).enumerate(), task)?;
        blocks.check_values()?;
        Dense::new(count, width, values)
    }
}

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
