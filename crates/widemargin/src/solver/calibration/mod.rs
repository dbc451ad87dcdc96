//! Small convex problems that turn decision values into probabilities.
//!
//! They know numbers and which side a row is on, nothing of machines; who cross-validates and what
//! a class is called is decided above.

mod code_coupling;
mod coupling;
mod isotonic;
mod noise;
mod sigmoid;
#[cfg(test)]
mod tests;

pub(crate) use code_coupling::couple_splits;
pub(crate) use coupling::couple_pairs;
pub(crate) use isotonic::{fit_isotonic, isotonic_value};
pub(crate) use noise::{density_probability, fit_density_marks, fit_laplace_scale};
pub(crate) use sigmoid::{Sigmoid, fit_sigmoid};
