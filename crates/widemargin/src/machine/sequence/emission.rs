//! What hidden states emit: symbols, real vectors, counts or what the caller says; new parameters from sums
//! over posteriors.

use super::densities::{Densities, Sums};
use super::lattice::padded;
use super::observations::Observations;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::machine::Covariance;
use crate::numeric::algebra::Cholesky;
use crate::numeric::random::Generator;

/// Probabilities, rates and variances of states stay above this, so that no density is degenerate.
const SMALLEST: f64 = 1e-300;

/// What each state emits; parameters stand state after state.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Emission {
    /// Symbols 0, 1, …: the probability of each.
    Categorical {
        /// A row of probabilities for every state.
        probabilities: Vec<f64>,
    },
    /// Vectors of a normal distribution.
    Gaussian {
        /// Means.
        means: Vec<f64>,
        /// Shape of the covariances: spherical, diag, full or tied.
        shape: Covariance,
        /// A variance, a diagonal or a matrix for every state, or one matrix.
        covariances: Vec<f64>,
    },
    /// Vectors of independent counts.
    Poisson {
        /// Mean count of every feature.
        rates: Vec<f64>,
    },
    /// Anything whose densities the caller computes: observations are ln b(x | state), a column for every
    /// state ([`Sequences::of_log_densities`](super::Sequences::of_log_densities)). Nothing of them is learnt.
    Given,
}

/// What a maximisation adds to the sums over posteriors, as if it had been observed before.
///
/// A mean is (`mean_weight` · `mean` + sum) / (`mean_weight` + weight), a variance (`covariance` + scatter) /
/// (max(`covariance_weight` − d, 0) + weight) with d = 1, or the number of features for matrices (Gauvain
/// and Lee, 1994); a rate is (`rate` + sum) / (`rate_weight` + weight).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EmissionPrior {
    /// Added to the count of every symbol.
    pub count: f64,
    /// Mean of every feature.
    pub mean: f64,
    /// How many rows it counts for.
    pub mean_weight: f64,
    /// Added to the scatter of every feature.
    pub covariance: f64,
    /// How many rows it counts for, and d more.
    pub covariance_weight: f64,
    /// Variances are at least this.
    pub smallest_variance: f64,
    /// Added to the sum of every count.
    pub rate: f64,
    /// How many rows it counts for.
    pub rate_weight: f64,
}

impl Default for EmissionPrior {
    fn default() -> Self {
        Self {
            count: 0.0,
            mean: 0.0,
            mean_weight: 0.0,
            covariance: 1e-2,
            covariance_weight: 1.0,
            smallest_variance: 1e-9,
            rate: 0.0,
            rate_weight: 0.0,
        }
    }
}

impl EmissionPrior {
    pub(super) fn validate(&self) -> Result<()> {
        let numbers = [
            ("count", self.count),
            ("mean weight", self.mean_weight),
            ("covariance", self.covariance),
            ("covariance weight", self.covariance_weight),
            ("smallest variance", self.smallest_variance),
            ("rate", self.rate),
            ("rate weight", self.rate_weight),
        ];
        if !self.mean.is_finite() {
            return Err(Error::parameter("mean", "a finite number", self.mean));
        }
        numbers.into_iter().try_for_each(|(name, value)| Error::check_not_negative(name, value))
    }
}

impl Emission {
    /// Number of features of a row, or of symbols.
    pub fn size(&self, states: usize) -> usize {
        let values = match self {
            Self::Categorical { probabilities } => probabilities,
            Self::Gaussian { means, .. } => means,
            Self::Poisson { rates } => rates,
            Self::Given => return states,
        };
        values.len() / states.max(1)
    }

    /// Free parameters.
    pub(super) fn parameters(&self, states: usize) -> usize {
        let size = self.size(states);
        match self {
            Self::Categorical { .. } => states * (size - 1),
            Self::Gaussian { shape, .. } => states * size + shape.parameters(states, size),
            Self::Poisson { .. } => states * size,
            Self::Given => 0,
        }
    }

