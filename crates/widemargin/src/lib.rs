//! Large-margin learning: support vector machines and their relatives.
//!
//! The crate is layered; each layer uses only those below it:
//!
//! | layer | modules | knows |
//! |---|---|---|
//! | operations | [`operation`] | models: cross-validation, calibration, files |
//! | machines | [`machine`] | labels, targets, parameters |
//! | solvers | [`solver`] | quadratic programs |
//! | kernels | [`kernel`] | rows and blocks of a kernel matrix |
//! | data | [`data`] | files, tables, labels, scaling |

#![deny(unsafe_code)]

#[cfg(doctest)]
mod book;
mod context;
pub mod data;
mod error;
#[doc(hidden)]
pub mod internal;
pub mod kernel;
pub mod machine;
mod numeric;
pub mod operation;
mod outcome;
mod solver;

pub use context::{CancelToken, Context, Event, Observer, SolvedFunction};
pub use error::{Error, Result};
pub use numeric::InstructionSet;
pub use outcome::{Outcome, Status};
