//! One pass of dual coordinate descent over sparse rows for several problems, each a class against
//! the rest.
//!
//! A row is read once for all problems that look at it. Whoever is idle, at a bound and held there,
//! rests for one pass, then three, then seven; whoever is beyond its band rests until called.

use super::linear_rows::{Stored, fetch};
use super::row_lists::{RowLists, Values, Wide};
use super::{Family, InstructionSet, Lanes, Task, dispatch};

/// Rows ahead of the current one that are fetched.
const AHEAD: usize = 4;

/// Slopes closer to 0 than this move nothing.
const NEGLIGIBLE: f64 = 1e-12;

/// Anything above 0.
const POSITIVE: f64 = f64::MIN_POSITIVE;

/// A rest is the number of the pass that ends it plus an eighth of its length in passes.
const EIGHTH: f64 = 0.125;

/// One row's variables, 0 ≤ α ≤ bound, those of all problems side by side.
///
/// The pairs are for the other classes' problems and for the one of the row's own class.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Seat<const L: usize> {
    /// α
    pub alpha: [f64; L],
    /// When a problem looks again.
    pub rest: [f64; L],
    /// The problem of the row's own class, `L` if it is none of these.
    pub own: usize,
    /// Largest α.
    pub bound: [f64; 2],
    /// r, where a variable costs ½rα².
    pub ridge: [f64; 2],
    /// 1 / (‖x‖² + r)
    pub reach: [f64; 2],
}

impl<const L: usize> Seat<L> {
    /// The problem's entry of a pair.
    pub fn of(&self, pair: [f64; 2], k: usize) -> f64 {
        pair[usize::from(k == self.own)]
    }

    /// +1 in the problem of its own class, −1 in the others.
    pub fn side(&self, k: usize) -> f64 {
        if k == self.own { 1.0 } else { -1.0 }
    }

    /// The part of the slope that variable `k` can follow where the row's value is `value`.
    pub fn projected(&self, k: usize, value: f64) -> f64 {
        let alpha = self.alpha[k];
        let slope = self.side(k) * value + self.of(self.ridge, k) * alpha - 1.0;
        let low = if alpha == 0.0 { slope.min(0.0) } else { slope };
        if alpha >= self.of(self.bound, k) { low.max(0.0) } else { low }
    }

    /// Makes problem `k` look in pass 0.
    pub fn call(&mut self, k: usize) {
        if self.of(self.bound, k) > 0.0 {
            self.rest[k] = 0.0;
        }
    }
}

/// How the problems look.
#[derive(Clone, Copy, Debug)]
pub struct Look<const L: usize> {
    /// The number of the pass.
    pub pass: usize,
    /// Slopes beyond which variables at 0 are set aside.
    pub above: [f64; L],
    /// Slopes below which variables at their bound are set aside.
    pub below: [f64; L],
    /// The longest rest of the idle, at most 7.
    pub longest: u8,
}

/// What the problems met.
#[derive(Clone, Copy, Debug)]
pub struct Seen<const L: usize> {
    /// Largest projected slope, at least 0.
    pub highest: [f64; L],
    /// Smallest projected slope, at most 0.
    pub lowest: [f64; L],
    /// Variables looked at.
    pub looks: [f64; L],
}

/// One pass over the rows in an order, weights following.
///
/// # Panics
/// When there are too few seats or weights.
pub fn sweep<const L: usize>(
    set: InstructionSet,
    rows: &RowLists<'_>,
    seats: &mut [Seat<L>],
    order: &[u32],
    weights: &mut [[f64; L]],
    look: &Look<L>,
) -> Seen<L> {
    assert!(weights.len() >= rows.width(), "weights for every feature");
    match rows.values {
        Values::Single(values) => {
            dispatch(fitting::<L>(set), Sweep { rows, values, seats, order, weights, look })
        }
        Values::Double(values) => {
            dispatch(fitting::<L>(set), Sweep { rows, values, seats, order, weights, look })
        }
        Values::Ones(values) => {
            dispatch(fitting::<L>(set), Sweep { rows, values, seats, order, weights, look })
        }
    }
}

