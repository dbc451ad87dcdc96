//! Sequences of symbols or of rows.

use std::ops::Range;
use std::sync::OnceLock;

use crate::data::{Dense, NO_TAG};
use crate::error::{Error, Result};

/// The symbol of a position where nothing was observed.
pub const MISSING_SYMBOL: u32 = u32::MAX;

/// What is observed, position after position.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Observations {
    /// Numbers of symbols, from 0; [`MISSING_SYMBOL`] where nothing was observed.
    Symbols(Vec<u32>),
    /// Rows of features.
    Rows {
        /// Row after row; 0 in rows where nothing was observed.
        values: Vec<f64>,
        /// Features of a row.
        features: usize,
    },
}

/// Several sequences, one after another.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequences {
    pub(super) observations: Observations,
    pub(super) lengths: Vec<usize>,
    /// Rows where nothing was observed; empty where there are none.
    missing: Vec<bool>,
    /// The states that are known, [`NO_TAG`] elsewhere; empty where none is.
    known: Vec<u32>,
    /// The input that chooses the transition into every position; empty without inputs.
    inputs: Vec<u32>,
    /// Σ ln x! of every row, made when counts are needed.
    factorials: OnceLock<Vec<f64>>,
}

/// The observations of one sequence.
#[derive(Clone, Copy)]
pub(super) enum Run<'a> {
    Symbols(&'a [u32]),
    Rows { values: &'a [f64], size: usize, factorials: &'a [f64], missing: &'a [bool] },
}

/// What steers the path of one sequence: known states and inputs, each empty where there are none.
#[derive(Clone, Copy)]
pub(super) struct Steering<'a> {
    pub(super) known: &'a [u32],
    pub(super) inputs: &'a [u32],
}

impl<'a> Run<'a> {
    /// Some of the positions.
    pub(super) fn part(&self, range: std::ops::Range<usize>) -> Self {
        match *self {
            Self::Symbols(symbols) => Self::Symbols(&symbols[range]),
            Self::Rows { values, size, factorials, missing } => {
                let factorials = factorials.get(range.clone()).unwrap_or(&[]);
                let missing = missing.get(range.clone()).unwrap_or(&[]);
                let values: &'a [f64] = &values[range.start * size..range.end * size];
                Self::Rows { values, size, factorials, missing }
            }
        }
    }

    /// Positions.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Symbols(symbols) => symbols.len(),
            Self::Rows { values, size, .. } => values.len() / size,
        }
    }
}

impl Sequences {
    /// Sequences of symbols; `lengths` are those of the sequences, all positions are one without.
    ///
    /// # Errors
    /// [`Error::Length`] when the lengths do not add up to the positions, [`Error::Empty`] when there are
    /// none.
    pub fn of_symbols(symbols: Vec<u32>, lengths: Option<Vec<usize>>) -> Result<Self> {
        let lengths = checked(lengths, symbols.len())?;
        Ok(Self::new(Observations::Symbols(symbols), lengths, Vec::new()))
    }

    /// Sequences of rows. A row of which every value is NaN is a position where nothing was observed.
    ///
    /// # Errors
    /// As [`of_symbols`](Self::of_symbols); [`Error::NonFinite`] for another value that is no number.
    pub fn of_rows(rows: Dense<f64>, lengths: Option<Vec<usize>>) -> Result<Self> {
        Self::of_values(rows, lengths, f64::is_finite)
    }

    /// Sequences of ln b(x | state), a row for every position and a column for every state, for
    /// [`Emission::Given`](super::Emission::Given): −∞ where a state excludes what was observed.
    ///
    /// # Errors
    /// As [`of_rows`](Self::of_rows).
    pub fn of_log_densities(rows: Dense<f64>, lengths: Option<Vec<usize>>) -> Result<Self> {
        Self::of_values(rows, lengths, |value| value.is_finite() || value == f64::NEG_INFINITY)
    }

    fn of_values(
        rows: Dense<f64>,
        lengths: Option<Vec<usize>>,
        is_allowed: impl Fn(f64) -> bool,
    ) -> Result<Self> {
        let (count, features) = (rows.rows(), rows.columns());
        let lengths = checked(lengths, count)?;
        if features == 0 {
            return Err(Error::Empty { what: "feature" });
        }
        let mut values = rows.into_values();
        let mut missing = Vec::new();
        for row in 0..count {
            let own = &mut values[row * features..][..features];
            if own.iter().all(|value| value.is_nan()) {
                missing.resize(count, false);
                missing[row] = true;
                own.fill(0.0);
            } else if let Some(column) = own.iter().position(|value| !is_allowed(*value)) {
                let (row, value) = (row + 1, own[column]);
                return Err(Error::NonFinite { row, column: column + 1, value });
            }
        }
        Ok(Self::new(Observations::Rows { values, features }, lengths, missing))
    }

