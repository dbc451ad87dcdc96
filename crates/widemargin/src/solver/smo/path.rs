//! Many problems over one matrix.
//!
//! Who solves the same problem with other boxes again and again finds nearly the same variables
//! inside them. Those are kept, with their part of the matrix, from problem to problem: pair steps
//! run among them and the worst violators alone, in the processor's cache, until no variable violates
//! the optimality conditions, which is seen on the gradient of all variables. Newton steps on the
//! active variables take over where pair steps are slow.

use super::active_block::ActiveBlock;
use super::decompose::{
    INNER_STEPS, SUBPROBLEM_SHARE, SolveStatistics, ending_status, finish, fresh_gradient, worst,
};
use super::hybrid::Hybrid;
use super::path_rows::{PathRows, nonzero_places};
use super::problem::{Options, Problem, Solution};
use super::select::{is_active, worst_violators};
use super::state::{Extremes, State, extremes_of};
use crate::context::Context;
use crate::numeric::simd::Real;
use crate::solver::Status;

/// Fewest variables that may join the others at a time.
const LEAST_JOINING: usize = 64;

/// One of so many of all variables may join at a time where that is more.
const JOIN_SHARE: usize = 512;

/// Active variables from which on shrinking pays where many can be left out, of a problem so
/// many times as large.
const MANY_ACTIVE: usize = 512;
const TIMES_LARGER: usize = 8;

/// Error of the gradient, as a share of the tolerance, from which on it is computed afresh.
const DRIFT: f64 = 0.1;

/// KKT violation to which the active variables are solved before those outside are checked, where the point to
/// start from is one of another problem.
const COARSE_VIOLATION: f64 = 0.1;

/// A point and its gradient f.
#[derive(Clone, Debug)]
pub(crate) struct DualPoint {
    /// The point β.
    pub beta: Vec<f64>,
    /// f = (K + diag(r))β + p.
    pub gradient: Vec<f64>,
}

impl DualPoint {
    /// The objective ½ Σ β (f + p).
    pub(crate) fn objective(&self, problem: &Problem) -> f64 {
        let terms = self.beta.iter().zip(&self.gradient).zip(&problem.linear);
        terms.map(|((beta, gradient), linear)| 0.5 * beta * (gradient + linear)).sum()
    }
}

/// How a point changes.
#[derive(Default)]
struct Change {
    /// The variables that change.
    places: Vec<u32>,
    by: Vec<f64>,
}

impl Change {
    fn push(&mut self, v: u32, by: f64) {
        if by != 0.0 {
            self.places.push(v);
            self.by.push(by);
        }
    }
}

/// How one problem's descent goes on.
struct Descent<'a> {
    options: &'a Options,
    context: &'a Context,
    /// Whether it began at 0.
    is_new: bool,
    hybrid: Hybrid,
    steps: u64,
    blocks: u64,
    /// KKT violation to which the active variables are solved next.
    inner_tol: f64,
    /// The limit that ended it, if one did.
    ended: Option<Status>,
}

impl<'a> Descent<'a> {
    fn new(is_new: bool, options: &'a Options, context: &'a Context) -> Self {
        let (hybrid, inner_tol) = (Hybrid::new(options, context), f64::INFINITY);
        Self { options, context, is_new, hybrid, steps: 0, blocks: 0, inner_tol, ended: None }
    }

    /// Descends on the members of a block, whose state is `part`.
    fn run<T: Real>(&mut self, block: &ActiveBlock<T>, part: &mut State) {
        while self.ended.is_none() {
            let left = self.options.max_iterations.saturating_sub(self.steps).min(INNER_STEPS);
            let matrix = block.matrix();
            let taken = self.hybrid.descend(part, matrix, self.inner_tol, left, self.context);
            self.steps += taken;
            self.blocks += 1;
            let spent = self.steps >= self.options.max_iterations;
            let limit = (taken == left && spent).then_some(Status::IterationLimit);
            self.ended = self.context.stop_request().or(limit);
            if taken < left {
                return;
            }
        }
    }
}

/// Solves one problem after the other over one matrix.
pub(crate) struct PathSolver<M: PathRows> {
    matrix: M,
    diagonal: Vec<f64>,
    /// The variables that took part so far.
    block: ActiveBlock<M::Value>,
    /// Which variables some solution had inside their boxes.
    inside: Vec<bool>,
    /// Memory of the problem at hand, with the diagonal of the matrix, and of its active part.
    whole: State,
    part: State,
}

