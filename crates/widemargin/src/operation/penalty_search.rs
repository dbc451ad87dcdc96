//! The best C (and ε) of a linear machine by cross-validation along its regularisation path.
//!
//! As LIBLINEAR's `-C` (Chu, Ho, Tsai, Lin and Lin, 2015): C doubles from a value so small that the
//! weights are nearly 0 up to 1024, and every problem starts from the solution of the one before.

use super::folds::{Folds, run_folds};
use super::metrics::{Confusion, RegressionErrors};
use crate::context::Context;
use crate::data::{Dataset, Label, Labels};
use crate::error::{Error, Result};
use crate::machine::{LinearLoss, LinearSvc, LinearSvr, MachineKind, PathStep};

/// The largest C tried.
const LARGEST_C: f64 = 1024.0;

/// Widths of the tube that are tried, between 0 and the largest target.
const TUBES: usize = 20;

/// What is to be searched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PenaltySearch {
    /// Number of folds.
    pub folds: usize,
    /// The first C; `None` finds one that is small for the data.
    pub first_c: Option<f64>,
    /// The last C is the largest power-of-two multiple of the first up to this.
    pub last_c: f64,
    /// The only ε to try, for regression.
    pub epsilon: Option<f64>,
}

impl Default for PenaltySearch {
    fn default() -> Self {
        Self { folds: 5, first_c: None, last_c: LARGEST_C, epsilon: None }
    }
}

/// The score of one choice of parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PenaltyScore {
    /// C
    pub c: f64,
    /// ε, for regression.
    pub epsilon: Option<f64>,
    /// Share of right predictions, or mean squared error.
    pub score: f64,
}

/// The best parameters, and all that were tried.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FoundPenalty {
    /// The best C.
    pub c: f64,
    /// The best ε, for regression.
    pub epsilon: Option<f64>,
    /// How good they are.
    pub score: f64,
    /// Everything tried, in order.
    pub tried: Vec<PenaltyScore>,
}

/// Finds the C of a classifier with the most right predictions, the smallest of equals.
///
/// # Errors
/// What [`Folds::assign`] and the machine refuse.
pub fn search_classifier(
    machine: &LinearSvc,
    search: &PenaltySearch,
    data: &Dataset,
    context: &Context,
) -> Result<FoundPenalty> {
    let factor = if machine.loss == LinearLoss::Logistic { 1.0 } else { 2.0 };
    let rows = data.rows() as f64;
    let first = search.first_c.unwrap_or_else(|| power(1.0 / (factor * rows * largest_row(data))));
    let path = doubling(first, search.last_c);
    let folds = Folds::usual(MachineKind::LinearSvc, search.folds);
    let tried = validate(&folds, data, context, path.len(), |part, context| {
        machine.path(part, &path, context)
    })?;
    let tried: Vec<PenaltyScore> = (path.iter().zip(tried))
        .map(|(&c, (truth, predictions))| {
            let score = Confusion::new(&truth, &predictions)?.accuracy();
            Ok(PenaltyScore { c, epsilon: None, score })
        })
        .collect::<Result<_>>()?;
    best(tried, |new, old| new > old)
}

/// Finds the C and ε of a regressor with the least mean squared error, the first of equals.
///
/// # Errors
/// What [`Folds::assign`] and the machine refuse.
pub fn search_regressor(
    machine: &LinearSvr,
    search: &PenaltySearch,
    data: &Dataset,
    context: &Context,
) -> Result<FoundPenalty> {
    let targets = data.labels().values()?;
    let largest = targets.iter().fold(0.0_f64, |m, t| m.max(t.abs()));
    let first = search.first_c.unwrap_or_else(|| {
        let total: f64 = targets.iter().map(|t| t.abs()).sum();
        power(1.0 / (8.0 * total.max(f64::MIN_POSITIVE) * largest_row(data)).min(1e300))
    });
    let tubes: Vec<f64> = match search.epsilon {
        Some(epsilon) => vec![epsilon],
        None => (0..TUBES).rev().map(|i| i as f64 * largest / TUBES as f64).collect(),
    };
    let costs = doubling(first, search.last_c);
    let path: Vec<(f64, f64)> =
        tubes.iter().flat_map(|&tube| costs.iter().map(move |&c| (c, tube))).collect();
    let folds = Folds::usual(MachineKind::LinearSvr, search.folds);
    let tried = validate(&folds, data, context, path.len(), |part, context| {
        machine.path(part, &path, context)
    })?;
    let tried: Vec<PenaltyScore> = (path.iter().zip(tried))
        .map(|(&(c, epsilon), (truth, predictions))| {
            let errors = RegressionErrors::new(&truth.values()?, &predictions.values()?)?;
            Ok(PenaltyScore { c, epsilon: Some(epsilon), score: errors.mean_squared_error })
        })
        .collect::<Result<_>>()?;
    best(tried, |new, old| new < old)
}

