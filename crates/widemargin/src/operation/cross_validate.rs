//! Cross-validation: every row that has a label is predicted by a model that was trained without its fold.

use std::borrow::Cow;
use std::time::Instant;

use super::folds::{FoldPlan, Folds, fit_part, run_folds};
use super::metrics::{Confusion, RegressionErrors, matched_clusters};
use super::ranking::RankingQuality;
use crate::context::Context;
use crate::data::{Dataset, Label, Labels};
use crate::error::{Error, Result};
use crate::machine::{Machine, MachineKind};
use crate::solver::Status;

/// How good held-out predictions are.
#[derive(Clone, Debug, PartialEq)]
pub enum Quality {
    /// Of classes, or of inside (1) and outside (−1) for novelty detectors.
    Classes(Confusion),
    /// Of numbers.
    Numbers(RegressionErrors),
    /// Of orders.
    Orders(RankingQuality),
}

impl Quality {
    /// Compares predictions of a machine with the truth; clusters are given the classes of the
    /// best matching, and orders are compared within `groups`, if there are any.
    ///
    /// # Errors
    /// [`Error::Labels`] or [`Error::Length`] when there is not one fitting true label per prediction.
    pub fn new(
        kind: MachineKind,
        truth: &Labels,
        groups: Option<&[i64]>,
        predictions: &Labels,
    ) -> Result<Self> {
        if kind.is_regressor() {
            RegressionErrors::new(&truth.values()?, &predictions.values()?).map(Self::Numbers)
        } else if kind.is_ranker() {
            RankingQuality::new(groups, &truth.values()?, &predictions.values()?).map(Self::Orders)
        } else if kind.is_clusterer() {
            Confusion::new(truth, &matched_clusters(truth, predictions)?).map(Self::Classes)
        } else {
            Confusion::new(truth, predictions).map(Self::Classes)
        }
    }
}

/// What one fold gave.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FoldResult {
    /// Number of the fold, from 0.
    pub fold: usize,
    /// Rows held out.
    pub rows: usize,
    /// Support vectors of its model.
    pub support: usize,
    /// How its training ended.
    pub status: Status,
    /// Seconds of training and prediction.
    pub seconds: f64,
    /// How good its predictions are; `None` when the data has no labels.
    pub quality: Option<Quality>,
}

/// Held-out predictions and their quality.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CrossValidation {
    /// Which machine it was.
    pub kind: MachineKind,
    /// The folds.
    pub plan: FoldPlan,
    /// Rows (from 0, ascending) of the folds that were finished: all with a label unless interrupted.
    pub rows: Vec<usize>,
    /// The held-out prediction of each of these rows.
    pub predictions: Labels,
    /// The finished folds.
    pub folds: Vec<FoldResult>,
    /// How good all predictions together are; `None` when the data has no labels.
    pub quality: Option<Quality>,
    /// The worst status of the folds, or why folds are missing.
    pub status: Status,
}

/// Trains the machine once per fold without it and lets the model predict it.
///
/// Folds run in parallel on the context's threads and share its cache; its seed decides the folds.
/// After an interruption or at a deadline the finished folds are kept.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::kernel::Kernel;
/// use widemargin::machine::Svc;
/// use widemargin::operation::cross_validate::{Quality, cross_validate};
/// use widemargin::operation::folds::Folds;
/// use widemargin::Context;
///
/// let rows = Dense::new(6, 1, vec![-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])?;
/// let data = Dataset::new(Matrix::DenseF64(rows), Labels::Int(vec![0, 0, 0, 1, 1, 1]))?;
/// let svc = Svc { kernel: Kernel::Linear, ..Svc::default() };
/// let result = cross_validate(&svc, &data, &Folds::Stratified(3), &Context::new())?;
/// assert!(matches!(result.quality, Some(Quality::Classes(c)) if c.accuracy() == 1.0));
/// # Ok::<(), widemargin::Error>(())
/// ```
///
/// # Errors
/// What [`Folds::assign`] and the machine refuse; [`Error::Interrupted`] when no fold was finished.
pub fn cross_validate(
    machine: &dyn Machine,
    data: &Dataset,
    folds: &Folds,
    context: &Context,
) -> Result<CrossValidation> {
    data.features().validate()?;
    let plan = folds.assign_labelled(data, machine.unlabelled(), context.seed())?;
    let truth = match machine.unlabelled() {
        Some(mark) => data.labels().without_mark(mark),
        None => Cow::Borrowed(data.labels()),
    };
    let run = run_folds(plan.count(), "folds", context, |fold, context| {
        validate_fold(machine, data, &truth, &plan, fold, context)
    })?;
    let finished: Vec<FoldPredictions> = run.results.into_iter().flatten().collect();
    let kind = finished.first().ok_or(Error::Interrupted)?.kind;
    let worst = finished.iter().map(|fold| fold.result.status).max().unwrap_or(Status::Solved);
    let mut predicted: Vec<(usize, Label)> = Vec::with_capacity(data.rows());
    let mut results = Vec::with_capacity(finished.len());
    for fold in finished {
        let labels = (0..fold.rows.len()).filter_map(|i| fold.predictions.get(i));
        predicted.extend(fold.rows.iter().copied().zip(labels));
        results.push(fold.result);
    }
    predicted.sort_by_key(|(row, _)| *row);
    let (rows, labels): (Vec<usize>, Vec<Label>) = predicted.into_iter().unzip();
    let predictions = Labels::from_labels(&labels);
    Ok(CrossValidation {
        kind,
        quality: quality(kind, data, &truth, &rows, &predictions)?,
        plan,
        rows,
        predictions,
        folds: results,
        status: run.stopped.unwrap_or(worst),
    })
}

struct FoldPredictions {
    kind: MachineKind,
    rows: Vec<usize>,
    predictions: Labels,
    result: FoldResult,
}

fn validate_fold(
    machine: &dyn Machine,
    data: &Dataset,
    truth: &Labels,
    plan: &FoldPlan,
    fold: usize,
    context: &Context,
) -> Result<Option<FoldPredictions>> {
    let started = Instant::now();
    let (train, held) = plan.split(fold);
    let Some(model) = fit_part(machine, data, &train, context)? else { return Ok(None) };
    let predictor = model.predictor(context)?;
    let predictions = predictor.predictions(&predictor.decision_values_of(data.features(), &held)?);
    let status = model.training.as_ref().map_or(Status::Solved, |t| t.outcome.status);
    let result = FoldResult {
        fold,
        rows: held.len(),
        support: model.support_count(),
        status,
        seconds: started.elapsed().as_secs_f64(),
        quality: quality(model.kind, data, truth, &held, &predictions)?,
    };
    Ok(Some(FoldPredictions { kind: model.kind, rows: held, predictions, result }))
}

fn quality(
    kind: MachineKind,
    data: &Dataset,
    truth: &Labels,
    rows: &[usize],
    predictions: &Labels,
) -> Result<Option<Quality>> {
    match truth {
        Labels::None => Ok(None),
        _ if !kind.has_true_labels() => Ok(None),
        labels => {
            let groups: Option<Vec<i64>> =
                data.groups().map(|groups| rows.iter().map(|&row| groups[row]).collect());
            Quality::new(kind, &labels.select(rows), groups.as_deref(), predictions).map(Some)
        }
    }
}
