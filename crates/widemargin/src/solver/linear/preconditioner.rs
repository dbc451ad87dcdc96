//! What makes conjugate gradients on the Hessian I + XᵀDX short.
//!
//! Where a sample of the rows determines all weights, the Hessian of the sample, factored; where it
//! does not, a mixture of the identity and the diagonal (Hsia, Chiang and Lin, 2018).

use super::model::{LEAST_CHARGE, PARTS};
use super::table::{Listed, Table};
use crate::context::Context;
use crate::numeric::algebra::Cholesky;
use crate::numeric::random::Generator;

/// Weight of the diagonal of the Hessian; the rest is the identity.
const DIAGONAL_SHARE: f64 = 0.01;

/// Rows of the sample for every weight.
const ROWS_PER_WEIGHT: usize = 40;

/// Work of a factor, for every stored value of the table.
const FACTOR_WORK: usize = 8;

/// Work of the sample's Hessian, for every stored value of the table.
const SAMPLE_WORK: usize = 4;

/// M ≈ H
pub(super) enum Preconditioner {
    Diagonal(Vec<f64>),
    Factor(Cholesky),
}

impl Preconditioner {
    /// That of the Hessian diag(`charge`) + Σ `curvatures`ᵢ xᵢxᵢᵀ.
    pub(super) fn new(
        table: &impl Table,
        curvatures: &Listed,
        charge: &[f64],
        context: &Context,
    ) -> Self {
        let factor = stride(table, curvatures.len())
            .and_then(|stride| sampled(table, stride, curvatures, charge, context));
        if let Some(factor) = factor {
            return Self::Factor(factor);
        }
        let mut diagonal = table.transposed_squares(curvatures);
        for (value, charge) in diagonal.iter_mut().zip(charge) {
            *value = (1.0 - DIAGONAL_SHARE) + DIAGONAL_SHARE * (*value + charge);
        }
        Self::Diagonal(diagonal)
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
pub fn factor_bytes(table: &impl Table) -> usize {
    let square = table.width().saturating_pow(2).saturating_mul(size_of::<f64>());
    stride(table, table.rows()).map_or(0, |_| square.saturating_mul(PARTS + 2))
}

/// One row in how many is worth being in the sample, if a sample pays at all.
fn stride(table: &impl Table, bent: usize) -> Option<usize> {
    let (width, stored) = (table.width(), table.nonzeros());
    let sample = ROWS_PER_WEIGHT * width;
    let per_row = stored / table.rows().max(1) + 1;
    let cheap = width.saturating_pow(3) / 3 <= FACTOR_WORK * stored
        && sample.saturating_mul(per_row * per_row) / 2 <= SAMPLE_WORK * stored;
    cheap.then(|| (bent / sample).max(1))
}

/// The factor of diag(`charge`) + stride · Σ `curvatures`ᵢ xᵢxᵢᵀ over one row in `stride`.
fn sampled(
    table: &impl Table,
    stride: usize,
    curvatures: &Listed,
    charge: &[f64],
    context: &Context,
) -> Option<Cholesky> {
    let width = table.width();
    let mut generator = Generator::new(context.seed());
    let mut picked = Listed::default();
    for (i, curvature) in curvatures.iter() {
        if generator.bits().is_multiple_of(stride as u64) {
            picked.push(i, stride as f64 * curvature);
        }
    }
    let mut matrix = table.weighted_gram(&picked);
    for (j, charge) in charge.iter().enumerate() {
        matrix[j * width + j] += charge.max(LEAST_CHARGE);
    }
    Cholesky::new(matrix, width, context)
}
