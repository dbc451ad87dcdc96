//! Newton steps on the Hessian of sampled rows, small enough to be formed.
//!
//! M = Σ fᵢxᵢxᵢᵀ over rows that are picked with a probability proportional to their second derivative,
//! which fᵢ compensates for (subsampled Newton). Its minimum with the ℓ2 penalty comes from a Cholesky
//! factor, that with the ℓ1 penalty from coordinate descent. M is kept as long as steps make progress and
//! is then formed again, of more rows where a new one did not help.

use super::column_descent::{soft_step, violation};
use super::loss_derivatives::curvature;
use super::newton::{Norm, QuadraticModel, Step, Subproblem};
use super::problem::{RowLoss, add_scaled};
use super::tuning::newton::{
    FARTHEST, INNER_SHARE, MORE_ROWS, MOST_INNER, RIDGE, ROWS_PER_WEIGHT, SMALLEST_MOVE,
};
use crate::context::Context;
use crate::numeric::algebra::Cholesky;
use crate::numeric::random::Generator;
use crate::numeric::simd::{PlainLoop, run_plain};
use crate::solver::Status;
use crate::solver::linear::rows::LinearRows;

/// Parts of a sample, whose matrices are added up in parallel.
pub(super) const PARTS: usize = 4;

/// Entries of a matrix whose sums one thread adds up.
const PIECE: usize = 1 << 11;

/// Added for a weight without a penalty, so that a factor exists.
pub(super) const LEAST_PENALTY: f64 = 1e-3;

/// Σ fᵢxᵢxᵢᵀ over some rows with a factor each, row-major.
pub(super) fn gram<R: LinearRows>(
    rows: &R,
    picked: &[(usize, f64)],
    context: &Context,
) -> Vec<f64> {
    let width = rows.width();
    let sum = |part: &[(usize, f64)]| {
        let mut matrix = vec![0.0; width * width];
        part.iter().for_each(|&(i, factor)| rows.add_pairs(i, factor, &mut matrix));
        matrix
    };
    let length = picked.len().div_ceil(PARTS).max(1);
    let mut parts = context.map(picked.chunks(length), sum).into_iter();
    let mut matrix = parts.next().unwrap_or_else(|| vec![0.0; width * width]);
    parts.for_each(|part| add_scaled(&mut matrix, 1.0, &part));
    mirror(&mut matrix, width);
    matrix
}

/// Makes a matrix symmetric: features of a row stand in any order, so that a pair is on either side
/// of the diagonal.
fn mirror(matrix: &mut [f64], width: usize) {
    for j in 0..width {
        for k in 0..j {
            let both = matrix[j * width + k] + matrix[k * width + j];
            (matrix[j * width + k], matrix[k * width + j]) = (both, both);
        }
    }
}

/// The quadratic model of the loss by sampled rows.
pub(super) struct SampledHessian<'a, R> {
    rows: &'a R,
    norm: Norm,
    squared: bool,
    sum: Option<HessianSum>,
    /// Sampled rows.
    count: usize,
    /// Whether to form M again, whether the last step was one of a new M, and whether every row of a
    /// squared loss counts, whose curvature then bounds the true one.
    stale: bool,
    fresh: bool,
    bounded: bool,
    context: &'a Context,
}

impl<'a, R: LinearRows> SampledHessian<'a, R> {
    /// With M at the start, if there is one.
    pub(super) fn new(
        rows: &'a R,
        norm: Norm,
        loss: RowLoss,
        sum: Option<HessianSum>,
        context: &'a Context,
    ) -> Self {
        let squared = loss.is_squared();
        // Rows of a squared loss are all alike, so that it takes twice as many.
        let count = ROWS_PER_WEIGHT * rows.width() * (1 + usize::from(squared));
        let (stale, fresh, bounded) = (false, false, false);
        Self { rows, norm, squared, sum, count, stale, fresh, bounded, context }
    }

