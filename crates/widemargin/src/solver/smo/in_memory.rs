//! Problems small enough to keep all their kernel rows in memory.
//!
//! Only variables whose rows are there take part; when they are optimal among themselves, the rows
//! of the worst violators among the others join them. Rows stay, so that no step costs more than two
//! passes over the gradient, and the final check adds them up afresh instead of computing the matrix
//! again.

use super::inner::{InnerRows, padded};
use crate::kernel::{Buffer, MatrixRows};
use crate::numeric::InstructionSet;
use crate::numeric::simd::accumulate;

/// Fetches the rows of `variables` that are not in memory yet.
pub(super) fn load<R: MatrixRows>(
    rows: &R,
    variables: &[u32],
    in_memory: &mut InnerRows<R::Value>,
) {
    let missing: Vec<u32> =
        variables.iter().copied().filter(|&v| in_memory[v as usize].is_none()).collect();
    for (&v, row) in missing.iter().zip(rows.fetch_joined(&missing, padded(in_memory.len()))) {
        in_memory[v as usize] = Some(row);
    }
}

/// The product of the matrix with `beta`, from rows in memory.
pub(super) fn product<R: MatrixRows>(
    rows: &R,
    in_memory: &mut InnerRows<R::Value>,
    beta: &[f64],
    set: InstructionSet,
) -> Vec<f64> {
    let used: Vec<u32> = (0..beta.len() as u32).filter(|&v| beta[v as usize] != 0.0).collect();
    load(rows, &used, in_memory);
    let row = |v: &u32| in_memory[*v as usize].as_ref().map(|row: &Buffer<_>| &row[..]);
    let parts: Vec<&[R::Value]> = used.iter().filter_map(row).collect();
    let coefficients: Vec<f64> = used.iter().map(|&v| beta[v as usize]).collect();
    let mut sums = vec![0.0; padded(beta.len())];
    accumulate(set, &mut sums, &parts, &coefficients);
    sums.truncate(beta.len());
    sums
}
