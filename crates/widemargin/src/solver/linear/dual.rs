//! Dual coordinate descent for hinge, squared hinge and tube losses.
//!
//! With w = Σ βᵢxᵢ it minimises `½‖w‖² + Σ ½rᵢβᵢ² − tᵢβᵢ + ε|βᵢ|` within `lᵢ ≤ βᵢ ≤ uᵢ`, one βᵢ at a time in
//! random order, with shrinking; the status is `Solved` only when a last pass over all rows, without
//! steps, finds the tolerance and the duality gap kept. Where passes have cost as much as a second-order
//! method would, or are at their limit and it costs little more, that goes on: an interior-point method over narrow tables, Newton's with a squared loss.
//! Hsieh, Chang, Lin, Keerthi and Sundararajan (2008); Ho and Lin (2012) for tubes.

use super::active_set::ActiveSet;
use super::interior;
use super::newton::{self, Norm};
use super::problem::{Options, Passes, Problem, RowLoss, Solution, primal, squared_norm};
use super::products::Products;
use super::sweep::sweep;
use super::table::Table;
use super::tuning::dual::{
    LAST_RESORT, LOOK, LOOKS_BEFORE_NEWTON, MOST_RETURNS, MOST_TIGHTENED, NEWTON_GAP, NEWTON_STEPS,
    NEWTON_TOLERANCE,
};
use super::variable::{Band, Goal, Variable, Violation};
use crate::context::Context;
use crate::numeric::random::Generator;
use crate::solver::Status;
use crate::solver::linear::rows::LinearRows;

/// The dual of a problem, to be descended in one go or block by block.
#[derive(Clone, Debug)]
pub(crate) struct Descent {
    variables: Vec<Variable>,
    epsilon: f64,
    loss: RowLoss,
}

impl Descent {
    /// The dual of `problem` over `rows`, from β = `start` (cut to its bounds) or 0.
    pub(crate) fn new<R: LinearRows>(
        rows: &R,
        problem: &Problem<'_>,
        start: Option<&[f64]>,
    ) -> Self {
        let variables = (0..rows.rows()).map(variable(rows, problem, start)).collect();
        Self { variables, epsilon: problem.loss.tube(), loss: problem.loss }
    }

    /// β of every row.
    pub(crate) fn dual(&self) -> Vec<f64> {
        self.variables.iter().map(|variable| variable.beta).collect()
    }

    /// Gives every variable another value, cut to its bounds.
    fn move_to(&mut self, dual: &[f64]) {
        for (v, beta) in self.variables.iter_mut().zip(dual) {
            v.beta = beta.clamp(v.lower, v.upper);
        }
    }

    /// Dual objective, as a maximum.
    fn objective(&self, weights: &[f64]) -> f64 {
        -0.5 * squared_norm(weights) - separable_cost(self.variables.iter(), self.epsilon)
    }

    /// Passes over the rows of a block, w following.
    pub(crate) fn descend_block<R: LinearRows>(
        &mut self,
        rows: &R,
        weights: &mut [f64],
        passes: usize,
        seed: u64,
    ) -> Violation {
        let mut generator = Generator::new(seed);
        let mut set = ActiveSet::new(movable(&self.variables), false);
        let (mut band, mut seen) = (Band::OPEN, Violation::default());
        for pass in 0..passes {
            generator.shuffle(&mut set.active);
            let violation = self.sweep(rows, &mut set, weights, band);
            let steps = seen.steps + violation.steps;
            seen = Violation { steps, ..if pass == 0 { violation } else { seen } };
            band = Band::after(&violation, true);
        }
        seen
    }

    /// The violation where all rows have these values ⟨w, x⟩.
    pub(crate) fn examine(&self, values: &[f64]) -> Violation {
        Violation::of(self.variables.iter(), values, self.epsilon)
    }

    /// One pass over the active variables.
    #[inline]
    fn sweep<R: LinearRows>(
        &mut self,
        rows: &R,
        set: &mut ActiveSet,
        weights: &mut [f64],
        band: Band,
    ) -> Violation {
        let ActiveSet { active, skipped } = set;
        let (variables, loss) = (&mut self.variables[..], self.loss);
        let (kept, violation) =
            sweep(rows, variables, active, skipped, weights, band, loss, |_, _, _| ());
        set.end_pass(kept);
        violation
    }

    /// Moves to the dual variables that a second-order method finds, from these weights on; whether it
    /// found better ones.
    fn finish_by_second_order<R: LinearRows>(
        &mut self,
        rows: &R,
        problem: &Problem<'_>,
        options: &Options,
        weights: &[f64],
        context: &Context,
    ) -> bool {
        let found = if self.loss.is_squared() {
            let (tol, gap) = (NEWTON_TOLERANCE, NEWTON_GAP * options.gap);
            let options = Options { tol, gap, max_passes: NEWTON_STEPS, ..*options };
            let start = Some(weights);
            let norm = Norm::L2;
            Some(newton::solve(rows, None, problem, norm, &options, start, false, context).dual)
        } else {
            interior::solve(rows, &self.variables, self.epsilon, options, context)
        };
        let Some(found) = found.filter(|dual| dual.iter().all(|beta| beta.is_finite())) else {
            return false;
        };
        let (before, reached) = (self.dual(), self.objective(weights));
        self.move_to(&found);
        let objective = self.objective(&self::weights(rows, self.variables.iter()));
        let is_better = objective >= reached;
        if !is_better {
            self.move_to(&before);
        }
        is_better
    }
}

