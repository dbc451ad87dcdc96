//! Sequences of symbols or of rows.

use std::ops::Range;
use std::sync::OnceLock;

use crate::data::Dense;
use crate::error::{Error, Result};

/// What is observed, position after position.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Observations {
    /// Numbers of symbols, from 0.
    Symbols(Vec<u32>),
    /// Rows of features.
    Rows {
        /// Row after row.
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
    /// Σ ln x! of every row, made when counts are needed.
    factorials: OnceLock<Vec<f64>>,
}

/// The observations of one sequence.
#[derive(Clone, Copy)]
pub(super) enum Run<'a> {
    Symbols(&'a [u32]),
    Rows { values: &'a [f64], size: usize, factorials: &'a [f64] },
}

impl<'a> Run<'a> {
    /// Some of the positions.
    pub(super) fn part(&self, range: std::ops::Range<usize>) -> Self {
        match *self {
            Self::Symbols(symbols) => Self::Symbols(&symbols[range]),
            Self::Rows { values, size, factorials } => {
                let factorials = factorials.get(range.clone()).unwrap_or(&[]);
                let values: &'a [f64] = &values[range.start * size..range.end * size];
                Self::Rows { values, size, factorials }
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
        Ok(Self {
            observations: Observations::Symbols(symbols),
            lengths,
            factorials: OnceLock::new(),
        })
    }

    /// Sequences of rows.
    ///
    /// # Errors
    /// As [`of_symbols`](Self::of_symbols); [`Error::NonFinite`] for a value that is no number.
    pub fn of_rows(rows: Dense<f64>, lengths: Option<Vec<usize>>) -> Result<Self> {
        let (count, features) = (rows.rows(), rows.columns());
        let lengths = checked(lengths, count)?;
        if features == 0 {
            return Err(Error::Empty { what: "feature" });
        }
        let values = rows.into_values();
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            let (row, column) = (at / features + 1, at % features + 1);
            return Err(Error::NonFinite { row, column, value: values[at] });
        }
        let observations = Observations::Rows { values, features };
        Ok(Self { observations, lengths, factorials: OnceLock::new() })
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
                let values = &values[span.start * features..span.end * features];
                Run::Rows { values, size: *features, factorials }
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
