//! Dense rows packed once into panels, and the register tile that multiplies them.
//!
//! A panel holds three vectors' worth of rows feature by feature; the left rows of a product are
//! packed into groups of four or eight. A tile of a group and a panel is summed in registers, one
//! accumulator per value and features ascending, so that a value never depends on its neighbours.

// Panels and tiles are read and written through pointers.
#![allow(unsafe_code)]

use std::ops::Range;

use super::aligned::Aligned;
use super::pairing::{ChiSquared, Distance, Pairing, Product, Step};
use super::transform::{Tile, Transform, finish};
use crate::numeric::InstructionSet;
use crate::numeric::simd::{Lanes, Real, Task, Vector, VectorFamily, dispatch};

/// Vectors of a panel.
pub(super) const VECTORS: usize = 3;

/// Bytes of left rows that are multiplied with one panel after the other while they stay in the
/// second-level cache.
const CHUNK_BYTES: usize = 256 * 1024;

/// Features summed in one go; longer rows are summed piece by piece, each piece of a panel serving
/// all left rows while it is in the second-level cache.
const DEPTH: usize = 1024;

/// Widths that depend on the instruction set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Rows of a panel.
    pub(super) panel: usize,
    /// Rows of a group.
    pub(super) group: usize,
}

impl Shape {
    /// The widths for elements `T` under `set`.
    pub(super) fn of<T: Real>(set: InstructionSet) -> Self {
        struct Measure<T>(std::marker::PhantomData<T>);
        impl<T: Real> Task for Measure<T> {
            type Output = Shape;

            #[inline(always)]
            unsafe fn run<F: VectorFamily>(self) -> Shape {
                Shape { panel: VECTORS * Vector::<T, F>::WIDTH, group: F::TILE_ROWS }
            }
        }
        dispatch(set, Measure::<T>(std::marker::PhantomData))
    }
}

/// Rows stored feature by feature in stripes of `stride` rows; the last stripe is padded with zeros.
#[derive(Clone)]
pub(super) struct Stripes<T> {
    values: Aligned<T>,
    stride: usize,
    depth: usize,
    rows: usize,
}

impl<T: Real> Stripes<T> {
    /// Room for `rows` rows of `depth` features.
    pub(super) fn new(rows: usize, depth: usize, stride: usize) -> Self {
        // One vector more than needed lets the last stripe be read in whole vectors.
        let length = rows.div_ceil(stride) * stride * depth + 64;
        Self { values: Aligned::zeros(length), stride, depth, rows }
    }

    fn start(&self, row: usize) -> usize {
        row / self.stride * self.stride * self.depth + row % self.stride
    }

    /// Stores row `row`.
    #[inline(always)]
    pub(super) fn set(&mut self, row: usize, values: &[T]) {
        let lane = row % self.stride;
        let start = self.start(row) - lane;
        let places = self.values[start..].chunks_exact_mut(self.stride);
        for (place, &value) in places.zip(values) {
            place[lane] = value;
        }
    }

    /// Rows of a stripe.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// The values of stripe `p`, feature by feature.
    pub(super) fn stripe(&self, p: usize) -> &[T] {
        let length = self.stride * self.depth;
        &self.values[p * length..(p + 1) * length]
    }

    /// −⟨weights, row⟩ of every place of every stripe.
    pub(super) fn negative_products(&self, weights: &[f64]) -> Vec<T> {
        let mut products = vec![0.0; self.rows.div_ceil(self.stride) * self.stride];
        for (p, products) in products.chunks_exact_mut(self.stride).enumerate() {
            for (values, weight) in self.stripe(p).chunks_exact(self.stride).zip(weights) {
                for (product, value) in products.iter_mut().zip(values) {
                    *product -= weight * value.to_f64();
                }
            }
        }
        products.into_iter().map(T::from_f64).collect()
    }

    /// Σ |x| of every row.
    pub(super) fn absolute_norms(&self) -> Vec<f64> {
        let mut norms = vec![0.0; self.rows.div_ceil(self.stride) * self.stride];
        for (p, norms) in norms.chunks_exact_mut(self.stride).enumerate() {
            for values in self.stripe(p).chunks_exact(self.stride) {
                norms.iter_mut().zip(values).for_each(|(norm, v)| *norm += v.to_f64().abs());
            }
        }
        norms.truncate(self.rows);
        norms
    }

    /// The rows named by `rows`, in stripes of `stride`.
    pub(super) fn select(&self, rows: &[usize], stride: usize) -> Self {
        let mut selected = Self::new(rows.len(), self.depth, stride);
        for (to, &from) in rows.iter().enumerate() {
            let (from, to) = (self.start(from), selected.start(to));
            let values = self.values[from..].iter().step_by(self.stride);
            let places = selected.values[to..].iter_mut().step_by(stride);
            for (place, &value) in places.zip(values).take(self.depth) {
                *place = value;
            }
        }
        selected
    }

