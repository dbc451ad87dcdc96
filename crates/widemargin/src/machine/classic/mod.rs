//! The classical machines beside the support vector machines: discriminants, mixtures, neighbours,
//! windows and clusters (JHU 685.621, "Machine Learning III").

mod clusters;
mod discriminant;
mod distances;
mod kind;
mod mixture;
mod names;
mod neighbours;
mod rows;
mod windows;

pub use clusters::{Affinity, Centres, Cut, KMeans, Spectral};
pub use discriminant::{
    Discriminant, Fisher, KernelFisher, KernelFisherThreshold, Ridge, Shrinkage, Threshold,
};
pub use kind::Classic;
pub use mixture::{
    Covariance, Criterion, GaussianMixture, Initialisation, MixtureBayes, MixtureStart, Mixtures,
    Stop,
};
pub use neighbours::{KNearest, Metric, Neighbours, Search, Weighting};
pub use rows::Priors;
pub use windows::{Input, KernelDensity, Parzen, ProbabilisticNetwork, Width, Window, Windows};