/// Solves the dual of a hinge, squared hinge or tube problem, from β = `start` or 0.
///
/// The tolerance bounds the range of projected gradients; for tubes the sum of their sizes relative
/// to that sum in the first pass, or at 0 where there is a start.
pub(crate) fn solve<R: LinearRows>(
    rows: &R,
    problem: &Problem<'_>,
    options: &Options,
    start: Option<&[f64]>,
    context: &Context,
) -> Solution {
    let mut descent = Descent::new(rows, problem, start);
    let mut weights = weights(rows, descent.variables.iter());
    let mut generator = Generator::new(context.seed());
    let mut goal = goal(problem, options, start.is_some());
    let mut passes = Passes::new(options, context);
    let all = movable(&descent.variables);
    let mut set = ActiveSet::new(all.clone(), options.shrinking);
    let mut band = Band::OPEN;
    let (mut returns, mut tightened) = (0, 0);
    let products = Products::new(rows, options.alone, context);
    let mut values = vec![0.0; rows.rows()];
    let mut patience = visits_before_second_order(rows, problem.loss);
    // A point within the gap, which is the solution if descent from it has not met the tolerance by then.
    let mut certified: Option<(Vec<f64>, u64)> = None;
    let status = loop {
        generator.shuffle(&mut set.active);
        let looked_at = set.active.len();
        let violation = descent.sweep(rows, &mut set, &mut weights, band);
        let stop = passes.finish(looked_at, violation.range(), || f64::NAN);
        goal = goal.after_first(&violation);
        band = Band::after(&violation, options.shrinking);
        if goal.is_met(&violation) {
            if looked_at == all.len() {
                products.write_values(&weights, &mut values);
                if !goal.is_met(&descent.examine(&values)) {
                    returns += 1;
                } else if gap_is_met(problem, options, &weights, &values, &descent) {
                    break Status::Solved;
                } else {
                    (goal, tightened) = (goal.tightened(), tightened + 1);
                }
                if returns > MOST_RETURNS || tightened > MOST_TIGHTENED {
                    break Status::AlmostSolved;
                }
            }
            set.reactivate(&all);
            band = Band::OPEN;
        }
        if is_slow(stop, passes.steps, patience) {
            patience = 0;
            if descent.finish_by_second_order(rows, problem, options, &weights, context) {
                weights = self::weights(rows, descent.variables.iter());
                products.write_values(&weights, &mut values);
                // A tolerance below the gap asks for more than the gap can show.
                let coarse = options.tol >= options.gap;
                if coarse && gap_is_met(problem, options, &weights, &values, &descent) {
                    certified = Some((descent.dual(), 3 * passes.steps));
                }
                set.reactivate(&all);
                band = Band::OPEN;
            }
        }
        if let Some(status) = stop {
            products.write_values(&weights, &mut values);
            let is_met = certified.is_some() || goal.is_met(&descent.examine(&values));
            let is_solved = is_met && gap_is_met(problem, options, &weights, &values, &descent);
            let is_in_time = status == Status::IterationLimit;
            break if is_solved && is_in_time { Status::Solved } else { status };
        }
        if let Some((dual, _)) = certified.as_ref().filter(|(_, steps)| passes.steps >= *steps) {
            descent.move_to(dual);
            weights = self::weights(rows, descent.variables.iter());
            products.write_values(&weights, &mut values);
            break Status::Solved;
        }
    };
    let violation = descent.examine(&values);
    let dual = descent.objective(&weights);
    let primal = primal(problem, &weights, &values);
    let outcome = passes.outcome(status, primal, dual, violation.range());
    Solution { weights, dual: descent.dual(), outcome }
}

/// Whether a second-order method should take over after so many visits to variables: they have cost as much,
/// or the passes are at their limit and it costs little more. It is tried once, while `patience` is not 0.
fn is_slow(stop: Option<Status>, looks: u64, patience: u64) -> bool {
    patience > 0
        && match stop {
            None => looks >= patience,
            Some(Status::IterationLimit) => patience <= LAST_RESORT.saturating_mul(looks),
            Some(_) => false,
        }
}

/// Whether the duality gap is small enough where the rows have these values.
fn gap_is_met(
    problem: &Problem<'_>,
    options: &Options,
    weights: &[f64],
    values: &[f64],
    descent: &Descent,
) -> bool {
    let primal = primal(problem, weights, values);
    primal - descent.objective(weights) <= options.gap * primal.abs()
}

