//! Dual coordinate descent with the logistic loss for several classes against the rest, side by side.
//!
//! Every problem minimises what [`logistic`](super::logistic) does in the same way, but a row is read
//! once for all of them, their weights for a feature stand side by side, and the Newton steps of a
//! row's variables are those of vectors. A problem's steps do not depend on its company.

use std::ops::Range;

use super::abreast::Rivals;
use super::bends::log;
use super::logistic::{FIRST_PRECISION, MOST_STEPS, finest_precision, least_variable};
use super::problem::{Options, Passes, Problem, Solution, primal, squared_norm};
use crate::context::Context;
use crate::numeric::random::Generator;
use crate::numeric::simd::{PlainLoop, run_plain};
use crate::solver::Status;
use crate::solver::linear::rows::{LinearRows, RowLists, WeightTable, fetch, row_values};

/// Rows ahead of the current one that are fetched.
const AHEAD: usize = 4;

/// One row's variables, those of all problems side by side.
#[derive(Clone, Copy)]
struct Seat<const L: usize> {
    /// α and C − α.
    parts: [[f64; L]; 2],
    /// log α / (C − α)
    odds: [f64; L],
    /// The problem of the row's own class, `L` if it is none of these.
    own: usize,
    /// C in the other classes' problems and in that of its own class.
    costs: [f64; 2],
    /// ‖x‖²
    square: f64,
}

impl<const L: usize> Seat<L> {
    fn new(costs: [f64; 2], own: usize, square: f64) -> Self {
        let mut seat = Self { parts: [[0.5; L]; 2], odds: [0.0; L], own, costs, square };
        (0..L).for_each(|k| seat.set(k, 0.0));
        seat
    }

    #[inline(always)]
    fn cost(&self, k: usize) -> f64 {
        self.costs[usize::from(k == self.own)]
    }

    /// +1 in the problem of its own class, −1 in the others.
    #[inline(always)]
    fn side(&self, k: usize) -> f64 {
        if k == self.own { 1.0 } else { -1.0 }
    }

    /// Gives variable `k` a value, or the nearest that it can have.
    fn set(&mut self, k: usize, alpha: f64) {
        let cost = self.cost(k);
        if cost > 0.0 {
            let least = least_variable(cost);
            let alpha = alpha.clamp(least, cost - least);
            (self.parts[0][k], self.parts[1][k]) = (alpha, cost - alpha);
            self.odds[k] = log(alpha / (cost - alpha));
        }
    }

    /// Minimises over every α with all others fixed, to its precision; the changes of the weights'
    /// factors and the gradients met first.
    #[inline(always)]
    fn step(&mut self, values: &[f64; L], precision: &[f64; L]) -> ([f64; L], [f64; L]) {
        let (mut sign, mut cost, mut margin) = ([1.0; L], [1.0; L], [0.0; L]);
        let (mut old, mut z, mut odds) = ([0.5; L], [0.5; L], [0.0; L]);
        let (mut gradient, mut goal) = ([0.0; L], [f64::INFINITY; L]);
        for k in 0..L {
            let side = if k == self.own { 1.0 } else { -1.0 };
            let own = if k == self.own { self.costs[1] } else { self.costs[0] };
            let value = side * values[k];
            let middle = 0.5 * self.square * (self.parts[1][k] - self.parts[0][k]) + value;
            let (part, other) = (self.parts[0][k], self.parts[1][k]);
            goal[k] = if own > 0.0 { precision[k] } else { f64::INFINITY };
            cost[k] = if own > 0.0 { own } else { 1.0 };
            sign[k] = if middle < 0.0 { -1.0 } else { 1.0 };
            old[k] = if middle < 0.0 { other } else { part };
            margin[k] = sign[k] * value;
            let far = cost[k] - old[k] < 0.5 * cost[k];
            z[k] = if far { 0.1 * old[k] } else { old[k] };
            let fresh = log(z[k] / (cost[k] - z[k]));
            odds[k] = if far { fresh } else { sign[k] * self.odds[k] };
            gradient[k] = self.square * (z[k] - old[k]) + margin[k] + odds[k];
        }
        let first = gradient;
        let mut moved = [false; L];
        for _ in 0..MOST_STEPS {
            let mut any = false;
            for k in 0..L {
                any |= gradient[k].abs() >= goal[k];
            }
            if !any {
                break;
            }
            for k in 0..L {
                let goes = gradient[k].abs() >= goal[k];
                let rest = cost[k] - z[k];
                // C / ((C − z)z) with one division instead of two.
                let area = rest * z[k];
                let next = z[k] - gradient[k] * area / (self.square * area + cost[k]);
                let next = if next <= 0.0 { 0.1 * z[k] } else { next };
                let next_odds = log(next / (cost[k] - next));
                let slope = self.square * (next - old[k]) + margin[k] + next_odds;
                z[k] = if goes { next } else { z[k] };
                odds[k] = if goes { next_odds } else { odds[k] };
                gradient[k] = if goes { slope } else { gradient[k] };
                moved[k] |= goes;
            }
        }
        let mut steps = [0.0; L];
        for k in 0..L {
            let side = if k == self.own { 1.0 } else { -1.0 };
            let rest = cost[k] - z[k];
            let (part, other) = if sign[k] < 0.0 { (rest, z[k]) } else { (z[k], rest) };
            steps[k] = if moved[k] { side * sign[k] * (z[k] - old[k]) } else { 0.0 };
            self.parts[0][k] = if moved[k] { part } else { self.parts[0][k] };
            self.parts[1][k] = if moved[k] { other } else { self.parts[1][k] };
            self.odds[k] = if moved[k] { sign[k] * odds[k] } else { self.odds[k] };
        }
        (steps, first)
    }
}

