//! All eigenvalues and eigenvectors of a dense symmetric matrix.
//!
//! A = Q T Qᵀ by Householder's reflections, the update of the matrix and its product with the next vector in
//! one pass over its lower triangle; T = S Λ Sᵀ by implicit QL steps with Wilkinson's shift, whose rotations
//! are collected and applied to strips of Sᵀ that stay in the cache; eigenvectors are the columns of Q S
//! (Golub and Van Loan, *Matrix Computations*, 8.3; LAPACK's `dsteqr`). Work is divided in the same way for
//! any number of threads, so that the result has the same bits.

use super::dot;
use crate::context::Context;
use crate::error::Result;
use crate::numeric::simd::{PlainLoop, run_plain};

/// QL steps per eigenvalue before the rest is left as it is; two are usual.
const MAX_STEPS: usize = 60;

/// Columns of a strip of Sᵀ: 2000 rows of it are half a megabyte.
const STRIP: usize = 32;

/// Rotations collected before they are applied, in multiples of the order.
const COLLECTED: usize = 16;

/// Eigenvectors that the reflections are applied to together.
const REFLECTED_AT_ONCE: usize = 16;

/// Parts of the lower triangle, of about the same size each.
const PARTS: usize = 8;

/// The order from which parts are worth a thread.
const PARALLEL_FROM: usize = 256;

/// Whether to go on.
type Check<'a> = &'a (dyn Fn() -> Result<()> + Sync);

/// Eigenvalues, the largest first, and their eigenvectors.
pub(crate) struct Eigen {
    /// The eigenvalues, descending.
    pub(crate) values: Vec<f64>,
    /// Row i is the unit eigenvector of value i, its largest entry positive.
    pub(crate) vectors: Vec<f64>,
}

impl Eigen {
    /// Eigenvector of value i.
    pub(crate) fn vector(&self, i: usize) -> &[f64] {
        let order = self.values.len();
        &self.vectors[i * order..(i + 1) * order]
    }
}

/// The eigenvalues of a symmetric row-major matrix, of which only the lower triangle is read.
pub(crate) fn eigen_symmetric(a: Vec<f64>, order: usize, context: &Context) -> Eigen {
    decompose(a, order, context, &|| Ok(())).unwrap_or_else(|_| unreachable!("nothing stops it"))
}

/// As [`eigen_symmetric`], for large matrices.
///
/// # Errors
/// `Error::Interrupted` when the context asks to stop.
pub(crate) fn eigen_interruptible(a: Vec<f64>, order: usize, context: &Context) -> Result<Eigen> {
    decompose(a, order, context, &|| context.checkpoint())
}

fn decompose(mut a: Vec<f64>, order: usize, context: &Context, check: Check<'_>) -> Result<Eigen> {
    assert_eq!(a.len(), order * order, "a square matrix");
    let largest = a.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    let scale = if largest > 0.0 && largest.is_finite() { largest } else { 1.0 };
    a.iter_mut().for_each(|value| *value /= scale);
    let (mut diagonal, mut off, factors) = tridiagonalise(&mut a, order, context, check)?;
    let strips = diagonalise(&mut diagonal, &mut off, context, check)?;
    let mut places: Vec<usize> = (0..order).collect();
    places.sort_by(|&i, &j| diagonal[j].total_cmp(&diagonal[i]));
    let mut vectors = Vec::with_capacity(order * order);
    for &i in &places {
        let strips = strips.iter().flat_map(|strip| &strip[i * STRIP..(i + 1) * STRIP]);
        vectors.extend(strips.take(order));
    }
    let reflect = |vectors: &mut [f64]| {
        if check().is_ok() {
            let work = Reflections { vectors, reflectors: &a, factors: &factors, order };
            run_plain(context.instruction_set(), work);
        }
    };
    let size = (REFLECTED_AT_ONCE * order).max(1);
    context.for_each_if(order >= PARALLEL_FROM, vectors.chunks_mut(size), reflect);
    vectors.chunks_exact_mut(order.max(1)).for_each(normalise);
    check()?;
    Ok(Eigen { values: places.iter().map(|&i| diagonal[i] * scale).collect(), vectors })
}

/// Divides a vector by its length, with the sign that makes its largest entry positive.
fn normalise(vector: &mut [f64]) {
    let largest =
        vector.iter().fold(0.0_f64, |best, v| if v.abs() > best.abs() { *v } else { best });
    let scale = if largest < 0.0 { -1.0 } else { 1.0 } / dot(vector, vector).sqrt();
    vector.iter_mut().for_each(|v| *v *= scale);
}

