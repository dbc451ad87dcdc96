//! Dual coordinate descent for hinge, squared hinge and tube losses.
//!
//! With w = Σ βᵢxᵢ it minimises `½‖w‖² + Σ ½rᵢβᵢ² − tᵢβᵢ + ε|βᵢ|` within `lᵢ ≤ βᵢ ≤ uᵢ`, one βᵢ at a
//! time in random order, setting aside those that sit at a bound (or at 0) with room to spare; the
//! status is `Solved` only when a last pass over all rows, without steps, finds the tolerance kept.
//! Where passes over a narrow table have cost as much as an interior-point method would, that goes on;
//! with a squared loss Newton's method does, after many passes over any table.
//! Hsieh, Chang, Lin, Keerthi and Sundararajan (2008); Ho and Lin (2012) for tubes.

use super::interior;
use super::newton;
use super::problem::{Loss, Options, Passes, Problem, Solution, primal, squared_norm};
use super::products::Products;
use super::roster::Roster;
use super::sweep::sweep;
use super::table::Table;
use super::variable::{Band, BlockReport, Goal, OwnVariables, Variable, Violation};
use crate::context::Context;
use crate::numeric::random::Generator;
use crate::solver::Status;
use crate::solver::linear::rows::LinearRows;

/// How often a descent that believed to be done is sent back by the last pass.
pub(super) const MOST_RETURNS: u32 = 20;

/// What a look at a variable costs beside its stored values, in theirs.
const LOOK: usize = 16;

/// Looks at every variable of a squared loss before Newton's method goes on, and what is asked of that.
const MOST_LOOKS: u64 = 150;
const NEWTON_TOLERANCE: f64 = 1e-6;
const NEWTON_STEPS: u64 = 100;

/// The dual of a problem, to be descended in one go or block by block.
#[derive(Clone, Debug)]
pub struct Descent {
    variables: OwnVariables,
    epsilon: f64,
    loss: Loss,
}

impl Descent {
    /// The dual of `problem` over `rows`, from β = `start` (cut to its bounds) or 0.
    pub fn new<R: LinearRows>(rows: &R, problem: &Problem<'_>, start: Option<&[f64]>) -> Self {
        let variable = variable(rows, problem, start);
        let variables = OwnVariables::new((0..rows.rows()).map(variable).collect());
        Self { variables, epsilon: problem.loss.tube(), loss: problem.loss }
    }

    /// Σ βᵢxᵢ
    pub fn weights<R: LinearRows>(&self, rows: &R) -> Vec<f64> {
        weights(rows, self.list())
    }

    fn list(&self) -> impl Iterator<Item = Variable> {
        self.variables.list.iter().copied()
    }

    /// Adds Σ βᵢxᵢ to weights.
    pub fn add_to<R: LinearRows>(&self, rows: &R, weights: &mut [f64]) {
        add_rows(rows, self.list(), weights);
    }

    /// Takes other values of the variables; the weights with them.
    fn move_to<R: LinearRows>(&mut self, rows: &R, dual: &[f64]) -> Vec<f64> {
        for (v, beta) in self.variables.list.iter_mut().zip(dual) {
            v.beta = beta.clamp(v.lower, v.upper);
        }
        self.weights(rows)
    }

    /// β of every row.
    pub fn dual(&self) -> Vec<f64> {
        self.list().map(|variable| variable.beta).collect()
    }

    /// The variables that can move at all.
    fn movable(&self) -> Vec<u32> {
        movable(self.list())
    }

    /// What the variables add to the dual objective, beside ½‖w‖².
    pub fn separable_cost(&self) -> f64 {
        separable_cost(self.list(), self.epsilon)
    }

    /// Dual objective, as a maximum.
    fn objective(&self, weights: &[f64]) -> f64 {
        -0.5 * squared_norm(weights) - self.separable_cost()
    }

