//! Decomposition for quadratic programs with a box and one sum constraint per group:
//!
//! ```text
//! minimise   ½ βᵀ(K + diag(r)) β + pᵀβ
//! subject to lᵢ ≤ βᵢ ≤ uᵢ,   Σ_{i in group g} βᵢ = const   for every group g
//! ```
//!
//! Every support vector machine of this crate is this problem with its own p, l, u, r and groups
//! (the signs of labels live in l and u: β = yα). Working sets of hundreds of variables are chosen
//! by violation, solved by second-order SMO (Fan, Chen and Lin 2005) in cache, in turn with proximal
//! Newton steps where those pay, and the gradient of all active variables is brought up to date in one
//! pass. The stopping rule is LIBSVM's
//! m − M ≤ tol, with m = max over βᵢ < uᵢ of −fᵢ, M = min over βᵢ > lᵢ of −fᵢ and
//! f = (K + diag(r))β + p, confirmed on all variables with a freshly computed gradient.

mod active_block;
mod decompose;
mod gather;
mod hybrid;
mod in_memory;
mod inner;
mod newton;
mod path;
mod path_rows;
mod problem;
mod select;
mod state;
#[cfg(test)]
mod tests;

pub(crate) use decompose::solve;
pub(crate) use path::{DualPoint, PathSolver};
pub(crate) use path_rows::{FetchedRows, PathRows, WholeMatrix, nonzero_places};
pub(crate) use problem::{Options, Problem, Solution};
