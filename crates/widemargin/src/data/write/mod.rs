//! Writing data files, so that a failure never costs what was there before.

mod atomic;
mod csv;
mod libsvm;
mod npy;
mod number;

pub use atomic::write_atomically;
pub use csv::{save_csv, write_csv};
pub use libsvm::{save_libsvm, write_libsvm, write_svm_scale};
pub use npy::{save_npy, save_npy_labels, write_npy};
pub use number::general;
pub(crate) use number::push_shortest;
