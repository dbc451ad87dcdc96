//! Kernel values between the rows of an expansion and the training rows, and the means and scatters
//! of classes they give, a block of rows at a time.

use std::ops::Range;

use crate::context::Context;
use crate::data::Matrix;
use crate::error::Result;
use crate::kernel::KernelBlocks;
use crate::numeric::algebra::add_products;

/// Rows whose kernel values are held at a time.
const BLOCK_ROWS: usize = 256;

/// The expansion and the training rows, both class by class.
pub(super) struct Expansion<'a> {
    pub(super) blocks: KernelBlocks<f64>,
    pub(super) rows: Matrix,
    pub(super) starts: Vec<usize>,
    pub(super) context: &'a Context,
}

impl Expansion<'_> {
    /// Calls `visit(rows, kernel values)` for runs of training rows of one class.
    pub(super) fn each_block(
        &self,
        mut visit: impl FnMut(usize, Range<usize>, &[f64]) -> Result<()>,
    ) -> Result<()> {
        let width = self.blocks.len();
        let mut values = vec![0.0; BLOCK_ROWS * width];
        for (class, run) in self.starts.windows(2).enumerate() {
            for start in (run[0]..run[1]).step_by(BLOCK_ROWS) {
                self.context.checkpoint()?;
                let rows = start..(start + BLOCK_ROWS).min(run[1]);
                let queries = self.blocks.prepare(&self.rows, rows.clone())?;
                self.blocks.query_block(&queries, 0..rows.len(), 0..width, &mut values, width);
                visit(class, rows.clone(), &values[..rows.len() * width])?;
            }
        }
        Ok(())
    }

    /// m_C of every class.
    pub(super) fn class_means(&self) -> Result<Vec<Vec<f64>>> {
        let width = self.blocks.len();
        let mut means = vec![vec![0.0; width]; self.starts.len() - 1];
        self.each_block(|class, _, values| {
            for row in values.chunks_exact(width) {
                means[class].iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
            Ok(())
        })?;
        for (mean, run) in means.iter_mut().zip(self.starts.windows(2)) {
            mean.iter_mut().for_each(|sum| *sum /= (run[1] - run[0]) as f64);
        }
        Ok(means)
    }

    /// N, its lower triangle.
    pub(super) fn within(&self, means: &[Vec<f64>]) -> Result<Vec<f64>> {
        let width = self.blocks.len();
        let mut within = vec![0.0; width * width];
        self.each_block(|class, rows, values| {
            let mut turned = vec![0.0; values.len()];
            for (r, row) in values.chunks_exact(width).enumerate() {
                for (j, (value, mean)) in row.iter().zip(&means[class]).enumerate() {
                    turned[j * rows.len() + r] = value - mean;
                }
            }
            add_products(&mut within, width, &turned, rows.len(), self.context)
        })?;
        Ok(within)
    }

    /// Adds μ K of the expansion's own rows.
    pub(super) fn add_gram(&self, matrix: &mut [f64], mu: f64) {
        let width = self.blocks.len();
        let all: Vec<usize> = (0..width).collect();
        let mut values = vec![0.0; BLOCK_ROWS * width];
        for (rows, out) in
            all.chunks(BLOCK_ROWS).zip(matrix.chunks_mut((BLOCK_ROWS * width).max(1)))
        {
            let queries = self.blocks.gather(rows);
            self.blocks.query_block(&queries, 0..rows.len(), 0..width, &mut values, width);
            out.iter_mut().zip(&values).for_each(|(sum, value)| *sum += mu * value);
        }
    }
}
