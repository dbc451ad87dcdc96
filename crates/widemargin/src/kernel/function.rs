//! Kernel functions: which similarity two rows have, and its parameters.

use std::fmt;
use std::sync::Arc;

use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};

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
    /// Values given by the user: row i of the table holds K(i, j) for every training row j.
    Precomputed,
    /// A function of the user's, which no file can hold.
    #[serde(skip_deserializing)]
    Custom(CustomKernel),
    /// Σ wᵢ Kᵢ with wᵢ > 0
    Sum(Vec<(f64, Kernel)>),
    /// Π Kᵢ
    Product(Vec<Kernel>),
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
            Self::Precomputed => "precomputed",
            Self::Custom(custom) => custom.name(),
            Self::Sum(_) => "sum",
            Self::Product(_) => "product",
        }
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a γ that is negative or not finite, a non-finite c₀, an empty
    /// combination, or a weight that is not positive; [`Error::Kernel`] for a precomputed kernel
    /// inside a combination.
    pub fn validate(&self) -> Result<()> {
        match self {
            Self::Linear | Self::Cosine | Self::Precomputed | Self::Custom(_) => Ok(()),
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
                    Error::check_positive("weight", *weight)?;
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
