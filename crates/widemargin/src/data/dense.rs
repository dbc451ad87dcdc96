//! Row-major dense matrices, owned or shared with a foreign owner (a NumPy array, a memory map).

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};

/// Memory of another owner that a matrix may read without a copy.
pub type SharedSlice<T> = Arc<dyn AsRef<[T]> + Send + Sync>;

enum Storage<T> {
    Owned(Arc<Vec<T>>),
    Shared(SharedSlice<T>),
}

/// A row-major matrix of `rows × columns` values; clones share them.
pub struct Dense<T> {
    rows: usize,
    columns: usize,
    storage: Storage<T>,
}

impl<T: Copy> Dense<T> {
    /// Takes `values` in row-major order.
    ///
    /// # Errors
    /// [`Error::Length`] when there are not `rows × columns` of them.
    pub fn new(rows: usize, columns: usize, values: Vec<T>) -> Result<Self> {
        check_length(rows, columns, values.len())?;
        Ok(Self { rows, columns, storage: Storage::Owned(Arc::new(values)) })
    }

    /// Reads row-major values owned by someone else, without a copy.
    ///
    /// # Errors
    /// [`Error::Length`] when there are not `rows × columns` of them.
    pub fn shared(rows: usize, columns: usize, values: SharedSlice<T>) -> Result<Self> {
        check_length(rows, columns, (*values).as_ref().len())?;
        Ok(Self { rows, columns, storage: Storage::Shared(values) })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// All values, row by row.
    pub fn values(&self) -> &[T] {
        match &self.storage {
            Storage::Owned(values) => values,
            Storage::Shared(values) => (**values).as_ref(),
        }
    }

    /// The values, row by row; a copy of them while clones or a foreign owner hold them too.
    pub fn into_values(self) -> Vec<T> {
        match self.storage {
            Storage::Owned(values) => Arc::try_unwrap(values).unwrap_or_else(|v| v.to_vec()),
            Storage::Shared(values) => (*values).as_ref().to_vec(),
        }
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> &[T] {
        &self.values()[i * self.columns..(i + 1) * self.columns]
    }

    /// The rows named by `indices`, in that order.
    pub fn select_rows(&self, indices: &[usize]) -> Self {
        let mut values = Vec::with_capacity(indices.len() * self.columns);
        for &i in indices {
            values.extend_from_slice(self.row(i));
        }
        Self {
            rows: indices.len(),
            columns: self.columns,
            storage: Storage::Owned(Arc::new(values)),
        }
    }
}

impl<T: Copy> Dense<T> {
    /// The values where the rows and the columns named meet.
    pub(crate) fn select(&self, rows: &[usize], columns: &[usize]) -> Self {
        let mut values = Vec::with_capacity(rows.len() * columns.len());
        for &i in rows {
            let row = self.row(i);
            values.extend(columns.iter().map(|&j| row[j]));
        }
        let storage = Storage::Owned(Arc::new(values));
        Self { rows: rows.len(), columns: columns.len(), storage }
    }
}

impl<T: Copy> Clone for Dense<T> {
    fn clone(&self) -> Self {
        let storage = match &self.storage {
            Storage::Owned(values) => Storage::Owned(Arc::clone(values)),
            Storage::Shared(values) => Storage::Shared(Arc::clone(values)),
        };
        Self { rows: self.rows, columns: self.columns, storage }
    }
}

impl<T: Copy + PartialEq> PartialEq for Dense<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.rows, self.columns) == (other.rows, other.columns) && self.values() == other.values()
    }
}

impl<T> fmt::Debug for Dense<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dense({} x {})", self.rows, self.columns)
    }
}

fn check_length(rows: usize, columns: usize, found: usize) -> Result<()> {
    match rows.checked_mul(columns) {
        Some(expected) if expected == found => Ok(()),
        Some(expected) => Err(Error::length("values of a dense matrix", expected, found)),
        None => Err(Error::TooLarge {
            what: format!("a dense matrix of {rows} x {columns}"),
            bytes: rows as u128 * columns as u128,
            limit: usize::MAX as u128,
        }),
    }
}
