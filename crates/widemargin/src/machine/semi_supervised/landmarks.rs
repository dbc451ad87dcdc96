//! A kernel through its values at some rows: z(x) = L⁻¹k(x), LLᵀ their kernel matrix (Williams and Seeger 2001).
//! Exact where all rows are among them. A weight vector w of z is the expansion Σⱼ (L⁻ᵀw)ⱼ K(xⱼ, ·).

use crate::context::Context;
use crate::data::{Dense, Matrix, memory};
use crate::error::Result;
use crate::kernel::{Kernel, KernelBlocks, inverse_factor};
use crate::numeric::random::Generator;
use crate::numeric::simd::{Weights, multiply};

/// Rows mapped by one task.
const TASK_ROWS: usize = 256;

/// The rows that are chosen, and L⁻¹ row by row.
pub(super) struct Landmarks {
    pub(super) rows: Vec<usize>,
    inverse: Vec<f32>,
}

impl Landmarks {
    /// At most `count` rows, those of `first` before others, and z of all rows.
    pub(super) fn new(
        kernel: &Kernel,
        features: &Matrix,
        first: &[usize],
        count: usize,
        context: &Context,
    ) -> Result<(Self, Matrix)> {
        let n = features.rows();
        let bytes = 4 * n as u128 * count.min(n) as u128;
        memory::check(|| format!("kernel values of {n} rows at landmarks"), bytes)?;
        let mut order: Vec<usize> = (0..n).collect();
        Generator::new(context.seed()).shuffle(&mut order);
        let mut is_first = vec![false; n];
        first.iter().for_each(|&i| is_first[i] = true);
        order.sort_by_key(|&i| !is_first[i]);
        order.truncate(count);
        order.sort_unstable();
        let m = order.len();
        let blocks = KernelBlocks::<f64>::new(kernel, features, Some(&order), context)?;
        let queries = blocks.prepare_rows(features, &order)?;
        let mut matrix = vec![0.0; m * m];
        blocks.query_block(&queries, 0..m, 0..m, &mut matrix, m);
        let (chosen, inverse) = inverse_factor(&matrix, m, context)?;
        let rows: Vec<usize> = chosen.into_iter().map(|at| order[at]).collect();
        let landmarks = Self { rows, inverse: inverse.into_iter().map(|v| v as f32).collect() };
        let table = landmarks.table(kernel, features, context)?;
        Ok((landmarks, table))
    }

    fn table(&self, kernel: &Kernel, features: &Matrix, context: &Context) -> Result<Matrix> {
        let (n, m) = (features.rows(), self.rows.len());
        let blocks = KernelBlocks::<f32>::new(kernel, features, Some(&self.rows), context)?;
        let weights = Weights::new(m, self.inverse.clone());
        let set = context.instruction_set();
        let mut table = vec![0.0_f32; n * m];
        let tasks = table.chunks_mut((TASK_ROWS * m).max(1)).enumerate();
        context.try_for_each(tasks, |(task, out)| {
            context.checkpoint()?;
            let (start, count) = (task * TASK_ROWS, out.len() / m.max(1));
            let queries = blocks.prepare(features, start..start + count)?;
            let mut block = vec![0.0_f32; count * m];
            blocks.query_block(&queries, 0..count, 0..m, &mut block, m);
            let mut sums = vec![0.0; count * m];
            multiply(set, &block, m, &weights, 0, m, &mut sums);
            out.iter_mut().zip(sums).for_each(|(out, sum)| *out = sum as f32);
            Ok(())
        })?;
        Dense::new(n, m, table).map(Matrix::DenseF32)
    }

    /// L⁻ᵀw, the coefficients of the rows.
    pub(super) fn coefficients(&self, weights: &[f64]) -> Vec<f64> {
        let m = self.rows.len();
        let mut coefficients = vec![0.0; m];
        for (row, weight) in self.inverse.chunks_exact(m.max(1)).zip(weights) {
            for (c, value) in coefficients.iter_mut().zip(row) {
                *c += weight * f64::from(*value);
            }
        }
        coefficients
    }
}
