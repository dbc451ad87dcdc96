//! The feature table of a data set: dense or sparse, single or double precision.

use std::borrow::Cow;
use std::ops::Range;

use super::pieces;
use super::{Csr, Dense};
use crate::error::{Error, Result};
use crate::numeric::simd::Real;

/// Share of non-zeros below which sparse storage is chosen by [`Layout::Auto`].
pub(crate) const SPARSE_DENSITY: f64 = 0.25;

/// How a table is to be stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Sparse when fewer than a quarter of the values are non-zero.
    #[default]
    Auto,
    /// Always dense.
    Dense,
    /// Always sparse.
    Sparse,
}

/// A table of numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Matrix {
    /// Dense, single precision.
    DenseF32(Dense<f32>),
    /// Dense, double precision.
    DenseF64(Dense<f64>),
    /// Sparse, single precision.
    SparseF32(Csr<f32>),
    /// Sparse, double precision.
    SparseF64(Csr<f64>),
}

macro_rules! each {
    ($self:expr, $m:ident => $body:expr) => {
        match $self {
            Matrix::DenseF32($m) => $body,
            Matrix::DenseF64($m) => $body,
            Matrix::SparseF32($m) => $body,
            Matrix::SparseF64($m) => $body,
        }
    };
}

/// The same storage with another table in it.
macro_rules! in_same_storage {
    ($self:expr, $m:ident => $body:expr) => {
        match $self {
            Matrix::DenseF32($m) => Matrix::DenseF32($body),
            Matrix::DenseF64($m) => Matrix::DenseF64($body),
            Matrix::SparseF32($m) => Matrix::SparseF32($body),
            Matrix::SparseF64($m) => Matrix::SparseF64($body),
        }
    };
}

/// What is done to dense tables and what to sparse ones, of either precision.
macro_rules! by_storage {
    ($self:expr, $m:ident => dense $dense:expr, sparse $sparse:expr) => {
        match $self {
            Matrix::DenseF32($m) => $dense,
            Matrix::DenseF64($m) => $dense,
            Matrix::SparseF32($m) => $sparse,
            Matrix::SparseF64($m) => $sparse,
        }
    };
}

/// Whether single precision holds every value exactly.
pub(crate) fn is_exact_in_single(values: &[f64]) -> bool {
    values.iter().all(|&v| f64::from(v as f32) == v)
}

