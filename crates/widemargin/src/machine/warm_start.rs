//! Feasible starting points from the solution of a related problem.
//!
//! The dual variables of an earlier model, matched by training row, are clipped to the new boxes and
//! moved along the equality constraints back to the sums the new problem fixes; where that is
//! impossible the problem keeps its own start.

use super::fit::Machine;
use super::model::{Model, Scheme, Training};
use crate::data::Label;
use crate::solver::smo;

/// Relative error of a sum that rounding may leave.
const ROUNDING: f64 = 1e-12;

/// The solution of a related problem that a training may start from.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Start<'a> {
    /// Its dual variables, cut to the new boxes: for a problem with the same kernel.
    Values(&'a Model),
    /// Its dual variables times the ratio of the penalties, so that those at their bound stay there
    /// (Nguyen 2006, equation 4.15); takes more steps than `Values` where few are at their bound.
    Scaled(&'a Model),
    /// Only which rows are its support vectors: for a problem with another kernel.
    Support(&'a Model),
}

/// The [`Start`] that a training can use, if there is one.
#[derive(Clone, Copy)]
pub(in crate::machine) struct UsableStart<'a> {
    start: Option<Start<'a>>,
    /// Factor on the dual variables.
    factor: f64,
}

impl<'a> Start<'a> {
    /// All that `machine` can take from a model.
    pub fn of(model: &'a Model, machine: &dyn Machine) -> Self {
        match machine.kernel() {
            Some(kernel) if model.kernel() != Some(kernel) => Self::Support(model),
            _ => Self::Values(model),
        }
    }

    pub(in crate::machine) fn model(self) -> &'a Model {
        match self {
            Self::Values(model) | Self::Scaled(model) | Self::Support(model) => model,
        }
    }
}

impl<'a> UsableStart<'a> {
    /// No solution: every problem keeps its own start.
    pub(in crate::machine) const NONE: Self = Self { start: None, factor: 1.0 };

    /// The model of a start whose support vectors remember their training rows.
    pub(in crate::machine) fn new(start: Option<Start<'a>>) -> Self {
        Self { start, factor: 1.0 }
            .of_models(|model| model.support_rows().len() == model.support_count())
    }

    fn of_models(self, accept: impl Fn(&Model) -> bool) -> Self {
        Self { start: self.start.filter(|start| accept(start.model())), ..self }
    }

    /// The same, only if the earlier machine had these classes and this scheme.
    pub(in crate::machine) fn of_classes(self, names: &[Label], scheme: &Scheme) -> Self {
        self.of_models(|model| {
            model
                .classes
                .as_ref()
                .is_some_and(|table| table.scheme == *scheme && table.names.len() == names.len())
        })
    }

    /// The same; where asked for, its dual variables multiplied as the penalty is.
    pub(in crate::machine) fn of_penalty(self, c: f64) -> Self {
        let Some(Start::Scaled(model)) = self.start else { return self };
        let earlier = model.training.as_ref().and_then(Training::penalty);
        Self { factor: earlier.map_or(1.0, |earlier| c / earlier), ..self }
    }

    /// The coefficients of function `index` on `rows`, 0 where it has none; `None` without an earlier
    /// solution whose values can be used.
    pub(in crate::machine) fn values(
        self,
        index: usize,
        rows: impl Iterator<Item = usize>,
    ) -> Option<Vec<f64>> {
        match self.start? {
            Start::Support(_) => None,
            Start::Values(_) | Start::Scaled(_) => self.coefficients(index, rows),
        }
    }

    fn coefficients(self, index: usize, rows: impl Iterator<Item = usize>) -> Option<Vec<f64>> {
        let body = self.start?.model().expansion()?;
        let function = body.functions.get(index)?;
        let last = body.support_rows.iter().max().map_or(0, |row| row + 1);
        let mut by_row = vec![0.0; last];
        for part in &function.parts {
            for (s, coefficient) in part.support.clone().zip(&part.coefficients) {
                by_row[body.support_rows[s]] = self.factor * *coefficient;
            }
        }
        Some(rows.map(|row| by_row.get(row).copied().unwrap_or(0.0)).collect())
    }

