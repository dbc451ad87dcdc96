//! One function per feature applied to a whole table.

use crate::data::read::assemble::{DENSE_LIMIT_BYTES, Real};
use crate::data::{Csr, Dense, Matrix, SPARSE_DENSITY, memory};
use crate::error::{Error, Result};
use crate::numeric::parallel::{self, Threads};

/// A function per feature.
pub(super) trait ColumnMap: Sync {
    /// The image of `value` under the function of feature `j`.
    fn map(&self, j: usize, value: f64) -> f64;

    /// The features, ascending, that may not map zero to zero.
    fn moving_zero(&self) -> impl Iterator<Item = usize>;
}

/// Rows handed to a thread at a time.
const ROWS: usize = 256;

/// The table of the images; `map` must know every column of it.
pub(super) fn apply(map: &impl ColumnMap, features: &Matrix) -> Result<Matrix> {
    match features {
        Matrix::DenseF32(m) => dense(map, m).map(Matrix::DenseF32),
        Matrix::DenseF64(m) => dense(map, m).map(Matrix::DenseF64),
        Matrix::SparseF32(m) => sparse(map, m),
        Matrix::SparseF64(m) => sparse(map, m),
    }
}

/// Runs `work` on the chunks, on all threads of the pool this is called from, if any.
fn for_each_chunk<T: Send>(values: &mut [T], size: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    let threads = Threads::of_current_pool(rayon::current_thread_index().is_some());
    parallel::map(threads, values.chunks_mut(size).enumerate(), |(i, chunk)| work(i, chunk));
}

fn dense<T: Real>(map: &impl ColumnMap, matrix: &Dense<T>) -> Result<Dense<T>> {
    let columns = matrix.columns();
    let mut values = matrix.values().to_vec();
    for_each_chunk(&mut values, ROWS * columns.max(1), |_, chunk| {
        for row in chunk.chunks_exact_mut(columns) {
            for (j, value) in row.iter_mut().enumerate() {
                *value = T::from_f64(map.map(j, value.to_f64()));
            }
        }
    });
    Dense::new(matrix.rows(), columns, values)
}

fn sparse<T: Real>(map: &impl ColumnMap, matrix: &Csr<T>) -> Result<Matrix> {
    let columns = matrix.columns();
    let moved: Vec<(u32, T)> = map
        .moving_zero()
        .map(|j| (j as u32, T::from_f64(map.map(j, 0.0))))
        .filter(|(_, image)| *image != T::default())
        .collect();
    if moved.is_empty() || (moved.len() as f64) < SPARSE_DENSITY * columns as f64 {
        return Ok(T::sparse(by_row(map, matrix, &moved)));
    }
    let bytes = matrix.rows() as u128 * columns as u128 * size_of::<T>() as u128;
    let limit = DENSE_LIMIT_BYTES.min(u128::from(memory::available()));
    if bytes > limit {
        let what = format!(
            "scaling that moves zeros makes a dense table of {} rows and {columns} columns, which",
            matrix.rows()
        );
        return Err(Error::TooLarge { what, bytes, limit });
    }
    let mut image_of_zero = vec![T::default(); columns];
    for &(j, image) in &moved {
        image_of_zero[j as usize] = image;
    }
    let mut values = vec![T::default(); matrix.rows() * columns];
    for_each_chunk(&mut values, ROWS * columns, |block, chunk| {
        for (offset, row) in chunk.chunks_exact_mut(columns).enumerate() {
            row.copy_from_slice(&image_of_zero);
            scatter(map, matrix, block * ROWS + offset, row);
        }
    });
    Dense::new(matrix.rows(), columns, values).map(T::dense)
}

fn scatter<T: Real>(map: &impl ColumnMap, matrix: &Csr<T>, i: usize, row: &mut [T]) {
    let (indices, values) = matrix.row(i);
    for (&j, &value) in indices.iter().zip(values) {
        row[j as usize] = T::from_f64(map.map(j as usize, value.to_f64()));
    }
}

/// The images of stored values and, between them, of the zeros that move.
fn by_row<T: Real>(map: &impl ColumnMap, matrix: &Csr<T>, moved: &[(u32, T)]) -> Csr<T> {
    let stored = matrix.nonzeros() + matrix.rows() * moved.len();
    let mut builder = Builder::new(matrix.rows(), stored);
    for i in 0..matrix.rows() {
        let (indices, values) = matrix.row(i);
        let mut zeros = moved.iter().peekable();
        for (&j, &value) in indices.iter().zip(values) {
            while let Some((before, image)) = zeros.next_if(|(before, _)| *before < j) {
                builder.push(*before, *image);
            }
            zeros.next_if(|(same, _)| *same == j);
            builder.push(j, T::from_f64(map.map(j as usize, value.to_f64())));
        }
        zeros.for_each(|(after, image)| builder.push(*after, *image));
        builder.end_row();
    }
    builder.finish(matrix.columns())
}

/// A sparse matrix written row by row, zeros left out.
struct Builder<T> {
    indptr: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<T>,
}

impl<T: Real> Builder<T> {
    fn new(rows: usize, stored: usize) -> Self {
        let mut indptr = Vec::with_capacity(rows + 1);
        indptr.push(0);
        Self { indptr, indices: Vec::with_capacity(stored), values: Vec::with_capacity(stored) }
    }

    fn push(&mut self, j: u32, value: T) {
        if value != T::default() {
            self.indices.push(j);
            self.values.push(value);
        }
    }

    fn end_row(&mut self) {
        self.indptr.push(self.indices.len());
    }

    fn finish(self, columns: usize) -> Csr<T> {
        Csr::from_ascending(columns, self.indptr, self.indices, self.values)
    }
}
