//! The curvature of the residual, JᵀJ, where J is how the images Ψ'_f move with all vectors and
//! weights (Gauss and Newton; what is left out is how J itself changes).
//!
//! A direction (v, b) moves Ψ'_f by h_f = Σⱼ b_{fj}Φ(zⱼ) + B_{fj} DΦ(zⱼ)vⱼ, and JᵀJ(v, b) is ⟨Φ(zᵢ), h_f⟩
//! for the weights and Σ_f B_{fi} ∂⟨Φ(zᵢ), h_f⟩/∂zᵢ for the vectors: three products over the pairs of
//! reduced vectors, far fewer than the gradient's pairs of reduced and original ones.

use super::chunk::{COLUMNS, Chunk, Features};
use super::element::{Element, in_chunks, table_of};
use super::merge_kernel::MergeKernel;
use super::objective::{Objective, total};
use super::pool::VectorPool;
use crate::data::Matrix;
use crate::error::Result;
use crate::kernel::{Kernel, KernelBlocks};
use crate::numeric::algebra::dot;
use crate::numeric::simd::{PlainLoop, Real, Weights, multiply, run_plain};

/// Vectors z of one task.
const ROWS: usize = 64;

/// Most values of the engine that are kept between products.
const MOST_KEPT: usize = 1 << 25;

/// Least curvature of a vector, as a share of the mean.
const LEAST: f64 = 0.01;

/// Damping of weights, in which the residual is quadratic, as a share of that of vectors.
const WEIGHTS: f64 = 1e-3;

/// JᵀJ at a point.
pub(super) struct Curvature<'a, T: Element> {
    objective: &'a Objective<'a, T>,
    pool: VectorPool,
    table: Matrix,
    chunks: Vec<Chunk<T>>,
    /// The base kernel value of every two vectors, unless they are too many.
    kept: Option<Vec<T>>,
    /// Blocks of JᵀJ of single vectors, aI + c zzᵀ in the features.
    across: Vec<f64>,
    along: Vec<f64>,
    /// Those of single weights.
    own: Vec<f64>,
}

/// A direction, packed as the vectors are.
struct Moves<T: Element> {
    /// The products of vectors with it.
    base: KernelBlocks<T>,
    features: Features<T>,
    weights: Weights<T>,
    coefficients: Vec<Vec<T>>,
    /// zⱼ·vⱼ where slopes are taken from there, else 0.
    origins: Vec<T>,
}

impl<'a, T: Element> Curvature<'a, T> {
    pub(super) fn new(objective: &'a Objective<'a, T>, point: &[f64]) -> Result<Self> {
        let (rule, context) = (objective.rule, objective.context);
        let pool = objective.pool(point);
        let n = pool.len();
        let table = table_of::<T>(&pool.vectors)?;
        let chunks = Chunk::all(rule, &pool, 1.0, context.instruction_set())?;
        let (mut across, mut along, mut own) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        for (v, vector) in pool.vectors.iter().enumerate() {
            let square: f64 = pool.weights.iter().map(|w| w[v] * w[v]).sum();
            let (value, slope, second_slope) = rule.derivatives(rule.own_base(vector));
            (own[v], across[v]) = (value, slope * square);
            along[v] = if rule.pull() == 0.0 { second_slope * square } else { 0.0 };
        }
        let mean = across.iter().sum::<f64>() / n as f64;
        across.iter_mut().for_each(|a| *a += LEAST * mean);
        let mut curvature = Self { objective, pool, table, chunks, kept: None, across, along, own };
        if n * n <= MOST_KEPT {
            let mut kept = vec![T::ZERO; n * n];
            in_chunks(context, &mut kept, ROWS * n, |t, out| {
                for (c, chunk) in curvature.chunks.iter().enumerate() {
                    let rows = t * ROWS..t * ROWS + out.len() / n;
                    curvature.values(rows, chunk, &mut out[c * COLUMNS..], n)?;
                }
                Ok(())
            })?;
            curvature.kept = Some(kept);
        }
        Ok(curvature)
    }

