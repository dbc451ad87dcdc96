//! Several kernels that are functions of the same products ⟨x, z⟩, evaluated together: weighted sums of their values,
//! and for every one of them the sum of its values with given weights, while the products stay in registers.
//!
//! Of Gaussians whose γ doubles from one to the next only the first needs an exponential,
//! exp(−2γd) = exp(−γd)². A square has twice the relative error of its root, so that [few](LONGEST_CHAIN) of them
//! follow one another: the error stays about that which the rounded product already causes.

use std::ops::Range;

use super::KernelBlocks;
use super::of_products::OfProducts;
use super::transform::{SumOfRow, SumsOfRow, Transform};
use crate::data::Dense;
use crate::numeric::InstructionSet;
use crate::numeric::simd::{Real, dispatch};

/// Squares in a row.
const LONGEST_CHAIN: usize = 3;

/// How far, in relation to it, a factor may be from twice another one to count as it; more than the rounding of
/// both, and far less than what changes a value.
const ROUNDING: f64 = 4.0;

/// One kernel of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<T> {
    /// The function of the product; none for the square of the value of the step before.
    pub(super) transform: Option<Transform<T>>,
    /// Weight in a sum.
    pub(super) weight: T,
    /// Which kernel it is.
    pub(super) kernel: usize,
}

/// Kernels over one table of products.
#[derive(Clone)]
pub(super) struct ProductFunctions<T: Copy> {
    table: Dense<T>,
    statistics: Vec<T>,
    set: InstructionSet,
    steps: Vec<Step<T>>,
}

/// The kernel as a function of a table of products over all its rows, if it is one.
pub(super) fn of_table<T: Real>(part: &KernelBlocks<T>) -> Option<&OfProducts<T>> {
    part.packed.shared()?.downcast_ref::<OfProducts<T>>().filter(|own| own.is_whole())
}

/// The kernels `which` of `parts` by the tables they are functions of; those alone with their table, and those that
/// are no function of a table, are left out.
pub(super) fn groups<T: Real>(parts: &[KernelBlocks<T>], which: &[usize]) -> Vec<Vec<usize>> {
    let mut groups: Vec<(&OfProducts<T>, Vec<usize>)> = Vec::new();
    for &at in which {
        let Some(own) = of_table(&parts[at]) else { continue };
        match groups.iter_mut().find(|(first, _)| first.shares_table_with(own)) {
            Some((_, members)) => members.push(at),
            None => groups.push((own, vec![at])),
        }
    }
    groups.into_iter().map(|(_, members)| members).filter(|members| members.len() > 1).collect()
}

impl<T: Real> ProductFunctions<T> {
    /// The kernels `members` of `parts`, a [group](groups), with their weights.
    ///
    /// # Panics
    /// When they are not functions of one table.
    pub(super) fn new(
        parts: &[KernelBlocks<T>],
        members: &[usize],
        weight: impl Fn(usize) -> T,
    ) -> Self {
        let own = |at: usize| of_table(&parts[at]).expect("a function of a table");
        let first = own(members[0]);
        let value = first.value();
        let transforms = members.iter().map(|&at| (own(at).value().transform, at));
        Self {
            table: first.table().clone(),
            statistics: value.statistics.clone(),
            set: value.set,
            steps: steps(transforms.collect(), weight),
        }
    }

    /// Writes the weighted sum of the values of row `row` with the rows `columns`.
    pub(super) fn sum_of_row(&self, row: usize, columns: Range<usize>, out: &mut [T]) {
        let (left, right) = (self.statistics[row], &self.statistics[columns.clone()]);
        let products = &self.table.row(row)[columns];
        dispatch(self.set, SumOfRow { steps: &self.steps, products, left, right, out });
    }

    /// Adds Σ weightⱼKᵢ(row, j) over the rows j of `columns` to `sums[i]` for every kernel i of the group.
    /// `scratch` is memory that is used again.
    pub(super) fn add_sums_of_row(
        &self,
        row: usize,
        columns: Range<usize>,
        weights: &[T],
        scratch: &mut Vec<T>,
        sums: &mut [f64],
    ) {
        let (left, right) = (self.statistics[row], &self.statistics[columns.clone()]);
        let products = &self.table.row(row)[columns];
        let steps = &self.steps;
        dispatch(self.set, SumsOfRow { steps, products, left, right, weights, scratch, sums });
    }
}

fn unit_of_rounding<T>() -> f64 {
    if size_of::<T>() == size_of::<f32>() { f64::from(f32::EPSILON) } else { f64::EPSILON }
}

/// The kernels in an order in which Gaussians follow those of half their γ.
fn steps<T: Real>(
    transforms: Vec<(Transform<T>, usize)>,
    weight: impl Fn(usize) -> T,
) -> Vec<Step<T>> {
    let step = |transform, kernel| Step { transform, weight: weight(kernel), kernel };
    let mut steps = Vec::with_capacity(transforms.len());
    // Slope, factor and kernel, the widest Gaussian first.
    let mut gaussians: Vec<(f64, f64, usize)> = Vec::new();
    for (transform, kernel) in transforms {
        match transform {
            Transform::Exponential { slope, factor } => {
                gaussians.push((slope.to_f64(), factor.to_f64(), kernel));
            }
            other => steps.push(step(Some(other), kernel)),
        }
    }
    gaussians.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut taken = vec![false; gaussians.len()];
    for first in 0..gaussians.len() {
        let mut last = first;
        for length in 0..=LONGEST_CHAIN {
            if taken[last] {
                break;
            }
            taken[last] = true;
            let (slope, factor, kernel) = gaussians[last];
            let own =
                Transform::Exponential { slope: T::from_f64(slope), factor: T::from_f64(factor) };
            steps.push(step((length == 0).then_some(own), kernel));
            let close = ROUNDING * unit_of_rounding::<T>() * factor.abs();
            let next = gaussians.partition_point(|other| other.1 > 2.0 * factor + close);
            let is_double = |other: &(f64, f64, usize)| {
                factor < 0.0 && other.0 == slope && (other.1 - 2.0 * factor).abs() <= close
            };
            match (next..gaussians.len())
                .take_while(|&at| gaussians[at].1 >= 2.0 * factor - close)
                .find(|&at| !taken[at] && is_double(&gaussians[at]))
            {
                Some(at) => last = at,
                None => break,
            }
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exponential(factor: f64) -> Transform<f64> {
        Transform::Exponential { slope: -2.0, factor }
    }

    #[test]
    fn doubled_widths_follow_one_another_and_chains_are_short() {
        let factors = [-8.0, -1.0, -3.0, -2.0, -4.0, -16.0, -0.5, -6.0, -1.0];
        let mut transforms: Vec<_> =
            factors.iter().enumerate().map(|(at, f)| (exponential(*f), at)).collect();
        transforms.push((Transform::Identity, 9));
        let steps = steps(transforms, |kernel| kernel as f64);
        let order: Vec<(usize, bool)> =
            steps.iter().map(|step| (step.kernel, step.transform.is_none())).collect();
        let chain = [(6, false), (1, true), (3, true), (4, true)];
        assert_eq!(order[..5], [&[(9, false)][..], &chain].concat());
        assert_eq!(order[5..], [(8, false), (2, false), (7, true), (0, false), (5, true)]);
        assert!(steps.iter().all(|step| step.weight == step.kernel as f64));
    }
}