/// The diagonal, the entries beside it (`off[i]` is that of i and i − 1) and the factors 2/‖v‖² of the
/// reflections, whose vectors v replace the rows of the matrix: row i holds that of order i.
fn tridiagonalise(
    a: &mut [f64],
    order: usize,
    context: &Context,
    check: Check<'_>,
) -> Result<(Vec<f64>, Vec<f64>, Vec<f64>)> {
    let (mut diagonal, mut off, mut factors) =
        (vec![0.0; order], vec![0.0; order], vec![0.0; order]);
    // The update of the rows above that is still to be made: − v wᵀ − w vᵀ.
    let (mut v, mut w) = (vec![0.0; order], vec![0.0; order]);
    for i in (0..order).rev() {
        check()?;
        let (above, row) = a.split_at_mut(i * order);
        for (j, entry) in row[..=i].iter_mut().enumerate() {
            *entry -= v[i] * w[j] + w[i] * v[j];
        }
        diagonal[i] = row[i];
        let next = &mut row[..i];
        (off[i], factors[i]) = reflector(next);
        let mut product = products(above, order, [&v[..i], &w[..i], next], context);
        product.iter_mut().for_each(|value| *value *= factors[i]);
        let half = 0.5 * factors[i] * dot(&product, next);
        v.truncate(i);
        v.copy_from_slice(next);
        w = product.iter().zip(&v).map(|(p, v)| p - half * v).collect();
    }
    Ok((diagonal, off, factors))
}

/// Replaces x by v of the reflection I − f v vᵀ that maps it to a multiple of the last unit vector; returns
/// the multiple and f.
fn reflector(x: &mut [f64]) -> (f64, f64) {
    let Some((last, rest)) = x.split_last_mut() else { return (0.0, 0.0) };
    if rest.iter().all(|value| *value == 0.0) {
        return (*last, 0.0);
    }
    let norm = (dot(rest, rest) + *last * *last).sqrt();
    let image = if *last > 0.0 { -norm } else { norm };
    let factor = 1.0 / (norm * (norm + last.abs()));
    *last -= image;
    if factor.is_finite() { (image, factor) } else { (*last + image, 0.0) }
}

/// Subtracts v wᵀ + w vᵀ from the lower triangle of the leading rows and returns their product with the next
/// vector.
fn products(
    a: &mut [f64],
    stride: usize,
    [v, w, next]: [&[f64]; 3],
    context: &Context,
) -> Vec<f64> {
    let order = next.len();
    // The triangle up to row r has r²/2 entries.
    let mut rest = a;
    let mut tasks = Vec::with_capacity(PARTS);
    let parts = if order < PARALLEL_FROM { 1 } else { PARTS };
    let mut first = 0;
    for part in 1..=parts {
        let end = ((part as f64 / parts as f64).sqrt() * order as f64).round() as usize;
        let (rows, others) = rest.split_at_mut((end - first) * stride);
        tasks.push(Update { rows, stride, first, v, w, next });
        (rest, first) = (others, end);
    }
    let set = context.instruction_set();
    let sums = context.map(tasks, |task| run_plain(set, task));
    let mut total = vec![0.0; order];
    for part in &sums {
        total.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
    }
    total
}

/// One part of [`products`]: rows from `first` on.
struct Update<'a> {
    rows: &'a mut [f64],
    stride: usize,
    first: usize,
    v: &'a [f64],
    w: &'a [f64],
    next: &'a [f64],
}

impl PlainLoop for Update<'_> {
    type Output = Vec<f64>;

    #[inline(always)]
    fn run(self) -> Vec<f64> {
        let count = self.rows.len() / self.stride;
        let mut out = vec![0.0; self.first + count];
        for (r, row) in (self.first..).zip(self.rows.chunks_exact_mut(self.stride)) {
            let own = [self.v[r], self.w[r], self.next[r]];
            row[r] -= 2.0 * own[0] * own[1];
            let diagonal = row[r] * own[2];
            let sum = update_row(
                &mut row[..r],
                [&self.v[..r], &self.w[..r], &self.next[..r]],
                own,
                &mut out[..r],
            );
            out[r] += sum + diagonal;
        }
        out
    }
}

