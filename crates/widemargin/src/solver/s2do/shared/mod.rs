//! What the batch and the online solver have in common: the loss, the exact solution of one example,
//! and blocks of examples.

pub(super) mod block;
pub(super) mod block_rows;
pub(super) mod example;
pub(super) mod multiclass_loss;
pub(super) mod table;
