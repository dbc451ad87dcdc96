//! Pair steps and Newton steps in turn, on variables whose matrix rows are at hand.
//!
//! Pair steps begin. When they have cost as much as a Newton step on the variables that are now
//! inside their boxes would, one is taken; then pair steps go on, for as long again where the Newton
//! step did not find its minimum and for a tenth of it where it did. A problem that pair steps solve
//! quickly never sees a factor, and Newton steps that fail cost no more than the pair steps. Costs are counted,
//! not measured, so that the result depends neither on the machine nor on the number of threads.

use super::decompose::LOOK_STEPS;
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

/// Fewest variables inside their boxes for which a Newton step pays.
const FEWEST: usize = 8;

/// Cost of pair steps after a Newton step that found its minimum, in units of the latter's: enough to
/// bring those variables inside that it could not let in. As much as it cost after one that did not.
const SOLVED_SHARE: f64 = 0.1;

/// Share of the tolerance to which a Newton step knows its multipliers.
const PRECISE: f64 = 0.1;

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
            pairs_share: options.pairs_share,
            most,
        }
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
        let width = padded(state.len());
        // A kernel that is not definite may have a negative diagonal, which no damping makes definite.
        let is_convex = state.mean_diagonal() > 0.0;
        let mut steps = 0;
        loop {
            let due = if is_convex { self.due(state, width) - self.spent } else { f64::INFINITY };
            let burst = (due / width as f64).min(1e9).ceil().max(0.0) as u64;
            let burst = burst.max(LEAST_STEPS).min(max_steps - steps);
            let taken = pair_steps(state, &mut matrix, tol, burst, context);
            steps += taken;
            self.spent += taken as f64 * width as f64;
            if taken < burst || steps >= max_steps {
                return steps;
            }
            if !is_convex || self.spent < self.due(state, width) {
                continue;
            }
            steps += self.newton_step(state, &mut matrix, tol, context);
            if steps >= max_steps || context.stop_request().is_some() {
                return steps.min(max_steps);
            }
        }
    }

    /// What pair steps may cost before the next Newton step, in entries that a pair step passes; the
    /// first Newton step is expected to take one factor.
    fn due(&self, state: &State, width: usize) -> f64 {
        let order = state.inside_count();
        if order > self.most {
            return f64::INFINITY;
        }
        let order = order.max(FEWEST) as f64;
        let factors = if self.is_first { 1.0 } else { SOLVED_SHARE };
        let cost = factors * entries(order * order * order, order * width as f64);
        self.pairs_share * self.allowance.max(cost)
    }

    fn newton_step<T: Real, M: InnerMatrix<T>>(
        &mut self,
        state: &mut State,
        matrix: &mut M,
        tol: f64,
        context: &Context,
    ) -> u64 {
        (0..state.len()).for_each(|v| matrix.ensure(v));
        let width = padded(state.len()) as f64;
        // An interruption shows at the next look at limits.
        let (most, tol) = (self.most, PRECISE * tol);
        let taken = self.newton.step(state, matrix, most, tol, context).unwrap_or_default();
        let cost = entries(taken.cubes, taken.rows * width);
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