    /// Replaces the start of `problem` by the variables of function `index`; `rows` names the
    /// training row of every variable, those of one row sharing its coefficient by sign.
    pub(in crate::machine) fn apply(
        self,
        index: usize,
        rows: impl Iterator<Item = usize>,
        problem: &mut smo::Problem,
    ) {
        let Some(start) = self.start else { return };
        let Some(mut candidate) = self.coefficients(index, rows) else { return };
        for (v, value) in candidate.iter_mut().enumerate() {
            let fits = if *value > 0.0 { problem.upper[v] > 0.0 } else { problem.lower[v] < 0.0 };
            if !fits {
                *value = 0.0;
            }
        }
        problem.initial_working_set =
            (0..candidate.len() as u32).filter(|&v| candidate[v as usize] != 0.0).collect();
        if matches!(start, Start::Support(_)) {
            return;
        }
        if let Some(start) = feasible(problem, candidate, None) {
            problem.start = start;
            problem.bound_tolerance = smo::Problem::BOUND_TOLERANCE;
        }
    }
}

/// The point near `values` that lies in the boxes and has the sums of the problem's own start. Where
/// variables have to leave their bounds for that, those go first that `gradient`, of a point nearby,
/// sends that way.
pub(in crate::machine) fn feasible(
    problem: &smo::Problem,
    mut values: Vec<f64>,
    gradient: Option<&[f64]>,
) -> Option<Vec<f64>> {
    let Some(groups) = &problem.groups else {
        let boxes = Boxes { lower: &problem.lower, upper: &problem.upper };
        let target = sum(&problem.start);
        return reach_sum(boxes, target, gradient, &mut values).then_some(values);
    };
    for group in 0..2 {
        let members: Vec<usize> = (0..groups.len()).filter(|&v| groups[v] == group).collect();
        let own = |all: &[f64]| members.iter().map(|&v| all[v]).collect::<Vec<f64>>();
        let (lower, upper) = (own(&problem.lower), own(&problem.upper));
        let boxes = Boxes { lower: &lower, upper: &upper };
        let (target, gradient, mut moved) =
            (sum(&own(&problem.start)), gradient.map(own), own(&values));
        if !reach_sum(boxes, target, gradient.as_deref(), &mut moved) {
            return None;
        }
        members.iter().zip(moved).for_each(|(&v, value)| values[v] = value);
    }
    Some(values)
}

/// Partial sums.
const LANES: usize = 8;

fn sum(values: &[f64]) -> f64 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for chunk in chunks {
        sums.iter_mut().zip(chunk).for_each(|(sum, value)| *sum += value);
    }
    sums.iter().chain(rest).sum()
}

/// Where variables may go.
#[derive(Clone, Copy)]
struct Boxes<'a> {
    lower: &'a [f64],
    upper: &'a [f64],
}

impl Boxes<'_> {
    /// How far a variable can move in the direction of `missing`.
    fn room(self, v: usize, value: f64, missing: f64) -> f64 {
        let bound = if missing > 0.0 { self.upper[v] } else { self.lower[v] };
        // An open side does not limit the move.
        if bound.is_finite() { bound - value } else { missing }
    }
}

/// Variables that may move to reach a sum.
#[derive(Clone, Copy)]
enum MovableSet {
    /// Those inside their boxes, so that those at their bounds stay there.
    Inside,
    /// Those that are not zero.
    Used,
    All,
}

