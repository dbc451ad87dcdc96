//! The training problems over weighted features, solved again and again with other weights by the linear solvers.
//!
//! Whatever a solver does, the bounds are computed from its dual variables: w = Σ βᵢφ(xᵢ) over the features of all
//! kernels gives −½‖w‖² + what the losses add as a lower bound and every kernel's form ½‖wᵢ‖², and the objective at
//! this w with the best constant is the upper one.

use super::problem::{Classes, FeatureProblem, Function, HalfSpace, ProblemKind};
use super::tables::FeatureTables;
use crate::context::Context;
use crate::error::Result;
use crate::machine::is_worth_blocks;
use crate::numeric::algebra::dot;
use crate::outcome::{Outcome, Status};
use crate::solver::kernel_weights::{Solved, WeightedDual};
use crate::solver::linear::rows::LinearRows;
use crate::solver::linear::{
    Choices, Options, Problem, Products, Table, WeightedRows, solve_blocks, solve_crammer_singer,
    solve_dual, solve_one_class,
};

/// Part of a gap that a linear solver may leave; the constant takes the rest.
const SOLVER_SHARE: f64 = 0.3;

/// Steps towards a constant without a penalty.
const MOST_STEPS: usize = 60;

/// A step counts as progress that brings the gap below this share of what it was.
const PROGRESS: f64 = 0.7;

/// Steps without progress, after which rounding is taken to stop it.
const MOST_STALLED: usize = 6;

/// Tolerance of a solver over the gap asked for, and its bounds.
const TOLERANCE_PER_GAP: f64 = 10.0;
const TOLERANCES: [f64; 2] = [1e-10, 0.1];

/// The smallest gap that is asked of a solver: what double precision carries.
const SMALLEST_GAP: f64 = 1e-13;

/// The longest step towards a constant, in units of the proximal one.
const LONGEST_STEP: f64 = 50.0;

/// The margin of the linear solver is twice the one of the machine, so that its C is a quarter, its objective a
/// quarter and its weights half of those of the machine.
const CLASSES_SCALE: f64 = 4.0;

const NOTHING_DONE: Outcome = Outcome {
    status: Status::Solved,
    primal: 0.0,
    dual: 0.0,
    violation: 0.0,
    iterations: 0,
    blocks: 0,
    kernel_rows: 0,
};

/// Functions of a solution: Σ βφ(x) over the features of all kernels, and a constant.
#[derive(Clone, Debug)]
pub(super) struct LearntFunction {
    pub(super) sums: Vec<f64>,
    pub(super) constant: f64,
}

/// A solution of one problem with its bounds.
struct Found {
    functions: Vec<LearntFunction>,
    /// What the lower bound adds to −½‖w‖².
    linear: f64,
    /// The objective at the weights.
    primal: f64,
    forms: Vec<f64>,
}

impl Found {
    fn gap(&self, weights: &[f64]) -> f64 {
        let dual = self.linear - dot(&self.forms, weights);
        (self.primal - dual) / self.primal.abs().max(f64::MIN_POSITIVE)
    }
}

/// The problems of a machine over features.
pub(super) struct FeatureDuals<'a> {
    tables: &'a FeatureTables,
    problems: Vec<FeatureProblem>,
    /// Limit on passes of a solver.
    max_passes: u64,
    shrinking: bool,
    functions: Vec<LearntFunction>,
    effort: Outcome,
    context: &'a Context,
}

/// Tables, a set of weights and what is asked for.
struct At<'a> {
    tables: &'a FeatureTables,
    weights: &'a [f64],
    /// √(µᵢfᵢ)
    scales: Vec<f64>,
    gap: f64,
    max_passes: u64,
    shrinking: bool,
    context: &'a Context,
}

impl<'a> FeatureDuals<'a> {
    pub(super) fn new(
        tables: &'a FeatureTables,
        problems: Vec<FeatureProblem>,
        max_passes: u64,
        shrinking: bool,
        context: &'a Context,
    ) -> Self {
        let (functions, effort) = (Vec::new(), NOTHING_DONE);
        Self { tables, problems, max_passes, shrinking, functions, effort, context }
    }

    /// Work done and the functions of the last weights.
    pub(super) fn finish(self) -> (Outcome, Vec<LearntFunction>) {
        (self.effort, self.functions)
    }
}

