//! Parameters that several machines share.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::median_distance::median_distance;
use crate::data::{Classes, Label, Matrix};
use crate::error::{Error, Result};
use crate::numeric::simd::Real;

/// Number format of kernel values; gradients are always summed in double precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Single precision: twice the speed, half the memory, sound down to `tol` of about 1e-5.
    #[default]
    F32,
    /// Double precision end to end.
    F64,
}

impl Precision {
    /// The precision of `T`.
    pub(in crate::machine) fn of<T: Real>() -> Self {
        if size_of::<T>() == 4 { Self::F32 } else { Self::F64 }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
        })
    }
}

impl FromStr for Precision {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "f32" => Ok(Self::F32),
            "f64" => Ok(Self::F64),
            _ => Err(Error::parameter("precision", "f32 or f64", text)),
        }
    }
}

/// How a margin error ξ is penalised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Loss {
    /// C ξ: the ℓ1 hinge.
    #[default]
    Hinge,
    /// C ξ²: the ℓ2 hinge.
    SquaredHinge,
}

/// Rules for the kernel width γ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Gamma {
    /// 1 / (features × variance of all values), scikit-learn's default.
    #[default]
    Scale,
    /// 1 / features, LIBSVM's default.
    Auto,
    /// 1 / m², m being the median distance of the rows.
    Median,
    /// A given value.
    Value(f64),
}

impl Gamma {
    /// The value of γ for a table.
    pub fn resolve(self, features: &Matrix) -> f64 {
        let columns = features.columns().max(1) as f64;
        match self {
            Self::Value(gamma) => gamma,
            Self::Auto => 1.0 / columns,
            Self::Scale => match variance(features) {
                v if v > 0.0 => 1.0 / (columns * v),
                _ => 1.0,
            },
            Self::Median => match median_distance(features) {
                m if m > 0.0 => 1.0 / (m * m),
                _ => 1.0,
            },
        }
    }
}

impl FromStr for Gamma {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "scale" => Ok(Self::Scale),
            "auto" => Ok(Self::Auto),
            "median" => Ok(Self::Median),
            _ => match text.parse::<f64>() {
                Ok(gamma) if gamma.is_finite() && gamma >= 0.0 => Ok(Self::Value(gamma)),
                _ => {
                    let expected = "scale, auto, median or a number of at least 0";
                    Err(Error::parameter("gamma", expected, text))
                }
            },
        }
    }
}

/// Variance of all values of a table, zeros included.
fn variance(features: &Matrix) -> f64 {
    let count = (features.rows() * features.columns()).max(1) as f64;
    let mut sum = 0.0;
    for i in 0..features.rows() {
        features.for_each_nonzero(i, |_, v| sum += v);
    }
    let mean = sum / count;
    let (mut squares, mut stored) = (0.0, 0.0);
    for i in 0..features.rows() {
        features.for_each_nonzero(i, |_, v| {
            squares += (v - mean) * (v - mean);
            stored += 1.0;
        });
    }
    (squares + (count - stored) * mean * mean) / count
}

/// A penalty C that stands for an infinite one: no dual variable of a problem with a solution comes near it, so
/// that rows of separable classes lie on the right side of their margin (hard margin).
pub const HARD_MARGIN: f64 = 1e100;

/// Factors on C by class.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum ClassWeights {
    /// Every class counts the same.
    #[default]
    Uniform,
    /// rows / (classes × rows of the class): every class carries the same total weight.
    Balanced,
    /// Given factors; classes not named have 1.
    Given(Vec<(Label, f64)>),
}

impl ClassWeights {
    /// The factor of every class.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a factor that is not finite and positive;
    /// [`Error::Labels`] for a label that does not occur.
    pub fn resolve(&self, classes: &Classes) -> Result<Vec<f64>> {
        let mut counts = vec![0.0; classes.count()];
        classes.codes.iter().for_each(|&code| counts[code as usize] += 1.0);
        self.of_counts(&classes.names, &counts)
    }

    /// The factor of every class, from the rows of each.
    pub(crate) fn of_counts(&self, names: &[Label], counts: &[f64]) -> Result<Vec<f64>> {
        match self {
            Self::Uniform => Ok(vec![1.0; names.len()]),
            Self::Balanced => {
                let share = counts.iter().sum::<f64>() / names.len() as f64;
                Ok(counts.iter().map(|count| share / count).collect())
            }
            Self::Given(factors) => {
                let mut weights = vec![1.0; names.len()];
                for (label, factor) in factors {
                    if !(factor.is_finite() && *factor > 0.0) {
                        return Err(Error::parameter(
                            "class_weight",
                            "finite numbers above 0",
                            format!("{factor} for class '{label}'"),
                        ));
                    }
                    let same = |name: &Label| name.to_string() == label.to_string();
                    match names.iter().position(same) {
                        Some(class) => weights[class] = *factor,
                        None => {
                            return Err(Error::labels(
                                format!("class weights for {}", list(names)),
                                format!("a weight for '{label}'"),
                            ));
                        }
                    }
                }
                Ok(weights)
            }
        }
    }
}

fn list(names: &[Label]) -> String {
    names.iter().map(|n| format!("'{n}'")).collect::<Vec<_>>().join(", ")
}

/// What every machine asks of its solver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SolverOptions {
    /// Largest violation m(α) − M(α) accepted; LIBSVM's `-e`.
    pub tol: f64,
    /// Number format of kernel values.
    pub precision: Precision,
    /// Whether to use shrinking: variables that stay at a bound are left out.
    pub shrinking: bool,
    /// Limit on pair steps of one sub-problem; `None` means none is set.
    pub max_iterations: Option<u64>,
}

impl Default for SolverOptions {
    fn default() -> Self {
        Self { tol: 1e-3, precision: Precision::F32, shrinking: true, max_iterations: None }
    }
}

impl SolverOptions {
    /// Checks the tolerance.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `tol` is finite and positive.
    pub fn validate(&self) -> Result<()> {
        Error::check_positive("tol", self.tol)
    }
}

/// How probabilities are to be learnt from decision values of an internal cross-validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CalibrationMethod {
    /// Platt's sigmoid, as LIBSVM's `-b 1`.
    Sigmoid,
    /// A non-decreasing function by pooling adjacent violators.
    Isotonic,
}