/// row ← row − v_r w − w_r v, out ← out + next_r row; returns row · next.
#[inline(always)]
fn update_row(row: &mut [f64], others: [&[f64]; 3], own: [f64; 3], out: &mut [f64]) -> f64 {
    const LANES: usize = 16;
    let (row, row_rest) = row.as_chunks_mut::<LANES>();
    let (out, out_rest) = out.as_chunks_mut::<LANES>();
    let [(v, v_rest), (w, w_rest), (next, next_rest)] = others.map(|o| o.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for c in 0..row.len() {
        for lane in 0..LANES {
            let entry = row[c][lane] - (own[0] * w[c][lane] + own[1] * v[c][lane]);
            row[c][lane] = entry;
            sums[lane] += entry * next[c][lane];
            out[c][lane] += own[2] * entry;
        }
    }
    let mut sum = sums.iter().sum::<f64>();
    for k in 0..row_rest.len() {
        let entry = row_rest[k] - (own[0] * w_rest[k] + own[1] * v_rest[k]);
        row_rest[k] = entry;
        sum += entry * next_rest[k];
        out_rest[k] += own[2] * entry;
    }
    sum
}

/// Applies all reflections to some vectors, those of low order first: x ← x − f (v · x) v.
struct Reflections<'a> {
    vectors: &'a mut [f64],
    /// Row i holds the reflector of order i.
    reflectors: &'a [f64],
    factors: &'a [f64],
    order: usize,
}

impl PlainLoop for Reflections<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (i, factor) in self.factors.iter().enumerate().filter(|(_, factor)| **factor != 0.0) {
            let v = &self.reflectors[i * self.order..][..i];
            for x in self.vectors.chunks_exact_mut(self.order) {
                let x = &mut x[..i];
                let product = factor * dot(v, x);
                x.iter_mut().zip(v).for_each(|(x, v)| *x -= product * v);
            }
        }
    }
}

/// A rotation of rows i and i + 1.
struct Rotation {
    row: usize,
    cosine: f64,
    sine: f64,
}

/// Replaces the diagonal of a tridiagonal matrix by its eigenvalues; returns Sᵀ, whose row i is the
/// eigenvector of value i, in strips of [`STRIP`] columns.
fn diagonalise(
    diagonal: &mut [f64],
    off: &mut [f64],
    context: &Context,
    check: Check<'_>,
) -> Result<Vec<Vec<f64>>> {
    let order = diagonal.len();
    let mut strips: Vec<Vec<f64>> = (0..order.div_ceil(STRIP))
        .map(|strip| {
            let mut rows = vec![0.0; order * STRIP];
            let columns = (strip * STRIP..order).take(STRIP);
            columns.enumerate().for_each(|(at, column)| rows[column * STRIP + at] = 1.0);
            rows
        })
        .collect();
    // Entry i is that of i and i + 1 from here on.
    off.rotate_left(1.min(order));
    let mut rotations = Vec::new();
    for low in 0..order {
        for _ in 0..MAX_STEPS {
            let small = |m: &usize| {
                let size = diagonal[*m].abs() + diagonal[*m + 1].abs();
                off[*m].abs() <= f64::EPSILON * size
            };
            let high = (low..order - 1).find(small).unwrap_or(order - 1);
            if high == low {
                break;
            }
            ql_step(diagonal, off, low..high, &mut rotations);
            if rotations.len() >= COLLECTED * order {
                check()?;
                rotate(&mut strips, &rotations, context);
                rotations.clear();
            }
        }
    }
    rotate(&mut strips, &rotations, context);
    Ok(strips)
}

/// An implicit QL step for the unreduced rows of a range and the one after it.
fn ql_step(
    diagonal: &mut [f64],
    off: &mut [f64],
    range: std::ops::Range<usize>,
    rotations: &mut Vec<Rotation>,
) {
    let (low, high) = (range.start, range.end);
    let half = (diagonal[low + 1] - diagonal[low]) / (2.0 * off[low]);
    let root = half.hypot(1.0).copysign(half);
    let mut g = diagonal[high] - diagonal[low] + off[low] / (half + root);
    let (mut sine, mut cosine, mut shift) = (1.0, 1.0, 0.0);
    for i in range.rev() {
        let f = sine * off[i];
        let b = cosine * off[i];
        let r = f.hypot(g);
        off[i + 1] = r;
        if r == 0.0 {
            // The matrix falls apart here.
            diagonal[i + 1] -= shift;
            off[high] = 0.0;
            return;
        }
        (sine, cosine) = (f / r, g / r);
        let rest = diagonal[i + 1] - shift;
        let step = (diagonal[i] - rest) * sine + 2.0 * cosine * b;
        shift = sine * step;
        diagonal[i + 1] = rest + shift;
        g = cosine * step - b;
        rotations.push(Rotation { row: i, cosine, sine });
    }
    diagonal[low] -= shift;
    off[low] = g;
    off[high] = 0.0;
}

