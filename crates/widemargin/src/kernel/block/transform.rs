//! From the sum over features to the kernel value, applied to a tile while it is in the cache.
//!
//! Radial kernels are exp(−γ max(0, (a + b) + slope · sum)) with a statistic a of the left row and b
//! of the right: squared norms and slope −2 for the Gaussian, ‖x‖₁ and −1 for sparse rows under the
//! Laplacian, ‖x‖₁ and −4 under χ², 0 and 1 where the sum is the distance itself.

// Tiles are read and written through pointers.
#![allow(unsafe_code)]

use std::ops::Range;

use super::pairing::Step;
use super::product_functions::Step as KernelStep;
use crate::numeric::InstructionSet;
use crate::numeric::simd::{Lanes, Real, Task, Vector, VectorFamily, dispatch, math};

/// The function of the sum and of one statistic of each row.
#[derive(Clone, Copy, Debug)]
pub(super) enum Transform<T> {
    /// sum
    Identity,
    /// (γ sum + c₀)^degree
    Power { gamma: T, coef0: T, degree: u32 },
    /// tanh(γ sum + c₀)
    Tanh { gamma: T, coef0: T },
    /// sum · a · b
    Scaled,
    /// 2^(factor · max(0, a + b + slope · sum))
    Exponential { slope: T, factor: T },
}

impl<T: Real> Transform<T> {
    /// exp(−γ max(0, a + b + slope · sum))
    pub(super) fn exponential(gamma: f64, slope: f64) -> Self {
        let factor = -gamma * std::f64::consts::LOG2_E;
        Self::Exponential { slope: T::from_f64(slope), factor: T::from_f64(factor) }
    }

    /// The values of one row with others, given the sums of the pairs.
    pub(super) fn of_row(
        self,
        set: InstructionSet,
        sums: &[T],
        left: T,
        right: &[T],
        out: &mut [T],
    ) {
        dispatch(set, RowValues { transform: self, sums, left, right, out });
    }

    /// The values of rows with themselves, given the sums of each row with itself.
    pub(super) fn of_pairs(self, set: InstructionSet, sums: &[T], statistics: &[T]) -> Vec<T> {
        let mut out = vec![T::ZERO; sums.len()];
        dispatch(set, Pairs { transform: self, sums, statistics, out: &mut out });
        out
    }
}

/// A transform whose kind is known at compile time.
trait Value<T: Real>: Copy {
    fn of<V: Lanes<Element = T>>(self, sum: V, left: V, right: V) -> V;
}

#[derive(Clone, Copy)]
struct Identity;

#[derive(Clone, Copy)]
struct Power<T>(T, T, u32);

#[derive(Clone, Copy)]
struct Tanh<T>(T, T);

#[derive(Clone, Copy)]
struct Scaled;

#[derive(Clone, Copy)]
struct Exponential<T>(T, T);

impl<T: Real> Value<T> for Identity {
    #[inline(always)]
    fn of<V: Lanes<Element = T>>(self, sum: V, _: V, _: V) -> V {
        sum
    }
}

impl<T: Real> Value<T> for Power<T> {
    #[inline(always)]
    fn of<V: Lanes<Element = T>>(self, sum: V, _: V, _: V) -> V {
        math::power(sum.mul_add(sum.fill(self.0), sum.fill(self.1)), self.2)
    }
}

impl<T: Real> Value<T> for Tanh<T> {
    #[inline(always)]
    fn of<V: Lanes<Element = T>>(self, sum: V, _: V, _: V) -> V {
        math::tanh(sum.mul_add(sum.fill(self.0), sum.fill(self.1)))
    }
}

impl<T: Real> Value<T> for Scaled {
    #[inline(always)]
    fn of<V: Lanes<Element = T>>(self, sum: V, left: V, right: V) -> V {
        sum.mul(left.mul(right))
    }
}

impl<T: Real> Value<T> for Exponential<T> {
    #[inline(always)]
    fn of<V: Lanes<Element = T>>(self, sum: V, left: V, right: V) -> V {
        let distance = sum.mul_add(sum.fill(self.0), left.add(right)).max(sum.fill(T::ZERO));
        math::exp2_of_product(distance, sum.fill(self.1))
    }
}

