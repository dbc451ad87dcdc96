//! Learning hidden Markov models: from labelled states by counting, from observations alone by
//! Baum–Welch (Baum, Petrie, Soules and Weiss, 1970).

use super::densities::{Accumulate, Sums};
use super::emission::{Emission, EmissionPrior, Updates};
use super::hmm::{Hmm, Prepared, Statistics, check, check_inputs};
use super::lattice::{input, padded};
use super::observations::{Observations, Sequences};
use crate::context::{Context, Event};
use crate::error::{Error, Result};
use crate::machine::Covariance;
use crate::numeric::algebra::squared_distance;
use crate::numeric::random::Generator;
use crate::numeric::simd::run_plain;
use crate::solver::Status;

/// Baum–Welch: expectation–maximisation from one or several starts.
#[derive(Clone, Debug, PartialEq)]
pub struct BaumWelch {
    /// Most iterations of a start.
    pub iterations: usize,
    /// A start ends when ln p(x) grows by less than this.
    pub tol: f64,
    /// Random starts, of which the one with the largest likelihood is kept.
    pub starts: usize,
    /// What is learnt.
    pub updates: Updates,
    /// What further starts draw anew, of what is learnt; they keep all the rest of the first model, and its
    /// probabilities and rates of 0.
    pub redrawn: Updates,
    /// Added to the counts of starts and of transitions.
    pub start_count: f64,
    /// As `start_count`, of transitions.
    pub transition_count: f64,
    /// Prior of the emissions.
    pub prior: EmissionPrior,
    /// A state that is left fewer times than this with some input, in expectation, has the same probability of all
    /// followers; otherwise one that is never left keeps its probabilities.
    pub uniform_below: f64,
    /// Whether sums are made of logarithms instead of scaled probabilities.
    pub logarithms: bool,
}

impl Default for BaumWelch {
    fn default() -> Self {
        Self {
            iterations: 10,
            tol: 1e-2,
            starts: 1,
            updates: Updates::default(),
            redrawn: Updates::default(),
            start_count: 0.0,
            transition_count: 0.0,
            prior: EmissionPrior::default(),
            uniform_below: 0.0,
            logarithms: false,
        }
    }
}

/// A learnt model and how it was reached.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HmmFit {
    /// The model.
    pub hmm: Hmm,
    /// ln p(x) before every maximisation of the start that was kept.
    pub history: Vec<f64>,
    /// ln p(x) before the last maximisation of every start; −∞ for one whose model cannot have made the sequences.
    pub starts: Vec<f64>,
    /// How the start that was kept ended.
    pub status: Status,
}

/// What iterations from one model came to.
enum StartOutcome {
    Fit(HmmFit),
    /// The model cannot have made the sequences: their log-likelihood is not finite in this iteration.
    Impossible {
        log_likelihood: f64,
        iteration: usize,
    },
}

impl BaumWelch {
    /// Learns from `first`, a model to begin with; further starts are random models like it
    /// ([`redrawn`](Self::redrawn)). One that cannot have made the sequences is left out unless all are such.
    ///
    /// # Errors
    /// Parameters or observations that do not fit, or an interruption before the first iteration ended.
    pub fn fit(&self, first: &Hmm, sequences: &Sequences, context: &Context) -> Result<HmmFit> {
        if self.iterations == 0 {
            return Err(Error::parameter("iterations", "at least 1", 0));
        }
        if self.starts == 0 {
            return Err(Error::parameter("starts", "at least 1", 0));
        }
        self.prior.validate()?;
        Error::check_not_negative("start count", self.start_count)?;
        Error::check_not_negative("transition count", self.transition_count)?;
        Error::check_not_negative("uniform below", self.uniform_below)?;
        check(&first.emission, first.states(), sequences)?;
        let fits = context.try_map(0..self.starts, |start| {
            let begin = match start {
                0 => first.clone(),
                _ => self.redraw(first, sequences, context.seed().wrapping_add(start as u64))?,
            };
            match self.iterate(begin, sequences, context) {
                Err(Error::Interrupted) if start > 0 => Ok(None),
                Ok(StartOutcome::Fit(fit)) if start > 0 && fit.history.is_empty() => Ok(None),
                other => other.map(Some),
            }
        })?;
        let mut best: Option<HmmFit> = None;
        let (mut starts, mut impossible) = (Vec::new(), None);
        for outcome in fits.into_iter().flatten() {
            let fit = match outcome {
                StartOutcome::Fit(fit) => fit,
                StartOutcome::Impossible { log_likelihood, iteration } => {
                    starts.push(f64::NEG_INFINITY);
                    let found =
                        format!("a log-likelihood of {log_likelihood} in iteration {iteration}");
                    impossible = impossible.or(Some(found));
                    continue;
                }
            };
            let reached = |fit: &HmmFit| fit.history.last().copied().unwrap_or(f64::NEG_INFINITY);
            starts.push(reached(&fit));
            if best.as_ref().is_none_or(|best| reached(&fit) > reached(best)) {
                best = Some(fit);
            }
        }
        let best = best.ok_or_else(|| match impossible {
            Some(found) => Error::labels("sequences that the model can have made", found),
            None => Error::Interrupted,
        })?;
        Ok(HmmFit { starts, ..best })
    }

