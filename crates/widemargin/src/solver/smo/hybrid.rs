//! Pair steps and Newton steps in turn, on variables whose matrix rows are at hand.
//!
//! Pair steps begin. When they have cost as much as a Newton step on the variables that are now
//! inside their boxes is expected to, one is taken; then pair steps go on, for as long again where the Newton
//! step did not find its minimum and for a tenth of it where it did. Where few variables wait to join,
//! Newton steps follow each other as long as they lower the violation. A problem that pair steps solve
//! quickly never sees a factor, and Newton steps that fail cost no more than the pair steps. Costs are counted,
//! not measured, so that the result depends neither on the machine nor on the number of threads.

use super::decompose::{LOOK_STEPS, worst};
use super::inner::{Inner, InnerMatrix, Masks, padded};
use super::newton::Newton;
use super::problem::Options;
use super::state::State;
use crate::context::Context;
use crate::numeric::simd::Real;

/// Floating-point operations of a factorisation in the time in which a pair step passes one entry of
/// its two rows: a factor is limited by arithmetic, a pair step by loads.
const OPERATIONS_PER_ENTRY: f64 = 8.0;

/// Entries of a product with the matrix in the same time.
const PRODUCTS_PER_ENTRY: f64 = 4.0;

/// Cost of a Newton step of any size: its vectors.
const FIXED: f64 = 1e5;

/// Factors that a first Newton step costs with its corrections; those that follow begin nearer.
const FIRST_FACTORS: f64 = 3.0;

/// Fewest variables inside their boxes for which a Newton step pays.
const FEWEST: usize = 8;

/// Cost of pair steps after a Newton step that found its minimum, in units of the latter's: enough to
/// bring those variables inside that it could not let in. As much as it cost after one that did not.
const SOLVED_SHARE: f64 = 0.1;

/// Share of the tolerance to which a Newton step knows its multipliers.
const PRECISE: f64 = 0.1;

/// Share to which Newton steps must lower the violation for the next to follow at once, and how many in a
/// row may miss that.
const FALLS: f64 = 0.5;
const MOST_IDLE: usize = 3;

/// Pair steps at a time for which setting up their masks does not count.
const LEAST_STEPS: u64 = 32;

/// Alternates between the two kinds of steps; keeps account from call to call.
pub(super) struct Hybrid {
    newton: Newton,
    /// Cost of the pair steps since the last Newton step.
    spent: f64,
    /// What they may cost before the next, from the cost of the last one.
    allowance: f64,
    /// Whether no Newton step was taken yet.
    is_first: bool,
    /// See [`Options::pairs_share`].
    pairs_share: f64,
    /// Whether the last Newton step did so well that pair steps would be in the way of the next.
    goes_on: bool,
    /// Lowest violation after a Newton step, and how many in a row did not lower it.
    lowest: f64,
    idle: usize,
    /// Most variables of a factor.
    most: usize,
}

impl Hybrid {
    /// No factor takes more than half of the memory for kernel rows with its corrections, which need
    /// as much again.
    pub(super) fn new(options: &Options, context: &Context) -> Self {
        let room = (context.cache_bytes() / (4 * size_of::<f64>())).isqrt();
        let most = options.newton_up_to.min(room);
        Self {
            newton: Newton::default(),
            spent: 0.0,
            allowance: 0.0,
            is_first: true,
            goes_on: false,
            lowest: f64::INFINITY,
            idle: 0,
            pairs_share: options.pairs_share,
            most,
        }
    }

    /// The same from a point that may be near the solution: its active set is known then, and the first Newton step
    /// costs what a later one does. Pair steps would have to cost as much as a few factors first.
    pub(super) fn begun_near(self, is_near: bool) -> Self {
        Self { is_first: !is_near, ..self }
    }

    /// Lowers the objective over the variables of `state` until their violation is at most `tol`,
    /// `max_steps` were taken or a stop was asked for; returns the steps, a Newton step counted as one
    /// for each variable it may move.
    pub(super) fn descend<T: Real, M: InnerMatrix<T>>(
        &mut self,
        state: &mut State,
        mut matrix: M,
        tol: f64,
        max_steps: u64,
        context: &Context,
    ) -> u64 {
        self.forget();
        let mut steps = 0;
        loop {
            let (taken, is_due) =
                self.pairs_to_newton(state, &mut matrix, tol, max_steps - steps, context);
            steps += taken;
            if !is_due {
                return steps;
            }
            steps += self.newton_step(state, &mut matrix, tol, context);
            if steps >= max_steps || context.stop_request().is_some() {
                return steps.min(max_steps);
            }
        }
    }

    /// As [`descend`](Self::descend), but ends after a Newton step, so that other variables can join before
    /// the next. Until [`forget`](Self::forget) is called, the variables of one call come first in the next.
    pub(super) fn descend_and_end<T: Real, M: InnerMatrix<T>>(
        &mut self,
        state: &mut State,
        matrix: &mut M,
        tol: f64,
        max_steps: u64,
        context: &Context,
    ) -> u64 {
        let (steps, is_due) = self.pairs_to_newton(state, matrix, tol, max_steps, context);
        if !is_due {
            return steps;
        }
        (steps + self.newton_step(state, matrix, tol, context)).min(max_steps)
    }

