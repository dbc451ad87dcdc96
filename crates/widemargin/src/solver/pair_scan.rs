//! The two passes of a pair step: the best partner of a variable, and the gradient update that also
//! looks for the next variable to move.
//!
//! Both work on vectors whose length is a multiple of [`PAIR_WIDTH`], the entries beyond the real
//! ones being masked; a mask is 0 where an entry counts and −∞ where it does not.

// Vector loads and stores of the two passes.
#![allow(unsafe_code)]

use crate::numeric::InstructionSet;
use crate::numeric::simd::{Lanes, Real, Task, Vector, VectorFamily, dispatch};

/// Multiple that the lengths of all vectors here must be of.
pub(crate) const PAIR_WIDTH: usize = 16;

/// What a scan of −f over one mask and of f over another found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scan {
    /// max of −f where the first mask lets.
    pub up: f64,
    /// First place where it is attained.
    pub at: usize,
    /// max of f where the second mask lets.
    pub down: f64,
}

/// The place j with the largest b² / a, b = fⱼ − f > 0 where the mask lets and
/// a = max(curvature of the pair, `flat`) = d + dⱼ − 2Kⱼ; `None` when there is no such b. Gains are
/// compared in the precision of the matrix, b in multiples of `unit`, which keeps them in range.
///
/// # Panics
/// When the lengths differ or are no multiple of [`PAIR_WIDTH`].
pub(crate) fn best_partner<T: Real>(
    set: InstructionSet,
    (f, d): (f64, f64),
    (unit, flat): (f64, f64),
    gradient: &[f64],
    mask: &[T],
    diagonal: &[T],
    row: &[T],
) -> Option<usize> {
    check_lengths(gradient.len(), &[mask.len(), diagonal.len(), row.len()]);
    dispatch(set, PartnerScan { f, d, unit, flat, gradient, mask, diagonal, row })
}

/// gradient += t (a − b), and the scan of the result.
///
/// # Panics
/// When the lengths differ or are no multiple of [`PAIR_WIDTH`].
pub(crate) fn shift_and_scan<T: Real>(
    set: InstructionSet,
    gradient: &mut [f64],
    t: f64,
    (a, b): (&[T], &[T]),
    (rise, fall): (&[f64], &[f64]),
) -> Scan {
    check_lengths(gradient.len(), &[a.len(), b.len(), rise.len(), fall.len()]);
    dispatch(set, Shift { gradient, t, a, b, rise, fall })
}

/// The scan of a gradient as it is.
///
/// # Panics
/// When the lengths differ or are no multiple of [`PAIR_WIDTH`].
pub(crate) fn scan(set: InstructionSet, gradient: &[f64], (rise, fall): (&[f64], &[f64])) -> Scan {
    check_lengths(gradient.len(), &[rise.len(), fall.len()]);
    dispatch(set, PlainScan { gradient, rise, fall })
}

fn check_lengths(length: usize, others: &[usize]) {
    assert_eq!(length % PAIR_WIDTH, 0, "whole vectors");
    assert!(others.iter().all(|&other| other == length), "vectors of one length");
}

struct PartnerScan<'a, T> {
    f: f64,
    d: f64,
    unit: f64,
    flat: f64,
    gradient: &'a [f64],
    mask: &'a [T],
    diagonal: &'a [T],
    row: &'a [T],
}

