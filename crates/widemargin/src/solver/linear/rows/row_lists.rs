//! Sparse rows against the weights of several problems, those of a feature adjacent.
//!
//! Sums are in an order that depends on the row alone, and problems do not influence each
//! other, so that a problem's numbers do not depend on its batch.

use std::ops::{Deref, DerefMut};

use super::linear_rows::{One, Stored, fetch};
use crate::numeric::simd::{Lanes, Real, Vector, VectorFamily};

/// Vectors of doubles that the widest row of weights takes in the narrowest family.
pub(super) const MOST_VECTORS: usize = 8;

/// Numbers, one for every problem.
pub(super) type Wide<T, F> = [Vector<T, F>; MOST_VECTORS];

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// The weights of several problems, those of a feature adjacent and within a line of the cache.
#[derive(Debug)]
pub(crate) struct WeightTable<T, const L: usize> {
    numbers: Vec<T>,
    first: usize,
    width: usize,
}

impl<T: Real, const L: usize> WeightTable<T, L> {
    /// Weights of 0 for `width` features.
    pub(crate) fn new(width: usize) -> Self {
        let numbers = vec![T::ZERO; width * L + LINE / size_of::<T>()];
        let first = numbers.as_ptr().align_offset(LINE).min(LINE / size_of::<T>());
        Self { numbers, first, width }
    }
}

impl<T, const L: usize> Deref for WeightTable<T, L> {
    type Target = [[T; L]];

    fn deref(&self) -> &[[T; L]] {
        self.numbers[self.first..][..self.width * L].as_chunks().0
    }
}

impl<T, const L: usize> DerefMut for WeightTable<T, L> {
    fn deref_mut(&mut self) -> &mut [[T; L]] {
        self.numbers[self.first..][..self.width * L].as_chunks_mut().0
    }
}

