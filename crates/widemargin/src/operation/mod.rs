//! What is done with machines and models: files, probabilities, cross-validation.

pub mod calibrate;
pub mod cross_validate;
pub mod folds;
pub mod metrics;
pub mod persist;