fn best(tried: Vec<PenaltyScore>, better: impl Fn(f64, f64) -> bool) -> Result<FoundPenalty> {
    let first = *tried.first().ok_or(Error::Empty { what: "C to try" })?;
    let pick = |old: PenaltyScore, new: &PenaltyScore| {
        if better(new.score, old.score) { *new } else { old }
    };
    let found = tried.iter().fold(first, pick);
    Ok(FoundPenalty { c: found.c, epsilon: found.epsilon, score: found.score, tried })
}

/// Truth and held-out predictions of all rows for every step of the path.
fn validate(
    folds: &Folds,
    data: &Dataset,
    context: &Context,
    steps: usize,
    fit: impl Fn(&Dataset, &Context) -> Result<Vec<PathStep>> + Sync,
) -> Result<Vec<(Labels, Labels)>> {
    let plan = folds.assign(data, context.seed())?;
    let run = run_folds(plan.count(), "folds", context, |fold, context| {
        let (train, held) = plan.split(fold);
        let models = fit(&data.select_rows(&train), context)?;
        let queries = data.features().select_rows(&held);
        let predictions: Result<Vec<Labels>> = models
            .iter()
            .map(|step| step.model.predictor(context)?.predict_in_time(&queries))
            .collect();
        Ok(Some((data.labels().select(&held), predictions?)))
    })?;
    let finished: Vec<(Labels, Vec<Labels>)> = run.results.into_iter().flatten().collect();
    if finished.len() < plan.count() {
        return Err(Error::Interrupted);
    }
    let list = |labels: &Labels| -> Vec<Label> {
        (0..labels.len()).filter_map(|i| labels.get(i)).collect()
    };
    Ok((0..steps)
        .map(|step| {
            let truth: Vec<Label> = finished.iter().flat_map(|(truth, _)| list(truth)).collect();
            let predictions: Vec<Label> =
                finished.iter().flat_map(|(_, predictions)| list(&predictions[step])).collect();
            (Labels::from_labels(&truth), Labels::from_labels(&predictions))
        })
        .collect())
}

/// `first`, twice that, ... up to `last`.
fn doubling(first: f64, last: f64) -> Vec<f64> {
    let mut list = vec![first];
    while let Some(next) = list.last().map(|c| 2.0 * c).filter(|c| *c <= last) {
        list.push(next);
    }
    list
}

/// The largest power of two that is not above `value`.
fn power(value: f64) -> f64 {
    value.clamp(f64::MIN_POSITIVE, LARGEST_C).log2().floor().exp2()
}

/// max ‖xᵢ‖²
fn largest_row(data: &Dataset) -> f64 {
    let square = |i: usize| {
        let mut sum = 0.0;
        data.features().for_each_nonzero(i, |_, v| sum += v * v);
        sum
    };
    (0..data.rows()).map(square).fold(f64::MIN_POSITIVE, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Matrix};
    use crate::machine::Machine;
    use crate::operation::cross_validate::{Quality, cross_validate};

    fn noisy_sides() -> Dataset {
        let value = |i: usize| (i * 7919 % 1013) as f64 / 1013.0 - 0.5;
        let rows: Vec<f64> = (0..240).map(value).collect();
        let side = |i: usize| i64::from(rows[2 * i] + 0.4 * value(7 * i + 3) > 0.0);
        let labels = Labels::Int((0..120).map(side).collect());
        let table = Dense::new(120, 2, rows.clone()).unwrap();
        Dataset::new(Matrix::DenseF64(table), labels).unwrap()
    }

    #[test]
    fn scores_are_those_of_separate_cross_validations() {
        let (data, context) = (noisy_sides(), Context::new());
        let tol = Some(1e-8);
        let mut machine = LinearSvc::default();
        machine.options.tol = tol;
        let search = PenaltySearch { first_c: Some(0.25), last_c: 4.0, ..Default::default() };
        let found = search_classifier(&machine, &search, &data, &context).unwrap();
        assert_eq!(found.tried.len(), 5);
        for tried in &found.tried {
            let machine = LinearSvc { c: tried.c, ..machine.clone() };
            let machine: &dyn Machine = &machine;
            let result = cross_validate(machine, &data, &Folds::Stratified(5), &context).unwrap();
            let Some(Quality::Classes(confusion)) = result.quality else { panic!("classes") };
            assert_eq!(confusion.accuracy(), tried.score, "C = {}", tried.c);
            assert!(tried.score <= found.score);
        }
    }
}
