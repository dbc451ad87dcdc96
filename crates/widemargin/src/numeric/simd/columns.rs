//! The update of several score columns at once: a few rows of kernel values times a small matrix of
//! coefficients, each value read once for all columns.

use super::{InstructionSet, Lanes, Real, Task, Vector, VectorFamily, dispatch};

/// Products that are summed in the precision of the rows before the sum goes to double; their
/// rounding is then of the size of that of the values.
const CHUNK: usize = 32;

/// Columns summed at a time in registers.
const COLUMNS: usize = 8;

/// Adds Σᵣ `coefficients[r][c]` · `rows[r][i]` to `sums[c][i]`, where the coefficients of a row
/// stand one after another.
///
/// The sums of 32 rows are taken in `T` and added in double precision, in the order of the rows, so
/// that the result does not depend on how vectors are cut into ranges.
///
/// # Panics
/// When a row is not as long as every column, or there is not one coefficient per row and column.
pub(crate) fn accumulate_columns<T: Real>(
    set: InstructionSet,
    sums: &mut [&mut [f64]],
    rows: &[&[T]],
    coefficients: &[T],
) {
    assert_eq!(rows.len() * sums.len(), coefficients.len(), "one coefficient per row and column");
    let Some(length) = sums.first().map(|column| column.len()) else { return };
    assert!(sums.iter().all(|column| column.len() == length), "columns of one length");
    assert!(rows.iter().all(|row| row.len() == length), "rows as long as the columns");
    dispatch(set, Columns { sums, rows, coefficients, length });
}

struct Columns<'a, 'b, T> {
    sums: &'a mut [&'b mut [f64]],
    rows: &'a [&'a [T]],
    coefficients: &'a [T],
    length: usize,
}

impl<T: Real> Task for Columns<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<F: VectorFamily>(mut self) {
        let (width, columns) = (Vector::<T, F>::WIDTH, self.sums.len());
        let whole = self.length / (2 * width) * (2 * width);
        for start in (0..self.rows.len()).step_by(CHUNK) {
            let rows = &self.rows[start..(start + CHUNK).min(self.rows.len())];
            for at in (0..whole).step_by(2 * width) {
                let mut first = 0;
                // SAFETY: two vectors from `at` on lie within the length of rows and columns, the
                // columns from `first` on exist, and the caller vouches for the instructions.
                unsafe {
                    while first + COLUMNS <= columns {
                        self.tile::<F, COLUMNS>(rows, start, at, first);
                        first += COLUMNS;
                    }
                    if first + 4 <= columns {
                        self.tile::<F, 4>(rows, start, at, first);
                        first += 4;
                    }
                    if first + 2 <= columns {
                        self.tile::<F, 2>(rows, start, at, first);
                        first += 2;
                    }
                    if first < columns {
                        self.tile::<F, 1>(rows, start, at, first);
                    }
                }
            }
            // The end, one entry at a time and with the same operations.
            for c in 0..columns {
                for i in whole..self.length {
                    // SAFETY: a vector of one value is that of any lane.
                    let sum = unsafe {
                        let mut sum = Vector::<T, F>::splat(T::ZERO);
                        for (r, row) in rows.iter().enumerate() {
                            let amount = self.coefficients[(start + r) * columns + c];
                            let amount = Vector::<T, F>::splat(amount);
                            sum = Vector::<T, F>::splat(row[i]).mul_add(amount, sum);
                        }
                        let mut buffer = [T::ZERO; super::lanes::MAX_WIDTH];
                        sum.store(buffer.as_mut_ptr());
                        buffer[0].to_f64()
                    };
                    self.sums[c][i] += sum;
                }
            }
        }
    }
}

