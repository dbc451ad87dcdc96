//! Values of pooled functions anywhere, the weights of least residual, and what a reduction lost.

use super::Reduction;
use super::element::{Element, in_chunks, table_of};
use super::pool::VectorPool;
use crate::context::Context;
use crate::data::memory;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, KernelBlocks};
use crate::numeric::algebra::Cholesky;
use crate::numeric::simd::{PlainLoop, Real, Weights, multiply, run_plain};

/// Rows of one task.
const ROWS: usize = 64;

/// Vectors whose kernel values are held at a time.
const COLUMNS: usize = 512;

/// Functions that are few.
const FEW_FUNCTIONS: usize = 4;

/// Tables that sums are collected in.
const STRIPES: usize = 16;

/// Added to the diagonal before factorising, relative to its mean; more if that is not enough.
const JITTER: f64 = 1e-12;

/// Σᵢ A_{fi}K(v, xᵢ) of every vector v of `at` and every function f, vector after vector.
pub(super) fn sums<T: Element>(
    kernel: &Kernel,
    at: &[Vec<f64>],
    pool: &VectorPool,
    context: &Context,
) -> Result<Vec<f64>> {
    let (functions, set) = (pool.functions(), context.instruction_set());
    let mut values = vec![0.0; at.len() * functions];
    if pool.len() == 0 || at.is_empty() {
        return Ok(values);
    }
    let blocks = KernelBlocks::<T>::new(kernel, &table_of::<T>(&pool.vectors)?, None, context)?;
    let all = pool.weights.iter().flatten().map(|&w| T::from_f64(w)).collect();
    let weights = Weights::new(pool.len(), all);
    let queries = table_of::<T>(at)?;
    in_chunks(context, &mut values, ROWS * functions, |t, out| {
        let rows = out.len() / functions;
        let ready = blocks.prepare(&queries, t * ROWS..t * ROWS + rows)?;
        let mut block = vec![T::ZERO; rows * COLUMNS];
        for start in (0..pool.len()).step_by(COLUMNS) {
            let end = (start + COLUMNS).min(pool.len());
            blocks.query_block(&ready, 0..rows, start..end, &mut block, COLUMNS);
            multiply(set, &block, COLUMNS, &weights, start, end - start, out);
        }
        Ok(())
    })?;
    Ok(values)
}

/// The sums at the pool's own vectors, each kernel value computed once for both of its vectors where
/// functions are few.
fn own_sums<T: Element>(kernel: &Kernel, pool: &VectorPool, context: &Context) -> Result<Vec<f64>> {
    let (n, functions, set) = (pool.len(), pool.functions(), context.instruction_set());
    if functions > FEW_FUNCTIONS || n < STRIPES * ROWS {
        return sums::<T>(kernel, &pool.vectors, pool, context);
    }
    let blocks = KernelBlocks::<T>::new(kernel, &table_of::<T>(&pool.vectors)?, None, context)?;
    let of = |w: &Vec<f64>| w.iter().map(|&w| T::from_f64(w)).collect();
    let coefficients: Vec<Vec<T>> = pool.weights.iter().map(of).collect();
    let weights = Weights::new(n, coefficients.concat());
    // A table of all sums for each stripe, which has every so manieth block of rows.
    let mut tables = vec![0.0; STRIPES * n * functions];
    in_chunks(context, &mut tables, n * functions, |stripe, out| {
        let mut block = vec![T::ZERO; ROWS * COLUMNS];
        for first in (stripe * ROWS..n).step_by(STRIPES * ROWS) {
            context.checkpoint()?;
            let rows: Vec<usize> = (first..(first + ROWS).min(n)).collect();
            let (last, ready) = (first + rows.len(), blocks.gather(&rows));
            for start in (first..n).step_by(COLUMNS) {
                let end = (start + COLUMNS).min(n);
                blocks.query_block(&ready, 0..rows.len(), start..end, &mut block, COLUMNS);
                let direct = &mut out[first * functions..last * functions];
                multiply(set, &block, COLUMNS, &weights, start, end - start, direct);
                let skipped = last.clamp(start, end) - start;
                if start + skipped == n {
                    continue;
                }
                for (f, coefficients) in coefficients.iter().enumerate() {
                    let weighted = WeightedColumns {
                        block: &block,
                        weights: &coefficients[first..last],
                        columns: skipped..end - start,
                    };
                    let weighted = run_plain(set, weighted);
                    let places = out[(start + skipped) * functions + f..].iter_mut();
                    for (place, sum) in places.step_by(functions).zip(weighted) {
                        *place += sum.to_f64();
                    }
                }
            }
        }
        Ok(())
    })?;
    let mut sums = vec![0.0; n * functions];
    for table in tables.chunks_exact(n * functions) {
        sums.iter_mut().zip(table).for_each(|(sum, part)| *sum += part);
    }
    Ok(sums)
}

