//! A quadratic model of a total loss that is small enough to be written down.
//!
//! M = Σ fᵢxᵢxᵢᵀ over rows that are picked with a probability that grows with their second
//! derivative, which fᵢ makes up for. Its minimum with squares of the weights comes from a factor of
//! M, that with absolute values from coordinate descent.

use rayon::prelude::*;

use super::problem::add_scaled;
use super::sparse_weights::{SMALLEST_MOVE, soft_step, violation};
use crate::context::Context;
use crate::numeric::algebra::Cholesky;
use crate::numeric::random::Generator;
use crate::numeric::simd::{PlainLoop, run_plain};
use crate::solver::linear::rows::LinearRows;

/// Parts of a sample, whose matrices are added up side by side.
pub(super) const PARTS: usize = 4;

/// Entries of a matrix whose sums one thread adds up.
const PIECE: usize = 1 << 11;

/// Charge of a weight that is free, so that a factor exists.
pub(super) const LEAST_CHARGE: f64 = 1e-3;

/// Added to every curvature, so that none is 0.
const RIDGE: f64 = 1e-12;

/// Passes over the weights for one minimum with absolute values.
const MOST_PASSES: usize = 1000;

/// No weight goes farther than this share of the largest: a second derivative holds nearby only.
const FARTHEST: f64 = 0.5;

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
    let parts: Vec<Vec<f64>> = if context.is_parallel() {
        picked.par_chunks(length).map(sum).collect()
    } else {
        picked.chunks(length).map(sum).collect()
    };
    let mut parts = parts.into_iter();
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

/// M, row-major.
pub(super) struct Model {
    matrix: Vec<f64>,
    /// The memory of sums of parts but for the first, which M is in.
    parts: Vec<Vec<f64>>,
    /// That of a factor.
    spare: Vec<f64>,
    width: usize,
    /// Of M with the charges of squares, once it has been asked for.
    factor: Option<Cholesky>,
}

impl Model {
    /// That of about `count` rows, given the second derivative of every row.
    pub(super) fn new<R: LinearRows>(
        rows: &R,
        bend: impl Fn(usize) -> f64 + Sync,
        count: usize,
        context: &Context,
    ) -> Self {
        let width = rows.width();
        let zeros = || vec![0.0; width * width];
        let parts = (1..PARTS).map(|_| zeros()).collect();
        let mut model = Self { matrix: zeros(), parts, spare: Vec::new(), width, factor: None };
        model.renew(rows, bend, count, context);
        model
    }

    /// Becomes that of other second derivatives, in the memory it has: new memory would cost as much
    /// as the sums.
    pub(super) fn renew<R: LinearRows>(
        &mut self,
        rows: &R,
        bend: impl Fn(usize) -> f64 + Sync,
        count: usize,
        context: &Context,
    ) {
        if let Some(factor) = self.factor.take() {
            self.spare = factor.into_matrix();
        }
        let part = |number: usize| Part { number, rows: rows.rows() };
        let count_part = |number: usize| {
            part(number).rows().fold((0.0, 0), |(total, bent), i| {
                let bend = bend(i);
                (total + bend, bent + usize::from(bend > 0.0))
            })
        };
        let counts: Vec<(f64, usize)> = if context.is_parallel() {
            (0..PARTS).into_par_iter().map(count_part).collect()
        } else {
            (0..PARTS).map(count_part).collect()
        };
        let total: f64 = counts.iter().map(|(total, _)| total).sum();
        let bent: usize = counts.iter().map(|(_, bent)| bent).sum();
        // Below this second derivative rows stand for others.
        let least = if count >= bent { 0.0 } else { total / count as f64 };
        let sum = |(number, matrix): (usize, &mut &mut Vec<f64>)| {
            matrix.fill(0.0);
            let mut generator = Generator::new(context.seed() ^ (number as u64) << 32);
            for i in part(number).rows() {
                let bend = bend(i);
                if bend > 0.0 && (bend >= least || generator.unit() * least < bend) {
                    rows.add_pairs(i, bend.max(least), matrix);
                }
            }
        };
        let mut matrices: Vec<&mut Vec<f64>> =
            std::iter::once(&mut self.matrix).chain(&mut self.parts).collect();
        if context.is_parallel() {
            matrices.par_iter_mut().with_max_len(1).enumerate().for_each(sum);
        } else {
            matrices.iter_mut().enumerate().for_each(sum);
        }
        let parts = &self.parts;
        let join = |(piece, rows): (usize, &mut [f64])| {
            let own = piece * PIECE..piece * PIECE + rows.len();
            parts.iter().for_each(|part| add_scaled(rows, 1.0, &part[own.clone()]));
        };
        if context.is_parallel() {
            self.matrix.par_chunks_mut(PIECE).enumerate().for_each(join);
        } else {
            self.matrix.chunks_mut(PIECE).enumerate().for_each(join);
        }
        mirror(&mut self.matrix, self.width);
    }

    /// Minimises ⟨g, d⟩ + ½dᵀMd + ½Σ c(w + d)² over d.
    pub(super) fn least_squared(
        &mut self,
        gradient: &[f64],
        weights: &[f64],
        charge: &[f64],
        context: &Context,
    ) -> Option<Vec<f64>> {
        let width = self.width;
        if self.factor.is_none() {
            let mut matrix = std::mem::take(&mut self.spare);
            matrix.clone_from(&self.matrix);
            for j in 0..width {
                matrix[j * width + j] += charge[j].max(LEAST_CHARGE);
            }
            self.factor = Cholesky::new(matrix, width, context);
        }
        let mut step: Vec<f64> =
            (0..width).map(|j| -gradient[j] - charge[j] * weights[j]).collect();
        self.factor.as_ref()?.solve(&mut step);
        Some(step)
    }

    /// Minimises ⟨g, d⟩ + ½dᵀMd + Σ c|w + d| over d, until violations sum up to `goal`.
    pub(super) fn least_absolute(
        &self,
        gradient: &[f64],
        weights: &[f64],
        charge: &[f64],
        goal: f64,
        context: &Context,
    ) -> Vec<f64> {
        let slopes = gradient.to_vec();
        let descent = Descent { matrix: &self.matrix, slopes, weights, charge, goal, context };
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

/// Coordinate descent on a model with absolute values.
struct Descent<'a> {
    matrix: &'a [f64],
    slopes: Vec<f64>,
    weights: &'a [f64],
    charge: &'a [f64],
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
        for _ in 0..MOST_PASSES {
            let mut sum = 0.0;
            for j in 0..width {
                let (reached, slope) = (self.weights[j] + step[j], self.slopes[j]);
                sum += violation(slope, reached, self.charge[j]);
                let row = &self.matrix[j * width..][..width];
                let move_ = soft_step(slope, row[j] + RIDGE, reached, self.charge[j]);
                let move_ = (step[j] + move_).clamp(-radius, radius) - step[j];
                if move_.abs() > SMALLEST_MOVE {
                    step[j] += move_;
                    for (slope, bend) in self.slopes.iter_mut().zip(row) {
                        *slope += move_ * bend;
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