/// Brings the sum of variables to `target`: by a factor where the target is not zero (models of some
/// machines are multiples of their solution), then by moving more and more of them.
fn reach_sum(boxes: Boxes<'_>, target: f64, gradient: Option<&[f64]>, values: &mut [f64]) -> bool {
    let before = sum(values);
    let same_side = target != 0.0 && before != 0.0 && before.signum() == target.signum();
    let is_multiple = same_side && (target - before).abs() > ROUNDING * target.abs();
    let factor = if is_multiple { target / before } else { 1.0 };
    for (value, (&lower, &upper)) in values.iter_mut().zip(boxes.lower.iter().zip(boxes.upper)) {
        // A variable that rounding took off its bound would take a step to come back.
        *value = (*value * factor).max(lower).min(upper);
        *value =
            if upper - *value <= ROUNDING * upper.abs().min(f64::MAX) { upper } else { *value };
        *value =
            if *value - lower <= ROUNDING * lower.abs().min(f64::MAX) { lower } else { *value };
    }
    let scale = values.iter().map(|value| value.abs()).sum::<f64>() + target.abs();
    for among in [
        MovableSet::Inside,
        MovableSet::Inside,
        MovableSet::Used,
        MovableSet::Used,
        MovableSet::All,
    ] {
        let missing = target - sum(values);
        if missing.abs() <= ROUNDING * scale {
            return true;
        }
        if let (Some(gradient), MovableSet::Used) = (gradient, among) {
            move_by_gradient(boxes, missing, gradient, values);
            continue;
        }
        let takes = |v: usize, value: f64| match among {
            MovableSet::Inside => {
                (value != 0.0) & (boxes.lower[v] < value) & (value < boxes.upper[v])
            }
            MovableSet::Used => value != 0.0 && boxes.room(v, value, missing) != 0.0,
            MovableSet::All => true,
        };
        let moving: Vec<usize> = (0..values.len()).filter(|&v| takes(v, values[v])).collect();
        let total: f64 = moving.iter().map(|&v| boxes.room(v, values[v], missing)).sum();
        if total != 0.0 {
            let share = (missing / total).min(1.0);
            for v in moving {
                values[v] += share * boxes.room(v, values[v], missing);
            }
        }
    }
    (target - sum(values)).abs() <= ROUNDING * scale.max(1.0)
}

/// Moves variables all the way, those first whose gradient gains most by it, until nothing is
/// missing.
fn move_by_gradient(boxes: Boxes<'_>, mut missing: f64, gradient: &[f64], values: &mut [f64]) {
    let loss = |v: usize| if missing > 0.0 { gradient[v] } else { -gradient[v] };
    let mut order: Vec<(f64, usize)> = (0..values.len())
        .filter(|&v| boxes.room(v, values[v], missing) != 0.0)
        .map(|v| (loss(v), v))
        .collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    for (_, v) in order {
        let room = boxes.room(v, values[v], missing);
        if room.abs() >= missing.abs() {
            values[v] += missing;
            return;
        }
        values[v] += room;
        missing -= room;
    }
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
            start,
            ..smo::Problem::default()
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
            let found = feasible(&problem, candidate, None).expect("the box holds the sum");
            prop_assert!((found.iter().sum::<f64>() - target).abs() <= 1e-9 * (1.0 + target));
            for (value, upper) in found.iter().zip(&upper) {
                prop_assert!((0.0..=*upper + 1e-12).contains(value));
            }
        }
    }

    #[test]
    fn a_multiple_of_a_point_at_its_bounds_is_at_them() {
        let upper: Vec<f64> = (1..60).map(|i| 1.0 / f64::from(i)).collect();
        let mut point = upper.clone();
        point.iter_mut().skip(40).for_each(|value| *value *= 0.3);
        let multiple: Vec<f64> = point.iter().map(|value| value / 0.7).collect();
        let found = feasible(&problem(upper.clone(), point.clone()), multiple, None).unwrap();
        assert_eq!(found[..40], upper[..40]);
        assert!(found.iter().zip(&point).all(|(a, b)| (a - b).abs() < 1e-12));
        let again = feasible(&problem(upper, point.clone()), point.clone(), None).unwrap();
        assert_eq!(again, point);
    }

    #[test]
    fn an_optimum_of_the_same_problem_is_kept() {
        let problem = problem(vec![1.0; 4], vec![1.0, 0.5, 0.0, 0.0]);
        let optimum = vec![0.0, 0.25, 0.25, 1.0];
        assert_eq!(feasible(&problem, optimum.clone(), None), Some(optimum));
    }
}
