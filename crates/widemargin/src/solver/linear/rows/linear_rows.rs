//! Rows of a table against vectors of weights: the two loops that every linear solver consists of.
//!
//! [`LinearRows::dot`] is ⟨w, x⟩ and [`LinearRows::add`] is w ← w + a·x, for sparse and dense rows and
//! with an appended constant feature (LIBLINEAR's bias). Sums are double, in an order that depends
//! on the row alone.

use std::sync::OnceLock;

use super::row_lists::{RowLists, Values};
use crate::data::{Csr, Dense, pieces};
use crate::numeric::InstructionSet;
use crate::numeric::simd::{Lanes, Real, Task, VectorFamily, dispatch};

/// Rows that linear solvers multiply with weights.
pub(crate) trait LinearRows: Sync {
    /// Number of rows.
    fn rows(&self) -> usize;
    /// Number of weights, one more than features when there is a bias.
    fn width(&self) -> usize;
    /// Stored values of all rows.
    fn nonzeros(&self) -> usize;
    /// ⟨w, xᵢ⟩
    ///
    /// # Panics
    /// When there is no row `i` or there are fewer weights than [`width`](Self::width).
    fn dot(&self, i: usize, weights: &[f64]) -> f64;
    /// w ← w + factor · xᵢ
    ///
    /// # Panics
    /// As [`dot`](Self::dot).
    fn add(&self, i: usize, factor: f64, weights: &mut [f64]);
    /// Asks the processor to fetch row `i`.
    fn prefetch(&self, i: usize);
    /// The lists behind sparse rows, which [`sweep`](super::sweep) reads for several problems at once.
    fn lists(&self) -> Option<RowLists<'_>> {
        None
    }
    /// Calls `visit(column, value)` for the stored values of row `i` and the bias.
    fn visit(&self, i: usize, visit: impl FnMut(usize, f64));

    /// Adds factor · xᵢxᵢᵀ to a square row-major matrix, every pair of features on one side of the
    /// diagonal only, whichever that is.
    ///
    /// # Panics
    /// When there is no row `i` or the matrix is smaller than the square of [`width`](Self::width).
    fn add_pairs(&self, i: usize, factor: f64, matrix: &mut [f64]) {
        let width = self.width();
        let mut row: Vec<(usize, f64)> = Vec::new();
        self.visit(i, |j, value| row.push((j, value)));
        for (at, &(j, x)) in row.iter().enumerate() {
            let (line, own) = (&mut matrix[j * width..][..width], factor * x);
            row[..=at].iter().for_each(|&(k, other)| line[k] += own * other);
        }
    }

    /// ‖xᵢ‖²
    fn squared_norm(&self, i: usize) -> f64 {
        let mut sum = 0.0;
        self.visit(i, |_, value| sum += value * value);
        sum
    }
}

/// A value that sparse rows may store.
pub(crate) trait Stored: Copy + Send + Sync + 'static {
    /// In double precision.
    fn double(self) -> f64;
    /// A list of them.
    fn list(values: &[Self]) -> Values<'_>;
}

impl Stored for f32 {
    #[inline(always)]
    fn double(self) -> f64 {
        f64::from(self)
    }

    fn list(values: &[Self]) -> Values<'_> {
        Values::Single(values)
    }
}

impl Stored for f64 {
    #[inline(always)]
    fn double(self) -> f64 {
        self
    }

    fn list(values: &[Self]) -> Values<'_> {
        Values::Double(values)
    }
}

/// The value 1, which needs no memory: rows of words or categories that are there or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct One;

impl Stored for One {
    #[inline(always)]
    fn double(self) -> f64 {
        1.0
    }

    fn list(values: &[Self]) -> Values<'_> {
        Values::Ones(values)
    }
}

/// Rows of a sparse table.
pub(crate) struct SparseRows<'a, V> {
    columns: usize,
    starts: &'a [usize],
    indices: &'a [u32],
    values: &'a [V],
    bias: Option<f64>,
    /// ‖x‖² of every row, once someone has asked.
    squares: OnceLock<Vec<f64>>,
}

impl<'a, V: Stored> SparseRows<'a, V> {
    /// The rows of `table` with its values, or with others in their place.
    ///
    /// # Panics
    /// When there is not one value per stored index.
    pub(crate) fn new<T: Copy>(table: &'a Csr<T>, values: &'a [V], bias: Option<f64>) -> Self {
        Self::from_parts(table.columns(), table.indptr(), table.indices(), values, bias)
    }

