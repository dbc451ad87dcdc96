//! Who computes kernel values: the backend that a [`Context`] carries.
//!
//! A [`Backend`] packs rows for a kernel. The [`PackedRows`] it returns give blocks of the kernel
//! matrix, subsets, and sums of kernels with other weights; they may also take over whole jobs
//! (products with vectors, dual problems, expansions), whose loops have to stay on a device to be
//! fast there. What a backend does not take is computed by the SIMD blocks of this crate, so that an
//! implementation may begin with one kernel and one method. Calls are dynamic once per block or job,
//! never per value.

use std::any::{Any, TypeId};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::{Kernel, Queries};
use crate::context::Context;
use crate::data::Matrix;
use crate::error::{Error, Result};
use crate::numeric::simd::Real;

/// Packs rows for kernels.
pub trait Backend: fmt::Debug + Send + Sync {
    /// Its name in messages.
    fn name(&self) -> &str;

    /// Packs the rows of `rows` named by `order` for values in single precision; `None` leaves the
    /// kernel, the data or their size to the CPU.
    ///
    /// # Errors
    /// [`Error::Kernel`] when the kernel cannot take the data, [`Error::Overflow`] when its values
    /// would overflow the precision.
    fn pack_f32(
        &self,
        _kernel: &Kernel,
        _rows: &Matrix,
        _order: &[usize],
        _context: &Context,
    ) -> Result<Option<Arc<dyn PackedRows<f32>>>> {
        Ok(None)
    }

    /// The same in double precision.
    ///
    /// # Errors
    /// As [`pack_f32`](Self::pack_f32).
    fn pack_f64(
        &self,
        _kernel: &Kernel,
        _rows: &Matrix,
        _order: &[usize],
        _context: &Context,
    ) -> Result<Option<Arc<dyn PackedRows<f64>>>> {
        Ok(None)
    }
}

/// The default backend: everything is left to the SIMD blocks of this crate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu;

impl Backend for Cpu {
    fn name(&self) -> &str {
        "cpu"
    }
}

/// The rows packed by the backend of `context` in precision `T`, if it takes them.
pub(super) fn pack<T: Real>(
    kernel: &Kernel,
    rows: &Matrix,
    order: &[usize],
    context: &Context,
) -> Result<Option<Arc<dyn PackedRows<T>>>> {
    let backend = context.backend();
    let packed: Box<dyn Any> = if TypeId::of::<T>() == TypeId::of::<f32>() {
        Box::new(backend.pack_f32(kernel, rows, order, context)?)
    } else {
        Box::new(backend.pack_f64(kernel, rows, order, context)?)
    };
    Ok(*packed.downcast().expect("single or double precision"))
}

/// Rows packed for one kernel.
///
/// A value depends on its two rows alone and is the same whichever of them is on the left. Callers
/// have checked that rows and columns exist and that output slices have the shape of the block.
pub trait PackedRows<T>: Send + Sync {
    /// Number of packed rows.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of columns that query rows have to have.
    fn columns(&self) -> usize;

    /// K(i, i) of every packed row, as blocks would hold it; empty when it is not known.
    fn diagonal(&self) -> &[T];

    /// About how many feature products one value costs.
    fn products_per_value(&self) -> usize;

    /// Whether [`prepare`](Self::prepare) fails for rows with values that are not finite.
    fn refuses_non_finite(&self) -> bool {
        false
    }

    /// The packed rows named by `rows`, as left rows of blocks.
    fn gather(&self, rows: &[usize]) -> Queries<T>;

    /// The rows of another table named by `rows`, as left rows of blocks.
    ///
    /// # Errors
    /// [`Error::Kernel`] when the kernel cannot take a row, [`Error::Overflow`] when its values
    /// overflow.
    fn prepare(&self, queries: &Matrix, rows: &[usize]) -> Result<Queries<T>>;

    /// Writes the values of left row `rows.start + r` with the packed rows `columns` to `out[r]`.
    ///
    /// # Panics
    /// When `left` was made by rows that were packed differently.
    fn block(
        &self,
        left: &Queries<T>,
        rows: Range<usize>,
        columns: Range<usize>,
        out: &mut [&mut [T]],
    );

    /// The packed rows named by `keep`; their values are bit for bit the same.
    fn subset(&self, keep: &[usize]) -> Arc<dyn PackedRows<T>>;

    /// The kernels of a weighted sum, packed; none for any other kernel.
    fn terms(&self) -> Vec<Arc<dyn PackedRows<T>>> {
        Vec::new()
    }

    /// The same sum of kernels with other weights; nothing is packed again. `None` for any other
    /// kernel.
    fn reweighted(&self, _weights: &[T]) -> Option<Arc<dyn PackedRows<T>>> {
        None
    }

    /// Itself, where other kernels of a sum may share what it has packed.
    #[doc(hidden)]
    fn shared(&self) -> Option<&dyn Any> {
        None
    }

    /// Why values were replaced by 0: the first that is not a finite number, or
    /// [`Error::Interrupted`] where there was no time for them.
    fn non_finite(&self) -> Option<Error> {
        None
    }

    /// Adds Σᵣ coefficients\[r, c\] K(rows\[r\], j) for the packed rows j in `columns` to `sums[c]`;
    /// returns false if it does not take products, and then the caller computes blocks.
    fn add_products(
        &self,
        _rows: &[usize],
        _coefficients: &[f64],
        _columns: Range<usize>,
        _sums: &mut [&mut [f64]],
    ) -> bool {
        false
    }

    /// Whether [`solve_duals`](Self::solve_duals) would take problems.
    fn takes_duals(&self) -> bool {
        false
    }

    /// Solves dual problems over the packed rows to the tolerance `tol`; one point each. The solver
    /// goes on from these points, so that they are verified like any other solution.
    fn solve_duals(
        &self,
        _problems: &[DualProblem<'_>],
        _tol: f64,
        _context: &Context,
    ) -> Option<Vec<Vec<f64>>> {
        None
    }

    /// Adds Σ coefficients\[i\] K(query, support\[i\]) of every term to `sums[query][function]`, for the
    /// rows of `queries` named by `rows`; `None` if it does not take expansions.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    fn evaluate(
        &self,
        _queries: &Matrix,
        _rows: &[usize],
        _terms: &[ExpansionTerm<'_>],
        _functions: usize,
        _sums: &mut [f64],
    ) -> Option<Result<()>> {
        None
    }
}

/// minimise ½ βᵀ(K + diag(ridge))β + linearᵀβ subject to lower ≤ β ≤ upper and the sums of the groups
/// that `start` has.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DualProblem<'a> {
    /// Packed row of every variable; a row may have several.
    pub rows: Vec<usize>,
    /// Linear term.
    pub linear: &'a [f64],
    /// Lower bounds.
    pub lower: &'a [f64],
    /// Upper bounds, possibly infinite.
    pub upper: &'a [f64],
    /// What is added to the diagonal of K.
    pub ridge: Option<&'a [f64]>,
    /// Group of every variable, 0 or 1; `None` when all are in one.
    pub groups: Option<&'a [u8]>,
    /// A feasible point.
    pub start: &'a [f64],
}

/// Coefficients of one function over neighbouring support vectors.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExpansionTerm<'a> {
    /// Which function.
    pub function: usize,
    /// The packed rows that are its support vectors.
    pub support: Range<usize>,
    /// One coefficient for each of them.
    pub coefficients: &'a [f64],
}