    pub(super) fn validate(&self, states: usize) -> Result<()> {
        let size = self.size(states);
        let whole = |what: &str, values: &[f64], count: usize| {
            if count == 0 || values.len() != count {
                return Err(Error::length(what, count.max(states), values.len()));
            }
            match values.iter().find(|value| !value.is_finite()) {
                Some(value) => Err(Error::parameter("emission", "finite numbers", value)),
                None => Ok(()),
            }
        };
        match self {
            Self::Categorical { probabilities } => {
                whole("emission probabilities", probabilities, states * size)?;
                probabilities.chunks(size).try_for_each(|row| distribution("emission", row))
            }
            Self::Gaussian { means, shape, covariances } => {
                whole("means", means, states * size)?;
                let allowed = [
                    Covariance::Full,
                    Covariance::Tied,
                    Covariance::Diagonal,
                    Covariance::Spherical,
                ];
                if !allowed.contains(shape) {
                    let expected = "one of full, tied, diag, spherical";
                    return Err(Error::parameter("covariance", expected, *shape));
                }
                whole("covariances", covariances, shape.values(states, size))
            }
            Self::Poisson { rates } => {
                whole("rates", rates, states * size)?;
                rates.iter().try_for_each(|rate| Error::check_not_negative("rates", *rate))
            }
            Self::Given => Ok(()),
        }
    }

    /// The densities in a form that is fast to evaluate.
    ///
    /// # Errors
    /// [`Error::Parameter`] when a covariance is not positive definite.
    pub(super) fn prepare(&self, states: usize, context: &Context) -> Result<Densities> {
        let (size, width) = (self.size(states), padded(states));
        let across = |values: &dyn Fn(usize, usize) -> f64, count: usize, empty: f64| {
            let mut list = vec![empty; count * width];
            for e in 0..count {
                (0..states).for_each(|i| list[e * width + i] = values(i, e));
            }
            list
        };
        Ok(match self {
            Self::Categorical { probabilities } => {
                let at = |i: usize, e: usize| probabilities[i * size + e];
                let mut plain = across(&at, size, 0.0);
                let mut logarithms: Vec<f64> = plain.iter().map(|p| p.ln()).collect();
                // After the symbols: the row of a position where nothing was observed.
                plain.resize((size + 1) * width, 1.0);
                logarithms.resize((size + 1) * width, 0.0);
                plain[size * width + states..].fill(0.0);
                logarithms[size * width + states..].fill(f64::NEG_INFINITY);
                Densities::Table { plain, logarithms }
            }
            Self::Poisson { rates } => {
                let rate = |i: usize, e: usize| rates[i * size + e].max(SMALLEST);
                let total = |i: usize, _: usize| -(0..size).map(|e| rate(i, e)).sum::<f64>();
                Densities::Counts {
                    logs: across(&|i, e| rate(i, e).ln(), size, 0.0),
                    constants: across(&total, 1, f64::NEG_INFINITY),
                }
            }
            Self::Given => Densities::Given,
            Self::Gaussian { means, shape, covariances } => {
                let factors = inverse_factors(*shape, covariances, states, size, context)?;
                let tau = std::f64::consts::TAU.ln();
                let constant = |i: usize, _: usize| {
                    let diagonal = (0..size).map(|e| factors[i].at(e, e).ln()).sum::<f64>();
                    diagonal - 0.5 * size as f64 * tau
                };
                let full = matches!(shape, Covariance::Full | Covariance::Tied);
                let entries = if full { size * (size + 1) / 2 } else { size };
                let entry = |i: usize, e: usize| match full {
                    true => factors[i].values[e],
                    false => factors[i].at(e, e),
                };
                Densities::Normal {
                    full,
                    means: across(&|i, e| means[i * size + e], size, 0.0),
                    factors: across(&entry, entries, 0.0),
                    constants: across(&constant, 1, f64::NEG_INFINITY),
                }
            }
        })
    }

    /// A random observation of a state, appended to a run.
    pub(super) fn sample(
        &self,
        state: usize,
        states: usize,
        random: &mut Generator,
        context: &Context,
        out: &mut Observations,
    ) -> Result<()> {
        let size = self.size(states);
        match (self, out) {
            (Self::Categorical { probabilities }, Observations::Symbols(symbols)) => {
                let row = &probabilities[state * size..][..size];
                symbols.push(choose(row, random) as u32);
            }
            (Self::Poisson { rates }, Observations::Rows { values, .. }) => {
                values.extend(
                    rates[state * size..][..size].iter().map(|rate| poisson(*rate, random)),
                );
            }
            (Self::Gaussian { means, shape, covariances }, Observations::Rows { values, .. }) => {
                let covariance = covariance_of(*shape, covariances, state, size);
                let lower = Cholesky::interruptible(covariance, size, context)?
                    .ok_or_else(|| not_definite(state))?
                    .into_matrix();
                let noise: Vec<f64> = (0..size).map(|_| random.normal()).collect();
                for d in 0..size {
                    let sum: f64 = (0..=d).map(|e| lower[d * size + e] * noise[e]).sum();
                    values.push(means[state * size + d] + sum);
                }
            }
            (Self::Given, _) => {
                let expected = "emissions that observations can be drawn from";
                return Err(Error::parameter("emission", expected, "densities of the caller"));
            }
            _ => return Err(Error::model("observations of another kind")),
        }
        Ok(())
    }

