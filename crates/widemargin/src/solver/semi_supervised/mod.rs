//! Linear functions from rows of which only some belong to a known group, squared hinge losses.
//!
//! ```text
//! minimise over w and the groups of the other rows   ½ Σ_f ‖w_f‖² + Σᵢ Cᵢ Σ_f max(0, 1 − s_f(gᵢ)⟨w_f, xᵢ⟩)²
//! ```
//!
//! with s_f(g) = 1 where function f is that of group g and −1 elsewhere (two groups share one function), while every
//! group gets a given share of the other rows (Joachims 1999). [`Descent`] lowers in turn the weights, by Newton's
//! method ([`linear`](super::linear)), and the groups, which may be probabilities: with the entropy at a temperature T
//! that sinks it is deterministic annealing, with T = 0 and costs that grow it is label switching, of all pairs at
//! once (Sindhwani and Keerthi 2006). Neither step ever raises the objective of a stage.

mod descent;
mod memberships;

pub(crate) use descent::{Descent, Found, Groups, Schedule};
