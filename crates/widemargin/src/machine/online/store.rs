//! The vectors of support patterns and the kernel values among them.
//!
//! Vectors live in slots, packed for the kernel in chunks; a slot that was given up is used again.
//! Rows of the kernel matrix among slots are kept as memory allows and stay complete: whoever enters
//! brings the values against all others along.

use crate::data::Matrix;
use crate::error::Result;
use crate::kernel::{InstructionSet, Kernel, KernelBlocks, Real};

/// Slots packed together.
const CHUNK: usize = 128;

/// Vectors in slots.
pub(super) struct Store<T: Real> {
    kernel: Kernel,
    set: InstructionSet,
    chunks: Vec<Chunk<T>>,
    /// Kernel rows against all slots, where kept.
    rows: Vec<Option<Vec<T>>>,
    /// When each row was last used.
    used: Vec<u64>,
    clock: u64,
    free: Vec<usize>,
    held: usize,
    cache_bytes: usize,
    computed: u64,
}

struct Chunk<T: Real> {
    vectors: Matrix,
    density: f64,
    blocks: KernelBlocks<T>,
}

impl<T: Real> Store<T> {
    /// An empty store whose rows take at most about `cache_bytes`.
    pub(super) fn new(kernel: Kernel, set: InstructionSet, cache_bytes: usize) -> Self {
        Self {
            kernel,
            set,
            chunks: Vec::new(),
            rows: Vec::new(),
            used: Vec::new(),
            clock: 0,
            free: Vec::new(),
            held: 0,
            cache_bytes,
            computed: 0,
        }
    }

    /// Number of slots, free ones included.
    pub(super) fn slots(&self) -> usize {
        self.rows.len()
    }

    /// Kernel values computed so far.
    pub(super) fn computed(&self) -> u64 {
        self.computed
    }

    /// The SIMD path in force.
    pub(super) fn instruction_set(&self) -> InstructionSet {
        self.set
    }

    /// About how many feature products a kernel value costs.
    pub(super) fn products(&self) -> f64 {
        self.chunks.first().map_or(1.0, |chunk| chunk.vectors.columns() as f64 * chunk.density)
    }

    /// Kernel values of rows `range` of a table against all slots, row after row, and of each row
    /// with itself.
    pub(super) fn query(
        &mut self,
        table: &Matrix,
        range: std::ops::Range<usize>,
    ) -> Result<(Vec<Vec<T>>, Vec<T>)> {
        let count = range.len();
        let mut out = vec![vec![T::ZERO; self.slots()]; count];
        let mut own = None;
        for (c, chunk) in self.chunks.iter().enumerate() {
            let queries = chunk.blocks.prepare(table, range.clone())?;
            let width = chunk.blocks.len();
            let start = c * CHUNK;
            let mut parts: Vec<&mut [T]> =
                out.iter_mut().map(|row| &mut row[start..start + width]).collect();
            chunk.blocks.query_rows(&queries, 0..count, 0..width, &mut parts);
            if own.is_none() {
                own = Some(queries.self_similarities()?.to_vec());
            }
        }
        self.computed += (count * self.slots()) as u64;
        let own = match own {
            Some(own) => own,
            None => {
                let rows: Vec<usize> = range.collect();
                let blocks = KernelBlocks::<T>::new(&self.kernel, table, Some(&rows), self.set)?;
                blocks.diagonal().to_vec()
            }
        };
        Ok((out, own))
    }