impl<M: PathRows> PathSolver<M> {
    /// A solver that has not seen a problem, of which at most `most` variables may take part.
    /// `memory` is that of an earlier solver, or empty.
    pub(crate) fn new(matrix: M, most: usize, memory: Vec<M::Value>) -> Self {
        let diagonal: Vec<f64> = (0..matrix.len()).map(|v| matrix.diagonal(v)).collect();
        Self {
            block: ActiveBlock::new(matrix.len(), most, memory),
            inside: vec![false; matrix.len()],
            matrix,
            whole: State { diagonal: diagonal.clone(), ..State::default() },
            part: State::default(),
            diagonal,
        }
    }

    /// Its memory, for the next solver.
    pub(crate) fn into_memory(self) -> Vec<M::Value> {
        self.block.into_memory()
    }

    /// The gradient of `problem` at `beta`, found from that at a point nearby, if there is one.
    pub(crate) fn point(
        &self,
        problem: &Problem,
        beta: Vec<f64>,
        near: Option<&DualPoint>,
        context: &Context,
    ) -> DualPoint {
        let gradient = match near {
            None => fresh_gradient(problem, &beta, |beta| self.matrix.product(beta, context)),
            Some(near) => {
                let mut change = Change::default();
                for (v, (to, from)) in beta.iter().zip(&near.beta).enumerate() {
                    change.push(v as u32, to - from);
                }
                let mut gradient = near.gradient.clone();
                self.shift(problem, &change, &mut gradient, context);
                gradient
            }
        };
        DualPoint { beta, gradient }
    }

    /// Solves `problem` from a feasible point, as [`solve`](super::solve) does; `None` when too many
    /// variables would take part.
    ///
    /// # Panics
    /// When the arrays of `problem` do not all have one entry per row of the matrix.
    pub(crate) fn solve(
        &mut self,
        problem: &Problem,
        start: DualPoint,
        options: &Options,
        context: &Context,
    ) -> Option<Solution> {
        let n = self.matrix.len();
        problem.assert_lengths(n);
        assert!(start.beta.len() == n && start.gradient.len() == n, "one entry per variable");
        let is_new = start.beta.iter().all(|&beta| beta == 0.0);
        let mut state = self.state(problem, start);
        let mut part = std::mem::take(&mut self.part);
        self.join(&state.inside())?;
        let mut descent = Descent::new(is_new, options, context);
        let (mut corrections, mut is_fresh) = (0, false);
        let (status, violation) = loop {
            let extremes = state.extremes();
            let violation = worst(&extremes);
            if !violation.is_finite() {
                break (Status::NumericalTrouble, violation);
            }
            let goes_on = descent.ended.is_none() && violation > options.tol;
            let expected = goes_on && self.admit(&state, &extremes, &mut descent)?;
            if !expected
                && let Some(status) =
                    ending_status(descent.ended, violation, options.tol, &mut corrections)
            {
                let is_final = is_fresh || descent.ended.is_some();
                if is_final || self.is_current(problem, &state, &extremes[0], options.tol) {
                    break (status, violation);
                }
                is_fresh = true;
                let product = |beta: &[f64]| self.matrix.product(beta, context);
                state.gradient = fresh_gradient(problem, &state.beta, product);
                continue;
            }
            state.select_into(self.block.members(), &mut part);
            descent.run(&self.block, &mut part);
            self.take_over(problem, &part, &mut state, context);
        };
        for v in state.inside() {
            self.inside[v as usize] = true;
        }
        let (steps, blocks) = (descent.steps, descent.blocks);
        let effort = SolveStatistics { status, violation, steps, blocks, entries: 0 };
        let solution = finish(problem, &mut state, effort);
        (self.whole, self.part) = (state, part);
        Some(solution)
    }

    /// Lets the worst violators join and says how far to descend next; whether a violation was to be
    /// expected, and `None` when too many variables would take part.
    fn admit(
        &mut self,
        state: &State,
        extremes: &[Extremes; 2],
        descent: &mut Descent<'_>,
    ) -> Option<bool> {
        let n = self.matrix.len();
        let (at_once, tol) = (LEAST_JOINING.max(n / JOIN_SHARE), descent.options.tol);
        let outside = |v: usize| !self.block.contains(v);
        let fresh = worst_violators(state, extremes, at_once, outside, descent.context);
        let count = self.block.members().len() + fresh.len();
        let slows = count > MANY_ACTIVE && count < n / TIMES_LARGER;
        if slows || !self.block.has_room(count) {
            self.block.keep(|v| is_active(state, extremes, v));
        }
        self.join(&fresh)?;
        // Violators outside are news, and what a loose tolerance left was expected: neither
        // contradicts the running gradient.
        let expected = descent.inner_tol > tol || !fresh.is_empty();
        let wanted = if fresh.is_empty() { 0.0 } else { SUBPROBLEM_SHARE * worst(extremes) };
        let is_rough = descent.inner_tol.is_infinite() && !descent.is_new;
        descent.inner_tol = if is_rough { COARSE_VIOLATION } else { wanted }.max(tol);
        Some(expected)
    }

