//! The comparison of machines for Python: dictionaries out.

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use widemargin::CancelToken;
use widemargin::data::{Dataset, Label};
use widemargin::operation::compare::{CompareOptions, compare as run};

use crate::errors::exception;
use crate::machines::context;
use crate::table::Table;
use crate::training::{Targets, class_labels, slice};

/// Compares machines on labelled rows; see `widemargin.compare`.
#[pyfunction]
pub(crate) fn compare<'py>(
    py: Python<'py>,
    features: Table<'py>,
    targets: Targets<'py>,
    machines: Vec<String>,
    folds: usize,
    repeats: usize,
    confidence: f64,
    max_seconds: Option<f64>,
    threads: usize,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let labels = match targets {
        Targets::Classes(codes, names) => {
            let names: Vec<Label> = names.into_iter().map(|name| name.label()).collect();
            class_labels(slice(&codes)?, &names)?
        }
        Targets::Numbers(values) => widemargin::data::Labels::Real(slice(&values)?.to_vec()),
    };
    let data = Dataset::new(features.matrix()?, labels).map_err(exception)?;
    let cancel = CancelToken::new();
    let mut context = context(threads, seed, cancel.clone())?;
    if let Some(limit) = max_seconds.and_then(|s| Duration::try_from_secs_f64(s).ok()) {
        context = context.with_time_limit(limit);
    }
    let options = CompareOptions { folds, repeats, machines, confidence };
    let stopper = cancel;
    // Looks for Ctrl-C at every finished fold.
    let context = context.with_observer(move |_: &widemargin::Event| {
        if Python::attach(|py| py.check_signals()).is_err() {
            stopper.cancel();
        }
    });
    let result = py.detach(|| run(&data, &options, &context)).map_err(exception)?;
    let list = PyList::empty(py);
    for machine in &result.machines {
        let items = PyDict::new(py);
        items.set_item("machine", machine.name)?;
        items.set_item("accuracy", machine.mean)?;
        items.set_item("interval", machine.interval)?;
        items.set_item("p_value", machine.p_value)?;
        items.set_item("accuracies", machine.accuracies.clone())?;
        let [tuning, training, prediction] = machine.seconds;
        items.set_item("tuning_seconds", tuning)?;
        items.set_item("training_seconds", training)?;
        items.set_item("prediction_seconds", prediction)?;
        items.set_item("settings", machine.settings.clone())?;
        list.append(items)?;
    }
    let all = PyDict::new(py);
    all.set_item("machines", list)?;
    all.set_item("folds", result.folds)?;
    all.set_item("planned_folds", result.planned)?;
    all.set_item("status", result.status.to_string())?;
    if let (2, Some(test)) = (result.machines.len(), result.mcnemar(0, 1)) {
        all.set_item("mcnemar", (test.first_only, test.second_only, test.p_value))?;
    }
    Ok(all)
}
