//! The cone of weights whose sum of matrices is positive semidefinite.
//!
//! With K(µ₀) = LLᵀ for an interior point µ₀, the matrices Sᵢ = L⁻¹KᵢL⁻ᵀ make the way from µ₀ to µ a line of
//! matrices I + s(S(µ) − I) with the same eigenvectors: it leaves the cone at s = 1/(1 − λ_min(S(µ))), and every
//! eigenvector u of a negative eigenvalue gives a cut Σ µᵢ uᵀSᵢu ≥ 0 that holds in the whole cone.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernel::Gram;
use crate::numeric::algebra::{Cholesky, add, dot, eigen_interruptible};

/// Part of the way to the boundary that is gone.
const REACH: f64 = 1.0 - 1e-8;

/// Cuts of one point: those of its smallest eigenvalues.
const MOST_CUTS: usize = 8;

/// The matrices seen from an interior point.
pub(super) struct Cone<'a> {
    candidates: &'a [Gram],
    interior: Vec<f64>,
    /// L⁻¹KᵢL⁻ᵀ.
    seen: Vec<Vec<f64>>,
}

impl<'a> Cone<'a> {
    /// Looks for an interior point: equal weights, or the kernel of the largest determinant.
    ///
    /// # Errors
    /// [`Error::Kernel`] when neither is positive definite, [`Error::Interrupted`] at a request to stop.
    pub(super) fn new(candidates: &'a [Gram], context: &Context) -> Result<Self> {
        let kernels = candidates.len();
        let uniform = vec![1.0 / kernels as f64; kernels];
        let order = candidates[0].order();
        let of = |weights: &[f64]| {
            Cholesky::interruptible(combined(candidates, weights), order, context)
        };
        let mut found = of(&uniform)?.map(|factor| (uniform, factor));
        if found.is_none() {
            for i in 0..kernels {
                let single: Vec<f64> = (0..kernels).map(|j| f64::from(u8::from(i == j))).collect();
                let Some(factor) = of(&single)? else { continue };
                let best = found.as_ref().map_or(f64::NEG_INFINITY, |(_, f)| f.log_determinant());
                if factor.log_determinant() > best {
                    found = Some((single, factor));
                }
            }
        }
        let Some((interior, factor)) = found else {
            return Err(Error::Kernel {
                kernel: "combination".into(),
                expected: "candidates with a positive definite combination; add jitter".into(),
                found: "neither equal weights nor a single candidate has one".into(),
            });
        };
        let mut seen = Vec::with_capacity(kernels);
        for candidate in candidates {
            context.checkpoint()?;
            seen.push(reduced(candidate, &factor));
        }
        Ok(Self { candidates, interior, seen })
    }

    /// The interior point.
    pub(super) fn interior(&self) -> &[f64] {
        &self.interior
    }

    /// The last point of the cone on the way from the interior to `target`, and the cuts that `target`
    /// violates.
    pub(super) fn reach(
        &self,
        target: &[f64],
        context: &Context,
    ) -> Result<(Vec<f64>, Vec<Vec<f64>>)> {
        let order = self.candidates[0].order();
        let mut matrix = vec![0.0; order * order];
        for (weight, seen) in target.iter().zip(&self.seen) {
            add(&mut matrix, seen, *weight);
        }
        let eigen = eigen_interruptible(matrix, order, context)?;
        let smallest = eigen.values.last().copied().unwrap_or(0.0);
        if smallest >= 0.0 {
            return Ok((target.to_vec(), Vec::new()));
        }
        let step = REACH / (1.0 - smallest);
        let point =
            self.interior.iter().zip(target).map(|(inside, t)| inside + step * (t - inside));
        let negative = (0..order).rev().take_while(|&e| eigen.values[e] < 0.0).take(MOST_CUTS);
        let cuts = negative.map(|e| {
            let vector = eigen.vector(e);
            self.seen.iter().map(|seen| form(seen, vector)).collect()
        });
        Ok((point.collect(), cuts.collect()))
    }

    /// λ_min(K(µ)).
    pub(super) fn smallest_eigenvalue(&self, weights: &[f64], context: &Context) -> Result<f64> {
        let order = self.candidates[0].order();
        let eigen = eigen_interruptible(combined(self.candidates, weights), order, context)?;
        Ok(eigen.values.last().copied().unwrap_or(0.0))
    }
}

/// Σ µᵢKᵢ.
fn combined(candidates: &[Gram], weights: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; candidates[0].values().len()];
    for (candidate, weight) in candidates.iter().zip(weights) {
        add(&mut sum, candidate.values(), *weight);
    }
    sum
}

/// L⁻¹KL⁻ᵀ.
fn reduced(candidate: &Gram, factor: &Cholesky) -> Vec<f64> {
    let order = candidate.order();
    let mut rows = candidate.values().to_vec();
    for _ in 0..2 {
        rows.chunks_exact_mut(order).for_each(|row| factor.solve_lower(row));
        for i in 0..order {
            for j in 0..i {
                rows.swap(i * order + j, j * order + i);
            }
        }
    }
    rows
}

/// vᵀAv.
fn form(matrix: &[f64], vector: &[f64]) -> f64 {
    let rows = matrix.chunks_exact(vector.len()).zip(vector);
    rows.map(|(row, v)| v * dot(row, vector)).sum()
}