impl<T: Real> Task for PartnerScan<'_, T> {
    type Output = Option<usize>;

    #[inline(always)]
    unsafe fn run<F: VectorFamily>(self) -> Option<usize> {
        let width = Vector::<T, F>::WIDTH;
        let rounded = |value: f64| T::from_f64(value);
        // SAFETY: all vectors have the length of the gradient, a multiple of the vector width.
        unsafe {
            let f = F::Double::splat(self.f);
            let d = Vector::<T, F>::splat(rounded(self.d));
            let unit = d.fill(rounded(1.0 / self.unit));
            let (flat, zero) = (d.fill(rounded(self.flat)), d.fill(T::ZERO));
            let (one, minus_two) = (d.fill(T::ONE), d.fill(rounded(-2.0)));
            // b²/a > B²/A is asked as b² A > B² a, which needs no division.
            let (mut square, mut curvature) = (zero, one);
            let (mut chunk, mut at) = (zero, d.fill(rounded(-1.0)));
            for i in (0..self.gradient.len()).step_by(width) {
                let k = Vector::<T, F>::load(self.row.as_ptr().add(i));
                let sum = Vector::<T, F>::load(self.diagonal.as_ptr().add(i)).add(d);
                let a = k.mul_add(minus_two, sum).max(flat);
                let mask = Vector::<T, F>::load(self.mask.as_ptr().add(i));
                let b = T::load_less::<F>(self.gradient.as_ptr().add(i), f);
                let b = b.mul_add(unit, mask).max(zero);
                let s = b.mul(b);
                let (new, old) = (s.mul(curvature), square.mul(a));
                square = old.select_ge(new, square, s);
                curvature = old.select_ge(new, curvature, a);
                at = old.select_ge(new, at, chunk);
                chunk = chunk.add(one);
            }
            let (squares, curvatures, chunks) = (lanes(square), lanes(curvature), lanes(at));
            let (mut gains, mut places) = ([0.0; PAIR_WIDTH], [0.0; PAIR_WIDTH]);
            for l in 0..width {
                gains[l] = squares[l].to_f64() / curvatures[l].to_f64();
                places[l] = chunks[l].to_f64() * width as f64 + l as f64;
            }
            let (best, place) = first_largest(gains, places, width);
            (best > 0.0).then_some(place)
        }
    }
}

/// The largest of the first `count` values, a power of two, and the least of their places where it is
/// attained. Halves are compared with each other, which needs no branches.
#[inline(always)]
fn first_largest(
    values: [f64; PAIR_WIDTH],
    mut places: [f64; PAIR_WIDTH],
    count: usize,
) -> (f64, usize) {
    let best = largest(values, count);
    for l in 0..count {
        places[l] = if values[l] == best { -places[l] } else { f64::NEG_INFINITY };
    }
    (best, -largest(places, count) as usize)
}

/// The largest of the first `count` values, a power of two.
#[inline(always)]
fn largest(mut values: [f64; PAIR_WIDTH], count: usize) -> f64 {
    let mut half = count / 2;
    while half > 0 {
        for l in 0..half {
            let (a, b) = (values[l], values[l + half]);
            values[l] = if b > a { b } else { a };
        }
        half /= 2;
    }
    values[0]
}

/// Running extremes, lane by lane.
struct Running<F: VectorFamily> {
    up: F::Double,
    at: F::Double,
    chunk: F::Double,
    down: F::Double,
}

impl<F: VectorFamily> Running<F> {
    /// # Safety
    /// The processor has the instructions of `F`.
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: promised by the caller.
        unsafe {
            let (low, zero) = (F::Double::splat(f64::NEG_INFINITY), F::Double::splat(0.0));
            Self { up: low, at: zero, chunk: zero, down: low }
        }
    }

    #[inline(always)]
    fn take(&mut self, f: F::Double, rise: F::Double, fall: F::Double) {
        let value = rise.sub(f);
        self.at = self.up.select_ge(value, self.at, self.chunk);
        self.up = self.up.max(value);
        self.down = self.down.max(fall.add(f));
        self.chunk = self.chunk.add(self.chunk.fill(1.0));
    }

    #[inline(always)]
    fn finish(self) -> Scan {
        let width = F::Double::WIDTH;
        let (ups, mut places) = (lanes(self.up), lanes(self.at));
        for l in 0..width {
            places[l] = places[l] * width as f64 + l as f64;
        }
        let (up, at) = first_largest(ups, places, width);
        Scan { up, at, down: largest(lanes(self.down), width) }
    }
}

/// The elements of a vector.
#[inline(always)]
fn lanes<V: Lanes>(vector: V) -> [V::Element; PAIR_WIDTH] {
    let mut elements = [V::Element::default(); PAIR_WIDTH];
    // SAFETY: no vector has more than that many elements.
    unsafe { vector.store(elements.as_mut_ptr()) };
    elements
}

struct Shift<'a, T> {
    gradient: &'a mut [f64],
    t: f64,
    a: &'a [T],
    b: &'a [T],
    rise: &'a [f64],
    fall: &'a [f64],
}

impl<T: Real> Task for Shift<'_, T> {
    type Output = Scan;

    #[inline(always)]
    unsafe fn run<F: VectorFamily>(self) -> Scan {
        let to = self.gradient.as_mut_ptr();
        // SAFETY: all vectors have the length of the gradient, a multiple of the vector width.
        unsafe {
            let t = F::Double::splat(self.t);
            let mut running = Running::<F>::new();
            for i in (0..self.gradient.len()).step_by(F::Double::WIDTH) {
                let a = T::load_wide::<F>(self.a.as_ptr().add(i));
                let b = T::load_wide::<F>(self.b.as_ptr().add(i));
                let f = a.sub(b).mul_add(t, F::Double::load(to.add(i)));
                f.store(to.add(i));
                let rise = F::Double::load(self.rise.as_ptr().add(i));
                let fall = F::Double::load(self.fall.as_ptr().add(i));
                running.take(f, rise, fall);
            }
            running.finish()
        }
    }
}

