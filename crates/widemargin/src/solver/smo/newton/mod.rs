//! Second-order steps on all variables inside their boxes at once.
//!
//! Pair steps find out soon which variables are inside their boxes at the optimum, but need very
//! many rounds until those agree when the penalty is large. A step solves
//!
//! ```text
//! minimise   ½ dᵀ(K + diag(r) + μI)d + fᵀd
//! subject to l ≤ β + d ≤ u,   Σ d = 0 in every group
//! ```
//!
//! which is one iteration of the proximal point method (Rockafellar, 1976) and never raises the
//! objective. The program is solved by the primal-dual active set method (Hintermüller, Ito and
//! Kunisch, 2002): guess which variables are at which bound, solve for the others with one Cholesky
//! factor, send those that left their boxes to the bounds and release those that multipliers do not
//! hold there, until nothing changes. Guesses that change few variables correct the factor of an earlier
//! one. The damping μ is the KKT violation over the room that variables have in their boxes: a step then
//! lowers the violation to a share of it, and from such a distance the guesses settle. Where they do not,
//! the step is tried with more; μ also covers what rounding takes from a singular K.

mod factor;
mod projection;
mod step;

pub(super) use step::Newton;
