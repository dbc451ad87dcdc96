//! The objective of phase 2, F = ½Σ_f‖Ψ_f − Ψ'_f‖² without its constant part, and its gradient with
//! respect to all vectors and weights, computed in blocks on the kernel engine.
//!
//! With U the vectors of both sides and C their weights (−A and B) the gradient is ∂F/∂B = K^{zU}C and
//! ∂F/∂zⱼ = Σᵤ (Bⱼ·Cᵤ) ∂₂K(u, zⱼ): a block of kernel values is turned into one of slopes and multiplied
//! with the vectors by the engine of the linear kernel (Nguyen 2006, 3.3.3).

use super::chunk::{COLUMNS, Chunk};
use super::element::{Element, in_chunks, table_of};
use super::merge_kernel::MergeKernel;
use super::pool::VectorPool;
use crate::context::Context;
use crate::data::Matrix;
use crate::error::Result;
use crate::numeric::simd::{PlainLoop, Real, multiply, run_plain};

/// Vectors z of one task.
const ROWS: usize = 64;

/// The residual as a function of vectors and weights.
pub(super) struct Objective<'a, T: Element> {
    pub(super) rule: &'a MergeKernel,
    pub(super) context: &'a Context,
    original: Vec<Chunk<T>>,
    /// The pool that is moved, for its groups.
    shape: &'a VectorPool,
}

impl<'a, T: Element> Objective<'a, T> {
    pub(super) fn new(
        rule: &'a MergeKernel,
        original: &VectorPool,
        reduced: &'a VectorPool,
        context: &'a Context,
    ) -> Result<Self> {
        let original = Chunk::all(rule, original, -1.0, context.instruction_set())?;
        Ok(Self { rule, context, original, shape: reduced })
    }

    /// Vectors and weights as one point.
    pub(super) fn flatten(&self, pool: &VectorPool) -> Vec<f64> {
        let vectors = pool.vectors.iter().flatten();
        vectors.chain(pool.weights.iter().flatten()).copied().collect()
    }

    /// The pool at a point.
    pub(super) fn pool(&self, point: &[f64]) -> VectorPool {
        let (n, columns) = (self.shape.len(), self.shape.columns());
        let (vectors, weights) = point.split_at(n * columns);
        VectorPool {
            vectors: vectors.chunks(columns.max(1)).map(<[f64]>::to_vec).collect(),
            groups: self.shape.groups.clone(),
            weights: weights.chunks(n.max(1)).map(<[f64]>::to_vec).collect(),
            uses: self.shape.uses.clone(),
        }
    }

    /// What rows of `width` begin with, for each vector its features and then its weights, in the
    /// order of points; 0 for weights that are not used.
    pub(super) fn flatten_rows(&self, rows: &[f64], width: usize) -> Vec<f64> {
        let (n, columns) = (self.shape.len(), self.shape.columns());
        let mut point = vec![0.0; n * (columns + self.shape.functions())];
        let (vectors, weights) = point.split_at_mut(n * columns);
        for (j, row) in rows.chunks_exact(width).enumerate() {
            vectors[j * columns..(j + 1) * columns].copy_from_slice(&row[..columns]);
            for (f, uses) in self.shape.uses.iter().enumerate() {
                if uses[self.shape.groups[j]] {
                    weights[f * n + j] = row[columns + f];
                }
            }
        }
        point
    }

    /// F without its constant part, and its gradient.
    pub(super) fn evaluate(&self, point: &[f64]) -> Result<(f64, Vec<f64>)> {
        let pool = self.pool(point);
        let reduced = Chunk::all(self.rule, &pool, 1.0, self.context.instruction_set())?;
        let (columns, functions) = (pool.columns(), pool.functions());
        let queries = table_of::<T>(&pool.vectors)?;
        // Row after row: the gradient of a vector, its sums of all functions, its share of F.
        let width = columns + functions + 1;
        let mut rows = vec![0.0; pool.len() * width];
        in_chunks(self.context, &mut rows, ROWS * width, |t, out| {
            let mut task = Task::new(self, &pool, &queries, t * ROWS, out.len() / width);
            for (chunks, share) in [(&self.original, 1.0), (&reduced, 0.5)] {
                task.sums.fill(0.0);
                for chunk in chunks {
                    self.context.checkpoint()?;
                    task.add(chunk)?;
                }
                task.collect(share, out);
            }
            task.finish(out);
            Ok(())
        })?;
        let value = rows.iter().skip(width - 1).step_by(width).sum();
        Ok((value, self.flatten_rows(&rows, width)))
    }
}

/// The gradient of a few vectors.
struct Task<'a, T: Element> {
    objective: &'a Objective<'a, T>,
    pool: &'a VectorPool,
    queries: &'a Matrix,
    first: usize,
    rows: usize,
    block: Vec<T>,
    /// Sums of all functions at the vectors.
    sums: Vec<f64>,
    /// Σᵤ (Bⱼ·Cᵤ) slope(u, zⱼ) u
    pushes: Vec<f64>,
    /// Σᵤ (Bⱼ·Cᵤ) slope(u, zⱼ)
    totals: Vec<f64>,
}

