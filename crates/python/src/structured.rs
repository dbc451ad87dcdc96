//! Structures that a Python object decodes.

use std::sync::{Arc, Mutex, PoisonError};

use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use widemargin::machine::{StructuredProblem, StructuredSvm};
use widemargin::{CancelToken, Context, Error};

use crate::machines::{context, limited};
use crate::outcome::ending;
use crate::training::run_observed;

/// The user's object; what it raised ends the training.
struct UserProblem {
    problem: Py<PyAny>,
    dimension: usize,
    failure: Arc<Mutex<Option<PyErr>>>,
}

impl UserProblem {
    /// Runs `ask` with the interpreter; keeps what it raises.
    fn ask<R>(
        &self,
        ask: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<R>,
    ) -> widemargin::Result<R> {
        Python::attach(|py| ask(py, self.problem.bind(py))).map_err(|raised| {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
            Error::Interrupted
        })
    }
}

/// Joint features: an array with all of them, or a dictionary of values by place.
fn joint(found: &Bound<'_, PyAny>, dimension: usize) -> PyResult<Vec<(usize, f64)>> {
    if let Ok(items) = found.cast::<PyDict>() {
        return items.iter().map(|(at, value)| Ok((at.extract()?, value.extract()?))).collect();
    }
    let values: Vec<f64> = found.extract()?;
    if values.len() != dimension {
        return Err(PyValueError::new_err(format!(
            "joint_features returned {} values, expected {dimension}",
            values.len()
        )));
    }
    Ok(values.into_iter().enumerate().filter(|(_, value)| *value != 0.0).collect())
}

impl StructuredProblem for UserProblem {
    type Input = Py<PyAny>;
    type Output = Py<PyAny>;

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn joint_features(
        &self,
        input: &Py<PyAny>,
        output: &Py<PyAny>,
    ) -> widemargin::Result<Vec<(usize, f64)>> {
        self.ask(|_, problem| {
            let found = problem.call_method1("joint_features", (input, output))?;
            joint(&found, self.dimension)
        })
    }

    fn loss(&self, truth: &Py<PyAny>, other: &Py<PyAny>) -> widemargin::Result<f64> {
        self.ask(|py, problem| match problem.hasattr("loss")? {
            true => problem.call_method1("loss", (truth, other))?.extract(),
            false => Ok(f64::from(u8::from(truth.bind(py).ne(other)?))),
        })
    }

    fn decode(
        &self,
        input: &Py<PyAny>,
        weights: &[f64],
        truth: Option<&Py<PyAny>>,
    ) -> widemargin::Result<Py<PyAny>> {
        self.ask(|py, problem| {
            let weights = PyArray1::from_slice(py, weights);
            Ok(problem.call_method1("decode", (input, weights, truth))?.unbind())
        })
    }
}

/// Weights, how the training ended, and the warnings.
type Trained<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyDict>, Vec<String>);

/// Trains on examples; returns the weights, how the training ended, and the warnings.
#[pyfunction]
#[pyo3(signature = (problem, dimension, inputs, outputs, c, tol, max_iterations, max_seconds=None, on_event=None))]
pub(crate) fn fit_structured<'py>(
    py: Python<'py>,
    problem: Py<PyAny>,
    dimension: usize,
    inputs: Vec<Py<PyAny>>,
    outputs: Vec<Py<PyAny>>,
    c: f64,
    tol: f64,
    max_iterations: usize,
    max_seconds: Option<f64>,
    on_event: Option<Py<PyAny>>,
) -> PyResult<Trained<'py>> {
    let failure = Arc::default();
    let problem = UserProblem { problem, dimension, failure: Arc::clone(&failure) };
    let examples: Vec<(Py<PyAny>, Py<PyAny>)> = inputs.into_iter().zip(outputs).collect();
    let cancel = CancelToken::new();
    let context = limited(context(1, 0, cancel.clone())?, max_seconds);
    let machine = StructuredSvm { c, tol, max_iterations };
    let work = move |context: &Context| machine.fit(&problem, &examples, context);
    let result = run_observed(py, context, cancel, on_event, work);
    let raised: Option<PyErr> = failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(raised) = raised {
        return Err(raised);
    }
    let (fit, warnings) = result?;
    Ok((fit.weights.into_pyarray(py), ending(py, &fit.outcome)?, warnings))
}
