//! Training with the interpreter released: a worker thread computes, the calling thread waits,
//! hands events to Python and looks for Ctrl-C.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use widemargin::data::{Dataset, Label, Labels};
use widemargin::machine::{CalibrationMethod, Machine, Model as Trained};
use widemargin::operation::calibrate::calibrate;
use widemargin::{CancelToken, Context, Event};

use crate::errors::exception;
use crate::machines::Settings;
use crate::model::Model;
use crate::table::Table;

/// Time between two looks for Ctrl-C.
const SIGNAL_PERIOD: Duration = Duration::from_millis(50);

/// Time the worker has to stop before the caller goes on without it.
const PATIENCE: Duration = Duration::from_millis(500);

/// What the rows are labelled with.
#[derive(FromPyObject)]
pub(crate) enum Targets<'py> {
    /// Class of every row, and the name of every class.
    Classes(PyReadonlyArray1<'py, i64>, Vec<Name>),
    /// A number for every row.
    Numbers(PyReadonlyArray1<'py, f64>),
}

/// Name of a class.
#[derive(FromPyObject)]
pub(crate) enum Name {
    Int(i64),
    Real(f64),
    Text(String),
}

impl Name {
    fn label(self) -> Label {
        match self {
            Self::Int(value) => Label::Int(value),
            Self::Real(value) => Label::Real(value),
            Self::Text(value) => Label::Text(value),
        }
    }
}

/// What the worker tells the waiting thread.
enum Message {
    Event(Event),
    Done(Box<widemargin::Result<Trained>>),
}

/// One training, owned by the worker.
struct Job {
    machine: Box<dyn Machine>,
    data: Dataset,
    start: Option<Arc<Trained>>,
    calibration: Option<CalibrationMethod>,
    context: Context,
    steps: Arc<Mutex<Vec<(usize, u64)>>>,
    sender: Sender<Message>,
    wants_events: bool,
}

impl Job {
    fn run(&self) -> widemargin::Result<Trained> {
        let steps = Arc::clone(&self.steps);
        let forward = self.forward();
        let context = self.context.clone().with_observer(move |event: &Event| {
            if let Event::Solved(solved) = event {
                let mut steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
                steps.push((solved.index, solved.outcome.iterations));
            }
            forward(event);
        });
        let model = match &self.start {
            Some(start) => self.machine.fit_from(&self.data, start, &context)?,
            None => self.machine.fit(&self.data, &context)?,
        };
        match self.calibration {
            Some(method) => {
                let context = self.context.clone().with_observer(self.forward());
                calibrate(self.machine.as_ref(), &self.data, model, method, &context)
            }
            None => Ok(model),
        }
    }

    fn forward(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let sender = self.sender.clone();
        let wants_events = self.wants_events;
        move |event| {
            if wants_events || matches!(event, Event::Warning { .. }) {
                // Nobody listens any more only after the training was given up.
                let _ = sender.send(Message::Event(event.clone()));
            }
        }
    }
}

/// Trains a machine.
///
/// Returns the model, the pair steps of every decision function, and the warnings. `on_event` is
/// called as ``on_event(kind, payload)`` on the calling thread; a true answer stops the training
/// with the best model so far.
#[pyfunction]
#[pyo3(signature = (settings, features, targets=None, weights=None, names=None, start=None, on_event=None))]
pub(crate) fn fit<'py>(
    py: Python<'py>,
    settings: Settings,
    features: Table<'py>,
    targets: Option<Targets<'py>>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    names: Option<Vec<String>>,
    start: Option<PyRef<'py, Model>>,
    on_event: Option<Py<PyAny>>,
) -> PyResult<(Model, Bound<'py, PyArray1<i64>>, Vec<String>)> {
    let cancel = CancelToken::new();
    let context = settings.context(cancel.clone())?;
    let matrix = features.matrix()?;
    let (labels, classes) = match targets {
        None => (Labels::None, None),
        Some(Targets::Numbers(values)) => (Labels::Real(slice(&values)?.to_vec()), None),
        Some(Targets::Classes(codes, names)) => {
            let names: Vec<Label> = names.into_iter().map(Name::label).collect();
            (class_labels(slice(&codes)?, &names)?, Some(names))
        }
    };
    let kernel = settings.kernel(&matrix)?;
    let machine = settings.machine(kernel, classes.as_ref().map_or(0, Vec::len))?;
    let mut data = Dataset::new(matrix, labels).map_err(exception)?;
    if let Some(weights) = weights {
        data = data.with_weights(slice(&weights)?.to_vec()).map_err(exception)?;
    }
    if let Some(names) = names {
        data = data.with_feature_names(names).map_err(exception)?;
    }
    let (sender, receiver) = channel();
    let steps = Arc::default();
    let job = Job {
        machine,
        data,
        start: start.map(|model| model.shared()),
        calibration: settings.calibration()?,
        context,
        steps: Arc::clone(&steps),
        sender: sender.clone(),
        wants_events: on_event.is_some(),
    };
    let worker = thread::Builder::new()
        .name("widemargin-fit".into())
        .spawn(move || {
            let result = job.run();
            let _ = sender.send(Message::Done(Box::new(result)));
            // The tables go before the waiting thread is told that the worker has ended.
            drop(job);
        })
        .map_err(|error| PyRuntimeError::new_err(format!("cannot start a thread: {error}")))?;
    let mut waiting = Waiting { receiver, cancel, on_event, failure: None, warnings: Vec::new() };
    let result = waiting.until_done(py);
    if let Some((failure, _)) = waiting.failure {
        // The worker stops at its next look at the cancel token and frees what it holds by itself.
        return Err(failure);
    }
    let ended = py.detach(|| worker.join());
    let Some(result) = result else {
        let reason = ended.err().map_or_else(String::new, |panic| reason(panic.as_ref()));
        return Err(PyRuntimeError::new_err(format!("internal error while training: {reason}")));
    };
    let mut model = result.map_err(exception)?;
    if let (Some(table), Some(names)) = (&mut model.classes, classes) {
        table.names = names;
    }
    let mut steps = steps.lock().unwrap_or_else(PoisonError::into_inner).clone();
    steps.sort_unstable();
    let steps: Vec<i64> = steps.iter().map(|&(_, steps)| steps as i64).collect();
    Ok((Model::new(model), steps.into_pyarray(py), waiting.warnings))
}

