//! The rows of a kernel matrix in segments, their cache, and products with vectors.

use std::ops::Range;
use std::sync::Arc;

use super::cache::{Piece, PieceCache};
use super::pool::{Buffer, Pool};
use super::requests::Requests;
use super::{RowCaching, RowsView};
use crate::context::Context;
use crate::error::Result;
use crate::kernel::KernelBlocks;
use crate::numeric::parallel::Scratches;
use crate::numeric::simd::{Real, accumulate, accumulate_columns};

/// Columns of a block that one task computes; those of [`PRODUCT_ROWS`] rows stay in the second-level
/// cache.
const TASK_COLUMNS: usize = 512;

/// Rows whose contributions to a product are added in one pass.
const PRODUCT_ROWS: usize = 256;

/// Tasks that a block is cut into for every thread.
const TASKS_PER_THREAD: usize = 4;

/// Columns of a task are a multiple of this, which dense and sparse panels divide.
const WHOLE_PANELS: usize = 192;

/// Segmented kernel rows with their cache.
pub(crate) struct KernelRows<T: Real> {
    blocks: KernelBlocks<T>,
    /// Boundaries of the segments: 0, …, number of rows.
    pub(super) segments: Vec<usize>,
    pub(super) caching: RowCaching,
    pub(super) cache: PieceCache<T>,
    pub(super) pool: Pool,
    /// Memory of matrices among few variables, for every problem over these rows.
    pub(super) matrices: Arc<Scratches<Vec<T>>>,
    pub(super) cache_bytes: usize,
    requests: Requests,
}

impl<T: Real> KernelRows<T> {
    /// Rows in segments with the given boundaries (0 first, the number of rows last).
    pub(crate) fn new(
        blocks: KernelBlocks<T>,
        segments: Vec<usize>,
        caching: RowCaching,
        cache_bytes: usize,
    ) -> Self {
        let matrices = Arc::new(Scratches::new());
        Self::with_memory(blocks, segments, caching, cache_bytes, Pool::default(), matrices)
    }

    /// The same with the memory of other rows.
    pub(super) fn with_memory(
        blocks: KernelBlocks<T>,
        segments: Vec<usize>,
        caching: RowCaching,
        cache_bytes: usize,
        pool: Pool,
        matrices: Arc<Scratches<Vec<T>>>,
    ) -> Self {
        let keys = blocks.len() * segments.len().saturating_sub(1);
        let cache = PieceCache::new(keys, cache_bytes);
        let requests = Requests::new(keys);
        Self { blocks, segments, caching, cache, pool, matrices, cache_bytes, requests }
    }

    /// The matrix of the sub-problem made of `segments`, which may repeat.
    pub(crate) fn view<'a>(&'a self, segments: &[usize], context: &'a Context) -> RowsView<'a, T> {
        let mut pieces = vec![0];
        for &s in segments {
            pieces.push(pieces[pieces.len() - 1] + self.segment(s).len());
        }
        RowsView::new(self, segments.to_vec(), pieces, context)
    }

    /// Gives a weighted sum of kernels other weights: cached rows are dropped, and nothing is packed
    /// again.
    ///
    /// # Errors
    /// As [`KernelBlocks::reweight`].
    pub(crate) fn reweight(&mut self, weights: &[f64]) -> Result<()> {
        self.blocks.reweight(weights)?;
        self.cache.clear();
        self.requests.renew();
        Ok(())
    }

    /// The packed rows.
    pub(crate) fn blocks(&self) -> &KernelBlocks<T> {
        &self.blocks
    }

    /// Entries that all sub-problems asked for so far, each counted once.
    pub(crate) fn requested(&self) -> u64 {
        self.requests.entries()
    }

    /// Counts the parts of `rows` against one segment as asked for.
    pub(super) fn ask(&self, rows: &[usize], segment: usize) {
        let entries = self.segment(segment).len();
        rows.iter().for_each(|&row| self.requests.ask(self.key(row, segment), entries));
    }