impl<'a, T: Element> Task<'a, T> {
    fn new(
        objective: &'a Objective<'a, T>,
        pool: &'a VectorPool,
        queries: &'a Matrix,
        first: usize,
        rows: usize,
    ) -> Self {
        Self {
            objective,
            pool,
            queries,
            first,
            rows,
            block: vec![T::ZERO; rows * COLUMNS],
            sums: vec![0.0; rows * pool.functions()],
            pushes: vec![0.0; rows * pool.columns()],
            totals: vec![0.0; rows],
        }
    }

    /// Adds what a chunk of vectors does.
    fn add(&mut self, chunk: &Chunk<T>) -> Result<()> {
        let set = self.objective.context.instruction_set();
        let n = chunk.base.len();
        let ready = chunk.base.prepare(self.queries, self.first..self.first + self.rows)?;
        chunk.base.query_block(&ready, 0..self.rows, 0..n, &mut self.block[..self.rows * n], n);
        let mut slopes = vec![T::ZERO; self.rows * n];
        let rows = self.block.chunks_exact_mut(n).zip(slopes.chunks_exact_mut(n));
        for (j, (base, slopes)) in rows.take(self.rows).enumerate() {
            let weight = |w: &Vec<f64>| T::from_f64(w[self.first + j]);
            let weights: Vec<T> = self.pool.weights.iter().map(weight).collect();
            let row = SlopeRow {
                rule: self.objective.rule,
                weights: &weights,
                coefficients: &chunk.coefficients,
                base,
                slopes,
            };
            self.totals[j] += run_plain(set, row);
        }
        multiply(set, &self.block, n, &chunk.weights, 0, n, &mut self.sums);
        chunk.features.multiply(slopes, n, &mut self.pushes, set)
    }

    /// Adds the sums to the rows of `out`, and `share` of what they contribute to F.
    fn collect(&self, share: f64, out: &mut [f64]) {
        let (columns, functions) = (self.pool.columns(), self.pool.functions());
        for (j, (out, sums)) in out
            .chunks_exact_mut(columns + functions + 1)
            .zip(self.sums.chunks(functions))
            .enumerate()
        {
            for (f, sum) in sums.iter().enumerate() {
                out[columns + f] += sum;
                out[columns + functions] += share * sum * self.pool.weights[f][self.first + j];
            }
        }
    }

    /// Writes the gradients of the vectors to the rows of `out`.
    fn finish(&self, out: &mut [f64]) {
        let columns = self.pool.columns();
        let pull = self.objective.rule.pull();
        let width = columns + self.pool.functions() + 1;
        for (j, out) in out.chunks_exact_mut(width).enumerate() {
            let pushes = &self.pushes[j * columns..(j + 1) * columns];
            let vector = &self.pool.vectors[self.first + j];
            for ((out, push), z) in out.iter_mut().zip(pushes).zip(vector) {
                *out = push + pull * self.totals[j] * z;
            }
        }
    }
}

/// Turns a row of base kernel values into kernel values, and into slopes (B·Cᵤ) ∂K/∂u.
struct SlopeRow<'a, T> {
    rule: &'a MergeKernel,
    weights: &'a [T],
    coefficients: &'a [Vec<T>],
    base: &'a mut [T],
    slopes: &'a mut [T],
}

impl<T: Real> PlainLoop for SlopeRow<'_, T> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let n = self.base.len();
        let (base, slopes) = (self.base, &mut self.slopes[..n]);
        for (&weight, coefficients) in self.weights.iter().zip(self.coefficients) {
            if weight != T::ZERO {
                for (slope, &c) in slopes.iter_mut().zip(coefficients) {
                    *slope += weight * c;
                }
            }
        }
        match *self.rule {
            MergeKernel::Gaussian { gamma } => {
                let factor = T::from_f64(2.0 * gamma);
                for (slope, &k) in slopes.iter_mut().zip(&*base) {
                    *slope = *slope * (factor * k);
                }
            }
            MergeKernel::Polynomial { gamma, coef0, degree } => {
                let factor = T::from_f64(f64::from(degree) * gamma);
                let (gamma, coef0) = (T::from_f64(gamma), T::from_f64(coef0));
                for (slope, k) in slopes.iter_mut().zip(base) {
                    let under = gamma * *k + coef0;
                    let mut power = T::ONE;
                    for _ in 1..degree {
                        power = power * under;
                    }
                    *slope = *slope * (factor * power);
                    *k = power * under;
                }
            }
        }
        total(slopes)
    }
}

/// The sum of a row, in sixteen lanes.
#[inline(always)]
pub(super) fn total<T: Real>(row: &[T]) -> f64 {
    let mut lanes = [T::ZERO; 16];
    let (chunks, rest) = row.as_chunks::<16>();
    for chunk in chunks {
        for lane in 0..16 {
            lanes[lane] += chunk[lane];
        }
    }
    lanes.iter().chain(rest).map(|v| v.to_f64()).sum()
}
