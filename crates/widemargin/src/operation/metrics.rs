//! How good predictions are: confusion matrices, errors of regression, and ROC curves.
//!
//! Accuracy is the share of predictions equal to the truth; the mean squared error is Σ(f − y)² / n;
//! the squared correlation coefficient is cov(f, y)² / (var f · var y), as LIBSVM prints it; the
//! area under the ROC curve is P(score of a positive > score of a negative), ties counting half
//! (Hanley and McNeil, 1982).

use std::collections::HashMap;

use serde::Serialize;

use crate::data::{ClassOrder, Label, Labels};
use crate::error::{Error, Result};
use crate::solver::assignment::least_cost;

/// How often each class was predicted as each class.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Confusion {
    /// The classes of truth and predictions, sorted.
    pub classes: Vec<Label>,
    /// `counts[i][j]`: rows of class i predicted as class j.
    pub counts: Vec<Vec<usize>>,
}

impl Confusion {
    /// Compares predictions with the truth; labels are the same if they are written the same.
    ///
    /// # Errors
    /// [`Error::Labels`] or [`Error::Length`] when there is not one true label per prediction.
    pub fn new(truth: &Labels, predictions: &Labels) -> Result<Self> {
        if truth.len() != predictions.len() {
            return Err(Error::length("true labels", predictions.len(), truth.len()));
        }
        let both = |i: usize| truth.get(i).into_iter().chain(predictions.get(i));
        let all: Vec<Label> = (0..truth.len()).flat_map(both).map(canonical).collect();
        let classes = Labels::from_labels(&all).classes(ClassOrder::Sorted)?;
        let mut counts = vec![vec![0; classes.count()]; classes.count()];
        for pair in classes.codes.chunks_exact(2) {
            counts[pair[0] as usize][pair[1] as usize] += 1;
        }
        Ok(Self { classes: classes.names, counts })
    }

    /// Number of rows.
    pub fn total(&self) -> usize {
        self.counts.iter().flatten().sum()
    }

    /// Number of correct predictions.
    pub fn correct(&self) -> usize {
        (0..self.counts.len()).map(|i| self.counts[i][i]).sum()
    }

    /// Share of correct predictions.
    pub fn accuracy(&self) -> f64 {
        self.correct() as f64 / self.total().max(1) as f64
    }

    /// Share of class `i` that was found; `None` if there are no rows of it.
    pub fn recall(&self, i: usize) -> Option<f64> {
        let rows: usize = self.counts[i].iter().sum();
        (rows > 0).then(|| self.counts[i][i] as f64 / rows as f64)
    }

    /// Share of predictions `j` that are right; `None` if it was never given.
    pub fn precision(&self, j: usize) -> Option<f64> {
        let predictions: usize = self.counts.iter().map(|row| row[j]).sum();
        (predictions > 0).then(|| self.counts[j][j] as f64 / predictions as f64)
    }

    /// Mean recall over the classes that occur.
    pub fn balanced_accuracy(&self) -> f64 {
        let recalls: Vec<f64> = (0..self.classes.len()).filter_map(|i| self.recall(i)).collect();
        recalls.iter().sum::<f64>() / recalls.len().max(1) as f64
    }
}

/// Whole numbers written as such, so that 1 and 1.0 are one class.
fn canonical(label: Label) -> Label {
    match label {
        Label::Real(value) if value.fract() == 0.0 && value.abs() < 2f64.powi(53) => {
            Label::Int(value as i64)
        }
        other => other,
    }
}

/// How far numbers are from the truth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RegressionErrors {
    /// Σ(f − y)² / n.
    pub mean_squared_error: f64,
    /// Σ|f − y| / n.
    pub mean_absolute_error: f64,
    /// 1 − Σ(f − y)² / Σ(y − ȳ)²; NaN for a constant truth.
    pub determination: f64,
    /// cov(f, y)² / (var f · var y); NaN when either is constant.
    pub squared_correlation: f64,
}

