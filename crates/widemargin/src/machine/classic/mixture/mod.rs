//! Mixtures of Gaussians by expectation and maximisation, and the Bayes classifier on them.

mod bayes;
mod covariance;
mod em;
mod fit;
mod pass;
mod ready;
mod semi;
mod step;
#[cfg(test)]
mod tests;

pub use bayes::MixtureBayes;
pub use covariance::Covariance;
pub use fit::{GaussianMixture, Initialisation, MixtureCriterion, MixtureStart, MixtureStop};
pub(super) use ready::Ready;
