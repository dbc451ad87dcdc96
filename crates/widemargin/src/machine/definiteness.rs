//! Warns about kernels that are not positive semidefinite on the rows that a machine learns from.
//!
//! Eigenvalues of a principal submatrix lie between those of the matrix (Cauchy), so that a negative one of some rows
//! is proof for all; a sample without one proves nothing. Kernels that are positive semidefinite by their formula are
//! not tested.

use crate::context::{Context, Event};
use crate::data::{Matrix, memory};
use crate::error::{Error, Result};
use crate::kernel::{Definiteness, Gram, Kernel, KernelBlocks};
use crate::machine::Precision;
use crate::machine::model::Model;
use crate::numeric::algebra::{Cholesky, add, dot, eigen_interruptible};
use crate::numeric::random::Generator;
use crate::numeric::simd::Real;

/// Rows that are tested whatever that costs: some tens of microseconds.
const FEW: usize = 32;

/// Most rows that are tested, which bounds the memory for their matrix.
const MOST: usize = 1000;

/// Most rows that are tested where none are packed: their kernel values cost no more than a few support vectors.
const MOST_PACKED: usize = 256;

/// Rows over tested ones at least: their values are at most one in 64 of all.
const SHARE: usize = 8;

/// What a step of a factorisation in double precision costs in products of the kernel engine, times what a training
/// that computes a tenth of all values may lose, one in 20.
const FACTOR_COST: usize = 200;

/// Products that reading a given value and a step of the solver over it count as.
const LEAST_PRODUCTS: usize = 16;

/// Order up to which all eigenvalues are computed rather than one by Lanczos' method.
const ALL_EIGENVALUES: usize = 128;

/// Steps of Lanczos' method.
const STEPS: usize = 100;

/// What a sample of the rows says about a kernel.
pub(super) enum Found {
    /// No eigenvalue that is negative beyond rounding.
    Nothing,
    /// A negative eigenvalue.
    Negative(f64),
    /// What values differ by the order of their two rows.
    Asymmetric(String),
}

/// Warns when the kernel is not positive semidefinite on some of the rows; returns the negative eigenvalue.
///
/// # Errors
/// [`Error::OutOfMemory`] when there is no room for the matrix of a sample.
pub(super) fn warn<T: Real>(
    kernel: &Kernel,
    blocks: &KernelBlocks<T>,
    context: &Context,
) -> Result<Option<f64>> {
    if kernel.is_semidefinite() || blocks.len() == 0 {
        return Ok(None);
    }
    let rows = sample(blocks);
    match test(blocks, &rows, context) {
        // The training ends at its first look at the clock, with what it has.
        Err(Error::Interrupted) => Ok(None),
        found => Ok(report(found?, rows.len(), blocks.len(), context)),
    }
}

/// As [`warn`] for trainings that do not pack all rows: on a few hundred of them, evenly spread.
///
/// # Errors
/// Those of a kernel that does not suit the rows.
pub(super) fn warn_of_rows(
    kernel: &Kernel,
    features: &Matrix,
    context: &Context,
) -> Result<Option<f64>> {
    let n = features.rows();
    if kernel.is_semidefinite() || n == 0 {
        return Ok(None);
    }
    let rows = spread(n, (n / SHARE).clamp(FEW, MOST_PACKED));
    let blocks = KernelBlocks::<f64>::new(kernel, features, Some(&rows), context)?;
    match test(&blocks, &(0..rows.len()).collect::<Vec<_>>(), context) {
        Err(Error::Interrupted) => Ok(None),
        found => Ok(report(found?, rows.len(), n, context)),
    }
}

/// Warns of what was found over some of the rows; returns the negative eigenvalue.
fn report(found: Found, over: usize, of: usize, context: &Context) -> Option<f64> {
    let (message, negative) = match found {
        Found::Nothing => return None,
        Found::Asymmetric(found) => (format!("the kernel is not symmetric: {found}"), None),
        Found::Negative(smallest) => {
            let message = format!(
                "the kernel is not positive semidefinite: its matrix over {over} of the {of} rows has the \
                 eigenvalue {smallest:.3e}, so that the training may end at a local optimum"
            );
            (message, Some(smallest))
        }
    };
    context.report(&Event::Warning { message });
    negative
}

