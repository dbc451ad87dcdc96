//! The block engine: kernel values of a few rows against many, for every kernel and storage.
//!
//! Rows are packed once; a block K\[B, A\] is then computed tile by tile, the sums over features in
//! registers and the kernel's transform applied while the tile is in the cache. A value depends on
//! its two rows alone, and not on which is the left one, on the ranges asked for, or on the number of
//! threads that callers split the work over. (Foreign rows that are stored sparsely run over their
//! non-zeros where the packed ones are dense, which rounds differently from the same rows stored
//! densely.)

mod aligned;
mod combined;
mod custom;
mod dense;
mod features;
mod given;
mod mixed;
mod packed;
mod pairing;
mod sparse;
mod survey;
#[cfg(test)]
mod tests;
mod transform;

use std::fmt;
use std::ops::Range;

use self::combined::{Combination, Combined};
use self::custom::{Custom, CustomRows};
use self::given::{Given, GivenRows};
use self::packed::{Packed, PackedRows};
use super::Kernel;
use crate::data::Matrix;
use crate::error::{Error, Result};
use crate::numeric::InstructionSet;
use crate::numeric::simd::Real;

/// Rows packed for one kernel; computes blocks of its matrix, single-threaded.
#[derive(Clone)]
pub struct KernelBlocks<T: Real> {
    set: InstructionSet,
    rows: usize,
    diagonal: Vec<T>,
    source: Source<T>,
}

#[derive(Clone)]
enum Source<T: Real> {
    Packed(Packed<T>),
    Given(Given<T>),
    Custom(Custom),
    Combined(Combined<T>),
}

/// Left rows of blocks, made ready by the engine they are multiplied with.
pub struct Queries<T: Real> {
    rows: usize,
    own: Option<Vec<T>>,
    source: QuerySource<T>,
}

enum QuerySource<T: Real> {
    Packed(PackedRows<T>),
    Given(GivenRows<T>),
    Custom(CustomRows),
    Combined(Vec<Queries<T>>),
}

impl<T: Real> Queries<T> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// K(q, q) of every row q.
    ///
    /// # Errors
    /// [`Error::Kernel`] for rows of a precomputed kernel, whose tables do not hold it.
    pub fn self_similarities(&self) -> Result<&[T]> {
        self.own.as_deref().ok_or_else(|| Error::Kernel {
            kernel: "precomputed".into(),
            expected: "the similarity of every row with itself".into(),
            found: "similarities with training rows only".into(),
        })
    }
}

impl<T: Real> KernelBlocks<T> {
    /// Packs the rows of `rows` named by `order`, or all, for `kernel`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for parameters out of range; [`Error::Kernel`] when the kernel cannot
    /// take the data: negative features under χ², a precomputed table that is not square, norms
    /// that overflow the precision.
    pub fn new(
        kernel: &Kernel,
        rows: &Matrix,
        order: Option<&[usize]>,
        set: InstructionSet,
    ) -> Result<Self> {
        kernel.validate()?;
        match order {
            Some(order) => Self::build(kernel, rows, order, set),
            None => Self::build(kernel, rows, &(0..rows.rows()).collect::<Vec<_>>(), set),
        }
    }

    fn build(kernel: &Kernel, rows: &Matrix, order: &[usize], set: InstructionSet) -> Result<Self> {
        let part = |kernel| Self::build(kernel, rows, order, set);
        let (source, diagonal) = match kernel {
            Kernel::Precomputed => {
                let given = Given::new(rows, order)?;
                let diagonal = given.diagonal();
                (Source::Given(given), diagonal)
            }
            Kernel::Custom(kernel) => {
                let custom = Custom::new(kernel, rows, order);
                let diagonal = custom.diagonal();
                (Source::Custom(custom), diagonal)
            }
            Kernel::Sum(terms) => {
                let parts = terms.iter().map(|(w, kernel)| Ok((T::from_f64(*w), part(kernel)?)));
                let combined = Combined::new(Combination::Sum, parts.collect::<Result<_>>()?);
                let diagonal = combined.diagonal();
                (Source::Combined(combined), diagonal)
            }
            Kernel::Product(factors) => {
                let parts = factors.iter().map(|kernel| Ok((T::ONE, part(kernel)?)));
                let combined = Combined::new(Combination::Product, parts.collect::<Result<_>>()?);
                let diagonal = combined.diagonal();
                (Source::Combined(combined), diagonal)
            }
            _ => {
                let (packed, diagonal) = Packed::new(kernel, rows, order, set)?;
                (Source::Packed(packed), diagonal)
            }
        };
        Ok(Self { set, rows: order.len(), diagonal, source })
    }

