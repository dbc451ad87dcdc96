//! What the classical machines do before and after their own work: checks, rows as numbers, and the
//! model around the result.

use std::time::Instant;

use super::Classic;
use crate::context::{Context, Event};
use crate::data::{ClassOrder, Classes, Dataset, Dense, Matrix, memory};
use crate::error::{Error, Result};
use crate::machine::specification::Value;
use crate::machine::{Body, Calibration, ClassTable, MachineKind, Model, Scheme, Training};
use crate::solver::{Outcome, Status};

/// Makes machines of types whose `train` learns from all rows of a data set.
macro_rules! trained_on_selected {
    ($($machine:ident),+) => {$(
        impl $crate::machine::Machine for $machine {
            fn fit_with(
                &self,
                input: $crate::machine::fit::FitInput<'_>,
                context: &Context,
            ) -> Result<Model> {
                input.fit_selected(None, |data| self.train(data, context))
            }
        }
    )+};
}

pub(super) use trained_on_selected;

/// All rows, one after the other.
///
/// # Errors
/// [`Error::TooLarge`] when there is no memory for them.
pub(super) fn dense_rows(features: &Matrix) -> Result<Vec<f64>> {
    if let Matrix::DenseF64(dense) = features {
        return Ok(dense.values().to_vec());
    }
    let columns = features.columns();
    let what = || format!("a dense table of {} rows and {columns} features", features.rows());
    memory::check(what, 8 * features.rows() as u128 * columns as u128)?;
    let mut rows = vec![0.0; features.rows() * columns];
    for (i, row) in rows.chunks_exact_mut(columns.max(1)).enumerate() {
        features.for_each_nonzero(i, |j, value| row[j] = value);
    }
    Ok(rows)
}

/// A table of rows of one width.
pub(super) fn table(rows: Vec<f64>, columns: usize) -> Result<Matrix> {
    Dense::new(rows.len() / columns.max(1), columns, rows).map(Matrix::DenseF64)
}

/// The mean of every column.
pub(super) fn means<'a>(rows: impl Iterator<Item = &'a [f64]>, columns: usize) -> Vec<f64> {
    let (mut sums, mut count) = (vec![0.0; columns], 0.0_f64);
    for row in rows {
        count += 1.0;
        for (sum, value) in sums.iter_mut().zip(row) {
            *sum += value;
        }
    }
    sums.iter_mut().for_each(|sum| *sum /= count.max(1.0));
    sums
}

/// The mean of every column of a table, sparse or not.
pub(super) fn column_means(rows: &Matrix) -> Vec<f64> {
    let mut sums = vec![0.0; rows.columns()];
    (0..rows.rows()).for_each(|i| rows.for_each_nonzero(i, |j, value| sums[j] += value));
    sums.iter_mut().for_each(|sum| *sum /= rows.rows().max(1) as f64);
    sums
}

/// Σ (x − mean)² of every column of a table, sparse or not.
pub(super) fn column_scatters(rows: &Matrix, means: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; rows.columns()];
    let mut zeros = vec![rows.rows(); rows.columns()];
    for i in 0..rows.rows() {
        rows.for_each_nonzero(i, |j, value| {
            sums[j] += (value - means[j]) * (value - means[j]);
            zeros[j] -= 1;
        });
    }
    let zeros = zeros.iter().zip(means).map(|(&zeros, mean)| zeros as f64 * mean * mean);
    sums.iter_mut().zip(zeros).for_each(|(sum, rest)| *sum += rest);
    sums
}

/// Σ (x − mean)² over all columns of a table; those without a value take no memory.
pub(super) fn total_scatter(rows: &Matrix) -> f64 {
    let rows = rows.without_empty_columns();
    column_scatters(&rows, &column_means(&rows)).iter().sum()
}

/// Checks that square matrices of the features can be held: one, a copy of it and its factor.
pub(super) fn check_square(what: &str, features: usize) -> Result<()> {
    let bytes = 3 * features as u128 * features as u128 * 8;
    memory::check(|| format!("{what} of {features} features"), bytes)
}

/// What turns the maximum-likelihood covariance of `count` rows into the unbiased one, where that is
/// asked for and there is one.
pub(super) fn divisor_factor(count: usize, unbiased: bool) -> f64 {
    if unbiased && count > 1 { count as f64 / (count as f64 - 1.0) } else { 1.0 }
}

