//! Selection: which support vectors to keep, for any kernel.
//!
//! All three methods see the Gram matrix alone. Pruning leaves out vector n at the least possible
//! cost Σ_f α²_{fn}/(K⁻¹)ₙₙ and downdates K⁻¹; the eigenvectors g of K with eigenvalue λ give the cost
//! Σ_f (α_{fn}/gₙ)²λ, never less; and the ℓ₁ penalty λΣcᵢ‖β_{·i}‖ with cᵢ the mean weight over ‖α_{·i}‖
//! is minimised by coordinates, λ being searched for (Schölkopf et al. 1999; Nguyen 2006, 3.2.3).

use super::pool::VectorPool;
use super::sums::factorise;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::numeric::algebra::{dot, eigen_symmetric, times_transposed, transposed};

/// Sweeps of coordinate descent at one penalty.
const SWEEPS: usize = 1000;

/// Bisections of the penalty.
const BISECTIONS: usize = 40;

/// The vectors of `pool` that pruning keeps, with what is lost by each removal.
pub(super) fn prune(
    pool: &VectorPool,
    gram: &[f64],
    count: usize,
    context: &Context,
) -> Result<(Vec<usize>, Vec<f64>)> {
    let n = pool.len();
    let factor = factorise(gram, n, context)?;
    // K⁻¹ = L⁻ᵀL⁻¹
    let columns = transposed(&factor.inverse_lower(context)?, n, n);
    drop(factor);
    let mut inverse = times_transposed(&columns, &columns, n, context)?;
    drop(columns);
    let mut weights = pool.weights.clone();
    let mut keep: Vec<usize> = (0..n).collect();
    let mut costs = Vec::new();
    while keep.len() > count.max(1) && context.stop_request().is_none() {
        let cost = |&v: &usize| {
            let square: f64 = weights.iter().map(|w| w[v] * w[v]).sum();
            square / inverse[v * n + v]
        };
        let Some((at, lost)) = least(keep.iter().map(cost)) else { break };
        let gone = keep.remove(at);
        let column: Vec<f64> = inverse[gone * n..(gone + 1) * n].to_vec();
        let pivot = column[gone];
        for weights in &mut weights {
            let share = weights[gone] / pivot;
            for &v in &keep {
                weights[v] -= share * column[v];
            }
            weights[gone] = 0.0;
        }
        for &i in &keep {
            let share = column[i] / pivot;
            for (entry, c) in inverse[i * n..(i + 1) * n].iter_mut().zip(&column) {
                *entry -= share * c;
            }
        }
        costs.push(lost);
    }
    Ok((keep, costs))
}

/// The vectors that remain when the cheapest elimination by an eigenvector is repeated, with the
/// cost of each.
pub(super) fn eliminate(
    pool: &VectorPool,
    gram: &[f64],
    count: usize,
    context: &Context,
) -> (Vec<usize>, Vec<f64>) {
    let n = pool.len();
    let mut weights = pool.weights.clone();
    let mut keep: Vec<usize> = (0..n).collect();
    let mut costs = Vec::new();
    while keep.len() > count.max(1) && context.stop_request().is_none() {
        let m = keep.len();
        let mut part = Vec::with_capacity(m * m);
        for &i in &keep {
            part.extend(keep.iter().map(|&j| gram[i * n + j]));
        }
        let eigen = eigen_symmetric(part, m, context);
        let candidates = (0..m * m).map(|at| {
            let (value, entry) = (eigen.values[at / m].max(0.0), eigen.vectors[at]);
            let square: f64 = weights.iter().map(|w| w[keep[at % m]] * w[keep[at % m]]).sum();
            if entry == 0.0 { f64::INFINITY } else { square / (entry * entry) * value }
        });
        let Some((at, lost)) = least(candidates) else { break };
        let (vector, place) = (eigen.vector(at / m), at % m);
        for weights in &mut weights {
            let share = weights[keep[place]] / vector[place];
            for (&v, g) in keep.iter().zip(vector) {
                weights[v] -= share * g;
            }
        }
        keep.remove(place);
        costs.push(lost);
    }
    (keep, costs)
}

/// The vectors of non-zero weight under the smallest penalty searched that leaves at most `count`.
pub(super) fn sparse(
    pool: &VectorPool,
    gram: &[f64],
    count: usize,
    context: &Context,
) -> Result<Vec<usize>> {
    let (mut low, mut high) = (0.0, largest_penalty(pool, gram));
    let mut best = support(&penalised(pool, gram, high * 0.999, context)?);
    for _ in 0..BISECTIONS {
        if best.len() == count {
            break;
        }
        let middle = if low == 0.0 { 0.1 * high } else { (low * high).sqrt() };
        let found = match penalised(pool, gram, middle, context) {
            Err(Error::Interrupted) => break,
            found => support(&found?),
        };
        if found.len() <= count {
            (high, best) = (middle, found);
        } else {
            low = middle;
        }
    }
    Ok(best)
}

