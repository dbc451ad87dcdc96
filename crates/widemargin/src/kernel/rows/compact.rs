//! A smaller matrix, packed again after shrinking, with a cache of its own.

use std::sync::Arc;

use super::{Buffer, KernelRows, MatrixRows, Row, RowCaching, RowsView};
use crate::context::Context;
use crate::numeric::parallel::Scratches;
use crate::numeric::simd::Real;

/// A matrix packed anew after variables were set aside, with a cache of its own.
pub(crate) struct CompactRows<'a, T: Real> {
    rows: KernelRows<T>,
    pieces: [usize; 2],
    context: &'a Context,
}

impl<'a, T: Real> CompactRows<'a, T> {
    /// Packs the rows `keep` of `parent`, one variable each.
    pub(super) fn new(
        parent: &KernelRows<T>,
        keep: &[usize],
        caching: RowCaching,
        context: &'a Context,
    ) -> Self {
        let blocks = parent.blocks().subset(keep);
        let cache_bytes = match caching {
            RowCaching::Off => 0,
            RowCaching::All | RowCaching::OwnSegment => parent.cache_bytes / 2,
        };
        parent.cache.set_limit(parent.cache_bytes - cache_bytes);
        let n = keep.len();
        let (segments, pool) = (vec![0, n], parent.pool.clone());
        let matrices = Arc::clone(&parent.matrices);
        let rows = KernelRows::with_memory(blocks, segments, caching, cache_bytes, pool, matrices);
        Self { rows, pieces: [0, n], context }
    }

    fn view(&self) -> RowsView<'_, T> {
        self.rows.view(&[0], self.context)
    }
}

impl<T: Real> MatrixRows for CompactRows<'_, T> {
    type Value = T;
    type Compact = Self;

    fn pieces(&self) -> &[usize] {
        &self.pieces
    }

    fn diagonal(&self, v: usize) -> f64 {
        self.rows.blocks().diagonal()[v].to_f64()
    }

    fn fetch(&self, variables: &[u32]) -> Vec<Row<T>> {
        self.view().fetch(variables)
    }

    fn fetch_joined(&self, variables: &[u32], width: usize) -> Vec<Buffer<T>> {
        self.view().fetch_joined(variables, width)
    }

    fn buffers(&self, count: usize, length: usize) -> Vec<Buffer<T>> {
        self.rows.buffers(count, length)
    }

    fn matrices(&self) -> &Scratches<Vec<T>> {
        &self.rows.matrices
    }

    fn product(&self, beta: &[f64]) -> Vec<f64> {
        self.view().product(beta)
    }

    fn add_products(&self, variables: &[u32], coefficients: &[f64], sums: &mut [Vec<f64>]) {
        self.view().add_products(variables, coefficients, sums);
    }

    fn capacity(&self) -> usize {
        self.view().capacity()
    }

    fn is_cheap(&self) -> bool {
        self.view().is_cheap()
    }

    fn compact(&self, keep: &[u32], caching: RowCaching) -> Self {
        let kept: Vec<usize> = keep.iter().map(|&v| v as usize).collect();
        Self::new(&self.rows, &kept, caching, self.context)
    }

    fn requested(&self) -> u64 {
        self.rows.requested()
    }
}
