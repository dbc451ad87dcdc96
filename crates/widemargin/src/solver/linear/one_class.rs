//! The linear one-class machine: a half-space ⟨w, x⟩ ≥ ρ away from the origin.
//!
//! `min ½‖Σ αᵢxᵢ‖²` with 0 ≤ αᵢ ≤ uᵢ and Σα = ν Σu. A pass computes the gradients of all
//! active variables, then moves pairs of the worst violators against each other
//! with fresh ones, so that the sum stays. Chou, Lin and Lin (2020). Variables begin at their bounds
//! for the rows that are least like the mean.

use super::problem::{Options, Passes, Solution, squared_norm};
use super::products::Products;
use super::table::{Table, WeightedRows};
use super::tuning::one_class::{LARGE_DATA, LEAST_PAIRS, MOVED_SHARE, RUN, RUN_STRIDE};
use crate::context::Context;
use crate::solver::Status;
use crate::solver::linear::rows::LinearRows;

/// How much of its length rounding may add to a move of the weights.
const ROUNDING: f64 = 1e-13;

/// A half-space.
#[derive(Clone, Debug)]
pub(crate) struct HalfSpace {
    /// Weights, variables and proof.
    pub solution: Solution,
    /// ρ
    pub offset: f64,
}

/// Finds the half-space; `upper` bounds every variable and `total` is their sum, at most Σ upper.
///
/// The tolerance bounds the range of gradients over variables that can move.
pub(crate) fn solve<R: LinearRows>(
    rows: &R,
    upper: &[f64],
    total: f64,
    options: &Options,
    context: &Context,
) -> HalfSpace {
    let count = rows.rows();
    let mut passes = Passes::new(options, context);
    let mut search = Search {
        rows,
        upper,
        shrinking: options.shrinking,
        alpha: vec![0.0; count],
        weights: vec![0.0; rows.width()],
        gradient: vec![0.0; count],
        squares: vec![0.0; count],
        scratch: vec![0.0; rows.width()],
        rising: Vec::new(),
        falling: Vec::new(),
    };
    let products = Products::new(rows, true, context);
    products.write_values(&search.sum_of_some(&products), &mut search.gradient);
    search.fill(total);
    search.weights = products.transposed(&WeightedRows::new(&search.alpha));
    search.look_at_all(&products);
    let mut active: Vec<u32> = (0..count as u32).collect();
    let (status, violation) = search.descend(&mut active, options.tol, &mut passes);
    let Search { alpha, weights, gradient, .. } = search;
    let offset = offset(&active, &alpha, upper, &gradient);
    let half = 0.5 * squared_norm(&weights);
    // Σ α(g − ρ) + u(ρ − g)₊, to which inactive variables add nothing.
    let gap = |i: usize| {
        let over = gradient[i] - offset;
        alpha[i] * over + upper[i] * (-over).max(0.0)
    };
    let gap: f64 = active.iter().map(|&i| gap(i as usize)).sum();
    let outcome = passes.outcome(status, gap - half, -half, violation);
    HalfSpace { solution: Solution { weights, dual: alpha, outcome }, offset }
}

/// Variables, the weights Σ αᵢxᵢ and what is known about the rows.
struct Search<'a, R> {
    rows: &'a R,
    upper: &'a [f64],
    shrinking: bool,
    alpha: Vec<f64>,
    weights: Vec<f64>,
    /// ⟨w, xᵢ⟩ when it was last computed.
    gradient: Vec<f64>,
    squares: Vec<f64>,
    scratch: Vec<f64>,
    rising: Vec<u32>,
    falling: Vec<u32>,
}