/// The penalty from which every weight is 0.
pub(super) fn largest_penalty(pool: &VectorPool, gram: &[f64]) -> f64 {
    let n = pool.len();
    let factors = penalty_factors(pool);
    let pull = |j: usize| {
        let squares = pool.weights.iter().map(|w| dot(&gram[j * n..(j + 1) * n], w).powi(2));
        2.0 * squares.sum::<f64>().sqrt() / factors[j]
    };
    (0..n).map(pull).fold(0.0, f64::max)
}

/// cⱼ = mean ‖α‖ / ‖αⱼ‖; infinite for weights of 0.
pub(super) fn penalty_factors(pool: &VectorPool) -> Vec<f64> {
    let length = |v: usize| pool.weights.iter().map(|w| w[v] * w[v]).sum::<f64>().sqrt();
    let lengths: Vec<f64> = (0..pool.len()).map(length).collect();
    let mean = lengths.iter().sum::<f64>() / lengths.len().max(1) as f64;
    lengths.into_iter().map(|length| mean / length).collect()
}

/// The weights of least ‖Σ(αᵢ − βᵢ)Φ(xᵢ)‖² + `penalty` Σ cᵢ‖βᵢ‖, function after function.
///
/// # Errors
/// [`Error::Interrupted`] when the context asks to stop.
pub(super) fn penalised(
    pool: &VectorPool,
    gram: &[f64],
    penalty: f64,
    context: &Context,
) -> Result<Vec<Vec<f64>>> {
    let (n, functions) = (pool.len(), pool.functions());
    let factors = penalty_factors(pool);
    let mut weights = pool.weights.clone();
    // K(α − β) of every function.
    let mut rest = vec![vec![0.0; n]; functions];
    for _ in 0..SWEEPS {
        context.checkpoint()?;
        let (mut moved, mut size) = (0.0, 0.0);
        for j in 0..n {
            let own = gram[j * n + j];
            if own <= 0.0 || !factors[j].is_finite() {
                continue;
            }
            let pulls: Vec<f64> =
                (0..functions).map(|f| rest[f][j] + own * weights[f][j]).collect();
            let length = pulls.iter().map(|p| p * p).sum::<f64>().sqrt();
            let share = (1.0 - 0.5 * penalty * factors[j] / length.max(f64::MIN_POSITIVE)).max(0.0);
            for f in 0..functions {
                let next = share * pulls[f] / own;
                let change = next - weights[f][j];
                if change != 0.0 {
                    weights[f][j] = next;
                    for (rest, k) in rest[f].iter_mut().zip(&gram[j * n..(j + 1) * n]) {
                        *rest -= change * k;
                    }
                }
                moved += own * change * change;
                size += own * next * next;
            }
        }
        if moved <= 1e-16 * size.max(f64::MIN_POSITIVE) {
            break;
        }
    }
    Ok(weights)
}

fn support(weights: &[Vec<f64>]) -> Vec<usize> {
    let n = weights.first().map_or(0, Vec::len);
    (0..n).filter(|&v| weights.iter().any(|w| w[v] != 0.0)).collect()
}

/// The least of some numbers and its place, the first of equals.
fn least(values: impl Iterator<Item = f64>) -> Option<(usize, f64)> {
    values.enumerate().fold(None, |best, (at, value)| match best {
        Some((_, least)) if value >= least || value.is_nan() => best,
        _ => Some((at, value)),
    })
}

#[cfg(test)]
mod tests {
    use super::super::pool::Expansion;
    use super::super::sums::gram;
    use super::*;
    use crate::kernel::Kernel;
    use crate::numeric::random::Generator;

    fn example(n: usize, duplicate: bool) -> (VectorPool, Vec<f64>) {
        let mut generator = Generator::new(n as u64);
        let mut vectors: Vec<Vec<f64>> =
            (0..n).map(|_| (0..3).map(|_| generator.unit()).collect()).collect();
        if duplicate {
            vectors[n - 1] = vectors[0].clone();
        }
        let weights = (0..n).map(|i| generator.unit() + 0.1 - (i % 2) as f64).collect();
        let pool = VectorPool::single(Expansion { vectors, weights });
        let gram = gram(&Kernel::Gaussian { gamma: 2.0 }, &pool.vectors, &Context::new()).unwrap();
        (pool, gram)
    }

    /// ‖Σ dᵢΦ(xᵢ)‖²
    fn norm(gram: &[f64], d: &[f64]) -> f64 {
        let n = d.len();
        (0..n).map(|i| d[i] * dot(&gram[i * n..(i + 1) * n], d)).sum()
    }

