//! The M-step of EM: the parameters that maximise the expected likelihood given the sums of a pass.

use super::covariance::{Covariance, Factor};
use super::fit::GaussianMixture;
use super::pass::{Component, Second, Sums};
use crate::context::Context;
use crate::error::Result;

/// Parameters of some components.
#[derive(Clone)]
pub(super) struct Parameters {
    pub(super) weights: Vec<f64>,
    pub(super) means: Vec<f64>,
    pub(super) covariances: Vec<f64>,
}

impl Parameters {
    /// The largest change of a weight, a mean or a covariance, in Euclid's norm.
    pub(super) fn change(&self, other: &Self) -> f64 {
        let components = self.weights.len();
        let largest = |a: &[f64], b: &[f64]| {
            let size = (a.len() / components).max(1);
            let each = a.chunks(size).zip(b.chunks(size));
            let norm = |(a, b): (&[f64], &[f64])| {
                a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
            };
            each.map(norm).fold(0.0, f64::max)
        };
        largest(&self.weights, &other.weights)
            .max(largest(&self.means, &other.means))
            .max(largest(&self.covariances, &other.covariances))
    }
}

/// The parameters of largest expected likelihood, given sums around the `old` means; one covariance for all components can be
/// had from the scatter of all rows around the origin, T − Σ n_k μ_k μ_kᵀ.
///
/// # Errors
/// [`Error::Interrupted`](crate::Error::Interrupted) when the context asks to stop.
pub(super) fn maximise(
    machine: &GaussianMixture,
    old: &[f64],
    sums: &Sums,
    total_scatter: Option<&[f64]>,
    context: &Context,
) -> Result<Parameters> {
    let covariance = machine.covariance;
    let weights: Vec<f64> = sums.weights.iter().map(|n| n + 10.0 * f64::EPSILON).collect();
    let features = old.len() / weights.len();
    let mut means = old.to_vec();
    let mut second = total_scatter.map_or_else(|| sums.second.clone(), <[f64]>::to_vec);
    let size = if covariance.is_diagonal() { features } else { features * features };
    for (k, &weight) in weights.iter().enumerate() {
        let step: Vec<f64> =
            sums.first[k * features..][..features].iter().map(|v| v / weight).collect();
        let mean = &mut means[k * features..(k + 1) * features];
        mean.iter_mut().zip(&step).for_each(|(mean, step)| *mean += step);
        let (place, away) = if total_scatter.is_some() { (0, &*mean) } else { (k, &step[..]) };
        let scatter = &mut second[place * size..(place + 1) * size];
        for i in 0..features {
            if covariance.is_diagonal() {
                scatter[i] = (scatter[i] - weight * away[i] * away[i]).max(0.0);
            } else {
                for j in 0..=i {
                    let value = scatter[i * features + j] - weight * away[i] * away[j];
                    scatter[i * features + j] = value;
                    scatter[j * features + i] = value;
                }
            }
        }
    }
    let total: f64 = weights.iter().sum();
    let mut covariances = covariance.estimate(&second, &weights, features, context)?;
    covariance.regularise(&mut covariances, features, machine.shrinkage, machine.floor);
    let weights = weights.iter().map(|n| n / total).collect();
    Ok(Parameters { weights, means, covariances })
}

/// Components as the passes see them.
pub(super) fn component_list(
    weights: &[f64],
    means: &[f64],
    factors: Vec<Factor>,
    features: usize,
) -> Vec<Component> {
    let tau = std::f64::consts::TAU;
    factors
        .into_iter()
        .enumerate()
        .map(|(k, factor)| {
            let normaliser = features as f64 * tau.ln() + factor.log_determinant;
            Component {
                mean: means[k * features..(k + 1) * features].to_vec(),
                constant: weights[k].ln() - 0.5 * normaliser,
                factor,
            }
        })
        .collect()
}

impl Covariance {
    /// The second sums that its estimate takes.
    pub(super) fn second(self) -> Second {
        if self.is_diagonal() { Second::Diagonal } else { Second::Matrix }
    }

    /// Σ ← (1 − τ)Σ + τ tr Σ/d I, then `floor` on every variance.
    fn regularise(self, values: &mut [f64], features: usize, share: f64, floor: f64) {
        if matches!(self, Self::Spherical | Self::EqualSpherical) {
            values.iter_mut().for_each(|value| *value += floor);
            return;
        }
        let size = if self == Self::Diagonal { features } else { features * features };
        let step = if self == Self::Diagonal { 1 } else { features + 1 };
        for own in values.chunks_exact_mut(size) {
            let level = own.iter().step_by(step).sum::<f64>() / features as f64;
            if share > 0.0 {
                own.iter_mut().for_each(|value| *value *= 1.0 - share);
            }
            own.iter_mut().step_by(step).for_each(|value| *value += share * level + floor);
        }
    }
}
