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
//! Small systems are factored once for all columns; larger ones are solved by conjugate gradients on the
//! plane Σ βᵢ = 0, all columns with the same products over blocks of kernel rows, so that the matrix never
//! exists as a whole.

use crate::context::{Context, Event};
use crate::error::{Error, Result};
use crate::kernel::MatrixRows;
use crate::numeric::algebra::{Cholesky, add_products, dot};
use crate::numeric::simd::Real;
use crate::outcome::{Outcome, Status};

/// Rows fetched at a time.
const FETCHED_ROWS: usize = 256;

/// The order up to which a system is factored: n³/3 operations, a fraction of a second, and 32 MB.
const DIRECT_ORDER: usize = 2000;

/// One or several systems over the same matrix.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    /// y of every column.
    pub targets: Vec<Vec<f64>>,
    /// r > 0, added to the diagonal of K.
    pub ridge: Vec<f64>,
    /// A start for every column, whose mean is taken off; empty: zeros.
    pub start: Vec<Vec<f64>>,
}

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Largest difference accepted between two entries of y − (K + diag(r)) β.
    pub tol: f64,
    /// Limit on the products with the matrix.
    pub max_iterations: u64,
}

/// The solution of one column.
#[derive(Clone, Debug)]
pub(crate) struct Solution {
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
/// [`Error::Kernel`] when K + diag(r) is not positive definite.
///
/// # Panics
/// When the lengths of the problem differ from that of the matrix.
pub(crate) fn solve<M: MatrixRows>(
    matrix: &M,
    problem: &Problem,
    options: &Options,
    context: &Context,
) -> Result<Vec<Solution>> {
    let n = matrix.len();
    assert!(problem.ridge.len() == n && problem.targets.iter().all(|y| y.len() == n));
    assert!(problem.start.iter().all(|beta| beta.len() == n));
    let (columns, status, iterations) = if n <= DIRECT_ORDER {
        solve_directly(matrix, problem, context)?
    } else {
        solve_iteratively(matrix, problem, options, context)?
    };
    let columns = problem.targets.iter().zip(columns);
    let certified = |(y, column): (&Vec<f64>, Column)| {
        certify(y, column, &problem.ridge, options.tol, (status, iterations))
    };
    Ok(columns.map(certified).collect())
}

/// One column with its residual, which is fresh unless a limit or a request ended the work.
struct Column {
    beta: Vec<f64>,
    /// y − (K + diag(r)) β
    residual: Vec<f64>,
    direction: Vec<f64>,
    /// ⟨residual, step⟩ of the last direction.
    slope: f64,
}

impl Column {
    fn new(beta: Vec<f64>, residual: Vec<f64>) -> Self {
        Self { beta, residual, direction: Vec::new(), slope: 0.0 }
    }

