//! Sums and products of kernels: the blocks of the parts, combined value by value.
//!
//! The parts are shared between copies, so that a sum takes other weights without packing again.

use std::ops::Range;
use std::sync::Arc;

use super::diagonal::WithDiagonal;
use super::of_products::OfProducts;
use super::product_functions::{ProductFunctions, groups};
use super::{KernelBlocks, PackedRows, Queries, check_range};
use crate::data::{Dense, Matrix};
use crate::error::Result;
use crate::numeric::simd::Real;

/// Left rows whose parts are held at the same time, and columns of them: values that stay in the cache.
const CHUNK: usize = 64;
const CHUNK_COLUMNS: usize = 768;

/// How parts combine.
#[derive(Clone)]
pub(super) enum Combination<T> {
    /// Σ wᵢ Kᵢ
    Sum(Vec<T>),
    /// Π Kᵢ
    Product,
}

impl<T: Real> Combination<T> {
    /// Combines values of part `at` with those of the parts before it, if it is not the first.
    fn add(&self, at: usize, first: bool, total: &mut [T], part: &[T]) {
        let pairs = total.iter_mut().zip(part);
        match self {
            Self::Sum(weights) if first => pairs.for_each(|(t, &p)| *t = weights[at] * p),
            Self::Sum(weights) => {
                let weight = weights[at];
                pairs.for_each(|(t, &p)| *t += weight * p);
            }
            Self::Product if first => pairs.for_each(|(t, &p)| *t = p),
            Self::Product => pairs.for_each(|(t, &p)| *t = *t * p),
        }
    }

    /// The parts that count: not those of weight 0.
    fn counting(&self, parts: usize) -> Vec<usize> {
        match self {
            Self::Sum(weights) => (0..parts).filter(|&at| weights[at] != T::ZERO).collect(),
            Self::Product => (0..parts).collect(),
        }
    }

    fn all<'a>(&self, parts: impl Iterator<Item = &'a [T]>) -> Vec<T> {
        let mut total = Vec::new();
        for (at, values) in parts.enumerate() {
            total.resize(values.len(), T::ZERO);
            self.add(at, at == 0, &mut total, values);
        }
        total
    }
}

/// The packed rows of the parts.
pub(super) struct Combined<T: Real> {
    combination: Combination<T>,
    parts: Vec<KernelBlocks<T>>,
    diagonal: Vec<T>,
    /// Parts of a sum that are evaluated together, with the first of them.
    together: Vec<(usize, ProductFunctions<T>)>,
    /// The other parts that count.
    alone: Vec<usize>,
}

impl<T: Real> Combined<T> {
    /// # Errors
    /// [`Error::Overflow`](crate::Error::Overflow) when the combined values overflow.
    pub(super) fn new(
        combination: Combination<T>,
        parts: Vec<KernelBlocks<T>>,
        order: &[usize],
    ) -> Result<Self> {
        let name = match combination {
            Combination::Sum(_) => "sum",
            Combination::Product => "product",
        };
        let combined = Self::with_parts(combination, parts);
        let sizes = combined.diagonal.iter().map(|value| value.to_f64().abs());
        check_range::<T>(name, order.iter().copied().zip(sizes))?;
        Ok(combined)
    }

    /// The parts, each with the weight 1.
    pub(super) fn sum(parts: Vec<KernelBlocks<T>>) -> Self {
        Self::with_parts(Combination::Sum(vec![T::ONE; parts.len()]), parts)
    }

    fn with_parts(combination: Combination<T>, parts: Vec<KernelBlocks<T>>) -> Self {
        let diagonal = combination.all(parts.iter().map(KernelBlocks::diagonal));
        let mut alone = combination.counting(parts.len());
        let mut together = Vec::new();
        if let Combination::Sum(weights) = &combination {
            for members in groups(&parts, &alone) {
                let functions = ProductFunctions::new(&parts, &members, |at| weights[at]);
                alone.retain(|at| members.binary_search(at).is_err());
                together.push((members[0], functions));
            }
        }
        Self { combination, parts, diagonal, together, alone }
    }
}

/// The rows `keep` of a part. Parts that read one table of products read one of those rows, which `tables` holds
/// with the first of these parts.
fn subset_of<T: Real>(
    part: &KernelBlocks<T>,
    keep: &[usize],
    tables: &mut Vec<(KernelBlocks<T>, Dense<T>)>,
) -> KernelBlocks<T> {
    if let Some(own) = part.packed.shared().and_then(|any| any.downcast_ref::<WithDiagonal<T>>()) {
        let inner = subset_of(own.inner(), keep, tables);
        return KernelBlocks { packed: Arc::new(own.over(inner, keep)) };
    }
    let Some(own) = of_products(part) else { return part.subset(keep) };
    let known = tables
        .iter()
        .find(|(other, _)| of_products(other).is_some_and(|other| other.shares_table_with(own)));
    let table = match known {
        Some((_, table)) => table.clone(),
        None => {
            let table = own.table_of(keep);
            tables.push((part.clone(), table.clone()));
            table
        }
    };
    KernelBlocks { packed: Arc::new(own.over(table, keep)) }
}

