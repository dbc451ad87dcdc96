//! k-nearest neighbours (JHU 685.621, 1.3): the machine and its parameters.
//!
//! Among the k nearest rows the class with the most votes wins. Ties of votes go to the class with
//! the smaller sum of distances, then to the class of the nearest tied neighbour, then to the lower
//! class; rows at the same distance come in the order of the training data.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::super::rows::{
    self, TrainingSummary, check, check_labelled, class_table, column_means, column_scatters,
};
use super::super::{Classic, Neighbours};
use crate::context::Context;
use crate::data::{Classes, Dataset};
use crate::error::{Error, Result};
use crate::machine::names::{defaults, names};
use crate::machine::{Calibration, Model};
use crate::numeric::algebra::{Cholesky, add_products, eigen_interruptible};

/// Weight of a neighbour's vote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Weighting {
    /// 1.
    #[default]
    Uniform,
    /// 1 / distance; rows at distance 0 alone decide where there are any.
    Distance,
}

/// How neighbours are found; the predictions are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NeighbourSearch {
    /// Whichever is expected to be faster.
    #[default]
    Auto,
    /// Blocks of products with all rows, then exact distances of those that can be among the k.
    Brute,
    /// A k-d tree (Bentley, 1975).
    Tree,
    /// A ball tree (Omohundro, 1989).
    BallTree,
}

/// The distance between rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NeighbourMetric {
    /// Euclid's.
    #[default]
    Euclidean,
    /// Mahalanobis's, with the covariance of all rows.
    Mahalanobis,
    /// Mahalanobis's, with the covariance of the rows around the means of their classes.
    MahalanobisWithin,
}

names!(Weighting, "weights", Uniform: "uniform", Distance: "distance");
names!(NeighbourSearch, "search", Auto: "auto", Brute: "brute", Tree: "tree", BallTree: "ball-tree");
names!(NeighbourMetric, "metric", Euclidean: "euclidean", Mahalanobis: "mahalanobis",
       MahalanobisWithin: "mahalanobis-within");

/// How many times the median deviation of the features one may have before a warning.
const DOMINANT_RATIO: f64 = 100.0;

/// Rows whose products are added to a covariance at a time.
const PANEL_ROWS: usize = 256;

/// Classification or regression by the nearest neighbours.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::machine::{KNearest, Machine};
/// use widemargin::Context;
///
/// let rows = Matrix::DenseF64(Dense::new(4, 1, vec![0.0, 1.0, 10.0, 11.0])?);
/// let data = Dataset::new(rows, Labels::Text(["a", "a", "b", "b"].map(Into::into).to_vec()))?;
/// let context = Context::new();
/// let model = KNearest { k: 3, ..KNearest::default() }.fit(&data, &context)?;
/// let query = Matrix::DenseF64(Dense::new(1, 1, vec![4.0])?);
/// assert_eq!(model.predictor(&context)?.predict(&query)?, Labels::Text(vec!["a".into()]));
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct KNearest {
    /// How many rows vote.
    pub k: usize,
    /// Weight of a vote.
    pub weighting: Weighting,
    /// The distance between rows.
    pub metric: NeighbourMetric,
    /// How neighbours are found.
    pub search: NeighbourSearch,
    /// Whether the labels are numbers to be averaged.
    pub regression: bool,
}

defaults!(KNearest {
    k: 5,
    weighting: Weighting::Uniform,
    metric: NeighbourMetric::Euclidean,
    search: NeighbourSearch::Auto,
    regression: false,
});

rows::trained_on_selected!(KNearest);

