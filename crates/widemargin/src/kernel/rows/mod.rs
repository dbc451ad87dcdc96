//! Kernel rows on demand: computed in blocks, cached in parts, shared between sub-problems.
//!
//! The rows of a data set are ordered in segments (the classes of a classifier, the folds of a
//! cross-validation). A sub-problem is a list of segments, and a row of its matrix is the list of
//! that row's parts against those segments, so that two sub-problems with a segment in common share
//! the parts against it. A value K(i, j) has the same bits whichever way it was computed.

mod cache;
mod compact;
mod forms;
mod kernel_rows;
mod pool;
mod requests;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use self::cache::Piece;
pub(crate) use self::compact::CompactRows;
pub(crate) use self::kernel_rows::KernelRows;
pub(crate) use self::pool::Buffer;
pub(crate) use self::pool::catch_out_of_memory;
pub(crate) use self::view::RowsView;
use crate::numeric::parallel::Scratches;
use crate::numeric::simd::Real;

/// One row of a symmetric matrix in consecutive pieces.
pub(crate) type Row<T> = Vec<Piece<T>>;

/// A symmetric positive semidefinite matrix whose rows are computed on demand, in blocks.
///
/// Every row comes in the same pieces: piece k covers the variables
/// `pieces()[k]..pieces()[k + 1]`.
pub(crate) trait MatrixRows: Sync {
    /// Number format of the entries.
    type Value: Real;
    /// The matrix restricted to fewer variables.
    type Compact: MatrixRows<Value = Self::Value>;

    /// Number of variables.
    fn len(&self) -> usize {
        self.pieces().last().copied().unwrap_or(0)
    }

    /// Boundaries of the pieces: 0, …, number of variables.
    fn pieces(&self) -> &[usize];

    /// Entry (v, v).
    fn diagonal(&self, v: usize) -> f64;

    /// The rows of `variables`.
    fn fetch(&self, variables: &[u32]) -> Vec<Row<Self::Value>>;

    /// Row and column v are those of v modulo this number: fewer than [`len`](Self::len) where the
    /// variables are the same rows again.
    fn period(&self) -> usize {
        self.len()
    }

    /// The rows of `variables` (distinct), each in one piece of `width` entries: those of the first
    /// [`period`](Self::period) columns, and zeros beyond.
    fn fetch_joined(&self, variables: &[u32], width: usize) -> Vec<Buffer<Self::Value>>;

    /// Memory for `count` rows of `length` entries, with any contents.
    fn buffers(&self, count: usize, length: usize) -> Vec<Buffer<Self::Value>>;

    /// Memory for matrices among few variables; what stands there does not matter. Fresh memory for each of
    /// many small problems would cost as much as their steps.
    fn matrices(&self) -> &Scratches<Vec<Self::Value>>;

    /// The product with `beta`, computed afresh with sums in double precision.
    fn product(&self, beta: &[f64]) -> Vec<f64>;

    /// Adds Σ coefficient · row of `variables` to every column of `sums`; the coefficients of a
    /// variable, one per column, stand one after another.
    fn add_products(&self, variables: &[u32], coefficients: &[f64], sums: &mut [Vec<f64>]);

    /// Rows that a sub-problem may count on finding again. Does not depend on the number of threads,
    /// so that choices made by it do not either.
    fn capacity(&self) -> usize;

    /// Whether computing rows again costs less than keeping them.
    fn is_cheap(&self) -> bool;

    /// The matrix restricted to the variables `keep` (ascending), whose rows it computes again or
    /// keeps as `caching` says.
    fn compact(&self, keep: &[u32], caching: RowCaching) -> Self::Compact;

    /// Entries asked for so far, each counted once.
    fn requested(&self) -> u64;
}

/// Which parts of computed rows are kept for other sub-problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowCaching {
    /// All.
    All,
    /// Those against the row's own segment, as in one-vs-one, where two segments meet in one
    /// sub-problem alone; other parts leave the cache with the sub-problem.
    OwnSegment,
    /// None: the sub-problem itself keeps the rows it asks for.
    Off,
}
