//! Many machines on many splits: the engine of the searches.

use std::sync::{Mutex, PoisonError};

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyList;
use widemargin::data::{Dataset, Label, Labels};
use widemargin::machine::Machine;
use widemargin::operation::tune::{
    Criterion, Evaluation, Job, Response, Reuse, Split, criterion, evaluate as evaluate_all,
};
use widemargin::{CancelToken, Context};

use crate::errors::exception;
use crate::machines::Settings;
use crate::model::Model;
use crate::table::Table;
use crate::training::{Targets, named_dataset, names_in_labels, run_observed, slice};

/// The predictions of one machine for one split, until Python takes them.
struct Predicted {
    labels: Vec<f64>,
    values: Vec<f64>,
    functions: usize,
    fit_seconds: f64,
    predict_seconds: f64,
    iterations: u64,
}

/// By machine, then split: the predictions or what is wrong; `None` where the search was stopped.
type Results = Vec<Vec<Option<Result<Predicted, String>>>>;

/// Trains every machine on the training rows of every split and predicts the test rows.
///
/// Returns, for every machine, a list with an item for every split: a message, or a tuple of predictions
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
    let work = move |context: &Context| {
        let reuse = if cold { Reuse::Nothing } else { Reuse::Everything };
        let job = Job {
            machines: &machines,
            data: &data,
            splits: &splits,
            scaling: None,
            response: if values { Response::Values } else { Response::Labels },
            reuse,
        };
        let empty = || (0..splits.len()).map(|_| None).collect();
        let results: Mutex<Results> = Mutex::new(machines.iter().map(|_| empty()).collect());
        let take = |m: usize, s: usize, evaluation: widemargin::Result<Evaluation<'_>>| {
            let result = evaluation.map(|one| predicted(&one)).map_err(|e| e.to_string());
            results.lock().unwrap_or_else(PoisonError::into_inner)[m][s] = Some(result);
            Ok(())
        };
        evaluate_all(&job, |_, _| true, take, context)?;
        Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner))
    };
    let (results, _) = run_observed(py, context, cancel, on_event, work)?;
    let list = PyList::empty(py);
    for of_machine in results {
        let items = PyList::empty(py);
        for result in of_machine {
            match result {
                None => items.append(py.None())?,
                Some(Err(message)) => items.append(message)?,
                Some(Ok(predicted)) => items.append(predicted.into_python(py)?)?,
            }
        }
        list.append(items)?;
    }
    Ok(list)
}

/// The leave-one-out error of a classifier, estimated from its model and its training rows.
#[pyfunction]
pub(crate) fn leave_one_out_error<'py>(
    py: Python<'py>,
    settings: Settings,
    model: &Model,
    features: Table<'py>,
    targets: Targets<'py>,
    which: &str,
) -> PyResult<f64> {
    let (data, classes) = named_dataset(features.matrix()?, Some(targets), None, None, None)?;
    let names = classes.map(names_in_labels).unwrap_or_default();
    let machine = settings.specification(&names)?;
    let machine = machine.build(&data, settings.seed()).map_err(exception)?;
    let which: Criterion = which.parse().map_err(exception)?;
    let context = settings.context(CancelToken::new())?;
    let model = model.shared();
    py.detach(|| {
        let Some(svc) = machine.penalty_path() else {
            let expected = "a classifier with a penalty C";
            return Err(widemargin::Error::Model { message: format!("expected {expected}") });
        };
        criterion(which, svc, &model, &data, &context)
    })
    .map_err(exception)
}

pub(crate) fn rows(indices: &PyReadonlyArray1<'_, i64>) -> PyResult<Vec<usize>> {
    Ok(slice(indices)?.iter().map(|&row| row as usize).collect())
}

fn predicted(evaluation: &Evaluation<'_>) -> Predicted {
    let model = evaluation.predictor.model();
    let classes = model.classes.as_ref().map(|table| table.names.len());
    // Labels of classes are their positions.
    let labels = evaluation.predictions.labels.values().unwrap_or_default();
    let (values, functions) = match (classes, &evaluation.predictions.values) {
        (_, None) => (Vec::new(), 0),
        // Positive means the first class here, the second there.
        (Some(2), Some(values)) => (values.values().iter().map(|value| -value).collect(), 1),
        (Some(count), Some(values)) => {
            (evaluation.predictor.class_scores(values).into_values(), count)
        }
        (None, Some(values)) => (values.values().to_vec(), 1),
    };
    Predicted {
        labels,
        values,
        functions,
        fit_seconds: evaluation.fit_seconds,
        predict_seconds: evaluation.predict_seconds,
        iterations: evaluation.iterations,
    }
}

type Item<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray2<f64>>, f64, f64, u64);

impl Predicted {
    fn into_python(self, py: Python<'_>) -> PyResult<Item<'_>> {
        let rows = self.labels.len();
        let values = self.values.into_pyarray(py).reshape([rows, self.functions])?;
        let labels = self.labels.into_pyarray(py);
        Ok((labels, values, self.fit_seconds, self.predict_seconds, self.iterations))
    }
}
