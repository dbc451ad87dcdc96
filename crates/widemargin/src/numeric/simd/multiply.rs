//! The product of prediction: a block of kernel values times the coefficients of every output.

use super::{InstructionSet, Lanes, Real, Task, Vector, VectorFamily, dispatch};

/// Products that are summed in the precision of the block before the sum goes to double.
const CHUNK: usize = 128;

/// Outputs from which every product serves several of them, one in each lane.
const SIDE_BY_SIDE: usize = 4;

/// Lanes are padded to this many outputs, the widest vector there is.
const PADDING: usize = 16;

/// Block rows that one pass multiplies.
const ROWS: usize = 8;

/// Coefficients of several outputs over the same columns.
#[derive(Clone, Debug)]
pub(crate) struct Weights<T> {
    outputs: usize,
    columns: usize,
    /// Outputs in a padded row when they are adjacent, else 0.
    lanes: usize,
    /// Column after column when outputs are adjacent, else output after output.
    values: Vec<T>,
}

impl<T: Real> Weights<T> {
    /// Coefficients given output by output, `columns` each.
    ///
    /// # Panics
    /// When there are not `columns` coefficients for every output.
    pub(crate) fn new(columns: usize, values: Vec<T>) -> Self {
        let outputs = values.len() / columns.max(1);
        assert_eq!(outputs * columns, values.len(), "as many coefficients for every output");
        if outputs < SIDE_BY_SIDE {
            return Self { outputs, columns, lanes: 0, values };
        }
        let lanes = outputs.next_multiple_of(PADDING);
        let mut turned = vec![T::ZERO; columns * lanes];
        for (output, values) in values.chunks_exact(columns).enumerate() {
            for (place, &value) in turned[output..].iter_mut().step_by(lanes).zip(values) {
                *place = value;
            }
        }
        Self { outputs, columns, lanes, values: turned }
    }

    /// Number of outputs.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }
}

/// Adds Σₖ `block[i][k]` · `weight(j, first + k)` to `out[i][j]`, a row-major table with one column
/// per output.
///
/// Row i of the block begins at `i · stride` and has `columns` values; at most 128 products per lane
/// are summed in `T` before their sum is added in double precision. The result of a row does not
/// depend on which other rows are in the block.
///
/// # Panics
/// When a slice is shorter than its shape asks for.
pub(crate) fn multiply<T: Real>(
    set: InstructionSet,
    block: &[T],
    stride: usize,
    weights: &Weights<T>,
    first: usize,
    columns: usize,
    out: &mut [f64],
) {
    if weights.outputs == 0 || out.is_empty() || columns == 0 {
        return;
    }
    assert_eq!(out.len() % weights.outputs, 0, "whole rows of outputs");
    let rows = out.len() / weights.outputs;
    let length = (rows - 1).checked_mul(stride).and_then(|start| start.checked_add(columns));
    assert!(length.is_some_and(|length| length <= block.len()), "a block of that shape");
    let end = first.checked_add(columns);
    assert!(end.is_some_and(|end| end <= weights.columns), "weights of that shape");
    let task = Multiply { block, stride, weights, first, columns, out, rows };
    dispatch(set, task);
}

struct Multiply<'a, T> {
    block: &'a [T],
    stride: usize,
    weights: &'a Weights<T>,
    first: usize,
    columns: usize,
    out: &'a mut [f64],
    rows: usize,
}

impl<T: Real> Task for Multiply<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<F: VectorFamily>(mut self) {
        let mut row = 0;
        while row < self.rows {
            let count = if self.rows - row >= ROWS { ROWS } else { 1 };
            // SAFETY: the rows lie within the shape that `multiply` checked, the outputs within
            // the weights.
            unsafe {
                if self.weights.lanes == 0 {
                    for output in 0..self.weights.outputs {
                        match count {
                            ROWS => self.dot::<F, ROWS>(row, output),
                            _ => self.dot::<F, 1>(row, output),
                        }
                    }
                } else {
                    for output in (0..self.weights.outputs).step_by(Vector::<T, F>::WIDTH) {
                        match count {
                            ROWS => self.side_by_side::<F, ROWS>(row, output),
                            _ => self.side_by_side::<F, 1>(row, output),
                        }
                    }
                }
            }
            row += count;
        }
    }
}

