//! A = L Lᵀ for symmetric positive definite A, recursively (as LAPACK's `dpotrf2`): the first half of the
//! columns is factored, its product with its transpose is subtracted from the others, and those are factored.
//! Nearly all of the work is products of many columns, which run at the speed of the processor.

use std::ops::Range;

use super::dot;
use super::product::transposed;
use super::substitution::{Triangle, substitute};
use crate::context::Context;
use crate::error::Result;
use crate::numeric::simd::{PlainLoop, Weights, multiply, run_plain};

/// Columns that are factored without halving.
const PANEL: usize = 48;

/// Columns of a product at a time: the blocks of its two factors stay in the second-level cache.
const PRODUCT_COLUMNS: usize = 384;

/// The order up to which a matrix is factored as one panel.
const SMALL: usize = 96;

/// Rows of a panel that are known before the others are brought up to date: as many as there are
/// registers for their factors.
const BAND: usize = 8;

/// Rows and columns of a block of a product.
const TASK_ROWS: usize = 64;

/// Multiply-adds between two looks at the context, a moment.
const MOST_UNCHECKED: usize = 1 << 27;

/// The factor L of a symmetric positive definite matrix.
pub(crate) struct Cholesky {
    order: usize,
    /// Row-major; entries above the diagonal are not meant.
    lower: Vec<f64>,
}

impl Cholesky {
    /// Factors a row-major matrix of which only the lower triangle is read; `None` when it is not
    /// positive definite to working precision.
    pub(crate) fn new(a: Vec<f64>, order: usize, context: &Context) -> Option<Self> {
        Self::factored(a, order, context, || Ok(())).ok().flatten()
    }

    /// As [`new`](Self::new), for large matrices.
    ///
    /// # Errors
    /// `Error::Interrupted` when the context asks to stop.
    pub(crate) fn interruptible(
        a: Vec<f64>,
        order: usize,
        context: &Context,
    ) -> Result<Option<Self>> {
        Self::factored(a, order, context, || context.checkpoint())
    }

    fn factored(
        mut a: Vec<f64>,
        order: usize,
        context: &Context,
        check: impl Fn() -> Result<()> + Sync,
    ) -> Result<Option<Self>> {
        assert_eq!(a.len(), order * order, "a square matrix");
        let smallest: Vec<f64> =
            (0..order).map(|i| a[i * order + i] * f64::EPSILON * order.max(8) as f64).collect();
        let mut factored = Factored { a: &mut a, order, smallest: &smallest, context };
        if !factored.columns(0, order, &check)? {
            return Ok(None);
        }
        Ok(Some(Self { order, lower: a }))
    }

    /// The memory of the factor, for another matrix.
    pub(crate) fn into_matrix(self) -> Vec<f64> {
        self.lower
    }

    /// ln |A|.
    pub(crate) fn log_determinant(&self) -> f64 {
        2.0 * (0..self.order).map(|i| self.lower[i * self.order + i].ln()).sum::<f64>()
    }

    /// Replaces b by L⁻¹b.
    pub(crate) fn solve_lower(&self, b: &mut [f64]) {
        for i in 0..self.order {
            let row = &self.lower[i * self.order..][..=i];
            b[i] = (b[i] - dot(&row[..i], &b[..i])) / row[i];
        }
    }

    /// Replaces b by L⁻ᵀb.
    pub(crate) fn solve_upper(&self, b: &mut [f64]) {
        for i in (0..self.order).rev() {
            let row = &self.lower[i * self.order..][..=i];
            let value = b[i] / row[i];
            b[i] = value;
            for (b, l) in b.iter_mut().zip(&row[..i]) {
                *b -= value * l;
            }
        }
    }

    /// [`solve_lower`](Self::solve_lower) for several b in one pass over the factor, up to rounding.
    pub(crate) fn solve_lower_each(&self, columns: &mut [Vec<f64>], context: &Context) {
        self.substitute(Triangle::Lower, columns, context);
    }

    /// [`solve_upper`](Self::solve_upper) for several b in one pass over the factor, up to rounding.
    pub(crate) fn solve_upper_each(&self, columns: &mut [Vec<f64>], context: &Context) {
        self.substitute(Triangle::Upper, columns, context);
    }