impl Matrix {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        each!(self, m => m.rows())
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        each!(self, m => m.columns())
    }

    /// Whether the storage is sparse.
    pub fn is_sparse(&self) -> bool {
        matches!(self, Self::SparseF32(_) | Self::SparseF64(_))
    }

    /// Number of values that are not zero; of sparse storage those that are stored.
    pub fn nonzeros(&self) -> usize {
        by_storage!(self, m =>
            dense m.values().iter().filter(|v| **v != 0.0).count(),
            sparse m.nonzeros())
    }

    /// Whether single precision holds every value exactly.
    pub(crate) fn is_exact_in_single(&self) -> bool {
        match self {
            Self::DenseF32(_) | Self::SparseF32(_) => true,
            Self::DenseF64(m) => is_exact_in_single(m.values()),
            Self::SparseF64(m) => is_exact_in_single(m.values()),
        }
    }

    /// Share of values that are not zero.
    pub fn density(&self) -> f64 {
        self.nonzeros() as f64 / ((self.rows() * self.columns()) as f64).max(1.0)
    }

    /// This table with the rows of another below its own; where the storages differ, the result is
    /// sparse in double precision.
    ///
    /// # Errors
    /// [`Error::Length`] when the other table has another number of columns.
    pub(crate) fn stacked(&self, below: &Self) -> Result<Self> {
        if self.columns() != below.columns() {
            return Err(Error::length("columns", self.columns(), below.columns()));
        }
        fn dense<T: Copy>(a: &Dense<T>, b: &Dense<T>) -> Result<Dense<T>> {
            Dense::new(a.rows() + b.rows(), a.columns(), [a.values(), b.values()].concat())
        }
        fn sparse<T: Copy>(a: &Csr<T>, b: &Csr<T>) -> Result<Csr<T>> {
            let shift = a.indptr().last().copied().unwrap_or(0);
            let rest = b.indptr().iter().skip(1).map(|end| end + shift);
            let indptr = a.indptr().iter().copied().chain(rest).collect();
            let indices = [a.indices(), b.indices()].concat();
            Csr::new(a.columns(), indptr, indices, [a.values(), b.values()].concat())
        }
        Ok(match (self, below) {
            (Self::DenseF32(a), Self::DenseF32(b)) => Self::DenseF32(dense(a, b)?),
            (Self::DenseF64(a), Self::DenseF64(b)) => Self::DenseF64(dense(a, b)?),
            (Self::SparseF32(a), Self::SparseF32(b)) => Self::SparseF32(sparse(a, b)?),
            (Self::SparseF64(a), Self::SparseF64(b)) => Self::SparseF64(sparse(a, b)?),
            _ => {
                let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
                for table in [self, below] {
                    for i in 0..table.rows() {
                        table.for_each_nonzero(i, |column, value| {
                            indices.push(column as u32);
                            values.push(value);
                        });
                        indptr.push(indices.len());
                    }
                }
                Self::SparseF64(Csr::new(self.columns(), indptr, indices, values)?)
            }
        })
    }

    /// The columns of some ascending ranges, joined.
    ///
    /// # Errors
    /// [`Error::Length`] when a column does not exist.
    pub(crate) fn select_columns(&self, ranges: &[Range<usize>]) -> Result<Self> {
        if let Some(last) = ranges.iter().map(|range| range.end).max()
            && last > self.columns()
        {
            return Err(Error::length("columns of a view", last, self.columns()));
        }
        fn dense<T: Copy>(table: &Dense<T>, ranges: &[Range<usize>]) -> Result<Dense<T>> {
            let width = ranges.iter().map(Range::len).sum();
            let mut values = Vec::with_capacity(table.rows() * width);
            for i in 0..table.rows() {
                let row = table.row(i);
                ranges.iter().for_each(|range| values.extend_from_slice(&row[range.clone()]));
            }
            Dense::new(table.rows(), width, values)
        }
        fn sparse<T: Copy>(table: &Csr<T>, ranges: &[Range<usize>]) -> Result<Csr<T>> {
            let width = ranges.iter().map(Range::len).sum();
            let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
            for i in 0..table.rows() {
                let (columns, row) = table.row(i);
                let mut before = 0;
                for range in ranges {
                    let from = columns.partition_point(|&c| (c as usize) < range.start);
                    let to = columns.partition_point(|&c| (c as usize) < range.end);
                    let shift = |&c: &u32| (c as usize - range.start + before) as u32;
                    indices.extend(columns[from..to].iter().map(shift));
                    values.extend_from_slice(&row[from..to]);
                    before += range.len();
                }
                indptr.push(indices.len());
            }
            Csr::new(width, indptr, indices, values)
        }
        Ok(match self {
            Self::DenseF32(m) => Self::DenseF32(dense(m, ranges)?),
            Self::DenseF64(m) => Self::DenseF64(dense(m, ranges)?),
            Self::SparseF32(m) => Self::SparseF32(sparse(m, ranges)?),
            Self::SparseF64(m) => Self::SparseF64(sparse(m, ranges)?),
        })
    }

    /// The rows named by `indices`, in that order.
    pub fn select_rows(&self, indices: &[usize]) -> Self {
        in_same_storage!(self, m => m.select_rows(indices))
    }

    /// Calls `visit(column, value)` for the non-zero values of row `i`, columns ascending.
    pub fn for_each_nonzero(&self, i: usize, mut visit: impl FnMut(usize, f64)) {
        by_storage!(self, m =>
        dense {
            for (j, &v) in m.row(i).iter().enumerate().filter(|(_, v)| **v != 0.0) {
                visit(j, v.to_f64());
            }
        },
        sparse {
            let (indices, values) = m.row(i);
            for (&j, &v) in indices.iter().zip(values) {
                visit(j as usize, v.to_f64());
            }
        })
    }

    /// Writes row `i` into `out`, which has one place per column.
    pub fn copy_row(&self, i: usize, out: &mut [f64]) {
        if let Self::DenseF64(table) = self {
            return out.copy_from_slice(table.row(i));
        }
        out.fill(0.0);
        self.for_each_nonzero(i, |j, v| out[j] = v);
    }

    /// The same numbers in the storage `layout` asks for.
    pub fn into_layout(self, layout: Layout) -> Self {
        let sparse = match layout {
            Layout::Auto => self.density() < SPARSE_DENSITY,
            Layout::Dense => false,
            Layout::Sparse => true,
        };
        match (self, sparse) {
            (Self::DenseF32(m), true) => Self::SparseF32(to_sparse(&m, |v| v != 0.0)),
            (Self::DenseF64(m), true) => Self::SparseF64(to_sparse(&m, |v| v != 0.0)),
            (Self::SparseF32(m), false) => Self::DenseF32(to_dense(&m)),
            (Self::SparseF64(m), false) => Self::DenseF64(to_dense(&m)),
            (m, _) => m,
        }
    }

    /// The same rows seen with `columns` columns, new ones being zero.
    ///
    /// # Errors
    /// [`Error::Length`] when a column that is not all zero would be lost.
    pub(crate) fn with_columns(self, columns: usize) -> Result<Self> {
        Ok(in_same_storage!(self, m => m.with_columns(columns)?))
    }

    /// The columns that a row of a sparse table has a value in, and all of a dense one; ascending.
    pub(crate) fn occurring_columns(&self) -> Vec<u32> {
        match self {
            Self::SparseF32(m) => m.occurring_columns(),
            Self::SparseF64(m) => m.occurring_columns(),
            dense => (0..dense.columns() as u32).collect(),
        }
    }

    /// The same rows without the columns that no sparse row has a value in; dense tables stay as they are.
    pub(crate) fn without_empty_columns(&self) -> Cow<'_, Self> {
        match self {
            Self::SparseF32(m) => Cow::Owned(Self::SparseF32(m.without_empty_columns())),
            Self::SparseF64(m) => Cow::Owned(Self::SparseF64(m.without_empty_columns())),
            dense => Cow::Borrowed(dense),
        }
    }

    /// The same rows without their first column, such as the serial numbers that LIBSVM puts in
    /// front of precomputed kernel values.
    pub fn without_first_column(self) -> Self {
        in_same_storage!(self, m => m.without_first_column())
    }

    /// The same rows with `columns` columns: new ones are zero, those beyond are dropped.
    pub fn resized_columns(self, columns: usize) -> Self {
        in_same_storage!(self, m => m.resized_columns(columns))
    }

    /// Checks that there is at least one row and that every value is finite.
    ///
    /// # Errors
    /// [`Error::Empty`] or [`Error::NonFinite`].
    pub fn validate(&self) -> Result<()> {
        if self.rows() == 0 {
            return Err(Error::Empty { what: "row" });
        }
        if self.columns() == 0 {
            return Err(Error::Empty { what: "feature" });
        }
        match each!(self, m => first_failing(m.values(), |v| v.is_finite())) {
            None => Ok(()),
            Some(at) => Err(self.non_finite_at(at)),
        }
    }

    fn non_finite_at(&self, at: usize) -> Error {
        let value = each!(self, m => m.values()[at].to_f64());
        let (row, column) = by_storage!(self, m =>
            dense (at / m.columns(), at % m.columns()),
            sparse (row_of(m.indptr(), at), m.indices()[at] as usize));
        Error::NonFinite { row: row + 1, column: column + 1, value }
    }
}

