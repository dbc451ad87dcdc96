//! Features of every candidate, a table each, and the rows that they are under a set of weights.
//!
//! With features φᵢ of kernel i and fᵢ = n / Σ‖φᵢ(x)‖², which makes the trace of every approximated kernel the
//! number of rows, the rows of K(µ) are √(µᵢfᵢ) φᵢ(x) side by side. Kernels of weight 0 are not read.

use std::ops::Range;

use crate::context::Context;
use crate::data::{Dense, Matrix, memory};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, KernelFeatures, MapRule};
use crate::numeric::InstructionSet;
use crate::numeric::algebra::dot;
use crate::solver::linear::rows::{DenseRows, LinearRows};

/// Rows mapped by one task.
const TASK_ROWS: usize = 256;

/// The features of all rows, kernel by kernel.
pub(super) struct FeatureTables {
    pub(super) maps: Vec<KernelFeatures>,
    tables: Vec<Dense<f32>>,
    /// ‖φᵢ(x)‖² of every row.
    squares: Vec<Vec<f64>>,
    /// fᵢ
    pub(super) factors: Vec<f64>,
    set: InstructionSet,
}

impl FeatureTables {
    /// Learns the maps on all rows of a table and maps these.
    ///
    /// # Errors
    /// [`Error::Kernel`] for a kernel without features or of zeros on the rows; [`Error::TooLarge`] when there is no
    /// memory for the features; an interruption.
    pub(super) fn new(
        rule: MapRule,
        kernels: &[Kernel],
        features: &Matrix,
        context: &Context,
    ) -> Result<Self> {
        let rows = features.rows();
        let count = match rule {
            MapRule::Fourier(count) => count,
            MapRule::Nystroem(count) => count.min(rows),
        };
        let bytes = 4 * rows as u128 * count as u128 * kernels.len() as u128;
        let what =
            || format!("{count} features of {rows} rows for each of {} kernels", kernels.len());
        memory::check(what, bytes)?;
        let mut found = Self {
            maps: Vec::new(),
            tables: Vec::new(),
            squares: Vec::new(),
            factors: Vec::new(),
            set: context.instruction_set(),
        };
        for (at, kernel) in kernels.iter().enumerate() {
            let map = rule.fit_kernel(features, kernel, at, context)?;
            let table = mapped(&map, features, context)?;
            let square =
                |i: usize| table.row(i).iter().map(|v| f64::from(*v) * f64::from(*v)).sum();
            let squares: Vec<f64> = (0..rows).map(square).collect();
            let trace: f64 = squares.iter().sum();
            if !(trace > 0.0 && trace.is_finite()) {
                return Err(Error::Kernel {
                    kernel: format!("{} ({kernel})", at + 1),
                    expected: "a positive trace over the rows given".into(),
                    found: trace.to_string(),
                });
            }
            found.factors.push(rows as f64 / trace);
            found.maps.push(map);
            found.tables.push(table);
            found.squares.push(squares);
        }
        Ok(found)
    }

    /// Features of all kernels.
    pub(super) fn width(&self) -> usize {
        self.tables.iter().map(Dense::columns).sum()
    }

    /// Where the features of every kernel are among those of all.
    pub(super) fn spans(&self) -> Vec<Range<usize>> {
        let mut end = 0;
        let span = |table: &Dense<f32>| {
            end += table.columns();
            end - table.columns()..end
        };
        self.tables.iter().map(span).collect()
    }