    /// β = 0, which is feasible.
    fn zero(y: &[f64]) -> Self {
        Self::new(vec![0.0; y.len()], y.to_vec())
    }
}

/// The solution with its certificate.
fn certify(
    y: &[f64],
    column: Column,
    ridge: &[f64],
    tol: f64,
    (status, iterations): (Status, u64),
) -> Solution {
    let Column { beta, residual, .. } = column;
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    for &value in &residual {
        (least, most) = (least.min(value), most.max(value));
    }
    let bias = 0.5 * (least + most);
    let (mut quadratic, mut linear, mut errors) = (0.0, 0.0, 0.0);
    for i in 0..y.len() {
        let ridged = ridge[i] * beta[i];
        let error = residual[i] + ridged - bias;
        quadratic += 0.5 * beta[i] * (y[i] - ridged - residual[i]);
        linear += beta[i] * (y[i] - 0.5 * ridged);
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

/// Values of the matrix computed between two checks of the time, unless [`FETCHED_ROWS`] rows have more.
const VALUES_BETWEEN_CHECKS: usize = 1 << 22;

/// Rows of a matrix of order n that are multiplied between two checks of the time.
fn rows_between_checks(n: usize) -> usize {
    let blocks = VALUES_BETWEEN_CHECKS / (n.max(1) * FETCHED_ROWS);
    blocks.max(1) * FETCHED_ROWS
}

/// y − (K + diag(r)) β, computed afresh; `None` when the context asks to stop.
fn fresh_residual<M: MatrixRows>(
    matrix: &M,
    y: &[f64],
    ridge: &[f64],
    beta: &[f64],
    context: &Context,
) -> Option<Vec<f64>> {
    let fitted = ridge.iter().zip(beta).map(|(r, b)| r * b);
    let mut residual: Vec<f64> = y.iter().zip(fitted).map(|(y, f)| y - f).collect();
    let rows = rows_between_checks(beta.len());
    for start in (0..beta.len()).step_by(rows) {
        let end = (start + rows).min(beta.len());
        if beta[start..end].iter().all(|b| *b == 0.0) {
            continue;
        }
        if context.stop_request().is_some() {
            return None;
        }
        let mut part = vec![0.0; beta.len()];
        part[start..end].copy_from_slice(&beta[start..end]);
        residual.iter_mut().zip(matrix.product(&part)).for_each(|(r, product)| *r -= product);
    }
    Some(residual)
}

/// β of every column by one Cholesky factor: with H = K + diag(r), η = H⁻¹1 and ν = H⁻¹y the solution is
/// b = 1ᵀν / 1ᵀη and β = ν − bη. Columns that there was no time for are zero.
fn solve_directly<M: MatrixRows>(
    matrix: &M,
    problem: &Problem,
    context: &Context,
) -> Result<(Vec<Column>, Status, u64)> {
    let n = matrix.len();
    let mut entries = Vec::with_capacity(n * n);
    let variables: Vec<u32> = (0..n as u32).collect();
    for chunk in variables.chunks(FETCHED_ROWS) {
        for row in matrix.fetch_joined(chunk, n) {
            entries.extend(row[..n].iter().map(|value| value.to_f64()));
        }
    }
    for (i, ridge) in problem.ridge.iter().enumerate() {
        entries[i * n + i] += ridge;
    }
    let factor = match Cholesky::interruptible(entries, n, context) {
        Err(Error::Interrupted) => {
            let columns = problem.targets.iter().map(|y| Column::zero(y)).collect();
            return Ok((columns, context.stop_request().unwrap_or(Status::Interrupted), 0));
        }
        factor => factor?.ok_or_else(not_positive_definite)?,
    };
    let mut ones = vec![1.0; n];
    factor.solve(&mut ones);
    let total: f64 = ones.iter().sum();
    let solve = |y: &[f64]| {
        context.stop_request().is_none().then_some(())?;
        let mut beta = y.to_vec();
        factor.solve(&mut beta);
        let bias = beta.iter().sum::<f64>() / total;
        beta.iter_mut().zip(&ones).for_each(|(value, one)| *value -= bias * one);
        let residual = fresh_residual(matrix, y, &problem.ridge, &beta, context)?;
        Some(Column::new(beta, residual))
    };
    let mut status = Status::Solved;
    let mut column = |y: &Vec<f64>| {
        solve(y).unwrap_or_else(|| {
            status = context.stop_request().unwrap_or(Status::Interrupted);
            Column::zero(y)
        })
    };
    let columns = problem.targets.iter().map(&mut column).collect();
    Ok((columns, status, 1))
}

/// Times that residuals are computed afresh before rounding is taken to stop progress.
const RESTARTS: usize = 5;

/// Share of the tolerance at which a running residual, which rounding moves, counts as solved.
const MARGIN: f64 = 0.5;

fn not_positive_definite() -> Error {
    Error::kernel(
        "least squares",
        "a positive definite matrix K + I/C",
        "one that is not: the kernel is indefinite, or C too large for the precision (a smaller \
                C or f64 helps)",
    )
}

/// Every column, how it ended and the number of products.
fn solve_iteratively<M: MatrixRows>(
    matrix: &M,
    problem: &Problem,
    options: &Options,
    context: &Context,
) -> Result<(Vec<Column>, Status, u64)> {
    let ridge = &problem.ridge;
    let mut columns: Vec<Column> = problem.targets.iter().map(|y| Column::zero(y)).collect();
    for (column, start) in columns.iter_mut().zip(&problem.start) {
        // The residual is y so far; without that of the start there is nothing to go on from.
        let beta = centred(start);
        let residual = fresh_residual(matrix, &column.residual, ridge, &beta, context);
        *column = Column::new(beta, residual.ok_or(Error::Interrupted)?);
    }
    let preconditioner = match Preconditioner::new(matrix, ridge, context) {
        Err(Error::Interrupted) => {
            return Ok((columns, context.stop_request().unwrap_or(Status::Interrupted), 0));
        }
        made => made?,
    };
    keep_rows(matrix, context);
    let mut iterations = 0;
    for _ in 0..RESTARTS {
        let mut open: Vec<&mut Column> =
            columns.iter_mut().filter(|c| spread(&c.residual) > options.tol).collect();
        if open.is_empty() {
            break;
        }
        open.iter_mut().for_each(|column| column.direction.clear());
        let stopped =
            descend(matrix, ridge, &preconditioner, &mut open, options, &mut iterations, context)?;
        if let Some(status) = stopped {
            return Ok((columns, status, iterations));
        }
        for (column, y) in columns.iter_mut().zip(&problem.targets) {
            match fresh_residual(matrix, y, ridge, &column.beta, context) {
                Some(residual) => column.residual = residual,
                None => {
                    let status = context.stop_request().unwrap_or(Status::Interrupted);
                    return Ok((columns, status, iterations));
                }
            }
        }
    }
    // Whether rounding left a violation shows in the certificate.
    Ok((columns, Status::Solved, iterations))
}

/// Steps until the running residuals of all open columns are small enough; why it ended otherwise.
fn descend<M: MatrixRows>(
    matrix: &M,
    ridge: &[f64],
    preconditioner: &Preconditioner,
    open: &mut Vec<&mut Column>,
    options: &Options,
    iterations: &mut u64,
    context: &Context,
) -> Result<Option<Status>> {
    while !open.is_empty() {
        if *iterations >= options.max_iterations {
            return Ok(context.stop_request().or(Some(Status::IterationLimit)));
        }
        match advance(matrix, ridge, preconditioner, open, context) {
            Err(Error::Interrupted) => {
                return Ok(context.stop_request().or(Some(Status::Interrupted)));
            }
            other => other?,
        }
        *iterations += 1;
        let worst = open.iter().map(|c| spread(&c.residual)).fold(0.0, f64::max);
        if !worst.is_finite() {
            return Err(not_positive_definite());
        }
        context.report(&Event::Iteration {
            iteration: *iterations as usize,
            violation: worst,
            objective: open.iter().map(|c| 0.5 * dot(&c.beta, &c.residual)).sum(),
            active: open.len(),
        });
        open.retain(|column| spread(&column.residual) > MARGIN * options.tol);
    }
    Ok(None)
}

/// The values less their mean.
fn centred(values: &[f64]) -> Vec<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| value - mean).collect()
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
    for chunk in rows.chunks(FETCHED_ROWS) {
        if context.stop_request().is_none() {
            matrix.fetch(chunk);
        }
    }
}

/// One step of every open column.
///
/// # Errors
/// [`Error::Interrupted`], before any column has moved, when the context asks to stop.
fn advance<M: MatrixRows>(
    matrix: &M,
    ridge: &[f64],
    preconditioner: &Preconditioner,
    open: &mut [&mut Column],
    context: &Context,
) -> Result<()> {
    let n = matrix.len();
    for column in open.iter_mut() {
        context.checkpoint()?;
        let gradient = centred(&column.residual);
        let step = preconditioner.step(&gradient);
        let slope = dot(&gradient, &step);
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
    let rows = rows_between_checks(n);
    let blocks = variables.chunks(rows).zip(coefficients.chunks(rows * open.len()));
    for (variables, coefficients) in blocks {
        context.checkpoint()?;
        matrix.add_products(variables, coefficients, &mut products);
    }
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

/// Largest diagonal entry of the remainder, as a share of the largest of K, at which the factor is
/// complete to single precision.
const COMPLETE: f64 = 1e-6;

/// M = LLᵀ + diag(r), L the first columns of a pivoted Cholesky factor of K, and its inverse on the plane
/// Σ βᵢ = 0.
///
/// With D = diag(r), M⁻¹ = D⁻¹ − D⁻¹L (I + LᵀD⁻¹L)⁻¹ LᵀD⁻¹ (Woodbury). The step of a projected conjugate
/// gradient method (Gould, Hribar and Nocedal, 2001) is z = M⁻¹g − (1ᵀM⁻¹g / 1ᵀM⁻¹1) M⁻¹1.
struct Preconditioner {
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
    /// # Errors
    /// [`Error::Interrupted`] when the context asks to stop.
    fn new<M: MatrixRows>(matrix: &M, ridge: &[f64], context: &Context) -> Result<Self> {
        let factor = pivoted_columns(matrix, context)?;
        let inverse_ridge: Vec<f64> = ridge.iter().map(|r| 1.0 / r).collect();
        let (n, r) = (ridge.len(), factor.len());
        let mut inner = vec![0.0; r * r];
        (0..r).for_each(|i| inner[i * r + i] = 1.0);
        let scales: Vec<f64> = inverse_ridge.iter().map(|d| d.sqrt()).collect();
        for start in (0..n).step_by(FETCHED_ROWS) {
            let rows = start..(start + FETCHED_ROWS).min(n);
            let scaled = |column: &Vec<f64>| -> Vec<f64> {
                column[rows.clone()].iter().zip(&scales[rows.clone()]).map(|(l, d)| l * d).collect()
            };
            let panel: Vec<f64> = factor.iter().flat_map(scaled).collect();
            add_products(&mut inner, r, &panel, rows.len(), context)?;
        }
        let inner = match r {
            0 => None,
            _ => Some(
                Cholesky::interruptible(inner, r, context)?.ok_or_else(not_positive_definite)?,
            ),
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
    fn step(&self, g: &[f64]) -> Vec<f64> {
        let mut z = self.inverse(g);
        let (ones, total) = &self.ones;
        let factor = z.iter().sum::<f64>() / total;
        z.iter_mut().zip(ones).for_each(|(z, one)| *z -= factor * one);
        z
    }
}

/// Columns of the Cholesky factor of K, the largest remaining diagonal entry first.
fn pivoted_columns<M: MatrixRows>(matrix: &M, context: &Context) -> Result<Vec<Vec<f64>>> {
    let n = matrix.len();
    let mut rest: Vec<f64> = (0..n).map(|v| matrix.diagonal(v)).collect();
    let smallest = COMPLETE * rest.iter().copied().fold(0.0, f64::max);
    let mut columns: Vec<Vec<f64>> = Vec::new();
    while columns.len() < rank(n) {
        context.checkpoint()?;
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
    Ok(columns)
}
