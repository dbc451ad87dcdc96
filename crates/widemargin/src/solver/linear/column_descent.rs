//! Newton steps with the ℓ1 penalty by coordinate descent over the columns of a table.
//!
//! newGLMNET (Yuan, Ho and Lin, 2012): a step minimises ‖w + d‖₁ plus the quadratic model of the loss to a
//! precision that follows the progress, and skips features whose weight is 0 with a gradient inside the
//! bound (shrinking). Where that takes many passes, the weights that are not 0 are solved for together
//! ([`FaceHessian`]).

use super::columns::Columns;
use super::face::{FaceHessian, FaceWeight};
use super::loss_derivatives::curvature;
use super::newton::{QuadraticModel, Step, Subproblem};
use super::problem::RowLoss;
use super::tuning::newton::{
    FACE_PASSES, FACE_PASSES_PER_WEIGHT, FARTHEST_MOVE, MOST_FACTORED, MOST_INNER, RIDGE,
    SMALLEST_MOVE,
};
use crate::context::Context;
use crate::numeric::random::Generator;
use crate::solver::Status;

/// The quadratic model of the loss by columns.
pub(super) struct ColumnDescent<'a> {
    columns: &'a Columns,
    context: &'a Context,
    generator: Generator,
    squared: bool,
    /// Whether every row of a squared loss counts in the curvature, which then bounds the true one.
    bounded: bool,
    /// KKT violation that the minimum of a model may leave.
    precision: Option<f64>,
    /// How far inside its bound a gradient was that is not looked at.
    margin: f64,
}

impl<'a> ColumnDescent<'a> {
    pub(super) fn new(columns: &'a Columns, loss: RowLoss, context: &'a Context) -> Self {
        let (generator, squared) = (Generator::new(context.seed()), loss.is_squared());
        let (bounded, precision, margin) = (false, None, f64::INFINITY);
        Self { columns, context, generator, squared, bounded, precision, margin }
    }

    /// Moves the weights that are not 0 to the minimum of the model with their signs; returns how many
    /// there are.
    fn move_on_face(
        &self,
        face: &mut FaceHessian,
        subproblem: &Subproblem<'_>,
        rows: &mut [[f64; 2]],
        step: &mut [f64],
    ) -> Result<usize, Status> {
        let Subproblem { point, penalty_weights, .. } = *subproblem;
        let mut free = Vec::new();
        for (place, penalty) in penalty_weights.iter().enumerate() {
            let value = point.weights[place] + step[place];
            if value != 0.0 {
                let mut slope = point.gradient[place] + RIDGE * step[place];
                self.columns.visit(place, |i, x| slope += x * (rows[i][0] * rows[i][1]));
                slope += penalty * value.signum();
                free.push(FaceWeight { place, value, slope });
            }
        }
        if free.len() > MOST_FACTORED {
            return Ok(free.len());
        }
        let moves = face.minimise(&free, self.columns, rows, self.context);
        let stopped = |_| self.context.stop_request().unwrap_or(Status::Interrupted);
        for (weight, move_) in free.iter().zip(moves.map_err(stopped)?.into_iter().flatten()) {
            // Exactly 0 where it ends there.
            let reached = weight.value + move_;
            step[weight.place] = match reached == 0.0 {
                true => -point.weights[weight.place],
                false => step[weight.place] + move_,
            };
            self.columns.visit(weight.place, |i, x| rows[i][0] += x * move_);
        }
        Ok(free.len())
    }
}

