//! Sparse rows: a few right rows at a time are scattered into a dense panel, and every left row runs
//! over its own non-zeros against it.
//!
//! Sums take features ascending with one accumulator per value, and steps where either feature is 0
//! add exactly 0, so that a value depends neither on its neighbours nor on which row is the left one.
//! When the features of a panel do not fit the first-level cache they are summed band by band; when
//! bands would be nearly empty, only features that occur in the panel get a place in it.

// Panels and sums are read and written through pointers.
#![allow(unsafe_code)]

use std::ops::Range;

use super::aligned::Aligned;
use super::dense::BlockRequest;
use super::pairing::{ChiSquaredShared, DistanceShared, Pairing, Product, Step};
use super::transform::{Tile, finish};
use crate::numeric::InstructionSet;
use crate::numeric::simd::{Lanes, Real, Task, Vector, VectorFamily, dispatch};

/// Vectors of a panel.
const VECTORS: usize = 4;

/// Bytes of a panel that stays in the first-level cache.
const BAND_BYTES: usize = 24 * 1024;

/// Bytes of a panel that stays in the second-level cache.
const PANEL_BYTES: usize = 512 * 1024;

/// Non-zeros that a row should have in a band for bands to pay.
const BAND_NONZEROS: usize = 8;

/// Left rows whose sums are kept between the bands of a panel.
const CHUNK: usize = 256;

/// Rows as lists of non-zeros, features ascending.
#[derive(Clone, Default)]
pub(super) struct SparseRows<T> {
    starts: Vec<usize>,
    features: Vec<u32>,
    values: Vec<T>,
}

impl<T: Real> SparseRows<T> {
    /// No rows.
    pub(super) fn new() -> Self {
        Self { starts: vec![0], features: Vec::new(), values: Vec::new() }
    }

    /// Adds a non-zero to the row that [`end_row`](Self::end_row) will end.
    pub(super) fn push(&mut self, feature: u32, value: T) {
        self.features.push(feature);
        self.values.push(value);
    }

    /// Ends a row.
    pub(super) fn end_row(&mut self) {
        self.starts.push(self.features.len());
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of non-zeros.
    pub(super) fn nonzeros(&self) -> usize {
        self.values.len()
    }

    /// Features and values of a row.
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> (&[u32], &[T]) {
        let range = self.starts[row]..self.starts[row + 1];
        (&self.features[range.clone()], &self.values[range])
    }

    /// The rows named by `rows`, in that order.
    pub(super) fn select(&self, rows: &[usize]) -> Self {
        let mut selected = Self::new();
        for &row in rows {
            let (features, values) = self.row(row);
            selected.features.extend_from_slice(features);
            selected.values.extend_from_slice(values);
            selected.end_row();
        }
        selected
    }

    /// Σ x² of every row, summed as the products sum.
    pub(super) fn squared_norms(&self, set: InstructionSet) -> Vec<T> {
        let mut norms = vec![T::ZERO; self.rows()];
        dispatch(set, Norms { rows: self, norms: &mut norms });
        norms
    }

    /// Σ |x| of every row.
    pub(super) fn absolute_norms(&self) -> Vec<T> {
        let absolute = |v: T| if v < T::ZERO { -v } else { v };
        let sum = |row| self.row(row).1.iter().fold(T::ZERO, |sum, &v| sum + absolute(v));
        (0..self.rows()).map(sum).collect()
    }
}

struct Norms<'a, T> {
    rows: &'a SparseRows<T>,
    norms: &'a mut [T],
}

impl<T: Real> Task for Norms<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<F: VectorFamily>(self) {
        for (row, norm) in self.norms.iter_mut().enumerate() {
            // SAFETY: the first element of a vector is stored where there is room for one.
            unsafe {
                let mut sum = Vector::<T, F>::splat(T::ZERO);
                for &value in self.rows.row(row).1 {
                    let x = Vector::<T, F>::splat(value);
                    sum = Product::add(x, x, sum);
                }
                sum.store_partial(norm, 1);
            }
        }
    }
}

/// How the features of a panel are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    /// Every feature has a place; this many features are in a band.
    Bands(u32),
    /// Features get places as they occur.
    Mapped,
}

impl Plan {
    fn of<T>(features: usize, nonzeros_per_row: usize, panel: usize) -> Self {
        let place = panel * size_of::<T>();
        let band = (BAND_BYTES / place).max(1);
        let bands = features.div_ceil(band).max(1);
        if bands == 1 || nonzeros_per_row / bands >= BAND_NONZEROS {
            Self::Bands(features.div_ceil(bands).max(1) as u32)
        } else if features * place <= PANEL_BYTES {
            Self::Bands(features as u32)
        } else {
            Self::Mapped
        }
    }
}