/// Σᵢ wᵢ K(i, j) of the columns j of a block.
struct WeightedColumns<'a, T> {
    block: &'a [T],
    weights: &'a [T],
    columns: std::ops::Range<usize>,
}

impl<T: Real> PlainLoop for WeightedColumns<'_, T> {
    type Output = Vec<T>;

    #[inline(always)]
    fn run(self) -> Vec<T> {
        let mut sums = vec![T::ZERO; self.columns.len()];
        for (row, &weight) in self.block.chunks_exact(COLUMNS).zip(self.weights) {
            for (sum, &value) in sums.iter_mut().zip(&row[self.columns.clone()]) {
                *sum += weight * value;
            }
        }
        sums
    }
}

/// K(zⱼ, zₗ), row by row.
///
/// # Errors
/// [`Error::TooLarge`] when there is no memory for them and a factor.
pub(super) fn gram(kernel: &Kernel, vectors: &[Vec<f64>], context: &Context) -> Result<Vec<f64>> {
    let n = vectors.len();
    memory::check(|| format!("the kernel values of {n} vectors"), 2 * 8 * n as u128 * n as u128)?;
    let blocks = KernelBlocks::<f64>::new(kernel, &table_of::<f64>(vectors)?, None, context)?;
    let mut values = vec![0.0; n * n];
    in_chunks(context, &mut values, ROWS * n, |t, out| {
        let rows: Vec<usize> = (t * ROWS..t * ROWS + out.len() / n).collect();
        blocks.query_block(&blocks.gather(&rows), 0..rows.len(), 0..n, out, n);
        Ok(())
    })?;
    Ok(values)
}

/// Gives every function of `reduced` the weights of least residual, (K^{zz})⁻¹K^{zx}α (Nguyen 2006,
/// Proposition 5), over the vectors that it may use; returns half of all squared residuals without
/// their constant parts, −½Σ β·K^{zx}α.
///
/// K^{zx} is computed in precision `T`.
pub(super) fn reweigh<T: Element>(
    kernel: &Kernel,
    reduced: &mut VectorPool,
    original: &VectorPool,
    context: &Context,
) -> Result<f64> {
    let (n, functions) = (reduced.len(), reduced.functions());
    let among = gram(kernel, &reduced.vectors, context)?;
    let towards = sums::<T>(kernel, &reduced.vectors, original, context)?;
    let (mut value, mut done) = (0.0, vec![false; functions]);
    for f in 0..functions {
        if done[f] {
            continue;
        }
        let used = reduced.used_by(f);
        if used.is_empty() {
            continue;
        }
        let factor = match used.len() == n {
            true => factorise(&among, n, context)?,
            false => factorise(&part_of(&among, n, &used), used.len(), context)?,
        };
        for g in (f..functions).filter(|&g| reduced.uses[g] == reduced.uses[f]) {
            let mut weights: Vec<f64> = used.iter().map(|&v| towards[v * functions + g]).collect();
            factor.solve(&mut weights);
            for (&v, weight) in used.iter().zip(weights) {
                reduced.weights[g][v] = weight;
                value -= 0.5 * weight * towards[v * functions + g];
            }
            done[g] = true;
        }
    }
    Ok(value)
}

/// The rows and columns of a matrix of n × n that `used` names.
fn part_of(matrix: &[f64], n: usize, used: &[usize]) -> Vec<f64> {
    used.iter().flat_map(|&i| used.iter().map(move |&j| matrix[i * n + j])).collect()
}