    /// Pair steps come before the next Newton step: many variables joined.
    pub(super) fn pause(&mut self) {
        self.goes_on = false;
    }

    /// The next Newton step is on other variables.
    pub(super) fn forget(&mut self) {
        self.newton.forget();
        self.goes_on = false;
        (self.lowest, self.idle) = (f64::INFINITY, 0);
    }

    /// Takes pair steps until the violation is at most `tol`, `max_steps` were taken, a stop was asked for
    /// or a Newton step pays; returns the steps and whether it does.
    fn pairs_to_newton<T: Real, M: InnerMatrix<T>>(
        &mut self,
        state: &mut State,
        matrix: &mut M,
        tol: f64,
        max_steps: u64,
        context: &Context,
    ) -> (u64, bool) {
        let width = padded(state.len());
        // A kernel that is not definite may have a negative diagonal, which no damping makes definite.
        let is_convex = state.mean_diagonal() > 0.0;
        if std::mem::take(&mut self.goes_on) && is_convex {
            return (0, true);
        }
        let mut steps = 0;
        loop {
            let due = if is_convex { self.due(state, width) } else { f64::INFINITY } - self.spent;
            let burst = (due / width as f64).min(1e9).ceil().max(0.0) as u64;
            let burst = burst.max(LEAST_STEPS).min(max_steps - steps);
            let taken = pair_steps(state, matrix, tol, burst, context);
            steps += taken;
            self.spent += taken as f64 * width as f64;
            if taken < burst || steps >= max_steps {
                return (steps, false);
            }
            if is_convex && self.spent >= self.due(state, width) {
                return (steps, true);
            }
        }
    }

    /// What pair steps may cost before the next Newton step, in entries that a pair step passes; the
    /// first Newton step is expected to take several factors.
    fn due(&self, state: &State, width: usize) -> f64 {
        let order = state.inside_count();
        if order > self.most {
            return f64::INFINITY;
        }
        let order = order.max(FEWEST) as f64;
        let factors = if self.is_first { FIRST_FACTORS } else { SOLVED_SHARE };
        let cost = factors * entries(order * order * order, order * width as f64);
        self.pairs_share * self.allowance.max(cost)
    }

    /// One Newton step on the variables of `state`; returns how many it may move. The next follows at once
    /// where this one did well: pair steps would only disturb what it agreed on.
    fn newton_step<T: Real, M: InnerMatrix<T>>(
        &mut self,
        state: &mut State,
        matrix: &mut M,
        tol: f64,
        context: &Context,
    ) -> u64 {
        (0..state.len()).for_each(|v| matrix.ensure(v));
        // An interruption shows at the next look at limits.
        let taken = self.newton.step(state, matrix, self.most, PRECISE * tol, context);
        let taken = taken.unwrap_or_default();
        let after = worst(&state.extremes());
        self.idle = if after <= FALLS * self.lowest { 0 } else { self.idle + 1 };
        self.lowest = self.lowest.min(after);
        self.goes_on = taken.is_solved && self.idle < MOST_IDLE;
        let cost = entries(taken.cubes, taken.rows * padded(state.len()) as f64);
        (self.spent, self.is_first) = (0.0, false);
        self.allowance = if taken.is_solved { SOLVED_SHARE * cost } else { cost };
        state.len() as u64
    }
}

/// The cost of factors with so many multiplications and of products with so many entries.
fn entries(cubes: f64, products: f64) -> f64 {
    FIXED + cubes / 3.0 / OPERATIONS_PER_ENTRY + products / PRODUCTS_PER_ENTRY
}

/// Second-order pair steps among the variables of `state`; returns how many.
fn pair_steps<T: Real, M: InnerMatrix<T>>(
    state: &mut State,
    matrix: &mut M,
    tol: f64,
    max_steps: u64,
    context: &Context,
) -> u64 {
    let (q, width) = (state.len(), padded(state.len()));
    let mut masks = Masks::new(width, state.group_count);
    for v in 0..q {
        masks.set(v, state.group(v), state.can_rise(v), state.can_fall(v));
    }
    let mut rough_diagonal: Vec<T> = state.diagonal.iter().map(|&d| T::from_f64(d)).collect();
    rough_diagonal.resize(width, T::ONE);
    state.gradient.resize(width, 0.0);
    let mut inner = Inner {
        set: context.instruction_set(),
        matrix,
        beta: &mut state.beta,
        gradient: &mut state.gradient,
        lower: &state.lower,
        upper: &state.upper,
        diagonal: &state.diagonal,
        rough_diagonal: &rough_diagonal,
        ridge: state.ridge.as_deref(),
        masks,
        groups: &state.groups,
        group_count: state.group_count,
    };
    let mut steps = 0;
    while steps < max_steps && context.stop_request().is_none() {
        let most = (max_steps - steps).min(LOOK_STEPS);
        let taken = inner.run(tol, most);
        steps += taken;
        if taken < most {
            break;
        }
    }
    state.gradient.truncate(q);
    steps
}
