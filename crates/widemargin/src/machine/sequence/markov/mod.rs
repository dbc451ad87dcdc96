//! Hidden Markov models of sequences with names: learnt from tagged, partly tagged or untagged sequences, kept in model
//! files, and applied to new sequences.
//!
//! A tag is the name of a state. Where all tags are known, probabilities are relative frequencies; where some or all
//! are unknown, Baum–Welch learns them ([`BaumWelch`]), with paths through the known states alone.

mod body;

use std::fmt;
use std::str::FromStr;
use std::time::Instant;

use super::chain::sparse_rows;
use super::emission::{Emission, EmissionPrior};
use super::fit::BaumWelch;
use super::hmm::Hmm;
use super::observations::{MISSING_SYMBOL, Sequences};
use crate::context::Context;
use crate::data::{Dense, Label, Matrix, NO_TAG, TaggedSequences, memory};
use crate::error::{Error, Result};
use crate::machine::Covariance;
use crate::machine::model::{MachineKind, Model, Training};
use crate::machine::names::defaults;
use crate::machine::specification::Value;
use crate::outcome::Outcome;
use crate::solver::Status;

pub use body::HiddenMarkov;

/// What every state of a [`HiddenMarkovMachine`] emits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EmissionKind {
    /// A symbol: the one feature that a position has. One without a feature was not observed.
    Symbols,
    /// A vector of a normal distribution.
    Gaussian,
    /// A vector of independent counts.
    Poisson,
}

impl FromStr for EmissionKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "symbols" => Ok(Self::Symbols),
            "gaussian" => Ok(Self::Gaussian),
            "poisson" => Ok(Self::Poisson),
            _ => Err(Error::parameter("emissions", "one of symbols, gaussian, poisson", text)),
        }
    }
}

impl fmt::Display for EmissionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Symbols => "symbols",
            Self::Gaussian => "gaussian",
            Self::Poisson => "poisson",
        })
    }
}

/// Learns a hidden Markov model from sequences whose tags, the names of states, are known, partly known or unknown.
///
/// ```
/// use widemargin::data::{Dense, Label, Matrix, TaggedSequences};
/// use widemargin::machine::sequence::{EmissionKind, HiddenMarkovMachine};
/// use widemargin::machine::Body;
/// use widemargin::Context;
///
/// let rows = Matrix::DenseF64(Dense::new(6, 1, vec![0.1, -0.2, 5.1, 4.9, 0.0, 5.2])?);
/// let tags = ["low", "low", "high", "high", "low", "high"].map(|tag| Label::Text(tag.into()));
/// let data = TaggedSequences::new(rows, vec![4, 2])?.with_tags(&tags)?;
/// let context = Context::new();
/// let machine = HiddenMarkovMachine { emissions: EmissionKind::Gaussian, ..Default::default() };
/// let model = machine.fit(&data, &context)?;
/// let Body::HiddenMarkov(markov) = &model.body else { panic!() };
/// let found = markov.label(&data, &context)?;
/// assert_eq!(markov.names()[found[1].tags[1] as usize], Label::Text("high".into()));
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct HiddenMarkovMachine {
    /// Number of states; that of the tags unless given. States beyond the tags have names of their own.
    pub states: Option<usize>,
    /// What states emit.
    pub emissions: EmissionKind,
    /// Shape of the covariances of normal distributions: spherical, diag, full or tied.
    pub covariance: Covariance,
    /// Added to every count of starts, transitions and symbols of known states.
    pub smoothing: f64,
    /// Random starts of Baum–Welch, of which the likeliest is kept.
    pub starts: usize,
    /// Baum–Welch ends when ln p(x) grows by less than this.
    pub tol: f64,
    /// Most iterations of Baum–Welch.
    pub max_iterations: usize,
}

defaults!(HiddenMarkovMachine {
    states: None,
    emissions: EmissionKind::Symbols,
    covariance: Covariance::Diagonal,
    smoothing: 0.1,
    starts: 1,
    tol: 1e-4,
    max_iterations: 200,
});

/// What is added to the counts of known states where Baum–Welch goes on from them: a probability of 0 would
/// stay 0.
const LEAST_COUNT: f64 = 0.1;

impl HiddenMarkovMachine {
    /// Learns from sequences.
    ///
    /// # Errors
    /// Parameters out of range, neither tags nor a number of states, more tags than states, observations that do
    /// not suit the emissions, or an interruption before there was a model.
    pub fn fit(&self, data: &TaggedSequences, context: &Context) -> Result<Model> {
        let started = Instant::now();
        let names = self.names(data)?;
        let like = self.like(names.len(), data.rows().columns())?;
        let sequences = observed(data, &like, names.len())?;
        let codes = data.tags().map_or(&[][..], |tags| tags.codes.as_slice());
        let tags = data.tags().map_or(0, |tags| tags.names.len());
        let counted = tags == names.len() && !codes.contains(&NO_TAG);
        let drawn = Hmm::random(names.len(), &like, &sequences, context.seed())?;
        let (hmm, status, iterations) = if counted {
            let prior = EmissionPrior::default();
            let hmm = Hmm::from_states(codes, &sequences, &drawn, self.smoothing, &prior, context)?;
            (hmm, Status::Solved, 0)
        } else {
            let first = self.begin(data, drawn, context)?;
            let sequences = match codes.is_empty() {
                true => sequences.clone(),
                false => sequences.clone().with_known_states(codes.to_vec())?,
            };
            let fit = self.baum_welch().fit(&first, &sequences, context)?;
            (fit.hmm, fit.status, fit.history.len())
        };
        let likelihood = hmm.log_likelihood(&sequences, context)?;
        let outcome = Outcome {
            status,
            primal: -likelihood,
            dual: -likelihood,
            violation: 0.0,
            iterations: iterations as u64,
            blocks: 0,
            kernel_rows: 0,
        };
        let parameters: [(&str, Value); 3] = [
            ("states", names.len().into()),
            ("sequences", data.count().into()),
            ("log-likelihood", likelihood.into()),
        ];
        let body = HiddenMarkov::new(hmm, names)?;
        Ok(Model {
            feature_names: data.feature_names().map(<[String]>::to_vec),
            training: Some(Training::new(outcome, data.positions(), started, parameters)),
            ..Model::new(MachineKind::HiddenMarkov, body)
        })
    }

