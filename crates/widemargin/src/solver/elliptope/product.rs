//! Products of a large symmetric matrix with few vectors.

use crate::context::Context;
use crate::numeric::simd::{PlainLoop, run_plain};

/// Vectors are stored in groups of so many columns: one register of the widest instructions.
pub(crate) const WIDTH: usize = 8;

/// Rows of the matrix that share one reading of the vectors: as many sums as there are registers for.
const BAND: usize = 4;

/// Rows of one task.
const TASK_ROWS: usize = 64;

/// Fewest entries of a matrix for which another thread is worth waking.
const LEAST_PARALLEL_ENTRIES: usize = 1 << 16;

/// `out` ← A B for A of n × n and B of n × `width`, both row-major, the width a multiple of [`WIDTH`].
pub(crate) fn symmetric_product(
    a: &[f64],
    b: &[f64],
    width: usize,
    out: &mut [f64],
    context: &Context,
) {
    let n = b.len() / width;
    let set = context.instruction_set();
    let tasks = out.chunks_mut(TASK_ROWS * width).enumerate();
    context.for_each_if(n * n >= LEAST_PARALLEL_ENTRIES, tasks, |(task, out)| {
        let rows = &a[task * TASK_ROWS * n..][..out.len() / width * n];
        run_plain(set, Rows { rows, b, n, width, out });
    });
}

struct Rows<'a> {
    rows: &'a [f64],
    b: &'a [f64],
    n: usize,
    width: usize,
    out: &'a mut [f64],
}

impl PlainLoop for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { rows, b, n, width, out } = self;
        for (rows, out) in rows.chunks(BAND * n).zip(out.chunks_mut(BAND * width)) {
            for column in (0..width).step_by(WIDTH) {
                if rows.len() == BAND * n {
                    band::<BAND>(rows, b, n, width, column, out);
                } else {
                    let each = rows.chunks_exact(n).zip(out.chunks_exact_mut(width));
                    each.for_each(|(row, out)| band::<1>(row, b, n, width, column, out));
                }
            }
        }
    }
}

/// One group of columns of the product, for `R` rows.
#[inline(always)]
fn band<const R: usize>(
    rows: &[f64],
    b: &[f64],
    n: usize,
    width: usize,
    column: usize,
    out: &mut [f64],
) {
    let mut sums = [[0.0_f64; WIDTH]; R];
    let lines: [&[f64]; R] = std::array::from_fn(|r| &rows[r * n..][..n]);
    for (j, b) in b.chunks_exact(width).enumerate() {
        let Some(b) = b[column..].first_chunk::<WIDTH>() else { return };
        for (sums, line) in sums.iter_mut().zip(&lines) {
            let factor = line[j];
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum += factor * b;
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        out[r * width + column..][..WIDTH].copy_from_slice(sums);
    }
}

/// `out` ← G ∘ UUᵀ for G of n × n and U of n × `width`.
pub(super) fn hadamard_gram(
    gram: &[f64],
    u: &[f64],
    width: usize,
    out: &mut [f64],
    context: &Context,
) {
    let n = u.len() / width;
    let mut columns = vec![0.0; u.len()];
    for (i, row) in u.chunks_exact(width).enumerate() {
        row.iter().enumerate().for_each(|(k, value)| columns[k * n + i] = *value);
    }
    let set = context.instruction_set();
    let tasks = out.chunks_mut(TASK_ROWS * n).enumerate();
    context.for_each_if(n * n >= LEAST_PARALLEL_ENTRIES, tasks, |(task, out)| {
        let first = task * TASK_ROWS;
        run_plain(set, Gram { gram, u, columns: &columns, n, width, first, out });
    });
}

struct Gram<'a> {
    gram: &'a [f64],
    u: &'a [f64],
    columns: &'a [f64],
    n: usize,
    width: usize,
    first: usize,
    out: &'a mut [f64],
}

impl PlainLoop for Gram<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { gram, u, columns, n, width, first, out } = self;
        for (r, out) in out.chunks_exact_mut(n).enumerate() {
            let i = first + r;
            let factors = &u[i * width..][..width];
            out.fill(0.0);
            for (factors, columns) in factors.chunks(WIDTH).zip(columns.chunks(WIDTH * n)) {
                for (factor, column) in factors.iter().zip(columns.chunks_exact(n)) {
                    out.iter_mut().zip(column).for_each(|(out, value)| *out += factor * value);
                }
            }
            out.iter_mut().zip(&gram[i * n..][..n]).for_each(|(out, gram)| *out *= gram);
        }
    }
}

/// Qλ for a symmetric matrix Q.
pub(super) fn matrix_vector(q: &[f64], lambda: &[f64], out: &mut [f64], context: &Context) {
    run_plain(context.instruction_set(), MatrixVector { q, lambda, out });
}

struct MatrixVector<'a> {
    q: &'a [f64],
    lambda: &'a [f64],
    out: &'a mut [f64],
}

impl PlainLoop for MatrixVector<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (out, row) in self.out.iter_mut().zip(self.q.chunks_exact(self.lambda.len())) {
            *out = crate::numeric::algebra::dot(row, self.lambda);
        }
    }
}
