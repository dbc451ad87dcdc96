//! Trust-region Newton for the smooth losses.
//!
//! Steps minimise the quadratic model of `½‖w‖² + Σ Cᵢ ℓ(⟨w, xᵢ⟩, tᵢ)` by preconditioned conjugate
//! gradients inside a ball whose radius follows how good the model was; Hessian products are
//! Xᵀ(D(Xd)), one pass over the rows each, and because X times the step is kept, the objective along
//! it costs no pass at all. Lin, Weng and Keerthi (2008); Hsia, Chiang and Lin (2018) for the
//! preconditioner.

use super::problem::{Loss, Options, Passes, Problem, Solution, add_scaled, inner, squared_norm};
use super::products::Products;
use crate::context::Context;
use crate::kernel::LinearRows;
use crate::solver::Status;

/// Weight of the diagonal of the Hessian in the preconditioner; the rest is the identity.
const DIAGONAL_SHARE: f64 = 0.01;

/// A conjugate-gradient step that adds less than this share of the average step is the last.
const LAST_STEP: f64 = 0.5;

/// Steps of conjugate gradients.
const MOST_INNER: usize = 1000;

/// A step that lowers the objective by less than this share of it is lost in rounding.
const ROUNDING: f64 = 1e-14;

/// Predicted gains below this share of the objective cannot be seen in it.
const NOISE: f64 = 1e-11;

