//! Solvers of quadratic programs; they know boxes and sums, not labels.

pub mod adatron;
pub(crate) mod algebra;
pub(crate) mod assignment;
pub mod calibration;
pub mod linear;
pub mod s2do;
pub mod smo;
mod status;

pub use status::{Outcome, Status};