    /// The base kernel value of vectors `rows` and those of a chunk, rows `stride` apart.
    fn values(
        &self,
        rows: std::ops::Range<usize>,
        chunk: &Chunk<T>,
        out: &mut [T],
        stride: usize,
    ) -> Result<()> {
        let count = rows.len();
        let ready = chunk.base.prepare(&self.table, rows)?;
        chunk.base.query_block(&ready, 0..count, 0..chunk.base.len(), out, stride);
        Ok(())
    }

    /// JᵀJ times a direction.
    pub(super) fn multiply(&self, direction: &[f64]) -> Result<Vec<f64>> {
        let (n, columns) = (self.pool.len(), self.pool.columns());
        let functions = self.pool.functions();
        let moves = self.moves(&self.objective.pool(direction))?;
        let width = columns + functions;
        let mut rows = vec![0.0; n * width];
        in_chunks(self.objective.context, &mut rows, ROWS * width, |t, out| {
            self.multiply_rows(t * ROWS..t * ROWS + out.len() / width, &moves, out)
        })?;
        Ok(self.objective.flatten_rows(&rows, width))
    }

    fn moves(&self, direction: &VectorPool) -> Result<Vec<Moves<T>>> {
        let set = self.objective.context.instruction_set();
        let pull = self.objective.rule.pull();
        let of = |start: usize| {
            let end = (start + COLUMNS).min(self.pool.len());
            let vectors = &direction.vectors[start..end];
            let part = |w: &Vec<f64>| w[start..end].iter().map(|&w| T::from_f64(w)).collect();
            let coefficients: Vec<Vec<T>> = direction.weights.iter().map(part).collect();
            let origin = |(z, v): (&Vec<f64>, &Vec<f64>)| T::from_f64(pull * dot(z, v));
            Ok(Moves {
                base: KernelBlocks::on_cpu(&Kernel::Linear, &table_of::<T>(vectors)?, None, set)?,
                features: Features::new(vectors, set)?,
                weights: Weights::new(end - start, coefficients.concat()),
                coefficients,
                origins: self.pool.vectors[start..end].iter().zip(vectors).map(origin).collect(),
            })
        };
        (0..self.pool.len()).step_by(COLUMNS).map(of).collect()
    }

    /// The product's rows: features, then functions.
    fn multiply_rows(
        &self,
        rows: std::ops::Range<usize>,
        moves: &[Moves<T>],
        out: &mut [f64],
    ) -> Result<()> {
        let set = self.objective.context.instruction_set();
        let (columns, functions, count) = (self.pool.columns(), self.pool.functions(), rows.len());
        let mut sums = vec![0.0; count * functions];
        let mut pushes = vec![0.0; count * columns];
        let mut totals = vec![0.0; count];
        for (c, (chunk, moves)) in self.chunks.iter().zip(moves).enumerate() {
            let n = chunk.base.len();
            let mut values = vec![T::ZERO; count * n];
            match &self.kept {
                Some(kept) => {
                    for (row, values) in rows.clone().zip(values.chunks_exact_mut(n)) {
                        let start = row * self.pool.len() + c * COLUMNS;
                        values.copy_from_slice(&kept[start..start + n]);
                    }
                }
                None => self.values(rows.clone(), chunk, &mut values, n)?,
            }
            let mut shifts = vec![T::ZERO; count * n];
            let ready = moves.base.prepare(&self.table, rows.clone())?;
            moves.base.query_block(&ready, 0..count, 0..n, &mut shifts, n);
            let (mut first, mut second) = (vec![T::ZERO; count * n], vec![T::ZERO; count * n]);
            for (i, row) in rows.clone().enumerate() {
                let weight = |w: &Vec<f64>| T::from_f64(w[row]);
                let weights: Vec<T> = self.pool.weights.iter().map(weight).collect();
                let part = i * n..(i + 1) * n;
                let task = CurvatureRow {
                    rule: self.objective.rule,
                    weights: &weights,
                    coefficients: &chunk.coefficients,
                    moves: &moves.coefficients,
                    origins: &moves.origins,
                    values: &mut values[part.clone()],
                    shifts: &mut shifts[part.clone()],
                    first: &mut first[part.clone()],
                    second: &mut second[part],
                };
                totals[i] += run_plain(set, task);
            }
            multiply(set, &values, n, &moves.weights, 0, n, &mut sums);
            multiply(set, &shifts, n, &chunk.weights, 0, n, &mut sums);
            chunk.features.multiply(first, n, &mut pushes, set)?;
            moves.features.multiply(second, n, &mut pushes, set)?;
        }
        let pull = self.objective.rule.pull();
        for (i, (row, out)) in rows.zip(out.chunks_exact_mut(columns + functions)).enumerate() {
            let vector = &self.pool.vectors[row];
            let pushes = &pushes[i * columns..(i + 1) * columns];
            for ((out, push), z) in out.iter_mut().zip(pushes).zip(vector) {
                *out = push + pull * totals[i] * z;
            }
            out[columns..].copy_from_slice(&sums[i * functions..(i + 1) * functions]);
        }
        Ok(())
    }

