//! Proximal Newton's method for the smooth losses, with the ℓ2 or the ℓ1 norm of the weights.
//!
//! A step minimises ⟨g, d⟩ + ½dᵀMd plus the penalty of w + d, where M approximates the Hessian of
//! `Σ Cᵢ ℓ(⟨w, xᵢ⟩, tᵢ)`, and is halved until the objective falls enough. One pass over the rows gives the
//! loss and the gradient of the next point. M is one of three [`QuadraticModel`]s: the Hessian of sampled
//! rows ([`SampledHessian`], many more rows than weights), products with the Hessian for conjugate
//! gradients ([`HessianProducts`], ℓ2), or coordinate descent over columns ([`ColumnDescent`], ℓ1).
//! Lee, Sun and Saunders (2014); Galli and Lin (2021).

use super::column_descent::{ColumnDescent, violation};
use super::columns::Columns;
use super::hessian_products::HessianProducts;
use super::problem::{Options, Passes, Problem, RowLoss, Solution, conjugate, inner};
use super::products::{PARTS, Products};
use super::sample::{Sample, is_worthwhile};
use super::sampled_hessian::{HessianSum, SampledHessian};
use super::table::Table;
use super::tuning::newton::{
    FACTOR_WORK, GUESS_PASSES, MODEL_WORK, MOST_HALVINGS, MOST_STALLS, NOISE, ROUNDED_TO_ZERO,
    ROWS_PER_WEIGHT, SLOW, START_TOLERANCE, STRIDE, SUFFICIENT,
};
use crate::context::Context;
use crate::solver::Status;
use crate::solver::linear::rows::LinearRows;

/// The penalty of the weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Norm {
    /// ½‖w‖²
    L2,
    /// ‖w‖₁
    L1,
}

/// Weights and the result of one pass over the rows.
pub(super) struct NewtonPoint {
    pub(super) weights: Vec<f64>,
    objective: f64,
    /// Of the loss alone.
    pub(super) gradient: Vec<f64>,
    loss: f64,
    /// Cᵢℓ′ of every row.
    pub(super) slopes: Vec<f64>,
}

/// What a quadratic model is minimised for.
pub(super) struct Subproblem<'a> {
    pub(super) problem: &'a Problem<'a>,
    pub(super) point: &'a NewtonPoint,
    /// 1, or 0 for a weight without a penalty.
    pub(super) penalty_weights: &'a [f64],
    /// KKT violation at the point.
    pub(super) violation: f64,
    /// Whether a model made at an earlier point is good enough.
    pub(super) old_model: bool,
}

/// The minimum of a model.
pub(super) struct Step {
    pub(super) direction: Vec<f64>,
    /// Whether the model was made at this point.
    pub(super) fresh: bool,
    /// Inner iterations.
    pub(super) work: usize,
}