    /// Rows of `columns` features; row i holds `indices[starts[i]..starts[i + 1]]`, in any order.
    ///
    /// # Panics
    /// When the lists do not describe such rows.
    pub(crate) fn from_parts(
        columns: usize,
        starts: &'a [usize],
        indices: &'a [u32],
        values: &'a [V],
        bias: Option<f64>,
    ) -> Self {
        // What the unchecked loops below rely on; the width has room for a bias.
        assert!(u32::try_from(columns).is_ok(), "columns that indices can name");
        assert!(starts.is_sorted() && starts.last() == Some(&indices.len()), "rows in order");
        let largest = |piece: &[u32]| piece.iter().fold(0, |most, &j| j.max(most));
        let inside = |piece: &[u32]| (largest(piece) as usize) < columns;
        assert!(pieces::all(indices, inside), "indices below the width");
        assert_eq!(indices.len(), values.len(), "one value per index");
        Self { columns, starts, indices, values, bias, squares: OnceLock::new() }
    }

    #[inline(always)]
    fn row(&self, i: usize) -> (&[u32], &[V]) {
        let range = self.starts[i]..self.starts[i + 1];
        // SAFETY: `new` checked that rows are in order and end within both lists.
        unsafe { (self.indices.get_unchecked(range.clone()), self.values.get_unchecked(range)) }
    }
}

impl<V: Stored> LinearRows for SparseRows<'_, V> {
    fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    fn width(&self) -> usize {
        self.columns + usize::from(self.bias.is_some())
    }

    fn nonzeros(&self) -> usize {
        self.indices.len()
    }

    #[inline(always)]
    fn dot(&self, i: usize, weights: &[f64]) -> f64 {
        assert!(weights.len() >= self.width(), "a weight for every feature");
        let (indices, values) = self.row(i);
        let mut sums = [0.0; 4];
        let whole = indices.len() / 4 * 4;
        // SAFETY: `new` checked that every index is below the width, and rows are as long as their
        // values.
        unsafe {
            let mut k = 0;
            while k < whole {
                for lane in 0..4 {
                    let j = *indices.get_unchecked(k + lane) as usize;
                    let value = values.get_unchecked(k + lane).double();
                    sums[lane] += value * weights.get_unchecked(j);
                }
                k += 4;
            }
            let mut sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
            while k < indices.len() {
                let j = *indices.get_unchecked(k) as usize;
                sum += values.get_unchecked(k).double() * weights.get_unchecked(j);
                k += 1;
            }
            match self.bias {
                Some(bias) => sum + bias * weights.get_unchecked(self.columns),
                None => sum,
            }
        }
    }

    #[inline(always)]
    fn add(&self, i: usize, factor: f64, weights: &mut [f64]) {
        assert!(weights.len() >= self.width(), "a weight for every feature");
        let (indices, values) = self.row(i);
        for (&j, value) in indices.iter().zip(values) {
            // SAFETY: `new` checked that every index is below the width.
            unsafe { *weights.get_unchecked_mut(j as usize) += factor * value.double() };
        }
        if let Some(bias) = self.bias {
            weights[self.columns] += factor * bias;
        }
    }

    #[inline(always)]
    fn add_pairs(&self, i: usize, factor: f64, matrix: &mut [f64]) {
        let width = self.width();
        let cells = width.checked_mul(width);
        assert!(cells.is_some_and(|cells| cells <= matrix.len()), "a cell for every pair");
        let (indices, values) = self.row(i);
        for at in 0..indices.len() {
            // SAFETY: `new` checked that every index is below the width, and rows are as long as
            // their values.
            unsafe {
                let start = *indices.get_unchecked(at) as usize * width;
                let own = factor * values.get_unchecked(at).double();
                for b in 0..=at {
                    let k = start + *indices.get_unchecked(b) as usize;
                    *matrix.get_unchecked_mut(k) += own * values.get_unchecked(b).double();
                }
            }
        }
        if let Some(bias) = self.bias {
            let line = &mut matrix[self.columns * width..][..width];
            for (&j, value) in indices.iter().zip(values) {
                line[j as usize] += factor * bias * value.double();
            }
            line[self.columns] += factor * bias * bias;
        }
    }

    fn lists(&self) -> Option<RowLists<'_>> {
        let Self { columns, starts, indices, values, bias, .. } = *self;
        Some(RowLists::new(columns, starts, indices, V::list(values), bias))
    }

    fn squared_norm(&self, i: usize) -> f64 {
        let own = |i: usize| {
            let mut sum = 0.0;
            self.visit(i, |_, value| sum += value * value);
            sum
        };
        self.squares.get_or_init(|| (0..self.rows()).map(own).collect())[i]
    }

    #[inline(always)]
    fn prefetch(&self, i: usize) {
        if let Some(&start) = self.starts.get(i) {
            fetch(self.indices, start);
            fetch(self.indices, start + 16);
            if size_of::<V>() > 0 {
                fetch(self.values, start);
                fetch(self.values, start + 8);
            }
        }
    }

    #[inline(always)]
    fn visit(&self, i: usize, mut visit: impl FnMut(usize, f64)) {
        let (indices, values) = self.row(i);
        for (&j, value) in indices.iter().zip(values) {
            visit(j as usize, value.double());
        }
        if let Some(bias) = self.bias {
            visit(self.columns, bias);
        }
    }
}

