//! An estimate of the solution of a problem of a path from adjacent ones: the next smaller penalty, the
//! part before, and another kernel.
//!
//! A neighbour's solution is moved as a third problem moved between the same two places, or multiplied
//! as the penalty is; of several guesses the one with the best objective is taken. Gradients are
//! linear in the point, so that those of most guesses are known but for what makes them feasible.

use crate::context::Context;
use crate::machine::warm_start::feasible;
use crate::solver::smo::{DualPoint, Options, PathRows, PathSolver, Problem, Solution};

/// Share of its bound from which on a variable counts as at it.
const AT_BOUND_SHARE: f64 = 1.0 - 1e-9;

/// Solutions for adjacent parameters, part by part.
#[derive(Default)]
pub(super) struct AdjacentSolutions {
    /// This penalty, up to the part before.
    now: Vec<Solution>,
    /// The penalty before.
    smaller: Vec<Solution>,
    /// Coefficients with another kernel, this penalty.
    other: Vec<Vec<f64>>,
    /// Coefficients with another kernel, the penalty before.
    other_smaller: Vec<Vec<f64>>,
}

impl AdjacentSolutions {
    /// Takes in the coefficients of every part for this penalty with another kernel.
    pub(super) fn other_kernel(&mut self, coefficients: impl Iterator<Item = Vec<f64>>) {
        self.other_smaller = std::mem::replace(&mut self.other, coefficients.collect());
    }

    /// Adds the solution of the next part.
    pub(super) fn add(&mut self, solution: Solution) {
        self.now.push(solution);
    }

    /// Goes on to the next penalty.
    pub(super) fn next_penalty(&mut self) {
        self.smaller = std::mem::take(&mut self.now);
    }

    /// The solution of the penalty before, if it is one of this problem too.
    pub(super) fn unchanged<M: PathRows>(
        &self,
        part: usize,
        problem: &Problem,
        solver: &mut PathSolver<M>,
        options: &Options,
    ) -> Option<Solution> {
        solver.confirm(problem, self.smaller.get(part)?, options)
    }

    /// The best guess, made feasible.
    pub(super) fn start<M: PathRows>(
        &self,
        part: usize,
        problem: &Problem,
        ratio: f64,
        solver: &PathSolver<M>,
        context: &Context,
    ) -> DualPoint {
        let mut best: Option<(DualPoint, f64)> = None;
        for (guess, near) in self.guesses(part, problem, ratio) {
            // The ridge, hence the gradient, depends on the penalty.
            let near = near.filter(|_| problem.ridge.is_none());
            let gradient = near.as_ref().map(|near| &near.gradient[..]);
            let Some(start) = feasible(problem, guess, gradient) else { continue };
            let start = solver.point(problem, start, near.as_ref(), context);
            let objective = start.objective(problem);
            if best.as_ref().is_none_or(|(_, least)| objective < *least) {
                best = Some((start, objective));
            }
        }
        match best {
            Some((start, _)) => start,
            None => solver.point(problem, problem.start.clone(), None, context),
        }
    }

    /// Where this problem may end, each with a point nearby whose gradient is known.
    fn guesses(
        &self,
        part: usize,
        problem: &Problem,
        ratio: f64,
    ) -> Vec<(Vec<f64>, Option<DualPoint>)> {
        let before = self.now.last();
        let own = self.smaller.get(part);
        let has_bounds = problem.ridge.is_none();
        let stays = match (own, before) {
            (Some(own), _) => mostly_at_bounds(own, ratio, problem),
            (None, Some(before)) => mostly_at_bounds(before, 1.0, problem),
            (None, None) => false,
        };
        let mut guesses = Vec::new();
        let mut guess = |point: DualPoint| guesses.push((point.beta.clone(), Some(point)));
        match (own, before) {
            (None, None) => {}
            (None, Some(before)) => guess(point(before)),
            (Some(own), None) => {
                guess(point(own));
                if has_bounds {
                    guess(scaled(own, ratio, problem));
                }
            }
            (Some(own), Some(before)) => {
                if has_bounds {
                    guess(scaled(own, ratio, problem));
                }
                if !stays {
                    let from = &self.smaller[part - 1];
                    let beta = moved(&own.beta, &from.beta, &before.beta);
                    let gradient = moved(&own.gradient, &from.gradient, &before.gradient);
                    guess(DualPoint { beta, gradient });
                }
            }
        }
        if !stays && let Some(guess) = self.by_kernel(part) {
            guesses.push((guess, own.or(before).map(point)));
        }
        guesses
    }

    /// The solution with another kernel, moved as that of the part before moved; the solution of the
    /// penalty before, moved as that with another kernel moved.
    fn by_kernel(&self, part: usize) -> Option<Vec<f64>> {
        let other = self.other.get(part)?;
        match (self.smaller.get(part), part.checked_sub(1)) {
            (None, None) => Some(other.clone()),
            (None, Some(before)) => Some(moved(other, &self.other[before], &self.now[before].beta)),
            (Some(own), None) => Some(moved(&own.beta, self.other_smaller.get(part)?, other)),
            (Some(_), Some(_)) => None,
        }
    }
}

/// Whether most variables in use are at bounds and would stay there, multiplied by `ratio`: a guess
/// that moves them costs more than it saves.
fn mostly_at_bounds(solution: &Solution, ratio: f64, problem: &Problem) -> bool {
    let (mut used, mut bounded) = (0, 0);
    for (v, &beta) in solution.beta.iter().enumerate().filter(|(_, beta)| **beta != 0.0) {
        let bound = problem.upper[v].max(-problem.lower[v]);
        if bound > 0.0 {
            used += 1;
            bounded += usize::from(ratio * beta.abs() >= AT_BOUND_SHARE * bound);
        }
    }
    4 * bounded > 3 * used
}

/// A solution as a point.
fn point(solution: &Solution) -> DualPoint {
    DualPoint { beta: solution.beta.clone(), gradient: solution.gradient.clone() }
}

/// A multiple of a solution: variables at their bounds stay there when those grow as much (Nguyen
/// 2006, equation 4.15).
fn scaled(solution: &Solution, ratio: f64, problem: &Problem) -> DualPoint {
    let gradient = solution.gradient.iter().zip(&problem.linear);
    DualPoint {
        beta: solution.beta.iter().map(|beta| ratio * beta).collect(),
        gradient: gradient.map(|(f, p)| ratio * (f - p) + p).collect(),
    }
}

/// `point` + `to` − `from`.
fn moved(point: &[f64], from: &[f64], to: &[f64]) -> Vec<f64> {
    point.iter().zip(from).zip(to).map(|((point, from), to)| point + to - from).collect()
}