    /// The rows `order` with the features of every kernel times its scale, without those of scale 0, and a
    /// constant feature at the end.
    pub(super) fn rows<'a>(
        &'a self,
        scales: &[f64],
        order: &'a [usize],
        bias: Option<f64>,
    ) -> BlockRows<'a> {
        let used = || (0..self.tables.len()).filter(|&b| scales[b] != 0.0);
        let mut squares = vec![bias.map_or(0.0, |bias| bias * bias); order.len()];
        for b in used() {
            let scale = scales[b] * scales[b];
            let own = order.iter().map(|&row| self.squares[b][row]);
            squares.iter_mut().zip(own).for_each(|(square, own)| *square += scale * own);
        }
        let mut end = 0;
        let block = |b: usize| {
            let table = &self.tables[b];
            end += table.columns();
            let columns = end - table.columns()..end;
            Block { scale: scales[b], columns, rows: DenseRows::new(table, None, self.set) }
        };
        let blocks: Vec<Block<'a>> = used().map(block).collect();
        BlockRows {
            width: blocks.last().map_or(0, |last| last.columns.end),
            blocks,
            order,
            squares,
            bias,
        }
    }

    /// ½ fᵢ‖uᵢ‖² of every kernel, for a sum u of features of all kernels.
    pub(super) fn forms(&self, sums: &[f64]) -> Vec<f64> {
        let form = |(span, factor): (Range<usize>, &f64)| {
            0.5 * factor * dot(&sums[span.clone()], &sums[span])
        };
        self.spans().into_iter().zip(&self.factors).map(form).collect()
    }

    /// The weights of the rows under `scales` whose sum over all kernels is `sums`.
    pub(super) fn weights(&self, scales: &[f64], sums: &[f64]) -> Vec<f64> {
        let used = self.spans().into_iter().zip(scales).filter(|(_, scale)| **scale != 0.0);
        used.flat_map(|(span, scale)| sums[span].iter().map(move |sum| scale * sum)).collect()
    }
}

/// The features of all rows.
fn mapped(map: &KernelFeatures, features: &Matrix, context: &Context) -> Result<Dense<f32>> {
    let (rows, width) = (features.rows(), map.outputs());
    if width == 0 {
        return Dense::new(rows, 0, Vec::new());
    }
    let ready = map.prepare(context)?;
    let what = || format!("{width} features of {rows} rows");
    memory::check(what, 4 * rows as u128 * width as u128)?;
    let mut values = vec![0.0_f32; rows * width];
    let task = |(t, out): (usize, &mut [f32])| {
        context.checkpoint()?;
        let start = t * TASK_ROWS;
        ready.write(features, start..start + out.len() / width, out, width)
    };
    context.try_for_each(values.chunks_mut(TASK_ROWS * width).enumerate(), task)?;
    Dense::new(rows, width, values)
}

struct Block<'a> {
    scale: f64,
    columns: Range<usize>,
    rows: DenseRows<'a, f32>,
}

/// Rows of several tables side by side, each times a scale.
pub(super) struct BlockRows<'a> {
    blocks: Vec<Block<'a>>,
    /// Which row of the tables every row is.
    order: &'a [usize],
    /// ‖x‖² of every row.
    squares: Vec<f64>,
    width: usize,
    bias: Option<f64>,
}

impl LinearRows for BlockRows<'_> {
    fn rows(&self) -> usize {
        self.order.len()
    }

    fn width(&self) -> usize {
        self.width + usize::from(self.bias.is_some())
    }

    fn nonzeros(&self) -> usize {
        self.order.len() * self.width
    }

    #[inline]
    fn dot(&self, i: usize, weights: &[f64]) -> f64 {
        let row = self.order[i];
        let mut sum = self.bias.map_or(0.0, |bias| bias * weights[self.width]);
        for block in &self.blocks {
            sum += block.scale * block.rows.dot(row, &weights[block.columns.clone()]);
        }
        sum
    }

    #[inline]
    fn add(&self, i: usize, factor: f64, weights: &mut [f64]) {
        let row = self.order[i];
        if let Some(bias) = self.bias {
            weights[self.width] += factor * bias;
        }
        for block in &self.blocks {
            block.rows.add(row, factor * block.scale, &mut weights[block.columns.clone()]);
        }
    }

    fn prefetch(&self, i: usize) {
        if let Some(&row) = self.order.get(i) {
            self.blocks.iter().for_each(|block| block.rows.prefetch(row));
        }
    }

    #[inline(always)]
    fn visit(&self, i: usize, mut visit: impl FnMut(usize, f64)) {
        let row = self.order[i];
        for block in &self.blocks {
            block.rows.visit(row, |j, value| visit(block.columns.start + j, block.scale * value));
        }
        if let Some(bias) = self.bias {
            visit(self.width, bias);
        }
    }

    fn squared_norm(&self, i: usize) -> f64 {
        self.squares[i]
    }

    #[inline(always)]
    fn add_pairs(&self, i: usize, factor: f64, matrix: &mut [f64]) {
        let mut row = Vec::with_capacity(self.width());
        self.visit(i, |_, value| row.push(value));
        for (at, line) in matrix.chunks_exact_mut(row.len().max(1)).take(row.len()).enumerate() {
            let own = factor * row[at];
            line.iter_mut().zip(&row[..=at]).for_each(|(sum, other)| *sum += own * other);
        }
    }
}