    /// M, if there is one.
    pub(super) fn into_sum(self) -> Option<HessianSum> {
        self.sum
    }
}

impl<R: LinearRows> QuadraticModel for SampledHessian<'_, R> {
    fn minimise(&mut self, subproblem: &Subproblem<'_>) -> Result<Option<Step>, Status> {
        let Subproblem { problem, point, penalty_weights, violation, old_model } = *subproblem;
        self.fresh = self.sum.is_none() || self.stale && !old_model;
        let sum = self.sum.get_or_insert_with(|| HessianSum::new(self.rows.width()));
        if self.fresh {
            let second = |i: usize| match self.bounded {
                true => 2.0 * problem.costs[i],
                false => curvature(problem, i, point.slopes[i]),
            };
            sum.renew(self.rows, second, self.count, self.context);
            self.stale = false;
        }
        // Rows of a squared loss cross the kink in every step.
        self.stale |= self.squared;
        let (gradient, weights) = (&point.gradient, &point.weights);
        let direction = match self.norm {
            Norm::L2 => sum.minimum_l2(gradient, weights, penalty_weights, self.context),
            Norm::L1 => {
                let goal = INNER_SHARE * violation;
                Some(sum.minimum_l1(gradient, weights, penalty_weights, goal, self.context))
            }
        };
        let (fresh, work) = (self.fresh, self.rows.rows());
        Ok(direction.map(|direction| Step { direction, fresh, work }))
    }

    fn improve(&mut self, failed: bool) -> bool {
        self.bounded = failed && self.fresh && self.squared && !self.bounded;
        if self.fresh {
            self.count = self.count.saturating_mul(MORE_ROWS);
        }
        self.stale = true;
        true
    }

    fn is_cheap(&self) -> bool {
        true
    }
}

/// M, row-major.
pub(super) struct HessianSum {
    matrix: Vec<f64>,
    /// The memory of sums of parts but for the first, which M is in.
    parts: Vec<Vec<f64>>,
    /// That of a factor.
    spare: Vec<f64>,
    width: usize,
    /// Of M with the ℓ2 penalty, once it is needed.
    factor: Option<Cholesky>,
}

impl HessianSum {
    fn new(width: usize) -> Self {
        let zeros = || vec![0.0; width * width];
        let parts = (1..PARTS).map(|_| zeros()).collect();
        Self { matrix: zeros(), parts, spare: Vec::new(), width, factor: None }
    }

    /// Becomes that of about `count` rows, given the second derivative of every row, in the memory it
    /// has: new memory would cost as much as the sums.
    fn renew<R: LinearRows>(
        &mut self,
        rows: &R,
        second: impl Fn(usize) -> f64 + Sync,
        count: usize,
        context: &Context,
    ) {
        if let Some(factor) = self.factor.take() {
            self.spare = factor.into_matrix();
        }
        let part = |number: usize| Part { number, rows: rows.rows() };
        let count_part = |number: usize| {
            part(number).rows().fold((0.0, 0), |(total, curved), i| {
                let second = second(i);
                (total + second, curved + usize::from(second > 0.0))
            })
        };
        let counts = context.map(0..PARTS, count_part);
        let total: f64 = counts.iter().map(|(total, _)| total).sum();
        let curved: usize = counts.iter().map(|(_, curved)| curved).sum();
        // Below this second derivative rows stand for others.
        let least = if count >= curved { 0.0 } else { total / count as f64 };
        let sum = |(number, matrix): (usize, &mut Vec<f64>)| {
            matrix.fill(0.0);
            let mut generator = Generator::new(context.seed() ^ (number as u64) << 32);
            for i in part(number).rows() {
                let second = second(i);
                if second > 0.0 && (second >= least || generator.unit() * least < second) {
                    rows.add_pairs(i, second.max(least), matrix);
                }
            }
        };
        let matrices = std::iter::once(&mut self.matrix).chain(&mut self.parts);
        context.for_each(matrices.enumerate(), sum);
        let parts = &self.parts;
        let join = |(piece, rows): (usize, &mut [f64])| {
            let own = piece * PIECE..piece * PIECE + rows.len();
            parts.iter().for_each(|part| add_scaled(rows, 1.0, &part[own.clone()]));
        };
        context.for_each(self.matrix.chunks_mut(PIECE).enumerate(), join);
        mirror(&mut self.matrix, self.width);
    }

