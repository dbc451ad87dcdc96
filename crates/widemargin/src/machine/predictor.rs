//! Prediction: decision values of many rows, and the labels, scores and densities that they mean.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::model::{Evaluation, Model, Prepared, Scratch, run_of};
use super::probability::{log_sum, softmax};
use super::vote::{elect, scores};
use crate::context::Context;
use crate::data::{Dense, Labels, Matrix};
use crate::error::{Error, Result};
use crate::kernel::PreparedMap;
use crate::numeric::parallel::Scratches;

/// Rows predicted before the first check of the time, and the time between two checks.
const FIRST_ROWS: usize = 256;
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Rows predicted by one task.
const TASK_ROWS: usize = 256;

/// A model made ready to predict many rows.
pub struct Predictor<'a> {
    model: &'a Model,
    context: &'a Context,
    packed: PackedSupport,
}

/// The body of one model made ready: what a [`Predictor`] spends its time on before the first row,
/// kept for the next one.
#[derive(Clone)]
pub struct PackedSupport(Arc<PreparedModel>);

struct PreparedModel {
    body: Box<dyn Prepared>,
    /// Features that approximate a kernel, computed before the body sees a row.
    map: Option<PreparedMap>,
}

impl Model {
    /// Makes the model ready to predict.
    ///
    /// # Errors
    /// [`Error::Kernel`] when the support vectors do not suit the kernel.
    pub fn predictor<'a>(&'a self, context: &'a Context) -> Result<Predictor<'a>> {
        Ok(self.predictor_with(&self.pack(context)?, context))
    }

    /// Packs the support vectors for predictors to come.
    ///
    /// # Errors
    /// As [`predictor`](Self::predictor).
    pub fn pack(&self, context: &Context) -> Result<PackedSupport> {
        let map = self.preparation.map.as_ref();
        let map = map.map(|map| map.prepare(context)).transpose()?;
        let body = self.body.get().prepare(self, context)?;
        Ok(PackedSupport(Arc::new(PreparedModel { body, map })))
    }

    /// A predictor that uses what [`pack`](Self::pack) of the same model made.
    pub fn predictor_with<'a>(
        &'a self,
        packed: &PackedSupport,
        context: &'a Context,
    ) -> Predictor<'a> {
        Predictor { model: self, context, packed: packed.clone() }
    }
}