/// The first value that fails a test, looked for in whole pieces, which vectorises.
fn first_failing<T: Copy + Sync>(values: &[T], passes: impl Fn(T) -> bool + Sync) -> Option<usize> {
    let whole = |piece: &[T]| piece.iter().fold(true, |all, &v| all & passes(v));
    let (start, rest) = pieces::first_failing(values, whole)?;
    rest.iter().position(|&v| !passes(v)).map(|at| start + at)
}

fn row_of(indptr: &[usize], at: usize) -> usize {
    indptr.partition_point(|&start| start <= at) - 1
}

fn to_sparse<T: Copy>(dense: &Dense<T>, keep: impl Fn(T) -> bool) -> Csr<T> {
    let mut indptr = Vec::with_capacity(dense.rows() + 1);
    indptr.push(0);
    let mut indices = Vec::new();
    let mut values = Vec::new();
    for i in 0..dense.rows() {
        for (j, &v) in dense.row(i).iter().enumerate().filter(|(_, v)| keep(**v)) {
            indices.push(j as u32);
            values.push(v);
        }
        indptr.push(indices.len());
    }
    Csr::new(dense.columns(), indptr, indices, values).expect("rows were visited in order")
}

fn to_dense<T: Copy + Default>(sparse: &Csr<T>) -> Dense<T> {
    let (rows, columns) = (sparse.rows(), sparse.columns());
    let mut values = vec![T::default(); rows * columns];
    for (i, out) in values.chunks_exact_mut(columns.max(1)).enumerate().take(rows) {
        let (row_indices, row_values) = sparse.row(i);
        for (&j, &v) in row_indices.iter().zip(row_values) {
            out[j as usize] = v;
        }
    }
    Dense::new(rows, columns, values).expect("one value per place")
}

impl<T: Copy + Default + PartialEq> Dense<T> {
    /// See [`Matrix::without_first_column`].
    fn without_first_column(&self) -> Self {
        let rows = 0..self.rows();
        let columns = self.columns().saturating_sub(1);
        let kept = rows.flat_map(|i| self.row(i).iter().skip(1).copied()).collect();
        Self::new(self.rows(), columns, kept).expect("one value per place")
    }

    /// See [`Matrix::with_columns`].
    fn with_columns(self, columns: usize) -> Result<Self> {
        if columns == self.columns() {
            return Ok(self);
        }
        if columns < self.columns() {
            for i in 0..self.rows() {
                let lost = &self.row(i)[columns..];
                if let Some(last) = lost.iter().rposition(|v| *v != T::default()) {
                    return Err(Error::length("features", columns, columns + last + 1));
                }
            }
        }
        Ok(self.resized_columns(columns))
    }

    /// See [`Matrix::resized_columns`].
    fn resized_columns(&self, columns: usize) -> Self {
        let kept = self.columns().min(columns);
        let mut values = Vec::with_capacity(self.rows() * columns);
        for i in 0..self.rows() {
            values.extend_from_slice(&self.row(i)[..kept]);
            values.resize((i + 1) * columns, T::default());
        }
        Self::new(self.rows(), columns, values).expect("one value per place")
    }
}
