//! NumPy's tables as the library's and back, without a copy where the layouts agree.

#![allow(unsafe_code)] // One slice is made from NumPy's memory, below.

use numpy::{
    Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use widemargin::data::{Csr, Dense, Layout, Matrix};

use crate::errors::exception;

/// A feature table from Python: a C-contiguous array of float32 or float64, or the parts
/// `(indptr, indices, values, columns)` of a sparse one with sorted indices.
#[derive(FromPyObject)]
pub(crate) enum Table<'py> {
    Single(PyReadonlyArray2<'py, f32>),
    Double(PyReadonlyArray2<'py, f64>),
    SparseSingle(Parts<'py, f32>),
    SparseDouble(Parts<'py, f64>),
}

type Parts<'py, T> =
    (PyReadonlyArray1<'py, i32>, PyReadonlyArray1<'py, i32>, PyReadonlyArray1<'py, T>, usize);

impl Table<'_> {
    /// The library's table; dense memory is shared with NumPy, sparse arrays are copied.
    ///
    /// Sparse tables with many non-zeros are stored dense, which is faster.
    pub(crate) fn matrix(&self) -> PyResult<Matrix> {
        match self {
            Self::Single(array) => share(array).map(Matrix::DenseF32),
            Self::Double(array) => share(array).map(Matrix::DenseF64),
            Self::SparseSingle(parts) => {
                Ok(Matrix::SparseF32(sparse(parts)?).into_layout(Layout::Auto))
            }
            Self::SparseDouble(parts) => {
                Ok(Matrix::SparseF64(sparse(parts)?).into_layout(Layout::Auto))
            }
        }
    }
}

/// Memory of a NumPy array, kept alive by a reference to the array.
struct Borrowed<T> {
    owner: Py<PyAny>,
    start: *const T,
    length: usize,
}

// SAFETY: the memory is only read through it, T is a plain number, and the reference to the owner
// is only dropped, which PyO3 allows on any thread.
unsafe impl<T: Sync> Send for Borrowed<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Borrowed<T> {}

impl<T> AsRef<[T]> for Borrowed<T> {
    fn as_ref(&self) -> &[T] {
        debug_assert!(!self.owner.as_ptr().is_null());
        // SAFETY: start and length are those of a C-contiguous array that `owner` keeps alive; as
        // everywhere in NumPy's world, nobody may write to an array that is being trained on.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

fn share<T: Element + Copy + Send + Sync + 'static>(
    array: &PyReadonlyArray2<'_, T>,
) -> PyResult<Dense<T>> {
    let values = array
        .as_slice()
        .map_err(|_| PyValueError::new_err("expected a C-contiguous array, found another"))?;
    let owner = array.as_any().clone().unbind();
    let shared = Borrowed { owner, start: values.as_ptr(), length: values.len() };
    let (rows, columns) = (array.shape()[0], array.shape()[1]);
    Dense::shared(rows, columns, Arc::new(shared)).map_err(exception)
}

fn sparse<T: Element + Copy>(parts: &Parts<'_, T>) -> PyResult<Csr<T>> {
    let (starts, indices, values, columns) = parts;
    let contiguous = |_| PyValueError::new_err("expected contiguous sparse arrays, found others");
    let negative = |_| PyValueError::new_err("expected sparse indices of at least 0");
    let starts = starts.as_slice().map_err(contiguous)?.iter();
    let indices = indices.as_slice().map_err(contiguous)?.iter();
    Csr::new(
        *columns,
        starts.map(|&i| usize::try_from(i)).collect::<Result<_, _>>().map_err(negative)?,
        indices.map(|&i| u32::try_from(i)).collect::<Result<_, _>>().map_err(negative)?,
        values.as_slice().map_err(contiguous)?.to_vec(),
    )
    .map_err(exception)
}

/// A run of rows; those of a shared dense table are shared again.
pub(crate) fn rows(matrix: &Matrix, range: Range<usize>) -> PyResult<Matrix> {
    struct Run<T>(Dense<T>, Range<usize>);
    impl<T: Copy> AsRef<[T]> for Run<T> {
        fn as_ref(&self) -> &[T] {
            let width = self.0.columns();
            &self.0.values()[self.1.start * width..self.1.end * width]
        }
    }
    fn run<T: Copy + Send + Sync + 'static>(
        dense: &Dense<T>,
        range: Range<usize>,
    ) -> PyResult<Dense<T>> {
        let shared = Arc::new(Run(dense.clone(), range.clone()));
        Dense::shared(range.len(), dense.columns(), shared).map_err(exception)
    }
    match matrix {
        Matrix::DenseF32(dense) => run(dense, range).map(Matrix::DenseF32),
        Matrix::DenseF64(dense) => run(dense, range).map(Matrix::DenseF64),
        sparse => Ok(sparse.select_rows(&range.collect::<Vec<_>>())),
    }
}

/// A table for Python: a two-dimensional array, or the parts of a sparse one.
pub(crate) fn to_python<'py>(py: Python<'py>, matrix: &Matrix) -> PyResult<Bound<'py, PyAny>> {
    fn dense<'py, T: Element + Copy>(
        py: Python<'py>,
        dense: &Dense<T>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let values = PyArray1::from_slice(py, dense.values());
        Ok(values.reshape([dense.rows(), dense.columns()])?.into_any())
    }
    fn sparse<'py, T: Element + Copy>(
        py: Python<'py>,
        csr: &Csr<T>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let starts: Vec<i32> = csr.indptr().iter().map(|&i| i as i32).collect();
        let indices: Vec<i32> = csr.indices().iter().map(|&i| i as i32).collect();
        let values = PyArray1::from_slice(py, csr.values());
        let parts = (starts.into_pyarray(py), indices.into_pyarray(py), values, csr.columns());
        Ok(parts.into_pyobject(py)?.into_any())
    }
    match matrix {
        Matrix::DenseF32(m) => dense(py, m),
        Matrix::DenseF64(m) => dense(py, m),
        Matrix::SparseF32(m) => sparse(py, m),
        Matrix::SparseF64(m) => sparse(py, m),
    }
}

/// Values of one row per entry of the first axis.
pub(crate) fn array2<T: Element>(
    py: Python<'_>,
    values: Vec<T>,
    shape: [usize; 2],
) -> PyResult<Bound<'_, PyArray2<T>>> {
    values.into_pyarray(py).reshape(shape)
}
