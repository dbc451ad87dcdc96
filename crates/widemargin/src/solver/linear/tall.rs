//! Smooth losses over tables of many more rows than features, with either penalty.
//!
//! A step minimises ⟨g, d⟩ + ½dᵀMd plus the penalty of w + d, where M is the Hessian of a sample of
//! rows, small enough to be written down: beside it a step takes one pass over the rows, which gives
//! the loss and the gradient of the next point. M stays as long as it serves and is then made anew,
//! of more rows where a new one did not serve either. Proximal Newton steps as in Lee, Sun and
//! Saunders (2014).

use super::bends::{BLOCK, curvature, slopes};
use super::model::Model;
use super::problem::{Options, Passes, Problem, Solution, inner};
use super::products::{PARTS, Products};
use super::sample::{COARSE, STRIDE, Sample, is_worthwhile};
use super::sparse_weights::{scaled_dual, violation};
use crate::context::Context;
use crate::numeric::InstructionSet;
use crate::numeric::simd::{PlainLoop, run_plain};
use crate::solver::Status;
use crate::solver::linear::rows::LinearRows;

/// Halvings of a step.
const MOST_HALVINGS: usize = 20;

/// Share of the predicted gain that a step has to bring.
const SUFFICIENT: f64 = 0.01;

/// Steps without gain before the solver gives up.
const MOST_STALLS: usize = 10;

/// A step that leaves more than this share of the violation calls for a better model.
const SLOW: f64 = 0.4;

/// What the model may still promise, as a share of the objective, where the tolerance is met.
const PROMISE: f64 = 7e-4;

/// Predicted gains below this share of the objective cannot be seen in it.
const NOISE: f64 = 1e-11;

/// A sum of two numbers that is this share of them is what rounding left of 0.
const SMALLEST: f64 = 1e-12;

/// Rows of a model's sample for every weight; of a squared loss, where none says more than another,
/// it takes twice as many.
const ROWS_PER_WEIGHT: usize = 80;

/// How many times the rows of a model's sample become when it did not serve.
const MORE_ROWS: usize = 4;

/// Work of a model, for every stored value of the table.
const MODEL_WORK: usize = 4;

/// Work of a factor, for every stored value of the table.
const FACTOR_WORK: usize = 2;

/// Share of the violation that a model's minimum may leave where it is found step by step.
const INNER_SHARE: f64 = 0.05;

/// What weights cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Penalty {
    /// ½w²
    Squares,
    /// |w|
    Absolutes,
}

/// Whether a table has the shape for it.
pub(super) fn suits<R: LinearRows>(rows: &R, penalty: Penalty) -> bool {
    let (width, stored) = (rows.width(), rows.nonzeros());
    let per_row = stored / rows.rows().max(1) + 1;
    let model = (ROWS_PER_WEIGHT * width).saturating_mul(per_row * per_row) / 2;
    let factor = if penalty == Penalty::Squares { width.saturating_pow(3) / 3 } else { 0 };
    is_worthwhile(rows.rows(), width)
        && width.saturating_pow(2) <= MODEL_WORK * stored
        && model <= MODEL_WORK * stored
        && factor <= FACTOR_WORK * stored
}

/// Solves a problem with a smooth loss, from `start` or the weights of a sample; the last weight is
/// free of charge when `free_bias` is set.
///
/// The tolerance bounds the violation of the optimality conditions relative to that at 0: the norm
/// of the gradient for squares, the sum over all weights for absolutes.
pub(super) fn solve<R: LinearRows>(
    rows: &R,
    problem: &Problem<'_>,
    penalty: Penalty,
    options: &Options,
    start: Option<&[f64]>,
    free_bias: bool,
    context: &Context,
) -> Solution {
    let work = || {
        let mut charge = vec![1.0; rows.width()];
        if let (true, Some(last)) = (free_bias, charge.last_mut()) {
            *last = 0.0;
        }
        if let Some(start) = start {
            let start = (start.to_vec(), None);
            return descend(rows, problem, penalty, *options, PROMISE, start, &charge, context).0;
        }
        let products = Products::new(rows, options.alone, context);
        let sample = Sample::new(rows, &products, problem, STRIDE, context.seed());
        let part = sample.problem(problem.loss);
        let coarse = Options { tol: COARSE, ..*options };
        let start = (vec![0.0; rows.width()], None);
        let (guess, model) =
            descend(&sample, &part, penalty, coarse, f64::INFINITY, start, &charge, context);
        descend(rows, problem, penalty, *options, PROMISE, (guess.weights, model), &charge, context)
            .0
    };
    if options.alone { context.with_spinning_threads(PARTS, work) } else { work() }
}

