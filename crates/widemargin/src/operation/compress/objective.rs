//! The objective of phase 2, F = ½Σ_f‖Ψ_f − Ψ'_f‖² without its constant part, and its gradient with
//! respect to all vectors and weights, computed in blocks on the kernel engine.
//!
//! With U the vectors of both sides and C their weights (−A and B) the gradient is ∂F/∂B = K^{zU}C and
//! ∂F/∂zⱼ = Σᵤ (Bⱼ·Cᵤ) ∂₂K(u, zⱼ): a block of kernel values is turned into one of slopes and multiplied
//! with the vectors by the engine of the linear kernel (Nguyen 2006, 3.3.3).

use super::element::{Element, in_chunks, table_of};
use super::pool::Pool;
use super::rule::Rule;
use crate::context::Context;
use crate::data::Matrix;
use crate::error::Result;
use crate::kernel::{
    InstructionSet, Kernel, KernelBlocks, PlainLoop, Real, Weights, multiply, run_plain,
};

/// Vectors z of one task.
const ROWS: usize = 64;

/// Vectors u of one block.
const COLUMNS: usize = 512;

/// The residual as a function of vectors and weights.
pub(super) struct Objective<'a, T: Element> {
    rule: &'a Rule,
    context: &'a Context,
    original: Vec<Chunk<T>>,
    /// The pool that is moved, for its groups.
    shape: &'a Pool,
    /// Weights are divided by this and features by the other, so that steps of 1 are large ones for
    /// both.
    scale: f64,
    length: f64,
}

/// Some vectors u with their weights in all functions.
struct Chunk<T: Element> {
    /// The vectors for the kernel, or for the product under its power.
    base: KernelBlocks<T>,
    features: Features<T>,
    weights: Weights<T>,
    /// Function after function.
    coefficients: Vec<Vec<T>>,
}

/// The features of some vectors, for products with slopes.
enum Features<T: Element> {
    /// As the outputs of a product, when there are few.
    Few(Weights<T>),
    /// As the rows of a linear kernel.
    Many(KernelBlocks<T>),
}

/// Features that are few.
const FEW: usize = 96;

impl<T: Element> Features<T> {
    fn new(vectors: &[Vec<f64>], set: InstructionSet) -> Result<Self> {
        let (n, columns) = (vectors.len(), vectors[0].len());
        let mut turned = Vec::with_capacity(n * columns);
        for j in 0..columns {
            turned.extend(vectors.iter().map(|v| T::from_f64(v[j])));
        }
        if columns <= FEW {
            return Ok(Self::Few(Weights::new(n, turned)));
        }
        let turned = T::table(columns, n, turned)?;
        Ok(Self::Many(KernelBlocks::new(&Kernel::Linear, &turned, None, set)?))
    }

    /// Adds Σᵤ slopes[j][u] u to `out[j]`.
    fn multiply(
        &self,
        slopes: Vec<T>,
        n: usize,
        out: &mut [f64],
        set: InstructionSet,
    ) -> Result<()> {
        let rows = slopes.len() / n;
        match self {
            Self::Few(weights) => multiply(set, &slopes, n, weights, 0, n, out),
            Self::Many(blocks) => {
                let columns = blocks.len();
                let ready = blocks.prepare(&T::table(rows, n, slopes)?, 0..rows)?;
                let mut products = vec![T::ZERO; rows * columns];
                blocks.query_block(&ready, 0..rows, 0..columns, &mut products, columns);
                for (out, product) in out.iter_mut().zip(products) {
                    *out += product.to_f64();
                }
            }
        }
        Ok(())
    }
}

impl<T: Element> Chunk<T> {
    fn new(
        rule: &Rule,
        vectors: &[Vec<f64>],
        weights: &[Vec<T>],
        set: InstructionSet,
    ) -> Result<Self> {
        Ok(Self {
            base: KernelBlocks::new(&rule.base(), &table_of::<T>(vectors)?, None, set)?,
            features: Features::new(vectors, set)?,
            weights: Weights::new(vectors.len(), weights.concat()),
            coefficients: weights.to_vec(),
        })
    }

