//! Features that approximate a kernel, for scikit-learn's pipelines.

use numpy::PyArray2;
use pyo3::prelude::*;
use widemargin::Context;
use widemargin::data::Matrix;
use widemargin::kernel::FeatureMap as Learnt;
use widemargin::machine::Gamma;

use crate::errors::exception;
use crate::table::{Table, array2};

/// A map that was learnt; immutable.
#[pyclass(frozen, module = "widemargin._core")]
pub(crate) struct FeatureMap {
    map: Learnt,
}

#[pymethods]
impl FeatureMap {
    /// Learns the map that `rule` names on the rows of a table.
    #[staticmethod]
    fn fit(
        py: Python<'_>,
        rule: &str,
        gamma: &str,
        seed: u64,
        features: Table<'_>,
    ) -> PyResult<Self> {
        let matrix = features.matrix()?;
        let (rule, gamma): (widemargin::kernel::MapRule, Gamma) =
            (rule.parse().map_err(exception)?, gamma.parse().map_err(exception)?);
        let context = Context::new().with_seed(seed);
        let fit = || rule.fit(&matrix, gamma.resolve(&matrix), &context);
        py.detach(fit).map(|map| Self { map }).map_err(exception)
    }

    /// The features of rows, in single precision.
    fn transform<'py>(
        &self,
        py: Python<'py>,
        features: Table<'py>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let matrix = features.matrix()?;
        let mapped = py.detach(|| {
            let context = Context::new().with_threads(threads)?;
            self.map.transform(&matrix, &context)
        });
        let Matrix::DenseF32(mapped) = mapped.map_err(exception)? else {
            unreachable!("maps make dense features of single precision")
        };
        array2(py, mapped.values().to_vec(), [mapped.rows(), mapped.columns()])
    }

    /// The map as text, for pickles.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((slf.get_type().getattr("from_text")?, (slf.get().map.to_text(),)))
    }

    /// The map that a text describes.
    #[staticmethod]
    fn from_text(text: &str) -> PyResult<Self> {
        Learnt::from_text(text).map(|map| Self { map }).map_err(exception)
    }

    /// Number of features it makes.
    #[getter]
    fn outputs(&self) -> usize {
        self.map.outputs()
    }
}
