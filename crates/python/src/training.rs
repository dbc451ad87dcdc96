//! Training with the interpreter released.
//!
//! A small problem is solved by the calling thread, which looks for Ctrl-C at every event. A larger
//! one is solved by a worker while the calling thread waits, hands events to Python and looks for
//! Ctrl-C, so that no phase of the computation can delay it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use widemargin::data::read::ReadOptions;
use widemargin::data::{Dataset, Label, Labels, Matrix};
use widemargin::machine::{
    CalibrationMethod, FitInput, Machine, MachineKind, Model as Trained, Specification, Start,
};
use widemargin::operation::calibrate::calibrate;
use widemargin::operation::out_of_core::{OutOfCore, OutOfCoreMachine, train as train_out_of_core};
use widemargin::{CancelToken, Context, Event};

use crate::errors::exception;
use crate::machines::Settings;
use crate::model::Model;
use crate::table::Table;

/// Time between two looks for Ctrl-C.
const SIGNAL_PERIOD: Duration = Duration::from_millis(50);

/// Time the worker has to stop before the caller goes on without it.
const STOP_TIMEOUT: Duration = Duration::from_millis(500);

/// Multiplications for all kernel values of a training that the calling thread does itself.
const SMALL: f64 = 1e8;

/// Takes the events of a training, on whatever thread they happen.
pub(crate) type Listener = dyn Fn(&Event) + Send + Sync;

/// What the rows are labelled with.
#[derive(FromPyObject)]
pub(crate) enum Targets<'py> {
    /// Class of every row, and the name of every class.
    Classes(PyReadonlyArray1<'py, i64>, Vec<Name>),
    /// A number for every row.
    Numbers(PyReadonlyArray1<'py, f64>),
}

/// Name of a class.
#[derive(Clone, FromPyObject)]
pub(crate) enum Name {
    Int(i64),
    Real(f64),
    Text(String),
}

impl Name {
    /// As the library holds it.
    pub(crate) fn label(self) -> Label {
        match self {
            Self::Int(value) => Label::Int(value),
            Self::Real(value) => Label::Real(value),
            Self::Text(value) => Label::Text(value),
        }
    }
}

/// One training, run by the caller or by a worker.
struct Job {
    machine: Box<dyn Machine>,
    data: Dataset,
    start: Option<Arc<Trained>>,
    calibration: Option<CalibrationMethod>,
    context: Context,
    steps: Arc<Mutex<Vec<(usize, u64)>>>,
}

impl Job {
    /// Whether all kernel values together take but a moment, so that no phase without events is
    /// long and a thread of its own would cost more than it is for.
    fn is_small(&self) -> bool {
        let (rows, columns) = (self.data.rows() as f64, self.data.columns() as f64);
        !self.context.is_parallel() && rows * rows * columns <= SMALL
    }

    fn run(&self, listener: &Arc<Listener>) -> widemargin::Result<Trained> {
        let steps = Arc::clone(&self.steps);
        let first = Arc::clone(listener);
        let context = self.context.clone().with_observer(move |event: &Event| {
            if let Event::Solved(solved) = event {
                let mut steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
                steps.push((solved.index, solved.outcome.iterations));
            }
            first(event);
        });
        let model = match (&self.start, self.machine.warm_start()) {
            (Some(start), Some(machine)) => {
                let start = Start::of(start, &*self.machine);
                machine.fit_from(FitInput::new(&self.data), start, &context)?
            }
            _ => self.machine.fit(&self.data, &context)?,
        };
        match self.calibration {
            Some(method) => {
                let then = Arc::clone(listener);
                let context = self.context.clone().with_observer(move |event: &Event| then(event));
                calibrate(self.machine.as_ref(), &self.data, model, method, &context)
            }
            None => Ok(model),
        }
    }
}

/// Trains a machine.
///
/// Returns the model, the pair steps of every decision function, and the warnings. `on_event` is
/// called as ``on_event(kind, payload)`` on the calling thread; a true return value stops the training
/// with the best model so far.
#[pyfunction]
#[pyo3(signature = (settings, features, targets=None, weights=None, names=None, start=None, on_event=None, groups=None))]
pub(crate) fn fit<'py>(
    py: Python<'py>,
    settings: Settings,
    features: Table<'py>,
    targets: Option<Targets<'py>>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    names: Option<Vec<String>>,
    start: Option<PyRef<'py, Model>>,
    on_event: Option<Py<PyAny>>,
    groups: Option<PyReadonlyArray1<'py, i64>>,
) -> PyResult<(Model, Bound<'py, PyArray1<i64>>, Vec<String>)> {
    let cancel = CancelToken::new();
    let context = settings.context(cancel.clone())?;
    let matrix = features.matrix()?;
    let classes = match &targets {
        Some(Targets::Classes(_, names)) => names_in_labels(target_names(names.clone())),
        _ => Vec::new(),
    };
    let order = Order {
        specification: settings.specification(&classes)?,
        seed: settings.seed(),
        matrix,
        weights: weights.map(|weights| slice(&weights).map(<[f64]>::to_vec)).transpose()?,
        groups: groups.map(|groups| slice(&groups).map(<[i64]>::to_vec)).transpose()?,
        names,
        start: start.map(|model| model.shared()),
        calibration: settings.calibration()?,
        context,
        cancel,
        on_event,
    };
    train(py, order, targets)
}

