//! Phase 2: all vectors and weights of a reduced pool moved together to the least residual (Nguyen
//! 2006, 3.3.3), by damped steps of Gauss and Newton (Levenberg 1944, Marquardt 1963) from where
//! merging ended.
//!
//! A step solves (JᵀJ + λM)s = −g, M the blocks of single vectors and weights, by conjugate gradients
//! that M preconditions and that end where they gain little; λ follows how much of the decrease that
//! the curvature predicted a step brought.

use super::curvature::Curvature;
use super::element::Element;
use super::merge_kernel::MergeKernel;
use super::objective::Objective;
use super::pool::VectorPool;
use super::sums::reweigh;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::numeric::algebra::dot;

/// First damping.
const DAMPING: f64 = 0.1;

/// Damping above which no step is worth trying.
const MOST_DAMPING: f64 = 1e6;

/// Share of the predicted decrease above which damping falls, and below which it grows.
const DAMPING_THRESHOLDS: (f64, f64) = (0.75, 0.4);

/// Conjugate gradients of one step.
const MOST_PRODUCTS: usize = 50;

/// Decrease of the last tenth of conjugate gradients, as a share of all, that is worth going on for.
const LEAST_GAIN: f64 = 5e-3;

/// Relative decrease below which the search ends.
const LEAST_DECREASE: f64 = 1e-9;

/// Most steps by default.
const MOST_STEPS: usize = 30;

/// Kernel values that the steps may compute by default.
const MOST_VALUES: usize = 30_000_000;

/// Steps that a pool is worth by default: 30, or fewer, down to one, where these would
/// take longer than training such a model.
pub(super) fn usual_steps(original: usize, reduced: usize) -> usize {
    let values =
        reduced * (original + reduced) + products(original, reduced, 1) * reduced * reduced;
    (MOST_VALUES / values.max(1)).clamp(1, MOST_STEPS)
}

/// Conjugate gradients of a step: those that cost somewhat more than the gradient does, and twice as
/// many later, when they are worth it.
fn products(original: usize, reduced: usize, step: usize) -> usize {
    (3 * step.min(2) * (original + reduced) / (2 * reduced.max(1))).clamp(5, MOST_PRODUCTS)
}

/// Moves `reduced` towards `original` and gives it the best weights; never ends further away than it
/// began.
///
/// Steps that are lost in rounding in single precision, as happens when a few features are
/// far larger than the others, are taken in double precision.
pub(super) fn refine<T: Element>(
    rule: &MergeKernel,
    reduced: &mut VectorPool,
    original: &VectorPool,
    iterations: usize,
    context: &Context,
) -> Result<()> {
    let taken = descend::<T>(rule, reduced, original, iterations, context)?;
    if size_of::<T>() < size_of::<f64>() && taken < iterations {
        descend::<f64>(rule, reduced, original, iterations - taken, context)?;
    }
    Ok(())
}

/// Goes down as long as it goes on, at most `iterations` steps; returns their number.
fn descend<T: Element>(
    rule: &MergeKernel,
    reduced: &mut VectorPool,
    original: &VectorPool,
    iterations: usize,
    context: &Context,
) -> Result<usize> {
    if reduced.len() == 0 || iterations == 0 {
        return Ok(iterations);
    }
    let start = reduced.clone();
    let objective = Objective::<T>::new(rule, original, &start, context)?;
    let mut point = objective.flatten(reduced);
    let ended = steps(&objective, original, reduced, &mut point, iterations);
    if let Ok(Ended::Whole(taken)) = ended {
        return Ok(taken);
    }
    let taken = match ended {
        // The point so far.
        Err(Error::Interrupted) => iterations,
        Ok(Ended::Whole(taken) | Ended::Point(taken)) => taken,
        Err(error) => return Err(error),
    };
    let mut last = objective.pool(&point);
    match reweigh::<f64>(&rule.kernel(), &mut last, original, &context.with_grace()) {
        // It began with weights of its own.
        Err(Error::Interrupted) => {}
        weighed => {
            weighed?;
            *reduced = last;
        }
    }
    Ok(taken)
}

