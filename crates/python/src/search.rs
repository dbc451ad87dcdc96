//! Many machines on many splits, and which points go on or come next: the engine of the searches.

use std::sync::{Arc, Mutex, PoisonError};

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyList;
use widemargin::data::{Dataset, Label, Labels};
use widemargin::machine::Machine;
use widemargin::operation::tune::{
    self, Answer, Asked, Job, Reuse, Split, evaluate as evaluate_all,
};
use widemargin::{CancelToken, Context, Event};

use crate::errors::exception;
use crate::machines::Settings;
use crate::table::Table;
use crate::training::{Caller, Listener, Targets, run_beside, slice};

/// What one machine made of one split, until Python takes it.
struct Answered {
    answers: Vec<f64>,
    values: Vec<f64>,
    functions: usize,
    fit_seconds: f64,
    predict_seconds: f64,
    iterations: u64,
}

/// By machine, then split: the answer or what is wrong; `None` where the search was stopped.
type Results = Vec<Vec<Option<Result<Answered, String>>>>;

/// Trains every machine on the training rows of every split and lets it answer the test rows.
///
/// Returns, for every machine, a list with an item for every split: a message, or a tuple of answers
/// (positions of classes, or numbers), scores (of every class, or of the second of two classes, or
/// the decision values; perhaps none unless `values`), seconds of training, seconds of prediction and
/// solver steps.
#[pyfunction]
#[pyo3(signature = (settings, features, targets, splits, weights=None, cold=false, on_event=None, values=true))]
pub(crate) fn evaluate<'py>(
    py: Python<'py>,
    settings: Vec<Settings>,
    features: Table<'py>,
    targets: Targets<'py>,
    splits: Vec<(PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>)>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    cold: bool,
    on_event: Option<Py<PyAny>>,
    values: bool,
) -> PyResult<Bound<'py, PyList>> {
    let Some(first) = settings.first() else { return Ok(PyList::empty(py)) };
    let cancel = CancelToken::new();
    let context = first.context(cancel.clone())?;
    let matrix = features.matrix()?;
    let (labels, classes) = match targets {
        Targets::Numbers(values) => (Labels::Real(slice(&values)?.to_vec()), Vec::new()),
        Targets::Classes(codes, names) => {
            let codes_of_names = (0..names.len() as i64).map(Label::Int).collect();
            (Labels::Int(slice(&codes)?.to_vec()), codes_of_names)
        }
    };
    let mut data = Dataset::new(matrix, labels).map_err(exception)?;
    let mut machines: Vec<Box<dyn Machine>> = Vec::with_capacity(settings.len());
    for settings in &settings {
        let specification = settings.specification(&classes)?;
        machines.push(specification.build(&data, settings.seed()).map_err(exception)?);
    }
    if let Some(weights) = weights {
        data = data.with_weights(slice(&weights)?.to_vec()).map_err(exception)?;
    }
    let splits: Vec<Split> = splits
        .iter()
        .map(|(train, test)| Ok(Split { train: rows(train)?, test: rows(test)? }))
        .collect::<PyResult<_>>()?;
    let work = move |listener: &Arc<Listener>| {
        let listener = Arc::clone(listener);
        let context = context.with_observer(move |event: &Event| listener(event));
        let reuse = if cold { Reuse::Nothing } else { Reuse::Everything };
        let job = Job {
            machines: &machines,
            data: &data,
            splits: &splits,
            scaling: None,
            asked: if values { Asked::Values } else { Asked::Labels },
            reuse,
        };
        let empty = || (0..splits.len()).map(|_| None).collect();
        let results: Mutex<Results> = Mutex::new(machines.iter().map(|_| empty()).collect());
        let take = |m: usize, s: usize, answer: widemargin::Result<Answer<'_>>| {
            let answered = answer.map(|answer| answered(&answer)).map_err(|e| e.to_string());
            results.lock().unwrap_or_else(PoisonError::into_inner)[m][s] = Some(answered);
            Ok(())
        };
        evaluate_all(&job, |_, _| true, take, &context)?;
        Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner))
    };
    let (results, _) = run_beside(py, work, Caller::new(cancel, on_event))?;
    let list = PyList::empty(py);
    for of_machine in results {
        let items = PyList::empty(py);
        for result in of_machine {
            match result {
                None => items.append(py.None())?,
                Some(Err(message)) => items.append(message)?,
                Some(Ok(answered)) => items.append(answered.into_python(py)?)?,
            }
        }
        list.append(items)?;
    }
    Ok(list)
}

fn rows(indices: &PyReadonlyArray1<'_, i64>) -> PyResult<Vec<usize>> {
    Ok(slice(indices)?.iter().map(|&row| row as usize).collect())
}

/// The places of the points that go on after a round of halving, and the rows of their round.
#[pyfunction]
pub(crate) fn halve(
    means: Vec<f64>,
    factor: usize,
    rows: usize,
    largest: usize,
) -> (Vec<usize>, usize) {
    tune::halve(&means, factor, rows, largest)
}

/// So many of the rows of `train`, evenly spread over the classes of all rows, if there are any.
#[pyfunction]
#[pyo3(signature = (train, count, classes=None))]
pub(crate) fn thinned<'py>(
    py: Python<'py>,
    train: PyReadonlyArray1<'py, i64>,
    count: usize,
    classes: Option<PyReadonlyArray1<'py, u32>>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let classes = classes.as_ref().map(slice).transpose()?;
    let thin = tune::thinned(&rows(&train)?, count, classes);
    Ok(PyArray1::from_iter(py, thin.into_iter().map(|row| row as i64)))
}

/// The places of the points that are out of a race, by their scores on the splits so far.
#[pyfunction]
pub(crate) fn behind(scores: Vec<Vec<f64>>) -> Vec<usize> {
    tune::behind(&scores)
}

/// The points of the unit cube that a model of the scores thinks most of; several without scores.
#[pyfunction]
pub(crate) fn promising(
    points: Vec<Vec<f64>>,
    scores: Vec<f64>,
    dimensions: usize,
    seed: u64,
) -> PyResult<Vec<Vec<f64>>> {
    tune::promising(&points, &scores, dimensions, seed, &Context::new()).map_err(exception)
}

fn answered(answer: &Answer<'_>) -> Answered {
    let model = answer.predictor.model();
    let classes = model.classes.as_ref().map(|table| table.names.len());
    // Labels of classes are their positions.
    let answers = answer.said.labels.values().unwrap_or_default();
    let (values, functions) = match (classes, &answer.said.values) {
        (_, None) => (Vec::new(), 0),
        // Positive means the first class here, the second there.
        (Some(2), Some(values)) => (values.values().iter().map(|value| -value).collect(), 1),
        (Some(count), Some(values)) => (answer.predictor.class_scores(values).into_values(), count),
        (None, Some(values)) => (values.values().to_vec(), 1),
    };
    Answered {
        answers,
        values,
        functions,
        fit_seconds: answer.fit_seconds,
        predict_seconds: answer.predict_seconds,
        iterations: answer.iterations,
    }
}

type Item<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray2<f64>>, f64, f64, u64);

impl Answered {
    fn into_python(self, py: Python<'_>) -> PyResult<Item<'_>> {
        let rows = self.answers.len();
        let values = self.values.into_pyarray(py).reshape([rows, self.functions])?;
        let answers = self.answers.into_pyarray(py);
        Ok((answers, values, self.fit_seconds, self.predict_seconds, self.iterations))
    }
}