/// The model with a negative eigenvalue of its kernel in the training record.
pub(super) fn noted(mut model: Model, negative: Option<f64>) -> Model {
    if let (Some(training), Some(value)) = (&mut model.training, negative) {
        training.parameters.push(("negative-eigenvalue".into(), value.into()));
    }
    model
}

/// Rows evenly spread, with the one of the smallest diagonal value among them: so many that training takes a few
/// percent longer at most.
fn sample<T: Real>(blocks: &KernelBlocks<T>) -> Vec<usize> {
    let n = blocks.len();
    let products = blocks.products_per_value().max(LEAST_PRODUCTS) as f64;
    let affordable = ((n as f64).powi(2) * products / FACTOR_COST as f64).cbrt() as usize;
    let mut rows = spread(n, affordable.min(n / SHARE).clamp(FEW, MOST));
    let diagonal = blocks.diagonal();
    let least = (0..n).min_by(|&i, &j| diagonal[i].to_f64().total_cmp(&diagonal[j].to_f64()));
    if let Some(least) = least.filter(|row| !rows.contains(row)) {
        rows.push(least);
    }
    rows
}

/// Up to `most` of `n` rows, evenly spread.
pub(super) fn spread(n: usize, most: usize) -> Vec<usize> {
    (0..n.min(most)).map(|i| i * n / n.min(most)).collect()
}

/// Looks for a negative eigenvalue over some rows. Values that are not finite are an error elsewhere.
pub(super) fn test<T: Real>(
    blocks: &KernelBlocks<T>,
    rows: &[usize],
    context: &Context,
) -> Result<Found> {
    memory::check(|| "a matrix to test".into(), 24 * (rows.len() as u128).pow(2))?;
    match matrix_of(blocks, rows) {
        Ok(gram) => {
            let found = negative_eigenvalue::<T>(&gram, context)?;
            Ok(found.map_or(Found::Nothing, Found::Negative))
        }
        Err(Error::Kernel { found, .. }) => Ok(Found::Asymmetric(found)),
        Err(_) => Ok(Found::Nothing),
    }
}

/// The matrix of some rows.
pub(super) fn matrix_of<T: Real>(blocks: &KernelBlocks<T>, rows: &[usize]) -> Result<Gram> {
    let count = rows.len();
    let subset = blocks.subset(rows);
    let mut values = vec![T::ZERO; count * count];
    let mut out: Vec<&mut [T]> = values.chunks_mut(count.max(1)).collect();
    subset.block(&(0..count).collect::<Vec<_>>(), 0..count, &mut out);
    Gram::new(count, values.iter().map(|value| value.to_f64()).collect())
}

/// Unit of rounding in precision `T`.
pub(super) fn epsilon<T: Real>() -> f64 {
    match Precision::of::<T>() {
        Precision::F32 => f64::from(f32::EPSILON),
        Precision::F64 => f64::EPSILON,
    }
}

/// Whether no eigenvalue of a matrix of values in precision `T` is negative beyond their rounding.
pub(super) fn is_semidefinite<T: Real>(found: Definiteness, order: usize) -> bool {
    let rounding = epsilon::<T>() * order as f64;
    found.is_semidefinite() || found.smallest >= -rounding * found.largest.abs()
}

