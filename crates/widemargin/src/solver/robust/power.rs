//! Powers of the hinge loss: ½‖w‖² + Σ uᵢ max(0, 1 − zᵢ)ᵖ for 0 < p ≤ 2.
//!
//! p = 1 and p = 2 are quadratic programs. Between them the loss is majorised by a square, ξᵖ ≤ ½ p ξ₀ᵖ⁻² ξ² + const,
//! and below 1, where the loss is concave in ξ and the problem no longer convex, by its tangent (iteratively
//! re-weighted machines). Every round lowers the objective.

use super::{Fitted, decision};
use crate::context::Context;
use crate::outcome::Status;
use crate::solver::elliptope::BoxQp;

/// Most rounds of re-weighting.
const MAX_ROUNDS: usize = 500;

/// Relative decrease of the objective that ends them.
const LEAST_DECREASE: f64 = 1e-10;

/// Relative gap of a quadratic program that counts as solved.
const SOLVED: f64 = 1e-9;

/// Slacks count as at least so much in the weights: the tangent at 0 is vertical.
const LEAST_SLACK: f64 = 1e-6;

/// Minimises over the rows with the matrix Q.
pub(crate) fn hinge_power(q: &[f64], weights: &[f64], power: f64, context: &Context) -> Fitted {
    let mut best = if power <= 1.0 {
        first_power(q, weights, weights, power, context)
    } else {
        squared(q, weights, weights, power, context)
    };
    if power == 1.0 || power == 2.0 {
        return best;
    }
    for round in 1..=MAX_ROUNDS {
        if let Some(stop) = context.stop_request() {
            best.status = best.status.max(stop);
            return best;
        }
        let slack = best.margins.iter().map(|z| (1.0 - z).max(LEAST_SLACK));
        let next = if power < 1.0 {
            let costs: Vec<f64> =
                slack.zip(weights).map(|(xi, w)| w * power * xi.powf(power - 1.0)).collect();
            first_power(q, weights, &costs, power, context)
        } else {
            let costs: Vec<f64> =
                slack.zip(weights).map(|(xi, w)| 0.5 * w * power * xi.powf(power - 2.0)).collect();
            squared(q, weights, &costs, power, context)
        };
        let decrease = best.objective - next.objective;
        if decrease > 0.0 {
            best = next;
        }
        best.rounds = round as u64;
        if decrease <= LEAST_DECREASE * best.objective {
            return best;
        }
    }
    best.status = best.status.max(Status::IterationLimit);
    best
}

/// ½‖w‖² + Σ costs · ξ, judged by the power.
fn first_power(q: &[f64], weights: &[f64], costs: &[f64], power: f64, context: &Context) -> Fitted {
    let n = weights.len();
    let solution = BoxQp::within(q, &vec![1.0; n], costs, &vec![0.0; n], context);
    let bound = if power == 1.0 { solution.value } else { 0.0 };
    judged(q, weights, solution, power, bound, context)
}

/// ½‖w‖² + Σ costs · ξ², judged by the power.
fn squared(q: &[f64], weights: &[f64], costs: &[f64], power: f64, context: &Context) -> Fitted {
    let n = weights.len();
    let mut ridged = q.to_vec();
    (0..n).for_each(|i| ridged[i * n + i] += 0.5 / costs[i].max(f64::MIN_POSITIVE));
    // λᵢ = 2 costᵢ ξᵢ, and costᵢ ξᵢ² ≤ Σ costs: the objective of w = 0.
    let total: f64 = costs.iter().sum();
    let upper: Vec<f64> = costs.iter().map(|c| 2.0 * (c * total).sqrt()).collect();
    let solution = BoxQp::within(&ridged, &vec![1.0; n], &upper, &vec![0.0; n], context);
    let bound = if power == 2.0 { solution.value } else { 0.0 };
    judged(q, weights, solution, power, bound, context)
}

fn judged(
    q: &[f64],
    weights: &[f64],
    solution: BoxQp,
    power: f64,
    bound: f64,
    context: &Context,
) -> Fitted {
    let exact = solution.gap <= SOLVED * solution.value.abs().max(f64::MIN_POSITIVE);
    let coefficients = solution.lambda;
    let (margins, squared_norm) = decision(q, &coefficients, context);
    let loss = |(z, w): (&f64, &f64)| w * (1.0 - z).max(0.0).powf(power);
    let objective = 0.5 * squared_norm + margins.iter().zip(weights).map(loss).sum::<f64>();
    let unsolved = || context.stop_request().unwrap_or(Status::AlmostSolved);
    let status = if exact { Status::Solved } else { unsolved() };
    Fitted { coefficients, margins, squared_norm, objective, bound, status, rounds: 1 }
}
