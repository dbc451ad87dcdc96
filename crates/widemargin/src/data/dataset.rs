//! A feature table with its labels and weights.

use super::{Labels, Matrix};
use crate::error::{Error, Result};

/// Rows of features, their labels, and what else a file says about them.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    features: Matrix,
    labels: Labels,
    weights: Option<Vec<f64>>,
    groups: Option<Vec<i64>>,
    feature_names: Option<Vec<String>>,
}

impl Dataset {
    /// Joins a table with the labels of its rows ([`Labels::None`] for none).
    ///
    /// # Errors
    /// [`Error::Length`] when there are labels but not one per row.
    pub fn new(features: Matrix, labels: Labels) -> Result<Self> {
        if !matches!(labels, Labels::None) && labels.len() != features.rows() {
            return Err(Error::length("labels", features.rows(), labels.len()));
        }
        Ok(Self { features, labels, weights: None, groups: None, feature_names: None })
    }

    /// Replaces the labels.
    ///
    /// # Errors
    /// [`Error::Length`] when there are labels but not one per row.
    pub fn with_labels(mut self, labels: Labels) -> Result<Self> {
        if !matches!(labels, Labels::None) && labels.len() != self.rows() {
            return Err(Error::length("labels", self.rows(), labels.len()));
        }
        self.labels = labels;
        Ok(self)
    }

    /// Gives every row a weight that multiplies its C.
    ///
    /// # Errors
    /// [`Error::Length`] or [`Error::Parameter`] when there is not one finite weight ≥ 0 per row.
    pub fn with_weights(mut self, weights: Vec<f64>) -> Result<Self> {
        if weights.len() != self.rows() {
            return Err(Error::length("sample weights", self.rows(), weights.len()));
        }
        if let Some(row) = weights.iter().position(|w| !w.is_finite() || *w < 0.0) {
            return Err(Error::parameter(
                "weights",
                "finite numbers of at least 0",
                format!("{} in row {}", weights[row], row + 1),
            ));
        }
        self.weights = Some(weights);
        Ok(self)
    }