    /// The engine of a precomputed kernel for prediction alone: column j of its blocks is column
    /// `columns[j]` of query tables that are at least `width` wide. It has no rows of its own to multiply and
    /// no diagonal.
    ///
    /// # Errors
    /// [`Error::Length`] when a column is outside the width.
    pub fn precomputed_columns(
        width: usize,
        columns: &[usize],
        set: InstructionSet,
    ) -> Result<Self> {
        if let Some(&largest) = columns.iter().max()
            && largest >= width
        {
            return Err(Error::length("columns of a precomputed kernel", width, largest + 1));
        }
        let source = Source::Given(Given::of_columns(width, columns));
        Ok(Self { set, rows: columns.len(), diagonal: Vec::new(), source })
    }

    /// Number of packed rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Number of columns that query rows have to have.
    pub fn columns(&self) -> usize {
        match &self.source {
            Source::Packed(packed) => packed.columns(),
            Source::Given(given) => given.columns(),
            Source::Custom(custom) => custom.columns(),
            Source::Combined(combined) => combined.columns(),
        }
    }

    /// Whether preparing a row that is not finite fails, so that rows need not be looked at before.
    pub fn refuses_non_finite(&self) -> bool {
        matches!(&self.source, Source::Packed(packed) if packed.refuses_non_finite())
    }

    /// The instructions it was packed for.
    pub fn instruction_set(&self) -> InstructionSet {
        self.set
    }

    /// About how many feature products one value costs: whether values are worth keeping.
    pub fn products_per_value(&self) -> usize {
        match &self.source {
            Source::Packed(packed) => packed.products_per_value(),
            Source::Given(_) => 1,
            Source::Custom(_) | Source::Combined(_) => usize::MAX,
        }
    }

    /// K(i, i) of every packed row, as blocks would hold it.
    pub fn diagonal(&self) -> &[T] {
        &self.diagonal
    }

    /// Writes K(`left[r]`, j) for the packed rows j in `columns` into `out[r]`.
    ///
    /// Callers that cut one block into many should [`gather`](Self::gather) its left rows once.
    ///
    /// # Panics
    /// When `left` or `columns` names a row that does not exist, or `out` has another shape.
    pub fn block(&self, left: &[usize], columns: Range<usize>, out: &mut [&mut [T]]) {
        self.query_rows(&self.gather(left), 0..left.len(), columns, out);
    }

    /// The packed rows named by `left`, ready to be the left side of blocks.
    ///
    /// # Panics
    /// When a row does not exist.
    pub fn gather(&self, left: &[usize]) -> Queries<T> {
        assert!(left.iter().all(|&row| row < self.rows), "rows of the engine");
        let source = match &self.source {
            Source::Packed(packed) => QuerySource::Packed(packed.gather(left)),
            Source::Given(given) => QuerySource::Given(given.gather(left)),
            Source::Custom(custom) => QuerySource::Custom(custom.gather(left)),
            Source::Combined(combined) => QuerySource::Combined(combined.gather(left)),
        };
        let own = Some(left.iter().map(|&row| self.diagonal[row]).collect());
        Queries { rows: left.len(), own, source }
    }

    /// Rows `range` of another table, ready to be the left side of blocks.
    ///
    /// # Errors
    /// [`Error::Length`] when the table has another number of columns (fewer, for a precomputed
    /// kernel), [`Error::Kernel`] when the kernel cannot take a row.
    ///
    /// # Panics
    /// When a row does not exist.
    pub fn prepare(&self, queries: &Matrix, range: Range<usize>) -> Result<Queries<T>> {
        self.prepare_rows(queries, &range.collect::<Vec<_>>())
    }