/// The smallest eigenvalue of a matrix if it is negative beyond rounding; found by factoring where it is not,
/// which takes a tenth of the time of eigenvalues.
fn negative_eigenvalue<T: Real>(gram: &Gram, context: &Context) -> Result<Option<f64>> {
    let n = gram.order();
    // No more than what counts as rounding, because the largest eigenvalue is at least the mean diagonal.
    let added = epsilon::<T>() * gram.trace().max(0.0);
    let mut values = gram.values().to_vec();
    (0..n).for_each(|i| values[i * n + i] += added);
    if Cholesky::interruptible(values, n, context)?.is_some() {
        return Ok(None);
    }
    let extremes =
        |found: Definiteness| (!is_semidefinite::<T>(found, n)).then_some(found.smallest);
    if n > ALL_EIGENVALUES {
        let found = lanczos(gram, context)?;
        // A Ritz value is no smaller than the eigenvalue.
        if let Some(smallest) = extremes(found) {
            return Ok(Some(smallest));
        }
    }
    Ok(extremes(gram.definiteness(context)?))
}

/// The extreme Ritz values of Lanczos' method with full orthogonalisation (Golub and Van Loan 2013, 10.1 to 10.3).
fn lanczos(gram: &Gram, context: &Context) -> Result<Definiteness> {
    let n = gram.order();
    let mut generator = Generator::new(n as u64);
    let mut next: Vec<f64> = (0..n).map(|_| generator.normal()).collect();
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let (mut diagonal, mut beside) = (Vec::new(), Vec::new());
    while basis.len() < STEPS.min(n) {
        context.checkpoint()?;
        let length = dot(&next, &next).sqrt();
        let largest: f64 = beside.iter().copied().fold(0.0, f64::max);
        if length.is_nan() || length <= f64::EPSILON * largest {
            break;
        }
        beside.push(length);
        next.iter_mut().for_each(|value| *value /= length);
        let mut image: Vec<f64> = (0..n).map(|i| dot(gram.row(i), &next)).collect();
        diagonal.push(dot(&image, &next));
        basis.push(next);
        for _ in 0..2 {
            for vector in &basis {
                let factor = -dot(&image, vector);
                add(&mut image, vector, factor);
            }
        }
        next = image;
    }
    let size = basis.len();
    let mut projected = vec![0.0; size * size];
    for i in 0..size {
        projected[i * size + i] = diagonal[i];
        if i > 0 {
            projected[i * size + i - 1] = beside[i];
            projected[(i - 1) * size + i] = beside[i];
        }
    }
    let eigen = eigen_interruptible(projected, size, context)?;
    let at = |value: Option<&f64>| value.copied().unwrap_or(0.0);
    Ok(Definiteness { smallest: at(eigen.values.last()), largest: at(eigen.values.first()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;

    fn points(n: usize, d: usize) -> Matrix {
        let mut generator = Generator::new(3);
        let values = (0..n * d).map(|_| generator.normal()).collect();
        Matrix::DenseF64(Dense::new(n, d, values).unwrap())
    }

    #[test]
    fn lanczos_finds_the_smallest_eigenvalue_that_all_eigenvalues_have() {
        let context = Context::new();
        let kernel = Kernel::Sigmoid { gamma: 1.0, coef0: 0.0 };
        let gram = Gram::of(&kernel, &points(300, 5), &context).unwrap();
        let (all, some) = (gram.definiteness(&context).unwrap(), lanczos(&gram, &context).unwrap());
        assert!(all.smallest < -0.1 && (all.smallest - some.smallest).abs() < 1e-2 * -all.smallest);
        assert!(some.smallest >= all.smallest - 1e-10, "a Ritz value is no smaller");
        assert!((all.largest - some.largest).abs() < 1e-9 * all.largest);
    }

    #[test]
    fn a_negative_diagonal_value_is_found_whichever_row_it_is_in() {
        let n = 500;
        let mut values = vec![0.0; n * n];
        (0..n).for_each(|i| values[i * n + i] = if i == 331 { -2.0 } else { 1.0 });
        let table = Matrix::DenseF64(Dense::new(n, n, values).unwrap());
        let context = Context::new();
        let blocks =
            KernelBlocks::<f64>::new(&Kernel::Precomputed, &table, None, &context).unwrap();
        assert!(sample(&blocks).len() < n / 2);
        let found = warn(&Kernel::Precomputed, &blocks, &context).unwrap();
        assert!((found.unwrap() + 2.0).abs() < 1e-12);
    }
}
