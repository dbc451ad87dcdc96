//! A hidden Markov model and what it says about sequences: likelihood, posteriors, the best path, samples.

use std::ops::Range;

use super::best_path::BestPath;
use super::densities::{Accumulate, Densities, Fill, Sums};
use super::emission::{Emission, choose, distribution};
use super::lattice::{
    Backward, Exponentials, Forward, Lattice, Transitions, logarithmic, unchecked_positions,
};
use super::observations::{MISSING_SYMBOL, Observations, Run, Sequences, Steering};
use crate::context::Context;
use crate::data::{Dense, NO_TAG};
use crate::error::{Error, Result};
use crate::numeric::parallel::Scratches;
use crate::numeric::random::Generator;
use crate::numeric::simd::run_plain;

/// Positions of the sequences that one thread handles at a time; parts depend on the data alone.
const PART: usize = 4096;

/// A chain of hidden states, whose transitions may depend on an input at every position (an input–output hidden
/// Markov model without output network; Bengio and Frasconi, 1995).
///
/// ```
/// use widemargin::machine::sequence::{Emission, Hmm, Sequences};
/// use widemargin::Context;
///
/// // Two coins, one of them biased, that are seldom exchanged.
/// let hmm = Hmm::new(
///     vec![0.5, 0.5],
///     vec![0.9, 0.1, 0.1, 0.9],
///     Emission::Categorical { probabilities: vec![0.5, 0.5, 0.1, 0.9] },
/// )?;
/// let throws = Sequences::of_symbols(vec![0, 0, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1], None)?;
/// let (path, _) = hmm.viterbi(&throws, &Context::new())?;
/// assert_eq!(path, [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Hmm {
    pub(super) start: Vec<f64>,
    pub(super) transition: Vec<f64>,
    pub(super) emission: Emission,
}

/// Likelihood and posteriors of sequences.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Posteriors {
    /// ln p(x) of every sequence.
    pub log_likelihoods: Vec<f64>,
    /// The probability of every state at every position.
    pub states: Dense<f64>,
}

/// Sums that a maximisation needs.
pub(super) struct Statistics {
    pub(super) log_likelihood: f64,
    pub(super) start: Vec<f64>,
    pub(super) pairs: Vec<f64>,
    pub(super) sums: Sums,
}

/// A model ready for sequences.
pub(super) struct Prepared<'a> {
    hmm: &'a Hmm,
    chain: Transitions,
    logs: Transitions,
    densities: Densities,
    /// Whether sums are made of logarithms throughout.
    logarithms: bool,
    context: &'a Context,
}

impl Hmm {
    /// A model with start probabilities, a row of transition probabilities for every state, and emissions. Where
    /// inputs choose the transition, the rows of all states stand there for every input in turn.
    ///
    /// # Errors
    /// [`Error::Length`] or [`Error::Parameter`] for parts that do not fit or are no probabilities.
    pub fn new(start: Vec<f64>, transition: Vec<f64>, emission: Emission) -> Result<Self> {
        let states = start.len();
        if states == 0 {
            return Err(Error::Empty { what: "state" });
        }
        let size = states * states;
        if transition.is_empty() || !transition.len().is_multiple_of(size) {
            let expected = size * transition.len().div_ceil(size).max(1);
            return Err(Error::length("transition probabilities", expected, transition.len()));
        }
        distribution("start", &start)?;
        transition.chunks(states).try_for_each(|row| distribution("transition", row))?;
        emission.validate(states)?;
        Ok(Self { start, transition, emission })
    }

    /// Number of states.
    pub fn states(&self) -> usize {
        self.start.len()
    }

    /// Probability of every state at the beginning.
    pub fn start(&self) -> &[f64] {
        &self.start
    }

    /// Probability of every state after every state, row by row, input after input.
    pub fn transition(&self) -> &[f64] {
        &self.transition
    }

    /// Number of inputs that choose a transition; 1 without inputs.
    pub fn inputs(&self) -> usize {
        self.transition.len() / (self.states() * self.states())
    }

