//! The distance of an expansion from the one it stands for, and the weights that make it smallest.

use rayon::prelude::*;

use super::bottom_up::Expansion;
use super::rule::Rule;
use crate::context::Context;
use crate::data::{Dense, Matrix};
use crate::error::Result;
use crate::kernel::KernelBlocks;

/// Rows of a table of similarities that one task computes.
const TASK_ROWS: usize = 64;

/// Added to the diagonal before factorising, relative to its mean.
const JITTER: f64 = 1e-12;

/// What the engine says of every vector of `left` and every one of `right`, row by row.
pub(super) fn similarities(
    rule: &Rule,
    left: &[Vec<f64>],
    right: &[Vec<f64>],
    context: &Context,
) -> Result<Vec<f64>> {
    let columns = right.first().map_or(0, Vec::len);
    let table =
        |rows: &[Vec<f64>]| Dense::new(rows.len(), columns, rows.concat()).map(Matrix::DenseF64);
    let (queries, n) = (table(left)?, right.len());
    let blocks =
        KernelBlocks::<f64>::new(&rule.base(), &table(right)?, None, context.instruction_set())?;
    let mut values = vec![0.0; left.len() * n];
    let task = |(t, out): (usize, &mut [f64])| -> Result<()> {
        let rows = out.len() / n.max(1);
        let start = t * TASK_ROWS;
        let ready = blocks.prepare(&queries, start..start + rows)?;
        blocks.query_block(&ready, 0..rows, 0..n, out, n);
        Ok(())
    };
    let chunk = TASK_ROWS * n.max(1);
    context.install(|| {
        if context.is_parallel() {
            values.par_chunks_mut(chunk).enumerate().try_for_each(task)
        } else {
            values.chunks_mut(chunk).enumerate().try_for_each(task)
        }
    })?;
    Ok(values)
}

/// Tables of kernel values between a reduced expansion and the original.
pub(super) struct Tables {
    /// K(zⱼ, zₗ)
    pub(super) among: Vec<f64>,
    /// Σᵢ αᵢK(zⱼ, xᵢ)
    pub(super) towards: Vec<f64>,
}

impl Tables {
    pub(super) fn new(
        rule: &Rule,
        reduced: &[Vec<f64>],
        original: &Expansion,
        context: &Context,
    ) -> Result<Self> {
        let mut among = similarities(rule, reduced, reduced, context)?;
        among.iter_mut().for_each(|base| *base = rule.value(*base));
        let across = similarities(rule, reduced, &original.vectors, context)?;
        let towards = across
            .chunks(original.vectors.len().max(1))
            .map(|row| row.iter().zip(&original.weights).map(|(&b, w)| w * rule.value(b)).sum())
            .collect();
        Ok(Self { among, towards })
    }

    /// βᵀK^{zz}β − 2βᵀK^{zx}α, the squared residual without its constant part.
    pub(super) fn partial_residual(&self, weights: &[f64]) -> f64 {
        let n = weights.len();
        let mut sum = 0.0;
        for (j, &weight) in weights.iter().enumerate() {
            let row = &self.among[j * n..(j + 1) * n];
            let among: f64 = row.iter().zip(weights).map(|(k, w)| k * w).sum();
            sum += weight * (among - 2.0 * self.towards[j]);
        }
        sum
    }

    /// The weights of least residual, (K^{zz})⁻¹K^{zx}α (Nguyen 2006, Proposition 5), or `None` when
    /// the vectors depend on each other too much.
    pub(super) fn best_weights(&self) -> Option<Vec<f64>> {
        let n = self.towards.len();
        let trace: f64 = (0..n).map(|j| self.among[j * n + j]).sum();
        let mut factor = self.among.clone();
        for j in 0..n {
            factor[j * n + j] += JITTER * trace / n as f64;
        }
        factorise(&mut factor, n)?;
        let mut weights = self.towards.clone();
        for i in 0..n {
            let (done, rest) = weights.split_at_mut(i);
            rest[0] = (rest[0] - dot(&factor[i * n..i * n + i], done)) / factor[i * n + i];
        }
        for i in (0..n).rev() {
            let mut sum = weights[i];
            for l in i + 1..n {
                sum -= factor[l * n + i] * weights[l];
            }
            weights[i] = sum / factor[i * n + i];
        }
        weights.iter().all(|w| w.is_finite()).then_some(weights)
    }
}

/// ‖Ψ‖² of an expansion.
pub(super) fn squared_norm(rule: &Rule, expansion: &Expansion, context: &Context) -> Result<f64> {
    let tables = Tables::new(rule, &expansion.vectors, expansion, context)?;
    Ok(tables.towards.iter().zip(&expansion.weights).map(|(t, w)| t * w).sum())
}

/// Largest change of the function at the original's vectors.
pub(super) fn largest_difference(
    rule: &Rule,
    reduced: &Expansion,
    original: &Expansion,
    context: &Context,
) -> Result<f64> {
    let at = |expansion: &Expansion| -> Result<Vec<f64>> {
        let table = similarities(rule, &original.vectors, &expansion.vectors, context)?;
        let rows = table.chunks(expansion.vectors.len().max(1));
        let sum = |row: &[f64]| -> f64 {
            row.iter().zip(&expansion.weights).map(|(&b, w)| w * rule.value(b)).sum()
        };
        Ok(rows.map(sum).collect())
    };
    let (before, after) = (at(original)?, at(reduced)?);
    Ok(before.iter().zip(&after).map(|(b, a)| (b - a).abs()).fold(0.0, f64::max))
}

/// Cholesky's factor in the lower triangle; `None` when the matrix is not positive definite.
fn factorise(matrix: &mut [f64], n: usize) -> Option<()> {
    for i in 0..n {
        let (above, row) = matrix.split_at_mut(i * n);
        for j in 0..i {
            let other = &above[j * n..j * n + j];
            row[j] = (row[j] - dot(&row[..j], other)) / above[j * n + j];
        }
        let square = row[i] - dot(&row[..i], &row[..i]);
        if square.is_nan() || square <= 0.0 {
            return None;
        }
        row[i] = square.sqrt();
    }
    Some(())
}

/// Σ aᵢbᵢ with four sums side by side.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (wide_a, wide_b) = (a.chunks_exact(4), b.chunks_exact(4));
    let tail: f64 = wide_a.remainder().iter().zip(wide_b.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in wide_a.zip(wide_b) {
        for lane in 0..4 {
            sums[lane] += x[lane] * y[lane];
        }
    }
    sums[0] + sums[1] + sums[2] + sums[3] + tail
}