/// The values ⟨wₖ, xᵢ⟩ of all rows.
///
/// # Panics
/// When there are too few weights.
pub fn row_values<const L: usize>(
    set: InstructionSet,
    rows: &RowLists<'_>,
    weights: &[[f64; L]],
) -> Vec<[f64; L]> {
    assert!(weights.len() >= rows.width(), "weights for every feature");
    match rows.values {
        Values::Single(values) => dispatch(fitting::<L>(set), Products { rows, values, weights }),
        Values::Double(values) => dispatch(fitting::<L>(set), Products { rows, values, weights }),
        Values::Ones(values) => dispatch(fitting::<L>(set), Products { rows, values, weights }),
    }
}

/// The instructions whose vectors are no wider than `L`.
fn fitting<const L: usize>(set: InstructionSet) -> InstructionSet {
    if L < 8 && set == InstructionSet::Avx512 { InstructionSet::Avx2 } else { set }
}

struct Products<'a, V, const L: usize> {
    rows: &'a RowLists<'a>,
    values: &'a [V],
    weights: &'a [[f64; L]],
}

impl<V: Stored, const L: usize> Task for Products<'_, V, L> {
    type Output = Vec<[f64; L]>;

    #[inline(always)]
    unsafe fn run<F: Family>(self) -> Vec<[f64; L]> {
        let mut products = vec![[0.0; L]; self.rows.rows()];
        for (i, product) in products.iter_mut().enumerate() {
            // SAFETY: `row_values` counted the weights, and the caller has the instructions.
            unsafe {
                let sums = self.rows.dot::<F, V, L>(self.values, i, self.weights);
                for v in 0..L / F::Double::WIDTH {
                    sums[v].store(product.as_mut_ptr().add(v * F::Double::WIDTH));
                }
            }
        }
        products
    }
}

struct Sweep<'a, V, const L: usize> {
    rows: &'a RowLists<'a>,
    values: &'a [V],
    seats: &'a mut [Seat<L>],
    order: &'a [u32],
    weights: &'a mut [[f64; L]],
    look: &'a Look<L>,
}

