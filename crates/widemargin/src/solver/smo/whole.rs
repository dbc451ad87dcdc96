//! Many problems over one small matrix that lies in memory whole.
//!
//! Who solves the same problem with other boxes again and again finds nearly the same variables
//! inside them. Those are kept, with their part of the matrix, from problem to problem: pair steps
//! run among them alone, in the processor's cache, until no variable outside violates the optimality
//! conditions, which is seen on the gradient of all variables. The last few steps are replaced by
//! one of Newton on the variables inside their boxes, where those are few.

use super::decompose::{
    Effort, INNER_STEPS, SETTLED, descend_inner, finish, fresh_gradient, verdict, worst,
};
use super::face::descend_face;
use super::inner::{InnerMatrix, padded};
use super::problem::{Options, Problem, Solution};
use super::select::worst_violators;
use super::state::State;
use crate::context::Context;
use crate::kernel::{Real, accumulate};
use crate::solver::Status;

/// Variables that join the others at a time.
const JOIN: usize = 64;

/// Violation to which the active variables settle before a look at those outside, where the point to
/// start from is one of another problem.
const ROUGH: f64 = 0.1;

/// Violation from which on a step of Newton replaces many pair steps.
const NEARLY: f64 = 0.01;

/// Most variables of a step of Newton.
const MOST_INSIDE: usize = 120;

/// Share of its box within which a variable counts as at the bound. A start leaves variables next to
/// their bounds that pair steps from zero would have put on them; where none is inside, those must
/// not decide the multiplier.
const NEARLY_BOUND: f64 = 1e-6;

/// A symmetric matrix, row by row, every row followed by zeros up to a common length.
#[derive(Clone, Copy, Debug)]
pub struct WholeMatrix<'a, T> {
    values: &'a [T],
    stride: usize,
}

impl<'a, T: Real> WholeMatrix<'a, T> {
    /// Places that a row of `len` entries takes up.
    pub fn stride(len: usize) -> usize {
        padded(len)
    }

    /// A matrix of `len` rows, each followed by zeros up to [`stride`](Self::stride).
    ///
    /// # Panics
    /// When there are not that many values.
    pub fn new(values: &'a [T], len: usize) -> Self {
        assert_eq!(values.len(), len * padded(len), "whole rows");
        Self { values, stride: padded(len) }
    }

    fn len(&self) -> usize {
        self.values.len() / self.stride.max(1)
    }

    fn row(&self, v: usize) -> &'a [T] {
        &self.values[v * self.stride..(v + 1) * self.stride]
    }
}

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

/// Solves one problem after the other over one matrix.
pub struct WholeSolver<'a, T> {
    matrix: WholeMatrix<'a, T>,
    /// The variables that took part so far, in the order they joined.
    active: Vec<u32>,
    is_active: Vec<bool>,
    /// Their matrix, with room for more of them in every row.
    compact: Vec<T>,
    stride: usize,
}

impl<'a, T: Real> WholeSolver<'a, T> {
    /// A solver that has not seen a problem.
    pub fn new(matrix: WholeMatrix<'a, T>) -> Self {
        let is_active = vec![false; matrix.len()];
        Self { matrix, active: Vec::new(), is_active, compact: Vec::new(), stride: 0 }
    }

    /// Solves `problem`, as [`solve`](super::solve) does.
    ///
    /// # Panics
    /// When the arrays of `problem` do not all have one entry per row of the matrix.
    pub fn solve(&mut self, problem: &Problem, options: &Options, context: &Context) -> Solution {
        let (matrix, n) = (self.matrix, self.matrix.len());
        assert!(
            [&problem.linear, &problem.lower, &problem.upper, &problem.start]
                .iter()
                .all(|array| array.len() == n),
            "one entry of every array per variable"
        );
        let ridge = |v: usize| problem.ridge.as_ref().map_or(0.0, |ridge| ridge[v]);
        let diagonal = (0..n).map(|v| matrix.row(v)[v].to_f64() + ridge(v)).collect();
        let product = |beta: &[f64]| {
            let used: Vec<usize> = (0..n).filter(|&v| beta[v] != 0.0).collect();
            let rows: Vec<&[T]> = used.iter().map(|&v| matrix.row(v)).collect();
            let coefficients: Vec<f64> = used.iter().map(|&v| beta[v]).collect();
            let mut sums = vec![0.0; matrix.stride];
            accumulate(context.instruction_set(), &mut sums, &rows, &coefficients);
            sums.truncate(n);
            sums
        };
        let mut state = State::new(problem, problem.linear.clone(), diagonal);
        let moved: Vec<u32> = (0..n as u32).filter(|&v| problem.start[v as usize] != 0.0).collect();
        self.join(&moved);
        if self.active.is_empty() {
            let fresh = worst_violators(&state, &state.extremes(), JOIN, |_| true);
            self.join(&fresh);
        }
        self.start_gradient(problem, &problem.start, &mut state.gradient, context);
        let (mut steps, mut blocks, mut confirmations) = (0, 0, 0);
        let first = if moved.is_empty() { SETTLED * worst(&state.extremes()) } else { ROUGH };
        let mut inner_tol = first.max(options.tol);
        let mut known: Option<(Vec<f64>, Vec<f64>)> = None;
        let (status, violation) = loop {
            let mut part = state.select(&self.active);
            let mut ended = None;
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
            for (&v, &beta) in self.active.iter().zip(&part.beta) {
                state.beta[v as usize] = beta;
            }
            let gradient = match known {
                None => fresh_gradient(problem, &state.beta, product),
                Some((mut gradient, before)) => {
                    let change: Vec<f64> =
                        state.beta.iter().zip(&before).map(|(now, before)| now - before).collect();
                    for (v, sum) in product(&change).into_iter().enumerate() {
                        gradient[v] += sum + ridge(v) * change[v];
                    }
                    gradient
                }
            };
            state.gradient.copy_from_slice(&gradient);
            known = Some((gradient, state.beta.clone()));
            let extremes = state.extremes();
            let violation = worst(&extremes);
            if ended.is_none() && violation > options.tol {
                let fresh = worst_violators(&state, &extremes, JOIN, |v| !self.is_active[v]);
                self.join(&fresh);
                // Violators outside are news, and what a loose tolerance left was expected: neither
                // contradicts the running gradient.
                let expected = inner_tol > options.tol || !fresh.is_empty();
                let wanted = if fresh.is_empty() { 0.0 } else { SETTLED * violation };
                inner_tol = wanted.max(options.tol);
                if expected {
                    continue;
                }
            }
            if let Some(status) = verdict(ended, violation, options.tol, &mut confirmations) {
                break (status, violation);
            }
        };
        let multipliers = state.settled_multipliers(NEARLY_BOUND);
        let effort = Effort { status, violation, steps, blocks, entries: 0 };
        Solution { multipliers, ..finish(problem, state, effort) }
    }

