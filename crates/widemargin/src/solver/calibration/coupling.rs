//! Class probabilities from the probabilities of all pairs.
//!
//! Minimises Σᵢ Σ_{j≠i} (r_ji pᵢ − r_ij pⱼ)² subject to Σ p = 1, p ≥ 0 by the cyclic updates of Wu,
//! Lin & Weng, "Probability estimates for multi-class classification by pairwise coupling", JMLR 5,
//! 2004 (second method, algorithm 2), with LIBSVM's tolerance 0.005/k and iteration limit
//! max(100, k) so that the results are LIBSVM's.

/// Probabilities of `classes` classes; `pairs` holds P(i | i or j) for the pairs i < j in order.
///
/// Pairs that are missing count as ½.
pub(crate) fn couple_pairs(classes: usize, pairs: &[f64]) -> Vec<f64> {
    let mut pairs = pairs.iter().copied();
    let mut r = vec![0.0; classes * classes];
    for i in 0..classes {
        for j in i + 1..classes {
            let p = pairs.next().unwrap_or(0.5);
            r[i * classes + j] = p;
            r[j * classes + i] = 1.0 - p;
        }
    }
    match classes {
        0 => return Vec::new(),
        2 => return vec![r[1], r[2]],
        _ => {}
    }
    let quadratic = quadratic_form(classes, &r);
    let tolerance = 0.005 / classes as f64;
    let mut p = vec![1.0 / classes as f64; classes];
    let mut product = vec![0.0; classes];
    for _ in 0..classes.max(100) {
        let value = multiply(&quadratic, &p, &mut product);
        if product.iter().all(|entry| (entry - value).abs() < tolerance) {
            break;
        }
        let mut value = value;
        for t in 0..classes {
            let row = &quadratic[t * classes..(t + 1) * classes];
            let change = (value - product[t]) / row[t];
            p[t] += change;
            let total = 1.0 + change;
            value = (value + change * (change * row[t] + 2.0 * product[t])) / total / total;
            for j in 0..classes {
                product[j] = (product[j] + change * row[j]) / total;
                p[j] /= total;
            }
        }
    }
    p
}

/// Q with Q_tt = Σ_{j≠t} r_jt² and Q_tj = −r_jt r_tj.
fn quadratic_form(classes: usize, r: &[f64]) -> Vec<f64> {
    let mut quadratic = vec![0.0; classes * classes];
    for t in 0..classes {
        for j in (0..classes).filter(|&j| j != t) {
            let (toward, back) = (r[j * classes + t], r[t * classes + j]);
            quadratic[t * classes + t] += toward * toward;
            quadratic[t * classes + j] = -toward * back;
        }
    }
    quadratic
}

/// Writes Q p and returns pᵀ Q p.
fn multiply(quadratic: &[f64], p: &[f64], product: &mut [f64]) -> f64 {
    for (entry, row) in product.iter_mut().zip(quadratic.chunks_exact(p.len())) {
        *entry = row.iter().zip(p).map(|(q, p)| q * p).sum();
    }
    product.iter().zip(p).map(|(entry, p)| entry * p).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs_of(p: &[f64]) -> Vec<f64> {
        let all = (0..p.len()).flat_map(|i| (i + 1..p.len()).map(move |j| (i, j)));
        all.map(|(i, j)| p[i] / (p[i] + p[j])).collect()
    }

    fn objective(classes: usize, pairs: &[f64], p: &[f64]) -> f64 {
        let mut sum = 0.0;
        let mut pairs = pairs.iter();
        for i in 0..classes {
            for j in i + 1..classes {
                let r = pairs.next().unwrap();
                sum += 2.0 * ((1.0 - r) * p[i] - r * p[j]).powi(2);
            }
        }
        sum
    }

    #[test]
    fn two_classes_are_copied_and_one_is_certain() {
        assert_eq!(couple_pairs(2, &[0.3]), [0.3, 0.7]);
        assert_eq!(couple_pairs(1, &[]), [1.0]);
        assert!(couple_pairs(0, &[]).is_empty());
    }

    proptest! {
        #[test]
        fn consistent_pairs_give_their_classes_back(
            weights in prop::collection::vec(0.05..1.0_f64, 3..8)
        ) {
            let total: f64 = weights.iter().sum();
            let p: Vec<f64> = weights.iter().map(|w| w / total).collect();
            for (found, expected) in couple_pairs(p.len(), &pairs_of(&p)).iter().zip(&p) {
                prop_assert!((found - expected).abs() < 0.02, "{found} {expected}");
            }
        }

        #[test]
        fn no_other_distribution_is_clearly_better(
            pairs in prop::collection::vec(0.01..0.99_f64, 6),
            others in prop::collection::vec(prop::collection::vec(0.0..1.0_f64, 4), 20),
        ) {
            let p = couple_pairs(4, &pairs);
            prop_assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            prop_assert!(p.iter().all(|&p| p >= 0.0));
            let reached = objective(4, &pairs, &p);
            for other in others {
                let total: f64 = other.iter().sum();
                let other: Vec<f64> = other.iter().map(|p| p / total.max(1e-9)).collect();
                // At the stationary point Qp = (pᵀQp) e; the tolerance on it bounds the gain.
                prop_assert!(reached <= objective(4, &pairs, &other) + 2.0 * 0.005);
            }
        }

        #[test]
        fn the_fixed_point_residual_is_below_the_tolerance(
            pairs in prop::collection::vec(0.01..0.99_f64, 10)
        ) {
            let p = couple_pairs(5, &pairs);
            let mut r = [[0.0; 5]; 5];
            let mut next = pairs.iter();
            for i in 0..5 {
                for j in i + 1..5 {
                    r[i][j] = *next.next().unwrap();
                    r[j][i] = 1.0 - r[i][j];
                }
            }
            let gradient = |t: usize| -> f64 {
                (0..5).filter(|&j| j != t).map(|j| r[j][t] * (r[j][t] * p[t] - r[t][j] * p[j])).sum()
            };
            let value: f64 = (0..5).map(|t| p[t] * gradient(t)).sum();
            for t in 0..5 {
                prop_assert!((gradient(t) - value).abs() < 0.005 / 5.0 + 1e-12);
            }
        }
    }
}
