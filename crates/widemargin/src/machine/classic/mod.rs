//! The classical machines beside the support vector machines: Fisher discriminants, Gaussian mixtures,
//! k-nearest neighbours, Parzen windows, the probabilistic neural network and clustering (JHU 685.621,
//! "Machine Learning III").

mod clusters;
mod discriminant;
mod distances;
mod kind;
mod mixture;
mod neighbours;
mod part;
mod ready;
mod rows;
mod windows;

pub use clusters::{Affinity, Cut, KMeans, Spectral};
pub use discriminant::{
    Fisher, FisherThreshold, KernelFisher, KernelFisherRidge, KernelFisherThreshold, Shrinkage,
};
pub use kind::Classic;
pub use mixture::{
    Covariance, GaussianMixture, Initialisation, MixtureBayes, MixtureCriterion, MixtureStart,
    MixtureStop,
};
pub use neighbours::{KNearest, NeighbourMetric, NeighbourSearch, Weighting};
pub(crate) use part::ClassicForm;
pub use part::{ClassicPart, Discriminant, Mixtures, Neighbours, Windows};
pub(super) use ready::Ready;
pub use rows::Priors;
pub use windows::{KernelDensity, NetworkInput, Parzen, ProbabilisticNetwork, Window, WindowWidth};