impl<R: LinearRows> Search<'_, R> {
    /// The sum of some rows, in runs that share pages.
    fn sum_of_some(&self, products: &Products<'_, R>) -> Vec<f64> {
        let count = self.upper.len();
        let step = if count < LARGE_DATA { 1 } else { RUN_STRIDE };
        let mut some = WeightedRows::default();
        for run in (0..count).step_by(RUN * step) {
            (run..(run + RUN).min(count)).for_each(|i| some.push(i, self.upper[i]));
        }
        products.transposed(&some)
    }

    /// Puts the variables at their bounds whose gradients are least, as many as `total` takes.
    fn fill(&mut self, total: f64) {
        // Where bounds are about equal the rows before this place are those that take all of theirs.
        let share = total / self.upper.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let last = (share * self.upper.len() as f64) as usize;
        let mut sorted = self.gradient.clone();
        let middle = match sorted.get(last) {
            Some(_) => *sorted.select_nth_unstable_by(last, f64::total_cmp).1,
            None => f64::INFINITY,
        };
        let mut rest = total;
        for below in [true, false] {
            for (i, gradient) in self.gradient.iter().enumerate() {
                if (*gradient < middle) == below {
                    self.alpha[i] = self.upper[i].min(rest).max(0.0);
                    rest -= self.alpha[i];
                }
            }
        }
    }

    /// Brings the gradients of a list up to date.
    fn look(&mut self, list: &[u32]) {
        for i in list.iter().map(|&i| i as usize) {
            self.gradient[i] = self.rows.dot(i, &self.weights);
        }
    }

    /// Brings all gradients and ‖xᵢ‖² up to date, reading every row once.
    fn look_at_all(&mut self, products: &Products<'_, R>) {
        let (rows, weights) = (self.rows, &self.weights);
        let squares = products.of_parts_mut(&mut self.gradient, |first, gradient| {
            let both = |(at, gradient): (usize, &mut f64)| {
                *gradient = rows.dot(first + at, weights);
                rows.squared_norm(first + at)
            };
            gradient.iter_mut().enumerate().map(both).collect::<Vec<f64>>()
        });
        self.squares = squares.concat();
    }

    /// Moves the variables of a list, whose gradients are up to date, until their range is at most
    /// `tol` or a limit is met; the list is left with those that a look was needed at.
    fn descend(
        &mut self,
        active: &mut Vec<u32>,
        tol: f64,
        passes: &mut Passes<'_>,
    ) -> (Status, f64) {
        let mut inactive = Inactive::default();
        let mut before = self.weights.clone();
        loop {
            let (low, high) = range(active, &self.alpha, self.upper, &self.gradient);
            let violation = (high - low).max(0.0);
            let stop = passes.stop();
            if violation <= tol || stop.is_some() {
                let certain = active.len();
                inactive.reactivate(active, low, high, self);
                if active.len() > certain {
                    self.look(&active[certain..]);
                    continue;
                }
                return (stop.unwrap_or(Status::Solved), violation);
            }
            let pairs = self.choose(active, low, high, &mut inactive);
            for at in 0..pairs {
                self.exchange(self.rising[at] as usize, self.falling[at] as usize);
            }
            self.look(active);
            let moved = self.weights.iter().zip(&before).map(|(w, b)| (w - b) * (w - b));
            inactive.record_move(moved.sum::<f64>().sqrt(), &self.weights);
            before.copy_from_slice(&self.weights);
            passes.finish(pairs, violation, || -0.5 * squared_norm(&self.weights));
        }
    }

    /// Makes those inactive that stay at their bound and finds the worst violators among the others: how many
    /// are to rise and to fall.
    fn choose(
        &mut self,
        active: &mut Vec<u32>,
        low: f64,
        high: f64,
        inactive: &mut Inactive,
    ) -> usize {
        let Self { alpha, upper, gradient, rising, falling, .. } = self;
        let (count, before) = (active.len(), inactive.rows.len());
        rising.resize(count, 0);
        falling.resize(count, 0);
        inactive.rows.resize(before + count, 0);
        let (mut rises, mut falls, mut kept, mut left) = (0, 0, 0, before);
        // A branch would be unpredictable, so there is none.
        for s in 0..count {
            let i = active[s];
            let at = i as usize;
            let (can_rise, can_fall) = (alpha[at] < upper[at], alpha[at] > 0.0);
            let slope = gradient[at];
            let within = (slope <= high) | can_fall;
            let stays = !self.shrinking | (within & ((slope >= low) | can_rise));
            (rising[rises], falling[falls]) = (i, i);
            rises += usize::from(can_rise & (slope < high));
            falls += usize::from(can_fall & (slope > low));
            (active[kept], inactive.rows[left]) = (i, i);
            kept += usize::from(stays);
            left += usize::from(!stays);
        }
        rising.truncate(rises);
        falling.truncate(falls);
        active.truncate(kept);
        inactive.rows.truncate(left);
        inactive.end_pass();
        let pairs =
            (active.len() / MOVED_SHARE).max(LEAST_PAIRS).min(rising.len()).min(falling.len());
        keep_first(rising, pairs, |i| gradient[i as usize]);
        keep_first(falling, pairs, |i| -gradient[i as usize]);
        pairs
    }

    /// Minimises over two variables whose sum stays.
    fn exchange(&mut self, up: usize, down: usize) {
        let (rows, alpha, upper) = (self.rows, &mut self.alpha, self.upper);
        if up == down || alpha[up] >= upper[up] || alpha[down] <= 0.0 {
            return;
        }
        let difference = rows.dot(down, &self.weights) - rows.dot(up, &self.weights);
        if difference <= 0.0 {
            return;
        }
        rows.add(up, 1.0, &mut self.scratch);
        let product = rows.dot(down, &self.scratch);
        rows.visit(up, |j, _| self.scratch[j] = 0.0);
        let curvature = (self.squares[up] + self.squares[down] - 2.0 * product).max(1e-12);
        let step = (difference / curvature).min(upper[up] - alpha[up]).min(alpha[down]);
        alpha[up] += step;
        alpha[down] -= step;
        rows.add(up, step, &mut self.weights);
        rows.add(down, -step, &mut self.weights);
    }
}

