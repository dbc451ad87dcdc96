//! Smaller models for Python.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use widemargin::operation::calibrate::recalibrate;
use widemargin::operation::compress::{
    CompressionMethod, CompressionTarget, ModelCompression, smallest_within,
};
use widemargin::{CancelToken, Context};

use crate::errors::exception;
use crate::machines::context;
use crate::model::Model;
use crate::table::Table;
use crate::training::{Targets, dataset, run_observed};

/// Vectors before and after, relative residual and largest difference of a function.
type Reduction = (usize, usize, f64, f64);

/// Compresses a model as far as `target` says: ``("ratio", share)``, ``("vectors", count)``, ``("max_difference",
/// difference)``, ``("lossless", 0)`` or ``("max_loss", loss)``, the last on the rows of `held_out`. A
/// model with probabilities is calibrated again on those rows. Ctrl-C ends it.
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
    let method: CompressionMethod = method.parse().map_err(exception)?;
    let (name, amount) = (target.0.as_str(), target.1);
    let target = match name {
        "ratio" => CompressionTarget::Ratio(amount),
        "max_difference" => CompressionTarget::Difference(amount),
        "vectors" => CompressionTarget::Vectors(amount as usize),
        "lossless" => CompressionTarget::Lossless,
        "max_loss" => CompressionTarget::Vectors(1),
        _ => return Err(PyValueError::new_err(format!("an unknown target: {name}"))),
    };
    let usual = ModelCompression::new(target);
    let shared = shared.unwrap_or(usual.shared);
    let compression = ModelCompression { method, shared, refinement, ..usual };
    let data = held_out.map(|(table, targets)| dataset(&table, Some(targets))).transpose()?;
    let original = model.shared();
    let cancel = CancelToken::new();
    let context = context(threads, seed, cancel.clone())?;
    let by_loss = name == "max_loss";
    let work = move |context: &Context| {
        let compressed = match &data {
            Some(data) if by_loss => {
                smallest_within(&original, data, amount, &compression, context)?
            }
            _ => Some(compression.apply(&original, context)?),
        };
        let Some(mut compressed) = compressed else { return Ok(None) };
        if let Some(data) = &data {
            compressed.model = recalibrate(data, compressed.model, context)?;
        }
        Ok(Some(compressed))
    };
    let (compressed, _) = run_observed(py, context, cancel, None, work)?;
    let Some(compressed) = compressed else {
        let message = "no smaller model tried keeps the score asked for; allow a larger max_loss";
        return Err(PyValueError::new_err(message));
    };
    let reductions = compressed
        .functions
        .iter()
        .map(|f| (f.before, f.after, f.relative_residual, f.largest_difference));
    Ok((Model::new(compressed.model), reductions.collect()))
}
