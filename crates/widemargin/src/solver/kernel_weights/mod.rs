//! Weights µ of a sum of kernels K(µ) = Σ µᵢKᵢ that minimise the optimum of a machine's training problem.
//!
//! With J(µ) = max over feasible β of −pᵀβ − ½ Σ µᵢ βᵀKᵢβ, the primal optimum at K(µ), the problem is
//!
//! ```text
//! minimise J(µ)   subject to   Σ µᵢ = 1   and   µ ≥ 0,   or   K(µ) ⪰ 0,   or   ‖µ‖ₚ given
//! ```
//!
//! (Lanckriet et al., JMLR 5, 2004; Lu 2005, chapters 2 and 3; Kloft et al., JMLR 12, 2011). J is convex, and
//! every feasible β gives an affine lower bound of it that holds for all µ: cutting planes with a level
//! stabilisation (Lemaréchal, Nemirovskii and Nesterov 1995; Xu et al. 2009) need only a solver of the
//! training problem, a small interior-point method and, for signed weights, eigenvectors. Results carry a
//! certified lower bound. A machine is seen through [`WeightedDual`], never its labels.

mod bundle;
mod cutting_plane;
mod master;
mod norm;
mod semidefinite;
#[cfg(test)]
mod tests;

use self::semidefinite::Cone;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernel::Gram;
use crate::numeric::algebra::dot;
use crate::solver::Status;

/// Which weights are admitted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum WeightRule {
    /// µ ≥ 0.
    #[default]
    NonNegative,
    /// Any sign, K(µ) positive semidefinite on all rows given.
    Signed,
    /// µ ≥ 0 of a p-norm, 1 < p < ∞: the optimum of the ball whose solution sums to 1.
    Norm(f64),
    /// All the same.
    Uniform,
    /// Proportional to the centred alignment with the labels, and 0 where that is negative.
    Alignment,
    /// Proportional to the shares of the squared distance between the classes (EasyMKL), with the
    /// weight 0 ≤ λ < 1 of the regularisation.
    Margin(f64),
}

/// A training problem whose matrix is a weighted sum.
pub(crate) trait WeightedDual {
    /// Solves at K(µ) until primal and dual objective differ by at most `gap` of the primal, from the
    /// last solution on.
    ///
    /// # Errors
    /// Those of the kernels.
    /// [`Error::Interrupted`] where an earlier call returned and there is no time for what this one would.
    fn solve(&mut self, weights: &[f64], gap: f64) -> Result<Solved>;

    /// Keeps the last solution.
    fn keep(&mut self) {}

    /// Goes back to the solution kept, which is one at these weights.
    ///
    /// # Errors
    /// Those of the kernels.
    fn restore(&mut self, _weights: &[f64]) -> Result<()> {
        Ok(())
    }
}

/// A feasible point of the dual, and what it says about all weights.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Solved {
    /// −pᵀβ, a ridge included.
    pub(crate) linear: f64,
    /// ½ βᵀKᵢβ for every kernel.
    pub(crate) forms: Vec<f64>,
    /// Primal objective at the weights that were given.
    pub(crate) primal: f64,
    /// How the solver ended.
    pub(crate) status: Status,
}

impl Solved {
    /// The lower bound of J(µ).
    pub(crate) fn value(&self, weights: &[f64]) -> f64 {
        self.linear - dot(&self.forms, weights)
    }
}

/// Accuracy and effort.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Options {
    /// Certified difference of objective and bound, as a share of the objective.
    pub(crate) gap: f64,
    /// Limit on rounds.
    pub(crate) max_rounds: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { gap: 1e-4, max_rounds: 1000 }
    }
}

/// The weights with their certificate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Weights {
    /// µ, summing to 1.
    pub(crate) weights: Vec<f64>,
    /// Primal objective at µ.
    pub(crate) objective: f64,
    /// Lower bound of the optimum over all admitted weights.
    pub(crate) bound: f64,
    /// How it ended.
    pub(crate) status: Status,
    /// Rounds.
    pub(crate) rounds: usize,
    /// Training problems solved.
    pub(crate) solves: usize,
    /// ½ βᵀKᵢβ of the last solution.
    pub(crate) forms: Vec<f64>,
    /// Smallest eigenvalue of K(µ) on all rows, where it was computed.
    pub(crate) smallest_eigenvalue: Option<f64>,
}

/// The status for a gap that was reached, whatever that of single solves.
fn certified(reached: f64, wanted: f64) -> Status {
    match reached {
        gap if gap <= wanted => Status::Solved,
        gap if gap <= 10.0 * wanted => Status::AlmostSolved,
        _ => Status::NumericalTrouble,
    }
}

/// A difference as a share of a value.
fn relative(difference: f64, value: f64) -> f64 {
    difference / value.abs().max(f64::MIN_POSITIVE)
}

/// Minimises J over the weights of `kernels` kernels that `rule` admits. The matrices `candidates`, over
/// all rows and scaled to the same trace, are needed for signed weights alone.
///
/// # Errors
/// Those of `dual`; [`Error::Kernel`] when no combination of the candidates is positive definite.
pub(crate) fn minimise(
    dual: &mut dyn WeightedDual,
    kernels: usize,
    rule: WeightRule,
    candidates: &[Gram],
    options: &Options,
    context: &Context,
) -> Result<Weights> {
    if kernels == 0 {
        return Err(Error::Empty { what: "kernel" });
    }
    let uniform = vec![1.0 / kernels as f64; kernels];
    match rule {
        WeightRule::Signed if kernels > 1 => {
            let cone = Cone::new(candidates, context)?;
            cutting_plane::in_cone(dual, &cone, options, context)
        }
        WeightRule::NonNegative if kernels > 1 => {
            cutting_plane::non_negative(dual, kernels, options, context)
        }
        WeightRule::Norm(p) if kernels > 1 => norm::minimise(dual, uniform, p, options, context),
        _ => at(dual, uniform, options),
    }
}

/// Solves the training problem at weights that are given; the bound is that of these weights alone.
///
/// # Errors
/// Those of `dual`.
pub(crate) fn at(
    dual: &mut dyn WeightedDual,
    weights: Vec<f64>,
    options: &Options,
) -> Result<Weights> {
    let solved = dual.solve(&weights, options.gap)?;
    let bound = solved.value(&weights);
    Ok(Weights {
        objective: solved.primal,
        forms: solved.forms,
        bound,
        status: solved.status,
        rounds: 1,
        solves: 1,
        smallest_eigenvalue: None,
        weights,
    })
}