/// Applies rotations to every strip.
fn rotate(strips: &mut [Vec<f64>], rotations: &[Rotation], context: &Context) {
    struct Strip<'a>(&'a mut [f64], &'a [Rotation]);
    impl PlainLoop for Strip<'_> {
        type Output = ();

        #[inline(always)]
        fn run(self) {
            let (rows, _) = self.0.as_chunks_mut::<STRIP>();
            for &Rotation { row, cosine, sine } in self.1 {
                if let [first, second] = &mut rows[row..row + 2] {
                    for lane in 0..STRIP {
                        let (x, y) = (first[lane], second[lane]);
                        second[lane] = sine * x + cosine * y;
                        first[lane] = cosine * x - sine * y;
                    }
                }
            }
        }
    }
    let set = context.instruction_set();
    let task = |strip: &mut Vec<f64>| run_plain(set, Strip(strip, rotations));
    context.for_each_if(strips.len() * STRIP >= PARALLEL_FROM, strips, task);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::random::Generator;

    #[test]
    fn vectors_are_orthonormal_and_reproduce_the_matrix() {
        for (order, threads) in [(1, 1), (2, 1), (5, 1), (40, 1), (300, 1), (300, 2)] {
            let context = Context::new().with_threads(threads).unwrap();
            let mut generator = Generator::new(order as u64);
            let mut a = vec![0.0; order * order];
            for i in 0..order {
                for j in 0..=i {
                    let value = generator.normal();
                    a[i * order + j] = value;
                    a[j * order + i] = value;
                }
            }
            let eigen = eigen_symmetric(a.clone(), order, &context);
            assert!(eigen.values.windows(2).all(|pair| pair[0] >= pair[1]));
            for i in 0..order {
                for j in 0..order {
                    let expected = if i == j { 1.0 } else { 0.0 };
                    assert!((dot(eigen.vector(i), eigen.vector(j)) - expected).abs() < 1e-12);
                    let product: f64 = (0..order)
                        .map(|k| eigen.values[k] * eigen.vector(k)[i] * eigen.vector(k)[j])
                        .sum();
                    assert!((product - a[i * order + j]).abs() < 1e-12 * (10 + order) as f64);
                }
            }
        }
    }

    #[test]
    fn repeated_and_zero_eigenvalues_are_found() {
        let context = Context::new();
        let eigen = eigen_symmetric(vec![1.0; 9], 3, &context);
        assert!((eigen.values[0] - 3.0).abs() < 1e-14);
        assert!(eigen.values[1].abs() < 1e-14 && eigen.values[2].abs() < 1e-14);
        let eigen = eigen_symmetric(vec![0.0; 16], 4, &context);
        assert_eq!(eigen.values, [0.0; 4]);
        assert!(eigen_symmetric(Vec::new(), 0, &context).values.is_empty());
    }

    #[test]
    fn huge_and_tiny_entries_neither_overflow_nor_vanish() {
        for scale in [1e300, 1e-300] {
            let eigen = eigen_symmetric(
                [2.0, 1.0, 0.0, 1.0, 2.0, 1.0, 0.0, 1.0, 2.0].map(|v| v * scale).to_vec(),
                3,
                &Context::new(),
            );
            let root = 2.0_f64.sqrt();
            for (found, expected) in eigen.values.iter().zip([2.0 + root, 2.0, 2.0 - root]) {
                assert!((found / scale - expected).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn a_path_has_its_known_eigenvalues_and_threads_do_not_change_a_bit() {
        // Adjacency of a path: 2 cos(π i / (n + 1)); a dense matrix with the same ones by two reflections.
        let n = 280;
        let mut a = vec![0.0; n * n];
        (1..n).for_each(|i| (a[i * n + i - 1], a[(i - 1) * n + i]) = (1.0, 1.0));
        for seed in [1, 2] {
            let mut generator = Generator::new(seed);
            let v: Vec<f64> = (0..n).map(|_| generator.normal()).collect();
            let factor = 2.0 / dot(&v, &v);
            let p: Vec<f64> = a.chunks_exact(n).map(|row| factor * dot(row, &v)).collect();
            let half = 0.5 * factor * dot(&p, &v);
            let w: Vec<f64> = p.iter().zip(&v).map(|(p, v)| p - half * v).collect();
            (0..n * n).for_each(|k| a[k] -= v[k / n] * w[k % n] + w[k / n] * v[k % n]);
        }
        let one = eigen_symmetric(a.clone(), n, &Context::new());
        let two = eigen_symmetric(a, n, &Context::new().with_threads(2).unwrap());
        for (i, value) in one.values.iter().enumerate() {
            let angle = std::f64::consts::PI * (i + 1) as f64 / (n + 1) as f64;
            assert!((value - 2.0 * angle.cos()).abs() < 1e-12, "{value}");
        }
        assert!(one.values == two.values && one.vectors == two.vectors);
    }
}
