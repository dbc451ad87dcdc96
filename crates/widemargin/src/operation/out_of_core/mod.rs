//! Linear machines trained on files larger than memory.
//!
//! The text is converted once into compressed chunks on disk; then either block minimisation (Yu,
//! Hsieh, Chang and Lin, 2010) loads chunk after chunk, in random order, and makes some passes of
//! dual coordinate descent over its rows, the weights following, or Newton's method makes a pass for
//! each of its products. The state of the method is kept on disk at intervals, so that a run that
//! was killed goes on from there, to the same optimum.

mod blocks;
mod convert;
mod newton;
mod pass;
mod state;
mod train;

use std::path::PathBuf;

pub use train::train;

use crate::data::read::ReadOptions;
use crate::machine::{LinearSvc, LinearSvr};

/// The smallest memory that is enough for a chunk and what surrounds it.
pub const LEAST_MEMORY: usize = 16 << 20;

/// The machine to train.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OutOfCoreMachine {
    /// A classifier with a hinge loss, one class against the rest.
    Classifier(LinearSvc),
    /// A regressor.
    Regressor(LinearSvr),
}

/// Where the rows are and what may be used for them.
#[derive(Clone, Debug)]
pub struct OutOfCore {
    /// Files of LIBSVM text, also compressed, or folders of them.
    pub inputs: Vec<PathBuf>,
    /// Folder for the chunks and the state; made if need be.
    pub folder: PathBuf,
    /// Bytes of memory that the rows may take.
    pub memory: usize,
    /// How the text is read.
    pub read: ReadOptions,
}
