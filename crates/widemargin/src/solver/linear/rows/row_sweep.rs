//! One pass of dual coordinate descent over sparse rows for several problems, each a class against
//! the rest.
//!
//! A row is read once for all problems that look at it. A variable at a bound, held there by its gradient, is
//! skipped for one pass, then three, then seven; one beyond the shrinking bounds is skipped until it is
//! reactivated.

use super::linear_rows::{Stored, fetch};
use super::row_lists::{InDouble, MOST_VECTORS, RowLists, Values, Wide};
use crate::numeric::InstructionSet;
use crate::numeric::simd::{Lanes, Real, Task, Vector, VectorFamily, dispatch};
use crate::solver::linear::tuning::dual::{NEGLIGIBLE, ROWS_AHEAD};

/// `skip_until` is the number of the pass that looks again plus an eighth of the passes skipped.
const EIGHTH: f64 = 0.125;

/// One row's variables, 0 ≤ α ≤ bound, those of all problems.
///
/// The pairs are for the other classes' problems and for the one of the row's own class.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct BatchDuals<T, const L: usize> {
    /// α
    pub alpha: [T; L],
    /// The pass in which a problem looks again.
    pub skip_until: [T; L],
    /// The problem of the row's own class, `L` if it is none of these.
    pub own: usize,
    /// Largest α.
    pub bound: [T; 2],
    /// r, where a variable costs ½rα².
    pub ridge: [T; 2],
    /// 1 / (‖x‖² + r)
    pub inverse_curvature: [T; 2],
}

impl<T: Real, const L: usize> BatchDuals<T, L> {
    /// The problem's entry of a pair.
    pub(crate) fn of(&self, pair: [T; 2], k: usize) -> f64 {
        pair[usize::from(k == self.own)].to_f64()
    }

    /// +1 in the problem of its own class, −1 in the others.
    pub(crate) fn side(&self, k: usize) -> f64 {
        if k == self.own { 1.0 } else { -1.0 }
    }

    /// The part of the slope that variable `k` can follow where the row's value is `value`.
    pub(crate) fn projected(&self, k: usize, value: f64) -> f64 {
        let alpha = self.alpha[k].to_f64();
        let slope = self.side(k) * value + self.of(self.ridge, k) * alpha - 1.0;
        let low = if alpha == 0.0 { slope.min(0.0) } else { slope };
        if alpha >= self.of(self.bound, k) { low.max(0.0) } else { low }
    }

    /// Makes problem `k` look in pass 0.
    pub(crate) fn reactivate(&mut self, k: usize) {
        if self.of(self.bound, k) > 0.0 {
            self.skip_until[k] = T::ZERO;
        }
    }
}

/// The input of a pass for each problem.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SweepBounds<T, const L: usize> {
    /// The number of the pass.
    pub pass: usize,
    /// Slopes beyond which variables at 0 become inactive.
    pub above: [T; L],
    /// Slopes below which variables at their bound become inactive.
    pub below: [T; L],
    /// Passes that a variable is skipped for, at most 7.
    pub most_skipped: u8,
}

/// KKT violations that a pass met.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SweepViolation<T, const L: usize> {
    /// Largest projected slope, at least 0.
    pub highest: [T; L],
    /// Smallest projected slope, at most 0.
    pub lowest: [T; L],
    /// Variables visited.
    pub looks: [T; L],
}

/// One pass over the rows in an order, weights following.
///
/// # Panics
/// When there are too few duals or weights.
pub(crate) fn sweep<T: Real, const L: usize>(
    set: InstructionSet,
    rows: &RowLists<'_>,
    duals: &mut [BatchDuals<T, L>],
    order: &[u32],
    weights: &mut [[T; L]],
    bounds: &SweepBounds<T, L>,
) -> SweepViolation<T, L> {
    assert!(weights.len() >= rows.width(), "weights for every feature");
    match rows.values {
        Values::Single(values) => {
            dispatch(fitting::<T, L>(set), Sweep { rows, values, duals, order, weights, bounds })
        }
        Values::Double(values) => {
            dispatch(fitting::<T, L>(set), Sweep { rows, values, duals, order, weights, bounds })
        }
        Values::Ones(values) => {
            dispatch(fitting::<T, L>(set), Sweep { rows, values, duals, order, weights, bounds })
        }
    }
}

/// The values ⟨wₖ, xᵢ⟩ of all rows, added up in double precision.
///
/// # Panics
/// When there are too few weights.
pub(crate) fn row_values<T: Real, const L: usize>(
    set: InstructionSet,
    rows: &RowLists<'_>,
    weights: &[[T; L]],
) -> Vec<[f64; L]> {
    assert!(weights.len() >= rows.width(), "weights for every feature");
    match rows.values {
        Values::Single(values) => {
            dispatch(fitting::<T, L>(set), Products { rows, values, weights })
        }
        Values::Double(values) => {
            dispatch(fitting::<T, L>(set), Products { rows, values, weights })
        }
        Values::Ones(values) => dispatch(fitting::<T, L>(set), Products { rows, values, weights }),
    }
}

