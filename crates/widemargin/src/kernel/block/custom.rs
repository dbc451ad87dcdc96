//! Kernels that are a function of the user's, called on dense rows in double precision.

use std::ops::Range;
use std::sync::Arc;

use super::super::CustomKernel;
use crate::data::Matrix;
use crate::numeric::simd::Real;

/// Rows of a user's kernel; `rows[i]` is the row of the table that packed row i is.
#[derive(Clone)]
pub(super) struct Custom {
    kernel: CustomKernel,
    matrix: Arc<Matrix>,
    rows: Vec<usize>,
}

/// Left rows of a user's kernel.
#[derive(Clone)]
pub(super) struct CustomRows {
    values: Vec<f64>,
    /// Rows of the engine's table, where these are some of them.
    own: Option<Vec<usize>>,
}

impl Custom {
    pub(super) fn new(kernel: &CustomKernel, matrix: &Matrix, order: &[usize]) -> Self {
        let matrix = Arc::new(matrix.select_rows(order));
        Self { kernel: kernel.clone(), matrix, rows: (0..order.len()).collect() }
    }

    /// Number of columns a row has to have.
    pub(super) fn columns(&self) -> usize {
        self.matrix.columns()
    }

    /// K(i, i) of the packed rows.
    pub(super) fn diagonal<T: Real>(&self) -> Vec<T> {
        let mut row = vec![0.0; self.columns()];
        let value = |&i: &usize| {
            self.matrix.copy_row(i, &mut row);
            T::from_f64(self.kernel.evaluate(&row, &row))
        };
        self.rows.iter().map(value).collect()
    }

    /// Foreign rows and their similarities with themselves.
    pub(super) fn prepare<T: Real>(&self, matrix: &Matrix, rows: &[usize]) -> (CustomRows, Vec<T>) {
        let width = self.columns();
        let mut values = vec![0.0; rows.len() * width];
        let mut own = Vec::with_capacity(rows.len());
        for (at, &row) in rows.iter().enumerate() {
            let out = &mut values[at * width..(at + 1) * width];
            matrix.copy_row(row, out);
            own.push(T::from_f64(self.kernel.evaluate(out, out)));
        }
        (CustomRows { values, own: None }, own)
    }

    pub(super) fn gather(&self, rows: &[usize]) -> CustomRows {
        let width = self.columns();
        let own: Vec<usize> = rows.iter().map(|&row| self.rows[row]).collect();
        let mut values = vec![0.0; rows.len() * width];
        for (at, &row) in own.iter().enumerate() {
            self.matrix.copy_row(row, &mut values[at * width..(at + 1) * width]);
        }
        CustomRows { values, own: Some(own) }
    }

    pub(super) fn subset(&self, keep: &[usize]) -> Self {
        let rows = keep.iter().map(|&row| self.rows[row]).collect();
        Self { kernel: self.kernel.clone(), matrix: Arc::clone(&self.matrix), rows }
    }

    /// Two of the engine's rows are always given to the function in the same order.
    pub(super) fn product<T: Real>(
        &self,
        left: &CustomRows,
        rows: Range<usize>,
        columns: Range<usize>,
        out: &mut [&mut [T]],
    ) {
        let width = self.columns();
        let mut right = vec![0.0; width];
        for (at, column) in columns.enumerate() {
            let id = self.rows[column];
            self.matrix.copy_row(id, &mut right);
            for (row, out) in rows.clone().zip(out.iter_mut()) {
                let row_values = &left.values[row * width..(row + 1) * width];
                let swapped = left.own.as_ref().is_some_and(|own| own[row] > id);
                let value = if swapped {
                    self.kernel.evaluate(&right, row_values)
                } else {
                    self.kernel.evaluate(row_values, &right)
                };
                out[at] = T::from_f64(value);
            }
        }
    }
}