impl WeightedDual for FeatureDuals<'_> {
    fn solve(&mut self, weights: &[f64], gap: f64) -> Result<Solved> {
        let factors = self.tables.factors.iter();
        let at = At {
            tables: self.tables,
            weights,
            scales: weights.iter().zip(factors).map(|(w, f)| (w * f).max(0.0).sqrt()).collect(),
            gap,
            max_passes: self.max_passes,
            shrinking: self.shrinking,
            context: self.context,
        };
        let mut all = Solved {
            linear: 0.0,
            forms: vec![0.0; weights.len()],
            primal: 0.0,
            status: Status::Solved,
        };
        self.functions.clear();
        for problem in &mut self.problems {
            let (found, outcome) = match &mut problem.kind {
                ProblemKind::Function(function) => at.function(&problem.rows, function),
                ProblemKind::Classes(classes) => at.classes(&problem.rows, classes),
                ProblemKind::HalfSpace(half) => at.half_space(&problem.rows, half),
            };
            all.linear += found.linear;
            all.primal += found.primal;
            all.forms.iter_mut().zip(&found.forms).for_each(|(sum, form)| *sum += form);
            all.status = all.status.max(outcome.status);
            self.functions.extend(found.functions);
            self.effort.iterations += outcome.iterations;
            self.effort.blocks += outcome.blocks;
            self.effort.violation = outcome.violation;
        }
        Ok(all)
    }
}

