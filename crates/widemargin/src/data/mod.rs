//! Tables of numbers, their labels, the files they come from and the scaling applied to them.

pub(crate) mod chunks;
mod csr;
mod dataset;
mod dense;
mod labels;
mod matrix;
pub(crate) mod memory;
pub(crate) mod pieces;
pub mod read;
pub mod scaling;
mod summary;
pub mod write;

pub use csr::Csr;
pub use dataset::Dataset;
pub use dense::{Dense, SharedSlice};
pub(crate) use labels::check_two_classes;
pub use labels::{ClassOrder, Classes, Label, Labels};
pub(crate) use matrix::SPARSE_DENSITY;
pub use matrix::{Layout, Matrix};
pub use summary::{FeatureSummary, LabelSummary, Summary};