    /// Σ x² of every row, summed as the tiles sum.
    pub(super) fn squared_norms(&self, set: InstructionSet) -> Vec<T> {
        let mut norms = vec![T::ZERO; self.rows.div_ceil(self.stride) * self.stride];
        dispatch(set, Norms { stripes: self, norms: &mut norms });
        norms.truncate(self.rows);
        norms
    }
}

struct Norms<'a, T> {
    stripes: &'a Stripes<T>,
    norms: &'a mut [T],
}

impl<T: Real> Task for Norms<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<F: VectorFamily>(self) {
        let Stripes { stride, depth, .. } = *self.stripes;
        let width = Vector::<T, F>::WIDTH;
        for (stripe, norms) in self.norms.chunks_mut(stride).enumerate() {
            for lane in (0..stride).step_by(width) {
                // SAFETY: the stripe has `depth` times `stride` values, and reading a vector past
                // the end of the last one is what the spare room is for.
                unsafe {
                    let from = self.stripes.values.as_ptr().add(stripe * stride * depth + lane);
                    let mut sum = Vector::<T, F>::splat(T::ZERO);
                    for k in 0..depth {
                        let x = Vector::<T, F>::load(from.add(k * stride));
                        sum = Product::add(x, x, sum);
                    }
                    let count = width.min(stride - lane);
                    sum.store_partial(norms.as_mut_ptr().add(lane), count);
                }
            }
        }
    }
}

/// Which values of a product of left rows with packed rows are computed, however the rows are stored.
pub(super) struct BlockRequest<'a, 'b, T> {
    /// Statistics of the left rows.
    pub(super) left_statistics: &'a [T],
    /// Which left rows.
    pub(super) rows: Range<usize>,
    /// Statistics of the right rows, padded by at least the widest panel.
    pub(super) right_statistics: &'a [T],
    /// Which right rows.
    pub(super) columns: Range<usize>,
    /// How features combine.
    pub(super) pairing: Pairing,
    /// What becomes of the sums.
    pub(super) transform: Transform<T>,
    /// One slice per left row, one place per right row.
    pub(super) out: &'a mut [&'b mut [T]],
}

/// A product of left rows with packed rows.
pub(super) struct DenseProduct<'a, 'b, T> {
    /// Left rows in stripes of [`Shape::group`].
    pub(super) left: &'a Stripes<T>,
    /// Right rows in stripes of [`Shape::panel`].
    pub(super) right: &'a Stripes<T>,
    pub(super) request: BlockRequest<'a, 'b, T>,
}

impl<T: Real> Task for DenseProduct<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<F: VectorFamily>(self) {
        // SAFETY: passed on to the caller.
        unsafe {
            match self.request.pairing {
                Pairing::Product => self.panels::<F, Product>(),
                Pairing::Distance => self.panels::<F, Distance>(),
                Pairing::ChiSquared => self.panels::<F, ChiSquared>(),
            }
        }
    }
}

impl<T: Real> DenseProduct<'_, '_, T> {
    #[inline(always)]
    unsafe fn panels<F: VectorFamily, S: Step>(mut self) {
        if self.request.columns.is_empty() {
            return;
        }
        let depth = self.right.depth;
        let group = F::TILE_ROWS;
        let panel = VECTORS * Vector::<T, F>::WIDTH;
        let chunk = (CHUNK_BYTES / (depth * size_of::<T>()).max(1)).clamp(64, 512) / group * group;
        // Sums of a tile are finished at once unless rows are summed piece by piece.
        let kept = if depth > DEPTH { chunk + group } else { group };
        let mut sums = Aligned::<T>::zeros(kept * panel);
        let mut first = self.request.rows.start;
        while first < self.request.rows.end {
            let last = ((first / group * group) + chunk).min(self.request.rows.end);
            for p in self.request.columns.start / panel..self.request.columns.end.div_ceil(panel) {
                // SAFETY: rows and panel exist, and the sums have room for a chunk.
                unsafe { self.chunk::<F, S>(first..last, p, &mut sums) };
            }
            first = last;
        }
    }