/// A pass over the rows in an order, weights following.
struct Sweep<'a, R, const L: usize> {
    rows: &'a R,
    seats: &'a mut [Seat<L>],
    order: &'a [u32],
    weights: &'a mut [[f64; L]],
    precision: [f64; L],
}

impl<R: LinearRows, const L: usize> PlainLoop for Sweep<'_, R, L> {
    /// The largest gradient met in every problem, and how many variables moved.
    type Output = ([f64; L], [f64; L]);

    #[inline(always)]
    fn run(self) -> Self::Output {
        let Self { rows, seats, order, weights, precision } = self;
        let (mut worst, mut moved) = ([0.0_f64; L], [0.0; L]);
        for (s, &i) in order.iter().enumerate() {
            if let Some(&next) = order.get(s + AHEAD) {
                rows.prefetch(next as usize);
                fetch(seats, next as usize);
            }
            let i = i as usize;
            let mut values = [0.0; L];
            rows.visit(i, |j, x| {
                for k in 0..L {
                    values[k] += x * weights[j][k];
                }
            });
            let (steps, gradients) = seats[i].step(&values, &precision);
            let mut any = false;
            for k in 0..L {
                worst[k] = worst[k].max(gradients[k].abs());
                moved[k] += if steps[k] != 0.0 { 1.0 } else { 0.0 };
                any |= steps[k] != 0.0;
            }
            if any {
                rows.visit(i, |j, x| {
                    for k in 0..L {
                        weights[j][k] += x * steps[k];
                    }
                });
            }
        }
        (worst, moved)
    }
}

/// Makes weights of 0 those of the variables.
struct AddUp<'a, R, const L: usize> {
    rows: &'a R,
    seats: &'a [Seat<L>],
    weights: &'a mut [[f64; L]],
    problems: usize,
}

impl<R: LinearRows, const L: usize> PlainLoop for AddUp<'_, R, L> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (i, seat) in self.seats.iter().enumerate() {
            let mut factors = [0.0; L];
            for (k, factor) in factors.iter_mut().enumerate().take(self.problems) {
                *factor = if seat.cost(k) > 0.0 { seat.side(k) * seat.parts[0][k] } else { 0.0 };
            }
            self.rows.visit(i, |j, x| {
                for k in 0..L {
                    self.weights[j][k] += x * factors[k];
                }
            });
        }
    }
}

/// The problems in the course of their solution.
struct Descents<'a, const L: usize> {
    rivals: &'a Rivals<'a>,
    classes: Range<usize>,
    seats: Vec<Seat<L>>,
    weights: WeightTable<f64, L>,
}

/// Where one of the problems stands.
struct Lane<'a> {
    /// How closely a variable is minimised, endlessly coarse where the problem has ended.
    precision: f64,
    passes: Passes<'a>,
    ended: Option<Status>,
}

