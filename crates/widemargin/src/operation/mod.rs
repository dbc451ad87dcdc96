//! What is done with machines and models: files, probabilities, cross-validation.

pub mod metrics;
pub mod persist;
