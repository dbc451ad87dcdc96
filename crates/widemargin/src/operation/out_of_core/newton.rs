//! Newton's method over chunks: every product with the rows is one pass over the disk.
//!
//! For smooth losses with more rows than weights a few steps of Newton, of a few products each, reach
//! what block minimisation needs hundreds of passes for. Weights are saved after every step.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::OutOfCore;
use super::pass::{ChunkTask, each_chunk, with_chunk};
use super::state::State;
use super::train::Task;
use crate::context::Context;
use crate::data::chunks::{Chunk, ChunkStore};
use crate::error::{Error, Result};
use crate::machine::newton_tolerance;
use crate::solver::linear::rows::LinearRows;
use crate::solver::linear::{
    Options, Problem, Products, Table, WeightedRows, factor_bytes, newton_over,
};
use crate::solver::{Outcome, Status};

/// Bytes per row that the method keeps in memory: targets, costs, values, values along the step and
/// lists of derivatives.
const BYTES_PER_ROW: usize = 72;

/// Steps unless the user sets a limit.
const MOST_STEPS: u64 = 1000;

/// Bytes that the method keeps in memory beside two chunks and the weights; `None` where rows are too
/// many for it.
pub(super) fn bytes_needed(task: &Task, store: &ChunkStore, context: &Context) -> Option<usize> {
    u32::try_from(store.rows()).ok()?;
    let table = OnDisk { store, bias: task.bias, context, broken: Mutex::new(None) };
    Some(store.rows().saturating_mul(BYTES_PER_ROW).saturating_add(factor_bytes(&table)))
}

/// Goes on from a state, function after function; what was reached, and whether the training has
/// ended for good.
pub(super) fn run(
    task: &Task,
    store: &ChunkStore,
    state: &mut State,
    job: &OutOfCore,
    context: &Context,
) -> Result<(Outcome, bool)> {
    let limit = task.options.max_iterations.unwrap_or(MOST_STEPS);
    // Steps of several functions are not told apart in a state.
    let made = if state.functions.len() == 1 { state.pass } else { 0 };
    let mut reached: Option<Outcome> = None;
    for f in 0..state.functions.len() {
        let (targets, costs) = task.problem(f, 0..store.rows());
        let problem = Problem { loss: task.loss, targets: &targets, costs: &costs, shift: 0.0 };
        let options = Options {
            tol: newton_tolerance(&problem, task.options.tol),
            gap: task.options.gap,
            max_passes: limit.saturating_sub(made),
            ..Options::default()
        };
        let table = OnDisk { store, bias: task.bias, context, broken: Mutex::new(None) };
        let start = state.functions[f].weights.clone();
        let start = start.iter().any(|&w| w != 0.0).then_some(&start[..]);
        let mut saved = Ok(());
        let solution = newton_over(
            &table,
            &problem,
            &options,
            start,
            false,
            |weights, steps| {
                state.functions[f].weights.copy_from_slice(weights);
                state.pass += 1;
                state.steps += steps as u64;
                if saved.is_ok() {
                    saved = state.save(&job.folder);
                }
            },
            context,
        );
        table.result()?;
        saved?;
        state.functions[f].weights = solution.weights;
        let outcome = solution.outcome;
        reached = Some(reached.map_or(outcome, |before| before.join(outcome)));
        if matches!(outcome.status, Status::Interrupted | Status::TimeLimit) {
            state.save(&job.folder)?;
            let outcome = Outcome { primal: f64::NAN, dual: f64::NAN, ..outcome };
            return Ok((outcome, false));
        }
    }
    let outcome = reached.ok_or(Error::Empty { what: "function" })?;
    Ok((Outcome { iterations: state.steps, blocks: state.pass, ..outcome }, true))
}

/// The rows of a store as a table.
struct OnDisk<'a> {
    store: &'a ChunkStore,
    bias: Option<f64>,
    context: &'a Context,
    /// Why a pass was left, if one was.
    broken: Mutex<Option<Broken>>,
}

enum Broken {
    Stopped(Status),
    Failed(Error),
}

