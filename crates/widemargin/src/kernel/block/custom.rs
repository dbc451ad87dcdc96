//! Kernels that are a function of the user's, called on dense rows in double precision.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::super::CustomKernel;
use super::{PackedRows, Queries, check_columns, check_range};
use crate::data::Matrix;
use crate::error::{Error, Result};
use crate::numeric::simd::Real;

/// Rows of a user's kernel; `rows[i]` is the row of the table that packed row i is.
pub(super) struct Custom<T> {
    function: Function,
    matrix: Arc<Matrix>,
    rows: Vec<usize>,
    diagonal: Vec<T>,
}

/// The function, and its first value that was not finite in the precision.
#[derive(Clone)]
struct Function {
    kernel: CustomKernel,
    non_finite: Arc<OnceLock<f64>>,
}

/// Left rows of a user's kernel.
struct CustomRows {
    values: Vec<f64>,
    /// Rows of the packed table, where these are some of them.
    own: Option<Vec<usize>>,
}

impl Function {
    /// The value for two rows; one that is not finite is kept for the error.
    fn evaluate<T: Real>(&self, a: &[f64], b: &[f64]) -> T {
        let exact = self.kernel.evaluate(a, b);
        let value = T::from_f64(exact);
        if !value.is_finite() {
            self.non_finite.get_or_init(|| exact);
        }
        value
    }
}

impl<T: Real> Custom<T> {
    /// # Errors
    /// [`Error::Overflow`] when the value of a row with itself overflows.
    pub(super) fn new(kernel: &CustomKernel, matrix: &Matrix, order: &[usize]) -> Result<Self> {
        let function = Function { kernel: kernel.clone(), non_finite: Arc::default() };
        let matrix = Arc::new(matrix.select_rows(order));
        let mut row = vec![0.0; matrix.columns()];
        let (mut diagonal, mut sizes) = (Vec::new(), Vec::new());
        for (i, &from) in order.iter().enumerate() {
            matrix.copy_row(i, &mut row);
            let value = kernel.evaluate(&row, &row);
            sizes.push((from, value.abs()));
            diagonal.push(T::from_f64(value));
        }
        check_range::<T>(kernel.name(), sizes)?;
        Ok(Self { function, matrix, rows: (0..order.len()).collect(), diagonal })
    }
}

impl<T: Real> PackedRows<T> for Custom<T> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn columns(&self) -> usize {
        self.matrix.columns()
    }

    fn diagonal(&self) -> &[T] {
        &self.diagonal
    }

    fn products_per_value(&self) -> usize {
        usize::MAX
    }

    fn gather(&self, rows: &[usize]) -> Queries<T> {
        let width = self.matrix.columns();
        let own: Vec<usize> = rows.iter().map(|&row| self.rows[row]).collect();
        let mut values = vec![0.0; rows.len() * width];
        for (at, &row) in own.iter().enumerate() {
            self.matrix.copy_row(row, &mut values[at * width..(at + 1) * width]);
        }
        let diagonal = rows.iter().map(|&row| self.diagonal[row]).collect();
        Queries::new(rows.len(), Some(diagonal), CustomRows { values, own: Some(own) })
    }

    fn prepare(&self, queries: &Matrix, rows: &[usize]) -> Result<Queries<T>> {
        let width = self.matrix.columns();
        check_columns(width, queries)?;
        let mut values = vec![0.0; rows.len() * width];
        let mut diagonal = Vec::with_capacity(rows.len());
        for (at, &row) in rows.iter().enumerate() {
            let out = &mut values[at * width..(at + 1) * width];
            queries.copy_row(row, out);
            diagonal.push(T::from_f64(self.function.kernel.evaluate(out, out)));
        }
        Ok(Queries::new(rows.len(), Some(diagonal), CustomRows { values, own: None }))
    }

    /// Two of the packed rows are always given to the function in the same order; a value among them
    /// that is not finite becomes 0, so that a solver comes to an end and the error is reported.
    fn block(
        &self,
        left: &Queries<T>,
        rows: Range<usize>,
        columns: Range<usize>,
        out: &mut [&mut [T]],
    ) {
        let left: &CustomRows = left.packed();
        let width = self.matrix.columns();
        let mut right = vec![0.0; width];
        for (at, column) in columns.enumerate() {
            let id = self.rows[column];
            self.matrix.copy_row(id, &mut right);
            for (row, out) in rows.clone().zip(out.iter_mut()) {
                let row_values = &left.values[row * width..(row + 1) * width];
                let swapped = left.own.as_ref().is_some_and(|own| own[row] > id);
                let value: T = if swapped {
                    self.function.evaluate(&right, row_values)
                } else {
                    self.function.evaluate(row_values, &right)
                };
                let replaced = left.own.is_some() && !value.is_finite();
                out[at] = if replaced { T::ZERO } else { value };
            }
        }
    }

    fn subset(&self, keep: &[usize]) -> Arc<dyn PackedRows<T>> {
        Arc::new(Self {
            function: self.function.clone(),
            matrix: Arc::clone(&self.matrix),
            rows: keep.iter().map(|&row| self.rows[row]).collect(),
            diagonal: keep.iter().map(|&row| self.diagonal[row]).collect(),
        })
    }

    fn non_finite(&self) -> Option<Error> {
        self.function.non_finite.get().map(|value| {
            Error::kernel(
                self.function.kernel.name(),
                "finite values for all pairs of rows; scale the data",
                value,
            )
        })
    }
}
