//! One pass of dual coordinate descent.

use super::problem::Loss;
use super::variable::{Band, Variable, Violation, projected};
use crate::kernel::{LinearRows, fetch};

/// Gradients closer to 0 than this move nothing.
const NEGLIGIBLE: f64 = 1e-12;

/// Rows ahead of the current one that are fetched.
const AHEAD: usize = 4;

/// A pass over variables with or without a tube, as the loss says; see [`sweep_box`].
pub(super) fn sweep<R: LinearRows>(
    rows: &R,
    first: usize,
    variables: &mut [Variable],
    active: &mut [u32],
    weights: &mut [f64],
    band: Band,
    loss: Loss,
) -> (usize, Violation) {
    match loss {
        Loss::Tube(epsilon) | Loss::SquaredTube(epsilon) => {
            sweep_tube(rows, first, variables, active, weights, band, epsilon)
        }
        _ => sweep_box(rows, first, variables, active, weights, band),
    }
}

/// A pass over variables without a tube; row `first` + i belongs to variable i. The first of
/// `active`, as many as it says, stay active.
#[inline]
fn sweep_box<R: LinearRows>(
    rows: &R,
    first: usize,
    variables: &mut [Variable],
    active: &mut [u32],
    weights: &mut [f64],
    band: Band,
) -> (usize, Violation) {
    let mut violation = Violation::NONE;
    let mut kept = 0;
    for s in 0..active.len() {
        if let Some(&next) = active.get(s + AHEAD) {
            rows.prefetch(first + next as usize);
            fetch(variables, next as usize);
        }
        let i = active[s];
        let row = first + i as usize;
        let v = &mut variables[i as usize];
        let gradient = rows.dot(row, weights) + v.ridge * v.beta - v.target;
        let side = v.side();
        // Seen from its side, every variable begins at 0 and ends at its bound.
        let slope = side * gradient;
        let followed = if v.beta == 0.0 {
            if slope > band.above {
                continue;
            }
            slope.min(0.0)
        } else if v.beta <= v.lower || v.beta >= v.upper {
            if slope < band.below {
                continue;
            }
            slope.max(0.0)
        } else {
            slope
        };
        active[kept] = i;
        kept += 1;
        violation.see(followed);
        if followed.abs() > NEGLIGIBLE {
            let target = if v.reach > 0.0 {
                (v.beta - gradient * v.reach).clamp(v.lower, v.upper)
            } else {
                edge(v, gradient)
            };
            let step = target - v.beta;
            v.beta = target;
            rows.add(row, step, weights);
        }
    }
    (kept, violation)
}

/// A pass over variables with a tube; otherwise as [`sweep_box`].
#[inline]
fn sweep_tube<R: LinearRows>(
    rows: &R,
    first: usize,
    variables: &mut [Variable],
    active: &mut [u32],
    weights: &mut [f64],
    band: Band,
    epsilon: f64,
) -> (usize, Violation) {
    let mut violation = Violation::NONE;
    let mut kept = 0;
    for s in 0..active.len() {
        if let Some(&next) = active.get(s + AHEAD) {
            rows.prefetch(first + next as usize);
            fetch(variables, next as usize);
        }
        let i = active[s];
        let row = first + i as usize;
        let v = &mut variables[i as usize];
        let gradient = rows.dot(row, weights) + v.ridge * v.beta - v.target;
        let (up, down) = (gradient + epsilon, gradient - epsilon);
        let settled = if v.beta == 0.0 {
            up > band.above && down < band.below
        } else if v.beta >= v.upper {
            up < band.below
        } else {
            v.beta <= v.lower && down > band.above
        };
        if settled {
            continue;
        }
        active[kept] = i;
        kept += 1;
        violation.see(projected(v, gradient, epsilon));
        let target = if v.reach == 0.0 {
            let idle = up >= 0.0 && down <= 0.0;
            if idle { 0.0 } else { edge(v, gradient) }
        } else if up * v.reach < v.beta {
            v.beta - up * v.reach
        } else if down * v.reach > v.beta {
            v.beta - down * v.reach
        } else {
            0.0
        };
        let target = target.clamp(v.lower, v.upper);
        let step = target - v.beta;
        if step.abs() > NEGLIGIBLE {
            v.beta = target;
            rows.add(row, step, weights);
        }
    }
    (kept, violation)
}

/// Where a row of zeros goes: as far as its linear term pulls, if that is not endless.
fn edge(v: &Variable, gradient: f64) -> f64 {
    let bound = if gradient > 0.0 { v.lower } else { v.upper };
    if bound.is_finite() { bound } else { v.beta }
}
