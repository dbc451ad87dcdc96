//! The classical machines beside the support vector machines: discriminants, mixtures, neighbours,
//! windows and clusters (JHU 685.621, "Machine Learning III").

mod clusters;
mod discriminant;
mod distances;
mod kind;
mod mixture;
mod names;
mod neighbours;
mod part;
mod ready;
mod rows;
mod windows;

pub use clusters::{Affinity, Cut, KMeans, Spectral};
pub use discriminant::{Fisher, KernelFisher, KernelFisherThreshold, Ridge, Shrinkage, Threshold};
pub use kind::Classic;
pub use mixture::{
    Covariance, Criterion, GaussianMixture, Initialisation, MixtureBayes, MixtureStart, Stop,
};
pub use neighbours::{KNearest, Metric, Search, Weighting};
pub(crate) use part::ClassicForm;
pub use part::{ClassicPart, Discriminant, Mixtures, Neighbours, Windows};
pub(super) use ready::Ready;
pub use rows::Priors;
pub use windows::{Input, KernelDensity, Parzen, ProbabilisticNetwork, Width, Window};
