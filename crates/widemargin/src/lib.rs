//! Large-margin learning: support vector machines and their relatives.
//!
//! The crate is layered; each layer uses only those below it:
//!
//! | layer | module | knows |
//! |---|---|---|
//! | operations | [`operation`] | models: cross-validation, tuning, calibration, compression, files |
//! | machines | [`machine`] | labels, targets, parameters |
//! | solvers | private | quadratic programs |
//! | kernels | [`kernel`] | kernel functions, feature maps, backends |
//! | data | [`data`] | files, tables, labels, scaling |
//! | numeric | private | vector instructions, algebra, random numbers |
//!
//! [`prelude`] has the names that most programs use; `docs/rust-api.md` shows the whole interface on one
//! page.
//!
//! Parameters are plain structures with defaults: write the fields that differ and end with
//! `..Default::default()`, because structures gain fields in minor versions.

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
pub mod prelude;
mod solver;

pub use context::{CancelToken, Context, Event, Observer, SolvedFunction};
pub use error::{Error, Result};
pub use numeric::InstructionSet;
pub use outcome::{Outcome, Status};