    /// What the states emit.
    pub fn emission(&self) -> &Emission {
        &self.emission
    }

    /// Free parameters.
    pub fn parameters(&self) -> usize {
        let states = self.states();
        states - 1 + self.inputs() * states * (states - 1) + self.emission.parameters(states)
    }

    /// −2 ln p(x) + parameters · ln(positions) (Schwarz, 1978).
    ///
    /// # Errors
    /// As [`log_likelihood`](Self::log_likelihood).
    pub fn bic(&self, sequences: &Sequences, context: &Context) -> Result<f64> {
        let positions = sequences.positions() as f64;
        let likelihood = self.log_likelihood(sequences, context)?;
        Ok(self.parameters() as f64 * positions.ln() - 2.0 * likelihood)
    }

    /// ln p(x) of all sequences together; −∞ where the model excludes one.
    ///
    /// # Errors
    /// [`Error::Length`] or [`Error::Labels`] for observations of another kind, or an interruption.
    pub fn log_likelihood(&self, sequences: &Sequences, context: &Context) -> Result<f64> {
        let prepared = Prepared::new(self, sequences, false, context)?;
        let likelihoods = prepared.of_spans(sequences, |lattice, run, steering| {
            prepared.likelihood(run, steering, lattice)
        })?;
        Ok(likelihoods.iter().sum())
    }

    /// ln p(x) of every sequence and the posterior of every state at every position; with sums of scaled
    /// probabilities, or of `logarithms`.
    ///
    /// # Errors
    /// As [`log_likelihood`](Self::log_likelihood).
    pub fn posteriors(
        &self,
        sequences: &Sequences,
        logarithms: bool,
        context: &Context,
    ) -> Result<Posteriors> {
        let prepared = Prepared::new(self, sequences, logarithms, context)?;
        let (states, width) = (self.states(), prepared.chain.width);
        let parts = prepared.of_spans(sequences, |lattice, run, steering| {
            let likelihood = prepared.sums(run, steering, lattice, false)?;
            let rows = lattice.posteriors.chunks_exact(width);
            let values: Vec<f64> = rows.flat_map(|row| &row[..states]).copied().collect();
            Ok((likelihood, values))
        })?;
        let (log_likelihoods, values): (Vec<f64>, Vec<Vec<f64>>) = parts.into_iter().unzip();
        let states = Dense::new(sequences.positions(), states, values.concat())?;
        Ok(Posteriors { log_likelihoods, states })
    }

    /// The most probable path of every sequence (Viterbi, 1967), and ln p of path and observations of all
    /// sequences together; the smaller state where two are equal.
    ///
    /// # Errors
    /// As [`log_likelihood`](Self::log_likelihood).
    pub fn viterbi(&self, sequences: &Sequences, context: &Context) -> Result<(Vec<u32>, f64)> {
        let parts = self.best_paths(sequences, context)?;
        let (paths, likelihoods): (Vec<Vec<u32>>, Vec<f64>) = parts.into_iter().unzip();
        Ok((paths.concat(), likelihoods.iter().sum()))
    }

    /// The most probable path of every sequence with its ln p.
    pub(super) fn best_paths(
        &self,
        sequences: &Sequences,
        context: &Context,
    ) -> Result<Vec<(Vec<u32>, f64)>> {
        let prepared = Prepared::new(self, sequences, true, context)?;
        prepared.of_spans(sequences, |lattice, run, steering| {
            let mut path = vec![0; run.len()];
            prepared.fill(run, steering, true, lattice)?;
            let (chain, inputs) = (&prepared.logs, steering.inputs);
            let mut memory = std::mem::take(&mut lattice.back);
            let (back, path_of_run, asks) = (&mut memory, &mut path[..], Some(context));
            let best = BestPath { chain, inputs, lattice, back, path: path_of_run, context: asks };
            let likelihood = run_plain(context.instruction_set(), best);
            context.checkpoint()?;
            lattice.back = memory;
            Ok((path, likelihood))
        })
    }

