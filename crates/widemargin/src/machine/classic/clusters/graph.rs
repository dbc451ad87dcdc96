//! The graph of spectral clustering: similarities of rows, divided by the roots of their degrees.

use super::super::NeighbourSearch;
use super::super::neighbours::Finder;
use super::spectral::Affinity;
use crate::context::Context;
use crate::data::{Matrix, memory};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, KernelBlocks};
use crate::numeric::simd::{Weights, multiply};

/// Rows computed or multiplied by one task.
const TASK_ROWS: usize = 64;

/// Rows whose neighbours are searched between two checks of the time.
const SEARCHED_ROWS: usize = 256;

/// D^(−½) A D^(−½) with an empty diagonal.
pub(super) struct Graph {
    edges: Edges,
    pub(super) degrees: Vec<f64>,
}

enum Edges {
    /// Every pair, row by row.
    All(Vec<f32>),
    /// Neighbours of every row.
    Few { starts: Vec<usize>, ends: Vec<u32>, values: Vec<f64> },
}

impl Graph {
    pub(super) fn new(rows: &Matrix, affinity: Affinity, context: &Context) -> Result<Self> {
        match affinity {
            Affinity::Gaussian { gamma } => Self::gaussian(rows, gamma, context),
            Affinity::Neighbours { count } => Self::neighbours(rows, count, context),
        }
    }

    fn gaussian(rows: &Matrix, gamma: f64, context: &Context) -> Result<Self> {
        let n = rows.rows();
        let what = || "a table of all similarities (take the neighbours' graph instead)".into();
        memory::check(what, n as u128 * n as u128 * 4)?;
        let blocks = KernelBlocks::<f32>::new(&Kernel::Gaussian { gamma }, rows, None, context)?;
        let mut values = vec![0.0_f32; n * n];
        let compute = |(task, out): (usize, &mut [f32])| -> Vec<f64> {
            let first = task * TASK_ROWS;
            let left: Vec<usize> = (first..first + out.len() / n).collect();
            blocks.query_block(&blocks.gather(&left), 0..left.len(), 0..n, out, n);
            let rows = out.chunks_exact_mut(n).enumerate();
            rows.map(|(i, row)| {
                row[first + i] = 0.0;
                row.iter().map(|v| f64::from(*v)).sum()
            })
            .collect()
        };
        let degrees: Vec<f64> = each_task(&mut values, n, context, compute)?.concat();
        let scales: Vec<f32> = degrees.iter().map(|&degree| inverse_root(degree) as f32).collect();
        let scale = |(task, out): (usize, &mut [f32])| {
            for (i, row) in out.chunks_exact_mut(n).enumerate() {
                let own = scales[task * TASK_ROWS + i];
                row.iter_mut().zip(&scales).for_each(|(value, other)| *value *= own * other);
            }
        };
        each_task(&mut values, n, context, scale)?;
        Ok(Self { edges: Edges::All(values), degrees })
    }

    fn neighbours(rows: &Matrix, count: usize, context: &Context) -> Result<Self> {
        let n = rows.rows();
        if count == 0 || count >= n {
            let expected = format!("at least 1 and fewer than the {n} rows");
            return Err(Error::parameter("neighbours", expected, count));
        }
        let finder = Finder::new(rows, NeighbourSearch::Auto, count + 1, context)?;
        let mut edges: Vec<(u32, u32)> = Vec::with_capacity(2 * n * count);
        for start in (0..n).step_by(SEARCHED_ROWS) {
            context.checkpoint()?;
            let range = start..(start + SEARCHED_ROWS).min(n);
            finder.nearest(rows, range, count + 1, context, |i, found| {
                for &(_, j) in found.iter().filter(|&&(_, j)| j != i).take(count) {
                    edges.push((i as u32, j as u32));
                    edges.push((j as u32, i as u32));
                }
            })?;
        }
        edges.sort_unstable();
        let (mut starts, mut ends, mut values) = (vec![0], Vec::new(), Vec::new());
        for run in edges.chunk_by(|a, b| a == b) {
            while starts.len() <= run[0].0 as usize {
                starts.push(ends.len());
            }
            ends.push(run[0].1);
            // An edge in both directions counts 1, in one ½.
            values.push(0.5 * run.len() as f64);
        }
        starts.resize(n + 1, ends.len());
        let degrees: Vec<f64> =
            starts.windows(2).map(|run| values[run[0]..run[1]].iter().sum()).collect();
        for i in 0..n {
            for at in starts[i]..starts[i + 1] {
                values[at] *= inverse_root(degrees[i]) * inverse_root(degrees[ends[at] as usize]);
            }
        }
        Ok(Self { edges: Edges::Few { starts, ends, values }, degrees })
    }

    /// The products with some vectors.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the context asks to stop.
    pub(super) fn multiply(
        &self,
        vectors: &[Vec<f64>],
        context: &Context,
    ) -> Result<Vec<Vec<f64>>> {
        let (n, count) = (self.degrees.len(), vectors.len());
        let mut products = vec![vec![0.0; n]; count];
        match &self.edges {
            Edges::All(values) => {
                let flat = vectors.iter().flatten().map(|v| *v as f32).collect();
                let weights = Weights::new(n, flat);
                let part = |rows: &[f32]| {
                    let mut out = vec![0.0; rows.len() / n * count];
                    if context.stop_request().is_none() {
                        multiply(context.instruction_set(), rows, n, &weights, 0, n, &mut out);
                    }
                    out
                };
                let size = TASK_ROWS * n;
                let parts: Vec<Vec<f64>> = context.map(values.chunks(size), part);
                for (i, row) in parts.concat().chunks_exact(count).enumerate() {
                    products.iter_mut().zip(row).for_each(|(product, value)| product[i] = *value);
                }
            }
            Edges::Few { starts, ends, values } => {
                for (product, vector) in products.iter_mut().zip(vectors) {
                    context.checkpoint()?;
                    for i in 0..n {
                        let run = starts[i]..starts[i + 1];
                        let terms = values[run.clone()].iter().zip(&ends[run]);
                        product[i] = terms.map(|(value, &j)| value * vector[j as usize]).sum();
                    }
                }
            }
        }
        context.checkpoint()?;
        Ok(products)
    }

    /// Calls `visit(j, similarity)` for the edges of row i, degrees undone.
    pub(super) fn each_edge(&self, i: usize, mut visit: impl FnMut(usize, f64)) {
        let scale = |j: usize| (self.degrees[i] * self.degrees[j]).sqrt();
        match &self.edges {
            Edges::All(values) => {
                let n = self.degrees.len();
                for (j, value) in values[i * n..(i + 1) * n].iter().enumerate() {
                    visit(j, f64::from(*value) * scale(j));
                }
            }
            Edges::Few { starts, ends, values } => {
                for at in starts[i]..starts[i + 1] {
                    let j = ends[at] as usize;
                    visit(j, values[at] * scale(j));
                }
            }
        }
    }
}

/// Runs of rows of a table, in order, on the threads of the context, until it asks to stop.
fn each_task<R: Send>(
    values: &mut [f32],
    columns: usize,
    context: &Context,
    task: impl Fn((usize, &mut [f32])) -> R + Sync + Send,
) -> Result<Vec<R>> {
    let size = TASK_ROWS * columns;
    context.try_map(values.chunks_mut(size).enumerate(), |part| {
        context.checkpoint()?;
        Ok(task(part))
    })
}

/// 1 / √value; rows without edges stay without.
pub(super) fn inverse_root(value: f64) -> f64 {
    if value > 0.0 { 1.0 / value.sqrt() } else { 0.0 }
}