/// The values of sparse rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Values<'a> {
    /// In single precision.
    Single(&'a [f32]),
    /// In double precision.
    Double(&'a [f64]),
    /// All 1.
    Ones(&'a [One]),
}

/// The lists of sparse rows: row i holds `indices[starts[i]..starts[i + 1]]` and their values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowLists<'a> {
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
    pub(crate) fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of weights, one more than features when there is a bias.
    pub(crate) fn width(&self) -> usize {
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

    /// ⟨wₖ, xᵢ⟩ of all problems k.
    ///
    /// # Safety
    /// The processor has the instructions of `F`, `values` are those of the lists and there are
    /// `width()` rows of weights.
    #[inline(always)]
    pub(super) unsafe fn dot<F: VectorFamily, V: Stored, W: ProblemWeights>(
        &self,
        values: &[V],
        i: usize,
        weights: W,
    ) -> Wide<W::Number, F> {
        let vectors = W::PROBLEMS / Vector::<W::Number, F>::WIDTH;
        let (start, end) = (self.starts[i], self.starts[i + 1]);
        // SAFETY: the lists are as `new` was promised.
        unsafe {
            let zero = Vector::<W::Number, F>::splat(W::Number::ZERO);
            let mut sums = [[zero; MOST_VECTORS]; 4];
            let mut k = start;
            while k + 4 <= end {
                for (lane, sum) in sums.iter_mut().enumerate() {
                    let j = *self.indices.get_unchecked(k + lane) as usize;
                    add_weights::<F, W>(sum, values.get_unchecked(k + lane).double(), weights, j);
                }
                k += 4;
            }
            while k < end {
                let j = *self.indices.get_unchecked(k) as usize;
                add_weights::<F, W>(&mut sums[0], values.get_unchecked(k).double(), weights, j);
                k += 1;
            }
            let mut total = sums[0];
            for v in 0..vectors {
                total[v] = sums[0][v].add(sums[1][v]).add(sums[2][v].add(sums[3][v]));
            }
            if let Some(bias) = self.bias {
                add_weights::<F, W>(&mut total, bias, weights, self.columns);
            }
            total
        }
    }

    /// wₖ ← wₖ + factorₖ · xᵢ for all problems k.
    ///
    /// # Safety
    /// As [`dot`](Self::dot).
    #[inline(always)]
    pub(super) unsafe fn add<F: VectorFamily, T: Real, V: Stored, const L: usize>(
        &self,
        values: &[V],
        i: usize,
        factors: &Wide<T, F>,
        weights: &mut [[T; L]],
    ) {
        // SAFETY: as above.
        unsafe {
            for k in self.starts[i]..self.starts[i + 1] {
                let j = *self.indices.get_unchecked(k) as usize;
                let value = values.get_unchecked(k).double();
                add_factors::<F, T, L>(weights.get_unchecked_mut(j), value, factors);
            }
            if let Some(bias) = self.bias {
                add_factors::<F, T, L>(weights.get_unchecked_mut(self.columns), bias, factors);
            }
        }
    }
}

/// The weights of several problems as terms of sums.
pub(super) trait ProblemWeights: Copy {
    /// What sums are made of.
    type Number: Real;
    /// How many problems there are, a multiple of the vectors' width.
    const PROBLEMS: usize;

    /// Those of feature `j` in a vector of problems, from problem `at` on.
    ///
    /// # Safety
    /// The processor has the instructions of `F`, and there are that many features and problems.
    unsafe fn load<F: VectorFamily>(self, j: usize, at: usize) -> Vector<Self::Number, F>;
}

impl<T: Real, const L: usize> ProblemWeights for &[[T; L]] {
    type Number = T;
    const PROBLEMS: usize = L;

    #[inline(always)]
    unsafe fn load<F: VectorFamily>(self, j: usize, at: usize) -> Vector<T, F> {
        // SAFETY: as the caller promised.
        unsafe { Vector::<T, F>::load(self.get_unchecked(j).as_ptr().add(at)) }
    }
}

/// Weights whose sums are double, whatever they are.
#[derive(Clone, Copy)]
pub(super) struct InDouble<'a, T, const L: usize>(pub(super) &'a [[T; L]]);

impl<T: Real, const L: usize> ProblemWeights for InDouble<'_, T, L> {
    type Number = f64;
    const PROBLEMS: usize = L;

    #[inline(always)]
    unsafe fn load<F: VectorFamily>(self, j: usize, at: usize) -> F::Double {
        // SAFETY: as the caller promised.
        unsafe { T::load_wide::<F>(self.0.get_unchecked(j).as_ptr().add(at)) }
    }
}

/// sums ← sums + value · weights of feature `j`
///
/// # Safety
/// As [`ProblemWeights::load`].
#[inline(always)]
unsafe fn add_weights<F: VectorFamily, W: ProblemWeights>(
    sums: &mut Wide<W::Number, F>,
    value: f64,
    weights: W,
    j: usize,
) {
    let width = Vector::<W::Number, F>::WIDTH;
    // SAFETY: vectors end within the weights.
    unsafe {
        let value = Vector::<W::Number, F>::splat(W::Number::from_f64(value));
        for v in 0..W::PROBLEMS / width {
            sums[v] = value.mul_add(weights.load::<F>(j, v * width), sums[v]);
        }
    }
}

/// weights ← weights + value · factors
///
/// # Safety
/// The processor has the instructions of `F`.
#[inline(always)]
unsafe fn add_factors<F: VectorFamily, T: Real, const L: usize>(
    weights: &mut [T; L],
    value: f64,
    factors: &Wide<T, F>,
) {
    let width = Vector::<T, F>::WIDTH;
    // SAFETY: vectors end within the weights.
    unsafe {
        let value = Vector::<T, F>::splat(T::from_f64(value));
        for v in 0..L / width {
            let place = weights.as_mut_ptr().add(v * width);
            // Not fused: a step and its return leave nothing behind.
            value.mul(factors[v]).add(Vector::<T, F>::load(place)).store(place);
        }
    }
}
