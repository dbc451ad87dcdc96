//! What merging needs to know about a kernel.

use super::gaussian::{self, Floor, Merged};
use super::polynomial::{self, Products};
use crate::error::{Error, Result};
use crate::kernel::Kernel;

/// A kernel whose vectors can be merged.
pub(super) enum Rule {
    /// exp(−γ‖x − z‖²)
    Gaussian { gamma: f64, floor: Floor },
    /// (γ⟨x, z⟩ + c₀)^degree; the linear kernel is the one of degree 1.
    Polynomial { gamma: f64, coef0: f64, degree: u32 },
}

impl Rule {
    /// # Errors
    /// [`Error::Kernel`] for kernels whose images of merged vectors have no closed form.
    pub(super) fn of(kernel: &Kernel) -> Result<Self> {
        match *kernel {
            Kernel::Gaussian { gamma } => Ok(Self::Gaussian { gamma, floor: Floor::new() }),
            Kernel::Polynomial { gamma, coef0, degree } if coef0 >= 0.0 => {
                Ok(Self::Polynomial { gamma, coef0, degree })
            }
            Kernel::Linear => Ok(Self::Polynomial { gamma: 1.0, coef0: 0.0, degree: 1 }),
            _ => Err(Error::Kernel {
                kernel: kernel.name().to_owned(),
                expected: "a Gaussian, linear or polynomial kernel (with coef0 of at least 0)"
                    .into(),
                found: "a kernel whose vectors cannot be merged".into(),
            }),
        }
    }

    /// The kernel the engine computes: the Gaussian itself, or the product under the power.
    pub(super) fn base(&self) -> Kernel {
        match *self {
            Self::Gaussian { gamma, .. } => Kernel::Gaussian { gamma },
            Self::Polynomial { .. } => Kernel::Linear,
        }
    }

    /// What the engine says of a vector and itself.
    pub(super) fn own_base(&self, vector: &[f64]) -> f64 {
        match self {
            Self::Gaussian { .. } => 1.0,
            Self::Polynomial { .. } => vector.iter().map(|v| v * v).sum(),
        }
    }

    /// The kernel value, given what the engine says.
    pub(super) fn value(&self, base: f64) -> f64 {
        match *self {
            Self::Gaussian { .. } => base,
            Self::Polynomial { gamma, coef0, degree } => (gamma * base + coef0).powi(degree as i32),
        }
    }

    /// ∂K(u, z)/∂z = slope · u + pull · z; returns (slope, pull).
    pub(super) fn gradient(&self, base: f64) -> (f64, f64) {
        match *self {
            Self::Gaussian { gamma, .. } => (2.0 * gamma * base, -2.0 * gamma * base),
            Self::Polynomial { gamma, coef0, degree } => {
                let under = (gamma * base + coef0).powi(degree as i32 - 1);
                (f64::from(degree) * gamma * under, 0.0)
            }
        }
    }

    /// A lower bound on the cost of a merge, cheaper than the cost.
    pub(super) fn least_cost(&self, a: f64, b: f64, base: f64) -> f64 {
        match self {
            Self::Gaussian { floor, .. } => floor.cost(a, b, base),
            Self::Polynomial { .. } => 0.0,
        }
    }

    /// The merge of vectors with weights `a` and `b` of the same sign; `own` are their products
    /// with themselves.
    pub(super) fn merge(&self, a: f64, b: f64, own: (f64, f64), base: f64) -> Merged {
        match *self {
            Self::Gaussian { .. } => gaussian::merge(a, b, base),
            Self::Polynomial { gamma, coef0, degree } => {
                let product = |base: f64| gamma * base + coef0;
                let products =
                    Products { first: product(own.0), second: product(own.1), both: product(base) };
                polynomial::merge(a, b, products, degree)
            }
        }
    }
}
