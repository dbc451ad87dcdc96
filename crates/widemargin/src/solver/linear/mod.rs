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
mod hessian_products;
mod interior;
mod logistic;
mod loss_derivatives;
mod newton;
mod one_class;
mod preconditioner;
mod problem;
mod products;
pub mod rows;
mod sample;
mod sampled_hessian;
mod spin_barrier;
mod sweep;
mod table;
mod thread_tuner;
mod tuning;
mod variable;

pub use batch::{
    BatchInputs, OneVsRestProblems, is_coarse, solve as solve_batch,
    solve_in_singles as solve_batch_in_singles,
};
pub use blocks::solve as solve_blocks;
pub use columns::Columns;
pub use crammer_singer::{Choices, solve as solve_crammer_singer};
pub use dual::{Descent, solve as solve_dual};
pub use logistic::{
    LogisticDescent, solve as solve_logistic_dual, solve_batch as solve_logistic_batch,
};
pub use newton::{Norm, needs_columns, over as newton_over, solve as solve_newton};
pub use one_class::{Half, solve as solve_one_class};
pub use preconditioner::factor_bytes;
pub use problem::{DEFAULT_GAP, Loss, MOST_PASSES, Options, Problem, Solution, conjugate};
pub use products::Products;
pub use table::{Listed, Table};
pub use variable::Violation;
