//! The best weights of a mixture whose components are given, with a bound of what any weights reach.
//!
//! φ(w) = Σₖ cₖ ln Σⱼ wⱼ eᵏʲ is concave on the simplex. With dⱼ = ∂φ/∂wⱼ = Σₖ cₖ rₖⱼ, rₖⱼ = eᵏʲ / Σᵢ wᵢ eᵏⁱ, Jensen's
//! inequality gives φ(w*) ≤ φ(w) + N ln(maxⱼ dⱼ / N) for every w and N = Σ cₖ. The weights are found by sequential
//! quadratic programs with the exact second derivatives (Kim, Carbonetto, Stephens and Anitescu 2020).

use crate::numeric::algebra::dot;

/// Quadratic programs; fewer than ten are usual.
const MAX_ROUNDS: usize = 100;

/// Sweeps over the weights in a quadratic program.
const SWEEPS: usize = 100;

/// Share of the decrease that the gradient predicts from which a step is taken.
const ACCEPTED: f64 = 1e-4;

/// Weight that every component has at the start, so that none has to come back from 0.
const LEAST_SHARE: f64 = 0.1;

/// Terms that are summed at a time, so that rounding errors grow with their number and not with all.
const SUMMED: usize = 64;

/// Weights, and the value that no others exceed.
pub(super) struct Fit {
    pub bound: f64,
    pub weights: Vec<f64>,
}

/// Rows of densities.
pub(super) struct Table<'a> {
    /// Densities over the largest of their row.
    shares: Vec<f64>,
    counts: &'a [f64],
    components: usize,
    total: f64,
    /// Σ cₖ times the logarithms of the largest.
    base: f64,
    /// What rounding may have taken off a bound.
    rounding: f64,
}

impl<'a> Table<'a> {
    /// From logarithms of densities, row by row.
    pub(super) fn new(mut logarithms: Vec<f64>, counts: &'a [f64], components: usize) -> Self {
        let mut largest = Vec::with_capacity(counts.len());
        for row in logarithms.chunks_exact_mut(components) {
            let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.iter_mut().for_each(|value| *value = (*value - most).exp());
            largest.push(most);
        }
        let base = sum(counts.iter().zip(&largest).map(|(count, most)| count * most));
        let size: f64 = counts.iter().zip(&largest).map(|(c, most)| c * (most.abs() + 1.0)).sum();
        let errors = (SUMMED + counts.len() / SUMMED + 4) as f64 * f64::EPSILON;
        let total = counts.iter().sum();
        Self { shares: logarithms, counts, components, total, base, rounding: errors * size }
    }

    /// The best weights to an accuracy, or earlier where no weights reach `worthless`.
    pub(super) fn fit(&self, start: &[f64], accuracy: f64, worthless: f64) -> Fit {
        let n = self.components;
        let least = LEAST_SHARE / n as f64;
        let mut weights: Vec<f64> = start.iter().map(|w| (1.0 - LEAST_SHARE) * w + least).collect();
        let mut bound = f64::INFINITY;
        let mut value = self.value(&weights);
        for _ in 0..MAX_ROUNDS {
            let (slopes, curvature) = self.derivatives(&weights);
            let steepest = slopes.iter().copied().fold(0.0, f64::max);
            let proven = value + self.total * (steepest / self.total).ln().max(0.0);
            let lowered = proven < bound;
            bound = bound.min(proven);
            if bound - value <= accuracy || bound + self.rounding < worthless {
                break;
            }
            let step = self.step(&weights, &slopes, &curvature);
            // Close to the maximum rounding hides the rise of the value while the bound still falls.
            let hidden = if lowered { self.rounding } else { 0.0 };
            let Some((moved, reached)) = self.search(&weights, value, &slopes, &step, hidden)
            else {
                break;
            };
            (weights, value) = (moved, reached);
        }
        Fit { bound: bound + self.rounding, weights }
    }

    fn value(&self, weights: &[f64]) -> f64 {
        let rows = self.shares.chunks_exact(self.components).zip(self.counts);
        self.base + sum(rows.map(|(row, count)| count * dot(row, weights).ln()))
    }

    /// First derivatives, and the second ones with the opposite sign.
    fn derivatives(&self, weights: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let n = self.components;
        let (mut slopes, mut curvature) = (vec![0.0; n], vec![0.0; n * n]);
        for (row, count) in self.shares.chunks_exact(n).zip(self.counts) {
            let density = dot(row, weights);
            for (i, share) in row.iter().enumerate() {
                let ratio = share / density;
                slopes[i] += count * ratio;
                for (out, other) in curvature[i * n..][..=i].iter_mut().zip(row) {
                    *out += count * ratio * (other / density);
                }
            }
        }
        for i in 0..n {
            (0..i).for_each(|j| curvature[j * n + i] = curvature[i * n + j]);
        }
        (slopes, curvature)
    }

