//! Kernel rows on demand: computed in blocks, cached in parts, shared between sub-problems.
//!
//! The rows of a data set stand in segments (the classes of a classifier, the folds of a
//! cross-validation). A sub-problem is a list of segments, and a row of its matrix is the list of
//! that row's parts against those segments, so that two sub-problems with a segment in common share
//! the parts against it. A value K(i, j) has the same bits whichever way it was computed.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use super::KernelBlocks;
use super::cache::{Piece, PieceCache};
use super::pool::{Buffer, Pool};
use crate::context::Context;
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

/// Feature products up to which computing a value again costs less than keeping it.
const CHEAP_PRODUCTS: usize = 64;

/// One row of a symmetric matrix in consecutive pieces.
pub type Row<T> = Vec<Piece<T>>;

/// A symmetric positive semidefinite matrix whose rows are computed on demand, in blocks.
///
/// Every row comes in the same pieces: piece k covers the variables
/// `pieces()[k]..pieces()[k + 1]`.
pub trait MatrixRows: Sync {
    /// Number format of the entries.
    type Value: Real;
    /// The matrix restricted to fewer variables.
    type Compact: MatrixRows<Value = Self::Value>;

    /// Number of variables.
    fn len(&self) -> usize {
        self.pieces().last().copied().unwrap_or(0)
    }

    /// Whether there are no variables.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Boundaries of the pieces: 0, …, number of variables.
    fn pieces(&self) -> &[usize];

    /// Entry (v, v).
    fn diagonal(&self, v: usize) -> f64;

    /// The rows of `variables`.
    fn fetch(&self, variables: &[u32]) -> Vec<Row<Self::Value>>;

    /// The rows of `variables` (distinct), each in one piece of `width` entries, zeros beyond its
    /// own.
    fn fetch_joined(&self, variables: &[u32], width: usize) -> Vec<Buffer<Self::Value>>;

    /// Memory for `count` rows of `length` entries, with any contents.
    fn buffers(&self, count: usize, length: usize) -> Vec<Buffer<Self::Value>>;

    /// The product with `beta`, computed afresh with sums in double precision.
    fn product(&self, beta: &[f64]) -> Vec<f64>;

    /// Adds Σ coefficient · row of `variables` to every column of `sums`; the coefficients of a
    /// variable, one per column, stand one after another.
    fn add_products(&self, variables: &[u32], coefficients: &[f64], sums: &mut [Vec<f64>]);

    /// Rows that a sub-problem may count on finding again. Does not depend on the number of threads,
    /// so that choices made by it do not either.
    fn capacity(&self) -> usize;

    /// Whether computing rows again costs less than keeping them.
    fn is_cheap(&self) -> bool;

    /// The matrix restricted to the variables `keep` (ascending), whose rows it computes again or
    /// keeps as `reuse` says.
    fn compact(&self, keep: &[u32], reuse: Reuse) -> Self::Compact;

    /// Entries computed so far.
    fn computed(&self) -> u64;
}

/// Which parts of rows several sub-problems need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Any part.
    Everywhere,
    /// Only parts against the row's own segment, as in one-vs-one, where two segments meet in one
    /// sub-problem alone; other parts are forgotten with the sub-problem.
    WithinSegment,
    /// None: who asks for a row keeps it.
    Nowhere,
}

/// Segmented kernel rows with their cache.
pub struct KernelRows<T: Real> {
    blocks: KernelBlocks<T>,
    /// Boundaries of the segments: 0, …, number of rows.
    segments: Vec<usize>,
    reuse: Reuse,
    cache: PieceCache<T>,
    pool: Pool,
    cache_bytes: usize,
    computed: AtomicU64,
}

impl<T: Real> KernelRows<T> {
    /// Rows in segments with the given boundaries (0 first, the number of rows last).
    pub fn new(
        blocks: KernelBlocks<T>,
        segments: Vec<usize>,
        reuse: Reuse,
        cache_bytes: usize,
    ) -> Self {
        Self::with_pool(blocks, segments, reuse, cache_bytes, Pool::default())
    }

    fn with_pool(
        blocks: KernelBlocks<T>,
        segments: Vec<usize>,
        reuse: Reuse,
        cache_bytes: usize,
        pool: Pool,
    ) -> Self {
        let keys = blocks.len() * segments.len().saturating_sub(1);
        let cache = PieceCache::new(keys, cache_bytes);
        Self { blocks, segments, reuse, cache, pool, cache_bytes, computed: AtomicU64::new(0) }
    }

