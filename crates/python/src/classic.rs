//! What the models of classical machines know.

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use widemargin::machine::{Body, Model};

/// What a classical machine left in a model, by name.
pub(crate) fn describe<'py>(py: Python<'py>, model: &Model) -> PyResult<Bound<'py, PyDict>> {
    let items = PyDict::new(py);
    let array = |values: &[f64]| values.to_vec().into_pyarray(py);
    match &model.body {
        Body::Discriminant(part) => {
            items.set_item("ratios", array(&part.ratios))?;
            items.set_item("separability", part.separability)?;
            items.set_item("feature_scores", array(&part.feature_scores))?;
            items.set_item("regularisation", part.regularisation)?;
            items.set_item("directions", part.projections.len())?;
        }
        Body::Mixtures(part) => {
            items.set_item("covariance", part.covariance.to_string())?;
            items.set_item("components", part.components.clone())?;
            items.set_item("weights", array(&part.weights))?;
            items.set_item("covariances", array(&part.covariances))?;
            items.set_item("log_priors", array(&part.log_priors))?;
            items.set_item("log_likelihood", part.log_likelihood)?;
            let parameters: usize = part
                .components
                .iter()
                .map(|&count| {
                    let features = model.features();
                    count - 1 + count * features + part.covariance.parameters(count, features)
                })
                .sum();
            items.set_item("parameters", parameters)?;
        }
        Body::Neighbours(part) => {
            items.set_item("k", part.k)?;
            items.set_item("weights", part.weighting.to_string())?;
            items.set_item("targets", array(&part.targets))?;
        }
        Body::Windows(part) => {
            items.set_item("window", part.window.to_string())?;
            items.set_item("input", part.input.to_string())?;
            items.set_item("widths", array(&part.widths))?;
            items.set_item("log_priors", array(&part.log_priors))?;
        }
        Body::MarginClusters(part) => {
            let labels: Vec<f64> = part.labels.iter().map(|&label| label as f64).collect();
            items.set_item("labels", array(&labels))?;
            items.set_item("objective", part.objective)?;
            items.set_item("relaxation", part.relaxation)?;
            items.set_item("bound", part.bound)?;
            items.set_item("gap", part.gap())?;
            items.set_item("label_gap", part.label_gap())?;
        }
        _ => {}
    }
    Ok(items)
}