    fn baum_welch(&self) -> BaumWelch {
        BaumWelch {
            iterations: self.max_iterations,
            tol: self.tol,
            starts: self.starts,
            ..BaumWelch::default()
        }
    }

    /// The model that Baum–Welch begins with: counts of the known states, if there are any.
    fn begin(&self, data: &TaggedSequences, drawn: Hmm, context: &Context) -> Result<Hmm> {
        let is_known = |tags: &[u32]| tags.iter().any(|code| *code != NO_TAG);
        if !data.tags().is_some_and(|tags| is_known(&tags.codes)) {
            return Ok(drawn);
        }
        let runs = data.known_runs()?;
        let sequences = observed(&runs, drawn.emission(), drawn.states())?;
        let codes = runs.tags().map_or(&[][..], |tags| tags.codes.as_slice());
        let (prior, smoothing) = (EmissionPrior::default(), self.smoothing.max(LEAST_COUNT));
        Hmm::from_states(codes, &sequences, &drawn, smoothing, &prior, context)
    }

    /// Names of the states: the tags, then names for the others.
    fn names(&self, data: &TaggedSequences) -> Result<Vec<Label>> {
        Error::check_not_negative("smoothing", self.smoothing)?;
        let mut names = data.tags().map_or_else(Vec::new, |tags| tags.names.clone());
        let states = self.states.unwrap_or(names.len());
        if states == 0 {
            let expected = "a number of states, or tags to take them from";
            return Err(Error::parameter("states", expected, "none"));
        }
        if states < names.len() {
            let expected = format!("at least {}, one for every tag", names.len());
            return Err(Error::parameter("states", expected, states));
        }
        let mut number = 0;
        while names.len() < states {
            let name = Label::Text(format!("state{number}"));
            number += 1;
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Emissions of the kind and size wanted, whose parameters are still to be learnt.
    fn like(&self, states: usize, features: usize) -> Result<Emission> {
        let count = states.checked_mul(features.max(1));
        let bytes = count.map_or(u128::MAX, |count| 8 * count as u128);
        memory::check(|| "emissions of all states".into(), bytes)?;
        let values = vec![0.0; states * features];
        Ok(match self.emissions {
            EmissionKind::Symbols => Emission::Categorical { probabilities: values },
            EmissionKind::Poisson => Emission::Poisson { rates: values },
            EmissionKind::Gaussian => {
                let covariances = Vec::new();
                Emission::Gaussian { means: values, shape: self.covariance, covariances }
            }
        })
    }
}

/// The observations of sequences, for emissions of a kind.
fn observed(data: &TaggedSequences, emission: &Emission, states: usize) -> Result<Sequences> {
    let (lengths, rows) = (data.lengths().collect(), data.rows());
    if matches!(emission, Emission::Categorical { .. }) {
        return Sequences::of_symbols(symbols(data)?, Some(lengths));
    }
    let size = emission.size(states);
    if rows.columns() != size {
        return Err(Error::length("features", size, rows.columns()));
    }
    let dense = match rows {
        Matrix::DenseF64(dense) => dense.clone(),
        rows => {
            let what = || format!("a dense table of {} rows and {size} features", rows.rows());
            memory::check(what, 8 * rows.rows() as u128 * size as u128)?;
            let mut values = vec![0.0; rows.rows() * size];
            for (i, row) in values.chunks_exact_mut(size.max(1)).enumerate() {
                rows.for_each_nonzero(i, |column, value| row[column] = value);
            }
            Dense::new(rows.rows(), size, values)?
        }
    };
    Sequences::of_rows(dense, Some(lengths))
}

/// The one feature of every position, [`MISSING_SYMBOL`] where it has none.
fn symbols(data: &TaggedSequences) -> Result<Vec<u32>> {
    let rows = sparse_rows(data.rows());
    (0..data.positions())
        .map(|k| {
            let (features, values) = rows.row(k);
            match (features, values) {
                ([], _) => Ok(MISSING_SYMBOL),
                ([symbol], [1.0]) => Ok(*symbol),
                _ => {
                    let (sequence, position) = data.place(k);
                    let found = match features.len() {
                        1 => "a feature of another value".to_owned(),
                        count => format!("{count} features"),
                    };
                    Err(Error::labels(
                        "one feature of value 1 at every position, its symbol",
                        format!("{found} at position {position} of sequence {sequence}"),
                    ))
                }
            }
        })
        .collect()
}