/// Steps from weights and a model of the loss there, if there is one; also the last model.
fn descend<R: LinearRows>(
    rows: &R,
    problem: &Problem<'_>,
    penalty: Penalty,
    mut options: Options,
    promise: f64,
    (weights, mut model): (Vec<f64>, Option<Model>),
    charge: &[f64],
    context: &Context,
) -> (Solution, Option<Model>) {
    let state = Tall {
        rows,
        problem,
        products: Products::new(rows, options.alone, context),
        penalty,
        charge,
        set: context.instruction_set(),
    };
    let mut point = state.point(vec![0.0; rows.width()]);
    let at_zero = state.violation(&point);
    if weights.iter().any(|w| *w != 0.0) {
        point = state.point_in(point.slopes, weights);
    }
    let asked = options.tol * at_zero;
    let mut passes = Passes::new(&options, context);
    let mut count = ROWS_PER_WEIGHT * rows.width() * (1 + usize::from(problem.loss.is_squared()));
    let (mut cautious, mut stale) = (false, false);
    let mut stalls = 0;
    let status = loop {
        let violation = state.violation(&point);
        if violation == 0.0 {
            break Status::Solved;
        }
        let close = violation <= options.tol * at_zero;
        let goal = INNER_SHARE * violation;
        // For a look at what is left to gain an old model will do.
        let fresh = model.is_none() || stale && !close;
        if fresh {
            state.remodel(&mut model, &point, count, cautious, context);
            stale = false;
        }
        let step = model.as_mut().and_then(|model| state.minimum(model, &point, goal, context));
        if close {
            if step.is_none_or(|step| state.promise(&point, &step) <= promise) {
                break Status::Solved;
            }
            // What there is still to gain counts, not the tolerance.
            options.tol *= 0.5;
            continue;
        }
        let next = step.and_then(|step| state.advance(&point, &step, violation, fresh));
        let stop = passes.finish(rows.rows(), violation / at_zero, || f64::NAN);
        let left = next.as_ref().map_or(f64::INFINITY, |next| state.violation(next));
        if left > SLOW * violation {
            // A model without the rows beyond the kink may promise too much; one with all of them
            // never does.
            cautious = next.is_none() && fresh && problem.loss.is_squared() && !cautious;
            if fresh {
                count = count.saturating_mul(MORE_ROWS);
            }
            stale = true;
        }
        // Rows cross the kink in every step.
        stale |= problem.loss.is_squared();
        match next {
            Some(next) => {
                let gained = point.objective - next.objective;
                stalls = if gained <= 1e-15 * point.objective.abs() { stalls + 1 } else { 0 };
                point = next;
            }
            None => stalls += 1,
        }
        if stalls >= MOST_STALLS {
            break Status::AlmostSolved;
        }
        if let Some(status) = stop {
            break status;
        }
    };
    let left = state.violation(&point);
    let status = match status {
        Status::AlmostSolved | Status::IterationLimit if left <= asked => Status::Solved,
        other => other,
    };
    let violation = left / at_zero.max(f64::MIN_POSITIVE);
    let (dual, dual_objective) = state.dual(&point);
    let outcome = passes.outcome(status, point.objective, dual_objective, violation);
    (Solution { weights: point.weights, dual, outcome }, model)
}

/// Weights and what a pass over the rows tells about them.
struct Point {
    weights: Vec<f64>,
    objective: f64,
    /// Of the loss alone.
    gradient: Vec<f64>,
    loss: f64,
    /// Cᵢℓ′ of every row.
    slopes: Vec<f64>,
}

struct Tall<'a, R> {
    rows: &'a R,
    problem: &'a Problem<'a>,
    products: Products<'a, R>,
    penalty: Penalty,
    /// 1, or 0 for a weight that is free of charge.
    charge: &'a [f64],
    set: InstructionSet,
}

