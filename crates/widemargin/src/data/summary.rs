//! What is in a data set: shape, labels, and the range of every feature.

use serde::Serialize;

use super::{ClassOrder, Dataset, Label, Labels, memory};
use crate::error::Result;

/// Distinct labels beyond which numbers are taken for regression targets.
const MOST_CLASSES: usize = 1000;

/// A short description of a data set.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Number of rows.
    pub rows: usize,
    /// Values that are not zero.
    pub nonzeros: usize,
    /// Share of values that are not zero.
    pub density: f64,
    /// Whether the storage is sparse.
    pub sparse: bool,
    /// What the labels are.
    pub labels: LabelSummary,
    /// Number of distinct groups (`qid`), if the rows have them.
    pub groups: Option<usize>,
    /// One entry per feature.
    pub features: Vec<FeatureSummary>,
}

/// What the labels of a data set are.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum LabelSummary {
    /// There are none.
    None,
    /// Classes, in sorted order, with the number of rows of each.
    Classes {
        /// Label and number of rows.
        counts: Vec<(Label, usize)>,
    },
    /// Numbers that are no classes.
    Targets {
        /// Smallest.
        minimum: f64,
        /// Largest.
        maximum: f64,
        /// Mean.
        mean: f64,
    },
}

/// Range and moments of one feature, zeros included.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FeatureSummary {
    /// Its name, if known.
    pub name: Option<String>,
    /// Smallest value.
    pub minimum: f64,
    /// Largest value.
    pub maximum: f64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation √(Σ(x − mean)² / rows).
    pub deviation: f64,
    /// Values that are not zero.
    pub nonzeros: usize,
}

impl Dataset {
    /// Describes the data set.
    ///
    /// ```
    /// use widemargin::data::read::{ReadOptions, read_bytes};
    /// let data = read_bytes(b"+1 1:0.5 3:2\n-1 3:4\n", &ReadOptions::new())?.dataset;
    /// let summary = data.summary()?;
    /// assert_eq!(summary.nonzeros, 3);
    /// assert_eq!(summary.features[2].mean, 3.0);
    /// # Ok::<(), widemargin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TooLarge`](crate::Error::TooLarge) when there is no memory for an entry per feature.
    pub fn summary(&self) -> Result<Summary> {
        let bytes = size_of::<FeatureSummary>() as u128 * self.columns() as u128;
        memory::check(|| format!("the summary of {} features", self.columns()), bytes)?;
        let features = features(self);
        let nonzeros = features.iter().map(|f| f.nonzeros).sum();
        let groups = self.groups().map(|groups| {
            let mut sorted = groups.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            sorted.len()
        });
        Ok(Summary {
            rows: self.rows(),
            nonzeros,
            density: nonzeros as f64 / ((self.rows() * self.columns()) as f64).max(1.0),
            sparse: self.features().is_sparse(),
            labels: labels(self.labels()),
            groups,
            features,
        })
    }
}

fn features(data: &Dataset) -> Vec<FeatureSummary> {
    let table = data.features();
    let name = |j: usize| data.feature_names().map(|names| names[j].clone());
    let mut features: Vec<FeatureSummary> = (0..table.columns())
        .map(|j| FeatureSummary {
            name: name(j),
            minimum: f64::INFINITY,
            maximum: f64::NEG_INFINITY,
            mean: 0.0,
            deviation: 0.0,
            nonzeros: 0,
        })
        .collect();
    for i in 0..table.rows() {
        table.for_each_nonzero(i, |j, v| {
            let feature = &mut features[j];
            feature.minimum = feature.minimum.min(v);
            feature.maximum = feature.maximum.max(v);
            feature.mean += v;
            feature.nonzeros += usize::from(v != 0.0);
        });
    }
    let rows = table.rows().max(1) as f64;
    for feature in &mut features {
        feature.mean /= rows;
        if feature.nonzeros < table.rows() {
            feature.minimum = feature.minimum.min(0.0);
            feature.maximum = feature.maximum.max(0.0);
        }
        let zeros = (table.rows() - feature.nonzeros) as f64;
        feature.deviation = zeros * feature.mean * feature.mean;
    }
    for i in 0..table.rows() {
        table.for_each_nonzero(i, |j, v| {
            if v != 0.0 {
                features[j].deviation += (v - features[j].mean).powi(2);
            }
        });
    }
    for feature in &mut features {
        feature.deviation = (feature.deviation / rows).sqrt();
        if table.rows() == 0 {
            (feature.minimum, feature.maximum) = (0.0, 0.0);
        }
    }
    features
}

fn labels(labels: &Labels) -> LabelSummary {
    let Ok(classes) = labels.classes(ClassOrder::Sorted) else { return LabelSummary::None };
    let whole = match labels {
        Labels::Real(values) => values.iter().all(|v| v.fract() == 0.0),
        _ => true,
    };
    let text = matches!(labels, Labels::Text(_));
    if !text
        && (!whole || classes.count() > MOST_CLASSES)
        && let Ok(values) = labels.values()
    {
        return LabelSummary::Targets {
            minimum: values.iter().copied().fold(f64::INFINITY, f64::min),
            maximum: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            mean: values.iter().sum::<f64>() / values.len().max(1) as f64,
        };
    }
    let mut counts: Vec<(Label, usize)> = classes.names.into_iter().map(|n| (n, 0)).collect();
    for code in classes.codes {
        counts[code as usize].1 += 1;
    }
    LabelSummary::Classes { counts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Layout, Matrix};

    #[test]
    fn dense_and_sparse_storage_tell_the_same() {
        let table = Dense::new(3, 2, vec![1.0, 0.0, 3.0, 0.0, 2.0, -6.0]).expect("six values");
        let names = vec!["a".to_owned(), "b".to_owned()];
        let data = Dataset::new(Matrix::DenseF64(table), Labels::Int(vec![7, 3, 7]))
            .and_then(|d| d.with_feature_names(names))
            .expect("three labels, two names");
        let sparse = data.features().clone().into_layout(Layout::Sparse);
        let sparse = data.clone().with_features(sparse).expect("same rows").summary().unwrap();
        let dense = data.summary().unwrap();
        assert_eq!(dense.features, sparse.features);
        assert_eq!((dense.sparse, sparse.sparse), (false, true));
        let [a, b] = &dense.features[..] else { panic!("two features") };
        assert_eq!((a.minimum, a.maximum, a.mean), (1.0, 3.0, 2.0));
        assert!((a.deviation - (2.0_f64 / 3.0).sqrt()).abs() < 1e-15);
        assert_eq!((b.minimum, b.maximum, b.mean, b.nonzeros), (-6.0, 0.0, -2.0, 1));
        assert!((b.deviation - 8.0_f64.sqrt()).abs() < 1e-15);
        let counts = vec![(Label::Int(3), 1), (Label::Int(7), 2)];
        assert_eq!(dense.labels, LabelSummary::Classes { counts });
    }

    #[test]
    fn fractions_are_targets_and_whole_reals_are_classes() {
        let of = |values: Vec<f64>| labels(&Labels::Real(values));
        assert_eq!(
            of(vec![0.5, 1.5, 4.0]),
            LabelSummary::Targets { minimum: 0.5, maximum: 4.0, mean: 2.0 }
        );
        assert!(matches!(of(vec![1.0, 2.0]), LabelSummary::Classes { .. }));
        assert_eq!(labels(&Labels::None), LabelSummary::None);
    }
}
