//! Scaling: each feature brought to a common range or spread, fitted once and applied alike to every
//! later table.
//!
//! [`RangeScaling`] is LIBSVM's `svm-scale` (`x ↦ lower + (upper − lower)(x − min)/(max − min)`), its
//! range files included; [`StandardScaling`] is `x ↦ (x − mean)/deviation`.

mod apply;
mod columns;
mod range;
mod range_file;
mod standard;

use serde::{Deserialize, Serialize};

pub use range::{Range, RangeScaling, TargetScaling};
pub use standard::StandardScaling;

use super::Matrix;
use crate::error::Result;

/// A fitted scaling of either kind; part of a model, so that prediction applies it by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Scaler {
    /// To a range, as `svm-scale`.
    Range(RangeScaling),
    /// To mean 0 and deviation 1.
    Standard(StandardScaling),
}

impl Scaler {
    /// Learns the range of every feature, to be mapped to `lower..=upper`.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) unless `lower < upper`;
    /// [`Error::Empty`](crate::Error::Empty) or [`Error::NonFinite`](crate::Error::NonFinite) for
    /// data that has no range.
    pub fn fit_range(features: &Matrix, lower: f64, upper: f64) -> Result<Self> {
        RangeScaling::fit(features, lower, upper).map(Self::Range)
    }

    /// Learns mean and deviation of every feature; sparse data will be divided but not moved.
    ///
    /// # Errors
    /// [`Error::Empty`](crate::Error::Empty) or [`Error::NonFinite`](crate::Error::NonFinite).
    pub fn fit_standard(features: &Matrix) -> Result<Self> {
        StandardScaling::fit(features).map(Self::Standard)
    }

    /// Number of features it was fitted on.
    pub fn columns(&self) -> usize {
        match self {
            Self::Range(scaling) => scaling.columns(),
            Self::Standard(scaling) => scaling.columns(),
        }
    }

    /// The scaled table, in the precision of the given one.
    ///
    /// # Errors
    /// [`Error::Length`](crate::Error::Length) when the number of features differs;
    /// [`Error::TooLarge`](crate::Error::TooLarge) when zeros would move and the table that then is
    /// no longer sparse does not fit in memory.
    pub fn transform(&self, features: Matrix) -> Result<Matrix> {
        match self {
            Self::Range(scaling) => scaling.transform(features),
            Self::Standard(scaling) => scaling.transform(features),
        }
    }

    /// As [`transform`](Self::transform) for data of another width, by `svm-scale`'s rule: features
    /// absent from the data are zero, features unknown to the scaling become zero.
    ///
    /// # Errors
    /// [`Error::TooLarge`](crate::Error::TooLarge) as above.
    pub fn transform_resized(&self, features: Matrix) -> Result<Matrix> {
        self.transform(features.resized_columns(self.columns()))
    }
}
