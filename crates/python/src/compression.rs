//! Smaller models for Python.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use widemargin::Context;
use widemargin::data::{Dataset, Labels};
use widemargin::operation::calibrate::recalibrate;
use widemargin::operation::compress::{Compression, Method, Target, smallest_within};

use crate::errors::exception;
use crate::model::Model;
use crate::table::Table;
use crate::training::{Name, Targets, class_labels, slice};

/// Vectors before and after, relative residual and largest difference of a function.
type Reduction = (usize, usize, f64, f64);

/// Compresses a model as far as `target` says: ``("ratio", share)``, ``("vectors", count)``, ``("mmd",
/// difference)``, ``("lossless", 0)`` or ``("max_loss", loss)``, the last on the rows of `held_out`. A
/// model with probabilities is calibrated again on those rows.
#[pyfunction]
#[pyo3(signature = (model, target, method, shared, refinement, held_out, seed, threads))]
pub(crate) fn compress<'py>(
    py: Python<'py>,
    model: PyRef<'py, Model>,
    target: (String, f64),
    method: &str,
    shared: Option<bool>,
    refinement: Option<usize>,
    held_out: Option<(Table<'py>, Targets<'py>)>,
    seed: u64,
    threads: usize,
) -> PyResult<(Model, Vec<Reduction>)> {
    let method: Method = method.parse().map_err(exception)?;
    let (name, amount) = (target.0.as_str(), target.1);
    let target = match name {
        "ratio" => Target::Ratio(amount),
        "mmd" => Target::Difference(amount),
        "vectors" => Target::Vectors(amount as usize),
        "lossless" => Target::Lossless,
        "max_loss" => Target::Vectors(1),
        _ => return Err(PyValueError::new_err(format!("an unknown target: {name}"))),
    };
    let usual = Compression::new(target);
    let shared = shared.unwrap_or(usual.shared);
    let compression = Compression { method, shared, refinement, ..usual };
    let data = held_out.map(|(table, targets)| dataset(&table, targets)).transpose()?;
    let original = model.shared();
    let run = || -> widemargin::Result<_> {
        let context = Context::new().with_threads(threads)?.with_seed(seed);
        let compressed = match (name, &data) {
            ("max_loss", Some(data)) => {
                smallest_within(&original, data, amount, &compression, &context)?
            }
            _ => Some(compression.apply(&original, &context)?),
        };
        let Some(mut compressed) = compressed else { return Ok(None) };
        if let Some(data) = &data {
            compressed.model = recalibrate(data, compressed.model, &context)?;
        }
        Ok(Some(compressed))
    };
    let Some(compressed) = py.detach(run).map_err(exception)? else {
        let message = "no smaller model tried keeps the score asked for; allow a larger max_loss";
        return Err(PyValueError::new_err(message));
    };
    let reductions = compressed
        .functions
        .iter()
        .map(|f| (f.before, f.after, f.relative_residual, f.largest_difference));
    Ok((Model::new(compressed.model), reductions.collect()))
}

fn dataset(table: &Table<'_>, targets: Targets<'_>) -> PyResult<Dataset> {
    let labels = match targets {
        Targets::Numbers(values) => Labels::Real(slice(&values)?.to_vec()),
        Targets::Classes(codes, names) => {
            let names: Vec<_> = names.into_iter().map(Name::label).collect();
            class_labels(slice(&codes)?, &names)?
        }
    };
    Dataset::new(table.matrix()?, labels).map_err(exception)
}
