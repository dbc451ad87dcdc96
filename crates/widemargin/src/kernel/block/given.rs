//! The precomputed kernel: values of a table that the user supplies.

use std::ops::Range;
use std::sync::Arc;

use super::super::simd::Real;
use crate::data::Matrix;
use crate::error::{Error, Result};

/// Rows of a table of kernel values; `columns[j]` is the place of packed row j among all training
/// rows, hence its column in every table of values.
#[derive(Clone)]
pub(super) struct Given<T> {
    table: Arc<Vec<T>>,
    width: usize,
    columns: Vec<usize>,
}

/// Left rows of a table.
#[derive(Clone)]
pub(super) struct GivenRows<T> {
    values: Vec<T>,
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
        let table = Arc::new(read(matrix, 0..matrix.rows()));
        Ok(Self { table, width: matrix.columns(), columns: order.to_vec() })
    }

    /// Only the columns of foreign tables of `width` columns; no own values.
    pub(super) fn of_columns(width: usize, columns: &[usize]) -> Self {
        Self { table: Arc::new(Vec::new()), width, columns: columns.to_vec() }
    }

    /// Number of columns a row has to have.
    pub(super) fn columns(&self) -> usize {
        self.width
    }

    /// K(i, i) of the packed rows; empty without own values.
    pub(super) fn diagonal(&self) -> Vec<T> {
        if self.table.is_empty() {
            return Vec::new();
        }
        self.columns.iter().map(|&i| self.table[i * self.width + i]).collect()
    }

    pub(super) fn prepare(&self, matrix: &Matrix, range: Range<usize>) -> GivenRows<T> {
        GivenRows { values: read(matrix, range) }
    }

    pub(super) fn gather(&self, rows: &[usize]) -> GivenRows<T> {
        let mut values = Vec::with_capacity(rows.len() * self.width);
        for &row in rows {
            let start = self.columns[row] * self.width;
            values.extend_from_slice(&self.table[start..start + self.width]);
        }
        GivenRows { values }
    }

    pub(super) fn subset(&self, keep: &[usize]) -> Self {
        let columns = keep.iter().map(|&row| self.columns[row]).collect();
        Self { table: Arc::clone(&self.table), width: self.width, columns }
    }

    pub(super) fn product(
        &self,
        left: &GivenRows<T>,
        rows: Range<usize>,
        columns: Range<usize>,
        out: &mut [&mut [T]],
    ) {
        let columns = &self.columns[columns];
        for (row, out) in rows.zip(out) {
            let values = &left.values[row * self.width..(row + 1) * self.width];
            for (place, &column) in out.iter_mut().zip(columns) {
                *place = values[column];
            }
        }
    }
}

fn read<T: Real>(matrix: &Matrix, rows: Range<usize>) -> Vec<T> {
    let width = matrix.columns();
    let mut values = vec![T::ZERO; rows.len() * width];
    for (row, out) in rows.zip(values.chunks_exact_mut(width.max(1))) {
        matrix.for_each_nonzero(row, |column, value| out[column] = T::from_f64(value));
    }
    values
}