/// Trains a linear machine for several penalties (and tubes), each from the solution before; returns the models
/// in that order, and the warnings.
#[pyfunction]
#[pyo3(signature = (settings, features, targets, path, weights=None, names=None, on_event=None))]
pub(crate) fn fit_path<'py>(
    py: Python<'py>,
    settings: Settings,
    features: Table<'py>,
    targets: Targets<'py>,
    path: Vec<(f64, f64)>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    names: Option<Vec<String>>,
    on_event: Option<Py<PyAny>>,
) -> PyResult<(Vec<Model>, Vec<String>)> {
    let cancel = CancelToken::new();
    let context = settings.context(cancel.clone())?;
    let matrix = features.matrix()?;
    let weights = weights.map(|weights| slice(&weights).map(<[f64]>::to_vec)).transpose()?;
    let (data, classes) = named_dataset(matrix, Some(targets), weights, None, names)?;
    let known = classes.clone().map(names_in_labels).unwrap_or_default();
    let specification = settings.specification(&known)?;
    let own = specification.clone();
    let work = move |context: &Context| match own.kind() {
        MachineKind::LinearSvr => own.linear_svr()?.path(&data, &path, context),
        _ => {
            let penalties: Vec<f64> = path.iter().map(|&(c, _)| c).collect();
            own.linear_svc()?.path(&data, &penalties, context)
        }
    };
    let (steps, warnings) = run_observed(py, context, cancel, on_event, work)?;
    let mut models = Vec::with_capacity(steps.len());
    for step in steps {
        let mut model = step.model;
        let mut specification = specification.clone();
        specification.set("c", step.c).map_err(exception)?;
        if let Some(epsilon) = step.epsilon {
            specification.set("epsilon", epsilon).map_err(exception)?;
        }
        specification.record(&mut model);
        rename(&mut model, classes.clone());
        models.push(Model::new(model));
    }
    Ok((models, warnings))
}

/// Trains a linear machine on files of LIBSVM text that may be larger than memory; returns the model and the
/// warnings.
#[pyfunction]
#[pyo3(signature = (settings, inputs, folder, memory, on_event=None))]
pub(crate) fn fit_files(
    py: Python<'_>,
    settings: Settings,
    inputs: Vec<PathBuf>,
    folder: PathBuf,
    memory: usize,
    on_event: Option<Py<PyAny>>,
) -> PyResult<(Model, Vec<String>)> {
    let cancel = CancelToken::new();
    let context = settings.context(cancel.clone())?;
    let specification = settings.specification(&[])?;
    let machine = match specification.kind() {
        MachineKind::LinearSvr => {
            OutOfCoreMachine::Regressor(specification.linear_svr().map_err(exception)?)
        }
        _ => OutOfCoreMachine::Classifier(specification.linear_svc().map_err(exception)?),
    };
    let job = OutOfCore { inputs, folder, memory, read: ReadOptions::new() };
    let work = move |context: &Context| train_out_of_core(&machine, &job, context);
    let (mut model, warnings) = run_observed(py, context, cancel, on_event, work)?;
    specification.record(&mut model);
    Ok((Model::new(model), warnings))
}