/// Calls a function with the transform as a type.
macro_rules! with_value {
    ($transform:expr, $value:ident => $body:expr) => {
        match $transform {
            Transform::Identity => {
                let $value = Identity;
                $body
            }
            Transform::Power { gamma, coef0, degree } => {
                let $value = Power(gamma, coef0, degree);
                $body
            }
            Transform::Tanh { gamma, coef0 } => {
                let $value = Tanh(gamma, coef0);
                $body
            }
            Transform::Scaled => {
                let $value = Scaled;
                $body
            }
            Transform::Exponential { slope, factor } => {
                let $value = Exponential(slope, factor);
                $body
            }
        }
    };
}

/// A tile of sums with the statistics of its rows and columns.
#[derive(Clone, Copy)]
pub(super) struct Tile<T> {
    /// Sums, row by row, `N` whole vectors each.
    pub(super) sums: *const T,
    /// Statistics of the left rows.
    pub(super) left: *const T,
    /// Statistics of the right rows, `N` whole vectors.
    pub(super) right: *const T,
}

/// Writes the kernel values of columns `lanes` of a tile into `out[row][column..]`.
///
/// # Safety
/// The tile has `out.len()` rows and the processor the instructions of `F`.
#[inline(always)]
pub(super) unsafe fn finish<T: Real, F: VectorFamily, S: Step, const N: usize>(
    transform: Transform<T>,
    tile: Tile<T>,
    lanes: Range<usize>,
    out: &mut [&mut [T]],
    column: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe {
        if S::COMMON {
            with_value!(
                transform,
                value => finish_with::<T, F, _, N>(value, tile, lanes, out, column)
            );
        } else if let Transform::Exponential { slope, factor } = transform {
            finish_with::<T, F, _, N>(Exponential(slope, factor), tile, lanes, out, column);
        } else {
            unreachable!("distances are those of radial kernels")
        }
    }
}

#[inline(always)]
unsafe fn finish_with<T: Real, F: VectorFamily, X: Value<T>, const N: usize>(
    value: X,
    tile: Tile<T>,
    lanes: Range<usize>,
    out: &mut [&mut [T]],
    column: usize,
) {
    let width = Vector::<T, F>::WIDTH;
    let full = lanes == (0..N * width);
    for (r, row) in out.iter_mut().enumerate() {
        let row = &mut row[column..column + lanes.len()];
        // SAFETY: the tile has row r; a full row of it fits into `row`, any other into the buffer.
        unsafe {
            let left = Vector::<T, F>::splat(*tile.left.add(r));
            let sums = tile.sums.add(r * N * width);
            if full {
                for v in 0..N {
                    let sum = Vector::<T, F>::load(sums.add(v * width));
                    let right = Vector::<T, F>::load(tile.right.add(v * width));
                    value.of(sum, left, right).store(row.as_mut_ptr().add(v * width));
                }
            } else if lanes.start == 0 {
                for v in 0..lanes.end.div_ceil(width) {
                    let sum = Vector::<T, F>::load(sums.add(v * width));
                    let right = Vector::<T, F>::load(tile.right.add(v * width));
                    let to = row.as_mut_ptr().add(v * width);
                    value.of(sum, left, right).store_partial(to, width.min(lanes.end - v * width));
                }
            } else {
                let mut buffer = [T::ZERO; 64];
                for v in lanes.start / width..lanes.end.div_ceil(width) {
                    let sum = Vector::<T, F>::load(sums.add(v * width));
                    let right = Vector::<T, F>::load(tile.right.add(v * width));
                    value.of(sum, left, right).store(buffer.as_mut_ptr().add(v * width));
                }
                row.copy_from_slice(&buffer[lanes.clone()]);
            }
        }
    }
}

struct RowValues<'a, T> {
    transform: Transform<T>,
    sums: &'a [T],
    left: T,
    right: &'a [T],
    out: &'a mut [T],
}

