//! What to try next: a Gaussian process through the scores so far, and the point with the largest
//! expected improvement.
//!
//! Scores y at points x of the unit cube are modelled with the Matérn kernel of smoothness 5/2; its
//! length is the one of a short list that makes the scores most likely. The next point maximises the
//! expected improvement over the best score (Jones, Schonlau and Welch, 1998) among random points and
//! points around the best.

use crate::context::Context;
use crate::numeric::algebra::Cholesky;
use crate::numeric::random::Generator;
use crate::numeric::special::normal_probability;

/// Lengths that are tried, in sides of the cube.
const LENGTHS: [f64; 5] = [0.1, 0.2, 0.35, 0.6, 1.0];

/// Variance of the scores' noise, as a share of theirs.
const NOISE: f64 = 1e-3;

/// Points among which the next one is chosen.
const CANDIDATES: usize = 2000;

/// A model of scores, fitted.
struct Process<'a> {
    points: &'a [Vec<f64>],
    length: f64,
    factor: Cholesky,
    /// (K + noise)⁻¹ times the standardised scores.
    weights: Vec<f64>,
    likelihood: f64,
}

fn matern(a: &[f64], b: &[f64], length: f64) -> f64 {
    let squares: f64 = a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum();
    let r = 5f64.sqrt() * squares.sqrt() / length;
    (1.0 + r + r * r / 3.0) * (-r).exp()
}

impl<'a> Process<'a> {
    fn new(points: &'a [Vec<f64>], scores: &[f64], length: f64, context: &Context) -> Option<Self> {
        let n = points.len();
        let entry = |k: usize| {
            let (i, j) = (k / n, k % n);
            matern(&points[i], &points[j], length) + if i == j { NOISE } else { 0.0 }
        };
        let factor = Cholesky::new((0..n * n).map(entry).collect(), n, context)?;
        let mut weights = scores.to_vec();
        factor.solve(&mut weights);
        let fit: f64 = weights.iter().zip(scores).map(|(w, s)| w * s).sum();
        let likelihood = -0.5 * fit - 0.5 * factor.log_determinant();
        Some(Self { points, length, factor, weights, likelihood })
    }

    /// Mean and deviation of the score at a point.
    fn at(&self, x: &[f64]) -> (f64, f64) {
        let mut column: Vec<f64> =
            self.points.iter().map(|point| matern(point, x, self.length)).collect();
        let mean = column.iter().zip(&self.weights).map(|(k, w)| k * w).sum();
        self.factor.solve_lower(&mut column);
        let known: f64 = column.iter().map(|v| v * v).sum();
        (mean, (1.0 - known).max(1e-12).sqrt())
    }
}

/// The points of the unit cube of so many dimensions d to try next, given points with their scores
/// (more is better): 2 d + 2 at random while none has one, then the one with the largest expected
/// improvement.
///
/// A point that failed has the score NaN, and counts as bad as the worst of the others.
pub(super) fn suggest(
    points: &[Vec<f64>],
    scores: &[f64],
    dimensions: usize,
    generator: &mut Generator,
    context: &Context,
) -> Vec<Vec<f64>> {
    let random = |generator: &mut Generator| -> Vec<f64> {
        (0..dimensions).map(|_| generator.unit()).collect()
    };
    let finite = scores.iter().copied().filter(|score| score.is_finite());
    let Some(worst) = finite.reduce(f64::min) else {
        return (0..2 * dimensions + 2).map(|_| random(generator)).collect();
    };
    let scores: Vec<f64> =
        scores.iter().map(|&score| if score.is_finite() { score } else { worst }).collect();
    let count = scores.len() as f64;
    let mean = scores.iter().sum::<f64>() / count;
    let variance = scores.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / count;
    let deviation = if variance > 0.0 { variance.sqrt() } else { 1.0 };
    let standard: Vec<f64> = scores.iter().map(|s| (s - mean) / deviation).collect();
    let mut process: Option<Process<'_>> = None;
    for length in LENGTHS {
        if let Some(other) = Process::new(points, &standard, length, context)
            && process.as_ref().is_none_or(|best| other.likelihood > best.likelihood)
        {
            process = Some(other);
        }
    }
    let leader = (0..standard.len()).max_by(|&a, &b| standard[a].total_cmp(&standard[b]));
    let (Some(process), Some(leader)) = (process, leader) else {
        return vec![random(generator)];
    };
    let mut best = (f64::NEG_INFINITY, random(generator));
    for candidate in 0..CANDIDATES {
        let mut x = random(generator);
        if candidate % 2 == 1 {
            let width = 0.2 * generator.unit();
            for (x, centre) in x.iter_mut().zip(&points[leader]) {
                *x = (centre + width * (2.0 * *x - 1.0)).clamp(0.0, 1.0);
            }
        }
        let (mean, deviation) = process.at(&x);
        let gain = improvement(mean - standard[leader], deviation);
        if gain > best.0 {
            best = (gain, x);
        }
    }
    vec![best.1]
}

/// E max(0, N(lead, deviation²)).
fn improvement(lead: f64, deviation: f64) -> f64 {
    let z = lead / deviation;
    let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
    lead * normal_probability(z) + deviation * density
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn improvement_equals_its_integral() {
        for (lead, deviation) in [(-1.0, 0.5), (0.0, 1.0), (0.3, 0.2)] {
            let (steps, width) = (200_000, 20.0);
            let sum: f64 = (0..steps)
                .map(|i| {
                    let z = -0.5 * width + width * (f64::from(i) + 0.5) / f64::from(steps);
                    let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
                    f64::max(0.0, lead + deviation * z) * density
                })
                .sum();
            let integral = sum * width / f64::from(steps);
            assert!((improvement(lead, deviation) - integral).abs() < 1e-6);
        }
    }

    #[test]
    fn a_smooth_peak_is_found_in_few_looks() {
        let height = |x: &[f64]| -(x[0] - 0.73).powi(2) - 2.0 * (x[1] - 0.21).powi(2);
        let mut generator = Generator::new(3);
        let context = Context::new();
        let mut points: Vec<Vec<f64>> = Vec::new();
        for i in 0..4 {
            points.push(vec![f64::from(i % 2) * 0.5 + 0.25, f64::from(i / 2) * 0.5 + 0.25]);
        }
        for _ in 0..20 {
            let scores: Vec<f64> = points.iter().map(|p| height(p)).collect();
            points.extend(suggest(&points, &scores, 2, &mut generator, &context));
        }
        let best = points.iter().map(|p| height(p)).fold(f64::NEG_INFINITY, f64::max);
        assert!(best > -1e-3, "{best}");
    }

    #[test]
    fn a_region_that_fails_is_left() {
        let height = |x: &[f64]| if x[0] > 0.5 { f64::NAN } else { -(x[0] - 0.4).powi(2) };
        let context = Context::new();
        let mut points: Vec<Vec<f64>> = Vec::new();
        for seed in 0..16 {
            let scores: Vec<f64> = points.iter().map(|p| height(p)).collect();
            let mut generator = Generator::new(seed);
            points.extend(suggest(&points, &scores, 1, &mut generator, &context));
        }
        let failed = points[4..].iter().filter(|x| x[0] > 0.5).count();
        assert!(failed <= 3, "{points:?}");
        assert!(points.iter().any(|x| (x[0] - 0.4).abs() < 0.02), "{points:?}");
    }
}