    /// The least of ‖Ψ − Σ_{keep} βΦ‖², by elimination.
    fn projected(gram: &[f64], pool: &VectorPool, keep: &[usize]) -> f64 {
        let n = pool.len();
        let m = keep.len();
        let mut a: Vec<Vec<f64>> = keep
            .iter()
            .map(|&i| {
                let mut row: Vec<f64> = keep.iter().map(|&j| gram[i * n + j]).collect();
                row.push(dot(&gram[i * n..(i + 1) * n], &pool.weights[0]));
                row
            })
            .collect();
        for i in 0..m {
            for r in i + 1..m {
                let factor = a[r][i] / a[i][i];
                for c in i..=m {
                    a[r][c] -= factor * a[i][c];
                }
            }
        }
        let mut beta = vec![0.0; m];
        for i in (0..m).rev() {
            let known: f64 = (i + 1..m).map(|j| a[i][j] * beta[j]).sum();
            beta[i] = (a[i][m] - known) / a[i][i];
        }
        let mut d = pool.weights[0].clone();
        for (&v, b) in keep.iter().zip(beta) {
            d[v] -= b;
        }
        norm(gram, &d)
    }

    #[test]
    fn pruning_costs_what_a_projection_loses_and_eigenvectors_cost_no_less() {
        let (pool, gram) = example(12, false);
        let context = Context::new();
        let (keep, costs) = prune(&pool, &gram, 11, &context).unwrap();
        let lost = projected(&gram, &pool, &keep);
        assert!((costs[0] - lost).abs() < 1e-8, "{} {lost}", costs[0]);
        let every = (0..12).map(|gone| {
            let keep: Vec<usize> = (0..12).filter(|&v| v != gone).collect();
            projected(&gram, &pool, &keep)
        });
        assert!(every.fold(f64::INFINITY, f64::min) >= costs[0] - 1e-8);
        let (_, eigen) = eliminate(&pool, &gram, 11, &context);
        assert!(eigen[0] >= costs[0] - 1e-10, "{} {}", eigen[0], costs[0]);
        let (keep, costs) = prune(&pool, &gram, 6, &context).unwrap();
        let lost = projected(&gram, &pool, &keep);
        let total: f64 = costs.iter().sum();
        assert!((total - lost).abs() < 1e-6, "steps are orthogonal: {total} {lost}");
    }

    #[test]
    fn an_eigenvector_costs_the_residual_it_leaves() {
        let (pool, gram) = example(9, false);
        let n = pool.len();
        let (keep, costs) = eliminate(&pool, &gram, 8, &Context::new());
        let eigen = eigen_symmetric(gram.clone(), n, &Context::new());
        let gone = (0..n).find(|v| !keep.contains(v)).unwrap();
        let by_hand = (0..n).map(|i| {
            let g = eigen.vector(i);
            let d: Vec<f64> = g.iter().map(|g_j| pool.weights[0][gone] * g_j / g[gone]).collect();
            norm(&gram, &d)
        });
        let least = by_hand.fold(f64::INFINITY, f64::min);
        assert!((costs[0] - least).abs() < 1e-10, "{} {least}", costs[0]);
    }

    #[test]
    fn duplicates_go_first_and_cost_nothing() {
        let (pool, gram) = example(10, true);
        let (_, costs) = prune(&pool, &gram, 9, &Context::new()).unwrap();
        assert!(costs[0] < 1e-9, "{}", costs[0]);
        let (_, costs) = eliminate(&pool, &gram, 9, &Context::new());
        assert!(costs[0] < 1e-9, "{}", costs[0]);
    }

    #[test]
    fn the_penalty_keeps_all_at_zero_and_nothing_at_its_largest() {
        let (pool, gram) = example(14, false);
        let (n, top) = (pool.len(), largest_penalty(&pool, &gram));
        let context = Context::new();
        let free = &penalised(&pool, &gram, 0.0, &context).unwrap()[0];
        assert!(free.iter().zip(&pool.weights[0]).all(|(a, b)| (a - b).abs() < 1e-12));
        assert!(support(&penalised(&pool, &gram, 1.001 * top, &context).unwrap()).is_empty());
        let mut last = n;
        for share in [1e-3, 1e-2, 0.1, 0.5] {
            let penalty = share * top;
            let weights = penalised(&pool, &gram, penalty, &context).unwrap();
            let count = support(&weights).len();
            assert!(count <= last, "{count} {last}");
            last = count;
            let factors = penalty_factors(&pool);
            let d: Vec<f64> = pool.weights[0].iter().zip(&weights[0]).map(|(a, b)| a - b).collect();
            for j in 0..n {
                let pull = 2.0 * dot(&gram[j * n..(j + 1) * n], &d);
                let limit = penalty * factors[j];
                match weights[0][j] {
                    0.0 => assert!(pull.abs() <= limit * (1.0 + 1e-4), "{pull} {limit}"),
                    w => assert!((pull - limit * w.signum()).abs() <= 1e-2 * limit),
                }
            }
        }
        assert!(sparse(&pool, &gram, 5, &context).unwrap().len() <= 5);
    }
}