/// How steps ended, and their number.
enum Ended {
    /// With the best weights, in the pool.
    Whole(usize),
    /// At the point.
    Point(usize),
}

/// Moves `point` downwards.
fn steps<T: Element>(
    objective: &Objective<'_, T>,
    original: &VectorPool,
    reduced: &mut VectorPool,
    point: &mut Vec<f64>,
    iterations: usize,
) -> Result<Ended> {
    let context = objective.context;
    let (mut value, mut gradient) = objective.evaluate(point)?;
    let mut curvature = Curvature::new(objective, point)?;
    let (mut taken, mut damping) = (0, DAMPING);
    while taken < iterations && damping <= MOST_DAMPING && context.stop_request().is_none() {
        taken += 1;
        let most = products(original.len(), reduced.len(), taken);
        let (step, predicted) = solve(&curvature, &gradient, damping, most)?;
        let next: Vec<f64> = point.iter().zip(&step).map(|(p, s)| p + s).collect();
        if taken == iterations {
            // The best weights give the gain of the last step.
            let mut last = objective.pool(&next);
            if reweigh::<f64>(&objective.rule.kernel(), &mut last, original, context)? < value {
                *reduced = last;
                return Ok(Ended::Whole(taken));
            }
            break;
        }
        let (next_value, next_gradient) = objective.evaluate(&next)?;
        let share = (value - next_value) / predicted;
        if !(next_value < value && share > 0.0) {
            damping *= 5.0;
            continue;
        }
        if share > DAMPING_THRESHOLDS.0 {
            damping /= 3.0;
        } else if share < DAMPING_THRESHOLDS.1 {
            damping *= 3.0;
        }
        let decrease = value - next_value;
        (*point, value, gradient) = (next, next_value, next_gradient);
        if decrease <= LEAST_DECREASE * value.abs() {
            break;
        }
        curvature = Curvature::new(objective, point)?;
    }
    Ok(Ended::Point(taken))
}

/// The step s of (JᵀJ + λM)s = −g by at most `most` conjugate gradients, and the decrease −g·s − ½sJᵀJs
/// that it promises.
fn solve<T: Element>(
    curvature: &Curvature<'_, T>,
    gradient: &[f64],
    damping: f64,
    most: usize,
) -> Result<(Vec<f64>, f64)> {
    let mut step = vec![0.0; gradient.len()];
    let mut rest: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut preconditioned = curvature.divide_by_blocks(&rest);
    let mut direction = preconditioned.clone();
    let mut size = dot(&rest, &preconditioned);
    // The damped decrease after every product.
    let mut gains = vec![0.0];
    while gains.len() <= most && size > 0.0 {
        let mut image = curvature.multiply(&direction)?;
        add(&mut image, damping, &curvature.multiply_blocks(&direction));
        let along = dot(&direction, &image);
        if along.is_nan() || along <= 0.0 {
            break;
        }
        let length = size / along;
        add(&mut step, length, &direction);
        add(&mut rest, -length, &image);
        let gain = gains[gains.len() - 1] + 0.5 * length * size;
        gains.push(gain);
        let before = gains.len() / 10 + 2;
        if gains.len() > before && gain - gains[gains.len() - 1 - before] < LEAST_GAIN * gain {
            break;
        }
        preconditioned = curvature.divide_by_blocks(&rest);
        let next = dot(&rest, &preconditioned);
        direction.iter_mut().zip(&preconditioned).for_each(|(d, e)| *d = e + next / size * *d);
        size = next;
    }
    // Half of −g·s is the decrease of the damped model.
    Ok((step, gains[gains.len() - 1]))
}

fn add(to: &mut [f64], factor: f64, what: &[f64]) {
    for (to, x) in to.iter_mut().zip(what) {
        *to += factor * x;
    }
}
