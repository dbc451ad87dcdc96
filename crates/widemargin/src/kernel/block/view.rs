//! A kernel of some of the columns of the rows.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use super::{KernelBlocks, PackedRows, Queries};
use crate::data::Matrix;
use crate::error::{Error, Result};
use crate::numeric::simd::Real;

/// Rows of some columns, packed for a kernel.
pub(super) struct View<T: Real> {
    columns: Vec<Range<usize>>,
    /// Number of columns of whole rows.
    width: usize,
    inner: KernelBlocks<T>,
}

impl<T: Real> View<T> {
    /// `inner` holds the columns `columns` of rows that have `width`.
    pub(super) fn new(columns: Vec<Range<usize>>, width: usize, inner: KernelBlocks<T>) -> Self {
        Self { columns, width, inner }
    }
}

impl<T: Real> PackedRows<T> for View<T> {
    fn len(&self) -> usize {
        self.inner.len()
    }

    fn columns(&self) -> usize {
        self.width
    }

    fn diagonal(&self) -> &[T] {
        self.inner.diagonal()
    }

    fn products_per_value(&self) -> usize {
        self.inner.products_per_value()
    }

    fn gather(&self, rows: &[usize]) -> Queries<T> {
        self.inner.gather(rows)
    }

    fn prepare(&self, queries: &Matrix, rows: &[usize]) -> Result<Queries<T>> {
        if queries.columns() != self.width {
            return Err(Error::length("features", self.width, queries.columns()));
        }
        let view = queries.select_rows(rows).select_columns(&self.columns)?;
        self.inner.prepare(&view, 0..rows.len())
    }

    fn block(
        &self,
        left: &Queries<T>,
        rows: Range<usize>,
        columns: Range<usize>,
        out: &mut [&mut [T]],
    ) {
        self.inner.query_rows(left, rows, columns, out);
    }

    fn subset(&self, keep: &[usize]) -> Arc<dyn PackedRows<T>> {
        let inner = self.inner.subset(keep);
        Arc::new(Self { columns: self.columns.clone(), width: self.width, inner })
    }

    fn shared(&self) -> Option<&dyn Any> {
        self.inner.packed.shared()
    }

    fn non_finite(&self) -> Option<Error> {
        self.inner.check_values().err()
    }
}
