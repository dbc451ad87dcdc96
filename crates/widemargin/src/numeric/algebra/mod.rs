//! Dense linear algebra: products, Cholesky and LDLᵀ factors, symmetric eigenvalues and the leading eigenvectors of large
//! symmetric matrices.

mod cholesky;
mod eigen;
mod krylov;
mod product;
mod quasi_definite;
mod substitution;

pub(crate) use cholesky::{Cholesky, add_products};
pub(crate) use eigen::{eigen_interruptible, eigen_symmetric};
pub(crate) use krylov::{Leading, leading_eigenvectors};
pub(crate) use product::{times_transposed, transposed};
pub(crate) use quasi_definite::QuasiDefinite;

/// Σ aᵢbᵢ in eight lanes, so that it is the same everywhere and vectorises.
#[inline(always)]
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (left, left_rest) = a.as_chunks::<8>();
    let (right, right_rest) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (x, y) in left.iter().zip(right) {
        for lane in 0..8 {
            sums[lane] += x[lane] * y[lane];
        }
    }
    let rest: f64 = left_rest.iter().zip(right_rest).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f64>() + rest
}

/// sum ← sum + factor · vector.
#[inline(always)]
pub(crate) fn add(sum: &mut [f64], vector: &[f64], factor: f64) {
    for (sum, value) in sum.iter_mut().zip(vector) {
        *sum += factor * value;
    }
}

/// ‖a − b‖² in eight lanes.
#[inline(always)]
pub(crate) fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    let (left, left_rest) = a.as_chunks::<8>();
    let (right, right_rest) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (x, y) in left.iter().zip(right) {
        for lane in 0..8 {
            let difference = x[lane] - y[lane];
            sums[lane] += difference * difference;
        }
    }
    let rest: f64 = left_rest.iter().zip(right_rest).map(|(x, y)| (x - y) * (x - y)).sum();
    sums.iter().sum::<f64>() + rest
}