impl<R: LinearRows> Tall<'_, R> {
    /// Passes over all rows.
    fn point(&self, weights: Vec<f64>) -> Point {
        self.point_in(vec![0.0; self.rows.rows()], weights)
    }

    /// The same in the memory of another point's slopes.
    fn point_in(&self, mut slopes: Vec<f64>, weights: Vec<f64>) -> Point {
        let parts = self.products.of_parts_mut(&mut slopes, |first, slopes| {
            let (rows, problem, weights) = (self.rows, self.problem, &weights[..]);
            run_plain(self.set, Pass { rows, problem, weights, first, slopes })
        });
        let mut parts = parts.into_iter();
        let (mut loss, mut gradient) =
            parts.next().unwrap_or_else(|| (0.0, vec![0.0; self.rows.width()]));
        for (more, part) in parts {
            loss += more;
            super::problem::add_scaled(&mut gradient, 1.0, &part);
        }
        let objective = loss + self.penalty_of(&weights);
        Point { weights, objective, gradient, loss, slopes }
    }

    fn penalty_of(&self, weights: &[f64]) -> f64 {
        let own = |(w, c): (&f64, &f64)| match self.penalty {
            Penalty::Squares => 0.5 * c * w * w,
            Penalty::Absolutes => c * w.abs(),
        };
        weights.iter().zip(self.charge).map(own).sum()
    }

    fn violation(&self, point: &Point) -> f64 {
        let each = (0..self.charge.len()).map(|j| {
            let (gradient, weight, charge) = (point.gradient[j], point.weights[j], self.charge[j]);
            match self.penalty {
                Penalty::Squares => (gradient + charge * weight).powi(2),
                Penalty::Absolutes => violation(gradient, weight, charge),
            }
        });
        let sum: f64 = each.sum();
        if self.penalty == Penalty::Squares { sum.sqrt() } else { sum }
    }

    /// Makes a model of about `count` rows at a point.
    fn remodel(
        &self,
        model: &mut Option<Model>,
        point: &Point,
        count: usize,
        cautious: bool,
        context: &Context,
    ) {
        let Problem { loss, costs, .. } = *self.problem;
        let bend = |i: usize| match cautious {
            true => 2.0 * costs[i],
            false => curvature(loss, point.slopes[i], costs[i]),
        };
        match model {
            Some(model) => model.renew(self.rows, bend, count, context),
            None => *model = Some(Model::new(self.rows, bend, count, context)),
        }
    }

    /// The step that minimises a model with the penalty.
    fn minimum(
        &self,
        model: &mut Model,
        point: &Point,
        goal: f64,
        context: &Context,
    ) -> Option<Vec<f64>> {
        let Point { gradient, weights, .. } = point;
        match self.penalty {
            Penalty::Squares => model.least_squared(gradient, weights, self.charge, context),
            Penalty::Absolutes => {
                Some(model.least_absolute(gradient, weights, self.charge, goal, context))
            }
        }
    }

    /// The slope of the objective along a step, for absolute values over its whole length.
    fn slope(&self, point: &Point, step: &[f64]) -> f64 {
        let each = (0..step.len()).map(|j| {
            let (weight, charge) = (point.weights[j], self.charge[j]);
            match self.penalty {
                Penalty::Squares => charge * weight * step[j],
                Penalty::Absolutes => charge * ((weight + step[j]).abs() - weight.abs()),
            }
        });
        inner(&point.gradient, step) + each.sum::<f64>()
    }

    /// What the minimum of a model gains, as a share of the objective.
    fn promise(&self, point: &Point, step: &[f64]) -> f64 {
        -0.5 * self.slope(point, step) / point.objective
    }

    /// The point as far along a step as it helps; none where it does not, or not all the way along
    /// the step of a model that is not `fresh`.
    fn advance(&self, point: &Point, step: &[f64], violation: f64, fresh: bool) -> Option<Point> {
        let moved = |share: f64| -> Vec<f64> {
            let both = point.weights.iter().zip(step).map(|(w, d)| (w, share * d));
            let is_rest = |w: f64, d: f64| {
                self.penalty == Penalty::Absolutes
                    && (w + d).abs() <= SMALLEST * (w.abs() + d.abs())
            };
            both.map(|(&w, d)| if is_rest(w, d) { 0.0 } else { w + d }).collect()
        };
        let slope = self.slope(point, step);
        let next = self.point(moved(1.0));
        if -slope <= NOISE * point.objective.abs() {
            // Differences of the objective are rounding now; the violation decides.
            return (self.violation(&next) < violation).then_some(next);
        }
        let (mut next, mut share) = (next, 1.0);
        let enough = |next: &Point, share: f64| {
            next.objective - point.objective <= SUFFICIENT * share * slope
        };
        for _ in 0..if fresh { MOST_HALVINGS } else { 0 } {
            if enough(&next, share) {
                break;
            }
            share *= 0.5;
            next = self.point(moved(share));
        }
        enough(&next, share).then_some(next)
    }

    /// The dual point −Cᵢℓ′, scaled until it is feasible, and its objective.
    fn dual(&self, point: &Point) -> (Vec<f64>, f64) {
        // sup over z of −βz − Cℓ(z) is reached at the z whose slope β is.
        let conjugate = inner(&point.weights, &point.gradient) - point.loss;
        let beta: Vec<f64> = point.slopes.iter().map(|slope| -slope).collect();
        match self.penalty {
            Penalty::Squares => {
                let squares = point.gradient.iter().zip(self.charge).map(|(g, c)| c * g * g);
                (beta, -0.5 * squares.sum::<f64>() - conjugate)
            }
            Penalty::Absolutes => scaled_dual(self.problem, &point.gradient, self.charge, beta),
        }
    }
}