/// The instructions whose vectors are no wider than `L`.
fn fitting<T, const L: usize>(set: InstructionSet) -> InstructionSet {
    const { assert!(L * size_of::<T>() >= 32, "room for a vector of AVX2") };
    let narrow = L * size_of::<T>() < 64;
    if narrow && set == InstructionSet::Avx512 { InstructionSet::Avx2 } else { set }
}

struct Products<'a, T, V, const L: usize> {
    rows: &'a RowLists<'a>,
    values: &'a [V],
    weights: &'a [[T; L]],
}

impl<T: Real, V: Stored, const L: usize> Task for Products<'_, T, V, L> {
    type Output = Vec<[f64; L]>;

    #[inline(always)]
    unsafe fn run<F: VectorFamily>(self) -> Vec<[f64; L]> {
        let mut products = vec![[0.0; L]; self.rows.rows()];
        for (i, product) in products.iter_mut().enumerate() {
            // SAFETY: `row_values` counted the weights, and the caller has the instructions.
            unsafe {
                let sums = self.rows.dot::<F, V, _>(self.values, i, InDouble(self.weights));
                for v in 0..L / F::Double::WIDTH {
                    sums[v].store(product.as_mut_ptr().add(v * F::Double::WIDTH));
                }
            }
        }
        products
    }
}

struct Sweep<'a, T, V, const L: usize> {
    rows: &'a RowLists<'a>,
    values: &'a [V],
    duals: &'a mut [BatchDuals<T, L>],
    order: &'a [u32],
    weights: &'a mut [[T; L]],
    bounds: &'a SweepBounds<T, L>,
}

impl<T: Real, V: Stored, const L: usize> Task for Sweep<'_, T, V, L> {
    type Output = SweepViolation<T, L>;

    #[inline(always)]
    unsafe fn run<F: VectorFamily>(self) -> SweepViolation<T, L> {
        let Self { rows, values, duals, order, weights, bounds } = self;
        let width = Vector::<T, F>::WIDTH;
        let mut owners = vec![[-T::ONE; L]; L + 1];
        (0..L).for_each(|k| owners[k][k] = T::ONE);
        let mut seen =
            SweepViolation { highest: [T::ZERO; L], lowest: [T::ZERO; L], looks: [T::ZERO; L] };
        // SAFETY: arrays hold `L` numbers, a multiple of the vectors' width; `sweep` counted the
        // weights, and the caller has the instructions.
        unsafe {
            let next = Vector::<T, F>::splat(T::from_f64((bounds.pass + 1) as f64));
            let (zero, one) = (Vector::<T, F>::splat(T::ZERO), Vector::<T, F>::splat(T::ONE));
            for (s, &i) in order.iter().enumerate() {
                if let Some(&ahead) = order.get(s + ROWS_AHEAD) {
                    rows.prefetch(ahead as usize, values);
                    let row_duals = &duals[ahead as usize];
                    fetch(&row_duals.alpha, 0);
                    fetch(&row_duals.skip_until, 0);
                    fetch(&row_duals.inverse_curvature, 0);
                }
                let row_duals = &mut duals[i as usize];
                let mut looks = zero;
                for v in 0..L / width {
                    let skip_until =
                        Vector::<T, F>::load(row_duals.skip_until.as_ptr().add(v * width));
                    looks = looks.add(skip_until.select_ge(next, zero, one));
                }
                if looks.sum() == 0.0 {
                    continue;
                }
                let products = rows.dot::<F, V, _>(values, i as usize, &*weights);
                let mut steps: Wide<T, F> = [zero; MOST_VECTORS];
                let mut moved = zero;
                for v in 0..L / width {
                    let sides = Vector::<T, F>::load(owners[row_duals.own].as_ptr().add(v * width));
                    steps[v] = visit::<F, T, L>(
                        row_duals,
                        v * width,
                        products[v],
                        sides,
                        bounds,
                        &mut seen,
                    );
                    moved = moved.add(steps[v].abs());
                }
                if moved.sum() != 0.0 {
                    rows.add::<F, T, V, L>(values, i as usize, &steps, weights);
                }
            }
        }
        seen
    }
}

