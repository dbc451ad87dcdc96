//! Parameters as Python holds them, made into the library's specification of a machine.

use std::collections::HashMap;
use std::time::Duration;

use numpy::PyReadonlyArray1;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use widemargin::data::{Dense, Label, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::specification::Value;
use widemargin::machine::{
    CalibrationMethod, KernelDefaults, KernelExpression, MachineKind, Model, OnlineLearner,
    OnlineSvc, Specification,
};
use widemargin::operation::tune::Axis;
use widemargin::{CancelToken, Context};

use crate::errors::exception;
use crate::training::slice;

/// Everything an estimator says about how to train; the items of a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Settings {
    machine: String,
    online: bool,
    /// Parameters of the machine by name, `_` in the place of `-`; `None` for the default.
    parameters: HashMap<String, Option<Setting>>,
    calibration: Option<String>,
    seed: u64,
    /// `None` for the usual size of the cache.
    cache_megabytes: Option<f64>,
    threads: usize,
    max_seconds: Option<f64>,
}

/// The value of a parameter.
pub(crate) struct Setting(Value);

impl<'py> FromPyObject<'_, 'py> for Setting {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(flag) = object.extract::<bool>() {
            return Ok(Self(Value::Flag(flag)));
        }
        if let Ok(text) = object.extract::<String>() {
            return Ok(Self(Value::Text(text)));
        }
        // An array of one number would be taken for the number.
        if let Ok(array) = object.extract::<PyReadonlyArray1<'py, f64>>() {
            return Ok(Self(Value::Reals(slice(&array)?.to_vec())));
        }
        if let Ok(number) = object.extract::<u64>() {
            return Ok(Self(Value::Integer(number)));
        }
        if let Ok(number) = object.extract::<f64>() {
            return Ok(Self(Value::Real(number)));
        }
        Ok(Self(Value::Reals(object.extract()?)))
    }
}

/// A machine by name.
pub(crate) fn named(machine: &str, online: bool) -> PyResult<Specification> {
    let kind: MachineKind = machine.parse().map_err(exception)?;
    match online {
        true => Specification::online(kind).map_err(exception),
        false => Ok(Specification::new(kind)),
    }
}

impl Settings {
    /// The machine for these classes; class weights are given in their order.
    pub(crate) fn specification(&self, classes: &[Label]) -> PyResult<Specification> {
        let mut specification = named(&self.machine, self.online)?;
        for (name, value) in &self.parameters {
            let Some(Setting(value)) = value else { continue };
            let name = name.replace('_', "-");
            let value = match (name.as_str(), value) {
                // Two classes need no reduction, whatever the scheme.
                ("multiclass" | "code" | "decoding", _)
                    if classes.len() <= 2
                        && !MachineKind::LINEAR.contains(&specification.kind()) =>
                {
                    continue;
                }
                ("class-weight", Value::Reals(factors)) => {
                    let pairs = classes.iter().cloned().zip(factors.iter().copied());
                    Value::Weights(pairs.collect())
                }
                (_, other) => other.clone(),
            };
            specification.set(&name, value).map_err(exception)?;
        }
        Ok(specification)
    }

    /// The seed of random choices.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// A learner for a stream of the given classes, its kernel resolved on the first rows.
    pub(crate) fn learner(
        &self,
        features: &Matrix,
        classes: Vec<Label>,
    ) -> PyResult<OnlineLearner> {
        let svc = self.specification(&classes)?.online_svc(features).map_err(exception)?;
        let context = self.context(CancelToken::new())?;
        OnlineSvc { classes: Some(classes), ..svc }.learner(&context).map_err(exception)
    }

    /// A learner that goes on where a model ended, with its kernel.
    pub(crate) fn resumed_learner(
        &self,
        model: &Model,
        classes: Vec<Label>,
    ) -> PyResult<OnlineLearner> {
        let specification = self.specification(&classes)?;
        let nothing = Matrix::DenseF64(Dense::new(0, 0, Vec::new()).map_err(exception)?);
        let svc = specification.online_svc(&nothing).map_err(exception)?;
        let kernel = model.kernel().cloned().unwrap_or(Kernel::Linear);
        let svc = OnlineSvc { kernel, classes: Some(classes), ..svc };
        svc.resume(model, &self.context(CancelToken::new())?).map_err(exception)
    }

