//! Class probabilities from the probabilities of the two sides of arbitrary splits of the classes.
//!
//! The generalised Bradley–Terry model: split f with classes S₊ on its positive and S₋ on its
//! negative side has P(S₊ | S₊ ∪ S₋) = p(S₊)/p(S₊ ∪ S₋). Maximises Σ_f r_f log p(S₊) +
//! (1 − r_f) log p(S₋) − log p(S₊ ∪ S₋) by multiplicative updates that never decrease it (Huang, Weng
//! & Lin, "Generalized Bradley-Terry models and multi-class probability estimates", JMLR 7, 2006).

/// Sweeps at most.
const SWEEPS: usize = 1000;

/// Relative change of every probability at the end.
const TOLERANCE: f64 = 1e-6;

/// Probabilities of the classes; `codes[c][f]` is the side (−1, 0, +1) of class c in split f, and
/// `sides[f]` in (0, 1) the probability of its positive side.
pub(crate) fn couple_splits(codes: &[Vec<i8>], sides: &[f64]) -> Vec<f64> {
    let classes = codes.len();
    let mut p = vec![1.0 / classes as f64; classes];
    for _ in 0..SWEEPS {
        let sums: Vec<(f64, f64)> = (0..sides.len()).map(|f| side_sums(codes, &p, f)).collect();
        let mut change = 0.0_f64;
        let mut next: Vec<f64> =
            (0..classes).map(|c| p[c] * factor(&codes[c], sides, &sums)).collect();
        let total: f64 = next.iter().sum();
        for (new, old) in next.iter_mut().zip(&p) {
            *new /= total;
            change = change.max((*new - old).abs());
        }
        p = next;
        if change < TOLERANCE {
            break;
        }
    }
    p
}

/// p(S₊) and p(S₋) of a split.
fn side_sums(codes: &[Vec<i8>], p: &[f64], f: usize) -> (f64, f64) {
    let side = |sign: i8| codes.iter().zip(p).filter(|(c, _)| c[f] == sign).map(|(_, p)| p).sum();
    (side(1), side(-1))
}

/// By how much the probability of a class with this code must grow.
fn factor(code: &[i8], sides: &[f64], sums: &[(f64, f64)]) -> f64 {
    let (mut gain, mut loss) = (0.0, 0.0);
    for ((&sign, &r), &(positive, negative)) in code.iter().zip(sides).zip(sums) {
        match sign {
            0 => continue,
            1 => gain += r / positive,
            _ => gain += (1.0 - r) / negative,
        }
        loss += 1.0 / (positive + negative);
    }
    if loss > 0.0 { gain / loss } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn likelihood(codes: &[Vec<i8>], sides: &[f64], p: &[f64]) -> f64 {
        let term = |(f, r): (usize, &f64)| {
            let (positive, negative) = side_sums(codes, p, f);
            r * positive.ln() + (1.0 - r) * negative.ln() - (positive + negative).ln()
        };
        sides.iter().enumerate().map(term).sum()
    }

    fn exhaustive() -> Vec<Vec<i8>> {
        let sign = |c: usize, split: usize| if split >> c & 1 == 1 { 1 } else { -1 };
        (0..4).map(|c| (1..8).map(|split| sign(c, split)).collect()).collect()
    }

    proptest! {
        #[test]
        fn consistent_splits_give_their_classes_back(
            weights in prop::collection::vec(0.05..1.0_f64, 4)
        ) {
            let total: f64 = weights.iter().sum();
            let p: Vec<f64> = weights.iter().map(|w| w / total).collect();
            let codes = exhaustive();
            let sides: Vec<f64> = (0..7).map(|f| side_sums(&codes, &p, f).0).collect();
            for (found, expected) in couple_splits(&codes, &sides).iter().zip(&p) {
                prop_assert!((found - expected).abs() < 1e-4, "{found} for {expected}");
            }
        }

        #[test]
        fn no_other_distribution_is_likelier(
            sides in prop::collection::vec(0.05..0.95_f64, 7),
            other in prop::collection::vec(0.01..1.0_f64, 4),
        ) {
            let codes = exhaustive();
            let p = couple_splits(&codes, &sides);
            let total: f64 = other.iter().sum();
            let other: Vec<f64> = other.iter().map(|o| o / total).collect();
            prop_assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            let gain = likelihood(&codes, &sides, &other) - likelihood(&codes, &sides, &p);
            prop_assert!(gain < 1e-3, "{gain}");
        }
    }
}
