//! The methods of compression, by name.

use crate::machine::names::names;

/// How fewer vectors are found; weights and, for those that construct vectors, the joint
/// optimisation follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompressionMethod {
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

names!(CompressionMethod, "method", Merge: "merge", Greedy: "greedy", FixedPoint: "fixed-point",
       Gradient: "gradient", Prune: "prune", KernelPca: "kernel-pca", L1: "l1");

impl CompressionMethod {
    /// Whether the vectors that remain are support vectors, untouched.
    pub(crate) fn selects(self) -> bool {
        matches!(self, Self::Prune | Self::KernelPca | Self::L1)
    }
}