impl KNearest {
    fn train(&self, data: &Dataset, context: &Context) -> Result<Model> {
        let started = Instant::now();
        let classes = if self.regression {
            check(data)?;
            None
        } else {
            Some(check_labelled(data)?)
        };
        if self.k == 0 || self.k > data.rows() {
            let expected = format!("at least 1 and at most the {} rows", data.rows());
            return Err(Error::parameter("k", expected, self.k));
        }
        let targets = match &classes {
            Some(classes) => classes.codes.iter().map(|&code| f64::from(code)).collect(),
            None => data.labels().values()?,
        };
        let whitening = match self.metric {
            NeighbourMetric::Euclidean => Vec::new(),
            NeighbourMetric::Mahalanobis => {
                let all: Vec<usize> = (0..data.rows()).collect();
                whitening(data, &[all], context)?
            }
            NeighbourMetric::MahalanobisWithin => match &classes {
                Some(classes) => whitening(data, &classes.rows_by_class(), context)?,
                None => {
                    let expected = "euclidean or mahalanobis for numbers";
                    return Err(Error::parameter("metric", expected, self.metric));
                }
            },
        };
        self.warn(data, classes.as_ref().map_or(0, Classes::count), context);
        let kind =
            if self.regression { Classic::NeighboursRegression } else { Classic::Neighbours };
        let mut body = Neighbours {
            // A copy: the rows may be the caller's memory.
            rows: data.features().select_rows(&(0..data.rows()).collect::<Vec<_>>()),
            k: self.k,
            weighting: self.weighting,
            search: self.search,
            targets,
            whitening,
        };
        // Rows whose products overflow are refused here, not when they are first compared.
        if matches!(self.search, NeighbourSearch::Auto | NeighbourSearch::Brute) {
            body.search = body.finder(context)?.search();
        }
        let parameters = [
            ("k", self.k.into()),
            ("weights", self.weighting.to_string().into()),
            ("metric", self.metric.to_string().into()),
        ];
        let effort = TrainingSummary::closed_form(started, &parameters);
        let mut model = rows::model(kind, data, body, effort);
        if let Some(classes) = classes {
            model.classes = Some(class_table(&classes, vec![0; classes.count()]));
            model.calibration = Some(Calibration::Shares);
        }
        Ok(model)
    }
}

impl KNearest {
    /// Tells what may surprise.
    fn warn(&self, data: &Dataset, classes: usize, context: &Context) {
        if classes == 2 && self.k.is_multiple_of(2) && self.weighting == Weighting::Uniform {
            let k = self.k;
            let rule = "the smaller sum of distances decides ties of two classes";
            rows::warn(context, format!("{k} neighbours are an even number: {rule}"));
        }
        if self.metric == NeighbourMetric::Euclidean && !data.features().is_sparse() {
            let scatters = column_scatters(data.features(), &column_means(data.features()));
            if let Some((feature, times)) = dominant_feature(&scatters) {
                let name = match data.feature_names() {
                    Some(names) => format!("'{}'", names[feature]),
                    None => (feature + 1).to_string(),
                };
                rows::warn(
                    context,
                    format!(
                        "feature {name} varies {times:.0} times as much as most and outweighs them \
                         in the distances; scaling the features would weigh all alike"
                    ),
                );
            }
        }
    }
}

/// The feature with the largest deviation, and how many times the median one it is, where that is
/// much; constant features do not count.
fn dominant_feature(scatters: &[f64]) -> Option<(usize, f64)> {
    let mut order: Vec<usize> = (0..scatters.len()).filter(|&j| scatters[j] > 0.0).collect();
    order.sort_by(|&a, &b| scatters[a].total_cmp(&scatters[b]));
    let (&last, &middle) = (order.last()?, order.get(order.len() / 2)?);
    let times = (scatters[last] / scatters[middle]).sqrt();
    (times > DOMINANT_RATIO).then_some((last, times))
}

/// A square matrix W with WᵀW = Σ⁻¹ (Σ⁺ where the covariance Σ is singular), Σ being that of the
/// rows around the means of their groups.
fn whitening(data: &Dataset, groups: &[Vec<usize>], context: &Context) -> Result<Vec<f64>> {
    let columns = data.columns();
    rows::check_square("the covariance", columns)?;
    let mut covariance = vec![0.0; columns * columns];
    for group in groups {
        let own = data.features().select_rows(group);
        let centre = column_means(&own);
        for start in (0..own.rows()).step_by(PANEL_ROWS) {
            let count = PANEL_ROWS.min(own.rows() - start);
            let mut panel = vec![0.0; columns * count];
            let mut row = vec![0.0; columns];
            for i in 0..count {
                own.copy_row(start + i, &mut row);
                for (j, (value, mean)) in row.iter().zip(&centre).enumerate() {
                    panel[j * count + i] = value - mean;
                }
            }
            add_products(&mut covariance, columns, &panel, count, context)?;
        }
    }
    let divisor = data.rows().saturating_sub(groups.len()).max(1) as f64;
    covariance.iter_mut().for_each(|value| *value /= divisor);
    if let Some(factor) = Cholesky::interruptible(covariance.clone(), columns, context)? {
        return factor.inverse_lower(context);
    }
    rows::warn(context, "the covariance is singular: its pseudo-inverse gives the distances");
    let eigen = eigen_interruptible(covariance, columns, context)?;
    let smallest = eigen.values[0].max(0.0) * columns as f64 * 1e-12;
    let scale = |value: f64| if value > smallest { 1.0 / value.sqrt() } else { 0.0 };
    Ok((0..columns)
        .flat_map(|i| eigen.vector(i).iter().map(move |v| (i, v)))
        .map(|(i, v)| scale(eigen.values[i]) * v)
        .collect())
}
