//! Student's t for means over folds that share rows, and McNemar's exact test.

/// Half the width of the interval around a mean of accuracies.
pub(super) fn half_width(values: &[f64], ratio: f64, confidence: f64) -> f64 {
    let freedom = values.len() as f64 - 1.0;
    corrected_deviation(values, ratio) * t_quantile(0.5 + 0.5 * confidence, freedom)
}

/// The mean of differences and the two-sided probability of one at least as large under none.
pub(super) fn corrected_t(differences: &[f64], ratio: f64) -> (f64, f64) {
    let count = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / count;
    let deviation = corrected_deviation(differences, ratio);
    if deviation == 0.0 {
        return (mean, if mean == 0.0 { 1.0 } else { 0.0 });
    }
    let t = (mean / deviation).abs();
    (mean, 2.0 * (1.0 - t_probability(t, count - 1.0)))
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
    (2.0 * beta_share(0.5, larger, total - larger + 1.0)).min(1.0)
}

/// P(T ≤ t) of Student's distribution.
fn t_probability(t: f64, freedom: f64) -> f64 {
    let tail = 0.5 * beta_share(freedom / (freedom + t * t), 0.5 * freedom, 0.5);
    if t >= 0.0 { 1.0 - tail } else { tail }
}

/// The t with P(T ≤ t) = `share` ≥ ½, by bisection.
fn t_quantile(share: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while t_probability(high, freedom) < share && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if t_probability(middle, freedom) < share {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The regularised incomplete beta function I_x(a, b), by its continued fraction (DLMF 8.17.22).
fn beta_share(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    // The fraction converges fast for small x; the mirror image serves the rest.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_share(1.0 - x, b, a);
    }
    let front = a * x.ln() + b * (1.0 - x).ln() + log_gamma(a + b) - log_gamma(a) - log_gamma(b);
    let term = |m: usize| {
        let half = (m / 2) as f64;
        if m == 0 {
            1.0
        } else if m.is_multiple_of(2) {
            half * (b - half) * x / ((a + 2.0 * half - 1.0) * (a + 2.0 * half))
        } else {
            -(a + half) * (a + b + half) * x / ((a + 2.0 * half) * (a + 2.0 * half + 1.0))
        }
    };
    // From the far end back to the front.
    let mut fraction = 1.0;
    for m in (1..400).rev() {
        fraction = 1.0 + term(m) / fraction;
    }
    front.exp() / (a * fraction)
}

/// ln Γ(x) for x > 0, by Stirling's series after moving x up.
fn log_gamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 12.0 {
        shift += f64::ln(x);
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    let series = (1.0 / 12.0
        - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse * (1.0 / 1680.0))))
        / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // Fisher and Yates, table III.
        for (freedom, expected) in [(1.0, 12.7062), (4.0, 2.7764), (9.0, 2.2622), (30.0, 2.0423)] {
            let found = t_quantile(0.975, freedom);
            assert!((found - expected).abs() < 5e-5, "{freedom}: {found}");
        }
        assert!((t_probability(0.0, 5.0) - 0.5).abs() < 1e-12);
        // One degree of freedom is Cauchy's distribution.
        let cauchy = 0.5 + 2.0_f64.atan() / std::f64::consts::PI;
        assert!((t_probability(2.0, 1.0) - cauchy).abs() < 1e-12);
    }

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
