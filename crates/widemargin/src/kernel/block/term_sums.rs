//! Sums of the values of every kernel of a weighted sum, with weights of the pairs of rows.

use std::ops::Range;

use super::product_functions::{ProductFunctions, groups};
use super::{KernelBlocks, Queries};
use crate::numeric::InstructionSet;
use crate::numeric::simd::{PlainLoop, Real, run_plain};

/// Sums that are kept apart, so that the loop over a row becomes vectors.
const LANES: usize = 16;

/// The kernels of a sum; those that are functions of the same products are evaluated together.
pub(crate) struct TermSums<T: Real> {
    together: Vec<ProductFunctions<T>>,
    /// The others, with their rows as left ones.
    alone: Vec<(usize, KernelBlocks<T>, Queries<T>)>,
    set: InstructionSet,
}

/// Memory that is used again.
#[derive(Default)]
pub(crate) struct TermScratch<T> {
    row: Vec<T>,
    lanes: Vec<T>,
    values: Vec<T>,
}

impl<T: Real> TermSums<T> {
    pub(crate) fn new(terms: &[KernelBlocks<T>], set: InstructionSet) -> Self {
        let all: Vec<usize> = (0..terms.len()).collect();
        let groups = groups(terms, &all);
        let together = groups.iter().map(|group| ProductFunctions::new(terms, group, |_| T::ONE));
        let is_alone = |at: &usize| !groups.iter().any(|group| group.binary_search(at).is_ok());
        let rows: Vec<usize> = (0..terms.first().map_or(0, KernelBlocks::len)).collect();
        let alone = all.iter().copied().filter(is_alone);
        let alone = alone.map(|at| (at, terms[at].clone(), terms[at].gather(&rows)));
        Self { together: together.collect(), alone: alone.collect(), set }
    }

    /// Adds Σ weight · Kᵢ(r, c) over the rows `rows` and `columns` to `sums[i]` for every kernel Kᵢ; the weights of
    /// a row stand one after another.
    pub(crate) fn add(
        &self,
        rows: Range<usize>,
        columns: Range<usize>,
        weights: &[f64],
        scratch: &mut TermScratch<T>,
        sums: &mut [f64],
    ) {
        let TermScratch { row: own, lanes, values } = scratch;
        for functions in &self.together {
            for (row, weights) in rows.clone().zip(weights.chunks(columns.len())) {
                own.clear();
                own.extend(weights.iter().map(|&weight| T::from_f64(weight)));
                functions.add_sums_of_row(row, columns.clone(), own, lanes, sums);
            }
        }
        values.resize(weights.len(), T::ZERO);
        for (at, term, left) in &self.alone {
            term.query_block(left, rows.clone(), columns.clone(), values, columns.len());
            sums[*at] += run_plain(self.set, WeightedSum { weights, values });
        }
    }
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
