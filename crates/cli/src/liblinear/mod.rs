//! Stand-ins for LIBLINEAR's programs: same options, same files, same summary lines.

mod predict;
mod solver;
mod train;

pub(crate) use predict::{USAGE as PREDICT_USAGE, run as predict};
pub(crate) use train::{USAGE as TRAIN_USAGE, run as train};