    /// Passes over the rows of a block, w following, at most `passes` of them.
    pub fn descend_block<R: LinearRows>(
        &mut self,
        rows: &R,
        weights: &mut [f64],
        passes: usize,
        seed: u64,
    ) -> BlockReport {
        let mut generator = Generator::new(seed);
        let mut roster = Roster::new(self.movable(), false);
        let mut band = Band::OPEN;
        let mut report = BlockReport::default();
        for pass in 0..passes {
            generator.shuffle(&mut roster.active);
            report.steps += roster.active.len() as u64;
            let violation = self.sweep(rows, &mut roster, weights, band);
            if pass == 0 {
                report.see(&violation);
            }
            band = Band::after(&violation, true);
        }
        report
    }

    /// How far the conditions are violated where the rows have these values ⟨w, x⟩.
    pub fn examine_block(&self, values: &[f64]) -> BlockReport {
        let mut report = BlockReport::default();
        report.see(&self.look(values));
        report
    }

    /// One pass over those whose turn it is.
    #[inline]
    fn sweep<R: LinearRows>(
        &mut self,
        rows: &R,
        roster: &mut Roster,
        weights: &mut [f64],
        band: Band,
    ) -> Violation {
        let Roster { active, rests } = roster;
        let (kept, violation) =
            sweep(rows, &mut self.variables, active, rests, weights, band, self.loss);
        roster.end_pass(kept);
        violation
    }

    /// The dual variables that another method finds, from these weights on.
    fn finish_otherwise<R: LinearRows>(
        &self,
        rows: &R,
        problem: &Problem<'_>,
        options: &Options,
        weights: &[f64],
        context: &Context,
    ) -> Option<Vec<f64>> {
        if !self.loss.is_squared() {
            let list = &self.variables.list;
            return interior::solve(rows, list, self.epsilon, options.alone, context);
        }
        let options = Options { tol: NEWTON_TOLERANCE, max_passes: NEWTON_STEPS, ..*options };
        Some(newton::solve(rows, problem, &options, Some(weights), false, context).dual)
    }

    /// The violation where all rows have these values ⟨w, x⟩.
    fn look(&self, values: &[f64]) -> Violation {
        Violation::of(self.list(), values, self.epsilon)
    }
}

/// Solves the dual of a hinge, squared hinge or tube problem, from β = `start` or 0.
///
/// The tolerance bounds the range of projected gradients; for tubes the sum of their sizes relative
/// to that sum in the first pass, or at 0 where there is a start.
pub fn solve<R: LinearRows>(
    rows: &R,
    problem: &Problem<'_>,
    options: &Options,
    start: Option<&[f64]>,
    context: &Context,
) -> Solution {
    let mut descent = Descent::new(rows, problem, start);
    let mut weights = descent.weights(rows);
    let mut generator = Generator::new(context.seed());
    let mut goal = goal(problem, options, start.is_some());
    let mut passes = Passes::new(options, context);
    let all = descent.movable();
    let mut roster = Roster::new(all.clone(), options.shrinking);
    let mut band = Band::OPEN;
    let mut returns = 0;
    let products = Products::new(rows, options.alone, context);
    let mut values = vec![0.0; rows.rows()];
    let mut patience = patience(rows, problem.loss);
    let status = loop {
        generator.shuffle(&mut roster.active);
        let looked_at = roster.active.len();
        let violation = descent.sweep(rows, &mut roster, &mut weights, band);
        let stop = passes.finish(looked_at, violation.range(), || f64::NAN);
        goal = goal.after_first(&violation);
        if goal.is_met(&violation) {
            if looked_at == all.len() {
                products.write_values(&weights, &mut values);
                returns += 1;
                if goal.is_met(&descent.look(&values)) {
                    break Status::Solved;
                } else if returns > MOST_RETURNS {
                    break Status::AlmostSolved;
                }
            }
            roster.call(all.iter().copied());
            band = Band::OPEN;
        } else {
            band = Band::after(&violation, options.shrinking);
        }
        if stop.is_none() && passes.steps >= patience {
            patience = u64::MAX;
            if let Some(dual) = descent.finish_otherwise(rows, problem, options, &weights, context)
            {
                weights = descent.move_to(rows, &dual);
                roster.call(all.iter().copied());
                band = Band::OPEN;
            }
        }
        if let Some(status) = stop {
            products.write_values(&weights, &mut values);
            break status;
        }
    };
    let violation = descent.look(&values);
    let dual = descent.objective(&weights);
    let primal = primal(problem, &weights, &values);
    let outcome = passes.outcome(status, primal, dual, violation.range());
    Solution { weights, dual: descent.dual(), outcome }
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
            Loss::Tube(_) | Loss::SquaredTube(_) => (-bound, bound),
            _ if target > 0.0 => (0.0, bound),
            _ => (-bound, 0.0),
        };
        let beta = start.map_or(0.0, |s| s[i].clamp(lower, upper));
        let curvature = rows.squared_norm(i) + ridge;
        let reach = if curvature > 0.0 { 1.0 / curvature } else { 0.0 };
        let target = target - problem.shift;
        Variable { beta, lower, upper, target, ridge, reach }
    }
}

