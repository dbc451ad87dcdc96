//! M = LLᵀ + diag(r), L the first columns of a pivoted Cholesky factor of K, and its inverse on the
//! plane Σ βᵢ = 0.
//!
//! With D = diag(r), M⁻¹ = D⁻¹ − D⁻¹L (I + LᵀD⁻¹L)⁻¹ LᵀD⁻¹ (Woodbury). The step of a projected conjugate
//! gradient method (Gould, Hribar and Nocedal, 2001) is z = M⁻¹g − (1ᵀM⁻¹g / 1ᵀM⁻¹1) M⁻¹1.

use super::iterative::not_positive_definite;
use crate::context::Context;
use crate::error::Result;
use crate::kernel::MatrixRows;
use crate::numeric::simd::Real;
use crate::solver::algebra::{Cholesky, dot};

/// Largest diagonal entry of the remainder, as a share of the largest of K, at which the factor is
/// complete to single precision.
const COMPLETE: f64 = 1e-6;

pub(super) struct Preconditioner {
    inverse_ridge: Vec<f64>,
    /// The columns of L.
    factor: Vec<Vec<f64>>,
    /// I + LᵀD⁻¹L
    inner: Option<Cholesky>,
    /// M⁻¹1 and its sum.
    ones: (Vec<f64>, f64),
}

/// The number of columns whose making, n r² operations, costs what sixteen products with K cost.
fn rank(n: usize) -> usize {
    ((16.0 * n as f64).sqrt() as usize).min(n / 2)
}

impl Preconditioner {
    pub(super) fn new<M: MatrixRows>(
        matrix: &M,
        ridge: &[f64],
        context: &Context,
    ) -> Result<Self> {
        let factor = pivoted_columns(matrix, context);
        let inverse_ridge: Vec<f64> = ridge.iter().map(|r| 1.0 / r).collect();
        let r = factor.len();
        let mut inner = vec![0.0; r * r];
        for (i, left) in factor.iter().enumerate() {
            let scaled: Vec<f64> = left.iter().zip(&inverse_ridge).map(|(l, d)| l * d).collect();
            for (j, right) in factor[..=i].iter().enumerate() {
                inner[i * r + j] = dot(&scaled, right) + if i == j { 1.0 } else { 0.0 };
            }
        }
        let inner = match r {
            0 => None,
            _ => Some(Cholesky::new(inner, r, context)?.ok_or_else(not_positive_definite)?),
        };
        let mut made = Self { inverse_ridge, factor, inner, ones: (Vec::new(), 1.0) };
        let ones = made.inverse(&vec![1.0; ridge.len()]);
        let total = ones.iter().sum();
        made.ones = (ones, total);
        Ok(made)
    }

    /// M⁻¹g
    fn inverse(&self, g: &[f64]) -> Vec<f64> {
        let mut z: Vec<f64> = g.iter().zip(&self.inverse_ridge).map(|(g, d)| g * d).collect();
        if let Some(inner) = &self.inner {
            let mut small: Vec<f64> = self.factor.iter().map(|column| dot(column, &z)).collect();
            inner.solve(&mut small);
            let mut correction = vec![0.0; g.len()];
            for (column, s) in self.factor.iter().zip(small) {
                correction.iter_mut().zip(column).for_each(|(c, l)| *c += s * l);
            }
            let corrected = z.iter_mut().zip(&correction).zip(&self.inverse_ridge);
            corrected.for_each(|((z, c), d)| *z -= c * d);
        }
        z
    }

    /// The step for a residual g, whose entries have the sum 0.
    pub(super) fn step(&self, g: &[f64]) -> Vec<f64> {
        let mut z = self.inverse(g);
        let (ones, total) = &self.ones;
        let factor = z.iter().sum::<f64>() / total;
        z.iter_mut().zip(ones).for_each(|(z, one)| *z -= factor * one);
        z
    }
}

/// Columns of the Cholesky factor of K, the largest remaining diagonal entry first.
fn pivoted_columns<M: MatrixRows>(matrix: &M, context: &Context) -> Vec<Vec<f64>> {
    let n = matrix.len();
    let mut rest: Vec<f64> = (0..n).map(|v| matrix.diagonal(v)).collect();
    let smallest = COMPLETE * rest.iter().copied().fold(0.0, f64::max);
    let mut columns: Vec<Vec<f64>> = Vec::new();
    while columns.len() < rank(n) && context.stop_request().is_none() {
        let largest = |best: usize, v: usize| if rest[v] > rest[best] { v } else { best };
        let pivot = (1..n).fold(0, largest);
        if rest[pivot].is_nan() || rest[pivot] <= smallest {
            break;
        }
        let row = matrix.fetch_joined(&[pivot as u32], n).remove(0);
        let mut column: Vec<f64> = row[..n].iter().map(|value| value.to_f64()).collect();
        for earlier in &columns {
            let factor = earlier[pivot];
            column.iter_mut().zip(earlier).for_each(|(c, e)| *c -= factor * e);
        }
        let scale = 1.0 / rest[pivot].sqrt();
        for (value, rest) in column.iter_mut().zip(&mut rest) {
            *value *= scale;
            *rest -= *value * *value;
        }
        rest[pivot] = 0.0;
        columns.push(column);
    }
    columns
}