    /// As [`prepare`](Self::prepare), for the rows named by `rows`.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    ///
    /// # Panics
    /// When a row does not exist.
    pub fn prepare_rows(&self, queries: &Matrix, rows: &[usize]) -> Result<Queries<T>> {
        assert!(rows.iter().all(|&row| row < queries.rows()), "rows of the queries");
        let (expected, found) = (self.columns(), queries.columns());
        let source = match &self.source {
            Source::Given(given) if found >= expected => {
                let source = QuerySource::Given(given.prepare(queries, rows));
                return Ok(Queries { rows: rows.len(), own: None, source });
            }
            _ if found != expected => return Err(Error::length("features", expected, found)),
            source => source,
        };
        let (source, own) = match source {
            Source::Packed(packed) => {
                let (rows, own) = packed.prepare(queries, rows)?;
                (QuerySource::Packed(rows), own)
            }
            Source::Custom(custom) => {
                let (rows, own) = custom.prepare(queries, rows);
                (QuerySource::Custom(rows), own)
            }
            Source::Combined(combined) => {
                let (rows, own) = combined.prepare(queries, rows)?;
                (QuerySource::Combined(rows), own)
            }
            Source::Given(_) => unreachable!("tables of values were dealt with"),
        };
        Ok(Queries { rows: rows.len(), own: Some(own), source })
    }

    /// Writes the kernel values of query rows `rows` with the packed rows `columns` into `out`, row
    /// after row, `stride` places apart.
    ///
    /// # Panics
    /// As [`query_rows`](Self::query_rows), or when `out` is too short.
    pub fn query_block(
        &self,
        queries: &Queries<T>,
        rows: Range<usize>,
        columns: Range<usize>,
        out: &mut [T],
        stride: usize,
    ) {
        if rows.is_empty() || columns.is_empty() {
            return;
        }
        let width = columns.len();
        let slices = out.chunks_mut(stride).take(rows.len()).map(|row| &mut row[..width]);
        self.query_rows(queries, rows, columns, &mut slices.collect::<Vec<_>>());
    }

    /// Writes the kernel values of query row `rows.start + r` with the packed rows `columns` into
    /// `out[r]`.
    ///
    /// # Panics
    /// When a row does not exist, `out` has another shape, or the queries were made ready by an
    /// engine of another kernel or other rows.
    pub fn query_rows(
        &self,
        queries: &Queries<T>,
        rows: Range<usize>,
        columns: Range<usize>,
        out: &mut [&mut [T]],
    ) {
        assert!(
            rows.end <= queries.rows && columns.end <= self.rows,
            "rows and columns that exist"
        );
        assert_eq!(rows.len(), out.len(), "one output slice per row");
        assert!(out.iter().all(|row| row.len() == columns.len()), "one place per column");
        match (&self.source, &queries.source) {
            (Source::Packed(packed), QuerySource::Packed(left)) => {
                packed.product(left, rows, columns, out);
            }
            (Source::Given(given), QuerySource::Given(left)) => {
                given.product(left, rows, columns, out);
            }
            (Source::Custom(custom), QuerySource::Custom(left)) => {
                custom.product(left, rows, columns, out);
            }
            (Source::Combined(combined), QuerySource::Combined(left)) => {
                combined.product(left, rows, columns, out);
            }
            _ => panic!("queries made ready by an engine of another kernel"),
        }
    }

    /// The engine of the rows named by `keep`; its values are bit for bit the same.
    ///
    /// # Panics
    /// When a row does not exist.
    pub fn subset(&self, keep: &[usize]) -> Self {
        assert!(keep.iter().all(|&row| row < self.rows), "rows of the engine");
        let source = match &self.source {
            Source::Packed(packed) => Source::Packed(packed.subset(keep)),
            Source::Given(given) => Source::Given(given.subset(keep)),
            Source::Custom(custom) => Source::Custom(custom.subset(keep)),
            Source::Combined(combined) => Source::Combined(combined.subset(keep)),
        };
        let diagonal = keep.iter().filter_map(|&row| self.diagonal.get(row).copied()).collect();
        Self { set: self.set, rows: keep.len(), diagonal, source }
    }
}

impl<T: Real> fmt::Debug for KernelBlocks<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KernelBlocks({} rows, {})", self.rows, self.set)
    }
}

impl<T: Real> fmt::Debug for Queries<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queries({} rows)", self.rows)
    }
}
