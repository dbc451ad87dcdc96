//! The precomputed kernel: values of a table that the user supplies, read where they are.

use std::any::Any;
use std::ops::Range;

use crate::data::{Dense, Matrix};
use crate::error::{Error, Result};
use crate::numeric::simd::Real;

/// Mean length of runs of neighbouring columns from which runs are copied as a whole.
const LONG_RUN: usize = 8;

/// Rows of a table of kernel values; `columns[j]` is the place of packed row j among all training
/// rows, hence its column in every table of values.
#[derive(Clone)]
pub(super) struct Given<T: Copy> {
    /// The values of all training rows; `None` where only foreign rows are multiplied.
    table: Option<Dense<T>>,
    width: usize,
    columns: Vec<usize>,
    /// End of the run of neighbouring columns that each packed row stands in, if runs are long.
    runs: Option<Vec<usize>>,
}

/// Left rows: some rows of a table.
#[derive(Clone)]
pub(super) struct GivenRows<T: Copy> {
    table: Dense<T>,
    rows: Vec<usize>,
}

impl<T: Real> Given<T> {
    /// Takes the table of all training rows and uses those named by `order`.
    ///
    /// # Errors
    /// [`Error::Kernel`] when the table is not square.
    pub(super) fn new(matrix: &Matrix, order: &[usize]) -> Result<Self> {
        if matrix.columns() != matrix.rows() {
            return Err(Error::Kernel {
                kernel: "precomputed".into(),
                expected: "as many columns as training rows".into(),
                found: format!("{} rows and {} columns", matrix.rows(), matrix.columns()),
            });
        }
        let all: Vec<usize> = (0..matrix.rows()).collect();
        let table = same_precision(matrix).unwrap_or_else(|| converted(matrix, &all));
        Ok(Self::with_columns(Some(table), matrix.columns(), order.to_vec()))
    }

    /// Only the columns of foreign tables of at least `width` columns; no own values.
    pub(super) fn of_columns(width: usize, columns: &[usize]) -> Self {
        Self::with_columns(None, width, columns.to_vec())
    }

    fn with_columns(table: Option<Dense<T>>, width: usize, columns: Vec<usize>) -> Self {
        let runs = || columns.chunk_by(|a, b| a + 1 == *b);
        let long = columns.len() >= LONG_RUN * runs().count();
        let runs = long.then(|| {
            let mut ends = Vec::with_capacity(columns.len());
            for run in runs() {
                ends.resize(ends.len() + run.len(), ends.len() + run.len());
            }
            ends
        });
        Self { table, width, columns, runs }
    }

    /// Number of columns a row has to have.
    pub(super) fn columns(&self) -> usize {
        self.width
    }

    /// K(i, i) of the packed rows; empty without own values.
    pub(super) fn diagonal(&self) -> Vec<T> {
        let own = |table: &Dense<T>| self.columns.iter().map(|&i| table.row(i)[i]).collect();
        self.table.as_ref().map_or_else(Vec::new, own)
    }

    pub(super) fn prepare(&self, matrix: &Matrix, rows: &[usize]) -> GivenRows<T> {
        match same_precision(matrix) {
            Some(table) => GivenRows { table, rows: rows.to_vec() },
            None => GivenRows { table: converted(matrix, rows), rows: (0..rows.len()).collect() },
        }
    }

    /// # Panics
    /// Without own values.
    pub(super) fn gather(&self, rows: &[usize]) -> GivenRows<T> {
        let table = self.table.clone().expect("rows of its own");
        GivenRows { table, rows: rows.iter().map(|&row| self.columns[row]).collect() }
    }

    pub(super) fn subset(&self, keep: &[usize]) -> Self {
        let columns = keep.iter().map(|&row| self.columns[row]).collect();
        Self::with_columns(self.table.clone(), self.width, columns)
    }

    pub(super) fn product(
        &self,
        left: &GivenRows<T>,
        rows: Range<usize>,
        columns: Range<usize>,
        out: &mut [&mut [T]],
    ) {
        for (&row, out) in left.rows[rows].iter().zip(out) {
            let values = left.table.row(row);
            match &self.runs {
                Some(ends) => {
                    let mut j = columns.start;
                    while j < columns.end {
                        let end = ends[j].min(columns.end);
                        let from = self.columns[j];
                        out[j - columns.start..end - columns.start]
                            .copy_from_slice(&values[from..from + end - j]);
                        j = end;
                    }
                }
                None => {
                    for (place, &column) in out.iter_mut().zip(&self.columns[columns.clone()]) {
                        *place = values[column];
                    }
                }
            }
        }
    }
}

/// The values themselves, if they are dense and of precision `T`.
fn same_precision<T: Real>(matrix: &Matrix) -> Option<Dense<T>> {
    let dense: &dyn Any = match matrix {
        Matrix::DenseF32(dense) => dense,
        Matrix::DenseF64(dense) => dense,
        Matrix::SparseF32(_) | Matrix::SparseF64(_) => return None,
    };
    dense.downcast_ref::<Dense<T>>().cloned()
}

/// The values of some rows, rounded to `T`.
fn converted<T: Real>(matrix: &Matrix, rows: &[usize]) -> Dense<T> {
    let width = matrix.columns();
    let mut values = vec![T::ZERO; rows.len() * width];
    for (&row, out) in rows.iter().zip(values.chunks_exact_mut(width.max(1))) {
        matrix.for_each_nonzero(row, |column, value| out[column] = T::from_f64(value));
    }
    Dense::new(rows.len(), width, values).expect("one value per place")
}
