//! Small convex problems that turn decision values into probabilities.
//!
//! They know numbers and which side a row is on, nothing of machines; who cross-validates and what
//! a class is called is decided above.

mod code_coupling;
mod coupling;
mod isotonic;
mod noise;
mod sigmoid;

pub use code_coupling::couple_splits;
pub use coupling::couple_pairs;
pub use isotonic::{fit_isotonic, isotonic_value};
pub use noise::{DENSITY_MARKS, density_probability, fit_density_marks, fit_laplace_scale};
pub use sigmoid::{Sigmoid, fit_sigmoid};
