//! Mixtures of Gaussians by expectation and maximisation, and the Bayes classifier on them.

mod bayes;
mod body;
mod certified;
mod covariance;
mod em;
mod fit;
mod pass;
mod semi;
mod step;
#[cfg(test)]
mod tests;

pub use bayes::MixtureBayes;
pub use body::Mixtures;
pub use certified::CertifiedMixture;
pub use covariance::Covariance;
pub use fit::{GaussianMixture, Initialisation, MixtureCriterion, MixtureStart, MixtureStop};