impl<T: Real> Task for RowValues<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<F: VectorFamily>(self) {
        let width = Vector::<T, F>::WIDTH;
        with_value!(self.transform, value => {
            let chunks = self.sums.chunks(width).zip(self.right.chunks(width));
            for ((sums, right), out) in chunks.zip(self.out.chunks_mut(width)) {
                // SAFETY: the partial loads and stores stay within the chunks.
                unsafe {
                    let left = Vector::<T, F>::splat(self.left);
                    if out.len() == width {
                        let sum = Vector::<T, F>::load(sums.as_ptr());
                        let right = Vector::<T, F>::load(right.as_ptr());
                        value.of(sum, left, right).store(out.as_mut_ptr());
                    } else {
                        let sum = Vector::<T, F>::load_partial(sums.as_ptr(), sums.len());
                        let right = Vector::<T, F>::load_partial(right.as_ptr(), right.len());
                        value.of(sum, left, right).store_partial(out.as_mut_ptr(), out.len());
                    }
                }
            }
        });
    }
}

/// Vectors that the kernels of a group are evaluated for at a time: what a step costs beside its values is shared.
const TOGETHER: usize = 4;

/// The values of the next kernel of a group, given those of the one before.
#[inline(always)]
fn next_values<T: Real, V: Lanes<Element = T>, const N: usize>(
    step: &KernelStep<T>,
    sums: &[V; N],
    left: V,
    right: &[V; N],
    values: &mut [V; N],
) {
    match step.transform {
        None => values.iter_mut().for_each(|value| *value = value.mul(*value)),
        Some(transform) => with_value!(transform, function => {
            for v in 0..N {
                values[v] = function.of(sums[v], left, right[v]);
            }
        }),
    }
}

/// `N` vectors of `from`, the last of which may be cut short: `count` values in all.
///
/// # Safety
/// As [`Lanes::load`], `from` pointing at `count` values.
#[inline(always)]
unsafe fn load_some<V: Lanes, const N: usize>(from: *const V::Element, count: usize) -> [V; N] {
    // SAFETY: passed on to the caller.
    std::array::from_fn(|v| unsafe {
        match count >= (v + 1) * V::WIDTH {
            true => V::load(from.add(v * V::WIDTH)),
            false => V::load_partial(from.add(v * V::WIDTH), count - v * V::WIDTH),
        }
    })
}

/// Work on the values of one row with others.
trait RowWork<T: Real> {
    /// From column `at` on, `count` columns in `N` vectors.
    ///
    /// # Safety
    /// There are as many columns, what the work writes to has room for them, and the processor has the instructions
    /// of `F`.
    unsafe fn of<F: VectorFamily, const N: usize>(&mut self, at: usize, count: usize);

    /// All `count` columns, [`TOGETHER`] vectors at a time as long as there are so many.
    ///
    /// # Safety
    /// As [`of`](Self::of).
    #[inline(always)]
    unsafe fn of_all<F: VectorFamily>(&mut self, count: usize) {
        let width = Vector::<T, F>::WIDTH;
        let mut at = 0;
        while at < count {
            let is_whole = count - at >= TOGETHER * width;
            let run = if is_whole { TOGETHER * width } else { width.min(count - at) };
            // SAFETY: no more columns than there are; passed on to the caller.
            unsafe {
                match is_whole {
                    true => self.of::<F, TOGETHER>(at, run),
                    false => self.of::<F, 1>(at, run),
                }
            }
            at += run;
        }
    }
}

/// The weighted sum of the kernels of a group for one row with others.
pub(super) struct SumOfRow<'a, T> {
    pub(super) steps: &'a [KernelStep<T>],
    /// ⟨x, z⟩
    pub(super) products: &'a [T],
    pub(super) left: T,
    pub(super) right: &'a [T],
    pub(super) out: &'a mut [T],
}

impl<T: Real> RowWork<T> for SumOfRow<'_, T> {
    #[inline(always)]
    unsafe fn of<F: VectorFamily, const N: usize>(&mut self, at: usize, count: usize) {
        let width = Vector::<T, F>::WIDTH;
        // SAFETY: passed on to the caller.
        unsafe {
            let sums = load_some::<Vector<T, F>, N>(self.products.as_ptr().add(at), count);
            let right = load_some::<Vector<T, F>, N>(self.right.as_ptr().add(at), count);
            let left = Vector::<T, F>::splat(self.left);
            let mut values = [Vector::<T, F>::splat(T::ZERO); N];
            let mut total = values;
            for step in self.steps {
                next_values(step, &sums, left, &right, &mut values);
                let weight = Vector::<T, F>::splat(step.weight);
                for v in 0..N {
                    total[v] = values[v].mul_add(weight, total[v]);
                }
            }
            for (v, total) in total.into_iter().enumerate() {
                let to = self.out.as_mut_ptr().add(at + v * width);
                match count >= (v + 1) * width {
                    true => total.store(to),
                    false => total.store_partial(to, count - v * width),
                }
            }
        }
    }
}