    fn substitute(&self, triangle: Triangle, columns: &mut [Vec<f64>], context: &Context) {
        let mut rights: Vec<&mut [f64]> = columns.iter_mut().map(Vec::as_mut_slice).collect();
        substitute(context.instruction_set(), triangle, &self.lower, &mut rights);
    }

    /// Replaces b by A⁻¹b.
    pub(crate) fn solve(&self, b: &mut [f64]) {
        self.solve_lower(b);
        self.solve_upper(b);
    }

    /// Replaces every row b of some by L⁻¹b, at the speed of products.
    pub(crate) fn solve_lower_rows(&self, rows: &mut [f64], context: &Context) {
        let (order, set) = (self.order, context.instruction_set());
        if rows.is_empty() {
            return;
        }
        let task = |rows: &mut [f64]| {
            let mut rights: Vec<&mut [f64]> = rows.chunks_exact_mut(order).collect();
            substitute(set, Triangle::Lower, &self.lower, &mut rights);
        };
        let worth = rows.len() > TASK_ROWS * order;
        context.for_each_if(worth, rows.chunks_mut(TASK_ROWS * order), task);
    }

    /// L⁻¹, row-major with zeros above the diagonal, by substitution of unit vectors.
    ///
    /// # Errors
    /// `Error::Interrupted` when the context asks to stop.
    pub(crate) fn inverse_lower(&self, context: &Context) -> Result<Vec<f64>> {
        let order = self.order;
        let rows = (MOST_UNCHECKED / (order * order).max(1)).clamp(1, TASK_ROWS);
        // Row j is L⁻¹ of unit vector j, the column j of the inverse.
        let mut columns = vec![0.0; order * order];
        let task = |(at, group): (usize, &mut [f64])| {
            context.checkpoint()?;
            for (r, column) in group.chunks_exact_mut(order).enumerate() {
                let j = at * rows + r;
                column[j] = 1.0;
                for i in j..order {
                    let row = &self.lower[i * order..][..=i];
                    column[i] = (column[i] - dot(&row[j..i], &column[j..i])) / row[i];
                }
            }
            Ok(())
        };
        let groups = columns.chunks_mut((rows * order).max(1)).enumerate();
        context.try_for_each(groups, task)?;
        Ok(transposed(&columns, order, order))
    }
}

/// A matrix some columns of which are those of its factor already.
struct Factored<'a> {
    a: &'a mut [f64],
    order: usize,
    /// Pivots that are no larger count as zero.
    smallest: &'a [f64],
    context: &'a Context,
}

impl Factored<'_> {
    /// Factors columns `start..end` of all rows from `start` on, from which the products of the columns
    /// before are subtracted already; false at a pivot that is not positive.
    fn columns(
        &mut self,
        start: usize,
        end: usize,
        check: &(impl Fn() -> Result<()> + Sync),
    ) -> Result<bool> {
        let width = end - start;
        if width == 0 {
            return Ok(true);
        }
        if width <= PANEL || self.order <= SMALL {
            check()?;
            let Self { a, order, smallest, context } = self;
            return Ok(factor_panel(a, *order, start, end, smallest, context));
        }
        let middle = start + (width / 2).next_multiple_of(PANEL).min(width - 1);
        if !self.columns(start, middle, check)? {
            return Ok(false);
        }
        self.subtract(start, middle, end, check)?;
        self.columns(middle, end, check)
    }

    /// Subtracts P Pᵀ from columns `middle..end` of the rows from `middle` on, P being their columns
    /// `start..middle`.
    fn subtract(
        &mut self,
        start: usize,
        middle: usize,
        end: usize,
        check: &(impl Fn() -> Result<()> + Sync),
    ) -> Result<()> {
        let order = self.order;
        let rest = &mut self.a[middle * order..];
        let mut panel = Vec::new();
        for first in (start..middle).step_by(PRODUCT_COLUMNS) {
            let last = (first + PRODUCT_COLUMNS).min(middle);
            copy_columns(rest, order, first..last, &mut panel);
            let square = (&mut *rest, order, middle..end);
            add_checked_products(square, &panel, last - first, -1.0, self.context, check)?;
        }
        Ok(())
    }
}

