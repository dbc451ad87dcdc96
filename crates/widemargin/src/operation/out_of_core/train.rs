//! From files to a model: what is solved, and by which method.

use std::time::Instant;

use super::blocks::Blocks;
use super::convert::convert;
use super::state::{Function, State};
use super::{OutOfCore, OutOfCoreMachine, newton};
use crate::context::Context;
use crate::data::chunks::ChunkStore;
use crate::data::{Classes, Labels, check_two_classes};
use crate::error::{Error, Result};
use crate::machine::specification::Value;
use crate::machine::{
    Bias, ClassWeights, LinearLoss, LinearMulticlass, LinearOptions, LinearSolver, MachineKind,
    Model, Penalty, Precision, Preparation, Training, linear_model,
};
use crate::solver::linear::RowLoss;

/// What is solved for every function.
pub(super) struct Task {
    kind: MachineKind,
    pub(super) loss: RowLoss,
    pub(super) bias: Option<f64>,
    c: f64,
    solver: LinearSolver,
    pub(super) options: LinearOptions,
    /// The classes, with the factor on C of each.
    classes: Option<(Classes, Vec<f64>)>,
    pub(super) targets: Vec<f64>,
    functions: usize,
    parameters: Vec<(String, Value)>,
}

/// Trains on files of any size; goes on where a run of the same machine on the same files ended.
///
/// Classifiers are one-vs-rest with an ℓ2 penalty; a bias is penalised. Labels are numbers. At a deadline or an interruption the state is kept and the model reached is returned.
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
    let by_newton = task.is_for_newton(&store, job.memory, context)?;
    let dual = if by_newton { 0 } else { store.rows() };
    let fresh = State::new(crc32fast::hash(words.as_bytes()), task.functions, width, dual);
    let mut state = State::load(&job.folder, &fresh).unwrap_or(fresh);
    let (outcome, ended) = context.install(|| match by_newton {
        true => newton::run(&task, &store, &mut state, job, context),
        false => Blocks { task: &task, store: &store, context }.run(&mut state, job),
    })?;
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
        specification: None,
    });
    Ok(model)
}

/// Refuses what is not offered out of core.
fn check(machine: &OutOfCoreMachine) -> Result<()> {
    let (bias, solver, smooth) = match machine {
        OutOfCoreMachine::Classifier(svc) => {
            if svc.penalty == Penalty::L1 {
                return Err(Error::parameter("penalty", "l2 when training from disk", "l1"));
            }
            if svc.multiclass == LinearMulticlass::CrammerSinger {
                let found = svc.multiclass;
                return Err(Error::parameter("multiclass", "ovr when training from disk", found));
            }
            (svc.bias, svc.solver, svc.loss != LinearLoss::Hinge)
        }
        OutOfCoreMachine::Regressor(svr) => (svr.bias, svr.solver, svr.squared),
    };
    match solver {
        LinearSolver::Newton if !smooth => {
            return Err(Error::parameter("solver", "dual or auto with this loss", solver));
        }
        LinearSolver::Blocks => {
            return Err(Error::parameter("solver", "auto, dual or newton from disk", solver));
        }
        _ => {}
    }
    let c = match machine {
        OutOfCoreMachine::Classifier(svc) => svc.c,
        OutOfCoreMachine::Regressor(svr) => svr.c,
    };
    match bias {
        Bias::Free => Err(Error::parameter("bias", "none or a number from disk", "free")),
        _ => Error::check_positive("c", c),
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
                check_two_classes(&classes.names)?;
                let weights: &ClassWeights = &svc.class_weights;
                let factors = weights.resolve(&classes)?;
                let (kind, loss) = match svc.loss {
                    LinearLoss::Hinge => (MachineKind::LinearSvc, RowLoss::Hinge),
                    LinearLoss::SquaredHinge => (MachineKind::LinearSvc, RowLoss::SquaredHinge),
                    LinearLoss::Logistic => (MachineKind::Logistic, RowLoss::Logistic),
                };
                let functions = if classes.count() == 2 { 1 } else { classes.count() };
                Ok(Self {
                    kind,
                    loss,
                    bias: feature(svc.bias),
                    c: svc.c,
                    solver: svc.solver,
                    options: svc.options,
                    classes: Some((classes, factors)),
                    targets: Vec::new(),
                    functions,
                    parameters: vec![
                        ("c".into(), svc.c.into()),
                        ("loss".into(), svc.loss.to_string().into()),
                        ("bias".into(), svc.bias.into()),
                    ],
                })
            }
            OutOfCoreMachine::Regressor(svr) => Ok(Self {
                kind: MachineKind::LinearSvr,
                loss: match svr.squared {
                    true => RowLoss::SquaredTube(svr.epsilon),
                    false => RowLoss::Tube(svr.epsilon),
                },
                bias: feature(svr.bias),
                c: svr.c,
                solver: svr.solver,
                options: svr.options,
                classes: None,
                targets: labels,
                functions: 1,
                parameters: vec![
                    ("c".into(), svr.c.into()),
                    ("epsilon".into(), svr.epsilon.into()),
                    ("bias".into(), svr.bias.into()),
                ],
            }),
        }
    }

    /// Whether Newton's method is asked for, or suits: a smooth loss, more rows than weights, and one
    /// function, as each would make its own passes.
    fn is_for_newton(&self, store: &ChunkStore, memory: usize, context: &Context) -> Result<bool> {
        let needed = newton::bytes_needed(self, store, context);
        match (self.solver, needed) {
            (LinearSolver::Newton, None) => {
                let found = format!("newton with {} rows", store.rows());
                Err(Error::parameter("solver", "dual with more than 2^32 rows", found))
            }
            (LinearSolver::Newton, Some(needed)) if needed > memory => {
                let expected = format!("at least {needed} bytes for newton on these rows");
                Err(Error::parameter("memory", expected, memory))
            }
            (LinearSolver::Newton, _) => Ok(true),
            (LinearSolver::Auto, Some(needed)) => Ok(self.loss.is_smooth()
                && self.functions == 1
                && store.rows() > store.columns()
                && needed <= memory / 2),
            _ => Ok(false),
        }
    }

    /// Targets and costs of function `f` on a range of rows.
    pub(super) fn problem(&self, f: usize, rows: std::ops::Range<usize>) -> (Vec<f64>, Vec<f64>) {
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
}
