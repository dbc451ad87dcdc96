//! Parsed pieces of a table joined into one matrix, dense or sparse.

use crate::data::{Csr, Dense, Layout, Matrix, SPARSE_DENSITY};
use crate::error::{Error, Result};
use crate::numeric::parallel::{self, Threads};

/// Largest dense table in bytes, also where dense storage was requested for mostly zeros.
pub(crate) const DENSE_LIMIT_BYTES: u128 = 1 << 36;

/// Numbers a matrix can store.
pub(crate) trait Real: Copy + Default + PartialEq + Send + Sync + 'static {
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
    fn dense(matrix: Dense<Self>) -> Matrix;
    fn sparse(matrix: Csr<Self>) -> Matrix;
}

impl Real for f32 {
    fn from_f64(value: f64) -> Self {
        value as Self
    }
    fn to_f64(self) -> f64 {
        self.into()
    }
    fn dense(matrix: Dense<Self>) -> Matrix {
        Matrix::DenseF32(matrix)
    }
    fn sparse(matrix: Csr<Self>) -> Matrix {
        Matrix::SparseF32(matrix)
    }
}

impl Real for f64 {
    fn from_f64(value: f64) -> Self {
        value
    }
    fn to_f64(self) -> f64 {
        self
    }
    fn dense(matrix: Dense<Self>) -> Matrix {
        Matrix::DenseF64(matrix)
    }
    fn sparse(matrix: Csr<Self>) -> Matrix {
        Matrix::SparseF64(matrix)
    }
}

/// Consecutive rows of a sparse table: row `i` ends at `ends[i]` of the other two.
pub(crate) struct RowsPart<T> {
    pub(crate) ends: Vec<usize>,
    pub(crate) indices: Vec<u32>,
    pub(crate) values: Vec<T>,
}

/// Joins `parts` in order; indices are valid, ascending per row and start at `base`.
pub(crate) fn assemble<T: Real>(
    mut parts: Vec<RowsPart<T>>,
    columns: usize,
    base: u32,
    layout: Layout,
) -> Result<Matrix> {
    let rows: usize = parts.iter().map(|p| p.ends.len()).sum();
    let stored: usize = parts.iter().map(|p| p.indices.len()).sum();
    let places = rows as u128 * columns as u128;
    let dense = match layout {
        Layout::Auto => stored as f64 >= SPARSE_DENSITY * places as f64 && stored > 0,
        Layout::Dense => true,
        Layout::Sparse => false,
    };
    if dense {
        let bytes = places * size_of::<T>() as u128;
        let limit = DENSE_LIMIT_BYTES.min(isize::MAX as u128);
        if bytes > limit {
            let what = format!("a dense table of {rows} rows and {columns} columns");
            return Err(Error::TooLarge { what, bytes, limit });
        }
        return dense_from(&parts, rows, columns, base).map(T::dense);
    }
    let mut indptr = Vec::with_capacity(rows + 1);
    indptr.push(0);
    let mut start = 0;
    for part in &parts {
        indptr.extend(part.ends.iter().map(|end| start + end));
        start += part.indices.len();
    }
    let (indices, values) = if parts.len() == 1 {
        let mut part = parts.remove(0);
        if base > 0 {
            part.indices.iter_mut().for_each(|index| *index -= base);
        }
        part.indices.shrink_to_fit();
        part.values.shrink_to_fit();
        (part.indices, part.values)
    } else {
        joined(parts, stored, base)
    };
    Ok(T::sparse(Csr::from_ascending(columns, indptr, indices, values)))
}

fn joined<T: Real>(parts: Vec<RowsPart<T>>, stored: usize, base: u32) -> (Vec<u32>, Vec<T>) {
    let mut indices = vec![0_u32; stored];
    let mut values = vec![T::default(); stored];
    let mut places = Vec::with_capacity(parts.len());
    let (mut index_rest, mut value_rest) = (indices.as_mut_slice(), values.as_mut_slice());
    for part in parts {
        let (index_place, value_place);
        (index_place, index_rest) = index_rest.split_at_mut(part.indices.len());
        (value_place, value_rest) = value_rest.split_at_mut(part.values.len());
        places.push((part, index_place, value_place));
    }
    parallel::map(Threads::CurrentPool, places, |(part, index_place, value_place)| {
        for (place, index) in index_place.iter_mut().zip(&part.indices) {
            *place = index - base;
        }
        value_place.copy_from_slice(&part.values);
    });
    (indices, values)
}

fn dense_from<T: Real>(
    parts: &[RowsPart<T>],
    rows: usize,
    columns: usize,
    base: u32,
) -> Result<Dense<T>> {
    let mut values = vec![T::default(); rows * columns];
    let mut places = Vec::with_capacity(parts.len());
    let mut rest = values.as_mut_slice();
    for part in parts {
        let place;
        (place, rest) = rest.split_at_mut(part.ends.len() * columns);
        places.push((part, place));
    }
    let scatter = |(part, place): (&RowsPart<T>, &mut [T])| {
        let mut start = 0;
        for (row, &end) in place.chunks_exact_mut(columns.max(1)).zip(&part.ends) {
            for (&index, &value) in part.indices[start..end].iter().zip(&part.values[start..end]) {
                row[(index - base) as usize] = value;
            }
            start = end;
        }
    };
    parallel::map(Threads::of_current_pool(places.len() > 1), places, scatter);
    Dense::new(rows, columns, values)
}
