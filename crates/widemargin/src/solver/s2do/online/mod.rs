//! Steps of the online solver on support patterns that come and go.

pub(super) mod block_step;
pub(super) mod pair;
pub(super) mod patterns;
mod steps;
pub(super) mod working_set;
