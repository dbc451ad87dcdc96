//! Learning from a stream, portion by portion.

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use widemargin::data::{Dataset, Label};
use widemargin::machine::OnlineLearner;

use crate::errors::exception;
use crate::machines::Settings;
use crate::model::Model;
use crate::table::Table;
use crate::training::{Name, class_labels, slice};

/// An online machine with what it has learnt so far.
#[pyclass(frozen)]
pub(crate) struct Learner {
    learner: Mutex<OnlineLearner>,
    names: Vec<Label>,
}

impl Learner {
    fn lock(&self) -> MutexGuard<'_, OnlineLearner> {
        self.learner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Learner {
    /// A machine for the given classes; `features` decides what the kernel's parameters become.
    #[new]
    fn new(settings: Settings, features: Table<'_>, classes: Vec<Name>) -> PyResult<Self> {
        let names: Vec<Label> = classes.into_iter().map(Name::label).collect();
        let learner = settings.learner(&features.matrix()?, names.clone())?;
        Ok(Self { learner: Mutex::new(learner), names })
    }

    /// A machine that goes on where `model` ended.
    #[staticmethod]
    fn resume(settings: Settings, model: &Model, classes: Vec<Name>) -> PyResult<Self> {
        let names: Vec<Label> = classes.into_iter().map(Name::label).collect();
        let learner = settings.resumed_learner(&model.shared(), names.clone())?;
        Ok(Self { learner: Mutex::new(learner), names })
    }

    /// Learns from rows, each once.
    #[pyo3(signature = (features, codes, weights=None))]
    fn partial_fit(
        &self,
        py: Python<'_>,
        features: Table<'_>,
        codes: PyReadonlyArray1<'_, i64>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<()> {
        let labels = class_labels(slice(&codes)?, &self.names)?;
        let mut data = Dataset::new(features.matrix()?, labels).map_err(exception)?;
        if let Some(weights) = weights {
            data = data.with_weights(slice(&weights)?.to_vec()).map_err(exception)?;
        }
        py.detach(|| self.lock().partial_fit(&data)).map_err(exception)
    }

    /// The model as it stands.
    fn model(&self) -> PyResult<Model> {
        Ok(Model::new(self.lock().model().map_err(exception)?))
    }
}