/// A quadratic model of the loss.
pub(super) trait QuadraticModel {
    /// Minimises the model plus the penalty; nothing if the model is not positive definite.
    ///
    /// # Errors
    /// Why it has to stop.
    fn minimise(&mut self, subproblem: &Subproblem<'_>) -> Result<Option<Step>, Status>;

    /// Told after every step that left much of the violation, or `failed` altogether; whether the next
    /// model will be a better one.
    fn improve(&mut self, failed: bool) -> bool;

    /// Whether the minimum is cheap enough to estimate what is left to gain.
    fn is_cheap(&self) -> bool {
        false
    }
}

/// Whether the Hessian of sampled rows is worth being formed.
pub(super) fn suits_sampling<R: LinearRows>(rows: &R, norm: Norm) -> bool {
    let (width, stored) = (rows.width(), rows.nonzeros());
    let per_row = stored / rows.rows().max(1) + 1;
    let model = (ROWS_PER_WEIGHT * width).saturating_mul(per_row * per_row) / 2;
    let factor = if norm == Norm::L2 { width.saturating_pow(3) / 3 } else { 0 };
    is_worthwhile(rows.rows(), width)
        && width.saturating_pow(2) <= MODEL_WORK * stored
        && model <= MODEL_WORK * stored
        && factor <= FACTOR_WORK * stored
}

/// Whether the ℓ1 penalty is solved by coordinate descent over [`Columns`] of these rows.
pub(crate) fn needs_columns<R: LinearRows>(rows: &R) -> bool {
    !suits_sampling(rows, Norm::L1)
}

/// Solves a problem with a smooth loss, from `start` or a guess; the last weight has no penalty when
/// `free_bias` is set. `columns` are those of the rows, made where they are needed and not given.
///
/// The tolerance bounds the KKT violation relative to that at 0: the norm of the gradient for ℓ2, the
/// sum over all weights for ℓ1. The duality gap is bounded too; with ℓ1 and the Hessian of sampled rows,
/// what that predicts is left to gain will do, because the dual bound of ℓ1 is loose.
pub(crate) fn solve<R: LinearRows>(
    rows: &R,
    columns: Option<&Columns>,
    problem: &Problem<'_>,
    norm: Norm,
    options: &Options,
    start: Option<&[f64]>,
    free_bias: bool,
    context: &Context,
) -> Solution {
    let work = || {
        let weights = penalty_weights(rows.width(), free_bias);
        let products = Products::new(rows, options.alone, context);
        let newton = |table, problem| Newton {
            table,
            problem,
            norm,
            penalty_weights: &weights,
            options,
            context,
        };
        let newton_all = newton(&products, problem);
        if suits_sampling(rows, norm) {
            let (start, hessian) = match start {
                Some(start) => (start.to_vec(), None),
                None => sampled_start(rows, &products, problem, norm, options, &weights, context),
            };
            let mut model = SampledHessian::new(rows, norm, problem.loss, hessian, context);
            return newton_all.descend(&mut model, start, true, |_, _| ());
        }
        if norm == Norm::L1 {
            let own;
            let columns = match columns {
                Some(columns) => columns,
                None => {
                    own = Columns::new(rows);
                    &own
                }
            };
            let start = start.map_or_else(|| vec![0.0; rows.width()], <[f64]>::to_vec);
            let mut model = ColumnDescent::new(columns, problem.loss, context);
            return newton_all.descend(&mut model, start, true, |_, _| ());
        }
        let start = match start {
            Some(start) => start.to_vec(),
            None => guess(rows, &products, problem, options, &weights, context),
        };
        let mut model = HessianProducts::new(&products, context);
        newton_all.descend(&mut model, start, true, |_, _| ())
    };
    if options.alone { context.with_spinning_threads(PARTS, work) } else { work() }
}

/// Solves a problem with a smooth loss and the ℓ2 penalty over any table, from `start` or 0; `reached`
/// receives the weights after each step and its conjugate-gradient iterations.
pub(crate) fn over<T: Table>(
    table: &T,
    problem: &Problem<'_>,
    options: &Options,
    start: Option<&[f64]>,
    free_bias: bool,
    reached: impl FnMut(&[f64], usize),
    context: &Context,
) -> Solution {
    let weights = penalty_weights(table.width(), free_bias);
    let newton =
        Newton { table, problem, norm: Norm::L2, penalty_weights: &weights, options, context };
    let start = start.map_or_else(|| vec![0.0; table.width()], <[f64]>::to_vec);
    newton.descend(&mut HessianProducts::new(table, context), start, true, reached)
}

fn penalty_weights(width: usize, free_bias: bool) -> Vec<f64> {
    let mut weights = vec![1.0; width];
    if let (true, Some(last)) = (free_bias, weights.last_mut()) {
        *last = 0.0;
    }
    weights
}

/// The weights of sampled rows and the Hessian there.
fn sampled_start<R: LinearRows>(
    rows: &R,
    products: &Products<'_, R>,
    problem: &Problem<'_>,
    norm: Norm,
    options: &Options,
    penalty_weights: &[f64],
    context: &Context,
) -> (Vec<f64>, Option<HessianSum>) {
    let sample = Sample::new(rows, products, problem, STRIDE, context.seed());
    let problem = &sample.problem(problem.loss);
    let options = &Options { tol: START_TOLERANCE, ..*options };
    let table = &Products::new(&sample, options.alone, context);
    let newton = Newton { table, problem, norm, penalty_weights, options, context };
    let mut model = SampledHessian::new(&sample, norm, problem.loss, None, context);
    let start = newton.descend(&mut model, vec![0.0; rows.width()], false, |_, _| ());
    (start.weights, model.into_sum())
}

/// Weights near the optimum: those of sampled rows where there are many, those of a few passes of dual
/// coordinate descent where weights outnumber the rows, else 0.
fn guess<R: LinearRows>(
    rows: &R,
    products: &Products<'_, R>,
    problem: &Problem<'_>,
    options: &Options,
    penalty_weights: &[f64],
    context: &Context,
) -> Vec<f64> {
    if is_worthwhile(rows.rows(), rows.width()) {
        let sample = Sample::new(rows, products, problem, STRIDE, context.seed());
        let problem = &sample.problem(problem.loss);
        let options = &Options { tol: options.tol.max(START_TOLERANCE), ..*options };
        let table = &Products::new(&sample, options.alone, context);
        let newton = Newton { table, problem, norm: Norm::L2, penalty_weights, options, context };
        let mut model = HessianProducts::new(table, context);
        return newton.descend(&mut model, vec![0.0; rows.width()], false, |_, _| ()).weights;
    }
    if rows.rows() > rows.width() {
        return vec![0.0; rows.width()];
    }
    if problem.loss == RowLoss::Logistic {
        return super::logistic::guess(rows, problem, GUESS_PASSES, context);
    }
    let options = Options { tol: 1e-9, max_passes: GUESS_PASSES, shrinking: true, ..*options };
    super::dual::solve(rows, problem, &options, None, context).weights
}

/// A problem with a penalty.
struct Newton<'a, T> {
    table: &'a T,
    problem: &'a Problem<'a>,
    norm: Norm,
    penalty_weights: &'a [f64],
    options: &'a Options,
    context: &'a Context,
}