    /// The matrix of the sub-problem made of `segments`, which may repeat.
    pub fn view<'a>(&'a self, segments: &[usize], context: &'a Context) -> RowsView<'a, T> {
        let mut pieces = vec![0];
        for &s in segments {
            pieces.push(pieces[pieces.len() - 1] + self.segment(s).len());
        }
        RowsView {
            rows: self,
            segments: segments.to_vec(),
            pieces,
            context,
            computed: AtomicU64::new(0),
            private: Mutex::new(Vec::new()),
        }
    }

    /// The engine behind the rows.
    pub fn blocks(&self) -> &KernelBlocks<T> {
        &self.blocks
    }

    /// Entries computed so far for all sub-problems.
    pub fn computed(&self) -> u64 {
        self.computed.load(Ordering::Relaxed)
    }

    fn segment(&self, s: usize) -> Range<usize> {
        self.segments[s]..self.segments[s + 1]
    }

    fn key(&self, row: usize, segment: usize) -> usize {
        row * (self.segments.len() - 1) + segment
    }

    /// The parts of `rows` (distinct) against one segment, and the keys of those computed.
    fn parts(
        &self,
        rows: &[usize],
        segment: usize,
        context: &Context,
    ) -> (Vec<Piece<T>>, Vec<usize>) {
        let keys: Vec<usize> = rows.iter().map(|&row| self.key(row, segment)).collect();
        let mut parts = self.cache.get(&keys);
        let missing: Vec<usize> = (0..rows.len()).filter(|&r| parts[r].is_none()).collect();
        if missing.is_empty() {
            return (parts.into_iter().flatten().collect(), Vec::new());
        }
        let left: Vec<usize> = missing.iter().map(|&r| rows[r]).collect();
        let mut values = self.pool.buffers(left.len(), self.segment(segment).len());
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
    fn compute(
        &self,
        left: &[usize],
        columns: Range<usize>,
        out: &mut [&mut [T]],
        context: &Context,
    ) {
        self.computed.fetch_add((left.len() * columns.len()) as u64, Ordering::Relaxed);
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
        tasks.par_iter_mut().enumerate().for_each(|(t, out)| {
            let start = columns.start + t * width;
            let columns = start..(start + width).min(columns.end);
            self.blocks.query_rows(&left, 0..out.len(), columns, out);
        });
    }

    /// Σ coefficientᵣ K(rowᵣ, ·) over one segment.
    fn combine(
        &self,
        rows: &[usize],
        coefficients: &[f64],
        segment: usize,
        context: &Context,
    ) -> Vec<f64> {
        let mut sums = vec![0.0; self.segment(segment).len()];
        let chunks = sums.chunks_mut(TASK_COLUMNS).collect();
        self.stream(rows, segment, chunks, context, |sums, group, parts| {
            accumulate(context.instruction_set(), sums, parts, &coefficients[group]);
        });
        sums
    }

    /// Adds Σ coefficientᵣ K(rowᵣ, ·) over one segment to every column of `sums`.
    fn combine_columns(
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
        self.stream(rows, segment, chunks, context, |sums, group, parts| {
            let amounts = &coefficients[group.start * columns..group.end * columns];
            accumulate_columns(context.instruction_set(), sums, parts, amounts);
        });
    }

    /// Hands the values of `rows` over one segment to `add`, some rows by [`TASK_COLUMNS`] columns at
    /// a time, in the order of the rows for every one of `chunks`, which are those columns.
    fn stream<O: Send>(
        &self,
        rows: &[usize],
        segment: usize,
        chunks: Vec<O>,
        context: &Context,
        add: impl Fn(&mut O, Range<usize>, &[&[T]]) + Sync,
    ) {
        let keys: Vec<usize> = rows.iter().map(|&row| self.key(row, segment)).collect();
        let cached = self.cache.peek(&keys);
        let missing: Vec<usize> = (0..rows.len()).filter(|&r| cached[r].is_none()).collect();
        let left: Vec<usize> = missing.iter().map(|&r| rows[r]).collect();
        let left = self.blocks.gather(&left);
        let columns = self.segment(segment);
        self.computed.fetch_add((missing.len() * columns.len()) as u64, Ordering::Relaxed);
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
                self.blocks.query_rows(&left, fresh, start..start + width, &mut values);
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
        if context.is_parallel() && chunks.len() > 1 {
            chunks.into_par_iter().enumerate().for_each_init(Vec::new, task);
        } else {
            let mut scratch = Vec::new();
            chunks.into_iter().enumerate().for_each(|chunk| task(&mut scratch, chunk));
        }
    }
}

/// The matrix of one sub-problem.
pub struct RowsView<'a, T: Real> {
    rows: &'a KernelRows<T>,
    segments: Vec<usize>,
    pieces: Vec<usize>,
    context: &'a Context,
    computed: AtomicU64,
    /// Keys of cached parts that no other sub-problem needs.
    private: Mutex<Vec<usize>>,
}