    /// The step that minimises the quadratic model of N Σw − φ(w) over w ≥ 0, whose minimum has Σw = 1.
    fn step(&self, weights: &[f64], slopes: &[f64], curvature: &[f64]) -> Vec<f64> {
        let n = self.components;
        let mut step = vec![0.0; n];
        for _ in 0..SWEEPS {
            let mut largest = 0.0_f64;
            for j in 0..n {
                let row = &curvature[j * n..][..n];
                let slope = self.total - slopes[j] + dot(row, &step);
                // A component without density at any row has no curvature, and its slope is N.
                let next = (step[j] - slope / row[j].max(f64::MIN_POSITIVE)).max(-weights[j]);
                largest = largest.max((next - step[j]).abs());
                step[j] = next;
            }
            if largest <= 1e-14 {
                break;
            }
        }
        step
    }

    /// Goes along the step while it pays; nothing where rounding lets it pay no more. A rise of at most `hidden` need
    /// not show in the value.
    fn search(
        &self,
        weights: &[f64],
        value: f64,
        slopes: &[f64],
        step: &[f64],
        hidden: f64,
    ) -> Option<(Vec<f64>, f64)> {
        let rise = dot(slopes, step) - self.total * step.iter().sum::<f64>();
        let mut length = 1.0;
        while rise > 0.0 && length > 1e-8 {
            let moved = weights.iter().zip(step).map(|(w, s)| (w + length * s).max(0.0));
            let mut moved: Vec<f64> = moved.collect();
            let sum: f64 = moved.iter().sum();
            // The likelihood of any multiple, less N times the sum, is best where the sum is 1.
            moved.iter_mut().for_each(|w| *w /= sum);
            let reached = self.value(&moved);
            let rises = reached > value + ACCEPTED * length * rise.min(1.0);
            if rises || rise <= hidden && reached >= value - hidden {
                return Some((moved, reached));
            }
            length *= 0.5;
        }
        None
    }
}

/// A sum in parts.
fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    let (mut total, mut part) = (0.0, 0.0);
    for (i, term) in terms.enumerate() {
        if i % SUMMED == 0 {
            total += part;
            part = 0.0;
        }
        part += term;
    }
    total + part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::random::Generator;

    #[test]
    fn the_weights_beat_a_grid_and_the_bound_holds() {
        let mut generator = Generator::new(3);
        for seed in 0..20 {
            let counts: Vec<f64> = (0..12).map(|k| 1.0 + f64::from((k + seed) % 3)).collect();
            let logarithms: Vec<f64> = (0..36).map(|_| 3.0 * generator.normal()).collect();
            let table = Table::new(logarithms.clone(), &counts, 3);
            let fit = table.fit(&[1.0 / 3.0; 3], 1e-9, f64::NEG_INFINITY);
            let value = table.value(&fit.weights);
            assert!(fit.bound - value < 2e-9, "{} {value}", fit.bound);
            for i in 0..=50 {
                for j in 0..=50 - i {
                    let (a, b) = (f64::from(i) / 50.0, f64::from(j) / 50.0);
                    let at = |row: &[f64]| {
                        (a * row[0].exp() + b * row[1].exp() + (1.0 - a - b) * row[2].exp()).ln()
                    };
                    let rows = logarithms.chunks_exact(3).zip(&counts);
                    let value: f64 = rows.map(|(row, count)| count * at(row)).sum();
                    assert!(value <= fit.bound, "{value} {}", fit.bound);
                }
            }
        }
    }

    #[test]
    fn equal_and_hopeless_components_are_no_trouble() {
        let counts = [1.0; 4];
        let rows = [[0.0, 0.0, -1e4], [-1.0, -1.0, -1e5], [2.0, 2.0, -1e3], [0.5, 0.5, -2e3]];
        let table = Table::new(rows.concat(), &counts, 3);
        let fit = table.fit(&[0.2, 0.3, 0.5], 1e-9, f64::NEG_INFINITY);
        let value = table.value(&fit.weights);
        assert!((value - 1.5).abs() < 1e-8 && fit.bound >= 1.5, "{value} {}", fit.bound);
    }
}