/// Rows with what they are labelled with, and the names of the classes.
pub(crate) fn named_dataset(
    matrix: Matrix,
    targets: Option<Targets<'_>>,
    weights: Option<Vec<f64>>,
    groups: Option<Vec<i64>>,
    names: Option<Vec<String>>,
) -> PyResult<(Dataset, Option<Vec<Label>>)> {
    let (labels, classes) = labels(targets)?;
    let mut data = Dataset::new(matrix, labels).map_err(exception)?;
    if let Some(weights) = weights {
        data = data.with_weights(weights).map_err(exception)?;
    }
    if let Some(groups) = groups {
        data = data.with_groups(groups).map_err(exception)?;
    }
    if let Some(names) = names {
        data = data.with_feature_names(names).map_err(exception)?;
    }
    Ok((data, classes))
}

/// Gives the classes of a model their own names.
fn rename(model: &mut Trained, classes: Option<Vec<Label>>) {
    // Labels that stand for no class are not in the table.
    if let (Some(table), Some(names)) = (&mut model.classes, classes)
        && table.names.len() == names.len()
    {
        table.names = names;
    }
}

/// A training that is to be done.
struct Order {
    specification: Specification,
    seed: u64,
    matrix: Matrix,
    weights: Option<Vec<f64>>,
    groups: Option<Vec<i64>>,
    names: Option<Vec<String>>,
    start: Option<Arc<Trained>>,
    calibration: Option<CalibrationMethod>,
    context: Context,
    cancel: CancelToken,
    on_event: Option<Py<PyAny>>,
}

/// Trains; returns the model, the pair steps of every decision function, and the warnings.
fn train<'py>(
    py: Python<'py>,
    order: Order,
    targets: Option<Targets<'py>>,
) -> PyResult<(Model, Bound<'py, PyArray1<i64>>, Vec<String>)> {
    let (data, classes) =
        named_dataset(order.matrix, targets, order.weights, order.groups, order.names)?;
    let steps = Arc::default();
    let machine = order.specification.build(&data, order.seed).map_err(exception)?;
    let job = Job {
        machine,
        data,
        start: order.start,
        calibration: order.calibration,
        context: order.context,
        steps: Arc::clone(&steps),
    };
    let caller = Caller::new(order.cancel, order.on_event);
    let small = job.is_small();
    let work = move |listener: &Arc<Listener>| job.run(listener);
    let (mut model, warnings) =
        if small { run_here(py, work, caller)? } else { run_beside(py, work, caller)? };
    order.specification.record(&mut model);
    rename(&mut model, classes);
    let mut steps = steps.lock().unwrap_or_else(PoisonError::into_inner).clone();
    steps.sort_unstable();
    // What goes on in double precision solves a problem twice.
    let of_problem = |solves: &[(usize, u64)]| solves.iter().map(|&(_, steps)| steps as i64).sum();
    let steps: Vec<i64> = steps.chunk_by(|a, b| a.0 == b.0).map(of_problem).collect();
    Ok((Model::new(model), steps.into_pyarray(py), warnings))
}

/// Labels of rows, and the names of their classes.
fn labels(targets: Option<Targets<'_>>) -> PyResult<(Labels, Option<Vec<Label>>)> {
    match targets {
        None => Ok((Labels::None, None)),
        Some(Targets::Numbers(values)) => Ok((Labels::Real(slice(&values)?.to_vec()), None)),
        Some(Targets::Classes(codes, names)) => {
            let names = target_names(names);
            Ok((class_labels(slice(&codes)?, &names)?, Some(names)))
        }
    }
}

/// Rows with their labels.
pub(crate) fn dataset(table: &Table<'_>, targets: Option<Targets<'_>>) -> PyResult<Dataset> {
    Dataset::new(table.matrix()?, labels(targets)?.0).map_err(exception)
}

