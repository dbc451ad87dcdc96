//! Least-squares support vector machines: one symmetric linear system instead of a quadratic program.
//!
//! For every column y of targets the solver minimises ½ βᵀ(K + diag(r)) β − yᵀβ subject to Σ βᵢ = 0,
//! whose optimality condition is the system of Suykens and Vandewalle (1999)
//!
//! ```text
//! | 0   1ᵀ          | |b|   |0|
//! | 1   K + diag(r) | |β| = |y|
//! ```
//!
//! Small systems are factored once for all columns ([`direct`]); larger ones are solved by conjugate
//! gradients whose preconditioner keeps the sum of β ([`iterative`]), with products over blocks of kernel
//! rows, so that the matrix never exists as a whole.

mod direct;
mod iterative;
mod preconditioner;

use crate::context::Context;
use crate::error::Result;
use crate::kernel::MatrixRows;
use crate::outcome::{Outcome, Status};

/// The order up to which a system is factored: n³/3 operations, a fraction of a second, and 32 MB.
const DIRECT_ORDER: usize = 2000;

/// One or several systems over the same matrix.
#[derive(Clone, Debug)]
pub struct Problem {
    /// y of every column.
    pub targets: Vec<Vec<f64>>,
    /// r > 0, added to the diagonal of K.
    pub ridge: Vec<f64>,
    /// A start for every column with Σ βᵢ = 0; empty: zeros.
    pub start: Vec<Vec<f64>>,
}

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Largest difference accepted between two entries of y − (K + diag(r)) β.
    pub tol: f64,
    /// Limit on the products with the matrix.
    pub max_iterations: u64,
}

/// The solution of one column.
#[derive(Clone, Debug)]
pub struct Solution {
    /// β
    pub beta: Vec<f64>,
    /// b
    pub bias: f64,
    /// What was reached; the KKT violation is the spread of the residual y − (K + diag(r)) β.
    pub outcome: Outcome,
}

/// Solves all columns.
///
/// # Errors
/// [`Error::Kernel`](crate::Error::Kernel) when K + diag(r) is not positive definite.
///
/// # Panics
/// When the lengths of the problem differ from that of the matrix.
pub fn solve<M: MatrixRows>(
    matrix: &M,
    problem: &Problem,
    options: &Options,
    context: &Context,
) -> Result<Vec<Solution>> {
    let n = matrix.len();
    assert!(problem.ridge.len() == n && problem.targets.iter().all(|y| y.len() == n));
    assert!(problem.start.iter().all(|beta| beta.len() == n));
    let (betas, status, iterations) = if n <= DIRECT_ORDER {
        (direct::solve(matrix, problem, context)?, Status::Solved, 1)
    } else {
        iterative::solve(matrix, problem, options, context)?
    };
    let columns = problem.targets.iter().zip(betas);
    Ok(columns
        .map(|(y, beta)| {
            let product = matrix.product(&beta);
            certify(y, beta, &product, &problem.ridge, options.tol, (status, iterations))
        })
        .collect())
}

/// The solution with its certificate, from a fresh product Kβ.
fn certify(
    y: &[f64],
    beta: Vec<f64>,
    product: &[f64],
    ridge: &[f64],
    tol: f64,
    (status, iterations): (Status, u64),
) -> Solution {
    let residual = |i: usize| y[i] - product[i] - ridge[i] * beta[i];
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in (0..y.len()).map(residual) {
        (least, most) = (least.min(value), most.max(value));
    }
    let bias = 0.5 * (least + most);
    let (mut quadratic, mut linear, mut errors) = (0.0, 0.0, 0.0);
    for i in 0..y.len() {
        let error = y[i] - product[i] - bias;
        quadratic += 0.5 * beta[i] * product[i];
        linear += beta[i] * (y[i] - 0.5 * ridge[i] * beta[i]);
        errors += 0.5 * error * error / ridge[i];
    }
    let violation = most - least;
    let status = match status {
        Status::Solved if violation <= tol => Status::Solved,
        Status::Solved if violation <= 10.0 * tol => Status::AlmostSolved,
        Status::Solved => Status::NumericalTrouble,
        stopped => stopped,
    };
    let outcome = Outcome {
        status,
        primal: quadratic + errors,
        dual: linear - quadratic,
        violation,
        iterations,
        blocks: 0,
        kernel_rows: 0,
    };
    Solution { beta, bias, outcome }
}