/// The variable of every row in the dual of `problem`, at its `start` (cut to its bounds) or 0.
pub(super) fn variable<R: LinearRows>(
    rows: &R,
    problem: &Problem<'_>,
    start: Option<&[f64]>,
) -> impl Fn(usize) -> Variable + Sync {
    let loss = problem.loss;
    move |i: usize| {
        let (target, cost) = (problem.targets[i], problem.costs[i]);
        let (bound, ridge) = match (loss.is_squared(), cost > 0.0) {
            (_, false) => (0.0, 0.0),
            (true, true) => (f64::INFINITY, 0.5 / cost),
            (false, true) => (cost, 0.0),
        };
        let (lower, upper) = match loss {
            RowLoss::Tube(_) | RowLoss::SquaredTube(_) => (-bound, bound),
            _ if target > 0.0 => (0.0, bound),
            _ => (-bound, 0.0),
        };
        let beta = start.map_or(0.0, |s| s[i].clamp(lower, upper));
        let curvature = rows.squared_norm(i) + ridge;
        let inverse_curvature = if curvature > 0.0 { 1.0 / curvature } else { 0.0 };
        let (target, row) = (target - problem.shift, i as u32);
        Variable { beta, lower, upper, target, ridge, inverse_curvature, row, skip_passes: 0 }
    }
}

/// Σ βᵢxᵢ
pub(super) fn weights<'a, R: LinearRows>(
    rows: &R,
    variables: impl Iterator<Item = &'a Variable>,
) -> Vec<f64> {
    let mut weights = vec![0.0; rows.width()];
    for variable in variables.filter(|variable| variable.beta != 0.0) {
        rows.add(variable.row as usize, variable.beta, &mut weights);
    }
    weights
}

/// The variables that can move at all.
pub(super) fn movable(variables: &[Variable]) -> Vec<u32> {
    let moves = |(_, variable): &(u32, &Variable)| variable.lower < variable.upper;
    (0..).zip(variables).filter(moves).map(|(i, _)| i).collect()
}

/// Σ ½rᵢβᵢ² − tᵢβᵢ + ε|βᵢ|
pub(super) fn separable_cost<'a>(
    variables: impl Iterator<Item = &'a Variable>,
    epsilon: f64,
) -> f64 {
    let cost = |v: &Variable| (0.5 * v.ridge * v.beta - v.target) * v.beta + epsilon * v.beta.abs();
    variables.map(cost).sum()
}

/// Looks at variables that cost as much as a second-order method.
fn visits_before_second_order<R: LinearRows>(rows: &R, loss: RowLoss) -> u64 {
    if loss.is_squared() {
        return LOOKS_BEFORE_NEWTON.saturating_mul(rows.rows() as u64);
    }
    let look = 2 * rows.nonzeros() / rows.rows().max(1) + LOOK;
    interior::work(rows).map_or(u64::MAX, |work| work / look as u64)
}

/// When a descent of `problem`, from a start or from 0, may stop.
pub(super) fn goal(problem: &Problem<'_>, options: &Options, started: bool) -> Goal {
    match problem.loss {
        RowLoss::Tube(_) | RowLoss::SquaredTube(_) if !started => Goal::Share(options.tol),
        RowLoss::Tube(epsilon) | RowLoss::SquaredTube(epsilon) => {
            let rows = problem.targets.iter().zip(problem.costs);
            let at_zero = rows.map(|(t, c)| {
                if *c > 0.0 { ((t - problem.shift).abs() - epsilon).max(0.0) } else { 0.0 }
            });
            Goal::Sum(options.tol * at_zero.sum::<f64>())
        }
        _ => Goal::Range(options.tol),
    }
}

#[cfg(test)]
mod tests {
    use super::super::batch::tests::RandomProblems;
    use super::*;
    use crate::solver::linear::rows::SparseRows;

    #[test]
    fn a_squared_loss_that_descent_does_not_end_is_ended_by_newton_s_method() {
        let random = RandomProblems::new(12, 1000.0);
        let rows = SparseRows::new(&random.table, random.table.values(), Some(1.0));
        let (targets, costs) = random.problems(RowLoss::SquaredHinge).targets_and_costs(1);
        let context = Context::new();
        let options = Options { tol: 1e-3, singles: false, ..Options::default() };
        for loss in [RowLoss::SquaredHinge, RowLoss::SquaredTube(0.1)] {
            let problem = Problem { loss, targets: &targets, costs: &costs, shift: 0.0 };
            let found = solve(&rows, &problem, &options, None, &context).outcome;
            let exact = Options { tol: 1e-12, ..options };
            let norm = Norm::L2;
            let best = newton::solve(&rows, None, &problem, norm, &exact, None, false, &context);
            let (best, looks) = (best.outcome, LOOKS_BEFORE_NEWTON * rows.rows() as u64);
            let case = format!("{loss:?}: {found:?} for {best:?}");
            assert!(found.status.is_solved() && found.violation <= options.tol, "{case}");
            assert!(found.iterations > looks && found.iterations < 2 * looks, "{case}");
            assert!((found.primal - best.primal).abs() < 1e-6 * best.primal, "{case}");
        }
    }
}