    /// The blocks of single vectors and weights times a direction.
    pub(super) fn multiply_blocks(&self, direction: &[f64]) -> Vec<f64> {
        self.by_blocks(direction, |a, own| (a, own * WEIGHTS), |_, c, _| c)
    }

    /// Their inverse times a direction, that of weights undamped.
    pub(super) fn divide_by_blocks(&self, direction: &[f64]) -> Vec<f64> {
        let nonzero = |own: f64| if own > 0.0 { 1.0 / own } else { 0.0 };
        let along = |a: f64, c: f64, square: f64| -nonzero(a) * c * nonzero(a + c * square);
        self.by_blocks(direction, |a, own| (nonzero(a), nonzero(own)), along)
    }

    /// `factor(a, own)` times a direction's vectors and weights, and `along(a, c, ‖z‖²)` times the
    /// part along the vectors themselves.
    fn by_blocks(
        &self,
        direction: &[f64],
        factor: impl Fn(f64, f64) -> (f64, f64),
        along: impl Fn(f64, f64, f64) -> f64,
    ) -> Vec<f64> {
        let direction = self.objective.pool(direction);
        let (columns, functions) = (self.pool.columns(), self.pool.functions());
        let width = columns + functions;
        let mut rows = vec![0.0; self.pool.len() * width];
        for (v, out) in rows.chunks_exact_mut(width).enumerate() {
            let (vector, moved) = (&self.pool.vectors[v], &direction.vectors[v]);
            let (a, c) = (self.across[v], self.along[v]);
            let (of_vector, of_weight) = factor(a, self.own[v]);
            let extra = along(a, c, dot(vector, vector)) * dot(vector, moved);
            for ((out, moved), z) in out.iter_mut().zip(moved).zip(vector) {
                *out = of_vector * moved + extra * z;
            }
            for (out, weights) in out[columns..].iter_mut().zip(&direction.weights) {
                *out = of_weight * weights[v];
            }
        }
        self.objective.flatten_rows(&rows, width)
    }
}

/// Turns a row of base kernel values into kernel values, shifts into slopes times shifts, and both
/// into the factors of the vectors, W₁, and of their moves, W₂.
struct CurvatureRow<'a, T> {
    rule: &'a MergeKernel,
    weights: &'a [T],
    coefficients: &'a [Vec<T>],
    moves: &'a [Vec<T>],
    origins: &'a [T],
    values: &'a mut [T],
    shifts: &'a mut [T],
    first: &'a mut [T],
    second: &'a mut [T],
}

