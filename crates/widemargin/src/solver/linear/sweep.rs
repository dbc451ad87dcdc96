//! One pass of dual coordinate descent.

use super::problem::Loss;
use super::roster::Rests;
use super::variable::{Band, Variable, Variables, Violation, projected};
use crate::solver::linear::rows::LinearRows;

/// Gradients closer to 0 than this move nothing.
const NEGLIGIBLE: f64 = 1e-12;

/// Rows ahead of the current one that are fetched, and variables, which may come from another
/// processor.
const AHEAD: usize = 4;
const VARIABLES_AHEAD: usize = 12;

/// A pass over the variables of a list, the first of which, as many as it says, stay active; those
/// at a bound that they have no reason to leave are sent to rest.
pub(super) fn sweep<R: LinearRows>(
    rows: &R,
    variables: &mut impl Variables,
    active: &mut [u32],
    rests: &mut Rests,
    weights: &mut [f64],
    band: Band,
    loss: Loss,
) -> (usize, Violation) {
    match loss {
        Loss::Tube(epsilon) | Loss::SquaredTube(epsilon) => {
            sweep_shape(rows, variables, active, rests, weights, band, Tube(epsilon))
        }
        _ => sweep_shape(rows, variables, active, rests, weights, band, Side),
    }
}

/// What a variable's piece of the dual looks like beside its quadratic part.
trait Shape: Copy {
    /// The part of the gradient that the variable can follow, or nothing when it is to be set aside.
    fn follow(self, variable: &Variable, gradient: f64, band: Band) -> Option<f64>;
    /// Where its piece is least.
    fn least(self, variable: &Variable, gradient: f64) -> f64;
}

/// Linear on one side of 0.
#[derive(Clone, Copy)]
struct Side;

impl Shape for Side {
    #[inline(always)]
    fn follow(self, v: &Variable, gradient: f64, band: Band) -> Option<f64> {
        // Seen from its side, every variable begins at 0 and ends at its bound.
        let slope = v.side() * gradient;
        if v.beta == 0.0 {
            (slope <= band.above).then(|| slope.min(0.0))
        } else if v.beta <= v.lower || v.beta >= v.upper {
            (slope >= band.below).then(|| slope.max(0.0))
        } else {
            Some(slope)
        }
    }

    #[inline(always)]
    fn least(self, v: &Variable, gradient: f64) -> f64 {
        if v.reach > 0.0 { v.beta - gradient * v.reach } else { edge(v, gradient) }
    }
}

/// With ε|β|.
#[derive(Clone, Copy)]
struct Tube(f64);

impl Shape for Tube {
    #[inline(always)]
    fn follow(self, v: &Variable, gradient: f64, band: Band) -> Option<f64> {
        let (up, down) = (gradient + self.0, gradient - self.0);
        let settled = if v.beta == 0.0 {
            up > band.above && down < band.below
        } else if v.beta >= v.upper {
            up < band.below
        } else {
            v.beta <= v.lower && down > band.above
        };
        (!settled).then(|| projected(v, gradient, self.0))
    }

    #[inline(always)]
    fn least(self, v: &Variable, gradient: f64) -> f64 {
        let (up, down) = (gradient + self.0, gradient - self.0);
        if v.reach == 0.0 {
            let idle = up >= 0.0 && down <= 0.0;
            if idle { 0.0 } else { edge(v, gradient) }
        } else if up * v.reach < v.beta {
            v.beta - up * v.reach
        } else if down * v.reach > v.beta {
            v.beta - down * v.reach
        } else {
            0.0
        }
    }
}

#[inline(always)]
fn sweep_shape<R: LinearRows>(
    rows: &R,
    variables: &mut impl Variables,
    active: &mut [u32],
    rests: &mut Rests,
    weights: &mut [f64],
    band: Band,
    shape: impl Shape,
) -> (usize, Violation) {
    let mut violation = Violation::NONE;
    let mut kept = 0;
    for s in 0..active.len() {
        if let Some(&next) = active.get(s + VARIABLES_AHEAD) {
            variables.fetch(next as usize);
        }
        if let Some(&next) = active.get(s + AHEAD) {
            rows.prefetch(next as usize);
        }
        let i = active[s] as usize;
        let v = variables.get(i);
        let gradient = rows.dot(i, weights) + v.ridge * v.beta - v.target;
        let Some(followed) = shape.follow(&v, gradient, band) else { continue };
        violation.see(followed);
        if followed == 0.0 {
            let nap = rests.send(i as u32, variables.nap(i));
            variables.set_nap(i, nap);
            continue;
        }
        if variables.nap(i) > 0 {
            variables.set_nap(i, 0);
        }
        active[kept] = i as u32;
        kept += 1;
        if followed.abs() > NEGLIGIBLE {
            let target = shape.least(&v, gradient).clamp(v.lower, v.upper);
            variables.set(i, target);
            rows.add(i, target - v.beta, weights);
        }
    }
    (kept, violation)
}

/// Where a row of zeros goes: as far as its linear term pulls, if that is not endless.
fn edge(v: &Variable, gradient: f64) -> f64 {
    let bound = if gradient > 0.0 { v.lower } else { v.upper };
    if bound.is_finite() { bound } else { v.beta }
}