impl<T: Real> Task for SumOfRow<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<F: VectorFamily>(mut self) {
        let count = self.out.len();
        assert!(self.products.len() == count && self.right.len() == count, "one place per column");
        // SAFETY: all three lists have as many columns.
        unsafe { self.of_all::<F>(count) }
    }
}

/// For every kernel of a group the sum of its values, with weights, for one row with others.
pub(super) struct SumsOfRow<'a, T> {
    pub(super) steps: &'a [KernelStep<T>],
    /// ⟨x, z⟩
    pub(super) products: &'a [T],
    pub(super) left: T,
    pub(super) right: &'a [T],
    /// One of every column.
    pub(super) weights: &'a [T],
    pub(super) scratch: &'a mut Vec<T>,
    /// One of every kernel, which is added to.
    pub(super) sums: &'a mut [f64],
}

impl<T: Real> RowWork<T> for SumsOfRow<'_, T> {
    #[inline(always)]
    unsafe fn of<F: VectorFamily, const N: usize>(&mut self, at: usize, count: usize) {
        let width = Vector::<T, F>::WIDTH;
        // SAFETY: passed on to the caller.
        unsafe {
            let sums = load_some::<Vector<T, F>, N>(self.products.as_ptr().add(at), count);
            let right = load_some::<Vector<T, F>, N>(self.right.as_ptr().add(at), count);
            let weights = load_some::<Vector<T, F>, N>(self.weights.as_ptr().add(at), count);
            let left = Vector::<T, F>::splat(self.left);
            let mut values = [Vector::<T, F>::splat(T::ZERO); N];
            for (s, step) in self.steps.iter().enumerate() {
                next_values(step, &sums, left, &right, &mut values);
                let to = self.scratch.as_mut_ptr().add(s * width);
                let mut total = Vector::<T, F>::load(to);
                for v in 0..N {
                    total = values[v].mul_add(weights[v], total);
                }
                total.store(to);
            }
        }
    }
}

impl<T: Real> Task for SumsOfRow<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<F: VectorFamily>(mut self) {
        let (width, count) = (Vector::<T, F>::WIDTH, self.weights.len());
        assert!(self.products.len() == count && self.right.len() == count, "one place per column");
        self.scratch.clear();
        self.scratch.resize(self.steps.len() * width, T::ZERO);
        // SAFETY: all three lists have as many columns, and scratch a vector for every step.
        unsafe { self.of_all::<F>(count) }
        for (step, lanes) in self.steps.iter().zip(self.scratch.chunks_exact(width)) {
            // SAFETY: a chunk is a vector.
            self.sums[step.kernel] += unsafe { Vector::<T, F>::load(lanes.as_ptr()) }.sum();
        }
    }
}

struct Pairs<'a, T> {
    transform: Transform<T>,
    sums: &'a [T],
    statistics: &'a [T],
    out: &'a mut [T],
}

impl<T: Real> Task for Pairs<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<F: VectorFamily>(self) {
        let width = Vector::<T, F>::WIDTH;
        let chunks = self.sums.chunks(width).zip(self.statistics.chunks(width));
        for ((sums, statistics), out) in chunks.zip(self.out.chunks_mut(width)) {
            // SAFETY: the partial loads and stores stay within the chunks.
            unsafe {
                let sum = Vector::<T, F>::load_partial(sums.as_ptr(), sums.len());
                let own = Vector::<T, F>::load_partial(statistics.as_ptr(), statistics.len());
                let result = with_value!(self.transform, value => value.of(sum, own, own));
                result.store_partial(out.as_mut_ptr(), out.len());
            }
        }
    }
}