    /// Multiplies left rows `rows` with panel `p`.
    #[inline(always)]
    unsafe fn chunk<F: VectorFamily, S: Step>(
        &mut self,
        rows: Range<usize>,
        p: usize,
        sums: &mut [T],
    ) {
        let depth = self.right.depth;
        let group = F::TILE_ROWS;
        let panel = VECTORS * Vector::<T, F>::WIDTH;
        let begin = self.request.columns.start.max(p * panel);
        let end = self.request.columns.end.min((p + 1) * panel);
        let lanes = begin - p * panel..end - p * panel;
        let mut k = 0;
        loop {
            let length = DEPTH.min(depth - k);
            let done = k + length == depth;
            let mut row = rows.start;
            let mut at = 0;
            while row < rows.end {
                let left_over = rows.end.min((row / group + 1) * group) - row;
                let count = tile_rows::<S>(left_over, group);
                // SAFETY: `count` rows from `row` on lie in one group, the panel has `depth` places
                // of `panel` values, and the sums of this chunk have room for its rows.
                unsafe {
                    let left = self.left.values.as_ptr();
                    let left = left.add(self.left.start(row) + k * group);
                    let right = self.right.values.as_ptr().add((p * depth + k) * panel);
                    let sums = sums.as_mut_ptr().add(if depth > DEPTH { at * panel } else { 0 });
                    let tile = Operands { left, stride: group, right, length, sums };
                    match count {
                        8 if F::TILE_ROWS == 8 => tile.sum::<F, S, 8>(lanes.end, k > 0),
                        4 if S::COMMON || F::TILE_ROWS == 4 => {
                            tile.sum::<F, S, 4>(lanes.end, k > 0);
                        }
                        2 if S::COMMON => tile.sum::<F, S, 2>(lanes.end, k > 0),
                        _ => tile.sum::<F, S, 1>(lanes.end, k > 0),
                    }
                    if done {
                        let tile = Tile {
                            sums: sums.cast_const(),
                            left: self.request.left_statistics.as_ptr().add(row),
                            right: self.request.right_statistics.as_ptr().add(p * panel),
                        };
                        let first = row - self.request.rows.start;
                        let out = &mut self.request.out[first..first + count];
                        let column = begin - self.request.columns.start;
                        finish::<T, F, S, VECTORS>(
                            self.request.transform,
                            tile,
                            lanes.clone(),
                            out,
                            column,
                        );
                    }
                }
                row += count;
                at += count;
            }
            k += length;
            if done {
                break;
            }
        }
    }
}

/// The largest tile for `rows` rows of a group.
#[inline(always)]
fn tile_rows<S: Step>(rows: usize, group: usize) -> usize {
    match rows {
        _ if !S::COMMON && rows == group => group,
        _ if !S::COMMON => 1,
        8.. => 8,
        4.. => 4,
        2.. => 2,
        _ => 1,
    }
}

/// What a register tile reads and writes.
struct Operands<T> {
    /// First feature of the first left row.
    left: *const T,
    /// Distance from feature to feature on the left.
    stride: usize,
    /// First feature of the panel.
    right: *const T,
    /// Number of features.
    length: usize,
    /// Sums, `ROWS` times a panel's width.
    sums: *mut T,
}

impl<T: Real> Operands<T> {
    /// Sums `ROWS` left rows against the first `lanes` rows of the panel, on top of earlier sums
    /// when `resume`.
    ///
    /// # Safety
    /// The pointers are good for the lengths stated with them.
    #[inline(always)]
    unsafe fn sum<F: VectorFamily, S: Step, const ROWS: usize>(&self, lanes: usize, resume: bool) {
        // SAFETY: passed on to the caller.
        unsafe {
            match lanes.div_ceil(Vector::<T, F>::WIDTH) {
                _ if !S::COMMON => self.sum_vectors::<F, S, ROWS, VECTORS>(resume),
                0 | 1 => self.sum_vectors::<F, S, ROWS, 1>(resume),
                2 => self.sum_vectors::<F, S, ROWS, 2>(resume),
                _ => self.sum_vectors::<F, S, ROWS, VECTORS>(resume),
            }
        }
    }

    /// The same with the first `COUNT` vectors of the panel.
    ///
    /// # Safety
    /// As [`sum`](Self::sum).
    #[inline(always)]
    unsafe fn sum_vectors<F: VectorFamily, S: Step, const ROWS: usize, const COUNT: usize>(
        &self,
        resume: bool,
    ) {
        let width = Vector::<T, F>::WIDTH;
        // SAFETY: passed on to the caller.
        unsafe {
            let mut sums = [[Vector::<T, F>::splat(T::ZERO); COUNT]; ROWS];
            if resume {
                for r in 0..ROWS {
                    for v in 0..COUNT {
                        let at = (r * VECTORS + v) * width;
                        sums[r][v] = Vector::<T, F>::load(self.sums.add(at));
                    }
                }
            }
            let (mut left, mut right) = (self.left, self.right);
            for _ in 0..self.length {
                let z: [_; COUNT] =
                    std::array::from_fn(|v| Vector::<T, F>::load(right.add(v * width)));
                for r in 0..ROWS {
                    let x = Vector::<T, F>::splat(*left.add(r));
                    for v in 0..COUNT {
                        sums[r][v] = S::add(x, z[v], sums[r][v]);
                    }
                }
                left = left.add(self.stride);
                right = right.add(VECTORS * width);
            }
            for r in 0..ROWS {
                for v in 0..COUNT {
                    sums[r][v].store(self.sums.add((r * VECTORS + v) * width));
                }
            }
        }
    }
}