/// A product of left rows with right rows.
pub(super) struct SparseProduct<'a, 'b, T> {
    /// Number of features.
    pub(super) features: usize,
    /// Left rows.
    pub(super) left: &'a SparseRows<T>,
    /// Right rows.
    pub(super) right: &'a SparseRows<T>,
    pub(super) request: BlockRequest<'a, 'b, T>,
}

/// Values that the statistics of right rows are padded with.
pub(super) const PADDING: usize = 64;

impl<T: Real> Task for SparseProduct<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<F: VectorFamily>(self) {
        // SAFETY: passed on to the caller.
        unsafe {
            match self.request.pairing {
                Pairing::Product => self.panels::<F, Product>(),
                Pairing::Distance => self.panels::<F, DistanceShared>(),
                Pairing::ChiSquared => self.panels::<F, ChiSquaredShared>(),
            }
        }
    }
}

impl<T: Real> SparseProduct<'_, '_, T> {
    #[inline(always)]
    unsafe fn panels<F: VectorFamily, S: Step>(mut self) {
        let width = VECTORS * Vector::<T, F>::WIDTH;
        let nonzeros = self.right.values.len() / self.right.rows().max(1);
        let plan = Plan::of::<T>(self.features, nonzeros, width);
        let mut first = self.request.rows.start;
        while first < self.request.rows.end {
            let rows = first..self.request.rows.end.min(first + CHUNK);
            // SAFETY: passed on to the caller; rows are in range.
            unsafe {
                match plan {
                    Plan::Bands(band) => self.banded::<F, S>(rows.clone(), band, width),
                    Plan::Mapped => self.mapped::<F, S>(rows.clone(), width),
                }
            }
            first = rows.end;
        }
    }

    /// Multiplies left rows `rows` with all columns, band by band.
    #[inline(always)]
    unsafe fn banded<F: VectorFamily, S: Step>(
        &mut self,
        rows: Range<usize>,
        band: u32,
        width: usize,
    ) {
        let left = Banded::new(self.left, rows.clone(), band, self.features, width);
        let mut panel = Aligned::<T>::zeros(band as usize * width);
        let mut sums = Aligned::<T>::zeros(rows.len() * width);
        let mut cursors = [0_usize; PADDING];
        let mut column = self.request.columns.start;
        while column < self.request.columns.end {
            let lanes = width.min(self.request.columns.end - column);
            cursors[..lanes].copy_from_slice(&self.right.starts[column..column + lanes]);
            for b in 0..left.bands {
                let begin = b as u32 * band;
                let features = begin..begin + band;
                self.scatter(column, &mut cursors[..lanes], features, width, &mut panel);
                for r in 0..rows.len() {
                    let range = left.range(r, b);
                    // SAFETY: offsets lie in the panel, and every row has its place in the sums.
                    unsafe {
                        let offsets = &left.offsets[range.clone()];
                        let to = sums.as_mut_ptr().add(r * width);
                        let from = |offset: u32| panel.as_ptr().add(offset as usize);
                        sum_row::<T, F, S>(offsets, &left.values[range], from, to, b > 0);
                        if b + 1 == left.bands {
                            self.finish::<F, S>(to, rows.start + r, column, lanes);
                        }
                    }
                }
                panel.fill(T::ZERO);
            }
            column += lanes;
        }
    }

    /// Multiplies left rows `rows` with all columns, only features of a panel having places in it.
    #[inline(always)]
    unsafe fn mapped<F: VectorFamily, S: Step>(&mut self, rows: Range<usize>, width: usize) {
        let mut places = vec![0_u32; self.features];
        let mut panel = Aligned::<T>::zeros(width);
        let mut sums = Aligned::<T>::zeros(width);
        let mut column = self.request.columns.start;
        while column < self.request.columns.end {
            let lanes = width.min(self.request.columns.end - column);
            let mut used = width;
            for lane in 0..lanes {
                let (features, values) = self.right.row(column + lane);
                for (&feature, &value) in features.iter().zip(values) {
                    let place = &mut places[feature as usize];
                    if *place == 0 {
                        *place = used as u32;
                        used += width;
                        if panel.len() < used {
                            panel.grow(used * 2);
                        }
                        panel[used - width..used].fill(T::ZERO);
                    }
                    panel[*place as usize + lane] = value;
                }
            }
            for row in rows.clone() {
                let (features, values) = self.left.row(row);
                // SAFETY: places lie in the panel, absent features at its first, which is zero.
                unsafe {
                    let to = sums.as_mut_ptr();
                    let from = |feature: u32| {
                        panel.as_ptr().add(*places.get_unchecked(feature as usize) as usize)
                    };
                    sum_row::<T, F, S>(features, values, from, to, false);
                    self.finish::<F, S>(to, row, column, lanes);
                }
            }
            for lane in 0..lanes {
                for &feature in self.right.row(column + lane).0 {
                    places[feature as usize] = 0;
                }
            }
            column += lanes;
        }
    }