    /// A random sequence and its states, from `first` or a random state on.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a state that does not exist, a covariance that is not positive definite, densities of
    /// the caller, or a model with inputs.
    pub fn sample(
        &self,
        length: usize,
        first: Option<usize>,
        context: &Context,
    ) -> Result<(Observations, Vec<u32>)> {
        if self.inputs() > 1 {
            let expected = "inputs at every position of a sample of a model with inputs";
            return Err(Error::parameter("inputs", expected, "none"));
        }
        self.sample_with(&vec![0; length], first, context)
    }

    /// A random sequence and its states, with the input that chooses the transition into every position.
    ///
    /// # Errors
    /// As [`sample`](Self::sample), and for an input that the model does not have.
    pub fn sample_with(
        &self,
        inputs: &[u32],
        first: Option<usize>,
        context: &Context,
    ) -> Result<(Observations, Vec<u32>)> {
        let (states, length) = (self.states(), inputs.len());
        check_inputs(inputs, self.inputs())?;
        if let Some(state) = first.filter(|state| *state >= states) {
            return Err(Error::parameter("first state", format!("one below {states}"), state));
        }
        let mut random = Generator::new(context.seed());
        let mut observations = match &self.emission {
            Emission::Categorical { .. } => Observations::Symbols(Vec::new()),
            other => Observations::Rows { values: Vec::new(), features: other.size(states) },
        };
        let mut path: Vec<u32> = Vec::with_capacity(length);
        for k in 0..length {
            let state = match (path.last(), first) {
                (Some(&last), _) => {
                    let row = (inputs[k] as usize * states + last as usize) * states;
                    choose(&self.transition[row..][..states], &mut random)
                }
                (None, Some(first)) => first,
                (None, None) => choose(&self.start, &mut random),
            };
            path.push(state as u32);
            if k % PART == 0 {
                context.checkpoint()?;
            }
            self.emission.sample(state, states, &mut random, context, &mut observations)?;
        }
        Ok((observations, path))
    }
}

impl<'a> Prepared<'a> {
    /// Checks that sequences are of the right kind and prepares the densities.
    pub(super) fn new(
        hmm: &'a Hmm,
        sequences: &Sequences,
        logarithms: bool,
        context: &'a Context,
    ) -> Result<Self> {
        check(&hmm.emission, hmm.states(), sequences)?;
        check_inputs(sequences.inputs(), hmm.inputs())?;
        if sequences.inputs().is_empty() && hmm.inputs() > 1 {
            let expected = format!("an input below {} at every position", hmm.inputs());
            return Err(Error::labels(expected, "none"));
        }
        let chain = Transitions::new(&hmm.start, &hmm.transition);
        let logs = chain.logarithms();
        let densities = hmm.emission.prepare(hmm.states(), context)?;
        Ok(Self { hmm, chain, logs, densities, logarithms, context })
    }