fn of_products<T: Real>(part: &KernelBlocks<T>) -> Option<&OfProducts<T>> {
    part.packed.shared()?.downcast_ref()
}

impl<T: Real> PackedRows<T> for Combined<T> {
    fn len(&self) -> usize {
        self.parts[0].len()
    }

    fn columns(&self) -> usize {
        self.parts[0].columns()
    }

    fn diagonal(&self) -> &[T] {
        &self.diagonal
    }

    fn products_per_value(&self) -> usize {
        usize::MAX
    }

    fn gather(&self, rows: &[usize]) -> Queries<T> {
        let mut parts: Vec<Queries<T>> = self.parts.iter().map(|part| part.gather(&[])).collect();
        let firsts = self.together.iter().map(|(first, _)| first);
        for &at in firsts.chain(&self.alone) {
            parts[at] = self.parts[at].gather(rows);
        }
        let diagonal = rows.iter().map(|&row| self.diagonal[row]).collect();
        Queries::new(rows.len(), Some(diagonal), parts)
    }

    fn prepare(&self, queries: &Matrix, rows: &[usize]) -> Result<Queries<T>> {
        let parts = self.parts.iter().map(|part| part.prepare_rows(queries, rows));
        let parts: Vec<Queries<T>> = parts.collect::<Result<_>>()?;
        let diagonals: Option<Vec<&[T]>> =
            parts.iter().map(|part| part.diagonal.as_deref()).collect();
        let diagonal = diagonals.map(|parts| self.combination.all(parts.into_iter()));
        Ok(Queries::new(rows.len(), diagonal, parts))
    }

    fn block(
        &self,
        left: &Queries<T>,
        rows: Range<usize>,
        columns: Range<usize>,
        out: &mut [&mut [T]],
    ) {
        let left: &Vec<Queries<T>> = left.packed();
        assert_eq!(left.len(), self.parts.len(), "left rows of the same combination");
        for (place, (first, functions)) in self.together.iter().enumerate() {
            let lefts: &Vec<usize> = left[*first].packed();
            let mut sum = vec![T::ZERO; if place == 0 { 0 } else { columns.len() }];
            for (&row, out) in lefts[rows.clone()].iter().zip(&mut *out) {
                if place == 0 {
                    functions.sum_of_row(row, columns.clone(), out);
                    continue;
                }
                functions.sum_of_row(row, columns.clone(), &mut sum);
                out.iter_mut().zip(&sum).for_each(|(total, value)| *total += *value);
            }
        }
        if self.alone.is_empty() {
            if self.together.is_empty() {
                out.iter_mut().for_each(|row| row.fill(T::ZERO));
            }
            return;
        }
        let mut scratch = vec![T::ZERO; rows.len().min(CHUNK) * columns.len().min(CHUNK_COLUMNS)];
        for (chunk, out) in out.chunks_mut(CHUNK).enumerate() {
            let first = rows.start + chunk * CHUNK;
            let rows = first..first + out.len();
            for from in columns.clone().step_by(CHUNK_COLUMNS) {
                let part_columns = from..(from + CHUNK_COLUMNS).min(columns.end);
                let (start, width) = (from - columns.start, part_columns.len());
                for (place, &at) in self.alone.iter().enumerate() {
                    let (part, own) = (&self.parts[at], part_columns.clone());
                    part.query_block(&left[at], rows.clone(), own, &mut scratch, width);
                    for (total, values) in out.iter_mut().zip(scratch.chunks(width)) {
                        let total = &mut total[start..start + width];
                        let is_first = place == 0 && self.together.is_empty();
                        self.combination.add(at, is_first, total, values);
                    }
                }
            }
        }
    }

    fn subset(&self, keep: &[usize]) -> Arc<dyn PackedRows<T>> {
        let mut tables = Vec::new();
        let parts = self.parts.iter().map(|part| subset_of(part, keep, &mut tables)).collect();
        Arc::new(Self::with_parts(self.combination.clone(), parts))
    }

    fn terms(&self) -> Vec<Arc<dyn PackedRows<T>>> {
        match self.combination {
            Combination::Sum(_) => self.parts.iter().map(|part| Arc::clone(&part.packed)).collect(),
            Combination::Product => Vec::new(),
        }
    }

    fn reweighted(&self, weights: &[T]) -> Option<Arc<dyn PackedRows<T>>> {
        match self.combination {
            Combination::Sum(_) => {
                let sum = Combination::Sum(weights.to_vec());
                Some(Arc::new(Self::with_parts(sum, self.parts.clone())))
            }
            Combination::Product => None,
        }
    }

    fn non_finite(&self) -> Option<crate::Error> {
        self.parts.iter().find_map(|part| part.packed.non_finite())
    }
}
