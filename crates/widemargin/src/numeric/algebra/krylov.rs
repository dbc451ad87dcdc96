//! The largest eigenvalues of a large symmetric matrix that is known only by its products.
//!
//! Rayleigh and Ritz on the block Krylov space span{X, AX, A²X, …} with full orthogonalisation
//! (block Lanczos; Golub and Underwood, 1977), restarted from the best vectors when the space has
//! grown too large. A block as wide as the number of eigenvectors finds multiple eigenvalues too.

use super::{add, dot, eigen_interruptible};
use crate::context::Context;
use crate::error::Result;
use crate::numeric::random::Generator;

/// Vectors of the space before a restart.
const LARGEST_SPACE: usize = 160;

/// Restarts after which the vectors are taken as they are.
const MAX_RESTARTS: usize = 40;

/// Eigenvalues, eigenvectors and whether the tolerance was met.
pub(crate) struct Leading {
    /// The eigenvalues, descending.
    pub(crate) values: Vec<f64>,
    /// The unit eigenvector of every value.
    pub(crate) vectors: Vec<Vec<f64>>,
    /// Largest ‖Av − λv‖.
    pub(crate) residual: f64,
}

/// The `count` largest eigenvalues of an n × n matrix; `product(block)` returns A times each of the
/// vectors of a block. Ends when ‖Av − λv‖ ≤ `tol` for all of them.
///
/// # Errors
/// `Error::Interrupted` when the context asks to stop; what `product` returns.
pub(crate) fn leading_eigenvectors(
    n: usize,
    count: usize,
    tol: f64,
    product: impl Fn(&[Vec<f64>]) -> Result<Vec<Vec<f64>>>,
    context: &Context,
) -> Result<Leading> {
    let mut generator = Generator::new(context.seed() ^ 0x6b72_796c_6f76);
    let width = (count + 2).min(n);
    let largest = LARGEST_SPACE.max(4 * width).min(n);
    let random = |generator: &mut Generator| (0..n).map(|_| generator.normal()).collect();
    let mut start: Vec<Vec<f64>> = (0..width).map(|_| random(&mut generator)).collect();
    for restart in 0.. {
        let mut basis: Vec<Vec<f64>> = Vec::new();
        let mut images: Vec<Vec<f64>> = Vec::new();
        let mut block = start;
        loop {
            context.checkpoint()?;
            orthonormalise(&basis, &mut block, context)?;
            let room = largest - basis.len();
            block.truncate(room);
            if block.is_empty() && basis.len() < count {
                block = vec![random(&mut generator)];
                continue;
            }
            let exhausted = block.is_empty();
            if !exhausted {
                images.extend(product(&block)?);
                basis.append(&mut block);
            }
            let full = basis.len() >= largest || exhausted;
            if !full && basis.len() < 3 * width {
                block = images[images.len() - width.min(images.len())..].to_vec();
                continue;
            }
            let size = basis.len();
            let mut projected = vec![0.0; size * size];
            for i in 0..size {
                context.checkpoint()?;
                for j in 0..=i {
                    let value = 0.5 * (dot(&basis[i], &images[j]) + dot(&basis[j], &images[i]));
                    projected[i * size + j] = value;
                    projected[j * size + i] = value;
                }
            }
            let eigen = eigen_interruptible(projected, size, context)?;
            let combine = |vectors: &[Vec<f64>], i: usize| -> Result<Vec<f64>> {
                context.checkpoint()?;
                let mut sum = vec![0.0; n];
                for (vector, &factor) in vectors.iter().zip(eigen.vector(i)) {
                    add(&mut sum, vector, factor);
                }
                Ok(sum)
            };
            let vectors: Vec<Vec<f64>> =
                (0..count).map(|i| combine(&basis, i)).collect::<Result<_>>()?;
            let mut residual = 0.0_f64;
            for (i, vector) in vectors.iter().enumerate() {
                let mut rest = combine(&images, i)?;
                add(&mut rest, vector, -eigen.values[i]);
                residual = residual.max(dot(&rest, &rest).sqrt());
            }
            if residual <= tol || size == n || (full && restart == MAX_RESTARTS) {
                return Ok(Leading { values: eigen.values[..count].to_vec(), vectors, residual });
            }
            if full {
                let kept = (2 * width).min(size);
                start = (0..kept).map(|i| combine(&basis, i)).collect::<Result<_>>()?;
                break;
            }
            block = images[images.len() - width.min(images.len())..].to_vec();
        }
    }
    unreachable!("the loop ends at the last restart")
}

/// Makes a block orthonormal and orthogonal to the basis, twice for the sake of rounding; vectors
/// that depend on the others are dropped.
fn orthonormalise(basis: &[Vec<f64>], block: &mut Vec<Vec<f64>>, context: &Context) -> Result<()> {
    let mut kept: Vec<Vec<f64>> = Vec::with_capacity(block.len());
    for mut vector in block.drain(..) {
        context.checkpoint()?;
        let before = dot(&vector, &vector).sqrt();
        for _ in 0..2 {
            for other in basis.iter().chain(&kept) {
                let factor = -dot(&vector, other);
                add(&mut vector, other, factor);
            }
        }
        let norm = dot(&vector, &vector).sqrt();
        if norm > 1e-10 * before && norm > 0.0 {
            vector.iter_mut().for_each(|v| *v /= norm);
            kept.push(vector);
        }
    }
    *block = kept;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_eigenvalues_of_a_path_and_of_separate_parts_are_found() {
        // Adjacency of a path: 2 cos(π i / (n + 1)).
        let n = 300;
        let path = |v: &Vec<f64>| -> Vec<f64> {
            let at = |i: usize| v.get(i).copied().unwrap_or(0.0);
            (0..n).map(|i: usize| at(i.wrapping_sub(1)) + at(i + 1)).collect()
        };
        let product = |block: &[Vec<f64>]| Ok(block.iter().map(path).collect());
        let found = leading_eigenvectors(n, 3, 1e-9, product, &Context::new()).unwrap();
        for (i, value) in found.values.iter().enumerate() {
            let angle = std::f64::consts::PI * (i + 1) as f64 / (n + 1) as f64;
            assert!((value - 2.0 * angle.cos()).abs() < 1e-9, "{value}");
        }
        // Three equal eigenvalues 1, all others ½.
        let parts = |v: &Vec<f64>| -> Vec<f64> {
            let mean = |part: usize| v[part * 100..][..100].iter().sum::<f64>() / 100.0;
            (0..n).map(|i| 0.5 * v[i] + 0.5 * mean(i / 100)).collect()
        };
        let product = |block: &[Vec<f64>]| Ok(block.iter().map(parts).collect());
        let found = leading_eigenvectors(n, 3, 1e-9, product, &Context::new()).unwrap();
        assert!(found.values.iter().all(|value| (value - 1.0).abs() < 1e-12));
    }
}