    /// `beta` as the solution of `problem`, if its known gradient shows it to be one.
    pub fn confirm(
        &self,
        problem: &Problem,
        beta: &[f64],
        gradient: &[f64],
        options: &Options,
    ) -> Option<Solution> {
        if problem.ridge.is_some() {
            return None;
        }
        let diagonal = (0..beta.len()).map(|v| self.matrix.row(v)[v].to_f64()).collect();
        let mut state = State::new(problem, gradient.to_vec(), diagonal);
        state.beta.copy_from_slice(beta);
        let violation = worst(&state.extremes());
        if violation > options.tol {
            return None;
        }
        let multipliers = state.settled_multipliers(NEARLY_BOUND);
        let effort = Effort { status: Status::Solved, violation, steps: 0, blocks: 0, entries: 0 };
        Some(Solution { multipliers, ..finish(problem, state, effort) })
    }

    /// The objective at `start`, whose variables become active.
    pub fn objective(&mut self, problem: &Problem, start: &[f64], context: &Context) -> f64 {
        let moved: Vec<u32> =
            (0..start.len() as u32).filter(|&v| start[v as usize] != 0.0).collect();
        self.join(&moved);
        let mut gradient = problem.linear.clone();
        self.start_gradient(problem, start, &mut gradient, context);
        let of = |&v: &u32| {
            let v = v as usize;
            0.5 * start[v] * (gradient[v] + problem.linear[v])
        };
        moved.iter().map(of).sum()
    }

    /// Number of active variables.
    pub fn active(&self) -> usize {
        self.active.len()
    }

    /// Pair steps among the active variables.
    fn descend(&self, part: &mut State, tol: f64, most: u64, context: &Context) -> u64 {
        let width = padded(self.active.len());
        let compact = Compact { values: &self.compact, stride: self.stride, width };
        descend_inner(part, compact, |_| true, tol, most, context)
    }

    /// Keeps only `variables` active for the problems to come.
    pub fn retain(&mut self, variables: &[u32]) {
        for &v in &self.active {
            self.is_active[v as usize] = false;
        }
        self.active.clear();
        self.compact.clear();
        self.stride = 0;
        self.join(variables);
    }

    /// Adds what `start` makes of the gradient of the active variables.
    fn start_gradient(
        &self,
        problem: &Problem,
        start: &[f64],
        gradient: &mut [f64],
        context: &Context,
    ) {
        let width = padded(self.active.len());
        let (mut rows, mut coefficients) = (Vec::new(), Vec::new());
        for (row, &v) in self.compact.chunks_exact(self.stride.max(1)).zip(&self.active) {
            if start[v as usize] != 0.0 {
                rows.push(&row[..width]);
                coefficients.push(start[v as usize]);
            }
        }
        let mut sums = vec![0.0; width];
        accumulate(context.instruction_set(), &mut sums, &rows, &coefficients);
        for (&v, sum) in self.active.iter().zip(&sums) {
            let v = v as usize;
            let ridge = problem.ridge.as_ref().map_or(0.0, |ridge| ridge[v]);
            gradient[v] += sum + ridge * start[v];
        }
    }

    /// Makes variables active.
    fn join(&mut self, variables: &[u32]) {
        let fresh: Vec<u32> =
            variables.iter().copied().filter(|&v| !self.is_active[v as usize]).collect();
        if fresh.is_empty() {
            return;
        }
        let before = self.active.len();
        for &v in &fresh {
            self.is_active[v as usize] = true;
        }
        self.active.extend(&fresh);
        let count = self.active.len();
        if padded(count) > self.stride {
            let stride = padded(count + count / 2).min(padded(self.matrix.len()));
            let mut wider = vec![T::ZERO; stride * stride];
            for i in 0..before {
                let row = &self.compact[i * self.stride..i * self.stride + before];
                wider[i * stride..i * stride + before].copy_from_slice(row);
            }
            (self.compact, self.stride) = (wider, stride);
        }
        for (i, &v) in self.active.iter().enumerate() {
            let row = self.matrix.row(v as usize);
            let from = if i < before { before } else { 0 };
            let out = &mut self.compact[i * self.stride + from..i * self.stride + count];
            for (place, &other) in out.iter_mut().zip(&self.active[from..]) {
                *place = row[other as usize];
            }
        }
    }
}