    /// Takes row `index` of a table into a slot; `row` holds its kernel values against all slots.
    pub(super) fn insert(
        &mut self,
        table: &Matrix,
        index: usize,
        row: &[T],
        own: T,
    ) -> Result<usize> {
        let vector = table.select_rows(&[index]);
        let slot = match self.free.pop() {
            Some(slot) => {
                let (c, at) = (slot / CHUNK, slot % CHUNK);
                let chunk = &self.chunks[c];
                let keep: Vec<usize> = (0..chunk.vectors.rows()).collect();
                let vectors = replace_row(&chunk.vectors, &keep, at, &vector)?;
                self.chunks[c] = self.pack(vectors)?;
                slot
            }
            None => {
                let slot = self.slots();
                let vectors = match self.chunks.last() {
                    Some(chunk) if chunk.vectors.rows() < CHUNK => {
                        let chunk = self.chunks.pop().map(|chunk| chunk.vectors);
                        match chunk {
                            Some(vectors) => stack(&vectors, &vector)?,
                            None => vector,
                        }
                    }
                    _ => vector,
                };
                let packed = self.pack(vectors)?;
                self.chunks.push(packed);
                self.rows.push(None);
                self.used.push(0);
                for held in self.rows.iter_mut().flatten() {
                    held.push(T::ZERO);
                }
                slot
            }
        };
        for (other, held) in self.rows.iter_mut().enumerate() {
            if let Some(held) = held {
                held[slot] = row.get(other).copied().unwrap_or(T::ZERO);
            }
        }
        let mut complete = row.to_vec();
        complete.resize(self.slots(), T::ZERO);
        complete[slot] = own;
        self.keep(slot, complete);
        Ok(slot)
    }

    /// Gives all vectors `columns` features, zero beyond those they had.
    pub(super) fn widen(&mut self, columns: usize) -> Result<()> {
        for c in 0..self.chunks.len() {
            let vectors = self.chunks[c].vectors.clone().resized_columns(columns);
            self.chunks[c] = self.pack(vectors)?;
        }
        Ok(())
    }

    /// Gives a slot up.
    pub(super) fn remove(&mut self, slot: usize) {
        if self.rows[slot].take().is_some() {
            self.held -= 1;
        }
        self.free.push(slot);
    }

    /// The kernel row of a slot against all slots.
    pub(super) fn row(&mut self, slot: usize) -> Result<&[T]> {
        if self.rows[slot].is_none() {
            let vector = self.vector(slot);
            let (mut rows, _) = self.query(&vector, 0..1)?;
            self.keep(slot, rows.swap_remove(0));
        }
        self.clock += 1;
        self.used[slot] = self.clock;
        Ok(self.rows[slot].as_deref().unwrap_or(&[]))
    }

    /// The vector in a slot, as a table of one row.
    pub(super) fn vector(&self, slot: usize) -> Matrix {
        self.chunks[slot / CHUNK].vectors.select_rows(&[slot % CHUNK])
    }

    /// The vectors in the named slots.
    pub(super) fn vectors(&self, slots: &[usize]) -> Result<Option<Matrix>> {
        let mut table: Option<Matrix> = None;
        // Whole chunks are joined at a time: joining row by row would copy quadratically.
        for (c, chunk) in self.chunks.iter().enumerate() {
            let here: Vec<usize> =
                slots.iter().filter(|&&s| s / CHUNK == c).map(|s| s % CHUNK).collect();
            if here.is_empty() {
                continue;
            }
            let part = chunk.vectors.select_rows(&here);
            table = Some(match table {
                Some(table) => stack(&table, &part)?,
                None => part,
            });
        }
        Ok(table)
    }

    fn pack(&self, vectors: Matrix) -> Result<Chunk<T>> {
        let blocks = KernelBlocks::new(&self.kernel, &vectors, None, self.set)?;
        let density = vectors.density();
        Ok(Chunk { vectors, density, blocks })
    }

    /// Keeps a row, dropping the one not used for longest while too many are held.
    fn keep(&mut self, slot: usize, row: Vec<T>) {
        if self.rows[slot].is_none() {
            self.held += 1;
        }
        self.rows[slot] = Some(row);
        self.clock += 1;
        self.used[slot] = self.clock;
        let most = (self.cache_bytes / (size_of::<T>() * self.slots().max(1))).max(2);
        while self.held > most {
            let oldest = (0..self.slots())
                .filter(|&s| s != slot && self.rows[s].is_some())
                .min_by_key(|&s| self.used[s]);
            let Some(oldest) = oldest else { break };
            self.rows[oldest] = None;
            self.held -= 1;
        }
    }
}

/// Two tables of the same storage, one below the other.
pub(super) fn stack(above: &Matrix, below: &Matrix) -> Result<Matrix> {
    above.stacked(below)
}

fn replace_row(table: &Matrix, keep: &[usize], at: usize, row: &Matrix) -> Result<Matrix> {
    let joined = stack(table, row)?;
    let order: Vec<usize> = keep.iter().map(|&i| if i == at { table.rows() } else { i }).collect();
    Ok(joined.select_rows(&order))
}