impl<V: Stored, const L: usize> Task for Sweep<'_, V, L> {
    type Output = Seen<L>;

    #[inline(always)]
    unsafe fn run<F: Family>(self) -> Seen<L> {
        let Self { rows, values, seats, order, weights, look } = self;
        let width = F::Double::WIDTH;
        let mut owners = vec![[-1.0; L]; L + 1];
        (0..L).for_each(|k| owners[k][k] = 1.0);
        let mut seen = Seen { highest: [0.0; L], lowest: [0.0; L], looks: [0.0; L] };
        // SAFETY: arrays hold `L` numbers, a multiple of the vectors' width; `sweep` counted the
        // weights, and the caller has the instructions.
        unsafe {
            let next = F::Double::splat((look.pass + 1) as f64);
            let (zero, one) = (F::Double::splat(0.0), F::Double::splat(1.0));
            for (s, &i) in order.iter().enumerate() {
                if let Some(&ahead) = order.get(s + AHEAD) {
                    rows.prefetch(ahead as usize, values);
                    let seat = &seats[ahead as usize];
                    fetch(&seat.alpha, 0);
                    fetch(&seat.rest, 0);
                    fetch(&seat.reach, 0);
                }
                let seat = &mut seats[i as usize];
                let mut looks = zero;
                for v in 0..L / width {
                    let rest = F::Double::load(seat.rest.as_ptr().add(v * width));
                    looks = looks.add(rest.select_ge(next, zero, one));
                }
                if looks.sum() == 0.0 {
                    continue;
                }
                let products = rows.dot::<F, V, L>(values, i as usize, weights);
                let mut steps: Wide<F> = [zero; 4];
                let mut moved = zero;
                for v in 0..L / width {
                    let sides = F::Double::load(owners[seat.own].as_ptr().add(v * width));
                    steps[v] = visit::<F, L>(seat, v * width, products[v], sides, look, &mut seen);
                    moved = moved.add(steps[v].abs());
                }
                if moved.sum() != 0.0 {
                    rows.add::<F, V, L>(values, i as usize, &steps, weights);
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
unsafe fn visit<F: Family, const L: usize>(
    seat: &mut Seat<L>,
    at: usize,
    value: F::Double,
    side: F::Double,
    look: &Look<L>,
    seen: &mut Seen<L>,
) -> F::Double {
    // SAFETY: the arrays reach as far as promised.
    unsafe {
        let (zero, positive) = (F::Double::splat(0.0), F::Double::splat(POSITIVE));
        let now = F::Double::splat(look.pass as f64);
        let next = now.add(F::Double::splat(1.0));
        let alpha = load::<F, L>(&seat.alpha, at);
        let rest = load::<F, L>(&seat.rest, at);
        let bound = pair::<F>(seat.bound, side);
        let ridge = pair::<F>(seat.ridge, side);
        let reach = pair::<F>(seat.reach, side);
        let slope = side.mul_add(value, ridge.mul_add(alpha, zero.fill(-1.0)));
        let low = alpha.select_ge(positive, slope, slope.min(zero));
        let followed = alpha.select_ge(bound, low.max(zero), low);
        // How far beyond the band a variable at 0 or at its bound is.
        let at_bound = load::<F, L>(&look.below, at).sub(slope);
        let at_bound = alpha.select_ge(bound, at_bound, zero.fill(-1.0));
        let at_zero = slope.sub(load::<F, L>(&look.above, at));
        let beyond = alpha.select_ge(positive, at_bound, at_zero);
        let followed = beyond.select_ge(positive, zero, followed);
        let followed = rest.select_ge(next, zero, followed);
        seen.note::<F>(at, followed, rest.select_ge(next, zero, zero.fill(1.0)));
        let least = slope.neg_mul_add(reach, alpha).max(zero).min(bound);
        let moved = followed.abs().select_ge(zero.fill(NEGLIGIBLE), least, alpha);
        moved.store(seat.alpha.as_mut_ptr().add(at));
        let nap = rest.sub(now);
        let longest = zero.fill(EIGHTH * f64::from(look.longest));
        let nap = nap.add(nap).add(zero.fill(EIGHTH)).min(longest);
        let idle = nap.mul_add(zero.fill(1.0 + 1.0 / EIGHTH), next);
        let after = followed.abs().select_ge(positive, next, idle);
        let after = beyond.select_ge(positive, zero.fill(f64::INFINITY), after);
        rest.select_ge(next, rest, after).store(seat.rest.as_mut_ptr().add(at));
        side.mul(moved.sub(alpha))
    }
}

impl<const L: usize> Seen<L> {
    /// Notes projected slopes, and who looked.
    ///
    /// # Safety
    /// As `visit`.
    #[inline(always)]
    unsafe fn note<F: Family>(&mut self, at: usize, followed: F::Double, looks: F::Double) {
        // SAFETY: as above.
        unsafe {
            let highest = load::<F, L>(&self.highest, at).max(followed);
            let lowest = load::<F, L>(&self.lowest, at).min(followed);
            let looks = load::<F, L>(&self.looks, at).add(looks);
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
unsafe fn load<F: Family, const L: usize>(list: &[f64; L], at: usize) -> F::Double {
    // SAFETY: the list reaches that far.
    unsafe { F::Double::load(list.as_ptr().add(at)) }
}

/// The second of a pair where the side is positive, the first elsewhere.
#[inline(always)]
fn pair<F: Family>(pair: [f64; 2], side: F::Double) -> F::Double {
    side.select_ge(side.fill(0.0), side.fill(pair[1]), side.fill(pair[0]))
}
