//! Solvers of quadratic programs; they know boxes and sums, not labels.

pub mod adatron;
pub(crate) mod assignment;
pub mod calibration;
pub mod kernel_weights;
pub mod least_squares;
pub mod linear;
pub mod pair_scan;
pub mod s2do;
pub mod smo;

pub use crate::outcome::{Outcome, Status};