/// Makes `to` some columns of rows that are `order` wide.
fn copy_columns(rows: &[f64], order: usize, columns: Range<usize>, to: &mut Vec<f64>) {
    to.clear();
    to.reserve_exact(rows.len() / order * columns.len());
    rows.chunks_exact(order).for_each(|row| to.extend_from_slice(&row[columns.clone()]));
}

/// Factors columns `start..end` of all rows from `start` on; false at a pivot that is not positive.
fn factor_panel(
    a: &mut [f64],
    order: usize,
    start: usize,
    end: usize,
    smallest: &[f64],
    context: &Context,
) -> bool {
    let width = end - start;
    let set = context.instruction_set();
    let mut corner = vec![0.0; width * width];
    for (i, row) in a[start * order..].chunks_exact(order).take(width).enumerate() {
        let entries = row[start..].iter().take(i + 1).enumerate();
        entries.for_each(|(j, entry)| corner[j * width + i] = *entry);
    }
    let smallest = &smallest[start..end];
    if !run_plain(set, FactorDiagonalBlock { upper: &mut corner, smallest }) {
        return false;
    }
    for (i, row) in a[start * order..].chunks_exact_mut(order).take(width).enumerate() {
        let entries = row[start..].iter_mut().take(i + 1).enumerate();
        entries.for_each(|(j, entry)| *entry = corner[j * width + i]);
    }
    if end < order {
        eliminate(&mut a[end * order..], order, start, &corner, width, context);
    }
    true
}

/// Replaces columns `start..start + width` of rows by X with X Lᵀ = them, Lᵀ being the upper triangle
/// of `corner`: a product with L⁻ᵀ, which runs at the speed of products.
fn eliminate(
    rows: &mut [f64],
    order: usize,
    start: usize,
    corner: &[f64],
    width: usize,
    context: &Context,
) {
    let set = context.instruction_set();
    let inverse = Weights::new(width, run_plain(set, CornerInverse { upper: corner, width }));
    let task = |rows: &mut [f64]| {
        let columns = start..start + width;
        let mut before = Vec::new();
        copy_columns(rows, order, columns.clone(), &mut before);
        let mut solved = vec![0.0; before.len()];
        multiply(set, &before, width, &inverse, 0, width, &mut solved);
        for (row, solved) in rows.chunks_exact_mut(order).zip(solved.chunks_exact(width)) {
            row[columns.clone()].copy_from_slice(solved);
        }
    };
    let worth = rows.len() > TASK_ROWS * order;
    context.for_each_if(worth, rows.chunks_mut(TASK_ROWS * order), task);
}

/// L⁻¹, row-major, of the L whose transpose is the upper triangle of a square.
struct CornerInverse<'a> {
    upper: &'a [f64],
    width: usize,
}

impl PlainLoop for CornerInverse<'_> {
    type Output = Vec<f64>;

    #[inline(always)]
    fn run(self) -> Vec<f64> {
        let Self { upper, width } = self;
        let mut inverse = vec![0.0; width * width];
        for i in 0..width {
            let (known, own) = inverse.split_at_mut(i * width);
            let own = &mut own[..=i];
            for (j, row) in known.chunks_exact(width).enumerate() {
                let factor = upper[j * width + i];
                for (entry, value) in own[..=j].iter_mut().zip(row) {
                    *entry -= factor * value;
                }
            }
            let pivot = upper[i * width + i];
            own.iter_mut().for_each(|entry| *entry /= pivot);
            own[i] = 1.0 / pivot;
        }
        inverse
    }
}

/// Factors the square whose upper triangle this is, in place; false at a pivot that is not positive.
struct FactorDiagonalBlock<'a> {
    upper: &'a mut [f64],
    smallest: &'a [f64],
}