/// Variables at bounds that their gradients held them at by some margin when they were last looked
/// at.
///
/// ⟨w, xᵢ⟩ has changed since by at most ‖xᵢ‖ times the way that w has gone, so that most of them are
/// known to be still in their place without a look.
#[derive(Default)]
struct Inactive {
    rows: Vec<u32>,
    /// Where the rows of each pass end, and how far w had gone.
    passes: Vec<(usize, f64)>,
    way: f64,
}

impl Inactive {
    /// Notes that the rows that were not there before have gradients of the present weights.
    fn end_pass(&mut self) {
        if self.rows.len() > self.passes.last().map_or(0, |last| last.0) {
            self.passes.push((self.rows.len(), self.way));
        }
    }

    /// Notes that the weights have moved to `weights` by a step of that size.
    fn record_move(&mut self, step: f64, weights: &[f64]) {
        self.way += step + ROUNDING * squared_norm(weights).sqrt();
    }

    /// Makes those active that may have left their place: outside the gradients from `low`, of one
    /// that can rise, to `high`, of one that can fall.
    fn reactivate<R>(
        &mut self,
        active: &mut Vec<u32>,
        low: f64,
        high: f64,
        search: &Search<'_, R>,
    ) {
        // With no violation the offset is anywhere between the two, which then stand the other way round.
        let (low, high) = (low.min(high), low.max(high));
        let (mut kept, mut start) = (0, 0);
        for pass in &mut self.passes {
            let way = self.way - pass.1;
            for at in start..pass.0 {
                let i = self.rows[at] as usize;
                let (change, gradient) = (way * search.squares[i].sqrt(), search.gradient[i]);
                let inactive = match search.alpha[i] > 0.0 {
                    true => gradient + change <= low,
                    false => gradient - change >= high,
                };
                if inactive {
                    self.rows[kept] = i as u32;
                    kept += 1;
                } else {
                    active.push(i as u32);
                }
            }
            start = pass.0;
            pass.0 = kept;
        }
        self.rows.truncate(kept);
    }
}

/// Smallest gradient of an active variable that can rise and largest of one that can fall.
fn range(active: &[u32], alpha: &[f64], upper: &[f64], gradient: &[f64]) -> (f64, f64) {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for i in active.iter().map(|&i| i as usize) {
        low = low.min(if alpha[i] < upper[i] { gradient[i] } else { f64::INFINITY });
        high = high.max(if alpha[i] > 0.0 { gradient[i] } else { f64::NEG_INFINITY });
    }
    (low, high)
}

/// Keeps the `count` entries with the smallest keys, in order.
fn keep_first(list: &mut Vec<u32>, count: usize, key: impl Fn(u32) -> f64) {
    let order = |a: &u32, b: &u32| key(*a).total_cmp(&key(*b)).then(a.cmp(b));
    if count < list.len() {
        list.select_nth_unstable_by(count, order);
        list.truncate(count);
    }
    list.sort_unstable_by(order);
}

/// ρ: the mean gradient of variables inside their bounds, or the middle of what is possible.
fn offset(active: &[u32], alpha: &[f64], upper: &[f64], gradient: &[f64]) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for i in active.iter().map(|&i| i as usize) {
        if alpha[i] > 0.0 && alpha[i] < upper[i] {
            sum += gradient[i];
            count += 1.0;
        }
    }
    if count > 0.0 {
        return sum / count;
    }
    let (low, high) = range(active, alpha, upper, gradient);
    match (low.is_finite(), high.is_finite()) {
        (true, true) => 0.5 * (low + high),
        (true, false) => low,
        _ => high,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;
    use crate::numeric::InstructionSet;
    use crate::numeric::random::Generator;
    use crate::solver::linear::rows::DenseRows;

    #[test]
    fn rows_without_a_last_look_are_where_they_should_be() {
        let (count, width) = (5000, 6);
        let mut generator = Generator::new(5);
        let value = |at: usize| (at % width) as f64 * 0.3 + generator.unit();
        let table = Dense::new(count, width, (0..count * width).map(value).collect()).unwrap();
        let rows = DenseRows::new(&table, None, InstructionSet::detect());
        let upper: Vec<f64> = (0..count).map(|i| 0.5 + (i % 3) as f64).collect();
        let total = 0.3 * upper.iter().sum::<f64>();
        let options = Options { tol: 1e-6, max_passes: 10_000, ..Options::default() };
        let half = solve(&rows, &upper, total, &options, &Context::new());
        let Solution { weights, dual, outcome } = half.solution;
        assert_eq!(outcome.status, Status::Solved);
        let gradient: Vec<f64> = (0..count).map(|i| rows.dot(i, &weights)).collect();
        let all: Vec<u32> = (0..count as u32).collect();
        let (low, high) = range(&all, &dual, &upper, &gradient);
        assert!(high - low <= 1.001e-6, "{low} to {high}");
        let short = gradient.iter().zip(&upper).map(|(g, u)| u * (half.offset - g).max(0.0));
        let primal = 0.5 * squared_norm(&weights) - total * half.offset + short.sum::<f64>();
        assert!((primal - outcome.primal).abs() <= 1e-12 * primal.abs(), "{primal} {outcome:?}");
    }
}
