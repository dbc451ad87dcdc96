//! Phase 2: all vectors and weights of a reduced pool moved together to the least residual (Nguyen
//! 2006, 3.3.3), by L-BFGS from where merging ended.

use super::element::Element;
use super::objective::Objective;
use super::pool::Pool;
use super::rule::Rule;
use crate::context::Context;
use crate::error::Result;
use crate::solver::algebra::dot;

/// Steps remembered.
const MEMORY: usize = 10;

/// Halvings of a step before giving up.
const BACKTRACKS: usize = 25;

/// Share of the predicted decrease that a step must reach.
const ARMIJO: f64 = 1e-4;

/// Relative decrease below which the search ends.
const LEAST_DECREASE: f64 = 1e-9;

/// Most steps unless told otherwise.
const MOST_STEPS: usize = 300;

/// Fewest steps that are worth beginning with unless told otherwise.
const LEAST_STEPS: usize = 5;

/// Kernel values that the steps may compute unless told otherwise.
const MOST_VALUES: usize = 50_000_000;

/// Steps that a pool is worth when nobody says how many: 300, or fewer, down to none, where these
/// would take longer than training such a model.
pub(super) fn usual_steps(original: usize, reduced: usize) -> usize {
    let values = (reduced * (original + reduced)).max(1);
    match MOST_VALUES / values {
        few if few < LEAST_STEPS => 0,
        steps => steps.min(MOST_STEPS),
    }
}

/// Moves `reduced` towards `original`; never ends further away than it began.
///
/// Steps that single precision cannot tell from standing still, as happens when a few features are
/// far larger than the others, are taken in double precision.
pub(super) fn refine<T: Element>(
    rule: &Rule,
    reduced: &mut Pool,
    original: &Pool,
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
    rule: &Rule,
    reduced: &mut Pool,
    original: &Pool,
    iterations: usize,
    context: &Context,
) -> Result<usize> {
    if reduced.len() == 0 || iterations == 0 {
        return Ok(iterations);
    }
    let mut taken = 0;
    let start = reduced.clone();
    let objective = Objective::<T>::new(rule, original, &start, context)?;
    let mut point = objective.flatten(reduced);
    let (mut value, mut gradient) = objective.evaluate(&point)?;
    let mut memory: Vec<(Vec<f64>, Vec<f64>, f64)> = Vec::new();
    while taken < iterations {
        if context.stop_request().is_some() {
            break;
        }
        taken += 1;
        let mut direction = two_loops(&memory, &gradient);
        let mut slope = dot(&direction, &gradient);
        if slope.is_nan() || slope >= 0.0 {
            memory.clear();
            direction = gradient.iter().map(|g| -g).collect();
            slope = -dot(&gradient, &gradient);
        }
        if slope == 0.0 {
            break;
        }
        let first = if memory.is_empty() { (1.0 / (-slope).sqrt()).min(1.0) } else { 1.0 };
        let Some((next, next_value, next_gradient)) =
            line_search(&objective, &point, value, &direction, slope, first)?
        else {
            if memory.is_empty() {
                break;
            }
            memory.clear();
            continue;
        };
        let step: Vec<f64> = next.iter().zip(&point).map(|(a, b)| a - b).collect();
        let bend: Vec<f64> = next_gradient.iter().zip(&gradient).map(|(a, b)| a - b).collect();
        let curvature = dot(&step, &bend);
        if curvature > 1e-12 * dot(&bend, &bend).sqrt() * dot(&step, &step).sqrt() {
            if memory.len() == MEMORY {
                memory.remove(0);
            }
            memory.push((step, bend, 1.0 / curvature));
        }
        let decrease = value - next_value;
        (point, value, gradient) = (next, next_value, next_gradient);
        if decrease <= LEAST_DECREASE * value.abs() {
            break;
        }
    }
    *reduced = objective.pool(&point);
    Ok(taken)
}

/// A point, its value and its gradient.
type Step = (Vec<f64>, f64, Vec<f64>);

fn line_search<T: Element>(
    objective: &Objective<'_, T>,
    point: &[f64],
    value: f64,
    direction: &[f64],
    slope: f64,
    first: f64,
) -> Result<Option<Step>> {
    let mut length = first;
    for _ in 0..BACKTRACKS {
        let next: Vec<f64> = point.iter().zip(direction).map(|(p, d)| p + length * d).collect();
        let (next_value, gradient) = objective.evaluate(&next)?;
        if next_value <= value + ARMIJO * length * slope {
            return Ok(Some((next, next_value, gradient)));
        }
        length *= 0.5;
    }
    Ok(None)
}

/// −H g by the two loops of L-BFGS.
fn two_loops(memory: &[(Vec<f64>, Vec<f64>, f64)], gradient: &[f64]) -> Vec<f64> {
    let mut direction: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut factors = vec![0.0; memory.len()];
    for (factor, (step, bend, inverse)) in factors.iter_mut().zip(memory).rev() {
        *factor = inverse * dot(step, &direction);
        add(&mut direction, -*factor, bend);
    }
    if let Some((_, bend, inverse)) = memory.last() {
        let scale = 1.0 / (inverse * dot(bend, bend));
        direction.iter_mut().for_each(|d| *d *= scale);
    }
    for (factor, (step, bend, inverse)) in factors.iter().zip(memory) {
        let along = inverse * dot(bend, &direction);
        add(&mut direction, factor - along, step);
    }
    direction
}

fn add(to: &mut [f64], factor: f64, what: &[f64]) {
    for (to, x) in to.iter_mut().zip(what) {
        *to += factor * x;
    }
}
