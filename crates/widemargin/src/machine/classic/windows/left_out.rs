//! Leave-one-out sums of Gaussian Parzen windows.
//!
//! ln Σ_{i≠q} exp(−‖x_q − xᵢ‖²/2σ²) of rows q; where every window vanishes, that of the nearest
//! other row stands for the sum.

use super::super::NeighbourSearch;
use super::super::neighbours::Finder;
use crate::context::Context;
use crate::data::Matrix;
use crate::error::Result;
use crate::kernel::{Kernel, KernelBlocks};
use crate::numeric::random::Generator;

/// Rows of one block of windows.
const BLOCK_ROWS: usize = 64;

/// Steps of the search for a width: it is known to 1 in 10⁶ then.
const STEPS: usize = 34;

/// Rows whose sums are taken; of more, a random sample.
const MOST_ROWS: usize = 2_000;

/// All of `count` rows, or a random part of them, ascending.
pub(super) fn sampled_rows(count: usize, context: &Context) -> Vec<usize> {
    let mut sample: Vec<usize> = (0..count).collect();
    if count > MOST_ROWS {
        Generator::new(context.seed()).shuffle(&mut sample);
        sample.truncate(MOST_ROWS);
        sample.sort_unstable();
    }
    sample
}

/// Parzen windows around some rows, and the rows to evaluate them at.
pub(super) struct LeftOut<'a> {
    rows: &'a Matrix,
    queries: &'a Matrix,
    /// The place of each among the windows, where it has one.
    own: Vec<Option<usize>>,
    /// Squared distance of the nearest other row.
    nearest: Vec<f64>,
    context: &'a Context,
}

impl<'a> LeftOut<'a> {
    pub(super) fn new(
        rows: &'a Matrix,
        queries: &'a Matrix,
        own: Vec<Option<usize>>,
        context: &'a Context,
    ) -> Result<Self> {
        let finder = Finder::new(rows, NeighbourSearch::Auto, 2, context)?;
        let mut nearest = vec![f64::INFINITY; own.len()];
        finder.nearest(queries, 0..own.len(), rows.rows().min(2), context, |i, found| {
            if let Some(other) = found.iter().find(|&&(_, row)| Some(row) != own[i]) {
                nearest[i] = other.0;
            }
        })?;
        Ok(Self { rows, queries, own, nearest, context })
    }

    /// ln Σ of the windows of one width for every query; −∞ where there is no other row.
    pub(super) fn log_sums(&self, width: f64) -> Result<Vec<f64>> {
        self.context.checkpoint()?;
        let gamma = 0.5 / (width * width);
        let kernel = Kernel::Gaussian { gamma };
        let blocks = KernelBlocks::<f64>::new(&kernel, self.rows, None, self.context)?;
        let count = blocks.len();
        let part = |start: usize| -> Result<Vec<f64>> {
            let range = start..(start + BLOCK_ROWS).min(self.own.len());
            let queries = blocks.prepare(self.queries, range.clone())?;
            let mut values = vec![0.0; range.len() * count];
            blocks.query_block(&queries, 0..range.len(), 0..count, &mut values, count);
            let sums = values.chunks_exact_mut(count).zip(range).map(|(row, query)| {
                if let Some(own) = self.own[query] {
                    row[own] = 0.0;
                }
                let total: f64 = row.iter().sum();
                if total > 0.0 { total.ln() } else { -gamma * self.nearest[query] }
            });
            Ok(sums.collect())
        };
        let parts: Vec<Vec<f64>> =
            self.context.try_map((0..self.own.len()).step_by(BLOCK_ROWS), part)?;
        Ok(parts.concat())
    }

    /// The width with the largest likelihood, by golden sections of ln σ.
    pub(super) fn likeliest(&self, start: f64, deviation: f64) -> Result<f64> {
        let (mut low, mut high) = ((start * 1e-2).ln(), (start.max(deviation) * 4.0).ln());
        let golden = 0.5 * (5.0_f64.sqrt() - 1.0);
        let mut inner = [high - golden * (high - low), low + golden * (high - low)];
        let mut values = [self.likelihood(inner[0].exp())?, self.likelihood(inner[1].exp())?];
        for _ in 0..STEPS {
            if values[0] >= values[1] {
                high = inner[1];
                inner = [high - golden * (high - low), inner[0]];
                values = [self.likelihood(inner[0].exp())?, values[0]];
            } else {
                low = inner[0];
                inner = [inner[1], low + golden * (high - low)];
                values = [values[1], self.likelihood(inner[1].exp())?];
            }
        }
        Ok((0.5 * (low + high)).exp())
    }

    /// Mean ln density of the queries, up to a constant.
    fn likelihood(&self, width: f64) -> Result<f64> {
        let mean = self.log_sums(width)?.iter().sum::<f64>() / self.own.len() as f64;
        Ok(mean - self.rows.columns() as f64 * width.ln())
    }
}
