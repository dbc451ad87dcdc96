//! Which algorithm solves a linear problem, and how.

use std::borrow::Cow;

use super::parameters::{Bias, LinearOptions, LinearSolver, Penalty};
use crate::context::Context;
use crate::data::{Matrix, memory};
use crate::error::{Error, Result};
use crate::machine::parameters::Precision;
use crate::solver::linear::rows::LinearRows;
use crate::solver::linear::{
    Columns, MOST_PASSES, Norm, Options, Problem, RowLoss, Solution, solve_blocks, solve_dual,
    solve_logistic_dual, solve_newton,
};
use crate::solver::{Outcome, Status};

/// Stored values, in all and for every feature, from which a single problem is worth blocks.
const LARGE: usize = 1 << 22;
const LARGE_BY_FEATURE: usize = 256;

/// Whether a single problem over a table of this size is solved in blocks of rows.
pub(crate) fn is_worth_blocks(nonzeros: usize, columns: usize) -> bool {
    nonzeros >= LARGE && nonzeros >= LARGE_BY_FEATURE.saturating_mul(columns)
}

/// Problems over the same rows from which on none is shared by threads.
const MANY_FUNCTIONS: usize = 8;

/// Proximal steps for a bias without a penalty, and how closely it has to converge.
const MOST_PROXIMAL: usize = 200;
const CONVERGED: f64 = 1e-9;

/// Checks that there is memory for the weights of all functions and, of one problem at a time, gradient,
/// curvature, step and order.
pub(super) fn check_memory(features: usize, functions: usize) -> Result<()> {
    let bytes = 8 * (functions as u128 + 6) * features as u128;
    memory::check(|| format!("training on {features} features"), bytes)
}

/// An algorithm that suits a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Dual,
    Blocks,
    Newton,
    NewtonL1,
}

/// What decides about the algorithm beside the rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinearPlan {
    pub(super) loss: RowLoss,
    pub(super) penalty: Penalty,
    pub(super) bias: Bias,
    pub(super) solver: LinearSolver,
    pub(super) options: LinearOptions,
    /// How many problems there are over the same rows.
    pub(super) functions: usize,
}

impl LinearPlan {
    /// The algorithm for a table of this shape.
    pub(super) fn algorithm(
        &self,
        rows: usize,
        columns: usize,
        nonzeros: usize,
    ) -> Result<Algorithm> {
        let refuse = |expected: &str| {
            let found = format!("{} with penalty {}", self.solver, self.penalty);
            Err(Error::parameter("solver", expected, found))
        };
        let free = self.bias == Bias::Free;
        match (self.penalty, self.solver) {
            (Penalty::L1, LinearSolver::Auto) if self.loss.is_smooth() => Ok(Algorithm::NewtonL1),
            (Penalty::L1, LinearSolver::Auto) => Err(Error::parameter(
                "penalty",
                "l2 with a hinge or tube loss (l1 goes with squared-hinge and logistic)",
                "l1",
            )),
            (Penalty::L1, _) => refuse("auto with penalty l1, which has its own"),
            (_, LinearSolver::Newton) if !self.loss.is_smooth() => {
                Err(Error::parameter("solver", "dual or blocks with this loss", "newton"))
            }
            (_, LinearSolver::Newton) => Ok(Algorithm::Newton),
            (_, LinearSolver::Dual | LinearSolver::Blocks) if free && self.loss.is_smooth() => {
                Err(Error::parameter("solver", "newton or auto with a free bias", self.solver))
            }
            (_, LinearSolver::Blocks) if self.loss == RowLoss::Logistic => {
                Err(Error::parameter("solver", "dual or newton with the logistic loss", "blocks"))
            }
            (_, LinearSolver::Dual) => Ok(Algorithm::Dual),
            (_, LinearSolver::Blocks) => Ok(Algorithm::Blocks),
            (_, LinearSolver::Auto) if self.loss.is_smooth() && (free || rows > columns) => {
                Ok(Algorithm::Newton)
            }
            (_, LinearSolver::Auto) if self.loss == RowLoss::Logistic => Ok(Algorithm::Dual),
            (_, LinearSolver::Auto)
                if self.functions == 1 && is_worth_blocks(nonzeros, columns) =>
            {
                Ok(Algorithm::Blocks)
            }
            (_, LinearSolver::Auto) => Ok(Algorithm::Dual),
        }
    }

