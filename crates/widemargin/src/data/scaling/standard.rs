//! Scaling to mean 0 and standard deviation 1: `x ↦ (x − mean)/deviation`.
//!
//! The deviation is that of the training rows themselves (divided by n, as scikit-learn's
//! `StandardScaler`); a constant feature is divided by 1. Fitted on a sparse table the mean is not
//! subtracted, so that zeros stay zero.

use serde::{Deserialize, Serialize};

use super::apply::{ColumnMap, apply};
use super::columns::Occurring;
use crate::data::{Matrix, memory};
use crate::error::{Error, Result};

/// Scaling of every feature by its mean and deviation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored")]
pub struct StandardScaling {
    /// What is subtracted; absent for a scaling that keeps zeros.
    means: Option<Vec<f64>>,
    deviations: Vec<f64>,
}

/// A [`StandardScaling`] as found in a file, before it is checked.
#[derive(Deserialize)]
struct Stored {
    means: Option<Vec<f64>>,
    deviations: Vec<f64>,
}

impl TryFrom<Stored> for StandardScaling {
    type Error = String;

    fn try_from(stored: Stored) -> std::result::Result<Self, String> {
        let Stored { means, deviations } = stored;
        if means.as_ref().is_some_and(|means| means.len() != deviations.len()) {
            return Err(format!("expected {} means, one per deviation", deviations.len()));
        }
        Ok(Self { means, deviations })
    }
}

impl StandardScaling {
    /// Learns mean and deviation of every feature.
    ///
    /// # Errors
    /// [`Error::Empty`] or [`Error::NonFinite`]; [`Error::TooLarge`] when there is no memory for a
    /// number per feature.
    pub fn fit(features: &Matrix) -> Result<Self> {
        features.validate()?;
        let columns = features.columns();
        memory::check(|| format!("the scaling of {columns} features"), columns as u128 * 8)?;
        let occurring = Occurring::of(features);
        let (means, variances) = moments(features, &occurring);
        let mut deviations = vec![1.0; columns];
        for (place, variance) in variances.iter().enumerate() {
            if *variance > 0.0 {
                deviations[occurring.feature(place)] = variance.sqrt();
            }
        }
        let means = (!features.is_sparse()).then_some(means);
        Ok(Self { means, deviations })
    }

    /// Number of features.
    pub fn columns(&self) -> usize {
        self.deviations.len()
    }

    /// The mean of every feature, when it is subtracted.
    pub fn means(&self) -> Option<&[f64]> {
        self.means.as_deref()
    }

    /// The deviation every feature is divided by.
    pub fn deviations(&self) -> &[f64] {
        &self.deviations
    }

    /// The scaled table; see [`Scaler::transform`](super::Scaler::transform).
    ///
    /// # Errors
    /// As there.
    pub fn transform(&self, features: Matrix) -> Result<Matrix> {
        if features.columns() != self.columns() {
            return Err(Error::length("features to scale", self.columns(), features.columns()));
        }
        apply(self, &features)
    }
}

impl ColumnMap for StandardScaling {
    fn map(&self, j: usize, value: f64) -> f64 {
        let mean = self.means.as_ref().map_or(0.0, |means| means[j]);
        (value - mean) / self.deviations[j]
    }

    fn moving_zero(&self) -> impl Iterator<Item = usize> {
        0..self.means.as_ref().map_or(0, Vec::len)
    }
}

/// Mean and variance of every feature that occurs, in two passes: the second sums squares of differences, which
/// lose no digits when the mean is large.
fn moments(features: &Matrix, occurring: &Occurring) -> (Vec<f64>, Vec<f64>) {
    let rows = features.rows() as f64;
    let mut means = vec![0.0; occurring.len()];
    let mut stored = vec![0_usize; occurring.len()];
    for i in 0..features.rows() {
        features.for_each_nonzero(i, |j, value| {
            let place = occurring.place(j);
            means[place] += value;
            stored[place] += 1;
        });
    }
    means.iter_mut().for_each(|mean| *mean /= rows);
    let mut squares = vec![0.0; occurring.len()];
    // Σ(x − mean) is zero but for rounding; its square corrects the sum of squares.
    let mut remainders = vec![0.0; occurring.len()];
    for i in 0..features.rows() {
        features.for_each_nonzero(i, |j, value| {
            let place = occurring.place(j);
            let difference = value - means[place];
            squares[place] += difference * difference;
            remainders[place] += difference;
        });
    }
    let variances = (0..means.len())
        .map(|j| {
            let zeros = (features.rows() - stored[j]) as f64;
            let remainder = remainders[j] - zeros * means[j];
            ((squares[j] + zeros * means[j] * means[j] - remainder * remainder / rows) / rows)
                .max(0.0)
        })
        .collect();
    (means, variances)
}
