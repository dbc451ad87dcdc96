//! Many problems over one matrix.
//!
//! Who solves the same problem with other boxes again and again finds nearly the same variables
//! inside them. Those are kept, with their part of the matrix, from problem to problem: pair steps
//! run among them and the worst violators alone, in the processor's cache, until no variable violates
//! the optimality conditions, which is seen on the gradient of all variables. The last few steps are
//! replaced by one of Newton on the variables inside their boxes, where those are few.

use super::decompose::{
    Effort, INNER_STEPS, SUBPROBLEM_SHARE, descend_inner, finish, fresh_gradient, verdict, worst,
};
use super::face::descend_face;
use super::inner::{InnerMatrix, padded};
use super::path_rows::{PathRows, nonzero_places};
use super::problem::{Options, Problem, Solution};
use super::select::{is_active, worst_violators};
use super::state::{Extremes, State, extremes_of};
use crate::context::Context;
use crate::numeric::simd::{Real, mirror};
use crate::solver::Status;

/// Fewest variables that may join the others at a time.
const JOIN: usize = 64;

/// One of so many of all variables may join at a time where that is more.
const JOIN_SHARE: usize = 512;

/// Active variables from which on shrinking pays where many can be left out, of a problem so
/// many times as large.
const MANY_ACTIVE: usize = 512;
const TIMES_LARGER: usize = 8;

/// Error of the gradient, as a share of the tolerance, from which on it is computed afresh.
const DRIFT: f64 = 0.1;

/// Share of the active variables below which those in use are gathered anew.
const SPARSE: f64 = 0.7;

/// KKT violation to which the active variables are solved before those outside are checked, where the point to
/// start from is one of another problem.
const ROUGH: f64 = 0.1;

/// Violation from which on a step of Newton replaces many pair steps.
const NEARLY: f64 = 0.01;

/// Most variables of a step of Newton.
const MOST_INSIDE: usize = 120;

/// The matrix of the active variables: the first `width` places of every row.
struct Compact<'a, T> {
    values: &'a [T],
    stride: usize,
    width: usize,
}

impl<T: Real> InnerMatrix<T> for Compact<'_, T> {
    fn ensure(&mut self, _: usize) {}

    fn row(&self, v: usize) -> &[T] {
        &self.values[v * self.stride..v * self.stride + self.width]
    }
}

/// A point and its gradient f.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// The point β.
    pub beta: Vec<f64>,
    /// f = (K + diag(r))β + p.
    pub gradient: Vec<f64>,
}

impl Point {
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

/// Solves one problem after the other over one matrix.
pub(crate) struct PathSolver<M: PathRows> {
    matrix: M,
    diagonal: Vec<f64>,
    /// Most active variables.
    most: usize,
    /// The variables that took part so far, in the order they joined.
    active: Vec<u32>,
    is_active: Vec<bool>,
    /// Which variables some solution had inside their boxes.
    inside: Vec<bool>,
    /// The matrix of the active variables, with room for more of them in every row; what stands there
    /// does not matter.
    compact: Vec<M::Value>,
    stride: usize,
    /// Memory of the problem at hand, with the diagonal of the matrix, and of its active part.
    whole: State,
    part: State,
}

impl<M: PathRows> PathSolver<M> {
    /// A solver that has not seen a problem, of which at most `most` variables may take part.
    /// `memory` is that of an earlier solver, or empty.
    pub(crate) fn new(matrix: M, most: usize, memory: Vec<M::Value>) -> Self {
        let (is_active, inside) = (vec![false; matrix.len()], vec![false; matrix.len()]);
        let diagonal: Vec<f64> = (0..matrix.len()).map(|v| matrix.diagonal(v)).collect();
        Self {
            matrix,
            most,
            active: Vec::new(),
            is_active,
            inside,
            compact: memory,
            stride: 0,
            whole: State { diagonal: diagonal.clone(), ..State::default() },
            part: State::default(),
            diagonal,
        }
    }

    /// Its memory, for the next solver.
    pub(crate) fn into_memory(self) -> Vec<M::Value> {
        self.compact
    }

    /// The gradient of `problem` at `beta`, found from that at a point nearby, if there is one.
    pub(crate) fn point(
        &self,
        problem: &Problem,
        beta: Vec<f64>,
        near: Option<&Point>,
        context: &Context,
    ) -> Point {
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
        Point { beta, gradient }
    }

