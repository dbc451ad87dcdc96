//! Kernel functions: which similarity two rows have, and its parameters.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};

use super::StringKernel;
use crate::error::{Error, Result};

type RowFunction = dyn Fn(&[f64], &[f64]) -> f64 + Send + Sync;

/// A kernel written by the user: any function of two rows that is symmetric and positive
/// semidefinite.
#[derive(Clone)]
pub struct CustomKernel {
    name: String,
    function: Arc<RowFunction>,
}

impl CustomKernel {
    /// Names a function of two dense rows.
    pub fn new(
        name: impl Into<String>,
        function: impl Fn(&[f64], &[f64]) -> f64 + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), function: Arc::new(function) }
    }

    /// The name given to it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its value for two rows.
    pub fn evaluate(&self, a: &[f64], b: &[f64]) -> f64 {
        (self.function)(a, b)
    }
}

impl fmt::Debug for CustomKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CustomKernel({})", self.name)
    }
}

impl Serialize for CustomKernel {
    fn serialize<S: Serializer>(&self, _: S) -> std::result::Result<S::Ok, S::Error> {
        Err(S::Error::custom(format!(
            "kernel '{}' is a function of the user's program and cannot be saved; \
             train with kernel values computed beforehand (precomputed) instead",
            self.name
        )))
    }
}

impl PartialEq for CustomKernel {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.function, &other.function)
    }
}

/// A similarity of two rows x and z.
///
/// Serialised, it has the form of model files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Kernel {
    /// ⟨x, z⟩
    Linear,
    /// (γ⟨x, z⟩ + c₀)^degree
    Polynomial {
        /// γ
        gamma: f64,
        /// c₀
        coef0: f64,
        /// Exponent.
        degree: u32,
    },
    /// exp(−γ‖x − z‖²)
    #[serde(rename = "rbf")]
    Gaussian {
        /// γ
        gamma: f64,
    },
    /// tanh(γ⟨x, z⟩ + c₀); not positive semidefinite for most γ and c₀
    Sigmoid {
        /// γ
        gamma: f64,
        /// c₀
        coef0: f64,
    },
    /// exp(−γ‖x − z‖₁)
    Laplacian {
        /// γ
        gamma: f64,
    },
    /// exp(−γ Σ (xₖ − zₖ)² / (xₖ + zₖ)) for features ≥ 0, 0/0 being 0
    #[serde(rename = "chi2")]
    ChiSquared {
        /// γ
        gamma: f64,
    },
    /// ⟨x, z⟩ / (‖x‖‖z‖), 0 when either is zero
    Cosine,
    /// A similarity of strings, whose rows [`Matrix::of_strings`](crate::data::Matrix::of_strings) makes
    String(StringKernel),
    /// Values given by the user: row i of the table holds K(i, j) for every training row j.
    Precomputed,
    /// A function of the user's, which no file can hold.
    #[serde(skip_deserializing)]
    Custom(CustomKernel),
    /// Σ wᵢ Kᵢ; with a negative weight it need not be positive semidefinite
    Sum(Vec<(f64, Kernel)>),
    /// Π Kᵢ
    Product(Vec<Kernel>),
    /// A kernel of some of the columns, a view of the rows
    View {
        /// The columns, counted from 0, in ascending ranges.
        columns: Vec<Range<usize>>,
        /// The kernel of the rows that these columns make.
        kernel: Box<Kernel>,
    },
}

impl Kernel {
    /// The name used on the command line and in model files.
    pub fn name(&self) -> &str {
        match self {
            Self::Linear => "linear",
            Self::Polynomial { .. } => "polynomial",
            Self::Gaussian { .. } => "rbf",
            Self::Sigmoid { .. } => "sigmoid",
            Self::Laplacian { .. } => "laplacian",
            Self::ChiSquared { .. } => "chi2",
            Self::Cosine => "cosine",
            Self::String(strings) => strings.similarity.name(),
            Self::Precomputed => "precomputed",
            Self::Custom(custom) => custom.name(),
            Self::Sum(_) => "sum",
            Self::Product(_) => "product",
            Self::View { .. } => "view",
        }
    }

    /// Whether some of its values are given by the user for pairs of training rows, so that it needs
    /// the training row of every support vector.
    pub(crate) fn has_given_values(&self) -> bool {
        match self {
            Self::Precomputed => true,
            Self::Sum(terms) => terms.iter().any(|(_, kernel)| kernel.has_given_values()),
            Self::Product(factors) => factors.iter().any(Self::has_given_values),
            Self::View { kernel, .. } => kernel.has_given_values(),
            _ => false,
        }
    }