    /// A random model with what `first` keeps.
    fn redraw(&self, first: &Hmm, sequences: &Sequences, seed: u64) -> Result<Hmm> {
        let drawn =
            Hmm::random_with(first.states(), first.inputs(), &first.emission, sequences, seed)?;
        let (own, learnt, states) = (self.redrawn, self.updates, first.states());
        let part = |is_drawn: bool, new: &[f64], old: &[f64]| match is_drawn {
            true => with_zeros_of(new, old, states),
            false => old.to_vec(),
        };
        let start = part(own.start && learnt.start, &drawn.start, &first.start);
        let transition =
            part(own.transition && learnt.transition, &drawn.transition, &first.transition);
        let emission = match (&first.emission, drawn.emission) {
            (
                Emission::Categorical { probabilities: old },
                Emission::Categorical { probabilities: new },
            ) if own.emission && learnt.emission => Emission::Categorical {
                probabilities: with_zeros_of(&new, old, old.len() / states),
            },
            (
                Emission::Gaussian { means, shape, covariances },
                Emission::Gaussian { means: far, covariances: common, .. },
            ) => Emission::Gaussian {
                means: if own.emission && learnt.emission { far } else { means.clone() },
                shape: *shape,
                covariances: match own.covariance && learnt.covariance {
                    true => common,
                    false => covariances.clone(),
                },
            },
            (Emission::Poisson { rates: old }, Emission::Poisson { rates: mut new })
                if own.emission && learnt.emission =>
            {
                new.iter_mut().zip(old).for_each(|(new, old)| {
                    if *old == 0.0 {
                        *new = 0.0;
                    }
                });
                Emission::Poisson { rates: new }
            }
            (kept, _) => kept.clone(),
        };
        Hmm::new(start, transition, emission)
    }

    /// Iterations from one model.
    fn iterate(
        &self,
        mut hmm: Hmm,
        sequences: &Sequences,
        context: &Context,
    ) -> Result<StartOutcome> {
        let shift = means(sequences);
        let mut history: Vec<f64> = Vec::new();
        let mut status = Status::IterationLimit;
        for iteration in 0..self.iterations {
            let found = Prepared::new(&hmm, sequences, self.logarithms, context)
                .and_then(|prepared| prepared.statistics(sequences, &shift));
            let statistics = match found {
                // Out of time there is a model, if only the first one.
                Err(Error::Interrupted)
                    if iteration > 0 || context.stop_request() == Some(Status::TimeLimit) =>
                {
                    status = context.stop_request().unwrap_or(Status::Interrupted);
                    break;
                }
                other => other?,
            };
            let likelihood = statistics.log_likelihood;
            if !likelihood.is_finite() {
                let iteration = iteration + 1;
                return Ok(StartOutcome::Impossible { log_likelihood: likelihood, iteration });
            }
            check_squares(statistics.sums.is_finite())?;
            let gained = history.last().map_or(f64::INFINITY, |last| likelihood - last);
            history.push(likelihood);
            context.report(&Event::Iteration {
                iteration: iteration + 1,
                violation: gained,
                objective: likelihood,
                active: sequences.positions(),
            });
            self.maximise(&mut hmm, &statistics);
            if gained < self.tol {
                status = Status::Solved;
                break;
            }
        }
        Ok(StartOutcome::Fit(HmmFit { hmm, starts: Vec::new(), history, status }))
    }

    fn maximise(&self, hmm: &mut Hmm, statistics: &Statistics) {
        let (states, width) = (hmm.states(), padded(hmm.states()));
        if self.updates.start {
            normalise(&mut hmm.start, &statistics.start, self.start_count);
        }
        if self.updates.transition {
            let rows = hmm.transition.chunks_mut(states);
            for (row, counts) in rows.zip(statistics.pairs.chunks(width)) {
                let visits: f64 = counts.iter().sum();
                if visits < self.uniform_below {
                    let allowed = row.iter().filter(|p| **p > 0.0).count() as f64;
                    row.iter_mut().for_each(|p| *p = if *p > 0.0 { 1.0 / allowed } else { 0.0 });
                } else {
                    normalise(row, counts, self.transition_count);
                }
            }
        }
        hmm.emission.maximise(&statistics.sums, states, &self.prior, self.updates);
    }
}