    /// What `work` makes of every sequence, in order.
    fn of_spans<T: Send>(
        &self,
        sequences: &Sequences,
        work: impl Fn(&mut Lattice, Run<'_>, Steering<'_>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let parts = self.of_parts(sequences, |spans, lattice| {
            let each = spans.iter().map(|span| {
                work(lattice, self.run(sequences, span), sequences.steering(span.clone()))
            });
            each.collect::<Result<Vec<T>>>()
        })?;
        Ok(parts.into_iter().flatten().collect())
    }

    fn of_parts<T: Send>(
        &self,
        sequences: &Sequences,
        work: impl Fn(&[Range<usize>], &mut Lattice) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let spans = sequences.spans();
        let mut parts: Vec<&[Range<usize>]> = Vec::new();
        let mut first = 0;
        for (s, span) in spans.iter().enumerate() {
            if span.end - spans[first].start >= PART || s + 1 == spans.len() {
                parts.push(&spans[first..=s]);
                first = s + 1;
            }
        }
        let lattices = Scratches::<Lattice>::new();
        self.context.try_map(parts, |part| {
            self.context.checkpoint()?;
            lattices.with(|lattice| work(part, lattice))
        })
    }

    fn run<'s>(&self, sequences: &'s Sequences, span: &Range<usize>) -> Run<'s> {
        let counts = matches!(self.densities, Densities::Counts { .. });
        sequences.run(span.clone(), counts)
    }

    /// Densities of a run, as scaled probabilities or as logarithms.
    fn fill(
        &self,
        run: Run<'_>,
        steering: Steering<'_>,
        logarithms: bool,
        lattice: &mut Lattice,
    ) -> Result<()> {
        let (width, set) = (self.chain.width, self.context.instruction_set());
        lattice.resize(run.len(), width);
        let plain = self.densities.are_plain() && steering.known.is_empty() && !logarithms;
        let strip = self.strip();
        let parts = lattice.emissions.chunks_mut(strip * width).enumerate();
        for (at, out) in parts {
            self.context.checkpoint()?;
            let run = run.part(at * strip..at * strip + out.len() / width);
            let (densities, logarithms) = (&self.densities, !plain);
            run_plain(set, Fill { densities, run, logarithms, width, out });
        }
        lattice.keep_known(steering.known, width);
        if plain {
            lattice.peaks.fill(0.0);
        } else if !logarithms {
            let zeros = self.densities.may_vanish() || !steering.known.is_empty();
            run_plain(set, Exponentials { width, states: self.chain.states, zeros, lattice });
        }
        Ok(())
    }

    /// Positions whose densities or sums are computed between two looks at the context.
    fn strip(&self) -> usize {
        let size = self.hmm.emission.size(self.chain.states);
        let products = match self.densities {
            Densities::Table { .. } | Densities::Given => 1,
            Densities::Counts { .. } | Densities::Normal { full: false, .. } => size,
            Densities::Normal { full: true, .. } => size * size,
        };
        unchecked_positions(self.chain.width * products)
    }

    /// Scaled forward sums; `None` where they vanish.
    fn forward(
        &self,
        run: Run<'_>,
        steering: Steering<'_>,
        lattice: &mut Lattice,
    ) -> Result<Option<f64>> {
        self.fill(run, steering, false, lattice)?;
        let (chain, inputs, context) = (&self.chain, steering.inputs, self.context);
        let found =
            run_plain(context.instruction_set(), Forward { chain, inputs, lattice, context });
        if found.is_none() {
            context.checkpoint()?;
        }
        Ok(found)
    }

    fn by_logarithms(
        &self,
        run: Run<'_>,
        steering: Steering<'_>,
        lattice: &mut Lattice,
        pairs: bool,
    ) -> Result<f64> {
        self.fill(run, steering, true, lattice)?;
        logarithmic(&self.logs, steering.inputs, lattice, pairs, self.context)
    }

    fn likelihood(
        &self,
        run: Run<'_>,
        steering: Steering<'_>,
        lattice: &mut Lattice,
    ) -> Result<f64> {
        match self.forward(run, steering, lattice)? {
            Some(likelihood) => Ok(likelihood),
            None => self.by_logarithms(run, steering, lattice, false),
        }
    }

    /// ln p(x), with posteriors and, if wanted, ξ in `pairs`.
    fn sums(
        &self,
        run: Run<'_>,
        steering: Steering<'_>,
        lattice: &mut Lattice,
        pairs: bool,
    ) -> Result<f64> {
        let scaled = if self.logarithms { None } else { self.forward(run, steering, lattice)? };
        let Some(total) = scaled else {
            return self.by_logarithms(run, steering, lattice, pairs);
        };
        let (chain, inputs, context) = (&self.chain, steering.inputs, self.context);
        run_plain(context.instruction_set(), Backward { chain, inputs, lattice, pairs, context });
        context.checkpoint()?;
        if pairs {
            self.chain.times(&mut lattice.pairs);
        }
        Ok(total)
    }

    /// Sums of all sequences for a maximisation.
    pub(super) fn statistics(&self, sequences: &Sequences, shift: &[f64]) -> Result<Statistics> {
        let (states, width) = (self.chain.states, self.chain.width);
        let empty = || Statistics {
            log_likelihood: 0.0,
            start: vec![0.0; width],
            pairs: vec![0.0; self.chain.rows.len()],
            sums: Sums::new(&self.hmm.emission, states, shift),
        };
        let parts = self.of_parts(sequences, |spans, lattice| {
            let mut own = empty();
            for span in spans {
                let run = self.run(sequences, span);
                let steering = sequences.steering(span.clone());
                own.log_likelihood += self.sums(run, steering, lattice, true)?;
                let add = |sum: &mut [f64], values: &[f64]| {
                    sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
                };
                add(&mut own.start, &lattice.posteriors[..width]);
                add(&mut own.pairs, &lattice.pairs);
                let strip = self.strip();
                for (at, posteriors) in lattice.posteriors.chunks(strip * width).enumerate() {
                    self.context.checkpoint()?;
                    let run = run.part(at * strip..at * strip + posteriors.len() / width);
                    let add = Accumulate { sums: &mut own.sums, run, width, posteriors };
                    run_plain(self.context.instruction_set(), add);
                }
            }
            Ok(own)
        })?;
        let mut all = empty();
        for part in parts {
            all.log_likelihood += part.log_likelihood;
            all.start.iter_mut().zip(&part.start).for_each(|(sum, value)| *sum += value);
            all.pairs.iter_mut().zip(&part.pairs).for_each(|(sum, value)| *sum += value);
            all.sums.join(&part.sums);
        }
        Ok(all)
    }
}

