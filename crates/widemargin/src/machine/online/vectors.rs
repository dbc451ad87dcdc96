//! Vectors in slots, packed for the kernel in chunks.
//!
//! A slot that was given up may be filled again; a chunk is packed anew when it is next needed, so
//! that many slots may change at the cost of one packing.

use std::ops::Range;

use crate::data::Matrix;
use crate::error::Result;
use crate::kernel::{Kernel, KernelBlocks};
use crate::numeric::InstructionSet;
use crate::numeric::parallel::{self, Threads};
use crate::numeric::simd::Real;

/// Slots packed together.
const CHUNK: usize = 256;

/// Feature products from which several threads are worth their trouble.
const PARALLEL: f64 = 4e6;

/// Vectors in slots.
pub(super) struct Vectors<T: Real> {
    kernel: Kernel,
    set: InstructionSet,
    /// Whether chunks are shared out among the threads of the pool at work.
    parallel: bool,
    chunks: Vec<Chunk<T>>,
    slots: usize,
    /// About how many feature products a kernel value costs.
    products: f64,
}

struct Chunk<T: Real> {
    vectors: Matrix,
    /// Places filled since the vectors were packed.
    fresh: Vec<(usize, Matrix)>,
    blocks: Option<KernelBlocks<T>>,
}

impl<T: Real> Vectors<T> {
    pub(super) fn new(kernel: Kernel, set: InstructionSet, parallel: bool) -> Self {
        Self { kernel, set, parallel, chunks: Vec::new(), slots: 0, products: 1.0 }
    }

    /// The SIMD path in force.
    pub(super) fn instruction_set(&self) -> InstructionSet {
        self.set
    }

    /// The kernel.
    pub(super) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// About how many feature products a kernel value costs.
    pub(super) fn products(&self) -> f64 {
        self.products
    }

    /// The kernel matrix among the rows of a table.
    pub(super) fn among(&self, rows: &Matrix) -> Result<Vec<Vec<T>>> {
        let blocks = KernelBlocks::<T>::on_cpu(&self.kernel, rows, None, self.set)?;
        let count = rows.rows();
        let mut out = vec![vec![T::ZERO; count]; count];
        let mut parts: Vec<&mut [T]> = out.iter_mut().map(Vec::as_mut_slice).collect();
        blocks.block(&(0..count).collect::<Vec<_>>(), 0..count, &mut parts);
        for (k, own) in blocks.diagonal().iter().enumerate() {
            out[k][k] = *own;
        }
        Ok(out)
    }

    /// Kernel values of rows `range` of a table against all slots, row after row.
    pub(super) fn query(&mut self, table: &Matrix, range: Range<usize>) -> Result<Vec<Vec<T>>> {
        self.pack()?;
        let count = range.len();
        let of_chunk = |chunk: &Chunk<T>| {
            let Some(blocks) = &chunk.blocks else { return Ok(Vec::new()) };
            let queries = blocks.prepare(table, range.clone())?;
            let mut out = vec![T::ZERO; count * blocks.len()];
            let mut parts: Vec<&mut [T]> = out.chunks_exact_mut(blocks.len()).collect();
            blocks.query_rows(&queries, 0..count, 0..blocks.len(), &mut parts);
            Ok(out)
        };
        let worth = (count * self.slots) as f64 * self.products >= PARALLEL;
        let parts: Vec<Vec<T>> = parallel::try_map(
            Threads::of_current_pool(self.parallel && worth),
            &self.chunks,
            of_chunk,
        )?;
        let row = |k: usize| {
            let mut row = Vec::with_capacity(self.slots + 1);
            for part in &parts {
                let width = part.len() / count;
                row.extend_from_slice(&part[k * width..(k + 1) * width]);
            }
            row
        };
        Ok((0..count).map(row).collect())
    }

    /// Puts a vector, a table of one row, into a slot that exists or into the next.
    pub(super) fn fill(&mut self, slot: usize, vector: Matrix) {
        if slot / CHUNK == self.chunks.len() {
            let vectors = vector.select_rows(&[]);
            self.chunks.push(Chunk { vectors, fresh: Vec::new(), blocks: None });
        }
        self.slots = self.slots.max(slot + 1);
        self.chunks[slot / CHUNK].fresh.push((slot % CHUNK, vector));
    }

    /// Gives all vectors `columns` features, zero beyond those they had.
    pub(super) fn widen(&mut self, columns: usize) -> Result<()> {
        self.compact()?;
        for chunk in &mut self.chunks {
            chunk.vectors = chunk.vectors.clone().resized_columns(columns);
            chunk.blocks = None;
        }
        Ok(())
    }

    /// The vector in a slot, as a table of one row.
    pub(super) fn get(&self, slot: usize) -> Matrix {
        let chunk = &self.chunks[slot / CHUNK];
        let fresh = chunk.fresh.iter().rev().find(|(place, _)| *place == slot % CHUNK);
        match fresh {
            Some((_, vector)) => vector.clone(),
            None => chunk.vectors.select_rows(&[slot % CHUNK]),
        }
    }

    /// The vectors in the named slots, ascending.
    pub(super) fn select(&self, slots: &[usize]) -> Result<Option<Matrix>> {
        let mut table: Option<Matrix> = None;
        // Whole chunks are joined at a time: joining row by row would copy quadratically.
        for (c, chunk) in self.chunks.iter().enumerate() {
            let here: Vec<usize> =
                slots.iter().filter(|&&s| s / CHUNK == c).map(|s| s % CHUNK).collect();
            if here.is_empty() {
                continue;
            }
            let part = chunk.compacted()?.select_rows(&here);
            table = Some(match table {
                Some(table) => table.stacked(&part)?,
                None => part,
            });
        }
        Ok(table)
    }

    fn pack(&mut self) -> Result<()> {
        self.compact()?;
        if let [first, ..] = &self.chunks[..]
            && first.blocks.is_none()
        {
            self.products = (first.vectors.columns() as f64 * first.vectors.density()).max(1.0);
        }
        for chunk in self.chunks.iter_mut().filter(|chunk| chunk.blocks.is_none()) {
            chunk.blocks =
                Some(KernelBlocks::on_cpu(&self.kernel, &chunk.vectors, None, self.set)?);
        }
        Ok(())
    }

    /// Makes the vectors filled since the last call part of their chunks.
    fn compact(&mut self) -> Result<()> {
        for chunk in self.chunks.iter_mut().filter(|chunk| !chunk.fresh.is_empty()) {
            chunk.vectors = chunk.compacted()?;
            chunk.fresh.clear();
            chunk.blocks = None;
        }
        Ok(())
    }
}

impl<T: Real> Chunk<T> {
    /// The vectors with those filled since they were packed.
    fn compacted(&self) -> Result<Matrix> {
        let old = self.vectors.rows();
        let mut order: Vec<usize> = (0..old).collect();
        let mut joined = self.vectors.select_rows(&[]);
        for (k, (place, vector)) in self.fresh.iter().enumerate() {
            order.resize(order.len().max(place + 1), 0);
            order[*place] = old + k;
            joined = joined.stacked(vector)?;
        }
        Ok(self.vectors.stacked(&joined)?.select_rows(&order))
    }
}
