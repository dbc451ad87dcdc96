//! Special functions: the normal and Student's t distribution, the incomplete beta function, ln Γ.
//!
//! erfc and ln Γ are those of the C library's mathematics (crate `libm`, within one or two units in the last
//! place). The incomplete beta function is a continued fraction (DLMF 8.17.22) whose factor in front is
//! taken from deviances, as in Loader ("Fast and accurate computation of binomial probabilities", 2000):
//! no crate keeps twelve digits for parameters of 10⁴ and more.

use std::f64::consts::{SQRT_2, TAU};

/// ln Γ(x) for x > 0.
pub(crate) fn log_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// P(N(0, 1) ≤ z).
pub(crate) fn normal_probability(z: f64) -> f64 {
    0.5 * libm::erfc(-z / SQRT_2)
}

/// P(|T| ≥ t) of Student's distribution.
pub(crate) fn t_two_sided(t: f64, freedom: f64) -> f64 {
    incomplete_beta(freedom / (freedom + t * t), 0.5 * freedom, 0.5)
}

/// The t with P(|T| ≤ t) = `confidence`, by bisection.
pub(crate) fn t_quantile(confidence: f64, freedom: f64) -> f64 {
    let outside = 1.0 - confidence;
    let (mut low, mut high) = (0.0, 1.0);
    while t_two_sided(high, freedom) > outside && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if t_two_sided(middle, freedom) > outside {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The regularised incomplete beta function I_x(a, b).
pub(crate) fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    // The fraction converges fast for small x; the mirror image serves the rest.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let term = |m: usize| {
        let half = (m / 2) as f64;
        if m.is_multiple_of(2) {
            half * (b - half) * x / ((a + 2.0 * half - 1.0) * (a + 2.0 * half))
        } else {
            -(a + half) * (a + b + half) * x / ((a + 2.0 * half) * (a + 2.0 * half + 1.0))
        }
    };
    // From the far end back to the front; the number of terms needed grows as the root of a + b.
    let terms = 200 + 4 * (a + b).sqrt() as usize;
    let fraction = (1..terms).rev().fold(1.0, |fraction, m| 1.0 + term(m) / fraction);
    beta_density(x, a, b) / (a * fraction)
}

/// xᵃ(1 − x)ᵇ / B(a, b), without differences of large logarithms.
fn beta_density(x: f64, a: f64, b: f64) -> f64 {
    let n = a + b;
    let away = n * x - a;
    // a ln(a/nx) + b ln(b/n(1 − x)): both logarithms are taken of 1 + something that is small near the mean.
    let deviance = |from: f64, away: f64| away - from * (away / from).ln_1p();
    let exponent = deviance(a, away) + deviance(b, -away);
    let correction = stirling_error(n) - stirling_error(a) - stirling_error(b);
    (a * b / (TAU * n)).sqrt() * (correction - exponent).exp()
}

/// ln Γ(x) − ((x − ½) ln x − x + ½ ln 2π).
fn stirling_error(x: f64) -> f64 {
    if x < 16.0 {
        return log_gamma(x) - ((x - 0.5) * x.ln() - x + 0.5 * TAU.ln());
    }
    let s = 1.0 / (x * x);
    (1.0 / 12.0 - s * (1.0 / 360.0 - s * (1.0 / 1260.0 - s * (1.0 / 1680.0 - s / 1188.0)))) / x
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(found: f64, expected: f64, what: &str) {
        let error = ((found - expected) / expected).abs();
        assert!(error < 1e-12, "{what}: {found}, not {expected}, off by {error:e}");
    }

    // The expected values are those of mpmath with 40 digits.

    #[test]
    fn log_gamma_has_twelve_digits() {
        for (x, expected) in [
            (0.1, 2.252_712_651_734_206),
            (1.5, -0.120_782_237_635_245_22),
            (7.25, 7.052_185_450_738_539_4),
            (123.5, 469.817_275_491_930_6),
            (1e5, 1_051_287.708_973_656_9),
        ] {
            assert_close(log_gamma(x), expected, &format!("ln gamma {x}"));
        }
    }

    #[test]
    fn the_normal_distribution_has_twelve_digits() {
        for (z, expected) in [
            (-8.0, 6.220_960_574_271_784e-16),
            (-3.0, 0.001_349_898_031_630_094_5),
            (-0.1, 0.460_172_162_722_971),
            (0.0, 0.5),
            (1.0, 0.841_344_746_068_542_9),
            (4.0, 0.999_968_328_758_166_9),
        ] {
            assert_close(normal_probability(z), expected, &format!("normal {z}"));
        }
    }

    #[test]
    fn the_incomplete_beta_function_has_twelve_digits() {
        for (a, b, x, expected) in [
            (0.5, 0.5, 0.3, 0.369_010_119_565_545_4),
            (4.5, 0.5, 0.9, 0.343_436_396_137_913_6),
            (0.5, 4.5, 0.1, 0.656_563_603_862_086_5),
            (15.0, 0.5, 0.99, 0.586_064_964_776_335_4),
            (49.5, 0.5, 0.8, 2.752_200_495_569_33e-6),
            (500.0, 500.0, 0.48, 0.102_917_527_306_995_71),
            (4999.5, 0.5, 0.9995, 0.025_339_993_683_822_384),
            (5000.0, 5100.0, 0.5, 0.840_152_870_812_137_9),
            (20_000.0, 19_000.0, 0.51, 0.132_562_281_714_249_5),
            (1e5, 1e5, 0.501, 0.814_453_255_442_443_2),
            (1000.0, 1.0, 0.99, 0.000_043_171_247_410_657_86),
        ] {
            assert_close(incomplete_beta(x, a, b), expected, &format!("beta {a} {b} {x}"));
        }
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // Fisher and Yates, table III.
        for (freedom, expected) in [(1.0, 12.7062), (4.0, 2.7764), (9.0, 2.2622), (30.0, 2.0423)] {
            let found = t_quantile(0.95, freedom);
            assert!((found - expected).abs() < 5e-5, "{freedom}: {found}");
        }
        // One degree of freedom is Cauchy's distribution, whose quantile is a tangent.
        assert_close(t_quantile(0.5, 1.0), 1.0, "quartile of Cauchy's distribution");
        let cauchy = 1.0 - 2.0 * 2.0_f64.atan() / std::f64::consts::PI;
        assert_close(t_two_sided(2.0, 1.0), cauchy, "tails of Cauchy's distribution");
    }
}
