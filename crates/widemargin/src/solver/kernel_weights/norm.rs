//! Weights of a p-norm, 1 < p < ∞, by the closed-form step of Kloft et al. (JMLR 12, 2011, equation 28).
//!
//! With ‖wᵢ‖² = µᵢ² βᵀKᵢβ the optimal weights of the ball ‖µ‖ₚ ≤ r are proportional to ‖wᵢ‖^(2/(p + 1)). The step
//! is scaled to Σµ = 1 and the ball is the one whose surface the weights are on, so that all rules share the
//! trace of their kernels. Since min over the ball of −fᵀµ is −r ‖f‖_q with 1/p + 1/q = 1, the solution at µ
//! bounds the optimum over the whole ball.

use super::{Options, WeightedDual, Weights, relative};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::solver::Status;

/// Accuracy of a training problem, as a share of that of the weights.
const SOLVE_SHARE: f64 = 0.2;

/// Accuracy of the first training problem.
const FIRST_GAP: f64 = 1e-2;

/// (Σ |vᵢ|^p)^(1/p), without overflow.
fn norm(values: &[f64], p: f64) -> f64 {
    let largest = values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    if largest == 0.0 {
        return 0.0;
    }
    let sum: f64 = values.iter().map(|value| (value.abs() / largest).powf(p)).sum();
    largest * sum.powf(1.0 / p)
}

/// Iterates from `start`.
pub(super) fn minimise(
    dual: &mut dyn WeightedDual,
    start: Vec<f64>,
    p: f64,
    options: &Options,
    context: &Context,
) -> Result<Weights> {
    if !(p.is_finite() && p > 1.0) {
        return Err(Error::parameter("weights", "a norm p above 1", p));
    }
    let mut weights = start;
    let mut gap = FIRST_GAP;
    let mut last: Option<Weights> = None;
    for rounds in 1.. {
        let solved = match (dual.solve(&weights, gap.max(SOLVE_SHARE * options.gap)), last.take()) {
            (Err(Error::Interrupted), Some(last)) => {
                dual.restore(&last.weights)?;
                let status = context.stop_request().unwrap_or(Status::Interrupted);
                return Ok(Weights { status, ..last });
            }
            (solved, _) => solved?,
        };
        let bound = solved.linear - norm(&weights, p) * norm(&solved.forms, p / (p - 1.0));
        let reached = relative(solved.primal - bound, solved.primal);
        let status = match context.stop_request() {
            _ if reached <= options.gap => Some(Status::Solved),
            None if rounds >= options.max_rounds => Some(Status::IterationLimit),
            stopped => stopped,
        };
        let found = Weights {
            weights: weights.clone(),
            objective: solved.primal,
            forms: solved.forms.clone(),
            bound,
            status: status.unwrap_or(Status::IterationLimit),
            rounds,
            solves: rounds,
            smallest_eigenvalue: None,
        };
        if status.is_some() {
            return Ok(found);
        }
        dual.keep();
        last = Some(found);
        gap = SOLVE_SHARE * reached.min(gap);
        let sizes = weights.iter().zip(&solved.forms);
        let sizes: Vec<f64> =
            sizes.map(|(w, f)| (w * w * f.max(0.0)).powf(1.0 / (p + 1.0))).collect();
        let total: f64 = sizes.iter().sum();
        if !(total.is_finite() && total > 0.0) {
            let found = "a solution that uses none of them".into();
            let expected = "kernels that tell the rows apart".into();
            return Err(Error::Kernel { kernel: "combination".into(), expected, found });
        }
        weights = sizes.iter().map(|size| size / total).collect();
    }
    unreachable!("rounds are counted without an end")
}