struct PlainScan<'a> {
    gradient: &'a [f64],
    rise: &'a [f64],
    fall: &'a [f64],
}

impl Task for PlainScan<'_> {
    type Output = Scan;

    #[inline(always)]
    unsafe fn run<F: VectorFamily>(self) -> Scan {
        // SAFETY: all vectors have the length of the gradient, a multiple of the vector width.
        unsafe {
            let mut running = Running::<F>::new();
            for i in (0..self.gradient.len()).step_by(F::Double::WIDTH) {
                let f = F::Double::load(self.gradient.as_ptr().add(i));
                let rise = F::Double::load(self.rise.as_ptr().add(i));
                let fall = F::Double::load(self.fall.as_ptr().add(i));
                running.take(f, rise, fall);
            }
            running.finish()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::simd::available;

    /// Values that repeat, so that ties occur.
    fn numbers(seed: u64, n: usize) -> Vec<f64> {
        let step = |i: usize| (i as u64 + 1).wrapping_mul(seed.wrapping_mul(2) + 0x9e37_79b9) >> 7;
        (0..n).map(|i| (step(i) % 23) as f64 / 8.0 - 1.25).collect()
    }

    fn mask(seed: u64, n: usize) -> Vec<f64> {
        numbers(seed, n).iter().map(|v| if *v > 0.0 { 0.0 } else { f64::NEG_INFINITY }).collect()
    }

    #[test]
    fn the_partner_is_the_first_with_the_largest_gain() {
        for seed in 1..60 {
            let n = 16 * (1 + seed as usize % 5);
            let gradient = numbers(seed, n);
            let fall: Vec<f32> = mask(seed + 7, n).iter().map(|v| *v as f32).collect();
            let diagonal: Vec<f32> = numbers(seed + 1, n).iter().map(|v| 2.0 + *v as f32).collect();
            let row: Vec<f32> = numbers(seed + 2, n).iter().map(|v| *v as f32 / 4.0).collect();
            let (f, d) = (0.25, 1.0);
            let mut expected = (0.0, None);
            for j in 0..n {
                let b = gradient[j] - f;
                let a = (d + f64::from(diagonal[j]) - 2.0 * f64::from(row[j])).max(1e-12);
                if fall[j] == 0.0 && b > 0.0 && b * b / a > expected.0 * (1.0 + 1e-14) {
                    expected = (b * b / a, Some(j));
                }
            }
            for set in available() {
                let found =
                    best_partner(set, (f, d), (1.0, 1e-12), &gradient, &fall, &diagonal, &row);
                assert_eq!(found, expected.1, "{set} seed {seed}");
            }
        }
    }

    #[test]
    fn the_scan_finds_the_first_extreme_after_the_shift() {
        for seed in 1..60 {
            let n = 16 * (1 + seed as usize % 4);
            let start = numbers(seed, n);
            let (rise, fall) = (mask(seed + 3, n), mask(seed + 4, n));
            let a: Vec<f32> = numbers(seed + 5, n).iter().map(|v| *v as f32).collect();
            let b: Vec<f32> = numbers(seed + 6, n).iter().map(|v| *v as f32).collect();
            let shifted: Vec<f64> =
                (0..n).map(|i| start[i] + 0.5 * (f64::from(a[i]) - f64::from(b[i]))).collect();
            let mut expected = Scan { up: f64::NEG_INFINITY, at: 0, down: f64::NEG_INFINITY };
            for i in 0..n {
                if rise[i] == 0.0 && -shifted[i] > expected.up {
                    (expected.up, expected.at) = (-shifted[i], i);
                }
                if fall[i] == 0.0 {
                    expected.down = expected.down.max(shifted[i]);
                }
            }
            for set in available() {
                let mut gradient = start.clone();
                let found = shift_and_scan(set, &mut gradient, 0.5, (&a, &b), (&rise, &fall));
                assert_eq!((found, &gradient), (expected, &shifted), "{set} seed {seed}");
                assert_eq!(scan(set, &gradient, (&rise, &fall)), expected);
            }
        }
    }
}
