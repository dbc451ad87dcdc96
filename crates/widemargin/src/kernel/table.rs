//! All kernel values among the rows of a data set, for who trains on parts of it again and again.

use rayon::prelude::*;

use super::{KernelBlocks, Real};
use crate::context::Context;

/// Rows of the table that one task computes.
const TASK_ROWS: usize = 96;

/// Writes K(i, j) of all packed rows i and j into `values`, row by row, in memory that is kept from
/// table to table.
pub fn fill_table<T: Real>(blocks: &KernelBlocks<T>, values: &mut Vec<T>, context: &Context) {
    let rows = blocks.len();
    values.resize(rows * rows, T::ZERO);
    let task = |(t, out): (usize, &mut [T])| {
        let start = t * TASK_ROWS;
        let left: Vec<usize> = (start..start + out.len() / rows).collect();
        let mut out: Vec<&mut [T]> = out.chunks_exact_mut(rows).collect();
        blocks.block(&left, 0..rows, &mut out);
    };
    let chunk = (TASK_ROWS * rows).max(1);
    context.install(|| {
        if context.is_parallel() {
            values.par_chunks_mut(chunk).enumerate().for_each(task);
        } else {
            values.chunks_mut(chunk).enumerate().for_each(task);
        }
    });
}
