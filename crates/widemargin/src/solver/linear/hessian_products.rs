//! Newton steps by preconditioned conjugate gradients on the Hessian, one pass over the rows a product.
//!
//! Iterations end when they gain little (Galli and Lin, 2021) or, once steps make slow progress, when
//! little is left of the gradient. The [`Preconditioner`] is the factor of the whole Hessian as soon as
//! iterations have cost as much as forming it.

use super::loss_derivatives::curvature;
use super::newton::{QuadraticModel, Step, Subproblem};
use super::preconditioner::Preconditioner;
use super::problem::{add_scaled, inner, squared_norm};
use super::table::{Table, WeightedRows};
use super::tuning::newton::{
    EXACT, FACTOR_ENTRY, LAST_STEP, MOST_CG_STEPS, MOST_FACTORED, REUSED_FACTOR_STEPS,
};
use crate::context::Context;
use crate::solver::Status;

/// Rows whose curvatures are computed before those of curvature 0 are left out.
const BLOCK: usize = 256;

/// The quadratic model of the loss through products with its Hessian.
pub(super) struct HessianProducts<'a, T> {
    table: &'a T,
    context: &'a Context,
    preconditioner: Option<Preconditioner>,
    /// Norm of the residual, relative to the gradient, that iterations have to reach.
    residual: f64,
    /// Whether the whole Hessian is factored, and conjugate-gradient steps before that.
    factored: bool,
    steps: usize,
    /// Whether an earlier step was slow.
    slow: bool,
}

impl<'a, T: Table> HessianProducts<'a, T> {
    pub(super) fn new(table: &'a T, context: &'a Context) -> Self {
        let (residual, factored, steps, slow) = (f64::INFINITY, false, 0, false);
        Self { table, context, preconditioner: None, residual, factored, steps, slow }
    }

    /// The rows with a second derivative.
    fn curvatures(&self, subproblem: &Subproblem<'_>) -> WeightedRows {
        let (problem, slopes) = (subproblem.problem, &subproblem.point.slopes);
        let lists = self.table.of_parts(|rows| {
            let (mut list, mut block) = (WeightedRows::default(), [0.0; BLOCK]);
            for start in rows.clone().step_by(BLOCK) {
                let length = BLOCK.min(rows.end - start);
                for (k, i) in (start..start + length).enumerate() {
                    block[k] = curvature(problem, i, slopes[i]);
                }
                list.extend(start, &block[..length]);
            }
            list
        });
        WeightedRows::joined(lists)
    }

    /// Conjugate-gradient steps that cost as much as the factor of the whole Hessian, if that may be
    /// formed.
    fn worth_a_factor(&self) -> usize {
        let [rows, width, stored] =
            [self.table.rows(), self.table.width(), self.table.nonzeros()].map(|n| n as f64);
        let per_row = stored / rows.max(1.0) + 1.0;
        let work = 0.5 * rows * per_row * per_row + FACTOR_ENTRY * width.powi(3);
        let allowed = self.table.may_be_factored() && width <= MOST_FACTORED as f64;
        if !allowed {
            return usize::MAX;
        }
        (work / (4.0 * stored + rows).max(1.0)) as usize
    }
}

impl<T: Table> QuadraticModel for HessianProducts<'_, T> {
    fn minimise(&mut self, subproblem: &Subproblem<'_>) -> Result<Option<Step>, Status> {
        let Subproblem { point, penalty_weights, .. } = *subproblem;
        let curvatures = self.curvatures(subproblem);
        if !self.factored && self.steps > self.worth_a_factor() {
            (self.factored, self.preconditioner) = (true, None);
        }
        let (table, context, whole) = (self.table, self.context, self.factored);
        let preconditioner = self.preconditioner.take().unwrap_or_else(|| {
            Preconditioner::new(table, &curvatures, penalty_weights, whole, context)
        });
        let width = penalty_weights.len();
        let gradient: Vec<f64> =
            (0..width).map(|j| point.gradient[j] + penalty_weights[j] * point.weights[j]).collect();
        let mut step = vec![0.0; width];
        let mut residual: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let mut direction = preconditioner.solve(&residual);
        let mut product = inner(&direction, &residual);
        let (mut model, mut steps) = (0.0, 0);
        let tiny = 1e-24 * product;
        while steps < MOST_CG_STEPS {
            let mut image = table.weighted_normal(&curvatures, &direction);
            for j in 0..width {
                image[j] += penalty_weights[j] * direction[j];
            }
            if let Some(status) = table.broken().or_else(|| context.stop_request()) {
                return Err(status);
            }
            steps += 1;
            let curvature = inner(&direction, &image);
            if curvature.is_nan() || curvature <= 0.0 {
                break;
            }
            let length = product / curvature;
            add_scaled(&mut step, length, &direction);
            add_scaled(&mut residual, -length, &image);
            table.take_back(image);
            // Q(s) = gᵀs + ½sᵀHs = −½ sᵀ(r − g)
            let reached = -0.5 * (inner(&step, &residual) - inner(&step, &gradient));
            let gained = reached - model;
            model = reached;
            let solved = preconditioner.solve(&residual);
            let next = inner(&solved, &residual);
            let small = squared_norm(&residual) <= self.residual.powi(2) * squared_norm(&gradient);
            if small && gained >= LAST_STEP * reached / steps as f64 || next <= tiny {
                break;
            }
            let keep = next / product;
            product = next;
            for j in 0..width {
                direction[j] = solved[j] + keep * direction[j];
            }
        }
        self.steps += steps;
        if preconditioner.is_factor() && steps <= REUSED_FACTOR_STEPS {
            self.preconditioner = Some(preconditioner);
        }
        Ok(Some(Step { direction: step, fresh: true, work: steps }))
    }

    fn improve(&mut self, failed: bool) -> bool {
        let improves = self.residual > EXACT || self.preconditioner.is_some();
        if self.slow || failed {
            self.residual = (0.1 * self.residual).clamp(EXACT, 0.1);
            self.preconditioner = None;
        }
        self.slow = true;
        improves
    }
}
