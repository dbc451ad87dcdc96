//! Linear machines, and what is done with machines and models.

#[path = "../calibration.rs"]
mod calibration;
#[path = "../common/mod.rs"]
mod common;
#[path = "../cross_validation.rs"]
mod cross_validation;
#[path = "../linear_gap.rs"]
mod linear_gap;
#[path = "../linear_machines.rs"]
mod linear_machines;
#[path = "../linear_optimum.rs"]
mod linear_optimum;
#[path = "../ranking.rs"]
mod ranking;
#[path = "../tune.rs"]
mod tune;