/// The factor of a Gram matrix with as little added to its diagonal as it takes.
///
/// # Errors
/// [`Error::Interrupted`] when the context asks to stop.
pub(super) fn factorise(gram: &[f64], n: usize, context: &Context) -> Result<Cholesky> {
    let trace: f64 = (0..n).map(|j| gram[j * n + j]).sum();
    let mean = if trace > 0.0 { trace / n as f64 } else { 1.0 };
    let mut jitter = JITTER;
    while jitter.is_finite() {
        let mut matrix = gram.to_vec();
        for j in 0..n {
            matrix[j * n + j] += jitter * mean;
        }
        if let Some(factor) = Cholesky::interruptible(matrix, n, context)? {
            return Ok(factor);
        }
        jitter *= 10.0;
    }
    Err(Error::model("the kernel values between the vectors are not finite"))
}

/// What every function lost.
pub(super) fn compare<T: Element>(
    kernel: &Kernel,
    original: &VectorPool,
    reduced: &VectorPool,
    context: &Context,
) -> Result<Vec<Reduction>> {
    let functions = original.functions();
    let before = own_sums::<T>(kernel, original, context)?;
    let after = sums::<T>(kernel, &original.vectors, reduced, context)?;
    let own = sums::<T>(kernel, &reduced.vectors, reduced, context)?;
    let of = |f: usize| {
        let at = |values: &[f64], weights: &[f64]| -> f64 {
            values.iter().skip(f).step_by(functions).zip(weights).map(|(v, w)| v * w).sum()
        };
        let norm = at(&before, &original.weights[f]);
        let cross = at(&after, &original.weights[f]);
        let residual = (norm - 2.0 * cross + at(&own, &reduced.weights[f])).max(0.0);
        let difference = original
            .used_by(f)
            .into_iter()
            .filter(|&v| original.weights[f][v] != 0.0)
            .map(|v| (before[v * functions + f] - after[v * functions + f]).abs());
        Reduction {
            before: original.weights[f].iter().filter(|w| **w != 0.0).count(),
            after: reduced.weights[f].iter().filter(|w| **w != 0.0).count(),
            relative_residual: if norm > 0.0 { residual / norm } else { 0.0 },
            largest_difference: difference.fold(0.0, f64::max),
        }
    };
    Ok((0..functions).map(of).collect())
}

/// What functions lost that are as they were.
pub(super) fn unchanged(pool: &VectorPool) -> Vec<Reduction> {
    counted(pool, pool, 0.0)
}

/// Functions of which there was no time to measure what they lost.
pub(super) fn unmeasured(original: &VectorPool, reduced: &VectorPool) -> Vec<Reduction> {
    counted(original, reduced, f64::NAN)
}

fn counted(original: &VectorPool, reduced: &VectorPool, lost: f64) -> Vec<Reduction> {
    let count = |weights: &Vec<f64>| weights.iter().filter(|w| **w != 0.0).count();
    let of = |(before, after): (&Vec<f64>, &Vec<f64>)| Reduction {
        before: count(before),
        after: count(after),
        relative_residual: lost,
        largest_difference: lost,
    };
    original.weights.iter().zip(&reduced.weights).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::pool::Expansion;
    use super::*;

    #[test]
    fn values_used_for_both_of_their_vectors_give_the_same_sums() {
        let n = STRIPES * ROWS + 77;
        let vectors = (0..n).map(|i| vec![(i as f64).sin(), (1.3 * i as f64).cos()]).collect();
        let weights = (0..n).map(|i| (1.7 * i as f64).cos()).collect();
        let mut pool = VectorPool::single(Expansion { vectors, weights });
        let kernel = Kernel::Gaussian { gamma: 0.7 };
        for functions in 1..=2 {
            pool.weights = vec![pool.weights[0].clone(); functions];
            pool.weights[functions - 1].rotate_left(functions);
            for context in [Context::new(), Context::new().with_threads(3).unwrap()] {
                let found = own_sums::<f64>(&kernel, &pool, &context).unwrap();
                let plain = sums::<f64>(&kernel, &pool.vectors, &pool, &context).unwrap();
                for (found, plain) in found.iter().zip(&plain) {
                    assert!((found - plain).abs() < 1e-10, "{found} {plain}");
                }
            }
        }
    }
}