/// Probabilities in proportion to counts; those that are 0 stay so, and without any count all stay.
fn normalise(probabilities: &mut [f64], counts: &[f64], added: f64) {
    let allowed = |p: f64, count: f64| if p == 0.0 { 0.0 } else { count + added };
    let total: f64 = probabilities.iter().zip(counts).map(|(p, count)| allowed(*p, *count)).sum();
    if total > 0.0 {
        for (p, count) in probabilities.iter_mut().zip(counts) {
            *p = allowed(*p, *count) / total;
        }
    }
}

/// Rows of probabilities with zeros where others have them.
fn with_zeros_of(new: &[f64], old: &[f64], width: usize) -> Vec<f64> {
    let mut rows = new.to_vec();
    for (row, old) in rows.chunks_mut(width).zip(old.chunks(width)) {
        row.iter_mut().zip(old).filter(|(_, old)| **old == 0.0).for_each(|(p, _)| *p = 0.0);
        let total: f64 = row.iter().sum();
        row.iter_mut().for_each(|p| *p /= total);
    }
    rows
}

/// Refuses rows whose squares are no numbers any more.
fn check_squares(are_finite: bool) -> Result<()> {
    let expected = "rows whose squares add up to finite numbers: scale the features";
    if are_finite { Ok(()) } else { Err(Error::labels(expected, "larger ones")) }
}

/// Number of rows where something was observed.
fn observed(sequences: &Sequences) -> usize {
    (0..sequences.positions()).filter(|&row| !sequences.is_missing(row)).count()
}

/// Mean of every feature; nothing for symbols.
fn means(sequences: &Sequences) -> Vec<f64> {
    let Observations::Rows { values, features } = &sequences.observations else {
        return Vec::new();
    };
    let mut means = vec![0.0; *features];
    if means.is_empty() || values.contains(&f64::NEG_INFINITY) {
        return means;
    }
    // Rows where nothing was observed are 0.
    for row in values.chunks_exact(*features) {
        means.iter_mut().zip(row).for_each(|(mean, x)| *mean += x);
    }
    let count = observed(sequences).max(1) as f64;
    means.iter_mut().for_each(|mean| *mean /= count);
    means
}

impl Hmm {
    /// A random model with emissions like `emission` in kind and size: probabilities at random, means at
    /// rows that lie far from each other (Arthur and Vassilvitskii, 2007), the covariance of all rows.
    ///
    /// # Errors
    /// As [`Hmm::new`], and observations of another kind.
    pub fn random(
        states: usize,
        emission: &Emission,
        sequences: &Sequences,
        seed: u64,
    ) -> Result<Self> {
        Self::random_with(states, 1, emission, sequences, seed)
    }

    /// The same with transitions of their own for every input.
    ///
    /// # Errors
    /// As [`random`](Self::random).
    pub fn random_with(
        states: usize,
        inputs: usize,
        emission: &Emission,
        sequences: &Sequences,
        seed: u64,
    ) -> Result<Self> {
        check(emission, states, sequences)?;
        let mut random = Generator::new(seed);
        let row = |count: usize, random: &mut Generator| {
            let mut row: Vec<f64> = (0..count).map(|_| -(1.0 - random.unit()).ln()).collect();
            let total: f64 = row.iter().sum();
            row.iter_mut().for_each(|p| *p /= total);
            row
        };
        let start = row(states, &mut random);
        let transition = (0..states * inputs).flat_map(|_| row(states, &mut random)).collect();
        let size = emission.size(states);
        let emission = match emission {
            Emission::Categorical { .. } => Emission::Categorical {
                probabilities: (0..states).flat_map(|_| row(size, &mut random)).collect(),
            },
            Emission::Gaussian { shape, .. } => {
                let covariances = common_covariance(*shape, sequences, states);
                check_squares(covariances.iter().all(|value| value.is_finite()))?;
                let means = far_rows(sequences, states, &mut random);
                Emission::Gaussian { means, shape: *shape, covariances }
            }
            Emission::Poisson { .. } => {
                // Between the means and a row, so that no rate is 0.
                let all = means(sequences);
                let rows = far_rows(sequences, states, &mut random);
                let rates = rows.iter().enumerate().map(|(k, x)| 0.5 * (x + all[k % size]));
                Emission::Poisson { rates: rates.collect() }
            }
            Emission::Given => Emission::Given,
        };
        Self::new(start, transition, emission)
    }