    /// How probabilities are to be learnt, if at all.
    pub(crate) fn calibration(&self) -> PyResult<Option<CalibrationMethod>> {
        match self.calibration.as_deref() {
            None => Ok(None),
            Some("sigmoid") => Ok(Some(CalibrationMethod::Sigmoid)),
            Some("isotonic") => Ok(Some(CalibrationMethod::Isotonic)),
            Some(other) => Err(PyValueError::new_err(format!("unknown calibration '{other}'"))),
        }
    }

    /// Threads, memory, seed and limits, without an observer.
    pub(crate) fn context(&self, cancel: CancelToken) -> PyResult<Context> {
        let mut context = context(self.threads, self.seed, cancel)?;
        if let Some(megabytes) = self.cache_megabytes {
            context = context.with_cache_bytes((megabytes * f64::from(1 << 20)) as usize);
        }
        Ok(limited(context, self.max_seconds))
    }
}

/// Threads and seed of a computation that `cancel` can stop.
pub(crate) fn context(threads: usize, seed: u64, cancel: CancelToken) -> PyResult<Context> {
    let context = Context::new().with_threads(threads).map_err(exception)?;
    Ok(context.with_seed(seed).with_cancel_token(cancel))
}

/// The context, asked to stop after `max_seconds`; a time too long for the clock is no limit.
pub(crate) fn limited(context: Context, max_seconds: Option<f64>) -> Context {
    match max_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
        Some(limit) => context.with_time_limit(limit),
        None => context,
    }
}

/// A value as Python holds it.
pub(crate) fn value_to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Flag(flag) => flag.into_bound_py_any(py),
        Value::Integer(number) => number.into_bound_py_any(py),
        Value::Real(number) => number.into_bound_py_any(py),
        Value::Text(text) => text.into_bound_py_any(py),
        Value::Reals(numbers) => numbers.clone().into_bound_py_any(py),
        Value::Weights(weights) => {
            let named = weights.iter().map(|(label, factor)| (label.to_string(), *factor));
            named.collect::<Vec<_>>().into_bound_py_any(py)
        }
    }
}

/// The names of the parameters of a machine, `_` in the place of `-`.
#[pyfunction]
pub(crate) fn parameter_names(machine: &str, online: bool) -> PyResult<Vec<String>> {
    let specification = named(machine, online)?;
    let parameters = specification.entry().parameters();
    Ok(parameters.map(|parameter| parameter.name.replace('-', "_")).collect())
}

/// The default search space of a machine: names with lists of values.
#[pyfunction]
pub(crate) fn default_grid<'py>(
    py: Python<'py>,
    machine: &str,
    kernel: Option<&str>,
) -> PyResult<Vec<(String, Vec<Bound<'py, PyAny>>)>> {
    let mut specification = named(machine, false)?;
    if let Some(kernel) = kernel {
        specification.set("kernel", kernel).map_err(exception)?;
    }
    let mut axes = Vec::new();
    for text in specification.default_grid() {
        let axis = Axis::parse(&specification, text).map_err(exception)?;
        let values = axis.values.iter().map(|value| value_to_python(py, value));
        axes.push((axis.name.replace('-', "_"), values.collect::<PyResult<_>>()?));
    }
    Ok(axes)
}

/// Numbers around the best one of a list with half the distance between them; whole ones stay whole.
#[pyfunction]
pub(crate) fn refined(values: Vec<f64>, best: f64, whole: bool) -> Vec<f64> {
    let typed = |number: f64| match whole {
        true => Value::Integer(number as u64),
        false => Value::Real(number),
    };
    let axis = Axis::list("values", values.into_iter().map(typed).collect());
    axis.refined(&typed(best)).values.iter().filter_map(Value::number).collect()
}

/// Checks that a kernel expression can be read.
///
/// Raises ``ValueError`` saying what was expected where.
#[pyfunction]
pub(crate) fn check_kernel(text: &str) -> PyResult<()> {
    KernelExpression::parse(text, KernelDefaults::default()).map(|_| ()).map_err(exception)
}
