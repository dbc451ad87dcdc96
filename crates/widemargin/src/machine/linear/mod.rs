//! Linear machines: weights instead of support vectors, for wide and sparse data.
//!
//! They minimise ½‖w‖² (or ‖w‖₁) + Σ Cᵢ ℓ(yᵢ, ⟨w, xᵢ⟩ + b) without ever forming a kernel value; the
//! formulas and algorithms are LIBLINEAR's (Fan, Chang, Hsieh, Wang and Lin, 2008). The body of their
//! models is [`Linear`](super::Linear).

mod assemble;
mod classification;
mod novelty;
mod one_vs_rest;
mod parameters;
mod path;
mod ranking;
mod regression;
mod rows;
mod solve;
mod wide;

pub(crate) use assemble::linear_model;
pub use classification::LinearSvc;
pub use novelty::LinearOneClass;
pub use parameters::{Bias, LinearLoss, LinearMulticlass, LinearOptions, LinearSolver, Penalty};
pub use path::PathStep;
pub use ranking::RankSvm;
pub use regression::LinearSvr;
pub(in crate::machine) use rows::{FeatureOrder, RowTask, with_rows};
pub(crate) use solve::{is_worth_blocks, newton_tolerance, newton_tolerance_at};
pub(crate) use wide::on_occurring_columns;
