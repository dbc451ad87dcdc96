//! Kernels of strings: lists of Python's strings as rows of characters, and the values between them.

use numpy::PyArray2;
use pyo3::prelude::*;
use widemargin::data::{Layout, Matrix};
use widemargin::kernel::{Kernel, SubstringFeatures as Learnt};
use widemargin::machine::{KernelDefaults, KernelExpression};
use widemargin::{Context, Error};

use crate::errors::exception;
use crate::table::{Table, array2, to_python};

fn parsed(text: &str) -> PyResult<KernelExpression> {
    KernelExpression::parse(text, KernelDefaults::default()).map_err(exception)
}

/// Whether a kernel expression compares strings.
#[pyfunction]
pub(crate) fn compares_strings(kernel: &str) -> PyResult<bool> {
    Ok(parsed(kernel)?.compares_strings())
}

/// Rows of characters as sparse arrays.
#[pyfunction]
pub(crate) fn string_rows<'py>(
    py: Python<'py>,
    strings: Vec<String>,
) -> PyResult<Bound<'py, PyAny>> {
    to_python(py, &Matrix::of_strings(strings).map_err(exception)?)
}

/// The kernel values of rows with other rows, which also say what the kernel takes from the data.
#[pyfunction]
pub(crate) fn kernel_values<'py>(
    py: Python<'py>,
    kernel: &str,
    queries: Table<'py>,
    rows: Table<'py>,
    threads: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (queries, rows) = (queries.matrix()?, rows.matrix()?);
    let kernel = parsed(kernel)?.resolve(&rows).map_err(exception)?;
    let values = py.detach(|| {
        let context = Context::new().with_threads(threads)?;
        kernel.values(&queries, &rows, &context)
    });
    let values = values.map_err(exception)?;
    array2(py, values.values().to_vec(), [values.rows(), values.columns()])
}

/// What pickles call, and with which arguments: a kernel and substrings.
type Reduced<'py> = (Bound<'py, PyAny>, (String, Vec<String>));

/// The substrings of some strings as features; immutable.
#[pyclass(frozen, module = "widemargin._core")]
pub(crate) struct SubstringFeatures {
    kernel: String,
    features: Learnt,
}

#[pymethods]
impl SubstringFeatures {
    /// The substrings of strings that a spectrum kernel counts.
    #[staticmethod]
    fn fit(py: Python<'_>, kernel: &str, strings: Vec<String>) -> PyResult<Self> {
        let rows = Matrix::of_strings(strings).map_err(exception)?;
        let Kernel::String(parameters) = parsed(kernel)?.resolve(&rows).map_err(exception)? else {
            let (expected, found) = ("a kernel of strings".into(), kernel.to_owned());
            return Err(exception(Error::Kernel { kernel: kernel.to_owned(), expected, found }));
        };
        let features = py.detach(|| Learnt::fit(parameters, &rows)).map_err(exception)?;
        Ok(Self { kernel: kernel.to_owned(), features })
    }

    /// The counts in strings, as sparse arrays.
    fn transform<'py>(&self, py: Python<'py>, strings: Vec<String>) -> PyResult<Bound<'py, PyAny>> {
        let rows = Matrix::of_strings(strings).map_err(exception)?;
        let table = py.detach(|| self.features.transform(&rows)).map_err(exception)?;
        to_python(py, &table.into_layout(Layout::Sparse))
    }

    /// The substrings.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.features.names().to_vec()
    }

    /// The kernel and the substrings, for pickles: they make the same features again.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let this = slf.get();
        Ok((slf.get_type().getattr("fit")?, (this.kernel.clone(), this.names())))
    }
}
