//! Values of pooled functions anywhere, the weights of least residual, and what a reduction lost.

use super::Reduction;
use super::element::{Element, in_chunks, table_of};
use super::pool::Pool;
use crate::context::Context;
use crate::error::Result;
use crate::kernel::{Kernel, KernelBlocks, Weights, multiply};
use crate::solver::algebra::Cholesky;

/// Rows of one task.
const ROWS: usize = 64;

/// Vectors whose kernel values are held at a time.
const COLUMNS: usize = 512;

/// Added to the diagonal before factorising, relative to its mean; more if that is not enough.
const JITTER: f64 = 1e-12;

/// Σᵢ A_{fi}K(v, xᵢ) of every vector v of `at` and every function f, vector after vector.
pub(super) fn sums<T: Element>(
    kernel: &Kernel,
    at: &[Vec<f64>],
    pool: &Pool,
    context: &Context,
) -> Result<Vec<f64>> {
    let (functions, set) = (pool.functions(), context.instruction_set());
    let mut values = vec![0.0; at.len() * functions];
    if pool.len() == 0 || at.is_empty() {
        return Ok(values);
    }
    let blocks = KernelBlocks::<T>::new(kernel, &table_of::<T>(&pool.vectors)?, None, set)?;
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

/// K(zⱼ, zₗ), row by row.
pub(super) fn gram(kernel: &Kernel, vectors: &[Vec<f64>], context: &Context) -> Result<Vec<f64>> {
    let n = vectors.len();
    let set = context.instruction_set();
    let blocks = KernelBlocks::<f64>::new(kernel, &table_of::<f64>(vectors)?, None, set)?;
    let mut values = vec![0.0; n * n];
    in_chunks(context, &mut values, ROWS * n, |t, out| {
        let rows: Vec<usize> = (t * ROWS..t * ROWS + out.len() / n).collect();
        blocks.query_block(&blocks.gather(&rows), 0..rows.len(), 0..n, out, n);
        Ok(())
    })?;
    Ok(values)
}

/// Gives every function of `reduced` the weights of least residual, (K^{zz})⁻¹K^{zx}α (Nguyen 2006,
/// Proposition 5), over the vectors that it may use.
pub(super) fn reweigh(
    kernel: &Kernel,
    reduced: &mut Pool,
    original: &Pool,
    context: &Context,
) -> Result<()> {
    let (n, functions) = (reduced.len(), reduced.functions());
    let among = gram(kernel, &reduced.vectors, context)?;
    let towards = sums::<f64>(kernel, &reduced.vectors, original, context)?;
    let mut done = vec![false; functions];
    for f in 0..functions {
        if done[f] {
            continue;
        }
        let used = reduced.used_by(f);
        if used.is_empty() {
            continue;
        }
        let mut part = Vec::with_capacity(used.len() * used.len());
        for &i in &used {
            part.extend(used.iter().map(|&j| among[i * n + j]));
        }
        let factor = factorise(&part, used.len(), context)?;
        for g in (f..functions).filter(|&g| reduced.uses[g] == reduced.uses[f]) {
            let mut weights: Vec<f64> = used.iter().map(|&v| towards[v * functions + g]).collect();
            factor.solve(&mut weights);
            for (&v, weight) in used.iter().zip(weights) {
                reduced.weights[g][v] = weight;
            }
            done[g] = true;
        }
    }
    Ok(())
}

/// The factor of a Gram matrix with as little added to its diagonal as it takes.
pub(super) fn factorise(gram: &[f64], n: usize, context: &Context) -> Result<Cholesky> {
    let trace: f64 = (0..n).map(|j| gram[j * n + j]).sum();
    let mean = if trace > 0.0 { trace / n as f64 } else { 1.0 };
    let mut jitter = JITTER;
    loop {
        let mut matrix = gram.to_vec();
        for j in 0..n {
            matrix[j * n + j] += jitter * mean;
        }
        if let Some(factor) = Cholesky::new(matrix, n, context)? {
            return Ok(factor);
        }
        jitter *= 10.0;
    }
}

/// What every function lost.
pub(super) fn compare<T: Element>(
    kernel: &Kernel,
    original: &Pool,
    reduced: &Pool,
    context: &Context,
) -> Result<Vec<Reduction>> {
    let functions = original.functions();
    let before = sums::<T>(kernel, &original.vectors, original, context)?;
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