    /// Minimises ⟨g, d⟩ + ½dᵀMd + ½Σ c(w + d)² over d.
    fn minimum_l2(
        &mut self,
        gradient: &[f64],
        weights: &[f64],
        penalty_weights: &[f64],
        context: &Context,
    ) -> Option<Vec<f64>> {
        let width = self.width;
        if self.factor.is_none() {
            let mut matrix = std::mem::take(&mut self.spare);
            matrix.clone_from(&self.matrix);
            for j in 0..width {
                matrix[j * width + j] += penalty_weights[j].max(LEAST_PENALTY);
            }
            self.factor = Cholesky::new(matrix, width, context);
        }
        let mut step: Vec<f64> =
            (0..width).map(|j| -gradient[j] - penalty_weights[j] * weights[j]).collect();
        self.factor.as_ref()?.solve(&mut step);
        Some(step)
    }

    /// Minimises ⟨g, d⟩ + ½dᵀMd + Σ c|w + d| over d, until violations sum up to `goal`.
    fn minimum_l1(
        &self,
        gradient: &[f64],
        weights: &[f64],
        penalty_weights: &[f64],
        goal: f64,
        context: &Context,
    ) -> Vec<f64> {
        let slopes = gradient.to_vec();
        let matrix = &self.matrix;
        let descent = Descent { matrix, slopes, weights, penalty_weights, goal, context };
        run_plain(context.instruction_set(), descent)
    }
}

/// One in [`PARTS`] of the rows, in blocks, so that rows in any order are shared evenly.
#[derive(Clone, Copy)]
struct Part {
    number: usize,
    rows: usize,
}

impl Part {
    const BLOCK: usize = 128;

    /// Its rows, ascending.
    fn rows(self) -> impl Iterator<Item = usize> {
        let starts = (self.number * Self::BLOCK..self.rows).step_by(PARTS * Self::BLOCK);
        starts.flat_map(move |start| start..(start + Self::BLOCK).min(self.rows))
    }
}

/// Coordinate descent on M with the ℓ1 penalty.
struct Descent<'a> {
    matrix: &'a [f64],
    slopes: Vec<f64>,
    weights: &'a [f64],
    penalty_weights: &'a [f64],
    goal: f64,
    context: &'a Context,
}

impl PlainLoop for Descent<'_> {
    type Output = Vec<f64>;

    #[inline(always)]
    fn run(mut self) -> Vec<f64> {
        let width = self.slopes.len();
        let mut step = vec![0.0; width];
        let largest = self.weights.iter().fold(0.0_f64, |most, w| most.max(w.abs()));
        let radius = if largest > 0.0 { FARTHEST * largest } else { f64::INFINITY };
        for _ in 0..MOST_INNER {
            let mut sum = 0.0;
            for j in 0..width {
                let (reached, slope) = (self.weights[j] + step[j], self.slopes[j]);
                sum += violation(slope, reached, self.penalty_weights[j]);
                let row = &self.matrix[j * width..][..width];
                let move_ = soft_step(slope, row[j] + RIDGE, reached, self.penalty_weights[j]);
                let move_ = (step[j] + move_).clamp(-radius, radius) - step[j];
                if move_.abs() > SMALLEST_MOVE {
                    step[j] += move_;
                    for (slope, entry) in self.slopes.iter_mut().zip(row) {
                        *slope += move_ * entry;
                    }
                }
            }
            if sum <= self.goal || self.context.stop_request().is_some() {
                break;
            }
        }
        step
    }
}