/// Refuses inputs that a model does not have.
pub(super) fn check_inputs(inputs: &[u32], count: usize) -> Result<()> {
    match inputs.iter().position(|&input| input as usize >= count) {
        Some(at) => Err(Error::labels(
            format!("inputs from 0 to {}", count - 1),
            format!("{} for the transition into position {}", inputs[at], at + 1),
        )),
        None => Ok(()),
    }
}

/// Refuses observations that the emissions cannot have made, and known states that do not exist.
pub(super) fn check(emission: &Emission, states: usize, sequences: &Sequences) -> Result<()> {
    let size = emission.size(states);
    let is_unknown = |state: &u32| *state != NO_TAG && *state as usize >= states;
    if let Some(at) = sequences.known().iter().position(is_unknown) {
        let found = format!("{} at position {}", sequences.known()[at], at + 1);
        return Err(Error::labels(format!("states from 0 to {}", states - 1), found));
    }
    let is_foreign = |symbol: &u32| *symbol != MISSING_SYMBOL && *symbol as usize >= size;
    match (emission, &sequences.observations) {
        (Emission::Categorical { .. }, Observations::Symbols(symbols)) => {
            match symbols.iter().position(is_foreign) {
                Some(at) => Err(Error::labels(
                    format!("symbols from 0 to {}", size - 1),
                    format!("{} at position {}", symbols[at], at + 1),
                )),
                None => Ok(()),
            }
        }
        (Emission::Categorical { .. }, _) => Err(Error::labels("symbols", "rows of numbers")),
        (_, Observations::Symbols(_)) => Err(Error::labels("rows of numbers", "symbols")),
        (_, Observations::Rows { features, .. }) if *features != size => {
            let what = match emission {
                Emission::Given => "densities of a position, one of every state",
                _ => "features",
            };
            Err(Error::length(what, size, *features))
        }
        (Emission::Poisson { .. }, Observations::Rows { values, features }) => {
            match values.iter().position(|value| *value < 0.0 || value.fract() != 0.0) {
                Some(at) => Err(Error::labels(
                    "counts: whole numbers of at least 0",
                    format!("{} in row {}", values[at], at / features + 1),
                )),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}
