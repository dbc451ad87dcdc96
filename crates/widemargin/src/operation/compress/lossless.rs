//! Reductions that lose nothing: a linear machine is one vector, a quadratic one has no more terms
//! than features, and a support vector whose image depends on others' can go.
//!
//! Σα⟨x, z⟩ = ⟨Σαx, z⟩; Σα⟨x, z⟩² = zᵀSz = Σ_a λ_a⟨v_a, z⟩² with S = Σαxxᵀ (Burges 1996), over (x, √(c₀/γ))
//! when there is a c₀; and by Downs et al. (2001) for any kernel.

use super::pivots::PivotedFactor;
use super::pool::{Expansion, VectorPool};
use crate::context::Context;
use crate::data::memory;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::numeric::algebra::{eigen_interruptible, times_transposed, transposed};

/// Pivots of the Gram matrix below this share of the largest are taken for 0.
const DEPENDENT: f64 = 1e-11;

/// Eigenvalues below this share of the largest are taken for 0.
const NEGLIGIBLE: f64 = 1e-14;

/// The smallest pool that is the same function exactly, as far as the kernel allows one.
pub(super) fn reduce(kernel: &Kernel, pool: &VectorPool, context: &Context) -> Result<VectorPool> {
    match *kernel {
        Kernel::Linear => Ok(collapsed(pool)),
        Kernel::Polynomial { coef0: 0.0, degree: 1, .. } => Ok(collapsed(pool)),
        Kernel::Polynomial { gamma, coef0, degree: 2 }
            if coef0 >= 0.0 && pool.columns() < pool.len() =>
        {
            quadratic(pool, gamma, coef0, context)
        }
        _ => depending(kernel, pool, context),
    }
}

fn collapsed(pool: &VectorPool) -> VectorPool {
    let mut sum = vec![0.0; pool.columns()];
    for (vector, &weight) in pool.vectors.iter().zip(&pool.weights[0]) {
        sum.iter_mut().zip(vector).for_each(|(sum, v)| *sum += weight * v);
    }
    VectorPool::single(Expansion { vectors: vec![sum], weights: vec![1.0] })
}

fn quadratic(pool: &VectorPool, gamma: f64, coef0: f64, context: &Context) -> Result<VectorPool> {
    let order = pool.columns() + usize::from(coef0 > 0.0);
    memory::check(|| format!("a matrix of {order} features"), 3 * 8 * (order as u128).pow(2))?;
    let last = (coef0 / gamma).sqrt();
    let stretched = pool
        .vectors
        .iter()
        .flat_map(|vector| vector.iter().copied().chain([last]).take(order).collect::<Vec<f64>>());
    // Feature after feature, of all vectors.
    let features = transposed(&stretched.collect::<Vec<f64>>(), pool.len(), order);
    let mut weighted = features.clone();
    for row in weighted.chunks_exact_mut(pool.len().max(1)) {
        row.iter_mut().zip(&pool.weights[0]).for_each(|(value, weight)| *value *= weight);
    }
    let matrix = times_transposed(&weighted, &features, pool.len(), context)?;
    let eigen = eigen_interruptible(matrix, order, context)?;
    let largest = eigen.values.iter().map(|v| v.abs()).fold(0.0, f64::max);
    let mut reduced = Expansion::default();
    for (a, &value) in eigen.values.iter().enumerate() {
        if value.abs() <= NEGLIGIBLE * largest {
            continue;
        }
        let vector = eigen.vector(a);
        // The last feature of a vector z is √(c₀/γ), so the eigenvector is stretched until its is.
        let stretch = match coef0 > 0.0 {
            true => last / if vector[order - 1].abs() < 1e-7 { 1e-7 } else { vector[order - 1] },
            false => 1.0,
        };
        reduced.vectors.push(vector[..pool.columns()].iter().map(|v| stretch * v).collect());
        reduced.weights.push(value / (stretch * stretch));
    }
    Ok(VectorPool::single(reduced))
}

/// The vectors whose images do not depend on others', with the weights of those that do.
///
/// A vector d with Φ(x_d) = Σ c_p Φ(x_p) over the pivots p of a Cholesky factor has the row L_d = Σ c_p L_p, so
/// that the weights c of Σ_d α_d Φ(x_d) solve Σ_p c_p L_p = Σ_d α_d L_d. When the context asks to stop, vectors
/// that are not known to depend on the pivots found until then stay.
fn depending(kernel: &Kernel, pool: &VectorPool, context: &Context) -> Result<VectorPool> {
    let factor = PivotedFactor::new(kernel, &pool.vectors, DEPENDENT, context)?;
    let dependent = factor.dependent();
    if dependent.is_empty() {
        return Ok(pool.clone());
    }
    let mut all = pool.clone();
    for weights in &mut all.weights {
        let moved = factor.onto_pivots(&dependent, weights);
        factor.pivots().iter().zip(moved).for_each(|(&p, weight)| weights[p] += weight);
    }
    let mut gone = dependent.iter().copied().peekable();
    let keep: Vec<usize> = (0..pool.len()).filter(|&v| gone.next_if_eq(&v).is_none()).collect();
    Ok(all.selection(&keep))
}

#[cfg(test)]
mod tests {
    use super::super::sums::sums;
    use super::*;
    use crate::numeric::random::Generator;

    #[test]
    fn values_stay_as_they_were() {
        let mut generator = Generator::new(3);
        let vectors: Vec<Vec<f64>> =
            (0..40).map(|_| (0..5).map(|_| generator.unit() - 0.4).collect()).collect();
        let weights = (0..40).map(|i| generator.unit() - 0.5 + 0.01 * i as f64).collect();
        let pool = VectorPool::single(Expansion { vectors, weights });
        let context = Context::new();
        let probes: Vec<Vec<f64>> =
            (0..20).map(|_| (0..5).map(|_| 2.0 * generator.unit() - 1.0).collect()).collect();
        for (kernel, most) in [
            (Kernel::Linear, 1),
            (Kernel::Polynomial { gamma: 0.7, coef0: 0.0, degree: 1 }, 1),
            (Kernel::Polynomial { gamma: 0.7, coef0: 0.0, degree: 2 }, 5),
            (Kernel::Polynomial { gamma: 0.7, coef0: 0.3, degree: 2 }, 6),
            (Kernel::Polynomial { gamma: 0.7, coef0: 0.3, degree: 1 }, 6),
            (Kernel::Polynomial { gamma: 0.7, coef0: 0.0, degree: 3 }, 35),
            (Kernel::Gaussian { gamma: 1.0 }, 40),
        ] {
            let reduced = reduce(&kernel, &pool, &context).unwrap();
            assert!(reduced.len() <= most, "{kernel}: {}", reduced.len());
            let before = sums::<f64>(&kernel, &probes, &pool, &context).unwrap();
            let after = sums::<f64>(&kernel, &probes, &reduced, &context).unwrap();
            for (a, b) in before.iter().zip(&after) {
                assert!((a - b).abs() < 1e-6 * (1.0 + a.abs()), "{kernel}: {a} {b}");
            }
        }
    }
}
