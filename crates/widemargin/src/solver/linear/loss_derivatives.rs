//! Losses of many rows at once with their derivatives.
//!
//! exp and log(1 + ·) are polynomials without branches, good to some units in the last place, so
//! that the compiler makes vectors of the loops; results have the same bits for every instruction
//! set.

use super::problem::{Problem, RowLoss};
use crate::numeric::simd::exp_of_negative;

/// Rows whose losses are computed in one loop.
pub(super) const BLOCK: usize = 64;

/// Replaces the values ⟨w, xᵢ⟩ of up to [`BLOCK`] rows, the first of which is row `first`, by the
/// slopes Cᵢℓ′; their loss.
#[inline(always)]
pub(super) fn slopes(problem: &Problem<'_>, first: usize, values: &mut [f64]) -> f64 {
    let targets = &problem.targets[first..][..values.len()];
    let costs = &problem.costs[first..][..values.len()];
    let mut losses = [0.0; BLOCK];
    let losses = &mut losses[..values.len()];
    match problem.loss {
        RowLoss::Logistic => {
            for i in 0..values.len() {
                let margin = targets[i] * values[i];
                let small = exp_of_negative(-margin.abs());
                let share = 1.0 / (1.0 + small);
                let other = if margin < 0.0 { share } else { small * share };
                losses[i] = costs[i] * (log_1p(small) - margin.min(0.0));
                values[i] = -targets[i] * costs[i] * other;
            }
        }
        RowLoss::ExpectedSquaredHinge => {
            for i in 0..values.len() {
                let (above, below) = ((1.0 - values[i]).max(0.0), (1.0 + values[i]).max(0.0));
                let (first, second) = ((1.0 + targets[i]) * above, (1.0 - targets[i]) * below);
                losses[i] = 0.5 * costs[i] * (first * above + second * below);
                values[i] = costs[i] * (second - first);
            }
        }
        RowLoss::SquaredHinge => {
            for i in 0..values.len() {
                let short = (1.0 - targets[i] * values[i]).max(0.0);
                losses[i] = costs[i] * short * short;
                values[i] = -2.0 * costs[i] * targets[i] * short;
            }
        }
        loss => {
            for i in 0..values.len() {
                losses[i] = costs[i] * loss.value(values[i], targets[i]);
                values[i] = costs[i] * loss.derivatives(values[i], targets[i]).0;
            }
        }
    }
    losses.iter().sum()
}

/// Cℓ″ of a row whose Cℓ′ is `slope`.
#[inline(always)]
pub(crate) fn curvature(problem: &Problem<'_>, row: usize, slope: f64) -> f64 {
    let (loss, cost) = (problem.loss, problem.costs[row]);
    match loss {
        RowLoss::ExpectedSquaredHinge => {
            // Within the margins the slope is 2C(z − t); outside one of the two terms is left.
            let (above, below) = (1.0 + problem.targets[row], 1.0 - problem.targets[row]);
            if slope >= 2.0 * cost * below {
                cost * below
            } else if slope <= -2.0 * cost * above {
                cost * above
            } else {
                2.0 * cost
            }
        }
        RowLoss::Logistic if cost > 0.0 => slope.abs() * (1.0 - slope.abs() / cost),
        _ if loss.is_squared() && slope != 0.0 => 2.0 * cost,
        _ => 0.0,
    }
}

/// log(1 + x) for 0 ≤ x ≤ 1: 2 artanh(s) with s = x / (2 + x) ≤ 1/3.
#[inline(always)]
fn log_1p(x: f64) -> f64 {
    const TERMS: usize = 17;
    let s = x / (2.0 + x);
    let square = s * s;
    let mut sum = 1.0 / (2 * TERMS + 1) as f64;
    for k in (0..TERMS).rev() {
        sum = sum * square + 1.0 / (2 * k + 1) as f64;
    }
    2.0 * s * sum
}

/// log(x) for a positive normal number: k log 2 + 2 artanh(s) with s = (m − 1) / (m + 1), where
/// x = 2ᵏm and m is between √½ and √2.
#[inline(always)]
pub(super) fn log(x: f64) -> f64 {
    const LOG_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LOG_LOW: f64 = 1.908_214_929_270_587_7e-10;
    const ROOT: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
    const ROUNDER: u64 = 6_755_399_441_055_744.0_f64.to_bits();
    const TERMS: usize = 11;
    let whole = (x.to_bits().wrapping_sub(ROOT) as i64 >> 52) as u64;
    let m = f64::from_bits(x.to_bits().wrapping_sub(whole << 52));
    let k = f64::from_bits(ROUNDER.wrapping_add(whole)) - f64::from_bits(ROUNDER);
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    let mut sum = 1.0 / (2 * TERMS + 1) as f64;
    for k in (0..TERMS).rev() {
        sum = sum * square + 1.0 / (2 * k + 1) as f64;
    }
    k * LOG_HIGH + (2.0 * s * sum + k * LOG_LOW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_of_more_than_one_are_close_to_those_of_the_library() {
        for k in 0..=720_000_u32 {
            let x = (-f64::from(k) * 1e-3).exp();
            let (exact, own) = (x.ln_1p(), log_1p(x));
            let allowed = 4.0 * f64::EPSILON * exact + f64::MIN_POSITIVE;
            assert!((own - exact).abs() <= allowed, "{x:e}: {own:e} for {exact:e}");
        }
    }

    #[test]
    fn logarithms_are_close_to_those_of_the_library() {
        for k in -600_000..=600_000 {
            let x = (f64::from(k) * 1e-3).exp();
            let (exact, own) = (x.ln(), log(x));
            assert!((own - exact).abs() <= 4.0 * f64::EPSILON * exact.abs(), "{x:e}: {own:e}");
        }
    }

    #[test]
    fn slopes_and_losses_are_those_of_single_rows() {
        let sides = [1.0, -1.0, 1.0, -1.0, 1.0];
        let shares = [0.2, -0.9, 1.0, 0.0, -0.6];
        let costs = [1.0, 2.0, 0.0, 0.5, 3.0];
        for (loss, targets) in [
            (RowLoss::Logistic, sides),
            (RowLoss::SquaredHinge, sides),
            (RowLoss::ExpectedSquaredHinge, sides),
            (RowLoss::ExpectedSquaredHinge, shares),
            (RowLoss::SquaredTube(0.1), sides),
        ] {
            let problem = Problem { loss, targets: &targets, costs: &costs, shift: 0.0 };
            let values = [0.3, -40.0, 2.0, 900.0, -0.7];
            let mut found = values;
            let total = slopes(&problem, 0, &mut found);
            let mut expected = 0.0;
            for i in 0..values.len() {
                let (slope, second) = loss.derivatives(values[i], targets[i]);
                expected += costs[i] * loss.value(values[i], targets[i]);
                assert!((found[i] - costs[i] * slope).abs() < 1e-12, "{loss:?} {i}");
                let own = curvature(&problem, i, found[i]);
                assert!((own - costs[i] * second).abs() < 1e-12, "{loss:?} {i}");
            }
            assert!((total - expected).abs() <= 1e-12 * expected, "{loss:?}");
        }
    }
}
