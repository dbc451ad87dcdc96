//! Block minimisation over chunks.

use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::state::{Function, State};
use super::{OutOfCore, OutOfCoreMachine, convert};
use crate::context::{Context, Event};
use crate::data::chunks::{Chunk, ChunkStore, Rows};
use crate::data::{Classes, Labels};
use crate::error::{Error, Result};
use crate::kernel::{LinearRows, One, SparseRows};
use crate::machine::{
    Bias, ClassWeights, LinearLoss, LinearMulticlass, LinearOptions, MachineKind, Model, Penalty,
    Precision, Preparation, Training, linear_model,
};
use crate::random::Generator;
use crate::solver::linear::{BlockReport, Descent, LogisticDescent, Loss, Problem, conjugate};
use crate::solver::{Outcome, Status};

/// Passes over the rows of a chunk while it is in memory.
const INNER_PASSES: usize = 4;

/// Time between two saves of the state.
const SAVE_EVERY: Duration = Duration::from_secs(20);

/// Passes over all chunks unless the user sets a limit.
const MOST_PASSES: u64 = 1000;

/// Tolerance unless the user sets one: LIBLINEAR's.
const TOLERANCE: f64 = 0.1;

/// What is solved for every function.
struct Task {
    kind: MachineKind,
    loss: Loss,
    bias: Option<f64>,
    c: f64,
    options: LinearOptions,
    /// The classes, with the factor on C of each.
    classes: Option<(Classes, Vec<f64>)>,
    targets: Vec<f64>,
    functions: usize,
    parameters: Vec<(String, String)>,
}

/// Trains on files of any size; goes on where a run of the same machine on the same files ended.
///
/// Classifiers are one-vs-rest with an ℓ2 penalty; a bias is charged. Labels are numbers. At a deadline or an interruption the state is kept and the model reached is returned.
///
/// # Errors
/// [`Error::Parameter`] for what only training in memory offers, what the reader refuses, and
/// [`Error::Io`] when the disk does.
pub fn train(machine: &OutOfCoreMachine, job: &OutOfCore, context: &Context) -> Result<Model> {
    let started = Instant::now();
    check(machine)?;
    let single = match machine {
        OutOfCoreMachine::Classifier(svc) => svc.options.precision == Precision::F32,
        OutOfCoreMachine::Regressor(svr) => svr.options.precision == Precision::F32,
    };
    let store = convert(job, single, context)?;
    let task = Task::new(machine, store.labels()?)?;
    let words = format!("{machine:?} {} {:?}", context.seed(), store.fingerprint());
    let width = store.columns() + usize::from(task.bias.is_some());
    let fresh = State::new(crc32fast::hash(words.as_bytes()), task.functions, width, store.rows());
    let mut state = State::load(&job.folder, &fresh).unwrap_or(fresh);
    let solver = Solver { task: &task, store: &store, context };
    let (outcome, ended) = context.install(|| solver.run(&mut state, job))?;
    if ended {
        State::remove(&job.folder)?;
    }
    let columns = store.columns();
    let weights = state.functions.iter().flat_map(|f| f.weights[..columns].to_vec()).collect();
    let constant = |f: &Function| task.bias.map_or(0.0, |bias| bias * f.weights[columns]);
    let constants: Vec<f64> = state.functions.iter().map(constant).collect();
    let names = task.classes.as_ref().map(|(classes, _)| classes.names.clone());
    let mut model = linear_model(task.kind, columns, weights, &constants, names)?;
    model.preparation = Preparation { index_base: store.index_base(), ..Preparation::default() };
    model.training = Some(Training {
        outcome,
        rows: store.rows(),
        seconds: started.elapsed().as_secs_f64(),
        parameters: task.parameters,
    });
    Ok(model)
}

/// Refuses what is not offered out of core.
fn check(machine: &OutOfCoreMachine) -> Result<()> {
    let bias = match machine {
        OutOfCoreMachine::Classifier(svc) => {
            if svc.penalty == Penalty::L1 {
                return Err(Error::parameter("penalty", "l2 when training from disk", "l1"));
            }
            if svc.multiclass == LinearMulticlass::CrammerSinger {
                let found = svc.multiclass;
                return Err(Error::parameter("multiclass", "ovr when training from disk", found));
            }
            svc.bias
        }
        OutOfCoreMachine::Regressor(svr) => svr.bias,
    };
    let c = match machine {
        OutOfCoreMachine::Classifier(svc) => svc.c,
        OutOfCoreMachine::Regressor(svr) => svr.c,
    };
    match bias {
        Bias::Free => Err(Error::parameter("bias", "none or a number from disk", "free")),
        _ if !(c.is_finite() && c > 0.0) => {
            Err(Error::parameter("c", "a finite number above 0", c))
        }
        _ => Ok(()),
    }
}

fn feature(bias: Bias) -> Option<f64> {
    if let Bias::Appended(value) = bias { Some(value) } else { None }
}