    /// New parameters from sums over posteriors; a state without weight keeps its own.
    pub(super) fn maximise(
        &mut self,
        sums: &Sums,
        states: usize,
        prior: &EmissionPrior,
        updates: Updates,
    ) {
        let (size, width) = (self.size(states), padded(states));
        let first = |i: usize, e: usize| sums.first[e * width + i];
        match self {
            Self::Categorical { probabilities } if updates.emission => {
                for (i, row) in probabilities.chunks_mut(size).enumerate() {
                    let count = |e: usize| first(i, e) + prior.count;
                    let total: f64 = (0..size).map(count).sum();
                    if total > 0.0 {
                        (0..size).for_each(|e| row[e] = count(e) / total);
                    }
                }
            }
            Self::Poisson { rates } if updates.emission => {
                for (i, row) in rates.chunks_mut(size).enumerate() {
                    let total = prior.rate_weight + sums.weights[i];
                    if total > 0.0 {
                        (0..size).for_each(|e| row[e] = (prior.rate + first(i, e)) / total);
                    }
                }
            }
            Self::Gaussian { means, shape, covariances } => {
                let mut centres = means.clone();
                for (i, row) in centres.chunks_mut(size).enumerate() {
                    let total = prior.mean_weight + sums.weights[i];
                    if updates.emission && total > 0.0 {
                        for (e, mean) in row.iter_mut().enumerate() {
                            // Sums are those of rows from which the shift was taken.
                            let sum = first(i, e) + sums.shift[e] * sums.weights[i];
                            *mean = (prior.mean_weight * prior.mean + sum) / total;
                        }
                    }
                }
                if updates.covariance {
                    new_covariances(*shape, &centres, sums, states, prior, covariances);
                }
                *means = centres;
            }
            _ => {}
        }
    }
}

/// Which parameters a maximisation changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Updates {
    /// Start probabilities.
    pub start: bool,
    /// Transition probabilities.
    pub transition: bool,
    /// Probabilities, means or rates.
    pub emission: bool,
    /// Covariances.
    pub covariance: bool,
}

impl Default for Updates {
    fn default() -> Self {
        Self { start: true, transition: true, emission: true, covariance: true }
    }
}

pub(super) fn distribution(name: &'static str, row: &[f64]) -> Result<()> {
    let sum: f64 = row.iter().sum();
    if row.iter().all(|p| *p >= 0.0) && (sum - 1.0).abs() <= 1e-6 {
        return Ok(());
    }
    let found = format!(
        "a row with the sum {sum}, its least entry {}",
        row.iter().copied().fold(f64::INFINITY, f64::min)
    );
    Err(Error::parameter(name, "probabilities of at least 0 that add up to 1", found))
}

fn not_definite(state: usize) -> Error {
    Error::parameter(
        "covariance",
        "positive definite matrices",
        format!("another one in state {state}"),
    )
}

/// The covariance of one state as a matrix.
fn covariance_of(shape: Covariance, values: &[f64], state: usize, size: usize) -> Vec<f64> {
    let mut matrix = vec![0.0; size * size];
    match shape {
        Covariance::Tied => matrix.copy_from_slice(values),
        Covariance::Full => matrix.copy_from_slice(&values[state * size * size..][..size * size]),
        Covariance::Diagonal => {
            (0..size).for_each(|e| matrix[e * size + e] = values[state * size + e])
        }
        _ => (0..size).for_each(|e| matrix[e * size + e] = values[state]),
    }
    matrix
}

/// A lower triangle, row by row without the zeros.
struct Triangle {
    values: Vec<f64>,
}

impl Triangle {
    fn at(&self, i: usize, j: usize) -> f64 {
        self.values[i * (i + 1) / 2 + j]
    }
}

/// L⁻¹ of every state.
fn inverse_factors(
    shape: Covariance,
    values: &[f64],
    states: usize,
    size: usize,
    context: &Context,
) -> Result<Vec<Triangle>> {
    (0..states)
        .map(|state| {
            let matrix = covariance_of(shape, values, state, size);
            let factor = Cholesky::interruptible(matrix, size, context)?
                .ok_or_else(|| not_definite(state))?;
            let inverse = factor.inverse_lower(context)?;
            let rows = (0..size).flat_map(|i| inverse[i * size..][..i + 1].to_vec());
            Ok(Triangle { values: rows.collect() })
        })
        .collect()
}

