//! Platt's sigmoid P(positive | f) = 1 / (1 + exp(A f + B)) by regularised maximum likelihood.
//!
//! Minimises −Σ tᵢ log pᵢ + (1 − tᵢ) log(1 − pᵢ) with targets t = (N₊ + 1)/(N₊ + 2) for positive
//! rows and 1/(N₋ + 2) for negative ones, by Newton's method with backtracking and the stopping rule
//! of LIBSVM (Lin, Lin & Weng, "A note on Platt's probabilistic outputs for support vector
//! machines", Machine Learning 68, 2007, appendix C).

/// Newton steps at most.
const STEPS: usize = 100;
/// Added to the diagonal of the Hessian so that it can be inverted.
const RIDGE: f64 = 1e-12;
/// Largest gradient component at the end.
const GRADIENT: f64 = 1e-5;
/// Shortest step tried by backtracking.
const SHORTEST: f64 = 1e-10;
/// Share of the promised decrease that a step must achieve.
const DECREASE: f64 = 1e-4;

/// P(positive | f) = 1 / (1 + exp(`a` f + `b`)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sigmoid {
    /// A, negative when larger values are more probably positive.
    pub a: f64,
    /// B.
    pub b: f64,
}

impl Sigmoid {
    /// The probability of the positive side at decision value `f`; never overflows.
    pub(crate) fn probability(self, f: f64) -> f64 {
        let exponent = self.a * f + self.b;
        if exponent >= 0.0 {
            let e = (-exponent).exp();
            e / (1.0 + e)
        } else {
            1.0 / (1.0 + exponent.exp())
        }
    }
}

/// Fits the sigmoid to decision values of rows that the machine had not seen.
///
/// Values and sides come in the same order; with no rows at all the probability is ½ everywhere.
pub(crate) fn fit_sigmoid(values: &[f64], positive: &[bool]) -> Sigmoid {
    let rows = values.len().min(positive.len());
    let above = positive[..rows].iter().filter(|side| **side).count() as f64;
    let below = rows as f64 - above;
    let (high, low) = ((above + 1.0) / (above + 2.0), 1.0 / (below + 2.0));
    let samples: Vec<(f64, f64)> = values
        .iter()
        .zip(positive)
        .map(|(&value, &side)| (value, if side { high } else { low }))
        .collect();
    let mut current = Sigmoid { a: 0.0, b: ((below + 1.0) / (above + 1.0)).ln() };
    let mut loss = negative_log_likelihood(&samples, current);
    for _ in 0..STEPS {
        let (gradient, hessian) = derivatives(&samples, current);
        if gradient.0.abs() < GRADIENT && gradient.1.abs() < GRADIENT {
            break;
        }
        let determinant = hessian.0 * hessian.2 - hessian.1 * hessian.1;
        let step_a = -(hessian.2 * gradient.0 - hessian.1 * gradient.1) / determinant;
        let step_b = -(hessian.0 * gradient.1 - hessian.1 * gradient.0) / determinant;
        let slope = gradient.0 * step_a + gradient.1 * step_b;
        let mut length = 1.0;
        let accepted = loop {
            let tried = Sigmoid { a: current.a + length * step_a, b: current.b + length * step_b };
            let tried_loss = negative_log_likelihood(&samples, tried);
            if tried_loss < loss + DECREASE * length * slope {
                break Some((tried, tried_loss));
            }
            length *= 0.5;
            if length < SHORTEST {
                break None;
            }
        };
        match accepted {
            Some(better) => (current, loss) = better,
            None => break,
        }
    }
    current
}

fn negative_log_likelihood(samples: &[(f64, f64)], sigmoid: Sigmoid) -> f64 {
    let term = |&(value, target): &(f64, f64)| {
        let exponent = sigmoid.a * value + sigmoid.b;
        if exponent >= 0.0 {
            target * exponent + (-exponent).exp().ln_1p()
        } else {
            (target - 1.0) * exponent + exponent.exp().ln_1p()
        }
    };
    samples.iter().map(term).sum()
}

/// Gradient (A, B) and Hessian (AA, AB, BB).
fn derivatives(samples: &[(f64, f64)], sigmoid: Sigmoid) -> ((f64, f64), (f64, f64, f64)) {
    let mut gradient = (0.0, 0.0);
    let mut hessian = (RIDGE, 0.0, RIDGE);
    for &(value, target) in samples {
        let p = sigmoid.probability(value);
        let curvature = p * (1.0 - p);
        hessian.0 += value * value * curvature;
        hessian.1 += value * curvature;
        hessian.2 += curvature;
        gradient.0 += value * (target - p);
        gradient.1 += target - p;
    }
    (gradient, hessian)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn without_signal_the_probability_is_the_share_of_targets() {
        // At A = 0 the optimal p is the mean target.
        let values = [0.0; 5];
        let positive = [true, true, true, false, false];
        let sigmoid = fit_sigmoid(&values, &positive);
        let mean = (3.0 * (4.0 / 5.0) + 2.0 * (1.0 / 4.0)) / 5.0;
        assert!((sigmoid.probability(0.0) - mean).abs() < 1e-6);
    }

    #[test]
    fn two_values_have_a_closed_form() {
        // With one value on each side the model is saturated: p equals the target at both.
        let values = [2.0, 2.0, -1.0, -1.0, -1.0];
        let positive = [true, true, false, false, false];
        let sigmoid = fit_sigmoid(&values, &positive);
        assert!((sigmoid.probability(2.0) - 3.0 / 4.0).abs() < 1e-5);
        assert!((sigmoid.probability(-1.0) - 1.0 / 5.0).abs() < 1e-5);
    }

    #[test]
    fn extreme_exponents_stay_finite() {
        let sigmoid = Sigmoid { a: -1e300, b: 0.0 };
        assert_eq!(sigmoid.probability(1e10), 1.0);
        assert_eq!(sigmoid.probability(-1e10), 0.0);
        assert_eq!(fit_sigmoid(&[], &[]).probability(3.0), 0.5);
    }

    proptest! {
        #[test]
        fn the_gradient_vanishes(
            rows in prop::collection::vec((-5.0..5.0_f64, any::<bool>()), 1..60)
        ) {
            let (values, positive): (Vec<f64>, Vec<bool>) = rows.into_iter().unzip();
            let sigmoid = fit_sigmoid(&values, &positive);
            // An independent derivative: central differences of the plain log-likelihood.
            let above = positive.iter().filter(|p| **p).count() as f64;
            let below = values.len() as f64 - above;
            let loss = |a: f64, b: f64| -> f64 {
                values.iter().zip(&positive).map(|(f, side)| {
                    let p = 1.0 / (1.0 + (a * f + b).exp());
                    let t = if *side { (above + 1.0) / (above + 2.0) } else { 1.0 / (below + 2.0) };
                    -t * p.ln() - (1.0 - t) * (1.0 - p).ln()
                }).sum()
            };
            let h = 1e-5;
            let Sigmoid { a, b } = sigmoid;
            let by_a = (loss(a + h, b) - loss(a - h, b)) / (2.0 * h);
            let by_b = (loss(a, b + h) - loss(a, b - h)) / (2.0 * h);
            prop_assert!(by_a.abs() < 1e-4 && by_b.abs() < 1e-4, "{by_a} {by_b}");
        }
    }
}