impl PlainLoop for FactorDiagonalBlock<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let width = self.smallest.len();
        for top in (0..width).step_by(BAND) {
            let bottom = (top + BAND).min(width);
            let (known, rest) = self.upper.split_at_mut(bottom * width);
            let band = &mut known[top * width..];
            for j in top..bottom {
                let (own, later) = band[(j - top) * width..].split_at_mut(width);
                let row = &mut own[j..];
                if row[0].is_nan() || row[0] <= self.smallest[j] {
                    return false;
                }
                let pivot = row[0].sqrt();
                row.iter_mut().for_each(|entry| *entry /= pivot);
                row[0] = pivot;
                for (k, other) in later.chunks_exact_mut(width).enumerate() {
                    subtract(&mut other[j + 1 + k..], [row[k + 1]], [&row[k + 1..]]);
                }
            }
            for (k, own) in (bottom..).zip(rest.chunks_exact_mut(width)) {
                let row = |b: usize| &band[b * width + k..][..width - k];
                // Only the last band is short, and nothing is below it.
                let rows: [&[f64]; BAND] = std::array::from_fn(row);
                subtract(&mut own[k..], rows.map(|row| row[0]), rows);
            }
        }
        true
    }
}

/// Subtracts multiples of some rows.
#[inline(always)]
fn subtract<const N: usize>(own: &mut [f64], factors: [f64; N], rows: [&[f64]; N]) {
    let (own, own_rest) = own.as_chunks_mut::<8>();
    let parts = rows.map(|row| row.as_chunks::<8>());
    for (c, own) in own.iter_mut().enumerate() {
        for n in 0..N {
            let row = &parts[n].0[c];
            for lane in 0..8 {
                own[lane] -= factors[n] * row[lane];
            }
        }
    }
    for (k, entry) in own_rest.iter_mut().enumerate() {
        for n in 0..N {
            *entry -= factors[n] * parts[n].1[k];
        }
    }
}

/// Adds P Pᵀ to the lower triangle of a square of `order` rows; P is row-major with `width` columns.
///
/// # Errors
/// [`Error::Interrupted`](crate::Error::Interrupted) when the context asks to stop.
pub(crate) fn add_products(
    a: &mut [f64],
    order: usize,
    panel: &[f64],
    width: usize,
    context: &Context,
) -> Result<()> {
    let check = || context.checkpoint();
    add_checked_products((a, order, 0..order), panel, width, 1.0, context, &check)
}

