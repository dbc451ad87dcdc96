//! A proof that no point is better: the bound a + Σz + N λ_min(A − diag z) of the Lagrangian at (λ, t).
//!
//! λ_min is never taken from an eigenvalue routine alone: A − diag z + δ is factored (Cholesky), and δ grows until
//! that succeeds, so that the bound holds up to the rounding of the factorisation, which is subtracted too.

use super::problem::{Constraint, Problem};
use super::saddle::Point;
use crate::context::Context;
use crate::error::Result;
use crate::numeric::algebra::{Cholesky, dot, eigen_interruptible, leading_eigenvectors};

/// Orders up to which all eigenvalues are computed, rather than some by Lanczos' method.
const DENSE: usize = 256;

/// Most directions of negative curvature that are returned.
pub(super) const MAX_DIRECTIONS: usize = 4;

/// A lower bound, and where it shows that V can be improved by another column.
pub(super) struct Certificate {
    /// The bound.
    pub bound: f64,
    /// Unit eigenvectors of negative eigenvalues, the most negative first.
    pub directions: Vec<Vec<f64>>,
}

/// The bound at a point; eigenvalues above −`slack` count as not negative.
///
/// # Errors
/// `Error::Interrupted` when the context asks to stop.
pub(super) fn certify(
    problem: &Problem,
    point: &Point,
    slack: f64,
    context: &Context,
) -> Result<Certificate> {
    let (order, width) = (problem.vertices, point.width);
    let slope = point.slope.max(0.0);
    let mut matrix = lagrangian(problem, &point.inner.lambda, slope);
    let rows = point.v.chunks_exact(width).zip(point.euclidean.chunks_exact(width));
    let z: Vec<f64> = rows.map(|(v, e)| 0.5 * dot(v, e)).collect();
    (0..order).for_each(|i| matrix[i * order + i] -= z[i]);
    let constant = match problem.constraint {
        Constraint::Free => 0.0,
        Constraint::Sum { limit } => -slope * limit,
        Constraint::Counted { least } => slope * least,
    } + problem.price * problem.size as f64;
    let base = constant + z.iter().sum::<f64>();
    if let Some(shift) = proven_shift(&matrix, order, slack, context)? {
        return Ok(Certificate { bound: base - order as f64 * shift, directions: Vec::new() });
    }
    let (values, directions) = most_negative(&matrix, order, slack, context)?;
    let mut shift = values.first().map_or(slack, |value| -value).max(slack);
    loop {
        shift = (1.01 * shift).max(f64::MIN_POSITIVE);
        if shift.is_infinite() {
            // Entries that are no numbers: nothing can be proven of them.
            return Ok(Certificate { bound: f64::NEG_INFINITY, directions: Vec::new() });
        }
        if let Some(shift) = proven_shift(&matrix, order, shift, context)? {
            return Ok(Certificate { bound: base - order as f64 * shift, directions });
        }
        shift *= 1.5;
    }
}

/// What is to be added to the diagonal for the matrix to be positive semidefinite, if `shift` and the rounding
/// of a factorisation are enough (Higham 2002, theorem 10.3: at most (n + 1) ε times the trace).
pub(super) fn proven_shift(
    matrix: &[f64],
    order: usize,
    shift: f64,
    context: &Context,
) -> Result<Option<f64>> {
    let mut shifted = matrix.to_vec();
    (0..order).for_each(|i| shifted[i * order + i] += shift);
    let diagonal = (0..order).map(|i| shifted[i * order + i]);
    if diagonal.clone().any(|value| value.is_nan()) {
        return Ok(Some(f64::INFINITY));
    }
    let trace: f64 = diagonal.map(f64::abs).sum();
    let rounding = (order + 1) as f64 * f64::EPSILON * trace;
    let factor = Cholesky::interruptible(shifted, order, context)?;
    Ok(factor.map(|_| shift + rounding))
}

/// The most negative eigenvalues below −`slack`, ascending, and their eigenvectors.
fn most_negative(
    matrix: &[f64],
    order: usize,
    slack: f64,
    context: &Context,
) -> Result<(Vec<f64>, Vec<Vec<f64>>)> {
    if order <= DENSE {
        let negated = matrix.iter().map(|value| -value).collect();
        let eigen = eigen_interruptible(negated, order, context)?;
        let count = eigen.values.iter().take(MAX_DIRECTIONS).filter(|v| **v > slack).count();
        let vectors = (0..count).map(|i| eigen.vector(i).to_vec()).collect();
        return Ok((eigen.values[..count].iter().map(|value| -value).collect(), vectors));
    }
    let product = |block: &[Vec<f64>]| {
        Ok(context.map(block, |vector| {
            matrix.chunks_exact(order).map(|row| -dot(row, vector)).collect::<Vec<f64>>()
        }))
    };
    let largest = matrix.chunks_exact(order).enumerate().map(|(i, row)| row[i].abs());
    let tolerance = (0.1 * slack).max(1e-10 * largest.fold(0.0, f64::max));
    let found = leading_eigenvectors(order, MAX_DIRECTIONS, tolerance, product, context)?;
    let count = found.values.iter().filter(|value| **value > slack).count();
    let values = found.values[..count].iter().map(|value| -value - found.residual).collect();
    Ok((values, found.vectors.into_iter().take(count).collect()))
}

/// The matrix A of the Lagrangian at (λ, t).
pub(super) fn lagrangian(problem: &Problem, lambda: &[f64], slope: f64) -> Vec<f64> {
    let (n, order) = (problem.size, problem.vertices);
    let mut matrix = vec![0.0; order * order];
    let anchored = problem.is_anchored();
    let sum = match problem.constraint {
        Constraint::Sum { .. } => slope,
        _ => 0.0,
    };
    let lengths = problem.length_factor(slope);
    for i in 0..n {
        let gram = &problem.gram[i * n..][..n];
        for j in 0..n {
            let (own, other) = (problem.balance[i], problem.balance[j]);
            let mut weight = sum * own * other - 0.5 * gram[j] * lambda[i] * lambda[j];
            if i == j {
                weight += lambda[i] + lengths;
            }
            let (row, column) = (problem.vertex[i], problem.vertex[j]);
            matrix[row * order + column] += problem.own[i] * problem.own[j] * weight;
            if anchored {
                matrix[0] += problem.anchor[i] * problem.anchor[j] * weight;
                matrix[column] += problem.anchor[i] * problem.own[j] * weight;
                matrix[row * order] += problem.own[i] * problem.anchor[j] * weight;
            }
        }
    }
    matrix
}