    /// Puts the features `band` of the right rows from `column` on into the panel.
    #[inline(always)]
    fn scatter(
        &self,
        column: usize,
        cursors: &mut [usize],
        band: Range<u32>,
        width: usize,
        panel: &mut [T],
    ) {
        for (lane, cursor) in cursors.iter_mut().enumerate() {
            let end = self.right.starts[column + lane + 1];
            let features = &self.right.features[*cursor..end];
            let values = &self.right.values[*cursor..end];
            let mut count = 0;
            for (&feature, &value) in features.iter().zip(values) {
                if feature >= band.end {
                    break;
                }
                panel[(feature - band.start) as usize * width + lane] = value;
                count += 1;
            }
            *cursor += count;
        }
    }

    /// Turns the sums of one left row into kernel values.
    #[inline(always)]
    unsafe fn finish<F: VectorFamily, S: Step>(
        &mut self,
        sums: *mut T,
        row: usize,
        column: usize,
        lanes: usize,
    ) {
        let tile = Tile {
            sums: sums.cast_const(),
            left: &raw const self.request.left_statistics[row],
            right: &raw const self.request.right_statistics[column],
        };
        let at = row - self.request.rows.start;
        let out = &mut self.request.out[at..=at];
        let column = column - self.request.columns.start;
        // SAFETY: one row of sums, and statistics padded to whole panels.
        unsafe { finish::<T, F, S, VECTORS>(self.request.transform, tile, 0..lanes, out, column) }
    }
}

/// Sums one left row against a panel, on top of earlier sums when `resume`.
///
/// # Safety
/// `place` maps every index to a place of the panel, and `sums` has room for one.
#[inline(always)]
unsafe fn sum_row<T: Real, F: VectorFamily, S: Step>(
    indices: &[u32],
    values: &[T],
    place: impl Fn(u32) -> *const T,
    sums: *mut T,
    resume: bool,
) {
    let width = Vector::<T, F>::WIDTH;
    // SAFETY: passed on to the caller.
    unsafe {
        let mut total = [Vector::<T, F>::splat(T::ZERO); VECTORS];
        if resume {
            for v in 0..VECTORS {
                total[v] = Vector::<T, F>::load(sums.add(v * width));
            }
        }
        for (&index, &value) in indices.iter().zip(values) {
            let x = Vector::<T, F>::splat(value);
            let from = place(index);
            for v in 0..VECTORS {
                total[v] = S::add(x, Vector::<T, F>::load(from.add(v * width)), total[v]);
            }
        }
        for v in 0..VECTORS {
            total[v].store(sums.add(v * width));
        }
    }
}

/// Left rows cut into bands, each feature replaced by its offset in the panel of its band.
struct Banded<'a, T> {
    bands: usize,
    starts: Vec<u32>,
    offsets: Vec<u32>,
    values: &'a [T],
}

impl<'a, T: Real> Banded<'a, T> {
    fn new(
        rows: &'a SparseRows<T>,
        range: Range<usize>,
        band: u32,
        features: usize,
        width: usize,
    ) -> Self {
        let bands = features.div_ceil(band as usize).max(1);
        let all = rows.starts[range.start]..rows.starts[range.end];
        let mut offsets = Vec::with_capacity(all.len());
        let mut starts = Vec::with_capacity(range.len() * bands + 1);
        for row in range {
            let mut next = 0;
            for &feature in rows.row(row).0 {
                while feature >= next {
                    starts.push(offsets.len() as u32);
                    next += band;
                }
                offsets.push((feature + band - next) * width as u32);
            }
            while next < bands as u32 * band {
                starts.push(offsets.len() as u32);
                next += band;
            }
        }
        starts.push(offsets.len() as u32);
        Self { bands, starts, offsets, values: &rows.values[all] }
    }

    #[inline(always)]
    fn range(&self, row: usize, band: usize) -> Range<usize> {
        let at = row * self.bands + band;
        self.starts[at] as usize..self.starts[at + 1] as usize
    }
}