    /// Whether all its values are given by the user.
    pub(crate) fn has_only_given_values(&self) -> bool {
        match self {
            Self::Precomputed => true,
            Self::Sum(terms) => terms.iter().all(|(_, kernel)| kernel.has_only_given_values()),
            Self::Product(factors) => factors.iter().all(Self::has_only_given_values),
            Self::View { kernel, .. } => kernel.has_only_given_values(),
            _ => false,
        }
    }

    /// Whether every matrix of its values is positive semidefinite by its formula.
    pub(crate) fn is_semidefinite(&self) -> bool {
        match self {
            Self::Polynomial { coef0, .. } => *coef0 >= 0.0,
            Self::String(strings) => strings.is_semidefinite(),
            Self::Sigmoid { .. } | Self::Precomputed | Self::Custom(_) => false,
            Self::Sum(terms) => {
                terms.iter().all(|(weight, kernel)| *weight >= 0.0 && kernel.is_semidefinite())
            }
            Self::Product(factors) => factors.iter().all(Self::is_semidefinite),
            Self::View { kernel, .. } => kernel.is_semidefinite(),
            _ => true,
        }
    }

    /// Whether rows may have any number of columns: those of strings are as long as these.
    pub(crate) fn takes_any_width(&self) -> bool {
        match self {
            Self::String(_) => true,
            Self::Sum(terms) => terms.iter().all(|(_, kernel)| kernel.takes_any_width()),
            Self::Product(factors) => factors.iter().all(Self::takes_any_width),
            _ => false,
        }
    }

    /// Whether some columns hold the symbols of strings and others may follow: no column can be added.
    pub(crate) fn has_strings_in_a_view(&self) -> bool {
        match self {
            Self::Sum(terms) => terms.iter().any(|(_, kernel)| kernel.has_strings_in_a_view()),
            Self::Product(factors) => factors.iter().any(Self::has_strings_in_a_view),
            Self::View { kernel, .. } => kernel.has_strings(),
            _ => false,
        }
    }

    fn has_strings(&self) -> bool {
        match self {
            Self::String(_) => true,
            Self::Sum(terms) => terms.iter().any(|(_, kernel)| kernel.has_strings()),
            Self::Product(factors) => factors.iter().any(Self::has_strings),
            Self::View { kernel, .. } => kernel.has_strings(),
            _ => false,
        }
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a γ that is negative or not finite, a non-finite c₀, an empty
    /// combination, a weight that is 0 or not finite, or columns that do not ascend;
    /// [`Error::Kernel`] for a precomputed kernel inside a combination but not in a view.
    pub fn validate(&self) -> Result<()> {
        match self {
            Self::Linear | Self::Cosine | Self::Precomputed | Self::Custom(_) => Ok(()),
            Self::String(strings) => strings.validate(),
            Self::Polynomial { gamma, coef0, .. } | Self::Sigmoid { gamma, coef0 } => {
                Error::check_not_negative("gamma", *gamma)?;
                match coef0.is_finite() {
                    true => Ok(()),
                    false => Err(Error::parameter("coef0", "a finite number", coef0)),
                }
            }
            Self::Gaussian { gamma } | Self::Laplacian { gamma } | Self::ChiSquared { gamma } => {
                Error::check_not_negative("gamma", *gamma)
            }
            Self::Sum(terms) => {
                if terms.is_empty() {
                    return Err(Error::parameter("kernel", "a sum of at least one kernel", "none"));
                }
                for (weight, kernel) in terms {
                    if !(weight.is_finite() && *weight != 0.0) {
                        let expected = "a finite number other than 0";
                        return Err(Error::parameter("weight", expected, weight));
                    }
                    kernel.validate_part()?;
                }
                Ok(())
            }
            Self::Product(factors) => {
                if factors.is_empty() {
                    let expected = "a product of at least one kernel";
                    return Err(Error::parameter("kernel", expected, "none"));
                }
                factors.iter().try_for_each(Self::validate_part)
            }
            Self::View { columns, kernel } => {
                let ascend = columns.windows(2).all(|pair| pair[0].end <= pair[1].start);
                if columns.is_empty() || columns.iter().any(Range::is_empty) || !ascend {
                    let expected = "columns in ascending ranges, none empty";
                    return Err(Error::parameter("view", expected, format!("{columns:?}")));
                }
                kernel.validate()
            }
        }
    }

    fn validate_part(&self) -> Result<()> {
        if *self == Self::Precomputed {
            return Err(Error::kernel(
                "precomputed",
                "to stand alone",
                "it inside a sum or product",
            ));
        }
        self.validate()
    }
}
