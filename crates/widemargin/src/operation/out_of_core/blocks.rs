//! Block minimisation: some passes of dual coordinate descent over every chunk while it is in memory.

use std::time::{Duration, Instant};

use super::OutOfCore;
use super::pass::{ChunkTask, each_chunk, with_chunk};
use super::state::{Function, State};
use super::train::Task;
use crate::context::{Context, Event};
use crate::data::chunks::{Chunk, ChunkStore};
use crate::error::Result;
use crate::numeric::InstructionSet;
use crate::numeric::random::Generator;
use crate::solver::linear::rows::LinearRows;
use crate::solver::linear::{Descent, LogisticDescent, Problem, RowLoss, Violation, conjugate};
use crate::solver::{Outcome, Status};

/// Passes over the rows of a chunk while it is in memory.
const INNER_PASSES: usize = 2;

/// Time between two saves of the state.
const SAVE_EVERY: Duration = Duration::from_secs(20);

/// Passes over all chunks unless the user sets a limit.
const MOST_PASSES: u64 = 1000;

/// Tolerance unless the user sets one: LIBLINEAR's.
const TOLERANCE: f64 = 0.1;

/// The method, for all functions at once.
pub(super) struct Blocks<'a> {
    pub(super) task: &'a Task,
    pub(super) store: &'a ChunkStore,
    pub(super) context: &'a Context,
}

impl Blocks<'_> {
    /// Goes on from a state; what was reached, and whether the training has ended for good.
    pub(super) fn run(&self, state: &mut State, job: &OutOfCore) -> Result<(Outcome, bool)> {
        let limit = self.task.options.max_iterations.unwrap_or(MOST_PASSES);
        let mut saved = Instant::now();
        let mut last = None;
        let (status, seen) = loop {
            let order = self.order(state.pass);
            let begin = state.position as usize;
            let stopped = each_chunk(self.store, &order[begin..], self.context, |index, chunk| {
                let report = self.descend(state, index, chunk);
                state.report = state.report.join(report);
                state.steps += report.steps;
                state.position += 1;
                if saved.elapsed() > SAVE_EVERY {
                    state.save(&job.folder)?;
                    saved = Instant::now();
                }
                Ok(())
            })?;
            if let Some(status) = stopped {
                break (status, None);
            }
            let report = state.report;
            state.pass += 1;
            state.position = 0;
            state.report = Violation::default();
            self.context.report(&Event::Iteration {
                iteration: state.pass as usize,
                violation: report.range(),
                objective: f64::NAN,
                active: self.store.rows(),
            });
            last = Some(report);
            let is_last = state.pass >= limit;
            if is_last || self.is_done(&report) {
                match self.examine(state)? {
                    Err(status) => break (status, None),
                    Ok(seen) if self.is_done(&seen.0) && self.gap_is_met(state, seen.1) => {
                        break (Status::Solved, Some(seen));
                    }
                    Ok(seen) if is_last => break (Status::IterationLimit, Some(seen)),
                    Ok(_) => {}
                }
            }
            state.save(&job.folder)?;
        };
        let whole = seen.is_some();
        if !whole {
            state.save(&job.folder)?;
        }
        let (report, loss) = seen.unwrap_or((last.unwrap_or(state.report), f64::NAN));
        let (primal, dual) = self.objectives(state, loss);
        let outcome = Outcome {
            status,
            primal,
            dual,
            violation: report.range(),
            iterations: state.steps,
            blocks: state.pass,
            kernel_rows: 0,
        };
        Ok((outcome, whole))
    }

    /// Primal and dual objective of all functions together.
    fn objectives(&self, state: &State, loss: f64) -> (f64, f64) {
        let (mut norm, mut separable) = (0.0, 0.0);
        for (f, function) in state.functions.iter().enumerate() {
            norm += 0.5 * function.weights.iter().map(|w| w * w).sum::<f64>();
            separable += self.separable_cost(f, function);
        }
        (norm + loss, -norm - separable)
    }

    fn gap_is_met(&self, state: &State, loss: f64) -> bool {
        let (primal, dual) = self.objectives(state, loss);
        primal - dual <= self.task.options.gap * primal.abs()
    }

    fn tolerance(&self) -> f64 {
        self.task.options.tol.unwrap_or(TOLERANCE)
    }

    fn is_done(&self, report: &Violation) -> bool {
        let tol = self.tolerance();
        match self.task.loss {
            RowLoss::Tube(epsilon) | RowLoss::SquaredTube(epsilon) => {
                let at_zero = self.task.targets.iter().map(|t| (t.abs() - epsilon).max(0.0));
                report.sum <= tol * at_zero.sum::<f64>()
            }
            _ => report.range() <= tol,
        }
    }

    /// The chunks in the order of a pass.
    fn order(&self, pass: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.store.chunks()).collect();
        let seed = self.context.seed() ^ pass.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Generator::new(seed).shuffle(&mut order);
        order
    }

    /// Some passes over the rows of a chunk, for every function.
    fn descend(&self, state: &mut State, index: usize, chunk: &Chunk) -> Violation {
        let range = self.store.range(index);
        let seed = self.context.seed() ^ (state.pass << 20) ^ index as u64;
        let work = |(f, function): (usize, &mut Function)| {
            let (targets, costs) = self.task.problem(f, range.clone());
            let problem =
                Problem { loss: self.task.loss, targets: &targets, costs: &costs, shift: 0.0 };
            let dual = &mut function.dual[range.clone()];
            let (weights, tol) = (&mut function.weights[..], self.tolerance());
            let set = self.context.instruction_set();
            let visit = Descend { problem, dual, weights, seed, tol, set };
            with_chunk(&chunk.rows, self.task.bias, visit)
        };
        let functions = &mut state.functions;
        let violations = self.context.map(functions.iter_mut().enumerate(), work);
        violations.into_iter().fold(Violation::default(), Violation::join)
    }

    /// Violation and total loss at the weights as they are, or why it was left early.
    fn examine(&self, state: &State) -> Result<std::result::Result<(Violation, f64), Status>> {
        let (mut report, mut loss) = (Violation::default(), 0.0);
        let order: Vec<usize> = (0..self.store.chunks()).collect();
        let stopped = each_chunk(self.store, &order, self.context, |index, chunk| {
            let range = self.store.range(index);
            for (f, function) in state.functions.iter().enumerate() {
                let (targets, costs) = self.task.problem(f, range.clone());
                let problem =
                    Problem { loss: self.task.loss, targets: &targets, costs: &costs, shift: 0.0 };
                let dual = &function.dual[range.clone()];
                let visit = Examine { problem, dual, weights: &function.weights };
                let (own, cost) = with_chunk(&chunk.rows, self.task.bias, visit);
                report = report.join(own);
                loss += cost;
            }
            Ok(())
        })?;
        Ok(stopped.map_or(Ok((report, loss)), Err))
    }

    /// What the dual variables add to the dual objective, as a minimum.
    fn separable_cost(&self, f: usize, function: &Function) -> f64 {
        let (targets, costs) = self.task.problem(f, 0..self.store.rows());
        let terms = function.dual.iter().zip(&targets).zip(&costs);
        terms.map(|((b, t), c)| conjugate(self.task.loss, *b, *t, *c)).sum()
    }
}