impl Task {
    fn new(machine: &OutOfCoreMachine, labels: Vec<f64>) -> Result<Self> {
        match machine {
            OutOfCoreMachine::Classifier(svc) => {
                let whole = labels.iter().all(|l| l.fract() == 0.0 && l.abs() < 9e15);
                let labels = match whole {
                    true => Labels::Int(labels.iter().map(|l| *l as i64).collect()),
                    false => Labels::Real(labels),
                };
                let classes = labels.classes(svc.class_order)?;
                if classes.count() < 2 {
                    let label = classes.names.first().map_or(String::new(), ToString::to_string);
                    return Err(Error::OneClass { label });
                }
                let weights: &ClassWeights = &svc.class_weights;
                let factors = weights.resolve(&classes)?;
                let (kind, loss) = match svc.loss {
                    LinearLoss::Hinge => (MachineKind::LinearSvc, Loss::Hinge),
                    LinearLoss::SquaredHinge => (MachineKind::LinearSvc, Loss::SquaredHinge),
                    LinearLoss::Logistic => (MachineKind::Logistic, Loss::Logistic),
                };
                let functions = if classes.count() == 2 { 1 } else { classes.count() };
                Ok(Self {
                    kind,
                    loss,
                    bias: feature(svc.bias),
                    c: svc.c,
                    options: svc.options,
                    classes: Some((classes, factors)),
                    targets: Vec::new(),
                    functions,
                    parameters: vec![
                        ("c".into(), svc.c.to_string()),
                        ("loss".into(), svc.loss.to_string()),
                        ("bias".into(), svc.bias.to_string()),
                    ],
                })
            }
            OutOfCoreMachine::Regressor(svr) => Ok(Self {
                kind: MachineKind::LinearSvr,
                loss: match svr.squared {
                    true => Loss::SquaredTube(svr.epsilon),
                    false => Loss::Tube(svr.epsilon),
                },
                bias: feature(svr.bias),
                c: svr.c,
                options: svr.options,
                classes: None,
                targets: labels,
                functions: 1,
                parameters: vec![
                    ("c".into(), svr.c.to_string()),
                    ("epsilon".into(), svr.epsilon.to_string()),
                    ("bias".into(), svr.bias.to_string()),
                ],
            }),
        }
    }

    /// Targets and costs of function `f` on a range of rows.
    fn problem(&self, f: usize, rows: std::ops::Range<usize>) -> (Vec<f64>, Vec<f64>) {
        let Some((classes, factors)) = &self.classes else {
            return (self.targets[rows.clone()].to_vec(), vec![self.c; rows.len()]);
        };
        let codes = &classes.codes[rows];
        let own = |code: &u32| *code as usize == f;
        let targets = codes.iter().map(|code| if own(code) { 1.0 } else { -1.0 }).collect();
        let factor = |code: &u32| match (own(code), self.functions) {
            (true, _) => factors[f],
            (false, 1) => factors[1],
            (false, _) => 1.0,
        };
        (targets, codes.iter().map(|code| self.c * factor(code)).collect())
    }

    fn tolerance(&self) -> f64 {
        self.options.tol.unwrap_or(TOLERANCE)
    }

    fn is_done(&self, report: &BlockReport) -> bool {
        let tol = self.tolerance();
        match self.loss {
            Loss::Tube(epsilon) | Loss::SquaredTube(epsilon) => {
                let at_zero = self.targets.iter().map(|t| (t.abs() - epsilon).max(0.0));
                report.sum <= tol * at_zero.sum::<f64>()
            }
            _ => report.range() <= tol,
        }
    }
}

struct Solver<'a> {
    task: &'a Task,
    store: &'a ChunkStore,
    context: &'a Context,
}