/// Solves the problems of at most `L` classes, each from β = its start or nearly 0.
///
/// The tolerance bounds the largest gradient of each dual.
pub fn solve<const L: usize, R: LinearRows>(
    rows: &R,
    lists: &RowLists<'_>,
    rivals: &Rivals<'_>,
    classes: Range<usize>,
    options: &Options,
    starts: &[Option<&[f64]>],
    context: &Context,
) -> Vec<Solution> {
    let seat = |i: usize| {
        let class = rivals.codes[i] as usize;
        let own = if classes.contains(&class) { class - classes.start } else { L };
        let mut seat =
            Seat::new([rivals.rest_costs[i], rivals.own_costs[i]], own, rows.squared_norm(i));
        for (k, start) in starts.iter().enumerate() {
            if let Some(start) = start {
                seat.set(k, seat.side(k) * start[i]);
            }
        }
        seat
    };
    let mut descents = Descents::<L> {
        rivals,
        seats: (0..rows.rows()).map(seat).collect(),
        weights: WeightTable::new(rows.width()),
        classes: classes.clone(),
    };
    let Descents { seats, weights, .. } = &mut descents;
    run_plain(context.instruction_set(), AddUp { rows, seats, weights, problems: classes.len() });
    let lane =
        |_| Lane { precision: FIRST_PRECISION, passes: Passes::new(options, context), ended: None };
    let mut lanes: Vec<Lane<'_>> = classes.clone().map(lane).collect();
    let mut generator = Generator::new(context.seed());
    let mut order: Vec<u32> = (0..rows.rows() as u32)
        .filter(|&i| descents.seats[i as usize].costs.iter().any(|cost| *cost > 0.0))
        .collect();
    while lanes.iter().any(|lane| lane.ended.is_none()) {
        generator.shuffle(&mut order);
        let mut precision = [f64::INFINITY; L];
        lanes.iter().zip(&mut precision).for_each(|(lane, own)| *own = lane.precision);
        let Descents { seats, weights, .. } = &mut descents;
        let sweep = Sweep { rows, seats, order: &order, weights, precision };
        let (worst, moved) = run_plain(context.instruction_set(), sweep);
        for (k, lane) in lanes.iter_mut().enumerate().filter(|(_, lane)| lane.ended.is_none()) {
            let stop = lane.passes.finish(order.len(), worst[k], || f64::NAN);
            lane.ended = if worst[k] < options.tol { Some(Status::Solved) } else { stop };
            if lane.ended.is_some() {
                lane.precision = f64::INFINITY;
            } else if moved[k] <= (order.len() / 10) as f64 {
                lane.precision = finest_precision(options.tol).max(0.1 * lane.precision);
            }
        }
    }
    let values = row_values(context.instruction_set(), lists, &descents.weights);
    let solution = |(k, lane): (usize, &Lane<'_>)| {
        let status = lane.ended.unwrap_or(Status::AlmostSolved);
        descents.solution(k, &lane.passes, status, &values)
    };
    lanes.iter().enumerate().map(solution).collect()
}

impl<const L: usize> Descents<'_, L> {
    /// The solution of problem `k`, where the rows have these values.
    fn solution(
        &self,
        k: usize,
        passes: &Passes<'_>,
        status: Status,
        values: &[[f64; L]],
    ) -> Solution {
        let weights: Vec<f64> = self.weights.iter().map(|weights| weights[k]).collect();
        let own: Vec<f64> = values.iter().map(|values| values[k]).collect();
        let (targets, costs) = self.rivals.sides(self.classes.start + k);
        let loss = self.rivals.loss;
        let problem = Problem { loss, targets: &targets, costs: &costs, shift: 0.0 };
        let primal = primal(&problem, &weights, &own);
        let (mut violation, mut entropy) = (0.0_f64, 0.0);
        for (i, seat) in self.seats.iter().enumerate().filter(|(i, _)| costs[*i] > 0.0) {
            violation = violation.max((targets[i] * own[i] + seat.odds[k]).abs());
            let parts = seat.parts.iter().map(|part| part[k] * log(part[k])).sum::<f64>();
            entropy += parts - costs[i] * log(costs[i]);
        }
        let dual = -0.5 * squared_norm(&weights) - entropy;
        let outcome = passes.outcome(status, primal, dual, violation);
        let signed = |(i, seat): (usize, &Seat<L>)| match costs[i] > 0.0 {
            true => targets[i] * seat.parts[0][k],
            false => 0.0,
        };
        Solution { weights, dual: self.seats.iter().enumerate().map(signed).collect(), outcome }
    }
}

#[cfg(test)]
mod tests {
    use super::super::abreast::tests::Contest;
    use super::super::logistic;
    use super::super::problem::Loss;
    use super::*;
    use crate::solver::linear::rows::SparseRows;

    #[test]
    fn problems_side_by_side_are_those_alone() {
        let contest = Contest::new(150, 1.0);
        let rows = SparseRows::new(&contest.table, contest.table.values(), Some(1.0));
        let lists = rows.lists().unwrap();
        let rivals = contest.rivals(Loss::Logistic);
        let options =
            Options { tol: 1e-7, max_passes: 10_000, shrinking: true, alone: true, singles: true };
        let context = Context::new();
        let together = solve::<8, _>(&rows, &lists, &rivals, 0..5, &options, &[None; 5], &context);
        let apart = solve::<4, _>(&rows, &lists, &rivals, 3..5, &options, &[None; 2], &context);
        assert_eq!(together[3].weights, apart[0].weights);
        assert_eq!(together[4].dual, apart[1].dual);
        for (class, found) in together.iter().enumerate() {
            let (targets, costs) = rivals.sides(class);
            let problem =
                Problem { loss: Loss::Logistic, targets: &targets, costs: &costs, shift: 0.0 };
            let alone = logistic::solve(&rows, &problem, &options, None, &context);
            assert_eq!(found.outcome.status, Status::Solved);
            let (own, other) = (found.outcome, alone.outcome);
            assert!((own.primal - other.primal).abs() < 1e-9 * own.primal, "{own:?} {other:?}");
            assert!((own.primal - own.dual).abs() < 1e-9 * own.primal, "{own:?}");
            assert!(own.violation < 1e-6, "{own:?}");
            let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-6;
            assert!(found.weights.iter().zip(&alone.weights).all(close));
            assert!(found.dual.iter().zip(&alone.dual).all(close));
        }
    }
}
