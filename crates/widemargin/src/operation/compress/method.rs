//! The ways to fewer vectors, by name.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// How fewer vectors are found; weights and, for those that construct vectors, the joint
/// optimisation follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Pairs of vectors become one, bottom-up: one at a time, the cheapest first, to a difference;
    /// many disjoint pairs a round to a number of vectors, which is as good and much faster.
    #[default]
    Merge,
    /// Pairs of vectors become one, always the cheapest of all (Nguyen 2006), to any target.
    Greedy,
    /// Vectors one by one where the rest is largest, by the fixed-point iteration of Schölkopf et
    /// al. (1999), best of ten starts; Gaussian kernels.
    FixedPoint,
    /// Vectors one by one, by descent from the best of ten starts (Burges 1996).
    Gradient,
    /// Support vectors are left out one by one, each with the least loss; any kernel.
    Prune,
    /// Support vectors are left out by eigenvectors of the Gram matrix (kernel PCA; Schölkopf et al.
    /// 1999); any kernel, a few hundred vectors.
    KernelPca,
    /// Support vectors are left out by an ℓ₁ penalty on the weights (Schölkopf et al. 1999); any
    /// kernel.
    L1,
}

impl Method {
    /// Every method.
    pub const ALL: [Self; 7] = [
        Self::Merge,
        Self::Greedy,
        Self::FixedPoint,
        Self::Gradient,
        Self::Prune,
        Self::KernelPca,
        Self::L1,
    ];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Greedy => "greedy",
            Self::FixedPoint => "fixed-point",
            Self::Gradient => "gradient",
            Self::Prune => "prune",
            Self::KernelPca => "kernel-pca",
            Self::L1 => "l1",
        }
    }

    /// Whether the vectors that remain are support vectors, untouched.
    pub fn selects(self) -> bool {
        matches!(self, Self::Prune | Self::KernelPca | Self::L1)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|method| method.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::parameter("method", format!("one of {names}"), text)
        })
    }
}