struct Descend<'a> {
    problem: Problem<'a>,
    dual: &'a mut [f64],
    weights: &'a mut [f64],
    seed: u64,
    tol: f64,
    set: InstructionSet,
}

impl ChunkTask for Descend<'_> {
    type Output = Violation;

    fn run<R: LinearRows>(self, rows: &R) -> Violation {
        if self.problem.loss == RowLoss::Logistic {
            let mut descent = LogisticDescent::new(rows, &self.problem, Some(self.dual), self.tol);
            descent.add_new(rows, self.dual, self.weights);
            let report =
                descent.descend_block(rows, self.weights, INNER_PASSES, self.seed, self.set);
            self.dual.copy_from_slice(&descent.dual(0));
            return report;
        }
        let mut descent = Descent::new(rows, &self.problem, Some(self.dual));
        let report = descent.descend_block(rows, self.weights, INNER_PASSES, self.seed);
        self.dual.copy_from_slice(&descent.dual());
        report
    }
}

struct Examine<'a> {
    problem: Problem<'a>,
    dual: &'a [f64],
    weights: &'a [f64],
}

impl ChunkTask for Examine<'_> {
    type Output = (Violation, f64);

    fn run<R: LinearRows>(self, rows: &R) -> (Violation, f64) {
        let values: Vec<f64> = (0..rows.rows()).map(|i| rows.dot(i, self.weights)).collect();
        let start = Some(self.dual);
        let report = match self.problem.loss {
            RowLoss::Logistic => {
                LogisticDescent::new(rows, &self.problem, start, TOLERANCE).examine(0, &values)
            }
            _ => Descent::new(rows, &self.problem, start).examine(&values),
        };
        (report, self.problem.total_loss(values.into_iter()))
    }
}
