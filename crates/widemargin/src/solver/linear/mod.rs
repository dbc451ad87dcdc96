//! Solvers of linear machines: no kernel matrix, only rows against weights.
//!
//! All minimise ½‖w‖² (or ‖w‖₁) + Σ Cᵢ ℓ(⟨w, xᵢ⟩, tᵢ) over the weights w, or the dual of that. They
//! are the algorithms of LIBLINEAR (Fan, Chang, Hsieh, Wang and Lin, 2008): dual coordinate descent
//! with shrinking, Newton's method, and coordinate descent for sparse weights; each file names
//! its own source.

mod active_set;
mod batch;
mod blocks;
mod column_descent;
mod columns;
mod crammer_singer;
mod dual;
mod face;
mod hessian_products;
mod interior;
mod logistic;
mod loss_derivatives;
mod newton;
mod one_class;
mod preconditioner;
mod problem;
mod products;
mod ranking;
pub(crate) mod rows;
mod sample;
mod sampled_hessian;
mod spin_barrier;
mod sweep;
mod table;
mod thread_tuner;
mod tuning;
mod variable;

pub(crate) use batch::{
    BatchInputs, OneVsRestProblems, is_coarse, solve as solve_batch,
    solve_in_singles as solve_batch_in_singles,
};
pub(crate) use blocks::solve as solve_blocks;
pub(crate) use columns::Columns;
pub(crate) use crammer_singer::{Choices, solve as solve_crammer_singer};
pub(crate) use dual::{Descent, solve as solve_dual};
pub(crate) use logistic::{
    LogisticDescent, solve as solve_logistic_dual, solve_batch as solve_logistic_batch,
};
pub(crate) use loss_derivatives::curvature;
pub(crate) use newton::{Norm, needs_columns, over as newton_over, solve as solve_newton};
pub(crate) use one_class::{HalfSpace, solve as solve_one_class};
pub(crate) use preconditioner::factor_bytes;
pub(crate) use problem::{
    DEFAULT_GAP, MOST_PASSES, Options, Problem, RowLoss, Solution, conjugate,
};
pub(crate) use products::Products;
pub(crate) use ranking::{OrderedPairs, solve as solve_ranking};
pub(crate) use table::{Table, WeightedRows};
pub(crate) use variable::Violation;
