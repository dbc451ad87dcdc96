//! What is done to Gram matrices before kernels are combined.

use numpy::{PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use widemargin::kernel::{Gram, Repair};
use widemargin::{Context, Error};

use crate::errors::exception;
use crate::table::array2;

fn gram(values: &PyReadonlyArray2<'_, f64>) -> PyResult<Gram> {
    let values = values.as_array();
    if values.nrows() != values.ncols() {
        return Err(exception(Error::Kernel {
            kernel: "precomputed".into(),
            expected: format!("a square matrix of {} rows", values.nrows()),
            found: format!("{} columns", values.ncols()),
        }));
    }
    Gram::new(values.nrows(), values.iter().copied().collect()).map_err(exception)
}

fn array<'py>(py: Python<'py>, gram: &Gram) -> PyResult<Bound<'py, PyArray2<f64>>> {
    array2(py, gram.values().to_vec(), [gram.order(), gram.order()])
}

/// The matrix scaled to a trace, and the factor.
#[pyfunction]
pub(crate) fn gram_scaled<'py>(
    py: Python<'py>,
    values: PyReadonlyArray2<'py, f64>,
    trace: f64,
) -> PyResult<(Bound<'py, PyArray2<f64>>, f64)> {
    let mut gram = gram(&values)?;
    let factor = gram.scale_to_trace(trace).map_err(exception)?;
    Ok((array(py, &gram)?, factor))
}

/// The matrix centred in feature space.
#[pyfunction]
pub(crate) fn gram_centred<'py>(
    py: Python<'py>,
    values: PyReadonlyArray2<'py, f64>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let mut gram = gram(&values)?;
    gram.centre();
    array(py, &gram)
}

/// The matrix of cosines in feature space.
#[pyfunction]
pub(crate) fn gram_cosine<'py>(
    py: Python<'py>,
    values: PyReadonlyArray2<'py, f64>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let mut gram = gram(&values)?;
    gram.normalise_cosine();
    array(py, &gram)
}

/// The matrix made positive semidefinite, and its smallest and largest eigenvalue before.
#[pyfunction]
pub(crate) fn gram_repaired<'py>(
    py: Python<'py>,
    values: PyReadonlyArray2<'py, f64>,
    how: &str,
) -> PyResult<(Bound<'py, PyArray2<f64>>, f64, f64)> {
    let (mut gram, how): (Gram, Repair) = (gram(&values)?, how.parse().map_err(exception)?);
    let found = py.detach(|| gram.repair(how, &Context::new())).map_err(exception)?;
    Ok((array(py, &gram)?, found.smallest, found.largest))
}

/// The centred alignment of two matrices over the same rows.
#[pyfunction]
pub(crate) fn gram_alignment(
    left: PyReadonlyArray2<'_, f64>,
    right: PyReadonlyArray2<'_, f64>,
) -> PyResult<f64> {
    gram(&left)?.centred_alignment(&gram(&right)?).map_err(exception)
}
