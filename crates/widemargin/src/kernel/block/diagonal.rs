//! A kernel with a number added to the similarity of every packed row with itself.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use super::{KernelBlocks, PackedRows, Queries};
use crate::data::Matrix;
use crate::error::{Error, Result};
use crate::numeric::simd::Real;

/// K + cI over packed rows; rows of other data are never a packed one, whatever their features.
pub(super) struct WithDiagonal<T: Real> {
    inner: KernelBlocks<T>,
    added: T,
    diagonal: Vec<T>,
    /// What tells packed rows apart, also those of a subset.
    names: Vec<usize>,
}

/// Left rows, with the names of those that are packed ones.
struct Left<T> {
    names: Vec<usize>,
    inner: Queries<T>,
}

impl<T: Real> WithDiagonal<T> {
    pub(super) fn new(inner: KernelBlocks<T>, added: T) -> Self {
        let diagonal = inner.diagonal().iter().map(|&value| value + added).collect();
        let names = (0..inner.len()).collect();
        Self { inner, added, diagonal, names }
    }

    /// The kernel without what was added.
    pub(super) fn inner(&self) -> &KernelBlocks<T> {
        &self.inner
    }

    /// The rows `keep`, packed in `inner`.
    pub(super) fn over(&self, inner: KernelBlocks<T>, keep: &[usize]) -> Self {
        let diagonal = keep.iter().map(|&row| self.diagonal[row]).collect();
        let names = keep.iter().map(|&row| self.names[row]).collect();
        Self { inner, added: self.added, diagonal, names }
    }
}

impl<T: Real> PackedRows<T> for WithDiagonal<T> {
    fn len(&self) -> usize {
        self.inner.len()
    }

    fn columns(&self) -> usize {
        self.inner.columns()
    }

    fn diagonal(&self) -> &[T] {
        &self.diagonal
    }

    fn products_per_value(&self) -> usize {
        self.inner.products_per_value()
    }

    fn gather(&self, rows: &[usize]) -> Queries<T> {
        let names = rows.iter().map(|&row| self.names[row]).collect();
        let diagonal = rows.iter().map(|&row| self.diagonal[row]).collect();
        Queries::new(rows.len(), Some(diagonal), Left { names, inner: self.inner.gather(rows) })
    }

    fn prepare(&self, queries: &Matrix, rows: &[usize]) -> Result<Queries<T>> {
        let inner = self.inner.prepare_rows(queries, rows)?;
        let diagonal = inner.diagonal.clone();
        Ok(Queries::new(rows.len(), diagonal, Left { names: Vec::new(), inner }))
    }

    fn block(
        &self,
        left: &Queries<T>,
        rows: Range<usize>,
        columns: Range<usize>,
        out: &mut [&mut [T]],
    ) {
        let left: &Left<T> = left.packed();
        self.inner.query_rows(&left.inner, rows.clone(), columns.clone(), out);
        if left.names.is_empty() {
            return;
        }
        let names = &self.names[columns];
        // Names ascend in every subset that is made of ascending rows.
        let ascending = names.is_sorted();
        for (name, out) in left.names[rows].iter().zip(out) {
            let place = match ascending {
                true => names.binary_search(name).ok(),
                false => names.iter().position(|other| other == name),
            };
            if let Some(place) = place {
                out[place] += self.added;
            }
        }
    }

    fn subset(&self, keep: &[usize]) -> Arc<dyn PackedRows<T>> {
        Arc::new(self.over(self.inner.subset(keep), keep))
    }

    fn shared(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn non_finite(&self) -> Option<Error> {
        self.inner.check_values().err()
    }
}
