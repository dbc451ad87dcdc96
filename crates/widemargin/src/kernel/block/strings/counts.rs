//! String kernels that are products of counts of substrings: Σ_l w_l ⟨c_l(s), c_l(t)⟩ over levels l, with
//! the substrings as nodes of a trie and the counts as rows of a sparse table.

use std::ops::Range;
use std::sync::Arc;

use super::super::{KernelBlocks, PackedRows, Queries, check_range};
use super::patterns::Patterns;
use super::symbols;
use super::trie::{FrozenTrie, Nodes, ROOT, Trie};
use crate::data::{Csr, Matrix};
use crate::error::Result;
use crate::kernel::{Kernel, StringKernel};
use crate::numeric::InstructionSet;
use crate::numeric::simd::Real;

/// Left rows whose levels are held at the same time.
const CHUNK: usize = 64;

/// Strings packed as counts of their substrings.
pub(super) struct Counts<T: Real> {
    substrings: Arc<Substrings>,
    levels: Vec<Level<T>>,
    normalize: bool,
    /// Of a normalised kernel: 1/√K(s, s) of every string, 0 for 0.
    factors: Vec<T>,
    diagonal: Vec<T>,
}

/// The substrings of the packed strings.
struct Substrings {
    name: &'static str,
    patterns: Patterns,
    trie: Trie,
    width: usize,
}

/// Counts of one level.
#[derive(Clone)]
struct Level<T> {
    weight: T,
    blocks: KernelBlocks<T>,
}

/// Left strings of blocks.
struct CountRows<T> {
    levels: Vec<Queries<T>>,
    factors: Vec<T>,
}

/// Rows of counts, level by level, as they are made.
struct Tables {
    levels: Vec<Table>,
    /// The first node that is not known and counts for the length of a row alone.
    unknown: Option<u32>,
}

/// Rows of one level.
#[derive(Clone, Default)]
struct Table {
    /// How often every node was met in the row that is being made, and which were.
    counts: Vec<u32>,
    met: Vec<u32>,
    starts: Vec<usize>,
    nodes: Vec<u32>,
    values: Vec<f64>,
}

impl Table {
    #[inline(always)]
    fn meet(&mut self, node: u32) {
        let node = node as usize;
        if node >= self.counts.len() {
            self.counts.resize((node + 1).next_power_of_two(), 0);
        }
        if self.counts[node] == 0 {
            self.met.push(node as u32);
        }
        self.counts[node] += 1;
    }

    /// Ends a row. Nodes from `unknown` on share that column, with the root of their squared counts, so that
    /// the length of the row is right.
    fn end_row(&mut self, unknown: u32) {
        self.met.sort_unstable();
        let mut elsewhere = 0.0;
        for node in self.met.drain(..) {
            let count = f64::from(std::mem::take(&mut self.counts[node as usize]));
            if node >= unknown {
                elsewhere += count * count;
            } else {
                self.nodes.push(node);
                self.values.push(count);
            }
        }
        if elsewhere > 0.0 {
            self.nodes.push(unknown);
            self.values.push(f64::sqrt(elsewhere));
        }
        self.starts.push(self.nodes.len());
    }
}

impl Tables {
    fn new(levels: usize, unknown: Option<u32>) -> Self {
        let table = Table { starts: vec![0], ..Table::default() };
        Self { levels: vec![table; levels], unknown }
    }

    /// Adds a row for a string.
    ///
    /// # Errors
    /// Those of [`Nodes::child`].
    fn add(&mut self, patterns: Patterns, string: &[u32], nodes: &mut impl Nodes) -> Result<()> {
        let levels = &mut self.levels;
        patterns.walk(string, nodes, &mut |level, node| levels[level].meet(node))?;
        let unknown = self.unknown.unwrap_or(u32::MAX);
        self.levels.iter_mut().for_each(|table| table.end_row(unknown));
        Ok(())
    }

    /// The tables, with a column for each node and one for unknown ones.
    fn finish(self, nodes: u32) -> Result<Vec<Matrix>> {
        let columns = nodes as usize + 1;
        let table = |table: Table| {
            Csr::new(columns, table.starts, table.nodes, table.values).map(Matrix::SparseF64)
        };
        self.levels.into_iter().map(table).collect()
    }
}

impl Substrings {
    /// Counts of the strings of another table, whose substrings need not be known.
    fn count(&self, levels: usize, matrix: &Matrix, rows: &[usize]) -> Result<Vec<Matrix>> {
        let known = self.trie.next();
        let mut tables = Tables::new(levels, Some(known));
        let (mut string, mut others) = (Vec::new(), Trie::new(known));
        for &row in rows {
            symbols(self.name, matrix, row, &mut string)?;
            others.clear();
            let mut nodes = FrozenTrie { trie: &self.trie, others: &mut others };
            tables.add(self.patterns, &string, &mut nodes)?;
        }
        tables.finish(known)
    }
}

