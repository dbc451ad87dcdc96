//! The names of the classical machines.

use crate::machine::names::names;

/// Which classical machine a model comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Classic {
    /// Fisher's linear discriminant.
    Fisher,
    /// Fisher's discriminant in the feature space of a kernel.
    KernelFisher,
    /// A mixture of Gaussians, without labels.
    Mixture,
    /// A mixture of Gaussians of known variances with a proven likelihood.
    CertifiedMixture,
    /// The Bayes classifier on a mixture of Gaussians per class.
    MixtureBayes,
    /// Classification by the k nearest neighbours.
    Neighbours,
    /// Regression by the k nearest neighbours.
    NeighboursRegression,
    /// The Bayes classifier on a Parzen-window density per class.
    Parzen,
    /// A Parzen-window density, without labels.
    Density,
    /// The probabilistic neural network.
    ProbabilisticNetwork,
    /// k-means clusters.
    KMeans,
    /// Spectral clustering: by eigenvectors of a graph.
    Spectral,
}

names!(Classic, "machine", Fisher: "fisher", KernelFisher: "kernel-fisher", Mixture: "gmm",
       CertifiedMixture: "certified-gmm",
       MixtureBayes: "gmm-bayes", Neighbours: "knn", NeighboursRegression: "knn-regressor",
       Parzen: "parzen", Density: "density", ProbabilisticNetwork: "pnn", KMeans: "kmeans",
       Spectral: "spectral");

impl Classic {
    /// Whether it predicts a class label.
    pub fn is_classifier(self) -> bool {
        matches!(
            self,
            Self::Fisher
                | Self::KernelFisher
                | Self::MixtureBayes
                | Self::Neighbours
                | Self::Parzen
                | Self::ProbabilisticNetwork
        )
    }

    /// Whether it predicts the number of a cluster, from 0.
    pub fn is_clusterer(self) -> bool {
        matches!(self, Self::Mixture | Self::CertifiedMixture | Self::KMeans | Self::Spectral)
    }
}