    pub(super) fn segment(&self, s: usize) -> Range<usize> {
        self.segments[s]..self.segments[s + 1]
    }

    fn key(&self, row: usize, segment: usize) -> usize {
        row * (self.segments.len() - 1) + segment
    }

    /// Memory for `count` rows of `length` values; where the system has none left, that of cached
    /// rows is used again.
    pub(super) fn buffers(&self, count: usize, length: usize) -> Vec<Buffer<T>> {
        loop {
            match self.pool.buffers(count, length) {
                Ok(buffers) => return buffers,
                Err(_) if self.cache.halve() => {}
                Err(error) => error.unwind(),
            }
        }
    }

    /// The parts of `rows` (distinct) against one segment, and the keys of those computed.
    pub(super) fn parts(
        &self,
        rows: &[usize],
        segment: usize,
        context: &Context,
    ) -> (Vec<Piece<T>>, Vec<usize>) {
        self.ask(rows, segment);
        let keys: Vec<usize> = rows.iter().map(|&row| self.key(row, segment)).collect();
        let mut parts = self.cache.get(&keys);
        let missing: Vec<usize> = (0..rows.len()).filter(|&r| parts[r].is_none()).collect();
        if missing.is_empty() {
            return (parts.into_iter().flatten().collect(), Vec::new());
        }
        let left: Vec<usize> = missing.iter().map(|&r| rows[r]).collect();
        let mut values = self.buffers(left.len(), self.segment(segment).len());
        let mut out: Vec<&mut [T]> = values.iter_mut().map(|row| &mut row[..]).collect();
        self.compute(&left, self.segment(segment), &mut out, context);
        let fresh: Vec<Piece<T>> = values.into_iter().map(Arc::new).collect();
        let new_keys: Vec<usize> = missing.iter().map(|&r| keys[r]).collect();
        self.cache.insert(new_keys.iter().copied().zip(fresh.iter().cloned()));
        for (&r, part) in missing.iter().zip(fresh) {
            parts[r] = Some(part);
        }
        (parts.into_iter().flatten().collect(), new_keys)
    }

    /// out[r] = K(left[r], columns).
    pub(super) fn compute(
        &self,
        left: &[usize],
        columns: Range<usize>,
        out: &mut [&mut [T]],
        context: &Context,
    ) {
        if !context.is_parallel() || columns.len() <= TASK_COLUMNS {
            return self.blocks.block(left, columns, out);
        }
        let tasks_wanted = TASKS_PER_THREAD * context.threads();
        let width = columns.len().div_ceil(tasks_wanted).next_multiple_of(WHOLE_PANELS);
        let mut tasks: Vec<Vec<&mut [T]>> =
            columns.clone().step_by(width).map(|_| Vec::new()).collect();
        for row in out {
            for (task, part) in tasks.iter_mut().zip(row.chunks_mut(width)) {
                task.push(part);
            }
        }
        let left = self.blocks.gather(left);
        context.for_each(tasks.iter_mut().enumerate(), |(t, out)| {
            let start = columns.start + t * width;
            let columns = start..(start + width).min(columns.end);
            self.blocks.query_rows(&left, 0..out.len(), columns, out);
        });
    }

    /// Σ coefficientᵣ K(rowᵣ, ·) over one segment, K being that of `blocks`: the matrix itself or a
    /// term of it, whose rows are not cached.
    pub(super) fn combine(
        &self,
        blocks: &KernelBlocks<T>,
        rows: &[usize],
        coefficients: &[f64],
        segment: usize,
        context: &Context,
    ) -> Vec<f64> {
        let mut sums = vec![0.0; self.segment(segment).len()];
        if blocks.add_products(rows, coefficients, self.segment(segment), &mut [&mut sums]) {
            return sums;
        }
        let chunks = sums.chunks_mut(TASK_COLUMNS).collect();
        let cached = if std::ptr::eq(blocks, &self.blocks) {
            self.cached(rows, segment)
        } else {
            vec![None; rows.len()]
        };
        self.stream(blocks, &cached, rows, segment, chunks, context, |sums, group, parts| {
            accumulate(context.instruction_set(), sums, parts, &coefficients[group]);
        });
        sums
    }

