//! A buffer that begins at a cache line, so that no vector of it straddles two.

// A slice of elements is read out of a vector of cache lines.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use crate::numeric::simd::Real;

/// Bytes of a cache line.
const LINE: usize = 64;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; LINE]);

/// A slice of `T` aligned to a cache line.
#[derive(Clone)]
pub(super) struct Aligned<T> {
    lines: Vec<Line>,
    length: usize,
    element: PhantomData<T>,
}

impl<T: Real> Aligned<T> {
    /// `length` zeros.
    pub(super) fn zeros(length: usize) -> Self {
        let lines = vec![Line([0; LINE]); (length * size_of::<T>()).div_ceil(LINE)];
        Self { lines, length, element: PhantomData }
    }

    /// Makes it at least `length` long, new elements being 0.
    pub(super) fn grow(&mut self, length: usize) {
        if length > self.length {
            self.lines.resize((length * size_of::<T>()).div_ceil(LINE), Line([0; LINE]));
            self.length = length;
        }
    }
}

impl<T: Real> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the lines hold at least `length` elements, aligned, and every bit pattern is one.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.length) }
    }
}

impl<T: Real> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.length) }
    }
}
