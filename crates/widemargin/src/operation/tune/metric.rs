//! How good predictions for held-out rows are, as one number of which more is better.

use super::{Evaluation, Response};
use crate::data::Labels;
use crate::error::{Error, Result};
use crate::machine::MachineKind;
use crate::machine::names::names;
use crate::operation::metrics::{Confusion, RegressionErrors, RocCurve};
use crate::operation::ranking::RankingQuality;

/// Probabilities in a logarithm stay this far from 0.
const SMALLEST: f64 = 1e-15;

/// What a search maximises; errors count negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Metric {
    /// Share of correct predictions.
    Accuracy,
    /// Mean share of each class that was found.
    BalancedAccuracy,
    /// Mean over classes of the harmonic mean of precision and recall.
    F1,
    /// Area under the curve of the scores of a class against all others, mean over classes.
    Auc,
    /// Minus the mean logarithmic loss of calibrated probabilities.
    LogLoss,
    /// Minus the mean squared error.
    SquaredError,
    /// Minus the mean absolute error.
    AbsoluteError,
    /// Share of the variance explained.
    Determination,
    /// Mean over queries of the normalised discounted cumulative gain.
    Ndcg,
    /// Mean over queries of the average precision.
    AveragePrecision,
    /// Mean over queries of Kendall's τ-b.
    KendallTau,
}

names!(Metric, "metric", Accuracy: "accuracy", BalancedAccuracy: "balanced-accuracy", F1: "f1",
       Auc: "auc", LogLoss: "log-loss", SquaredError: "mse", AbsoluteError: "mae", Determination: "r2",
       Ndcg: "ndcg", AveragePrecision: "map", KendallTau: "tau");

impl Metric {
    /// What is usual for a machine.
    pub fn usual(kind: MachineKind) -> Self {
        match kind {
            _ if kind.is_regressor() => Self::SquaredError,
            _ if kind.is_ranker() => Self::KendallTau,
            _ => Self::Accuracy,
        }
    }

    /// What has to be computed for held-out rows.
    pub fn response(self) -> Response {
        match self {
            Self::LogLoss => Response::Probabilities,
            Self::Auc => Response::Values,
            _ => Response::Labels,
        }
    }

    /// The score of an evaluation that has the [`response`](Self::response) of the metric; `groups` are
    /// the queries of the rows.
    ///
    /// # Errors
    /// [`Error::Labels`] when the truth does not suit the metric: numbers for classes, one class
    /// only where two are compared.
    pub fn score(
        self,
        evaluation: &Evaluation<'_>,
        truth: &Labels,
        groups: Option<&[i64]>,
    ) -> Result<f64> {
        let confusion = || Confusion::new(truth, &evaluation.predictions.labels);
        match self {
            Self::Accuracy => Ok(confusion()?.accuracy()),
            Self::BalancedAccuracy => Ok(confusion()?.balanced_accuracy()),
            Self::F1 => Ok(mean_f1(&confusion()?)),
            Self::Auc => area(evaluation, truth),
            Self::LogLoss => log_loss(evaluation, truth),
            Self::SquaredError | Self::AbsoluteError | Self::Determination => {
                let errors = RegressionErrors::new(
                    &truth.values()?,
                    &evaluation.predictions.labels.values()?,
                )?;
                Ok(match self {
                    Self::SquaredError => -errors.mean_squared_error,
                    Self::AbsoluteError => -errors.mean_absolute_error,
                    _ => errors.determination,
                })
            }
            Self::Ndcg | Self::AveragePrecision | Self::KendallTau => {
                let scores = evaluation.predictions.labels.values()?;
                self.of_order(&RankingQuality::new(groups, &truth.values()?, &scores)?)
            }
        }
    }
}

impl Metric {
    fn of_order(self, orders: &RankingQuality) -> Result<f64> {
        let (found, expected) = match self {
            Self::Ndcg => (orders.ndcg, "labels from 0 to 53 for ndcg"),
            Self::AveragePrecision => {
                (orders.mean_average_precision, "labels of at least 0 for map")
            }
            _ => (Some(orders.kendall_tau), ""),
        };
        found.ok_or_else(|| Error::Labels {
            expected: expected.into(),
            found: "other numbers, or none above 0".into(),
        })
    }
}

/// F1 of every class that occurs, 0 where nothing was found.
fn mean_f1(confusion: &Confusion) -> f64 {
    let scores: Vec<f64> = (0..confusion.classes.len())
        .filter_map(|class| {
            let (recall, precision) = (confusion.recall(class), confusion.precision(class));
            match (recall, precision) {
                (None, None) => None,
                (Some(r), Some(p)) if r + p > 0.0 => Some(2.0 * r * p / (r + p)),
                _ => Some(0.0),
            }
        })
        .collect();
    scores.iter().sum::<f64>() / scores.len().max(1) as f64
}

fn area(evaluation: &Evaluation<'_>, truth: &Labels) -> Result<f64> {
    let (Some(table), Some(values)) =
        (&evaluation.predictor.model().classes, &evaluation.predictions.values)
    else {
        return Err(Error::parameter("metric", "one for numbers: mse, mae or r2", "auc"));
    };
    let scores = evaluation.predictor.class_scores(values);
    let of_class = |class: usize| {
        let column: Vec<f64> = (0..scores.rows()).map(|i| scores.row(i)[class]).collect();
        RocCurve::of_class(&column, truth, &table.names[class]).map(|curve| curve.area)
    };
    if table.names.len() == 2 {
        return of_class(1);
    }
    let areas = (0..table.names.len()).map(of_class).collect::<Result<Vec<f64>>>()?;
    Ok(areas.iter().sum::<f64>() / areas.len() as f64)
}

fn log_loss(evaluation: &Evaluation<'_>, truth: &Labels) -> Result<f64> {
    let table = &evaluation.predictor.model().classes;
    let (Some(table), Some(probabilities)) = (table, &evaluation.predictions.probabilities) else {
        return Err(Error::parameter("metric", "one that needs no probabilities", "log-loss"));
    };
    let names: Vec<String> = table.names.iter().map(ToString::to_string).collect();
    let mut sum = 0.0;
    for i in 0..probabilities.rows() {
        let label = truth.get(i).map_or_else(String::new, |label| label.to_string());
        let known = names.iter().position(|name| *name == label);
        let probability = known.map_or(0.0, |class| probabilities.row(i)[class]);
        sum += probability.max(SMALLEST).ln();
    }
    Ok(sum / probabilities.rows().max(1) as f64)
}
