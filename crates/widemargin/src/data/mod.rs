//! Tables of numbers, their labels, the files they come from and the scaling applied to them.

mod census;
pub(crate) mod chunks;
mod csr;
mod dataset;
mod dense;
mod dictionary;
mod labels;
mod matrix;
pub(crate) mod memory;
pub(crate) mod pieces;
pub mod read;
pub mod scaling;
mod sequences;
mod summary;
mod templates;
mod text;
pub mod write;

pub use census::Census;
pub use csr::Csr;
pub use dataset::Dataset;
pub use dense::{Dense, SharedSlice};
pub use dictionary::Dictionary;
pub(crate) use labels::check_two_classes;
pub use labels::{ClassOrder, Classes, Label, Labels};
pub use matrix::{Layout, Matrix};
pub(crate) use matrix::{SPARSE_DENSITY, is_exact_in_single};
pub use sequences::{NO_TAG, SequenceBuilder, TaggedSequences};
pub use summary::{FeatureSummary, LabelSummary, Summary};
pub use templates::Templates;
pub(crate) use text::{LARGEST_SYMBOL, symbol};
