//! The linear one-class machine: a half-space ⟨w, x⟩ ≥ ρ away from the origin.
//!
//! `min ½‖Σ αᵢxᵢ‖²` with 0 ≤ αᵢ ≤ uᵢ and Σα = ν Σu. A pass computes the gradients of all
//! variables that do not seem settled, then moves pairs of the worst violators against each other
//! with fresh ones, so that the sum stays. Chou, Lin and Lin (2020). Variables begin at their bounds
//! for the rows that are least like the mean.

use super::problem::{Options, Passes, Solution, squared_norm};
use super::products::Products;
use super::table::{Listed, Table};
use crate::context::Context;
use crate::kernel::LinearRows;
use crate::solver::Status;

/// One in so many rows is moved between two looks at all gradients.
const MOVED_SHARE: usize = 10;

/// One in so many rows tells the mean that variables begin with.
const MEAN_STRIDE: usize = 3;

/// A half-space.
#[derive(Clone, Debug)]
pub struct Half {
    /// Weights, variables and proof.
    pub solution: Solution,
    /// ρ
    pub offset: f64,
}

/// Finds the half-space; `upper` bounds every variable and `total` is their sum, at most Σ upper.
///
/// The tolerance bounds the range of gradients over variables that can move.
pub fn solve<R: LinearRows>(
    rows: &R,
    upper: &[f64],
    total: f64,
    options: &Options,
    context: &Context,
) -> Half {
    let products = Products::new(rows, true, context);
    let mut alpha = begin(&products, upper, total);
    let mut weights = products.transposed(&Listed::new(&alpha));
    let squares: Vec<f64> = (0..rows.rows()).map(|i| rows.squared_norm(i)).collect();
    let mut passes = Passes::new(options, context);
    let mut scratch = vec![0.0; rows.width()];
    let (mut rising, mut falling) = (Vec::new(), Vec::new());
    let mut gradient = vec![0.0; rows.rows()];
    let mut active: Vec<u32> = (0..alpha.len() as u32).collect();
    let (status, violation) = loop {
        let whole = active.len() == alpha.len();
        if whole {
            products.write_values(&weights, &mut gradient);
        } else {
            active.iter().for_each(|&i| gradient[i as usize] = rows.dot(i as usize, &weights));
        }
        let (low, high) = range(&active, &alpha, upper, &gradient);
        let violation = (high - low).max(0.0);
        let stop = passes.stop();
        if violation <= options.tol && whole {
            break (Status::Solved, violation);
        } else if violation <= options.tol || (stop.is_some() && !whole) {
            active = (0..alpha.len() as u32).collect();
            continue;
        } else if let Some(status) = stop {
            break (status, violation);
        }
        rising.clear();
        falling.clear();
        let shrinking = options.shrinking;
        active.retain(|&i| {
            let i = i as usize;
            let (rises, falls) = (alpha[i] < upper[i], alpha[i] > 0.0);
            if rises && gradient[i] < high {
                rising.push(i);
            }
            if falls && gradient[i] > low {
                falling.push(i);
            }
            !shrinking || (gradient[i] <= high || falls) && (gradient[i] >= low || rises)
        });
        let pairs = (active.len() / MOVED_SHARE).max(1).min(rising.len()).min(falling.len());
        keep_first(&mut rising, pairs, |i| gradient[i]);
        keep_first(&mut falling, pairs, |i| -gradient[i]);
        for (&up, &down) in rising.iter().zip(&falling) {
            if up == down || alpha[up] >= upper[up] || alpha[down] <= 0.0 {
                continue;
            }
            let difference = rows.dot(down, &weights) - rows.dot(up, &weights);
            if difference <= 0.0 {
                continue;
            }
            rows.add(up, 1.0, &mut scratch);
            let product = rows.dot(down, &scratch);
            rows.visit(up, |j, _| scratch[j] = 0.0);
            let curvature = (squares[up] + squares[down] - 2.0 * product).max(1e-12);
            let step = (difference / curvature).min(upper[up] - alpha[up]).min(alpha[down]);
            alpha[up] += step;
            alpha[down] -= step;
            rows.add(up, step, &mut weights);
            rows.add(down, -step, &mut weights);
        }
        passes.finish(pairs, violation, || -0.5 * squared_norm(&weights));
    };
    let offset = offset(&alpha, upper, &gradient);
    let half = 0.5 * squared_norm(&weights);
    let short = gradient.iter().zip(upper).map(|(g, u)| u * (offset - g).max(0.0));
    let primal = half - total * offset + short.sum::<f64>();
    let outcome = passes.outcome(status, primal, -half, violation);
    Half { solution: Solution { weights, dual: alpha, outcome }, offset }
}

/// Variables at their bounds for the rows of least ⟨m, x⟩ with m the mean of some rows, as many as
/// `total` takes.
fn begin<R: LinearRows>(products: &Products<'_, R>, upper: &[f64], total: f64) -> Vec<f64> {
    let mut alpha = vec![0.0; upper.len()];
    (0..upper.len()).step_by(MEAN_STRIDE).for_each(|i| alpha[i] = upper[i]);
    let values = products.values(&products.transposed(&Listed::new(&alpha)));
    let mut order: Vec<usize> = (0..upper.len()).collect();
    // Where bounds are about equal the rows before this place are those that take all of theirs.
    let share = total / upper.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let last = (share * upper.len() as f64) as usize;
    if last < order.len() {
        let by_value = |a: &usize, b: &usize| values[*a].total_cmp(&values[*b]).then(a.cmp(b));
        order.select_nth_unstable_by(last, by_value);
    }
    let mut rest = total;
    for i in order {
        alpha[i] = upper[i].min(rest).max(0.0);
        rest -= alpha[i];
    }
    alpha
}

/// Smallest gradient of an active variable that can rise and largest of one that can fall.
fn range(active: &[u32], alpha: &[f64], upper: &[f64], gradient: &[f64]) -> (f64, f64) {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for &i in active {
        let i = i as usize;
        if alpha[i] < upper[i] {
            low = low.min(gradient[i]);
        }
        if alpha[i] > 0.0 {
            high = high.max(gradient[i]);
        }
    }
    (low, high)
}

/// Keeps the `count` entries with the smallest keys, in order.
fn keep_first(list: &mut Vec<usize>, count: usize, key: impl Fn(usize) -> f64) {
    let order = |a: &usize, b: &usize| key(*a).total_cmp(&key(*b)).then(a.cmp(b));
    if count < list.len() {
        list.select_nth_unstable_by(count, order);
        list.truncate(count);
    }
    list.sort_unstable_by(order);
}

/// ρ: the mean gradient of variables inside their bounds, or the middle of what is possible.
fn offset(alpha: &[f64], upper: &[f64], gradient: &[f64]) -> f64 {
    let free = (0..alpha.len()).filter(|&i| alpha[i] > 0.0 && alpha[i] < upper[i]);
    let (mut sum, mut count) = (0.0, 0.0);
    for i in free {
        sum += gradient[i];
        count += 1.0;
    }
    if count > 0.0 {
        return sum / count;
    }
    let all: Vec<u32> = (0..alpha.len() as u32).collect();
    let (low, high) = range(&all, alpha, upper, gradient);
    match (low.is_finite(), high.is_finite()) {
        (true, true) => 0.5 * (low + high),
        (true, false) => low,
        _ => high,
    }
}
