//! The system by one Cholesky factor: with H = K + diag(r), η = H⁻¹1 and ν = H⁻¹y the solution is
//! b = 1ᵀν / 1ᵀη and β = ν − bη.

use super::Problem;
use super::iterative::not_positive_definite;
use crate::context::Context;
use crate::error::Result;
use crate::kernel::MatrixRows;
use crate::numeric::simd::Real;
use crate::solver::algebra::Cholesky;

/// Rows fetched at a time.
const ROWS: usize = 256;

/// β of every column.
pub(super) fn solve<M: MatrixRows>(
    matrix: &M,
    problem: &Problem,
    context: &Context,
) -> Result<Vec<Vec<f64>>> {
    let n = matrix.len();
    let mut entries = Vec::with_capacity(n * n);
    let variables: Vec<u32> = (0..n as u32).collect();
    for chunk in variables.chunks(ROWS) {
        for row in matrix.fetch_joined(chunk, n) {
            entries.extend(row[..n].iter().map(|value| value.to_f64()));
        }
    }
    for (i, ridge) in problem.ridge.iter().enumerate() {
        entries[i * n + i] += ridge;
    }
    let factor = Cholesky::new(entries, n, context)?.ok_or_else(not_positive_definite)?;
    let mut ones = vec![1.0; n];
    factor.solve(&mut ones);
    let total: f64 = ones.iter().sum();
    let column = |y: &Vec<f64>| {
        let mut beta = y.clone();
        factor.solve(&mut beta);
        let bias = beta.iter().sum::<f64>() / total;
        beta.iter_mut().zip(&ones).for_each(|(value, one)| *value -= bias * one);
        beta
    };
    Ok(problem.targets.iter().map(column).collect())
}
