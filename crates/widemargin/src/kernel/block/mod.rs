//! Blocks of kernel values: a few rows against many, for every kernel and storage.
//!
//! Rows are packed once; a block K\[B, A\] is then computed tile by tile, the sums over features in
//! registers and the kernel's transform applied while the tile is in the cache. A value depends on
//! its two rows alone, and not on which is the left one, on the ranges of the block, or on the number of
//! threads that callers split the work over. (Query rows that are stored sparsely are multiplied by
//! their non-zeros where the packed ones are dense, which rounds differently from the same rows
//! stored densely.)

mod aligned;
mod column_statistics;
mod combined;
mod custom;
mod dense;
mod diagonal;
mod feature_kernel;
mod features;
mod mixed;
mod of_products;
mod pairing;
mod precomputed;
mod product_functions;
mod shared_products;
mod sparse;
mod strings;
mod term_sums;
#[cfg(test)]
mod tests;
mod transform;
mod view;

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use self::combined::{Combination, Combined};
use self::custom::Custom;
use self::diagonal::WithDiagonal;
use self::feature_kernel::FeatureKernel;
use self::precomputed::Precomputed;
use self::shared_products::SharedProducts;
pub use self::strings::SubstringFeatures;
pub(crate) use self::term_sums::{TermScratch, TermSums};
use self::view::View;
use super::backend::{self, DualProblem, ExpansionTerm, PackedRows};
use super::{Kernel, fill_table};
use crate::context::Context;
use crate::data::{Dense, Matrix};
use crate::error::{Error, Result};
use crate::numeric::InstructionSet;
use crate::numeric::simd::Real;

/// Rows packed for one kernel; computes blocks of its matrix on the calling thread.
#[derive(Clone)]
pub(crate) struct KernelBlocks<T> {
    packed: Arc<dyn PackedRows<T>>,
}

/// Left rows of blocks, packed by the rows they are multiplied with.
pub struct Queries<T> {
    rows: usize,
    diagonal: Option<Vec<T>>,
    packed: Box<dyn Any + Send + Sync>,
}

impl<T> Queries<T> {
    /// `rows` rows in the form `packed`, and K(q, q) of each where it is known.
    pub fn new(rows: usize, diagonal: Option<Vec<T>>, packed: impl Any + Send + Sync) -> Self {
        Self { rows, diagonal, packed: Box::new(packed) }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The rows in the form that [`new`](Self::new) was given.
    ///
    /// # Panics
    /// When they have another form, because rows of another kernel or backend packed them.
    pub fn packed<P: Any>(&self) -> &P {
        self.packed.downcast_ref().expect("queries packed for the same kernel and backend")
    }

    /// K(q, q) of every row q.
    ///
    /// # Errors
    /// [`Error::Kernel`] for rows of a precomputed kernel, whose tables do not hold it, and when a
    /// value is not finite.
    pub(crate) fn self_similarities(&self) -> Result<&[T]>
    where
        T: Copy + fmt::Display + Into<f64>,
    {
        let found = match &self.diagonal {
            None => "similarities with training rows only".to_owned(),
            Some(diagonal) => match diagonal.iter().position(|&value| !value.into().is_finite()) {
                None => return Ok(diagonal),
                Some(row) => format!("{} in row {}; scale the data", diagonal[row], row + 1),
            },
        };
        let expected = "the finite similarity of every row with itself".into();
        Err(Error::Kernel { kernel: "K(x, x)".into(), expected, found })
    }
}

/// The columns that a kernel sees, none for all, and the kernel of them.
fn viewed(kernel: &Kernel) -> (Option<&[Range<usize>]>, &Kernel) {
    match kernel {
        Kernel::View { columns, kernel } => (Some(columns), kernel),
        kernel => (None, kernel),
    }
}

fn order_or_all<'a>(order: Option<&'a [usize]>, rows: &Matrix) -> Cow<'a, [usize]> {
    order.map_or_else(|| Cow::Owned((0..rows.rows()).collect()), Cow::Borrowed)
}

