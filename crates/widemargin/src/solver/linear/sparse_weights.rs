//! Sparse weights: `min ‖w‖₁ + Σ Cᵢ ℓ(⟨w, xᵢ⟩, tᵢ)` for the smooth losses of two sides.
//!
//! newGLMNET (Yuan, Ho and Lin, 2012): each outer step minimises ‖w + d‖₁ plus the quadratic model of
//! the loss by coordinate descent over the features, to a precision that follows the progress, and
//! goes as far along d as a line search allows; features whose weight is 0 with room to spare are
//! set aside.

use super::columns::Columns;
use super::newton::conjugate;
use super::problem::{Options, Passes, Problem, Solution};
use super::tall::{Penalty, suits};
use crate::context::Context;
use crate::numeric::random::Generator;
use crate::solver::Status;
use crate::solver::linear::rows::LinearRows;

/// Passes over the features for one quadratic model.
const MOST_INNER: usize = 1000;

/// Halvings of a step.
const MOST_HALVINGS: usize = 20;

/// Share of the predicted gain that a step has to bring.
const SUFFICIENT: f64 = 0.01;

/// Steps without gain, each with a finer model, before the solver gives up.
const MOST_STALLS: usize = 20;

/// Moves of a weight that do not count; a weight this small is what rounding left of 0.
pub(super) const SMALLEST_MOVE: f64 = 1e-12;

/// Added to every curvature, so that none is 0.
const RIDGE: f64 = 1e-12;

/// Whether coordinates are descended over columns; tall tables need none.
pub fn needs_columns<R: LinearRows>(rows: &R) -> bool {
    !suits(rows, Penalty::Absolutes)
}

/// Solves a problem with a smooth loss for sparse weights, from `start` or 0; the last weight is
/// free of charge when `free_bias` is set. Without `columns` it makes them where it needs them.
///
/// The tolerance bounds the sum of the violations of all weights relative to that at 0.
pub fn solve<R: LinearRows>(
    rows: &R,
    columns: Option<&Columns>,
    problem: &Problem<'_>,
    options: &Options,
    start: Option<&[f64]>,
    free_bias: bool,
    context: &Context,
) -> Solution {
    match columns {
        _ if !needs_columns(rows) => {
            let penalty = Penalty::Absolutes;
            super::tall::solve(rows, problem, penalty, options, start, free_bias, context)
        }
        Some(columns) => descend(columns, problem, options, start, free_bias, context),
        None => descend(&Columns::new(rows), problem, options, start, free_bias, context),
    }
}

/// Outer steps from `start` or 0.
pub(super) fn descend(
    columns: &Columns,
    problem: &Problem<'_>,
    options: &Options,
    start: Option<&[f64]>,
    free_bias: bool,
    context: &Context,
) -> Solution {
    let width = columns.width();
    let mut state = Lasso {
        columns,
        problem,
        charge: vec![1.0; width],
        weights: vec![0.0; width],
        values: vec![0.0; columns.height()],
        bends: vec![[0.0; 2]; columns.height()],
        gradient: vec![0.0; width],
        diagonal: vec![0.0; width],
        cautious: false,
    };
    if let (true, Some(last)) = (free_bias, state.charge.last_mut()) {
        *last = 0.0;
    }
    state.differentiate();
    let all: Vec<u32> = (0..width as u32).collect();
    let at_zero = state.survey(&all, f64::INFINITY).1.sum;
    if let Some(start) = start {
        state.weights.copy_from_slice(start);
        for j in 0..width {
            if start[j] != 0.0 {
                columns.visit(j, |i, x| state.values[i] += start[j] * x);
            }
        }
        state.differentiate();
    }
    let mut passes = Passes::new(options, context);
    let mut generator = Generator::new(context.seed());
    let mut objective = state.objective();
    let mut active = all.clone();
    let mut margin = f64::INFINITY;
    let mut precision = None;
    let mut stalls = 0;
    let status = loop {
        let whole = active.len() == all.len();
        let (kept, seen) = state.survey(&active, margin);
        active = kept;
        margin = seen.worst / columns.height().max(1) as f64;
        if seen.sum <= options.tol * at_zero {
            if whole {
                break Status::Solved;
            }
            active.clone_from(&all);
            margin = f64::INFINITY;
            continue;
        }
        let goal = *precision.get_or_insert(seen.sum);
        let (step, along, inner) = state.model_step(&active, goal, &mut generator);
        if inner <= 1 {
            precision = Some(0.25 * goal);
        }
        let gained = state.advance(&active, &step, &along, objective);
        objective -= gained;
        let stop = passes.finish(active.len() * inner, seen.sum / at_zero, || f64::NAN);
        let stalled = gained <= 1e-15 * objective.abs();
        stalls = if stalled { stalls + 1 } else { 0 };
        // A model without the rows beyond the kink may promise too much; one with all of them
        // never does.
        if state.cautious != stalled {
            state.cautious = stalled;
            state.differentiate();
        }
        if stalls >= MOST_STALLS {
            if whole {
                break Status::AlmostSolved;
            }
            active.clone_from(&all);
            margin = f64::INFINITY;
        }
        if let Some(status) = stop {
            break status;
        }
    };
    let violation = state.survey(&all, f64::INFINITY).1.sum / at_zero.max(f64::MIN_POSITIVE);
    let beta = state.bends.iter().map(|bend| -bend[0]).collect();
    let (beta, dual) = scaled_dual(problem, &state.gradient, &state.charge, beta);
    let outcome = passes.outcome(status, state.objective(), dual, violation);
    Solution { weights: state.weights, dual: beta, outcome }
}

