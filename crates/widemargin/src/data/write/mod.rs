//! Writing files so that a failure never costs what was there before.

mod atomic;

pub use atomic::write_atomically;
