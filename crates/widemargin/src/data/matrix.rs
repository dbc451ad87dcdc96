//! The feature table of a data set: dense or sparse, single or double precision.

use std::ops::Range;

use super::pieces;
use super::{Csr, Dense};
use crate::error::{Error, Result};

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
        match self {
            Self::DenseF32(m) => m.values().iter().filter(|v| **v != 0.0).count(),
            Self::DenseF64(m) => m.values().iter().filter(|v| **v != 0.0).count(),
            Self::SparseF32(m) => m.nonzeros(),
            Self::SparseF64(m) => m.nonzeros(),
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

    /// The columns of some ascending ranges, side by side.
    ///
    /// # Errors
    /// [`Error::Length`] when a column does not exist.
    pub fn select_columns(&self, ranges: &[Range<usize>]) -> Result<Self> {
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
        match self {
            Self::DenseF32(m) => Self::DenseF32(m.select_rows(indices)),
            Self::DenseF64(m) => Self::DenseF64(m.select_rows(indices)),
            Self::SparseF32(m) => Self::SparseF32(m.select_rows(indices)),
            Self::SparseF64(m) => Self::SparseF64(m.select_rows(indices)),
        }
    }

    /// Calls `visit(column, value)` for the non-zero values of row `i`, columns ascending.
    pub fn for_each_nonzero(&self, i: usize, mut visit: impl FnMut(usize, f64)) {
        match self {
            Self::DenseF32(m) => {
                for (j, &v) in m.row(i).iter().enumerate().filter(|(_, v)| **v != 0.0) {
                    visit(j, f64::from(v));
                }
            }
            Self::DenseF64(m) => {
                for (j, &v) in m.row(i).iter().enumerate().filter(|(_, v)| **v != 0.0) {
                    visit(j, v);
                }
            }
            Self::SparseF32(m) => {
                let (indices, values) = m.row(i);
                for (&j, &v) in indices.iter().zip(values) {
                    visit(j as usize, f64::from(v));
                }
            }
            Self::SparseF64(m) => {
                let (indices, values) = m.row(i);
                for (&j, &v) in indices.iter().zip(values) {
                    visit(j as usize, v);
                }
            }
        }
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
        match self {
            Self::DenseF32(m) => resize_dense(m, columns).map(Self::DenseF32),
            Self::DenseF64(m) => resize_dense(m, columns).map(Self::DenseF64),
            Self::SparseF32(m) => m.with_columns(columns).map(Self::SparseF32),
            Self::SparseF64(m) => m.with_columns(columns).map(Self::SparseF64),
        }
    }

    /// The same rows without their first column, such as the serial numbers that LIBSVM puts in
    /// front of precomputed kernel values.
    pub fn without_first_column(self) -> Self {
        match self {
            Self::DenseF32(m) => Self::DenseF32(drop_first(&m)),
            Self::DenseF64(m) => Self::DenseF64(drop_first(&m)),
            Self::SparseF32(m) => Self::SparseF32(m.without_first_column()),
            Self::SparseF64(m) => Self::SparseF64(m.without_first_column()),
        }
    }

    /// The same rows with `columns` columns: new ones are zero, those beyond are dropped.
    pub fn resized_columns(self, columns: usize) -> Self {
        match self {
            Self::DenseF32(m) => Self::DenseF32(cut_or_fill(&m, columns)),
            Self::DenseF64(m) => Self::DenseF64(cut_or_fill(&m, columns)),
            Self::SparseF32(m) => Self::SparseF32(m.resized_columns(columns)),
            Self::SparseF64(m) => Self::SparseF64(m.resized_columns(columns)),
        }
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
        let position = match self {
            Self::DenseF32(m) => first_failing(m.values(), f32::is_finite),
            Self::DenseF64(m) => first_failing(m.values(), f64::is_finite),
            Self::SparseF32(m) => first_failing(m.values(), f32::is_finite),
            Self::SparseF64(m) => first_failing(m.values(), f64::is_finite),
        };
        match position {
            None => Ok(()),
            Some(at) => Err(self.non_finite_at(at)),
        }
    }

    fn non_finite_at(&self, at: usize) -> Error {
        let (row, column, value) = match self {
            Self::DenseF32(m) => (at / m.columns(), at % m.columns(), f64::from(m.values()[at])),
            Self::DenseF64(m) => (at / m.columns(), at % m.columns(), m.values()[at]),
            Self::SparseF32(m) => {
                (row_of(m.indptr(), at), m.indices()[at] as usize, f64::from(m.values()[at]))
            }
            Self::SparseF64(m) => {
                (row_of(m.indptr(), at), m.indices()[at] as usize, m.values()[at])
            }
        };
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

fn drop_first<T: Copy>(dense: &Dense<T>) -> Dense<T> {
    let rows = 0..dense.rows();
    let columns = dense.columns().saturating_sub(1);
    let kept = rows.flat_map(|i| dense.row(i).iter().skip(1).copied()).collect();
    Dense::new(dense.rows(), columns, kept).expect("one value per place")
}

fn resize_dense<T>(dense: Dense<T>, columns: usize) -> Result<Dense<T>>
where
    T: Copy + Default + PartialEq,
{
    if columns == dense.columns() {
        return Ok(dense);
    }
    if columns < dense.columns() {
        for i in 0..dense.rows() {
            let lost = &dense.row(i)[columns..];
            if let Some(last) = lost.iter().rposition(|v| *v != T::default()) {
                return Err(Error::length("features", columns, columns + last + 1));
            }
        }
    }
    Ok(cut_or_fill(&dense, columns))
}

fn cut_or_fill<T: Copy + Default>(dense: &Dense<T>, columns: usize) -> Dense<T> {
    let kept = dense.columns().min(columns);
    let mut values = Vec::with_capacity(dense.rows() * columns);
    for i in 0..dense.rows() {
        values.extend_from_slice(&dense.row(i)[..kept]);
        values.resize((i + 1) * columns, T::default());
    }
    Dense::new(dense.rows(), columns, values).expect("one value per place")
}