impl<T: Real> Counts<T> {
    /// Packs the strings of `matrix` named by `order`.
    ///
    /// # Errors
    /// As [`pack`](super::pack).
    pub(super) fn new(
        kernel: &StringKernel,
        matrix: &Matrix,
        order: &[usize],
        set: InstructionSet,
    ) -> Result<Self> {
        let (patterns, weights) = Patterns::of(kernel);
        let name = kernel.similarity.name();
        let (mut trie, mut string) = (Trie::new(ROOT + 1), Vec::new());
        let mut tables = Tables::new(weights.len(), None);
        for &row in order {
            symbols(name, matrix, row, &mut string)?;
            tables.add(patterns, &string, &mut trie)?;
        }
        let tables = tables.finish(trie.next())?;
        let level = |(table, weight): (&Matrix, f64)| {
            let blocks = KernelBlocks::on_cpu(&Kernel::Linear, table, None, set)?;
            Ok(Level { weight: T::from_f64(weight), blocks })
        };
        let levels: Vec<Level<T>> = tables.iter().zip(weights).map(level).collect::<Result<_>>()?;
        let sums = weighted(&levels, levels.iter().map(|level| level.blocks.diagonal()));
        let sizes = sums.iter().map(|sum| sum.to_f64());
        check_range::<T>(name, order.iter().copied().zip(sizes))?;
        let normalize = kernel.normalize;
        let substrings = Substrings { name, patterns, trie, width: matrix.columns() };
        let (factors, diagonal) = normalised(normalize, sums);
        Ok(Self { substrings: Arc::new(substrings), levels, normalize, factors, diagonal })
    }
}

/// Σ_l w_l v_l of the values of each level.
fn weighted<'a, T: Real>(levels: &[Level<T>], values: impl Iterator<Item = &'a [T]>) -> Vec<T> {
    let mut sums = Vec::new();
    for (level, values) in levels.iter().zip(values) {
        sums.resize(values.len(), T::ZERO);
        add(level.weight, values, &mut sums);
    }
    sums
}

fn add<T: Real>(weight: T, values: &[T], sums: &mut [T]) {
    sums.iter_mut().zip(values).for_each(|(sum, &value)| *sum += weight * value);
}

/// The factors of a normalised kernel and its diagonal, given K(s, s) of every string.
fn normalised<T: Real>(normalize: bool, sums: Vec<T>) -> (Vec<T>, Vec<T>) {
    if !normalize {
        return (Vec::new(), sums);
    }
    let factor = |sum: &T| match sum.to_f64() {
        sum if sum > 0.0 => T::from_f64(1.0 / sum.sqrt()),
        _ => T::ZERO,
    };
    let factors: Vec<T> = sums.iter().map(factor).collect();
    let diagonal = sums.iter().zip(&factors).map(|(&sum, &factor)| sum * (factor * factor));
    let diagonal = diagonal.collect();
    (factors, diagonal)
}

impl<T: Real> PackedRows<T> for Counts<T> {
    fn len(&self) -> usize {
        self.diagonal.len()
    }

    fn columns(&self) -> usize {
        self.substrings.width
    }

    fn diagonal(&self) -> &[T] {
        &self.diagonal
    }

    fn products_per_value(&self) -> usize {
        self.levels.iter().map(|level| level.blocks.products_per_value()).sum()
    }

    fn gather(&self, rows: &[usize]) -> Queries<T> {
        let of = |values: &[T]| rows.iter().map(|&row| values[row]).collect();
        let levels = self.levels.iter().map(|level| level.blocks.gather(rows)).collect();
        let factors = if self.normalize { of(&self.factors) } else { Vec::new() };
        Queries::new(rows.len(), Some(of(&self.diagonal)), CountRows { levels, factors })
    }

    fn prepare(&self, queries: &Matrix, rows: &[usize]) -> Result<Queries<T>> {
        let tables = self.substrings.count(self.levels.len(), queries, rows)?;
        let levels = self.levels.iter().zip(&tables);
        let levels: Vec<Queries<T>> = levels
            .map(|(level, table)| level.blocks.prepare(table, 0..rows.len()))
            .collect::<Result<_>>()?;
        let own = levels.iter().map(Queries::self_similarities).collect::<Result<Vec<_>>>()?;
        let (factors, diagonal) =
            normalised(self.normalize, weighted(&self.levels, own.into_iter()));
        Ok(Queries::new(rows.len(), Some(diagonal), CountRows { levels, factors }))
    }

    fn block(
        &self,
        left: &Queries<T>,
        rows: Range<usize>,
        columns: Range<usize>,
        out: &mut [&mut [T]],
    ) {
        let left: &CountRows<T> = left.packed();
        let width = columns.len();
        let mut scratch = vec![T::ZERO; rows.len().min(CHUNK) * width];
        for (chunk, out) in out.chunks_mut(CHUNK).enumerate() {
            let first = rows.start + chunk * CHUNK;
            let rows = first..first + out.len();
            out.iter_mut().for_each(|row| row.fill(T::ZERO));
            for (level, left) in self.levels.iter().zip(&left.levels) {
                let blocks = &level.blocks;
                blocks.query_block(left, rows.clone(), columns.clone(), &mut scratch, width);
                for (sums, values) in out.iter_mut().zip(scratch.chunks(width.max(1))) {
                    add(level.weight, values, sums);
                }
            }
            if self.normalize {
                for (row, out) in rows.zip(out.iter_mut()) {
                    let (own, others) = (left.factors[row], &self.factors[columns.clone()]);
                    let values = out.iter_mut().zip(others);
                    values.for_each(|(value, &other)| *value = *value * (own * other));
                }
            }
        }
    }

    fn subset(&self, keep: &[usize]) -> Arc<dyn PackedRows<T>> {
        let of = |values: &[T]| keep.iter().map(|&row| values[row]).collect();
        let level =
            |level: &Level<T>| Level { weight: level.weight, blocks: level.blocks.subset(keep) };
        Arc::new(Self {
            substrings: Arc::clone(&self.substrings),
            levels: self.levels.iter().map(level).collect(),
            normalize: self.normalize,
            factors: if self.normalize { of(&self.factors) } else { Vec::new() },
            diagonal: of(&self.diagonal),
        })
    }
}
