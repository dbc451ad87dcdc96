//! Where a problem of a path probably ends, told by its neighbours: the next smaller penalty, the
//! part before, and another kernel.
//!
//! A neighbour's solution is moved as a third problem moved between the same two places; of several
//! guesses the one with the better objective is taken.

use crate::context::Context;
use crate::kernel::Real;
use crate::machine::warm_start::feasible;
use crate::solver::smo::{Options, Problem, Solution, WholeSolver};

/// Solutions next to the problem at hand, part by part.
#[derive(Default)]
pub(super) struct Known {
    /// This penalty, up to the part before.
    now: Vec<Solution>,
    /// The penalty before.
    smaller: Vec<Solution>,
    /// Coefficients with another kernel, this penalty.
    other: Vec<Vec<f64>>,
    /// Coefficients with another kernel, the penalty before.
    other_smaller: Vec<Vec<f64>>,
}

impl Known {
    /// Takes in the coefficients of every part for this penalty with another kernel.
    pub(super) fn other_kernel(&mut self, coefficients: impl Iterator<Item = Vec<f64>>) {
        self.other_smaller = std::mem::replace(&mut self.other, coefficients.collect());
    }

    /// Adds the solution of the next part.
    pub(super) fn add(&mut self, solution: Solution) {
        self.now.push(solution);
    }

    /// Goes on to the next penalty; names the variables that some part used.
    pub(super) fn next_penalty(&mut self) -> Vec<u32> {
        self.smaller = std::mem::take(&mut self.now);
        let variables = self.smaller.first().map_or(0, |solution| solution.beta.len());
        let used = |v: &u32| self.smaller.iter().any(|solution| solution.beta[*v as usize] != 0.0);
        (0..variables as u32).filter(used).collect()
    }

    /// The solution of the penalty before, if it is one of this problem too.
    pub(super) fn unchanged<T: Real>(
        &self,
        part: usize,
        problem: &Problem,
        solver: &WholeSolver<'_, T>,
        options: &Options,
    ) -> Option<Solution> {
        let own = self.smaller.get(part)?;
        solver.confirm(problem, &own.beta, &own.gradient, options)
    }

    /// The best guess, made feasible.
    pub(super) fn start<T: Real>(
        &self,
        part: usize,
        problem: &Problem,
        solver: &mut WholeSolver<'_, T>,
        context: &Context,
    ) -> Option<Vec<f64>> {
        let guesses = [self.by_part(part), self.by_kernel(part)];
        let mut starts = guesses.into_iter().flatten().filter_map(|guess| feasible(problem, guess));
        let (first, second) = (starts.next()?, starts.next());
        let Some(second) = second else { return Some(first) };
        let mut value = |start: &[f64]| solver.objective(problem, start, context);
        Some(if value(&second) < value(&first) { second } else { first })
    }

    /// The solution of the penalty before, moved as that of the part before moved.
    fn by_part(&self, part: usize) -> Option<Vec<f64>> {
        let before = self.now.last().map(|solution| &solution.beta);
        let own = self.smaller.get(part).map(|solution| &solution.beta);
        match (own, before) {
            (None, before) => before.cloned(),
            (own, None) => own.cloned(),
            (Some(own), Some(before)) => Some(moved(own, &self.smaller[part - 1].beta, before)),
        }
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

/// `point` + `to` − `from`.
fn moved(point: &[f64], from: &[f64], to: &[f64]) -> Vec<f64> {
    point.iter().zip(from).zip(to).map(|((point, from), to)| point + to - from).collect()
}
