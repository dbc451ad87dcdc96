//! The dual of the all-in-one multi-class machines, without equality constraints.
//!
//! Promises the maximum of `Σ γ α − ½ Σ M_{yᵢ,p,yⱼ,q} kᵢⱼ α_{i,p} α_{j,q}` over boxes 0 ≤ α ≤ U or
//! simplices α ≥ 0, Σ_p α_{i,p} ≤ Uᵢ, with kernel rows shared by all classes of an example. The
//! problem is the unified one of Doğan, Glasmachers and Igel (JMLR 17(45), 2016); the steps of two
//! variables are those of Trinh (2012), corrected where the document misprints them.

mod block;
mod block_rows;
mod blocks;
mod choice;
mod example;
mod linear;
mod offset;
mod pair;
mod patterns;
mod problem;
mod rule;
mod scores;
mod solve;
mod steps;
mod table;
mod together;

pub use choice::WorkingSet;
pub use pair::{Pair, gain_one, solve_one};
pub use patterns::{Patterns, Pool, Variable};
pub use problem::{Options, Problem, Solution};
pub use rule::{Aggregation, Components, Margin, Rule};
pub use solve::{solve, solve_linear};
pub use together::Changes;
