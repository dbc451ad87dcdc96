//! Which columns of the data are packed, and the origin they are seen from.

use super::column_statistics::MANY_COLUMNS;
use crate::data::Matrix;
use crate::numeric::simd::Real;

/// Marks a column that no packed row uses.
const ABSENT: u32 = u32::MAX;

/// The columns kept: those that are not zero in every packed row.
#[derive(Clone, Debug)]
pub(super) struct Features {
    /// Number of columns a row has to have.
    columns: usize,
    /// Place of every original column among the kept ones; empty where there are so many columns
    /// that places are looked up.
    place: Vec<u32>,
    /// The columns kept, ascending.
    kept: Vec<u32>,
    /// What is subtracted from every kept column.
    origin: Option<Vec<f64>>,
}

/// What the columns that are not kept contribute to the statistics of a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dropped {
    /// Σ x²
    pub(super) squares: f64,
    /// Σ |x|
    pub(super) absolute: f64,
}

impl Features {
    /// Keeps the columns `used` of `columns`, ascending.
    pub(super) fn new(columns: usize, used: &[u32], origin: Option<Vec<f64>>) -> Self {
        let mut place = Vec::new();
        if columns <= MANY_COLUMNS || columns / 16 <= used.len() {
            place.resize(columns, ABSENT);
            for (at, &column) in used.iter().enumerate() {
                place[column as usize] = at as u32;
            }
        }
        Self { columns, place, kept: used.to_vec(), origin }
    }

    /// Number of columns a row has to have.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// What is subtracted from every kept column.
    pub(super) fn origin(&self) -> Option<&[f64]> {
        self.origin.as_deref()
    }

    /// Number of columns kept.
    pub(super) fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Place of a column among the kept ones.
    #[inline(always)]
    fn place_of(&self, column: usize) -> u32 {
        if self.place.is_empty() {
            self.kept.binary_search(&(column as u32)).map_or(ABSENT, |at| at as u32)
        } else {
            self.place[column]
        }
    }

    /// Calls `visit(place, value)` for the non-zero values of a row in kept columns, ascending.
    #[inline(always)]
    pub(super) fn for_each(
        &self,
        matrix: &Matrix,
        row: usize,
        mut visit: impl FnMut(u32, f64),
    ) -> Dropped {
        let mut dropped = Dropped::default();
        matrix.for_each_nonzero(row, |column, value| match self.place_of(column) {
            ABSENT => {
                dropped.squares += value * value;
                dropped.absolute += value.abs();
            }
            place => visit(place, value),
        });
        dropped
    }

    /// Writes the kept columns of a row, seen from the origin, into `out`.
    #[inline(always)]
    pub(super) fn read<T: Real>(&self, matrix: &Matrix, row: usize, out: &mut [T]) -> Dropped {
        match (matrix, &self.origin) {
            (Matrix::DenseF32(m), _) => self.read_dense(m.row(row), out),
            (Matrix::DenseF64(m), _) => self.read_dense(m.row(row), out),
            (_, None) => {
                out.fill(T::ZERO);
                self.for_each(matrix, row, |k, value| out[k as usize] = T::from_f64(value))
            }
            (_, Some(origin)) => {
                for (value, &mean) in out.iter_mut().zip(origin) {
                    *value = T::from_f64(-mean);
                }
                self.for_each(matrix, row, |k, value| {
                    out[k as usize] = T::from_f64(value - origin[k as usize]);
                })
            }
        }
    }

    #[inline(always)]
    fn read_dense<S: Copy + Into<f64>, T: Real>(&self, row: &[S], out: &mut [T]) -> Dropped {
        let mut dropped = Dropped::default();
        if self.kept.len() == row.len() {
            self.shift(row.iter().map(|&value| value.into()), out);
            return dropped;
        }
        self.shift(self.kept.iter().map(|&column| row[column as usize].into()), out);
        for (column, &value) in row.iter().enumerate() {
            if self.place_of(column) != ABSENT {
                continue;
            }
            let value: f64 = value.into();
            dropped.squares += value * value;
            dropped.absolute += value.abs();
        }
        dropped
    }

    /// Writes the values of kept columns, seen from the origin, into `out`.
    #[inline(always)]
    fn shift<T: Real>(&self, kept: impl Iterator<Item = f64>, out: &mut [T]) {
        match &self.origin {
            None => {
                for (to, value) in out.iter_mut().zip(kept) {
                    *to = T::from_f64(value);
                }
            }
            Some(origin) => {
                for ((to, value), mean) in out.iter_mut().zip(kept).zip(origin) {
                    *to = T::from_f64(value - mean);
                }
            }
        }
    }
}