/// Asks for the cache line of an element; beyond the end nothing happens.
#[inline(always)]
pub(crate) fn fetch<T>(list: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if at < list.len() {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the element exists; a prefetch changes nothing but the cache.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(list.as_ptr().add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (list, at);
}

/// Rows of a dense table.
pub(crate) struct DenseRows<'a, T> {
    columns: usize,
    rows: usize,
    values: &'a [T],
    bias: Option<f64>,
    set: InstructionSet,
}

impl<'a, T: Real> DenseRows<'a, T> {
    /// The rows of `table`.
    pub(crate) fn new(table: &'a Dense<T>, bias: Option<f64>, set: InstructionSet) -> Self {
        let (columns, rows) = (table.columns(), table.rows());
        Self { columns, rows, values: table.values(), bias, set }
    }

    #[inline(always)]
    fn row(&self, i: usize) -> &[T] {
        &self.values[i * self.columns..(i + 1) * self.columns]
    }
}

impl<T: Real> LinearRows for DenseRows<'_, T> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn width(&self) -> usize {
        self.columns + usize::from(self.bias.is_some())
    }

    fn nonzeros(&self) -> usize {
        self.values.len()
    }

    #[inline]
    fn dot(&self, i: usize, weights: &[f64]) -> f64 {
        if self.columns < NARROW {
            let sum = narrow_dot(self.row(i), &weights[..self.columns]);
            return match self.bias {
                Some(bias) => sum + bias * weights[self.columns],
                None => sum,
            };
        }
        let sum = dispatch(self.set, Dot { row: self.row(i), weights: &weights[..self.columns] });
        match self.bias {
            Some(bias) => sum + bias * weights[self.columns],
            None => sum,
        }
    }

    #[inline]
    fn add(&self, i: usize, factor: f64, weights: &mut [f64]) {
        if let Some(bias) = self.bias {
            weights[self.columns] += factor * bias;
        }
        let (row, weights) = (self.row(i), &mut weights[..self.columns]);
        if self.columns < NARROW {
            weights.iter_mut().zip(row).for_each(|(w, x)| *w += factor * x.to_f64());
        } else {
            dispatch(self.set, Add { row, factor, weights });
        }
    }

    fn prefetch(&self, i: usize) {
        for line in 0..4 {
            fetch(self.values, i * self.columns + line * 64 / size_of::<T>());
        }
    }

    #[inline(always)]
    fn visit(&self, i: usize, mut visit: impl FnMut(usize, f64)) {
        for (j, value) in self.row(i).iter().enumerate() {
            visit(j, value.to_f64());
        }
        if let Some(bias) = self.bias {
            visit(self.columns, bias);
        }
    }
}

/// Columns below which a call of the vector loops costs more than they save.
const NARROW: usize = 96;

#[inline(always)]
fn narrow_dot<T: Real>(row: &[T], weights: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (rows, row_rest) = row.as_chunks::<4>();
    let (fours, rest) = weights.as_chunks::<4>();
    for (x, w) in rows.iter().zip(fours) {
        for lane in 0..4 {
            sums[lane] += x[lane].to_f64() * w[lane];
        }
    }
    let mut sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (x, w) in row_rest.iter().zip(rest) {
        sum += x.to_f64() * w;
    }
    sum
}

struct Dot<'a, T> {
    row: &'a [T],
    weights: &'a [f64],
}

impl<T: Real> Task for Dot<'_, T> {
    type Output = f64;

    #[inline(always)]
    unsafe fn run<F: VectorFamily>(self) -> f64 {
        let width = F::Double::WIDTH;
        let length = self.row.len().min(self.weights.len());
        let (row, weights) = (self.row.as_ptr(), self.weights.as_ptr());
        let mut k = 0;
        // SAFETY: vectors end within the shorter of the two lists.
        let mut sum = unsafe {
            let mut sums = [F::Double::splat(0.0); 4];
            while k + 4 * width <= length {
                for (lane, sum) in sums.iter_mut().enumerate() {
                    let at = k + lane * width;
                    *sum = T::load_wide::<F>(row.add(at))
                        .mul_add(F::Double::load(weights.add(at)), *sum);
                }
                k += 4 * width;
            }
            while k + width <= length {
                sums[0] =
                    T::load_wide::<F>(row.add(k)).mul_add(F::Double::load(weights.add(k)), sums[0]);
                k += width;
            }
            sums[0].add(sums[1]).add(sums[2].add(sums[3])).sum()
        };
        for at in k..length {
            sum += self.row[at].to_f64() * self.weights[at];
        }
        sum
    }
}