    /// Moves the active variables to where they are in `part`.
    fn take_over(&self, problem: &Problem, part: &State, state: &mut State, context: &Context) {
        let mut change = Change::default();
        for (&v, &beta) in self.block.members().iter().zip(&part.beta) {
            change.push(v, beta - state.beta[v as usize]);
            state.beta[v as usize] = beta;
        }
        self.shift(problem, &change, &mut state.gradient, context);
    }

    /// An earlier solution as that of `problem`, if its gradient shows it to be one.
    pub(crate) fn confirm(
        &mut self,
        problem: &Problem,
        earlier: &Solution,
        options: &Options,
    ) -> Option<Solution> {
        let Solution { beta, gradient, .. } = earlier;
        let violation = extremes_of(beta, gradient, &problem.lower, &problem.upper).violation();
        if problem.ridge.is_some() || problem.groups.is_some() || violation > options.tol {
            return None;
        }
        let point = DualPoint { beta: beta.clone(), gradient: gradient.clone() };
        let mut state = self.state(problem, point);
        let effort =
            SolveStatistics { status: Status::Solved, violation, steps: 0, blocks: 0, entries: 0 };
        let solution = finish(problem, &mut state, effort);
        self.whole = state;
        Some(solution)
    }

    /// Keeps only the active variables that were inside their boxes in a solution since the last
    /// time, where that leaves many out.
    pub(crate) fn refresh(&mut self) {
        let inside = std::mem::replace(&mut self.inside, vec![false; self.matrix.len()]);
        self.block.keep(|v| inside[v]);
    }

    /// The state of a problem at a point, in the memory of the one before.
    fn state(&mut self, problem: &Problem, point: DualPoint) -> State {
        let mut state = std::mem::take(&mut self.whole);
        let ridge_before = state.ridge.is_some();
        state.begin(problem, point.beta, point.gradient);
        if ridge_before || problem.ridge.is_some() || state.diagonal.is_empty() {
            state.diagonal.clone_from(&self.diagonal);
        }
        if let Some(ridge) = &problem.ridge {
            state.diagonal.iter_mut().zip(ridge).for_each(|(d, r)| *d += r);
        }
        state
    }

    /// Whether rounding in the gradients that this one was made from is small beside the tolerance,
    /// seen on the variable that wants to rise most.
    fn is_current(&self, problem: &Problem, state: &State, e: &Extremes, tol: f64) -> bool {
        let rises = |v: &usize| state.can_rise(*v) && -state.gradient[*v] >= e.up;
        let Some(v) = (0..state.len()).find(rises) else { return true };
        let mut columns = nonzero_places(&state.beta);
        let used = columns.len();
        if state.beta[v] == 0.0 {
            columns.push(v as u32);
        }
        let mut row = vec![M::Value::ZERO; columns.len()];
        self.matrix.gather(&[v as u32], &columns, &mut row, columns.len());
        let terms = columns[..used].iter().zip(&row);
        let sum: f64 = terms.map(|(&u, value)| state.beta[u as usize] * value.to_f64()).sum();
        let ridge = problem.ridge.as_ref().map_or(0.0, |ridge| ridge[v] * state.beta[v]);
        (sum + ridge + problem.linear[v] - state.gradient[v]).abs() <= DRIFT * tol
    }

    /// Brings the gradient up to date after a change of the point.
    fn shift(&self, problem: &Problem, change: &Change, gradient: &mut [f64], context: &Context) {
        self.matrix.add_product(&change.places, &change.by, gradient, context);
        if let Some(ridge) = &problem.ridge {
            for (&v, by) in change.places.iter().zip(&change.by) {
                gradient[v as usize] += ridge[v as usize] * by;
            }
        }
    }

    /// Makes variables active; `None` when those are too many.
    fn join(&mut self, variables: &[u32]) -> Option<()> {
        let matrix = &self.matrix;
        self.block.join(variables, |rows, columns, out, stride| {
            matrix.gather(rows, columns, out, stride);
        })
    }
}
