//! The inner quadratic program with a logarithmic barrier in the place of its box:
//! max Σ ℓᵢλᵢ − ½ λᵀQλ + μ Σ (ln λᵢ + ln(1 − λᵢ)), by primal-dual Newton steps.
//!
//! Its maximum is a smooth function of Q, where that over the box has second derivatives that jump whenever a
//! variable reaches a bound; descent over labels would have to stop at each of these. It is within 2nμ of it but
//! for the logarithms themselves.

use super::product::matrix_vector;
use crate::context::Context;
use crate::numeric::algebra::{Cholesky, dot};

/// Newton steps; some five are usual.
const MAX_STEPS: usize = 60;

/// Share of the way to a bound that a step may go.
const TO_BOUND: f64 = 0.99;

/// Relative error of λs = μ and of the gradient from which one more step is exact to rounding.
const LAST_STEP_ERROR: f64 = 1e-5;

/// A solution.
pub(super) struct Barrier {
    /// The point λ, strictly inside the box.
    pub lambda: Vec<f64>,
    /// The maximum.
    pub value: f64,
    /// Factor of Q plus the curvature of the barrier.
    pub factor: Option<Cholesky>,
}

/// Solves from a point, which is moved inside the box.
pub(super) fn solve(
    q: &[f64],
    linear: &[f64],
    start: &[f64],
    mu: f64,
    context: &Context,
) -> Barrier {
    let n = linear.len();
    let margin = 0.1 * mu.min(1.0);
    let mut lambda: Vec<f64> =
        start.iter().map(|value| value.clamp(margin, 1.0 - margin)).collect();
    let mut lower: Vec<f64> = lambda.iter().map(|l| mu / l).collect();
    let mut upper: Vec<f64> = lambda.iter().map(|l| mu / (1.0 - l)).collect();
    let mut product = vec![0.0; n];
    let mut factor = None;
    let mut last = false;
    for _ in 0..MAX_STEPS {
        matrix_vector(q, &lambda, &mut product, context);
        let mut matrix = q.to_vec();
        let mut step: Vec<f64> = Vec::with_capacity(n);
        let mut error = 0.0_f64;
        for i in 0..n {
            let (l, s, w) = (lambda[i], lower[i], upper[i]);
            matrix[i * n + i] += s / l + w / (1.0 - l);
            step.push(linear[i] - product[i] + mu / l - mu / (1.0 - l));
            let gradient = linear[i] - product[i] + s - w;
            let scale = linear[i].abs() + s + w;
            error = error.max((gradient / scale).abs());
            error = error.max((l * s / mu - 1.0).abs()).max(((1.0 - l) * w / mu - 1.0).abs());
        }
        factor = Cholesky::interruptible(matrix, n, context).unwrap_or(None);
        let Some(found) = &factor else { break };
        if last || context.stop_request().is_some() {
            break;
        }
        found.solve(&mut step);
        let (mut primal, mut dual) = (1.0_f64, 1.0_f64);
        let mut changes = Vec::with_capacity(n);
        for i in 0..n {
            let (l, s, w, d) = (lambda[i], lower[i], upper[i], step[i]);
            let ds = (mu - s * d) / l - s;
            let dw = (mu + w * d) / (1.0 - l) - w;
            changes.push((ds, dw));
            let limit = if d < 0.0 { -l / d } else { (1.0 - l) / d };
            primal = primal.min(TO_BOUND * limit);
            dual = dual.min(if ds < 0.0 { -TO_BOUND * s / ds } else { 1.0 });
            dual = dual.min(if dw < 0.0 { -TO_BOUND * w / dw } else { 1.0 });
        }
        for (i, (ds, dw)) in changes.into_iter().enumerate() {
            lambda[i] += primal * step[i];
            lower[i] += dual * ds;
            upper[i] += dual * dw;
        }
        last = error <= LAST_STEP_ERROR;
    }
    matrix_vector(q, &lambda, &mut product, context);
    let logarithms: f64 = lambda.iter().map(|l| l.ln() + (-l).ln_1p()).sum();
    let value = dot(linear, &lambda) - 0.5 * dot(&product, &lambda) + mu * logarithms;
    Barrier { lambda, value, factor }
}