impl At<'_> {
    fn options(&self, gap: f64) -> Options {
        let [least, most] = TOLERANCES;
        let gap = gap.max(SMALLEST_GAP);
        Options {
            tol: (TOLERANCE_PER_GAP * gap).clamp(least, most),
            gap,
            max_passes: self.max_passes,
            shrinking: self.shrinking,
            alone: true,
            singles: true,
        }
    }

    /// Σ βᵢφ(xᵢ) over the features of all kernels.
    fn sums(&self, rows: &[usize], dual: &[f64]) -> Vec<f64> {
        let all = self.tables.rows(&vec![1.0; self.scales.len()], rows, None);
        Products::new(&all, true, self.context).transposed(&WeightedRows::new(dual))
    }

    /// A function with a constant that has no penalty, by proximal steps of the constant
    /// `½‖w‖² + ½(b − bₖ)² + Σ Cᵢ ℓ` (Rockafellar, 1976) with the secant of their lengths, until the bounds meet.
    fn function(&self, rows: &[usize], function: &mut Function) -> (Found, Outcome) {
        let with_bias = self.tables.rows(&self.scales, rows, Some(1.0));
        let is_large = is_worth_blocks(with_bias.nonzeros(), with_bias.width());
        let solve = if is_large { solve_blocks } else { solve_dual };
        let mut inner = SOLVER_SHARE * self.gap;
        let (mut last, mut best): (Option<[f64; 2]>, Option<Found>) = (None, None);
        let (mut effort, mut stalled, mut shift) = (NOTHING_DONE, 0, function.constant);
        for _ in 0..MOST_STEPS {
            let Function { loss, targets, costs, dual, .. } = &*function;
            let problem = Problem { loss: *loss, targets, costs, shift };
            let solution =
                solve(&with_bias, &problem, &self.options(inner), Some(dual), self.context);
            let moved = solution.weights.last().copied().unwrap_or(0.0);
            let Outcome { primal, dual, status, .. } = solution.outcome;
            effort.iterations += solution.outcome.iterations;
            effort.blocks += solution.outcome.blocks;
            (effort.status, effort.violation) = (status, solution.outcome.violation);
            function.dual = solution.dual;
            let found = self.certified(rows, function);
            let (gap, before) = (
                found.gap(self.weights),
                best.as_ref().map_or(f64::INFINITY, |b| b.gap(self.weights)),
            );
            stalled = if gap < PROGRESS * before { 0 } else { stalled + 1 };
            if gap < before {
                function.constant = found.functions[0].constant;
                best = Some(found);
            }
            let stopped =
                self.context.stop_request().is_some() || status == Status::NumericalTrouble;
            if gap.min(before) <= self.gap || stopped || stalled > MOST_STALLED {
                break;
            }
            if primal - dual > SOLVER_SHARE * self.gap * primal.abs() || stalled > 0 {
                inner *= SOLVER_SHARE;
            }
            let step = match last {
                Some([earlier, then]) if (moved - then) * (shift - earlier) < 0.0 => {
                    let most = LONGEST_STEP * moved.abs();
                    (-moved * (shift - earlier) / (moved - then)).clamp(-most, most)
                }
                _ => moved,
            };
            last = Some([shift, moved]);
            shift += step;
        }
        let found = best.unwrap_or_else(|| self.certified(rows, function));
        let status = match self.context.stop_request() {
            _ if found.gap(self.weights) <= self.gap => Status::Solved,
            Some(status) => status,
            None => effort.status.max(Status::AlmostSolved),
        };
        (found, Outcome { status, ..effort })
    }

    /// The bounds that the dual variables of a function prove.
    fn certified(&self, rows: &[usize], function: &Function) -> Found {
        let dual = function.balanced();
        let sums = self.sums(rows, &dual);
        let plain = self.tables.rows(&self.scales, rows, None);
        let weights = self.tables.weights(&self.scales, &sums);
        let values = Products::new(&plain, true, self.context).values(&weights);
        let constant = function.best_constant(&values);
        let Function { loss, targets, costs, .. } = function;
        let problem = Problem { loss: *loss, targets, costs, shift: constant };
        Found {
            linear: function.linear(&dual),
            primal: 0.5 * dot(&weights, &weights) + problem.total_loss(values.into_iter()),
            forms: self.tables.forms(&sums),
            functions: vec![LearntFunction { sums, constant }],
        }
    }

    /// The problem of all classes.
    fn classes(&self, rows: &[usize], classes: &mut Classes) -> (Found, Outcome) {
        let table = self.tables.rows(&self.scales, rows, None);
        let costs: Vec<f64> = classes.costs.iter().map(|cost| cost / CLASSES_SCALE).collect();
        let count = classes.count;
        let choices = Choices { count, right: &classes.right, costs: &costs };
        let options = self.options(self.gap);
        let start = classes.dual.as_deref();
        let solution = solve_crammer_singer(&table, choices, &options, start, self.context);
        let (mut forms, mut functions) = (vec![0.0; self.scales.len()], Vec::new());
        for class in 0..count {
            let own: Vec<f64> = solution.dual.iter().skip(class).step_by(count).copied().collect();
            let mut sums = self.sums(rows, &own);
            sums.iter_mut().for_each(|sum| *sum *= CLASSES_SCALE.sqrt());
            forms.iter_mut().zip(self.tables.forms(&sums)).for_each(|(f, own)| *f += own);
            functions.push(LearntFunction { sums, constant: 0.0 });
        }
        // What the losses add is the sum of α over the classes that are not the row's own.
        let others =
            |(alpha, right): (&[f64], &u32)| alpha.iter().sum::<f64>() - alpha[*right as usize];
        let linear: f64 = solution.dual.chunks_exact(count).zip(&classes.right).map(others).sum();
        let found = Found {
            functions,
            linear: -CLASSES_SCALE * linear,
            primal: CLASSES_SCALE * solution.outcome.primal,
            forms,
        };
        classes.dual = Some(solution.dual);
        (found, solution.outcome)
    }

    /// The half-space of the one-class machine, to tolerances that are tightened until the bounds meet.
    fn half_space(&self, rows: &[usize], half: &HalfSpace) -> (Found, Outcome) {
        let table = self.tables.rows(&self.scales, rows, None);
        let mut options = self.options(self.gap);
        loop {
            let found = solve_one_class(&table, &half.upper, half.total, &options, self.context);
            let outcome = found.solution.outcome;
            let is_met = outcome.gap() <= self.gap * outcome.primal.abs();
            if is_met || outcome.status != Status::Solved || options.tol <= TOLERANCES[0] {
                let sums = self.sums(rows, &found.solution.dual);
                let found = Found {
                    linear: 0.0,
                    primal: outcome.primal,
                    forms: self.tables.forms(&sums),
                    functions: vec![LearntFunction { sums, constant: -found.offset }],
                };
                return (found, outcome);
            }
            options.tol *= 0.1;
        }
    }
}
