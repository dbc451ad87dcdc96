//! Solvers of linear machines: no kernel matrix, only rows against weights.
//!
//! All minimise ½‖w‖² (or ‖w‖₁) + Σ Cᵢ ℓ(⟨w, xᵢ⟩, tᵢ) over the weights w, or the dual of that. They
//! are the algorithms of LIBLINEAR (Fan, Chang, Hsieh, Wang and Lin, 2008): dual coordinate descent
//! with shrinking, Newton's method, and coordinate descent for sparse weights; each file names
//! its own source.

mod abreast;
mod bends;
mod buckets;
mod columns;
mod crammer_singer;
mod dual;
mod interior;
mod logistic;
mod logistic_abreast;
mod meeting;
mod model;
mod newton;
mod one_class;
mod pace;
mod preconditioner;
mod problem;
mod products;
mod roster;
pub mod rows;
mod sample;
mod slots;
mod sparse_weights;
mod sweep;
mod table;
mod tall;
mod variable;

pub use abreast::{
    Rivals, is_coarse, solve as solve_abreast, solve_coarsely as solve_abreast_coarsely,
};
pub use buckets::solve as solve_buckets;
pub use columns::Columns;
pub use crammer_singer::{Choices, solve as solve_crammer_singer};
pub use dual::{Descent, solve as solve_dual};
pub use logistic::{LogisticDescent, solve as solve_logistic_dual};
pub use logistic_abreast::solve as solve_logistic_abreast;
pub use newton::{conjugate, over as newton_over, solve as solve_newton};
pub use one_class::{Half, solve as solve_one_class};
pub use preconditioner::factor_bytes;
pub use problem::{Loss, Options, Problem, Solution};
pub use products::Products;
pub use sparse_weights::{needs_columns, solve as solve_sparse};
pub use table::{Listed, Table};
pub use variable::BlockReport;