    /// Adds Σ coefficientᵣ K(rowᵣ, ·) over one segment to every column of `sums`.
    pub(super) fn combine_columns(
        &self,
        rows: &[usize],
        coefficients: &[T],
        segment: usize,
        sums: Vec<&mut [f64]>,
        context: &Context,
    ) {
        let columns = sums.len();
        let mut chunks: Vec<Vec<&mut [f64]>> =
            self.segment(segment).step_by(TASK_COLUMNS).map(|_| Vec::new()).collect();
        for column in sums {
            for (chunk, part) in chunks.iter_mut().zip(column.chunks_mut(TASK_COLUMNS)) {
                chunk.push(part);
            }
        }
        let cached = self.cached(rows, segment);
        self.stream(&self.blocks, &cached, rows, segment, chunks, context, |sums, group, parts| {
            let amounts = &coefficients[group.start * columns..group.end * columns];
            accumulate_columns(context.instruction_set(), sums, parts, amounts);
        });
    }

    /// The parts of `rows` against one segment that are cached.
    fn cached(&self, rows: &[usize], segment: usize) -> Vec<Option<Piece<T>>> {
        let keys: Vec<usize> = rows.iter().map(|&row| self.key(row, segment)).collect();
        self.cache.peek(&keys)
    }

    /// Hands the values of `rows` over one segment to `add`, some rows by [`TASK_COLUMNS`] columns at
    /// a time, in the order of the rows for every one of `chunks`, which are those columns.
    fn stream<O: Send>(
        &self,
        blocks: &KernelBlocks<T>,
        cached: &[Option<Piece<T>>],
        rows: &[usize],
        segment: usize,
        chunks: Vec<O>,
        context: &Context,
        add: impl Fn(&mut O, Range<usize>, &[&[T]]) + Sync,
    ) {
        self.ask(rows, segment);
        let missing: Vec<usize> = (0..rows.len()).filter(|&r| cached[r].is_none()).collect();
        let left: Vec<usize> = missing.iter().map(|&r| rows[r]).collect();
        let left = blocks.gather(&left);
        let columns = self.segment(segment);
        let task = |scratch: &mut Vec<T>, (t, mut chunk): (usize, O)| {
            let offset = t * TASK_COLUMNS;
            let width = TASK_COLUMNS.min(columns.len() - offset);
            let start = columns.start + offset;
            scratch.resize(PRODUCT_ROWS.min(missing.len()) * TASK_COLUMNS, T::ZERO);
            for group in (0..rows.len()).step_by(PRODUCT_ROWS) {
                let group = group..(group + PRODUCT_ROWS).min(rows.len());
                let fresh = missing.partition_point(|&r| r < group.start)
                    ..missing.partition_point(|&r| r < group.end);
                let mut values: Vec<&mut [T]> =
                    scratch.chunks_mut(width).take(fresh.len()).collect();
                blocks.query_rows(&left, fresh, start..start + width, &mut values);
                let mut values = values.into_iter().map(|part| &*part);
                let parts: Vec<&[T]> = group
                    .clone()
                    .filter_map(|r| match &cached[r] {
                        Some(part) => Some(&part[offset..offset + width]),
                        None => values.next(),
                    })
                    .collect();
                add(&mut chunk, group, &parts);
            }
        };
        let scratches = Scratches::new();
        context.for_each_if(chunks.len() > 1, chunks.into_iter().enumerate(), |chunk| {
            scratches.with(|scratch| task(scratch, chunk))
        });
    }
}