    /// Solves `problem` from a feasible point, as [`solve`](super::solve) does; `None` when too many
    /// variables would take part.
    ///
    /// # Panics
    /// When the arrays of `problem` do not all have one entry per row of the matrix.
    pub(crate) fn solve(
        &mut self,
        problem: &Problem,
        start: Point,
        options: &Options,
        context: &Context,
    ) -> Option<Solution> {
        let n = self.matrix.len();
        problem.assert_lengths(n);
        assert!(start.beta.len() == n && start.gradient.len() == n, "one entry per variable");
        let at_once = JOIN.max(n / JOIN_SHARE);
        let is_new = start.beta.iter().all(|&beta| beta == 0.0);
        let mut state = self.state(problem, start);
        let mut part = std::mem::take(&mut self.part);
        self.join(&state.inside())?;
        let (mut steps, mut blocks, mut confirmations) = (0, 0, 0);
        let (mut inner_tol, mut ended, mut is_fresh) = (f64::INFINITY, None, false);
        let (status, violation) = loop {
            let extremes = state.extremes();
            let violation = worst(&extremes);
            if !violation.is_finite() {
                break (Status::NumericalTrouble, violation);
            }
            let mut expected = false;
            if ended.is_none() && violation > options.tol {
                let fresh =
                    worst_violators(&state, &extremes, at_once, |v| !self.is_active[v], context);
                let count = self.active.len() + fresh.len();
                let slows = count > MANY_ACTIVE && count < n / TIMES_LARGER;
                if slows || padded(count) > self.stride {
                    self.keep(|v| is_active(&state, &extremes, v));
                }
                self.join(&fresh)?;
                // Violators outside are news, and what a loose tolerance left was expected: neither
                // contradicts the running gradient.
                expected = inner_tol > options.tol || !fresh.is_empty();
                let wanted = if fresh.is_empty() { 0.0 } else { SUBPROBLEM_SHARE * violation };
                let rough = if inner_tol.is_infinite() && !is_new { ROUGH } else { wanted };
                inner_tol = rough.max(options.tol);
            }
            if !expected
                && let Some(status) = verdict(ended, violation, options.tol, &mut confirmations)
            {
                let is_final = is_fresh || ended.is_some();
                if is_final || self.is_current(problem, &state, &extremes[0], options.tol) {
                    break (status, violation);
                }
                is_fresh = true;
                let product = |beta: &[f64]| self.matrix.product(beta, context);
                state.gradient = fresh_gradient(problem, &state.beta, product);
                continue;
            }
            state.select_into(&self.active, &mut part);
            if inner_tol < NEARLY {
                let left = options.max_iterations.saturating_sub(steps).min(INNER_STEPS);
                steps += self.descend(&mut part, NEARLY, left, context);
                let width = padded(self.active.len());
                let row = |v: usize| &self.compact[v * self.stride..v * self.stride + width];
                // An interruption shows at the next look at limits.
                steps += descend_face(&mut part, row, MOST_INSIDE, context).unwrap_or(0) as u64;
            }
            while ended.is_none() {
                let left = options.max_iterations.saturating_sub(steps).min(INNER_STEPS);
                let taken = self.descend(&mut part, inner_tol, left, context);
                steps += taken;
                blocks += 1;
                if taken < left {
                    break;
                }
                let spent = steps >= options.max_iterations;
                ended = context.stop_request().or(spent.then_some(Status::IterationLimit));
            }
            ended = ended.or_else(|| context.stop_request());
            self.take_over(problem, &part, &mut state, context);
        };
        for v in state.inside() {
            self.inside[v as usize] = true;
        }
        let effort = Effort { status, violation, steps, blocks, entries: 0 };
        let solution = finish(problem, &mut state, effort);
        (self.whole, self.part) = (state, part);
        Some(solution)
    }

    /// Moves the active variables to where they are in `part`.
    fn take_over(&self, problem: &Problem, part: &State, state: &mut State, context: &Context) {
        let mut change = Change::default();
        for (&v, &beta) in self.active.iter().zip(&part.beta) {
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
        let point = Point { beta: beta.clone(), gradient: gradient.clone() };
        let mut state = self.state(problem, point);
        let effort = Effort { status: Status::Solved, violation, steps: 0, blocks: 0, entries: 0 };
        let solution = finish(problem, &mut state, effort);
        self.whole = state;
        Some(solution)
    }

    /// Keeps only the active variables that were inside their boxes in a solution since the last
    /// time, where that leaves many out.
    pub(crate) fn refresh(&mut self) {
        let inside = std::mem::replace(&mut self.inside, vec![false; self.is_active.len()]);
        self.keep(|v| inside[v]);
    }

    /// Keeps only the active variables that `wanted` names, where that leaves many out.
    fn keep(&mut self, wanted: impl Fn(usize) -> bool) {
        let places = (0..self.active.len()).filter(|&i| wanted(self.active[i] as usize));
        let kept: Vec<usize> = places.collect();
        if kept.len() as f64 >= SPARSE * self.active.len() as f64 {
            return;
        }
        for (i, &from) in kept.iter().enumerate() {
            for (j, &column) in kept.iter().enumerate() {
                self.compact[i * self.stride + j] = self.compact[from * self.stride + column];
            }
        }
        for &v in &self.active {
            self.is_active[v as usize] = false;
        }
        self.active = kept.iter().map(|&i| self.active[i]).collect();
        for &v in &self.active {
            self.is_active[v as usize] = true;
        }
    }

    /// The state of a problem at a point, in the memory of the one before.
    fn state(&mut self, problem: &Problem, point: Point) -> State {
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

    /// Pair steps among the active variables.
    fn descend(&self, part: &mut State, tol: f64, most: u64, context: &Context) -> u64 {
        let width = padded(self.active.len());
        let compact = Compact { values: &self.compact, stride: self.stride, width };
        descend_inner(part, compact, |_| true, tol, most, context)
    }

    /// Makes variables active; `None` when those are too many.
    fn join(&mut self, variables: &[u32]) -> Option<()> {
        let fresh: Vec<u32> =
            variables.iter().copied().filter(|&v| !self.is_active[v as usize]).collect();
        if fresh.is_empty() {
            return Some(());
        }
        let before = self.active.len();
        let count = before + fresh.len();
        if count > self.most {
            return None;
        }
        for &v in &fresh {
            self.is_active[v as usize] = true;
        }
        self.active.extend(&fresh);
        if padded(count) > self.stride {
            let most = padded(self.matrix.len().min(self.most));
            let stride = padded(count + count / 2).min(most);
            if self.compact.len() < stride * stride {
                self.compact.resize(stride * stride, M::Value::ZERO);
            }
            for i in (0..before).rev() {
                let from = i * self.stride;
                self.compact.copy_within(from..from + before, i * stride);
            }
            self.stride = stride;
        }
        let stride = self.stride;
        self.matrix.gather(&fresh, &self.active, &mut self.compact[before * stride..], stride);
        mirror(&mut self.compact[..count * stride], stride, before, count);
        Some(())
    }
}
