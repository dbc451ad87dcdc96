//! Squared distances between rows in blocks: ‖x‖² + ‖z‖² − 2⟨x, z⟩, the products by the kernel
//! engine.
//!
//! Rows that are not mostly zeros are centred first, so that the difference loses few digits.

use std::ops::Range;

use super::rows::column_means;
use crate::context::Context;
use crate::data::{Dense, Matrix};
use crate::error::Result;
use crate::kernel::{Kernel, KernelBlocks, Queries};
use crate::numeric::algebra::squared_distance;
use crate::numeric::simd::Real;

/// Share of non-zeros from which rows are centred; below, the engine multiplies non-zeros only.
const DENSE_FROM: f64 = 0.5;

/// Rows to measure distances to.
pub(super) struct Distances<T: Real> {
    blocks: KernelBlocks<T>,
    origin: Option<Vec<f64>>,
    norms: Vec<f64>,
}

/// Rows to measure from.
pub(super) struct Measured<T: Real> {
    pub(super) queries: Queries<T>,
    /// ‖x‖² of every row.
    pub(super) norms: Vec<f64>,
    /// Terms that are not zero in its products, at most.
    pub(super) terms: Vec<usize>,
}

impl<T: Real> Distances<T> {
    /// Packs rows.
    pub(super) fn new(rows: &Matrix, context: &Context) -> Result<Self> {
        let origin = (rows.density() >= DENSE_FROM).then(|| column_means(rows));
        let (centred, norms) = moved(rows, 0..rows.rows(), origin.as_deref())?;
        let blocks = KernelBlocks::new(&Kernel::Linear, &centred, None, context)?;
        Ok(Self { blocks, origin, norms })
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.norms.len()
    }

    /// ‖z‖² of every row, from the same origin as [`Measured::norms`].
    pub(super) fn norms(&self) -> &[f64] {
        &self.norms
    }

    /// Makes rows ready to measure from.
    pub(super) fn measure(&self, queries: &Matrix, range: Range<usize>) -> Result<Measured<T>> {
        let count = range.len();
        let (centred, norms) = moved(queries, range, self.origin.as_deref())?;
        let terms = |i: usize| {
            let mut terms = 0;
            centred.for_each_nonzero(i, |_, _| terms += 1);
            terms
        };
        let terms = (0..count).map(terms).collect();
        Ok(Measured { queries: self.blocks.prepare(&centred, 0..count)?, norms, terms })
    }

    /// Writes ⟨x, z⟩ of measured row i and row `columns.start` + j to `out[i · stride + j]`.
    pub(super) fn products(
        &self,
        from: &Measured<T>,
        columns: Range<usize>,
        out: &mut [T],
        stride: usize,
    ) {
        self.blocks.query_block(&from.queries, 0..from.queries.len(), columns, out, stride);
    }
}

/// Rows less the origin, and their squared norms.
fn moved(rows: &Matrix, range: Range<usize>, origin: Option<&[f64]>) -> Result<(Matrix, Vec<f64>)> {
    let Some(origin) = origin else {
        let norm = |i: usize| {
            let mut sum = 0.0;
            rows.for_each_nonzero(i, |_, value| sum += value * value);
            sum
        };
        let norms = range.clone().map(norm).collect();
        let whole = range == (0..rows.rows());
        let part = if whole { rows.clone() } else { rows.select_rows(&range.collect::<Vec<_>>()) };
        return Ok((part, norms));
    };
    let columns = origin.len();
    let mut values = vec![0.0; range.len() * columns];
    for (i, out) in range.clone().zip(values.chunks_exact_mut(columns.max(1))) {
        rows.copy_row(i, out);
        out.iter_mut().zip(origin).for_each(|(value, origin)| *value -= origin);
    }
    let norms = values.chunks_exact(columns.max(1)).map(|row| row.iter().map(|v| v * v).sum());
    let norms = norms.collect();
    Ok((Matrix::DenseF64(Dense::new(range.len(), columns, values)?), norms))
}

/// Features up to which sparse rows are laid out densely to be compared.
pub(super) const FEW_FEATURES: usize = 1 << 20;

/// ‖x − z‖² of single pairs of rows as a sum of squared differences, which loses no digits.
pub(super) struct ExactDistances<'a> {
    queries: &'a Matrix,
    rows: &'a Matrix,
    /// A query and a row laid out densely, unless that would take much memory for few values.
    dense: Option<(Vec<f64>, Vec<f64>)>,
}

impl<'a> ExactDistances<'a> {
    pub(super) fn new(queries: &'a Matrix, rows: &'a Matrix) -> Self {
        let columns = rows.columns();
        let is_sparse = rows.is_sparse() && queries.is_sparse() && columns > FEW_FEATURES;
        let dense = (!is_sparse).then(|| (vec![0.0; columns], vec![0.0; columns]));
        Self { queries, rows, dense }
    }

    /// The squared distances of one query to the rows at `places`.
    pub(super) fn squared(
        &mut self,
        query: usize,
        places: impl Iterator<Item = usize>,
    ) -> Vec<f64> {
        let Some((x, z)) = &mut self.dense else {
            let x = nonzeros(self.queries, query);
            return places.map(|i| sparse_squared_distance(&x, &nonzeros(self.rows, i))).collect();
        };
        self.queries.copy_row(query, x);
        let squared = |i| {
            self.rows.copy_row(i, z);
            squared_distance(x, z)
        };
        places.map(squared).collect()
    }
}

/// The values of a row that are not 0, with their features.
fn nonzeros(rows: &Matrix, i: usize) -> Vec<(usize, f64)> {
    let mut found = Vec::new();
    rows.for_each_nonzero(i, |j, value| found.push((j, value)));
    found
}

/// ‖x − y‖² of rows given by their values that are not 0.
fn sparse_squared_distance(x: &[(usize, f64)], y: &[(usize, f64)]) -> f64 {
    let (mut sum, mut rest) = (0.0, y);
    for &(j, value) in x {
        let before = rest.iter().take_while(|(k, _)| *k < j).count();
        sum += rest[..before].iter().map(|(_, other)| other * other).sum::<f64>();
        rest = &rest[before..];
        let other = match rest.first() {
            Some(&(k, other)) if k == j => {
                rest = &rest[1..];
                other
            }
            _ => 0.0,
        };
        sum += (value - other) * (value - other);
    }
    sum + rest.iter().map(|(_, other)| other * other).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::sparse_squared_distance;

    #[test]
    fn distances_of_sparse_rows_are_exact() {
        let (x, y) = ([(1, 2.0), (4, -1.0)], [(0, 3.0), (4, 1.0), (9, 2.0)]);
        for (a, b, expected) in [(&x[..], &y[..], 21.0), (&y[..], &x[..], 21.0), (&x[..], &[], 5.0)]
        {
            assert_eq!(sparse_squared_distance(a, b), expected);
        }
    }
}