impl Predictor<'_> {
    /// The model.
    pub fn model(&self) -> &Model {
        self.model
    }

    /// The values of all decision functions, one row per row of `features`.
    ///
    /// # Errors
    /// [`Error::Length`] when the rows do not have as many features as the model;
    /// [`Error::NonFinite`] when a value is not finite.
    pub fn decision_values(&self, features: &Matrix) -> Result<Dense<f64>> {
        if features.rows() == 0 {
            return Dense::new(0, self.model.outputs(), Vec::new());
        }
        let body = &self.packed.0.body;
        if !body.refuses_non_finite() || self.model.preparation.scaler.is_some() {
            features.validate()?;
        }
        if !body.takes_any_rows() && !self.model.takes_columns(features.columns()) {
            return Err(Error::length("features", self.model.features(), features.columns()));
        }
        let values = self.decision_values_of(features, &(0..features.rows()).collect::<Vec<_>>());
        values.map_err(|error| features.validate().err().unwrap_or(error))
    }

    /// The values of all decision functions for the rows of `features` named by `rows`; the table
    /// is taken to be finite.
    ///
    /// # Errors
    /// [`Error::Length`] when the rows do not have as many features as the model.
    ///
    /// # Panics
    /// When a row does not exist.
    pub fn decision_values_of(&self, features: &Matrix, rows: &[usize]) -> Result<Dense<f64>> {
        if !self.packed.0.body.takes_any_rows() && !self.model.takes_columns(features.columns()) {
            return Err(Error::length("features", self.model.features(), features.columns()));
        }
        if let Some(scaler) = &self.model.preparation.scaler {
            let scaled = scaler.transform(features.select_rows(rows))?;
            scaled.validate()?;
            return self.sums(&scaled, &(0..rows.len()).collect::<Vec<_>>());
        }
        let is_run = rows.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        if !self.packed.0.body.takes_any_rows() && !is_run {
            let part = features.select_rows(rows);
            return self.sums(&part, &(0..rows.len()).collect::<Vec<_>>());
        }
        self.sums(features, rows)
    }

    /// As [`decision_values`](Self::decision_values), in runs of rows between which it checks the time
    /// limit and requests to stop.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when it was stopped; otherwise as
    /// [`decision_values`](Self::decision_values).
    pub fn decision_values_in_time(&self, features: &Matrix) -> Result<Dense<f64>> {
        if self.context.time_left().is_none() && self.context.stop_request().is_none()
            || features.rows() <= FIRST_ROWS
        {
            return self.decision_values(features);
        }
        features.validate()?;
        self.decision_values_of_in_time(features, &(0..features.rows()).collect::<Vec<_>>())
    }

    /// As [`decision_values_in_time`](Self::decision_values_in_time) for the rows of `features` named by
    /// `rows`; the table is taken to be finite.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when it was stopped; otherwise as
    /// [`decision_values_of`](Self::decision_values_of).
    pub(crate) fn decision_values_of_in_time(
        &self,
        features: &Matrix,
        rows: &[usize],
    ) -> Result<Dense<f64>> {
        if rows.len() <= FIRST_ROWS {
            return self.decision_values_of(features, rows);
        }
        let mut values = Vec::with_capacity(rows.len() * self.model.outputs());
        let (mut rest, mut count) = (rows, FIRST_ROWS);
        while !rest.is_empty() {
            self.context.checkpoint()?;
            let begun = Instant::now();
            let (run, after) = rest.split_at(count.min(rest.len()));
            values.extend_from_slice(self.decision_values_of(features, run)?.values());
            if begun.elapsed() < CHECK_INTERVAL {
                count *= 2;
            }
            rest = after;
        }
        Dense::new(rows.len(), values.len() / rows.len(), values)
    }

    fn sums(&self, features: &Matrix, rows: &[usize]) -> Result<Dense<f64>> {
        let outputs = self.model.outputs();
        let mut values = vec![0.0; rows.len() * outputs];
        let PreparedModel { body, map } = &*self.packed.0;
        if map.is_none()
            && let Some(result) = body.evaluate_on_backend(self.model, features, rows, &mut values)
        {
            return result.and_then(|()| Dense::new(rows.len(), outputs, values));
        }
        let context = self.context;
        let task = |scratch: &mut Scratch, out: &mut [f64], rows: &[usize]| match map {
            Some(map) => {
                let queries = &Matrix::DenseF32(map.transform(features, run_of(rows))?);
                let rows = &(0..rows.len()).collect::<Vec<_>>()[..];
                body.evaluate(Evaluation { queries, rows, out, scratch, context })
            }
            None => body.evaluate(Evaluation { queries: features, rows, out, scratch, context }),
        };
        let chunk = TASK_ROWS * outputs.max(1);
        let (scratches, tasks) =
            (Scratches::new(), values.chunks_mut(chunk).zip(rows.chunks(TASK_ROWS)));
        self.context.try_for_each(tasks, |(out, rows)| {
            scratches.with(|scratch| task(scratch, out, rows))
        })?;
        Dense::new(rows.len(), outputs, values)
    }

    /// For models of neighbours: distances and training rows of the k nearest of every row.
    ///
    /// # Errors
    /// [`Error::Model`] for other models; otherwise as [`decision_values`](Self::decision_values).
    pub fn nearest(&self, features: &Matrix, k: usize) -> Result<Vec<Vec<(f64, usize)>>> {
        features.validate()?;
        if !self.model.takes_columns(features.columns()) {
            return Err(Error::length("features", self.model.features(), features.columns()));
        }
        if k == 0 || k > self.model.support_count() {
            let expected = format!("at least 1 and at most {}", self.model.support_count());
            return Err(Error::parameter("k", expected, k));
        }
        let scaled = match &self.model.preparation.scaler {
            Some(scaler) => Some(scaler.transform(features.clone())?),
            None => None,
        };
        let features = scaled.as_ref().unwrap_or(features);
        let task = |start: usize| {
            let rows = start..(start + TASK_ROWS).min(features.rows());
            self.packed.0.body.nearest(features, rows, k, self.context)
        };
        let found = self.context.try_map((0..features.rows()).step_by(TASK_ROWS), task)?;
        let found: Option<Vec<Vec<_>>> = found.into_iter().collect();
        found
            .map(|parts| parts.concat())
            .ok_or_else(|| Error::model(format!("{} has no neighbours", self.model.kind)))
    }

    /// The logarithm of the density at every row, for mixtures and windows.
    ///
    /// # Errors
    /// [`Error::Model`] for models without a density; otherwise as
    /// [`decision_values`](Self::decision_values).
    pub fn log_densities(&self, features: &Matrix) -> Result<Vec<f64>> {
        self.log_densities_of(&self.decision_values(features)?)
    }

    /// The logarithms of densities that decision values stand for.
    ///
    /// # Errors
    /// [`Error::Model`] for models without a density.
    pub fn log_densities_of(&self, values: &Dense<f64>) -> Result<Vec<f64>> {
        match self.model.body.get().has_density() {
            true => Ok((0..values.rows()).map(|i| log_sum(values.row(i))).collect()),
            false => Err(Error::model(format!("{} has no density", self.model.kind))),
        }
    }

    /// The prediction for every row: a class label, a number, or 1 (inside) and −1 (outside).
    ///
    /// # Errors
    /// As [`decision_values`](Self::decision_values).
    pub fn predict(&self, features: &Matrix) -> Result<Labels> {
        Ok(self.predictions(&self.decision_values(features)?))
    }

    /// As [`predict`](Self::predict), within the time limit.
    ///
    /// # Errors
    /// As [`decision_values_in_time`](Self::decision_values_in_time).
    pub fn predict_in_time(&self, features: &Matrix) -> Result<Labels> {
        Ok(self.predictions(&self.decision_values_in_time(features)?))
    }

    /// The predictions that decision values stand for.
    pub fn predictions(&self, values: &Dense<f64>) -> Labels {
        let rows = 0..values.rows();
        match (self.model.kind, &self.model.classes) {
            (kind, _) if kind.is_clusterer() => {
                Labels::Int(rows.map(|i| first_largest(values.row(i)) as i64).collect())
            }
            (kind, _) if kind.is_novelty_detector() => {
                Labels::Int(rows.map(|i| if values.row(i)[0] > 0.0 { 1 } else { -1 }).collect())
            }
            (_, Some(_)) => self.labels_of(&self.class_indices(values)),
            _ => Labels::Real(rows.map(|i| values.row(i)[0]).collect()),
        }
    }

    /// The labels of classes given by their places in the model's list; none for a model without
    /// classes.
    ///
    /// # Panics
    /// When a class does not exist.
    pub(crate) fn labels_of(&self, classes: &[usize]) -> Labels {
        match &self.model.classes {
            Some(table) => Labels::from_labels(&table.names).select(classes),
            None => Labels::None,
        }
    }

    /// The place, in the model's list of classes, of the class that each row of decision values
    /// elects; empty for a model without classes.
    pub fn class_indices(&self, values: &Dense<f64>) -> Vec<usize> {
        let Some(table) = &self.model.classes else { return Vec::new() };
        let losses = self.model.body.get().losses();
        if !losses.is_empty() {
            return (0..values.rows()).map(|i| least_loss(values.row(i), losses)).collect();
        }
        let class = |i| elect(&table.scheme, table.names.len(), values.row(i));
        (0..values.rows()).map(class).collect()
    }

    /// A score of every class for every row of decision values, the largest being the best.
    ///
    /// With a function per pair: votes, plus the sum s of the values in favour, squeezed into
    /// (−⅓, ⅓) by s / (3(|s| + 1)) so that it decides ties only (scikit-learn's `ovr` shape).
    /// With one per class: the values. With a code: minus the hinge loss of the class's code.
    pub fn class_scores(&self, values: &Dense<f64>) -> Dense<f64> {
        let classes = self.model.classes.as_ref().map_or(0, |table| table.names.len());
        let mut all = Vec::with_capacity(values.rows() * classes);
        if let Some(table) = &self.model.classes {
            for i in 0..values.rows() {
                all.extend(scores(&table.scheme, classes, values.row(i)));
            }
        }
        Dense::new(values.rows(), classes, all).expect("one score per class and row")
    }
}

