//! A changing set of vectors that gives their similarities to any other.
//!
//! Vectors are packed for the block engine in runs; new ones wait in a short tail until they are
//! enough for a run, and everything is packed anew when most of what is packed is gone.

use super::merge_kernel::MergeKernel;
use crate::context::Context;
use crate::data::{Dense, Matrix};
use crate::error::Result;
use crate::kernel::{Kernel, KernelBlocks};

/// Vectors that wait for being packed.
const UNPACKED_VECTORS: usize = 64;

/// The vectors of one function.
pub(super) struct Store {
    kernel: Kernel,
    columns: usize,
    /// Every vector there ever was; those that are gone are empty.
    vectors: Vec<Vec<f64>>,
    runs: Vec<(KernelBlocks<f64>, Vec<usize>)>,
    tail: Vec<usize>,
    packed: usize,
    alive: usize,
}

impl Store {
    pub(super) fn new(
        rule: &MergeKernel,
        vectors: Vec<Vec<f64>>,
        context: &Context,
    ) -> Result<Self> {
        let columns = vectors.first().map_or(0, Vec::len);
        let alive = vectors.len();
        let tail = (0..alive).collect();
        let kernel = rule.base();
        let runs = Vec::new();
        let mut store = Self { kernel, columns, vectors, runs, tail, packed: 0, alive };
        store.pack(context)?;
        Ok(store)
    }

    /// Vector `v`.
    pub(super) fn vector(&self, v: usize) -> &[f64] {
        &self.vectors[v]
    }

    /// Adds a vector; returns its number.
    pub(super) fn push(&mut self, vector: Vec<f64>, context: &Context) -> Result<usize> {
        let v = self.vectors.len();
        self.vectors.push(vector);
        self.tail.push(v);
        self.alive += 1;
        if self.tail.len() > UNPACKED_VECTORS {
            self.pack(context)?;
        }
        Ok(v)
    }

    /// Forgets vector `v`.
    pub(super) fn remove(&mut self, v: usize) -> Vec<f64> {
        self.alive -= 1;
        std::mem::take(&mut self.vectors[v])
    }

    fn is_alive(&self, v: usize) -> bool {
        !self.vectors[v].is_empty()
    }

    fn pack(&mut self, context: &Context) -> Result<()> {
        let mut run = std::mem::take(&mut self.tail);
        run.retain(|&v| self.is_alive(v));
        if self.alive < self.packed / 2 {
            let packed = std::mem::take(&mut self.runs);
            let mut old: Vec<usize> = packed.into_iter().flat_map(|(_, run)| run).collect();
            old.retain(|&v| self.is_alive(v));
            old.append(&mut run);
            run = old;
            self.packed = 0;
        }
        if run.is_empty() {
            return Ok(());
        }
        let values: Vec<f64> = run.iter().flat_map(|&v| self.vectors[v].iter().copied()).collect();
        let table = Matrix::DenseF64(Dense::new(run.len(), self.columns, values)?);
        self.packed += run.len();
        self.runs.push((KernelBlocks::new(&self.kernel, &table, None, context)?, run));
        Ok(())
    }

    /// The base kernel value of two vectors.
    pub(super) fn similarity(&self, u: usize, v: usize) -> f64 {
        base(&self.kernel, &self.vectors[u], &self.vectors[v])
    }

    /// Calls `visit(v, base)` for every vector, in a fixed order, with the base kernel value of it
    /// and `vector`.
    pub(super) fn for_each(&self, vector: &[f64], mut visit: impl FnMut(usize, f64)) -> Result<()> {
        let query = Matrix::DenseF64(Dense::new(1, self.columns, vector.to_vec())?);
        let mut values = Vec::new();
        for (blocks, run) in &self.runs {
            let queries = blocks.prepare(&query, 0..1)?;
            values.resize(run.len(), 0.0);
            blocks.query_rows(&queries, 0..1, 0..run.len(), &mut [&mut values]);
            for (&v, &base) in run.iter().zip(&values) {
                if self.is_alive(v) {
                    visit(v, base);
                }
            }
        }
        for &v in self.tail.iter().filter(|&&v| self.is_alive(v)) {
            visit(v, base(&self.kernel, &self.vectors[v], vector));
        }
        Ok(())
    }
}

/// What the engine would say of two vectors.
fn base(kernel: &Kernel, u: &[f64], v: &[f64]) -> f64 {
    let pairs = u.iter().zip(v);
    match *kernel {
        Kernel::Gaussian { gamma } => {
            (-gamma * pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f64>()).exp()
        }
        _ => pairs.map(|(a, b)| a * b).sum(),
    }
}