impl<T: Table> Newton<'_, T> {
    /// Steps from weights until the tolerance and, if `certified`, the gap are met.
    fn descend(
        &self,
        model: &mut impl QuadraticModel,
        start: Vec<f64>,
        certified: bool,
        mut reached: impl FnMut(&[f64], usize),
    ) -> Solution {
        let mut point = self.point(vec![0.0; self.table.rows()], vec![0.0; self.table.width()]);
        let at_zero = self.violation(&point);
        if start.iter().any(|w| *w != 0.0) {
            point = self.point(point.slopes, start);
        }
        let mut passes = Passes::new(self.options, self.context);
        let share = |violation: f64| match at_zero > 0.0 {
            true => violation / at_zero,
            false => violation,
        };
        let mut stalls = 0;
        let status = loop {
            if let Some(status) = self.table.broken() {
                break status;
            }
            let violation = self.violation(&point);
            let met = violation <= self.options.tol * at_zero;
            let estimate = certified && self.norm == Norm::L1 && model.is_cheap();
            if violation == 0.0 || met && (!certified || self.gap_is_met(&point)) {
                break Status::Solved;
            }
            let step = match model.minimise(&self.subproblem(&point, violation, met && estimate)) {
                Ok(step) => step,
                Err(status) => break status,
            };
            if met && estimate && step.as_ref().is_none_or(|s| self.gains_little(&point, s)) {
                break Status::Solved;
            }
            let work = step.as_ref().map_or(1, |step| step.work);
            let next = step.and_then(|step| self.advance(&point, &step, violation));
            if let Some(status) = self.table.broken() {
                break status;
            }
            let stop = passes.finish(work, share(violation), || point.objective);
            let left = next.as_ref().map_or(f64::INFINITY, |next| self.violation(next));
            let slow = left > SLOW * violation;
            let improves = !slow || model.improve(next.is_none());
            let gained = next.as_ref().map_or(0.0, |next| point.objective - next.objective);
            let stalled = slow && gained <= 1e-15 * point.objective.abs();
            stalls = if stalled { stalls + 1 } else { 0 };
            if let Some(next) = next {
                point = next;
                reached(&point.weights, work);
            } else if !improves {
                break Status::AlmostSolved;
            }
            if stalls >= MOST_STALLS {
                break Status::AlmostSolved;
            }
            if let Some(status) = stop {
                break status;
            }
        };
        self.solution(point, status, at_zero, &passes)
    }

    fn subproblem<'b>(
        &'b self,
        point: &'b NewtonPoint,
        violation: f64,
        old_model: bool,
    ) -> Subproblem<'b> {
        let Self { problem, penalty_weights, .. } = *self;
        Subproblem { problem, point, penalty_weights, violation, old_model }
    }

    /// The point of weights, in the memory of another point's slopes.
    fn point(&self, mut slopes: Vec<f64>, weights: Vec<f64>) -> NewtonPoint {
        let (loss, gradient) = self.table.differentiate(self.problem, &weights, &mut slopes);
        let penalty = |(w, c): (&f64, &f64)| match self.norm {
            Norm::L2 => 0.5 * c * w * w,
            Norm::L1 => c * w.abs(),
        };
        let penalties: f64 = weights.iter().zip(self.penalty_weights).map(penalty).sum();
        NewtonPoint { weights, objective: loss + penalties, gradient, loss, slopes }
    }

    fn violation(&self, point: &NewtonPoint) -> f64 {
        let each = (0..self.penalty_weights.len()).map(|j| {
            let (gradient, weight) = (point.gradient[j], point.weights[j]);
            match self.norm {
                Norm::L2 => (gradient + self.penalty_weights[j] * weight).powi(2),
                Norm::L1 => violation(gradient, weight, self.penalty_weights[j]),
            }
        });
        let sum: f64 = each.sum();
        if self.norm == Norm::L2 { sum.sqrt() } else { sum }
    }

    /// Whether the duality gap for the dual point −Cᵢℓ′ is small enough; with ℓ2 it is ½‖gradient‖².
    fn gap_is_met(&self, point: &NewtonPoint) -> bool {
        let gap = match self.norm {
            Norm::L2 => 0.5 * self.violation(point).powi(2),
            Norm::L1 => point.objective - self.scaled_bound(point),
        };
        gap <= self.options.gap * point.objective.abs()
    }

    fn penalised_gradient<'b>(&'b self, point: &'b NewtonPoint) -> impl Iterator<Item = f64> + 'b {
        let both = point.gradient.iter().zip(self.penalty_weights);
        both.filter(|(_, penalty)| **penalty > 0.0).map(|(gradient, _)| *gradient)
    }

    /// What the dual variables are divided by for |Σ βᵢxᵢⱼ| ≤ 1, the constraint of the dual of ℓ1.
    fn largest_gradient(&self, point: &NewtonPoint) -> f64 {
        self.penalised_gradient(point).map(f64::abs).fold(1.0, f64::max)
    }

    /// The dual objective of ℓ1 at the scaled dual variables.
    fn scaled_bound(&self, point: &NewtonPoint) -> f64 {
        let Problem { loss, targets, costs, .. } = *self.problem;
        let largest = self.largest_gradient(point);
        let slopes = point.slopes.iter().enumerate();
        -slopes.map(|(i, s)| conjugate(loss, -s / largest, targets[i], costs[i])).sum::<f64>()
    }

    /// The slope of the objective along a step, for ℓ1 over its whole length.
    fn slope(&self, point: &NewtonPoint, direction: &[f64]) -> f64 {
        let each = (0..direction.len()).map(|j| {
            let (weight, penalty) = (point.weights[j], self.penalty_weights[j]);
            match self.norm {
                Norm::L2 => penalty * weight * direction[j],
                Norm::L1 => penalty * ((weight + direction[j]).abs() - weight.abs()),
            }
        });
        inner(&point.gradient, direction) + each.sum::<f64>()
    }

    /// Whether the model predicts a gain of less than the gap asked for.
    fn gains_little(&self, point: &NewtonPoint, step: &Step) -> bool {
        -0.5 * self.slope(point, &step.direction) <= self.options.gap * point.objective
    }

    /// The point as far along a step as it helps; none where it does not, or not all the way along the
    /// step of a model that was made elsewhere.
    fn advance(&self, point: &NewtonPoint, step: &Step, violation: f64) -> Option<NewtonPoint> {
        let moved = |share: f64| -> Vec<f64> {
            let both = point.weights.iter().zip(&step.direction).map(|(w, d)| (w, share * d));
            let is_zero = |w: f64, d: f64| {
                self.norm == Norm::L1 && (w + d).abs() <= ROUNDED_TO_ZERO * (w.abs() + d.abs())
            };
            both.map(|(&w, d)| if is_zero(w, d) { 0.0 } else { w + d }).collect()
        };
        let slope = self.slope(point, &step.direction);
        let mut next = self.point(vec![0.0; point.slopes.len()], moved(1.0));
        if -slope <= NOISE * point.objective.abs() {
            // Differences of the objective are rounding now; the violation decides.
            return (self.violation(&next) < violation).then_some(next);
        }
        let mut share = 1.0;
        let enough = |next: &NewtonPoint, share: f64| {
            next.objective - point.objective <= SUFFICIENT * share * slope
        };
        for _ in 0..if step.fresh { MOST_HALVINGS } else { 0 } {
            if enough(&next, share) || self.table.broken().is_some() {
                break;
            }
            share *= 0.5;
            next = self.point(next.slopes, moved(share));
        }
        enough(&next, share).then_some(next)
    }

    fn solution(
        &self,
        point: NewtonPoint,
        status: Status,
        at_zero: f64,
        passes: &Passes<'_>,
    ) -> Solution {
        let left = self.violation(&point);
        let met = left <= self.options.tol * at_zero && self.gap_is_met(&point);
        let status = match status {
            Status::AlmostSolved | Status::IterationLimit if met => Status::Solved,
            other => other,
        };
        // sup over z of −βz − Cℓ(z) is reached at the z whose slope −β is.
        let separable = inner(&point.weights, &point.gradient) - point.loss;
        let (bound, scale) = match self.norm {
            Norm::L2 => {
                let squares = self.penalised_gradient(&point).map(|g| g * g).sum::<f64>();
                (-0.5 * squares - separable, 1.0)
            }
            Norm::L1 => (self.scaled_bound(&point), self.largest_gradient(&point)),
        };
        let dual: Vec<f64> = point.slopes.iter().map(|slope| -slope / scale).collect();
        let violation = left / at_zero.max(f64::MIN_POSITIVE);
        let outcome = passes.outcome(status, point.objective, bound, violation);
        Solution { weights: point.weights, dual, outcome }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Csr;
    use crate::numeric::random::Generator;
    use crate::solver::linear::rows::SparseRows;

    /// Rows of a few features each, and a side or a value for every one.
    fn table(height: usize, width: usize) -> (Csr<f64>, Vec<f64>) {
        let mut generator = Generator::new(7);
        let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        let mut targets = Vec::new();
        for _ in 0..height {
            let mut sum = 0.5 * generator.normal();
            for j in 0..width {
                if generator.unit() < 0.4 {
                    indices.push(j as u32);
                    values.push(generator.normal());
                    sum += values[values.len() - 1] * (j as f64 - 3.0) / 4.0;
                }
            }
            starts.push(indices.len());
            targets.push(sum - 1.0);
        }
        (Csr::new(width, starts, indices, values).unwrap(), targets)
    }

    #[test]
    fn all_quadratic_models_lead_to_the_same_optimum() {
        let (csr, values) = table(3000, 9);
        let sides: Vec<f64> = values.iter().map(|v| v.signum()).collect();
        let costs: Vec<f64> = (0..values.len()).map(|i| 0.02 * (1 + i % 3) as f64).collect();
        let rows = SparseRows::new(&csr, csr.values(), Some(1.0));
        let options = Options { tol: 1e-8, max_passes: 1000, ..Options::default() };
        let (one, two) = (Context::new(), Context::new().with_threads(2).unwrap());
        for (loss, targets) in [
            (RowLoss::Logistic, &sides),
            (RowLoss::SquaredHinge, &sides),
            (RowLoss::SquaredTube(0.1), &values),
        ] {
            let problem = Problem { loss, targets, costs: &costs, shift: 0.0 };
            for norm in [Norm::L2, Norm::L1] {
                assert!(suits_sampling(&rows, norm));
                for free in [false, true] {
                    let found = solve(&rows, None, &problem, norm, &options, None, free, &one);
                    let other = without_sampling(&rows, &problem, norm, &options, free, &one);
                    let (own, expected) = (found.outcome, other.outcome);
                    let case = format!("{loss:?} {norm:?} {free}: {own:?} for {expected:?}");
                    assert!(own.status.is_solved(), "{case}");
                    assert!((own.primal - expected.primal).abs() < 1e-9 * own.primal, "{case}");
                    assert!((own.dual - expected.dual).abs() < 1e-4 * own.primal, "{case}");
                    let again = two.install(|| {
                        solve(&rows, None, &problem, norm, &options, None, free, &two).weights
                    });
                    assert_eq!(found.weights, again, "{case}");
                }
            }
        }
    }

    /// The solution by the models that do not sample rows, from 0.
    fn without_sampling<R: LinearRows>(
        rows: &R,
        problem: &Problem<'_>,
        norm: Norm,
        options: &Options,
        free: bool,
        context: &Context,
    ) -> Solution {
        let table = &Products::new(rows, true, context);
        let penalty_weights = &penalty_weights(rows.width(), free);
        let newton = Newton { table, problem, norm, penalty_weights, options, context };
        let start = vec![0.0; rows.width()];
        match norm {
            Norm::L2 => {
                newton.descend(&mut HessianProducts::new(table, context), start, true, |_, _| ())
            }
            Norm::L1 => {
                let columns = Columns::new(rows);
                let mut model = ColumnDescent::new(&columns, problem.loss, context);
                newton.descend(&mut model, start, true, |_, _| ())
            }
        }
    }

    #[test]
    fn a_sample_of_two_sides_keeps_their_total_costs() {
        let (csr, _) = table(4000, 3);
        let rows = SparseRows::new(&csr, csr.values(), None);
        let targets: Vec<f64> = (0..4000).map(|i| if i % 9 == 4 { 1.0 } else { -1.0 }).collect();
        let costs = vec![2.0; targets.len()];
        let problem =
            Problem { loss: RowLoss::Logistic, targets: &targets, costs: &costs, shift: 0.0 };
        let context = Context::new();
        let products = Products::new(&rows, true, &context);
        let sample = Sample::new(&rows, &products, &problem, STRIDE, 3);
        assert!(sample.rows().abs_diff(rows.rows() / STRIDE) < 60, "{}", sample.rows());
        let part = sample.problem(problem.loss);
        for side in [-1.0, 1.0] {
            let total = |problem: &Problem<'_>| -> f64 {
                let own = problem.targets.iter().zip(problem.costs).filter(|(t, _)| **t == side);
                own.map(|(_, cost)| cost).sum()
            };
            let (all, picked) = (total(&problem), total(&part));
            assert!((all - picked).abs() < 0.1 * all, "{side}: {picked} for {all}");
        }
    }
}
