//! Tests of a difference in accuracy: the corrected resampled t-test (Nadeau and Bengio, 2003), for folds
//! that share training rows, and McNemar's exact test.

use crate::numeric::special::{incomplete_beta, t_quantile, t_two_sided};

/// Half the width of the interval around a mean of accuracies.
pub(super) fn half_width(values: &[f64], ratio: f64, confidence: f64) -> f64 {
    let freedom = values.len() as f64 - 1.0;
    corrected_deviation(values, ratio) * t_quantile(confidence, freedom)
}

/// The mean of differences and the two-sided probability of one at least as large under none.
pub(super) fn corrected_t(differences: &[f64], ratio: f64) -> (f64, f64) {
    let count = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / count;
    let deviation = corrected_deviation(differences, ratio);
    if deviation == 0.0 {
        return (mean, if mean == 0.0 { 1.0 } else { 0.0 });
    }
    (mean, t_two_sided(mean / deviation, count - 1.0))
}

/// √((1/n + ratio) s²)
fn corrected_deviation(values: &[f64], ratio: f64) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    ((1.0 / count + ratio) * squares / (count - 1.0)).sqrt()
}

/// Two-sided exact probability of counts at least as uneven if both were equally likely.
pub(super) fn mcnemar(first: usize, second: usize) -> f64 {
    let (total, larger) = ((first + second) as f64, first.max(second) as f64);
    if total == 0.0 {
        return 1.0;
    }
    // P(X ≥ k) of a fair coin is a beta integral.
    (2.0 * incomplete_beta(0.5, larger, total - larger + 1.0)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcnemar_counts_coin_throws() {
        // 8 or more heads, or tails, of 10.
        let tail = f64::from(45 + 10 + 1) / 1024.0;
        assert!((mcnemar(8, 2) - 2.0 * tail).abs() < 1e-12);
        assert_eq!((mcnemar(0, 0), mcnemar(5, 5)), (1.0, 1.0));
    }

    #[test]
    fn the_correction_widens_by_the_share_of_test_rows() {
        let values = [0.1, 0.2, 0.3, 0.4];
        let plain = corrected_deviation(&values, 0.0);
        assert!((corrected_deviation(&values, 0.25) / plain - 2.0_f64.sqrt()).abs() < 1e-12);
        let (mean, p) = corrected_t(&values, 0.0);
        assert!((mean - 0.25).abs() < 1e-15);
        // t = 0.25 / 0.0645497 = 3.87298, three degrees of freedom.
        assert!((p - 0.030466).abs() < 1e-5, "{p}");
    }
}