impl<T: Real> Drop for RowsView<'_, T> {
    fn drop(&mut self) {
        let private = self.private.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.rows.cache.remove(private);
    }
}

impl<T: Real> RowsView<'_, T> {
    /// Row of the data behind variable `v`.
    fn row(&self, v: usize) -> usize {
        let k = self.pieces.partition_point(|&start| start <= v) - 1;
        self.rows.segments[self.segments[k]] + v - self.pieces[k]
    }

    /// Counts the entries of parts that were computed against segment `s`.
    fn count(&self, parts: usize, s: usize) {
        let entries = (parts * self.rows.segment(s).len()) as u64;
        self.computed.fetch_add(entries, Ordering::Relaxed);
    }

    /// `of(s)` for the segment of every piece, evaluated once per distinct segment.
    fn each_segment<V: Clone>(&self, mut of: impl FnMut(usize) -> V) -> Vec<V> {
        let mut values: Vec<V> = Vec::with_capacity(self.segments.len());
        for (k, &s) in self.segments.iter().enumerate() {
            let value = match self.segments[..k].iter().position(|&earlier| earlier == s) {
                Some(earlier) => values[earlier].clone(),
                None => of(s),
            };
            values.push(value);
        }
        values
    }
}

impl<'a, T: Real> MatrixRows for RowsView<'a, T> {
    type Value = T;
    type Compact = CompactRows<'a, T>;

    fn pieces(&self) -> &[usize] {
        &self.pieces
    }

    fn diagonal(&self, v: usize) -> f64 {
        self.rows.blocks.diagonal()[self.row(v)].to_f64()
    }

    fn fetch(&self, variables: &[u32]) -> Vec<Row<T>> {
        let rows: Vec<usize> = variables.iter().map(|&v| self.row(v as usize)).collect();
        let mut distinct = rows.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let parts = self.each_segment(|s| {
            let (parts, new_keys) = self.rows.parts(&distinct, s, self.context);
            self.count(new_keys.len(), s);
            if self.rows.reuse == Reuse::WithinSegment {
                let segment = self.rows.segment(s);
                let own = |key: &usize| segment.contains(&(key / (self.rows.segments.len() - 1)));
                let mut private = self.private.lock().unwrap_or_else(PoisonError::into_inner);
                private.extend(new_keys.iter().filter(|key| !own(key)));
            }
            parts
        });
        rows.iter()
            .map(|row| {
                let at = distinct.partition_point(|other| other < row);
                parts.iter().map(|of_segment| Arc::clone(&of_segment[at])).collect()
            })
            .collect()
    }

    fn fetch_joined(&self, variables: &[u32], width: usize) -> Vec<Buffer<T>> {
        let rows: Vec<usize> = variables.iter().map(|&v| self.row(v as usize)).collect();
        let mut joined = self.rows.pool.buffers::<T>(rows.len(), width);
        for (&s, piece) in self.segments.iter().zip(self.pieces.windows(2)) {
            let segment = self.rows.segment(s);
            let (mut shared, mut shared_out) = (Vec::new(), Vec::new());
            let (mut private, mut private_out) = (Vec::new(), Vec::new());
            for (&row, out) in rows.iter().zip(&mut joined) {
                let out = &mut out[piece[0]..piece[1]];
                let keep = match self.rows.reuse {
                    Reuse::Everywhere => true,
                    Reuse::WithinSegment => segment.contains(&row),
                    Reuse::Nowhere => false,
                };
                if keep {
                    shared.push(row);
                    shared_out.push(out);
                } else {
                    private.push(row);
                    private_out.push(out);
                }
            }
            let (parts, new_keys) = self.rows.parts(&shared, s, self.context);
            for (part, out) in parts.iter().zip(shared_out) {
                out.copy_from_slice(part);
            }
            self.rows.compute(&private, segment, &mut private_out, self.context);
            self.count(new_keys.len() + private.len(), s);
        }
        for row in &mut joined {
            row[self.len()..].fill(T::ZERO);
        }
        joined
    }