impl<T: Real> KernelBlocks<T> {
    /// Packs the rows of `rows` named by `order`, or all, for `kernel`, by the backend of `context`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for parameters out of range; [`Error::Kernel`] when the kernel cannot
    /// take the data: negative features under χ², a precomputed table that is not square;
    /// [`Error::Overflow`] when kernel values overflow the precision.
    pub(crate) fn new(
        kernel: &Kernel,
        rows: &Matrix,
        order: Option<&[usize]>,
        context: &Context,
    ) -> Result<Self> {
        kernel.validate()?;
        let set = context.instruction_set();
        Self::pack(kernel, rows, &order_or_all(order, rows), set, Some(context))
    }

    /// As [`new`](Self::new), always by the SIMD blocks of this crate, compiled for `set`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn on_cpu(
        kernel: &Kernel,
        rows: &Matrix,
        order: Option<&[usize]>,
        set: InstructionSet,
    ) -> Result<Self> {
        kernel.validate()?;
        Self::pack(kernel, rows, &order_or_all(order, rows), set, None)
    }

    /// Packs by the backend of `context`, if there is one and it takes the rows, else on the CPU.
    fn pack(
        kernel: &Kernel,
        rows: &Matrix,
        order: &[usize],
        set: InstructionSet,
        context: Option<&Context>,
    ) -> Result<Self> {
        if let Some(context) = context
            && let Some(packed) = backend::pack(kernel, rows, order, context)?
        {
            return Ok(Self { packed });
        }
        let part = |kernel: &Kernel| Self::pack(kernel, rows, order, set, context);
        let packed: Arc<dyn PackedRows<T>> = match kernel {
            Kernel::Precomputed => Arc::new(Precomputed::new(rows, order)?),
            Kernel::Custom(kernel) => Arc::new(Custom::new(kernel, rows, order)?),
            Kernel::String(kernel) => strings::pack(kernel, rows, order, set, context)?,
            Kernel::Sum(terms) => {
                let weights = terms.iter().map(|(weight, _)| T::from_f64(*weight)).collect();
                let parts = Self::pack_terms(terms, rows, order, set, context)?;
                Arc::new(Combined::new(Combination::Sum(weights), parts, order)?)
            }
            Kernel::Product(factors) => {
                let parts = factors.iter().map(part).collect::<Result<_>>()?;
                Arc::new(Combined::new(Combination::Product, parts, order)?)
            }
            Kernel::View { columns, kernel } => {
                let table = rows.select_columns(columns)?;
                let inner = Self::pack(kernel, &table, order, set, context)?;
                Arc::new(View::new(columns.clone(), rows.columns(), inner))
            }
            _ => Arc::new(FeatureKernel::new(kernel, rows, order, set)?),
        };
        Ok(Self { packed })
    }

    /// Packs the kernels of a sum; those that need the same of the same columns share packed rows.
    fn pack_terms(
        terms: &[(f64, Kernel)],
        rows: &Matrix,
        order: &[usize],
        set: InstructionSet,
        context: Option<&Context>,
    ) -> Result<Vec<Self>> {
        let mut parts: Vec<Self> = Vec::with_capacity(terms.len());
        for (_, kernel) in terms {
            let (columns, inner) = viewed(kernel);
            let earlier = terms.iter().zip(&parts).filter(|((_, k), _)| viewed(k).0 == columns);
            let shared = earlier
                .filter_map(|(_, part)| part.feature_kernel())
                .find_map(|part| part.sharing(inner, order).transpose())
                .transpose()?;
            parts.push(match (shared, columns) {
                (Some(packed), None) => Self { packed: Arc::new(packed) },
                (Some(packed), Some(columns)) => {
                    let inner = Self { packed: Arc::new(packed) };
                    Self { packed: Arc::new(View::new(columns.to_vec(), rows.columns(), inner)) }
                }
                (None, _) => Self::pack(kernel, rows, order, set, context)?,
            });
        }
        Ok(parts)
    }

    /// The kernel as a function of a sum over features, if it is one and was packed here.
    fn feature_kernel(&self) -> Option<&FeatureKernel<T>> {
        self.packed.shared()?.downcast_ref()
    }

    /// The support vectors of a model, for prediction: the rows of `support`, and for values that are
    /// given by the user the columns of their training rows `support_rows`.
    ///
    /// # Errors
    /// As [`new`](Self::new) and [`precomputed_columns`](Self::precomputed_columns).
    pub(crate) fn of_support(
        kernel: &Kernel,
        support: &Matrix,
        support_rows: &[usize],
        context: &Context,
    ) -> Result<Self> {
        if !kernel.has_given_values() {
            return Self::new(kernel, support, None, context);
        }
        kernel.validate()?;
        let part = |kernel: &Kernel| Self::of_support(kernel, support, support_rows, context);
        let all: Vec<usize> = (0..support.rows()).collect();
        let packed: Arc<dyn PackedRows<T>> = match kernel {
            Kernel::Sum(terms) => {
                let weights = terms.iter().map(|(weight, _)| T::from_f64(*weight)).collect();
                let parts = terms.iter().map(|(_, kernel)| part(kernel)).collect::<Result<_>>()?;
                Arc::new(Combined::new(Combination::Sum(weights), parts, &all)?)
            }
            Kernel::Product(factors) => {
                let parts = factors.iter().map(part).collect::<Result<_>>()?;
                Arc::new(Combined::new(Combination::Product, parts, &all)?)
            }
            Kernel::View { columns, kernel } => {
                let table = support.select_columns(columns)?;
                let inner = Self::of_support(kernel, &table, support_rows, context)?;
                Arc::new(View::new(columns.clone(), support.columns(), inner))
            }
            _ => {
                let width = support_rows.iter().max().map_or(0, |&row| row + 1);
                return Self::precomputed_columns(width, support_rows);
            }
        };
        Ok(Self { packed })
    }

    /// Columns of a precomputed kernel for prediction alone: column j of its blocks is column
    /// `columns[j]` of query tables that are at least `width` wide. There are no packed rows to
    /// [`gather`](Self::gather) and no diagonal.
    ///
    /// # Errors
    /// [`Error::Length`] when a column is outside the width.
    pub(crate) fn precomputed_columns(width: usize, columns: &[usize]) -> Result<Self> {
        if let Some(&largest) = columns.iter().max()
            && largest >= width
        {
            return Err(Error::length("columns of a precomputed kernel", width, largest + 1));
        }
        Ok(Self { packed: Arc::new(Precomputed::of_columns(width, columns)) })
    }

    /// Number of packed rows.
    pub(crate) fn len(&self) -> usize {
        self.packed.len()
    }

    /// Number of columns that query rows have to have.
    pub(crate) fn columns(&self) -> usize {
        self.packed.columns()
    }

    /// Whether preparing a row that is not finite fails, so that rows need not be checked before.
    pub(crate) fn refuses_non_finite(&self) -> bool {
        self.packed.refuses_non_finite()
    }

    /// About how many feature products one value costs: whether values are worth keeping.
    pub(crate) fn products_per_value(&self) -> usize {
        self.packed.products_per_value()
    }

    /// K(i, i) of every packed row, as blocks would hold it.
    pub(crate) fn diagonal(&self) -> &[T] {
        self.packed.diagonal()
    }

    /// Writes K(`left[r]`, j) for the packed rows j in `columns` into `out[r]`.
    ///
    /// Callers that cut one block into many should [`gather`](Self::gather) its left rows once.
    ///
    /// # Panics
    /// When `left` or `columns` names a row that does not exist, or `out` has another shape.
    pub(crate) fn block(&self, left: &[usize], columns: Range<usize>, out: &mut [&mut [T]]) {
        self.query_rows(&self.gather(left), 0..left.len(), columns, out);
    }

    /// The packed rows named by `left`, as the left side of blocks.
    ///
    /// # Panics
    /// When a row does not exist.
    pub(crate) fn gather(&self, left: &[usize]) -> Queries<T> {
        assert!(left.iter().all(|&row| row < self.len()), "rows that were packed");
        self.packed.gather(left)
    }

    /// Rows `range` of another table, as the left side of blocks.
    ///
    /// # Errors
    /// [`Error::Length`] when the table has another number of columns (fewer, for a precomputed
    /// kernel), [`Error::Kernel`] when the kernel cannot take a row, [`Error::Overflow`] when its
    /// values overflow the precision.
    ///
    /// # Panics
    /// When a row does not exist.
    pub(crate) fn prepare(&self, queries: &Matrix, range: Range<usize>) -> Result<Queries<T>> {
        self.prepare_rows(queries, &range.collect::<Vec<_>>())
    }

    /// As [`prepare`](Self::prepare), for the rows named by `rows`.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    ///
    /// # Panics
    /// When a row does not exist.
    pub(crate) fn prepare_rows(&self, queries: &Matrix, rows: &[usize]) -> Result<Queries<T>> {
        assert!(rows.iter().all(|&row| row < queries.rows()), "rows of the queries");
        self.packed.prepare(queries, rows)
    }

    /// Writes the kernel values of query rows `rows` with the packed rows `columns` into `out`, row
    /// after row, `stride` places apart.
    ///
    /// # Panics
    /// As [`query_rows`](Self::query_rows), or when `out` is too short.
    pub(crate) fn query_block(
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
    /// When a row does not exist, `out` has another shape, or the queries were packed for another
    /// kernel, other features, another instruction set or another backend.
    pub(crate) fn query_rows(
        &self,
        queries: &Queries<T>,
        rows: Range<usize>,
        columns: Range<usize>,
        out: &mut [&mut [T]],
    ) {
        assert!(
            rows.end <= queries.len() && columns.end <= self.len(),
            "rows and columns that exist"
        );
        assert_eq!(rows.len(), out.len(), "one output slice per row");
        assert!(out.iter().all(|row| row.len() == columns.len()), "one place per column");
        self.packed.block(queries, rows, columns, out);
    }

    /// The packed rows named by `keep`; their values are bit for bit the same.
    ///
    /// # Panics
    /// When a row does not exist.
    pub(crate) fn subset(&self, keep: &[usize]) -> Self {
        assert!(keep.iter().all(|&row| row < self.len()), "rows that were packed");
        Self { packed: self.packed.subset(keep) }
    }

    /// The kernels of a weighted sum, each packed; none for any other kernel.
    pub(crate) fn terms(&self) -> Vec<Self> {
        self.packed.terms().into_iter().map(|packed| Self { packed }).collect()
    }

    /// Gives a weighted sum of kernels other weights, of which some may be 0. Nothing is packed
    /// again, and blocks have the same bits as those of a sum that was packed with these weights.
    ///
    /// # Errors
    /// [`Error::Kernel`] when the kernel is not a sum, [`Error::Length`] or [`Error::Parameter`]
    /// when the weights do not suit it, [`Error::Overflow`] when its values then overflow.
    pub(crate) fn reweight(&mut self, weights: &[f64]) -> Result<()> {
        let terms = self.terms().len();
        if terms != 0 && terms != weights.len() {
            return Err(Error::length("weights of a sum of kernels", terms, weights.len()));
        }
        if let Some(weight) = weights.iter().find(|w| !w.is_finite()) {
            return Err(Error::parameter("weight", "a finite number", weight));
        }
        let weights: Vec<T> = weights.iter().map(|&w| T::from_f64(w)).collect();
        let packed = self.packed.reweighted(&weights).ok_or_else(|| {
            Error::kernel("combination", "a weighted sum of kernels", "another kernel")
        })?;
        let sizes = packed.diagonal().iter().map(|value| value.to_f64().abs());
        check_range::<T>("sum", sizes.enumerate())?;
        self.packed = packed;
        Ok(())
    }

    /// Tables that [`tabulate`](Self::tabulate) makes: one for all kernels that are functions of the same
    /// products, and one for every other kernel.
    pub(crate) fn tables(&self) -> usize {
        let groups = shared_products::groups(&self.terms());
        groups.iter().enumerate().filter(|(at, first)| first.is_none_or(|f| f == *at)).count()
    }

    /// Replaces the kernels of a weighted sum by tables, of their values or of the products that several of them
    /// are functions of, computed once, so that other weights cost no sums over features; the weights become 1.
    /// `check` sees the values of every kernel with a table of its own.
    ///
    /// # Errors
    /// [`Error::Interrupted`] at a request to stop; what `check` returns.
    pub(crate) fn tabulate(
        &mut self,
        context: &Context,
        check: impl Fn(usize, &[T]) -> Result<()>,
    ) -> Result<()> {
        let (order, mut parts) = (self.len(), Vec::new());
        let terms = self.terms();
        let mut products = SharedProducts::new();
        for (at, (term, first)) in terms.iter().zip(shared_products::groups(&terms)).enumerate() {
            let packed: Arc<dyn PackedRows<T>> = match (term.feature_kernel(), first) {
                (Some(own), Some(first)) => {
                    Arc::new(products.over_table(own, first, order, context)?)
                }
                _ => {
                    let mut values = Vec::new();
                    fill_table(term, order, &mut values, context)?;
                    term.check_values()?;
                    check(at, &values)?;
                    Arc::new(Precomputed::of_table(Dense::new(order, order, values)?))
                }
            };
            parts.push(Self { packed });
        }
        self.packed = Arc::new(Combined::sum(parts));
        Ok(())
    }

    /// Adds a number to the diagonal of every kernel of a weighted sum, over the packed rows; the weights
    /// become 1.
    pub(crate) fn add_to_diagonals(&mut self, added: &[T]) {
        let part = |(term, &added): (Self, &T)| match added == T::ZERO {
            true => term,
            false => Self { packed: Arc::new(WithDiagonal::new(term, added)) },
        };
        let parts = self.terms().into_iter().zip(added).map(part).collect();
        self.packed = Arc::new(Combined::sum(parts));
    }

    /// Fails when a value was replaced by 0: one that is not a finite number, which only kernels of the
    /// user can have, or one of long strings that the time limit left no time for.
    ///
    /// # Errors
    /// [`Error::Kernel`] naming the kernel and the value; [`Error::Interrupted`].
    pub(crate) fn check_values(&self) -> Result<()> {
        self.packed.non_finite().map_or(Ok(()), Err)
    }

    /// See [`PackedRows::add_products`].
    pub(crate) fn add_products(
        &self,
        rows: &[usize],
        coefficients: &[f64],
        columns: Range<usize>,
        sums: &mut [&mut [f64]],
    ) -> bool {
        self.packed.add_products(rows, coefficients, columns, sums)
    }

    /// See [`PackedRows::takes_duals`].
    pub(crate) fn takes_duals(&self) -> bool {
        self.packed.takes_duals()
    }

    /// See [`PackedRows::solve_duals`].
    pub(crate) fn solve_duals(
        &self,
        problems: &[DualProblem<'_>],
        tol: f64,
        context: &Context,
    ) -> Option<Vec<Vec<f64>>> {
        self.packed.solve_duals(problems, tol, context)
    }

    /// See [`PackedRows::evaluate`].
    pub(crate) fn evaluate(
        &self,
        queries: &Matrix,
        rows: &[usize],
        terms: &[ExpansionTerm<'_>],
        functions: usize,
        sums: &mut [f64],
    ) -> Option<Result<()>> {
        self.packed.evaluate(queries, rows, terms, functions, sums)
    }
}

/// Fails when the size of kernel values, one per row, leaves no room for sums with coefficients.
fn check_range<T: Real>(kernel: &str, sizes: impl IntoIterator<Item = (usize, f64)>) -> Result<()> {
    /// Largest kernel value as a share of the largest number.
    const LARGEST_SHARE: f64 = 1.0 / (1_u64 << 24) as f64;
    let largest = T::MAX.to_f64() * LARGEST_SHARE;
    // A size that is not a number is out of range too.
    match sizes.into_iter().find(|(_, size)| size.is_nan() || *size > largest) {
        Some((row, size)) => Err(Error::Overflow {
            kernel: kernel.into(),
            row: row + 1,
            size,
            precision: if size_of::<T>() == 4 { "single" } else { "double" },
        }),
        None => Ok(()),
    }
}

/// Fails when query rows do not have the columns of the packed ones.
fn check_columns(expected: usize, queries: &Matrix) -> Result<()> {
    match queries.columns() {
        found if found == expected => Ok(()),
        found => Err(Error::length("features", expected, found)),
    }
}

impl<T: Real> fmt::Debug for KernelBlocks<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KernelBlocks({} rows)", self.len())
    }
}

impl<T> fmt::Debug for Queries<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queries({} rows)", self.rows)
    }
}