/// Adds `sign` P Pᵀ to the lower triangle of the square that begins at the first of some columns of rows
/// `stride` wide, in those columns alone, with a `check` before every [`TASK_ROWS`] rows.
fn add_checked_products(
    (a, stride, columns): (&mut [f64], usize, Range<usize>),
    panel: &[f64],
    width: usize,
    sign: f64,
    context: &Context,
    check: &(impl Fn() -> Result<()> + Sync),
) -> Result<()> {
    let block = TASK_ROWS * width;
    let right = &panel[..(columns.len() * width).min(panel.len())];
    let packed: Vec<Weights<f64>> =
        right.chunks(block).map(|rows| Weights::new(width, rows.to_vec())).collect();
    let task = |(at, rows): (usize, &mut [f64])| {
        check()?;
        let left = &panel[at * block..(at * block + block).min(panel.len())];
        let mut product = Vec::new();
        for (b, right) in packed.iter().enumerate().take(at + 1) {
            let (first, outputs) = (columns.start + b * TASK_ROWS, right.outputs());
            product.clear();
            product.resize(left.len() / width * outputs, 0.0);
            multiply(context.instruction_set(), left, width, right, 0, width, &mut product);
            for (row, product) in rows.chunks_exact_mut(stride).zip(product.chunks_exact(outputs)) {
                for (entry, product) in row[first..].iter_mut().zip(product) {
                    *entry += sign * product;
                }
            }
        }
        Ok(())
    };
    context.try_for_each(a.chunks_mut(TASK_ROWS * stride).enumerate(), task)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::random::Generator;

    #[test]
    fn the_factor_multiplies_back_and_solves() {
        for (order, threads) in [(1, 1), (7, 1), (96, 1), (250, 2)] {
            let mut generator = Generator::new(order as u64);
            let g: Vec<f64> = (0..order * order).map(|_| generator.unit() - 0.5).collect();
            let entry = |i: usize, j: usize| {
                let ridge = if i == j { 0.1 } else { 0.0 };
                dot(&g[i * order..][..order], &g[j * order..][..order]) + ridge
            };
            let a: Vec<f64> = (0..order * order).map(|p| entry(p / order, p % order)).collect();
            let context = Context::new().with_threads(threads).unwrap();
            let factor = Cholesky::new(a.clone(), order, &context).unwrap();
            let x: Vec<f64> = (0..order).map(|i| i as f64 - 3.0).collect();
            let mut b: Vec<f64> = (0..order).map(|i| dot(&a[i * order..][..order], &x)).collect();
            factor.solve(&mut b);
            let worst = x.iter().zip(&b).map(|(x, b)| (x - b).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-7 * order as f64, "order {order}: {worst}");
            let mut unit = vec![0.0; order];
            unit[0] = 1.0;
            factor.solve_lower(&mut unit);
            let inverse = factor.inverse_lower(&context).unwrap();
            for i in 0..order {
                assert!((unit[i] - inverse[i * order]).abs() < 1e-9 * (1.0 + unit[i].abs()));
            }
            let mut columns = vec![a[..order].to_vec(), vec![1.0; order]];
            let mut one_by_one = columns.clone();
            factor.solve_lower_each(&mut columns, &context);
            factor.solve_upper_each(&mut columns, &context);
            one_by_one.iter_mut().for_each(|b| factor.solve(b));
            for (x, y) in columns.concat().iter().zip(&one_by_one.concat()) {
                assert!((x - y).abs() < 1e-9 * order as f64 * (1.0 + y.abs()), "{x} but {y}");
            }
            let mut rows: Vec<f64> = a.iter().rev().take(order.min(9) * order).copied().collect();
            let mut one_by_one = rows.clone();
            factor.solve_lower_rows(&mut rows, &context);
            one_by_one.chunks_exact_mut(order).for_each(|row| factor.solve_lower(row));
            for (row, other) in rows.iter().zip(&one_by_one) {
                assert!((row - other).abs() < 1e-9 * (1.0 + row.abs()));
            }
        }
    }

    #[test]
    fn products_are_interrupted_between_tasks() {
        use crate::CancelToken;
        use std::sync::atomic::{AtomicUsize, Ordering};
        let (order, width) = (10 * TASK_ROWS, 2);
        let panel = vec![1.0; order * width];
        let looks = AtomicUsize::new(0);
        let check = || match looks.fetch_add(1, Ordering::Relaxed) {
            3 => Err(crate::Error::Interrupted),
            _ => Ok(()),
        };
        let mut a = vec![0.0; order * order];
        let context = Context::new();
        let ended =
            add_checked_products((&mut a, order, 0..order), &panel, width, 1.0, &context, &check);
        assert!(matches!(ended, Err(crate::Error::Interrupted)));
        assert_eq!(looks.into_inner(), 4);
        assert_eq!(a[3 * TASK_ROWS * order], 0.0);
        let token = CancelToken::new();
        token.cancel();
        let stopped = Context::new().with_cancel_token(token);
        assert!(add_products(&mut a, order, &panel, width, &stopped).is_err());
    }

    #[test]
    fn an_inverse_of_any_order_is_that_of_unit_vectors_and_stops() {
        for (order, threads) in [(63, 1), (200, 1), (333, 3)] {
            let mut generator = Generator::new(order as u64);
            let mut a: Vec<f64> = (0..order * order).map(|_| generator.unit() - 0.5).collect();
            (0..order).for_each(|i| a[i * order + i] = order as f64);
            let context = Context::new().with_threads(threads).unwrap();
            let factor = Cholesky::new(a, order, &context).unwrap();
            let inverse = factor.inverse_lower(&context).unwrap();
            for j in 0..order {
                let mut unit = vec![0.0; order];
                unit[j] = 1.0;
                factor.solve_lower(&mut unit);
                for i in 0..order {
                    assert!((unit[i] - inverse[i * order + j]).abs() < 1e-14, "{order}: {i} {j}");
                }
            }
            let stopped = context.with_time_limit(std::time::Duration::ZERO);
            assert!(matches!(factor.inverse_lower(&stopped), Err(crate::Error::Interrupted)));
        }
    }

    #[test]
    fn a_singular_matrix_has_no_factor() {
        let a = vec![1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 3.0, 6.0, 9.0];
        assert!(Cholesky::new(a, 3, &Context::new()).is_none());
    }
}