/// Checks that rows are finite and carry no weights.
pub(super) fn check(data: &Dataset) -> Result<()> {
    if data.weights().is_some() {
        return Err(Error::parameter("weights", "no row weights for a classical machine", "some"));
    }
    data.features().validate()
}

/// The classes of checked, labelled rows: at least two.
pub(super) fn check_labelled(data: &Dataset) -> Result<Classes> {
    check(data)?;
    let classes = data.labels().classes(ClassOrder::Sorted)?;
    match classes.names.as_slice() {
        [] => Err(Error::Empty { what: "row" }),
        [only] => Err(Error::OneClass { label: only.to_string() }),
        _ => Ok(classes),
    }
}

/// A parameter that must be finite and at least `smallest`.
pub(super) fn check_number(name: &'static str, value: f64, smallest: f64) -> Result<()> {
    if value.is_finite() && value >= smallest {
        Ok(())
    } else {
        let expected = format!("a finite number of at least {smallest}");
        Err(Error::parameter(name, expected, value))
    }
}

/// Something the user should know although the computation goes on.
pub(super) fn warn(context: &Context, message: impl Into<String>) {
    context.report(&Event::Warning { message: message.into() });
}

/// Probabilities of classes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Priors {
    /// Their shares among the training rows.
    Frequencies,
    /// All the same.
    Equal,
    /// Given for every class, ascending; they are divided by their sum.
    Given(Vec<f64>),
}

impl Priors {
    /// ln P of every class.
    pub(super) fn logarithms(&self, counts: &[usize]) -> Result<Vec<f64>> {
        let shares: Vec<f64> = match self {
            Self::Frequencies => counts.iter().map(|&count| count as f64).collect(),
            Self::Equal => vec![1.0; counts.len()],
            Self::Given(shares) => shares.clone(),
        };
        let total: f64 = shares.iter().sum();
        if shares.len() != counts.len() {
            return Err(Error::length("priors", counts.len(), shares.len()));
        }
        if !(total.is_finite() && total > 0.0 && shares.iter().all(|share| *share >= 0.0)) {
            let expected = "finite numbers of at least 0, not all 0";
            return Err(Error::parameter("priors", expected, format!("{shares:?}")));
        }
        Ok(shares.iter().map(|share| (share / total).ln()).collect())
    }
}

/// Time, status, objective and parameters of a training.
pub(super) struct TrainingSummary {
    pub(super) started: Instant,
    pub(super) status: Status,
    /// What was minimised, where something was.
    pub(super) objective: f64,
    /// Its last change.
    pub(super) change: f64,
    pub(super) iterations: usize,
    pub(super) parameters: Vec<(String, Value)>,
}

impl TrainingSummary {
    /// A closed form, which needs no steps.
    pub(super) fn closed_form(started: Instant, parameters: &[(&str, Value)]) -> Self {
        Self {
            started,
            status: Status::Solved,
            objective: 0.0,
            change: 0.0,
            iterations: 0,
            parameters: named(parameters),
        }
    }
}

/// Parameters as a model keeps them.
pub(super) fn named(parameters: &[(&str, Value)]) -> Vec<(String, Value)> {
    parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

/// The classes of a model with one score a class.
pub(super) fn class_table(classes: &Classes, support: Vec<usize>) -> ClassTable {
    ClassTable { names: classes.names.clone(), scheme: Scheme::OneVsRest, support }
}

/// A model of the given body.
pub(super) fn model(
    kind: Classic,
    data: &Dataset,
    body: impl Into<Body>,
    effort: TrainingSummary,
) -> Model {
    let outcome = Outcome {
        status: effort.status,
        primal: effort.objective,
        dual: effort.objective,
        violation: effort.change,
        iterations: effort.iterations as u64,
        blocks: 0,
        kernel_rows: 0,
    };
    Model {
        calibration: kind.is_classifier().then_some(Calibration::Softmax),
        feature_names: data.feature_names().map(<[String]>::to_vec),
        training: Some(Training {
            outcome,
            rows: data.rows(),
            seconds: effort.started.elapsed().as_secs_f64(),
            parameters: effort.parameters,
            specification: None,
        }),
        ..Model::new(MachineKind::Classic(kind), body)
    }
}
