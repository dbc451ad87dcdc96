//! The dual of the all-in-one multi-class machines, without equality constraints.
//!
//! Promises the maximum of `Σ γ α − ½ Σ M_{yᵢ,p,yⱼ,q} kᵢⱼ α_{i,p} α_{j,q}` over boxes 0 ≤ α ≤ U or
//! simplices α ≥ 0, Σ_p α_{i,p} ≤ Uᵢ, with kernel rows shared by all classes of an example. The
//! problem is the unified one of Doğan, Glasmachers and Igel (JMLR 17(45), 2016); the steps of two
//! variables are those of Trinh (2012), corrected where that thesis misprints them.

mod batch;
mod online;
mod shared;

pub(crate) use batch::problem::{Options, Problem, Solution};
pub(crate) use batch::solve::{solve, solve_linear};
pub(crate) use online::block_step::Changes;
pub(crate) use online::patterns::{Patterns, Pool};
pub(crate) use online::working_set::WorkingSet;
pub(crate) use shared::multiclass_loss::{Aggregation, Components, Margin, MulticlassLoss};
