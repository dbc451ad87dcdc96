//! Quadratic forms of coefficients with every kernel of a sum.

use crate::context::Context;
use crate::kernel::{KernelBlocks, Queries};
use crate::numeric::parallel::Scratches;
use crate::numeric::simd::{PlainLoop, Real, run_plain};

/// Rows and columns of a tile, whose values, products and weights stay in the cache while every kernel is
/// looked at.
const TILE_ROWS: usize = 32;
const TILE_COLUMNS: usize = 256;

/// Sums that are kept apart, so that the loop over a row becomes vectors.
const LANES: usize = 16;

/// Σ over columns c of bᵀKᵢb, b being column c of `coefficients`, for every kernel Kᵢ of `terms`; the
/// coefficients of a row, one per column, stand one after another. A value with its coefficients
/// Σ over columns of bᵣb₍c₎ is looked at once for both its places.
pub(super) fn forms<T: Real>(
    terms: &[KernelBlocks<T>],
    coefficients: &[f64],
    columns: usize,
    context: &Context,
) -> Vec<f64> {
    let n = terms.first().map_or(0, KernelBlocks::len);
    let all: Vec<usize> = (0..n).collect();
    let left: Vec<Queries<T>> = terms.iter().map(|term| term.gather(&all)).collect();
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
        scratches.with(|(weights, values): &mut (Vec<f64>, Vec<T>)| {
            let columns = *column..(column + TILE_COLUMNS).min(rows.end);
            weights.clear();
            for r in rows.clone() {
                weights.extend(columns.clone().map(|c| match c.cmp(&r) {
                    std::cmp::Ordering::Less => 2.0 * dot(own(r), own(c)),
                    std::cmp::Ordering::Equal => dot(own(r), own(c)),
                    std::cmp::Ordering::Greater => 0.0,
                }));
            }
            values.resize(weights.len(), T::ZERO);
            for ((sum, term), left) in sums.iter_mut().zip(terms).zip(&left) {
                term.query_block(left, rows.clone(), columns.clone(), values, columns.len());
                *sum = run_plain(context.instruction_set(), WeightedSum { weights, values });
            }
        });
    });
    let mut forms = vec![0.0; terms.len()];
    for sums in found.chunks(terms.len().max(1)) {
        forms.iter_mut().zip(sums).for_each(|(form, sum)| *form += sum);
    }
    forms
}

#[inline]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Σ weight · value, in double precision.
struct WeightedSum<'a, T> {
    weights: &'a [f64],
    values: &'a [T],
}

impl<T: Real> PlainLoop for WeightedSum<'_, T> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let mut sums = [0.0; LANES];
        let (weights, values) = (self.weights.chunks_exact(LANES), self.values.chunks_exact(LANES));
        let rest = weights.remainder().iter().zip(values.remainder());
        let rest: f64 = rest.map(|(weight, value)| weight * value.to_f64()).sum();
        for (weights, values) in weights.zip(values) {
            for lane in 0..LANES {
                sums[lane] += weights[lane] * values[lane].to_f64();
            }
        }
        sums.iter().sum::<f64>() + rest
    }
}
