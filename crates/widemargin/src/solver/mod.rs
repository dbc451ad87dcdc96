//! Solvers of quadratic programs; they know boxes and sums, not labels.

mod status;

pub use status::{Outcome, Status};