/// The names of classes as the library holds them.
pub(crate) fn target_names(names: Vec<Name>) -> Vec<Label> {
    names.into_iter().map(Name::label).collect()
}

/// The names that [`class_labels`] uses for the classes: their own, or their numbers.
pub(crate) fn names_in_labels(names: Vec<Label>) -> Vec<Label> {
    if are_mixed(&names) { (0..names.len() as i64).map(Label::Int).collect() } else { names }
}

/// Whether names are of different kinds.
fn are_mixed(names: &[Label]) -> bool {
    let kind = std::mem::discriminant;
    names.windows(2).any(|pair| kind(&pair[0]) != kind(&pair[1]))
}

/// The label of every row: its class's name, so that messages can say it, or, where names are of
/// different kinds and would not sort as given, its class's number.
pub(crate) fn class_labels(codes: &[i64], names: &[Label]) -> PyResult<Labels> {
    if are_mixed(names) {
        return Ok(Labels::Int(codes.to_vec()));
    }
    let name = |&code: &i64| usize::try_from(code).ok().and_then(|code| names.get(code)).cloned();
    let labels: Option<Vec<Label>> = codes.iter().map(name).collect();
    let labels = labels.ok_or_else(|| PyValueError::new_err("expected a name for every class"))?;
    Ok(Labels::from_labels(&labels))
}

pub(crate) fn slice<'a, T: numpy::Element>(
    array: &'a PyReadonlyArray1<'_, T>,
) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|_| PyValueError::new_err("expected a contiguous array"))
}

/// What Python wants to know and to decide while a machine trains.
pub(crate) struct Caller {
    cancel: CancelToken,
    on_event: Option<Py<PyAny>>,
    /// An exception of a callback or of Ctrl-C, and when it came; the training was asked to stop.
    failure: Option<(PyErr, Instant)>,
    warnings: Vec<String>,
}

impl Caller {
    /// `on_event` says who gave the token.
    pub(crate) fn new(cancel: CancelToken, on_event: Option<Py<PyAny>>) -> Self {
        Self { cancel, on_event, failure: None, warnings: Vec::new() }
    }

    /// Takes an event; calls Python when it wants to know.
    fn take(&mut self, py: Python<'_>, event: &Event) {
        if let Event::Warning { message } = event {
            self.warnings.push(message.clone());
        }
        if self.failure.is_none() {
            match self.notify(py, event) {
                Ok(false) => {}
                Ok(true) => self.cancel.cancel(),
                Err(failure) => self.give_up(failure),
            }
        }
    }

    /// Hands an event to Python; true when the training is to stop.
    fn notify(&self, py: Python<'_>, event: &Event) -> PyResult<bool> {
        let Some(on_event) = &self.on_event else { return Ok(false) };
        let returned = match event {
            Event::Stage { name, total } => on_event.call1(py, ("stage", (*name, *total))),
            Event::StageStep { name } => on_event.call1(py, ("step", (*name,))),
            Event::Iteration { iteration, violation, objective, active } => {
                let payload = (*iteration, *violation, *objective, *active);
                on_event.call1(py, ("iteration", payload))
            }
            _ => return Ok(false),
        }?;
        returned.bind(py).is_truthy()
    }

    fn look_for_signals(&mut self, py: Python<'_>) {
        if self.failure.is_none()
            && let Err(failure) = py.check_signals()
        {
            self.give_up(failure);
        }
    }

    fn give_up(&mut self, failure: PyErr) {
        self.failure = Some((failure, Instant::now()));
        self.cancel.cancel();
    }

    /// What the training came to, once it has ended.
    fn conclude<R>(
        self,
        result: thread::Result<widemargin::Result<R>>,
    ) -> PyResult<(R, Vec<String>)> {
        if let Some((failure, _)) = self.failure {
            return Err(failure);
        }
        match result {
            Ok(result) => Ok((result.map_err(exception)?, self.warnings)),
            Err(panic) => {
                let reason = reason(panic.as_ref());
                Err(PyRuntimeError::new_err(format!("internal error while training: {reason}")))
            }
        }
    }
}