impl QuadraticModel for ColumnDescent<'_> {
    fn minimise(&mut self, subproblem: &Subproblem<'_>) -> Result<Option<Step>, Status> {
        let Subproblem { problem, point, penalty_weights, violation: sum, .. } = *subproblem;
        let (gradients, weights) = (&point.gradient, &point.weights);
        // Of every row the move and its curvature, which are wanted together.
        let mut rows: Vec<[f64; 2]> = (0..point.slopes.len())
            .map(|i| match self.bounded {
                true => [0.0, 2.0 * problem.costs[i]],
                false => [0.0, curvature(problem, i, point.slopes[i])],
            })
            .collect();
        let (mut active, mut worst) = (Vec::with_capacity(weights.len()), 0.0_f64);
        let mut diagonal = vec![0.0; weights.len()];
        for j in 0..weights.len() {
            let (gradient, penalty) = (gradients[j], penalty_weights[j]);
            if weights[j] == 0.0 && gradient.abs() < penalty - self.margin {
                continue;
            }
            worst = worst.max(violation(gradient, weights[j], penalty));
            diagonal[j] = RIDGE;
            self.columns.visit(j, |i, x| diagonal[j] += x * x * rows[i][1]);
            active.push(j as u32);
        }
        self.margin = worst / rows.len().max(1) as f64;
        let goal = *self.precision.get_or_insert(sum);
        let mut step = vec![0.0; weights.len()];
        let (mut order, mut margin, mut passes) = (active.clone(), f64::INFINITY, 0);
        let (mut face, mut face_pass) = (FaceHessian::default(), FACE_PASSES);
        while passes < MOST_INNER {
            if let Some(status) = self.context.stop_request() {
                return Err(status);
            }
            passes += 1;
            self.generator.shuffle(&mut order);
            let (mut sum, mut worst, mut kept) = (0.0, 0.0_f64, 0);
            for s in 0..order.len() {
                let j = order[s] as usize;
                let penalty = penalty_weights[j];
                let mut gradient = gradients[j] + RIDGE * step[j];
                self.columns.visit(j, |i, x| gradient += x * (rows[i][0] * rows[i][1]));
                let reached = weights[j] + step[j];
                if reached == 0.0 && gradient.abs() < penalty - margin {
                    continue;
                }
                order[kept] = order[s];
                kept += 1;
                let off = violation(gradient, reached, penalty);
                sum += off;
                worst = worst.max(off);
                let move_ = soft_step(gradient, diagonal[j], reached, penalty)
                    .clamp(-FARTHEST_MOVE, FARTHEST_MOVE);
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
                order.clone_from(&active);
                margin = f64::INFINITY;
            } else {
                margin = worst / rows.len().max(1) as f64;
                if passes == face_pass {
                    let free = self.move_on_face(&mut face, subproblem, &mut rows, &mut step)?;
                    let share = (FACE_PASSES_PER_WEIGHT * free as f64) as usize;
                    face_pass += share.max(FACE_PASSES);
                }
            }
        }
        if passes <= 1 {
            self.precision = Some(0.25 * goal);
        }
        let work = active.len() * passes;
        Ok(Some(Step { direction: step, fresh: true, work }))
    }

    fn improve(&mut self, failed: bool) -> bool {
        // A model without the rows beyond the kink may predict too much; one with all of them never does.
        self.bounded = failed && self.squared && !self.bounded;
        if failed {
            self.precision = self.precision.map(|goal| 0.25 * goal);
            self.margin = f64::INFINITY;
        }
        true
    }
}

/// How far 0 is from the subdifferential of penalty · |w| + a function of slope `gradient`.
#[inline(always)]
pub(super) fn violation(gradient: f64, weight: f64, penalty: f64) -> f64 {
    if weight > 0.0 {
        (gradient + penalty).abs()
    } else if weight < 0.0 {
        (gradient - penalty).abs()
    } else {
        (gradient.abs() - penalty).max(0.0)
    }
}

/// The step that minimises the model of one weight.
#[inline(always)]
pub(super) fn soft_step(gradient: f64, curvature: f64, weight: f64, penalty: f64) -> f64 {
    if gradient + penalty < curvature * weight {
        -(gradient + penalty) / curvature
    } else if gradient - penalty > curvature * weight {
        -(gradient - penalty) / curvature
    } else {
        -weight
    }
}