/// Σ βᵢxᵢ
pub(super) fn weights<R: LinearRows>(
    rows: &R,
    variables: impl Iterator<Item = Variable>,
) -> Vec<f64> {
    let mut weights = vec![0.0; rows.width()];
    add_rows(rows, variables, &mut weights);
    weights
}

fn add_rows<R: LinearRows>(
    rows: &R,
    variables: impl Iterator<Item = Variable>,
    weights: &mut [f64],
) {
    for (i, variable) in variables.enumerate() {
        if variable.beta != 0.0 {
            rows.add(i, variable.beta, weights);
        }
    }
}

/// The variables that can move at all.
pub(super) fn movable(variables: impl Iterator<Item = Variable>) -> Vec<u32> {
    let moves = |(_, variable): &(u32, Variable)| variable.lower < variable.upper;
    (0..).zip(variables).filter(moves).map(|(i, _)| i).collect()
}

/// Σ ½rᵢβᵢ² − tᵢβᵢ + ε|βᵢ|
pub(super) fn separable_cost(variables: impl Iterator<Item = Variable>, epsilon: f64) -> f64 {
    let cost = |v: Variable| (0.5 * v.ridge * v.beta - v.target) * v.beta + epsilon * v.beta.abs();
    variables.map(cost).sum()
}

/// Looks at variables that cost as much as another method.
fn patience<R: LinearRows>(rows: &R, loss: Loss) -> u64 {
    if loss.is_squared() {
        return MOST_LOOKS.saturating_mul(rows.rows() as u64);
    }
    let look = 2 * rows.nonzeros() / rows.rows().max(1) + LOOK;
    interior::work(rows).map_or(u64::MAX, |work| work / look as u64)
}

/// When a descent of `problem`, from a start or from 0, may stop.
pub(super) fn goal(problem: &Problem<'_>, options: &Options, started: bool) -> Goal {
    match problem.loss {
        Loss::Tube(_) | Loss::SquaredTube(_) if !started => Goal::Share(options.tol),
        Loss::Tube(epsilon) | Loss::SquaredTube(epsilon) => {
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
    use super::super::abreast::tests::Contest;
    use super::*;
    use crate::solver::linear::rows::SparseRows;

    #[test]
    fn a_squared_loss_that_descent_does_not_end_is_ended_by_newton_s_method() {
        let contest = Contest::new(12, 1000.0);
        let rows = SparseRows::new(&contest.table, contest.table.values(), Some(1.0));
        let (targets, costs) = contest.rivals(Loss::SquaredHinge).sides(1);
        let context = Context::new();
        let options = Options {
            tol: 1e-3,
            max_passes: 100_000,
            shrinking: true,
            alone: true,
            singles: false,
        };
        for loss in [Loss::SquaredHinge, Loss::SquaredTube(0.1)] {
            let problem = Problem { loss, targets: &targets, costs: &costs, shift: 0.0 };
            let found = solve(&rows, &problem, &options, None, &context).outcome;
            let exact = Options { tol: 1e-12, ..options };
            let best = newton::solve(&rows, &problem, &exact, None, false, &context).outcome;
            let looks = MOST_LOOKS * rows.rows() as u64;
            let case = format!("{loss:?}: {found:?} for {best:?}");
            assert!(found.status.is_solved() && found.violation <= options.tol, "{case}");
            assert!(found.iterations > looks && found.iterations < 2 * looks, "{case}");
            assert!((found.primal - best.primal).abs() < 1e-6 * best.primal, "{case}");
        }
    }
}
