//! The product of prediction: a block of kernel values times the coefficients of every output.

use super::{Family, InstructionSet, Lanes, Real, Task, Vector, dispatch};

/// Vectors that are summed in the precision of the block before the sum goes to double.
const CHUNK: usize = 128;

/// Adds Σₖ `block[i][k]` · `weights[j][k]` to `out[i][j]`, a row-major table of `rows` × `outputs`.
///
/// Row i of the block begins at `i · block_stride` and has `columns` values, weights likewise;
/// at most 128 products are summed in `T` before their sum is added in double precision. The result
/// of a row does not depend on which other rows are in the block.
///
/// # Panics
/// When a slice is shorter than its shape asks for.
pub fn multiply<T: Real>(
    set: InstructionSet,
    block: &[T],
    block_stride: usize,
    weights: &[T],
    weight_stride: usize,
    columns: usize,
    out: &mut [f64],
    outputs: usize,
) {
    if outputs == 0 || out.is_empty() || columns == 0 {
        return;
    }
    assert_eq!(out.len() % outputs, 0, "whole rows of outputs");
    let rows = out.len() / outputs;
    assert!(block.len() >= (rows - 1) * block_stride + columns, "a block of that shape");
    assert!(weights.len() >= (outputs - 1) * weight_stride + columns, "weights of that shape");
    dispatch(
        set,
        Multiply { block, block_stride, weights, weight_stride, columns, out, rows, outputs },
    );
}

struct Multiply<'a, T> {
    block: &'a [T],
    block_stride: usize,
    weights: &'a [T],
    weight_stride: usize,
    columns: usize,
    out: &'a mut [f64],
    rows: usize,
    outputs: usize,
}

impl<T: Real> Task for Multiply<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<F: Family>(mut self) {
        for row in (0..self.rows).step_by(4) {
            for output in (0..self.outputs).step_by(4) {
                let (rows, outputs) = ((self.rows - row).min(4), (self.outputs - output).min(4));
                // SAFETY: the tile lies within the shape that `multiply` checked.
                unsafe {
                    match (rows, outputs) {
                        (4, 4) => self.tile::<F, 4, 4>(row, output),
                        (4, 3) => self.tile::<F, 4, 3>(row, output),
                        (4, 2) => self.tile::<F, 4, 2>(row, output),
                        (4, 1) => self.tile::<F, 4, 1>(row, output),
                        _ => {
                            for r in row..row + rows {
                                for o in output..output + outputs {
                                    self.tile::<F, 1, 1>(r, o);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

impl<T: Real> Multiply<'_, T> {
    /// # Safety
    /// `row + R` ≤ rows, `output + M` ≤ outputs, and the processor has the instructions of `F`.
    #[inline(always)]
    unsafe fn tile<F: Family, const R: usize, const M: usize>(
        &mut self,
        row: usize,
        output: usize,
    ) {
        let width = Vector::<T, F>::WIDTH;
        let mut start = 0;
        // SAFETY: columns `start..end` of the rows exist; the last vector is partial.
        unsafe {
            let block = self.block.as_ptr().add(row * self.block_stride);
            let weights = self.weights.as_ptr().add(output * self.weight_stride);
            while start < self.columns {
                let end = (start + CHUNK * width).min(self.columns);
                let whole = start + (end - start) / width * width;
                let mut sums = [[Vector::<T, F>::splat(T::ZERO); M]; R];
                for k in (start..whole).step_by(width) {
                    let right: [_; M] = std::array::from_fn(|m| {
                        Vector::<T, F>::load(weights.add(m * self.weight_stride + k))
                    });
                    for r in 0..R {
                        let left = Vector::<T, F>::load(block.add(r * self.block_stride + k));
                        for m in 0..M {
                            sums[r][m] = left.mul_add(right[m], sums[r][m]);
                        }
                    }
                }
                if whole < end {
                    for r in 0..R {
                        let from = block.add(r * self.block_stride + whole);
                        let left = Vector::<T, F>::load_partial(from, end - whole);
                        for m in 0..M {
                            let from = weights.add(m * self.weight_stride + whole);
                            let right = Vector::<T, F>::load_partial(from, end - whole);
                            sums[r][m] = left.mul_add(right, sums[r][m]);
                        }
                    }
                }
                for r in 0..R {
                    for m in 0..M {
                        self.out[(row + r) * self.outputs + output + m] += sums[r][m].sum();
                    }
                }
                start = end;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::available;
    use super::*;

    fn matches_a_triple_loop<T: Real>(tolerance: f64) {
        let value = |i: usize| T::from_f64((i * 7919 % 1013) as f64 / 1013.0 - 0.5);
        for set in available() {
            for (rows, outputs, columns) in
                [(1, 1, 1), (3, 2, 17), (4, 4, 64), (9, 7, 131), (5, 10, 5003), (8, 3, 16)]
            {
                let (block_stride, weight_stride) = (columns + 3, columns + 1);
                let block: Vec<T> = (0..rows * block_stride).map(value).collect();
                let weights: Vec<T> = (0..outputs * weight_stride).map(|i| value(i + 99)).collect();
                let mut out = vec![1.5; rows * outputs];
                multiply(
                    set,
                    &block,
                    block_stride,
                    &weights,
                    weight_stride,
                    columns,
                    &mut out,
                    outputs,
                );
                for i in 0..rows {
                    for j in 0..outputs {
                        let exact = (0..columns).fold(1.5, |sum, k| {
                            let left = block[i * block_stride + k].to_f64();
                            sum + left * weights[j * weight_stride + k].to_f64()
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
        let (columns, outputs) = (259, 6);
        let block: Vec<f32> = (0..11 * columns).map(value).collect();
        let weights: Vec<f32> = (0..outputs * columns).map(|i| value(i + 31)).collect();
        for set in available() {
            let mut together = vec![0.0; 11 * outputs];
            multiply(set, &block, columns, &weights, columns, columns, &mut together, outputs);
            for row in 0..11 {
                let mut alone = vec![0.0; outputs];
                let values = &block[row * columns..(row + 1) * columns];
                multiply(set, values, columns, &weights, columns, columns, &mut alone, outputs);
                assert_eq!(alone, together[row * outputs..(row + 1) * outputs], "{set} {row}");
            }
        }
    }
}
