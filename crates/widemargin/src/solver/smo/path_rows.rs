//! The matrix of many problems: what a [`PathSolver`](super::PathSolver) reads of it.
//!
//! A matrix that fits memory is read where it lies. Of a larger one only the rows of variables that
//! take part are fetched, which the cache of [`MatrixRows`] keeps for the problems to come, unless
//! computing them again costs less.

use super::inner::padded;
use crate::context::Context;
use crate::kernel::{MatrixRows, RowCaching};
use crate::numeric::simd::{Real, accumulate, gather};

/// Rows of a large matrix fetched at a time.
const FETCHED: usize = 256;

/// Length of rows up to which keeping them costs nothing worth mentioning.
const CHEAP_ROW_LENGTH: usize = 8192;

/// A symmetric matrix.
pub(crate) trait PathRows {
    /// Number format of the entries.
    type Value: Real;

    /// Number of variables.
    fn len(&self) -> usize;

    /// Entry (v, v).
    fn diagonal(&self, v: usize) -> f64;

    /// The product with `beta`, summed in double precision.
    fn product(&self, beta: &[f64], context: &Context) -> Vec<f64>;

    /// Adds to `sums` the product with a vector that has `coefficients` at `places` and is zero
    /// elsewhere.
    fn add_product(
        &self,
        places: &[u32],
        coefficients: &[f64],
        sums: &mut [f64],
        context: &Context,
    );

    /// Writes the entries of every row of `variables` at `columns`, of which they are a part, into
    /// `out`, one row every `stride` places.
    fn gather(&self, variables: &[u32], columns: &[u32], out: &mut [Self::Value], stride: usize);
}

/// A symmetric matrix, row by row, every row followed by zeros up to a common length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WholeMatrix<'a, T> {
    values: &'a [T],
    stride: usize,
}

impl<'a, T: Real> WholeMatrix<'a, T> {
    /// Places that a row of `len` entries takes up.
    pub(crate) fn stride(len: usize) -> usize {
        padded(len)
    }

    /// A matrix of `len` rows, each followed by zeros up to [`stride`](Self::stride).
    ///
    /// # Panics
    /// When there are not that many values.
    pub(crate) fn new(values: &'a [T], len: usize) -> Self {
        assert_eq!(values.len(), len * padded(len), "whole rows");
        Self { values, stride: padded(len) }
    }

    fn row(&self, v: usize) -> &'a [T] {
        &self.values[v * self.stride..(v + 1) * self.stride]
    }
}

impl<T: Real> PathRows for WholeMatrix<'_, T> {
    type Value = T;

    fn len(&self) -> usize {
        self.values.len() / self.stride.max(1)
    }

    fn diagonal(&self, v: usize) -> f64 {
        self.row(v)[v].to_f64()
    }

    fn product(&self, beta: &[f64], context: &Context) -> Vec<f64> {
        let places = nonzero_places(beta);
        let coefficients: Vec<f64> = places.iter().map(|&v| beta[v as usize]).collect();
        let mut sums = vec![0.0; beta.len()];
        self.add_product(&places, &coefficients, &mut sums, context);
        sums
    }

    fn add_product(
        &self,
        places: &[u32],
        coefficients: &[f64],
        sums: &mut [f64],
        context: &Context,
    ) {
        let rows: Vec<&[T]> = places.iter().map(|&v| &self.row(v as usize)[..sums.len()]).collect();
        accumulate(context.instruction_set(), sums, &rows, coefficients);
    }

    fn gather(&self, variables: &[u32], columns: &[u32], out: &mut [T], stride: usize) {
        let rows: Vec<&[T]> = variables.iter().map(|&v| self.row(v as usize)).collect();
        gather(&rows, columns, out, stride);
    }
}

/// Where numbers are not 0, ascending.
pub(crate) fn nonzero_places(numbers: &[f64]) -> Vec<u32> {
    let (mut places, mut count) = (vec![0; numbers.len()], 0);
    for (v, &number) in numbers.iter().enumerate() {
        places[count] = v as u32;
        count += usize::from(number != 0.0);
    }
    places.truncate(count);
    places
}

/// A matrix whose rows are fetched when they are needed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FetchedRows<'a, R> {
    rows: &'a R,
    /// Whether rows are kept in their cache.
    keeps: bool,
}

impl<'a, R: MatrixRows> FetchedRows<'a, R> {
    /// The rows of a matrix.
    pub(crate) fn new(rows: &'a R) -> Self {
        Self { rows, keeps: !rows.is_cheap() || rows.len() <= CHEAP_ROW_LENGTH }
    }
}

impl<R: MatrixRows> PathRows for FetchedRows<'_, R> {
    type Value = R::Value;

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn diagonal(&self, v: usize) -> f64 {
        self.rows.diagonal(v)
    }

    fn product(&self, beta: &[f64], _: &Context) -> Vec<f64> {
        self.rows.product(beta)
    }

    fn add_product(&self, places: &[u32], coefficients: &[f64], sums: &mut [f64], _: &Context) {
        let mut dense = vec![0.0; sums.len()];
        for (&v, &coefficient) in places.iter().zip(coefficients) {
            dense[v as usize] = coefficient;
        }
        for (sum, product) in sums.iter_mut().zip(self.rows.product(&dense)) {
            *sum += product;
        }
    }

    fn gather(&self, variables: &[u32], columns: &[u32], out: &mut [R::Value], stride: usize) {
        if !self.keeps {
            return self.compute(variables, columns, out, stride);
        }
        let pieces = self.rows.pieces();
        let places: Vec<(usize, usize)> = columns
            .iter()
            .map(|&column| {
                let k = pieces.partition_point(|&start| start <= column as usize) - 1;
                (k, column as usize - pieces[k])
            })
            .collect();
        for (some, out) in variables.chunks(FETCHED).zip(out.chunks_mut(FETCHED * stride)) {
            for (row, out) in self.rows.fetch(some).iter().zip(out.chunks_mut(stride)) {
                for (to, &(k, at)) in out.iter_mut().zip(&places) {
                    *to = row[k][at];
                }
            }
        }
    }
}

impl<R: MatrixRows> FetchedRows<'_, R> {
    /// [`gather`](PathRows::gather) where values cost less than keeping them.
    fn compute(&self, variables: &[u32], columns: &[u32], out: &mut [R::Value], stride: usize) {
        let mut ascending = columns.to_vec();
        ascending.sort_unstable();
        let place = |v: &u32| ascending.partition_point(|other| other < v) as u32;
        let rows: Vec<u32> = variables.iter().map(place).collect();
        let places: Vec<u32> = columns.iter().map(place).collect();
        let compact = self.rows.compact(&ascending, RowCaching::Off);
        for (some, out) in rows.chunks(FETCHED).zip(out.chunks_mut(FETCHED * stride)) {
            let values = compact.fetch_joined(some, ascending.len());
            for (row, out) in values.iter().zip(out.chunks_mut(stride)) {
                for (to, &at) in out.iter_mut().zip(&places) {
                    *to = row[at as usize];
                }
            }
        }
    }
}