    fn new(observations: Observations, lengths: Vec<usize>, missing: Vec<bool>) -> Self {
        let (known, inputs, factorials) = (Vec::new(), Vec::new(), OnceLock::new());
        Self { observations, lengths, missing, known, inputs, factorials }
    }

    /// With the states that are known, [`NO_TAG`] where they are not: paths, posteriors and Baum–Welch then
    /// take only paths through them into account.
    ///
    /// # Errors
    /// [`Error::Length`] when there is not one entry per position.
    pub fn with_known_states(mut self, states: Vec<u32>) -> Result<Self> {
        if states.len() != self.positions() {
            return Err(Error::length("known states", self.positions(), states.len()));
        }
        let any = states.iter().any(|state| *state != NO_TAG);
        self.known = if any { states } else { Vec::new() };
        Ok(self)
    }

    /// With an input at every position, which chooses the transition `lag` positions later: that from the position to the
    /// next for a lag of 1, that into it for a lag of 0.
    ///
    /// # Errors
    /// [`Error::Length`] when there is not one entry per position.
    pub fn with_inputs(mut self, inputs: &[u32], lag: usize) -> Result<Self> {
        if inputs.len() != self.positions() {
            return Err(Error::length("inputs", self.positions(), inputs.len()));
        }
        let mut moved = vec![0; inputs.len()];
        for span in self.spans() {
            let first = span.start.saturating_add(lag).min(span.end);
            let count = span.end - first;
            moved[first..span.end].copy_from_slice(&inputs[span.start..span.start + count]);
        }
        self.inputs = moved;
        Ok(self)
    }

    /// The input that chooses the transition into every position, if there are inputs.
    pub(super) fn inputs(&self) -> &[u32] {
        &self.inputs
    }

    /// The states that are known, if any is.
    pub(super) fn known(&self) -> &[u32] {
        &self.known
    }

    /// Whether nothing was observed in a row.
    pub(super) fn is_missing(&self, row: usize) -> bool {
        self.missing.get(row).copied().unwrap_or(false)
    }

    /// What steers the path of a span.
    pub(super) fn steering(&self, span: Range<usize>) -> Steering<'_> {
        let part = |list: &'_ [u32]| if list.is_empty() { 0..0 } else { span.clone() };
        Steering { known: &self.known[part(&self.known)], inputs: &self.inputs[part(&self.inputs)] }
    }

    /// The observations.
    pub fn observations(&self) -> &Observations {
        &self.observations
    }

    /// Positions of all sequences.
    pub fn positions(&self) -> usize {
        self.lengths.iter().sum()
    }

    /// Length of every sequence.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// Where every sequence begins and ends.
    pub(super) fn spans(&self) -> Vec<Range<usize>> {
        let mut at = 0;
        let span = |length: &usize| {
            at += length;
            at - length..at
        };
        self.lengths.iter().map(span).collect()
    }

    /// The observations of a span; with the factorials of counts if they are wanted.
    pub(super) fn run(&self, span: Range<usize>, counts: bool) -> Run<'_> {
        match &self.observations {
            Observations::Symbols(symbols) => Run::Symbols(&symbols[span]),
            Observations::Rows { values, features } => {
                let sum = |row: &[f64]| row.iter().map(|x| libm::lgamma(x + 1.0)).sum();
                let all = || values.chunks_exact(*features).map(sum).collect();
                let factorials =
                    if counts { &self.factorials.get_or_init(all)[span.clone()] } else { &[] };
                let missing = if self.missing.is_empty() { 0..0 } else { span.clone() };
                let values = &values[span.start * features..span.end * features];
                let missing = &self.missing[missing];
                Run::Rows { values, size: *features, factorials, missing }
            }
        }
    }
}

fn checked(lengths: Option<Vec<usize>>, positions: usize) -> Result<Vec<usize>> {
    let lengths = lengths.unwrap_or_else(|| vec![positions]);
    if positions == 0 || lengths.is_empty() || lengths.contains(&0) {
        return Err(Error::Empty { what: "position of every sequence" });
    }
    let total = lengths.iter().try_fold(0_usize, |sum, &length| sum.checked_add(length));
    match total {
        Some(total) if total == positions => Ok(lengths),
        total => {
            Err(Error::length("positions of all sequences", total.unwrap_or(usize::MAX), positions))
        }
    }
}
