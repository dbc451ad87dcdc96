//! One pass of dual coordinate descent.

use super::active_set::Skipped;
use super::problem::RowLoss;
use super::tuning::dual::{NEGLIGIBLE, ROWS_AHEAD, VARIABLES_AHEAD};
use super::variable::{Band, Variable, Violation, projected};
use crate::solver::linear::rows::{LinearRows, fetch};

/// A pass over the active variables of a list, the first of which, as many as it says, stay active;
/// those that their gradient holds at a bound are skipped. `on_step` is called for each that moves, as it was
/// before, and its new β.
pub(super) fn sweep<R: LinearRows>(
    rows: &R,
    variables: &mut [Variable],
    active: &mut [u32],
    skipped: &mut Skipped,
    weights: &mut [f64],
    band: Band,
    loss: RowLoss,
    on_step: impl FnMut(u32, &Variable, f64),
) -> (usize, Violation) {
    match loss {
        RowLoss::Tube(epsilon) | RowLoss::SquaredTube(epsilon) => {
            sweep_shape(rows, variables, active, skipped, weights, band, Tube(epsilon), on_step)
        }
        _ => sweep_shape(rows, variables, active, skipped, weights, band, Side, on_step),
    }
}

/// What a variable's piece of the dual looks like beside its quadratic part.
trait Shape: Copy {
    /// The part of the gradient that the variable can follow, or nothing when it becomes inactive.
    fn follow(self, variable: &Variable, gradient: f64, band: Band) -> Option<f64>;
    /// The minimum of its piece.
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
        if v.inverse_curvature > 0.0 {
            v.beta - gradient * v.inverse_curvature
        } else {
            edge(v, gradient)
        }
    }
}

/// With ε|β|.
#[derive(Clone, Copy)]
struct Tube(f64);

impl Shape for Tube {
    #[inline(always)]
    fn follow(self, v: &Variable, gradient: f64, band: Band) -> Option<f64> {
        let (up, down) = (gradient + self.0, gradient - self.0);
        let inactive = if v.beta == 0.0 {
            up > band.above && down < band.below
        } else if v.beta >= v.upper {
            up < band.below
        } else {
            v.beta <= v.lower && down > band.above
        };
        (!inactive).then(|| projected(v, gradient, self.0))
    }

    #[inline(always)]
    fn least(self, v: &Variable, gradient: f64) -> f64 {
        let (up, down) = (gradient + self.0, gradient - self.0);
        if v.inverse_curvature == 0.0 {
            let idle = up >= 0.0 && down <= 0.0;
            if idle { 0.0 } else { edge(v, gradient) }
        } else if up * v.inverse_curvature < v.beta {
            v.beta - up * v.inverse_curvature
        } else if down * v.inverse_curvature > v.beta {
            v.beta - down * v.inverse_curvature
        } else {
            0.0
        }
    }
}

#[inline(always)]
fn sweep_shape<R: LinearRows>(
    rows: &R,
    variables: &mut [Variable],
    active: &mut [u32],
    skipped: &mut Skipped,
    weights: &mut [f64],
    band: Band,
    shape: impl Shape,
    mut on_step: impl FnMut(u32, &Variable, f64),
) -> (usize, Violation) {
    let mut violation = Violation { steps: active.len() as u64, ..Violation::default() };
    let mut kept = 0;
    for s in 0..active.len() {
        if let Some(&next) = active.get(s + VARIABLES_AHEAD) {
            fetch(variables, next as usize);
        }
        if let Some(&next) = active.get(s + ROWS_AHEAD) {
            rows.prefetch(variables[next as usize].row as usize);
        }
        let i = active[s];
        let v = variables[i as usize];
        let row = v.row as usize;
        let gradient = rows.dot(row, weights) + v.ridge * v.beta - v.target;
        let Some(followed) = shape.follow(&v, gradient, band) else { continue };
        violation.see(followed);
        if followed == 0.0 {
            variables[i as usize].skip_passes = skipped.skip(i, v.skip_passes);
            continue;
        }
        if v.skip_passes > 0 {
            variables[i as usize].skip_passes = 0;
        }
        active[kept] = i;
        kept += 1;
        if followed.abs() > NEGLIGIBLE {
            let beta = shape.least(&v, gradient).clamp(v.lower, v.upper);
            on_step(i, &v, beta);
            variables[i as usize].beta = beta;
            rows.add(row, beta - v.beta, weights);
        }
    }
    (kept, violation)
}

/// Where a row of zeros goes: as far as its linear term pulls, if that is not endless.
fn edge(v: &Variable, gradient: f64) -> f64 {
    let bound = if gradient > 0.0 { v.lower } else { v.upper };
    if bound.is_finite() { bound } else { v.beta }
}
