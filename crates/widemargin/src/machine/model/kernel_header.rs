//! Kernels as model files hold them; renaming a field in the code does not change the files.

use serde::{Deserialize, Serialize};

use super::parts::PartsResult;
use super::validate::fail;
use crate::error::Result;
use crate::kernel::Kernel;

/// Deepest nesting of kernel sums and products in a model.
pub(crate) const MAX_KERNEL_DEPTH: usize = 16;

/// A kernel without user functions.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum KernelHeader {
    Linear,
    Polynomial { gamma: f64, coef0: f64, degree: u32 },
    Rbf { gamma: f64 },
    Sigmoid { gamma: f64, coef0: f64 },
    Laplacian { gamma: f64 },
    Chi2 { gamma: f64 },
    Cosine,
    Precomputed,
    Sum(Vec<(f64, KernelHeader)>),
    Product(Vec<KernelHeader>),
}

impl KernelHeader {
    /// The file's form of a kernel.
    pub(crate) fn new(kernel: &Kernel) -> PartsResult<Self> {
        Self::nested(kernel, MAX_KERNEL_DEPTH)
    }

    fn nested(kernel: &Kernel, depth: usize) -> PartsResult<Self> {
        let inner = |kernel: &Kernel| match depth.checked_sub(1) {
            Some(depth) => Self::nested(kernel, depth),
            None => Err(too_deep()),
        };
        Ok(match kernel {
            Kernel::Linear => Self::Linear,
            &Kernel::Polynomial { gamma, coef0, degree } => {
                Self::Polynomial { gamma, coef0, degree }
            }
            &Kernel::Gaussian { gamma } => Self::Rbf { gamma },
            &Kernel::Sigmoid { gamma, coef0 } => Self::Sigmoid { gamma, coef0 },
            &Kernel::Laplacian { gamma } => Self::Laplacian { gamma },
            &Kernel::ChiSquared { gamma } => Self::Chi2 { gamma },
            Kernel::Cosine => Self::Cosine,
            Kernel::Precomputed => Self::Precomputed,
            Kernel::Custom(custom) => {
                return Err(format!(
                    "kernel '{}' is a function of the user's program and cannot be saved; \
                     train with kernel values computed beforehand (precomputed) instead",
                    custom.name()
                ));
            }
            Kernel::Sum(terms) => {
                let terms = terms.iter().map(|(weight, kernel)| Ok((*weight, inner(kernel)?)));
                Self::Sum(terms.collect::<PartsResult<_>>()?)
            }
            Kernel::Product(factors) => {
                Self::Product(factors.iter().map(inner).collect::<PartsResult<_>>()?)
            }
        })
    }

    /// The kernel, its parameters still to be validated.
    pub(crate) fn into_kernel(self) -> PartsResult<Kernel> {
        self.unnest(MAX_KERNEL_DEPTH)
    }

    fn unnest(self, depth: usize) -> PartsResult<Kernel> {
        let inner = |kernel: Self| match depth.checked_sub(1) {
            Some(depth) => kernel.unnest(depth),
            None => Err(too_deep()),
        };
        Ok(match self {
            Self::Linear => Kernel::Linear,
            Self::Polynomial { gamma, coef0, degree } => {
                Kernel::Polynomial { gamma, coef0, degree }
            }
            Self::Rbf { gamma } => Kernel::Gaussian { gamma },
            Self::Sigmoid { gamma, coef0 } => Kernel::Sigmoid { gamma, coef0 },
            Self::Laplacian { gamma } => Kernel::Laplacian { gamma },
            Self::Chi2 { gamma } => Kernel::ChiSquared { gamma },
            Self::Cosine => Kernel::Cosine,
            Self::Precomputed => Kernel::Precomputed,
            Self::Sum(terms) => {
                let terms = terms.into_iter().map(|(weight, kernel)| Ok((weight, inner(kernel)?)));
                Kernel::Sum(terms.collect::<PartsResult<_>>()?)
            }
            Self::Product(factors) => {
                Kernel::Product(factors.into_iter().map(inner).collect::<PartsResult<_>>()?)
            }
        })
    }
}

fn too_deep() -> String {
    format!("expected kernels nested at most {MAX_KERNEL_DEPTH} deep, found more")
}

/// Checks that sums and products are not nested too deeply.
pub(super) fn check_depth(kernel: &Kernel) -> Result<()> {
    check_nested(kernel, MAX_KERNEL_DEPTH)
}

fn check_nested(kernel: &Kernel, depth: usize) -> Result<()> {
    let inner = |kernel: &Kernel| match depth.checked_sub(1) {
        Some(depth) => check_nested(kernel, depth),
        None => fail(too_deep()),
    };
    match kernel {
        Kernel::Sum(terms) => terms.iter().try_for_each(|(_, kernel)| inner(kernel)),
        Kernel::Product(factors) => factors.iter().try_for_each(inner),
        _ => Ok(()),
    }
}