impl<T: Real> Multiply<'_, T> {
    /// One output, lanes along the columns.
    ///
    /// # Safety
    /// `row + R` ≤ rows, `output` < outputs, and the processor has the instructions of `F`.
    #[inline(always)]
    unsafe fn dot<F: VectorFamily, const R: usize>(&mut self, row: usize, output: usize) {
        let width = Vector::<T, F>::WIDTH;
        let mut start = 0;
        // SAFETY: columns `start..end` of the rows exist; the last vector is partial.
        unsafe {
            let block = self.block.as_ptr().add(row * self.stride);
            let weights = self.weights.values.as_ptr();
            let weights = weights.add(output * self.weights.columns + self.first);
            while start < self.columns {
                let end = (start + CHUNK * width).min(self.columns);
                let whole = start + (end - start) / width * width;
                let mut sums = [Vector::<T, F>::splat(T::ZERO); R];
                for k in (start..whole).step_by(width) {
                    let right = Vector::<T, F>::load(weights.add(k));
                    for r in 0..R {
                        let left = Vector::<T, F>::load(block.add(r * self.stride + k));
                        sums[r] = left.mul_add(right, sums[r]);
                    }
                }
                if whole < end {
                    let right = Vector::<T, F>::load_partial(weights.add(whole), end - whole);
                    for r in 0..R {
                        let from = block.add(r * self.stride + whole);
                        let left = Vector::<T, F>::load_partial(from, end - whole);
                        sums[r] = left.mul_add(right, sums[r]);
                    }
                }
                for r in 0..R {
                    self.out[(row + r) * self.weights.outputs + output] += sums[r].sum();
                }
                start = end;
            }
        }
    }

    /// A vector of outputs from `output` on, one in each lane.
    ///
    /// # Safety
    /// `row + R` ≤ rows, `output` < outputs, and the processor has the instructions of `F`.
    #[inline(always)]
    unsafe fn side_by_side<F: VectorFamily, const R: usize>(&mut self, row: usize, output: usize) {
        let width = Vector::<T, F>::WIDTH;
        let count = width.min(self.weights.outputs - output);
        let lanes = self.weights.lanes;
        let mut buffer = [T::ZERO; PADDING];
        // SAFETY: columns `start..end` of the rows exist, and rows of the weights are padded to
        // whole vectors of any width up to the buffer's.
        unsafe {
            let block = self.block.as_ptr().add(row * self.stride);
            let weights = self.weights.values.as_ptr().add(self.first * lanes + output);
            for start in (0..self.columns).step_by(CHUNK) {
                let end = (start + CHUNK).min(self.columns);
                let mut sums = [Vector::<T, F>::splat(T::ZERO); R];
                for k in start..end {
                    let right = Vector::<T, F>::load(weights.add(k * lanes));
                    for r in 0..R {
                        let left = Vector::<T, F>::splat(*block.add(r * self.stride + k));
                        sums[r] = left.mul_add(right, sums[r]);
                    }
                }
                for r in 0..R {
                    sums[r].store(buffer.as_mut_ptr());
                    let out = (row + r) * self.weights.outputs + output;
                    for (out, &sum) in self.out[out..out + count].iter_mut().zip(&buffer) {
                        *out += sum.to_f64();
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::available;
    use super::*;

    #[test]
    fn shapes_whose_sizes_overflow_are_refused() {
        let weights = Weights::new(4, vec![1.0_f64; 8]);
        let block = [0.5; 8];
        for (stride, first, columns) in [
            (usize::MAX, 0, 4),
            (usize::MAX / 2 + 1, 0, 4),
            (usize::MAX - 3, 0, 4),
            (4, usize::MAX, 1),
            (4, usize::MAX - 1, 3),
            (4, 0, usize::MAX),
            (5, 0, 4),
        ] {
            let product = || {
                let mut out = [0.0; 4];
                multiply(
                    InstructionSet::detect(),
                    &block,
                    stride,
                    &weights,
                    first,
                    columns,
                    &mut out,
                );
            };
            assert!(std::panic::catch_unwind(product).is_err(), "{stride} {first} {columns}");
        }
    }

    fn matches_a_triple_loop<T: Real>(tolerance: f64) {
        let value = |i: usize| T::from_f64((i * 7919 % 1013) as f64 / 1013.0 - 0.5);
        for set in available() {
            for (rows, outputs, columns) in [
                (1, 1, 1),
                (3, 2, 17),
                (4, 4, 64),
                (9, 7, 131),
                (5, 10, 5003),
                (8, 3, 16),
                (6, 33, 300),
            ] {
                let (stride, first, length) = (columns + 3, 2, columns + 5);
                let block: Vec<T> = (0..rows * stride).map(value).collect();
                let values: Vec<T> = (0..outputs * length).map(|i| value(i + 99)).collect();
                let weights = Weights::new(length, values.clone());
                let mut out = vec![1.5; rows * outputs];
                multiply(set, &block, stride, &weights, first, columns, &mut out);
                for i in 0..rows {
                    for j in 0..outputs {
                        let exact = (0..columns).fold(1.5, |sum, k| {
                            let left = block[i * stride + k].to_f64();
                            sum + left * values[j * length + first + k].to_f64()
                        });
                        let error = (out[i * outputs + j] - exact).abs();
                        assert!(error < tolerance, "{set} {rows} {outputs} {columns}: {error}");
                    }
                }
            }
        }
    }

    #[test]
    fn single_blocks_match_a_triple_loop() {
        matches_a_triple_loop::<f32>(1e-4);
    }

    #[test]
    fn double_blocks_match_a_triple_loop() {
        matches_a_triple_loop::<f64>(1e-11);
    }

    #[test]
    fn a_row_does_not_feel_its_neighbours() {
        let value = |i: usize| ((i * 7919 % 1013) as f32 / 1013.0 - 0.5) * 2.0;
        let columns = 259;
        let block: Vec<f32> = (0..11 * columns).map(value).collect();
        for (set, outputs) in available().flat_map(|set| [(set, 2), (set, 6)]) {
            let weights = (0..outputs * columns).map(|i| value(i + 31)).collect();
            let weights = Weights::new(columns, weights);
            let mut together = vec![0.0; 11 * outputs];
            multiply(set, &block, columns, &weights, 0, columns, &mut together);
            for row in 0..11 {
                let mut alone = vec![0.0; outputs];
                let values = &block[row * columns..(row + 1) * columns];
                multiply(set, values, columns, &weights, 0, columns, &mut alone);
                assert_eq!(alone, together[row * outputs..(row + 1) * outputs], "{set} {row}");
            }
        }
    }
}
