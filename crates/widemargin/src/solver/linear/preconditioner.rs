//! What makes conjugate gradients on the Hessian I + XᵀDX short.
//!
//! Where a sample of the rows determines all weights, the Hessian of the sample, factored; where it
//! does not, a mixture of the identity and the diagonal (Hsia, Chiang and Lin, 2018).

use super::sampled_hessian::{LEAST_PENALTY, PARTS};
use super::table::{Table, WeightedRows};
use super::tuning::preconditioner::{DIAGONAL_SHARE, FACTOR_WORK, ROWS_PER_WEIGHT, SAMPLE_WORK};
use crate::context::Context;
use crate::numeric::algebra::Cholesky;
use crate::numeric::random::Generator;

/// M ≈ H
pub(super) enum Preconditioner {
    Diagonal(Vec<f64>),
    Factor(Cholesky),
}

impl Preconditioner {
    /// That of the Hessian diag(`penalty_weights`) + Σ `curvatures`ᵢ xᵢxᵢᵀ; the factor of the `whole`
    /// Hessian, of some rows' where that is cheap, or its diagonal.
    pub(super) fn new(
        table: &impl Table,
        curvatures: &WeightedRows,
        penalty_weights: &[f64],
        whole: bool,
        context: &Context,
    ) -> Self {
        let stride = if whole { Some(1) } else { stride(table, curvatures.len()) };
        let factor =
            stride.and_then(|stride| sampled(table, stride, curvatures, penalty_weights, context));
        if let Some(factor) = factor {
            return Self::Factor(factor);
        }
        let mut diagonal = table.transposed_squares(curvatures);
        for (value, penalty) in diagonal.iter_mut().zip(penalty_weights) {
            *value = (1.0 - DIAGONAL_SHARE) + DIAGONAL_SHARE * (*value + penalty);
        }
        Self::Diagonal(diagonal)
    }

    pub(super) fn is_factor(&self) -> bool {
        matches!(self, Self::Factor(_))
    }

    /// M⁻¹r
    pub(super) fn solve(&self, residual: &[f64]) -> Vec<f64> {
        match self {
            Self::Diagonal(diagonal) => residual.iter().zip(diagonal).map(|(r, m)| r / m).collect(),
            Self::Factor(factor) => {
                let mut solved = residual.to_vec();
                factor.solve(&mut solved);
                solved
            }
        }
    }
}

/// Bytes that a factor takes while it is made, 0 for a table that gets none.
pub(crate) fn factor_bytes(table: &impl Table) -> usize {
    let square = table.width().saturating_pow(2).saturating_mul(size_of::<f64>());
    stride(table, table.rows()).map_or(0, |_| square.saturating_mul(PARTS + 2))
}

/// One row in how many is worth being in the sample, if a sample pays at all.
fn stride(table: &impl Table, curved: usize) -> Option<usize> {
    let (width, stored) = (table.width(), table.nonzeros());
    let sample = ROWS_PER_WEIGHT * width;
    let per_row = stored / table.rows().max(1) + 1;
    let cheap = width.saturating_pow(3) / 3 <= FACTOR_WORK * stored
        && sample.saturating_mul(per_row * per_row) / 2 <= SAMPLE_WORK * stored;
    cheap.then(|| (curved / sample).max(1))
}

/// The factor of diag(`penalty_weights`) + stride · Σ `curvatures`ᵢ xᵢxᵢᵀ over one row in `stride`.
fn sampled(
    table: &impl Table,
    stride: usize,
    curvatures: &WeightedRows,
    penalty_weights: &[f64],
    context: &Context,
) -> Option<Cholesky> {
    let width = table.width();
    let mut generator = Generator::new(context.seed());
    let mut picked = WeightedRows::default();
    for (i, curvature) in curvatures.iter() {
        if generator.bits().is_multiple_of(stride as u64) {
            picked.push(i, stride as f64 * curvature);
        }
    }
    let mut matrix = table.weighted_gram(&picked);
    for (j, penalty) in penalty_weights.iter().enumerate() {
        matrix[j * width + j] += penalty.max(LEAST_PENALTY);
    }
    Cholesky::new(matrix, width, context)
}
