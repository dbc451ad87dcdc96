//! Sums and products of kernels: the blocks of the parts, combined value by value.

use std::ops::Range;

use super::{KernelBlocks, Queries};
use crate::data::Matrix;
use crate::error::Result;
use crate::numeric::simd::Real;

/// Left rows whose parts are held at the same time.
const CHUNK: usize = 64;

/// How parts combine.
#[derive(Clone, Copy, Debug)]
pub(super) enum Combination {
    /// Σ wᵢ Kᵢ
    Sum,
    /// Π Kᵢ
    Product,
}

/// The engines of the parts.
#[derive(Clone)]
pub(super) struct Combined<T: Real> {
    combination: Combination,
    parts: Vec<(T, KernelBlocks<T>)>,
}

impl<T: Real> Combined<T> {
    pub(super) fn new(combination: Combination, parts: Vec<(T, KernelBlocks<T>)>) -> Self {
        Self { combination, parts }
    }

    /// Number of columns a row has to have.
    pub(super) fn columns(&self) -> usize {
        self.parts[0].1.columns()
    }

    fn combine(&self, total: &mut [T], part: &[T], weight: T, first: bool) {
        let pairs = total.iter_mut().zip(part);
        match (self.combination, first) {
            (Combination::Sum, true) => pairs.for_each(|(t, &p)| *t = weight * p),
            (Combination::Sum, false) => pairs.for_each(|(t, &p)| *t += weight * p),
            (Combination::Product, true) => pairs.for_each(|(t, &p)| *t = p),
            (Combination::Product, false) => pairs.for_each(|(t, &p)| *t = *t * p),
        }
    }

    /// K(i, i) of the packed rows.
    pub(super) fn diagonal(&self) -> Vec<T> {
        let parts = self.parts.iter().map(|(weight, blocks)| (*weight, blocks.diagonal()));
        self.combine_all(parts)
    }

    fn combine_all<'a>(&self, parts: impl Iterator<Item = (T, &'a [T])>) -> Vec<T> {
        let mut total = Vec::new();
        for (at, (weight, values)) in parts.enumerate() {
            total.resize(values.len(), T::ZERO);
            self.combine(&mut total, values, weight, at == 0);
        }
        total
    }

    /// Foreign rows for every part, and their similarities with themselves.
    pub(super) fn prepare(
        &self,
        matrix: &Matrix,
        rows: &[usize],
    ) -> Result<(Vec<Queries<T>>, Vec<T>)> {
        let parts = self.parts.iter().map(|(_, blocks)| blocks.prepare_rows(matrix, rows));
        let queries: Vec<Queries<T>> = parts.collect::<Result<_>>()?;
        let own: Vec<&[T]> =
            queries.iter().map(Queries::self_similarities).collect::<Result<_>>()?;
        let weights = self.parts.iter().map(|(weight, _)| *weight);
        let own = self.combine_all(weights.zip(own));
        Ok((queries, own))
    }

    pub(super) fn gather(&self, rows: &[usize]) -> Vec<Queries<T>> {
        self.parts.iter().map(|(_, blocks)| blocks.gather(rows)).collect()
    }

    pub(super) fn subset(&self, keep: &[usize]) -> Self {
        let parts = self.parts.iter().map(|(weight, blocks)| (*weight, blocks.subset(keep)));
        Self { combination: self.combination, parts: parts.collect() }
    }

    pub(super) fn product(
        &self,
        left: &[Queries<T>],
        rows: Range<usize>,
        columns: Range<usize>,
        out: &mut [&mut [T]],
    ) {
        let width = columns.len();
        let mut scratch = vec![T::ZERO; rows.len().min(CHUNK) * width];
        for (chunk, out) in out.chunks_mut(CHUNK).enumerate() {
            let first = rows.start + chunk * CHUNK;
            let rows = first..first + out.len();
            for (at, ((weight, blocks), queries)) in self.parts.iter().zip(left).enumerate() {
                blocks.query_block(queries, rows.clone(), columns.clone(), &mut scratch, width);
                for (total, part) in out.iter_mut().zip(scratch.chunks(width.max(1))) {
                    self.combine(total, part, *weight, at == 0);
                }
            }
        }
    }
}
