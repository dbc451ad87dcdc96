//! The classical machines beside the support vector machines: Fisher discriminants, Gaussian mixtures,
//! k-nearest neighbours, Parzen windows, the probabilistic neural network and clustering (JHU 685.621,
//! "Machine Learning III").

mod clusters;
mod discriminant;
mod distances;
mod kind;
mod mixture;
mod neighbours;
mod rows;
mod windows;

pub use clusters::{Affinity, Centres, Cut, KMeans, Spectral};
pub use discriminant::{
    Discriminant, Fisher, FisherThreshold, KernelFisher, KernelFisherRidge, KernelFisherThreshold,
    Shrinkage,
};
pub use kind::Classic;
pub use mixture::{
    CertifiedMixture, Covariance, GaussianMixture, Initialisation, MixtureBayes, MixtureCriterion,
    MixtureStart, MixtureStop, Mixtures,
};
pub use neighbours::{KNearest, NeighbourMetric, NeighbourSearch, Neighbours, Weighting};
pub use rows::Priors;
pub use windows::{
    KernelDensity, NetworkInput, Parzen, ProbabilisticNetwork, Window, WindowWidth, Windows,
};
