//! The names of the classical machines.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// Which classical machine a model comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classic {
    /// Fisher's linear discriminant.
    Fisher,
    /// Fisher's discriminant in the feature space of a kernel.
    KernelFisher,
    /// A mixture of Gaussians, without labels.
    Mixture,
    /// The Bayes classifier on a mixture of Gaussians per class.
    MixtureBayes,
    /// Classification by the nearest neighbours.
    Neighbours,
    /// Regression by the nearest neighbours.
    NeighboursRegression,
    /// The Bayes classifier on a Parzen-window density per class.
    Parzen,
    /// A Parzen-window density, without labels.
    Density,
    /// The probabilistic neural network.
    ProbabilisticNetwork,
    /// k-means clusters.
    KMeans,
    /// Clusters by eigenvectors of a graph.
    Spectral,
}

impl Classic {
    /// Every machine.
    pub const ALL: [Self; 11] = [
        Self::Fisher,
        Self::KernelFisher,
        Self::Mixture,
        Self::MixtureBayes,
        Self::Neighbours,
        Self::NeighboursRegression,
        Self::Parzen,
        Self::Density,
        Self::ProbabilisticNetwork,
        Self::KMeans,
        Self::Spectral,
    ];

    /// Name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fisher => "fisher",
            Self::KernelFisher => "kernel-fisher",
            Self::Mixture => "gmm",
            Self::MixtureBayes => "gmm-bayes",
            Self::Neighbours => "knn",
            Self::NeighboursRegression => "knn-regressor",
            Self::Parzen => "parzen",
            Self::Density => "density",
            Self::ProbabilisticNetwork => "pnn",
            Self::KMeans => "kmeans",
            Self::Spectral => "spectral",
        }
    }

    /// Whether it answers with a class label.
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

    /// Whether it answers with the number of a cluster, from 0.
    pub fn is_clusterer(self) -> bool {
        matches!(self, Self::Mixture | Self::KMeans | Self::Spectral)
    }
}

impl fmt::Display for Classic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Classic {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::parameter("machine", format!("one of {names}"), text)
        })
    }
}