fn reason(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// Trains on the calling thread; events are taken as they come.
fn run_here<R: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Arc<Listener>) -> widemargin::Result<R> + Send,
    caller: Caller,
) -> PyResult<(R, Vec<String>)> {
    let wants_all = caller.on_event.is_some();
    let shared = Arc::new(Mutex::new((caller, Instant::now())));
    let theirs = Arc::clone(&shared);
    let listener: Arc<Listener> = Arc::new(move |event: &Event| {
        let mut shared = theirs.lock().unwrap_or_else(PoisonError::into_inner);
        let due = shared.1.elapsed() >= SIGNAL_PERIOD;
        if wants_all || due || matches!(event, Event::Warning { .. }) {
            Python::attach(|py| {
                shared.0.take(py, event);
                if due {
                    shared.0.look_for_signals(py);
                    shared.1 = Instant::now();
                }
            });
        }
    });
    let result = py.detach(|| {
        // The observers go with the work, so that the caller is nobody else's afterwards.
        let result = catch_unwind(AssertUnwindSafe(|| work(&listener)));
        drop(listener);
        result
    });
    let shared = Arc::into_inner(shared)
        .ok_or_else(|| PyRuntimeError::new_err("a training outlived its caller"))?;
    shared.into_inner().unwrap_or_else(PoisonError::into_inner).0.conclude(result)
}

/// Messages of the worker to the waiting thread.
enum Message<R> {
    Event(Event),
    Done(Box<widemargin::Result<R>>),
}

/// As [`run_beside`], for work in a context whose events go to `on_event`.
pub(crate) fn run_observed<R: Send + 'static>(
    py: Python<'_>,
    context: Context,
    cancel: CancelToken,
    on_event: Option<Py<PyAny>>,
    work: impl FnOnce(&Context) -> widemargin::Result<R> + Send + 'static,
) -> PyResult<(R, Vec<String>)> {
    let observed = move |listener: &Arc<Listener>| {
        let listener = Arc::clone(listener);
        work(&context.with_observer(move |event: &Event| listener(event)))
    };
    run_beside(py, observed, Caller::new(cancel, on_event))
}

/// Trains on a thread of its own while the calling thread waits, takes events and looks for Ctrl-C.
pub(crate) fn run_beside<R: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Arc<Listener>) -> widemargin::Result<R> + Send + 'static,
    mut caller: Caller,
) -> PyResult<(R, Vec<String>)> {
    let (sender, mut receiver) = channel();
    let wants_all = caller.on_event.is_some();
    let events: Mutex<Sender<Message<R>>> = Mutex::new(sender.clone());
    let listener: Arc<Listener> = Arc::new(move |event: &Event| {
        if wants_all || matches!(event, Event::Warning { .. }) {
            let events = events.lock().unwrap_or_else(PoisonError::into_inner);
            // Nobody listens any more only after the training was given up.
            let _ = events.send(Message::Event(event.clone()));
        }
    });
    let worker = thread::Builder::new()
        .name("widemargin-fit".into())
        .spawn(move || {
            // The tables go with the work, before the waiting thread learns of the end.
            let result = work(&listener);
            drop(listener);
            let _ = sender.send(Message::Done(Box::new(result)));
        })
        .map_err(|error| PyRuntimeError::new_err(format!("cannot start a thread: {error}")))?;
    let result = loop {
        if caller.failure.as_ref().is_some_and(|(_, since)| since.elapsed() > STOP_TIMEOUT) {
            // The worker stops at its next look at the cancel token and frees what it holds.
            return caller.conclude(Ok(Err(widemargin::Error::Interrupted)));
        }
        let receiver = &mut receiver;
        match py.detach(move || receiver.recv_timeout(SIGNAL_PERIOD)) {
            Ok(Message::Done(result)) => break Some(*result),
            Ok(Message::Event(event)) => caller.take(py, &event),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break None,
        }
        caller.look_for_signals(py);
    };
    let ended = py.detach(|| worker.join());
    match (result, ended) {
        (Some(result), _) => caller.conclude(Ok(result)),
        (None, Err(panic)) => caller.conclude(Err(panic)),
        (None, Ok(())) => caller.conclude(Ok(Err(widemargin::Error::Interrupted))),
    }
}
