//! Windows made ready to answer: the kernel engine sums them, logarithms only where sums vanish.

use std::ops::Range;

use super::super::Windows;
use super::super::distances::Distances;
use super::{NetworkInput, Window};
use crate::context::Context;
use crate::data::Matrix;
use crate::error::Result;
use crate::kernel::{Kernel, KernelBlocks};
use crate::machine::probability::log_sum;
use crate::numeric::algebra::squared_distance;
use crate::numeric::simd::{Weights, multiply};

/// Rows whose windows are held at a time.
const BLOCK_COLUMNS: usize = 512;

/// Sums of Gaussians below this have lost digits and are computed anew from their logarithms.
const SMALLEST_SUM: f64 = 1e-250;

/// A model of windows, ready.
pub(crate) struct Ready {
    window: Window,
    input: NetworkInput,
    classes: Vec<Class>,
}

struct Class {
    engine: Engine,
    width: f64,
    count: usize,
    /// ln(prior / (rows · ∫ window))
    constant: f64,
    /// The rows, for queries far from all of them.
    rows: Matrix,
}

enum Engine {
    Gaussian(KernelBlocks<f64>),
    Other(Distances<f64>),
}

impl Ready {
    pub(in super::super) fn new(
        support: &Matrix,
        part: &Windows,
        counts: &[usize],
        context: &Context,
    ) -> Result<Self> {
        let prepared = part.input.prepare(support)?;
        let mut first = 0;
        let mut classes = Vec::with_capacity(counts.len());
        for (c, &count) in counts.iter().enumerate() {
            let own: Vec<usize> = (first..first + count).collect();
            first += count;
            let rows = prepared.select_rows(&own);
            let width = part.widths[c];
            let engine = match part.window {
                Window::Gaussian => {
                    let kernel = Kernel::Gaussian { gamma: 0.5 / (width * width) };
                    Engine::Gaussian(KernelBlocks::new(&kernel, &rows, None, context)?)
                }
                _ => Engine::Other(Distances::new(&rows, context)?),
            };
            let integral = part.window.log_integral(rows.columns(), width);
            let constant = part.log_priors[c] - (count as f64).ln() - integral;
            classes.push(Class { engine, width, count, constant, rows });
        }
        Ok(Self { window: part.window, input: part.input, classes })
    }

    /// ln(prior · density) of every class.
    pub(in super::super) fn evaluate(
        &self,
        queries: &Matrix,
        range: Range<usize>,
        out: &mut [f64],
        context: &Context,
    ) -> Result<()> {
        let asked = queries.select_rows(&range.clone().collect::<Vec<_>>());
        let asked = self.input.prepare(&asked)?;
        let width = self.classes.len();
        let mut query = vec![0.0; asked.columns()];
        for (c, class) in self.classes.iter().enumerate() {
            let sums = class.sums(&asked, self.window, context)?;
            for (i, sum) in sums.into_iter().enumerate() {
                let logarithm = if sum >= SMALLEST_SUM || self.window != Window::Gaussian {
                    sum.ln()
                } else {
                    asked.copy_row(i, &mut query);
                    class.far(&query)
                };
                out[i * width + c] = class.constant + logarithm;
            }
        }
        Ok(())
    }
}

impl Class {
    /// Σ of the windows for every query.
    fn sums(&self, asked: &Matrix, window: Window, context: &Context) -> Result<Vec<f64>> {
        let rows = asked.rows();
        let stride = self.count.min(BLOCK_COLUMNS);
        let mut block = vec![0.0; rows * stride];
        let mut sums = vec![0.0; rows];
        match &self.engine {
            Engine::Gaussian(blocks) => {
                let queries = blocks.prepare(asked, 0..rows)?;
                let ones = Weights::new(stride, vec![1.0; stride]);
                for start in (0..self.count).step_by(BLOCK_COLUMNS) {
                    let columns = start..(start + BLOCK_COLUMNS).min(self.count);
                    blocks.query_block(&queries, 0..rows, columns.clone(), &mut block, stride);
                    let set = context.instruction_set();
                    multiply(set, &block, stride, &ones, 0, columns.len(), &mut sums);
                }
            }
            Engine::Other(distances) => {
                let measured = distances.measure(asked, 0..rows)?;
                for start in (0..self.count).step_by(BLOCK_COLUMNS) {
                    let columns = start..(start + BLOCK_COLUMNS).min(self.count);
                    distances.products(&measured, columns.clone(), &mut block, stride);
                    let norms = &distances.norms()[columns.clone()];
                    for (i, sum) in sums.iter_mut().enumerate() {
                        let products = &block[i * stride..][..columns.len()];
                        for (product, norm) in products.iter().zip(norms) {
                            let squared = measured.norms[i] + norm - 2.0 * product;
                            *sum += window.value(squared, self.width);
                        }
                    }
                }
            }
        }
        Ok(sums)
    }

    /// ln Σ exp(−‖x − xᵢ‖²/2σ²) of a query far from all rows.
    fn far(&self, query: &[f64]) -> f64 {
        let gamma = 0.5 / (self.width * self.width);
        let mut row = vec![0.0; query.len()];
        let exponents: Vec<f64> = (0..self.count)
            .map(|i| {
                self.rows.copy_row(i, &mut row);
                -gamma * squared_distance(query, &row)
            })
            .collect();
        log_sum(&exponents)
    }
}
