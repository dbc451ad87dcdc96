//! Feasible starting points from the solution of a related problem.
//!
//! The dual variables of an earlier model, matched by training row, are clipped to the new boxes and
//! moved along the equality constraints back to the sums the new problem fixes; where that is
//! impossible the problem keeps its own start.

use super::model::{Model, Scheme};
use crate::data::Label;
use crate::solver::smo;

/// Relative error of a sum that rounding may leave.
const ROUNDING: f64 = 1e-12;

/// The solution a training may start from.
#[derive(Clone, Copy)]
pub(super) struct Earlier<'a>(Option<&'a Model>);

impl<'a> Earlier<'a> {
    /// No solution: every problem keeps its own start.
    pub(super) const NONE: Self = Self(None);

    /// A model of the same machine whose support vectors remember their training rows.
    pub(super) fn new(model: &'a Model) -> Self {
        let known = model.support_rows.len() == model.support_count();
        Self(known.then_some(model))
    }

    /// The same, only if the earlier machine had these classes and this scheme.
    pub(super) fn of_classes(self, names: &[Label], scheme: &Scheme) -> Self {
        let same = |model: &&Model| {
            model
                .classes
                .as_ref()
                .is_some_and(|table| table.scheme == *scheme && table.names.len() == names.len())
        };
        Self(self.0.filter(same))
    }

    /// Replaces the start of `problem` by the variables of function `index`; `rows` names the
    /// training row of every variable, those of one row sharing its coefficient by sign.
    pub(super) fn apply(
        self,
        index: usize,
        rows: impl Iterator<Item = usize>,
        problem: &mut smo::Problem,
    ) {
        let Some(function) = self.0.and_then(|model| model.functions.get(index)) else { return };
        let Some(model) = self.0 else { return };
        let last = model.support_rows.iter().max().map_or(0, |row| row + 1);
        let mut by_row = vec![0.0; last];
        for part in &function.parts {
            for (s, coefficient) in part.support.clone().zip(&part.coefficients) {
                by_row[model.support_rows[s]] = *coefficient;
            }
        }
        let candidate: Vec<f64> = rows
            .enumerate()
            .map(|(v, row)| {
                let value: f64 = by_row.get(row).copied().unwrap_or(0.0);
                let fits =
                    if value > 0.0 { problem.upper[v] > 0.0 } else { problem.lower[v] < 0.0 };
                if fits { value } else { 0.0 }
            })
            .collect();
        if let Some(start) = feasible(problem, candidate) {
            problem.start = start;
        }
    }
}

/// The point near `values` that lies in the boxes and has the sums of the problem's own start.
fn feasible(problem: &smo::Problem, mut values: Vec<f64>) -> Option<Vec<f64>> {
    let group_of = |v: usize| problem.groups.as_ref().map_or(0, |groups| groups[v]);
    for group in 0..2 {
        let members: Vec<usize> = (0..values.len()).filter(|&v| group_of(v) == group).collect();
        let target: f64 = members.iter().map(|&v| problem.start[v]).sum();
        if !settle(problem, &members, target, &mut values) {
            return None;
        }
    }
    Some(values)
}

/// Brings the sum of `members` to `target`: by a factor where the target is not zero (models of some
/// machines are multiples of their solution), then by moving those that are not zero, then all.
fn settle(problem: &smo::Problem, members: &[usize], target: f64, values: &mut [f64]) -> bool {
    let sum: f64 = members.iter().map(|&v| values[v]).sum();
    let same_side = target != 0.0 && sum != 0.0 && sum.signum() == target.signum();
    let factor = if same_side { target / sum } else { 1.0 };
    for &v in members {
        values[v] = (values[v] * factor).clamp(problem.lower[v], problem.upper[v]);
    }
    let scale: f64 = members.iter().map(|&v| values[v].abs()).sum::<f64>() + target.abs();
    for only_used in [true, true, false] {
        let missing = target - members.iter().map(|&v| values[v]).sum::<f64>();
        if missing.abs() <= ROUNDING * scale {
            return true;
        }
        let room = |v: usize, value: f64| {
            let bound = if missing > 0.0 { problem.upper[v] } else { problem.lower[v] };
            // An open side has as much room as anybody could want.
            if bound.is_finite() { bound - value } else { missing }
        };
        let takes = |v: usize, value: f64| !only_used || (value != 0.0 && room(v, value) != 0.0);
        let moving: Vec<usize> = members.iter().copied().filter(|&v| takes(v, values[v])).collect();
        let total: f64 = moving.iter().map(|&v| room(v, values[v])).sum();
        if total != 0.0 {
            let share = (missing / total).min(1.0);
            for v in moving {
                values[v] += share * room(v, values[v]);
            }
        }
    }
    (target - members.iter().map(|&v| values[v]).sum::<f64>()).abs() <= ROUNDING * scale.max(1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn problem(upper: Vec<f64>, start: Vec<f64>) -> smo::Problem {
        smo::Problem {
            linear: vec![0.0; upper.len()],
            lower: vec![0.0; upper.len()],
            upper,
            ridge: None,
            groups: None,
            start,
        }
    }

    proptest! {
        #[test]
        fn starts_are_feasible(
            variables in prop::collection::vec((0.0..2.0_f64, 0.1..3.0_f64), 2..20),
            share in 0.05..0.95_f64,
        ) {
            let upper: Vec<f64> = variables.iter().map(|v| v.1).collect();
            let start: Vec<f64> = upper.iter().map(|u| share * u).collect();
            let target: f64 = start.iter().sum();
            let candidate = variables.iter().map(|v| v.0).collect();
            let problem = problem(upper.clone(), start);
            let found = feasible(&problem, candidate).expect("the box holds the sum");
            prop_assert!((found.iter().sum::<f64>() - target).abs() <= 1e-9 * (1.0 + target));
            for (value, upper) in found.iter().zip(&upper) {
                prop_assert!((0.0..=*upper + 1e-12).contains(value));
            }
        }
    }

    #[test]
    fn an_optimum_of_the_same_problem_is_kept() {
        let problem = problem(vec![1.0; 4], vec![1.0, 0.5, 0.0, 0.0]);
        let optimum = vec![0.0, 0.25, 0.25, 1.0];
        assert_eq!(feasible(&problem, optimum.clone()), Some(optimum));
    }
}
