//! Newton's method for the smooth losses.
//!
//! Steps minimise the quadratic model of `½‖w‖² + Σ Cᵢ ℓ(⟨w, xᵢ⟩, tᵢ)` by preconditioned conjugate
//! gradients and are as long as a line search allows; Hessian products are Xᵀ(D(Xd)), one pass over
//! the rows each, and because X times the step is kept, the objective along it costs no pass at
//! all. Galli and Lin (2021); Hsia, Chiang and Lin (2018) for the preconditioner.

use std::ops::Range;

use super::preconditioner::Preconditioner;
use super::problem::{Loss, Options, Passes, Problem, Solution, add_scaled, inner, squared_norm};
use super::products::{PARTS, Products};
use super::sample::{COARSE, STRIDE, Sample, is_worthwhile};
use super::table::{Listed, Table};
use super::tall::{Penalty, suits};
use crate::context::Context;
use crate::data::pieces;
use crate::solver::Status;
use crate::solver::linear::rows::LinearRows;

/// A conjugate-gradient step that adds less than this share of the average step is the last.
const LAST_STEP: f64 = 0.5;

/// What is left of the gradient where steps are to be exact.
const EXACT: f64 = 1e-3;

/// Steps of conjugate gradients.
const MOST_INNER: usize = 1000;

/// Conjugate-gradient steps of a model whose preconditioner is good.
const WELL_SHAPED: usize = 5;

/// Passes of dual descent that make a guess where weights outnumber rows.
const GUESS_PASSES: u64 = 6;

/// A step that lowers the objective by less than this share of it is lost in rounding.
const ROUNDING: f64 = 1e-14;

/// Predicted gains below this share of the objective cannot be seen in it.
const NOISE: f64 = 1e-11;

/// Rows whose derivatives are computed before those of factor 0 are left out.
const BLOCK: usize = 256;

/// Solves a problem with a smooth loss, from `start` or a guess; the last weight is free of charge
/// when `free_bias` is set.
///
/// The tolerance bounds the norm of the gradient relative to that at 0.
pub fn solve<R: LinearRows>(
    rows: &R,
    problem: &Problem<'_>,
    options: &Options,
    start: Option<&[f64]>,
    free_bias: bool,
    context: &Context,
) -> Solution {
    if suits(rows, Penalty::Squares) {
        let penalty = Penalty::Squares;
        return super::tall::solve(rows, problem, penalty, options, start, free_bias, context);
    }
    let work = || {
        let guessed = match start {
            Some(_) => None,
            None => guess(rows, problem, options, free_bias, context),
        };
        descend(rows, problem, options, start.or(guessed.as_deref()), free_bias, context)
    };
    if options.alone { context.with_spinning_threads(PARTS, work) } else { work() }
}

/// Newton's steps from `start` or 0.
pub(super) fn descend<R: LinearRows>(
    rows: &R,
    problem: &Problem<'_>,
    options: &Options,
    start: Option<&[f64]>,
    free_bias: bool,
    context: &Context,
) -> Solution {
    let products = Products::new(rows, options.alone, context);
    over(&products, problem, options, start, free_bias, |_, _| (), context)
}