    /// All vectors with the weights that `sign` gives them.
    fn all(rule: &Rule, pool: &Pool, sign: f64, set: InstructionSet) -> Result<Vec<Self>> {
        let chunk = |start: usize| {
            let end = (start + COLUMNS).min(pool.len());
            let part =
                |w: &Vec<f64>| w[start..end].iter().map(|&w| T::from_f64(sign * w)).collect();
            let weights: Vec<Vec<T>> = pool.weights.iter().map(part).collect();
            Self::new(rule, &pool.vectors[start..end], &weights, set)
        };
        (0..pool.len()).step_by(COLUMNS).map(chunk).collect()
    }
}

impl<'a, T: Element> Objective<'a, T> {
    pub(super) fn new(
        rule: &'a Rule,
        original: &Pool,
        reduced: &'a Pool,
        context: &'a Context,
    ) -> Result<Self> {
        let all = || reduced.weights.iter().flatten().filter(|w| **w != 0.0);
        let mean = all().map(|w| w.abs()).sum::<f64>() / all().count().max(1) as f64;
        let original = Chunk::all(rule, original, -1.0, context.instruction_set())?;
        let scale = if mean > 0.0 { mean } else { 1.0 };
        let length = rule.length(&reduced.vectors);
        Ok(Self { rule, context, original, shape: reduced, scale, length })
    }

    /// Vectors and weights as one point.
    pub(super) fn flatten(&self, pool: &Pool) -> Vec<f64> {
        let mut point: Vec<f64> = pool.vectors.iter().flatten().map(|v| v / self.length).collect();
        point.extend(pool.weights.iter().flatten().map(|w| w / self.scale));
        point
    }

    /// The pool at a point.
    pub(super) fn pool(&self, point: &[f64]) -> Pool {
        let (n, columns) = (self.shape.len(), self.shape.columns());
        let (vectors, weights) = point.split_at(n * columns);
        Pool {
            vectors: vectors
                .chunks(columns.max(1))
                .map(|vector| vector.iter().map(|v| v * self.length).collect())
                .collect(),
            groups: self.shape.groups.clone(),
            weights: weights
                .chunks(n.max(1))
                .map(|weights| weights.iter().map(|w| w * self.scale).collect())
                .collect(),
            uses: self.shape.uses.clone(),
        }
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
                    task.add(chunk)?;
                }
                task.collect(share, out);
            }
            task.finish(out);
            Ok(())
        })?;
        let mut gradient = vec![0.0; point.len()];
        let (towards_vectors, towards_weights) = gradient.split_at_mut(pool.len() * columns);
        let mut value = 0.0;
        for (j, row) in rows.chunks_exact(width).enumerate() {
            let out = &mut towards_vectors[j * columns..(j + 1) * columns];
            out.iter_mut().zip(row).for_each(|(out, slope)| *out = slope * self.length);
            for (f, uses) in pool.uses.iter().enumerate() {
                if uses[pool.groups[j]] {
                    towards_weights[f * pool.len() + j] = row[columns + f] * self.scale;
                }
            }
            value += row[width - 1];
        }
        Ok((value, gradient))
    }
}

/// The gradient of a few vectors.
struct Task<'a, T: Element> {
    objective: &'a Objective<'a, T>,
    pool: &'a Pool,
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
        pool: &'a Pool,
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

/// Turns a row of what the engine says into kernel values, and into slopes (B·Cᵤ) ∂K/∂u.
struct SlopeRow<'a, T> {
    rule: &'a Rule,
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
            Rule::Gaussian { gamma, .. } => {
                let factor = T::from_f64(2.0 * gamma);
                for (slope, &k) in slopes.iter_mut().zip(&*base) {
                    *slope = *slope * (factor * k);
                }
            }
            Rule::Polynomial { gamma, coef0, degree } => {
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
        let mut lanes = [T::ZERO; 16];
        let (chunks, rest) = slopes.as_chunks::<16>();
        for chunk in chunks {
            for lane in 0..16 {
                lanes[lane] += chunk[lane];
            }
        }
        lanes.iter().chain(rest).map(|v| v.to_f64()).sum()
    }
}
