//! Sparse matrices in compressed-row form with 32-bit column indices.

use std::fmt;

use crate::error::{Error, Result};

/// A sparse matrix: row `i` holds the columns `indices[indptr[i]..indptr[i + 1]]`, ascending and
/// unique, with the values beside them.
#[derive(Clone, PartialEq)]
pub struct Csr<T> {
    columns: usize,
    indptr: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<T>,
}

impl<T: Copy> Csr<T> {
    /// Takes the three arrays of the format.
    ///
    /// # Errors
    /// [`Error::Length`] or [`Error::Parameter`] when they do not describe a matrix of `columns`
    /// columns with strictly ascending indices in every row.
    pub fn new(
        columns: usize,
        indptr: Vec<usize>,
        indices: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Self> {
        if indptr.first() != Some(&0) {
            return Err(Error::parameter("indptr", "0 first", format!("{:?}", indptr.first())));
        }
        if indices.len() != values.len() {
            return Err(Error::length("values of a sparse matrix", indices.len(), values.len()));
        }
        if indptr.last() != Some(&indices.len()) {
            let found = indptr.last().copied().unwrap_or(0);
            return Err(Error::length("last entry of indptr", indices.len(), found));
        }
        for (row, bounds) in indptr.windows(2).enumerate() {
            if bounds[0] > bounds[1] || bounds[1] > indices.len() {
                return Err(Error::parameter("indptr", "ascending entries", format!("{bounds:?}")));
            }
            let mut next = 0;
            for &index in &indices[bounds[0]..bounds[1]] {
                if (index as usize) < next || index as usize >= columns {
                    return Err(Error::parameter(
                        "indices",
                        format!("strictly ascending indices below {columns}"),
                        format!("index {index} in row {row}"),
                    ));
                }
                next = index as usize + 1;
            }
        }
        Ok(Self { columns, indptr, indices, values })
    }

    /// Takes arrays a reader has already checked.
    pub(crate) fn from_ascending(
        columns: usize,
        indptr: Vec<usize>,
        indices: Vec<u32>,
        values: Vec<T>,
    ) -> Self {
        debug_assert!(
            Self::new(columns, indptr.clone(), indices.clone(), values.clone()).is_ok(),
            "a reader must check what it builds"
        );
        Self { columns, indptr, indices, values }
    }

    /// Where rows begin, their columns and their values.
    pub(crate) fn into_parts(self) -> (Vec<usize>, Vec<u32>, Vec<T>) {
        (self.indptr, self.indices, self.values)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.indptr.len() - 1
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of stored values.
    pub fn nonzeros(&self) -> usize {
        self.values.len()
    }

    /// Where each row begins, and the end of the last.
    pub fn indptr(&self) -> &[usize] {
        &self.indptr
    }

    /// Columns of all stored values.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// All stored values.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Columns and values of row `i`.
    pub fn row(&self, i: usize) -> (&[u32], &[T]) {
        let range = self.indptr[i]..self.indptr[i + 1];
        (&self.indices[range.clone()], &self.values[range])
    }

    /// The rows named by `rows`, in that order.
    pub fn select_rows(&self, rows: &[usize]) -> Self {
        let mut indptr = Vec::with_capacity(rows.len() + 1);
        indptr.push(0);
        let mut indices = Vec::new();
        let mut values = Vec::new();
        for &i in rows {
            let (row_indices, row_values) = self.row(i);
            indices.extend_from_slice(row_indices);
            values.extend_from_slice(row_values);
            indptr.push(indices.len());
        }
        Self { columns: self.columns, indptr, indices, values }
    }

    /// The same rows with `columns` columns.
    ///
    /// # Errors
    /// [`Error::Length`] when a stored value would fall outside.
    pub(crate) fn with_columns(mut self, columns: usize) -> Result<Self> {
        if let Some(&largest) = self.indices.iter().max()
            && largest as usize >= columns
        {
            return Err(Error::length("features", columns, largest as usize + 1));
        }
        self.columns = columns;
        Ok(self)
    }

    /// The same rows with `columns` columns, those beyond dropped.
    pub(crate) fn resized_columns(mut self, columns: usize) -> Self {
        if columns < self.columns {
            let mut indptr = Vec::with_capacity(self.indptr.len());
            indptr.push(0);
            let (mut indices, mut values) = (Vec::new(), Vec::new());
            for i in 0..self.rows() {
                let (row_indices, row_values) = self.row(i);
                let kept = row_indices.partition_point(|j| (*j as usize) < columns);
                indices.extend_from_slice(&row_indices[..kept]);
                values.extend_from_slice(&row_values[..kept]);
                indptr.push(indices.len());
            }
            (self.indptr, self.indices, self.values) = (indptr, indices, values);
        }
        self.columns = columns;
        self
    }

    /// The columns that a row has a value in, ascending.
    pub(crate) fn occurring_columns(&self) -> Vec<u32> {
        let mut used = self.indices.clone();
        used.sort_unstable();
        used.dedup();
        used
    }

    /// The same rows without the columns that no row has a value in.
    pub(crate) fn without_empty_columns(&self) -> Self {
        let used = self.occurring_columns();
        let place = |column: &u32| used.partition_point(|other| other < column) as u32;
        Self {
            columns: used.len(),
            indptr: self.indptr.clone(),
            indices: self.indices.iter().map(place).collect(),
            values: self.values.clone(),
        }
    }

    /// The same rows without their first column.
    #[must_use]
    pub(crate) fn without_first_column(&self) -> Self {
        let mut indptr = vec![0];
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for i in 0..self.rows() {
            let (row_indices, row_values) = self.row(i);
            let skipped = usize::from(row_indices.first() == Some(&0));
            indices.extend(row_indices[skipped..].iter().map(|j| j - 1));
            values.extend_from_slice(&row_values[skipped..]);
            indptr.push(indices.len());
        }
        Self { columns: self.columns.saturating_sub(1), indptr, indices, values }
    }

    /// Applies `f` to every stored value.
    pub(crate) fn map<U: Copy>(&self, f: impl Fn(T) -> U) -> Csr<U> {
        Csr {
            columns: self.columns,
            indptr: self.indptr.clone(),
            indices: self.indices.clone(),
            values: self.values.iter().map(|&v| f(v)).collect(),
        }
    }
}

impl<T> fmt::Debug for Csr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.indptr.len() - 1;
        write!(f, "Csr({rows} x {}, {} stored)", self.columns, self.values.len())
    }
}