/// Newton's steps over any table, from `start` or 0; `reached` is told the weights after each and
/// the steps of conjugate gradients it took.
pub fn over<T: Table>(
    table: &T,
    problem: &Problem<'_>,
    options: &Options,
    start: Option<&[f64]>,
    free_bias: bool,
    mut reached: impl FnMut(&[f64], usize),
    context: &Context,
) -> Solution {
    let mut charge = vec![1.0; table.width()];
    if let (true, Some(last)) = (free_bias, charge.last_mut()) {
        *last = 0.0;
    }
    let mut state = Newton {
        problem,
        values: vec![0.0; table.rows()],
        weights: vec![0.0; table.width()],
        charge,
        table,
        context,
    };
    let (mut gradient, mut curvatures) = state.gradient();
    let at_zero = squared_norm(&gradient).sqrt();
    if let Some(start) = start {
        state.weights.copy_from_slice(start);
        table.write_values(start, &mut state.values);
        (gradient, curvatures) = state.gradient();
    }
    let mut passes = Passes::new(options, context);
    let mut objective = state.objective();
    let mut shape = None;
    let (mut stalls, mut exact) = (0, false);
    let status = loop {
        if let Some(status) = table.broken() {
            break status;
        }
        let size = squared_norm(&gradient).sqrt();
        if size <= options.tol * at_zero {
            break Status::Solved;
        }
        let fresh = || Preconditioner::new(table, &curvatures, &state.charge, context);
        let current = shape.take().unwrap_or_else(fresh);
        let Step { step, residual, inner_steps } =
            match state.model_step(&gradient, &curvatures, &current, exact) {
                Ok(step) => step,
                Err(status) => break status,
            };
        // A factor is dear: it stays as long as it serves.
        if matches!(current, Preconditioner::Factor(_)) && inner_steps <= WELL_SHAPED {
            shape = Some(current);
        }
        let along = table.values(&step);
        if let Some(status) = table.broken() {
            break status;
        }
        let slope = inner(&gradient, &step);
        let predicted = -0.5 * (slope - inner(&step, &residual));
        if predicted <= NOISE * objective.abs() {
            // Differences of the objective are rounding now; the gradient decides.
            let before = (state.weights.clone(), state.values.clone());
            add_scaled(&mut state.weights, 1.0, &step);
            add_scaled(&mut state.values, 1.0, &along);
            let next = state.gradient();
            if let Some(status) = table.broken() {
                break status;
            }
            if squared_norm(&next.0).sqrt() < size {
                (gradient, curvatures) = next;
                objective = state.objective();
                reached(&state.weights, inner_steps);
            } else {
                (state.weights, state.values) = before;
                if exact {
                    break Status::AlmostSolved;
                }
                // A rough minimum of the model may have a larger gradient than its start.
                exact = true;
            }
            if let Some(status) = passes.finish(inner_steps, size / at_zero, || f64::NAN) {
                break status;
            }
            continue;
        }
        let (mut share, mut found) = (1.0, state.objective_along(&step, &along, 1.0));
        while objective - found < -1e-4 * share * slope && share > 1e-10 {
            share *= 0.5;
            found = state.objective_along(&step, &along, share);
        }
        let gained = objective - found;
        if gained > 0.0 {
            add_scaled(&mut state.weights, share, &step);
            add_scaled(&mut state.values, share, &along);
            objective = found;
            let next = state.gradient();
            if let Some(status) = table.broken() {
                break status;
            }
            (gradient, curvatures) = next;
            reached(&state.weights, inner_steps);
        }
        let stop = passes.finish(inner_steps, size / at_zero, || f64::NAN);
        stalls = if gained <= ROUNDING * objective.abs() { stalls + 1 } else { 0 };
        if stalls >= 3 {
            break Status::AlmostSolved;
        }
        if let Some(status) = stop {
            break status;
        }
    };
    let violation = squared_norm(&gradient).sqrt() / at_zero.max(f64::MIN_POSITIVE);
    let (dual_variables, dual) = state.dual(&gradient);
    let outcome = passes.outcome(status, objective, dual, violation);
    Solution { weights: state.weights, dual: dual_variables, outcome }
}

/// Weights near the optimum: those of a sample where rows abound, those of a few passes of dual
/// descent where they do not.
fn guess<R: LinearRows>(
    rows: &R,
    problem: &Problem<'_>,
    options: &Options,
    free_bias: bool,
    context: &Context,
) -> Option<Vec<f64>> {
    if is_worthwhile(rows.rows(), rows.width()) {
        let products = Products::new(rows, options.alone, context);
        let sample = Sample::new(rows, &products, problem, STRIDE, context.seed());
        let problem = sample.problem(problem.loss);
        let options = Options { tol: options.tol.max(COARSE), ..*options };
        return Some(descend(&sample, &problem, &options, None, free_bias, context).weights);
    }
    if rows.rows() > rows.width() {
        return None;
    }
    let options = Options { tol: 1e-9, max_passes: GUESS_PASSES, shrinking: true, ..*options };
    let solution = match problem.loss {
        Loss::Logistic => super::logistic::solve(rows, problem, &options, None, context),
        _ => super::dual::solve(rows, problem, &options, None, context),
    };
    Some(solution.weights)
}

struct Newton<'a, T> {
    problem: &'a Problem<'a>,
    table: &'a T,
    context: &'a Context,
    weights: Vec<f64>,
    /// Xw
    values: Vec<f64>,
    /// 1, or 0 for a weight that is free of charge.
    charge: Vec<f64>,
}

/// A minimiser of the model.
struct Step {
    step: Vec<f64>,
    /// −g − Hs
    residual: Vec<f64>,
    inner_steps: usize,
}

