//! Products and transposes of row-major tables.

use crate::context::Context;
use crate::error::Result;
use crate::numeric::simd::{Weights, multiply};

/// Rows of either table in a block of their product.
const BLOCK_ROWS: usize = 64;

/// The transpose of a table of `rows` × `columns`.
pub(crate) fn transposed(table: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    let mut out = vec![0.0; table.len()];
    // In squares, of which both sides stay in the cache.
    for first in (0..rows).step_by(BLOCK_ROWS) {
        for left in (0..columns).step_by(BLOCK_ROWS) {
            for i in first..(first + BLOCK_ROWS).min(rows) {
                for j in left..(left + BLOCK_ROWS).min(columns) {
                    out[j * rows + i] = table[i * columns + j];
                }
            }
        }
    }
    out
}

/// A Bᵀ for tables whose rows have `inner` entries.
///
/// # Errors
/// [`Error::Interrupted`](crate::Error::Interrupted) when the context asks to stop.
pub(crate) fn times_transposed(
    a: &[f64],
    b: &[f64],
    inner: usize,
    context: &Context,
) -> Result<Vec<f64>> {
    let columns = b.len() / inner.max(1);
    let packed: Vec<Weights<f64>> = b
        .chunks((BLOCK_ROWS * inner).max(1))
        .map(|rows| Weights::new(inner, rows.to_vec()))
        .collect();
    let mut out = vec![0.0; a.len() / inner.max(1) * columns];
    let tasks =
        out.chunks_mut((BLOCK_ROWS * columns).max(1)).zip(a.chunks((BLOCK_ROWS * inner).max(1)));
    context.try_for_each(tasks, |(out, rows)| {
        for (block, weights) in packed.iter().enumerate() {
            context.checkpoint()?;
            let outputs = weights.outputs();
            let mut product = vec![0.0; rows.len() / inner * outputs];
            multiply(context.instruction_set(), rows, inner, weights, 0, inner, &mut product);
            for (out, product) in out.chunks_exact_mut(columns).zip(product.chunks_exact(outputs)) {
                out[block * BLOCK_ROWS..][..outputs].copy_from_slice(product);
            }
        }
        Ok(())
    })?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::algebra::dot;
    use crate::numeric::random::Generator;

    #[test]
    fn products_are_those_of_every_pair_and_stop() {
        let (rows, columns, inner) = (130, 71, 9);
        let mut generator = Generator::new(4);
        let a: Vec<f64> = (0..rows * inner).map(|_| generator.normal()).collect();
        let b: Vec<f64> = (0..columns * inner).map(|_| generator.normal()).collect();
        let context = Context::new();
        let product = times_transposed(&a, &b, inner, &context).unwrap();
        let turned = transposed(&product, rows, columns);
        for i in 0..rows {
            for j in 0..columns {
                let expected = dot(&a[i * inner..][..inner], &b[j * inner..][..inner]);
                assert!((product[i * columns + j] - expected).abs() < 1e-12);
                assert_eq!(turned[j * rows + i], product[i * columns + j]);
            }
        }
        let stopped = Context::new().with_time_limit(std::time::Duration::ZERO);
        assert!(times_transposed(&a, &b, inner, &stopped).is_err());
    }
}
