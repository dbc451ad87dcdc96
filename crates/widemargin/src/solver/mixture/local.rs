//! Expectation and maximisation with known variances: wⱼ = Σₖ cₖpₖⱼ / N, μⱼ = Σₖ cₖpₖⱼyₖ / Σₖ cₖpₖⱼ.

use super::{Mixture, Problem};
use crate::context::Context;
use crate::numeric::random::Generator;

/// Steps of EM from one start.
const MAX_STEPS: usize = 2000;

/// Relative change of the likelihood at which EM ends.
const SMALL: f64 = 1e-13;

/// Row weight below which a component stays where it is.
const EMPTY: f64 = 1e-12;

impl Problem {
    /// The likelihood of weights and means, and one step of EM from them.
    fn step(&self, weights: &[f64], means: &[f64]) -> (f64, Vec<f64>, Vec<f64>) {
        let (n, d) = (self.components(), self.features);
        let (mut mass, mut first) = (vec![0.0; n], vec![0.0; n * d]);
        let mut log_likelihood = 0.0;
        let mut joint = vec![0.0; n];
        for (k, &count) in self.counts.iter().enumerate() {
            for (j, joint) in joint.iter_mut().enumerate() {
                *joint = weights[j].ln() + self.log_density(k, j, &means[j * d..][..d]);
            }
            let largest = joint.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = joint.iter().map(|value| (value - largest).exp()).sum();
            log_likelihood += count * (largest + total.ln());
            for (j, joint) in joint.iter().enumerate() {
                let share = count * (joint - largest).exp() / total;
                mass[j] += share;
                first[j * d..][..d].iter_mut().zip(self.row(k)).for_each(|(f, y)| *f += share * y);
            }
        }
        let total: f64 = mass.iter().sum();
        for (j, mass) in mass.iter_mut().enumerate() {
            let first = &mut first[j * d..][..d];
            if *mass > EMPTY {
                first.iter_mut().for_each(|value| *value /= *mass);
            } else {
                first.copy_from_slice(&means[j * d..][..d]);
            }
            *mass /= total;
        }
        (log_likelihood, mass, first)
    }

    pub(super) fn log_likelihood(&self, weights: &[f64], means: &[f64]) -> f64 {
        self.step(weights, means).0
    }

    /// The maximum for one component, whose likelihood is concave: the mean of the rows.
    pub(super) fn single(&self) -> Mixture {
        let (_, weights, means) = self.step(&[1.0], self.row(0));
        let log_likelihood = self.log_likelihood(&weights, &means);
        Mixture { weights, means, log_likelihood }
    }

    /// A local maximum from a start.
    pub(super) fn climb(&self, weights: &[f64], means: &[f64], context: &Context) -> Mixture {
        let (mut weights, mut means) = (weights.to_vec(), means.to_vec());
        let mut before = f64::NEG_INFINITY;
        for _ in 0..MAX_STEPS {
            let (reached, next_weights, next_means) = self.step(&weights, &means);
            let small = reached - before <= SMALL * reached.abs();
            if small || context.stop_request().is_some() {
                return Mixture { weights, means, log_likelihood: reached };
            }
            (before, weights, means) = (reached, next_weights, next_means);
        }
        let log_likelihood = self.log_likelihood(&weights, &means);
        Mixture { weights, means, log_likelihood }
    }

    /// The best local maximum from some starts at rows; there is at least one.
    pub(super) fn best_of_starts(&self, starts: usize, context: &Context) -> Mixture {
        let (n, d) = (self.components(), self.features);
        let mut generator = Generator::new(context.seed());
        let mut best: Option<Mixture> = None;
        for _ in 0..starts.max(1) {
            let mut means = Vec::with_capacity(n * d);
            (0..n).for_each(|_| means.extend(self.row(generator.below(self.counts.len()))));
            let found = self.climb(&vec![1.0 / n as f64; n], &means, context);
            if best.as_ref().is_none_or(|best| found.log_likelihood > best.log_likelihood) {
                best = Some(found);
            }
            if context.stop_request().is_some() {
                break;
            }
        }
        best.unwrap_or_else(|| unreachable!("at least one start was made"))
    }
}