/// Violations of the optimality conditions over features.
struct Seen {
    sum: f64,
    worst: f64,
}

struct Lasso<'a> {
    columns: &'a Columns,
    problem: &'a Problem<'a>,
    /// 1, or 0 for a weight that is free of charge.
    charge: Vec<f64>,
    weights: Vec<f64>,
    /// Xw
    values: Vec<f64>,
    /// Cℓ′ and Cℓ″ of every row.
    bends: Vec<[f64; 2]>,
    gradient: Vec<f64>,
    diagonal: Vec<f64>,
    /// Whether every row of a squared loss counts in the curvature, which then bounds the true one.
    cautious: bool,
}

impl Lasso<'_> {
    fn objective(&self) -> f64 {
        let charged = self.weights.iter().zip(&self.charge).map(|(w, c)| c * w.abs());
        charged.sum::<f64>() + self.problem.total_loss(self.values.iter().copied())
    }

    fn differentiate(&mut self) {
        for i in 0..self.values.len() {
            let cost = self.problem.costs[i];
            let (slope, curvature) =
                self.problem.loss.derivatives(self.values[i], self.problem.targets[i]);
            let bound = self.cautious && self.problem.loss.is_squared();
            let curvature = if bound { 2.0 } else { curvature };
            self.bends[i] = [cost * slope, cost * curvature];
        }
    }

    /// Gradient and curvature of every active feature; keeps those not settled by `margin`.
    fn survey(&mut self, active: &[u32], margin: f64) -> (Vec<u32>, Seen) {
        let mut seen = Seen { sum: 0.0, worst: 0.0 };
        let mut kept = Vec::with_capacity(active.len());
        for &feature in active {
            let j = feature as usize;
            let (mut gradient, mut diagonal) = (0.0, RIDGE);
            self.columns.visit(j, |i, x| {
                let [slope, curvature] = self.bends[i];
                gradient += x * slope;
                diagonal += x * x * curvature;
            });
            (self.gradient[j], self.diagonal[j]) = (gradient, diagonal);
            if self.weights[j] == 0.0 && gradient.abs() < self.charge[j] - margin {
                continue;
            }
            let violation = violation(gradient, self.weights[j], self.charge[j]);
            seen.sum += violation;
            seen.worst = seen.worst.max(violation);
            kept.push(feature);
        }
        (kept, seen)
    }

    /// Minimises the model by coordinate descent; the step of every active feature, X times it and
    /// the passes made.
    fn model_step(
        &self,
        active: &[u32],
        goal: f64,
        generator: &mut Generator,
    ) -> (Vec<f64>, Vec<f64>, usize) {
        let mut step = vec![0.0; self.weights.len()];
        // Of every row the move and its curvature, which are wanted together.
        let mut rows: Vec<[f64; 2]> = self.bends.iter().map(|bend| [0.0, bend[1]]).collect();
        let mut order = active.to_vec();
        let mut margin = f64::INFINITY;
        let mut inner = 0;
        while inner < MOST_INNER {
            inner += 1;
            generator.shuffle(&mut order);
            let (mut sum, mut worst, mut kept) = (0.0, 0.0_f64, 0);
            for s in 0..order.len() {
                let j = order[s] as usize;
                let (charge, diagonal) = (self.charge[j], self.diagonal[j]);
                let mut gradient = self.gradient[j] + RIDGE * step[j];
                self.columns.visit(j, |i, x| gradient += x * (rows[i][0] * rows[i][1]));
                let reached = self.weights[j] + step[j];
                if reached == 0.0 && gradient.abs() < charge - margin {
                    continue;
                }
                order[kept] = order[s];
                kept += 1;
                let off = violation(gradient, reached, charge);
                sum += off;
                worst = worst.max(off);
                let move_ = soft_step(gradient, diagonal, reached, charge).clamp(-10.0, 10.0);
                if move_.abs() > SMALLEST_MOVE {
                    step[j] += move_;
                    self.columns.visit(j, |i, x| rows[i][0] += x * move_);
                }
            }
            let whole = order.len() == active.len();
            order.truncate(kept);
            if sum <= goal {
                if whole {
                    break;
                }
                order = active.to_vec();
                margin = f64::INFINITY;
            } else {
                margin = worst / self.values.len().max(1) as f64;
            }
        }
        (step, rows.into_iter().map(|row| row[0]).collect(), inner)
    }

    /// Goes along the step as far as it helps; by how much the objective fell.
    fn advance(&mut self, active: &[u32], step: &[f64], along: &[f64], objective: f64) -> f64 {
        let mut slope = 0.0;
        for &feature in active {
            let j = feature as usize;
            let (before, after) = (self.weights[j], self.weights[j] + step[j]);
            slope += self.gradient[j] * step[j] + self.charge[j] * (after.abs() - before.abs());
        }
        let mut share = 1.0;
        for _ in 0..MOST_HALVINGS {
            let mut found = 0.0;
            for j in 0..step.len() {
                found += self.charge[j] * (self.weights[j] + share * step[j]).abs();
            }
            let values = self.values.iter().zip(along).map(|(z, move_)| z + share * move_);
            found += self.problem.total_loss(values);
            if found - objective <= SUFFICIENT * share * slope {
                super::problem::add_scaled(&mut self.weights, share, step);
                super::problem::add_scaled(&mut self.values, share, along);
                self.drop_remainders(active);
                self.differentiate();
                return objective - found;
            }
            share *= 0.5;
        }
        0.0
    }

    /// Sets weights to 0 that several moves brought there but for rounding: they would violate the
    /// optimality conditions by their sign, and no move would be large enough to end that.
    fn drop_remainders(&mut self, active: &[u32]) {
        for &feature in active {
            let j = feature as usize;
            let rest = self.weights[j];
            if rest != 0.0 && rest.abs() <= SMALLEST_MOVE {
                self.weights[j] = 0.0;
                self.columns.visit(j, |i, x| self.values[i] -= rest * x);
            }
        }
    }
}

