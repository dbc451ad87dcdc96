//! What merging needs to know about a kernel.

use super::gaussian::{self, Merged, least_cost};
use super::polynomial::{self, Products};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::numeric::algebra::{dot, squared_distance};

/// A kernel whose vectors can be merged.
pub(super) enum MergeKernel {
    /// exp(−γ‖x − z‖²)
    Gaussian { gamma: f64 },
    /// (γ⟨x, z⟩ + c₀)^degree; the linear kernel is the one of degree 1.
    Polynomial { gamma: f64, coef0: f64, degree: u32 },
}

impl MergeKernel {
    /// # Errors
    /// [`Error::Kernel`] for kernels whose images of merged vectors have no closed form.
    pub(super) fn of(kernel: &Kernel) -> Result<Self> {
        match *kernel {
            Kernel::Gaussian { gamma } => Ok(Self::Gaussian { gamma }),
            Kernel::Polynomial { gamma, coef0, degree } if coef0 >= 0.0 => {
                Ok(Self::Polynomial { gamma, coef0, degree })
            }
            Kernel::Linear => Ok(Self::Polynomial { gamma: 1.0, coef0: 0.0, degree: 1 }),
            _ => Err(Error::kernel(
                kernel.name(),
                "a Gaussian, linear or polynomial kernel (with coef0 of at least 0)",
                "a kernel whose vectors cannot be merged; the methods prune, l1 and \
                        kernel-pca and a lossless target work for any kernel",
            )),
        }
    }

    /// The kernel itself.
    pub(super) fn kernel(&self) -> Kernel {
        match *self {
            Self::Gaussian { gamma } => Kernel::Gaussian { gamma },
            Self::Polynomial { gamma, coef0, degree } => {
                Kernel::Polynomial { gamma, coef0, degree }
            }
        }
    }

    /// The kernel the engine computes: the Gaussian itself, or the product under the power.
    pub(super) fn base(&self) -> Kernel {
        match *self {
            Self::Gaussian { gamma } => Kernel::Gaussian { gamma },
            Self::Polynomial { .. } => Kernel::Linear,
        }
    }

    /// The base kernel value of two vectors.
    pub(super) fn base_of(&self, u: &[f64], v: &[f64]) -> f64 {
        match *self {
            Self::Gaussian { gamma } => (-gamma * squared_distance(u, v)).exp(),
            Self::Polynomial { .. } => dot(u, v),
        }
    }

    /// The vector whose kernel with others, [`cosine`](Self::cosine), is the cosine of their images.
    pub(super) fn direction(&self, vector: &[f64]) -> Vec<f64> {
        let mut direction = vector.to_vec();
        if let Self::Polynomial { gamma, coef0, .. } = *self {
            if coef0 > 0.0 {
                direction.push((coef0 / gamma).sqrt());
            }
            let length = dot(&direction, &direction).sqrt();
            if length > 0.0 {
                direction.iter_mut().for_each(|v| *v /= length);
            }
        }
        direction
    }

    /// The kernel between directions.
    pub(super) fn cosine(&self) -> Kernel {
        match *self {
            Self::Gaussian { gamma } => Kernel::Gaussian { gamma },
            Self::Polynomial { degree, .. } => {
                Kernel::Polynomial { gamma: 1.0, coef0: 0.0, degree }
            }
        }
    }

    /// The base kernel value of a vector and itself.
    pub(super) fn own_base(&self, vector: &[f64]) -> f64 {
        match self {
            Self::Gaussian { .. } => 1.0,
            Self::Polynomial { .. } => vector.iter().map(|v| v * v).sum(),
        }
    }

    /// The kernel value, given the base kernel value.
    pub(super) fn value(&self, base: f64) -> f64 {
        match *self {
            Self::Gaussian { .. } => base,
            Self::Polynomial { gamma, coef0, degree } => (gamma * base + coef0).powi(degree as i32),
        }
    }

    /// p in ∂K(u, z)/∂z = slope · (u + p z).
    pub(super) fn pull(&self) -> f64 {
        match self {
            Self::Gaussian { .. } => -1.0,
            Self::Polynomial { .. } => 0.0,
        }
    }

    /// The kernel value, its slope D as in ∂K(u, z)/∂z = D · (u + p z), and the slope of D in the
    /// same sense, given the base kernel value.
    pub(super) fn derivatives(&self, base: f64) -> (f64, f64, f64) {
        match *self {
            Self::Gaussian { gamma } => (base, 2.0 * gamma * base, 4.0 * gamma * gamma * base),
            Self::Polynomial { gamma, coef0, degree } => {
                let (under, p) = (gamma * base + coef0, f64::from(degree));
                let power = |less: i32| under.powi((degree as i32 - less).max(0));
                (power(0), p * gamma * power(1), p * (p - 1.0) * gamma * gamma * power(2))
            }
        }
    }

    /// A lower bound on the cost of a merge, cheaper than the cost.
    pub(super) fn least_cost(&self, a: f64, b: f64, base: f64) -> f64 {
        match self {
            Self::Gaussian { .. } => least_cost(a, b, base),
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
