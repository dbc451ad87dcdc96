//! Sparse left rows against packed dense ones: every row runs over its own non-zeros, each of which
//! meets a whole panel, as few rows of dense vectors ask for (those of a compressed model, mostly).
//!
//! Packed rows may be seen from an origin o while the left ones are not: ⟨x − o, z − o⟩ is
//! ⟨x, z − o⟩ − ⟨o, z − o⟩, whose second part is what sums begin with.

// Panels are read through pointers.
#![allow(unsafe_code)]

use super::aligned::Aligned;
use super::dense::{BlockRequest, Stripes, VECTORS};
use super::pairing::Product;
use super::sparse::SparseRows;
use super::transform::{Tile, finish};
use crate::numeric::simd::{Lanes, Real, Task, Vector, VectorFamily};

/// A product of sparse left rows with packed dense rows.
pub(super) struct MixedProduct<'a, 'b, T> {
    /// Left rows.
    pub(super) left: &'a SparseRows<T>,
    /// Right rows in stripes of a panel.
    pub(super) right: &'a Stripes<T>,
    /// What the sums of every right row begin with, one per place of every panel.
    pub(super) beginnings: &'a [T],
    pub(super) request: BlockRequest<'a, 'b, T>,
}

impl<T: Real> Task for MixedProduct<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<F: VectorFamily>(self) {
        if self.request.columns.is_empty() {
            return;
        }
        let width = Vector::<T, F>::WIDTH;
        let panel = VECTORS * width;
        let mut sums = Aligned::<T>::zeros(panel);
        for p in self.request.columns.start / panel..self.request.columns.end.div_ceil(panel) {
            let begin = self.request.columns.start.max(p * panel);
            let end = self.request.columns.end.min((p + 1) * panel);
            let lanes = begin - p * panel..end - p * panel;
            let values = self.right.stripe(p);
            let beginnings = &self.beginnings[p * panel..(p + 1) * panel];
            let right_statistics = &self.request.right_statistics[p * panel..(p + 1) * panel];
            for (row, out) in self.request.rows.clone().zip(self.request.out.chunks_exact_mut(1)) {
                let (features, products) = self.left.row(row);
                // SAFETY: features are those of the packed rows, of which every panel has a vector each;
                // sums, beginnings and statistics have room for a panel.
                unsafe {
                    let mut total: [_; VECTORS] = std::array::from_fn(|v| {
                        Vector::<T, F>::load(beginnings.as_ptr().add(v * width))
                    });
                    for (&feature, &value) in features.iter().zip(products) {
                        let x = Vector::<T, F>::splat(value);
                        let from = values.as_ptr().add(feature as usize * panel);
                        for v in 0..VECTORS {
                            let z = Vector::<T, F>::load(from.add(v * width));
                            total[v] = x.mul_add(z, total[v]);
                        }
                    }
                    for v in 0..VECTORS {
                        total[v].store(sums.as_mut_ptr().add(v * width));
                    }
                    let tile = Tile {
                        sums: sums.as_ptr(),
                        left: &raw const self.request.left_statistics[row],
                        right: right_statistics.as_ptr(),
                    };
                    let column = begin - self.request.columns.start;
                    finish::<T, F, Product, VECTORS>(
                        self.request.transform,
                        tile,
                        lanes.clone(),
                        out,
                        column,
                    );
                }
            }
        }
    }
}
