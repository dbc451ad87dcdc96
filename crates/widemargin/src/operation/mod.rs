//! What is done with machines and models: files, probabilities, cross-validation, model selection, compression.

pub mod advice;
pub mod agreement;
pub mod calibrate;
pub mod compare;
pub mod compress;
pub mod cross_validate;
pub mod distribute;
pub mod folds;
pub mod learning_curve;
pub mod metrics;
pub mod out_of_core;
pub mod penalty_search;
pub mod persist;
pub mod ranking;
pub mod tagging;
pub mod threshold;
pub mod tune;
mod warnings;