impl<T: Real> Columns<'_, '_, T> {
    /// Two vectors of entries from `at` on, `N` columns from `first` on.
    ///
    /// # Safety
    /// The entries lie within the length, the columns exist, `rows` are those from `start` on, and
    /// the processor has the instructions of `F`.
    #[inline(always)]
    unsafe fn tile<F: VectorFamily, const N: usize>(
        &mut self,
        rows: &[&[T]],
        start: usize,
        at: usize,
        first: usize,
    ) {
        let (width, columns) = (Vector::<T, F>::WIDTH, self.sums.len());
        // SAFETY: promised by the caller.
        unsafe {
            let zero = Vector::<T, F>::splat(T::ZERO);
            let mut sums = [[zero; 2]; N];
            let mut amounts = self.coefficients.as_ptr().add(start * columns + first);
            for row in rows {
                let from = row.as_ptr().add(at);
                let (low, high) =
                    (Vector::<T, F>::load(from), Vector::<T, F>::load(from.add(width)));
                for c in 0..N {
                    let amount = Vector::<T, F>::splat(*amounts.add(c));
                    sums[c][0] = low.mul_add(amount, sums[c][0]);
                    sums[c][1] = high.mul_add(amount, sums[c][1]);
                }
                amounts = amounts.wrapping_add(columns);
            }
            let mut buffer = [T::ZERO; 2 * super::lanes::MAX_WIDTH];
            for c in 0..N {
                sums[c][0].store(buffer.as_mut_ptr());
                sums[c][1].store(buffer.as_mut_ptr().add(width));
                let to = self.sums[first + c].as_mut_ptr().add(at);
                for k in (0..2 * width).step_by(F::Double::WIDTH) {
                    let sum = F::Double::load(to.add(k));
                    sum.add(T::load_wide::<F>(buffer.as_ptr().add(k))).store(to.add(k));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::available;
    use super::*;

    fn value(i: usize) -> f64 {
        ((i * 7919 % 1009) as f64 / 1009.0 - 0.5) * 3.0
    }

    fn matches_a_triple_loop<T: Real>(tolerance: f64) {
        for set in available() {
            for (rows, columns, length) in
                [(0, 3, 5), (1, 1, 1), (3, 2, 31), (7, 11, 64), (70, 27, 77), (33, 8, 130)]
            {
                let table: Vec<Vec<T>> = (0..rows)
                    .map(|r| (0..length).map(|i| T::from_f64(value(r * length + i))).collect())
                    .collect();
                let slices: Vec<&[T]> = table.iter().map(Vec::as_slice).collect();
                let amounts: Vec<T> =
                    (0..rows * columns).map(|k| T::from_f64(value(k + 17))).collect();
                let start: Vec<Vec<f64>> = (0..columns)
                    .map(|c| (0..length).map(|i| value(c * length + i + 5)).collect())
                    .collect();
                let mut sums = start.clone();
                let mut parts: Vec<&mut [f64]> = sums.iter_mut().map(Vec::as_mut_slice).collect();
                accumulate_columns(set, &mut parts, &slices, &amounts);
                for c in 0..columns {
                    for i in 0..length {
                        let mut exact = start[c][i];
                        for r in 0..rows {
                            exact += amounts[r * columns + c].to_f64() * table[r][i].to_f64();
                        }
                        let error = (sums[c][i] - exact).abs();
                        assert!(error < tolerance, "{set} {rows} {columns} {length}: {error}");
                    }
                }
            }
        }
    }

    #[test]
    fn single_rows_match_a_triple_loop() {
        matches_a_triple_loop::<f32>(2e-5);
    }

    #[test]
    fn double_rows_match_a_triple_loop() {
        matches_a_triple_loop::<f64>(1e-12);
    }

    #[test]
    fn cutting_the_vectors_changes_no_bit() {
        for set in available() {
            let table: Vec<Vec<f32>> =
                (0..40).map(|r| (0..101).map(|i| value(r * 101 + i) as f32).collect()).collect();
            let amounts: Vec<f32> = (0..40 * 3).map(|k| value(k + 3) as f32).collect();
            let run = |range: std::ops::Range<usize>| {
                let rows: Vec<&[f32]> = table.iter().map(|row| &row[range.clone()]).collect();
                let mut sums = vec![vec![0.25; range.len()]; 3];
                let mut parts: Vec<&mut [f64]> = sums.iter_mut().map(Vec::as_mut_slice).collect();
                accumulate_columns(set, &mut parts, &rows, &amounts);
                sums
            };
            let whole = run(0..101);
            for cut in [1, 8, 50, 99] {
                let (low, high) = (run(0..cut), run(cut..101));
                for c in 0..3 {
                    assert_eq!(whole[c], [low[c].clone(), high[c].clone()].concat(), "{set} {cut}");
                }
            }
        }
    }
}
