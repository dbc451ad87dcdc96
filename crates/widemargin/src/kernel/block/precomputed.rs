//! The precomputed kernel: values of a table that the user supplies, read where they are.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use super::{PackedRows, Queries, check_range};
use crate::data::{Dense, Matrix};
use crate::error::{Error, Result};
use crate::numeric::simd::Real;

/// Mean length of runs of neighbouring columns from which runs are copied as a whole.
const LONG_RUN: usize = 8;

/// Rows of a table of kernel values; `columns[j]` is the place of packed row j among all training
/// rows, hence its column in every table of values.
pub(super) struct Precomputed<T: Copy> {
    /// The values of all training rows; `None` where only query rows are multiplied.
    table: Option<Dense<T>>,
    width: usize,
    columns: Vec<usize>,
    /// End of the run of neighbouring columns that each packed row stands in, if runs are long.
    runs: Option<Vec<usize>>,
    diagonal: Vec<T>,
}

/// Left rows: some rows of a table.
struct TableRows<T: Copy> {
    table: Dense<T>,
    rows: Vec<usize>,
}

impl<T: Real> Precomputed<T> {
    /// Takes the table of all training rows and uses those named by `order`.
    ///
    /// # Errors
    /// [`Error::Kernel`] when the table is not square, [`Error::Overflow`] when a value is too large
    /// for the precision.
    pub(super) fn new(matrix: &Matrix, order: &[usize]) -> Result<Self> {
        if matrix.columns() != matrix.rows() {
            return Err(Error::kernel(
                "precomputed",
                "as many columns as training rows",
                format!("{} rows and {} columns", matrix.rows(), matrix.columns()),
            ));
        }
        let all: Vec<usize> = (0..matrix.rows()).collect();
        let table: Dense<T> = table_of(matrix, &all)?;
        let sizes = order.iter().map(|&row| (row, table.row(row)[row].to_f64().abs()));
        check_range::<T>("precomputed", sizes)?;
        Ok(Self::with_columns(Some(table), matrix.columns(), order.to_vec()))
    }

    /// Takes a square table of the values of all packed rows.
    pub(super) fn of_table(table: Dense<T>) -> Self {
        let order = table.rows();
        Self::with_columns(Some(table), order, (0..order).collect())
    }

    /// Only the columns of query tables of at least `width` columns; no values of packed rows.
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
        let own = |table: &Dense<T>| columns.iter().map(|&i| table.row(i)[i]).collect();
        let diagonal = table.as_ref().map_or_else(Vec::new, own);
        Self { table, width, columns, runs, diagonal }
    }
}

impl<T: Real> PackedRows<T> for Precomputed<T> {
    fn len(&self) -> usize {
        self.columns.len()
    }

    fn columns(&self) -> usize {
        self.width
    }

    fn diagonal(&self) -> &[T] {
        &self.diagonal
    }

    fn products_per_value(&self) -> usize {
        1
    }

    /// # Panics
    /// Without values of packed rows.
    fn gather(&self, rows: &[usize]) -> Queries<T> {
        let table = self.table.clone().expect("values of packed rows");
        let diagonal = rows.iter().map(|&row| self.diagonal[row]).collect();
        let left = TableRows { table, rows: rows.iter().map(|&row| self.columns[row]).collect() };
        Queries::new(rows.len(), Some(diagonal), left)
    }

    fn prepare(&self, queries: &Matrix, rows: &[usize]) -> Result<Queries<T>> {
        if queries.columns() < self.width {
            return Err(Error::length("features", self.width, queries.columns()));
        }
        let left = match same_precision::<T>(queries) {
            Some(table) => TableRows { table, rows: rows.to_vec() },
            None => TableRows { table: table_of(queries, rows)?, rows: (0..rows.len()).collect() },
        };
        Ok(Queries::new(rows.len(), None, left))
    }

    fn block(
        &self,
        left: &Queries<T>,
        rows: Range<usize>,
        columns: Range<usize>,
        out: &mut [&mut [T]],
    ) {
        let left: &TableRows<T> = left.packed();
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

    fn subset(&self, keep: &[usize]) -> Arc<dyn PackedRows<T>> {
        let columns = keep.iter().map(|&row| self.columns[row]).collect();
        Arc::new(Self::with_columns(self.table.clone(), self.width, columns))
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

/// The values of some rows in precision `T`; without a copy where all are wanted and have it.
fn table_of<T: Real>(matrix: &Matrix, rows: &[usize]) -> Result<Dense<T>> {
    if rows.len() == matrix.rows()
        && let Some(table) = same_precision(matrix)
    {
        return Ok(table);
    }
    let width = matrix.columns();
    let mut values = vec![T::ZERO; rows.len() * width];
    for (&row, out) in rows.iter().zip(values.chunks_exact_mut(width.max(1))) {
        let mut largest = 0.0_f64;
        matrix.for_each_nonzero(row, |column, value| {
            out[column] = T::from_f64(value);
            largest = largest.max(value.abs());
        });
        check_range::<T>("precomputed", [(row, largest)])?;
    }
    Dense::new(rows.len(), width, values)
}