    /// LIBLINEAR's default tolerance for the algorithm.
    pub(super) fn tolerance(&self, algorithm: Algorithm) -> f64 {
        self.options.tol.unwrap_or(match algorithm {
            Algorithm::Newton => default_newton(self.loss),
            Algorithm::NewtonL1 => 1e-2,
            _ => 0.1,
        })
    }

    /// Options of a solver with that tolerance.
    pub(super) fn options(&self, tol: f64) -> Options {
        Options {
            tol,
            gap: self.options.gap,
            max_passes: self.options.max_iterations.unwrap_or(MOST_PASSES),
            shrinking: self.options.shrinking,
            alone: self.functions < MANY_FUNCTIONS,
            singles: self.options.precision == Precision::F32,
        }
    }

    /// The problem of rows with these targets and costs.
    pub(super) fn problem<'a>(&self, targets: &'a [f64], costs: &'a [f64]) -> Problem<'a> {
        Problem { loss: self.loss, targets, costs, shift: 0.0 }
    }

    /// Whether the algorithm can solve several problems in a batch.
    pub(super) fn is_batched(&self, algorithm: Algorithm) -> bool {
        algorithm == Algorithm::Dual
            && self.bias != Bias::Free
            && matches!(self.loss, RowLoss::Hinge | RowLoss::SquaredHinge | RowLoss::Logistic)
    }

    /// Solves one problem; `start` holds weights of a related one, or its dual variables.
    pub(super) fn solve<R: LinearRows>(
        &self,
        algorithm: Algorithm,
        rows: &R,
        columns: Option<&Columns>,
        problem: Problem<'_>,
        start: Start<'_>,
        context: &Context,
    ) -> Solution {
        let free = self.bias == Bias::Free;
        let tol = self.tolerance(algorithm);
        let dual = match algorithm {
            Algorithm::Newton | Algorithm::NewtonL1 => None,
            _ => start.dual(rows, &problem),
        };
        let dual = dual.as_deref();
        let weights = if let Start::Weights(weights) = start { Some(weights) } else { None };
        let scaled = self.options(tol * balance(&problem));
        match algorithm {
            Algorithm::Newton | Algorithm::NewtonL1 => {
                let norm = if algorithm == Algorithm::Newton { Norm::L2 } else { Norm::L1 };
                solve_newton(rows, columns, &problem, norm, &scaled, weights, free, context)
            }
            Algorithm::Dual if self.loss == RowLoss::Logistic => {
                solve_logistic_dual(rows, &problem, &self.options(tol), dual, context)
            }
            _ if free => self.solve_free(algorithm, rows, problem, tol, dual, context),
            Algorithm::Dual => solve_dual(rows, &problem, &self.options(tol), dual, context),
            Algorithm::Blocks => solve_blocks(rows, &problem, &self.options(tol), dual, context),
        }
    }

    /// A bias without a penalty by proximal steps: `min ½‖w‖² + ½(b − bₖ)² + Σ Cᵢ ℓ`, bₖ₊₁ = b, until b
    /// stays (Rockafellar, 1976).
    fn solve_free<R: LinearRows>(
        &self,
        algorithm: Algorithm,
        rows: &R,
        mut problem: Problem<'_>,
        tol: f64,
        start: Option<&[f64]>,
        context: &Context,
    ) -> Solution {
        let options = self.options(tol);
        let solve = if algorithm == Algorithm::Blocks { solve_blocks } else { solve_dual };
        let mut solution = solve(rows, &problem, &options, start, context);
        let mut before: Option<Outcome> = None;
        for _ in 0..MOST_PROXIMAL {
            let last = solution.weights.len() - 1;
            let moved = solution.weights[last];
            problem.shift += moved;
            let size = problem.shift.abs().max(1.0);
            let steps = before.map_or(0, |outcome| outcome.iterations);
            solution.outcome.iterations += steps;
            if moved.abs() <= (CONVERGED * size).max(1e-3 * tol * size).min(1e-3 * size)
                || !solution.outcome.status.is_solved()
            {
                break;
            }
            before = Some(solution.outcome);
            solution = solve(rows, &problem, &options, Some(&solution.dual), context);
        }
        if let Some(bias) = solution.weights.last_mut() {
            // The quadratic term of the last proximal step is no part of the objective.
            solution.outcome.primal -= 0.5 * *bias * *bias;
            *bias = problem.shift;
        }
        solution
    }
}