/// Moves the variables of a vector of problems, from problem `at` on; gives the steps of yα.
///
/// # Safety
/// The processor has the instructions of `F`, and there are that many problems from `at` on.
#[inline(always)]
unsafe fn visit<F: VectorFamily, T: Real, const L: usize>(
    row_duals: &mut BatchDuals<T, L>,
    at: usize,
    value: Vector<T, F>,
    side: Vector<T, F>,
    bounds: &SweepBounds<T, L>,
    seen: &mut SweepViolation<T, L>,
) -> Vector<T, F> {
    // SAFETY: the arrays reach as far as promised.
    unsafe {
        let zero = Vector::<T, F>::splat(T::ZERO);
        let positive = zero.fill(T::MIN_POSITIVE);
        let now = all::<F, T>(zero, bounds.pass as f64);
        let next = now.add(all::<F, T>(zero, 1.0));
        let alpha = load::<F, T, L>(&row_duals.alpha, at);
        let skip_until = load::<F, T, L>(&row_duals.skip_until, at);
        let bound = pair::<F, T>(row_duals.bound, side);
        let ridge = pair::<F, T>(row_duals.ridge, side);
        let inverse_curvature = pair::<F, T>(row_duals.inverse_curvature, side);
        let slope = side.mul_add(value, ridge.mul_add(alpha, all::<F, T>(zero, -1.0)));
        let low = alpha.select_ge(positive, slope, slope.min(zero));
        let followed = alpha.select_ge(bound, low.max(zero), low);
        // How far beyond the band a variable at 0 or at its bound is.
        let at_bound = load::<F, T, L>(&bounds.below, at).sub(slope);
        let at_bound = alpha.select_ge(bound, at_bound, all::<F, T>(zero, -1.0));
        let at_zero = slope.sub(load::<F, T, L>(&bounds.above, at));
        let beyond = alpha.select_ge(positive, at_bound, at_zero);
        let followed = beyond.select_ge(positive, zero, followed);
        let followed = skip_until.select_ge(next, zero, followed);
        seen.note::<F>(at, followed, skip_until.select_ge(next, zero, all::<F, T>(zero, 1.0)));
        let least = slope.neg_mul_add(inverse_curvature, alpha).max(zero).min(bound);
        let moved = followed.abs().select_ge(all::<F, T>(zero, NEGLIGIBLE), least, alpha);
        moved.store(row_duals.alpha.as_mut_ptr().add(at));
        let skipped = skip_until.sub(now);
        let most_skipped = all::<F, T>(zero, EIGHTH * f64::from(bounds.most_skipped));
        let skipped = skipped.add(skipped).add(all::<F, T>(zero, EIGHTH)).min(most_skipped);
        let idle = skipped.mul_add(all::<F, T>(zero, 1.0 + 1.0 / EIGHTH), next);
        let after = followed.abs().select_ge(positive, next, idle);
        let after = beyond.select_ge(positive, all::<F, T>(zero, f64::INFINITY), after);
        skip_until
            .select_ge(next, skip_until, after)
            .store(row_duals.skip_until.as_mut_ptr().add(at));
        side.mul(moved.sub(alpha))
    }
}

impl<T: Real, const L: usize> SweepViolation<T, L> {
    /// Notes projected slopes, and which problems looked.
    ///
    /// # Safety
    /// As `visit`.
    #[inline(always)]
    unsafe fn note<F: VectorFamily>(
        &mut self,
        at: usize,
        followed: Vector<T, F>,
        looks: Vector<T, F>,
    ) {
        // SAFETY: as above.
        unsafe {
            let highest = load::<F, T, L>(&self.highest, at).max(followed);
            let lowest = load::<F, T, L>(&self.lowest, at).min(followed);
            let looks = load::<F, T, L>(&self.looks, at).add(looks);
            highest.store(self.highest.as_mut_ptr().add(at));
            lowest.store(self.lowest.as_mut_ptr().add(at));
            looks.store(self.looks.as_mut_ptr().add(at));
        }
    }
}

/// Numbers from `at` on.
///
/// # Safety
/// As `visit`.
#[inline(always)]
unsafe fn load<F: VectorFamily, T: Real, const L: usize>(list: &[T; L], at: usize) -> Vector<T, F> {
    // SAFETY: the list reaches that far.
    unsafe { Vector::<T, F>::load(list.as_ptr().add(at)) }
}

/// A vector like another with all numbers equal to `value`.
#[inline(always)]
fn all<F: VectorFamily, T: Real>(like: Vector<T, F>, value: f64) -> Vector<T, F> {
    like.fill(T::from_f64(value))
}

/// The second of a pair where the side is positive, the first elsewhere.
#[inline(always)]
fn pair<F: VectorFamily, T: Real>(pair: [T; 2], side: Vector<T, F>) -> Vector<T, F> {
    side.select_ge(side.fill(T::ZERO), side.fill(pair[1]), side.fill(pair[0]))
}