impl<T: Real> PlainLoop for CurvatureRow<'_, T> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let n = self.values.len();
        let (values, shifts) = (&mut self.values[..n], &mut self.shifts[..n]);
        let (first, second, origins) =
            (&mut self.first[..n], &mut self.second[..n], &self.origins[..n]);
        for ((&weight, coefficients), moves) in
            self.weights.iter().zip(self.coefficients).zip(self.moves)
        {
            if weight != T::ZERO {
                let (coefficients, moves) = (&coefficients[..n], &moves[..n]);
                for i in 0..n {
                    first[i] += weight * moves[i];
                    second[i] += weight * coefficients[i];
                }
            }
        }
        match *self.rule {
            MergeKernel::Gaussian { gamma } => {
                let factor = T::from_f64(2.0 * gamma);
                for i in 0..n {
                    let (slope, shift) = (factor * values[i], factor * (shifts[i] + origins[i]));
                    first[i] = slope * (first[i] + second[i] * shift);
                    second[i] = slope * second[i];
                    shifts[i] = values[i] * shift;
                }
            }
            MergeKernel::Polynomial { gamma, coef0, degree } => {
                let slope_factor = T::from_f64(f64::from(degree) * gamma);
                let second_factor = T::from_f64(f64::from(degree.saturating_sub(1)) * gamma);
                let (gamma, coef0) = (T::from_f64(gamma), T::from_f64(coef0));
                for i in 0..n {
                    let under = gamma * values[i] + coef0;
                    let mut power = T::ONE;
                    for _ in 2..degree {
                        power = power * under;
                    }
                    let second_slope = slope_factor * power;
                    let power = if degree > 1 { power * under } else { power };
                    let (slope, shift) = (slope_factor * power, shifts[i]);
                    first[i] = slope * first[i] + second_factor * second_slope * second[i] * shift;
                    second[i] = slope * second[i];
                    shifts[i] = slope * shift;
                    values[i] = power * under;
                }
            }
        }
        total(first)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::shared_pool;
    use super::*;
    use crate::context::Context;

    /// Where nothing is lost JᵀJ is the whole second derivative.
    #[test]
    fn the_curvature_is_the_slope_of_the_gradient_where_nothing_is_lost() {
        let context = Context::new();
        for kernel in [
            Kernel::Gaussian { gamma: 0.7 },
            Kernel::Polynomial { gamma: 0.5, coef0: 1.0, degree: 3 },
            Kernel::Polynomial { gamma: 0.8, coef0: 0.0, degree: 2 },
            Kernel::Linear,
        ] {
            let (rule, pool) = (MergeKernel::of(&kernel).unwrap(), shared_pool());
            let objective = Objective::<f64>::new(&rule, &pool, &pool, &context).unwrap();
            let point = objective.flatten(&pool);
            let curvature = Curvature::new(&objective, &point).unwrap();
            let vectors = pool.len() * pool.columns();
            let mean = curvature.across.iter().sum::<f64>() / pool.len() as f64;
            let floor = LEAST * mean / (1.0 + LEAST);
            for i in 0..point.len() {
                let gradient = |by: f64| {
                    let mut nudged = point.clone();
                    nudged[i] += by;
                    objective.evaluate(&nudged).unwrap().1
                };
                let (more, less) = (gradient(1e-5), gradient(-1e-5));
                let mut direction = vec![0.0; point.len()];
                direction[i] = 1.0;
                let found = curvature.multiply(&direction).unwrap();
                for (j, found) in found.iter().enumerate() {
                    let slope = (more[j] - less[j]) / 2e-5;
                    assert!((slope - found).abs() < 1e-7 * (1.0 + slope.abs()), "{kernel} {i} {j}");
                }
                let blocks = curvature.multiply_blocks(&direction);
                let factor = if i < vectors { 1.0 } else { WEIGHTS };
                let (of_vector, own) = (floor * f64::from(i < vectors), blocks[i]);
                if found[i] != 0.0 {
                    assert!((own - of_vector - factor * found[i]).abs() < 1e-8, "{kernel} {i}");
                }
            }
        }
    }

    #[test]
    fn the_blocks_are_undone() {
        let context = Context::new();
        for kernel in [
            Kernel::Gaussian { gamma: 0.7 },
            Kernel::Polynomial { gamma: 0.5, coef0: 1.0, degree: 3 },
        ] {
            let (rule, pool) = (MergeKernel::of(&kernel).unwrap(), shared_pool());
            let objective = Objective::<f64>::new(&rule, &pool, &pool, &context).unwrap();
            let point = objective.flatten(&pool);
            let curvature = Curvature::new(&objective, &point).unwrap();
            let back = curvature.divide_by_blocks(&curvature.multiply_blocks(&point));
            for (i, (back, value)) in back.iter().zip(&point).enumerate() {
                let factor = if i < pool.len() * pool.columns() { 1.0 } else { WEIGHTS };
                assert!((back - factor * value).abs() < 1e-12, "{kernel} {i}");
            }
        }
    }
}