/// Solves a problem with a smooth loss, from `start` or 0; the last weight is free of charge when
/// `free_bias` is set.
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
    let products = Products::new(rows, context);
    let mut charge = vec![1.0; rows.width()];
    if let (true, Some(last)) = (free_bias, charge.last_mut()) {
        *last = 0.0;
    }
    let mut state = Newton {
        problem,
        values: vec![0.0; rows.rows()],
        weights: vec![0.0; rows.width()],
        charge,
        products,
    };
    let at_zero = squared_norm(&state.gradient().0).sqrt();
    if let Some(start) = start {
        state.weights.copy_from_slice(start);
        state.products.write_values(start, &mut state.values);
    }
    let mut passes = Passes::new(options, context);
    let mut objective = state.objective();
    let (mut gradient, mut curvatures) = state.gradient();
    let mut radius = None;
    let mut stalls = 0;
    let status = loop {
        let size = squared_norm(&gradient).sqrt();
        if size <= options.tol * at_zero {
            break Status::Solved;
        }
        let diagonal = state.preconditioner(&curvatures);
        let bound = *radius.get_or_insert_with(|| scaled_norm(&gradient, &diagonal, true));
        let Step { step, residual, inside, inner_steps } =
            state.model_step(&gradient, &curvatures, &diagonal, bound);
        let along = state.products.values(&step);
        let slope = inner(&gradient, &step);
        let predicted = -0.5 * (slope - inner(&step, &residual));
        let length = scaled_norm(&step, &diagonal, false);
        if predicted <= NOISE * objective.abs() {
            // Differences of the objective are rounding now; the gradient decides.
            let before = (state.weights.clone(), state.values.clone());
            add_scaled(&mut state.weights, 1.0, &step);
            add_scaled(&mut state.values, 1.0, &along);
            let next = state.gradient();
            if squared_norm(&next.0).sqrt() < size {
                (gradient, curvatures) = next;
                objective = state.objective();
            } else {
                (state.weights, state.values) = before;
                break Status::AlmostSolved;
            }
            if let Some(status) = passes.finish(inner_steps, size / at_zero, || f64::NAN) {
                break status;
            }
            continue;
        }
        let (mut share, mut found) = (1.0, state.objective_along(&step, &along, 1.0));
        let full = objective - found;
        while objective - found < -1e-4 * share * slope && share > 1e-10 {
            share *= 0.5;
            found = state.objective_along(&step, &along, share);
        }
        radius = Some(next_radius(bound, length * share.min(1.0), full / predicted, inside));
        let gained = objective - found;
        if gained > 0.0 {
            add_scaled(&mut state.weights, share, &step);
            add_scaled(&mut state.values, share, &along);
            objective = found;
            (gradient, curvatures) = state.gradient();
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

/// The radius after a step of `length` whose gain was `quality` times the predicted one.
fn next_radius(radius: f64, length: f64, quality: f64, inside: bool) -> f64 {
    if quality < 0.25 || quality.is_nan() {
        0.25 * length.min(radius)
    } else if quality > 0.75 && !inside {
        4.0 * radius
    } else {
        radius
    }
}

/// ‖v‖ in the norm of the preconditioner or its inverse.
fn scaled_norm(vector: &[f64], diagonal: &[f64], inverse: bool) -> f64 {
    let term = |(v, m): (&f64, &f64)| if inverse { v * v / m } else { v * v * m };
    vector.iter().zip(diagonal).map(term).sum::<f64>().sqrt()
}

struct Newton<'a, R> {
    problem: &'a Problem<'a>,
    products: Products<'a, R>,
    weights: Vec<f64>,
    /// Xw
    values: Vec<f64>,
    /// 1, or 0 for a weight that is free of charge.
    charge: Vec<f64>,
}

/// A minimiser of the model within the radius.
struct Step {
    step: Vec<f64>,
    /// −g − Hs
    residual: Vec<f64>,
    inside: bool,
    inner_steps: usize,
}

impl<R: LinearRows> Newton<'_, R> {
    fn objective(&self) -> f64 {
        let charged = self.weights.iter().zip(&self.charge).map(|(w, c)| c * w * w);
        0.5 * charged.sum::<f64>() + self.problem.total_loss(&self.values)
    }

    /// The objective at w + share · step.
    fn objective_along(&self, step: &[f64], along: &[f64], share: f64) -> f64 {
        let mut norm = 0.0;
        for j in 0..step.len() {
            let w = self.weights[j] + share * step[j];
            norm += self.charge[j] * w * w;
        }
        let (loss, rows) = (self.problem.loss, self.values.iter().zip(along).enumerate());
        let cost = |(i, (z, move_)): (usize, (&f64, &f64))| {
            let c = self.problem.costs[i];
            if c > 0.0 { c * loss.value(z + share * move_, self.problem.targets[i]) } else { 0.0 }
        };
        0.5 * norm + rows.map(cost).sum::<f64>()
    }

    /// The gradient, and the second derivative of every row's cost.
    fn gradient(&self) -> (Vec<f64>, Vec<f64>) {
        let (mut slopes, mut curvatures) = (Vec::new(), Vec::new());
        for (i, &z) in self.values.iter().enumerate() {
            let cost = self.problem.costs[i];
            let (slope, curvature) = self.problem.loss.derivatives(z, self.problem.targets[i]);
            slopes.push(cost * slope);
            curvatures.push(cost * curvature);
        }
        let mut gradient = self.products.transposed(|i| slopes[i]);
        for j in 0..gradient.len() {
            gradient[j] += self.charge[j] * self.weights[j];
        }
        (gradient, curvatures)
    }

    /// A mixture of the identity and the diagonal of the Hessian.
    fn preconditioner(&self, curvatures: &[f64]) -> Vec<f64> {
        let mut diagonal = self.products.transposed_squares(|i| curvatures[i]);
        for (value, charge) in diagonal.iter_mut().zip(&self.charge) {
            *value = (1.0 - DIAGONAL_SHARE) + DIAGONAL_SHARE * (*value + charge);
        }
        diagonal
    }

    /// Steihaug's conjugate gradients on the model.
    fn model_step(
        &self,
        gradient: &[f64],
        curvatures: &[f64],
        diagonal: &[f64],
        radius: f64,
    ) -> Step {
        let width = gradient.len();
        let mut step = vec![0.0; width];
        let mut residual: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let solved =
            |r: &[f64]| -> Vec<f64> { r.iter().zip(diagonal).map(|(r, m)| r / m).collect() };
        let mut shaped = solved(&residual);
        let mut direction = shaped.clone();
        let mut product = inner(&shaped, &residual);
        let (mut model, mut inner_steps) = (0.0, 0);
        let tiny = 1e-24 * product;
        loop {
            let mut image = self.products.weighted_normal(curvatures, &direction);
            for j in 0..width {
                image[j] += self.charge[j] * direction[j];
            }
            inner_steps += 1;
            let bend = inner(&direction, &image);
            if bend <= 0.0 {
                return Step { step, residual, inside: true, inner_steps };
            }
            let length = product / bend;
            add_scaled(&mut step, length, &direction);
            if scaled_norm(&step, diagonal, false) > radius {
                add_scaled(&mut step, -length, &direction);
                let reach = to_boundary(&step, &direction, diagonal, radius);
                add_scaled(&mut step, reach, &direction);
                add_scaled(&mut residual, -reach, &image);
                return Step { step, residual, inside: false, inner_steps };
            }
            add_scaled(&mut residual, -length, &image);
            // Q(s) = gᵀs + ½sᵀHs = −½ sᵀ(r − g)
            let reached = -0.5 * (inner(&step, &residual) - inner(&step, gradient));
            let gained = reached - model;
            let average = reached / inner_steps as f64;
            model = reached;
            shaped = solved(&residual);
            let next = inner(&shaped, &residual);
            if gained >= LAST_STEP * average || next <= tiny || inner_steps >= MOST_INNER {
                return Step { step, residual, inside: true, inner_steps };
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
        let beta: Vec<f64> = (0..self.values.len())
            .map(|i| -costs[i] * loss.derivatives(self.values[i], targets[i]).0)
            .collect();
        let mut norm = 0.0;
        for j in 0..gradient.len() {
            let w = self.weights[j] - gradient[j];
            norm += self.charge[j] * w * w;
        }
        let conjugate = (0..beta.len()).map(|i| conjugate(loss, beta[i], targets[i], costs[i]));
        let dual = -0.5 * norm - conjugate.sum::<f64>();
        (beta, dual)
    }
}

/// sup over z of −βz − Cℓ(z, t): what β adds to the dual, as a minimum.
pub(super) fn conjugate(loss: Loss, beta: f64, target: f64, cost: f64) -> f64 {
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

/// How far along `direction` the ball of the trust region ends.
fn to_boundary(step: &[f64], direction: &[f64], diagonal: &[f64], radius: f64) -> f64 {
    let (mut sd, mut ss, mut dd) = (0.0, 0.0, 0.0);
    for j in 0..step.len() {
        sd += step[j] * direction[j] * diagonal[j];
        ss += step[j] * step[j] * diagonal[j];
        dd += direction[j] * direction[j] * diagonal[j];
    }
    let room = radius * radius - ss;
    let root = (sd * sd + dd * room.max(0.0)).sqrt();
    if sd >= 0.0 { room / (sd + root) } else { (root - sd) / dd }
}