impl<T: Table> Newton<'_, T> {
    fn objective(&self) -> f64 {
        let charged = self.weights.iter().zip(&self.charge).map(|(w, c)| c * w * w);
        0.5 * charged.sum::<f64>() + self.total_loss(|i| self.values[i])
    }

    /// The loss of all rows, given their values.
    fn total_loss(&self, value: impl Fn(usize) -> f64 + Sync) -> f64 {
        let part =
            |rows: Range<usize>| self.problem.part(rows.clone()).total_loss(rows.map(&value));
        self.table.of_parts(part).iter().sum()
    }

    /// The objective at w + share · step.
    fn objective_along(&self, step: &[f64], along: &[f64], share: f64) -> f64 {
        let mut norm = 0.0;
        for j in 0..step.len() {
            let w = self.weights[j] + share * step[j];
            norm += self.charge[j] * w * w;
        }
        0.5 * norm + self.total_loss(|i| self.values[i] + share * along[i])
    }

    /// The gradient, and the rows with a second derivative.
    fn gradient(&self) -> (Vec<f64>, Listed) {
        let Problem { loss, targets, costs, .. } = *self.problem;
        let part = |rows: Range<usize>| {
            let (mut slopes, mut curvatures) = (Listed::default(), Listed::default());
            let mut block = [[0.0; BLOCK]; 2];
            for start in rows.clone().step_by(BLOCK) {
                let length = BLOCK.min(rows.end - start);
                for (k, i) in (start..start + length).enumerate() {
                    let (slope, curvature) = loss.derivatives(self.values[i], targets[i]);
                    (block[0][k], block[1][k]) = (costs[i] * slope, costs[i] * curvature);
                }
                slopes.extend(start, &block[0][..length]);
                curvatures.extend(start, &block[1][..length]);
            }
            (slopes, curvatures)
        };
        let (slopes, curvatures): (Vec<_>, Vec<_>) = self.table.of_parts(part).into_iter().unzip();
        let (slopes, curvatures) = pieces::join(
            self.table.rows(),
            || Listed::joined(slopes),
            || Listed::joined(curvatures),
        );
        let mut gradient = self.table.transposed(&slopes);
        for j in 0..gradient.len() {
            gradient[j] += self.charge[j] * self.weights[j];
        }
        (gradient, curvatures)
    }

    /// Conjugate gradients on the model, until steps gain little or, if they are to be exact, until
    /// little is left of the gradient; why they were left, if they were.
    fn model_step(
        &self,
        gradient: &[f64],
        curvatures: &Listed,
        shape: &Preconditioner,
        exact: bool,
    ) -> Result<Step, Status> {
        let width = gradient.len();
        let mut step = vec![0.0; width];
        let mut residual: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let mut shaped = shape.solve(&residual);
        let mut direction = shaped.clone();
        let mut product = inner(&shaped, &residual);
        let (mut model, mut inner_steps) = (0.0, 0);
        let tiny = 1e-24 * product;
        loop {
            let mut image = self.table.weighted_normal(curvatures, &direction);
            for j in 0..width {
                image[j] += self.charge[j] * direction[j];
            }
            if let Some(status) = self.table.broken().or_else(|| self.context.stop_request()) {
                return Err(status);
            }
            inner_steps += 1;
            let bend = inner(&direction, &image);
            if bend <= 0.0 {
                return Ok(Step { step, residual, inner_steps });
            }
            let length = product / bend;
            add_scaled(&mut step, length, &direction);
            add_scaled(&mut residual, -length, &image);
            self.table.take_back(image);
            // Q(s) = gᵀs + ½sᵀHs = −½ sᵀ(r − g)
            let reached = -0.5 * (inner(&step, &residual) - inner(&step, gradient));
            let gained = reached - model;
            let average = reached / inner_steps as f64;
            model = reached;
            shaped = shape.solve(&residual);
            let next = inner(&shaped, &residual);
            let enough = match exact {
                true => squared_norm(&residual) <= EXACT * EXACT * squared_norm(gradient),
                false => gained >= LAST_STEP * average,
            };
            if enough || next <= tiny || inner_steps >= MOST_INNER {
                return Ok(Step { step, residual, inner_steps });
            }
            let keep = next / product;
            product = next;
            for j in 0..width {
                direction[j] = shaped[j] + keep * direction[j];
            }
        }
    }

    /// The dual point −Cᵢℓ′ and its objective; w = Σ βᵢxᵢ holds up to the gradient.
    fn dual(&self, gradient: &[f64]) -> (Vec<f64>, f64) {
        let Problem { loss, targets, costs, .. } = *self.problem;
        let parts = self.table.of_parts(|rows| {
            let beta = |i: usize| -costs[i] * loss.derivatives(self.values[i], targets[i]).0;
            let own: Vec<f64> = rows.clone().map(beta).collect();
            let both = own.iter().zip(rows);
            let sum: f64 = both.map(|(&b, i)| conjugate(loss, b, targets[i], costs[i])).sum();
            (own, sum)
        });
        let separable: f64 = parts.iter().map(|(_, sum)| sum).sum();
        let beta = parts.into_iter().map(|(own, _)| own).collect::<Vec<_>>().concat();
        let mut norm = 0.0;
        for j in 0..gradient.len() {
            let w = self.weights[j] - gradient[j];
            norm += self.charge[j] * w * w;
        }
        (beta, -0.5 * norm - separable)
    }
}

/// sup over z of −βz − Cℓ(z, t): what β adds to the dual, as a minimum.
pub fn conjugate(loss: Loss, beta: f64, target: f64, cost: f64) -> f64 {
    if cost <= 0.0 {
        return 0.0;
    }
    match loss {
        Loss::Logistic => {
            let share = (beta * target / cost).clamp(0.0, 1.0);
            let part = |p: f64| if p > 0.0 { p * p.ln() } else { 0.0 };
            cost * (part(share) + part(1.0 - share))
        }
        _ => {
            let ridge = if loss.is_squared() { 0.5 / cost } else { 0.0 };
            (0.5 * ridge * beta - target) * beta + loss.tube() * beta.abs()
        }
    }
}