    /// Learns from sequences whose states are known: relative frequencies with `smoothing` added to every
    /// count of starts, transitions and symbols, emissions with `prior`. A state that never occurs keeps what
    /// `like` says of it.
    ///
    /// # Errors
    /// [`Error::Length`] or [`Error::Labels`] when there is not one state below `states` per position, and
    /// what [`Hmm::new`] refuses.
    pub fn from_states(
        path: &[u32],
        sequences: &Sequences,
        like: &Self,
        smoothing: f64,
        prior: &EmissionPrior,
        context: &Context,
    ) -> Result<Self> {
        let states = like.states();
        Error::check_not_negative("smoothing", smoothing)?;
        prior.validate()?;
        check(&like.emission, states, sequences)?;
        check_inputs(sequences.inputs(), like.inputs())?;
        if path.len() != sequences.positions() {
            return Err(Error::length("states", sequences.positions(), path.len()));
        }
        if let Some(at) = path.iter().position(|&state| state as usize >= states) {
            let found = format!("{} at position {}", path[at], at + 1);
            return Err(Error::labels(format!("states from 0 to {}", states - 1), found));
        }
        let mut hmm = like.clone();
        let (mut start, mut pairs) =
            (vec![smoothing; states], vec![smoothing; hmm.transition.len()]);
        let width = padded(states);
        let mut sums = Sums::new(&hmm.emission, states, &means(sequences));
        for span in sequences.spans() {
            let own = &path[span.clone()];
            start[own[0] as usize] += 1.0;
            let inputs = sequences.steering(span.clone()).inputs;
            for (k, pair) in own.windows(2).enumerate() {
                let row = input(inputs, k + 1) * states + pair[0] as usize;
                pairs[row * states + pair[1] as usize] += 1.0;
            }
            let mut posteriors = vec![0.0; own.len() * width];
            own.iter()
                .enumerate()
                .for_each(|(k, &state)| posteriors[k * width + state as usize] = 1.0);
            let run = sequences.run(span, false);
            let add = Accumulate { sums: &mut sums, run, width, posteriors: &posteriors };
            run_plain(context.instruction_set(), add);
        }
        check_squares(sums.is_finite())?;
        let divide = |row: &mut [f64], counts: &[f64]| {
            let total: f64 = counts.iter().sum();
            if total > 0.0 {
                row.iter_mut().zip(counts).for_each(|(p, count)| *p = count / total);
            }
        };
        divide(&mut hmm.start, &start);
        for (row, counts) in hmm.transition.chunks_mut(states).zip(pairs.chunks(states)) {
            divide(row, counts);
        }
        let prior = EmissionPrior { count: prior.count + smoothing, ..*prior };
        hmm.emission.maximise(&sums, states, &prior, Updates::default());
        Self::new(hmm.start, hmm.transition, hmm.emission)
    }
}

/// Rows chosen with probabilities in proportion to their squared distances from those chosen before.
fn far_rows(sequences: &Sequences, states: usize, random: &mut Generator) -> Vec<f64> {
    let Observations::Rows { values, features } = &sequences.observations else {
        return Vec::new();
    };
    let rows = values.chunks_exact(*features).enumerate();
    let rows: Vec<&[f64]> =
        rows.filter(|(row, _)| !sequences.is_missing(*row)).map(|(_, row)| row).collect();
    if rows.is_empty() {
        return vec![0.0; states * features];
    }
    let mut distances = vec![f64::INFINITY; rows.len()];
    let mut chosen: Vec<f64> = Vec::with_capacity(states * features);
    let mut next = random.below(rows.len());
    for _ in 0..states {
        chosen.extend_from_slice(rows[next]);
        for (distance, row) in distances.iter_mut().zip(&rows) {
            *distance = distance.min(squared_distance(row, rows[next]));
        }
        let all_zero = distances.iter().all(|distance| *distance == 0.0);
        next = match all_zero {
            true => random.below(rows.len()),
            false => super::emission::choose(&distances, random),
        };
    }
    chosen
}

/// The covariance of all rows in the given shape, with a little more on its diagonal.
fn common_covariance(shape: Covariance, sequences: &Sequences, states: usize) -> Vec<f64> {
    let Observations::Rows { values, features } = &sequences.observations else {
        return Vec::new();
    };
    let (size, mean) = (*features, means(sequences));
    let mut matrix = vec![0.0; size * size];
    let rows = values.chunks_exact(size).enumerate();
    for (_, row) in rows.filter(|(row, _)| !sequences.is_missing(*row)) {
        for d in 0..size {
            for e in 0..size {
                matrix[d * size + e] += (row[d] - mean[d]) * (row[e] - mean[e]);
            }
        }
    }
    let count = observed(sequences).max(1) as f64;
    matrix.iter_mut().for_each(|value| *value /= count);
    (0..size).for_each(|d| matrix[d * size + d] += 1e-3);
    let diagonal: Vec<f64> = (0..size).map(|d| matrix[d * size + d]).collect();
    match shape {
        Covariance::Tied => matrix,
        Covariance::Full => matrix.repeat(states),
        Covariance::Diagonal => diagonal.repeat(states),
        _ => vec![diagonal.iter().sum::<f64>() / size as f64; states],
    }
}