impl OnDisk<'_> {
    fn why(&self) -> MutexGuard<'_, Option<Broken>> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the disk refused, if it did.
    fn result(self) -> Result<()> {
        match self.broken.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(Broken::Failed(error)) => Err(error),
            _ => Ok(()),
        }
    }

    /// Calls `work` with the rows of every chunk and what they are in the table.
    fn pass(&self, mut work: impl FnMut(Range<usize>, &Chunk)) {
        if self.why().is_some() {
            return;
        }
        let order: Vec<usize> = (0..self.store.chunks()).collect();
        let ended = each_chunk(self.store, &order, self.context, |index, chunk| {
            work(self.store.range(index), chunk);
            Ok(())
        });
        *self.why() = match ended {
            Ok(stopped) => stopped.map(Broken::Stopped),
            Err(error) => Some(Broken::Failed(error)),
        };
    }

    /// The sum of what a product makes of the rows of a list, chunk by chunk.
    fn sum<'b>(
        &self,
        len: usize,
        list: &WeightedRows,
        product: impl Fn(WeightedRows) -> Product<'b>,
    ) -> Vec<f64> {
        let mut total = vec![0.0; len];
        self.pass(|range, chunk| {
            let own = list.within(range);
            if own.is_empty() {
                return;
            }
            let part = with_chunk(&chunk.rows, self.bias, (product(own), self.context));
            total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
        });
        total
    }
}

impl Table for OnDisk<'_> {
    fn rows(&self) -> usize {
        self.store.rows()
    }

    fn width(&self) -> usize {
        self.store.columns() + usize::from(self.bias.is_some())
    }

    fn nonzeros(&self) -> usize {
        let biases = if self.bias.is_some() { self.rows() } else { 0 };
        self.store.nonzeros() + biases
    }

    fn of_parts<T: Send>(&self, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
        let ranges = (0..self.store.chunks()).map(|index| self.store.range(index));
        self.context.map(ranges, work)
    }

    fn write_values(&self, weights: &[f64], values: &mut [f64]) {
        self.pass(|range, chunk| {
            let task = (Product::Values(weights), self.context);
            values[range].copy_from_slice(&with_chunk(&chunk.rows, self.bias, task));
        });
    }

    fn may_be_factored(&self) -> bool {
        false
    }

    fn differentiate(
        &self,
        problem: &Problem<'_>,
        weights: &[f64],
        slopes: &mut [f64],
    ) -> (f64, Vec<f64>) {
        let (mut loss, mut gradient) = (0.0, vec![0.0; self.width()]);
        self.pass(|range, chunk| {
            let (problem, slopes) = (problem.part(range.clone()), &mut slopes[range]);
            let task = Differentiate { problem, weights, slopes, context: self.context };
            let (more, part) = with_chunk(&chunk.rows, self.bias, task);
            loss += more;
            gradient.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        });
        (loss, gradient)
    }

    fn transposed(&self, list: &WeightedRows) -> Vec<f64> {
        self.sum(self.width(), list, Product::Transposed)
    }

    fn transposed_squares(&self, list: &WeightedRows) -> Vec<f64> {
        self.sum(self.width(), list, Product::Squares)
    }

    fn weighted_normal(&self, list: &WeightedRows, direction: &[f64]) -> Vec<f64> {
        self.sum(self.width(), list, |own| Product::Normal(own, direction))
    }

    fn weighted_gram(&self, list: &WeightedRows) -> Vec<f64> {
        self.sum(self.width() * self.width(), list, Product::Gram)
    }

    fn broken(&self) -> Option<Status> {
        match &*self.why() {
            Some(Broken::Stopped(status)) => Some(*status),
            Some(Broken::Failed(_)) => Some(Status::Interrupted),
            None => None,
        }
    }
}

/// The loss of a chunk and its derivatives.
struct Differentiate<'a> {
    problem: Problem<'a>,
    weights: &'a [f64],
    slopes: &'a mut [f64],
    context: &'a Context,
}

impl ChunkTask for Differentiate<'_> {
    type Output = (f64, Vec<f64>);

    fn run<R: LinearRows>(self, rows: &R) -> (f64, Vec<f64>) {
        let products = Products::new(rows, true, self.context);
        products.differentiate(&self.problem, self.weights, self.slopes)
    }
}

/// A product of [`Table`].
enum Product<'a> {
    Values(&'a [f64]),
    Transposed(WeightedRows),
    Squares(WeightedRows),
    Normal(WeightedRows, &'a [f64]),
    Gram(WeightedRows),
}

impl ChunkTask for (Product<'_>, &Context) {
    type Output = Vec<f64>;

    fn run<R: LinearRows>(self, rows: &R) -> Vec<f64> {
        let (product, context) = self;
        let table = Products::new(rows, true, context);
        match product {
            Product::Values(weights) => table.values(weights),
            Product::Transposed(list) => table.transposed(&list),
            Product::Squares(list) => table.transposed_squares(&list),
            Product::Normal(list, direction) => table.weighted_normal(&list, direction),
            Product::Gram(list) => table.weighted_gram(&list),
        }
    }
}