struct Add<'a, T> {
    row: &'a [T],
    factor: f64,
    weights: &'a mut [f64],
}

impl<T: Real> Task for Add<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<F: VectorFamily>(self) {
        let width = F::Double::WIDTH;
        let length = self.row.len().min(self.weights.len());
        let (row, weights) = (self.row.as_ptr(), self.weights.as_mut_ptr());
        let mut k = 0;
        // SAFETY: vectors end within the shorter of the two lists.
        unsafe {
            let factor = F::Double::splat(self.factor);
            while k + width <= length {
                let sum =
                    T::load_wide::<F>(row.add(k)).mul_add(factor, F::Double::load(weights.add(k)));
                sum.store(weights.add(k));
                k += width;
            }
        }
        for at in k..length {
            self.weights[at] += self.factor * self.row[at].to_f64();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::simd::available;

    fn value(i: usize) -> f64 {
        ((i * 7919 % 1013) as f64 / 1013.0 - 0.5) as f32 as f64
    }

    /// Checks `dot` and `add` of every row against plain loops over `visit`.
    fn agrees_with_plain_loops(rows: &impl LinearRows) {
        let weights: Vec<f64> = (0..rows.width()).map(|j| value(j + 7)).collect();
        for i in 0..rows.rows() {
            let (mut product, mut moved) = (0.0, weights.clone());
            rows.visit(i, |j, v| {
                product += v * weights[j];
                moved[j] += 0.25 * v;
            });
            assert!((rows.dot(i, &weights) - product).abs() < 1e-12, "row {i}");
            let mut added = weights.clone();
            rows.add(i, 0.25, &mut added);
            assert!(added.iter().zip(&moved).all(|(a, b)| (a - b).abs() < 1e-15), "row {i}");
            let width = rows.width();
            let mut pairs = vec![0.0; width * width];
            rows.add_pairs(i, 0.5, &mut pairs);
            rows.visit(i, |j, v| {
                rows.visit(i, |k, other| {
                    let other_side = if j == k { 0.0 } else { pairs[k * width + j] };
                    let found = pairs[j * width + k] + other_side;
                    assert!((found - 0.5 * v * other).abs() < 1e-15, "row {i}: {j}, {k}");
                });
            });
        }
    }

    #[test]
    fn widths_whose_sizes_overflow_are_refused() {
        let from = |columns: usize, bias: Option<f64>| {
            SparseRows::from_parts(columns, &[0, 1], &[7], &[1.0_f64], bias).width()
        };
        assert!(std::panic::catch_unwind(|| from(usize::MAX, Some(1.0))).is_err());
        assert!(std::panic::catch_unwind(|| from(7, None)).is_err());
        let rows = SparseRows::from_parts(u32::MAX as usize, &[0, 1], &[7], &[1.0_f64], Some(1.0));
        let add = || rows.add_pairs(0, 1.0, &mut [0.0; 8]);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(add)).is_err());
    }

    #[test]
    fn dense_rows_agree_with_plain_loops() {
        for set in available() {
            for columns in [1, 5, 16, 37, 131] {
                let values: Vec<f64> = (0..3 * columns).map(value).collect();
                let single = Dense::new(3, columns, values.iter().map(|v| *v as f32).collect());
                let double = Dense::new(3, columns, values).unwrap();
                for bias in [None, Some(2.0)] {
                    agrees_with_plain_loops(&DenseRows::new(&double, bias, set));
                    agrees_with_plain_loops(&DenseRows::new(single.as_ref().unwrap(), bias, set));
                }
            }
        }
    }

    #[test]
    fn sparse_rows_agree_with_plain_loops() {
        let starts = vec![0, 3, 3, 14];
        let indices: Vec<u32> = [0, 4, 9].into_iter().chain((0..11).map(|j| j * 2)).collect();
        let values: Vec<f64> = (0..14).map(value).collect();
        let table = Csr::new(21, starts, indices, values).unwrap();
        for bias in [None, Some(-1.0)] {
            agrees_with_plain_loops(&SparseRows::new(&table, table.values(), bias));
            agrees_with_plain_loops(&SparseRows::new(&table, &[One; 14], bias));
        }
    }
}