    fn buffers(&self, count: usize, length: usize) -> Vec<Buffer<T>> {
        self.rows.pool.buffers(count, length)
    }

    fn product(&self, beta: &[f64]) -> Vec<f64> {
        let mut terms: Vec<(usize, f64)> =
            (0..beta.len()).filter(|&v| beta[v] != 0.0).map(|v| (self.row(v), beta[v])).collect();
        terms.sort_by_key(|&(row, _)| row);
        terms.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1 += later.1;
            }
            same
        });
        let (rows, coefficients): (Vec<usize>, Vec<f64>) = terms.into_iter().unzip();
        self.each_segment(|s| self.rows.combine(&rows, &coefficients, s, self.context)).concat()
    }

    fn add_products(&self, variables: &[u32], coefficients: &[f64], sums: &mut [Vec<f64>]) {
        let rows: Vec<usize> = variables.iter().map(|&v| self.row(v as usize)).collect();
        let amounts: Vec<T> = coefficients.iter().map(|&amount| T::from_f64(amount)).collect();
        for (&s, piece) in self.segments.iter().zip(self.pieces.windows(2)) {
            let sums = sums.iter_mut().map(|column| &mut column[piece[0]..piece[1]]).collect();
            self.rows.combine_columns(&rows, &amounts, s, sums, self.context);
        }
    }

    fn capacity(&self) -> usize {
        self.rows.cache_bytes / (2 * size_of::<T>() * self.len().max(1))
    }

    fn is_cheap(&self) -> bool {
        self.rows.blocks.products_per_value() <= CHEAP_PRODUCTS
    }

    fn compact(&self, keep: &[u32], reuse: Reuse) -> CompactRows<'a, T> {
        let kept: Vec<usize> = keep.iter().map(|&v| self.row(v as usize)).collect();
        CompactRows::new(self.rows, &kept, reuse, self.context)
    }

    fn computed(&self) -> u64 {
        self.computed.load(Ordering::Relaxed)
    }
}

/// A matrix packed anew after variables were set aside, with a cache of its own.
pub struct CompactRows<'a, T: Real> {
    rows: KernelRows<T>,
    pieces: [usize; 2],
    context: &'a Context,
}

impl<'a, T: Real> CompactRows<'a, T> {
    /// Packs the rows `keep` of `parent`, one variable each.
    fn new(parent: &KernelRows<T>, keep: &[usize], reuse: Reuse, context: &'a Context) -> Self {
        let blocks = parent.blocks.subset(keep);
        let cache_bytes = match reuse {
            Reuse::Nowhere => 0,
            Reuse::Everywhere | Reuse::WithinSegment => parent.cache_bytes / 2,
        };
        parent.cache.set_limit(parent.cache_bytes - cache_bytes);
        let n = keep.len();
        let pool = parent.pool.clone();
        Self {
            rows: KernelRows::with_pool(blocks, vec![0, n], reuse, cache_bytes, pool),
            pieces: [0, n],
            context,
        }
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
        self.rows.blocks.diagonal()[v].to_f64()
    }

    fn fetch(&self, variables: &[u32]) -> Vec<Row<T>> {
        self.view().fetch(variables)
    }

    fn fetch_joined(&self, variables: &[u32], width: usize) -> Vec<Buffer<T>> {
        self.view().fetch_joined(variables, width)
    }

    fn buffers(&self, count: usize, length: usize) -> Vec<Buffer<T>> {
        self.rows.pool.buffers(count, length)
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

    fn compact(&self, keep: &[u32], reuse: Reuse) -> Self {
        let kept: Vec<usize> = keep.iter().map(|&v| v as usize).collect();
        Self::new(&self.rows, &kept, reuse, self.context)
    }

    fn computed(&self) -> u64 {
        self.rows.computed()
    }
}
