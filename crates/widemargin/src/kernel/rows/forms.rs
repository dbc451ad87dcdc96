//! Quadratic forms of coefficients with every kernel of a sum.

use crate::context::Context;
use crate::error::Result;
use crate::kernel::{KernelBlocks, TermScratch, TermSums};
use crate::numeric::parallel::Scratches;
use crate::numeric::simd::Real;

/// Rows and columns of a tile, whose values, products and weights stay in the cache while every kernel is
/// looked at.
const TILE_ROWS: usize = 32;
const TILE_COLUMNS: usize = 256;

/// Σ over columns c of bᵀKᵢb, b being column c of `coefficients`, for every kernel Kᵢ of `terms`; the
/// coefficients of a row, one per column, stand one after another. A value with its coefficients
/// Σ over columns of bᵣb₍c₎ is looked at once for both its places.
///
/// # Errors
/// [`Error::Interrupted`](crate::Error::Interrupted) when the context asks to stop.
pub(super) fn forms<T: Real>(
    terms: &[KernelBlocks<T>],
    coefficients: &[f64],
    columns: usize,
    context: &Context,
) -> Result<Vec<f64>> {
    let n = terms.first().map_or(0, KernelBlocks::len);
    let kernels = TermSums::new(terms, context.instruction_set());
    let own = |row: usize| &coefficients[row * columns..(row + 1) * columns];
    let tiles = (0..n).step_by(TILE_ROWS).flat_map(|row| {
        let end = (row + TILE_ROWS).min(n);
        (0..end).step_by(TILE_COLUMNS).map(move |column| (row..end, column))
    });
    let tiles: Vec<_> = tiles.collect();
    let mut found = vec![0.0; tiles.len() * terms.len()];
    let scratches = Scratches::new();
    let work = found.chunks_mut(terms.len().max(1)).zip(&tiles);
    context.for_each_if(tiles.len() > 1, work, |(sums, (rows, column))| {
        if context.stop_request().is_some() {
            return;
        }
        scratches.with(|(weights, scratch): &mut (Vec<f64>, TermScratch<T>)| {
            let columns = *column..(column + TILE_COLUMNS).min(rows.end);
            weights.clear();
            for r in rows.clone() {
                weights.extend(columns.clone().map(|c| match c.cmp(&r) {
                    std::cmp::Ordering::Less => 2.0 * dot(own(r), own(c)),
                    std::cmp::Ordering::Equal => dot(own(r), own(c)),
                    std::cmp::Ordering::Greater => 0.0,
                }));
            }
            kernels.add(rows.clone(), columns, weights, scratch, sums);
        });
    });
    context.checkpoint()?;
    let mut forms = vec![0.0; terms.len()];
    for sums in found.chunks(terms.len().max(1)) {
        forms.iter_mut().zip(sums).for_each(|(form, sum)| *form += sum);
    }
    Ok(forms)
}

#[inline]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
