//! Rows of a table against the weights of one problem or several, and the pass of dual coordinate descent
//! that reads every row once for all problems.

// Vector loads, stores and prefetches are unsafe by nature.
#![allow(unsafe_code)]

mod linear_rows;
mod row_lists;
mod row_sweep;

pub(crate) use linear_rows::{DenseRows, LinearRows, One, SparseRows, Stored, fetch};
pub(crate) use row_lists::{RowLists, WeightTable};
pub(crate) use row_sweep::{BatchDuals, SweepBounds, row_values, sweep};