/// The place of the largest value, the first of equals.
fn first_largest(values: &[f64]) -> usize {
    (1..values.len()).fold(0, |best, i| if values[i] > values[best] { i } else { best })
}

/// The class whose expected loss is the least, given ln(prior · density) of every class.
fn least_loss(values: &[f64], loss: &[f64]) -> usize {
    let posterior = softmax(values);
    let classes = posterior.len();
    let expected = |j: usize| -> f64 {
        let terms = posterior.iter().enumerate();
        terms.map(|(i, p)| if *p > 0.0 { p * loss[i * classes + j] } else { 0.0 }).sum()
    };
    let negative: Vec<f64> = (0..classes).map(|j| -expected(j)).collect();
    first_largest(&negative)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dataset;
    use crate::data::scaling::Scaler;
    use crate::machine::{Machine, Svr};

    #[test]
    fn a_model_scales_rows_as_its_training_rows_were() {
        let raw = Dense::new(4, 1, vec![10.0, 20.0, 30.0, 50.0]).unwrap();
        let raw = Matrix::DenseF64(raw);
        let scaler = Scaler::fit_range(&raw, 0.0, 1.0).unwrap();
        let scaled = scaler.transform(raw.clone()).unwrap();
        let data = Dataset::new(scaled.clone(), Labels::Real(vec![1.0, 2.0, 3.0, 5.0])).unwrap();
        let context = Context::new();
        let mut model = Svr { c: 100.0, ..Svr::default() }.fit(&data, &context).unwrap();
        let by_hand = model.predictor(&context).unwrap().predict(&scaled).unwrap();
        model.preparation.scaler = Some(scaler);
        let by_itself = model.predictor(&context).unwrap().predict(&raw).unwrap();
        assert_eq!(by_itself, by_hand);
    }
}