    /// Weight of a row; 1 unless weights were given.
    pub(crate) fn weight(&self, row: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[row])
    }

    /// The rows of both tables, those of `below` last; weights are 1 where only the other table has them.
    ///
    /// # Errors
    /// [`Error::Length`] when they have different numbers of features, [`Error::Labels`] when only one of
    /// them has labels.
    pub fn stacked(&self, below: &Self) -> Result<Self> {
        let features = self.features.stacked(&below.features)?;
        if self.labels.is_empty() != below.labels.is_empty() {
            return Err(Error::labels("labels in both tables or in none", "labels in one"));
        }
        let all =
            |labels: &Labels| (0..labels.len()).filter_map(|i| labels.get(i)).collect::<Vec<_>>();
        let labels = Labels::from_labels(&[all(&self.labels), all(&below.labels)].concat());
        let mut joined = Self::new(features, labels)?;
        if self.weights.is_some() || below.weights.is_some() {
            let weights =
                |data: &Self| (0..data.rows()).map(|i| data.weight(i)).collect::<Vec<_>>();
            joined.weights = Some([weights(self), weights(below)].concat());
        }
        joined.groups = match (&self.groups, &below.groups) {
            (Some(above), Some(below)) => Some([&above[..], below].concat()),
            _ => None,
        };
        joined.feature_names = self.feature_names.clone();
        Ok(joined)
    }

    /// The columns of another table of the same rows, followed by those of this one, whose labels, weights and
    /// groups stay.
    ///
    /// ```
    /// use widemargin::data::{Dataset, Dense, Labels, Matrix};
    ///
    /// let table = |value| Dense::new(2, 1, vec![value, 2.0 * value]).map(Matrix::DenseF64);
    /// let data = Dataset::new(table(1.0)?, Labels::Int(vec![0, 1]))?;
    /// let both = data.after(&Dataset::new(table(5.0)?, Labels::None)?)?;
    /// assert_eq!(both.features(), &Matrix::DenseF64(Dense::new(2, 2, vec![5.0, 1.0, 10.0, 2.0])?));
    /// # Ok::<(), widemargin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Length`] when it has another number of rows, [`Error::Labels`] when both have labels and those of
    /// a row differ: the rows are in another order.
    pub fn after(self, left: &Self) -> Result<Self> {
        let features = left.features.beside(&self.features)?;
        if !(self.labels.is_empty() || left.labels.is_empty()) {
            let text = |labels: &Labels, row| labels.get(row).map(|label| label.to_string());
            for row in 0..self.rows() {
                if let (Some(own), Some(other)) = (text(&self.labels, row), text(&left.labels, row))
                    && own != other
                {
                    let row = row + 1;
                    return Err(Error::labels(
                        format!("the same rows in the same order, '{own}' in row {row}"),
                        format!("'{other}'"),
                    ));
                }
            }
        }
        let names = match (&left.feature_names, &self.feature_names) {
            (Some(left), Some(own)) => Some([&left[..], own].concat()),
            _ => None,
        };
        Ok(Self { features, feature_names: names, ..self })
    }

    /// Keeps the query or group number (`qid`) of every row.
    ///
    /// # Errors
    /// [`Error::Length`] when there is not one per row.
    pub fn with_groups(mut self, groups: Vec<i64>) -> Result<Self> {
        if groups.len() != self.rows() {
            return Err(Error::length("groups", self.rows(), groups.len()));
        }
        self.groups = Some(groups);
        Ok(self)
    }

    /// Names the columns.
    ///
    /// # Errors
    /// [`Error::Length`] when there is not one name per column.
    pub fn with_feature_names(mut self, names: Vec<String>) -> Result<Self> {
        if names.len() != self.columns() {
            return Err(Error::length("feature names", self.columns(), names.len()));
        }
        self.feature_names = Some(names);
        Ok(self)
    }

    /// Replaces the table by one of the same rows (scaled, resized, re-stored).
    ///
    /// # Errors
    /// [`Error::Length`] when the number of rows differs.
    pub fn with_features(mut self, features: Matrix) -> Result<Self> {
        if features.rows() != self.rows() {
            return Err(Error::length("rows", self.rows(), features.rows()));
        }
        if features.columns() != self.columns() {
            self.feature_names = None;
        }
        self.features = features;
        Ok(self)
    }

    /// Appends rows without labels: theirs is written as `mark`, which makes all labels words. They have weight
    /// 1 and a group of their own.
    ///
    /// # Errors
    /// [`Error::Length`] when they have another number of columns.
    pub fn with_unlabelled_rows(self, rows: &Matrix, mark: &str) -> Result<Self> {
        let features = self.features.stacked(rows)?;
        let word = |row: usize| self.labels.get(row).map_or(mark.into(), |label| label.to_string());
        let labels = Labels::Text((0..features.rows()).map(word).collect());
        let weights = self.weights.map(|mut weights| {
            weights.resize(features.rows(), 1.0);
            weights
        });
        let groups = self.groups.map(|mut groups| {
            let next = groups.iter().max().map_or(0, |last| last.saturating_add(1));
            groups.resize(features.rows(), next);
            groups
        });
        Ok(Self { features, labels, weights, groups, feature_names: self.feature_names })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.features.rows()
    }

    /// Number of features.
    pub fn columns(&self) -> usize {
        self.features.columns()
    }

    /// The table.
    pub fn features(&self) -> &Matrix {
        &self.features
    }

    /// The table, all else forgotten.
    pub fn into_features(self) -> Matrix {
        self.features
    }

    /// The labels.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Weight of every row, if given.
    pub fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    /// Group number of every row, if given.
    pub fn groups(&self) -> Option<&[i64]> {
        self.groups.as_deref()
    }

    /// Names of the columns, if given.
    pub fn feature_names(&self) -> Option<&[String]> {
        self.feature_names.as_deref()
    }

    /// The rows named by `indices`, in that order.
    pub fn select_rows(&self, indices: &[usize]) -> Self {
        Self {
            features: self.features.select_rows(indices),
            labels: self.labels.select(indices),
            weights: self.weights.as_ref().map(|w| indices.iter().map(|&i| w[i]).collect()),
            groups: self.groups.as_ref().map(|g| indices.iter().map(|&i| g[i]).collect()),
            feature_names: self.feature_names.clone(),
        }
    }
}
