//! The batch solver: decomposition over kernel rows, or explicit weights for linear kernels.

mod decompose;
mod linear;
mod offset;
pub(super) mod problem;
mod scores;
pub(super) mod solve;