/// Refuses a solution that is not finite.
///
/// # Errors
/// [`Error::Parameter`] that names the largest feature and the remedy.
pub(super) fn check_finite(outcome: &Outcome, weights: &[f64], features: &Matrix) -> Result<()> {
    let unfinished = matches!(outcome.status, Status::TimeLimit | Status::Interrupted);
    let finite = outcome.primal.is_finite() && outcome.dual.is_finite();
    let proven = if unfinished { outcome.is_finite() } else { finite };
    if proven && weights.iter().all(|weight| weight.is_finite()) {
        return Ok(());
    }
    let (mut row, mut largest) = (vec![0.0; features.columns()], (0.0, 0));
    for i in 0..features.rows() {
        features.copy_row(i, &mut row);
        let size = row.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        if size > largest.0 {
            largest = (size, i);
        }
    }
    let (size, row) = largest;
    let expected = "features and C whose objective is a finite number: scale the features \
                    (for instance to mean 0 and deviation 1) or choose a smaller C";
    let found =
        format!("objective {}, largest feature {size:e} in row {}", outcome.primal, row + 1);
    Err(Error::parameter("scale", expected, found))
}

/// Where a solver may begin.
#[derive(Clone, Copy, Debug)]
pub(super) enum Start<'a> {
    Nowhere,
    /// Weights, the bias last.
    Weights(&'a [f64]),
    /// Dual variables.
    Dual(&'a [f64]),
}

impl<'a> Start<'a> {
    /// Dual variables to begin with: those given, or −Cᵢℓ′ at the values of the weights, which are
    /// those of an optimum with these weights.
    pub(super) fn dual<R: LinearRows>(
        self,
        rows: &R,
        problem: &Problem<'_>,
    ) -> Option<Cow<'a, [f64]>> {
        match self {
            Self::Nowhere => None,
            Self::Dual(dual) => Some(Cow::Borrowed(dual)),
            Self::Weights(weights) => {
                let slope =
                    |i: usize| problem.loss.derivatives(rows.dot(i, weights), problem.targets[i]).0;
                Some((0..rows.rows()).map(|i| -problem.costs[i] * slope(i)).collect())
            }
        }
    }
}

/// LIBLINEAR's tolerance for Newton's method.
fn default_newton(loss: RowLoss) -> f64 {
    if let RowLoss::SquaredTube(_) = loss { 1e-4 } else { 1e-2 }
}

/// What Newton's method brings the norm of the gradient down to, relative to that at 0: LIBLINEAR's
/// measure, with its default unless `tol` is set.
pub(crate) fn newton_tolerance(problem: &Problem<'_>, tol: Option<f64>) -> f64 {
    newton_tolerance_at(problem.loss, tol, balance(problem))
}

/// The same where `share` of the rows are on the rarer side.
pub(crate) fn newton_tolerance_at(loss: RowLoss, tol: Option<f64>, share: f64) -> f64 {
    let share = if is_balanced(loss) { share } else { 1.0 };
    tol.unwrap_or_else(|| default_newton(loss)) * share
}

/// Whether LIBLINEAR's tolerance depends on the share of the rarer side.
fn is_balanced(loss: RowLoss) -> bool {
    matches!(loss, RowLoss::SquaredHinge | RowLoss::Logistic)
}

/// LIBLINEAR's factor on the tolerance of primal solvers: the share of the rarer side.
fn balance(problem: &Problem<'_>) -> f64 {
    if !is_balanced(problem.loss) {
        return 1.0;
    }
    let (mut all, mut first) = (0_usize, 0_usize);
    for (target, cost) in problem.targets.iter().zip(problem.costs) {
        all += usize::from(*cost > 0.0);
        first += usize::from((*cost > 0.0) & (*target > 0.0));
    }
    first.min(all - first).max(1) as f64 / all.max(1) as f64
}
