//! The comparison of machines, and of ways to use kernels, for Python: dictionaries out.

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use widemargin::CancelToken;
use widemargin::data::Labels;
use widemargin::operation::agreement::ClusterAgreement;
use widemargin::operation::compare::{
    ClusteringOptions, CompareOptions, Comparison, KernelOptions, Measure, compare as run,
    compare_clusterings as run_clusterings, compare_kernels as run_kernels,
};
use widemargin::{Context, Error};

use crate::errors::exception;
use crate::machines::{Settings, context, limited, named};
use crate::outcome::set_fields;
use crate::table::Table;
use crate::training::{Targets, dataset, slice};

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
    let data = dataset(&features, Some(targets))?;
    let options = CompareOptions { folds, repeats, machines, confidence };
    let work = |context: &Context| run(&data, &options, context);
    let result = interruptible(py, max_seconds, threads, seed, work)?;
    dictionary(py, &result)
}

/// Compares ways to use kernels; see `widemargin.compare_kernels`.
#[pyfunction]
pub(crate) fn compare_kernels<'py>(
    py: Python<'py>,
    features: Table<'py>,
    targets: Targets<'py>,
    machine: &str,
    kernels: &str,
    penalties: Vec<f64>,
    epsilon: Option<f64>,
    subsets: bool,
    resamples: usize,
    folds: usize,
    repeats: usize,
    confidence: f64,
    max_seconds: Option<f64>,
    threads: usize,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let data = dataset(&features, Some(targets))?;
    let mut specification = named(machine, false)?;
    specification.parse("kernels", kernels).map_err(exception)?;
    if let Some(epsilon) = epsilon {
        specification.set("epsilon", epsilon).map_err(exception)?;
    }
    let compare = CompareOptions { folds, repeats, machines: Vec::new(), confidence };
    let options = KernelOptions { compare, penalties, subsets, resamples };
    let work = |context: &Context| run_kernels(&data, &specification, &options, context);
    let found = interruptible(py, max_seconds, threads, seed, work)?;
    let all = dictionary(py, &found.comparison)?;
    let list = PyList::empty(py);
    for share in &found.shares {
        let items = PyDict::new(py);
        set_fields!(items, share, [kernel, weight, weight_interval]);
        set_fields!(items, share, [contribution, contribution_interval]);
        list.append(items)?;
    }
    all.set_item("kernels", list)?;
    all.set_item("C", found.penalty)?;
    Ok(all)
}

/// Compares ways to cluster the same rows; see `widemargin.compare_clusterings`.
#[pyfunction]
pub(crate) fn compare_clusterings<'py>(
    py: Python<'py>,
    features: Table<'py>,
    targets: Option<Targets<'py>>,
    machines: Vec<Settings>,
    pairs: usize,
    share: f64,
    max_seconds: Option<f64>,
    threads: usize,
    seed: u64,
) -> PyResult<Bound<'py, PyList>> {
    let data = dataset(&features, targets)?;
    let machines =
        machines.iter().map(|one| one.specification(&[])).collect::<PyResult<Vec<_>>>()?;
    let options = ClusteringOptions { pairs, share };
    let work = |context: &Context| run_clusterings(&data, &machines, &options, context);
    let found = interruptible(py, max_seconds, threads, seed, work)?;
    let list = PyList::empty(py);
    for machine in &found.machines {
        let dictionary = PyDict::new(py);
        let labels: Vec<i64> = match &machine.clusters {
            Labels::Int(labels) => labels.clone(),
            _ => Vec::new(),
        };
        dictionary.set_item("machine", machine.specification.to_string())?;
        dictionary.set_item("labels", labels.into_pyarray(py))?;
        set_fields!(dictionary, machine, [sizes, stability, with_first, seconds]);
        dictionary.set_item("error", machine.agreement.map(|found| found.error))?;
        dictionary.set_item("adjusted_rand", machine.agreement.map(|found| found.adjusted_rand))?;
        dictionary.set_item("v_measure", machine.agreement.map(|found| found.v_measure))?;
        list.append(dictionary)?;
    }
    Ok(list)
}

/// Runs `work` with the interpreter released; looks for Ctrl-C at every finished fold.
fn interruptible<R: Send>(
    py: Python<'_>,
    max_seconds: Option<f64>,
    threads: usize,
    seed: u64,
    work: impl Fn(&Context) -> Result<R, Error> + Send + Sync,
) -> PyResult<R> {
    let cancel = CancelToken::new();
    let context = limited(context(threads, seed, cancel.clone())?, max_seconds);
    let context = context.with_observer(move |_: &widemargin::Event| {
        if Python::attach(|py| py.check_signals()).is_err() {
            cancel.cancel();
        }
    });
    py.detach(|| work(&context)).map_err(exception)
}

fn dictionary<'py>(py: Python<'py>, result: &Comparison) -> PyResult<Bound<'py, PyDict>> {
    let list = PyList::empty(py);
    for machine in &result.machines {
        let items = PyDict::new(py);
        items.set_item("machine", &machine.name)?;
        let [one, all] = match result.measure {
            Measure::RootMeanSquare => ["rmse", "rmses"],
            _ => ["accuracy", "accuracies"],
        };
        items.set_item(one, machine.mean)?;
        set_fields!(items, machine, [interval, p_value, settings]);
        items.set_item(all, machine.scores.clone())?;
        let [tuning, training, prediction] = machine.seconds;
        items.set_item("tuning_seconds", tuning)?;
        items.set_item("training_seconds", training)?;
        items.set_item("prediction_seconds", prediction)?;
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

/// How well clusters agree with classes, both by numbers, as a dictionary.
#[pyfunction]
pub(crate) fn cluster_agreement<'py>(
    py: Python<'py>,
    classes: PyReadonlyArray1<'py, i64>,
    clusters: PyReadonlyArray1<'py, i64>,
) -> PyResult<Bound<'py, PyDict>> {
    let labels = |array: &PyReadonlyArray1<'py, i64>| slice(array).map(|l| Labels::Int(l.to_vec()));
    let found =
        ClusterAgreement::new(&labels(&classes)?, &labels(&clusters)?).map_err(exception)?;
    let items = PyDict::new(py);
    items.set_item("error", found.error)?;
    items.set_item("many_to_one_error", found.many_to_one_error)?;
    items.set_item("adjusted_rand", found.adjusted_rand)?;
    items.set_item("homogeneity", found.homogeneity)?;
    items.set_item("completeness", found.completeness)?;
    items.set_item("v_measure", found.v_measure)?;
    Ok(items)
}
