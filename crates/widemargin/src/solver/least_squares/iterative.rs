//! The systems by conjugate gradients on the plane Σ βᵢ = 0, all columns with the same products.
//!
//! A column leaves when the spread of its residual is below the tolerance; at the end every residual is
//! computed afresh, and columns that rounding had left above the tolerance go on from there.

use super::preconditioner::Preconditioner;
use super::{Options, Problem};
use crate::context::{Context, Event};
use crate::error::{Error, Result};
use crate::kernel::MatrixRows;
use crate::solver::algebra::dot;
use crate::outcome::Status;

/// Times that residuals are computed afresh before rounding is taken to stop progress.
const RESTARTS: usize = 5;

/// Share of the tolerance at which a running residual, which rounding moves, counts as solved.
const MARGIN: f64 = 0.5;

/// One column in progress.
struct Column {
    beta: Vec<f64>,
    /// y − (K + diag(r)) β
    residual: Vec<f64>,
    direction: Vec<f64>,
    /// ⟨residual, step⟩ of the last direction.
    slope: f64,
}

pub(super) fn not_positive_definite() -> Error {
    Error::Kernel {
        kernel: "least squares".into(),
        expected: "a positive definite matrix K + I/C".into(),
        found: "one that is not: the kernel is indefinite, or C too large for the precision (a smaller \
                C or f64 helps)"
            .into(),
    }
}

/// β of every column, how it ended and the number of products.
pub(super) fn solve<M: MatrixRows>(
    matrix: &M,
    problem: &Problem,
    options: &Options,
    context: &Context,
) -> Result<(Vec<Vec<f64>>, Status, u64)> {
    let n = matrix.len();
    let preconditioner = Preconditioner::new(matrix, &problem.ridge, context)?;
    keep_rows(matrix, context);
    let mut columns: Vec<Column> = (0..problem.targets.len())
        .map(|c| Column {
            beta: problem.start.get(c).cloned().unwrap_or_else(|| vec![0.0; n]),
            residual: Vec::new(),
            direction: Vec::new(),
            slope: 0.0,
        })
        .collect();
    let mut iterations = 0;
    for _ in 0..RESTARTS {
        for (column, y) in columns.iter_mut().zip(&problem.targets) {
            let product = match column.beta.iter().all(|b| *b == 0.0) {
                true => vec![0.0; n],
                false => matrix.product(&column.beta),
            };
            let ridge = problem.ridge.iter().zip(&column.beta);
            let fitted = product.iter().zip(ridge).map(|(k, (r, b))| k + r * b);
            column.residual = y.iter().zip(fitted).map(|(y, f)| y - f).collect();
            column.direction.clear();
        }
        let mut open: Vec<&mut Column> =
            columns.iter_mut().filter(|c| spread(&c.residual) > options.tol).collect();
        if open.is_empty() {
            break;
        }
        while !open.is_empty() {
            let limit = (iterations >= options.max_iterations).then_some(Status::IterationLimit);
            if let Some(stopped) = context.stop_request().or(limit) {
                return Ok((betas(columns), stopped, iterations));
            }
            advance(matrix, &problem.ridge, &preconditioner, &mut open)?;
            iterations += 1;
            let worst = open.iter().map(|c| spread(&c.residual)).fold(0.0, f64::max);
            if !worst.is_finite() {
                return Err(not_positive_definite());
            }
            context.report(&Event::Iteration {
                iteration: iterations as usize,
                violation: worst,
                objective: open.iter().map(|c| 0.5 * dot(&c.beta, &c.residual)).sum(),
                active: open.len(),
            });
            open.retain(|column| spread(&column.residual) > MARGIN * options.tol);
        }
    }
    // Whether rounding left a violation shows in the certificate.
    Ok((betas(columns), Status::Solved, iterations))
}

fn betas(columns: Vec<Column>) -> Vec<Vec<f64>> {
    columns.into_iter().map(|column| column.beta).collect()
}

/// Difference between the largest and the smallest entry.
fn spread(values: &[f64]) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if values.iter().any(|value| value.is_nan()) { f64::NAN } else { most - least }
}

/// Has as many rows as fit computed and cached, unless computing them again costs less.
fn keep_rows<M: MatrixRows>(matrix: &M, context: &Context) {
    if matrix.is_cheap() {
        return;
    }
    let rows: Vec<u32> = (0..matrix.len().min(matrix.capacity()) as u32).collect();
    for chunk in rows.chunks(256) {
        if context.stop_request().is_none() {
            matrix.fetch(chunk);
        }
    }
}

/// One step of every open column.
fn advance<M: MatrixRows>(
    matrix: &M,
    ridge: &[f64],
    preconditioner: &Preconditioner,
    open: &mut [&mut Column],
) -> Result<()> {
    let n = matrix.len();
    for column in open.iter_mut() {
        let mean = column.residual.iter().sum::<f64>() / n as f64;
        let centred: Vec<f64> = column.residual.iter().map(|g| g - mean).collect();
        let step = preconditioner.step(&centred);
        let slope = dot(&centred, &step);
        if column.direction.is_empty() {
            column.direction = step;
        } else {
            let keep = slope / column.slope;
            let moved = column.direction.iter_mut().zip(&step);
            moved.for_each(|(d, z)| *d = z + keep * *d);
        }
        column.slope = slope;
    }
    let variables: Vec<u32> = (0..n as u32).collect();
    let mut coefficients = Vec::with_capacity(n * open.len());
    for i in 0..n {
        coefficients.extend(open.iter().map(|column| column.direction[i]));
    }
    let mut products = vec![vec![0.0; n]; open.len()];
    matrix.add_products(&variables, &coefficients, &mut products);
    for (column, product) in open.iter_mut().zip(&mut products) {
        let terms = product.iter_mut().zip(ridge).zip(&column.direction);
        terms.for_each(|((p, r), d)| *p += r * d);
        let curvature = dot(&column.direction, product);
        if curvature.is_nan() || curvature <= 0.0 {
            return Err(not_positive_definite());
        }
        let length = column.slope / curvature;
        let Column { beta, residual, direction, .. } = &mut **column;
        beta.iter_mut().zip(&*direction).for_each(|(b, d)| *b += length * d);
        residual.iter_mut().zip(&*product).for_each(|(g, p)| *g -= length * p);
    }
    Ok(())
}