impl Solver<'_> {
    /// Goes on from a state; what was reached, and whether the training has ended for good.
    fn run(&self, state: &mut State, job: &OutOfCore) -> Result<(Outcome, bool)> {
        let limit = self.task.options.max_iterations.unwrap_or(MOST_PASSES);
        let mut saved = Instant::now();
        let status = loop {
            let order = self.order(state.pass);
            let begin = state.position as usize;
            let stopped = self.each_chunk(&order[begin..], |index, chunk| {
                let report = self.descend(state, index, &chunk);
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
                state.save(&job.folder)?;
                break status;
            }
            let report = state.report;
            state.pass += 1;
            state.position = 0;
            state.report = BlockReport::default();
            self.context.report(&Event::Iteration {
                iteration: state.pass as usize,
                violation: report.range(),
                objective: f64::NAN,
                active: self.store.rows(),
            });
            if self.task.is_done(&report) && self.task.is_done(&self.examine(state)?.0) {
                break Status::Solved;
            }
            if state.pass >= limit {
                break Status::IterationLimit;
            }
            state.save(&job.folder)?;
        };
        let whole = status == Status::Solved || status == Status::IterationLimit;
        let (report, loss) = match whole {
            true => self.examine(state)?,
            false => (state.report, f64::NAN),
        };
        let (mut norm, mut separable) = (0.0, 0.0);
        for (f, function) in state.functions.iter().enumerate() {
            norm += 0.5 * function.weights.iter().map(|w| w * w).sum::<f64>();
            separable += self.separable_cost(f, function);
        }
        let outcome = Outcome {
            status,
            primal: norm + loss,
            dual: -norm - separable,
            violation: report.range(),
            iterations: state.steps,
            blocks: state.pass,
            kernel_rows: 0,
        };
        Ok((outcome, whole))
    }

    /// The chunks in the order of a pass.
    fn order(&self, pass: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.store.chunks()).collect();
        let seed = self.context.seed() ^ pass.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Generator::new(seed).shuffle(&mut order);
        order
    }

    /// Calls `work` with chunk after chunk while the next is read; why it stopped early, if it did.
    fn each_chunk(
        &self,
        order: &[usize],
        mut work: impl FnMut(usize, Chunk) -> Result<()>,
    ) -> Result<Option<Status>> {
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel(0);
            scope.spawn(move || {
                for &index in order {
                    if sender.send((index, self.store.read(index))).is_err() {
                        return;
                    }
                }
            });
            for _ in order {
                if let Some(status) = self.context.stop_request() {
                    return Ok(Some(status));
                }
                let Ok((index, chunk)) = receiver.recv() else { return Ok(None) };
                work(index, chunk?)?;
            }
            Ok(None)
        })
    }

    /// Some passes over the rows of a chunk, for every function.
    fn descend(&self, state: &mut State, index: usize, chunk: &Chunk) -> BlockReport {
        let range = self.store.range(index);
        let seed = self.context.seed() ^ (state.pass << 20) ^ index as u64;
        let work = |(f, function): (usize, &mut Function)| {
            let (targets, costs) = self.task.problem(f, range.clone());
            let problem =
                Problem { loss: self.task.loss, targets: &targets, costs: &costs, shift: 0.0 };
            let dual = &mut function.dual[range.clone()];
            let (weights, tol) = (&mut function.weights[..], self.task.tolerance());
            let visit = Descend { problem, dual, weights, seed, tol };
            with_chunk(&chunk.rows, self.task.bias, visit)
        };
        let functions = &mut state.functions;
        if self.context.is_parallel() && functions.len() > 1 {
            let all: Vec<BlockReport> = functions.par_iter_mut().enumerate().map(work).collect();
            all.into_iter().fold(BlockReport::default(), BlockReport::join)
        } else {
            functions
                .iter_mut()
                .enumerate()
                .map(work)
                .fold(BlockReport::default(), BlockReport::join)
        }
    }

    /// Violation and total loss at the weights as they are.
    fn examine(&self, state: &State) -> Result<(BlockReport, f64)> {
        let (mut report, mut loss) = (BlockReport::default(), 0.0);
        let order: Vec<usize> = (0..self.store.chunks()).collect();
        self.each_chunk(&order, |index, chunk| {
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
        Ok((report, loss))
    }

    /// What the dual variables add to the dual objective, as a minimum.
    fn separable_cost(&self, f: usize, function: &Function) -> f64 {
        let (targets, costs) = self.task.problem(f, 0..self.store.rows());
        let terms = function.dual.iter().zip(&targets).zip(&costs);
        terms.map(|((b, t), c)| conjugate(self.task.loss, *b, *t, *c)).sum()
    }
}

/// A computation over the rows of a chunk.
trait ChunkTask {
    type Output;
    fn run<R: LinearRows>(self, rows: &R) -> Self::Output;
}

fn with_chunk<T: ChunkTask>(rows: &Rows, bias: Option<f64>, task: T) -> T::Output {
    match rows {
        Rows::Ones(table) => {
            let ones = vec![One; table.nonzeros()];
            task.run(&SparseRows::new(table, &ones, bias))
        }
        Rows::Single(table) => task.run(&SparseRows::new(table, table.values(), bias)),
        Rows::Double(table) => task.run(&SparseRows::new(table, table.values(), bias)),
    }
}

struct Descend<'a> {
    problem: Problem<'a>,
    dual: &'a mut [f64],
    weights: &'a mut [f64],
    seed: u64,
    tol: f64,
}

impl ChunkTask for Descend<'_> {
    type Output = BlockReport;

    fn run<R: LinearRows>(self, rows: &R) -> BlockReport {
        if self.problem.loss == Loss::Logistic {
            let mut descent = LogisticDescent::new(rows, &self.problem, Some(self.dual), self.tol);
            descent.add_new(rows, self.dual, self.weights);
            let report = descent.descend_block(rows, self.weights, INNER_PASSES, self.seed);
            self.dual.copy_from_slice(&descent.dual());
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
    type Output = (BlockReport, f64);

    fn run<R: LinearRows>(self, rows: &R) -> (BlockReport, f64) {
        let values: Vec<f64> = (0..rows.rows()).map(|i| rows.dot(i, self.weights)).collect();
        let start = Some(self.dual);
        let report = match self.problem.loss {
            Loss::Logistic => {
                LogisticDescent::new(rows, &self.problem, start, TOLERANCE).examine_block(&values)
            }
            _ => Descent::new(rows, &self.problem, start).examine_block(&values),
        };
        (report, self.problem.total_loss(values.into_iter()))
    }
}
