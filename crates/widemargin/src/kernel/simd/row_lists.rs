//! Sparse rows against the weights of several problems, those of a feature side by side.
//!
//! Sums are double and in an order that depends on the row alone, and a lane never influences
//! another, so that a problem's numbers do not depend on its company.

use std::ops::{Deref, DerefMut};

use super::linear_rows::{One, Stored, fetch};
use super::{Family, Lanes};

/// Vectors that the widest row of weights takes in the narrowest family.
const MOST_VECTORS: usize = 4;

/// Numbers, one for every problem.
pub(super) type Wide<F> = [<F as Family>::Double; MOST_VECTORS];

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// The weights of several problems, those of a feature side by side and within a line of the cache.
#[derive(Debug)]
pub struct WeightTable<const L: usize> {
    numbers: Vec<f64>,
    first: usize,
    width: usize,
}

impl<const L: usize> WeightTable<L> {
    /// Weights of 0 for `width` features.
    pub fn new(width: usize) -> Self {
        let numbers = vec![0.0; width * L + LINE / size_of::<f64>()];
        let first = numbers.as_ptr().align_offset(LINE).min(LINE / size_of::<f64>());
        Self { numbers, first, width }
    }
}

impl<const L: usize> Deref for WeightTable<L> {
    type Target = [[f64; L]];

    fn deref(&self) -> &[[f64; L]] {
        self.numbers[self.first..][..self.width * L].as_chunks().0
    }
}

impl<const L: usize> DerefMut for WeightTable<L> {
    fn deref_mut(&mut self) -> &mut [[f64; L]] {
        self.numbers[self.first..][..self.width * L].as_chunks_mut().0
    }
}

/// The values of sparse rows.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// In single precision.
    Single(&'a [f32]),
    /// In double precision.
    Double(&'a [f64]),
    /// All 1.
    Ones(&'a [One]),
}

/// The lists of sparse rows: row i holds `indices[starts[i]..starts[i + 1]]` and their values.
#[derive(Clone, Copy, Debug)]
pub struct RowLists<'a> {
    columns: usize,
    starts: &'a [usize],
    indices: &'a [u32],
    pub(super) values: Values<'a>,
    bias: Option<f64>,
}

impl<'a> RowLists<'a> {
    /// Lists of which the caller has checked that rows are in order and indices below `columns`.
    pub(super) fn new(
        columns: usize,
        starts: &'a [usize],
        indices: &'a [u32],
        values: Values<'a>,
        bias: Option<f64>,
    ) -> Self {
        Self { columns, starts, indices, values, bias }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of weights, one more than features when there is a bias.
    pub fn width(&self) -> usize {
        self.columns + usize::from(self.bias.is_some())
    }

    /// Asks the processor to fetch row `i`.
    #[inline(always)]
    pub(super) fn prefetch<V: Stored>(&self, i: usize, values: &[V]) {
        let start = self.starts[i];
        fetch(self.indices, start);
        fetch(self.indices, start + 16);
        if size_of::<V>() > 0 {
            fetch(values, start);
            fetch(values, start + 16);
        }
    }

    /// ⟨wₖ, xᵢ⟩ of all problems k; `L` is a multiple of the vectors' width.
    ///
    /// # Safety
    /// The processor has the instructions of `F`, `values` are those of the lists and there are
    /// `width()` rows of weights.
    #[inline(always)]
    pub(super) unsafe fn dot<F: Family, V: Stored, const L: usize>(
        &self,
        values: &[V],
        i: usize,
        weights: &[[f64; L]],
    ) -> Wide<F> {
        let (width, start, end) = (F::Double::WIDTH, self.starts[i], self.starts[i + 1]);
        // SAFETY: the lists are as `new` was promised, and every row of weights holds `L` numbers.
        unsafe {
            let mut sums = [[F::Double::splat(0.0); MOST_VECTORS]; 4];
            let mut k = start;
            while k + 4 <= end {
                for (lane, sum) in sums.iter_mut().enumerate() {
                    let j = *self.indices.get_unchecked(k + lane) as usize;
                    let value = values.get_unchecked(k + lane).double();
                    add_weights::<F, L>(sum, value, weights.get_unchecked(j));
                }
                k += 4;
            }
            while k < end {
                let j = *self.indices.get_unchecked(k) as usize;
                let value = values.get_unchecked(k).double();
                add_weights::<F, L>(&mut sums[0], value, weights.get_unchecked(j));
                k += 1;
            }
            let mut total = sums[0];
            for v in 0..L / width {
                total[v] = sums[0][v].add(sums[1][v]).add(sums[2][v].add(sums[3][v]));
            }
            if let Some(bias) = self.bias {
                add_weights::<F, L>(&mut total, bias, weights.get_unchecked(self.columns));
            }
            total
        }
    }

    /// wₖ ← wₖ + factorₖ · xᵢ for all problems k.
    ///
    /// # Safety
    /// As [`dot`](Self::dot).
    #[inline(always)]
    pub(super) unsafe fn add<F: Family, V: Stored, const L: usize>(
        &self,
        values: &[V],
        i: usize,
        factors: &Wide<F>,
        weights: &mut [[f64; L]],
    ) {
        // SAFETY: as above.
        unsafe {
            for k in self.starts[i]..self.starts[i + 1] {
                let j = *self.indices.get_unchecked(k) as usize;
                let value = values.get_unchecked(k).double();
                add_factors::<F, L>(weights.get_unchecked_mut(j), value, factors);
            }
            if let Some(bias) = self.bias {
                add_factors::<F, L>(weights.get_unchecked_mut(self.columns), bias, factors);
            }
        }
    }
}

/// sums ← sums + value · weights
///
/// # Safety
/// The processor has the instructions of `F`.
#[inline(always)]
unsafe fn add_weights<F: Family, const L: usize>(
    sums: &mut Wide<F>,
    value: f64,
    weights: &[f64; L],
) {
    // SAFETY: vectors end within the weights.
    unsafe {
        let value = F::Double::splat(value);
        for v in 0..L / F::Double::WIDTH {
            let own = F::Double::load(weights.as_ptr().add(v * F::Double::WIDTH));
            sums[v] = value.mul_add(own, sums[v]);
        }
    }
}

/// weights ← weights + value · factors
///
/// # Safety
/// As [`add_weights`].
#[inline(always)]
unsafe fn add_factors<F: Family, const L: usize>(
    weights: &mut [f64; L],
    value: f64,
    factors: &Wide<F>,
) {
    // SAFETY: vectors end within the weights.
    unsafe {
        let value = F::Double::splat(value);
        for v in 0..L / F::Double::WIDTH {
            let place = weights.as_mut_ptr().add(v * F::Double::WIDTH);
            // Not fused: a step and its return leave nothing behind.
            value.mul(factors[v]).add(F::Double::load(place)).store(place);
        }
    }
}
