//! Kernels of strings. Those that count substrings become products of sparse rows of counts
//! (`counts.rs`), which take time linear in the lengths of the strings; those that compare strings with
//! gaps are tables filled pair by pair (`pairs.rs`), several right strings at a time.

mod alignment;
mod counts;
mod features;
mod overdue;
mod pairs;
mod patterns;
mod subsequence;
#[cfg(test)]
mod tests;
mod trie;

use std::sync::Arc;

use self::counts::Counts;
pub use self::features::SubstringFeatures;
use self::pairs::Pairs;
use super::PackedRows;
use crate::context::Context;
use crate::data::{LARGEST_SYMBOL, Matrix};
use crate::error::{Error, Result};
use crate::kernel::{StringKernel, StringSimilarity};
use crate::numeric::InstructionSet;
use crate::numeric::simd::Real;

/// Packs the strings of `matrix` named by `order`.
///
/// # Errors
/// [`Error::Kernel`] when rows are not strings, [`Error::Overflow`] when values overflow,
/// [`Error::TooLarge`] when there are too many different substrings; [`Error::Interrupted`].
pub(super) fn pack<T: Real>(
    kernel: &StringKernel,
    matrix: &Matrix,
    order: &[usize],
    set: InstructionSet,
    context: Option<&Context>,
) -> Result<Arc<dyn PackedRows<T>>> {
    match kernel.similarity {
        StringSimilarity::Spectrum { .. } | StringSimilarity::Mismatch { .. } => {
            Ok(Arc::new(Counts::new(kernel, matrix, order, set)?))
        }
        StringSimilarity::Subsequence { .. } | StringSimilarity::Alignment { .. } => {
            Ok(Arc::new(Pairs::new(kernel, matrix, order, set, context)?))
        }
    }
}

/// The symbols of a row.
///
/// # Errors
/// [`Error::Kernel`] when it is not a string: whole numbers of at least 1 without a gap.
fn symbols(kernel: &'static str, matrix: &Matrix, row: usize, out: &mut Vec<u32>) -> Result<()> {
    out.clear();
    let mut wrong = None;
    matrix.for_each_nonzero(row, |column, value| {
        let known = value.fract() == 0.0 && (1.0..=f64::from(LARGEST_SYMBOL)).contains(&value);
        if wrong.is_none() && (!known || column != out.len()) {
            wrong = Some((column, value));
        }
        out.push(value as u32);
    });
    let Some((column, value)) = wrong else { return Ok(()) };
    let place = format!("row {}, feature {}", row + 1, column + 1);
    let found = match value.fract() == 0.0 && value >= 1.0 && value <= f64::from(LARGEST_SYMBOL) {
        true => format!("a gap before {place}"),
        false => format!("{value} in {place}"),
    };
    Err(Error::kernel(
        kernel,
        "strings (a column read as text: whole symbols from 1 on, without a gap)",
        found,
    ))
}