/// −Cᵢℓ′ scaled until |Σ βᵢxᵢⱼ| ≤ 1, and its objective.
pub(super) fn scaled_dual(
    problem: &Problem<'_>,
    gradient: &[f64],
    charge: &[f64],
    mut beta: Vec<f64>,
) -> (Vec<f64>, f64) {
    let charged = gradient.iter().zip(charge).filter(|(_, c)| **c > 0.0);
    let largest = charged.map(|(g, _)| g.abs()).fold(1.0, f64::max);
    beta.iter_mut().for_each(|beta| *beta /= largest);
    let Problem { loss, targets, costs, .. } = *problem;
    let terms = (0..beta.len()).map(|i| conjugate(loss, beta[i], targets[i], costs[i]));
    let dual = -terms.sum::<f64>();
    (beta, dual)
}

/// How far 0 is from the subdifferential of charge · |w| + a function of slope `gradient`.
#[inline(always)]
pub(super) fn violation(gradient: f64, weight: f64, charge: f64) -> f64 {
    if weight > 0.0 {
        (gradient + charge).abs()
    } else if weight < 0.0 {
        (gradient - charge).abs()
    } else {
        (gradient.abs() - charge).max(0.0)
    }
}

/// The step that minimises the model of one weight.
#[inline(always)]
pub(super) fn soft_step(gradient: f64, curvature: f64, weight: f64, charge: f64) -> f64 {
    if gradient + charge < curvature * weight {
        -(gradient + charge) / curvature
    } else if gradient - charge > curvature * weight {
        -(gradient - charge) / curvature
    } else {
        -weight
    }
}