impl RegressionErrors {
    /// Compares numbers with the truth.
    ///
    /// # Errors
    /// [`Error::Length`] when there is not one of each, [`Error::Empty`] when there are none.
    pub fn new(truth: &[f64], predictions: &[f64]) -> Result<Self> {
        if truth.len() != predictions.len() {
            return Err(Error::length("true values", predictions.len(), truth.len()));
        }
        if truth.is_empty() {
            return Err(Error::Empty { what: "row" });
        }
        let n = truth.len() as f64;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / n;
        let (truth_mean, prediction_mean) = (mean(truth), mean(predictions));
        let (mut squares, mut absolutes) = (0.0, 0.0);
        let (mut truth_spread, mut prediction_spread, mut product) = (0.0, 0.0, 0.0);
        for (y, f) in truth.iter().zip(predictions) {
            squares += (f - y).powi(2);
            absolutes += (f - y).abs();
            truth_spread += (y - truth_mean).powi(2);
            prediction_spread += (f - prediction_mean).powi(2);
            product += (y - truth_mean) * (f - prediction_mean);
        }
        Ok(Self {
            mean_squared_error: squares / n,
            mean_absolute_error: absolutes / n,
            determination: 1.0 - squares / truth_spread,
            squared_correlation: product * product / (truth_spread * prediction_spread),
        })
    }
}

/// True against false positive rate over all thresholds of a score.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RocCurve {
    /// (false positive rate, true positive rate) from (0, 0) to (1, 1).
    pub points: Vec<(f64, f64)>,
    /// Area under the curve.
    pub area: f64,
}

impl RocCurve {
    /// The curve of `scores`, high scores meaning positive.
    ///
    /// # Errors
    /// [`Error::Length`] when there is not one truth per score, [`Error::Labels`] when positives or
    /// negatives are missing or a score is NaN.
    pub fn new(scores: &[f64], positive: &[bool]) -> Result<Self> {
        if scores.len() != positive.len() {
            return Err(Error::length("true labels", scores.len(), positive.len()));
        }
        let positives = positive.iter().filter(|p| **p).count();
        let negatives = positive.len() - positives;
        let fail = |expected: &str, found: &str| {
            Err(Error::Labels { expected: expected.into(), found: found.into() })
        };
        if positives == 0 || negatives == 0 {
            return fail("rows of the class and rows of others", "only one of the two");
        }
        if scores.iter().any(|score| score.is_nan()) {
            return fail("a score for every row", "NaN");
        }
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let (mut hits, mut alarms, mut area) = (0_usize, 0_usize, 0.0);
        let mut points = vec![(0.0, 0.0)];
        for tied in order.chunk_by(|&a, &b| scores[a] == scores[b]) {
            let new_hits = tied.iter().filter(|&&i| positive[i]).count();
            let new_alarms = tied.len() - new_hits;
            area += new_alarms as f64 * (hits as f64 + 0.5 * new_hits as f64);
            hits += new_hits;
            alarms += new_alarms;
            points.push((alarms as f64 / negatives as f64, hits as f64 / positives as f64));
        }
        Ok(Self { points, area: area / (positives as f64 * negatives as f64) })
    }

    /// The curve of one class against all others.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_class(scores: &[f64], truth: &Labels, class: &Label) -> Result<Self> {
        let name = canonical(class.clone()).to_string();
        let mut known: HashMap<String, bool> = HashMap::new();
        let positive: Vec<bool> = (0..truth.len())
            .filter_map(|i| truth.get(i))
            .map(|label| {
                let written = canonical(label).to_string();
                *known.entry(written).or_insert_with_key(|written| *written == name)
            })
            .collect();
        Self::new(scores, &positive)
    }
}

/// The clusters with the names of classes, one each, so that the fewest rows disagree; clusters that
/// are left over keep a name of their own, which is no class.
///
/// The share of rows that disagree then is the error of the clusters by optimal matching.
///
/// # Errors
/// [`Error::Labels`] or [`Error::Length`] when there is not one true label per prediction.
pub(crate) fn matched_clusters(truth: &Labels, clusters: &Labels) -> Result<Labels> {
    if truth.len() != clusters.len() {
        return Err(Error::length("true labels", clusters.len(), truth.len()));
    }
    let classes = truth.classes(ClassOrder::Sorted)?;
    let groups = clusters.classes(ClassOrder::Sorted)?;
    let size = classes.count().max(groups.count());
    let mut costs = vec![0.0; size * size];
    for (class, group) in classes.codes.iter().zip(&groups.codes) {
        costs[*group as usize * size + *class as usize] -= 1.0;
    }
    let class_of = least_cost(&costs, size, size);
    let name = |group: &u32| match classes.names.get(class_of[*group as usize]) {
        Some(name) => name.clone(),
        None => Label::Text(format!("cluster {}", groups.names[*group as usize])),
    };
    Ok(Labels::from_labels(&groups.codes.iter().map(name).collect::<Vec<_>>()))
}