/// The label of every row: its class's name, so that messages can say it, or, where names are of
/// different kinds and would not sort as given, its class's number.
fn class_labels(codes: &[i64], names: &[Label]) -> PyResult<Labels> {
    let kind = std::mem::discriminant;
    if names.windows(2).any(|pair| kind(&pair[0]) != kind(&pair[1])) {
        return Ok(Labels::Int(codes.to_vec()));
    }
    let name = |&code: &i64| usize::try_from(code).ok().and_then(|code| names.get(code)).cloned();
    let labels: Option<Vec<Label>> = codes.iter().map(name).collect();
    let labels = labels.ok_or_else(|| PyValueError::new_err("expected a name for every class"))?;
    Ok(Labels::from_labels(&labels))
}

fn slice<'a, T: numpy::Element>(array: &'a PyReadonlyArray1<'_, T>) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|_| PyValueError::new_err("expected a contiguous array"))
}

fn reason(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// The calling thread while the worker computes.
struct Waiting {
    receiver: Receiver<Message>,
    cancel: CancelToken,
    on_event: Option<Py<PyAny>>,
    /// An exception of a callback or of Ctrl-C, and when it came; the worker was told to stop.
    failure: Option<(PyErr, Instant)>,
    warnings: Vec<String>,
}

impl Waiting {
    /// What the worker ended with; `None` when it panicked or does not stop soon enough.
    fn until_done(&mut self, py: Python<'_>) -> Option<widemargin::Result<Trained>> {
        loop {
            if self.failure.as_ref().is_some_and(|(_, since)| since.elapsed() > PATIENCE) {
                return None;
            }
            let receiver = &mut self.receiver;
            match py.detach(move || receiver.recv_timeout(SIGNAL_PERIOD)) {
                Ok(Message::Done(result)) => return Some(*result),
                Ok(Message::Event(event)) => {
                    if self.failure.is_none() {
                        match self.tell(py, &event) {
                            Ok(false) => {}
                            Ok(true) => self.cancel.cancel(),
                            Err(failure) => self.give_up(failure),
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
            if self.failure.is_none()
                && let Err(failure) = py.check_signals()
            {
                self.give_up(failure);
            }
        }
    }

    fn give_up(&mut self, failure: PyErr) {
        self.failure = Some((failure, Instant::now()));
        self.cancel.cancel();
    }

    /// Hands an event to Python; true when the training is to stop.
    fn tell(&mut self, py: Python<'_>, event: &Event) -> PyResult<bool> {
        if let Event::Warning { message } = event {
            self.warnings.push(message.clone());
        }
        let Some(on_event) = &self.on_event else { return Ok(false) };
        let answer = match event {
            Event::Stage { name, total } => on_event.call1(py, ("stage", (*name, *total))),
            Event::StageStep { name } => on_event.call1(py, ("step", (*name,))),
            Event::Iteration { iteration, violation, objective, active } => {
                let payload = (*iteration, *violation, *objective, *active);
                on_event.call1(py, ("iteration", payload))
            }
            _ => return Ok(false),
        }?;
        answer.bind(py).is_truthy()
    }
}