fn new_covariances(
    shape: Covariance,
    means: &[f64],
    sums: &Sums,
    states: usize,
    prior: &EmissionPrior,
    covariances: &mut [f64],
) {
    let (size, width) = (sums.size, padded(states));
    let full = sums.full;
    // Scatter about the new mean, from sums of rows from which the shift was taken.
    let scatter = |i: usize, d: usize, e: usize| {
        let second = sums.second[if full { d * (d + 1) / 2 + e } else { d } * width + i];
        let mean = |e: usize| means[i * size + e] - sums.shift[e];
        let first = |e: usize| sums.first[e * width + i];
        let far = |e: usize| means[i * size + e] - prior.mean;
        second - first(d) * mean(e) - mean(d) * first(e)
            + mean(d) * mean(e) * sums.weights[i]
            + prior.mean_weight * far(d) * far(e)
    };
    let matrix = |total: &dyn Fn(usize, usize) -> f64, weight: f64, out: &mut [f64]| {
        let weight = (prior.covariance_weight - size as f64).max(0.0) + weight;
        if weight <= 0.0 {
            return;
        }
        for d in 0..size {
            for e in 0..=d {
                let added = if d == e { prior.covariance } else { 0.0 };
                let value = (added + total(d, e)) / weight;
                let value = if d == e { value.max(prior.smallest_variance) } else { value };
                out[d * size + e] = value;
                out[e * size + d] = value;
            }
        }
    };
    match shape {
        Covariance::Tied => {
            let total = |d: usize, e: usize| (0..states).map(|i| scatter(i, d, e)).sum::<f64>();
            matrix(&total, sums.weights[..states].iter().sum(), covariances);
        }
        Covariance::Full => {
            for (i, out) in covariances.chunks_mut(size * size).enumerate() {
                if sums.weights[i] > 0.0 {
                    matrix(&|d, e| scatter(i, d, e), sums.weights[i], out);
                }
            }
        }
        _ => {
            let more = (prior.covariance_weight - 1.0).max(0.0);
            for i in (0..states).filter(|&i| sums.weights[i] > 0.0) {
                let weight = more + sums.weights[i];
                let variance = |d: usize| {
                    ((prior.covariance + scatter(i, d, d)) / weight).max(prior.smallest_variance)
                };
                if shape == Covariance::Spherical {
                    covariances[i] = (0..size).map(variance).sum::<f64>() / size as f64;
                } else {
                    (0..size).for_each(|d| covariances[i * size + d] = variance(d));
                }
            }
        }
    }
}

/// A number with probabilities in proportion to a list.
pub(super) fn choose(weights: &[f64], random: &mut Generator) -> usize {
    let mut left = random.unit() * weights.iter().sum::<f64>();
    for (i, weight) in weights.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return i;
        }
    }
    weights.iter().rposition(|weight| *weight > 0.0).unwrap_or(0)
}

/// Rates from which on counts are drawn by rejection.
const LARGE_RATE: f64 = 500.0;

/// A count of a Poisson distribution: products of uniform numbers (Knuth) while e^−λ is far from 0, and
/// transformed rejection, whose time does not depend on λ, for large rates.
fn poisson(rate: f64, random: &mut Generator) -> f64 {
    if rate > LARGE_RATE {
        return large_poisson(rate, random);
    }
    let (limit, mut product, mut count) = ((-rate).exp(), random.unit(), 0.0);
    while product > limit {
        count += 1.0;
        product *= random.unit();
    }
    count
}

/// PTRS of Hörmann ("The transformed rejection method for generating Poisson random variables", Insurance:
/// Mathematics and Economics 12, 1993).
fn large_poisson(rate: f64, random: &mut Generator) -> f64 {
    let b = 0.931 + 2.53 * rate.sqrt();
    let a = -0.059 + 0.02483 * b;
    let (inverse_alpha, squeeze) = (1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2.0));
    loop {
        let (u, v) = (random.unit() - 0.5, random.unit());
        let us = 0.5 - u.abs();
        let count = ((2.0 * a / us + b) * u + rate + 0.43).floor();
        if us >= 0.07 && v <= squeeze {
            return count;
        }
        if count < 1.0 || (us < 0.013 && v > us) {
            continue;
        }
        // ln p(k) by Stirling's formula, written with t = (k − λ)/λ so that no digits cancel.
        let t = (count - rate) / rate;
        let density = rate * (t - (1.0 + t) * t.ln_1p())
            - 0.5 * (std::f64::consts::TAU * count).ln()
            - 1.0 / (12.0 * count);
        if (v * inverse_alpha / (a / (us * us) + b)).ln() <= density {
            return count;
        }
    }
}