/// Share of rows that the best matching of clusters with classes gets wrong.
///
/// # Errors
/// [`Error::Labels`] or [`Error::Length`] when there is not one true label per prediction.
pub fn cluster_error(truth: &Labels, clusters: &Labels) -> Result<f64> {
    let matched = matched_clusters(truth, clusters)?;
    Ok(1.0 - Confusion::new(truth, &matched)?.accuracy())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn confusion_counts_pairs_of_labels() {
        let truth = Labels::Int(vec![1, 1, 2, 2, 2]);
        let predictions = Labels::Real(vec![1.0, 2.0, 2.0, 2.0, 3.0]);
        let confusion = Confusion::new(&truth, &predictions).unwrap();
        assert_eq!(confusion.classes, [Label::Int(1), Label::Int(2), Label::Int(3)]);
        assert_eq!(confusion.counts, [vec![1, 1, 0], vec![0, 2, 1], vec![0, 0, 0]]);
        assert_eq!((confusion.correct(), confusion.total()), (3, 5));
        assert!((confusion.accuracy() - 0.6).abs() < 1e-15);
        assert_eq!(confusion.recall(2), None);
        assert_eq!(confusion.precision(2), Some(0.0));
        assert!((confusion.balanced_accuracy() - (0.5 + 2.0 / 3.0) / 2.0).abs() < 1e-15);
        assert!(Confusion::new(&Labels::None, &predictions).is_err());
    }

    #[test]
    fn clusters_are_matched_with_the_fewest_errors() {
        let truth = Labels::Text(["a", "a", "a", "b", "b", "c"].map(Into::into).to_vec());
        let renamed = Labels::Int(vec![5, 5, 5, 0, 0, 1]);
        assert_eq!(cluster_error(&truth, &renamed).unwrap(), 0.0);
        let merged = Labels::Int(vec![0, 0, 0, 1, 1, 1]);
        assert!((cluster_error(&truth, &merged).unwrap() - 1.0 / 6.0).abs() < 1e-15);
        // More clusters than classes: what is left over is wrong.
        let split = Labels::Int(vec![0, 0, 3, 1, 1, 2]);
        assert!((cluster_error(&truth, &split).unwrap() - 1.0 / 6.0).abs() < 1e-15);
        assert!(cluster_error(&truth, &Labels::Int(vec![0])).is_err());
    }

    #[test]
    fn errors_of_a_known_regression() {
        let errors = RegressionErrors::new(&[1.0, 2.0, 4.0], &[1.0, 3.0, 2.0]).unwrap();
        assert!((errors.mean_squared_error - 5.0 / 3.0).abs() < 1e-15);
        assert!((errors.mean_absolute_error - 1.0).abs() < 1e-15);
        let (spread_y, spread_f, product) = (14.0 / 3.0, 2.0, 1.0);
        assert!((errors.determination - (1.0 - 5.0 / spread_y)).abs() < 1e-14);
        let expected = product * product / (spread_y * spread_f);
        assert!((errors.squared_correlation - expected).abs() < 1e-14);
        assert!(RegressionErrors::new(&[], &[]).is_err());
    }

    #[test]
    fn a_curve_needs_both_kinds() {
        assert!(RocCurve::new(&[1.0, 2.0], &[true, true]).is_err());
        assert!(RocCurve::new(&[f64::NAN, 2.0], &[true, false]).is_err());
        let curve = RocCurve::new(&[3.0, 1.0], &[true, false]).unwrap();
        assert_eq!(curve.points, [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)]);
    }

    proptest! {
        #[test]
        fn the_area_is_the_share_of_ordered_pairs(
            rows in prop::collection::vec((0_i8..6, any::<bool>()), 2..40),
        ) {
            let scores: Vec<f64> = rows.iter().map(|(score, _)| f64::from(*score)).collect();
            let positive: Vec<bool> = rows.iter().map(|(_, positive)| *positive).collect();
            let Ok(curve) = RocCurve::new(&scores, &positive) else {
                prop_assert!(positive.iter().all(|p| *p == positive[0]));
                return Ok(());
            };
            let (mut wins, mut pairs) = (0.0, 0.0);
            for i in (0..rows.len()).filter(|&i| positive[i]) {
                for j in (0..rows.len()).filter(|&j| !positive[j]) {
                    pairs += 1.0;
                    wins += if scores[i] > scores[j] { 1.0 } else { 0.0 };
                    wins += if scores[i] == scores[j] { 0.5 } else { 0.0 };
                }
            }
            prop_assert!((curve.area - wins / pairs).abs() < 1e-12);
            let trapezoids: f64 = curve
                .points
                .windows(2)
                .map(|p| (p[1].0 - p[0].0) * 0.5 * (p[0].1 + p[1].1))
                .sum();
            prop_assert!((curve.area - trapezoids).abs() < 1e-12);
        }
    }
}