/// A pass over some rows: their slopes, their loss and its gradient.
struct Pass<'a, R> {
    rows: &'a R,
    problem: &'a Problem<'a>,
    weights: &'a [f64],
    first: usize,
    slopes: &'a mut [f64],
}

impl<R: LinearRows> PlainLoop for Pass<'_, R> {
    type Output = (f64, Vec<f64>);

    #[inline(always)]
    fn run(self) -> (f64, Vec<f64>) {
        let zero = self.weights.iter().all(|w| *w == 0.0);
        let mut gradient = vec![0.0; self.rows.width()];
        let (mut loss, mut first) = (0.0, self.first);
        for block in self.slopes.chunks_mut(BLOCK) {
            for (k, value) in block.iter_mut().enumerate() {
                *value = if zero { 0.0 } else { self.rows.dot(first + k, self.weights) };
            }
            loss += slopes(self.problem, first, block);
            for (k, &slope) in block.iter().enumerate() {
                if slope != 0.0 {
                    self.rows.add(first + k, slope, &mut gradient);
                }
            }
            first += block.len();
        }
        (loss, gradient)
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::Columns;
    use super::super::problem::Loss;
    use super::super::{newton, sparse_weights};
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
    fn optima_are_those_of_the_other_solvers() {
        let (csr, values) = table(3000, 9);
        let sides: Vec<f64> = values.iter().map(|v| v.signum()).collect();
        let costs: Vec<f64> = (0..values.len()).map(|i| 0.02 * (1 + i % 3) as f64).collect();
        let rows = SparseRows::new(&csr, csr.values(), Some(1.0));
        let options =
            Options { tol: 1e-8, max_passes: 1000, shrinking: true, alone: true, singles: true };
        let (one, two) = (Context::new(), Context::new().with_threads(2).unwrap());
        for (loss, targets) in [
            (Loss::Logistic, &sides),
            (Loss::SquaredHinge, &sides),
            (Loss::SquaredTube(0.1), &values),
        ] {
            let problem = Problem { loss, targets, costs: &costs, shift: 0.0 };
            for penalty in [Penalty::Squares, Penalty::Absolutes] {
                assert!(suits(&rows, penalty));
                for free in [false, true] {
                    let found = solve(&rows, &problem, penalty, &options, None, free, &one);
                    let other = match penalty {
                        Penalty::Squares => {
                            newton::descend(&rows, &problem, &options, None, free, &one)
                        }
                        Penalty::Absolutes => {
                            let columns = Columns::new(&rows);
                            sparse_weights::descend(&columns, &problem, &options, None, free, &one)
                        }
                    };
                    let (own, expected) = (found.outcome, other.outcome);
                    let case = format!("{loss:?} {penalty:?} {free}: {own:?} for {expected:?}");
                    assert!(own.status.is_solved(), "{case}");
                    assert!((own.primal - expected.primal).abs() < 1e-9 * own.primal, "{case}");
                    assert!((own.dual - expected.dual).abs() < 1e-4 * own.primal, "{case}");
                    let again = context_weights(&rows, &problem, penalty, &options, free, &two);
                    assert_eq!(found.weights, again, "{case}");
                }
            }
        }
    }

    fn context_weights<R: LinearRows>(
        rows: &R,
        problem: &Problem<'_>,
        penalty: Penalty,
        options: &Options,
        free: bool,
        context: &Context,
    ) -> Vec<f64> {
        context.install(|| solve(rows, problem, penalty, options, None, free, context).weights)
    }

    #[test]
    fn a_sample_of_two_sides_keeps_their_total_costs() {
        let (csr, _) = table(4000, 3);
        let rows = SparseRows::new(&csr, csr.values(), None);
        let targets: Vec<f64> = (0..4000).map(|i| if i % 9 == 4 { 1.0 } else { -1.0 }).collect();
        let costs = vec![2.0; targets.len()];
        let problem =
            Problem { loss: Loss::Logistic, targets: &targets, costs: &costs, shift: 0.0 };
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
