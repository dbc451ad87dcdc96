//! Solvers of quadratic programs; they know boxes and sums, not labels.

pub(crate) mod adatron;
pub(crate) mod assignment;
pub(crate) mod calibration;
pub(crate) mod elliptope;
pub(crate) mod kernel_weights;
pub(crate) mod label_regression;
pub(crate) mod least_squares;
pub(crate) mod linear;
pub(crate) mod mixture;
pub(crate) mod pair_scan;
pub(crate) mod robust;
pub(crate) mod s2do;
pub(crate) mod semi_supervised;
pub(crate) mod smo;
pub(crate) mod structured;

pub(crate) use crate::outcome::{Outcome, Status};
