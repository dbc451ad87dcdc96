//! The Kernel-Adatron (Frieß, Cristianini and Campbell, 1998): single dual variables in turn.
//!
//! Maximises `Σα − ½ Σ αᵢαⱼyᵢyⱼ(kᵢⱼ + 1)` over 0 ≤ α ≤ U, the two-class machine whose offset Σαy is
//! penalised like a weight, by αᵢ ← clip(αᵢ + η(1 − yᵢfᵢ)/(kᵢᵢ + 1)). For 0 < η < 2 no step lowers the
//! objective; η = 1 is exact coordinate ascent.

use super::{Outcome, Status};
use crate::context::Context;
use crate::kernel::MatrixRows;
use crate::numeric::simd::Real;

/// Options of the solver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// The rate η, between 0 and 2.
    pub rate: f64,
    /// Violation of the optimality conditions at which it ends.
    pub tol: f64,
    /// Most sweeps over all variables.
    pub max_sweeps: u64,
}

/// The variables, and the objective and violation they reach.
///
/// # Panics
/// When there is not one sign and one bound per row.
pub(crate) fn solve<R: MatrixRows>(
    rows: &R,
    signs: &[f64],
    upper: &[f64],
    options: &Options,
    context: &Context,
) -> (Vec<f64>, Outcome) {
    let n = rows.len();
    assert!(signs.len() == n && upper.len() == n, "one sign and one bound per row");
    let mut alpha = vec![0.0; n];
    let mut scores = vec![0.0; n];
    let (mut sweeps, mut steps) = (0, 0);
    let status = loop {
        let worst = violation(&alpha, &scores, signs, upper);
        if worst <= options.tol {
            break Status::Solved;
        }
        if sweeps >= options.max_sweeps {
            break Status::IterationLimit;
        }
        if let Some(stopped) = context.stop_request() {
            break stopped;
        }
        for i in 0..n {
            let slope = 1.0 - signs[i] * scores[i];
            let step = options.rate * slope / (rows.diagonal(i) + 1.0);
            let next = (alpha[i] + step).clamp(0.0, upper[i]);
            let change = signs[i] * (next - alpha[i]);
            if change != 0.0 {
                alpha[i] = next;
                steps += 1;
                let row = &rows.fetch(&[i as u32])[0];
                for (part, piece) in row.iter().zip(rows.pieces().windows(2)) {
                    for (score, k) in scores[piece[0]..piece[1]].iter_mut().zip(part.iter()) {
                        *score += change * (k.to_f64() + 1.0);
                    }
                }
            }
        }
        sweeps += 1;
    };
    let slack = |i: usize| (1.0 - signs[i] * scores[i]).max(0.0);
    let norm: f64 = (0..n).map(|i| alpha[i] * signs[i] * scores[i]).sum();
    let outcome = Outcome {
        status,
        primal: 0.5 * norm + (0..n).map(|i| upper[i] * slack(i)).sum::<f64>(),
        dual: alpha.iter().sum::<f64>() - 0.5 * norm,
        violation: violation(&alpha, &scores, signs, upper),
        iterations: steps,
        blocks: sweeps,
        kernel_rows: rows.requested() / n.max(1) as u64,
    };
    (alpha, outcome)
}

fn violation(alpha: &[f64], scores: &[f64], signs: &[f64], upper: &[f64]) -> f64 {
    let of = |i: usize| {
        let slope = 1.0 - signs[i] * scores[i];
        let up = if alpha[i] < upper[i] { slope } else { 0.0 };
        let down = if alpha[i] > 0.0 { -slope } else { 0.0 };
        up.max(down)
    };
    (0..alpha.len()).map(of).fold(0.0, f64::max)
}
