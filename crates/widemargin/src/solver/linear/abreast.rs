//! Dual coordinate descent for several classes against the rest, side by side.
//!
//! With w = Σ yᵢαᵢxᵢ every problem minimises `½‖w‖² + Σ ½rᵢαᵢ² − αᵢ` within `0 ≤ αᵢ ≤ uᵢ` as
//! [`dual`](super::dual) does, but a row is read once for all problems that look at it, and their
//! weights for a feature stand side by side. A problem's steps do not depend on its company: all
//! follow the same random orders of the rows, each leaving out those it has set aside.
//!
//! In single precision twice as many problems fit a line of the cache. What is coarse enough is
//! solved so and verified in double precision; who is not done soon goes on in that.

use std::ops::Range;

use super::dual::MOST_RETURNS;
use super::problem::{Loss, Options, Passes, Problem, Solution, primal, squared_norm};
use super::variable::{Band, Violation};
use crate::context::Context;
use crate::numeric::InstructionSet;
use crate::numeric::random::Generator;
use crate::numeric::simd::Real;
use crate::solver::linear::rows::{
    LinearRows, Look, RowLists, Seat, WeightTable, row_values, sweep,
};
use crate::solver::{Outcome, Status};

/// The longest rest of an idle variable, in passes.
const LONGEST: u8 = 7;

/// The reach of a row of zeros without a ridge, which any slope takes to its bound.
const ENDLESS: f64 = 1e30;

/// The tightest tolerance that single precision is good for, and the most rows that it counts.
const COARSE: f64 = 1e-2;
const MOST_COUNTED: usize = 1 << 24;

/// Passes in single precision.
pub(super) const COARSE_PASSES: u64 = 100;

/// Problems side by side in double precision.
const DOUBLES: usize = 8;

/// The problems: class k of `classes` against the rest.
#[derive(Clone, Copy, Debug)]
pub struct Rivals<'a> {
    /// Hinge or squared hinge here, logistic for `solve_logistic_abreast`.
    pub loss: Loss,
    /// The class of every row.
    pub codes: &'a [u32],
    /// Cᵢ of every row in the problems of other classes; a row of cost 0 is not there.
    pub rest_costs: &'a [f64],
    /// Cᵢ of every row in the problem of its own class.
    pub own_costs: &'a [f64],
}

impl Rivals<'_> {
    fn seat<T: Real, const L: usize>(
        &self,
        i: usize,
        square: f64,
        classes: &Range<usize>,
    ) -> Seat<T, L> {
        let class = self.codes[i] as usize;
        let own = if classes.contains(&class) { class - classes.start } else { L };
        let costs = [self.rest_costs[i], self.own_costs[i]];
        let ridge = costs.map(|c| if self.loss.is_squared() && c > 0.0 { 0.5 / c } else { 0.0 });
        let bound = costs.map(|c| match self.loss.is_squared() && c > 0.0 {
            true => f64::INFINITY,
            false => c.max(0.0),
        });
        let reach = ridge.map(|r| if square + r > 0.0 { 1.0 / (square + r) } else { ENDLESS });
        let (alpha, rest) = ([T::ZERO; L], [T::from_f64(f64::INFINITY); L]);
        let [bound, ridge, reach] = [bound, ridge, reach].map(|pair| pair.map(T::from_f64));
        let mut seat = Seat { alpha, rest, own, bound, ridge, reach };
        (0..classes.len()).for_each(|k| seat.call(k));
        seat
    }

    /// The targets and costs of a class's problem.
    pub fn sides(&self, class: usize) -> (Vec<f64>, Vec<f64>) {
        let side = |i: usize| match self.codes[i] as usize == class {
            true => (1.0, self.own_costs[i]),
            false => (-1.0, self.rest_costs[i]),
        };
        (0..self.codes.len()).map(side).unzip()
    }
}

/// The problems in the course of their solution.
struct Descents<'a, T, const L: usize> {
    rivals: &'a Rivals<'a>,
    classes: Range<usize>,
    rows: &'a RowLists<'a>,
    set: InstructionSet,
    seats: Vec<Seat<T, L>>,
    weights: WeightTable<T, L>,
}

/// Where one of the problems stands.
struct Lane<'a> {
    band: Band,
    /// Rows that can move.
    movable: f64,
    passes: Passes<'a>,
    returns: u32,
    state: State,
}

/// What a problem does in a round of passes.
enum State {
    /// It goes on.
    Running,
    /// It has met the tolerance, maybe on all rows in one pass, or has to stop.
    Waiting { whole: bool, stop: Option<Status> },
    /// It has a solution.
    Ended(Solution),
}

/// How far a problem is from its optimum.
#[derive(Clone, Copy)]
struct Proof {
    violation: Violation,
    /// What the variables add to the dual objective, beside ½‖w‖².
    separable: f64,
}

/// Whether single precision is good for problems of so many rows.
pub fn is_coarse(options: &Options, rows: usize) -> bool {
    options.singles && options.tol >= COARSE && rows <= MOST_COUNTED
}

/// Solves the problems of at most `L` classes, 8 or 16, in single precision, each from β = its start
/// or 0, and in double precision where that is not enough.
///
/// The tolerance bounds the range of projected gradients of each problem in double precision.
pub fn solve_coarsely<const L: usize, R: LinearRows>(
    rows: &R,
    lists: &RowLists<'_>,
    rivals: &Rivals<'_>,
    classes: Range<usize>,
    options: &Options,
    starts: &[Option<&[f64]>],
    context: &Context,
) -> Vec<Solution> {
    let coarse = Options { max_passes: options.max_passes.min(COARSE_PASSES), ..*options };
    let mut solutions =
        solve::<f32, L, R>(rows, lists, rivals, classes.clone(), &coarse, starts, context);
    let fine = Options { max_passes: options.max_passes - coarse.max_passes, ..*options };
    if fine.max_passes == 0 {
        return solutions;
    }
    let unfinished = |solution: &&Solution| {
        matches!(solution.outcome.status, Status::AlmostSolved | Status::IterationLimit)
    };
    let mut at = 0;
    while at < solutions.len() {
        let before = &solutions[at..];
        let before = &before[..before.iter().take(DOUBLES).take_while(unfinished).count()];
        if before.is_empty() {
            at += 1;
            continue;
        }
        let finite = |dual: &&[f64]| dual.iter().all(|beta| beta.is_finite());
        let starts: Vec<_> = before.iter().map(|s| Some(&s.dual[..]).filter(finite)).collect();
        let own = classes.start + at..classes.start + at + before.len();
        let after = solve::<f64, DOUBLES, R>(rows, lists, rivals, own, &fine, &starts, context);
        for (before, after) in solutions[at..].iter_mut().zip(after) {
            let Outcome { iterations, blocks, .. } = before.outcome;
            *before = after;
            before.outcome.iterations += iterations;
            before.outcome.blocks += blocks;
            at += 1;
        }
    }
    solutions
}

/// Solves the problems of at most `L` classes, as many as half a line of the cache holds or a whole
/// one, each from β = its start or 0.
///
/// The tolerance bounds the range of projected gradients of each problem.
pub fn solve<T: Real, const L: usize, R: LinearRows>(
    rows: &R,
    lists: &RowLists<'_>,
    rivals: &Rivals<'_>,
    classes: Range<usize>,
    options: &Options,
    starts: &[Option<&[f64]>],
    context: &Context,
) -> Vec<Solution> {
    let seat = |i: usize| rivals.seat(i, rows.squared_norm(i), &classes);
    let mut descents = Descents::<T, L> {
        rivals,
        rows: lists,
        set: context.instruction_set(),
        seats: (0..lists.rows()).map(seat).collect(),
        weights: WeightTable::new(lists.width()),
        classes: classes.clone(),
    };
    for (k, start) in starts.iter().enumerate() {
        if let Some(start) = start {
            descents.begin(k, start, rows);
        }
    }
    let lane = |k: usize| Lane {
        band: Band::OPEN,
        movable: descents.seats.iter().filter(|seat| seat.rest[k] == T::ZERO).count() as f64,
        passes: Passes::new(options, context),
        returns: 0,
        state: State::Running,
    };
    let mut lanes: Vec<Lane<'_>> = (0..classes.len()).map(lane).collect();
    // All begin a round together, so that it makes no difference who else does.
    for round in 0.. {
        let mut generator = Generator::new(context.seed().wrapping_add(round));
        let mut order: Vec<u32> = (0..lists.rows() as u32).collect();
        for pass in 0.. {
            generator.shuffle(&mut order);
            descents.pass(pass, &order, &mut lanes, options);
            if !lanes.iter().any(|lane| matches!(lane.state, State::Running)) {
                break;
            }
        }
        descents.judge(&mut lanes, options);
        if lanes.iter().all(|lane| matches!(lane.state, State::Ended(_))) {
            break;
        }
    }
    let solution = |lane: Lane<'_>| match lane.state {
        State::Ended(solution) => Some(solution),
        _ => None,
    };
    lanes.into_iter().filter_map(solution).collect()
}

impl<T: Real, const L: usize> Descents<'_, T, L> {
    /// Gives problem `k` a start.
    fn begin<R: LinearRows>(&mut self, k: usize, start: &[f64], rows: &R) {
        let mut weights = vec![0.0; rows.width()];
        for (i, seat) in self.seats.iter_mut().enumerate() {
            let side = seat.side(k);
            let alpha = T::from_f64((side * start[i]).clamp(0.0, seat.of(seat.bound, k)));
            seat.alpha[k] = alpha;
            if alpha != T::ZERO {
                rows.add(i, side * alpha.to_f64(), &mut weights);
            }
        }
        let weights = weights.into_iter().map(T::from_f64);
        self.weights.iter_mut().zip(weights).for_each(|(lanes, weight)| lanes[k] = weight);
    }

    /// One pass over the rows.
    fn pass(&mut self, pass: usize, order: &[u32], lanes: &mut [Lane<'_>], options: &Options) {
        let longest = if options.shrinking { LONGEST } else { 0 };
        let edges = |band: &Band| (T::from_f64(band.above), T::from_f64(band.below));
        let (above, below) = edges(&Band::OPEN);
        let mut look = Look { pass, above: [above; L], below: [below; L], longest };
        for (k, lane) in lanes.iter().enumerate() {
            (look.above[k], look.below[k]) = edges(&lane.band);
        }
        let Self { rows, set, seats, weights, .. } = self;
        let seen = sweep(*set, rows, seats, order, weights, &look);
        let mut ends = [false; L];
        for (k, lane) in lanes.iter_mut().enumerate() {
            if !matches!(lane.state, State::Running) {
                continue;
            }
            let [highest, lowest, looks] =
                [seen.highest[k], seen.lowest[k], seen.looks[k]].map(T::to_f64);
            let violation = Violation { highest, lowest, sum: f64::NAN };
            let range = violation.range();
            let stop = lane.passes.finish(looks as usize, range, || f64::NAN);
            lane.band = Band::after(&violation, options.shrinking);
            if range <= options.tol || stop.is_some() {
                let whole = range <= options.tol && looks == lane.movable;
                lane.state = State::Waiting { whole, stop };
                ends[k] = true;
            }
        }
        if ends.contains(&true) {
            for seat in seats {
                let never = T::from_f64(f64::INFINITY);
                (0..L).filter(|&k| ends[k]).for_each(|k| seat.rest[k] = never);
            }
        }
    }

    /// Ends problems that are solved or have to stop, and calls all rows of the others.
    fn judge(&mut self, lanes: &mut [Lane<'_>], options: &Options) {
        let values = row_values(self.set, self.rows, &self.weights);
        let proofs = self.proofs(&values);
        let mut called = [false; L];
        for (k, lane) in lanes.iter_mut().enumerate() {
            let State::Waiting { whole, stop } = lane.state else { continue };
            let mut status = stop;
            if whole {
                lane.returns += 1;
                if proofs[k].violation.range() <= options.tol {
                    status = Some(Status::Solved);
                } else if lane.returns > MOST_RETURNS {
                    status = Some(Status::AlmostSolved);
                }
            }
            if let Some(status) = status {
                let solution = self.solution(k, &lane.passes, status, &proofs[k], &values);
                lane.state = State::Ended(solution);
            } else {
                lane.state = State::Running;
                lane.band = Band::OPEN;
                called[k] = true;
            }
        }
        if called.contains(&true) {
            for seat in &mut self.seats {
                (0..L).filter(|&k| called[k]).for_each(|k| seat.call(k));
            }
        }
    }

    /// What is known of every problem where the rows have these values.
    fn proofs(&self, values: &[[f64; L]]) -> [Proof; L] {
        let mut proofs = [Proof { violation: Violation::NONE, separable: 0.0 }; L];
        for (seat, value) in self.seats.iter().zip(values) {
            for (k, proof) in proofs.iter_mut().enumerate().take(self.classes.len()) {
                if seat.of(seat.bound, k) > 0.0 {
                    proof.violation.see(seat.projected(k, value[k]));
                    let alpha = seat.alpha[k].to_f64();
                    proof.separable += (0.5 * seat.of(seat.ridge, k) * alpha - 1.0) * alpha;
                }
            }
        }
        proofs
    }

    /// The solution of problem `k`, where the rows have these values.
    fn solution(
        &self,
        k: usize,
        passes: &Passes<'_>,
        status: Status,
        proof: &Proof,
        values: &[[f64; L]],
    ) -> Solution {
        let weights: Vec<f64> = self.weights.iter().map(|weights| weights[k].to_f64()).collect();
        let own: Vec<f64> = values.iter().map(|values| values[k]).collect();
        let (targets, costs) = self.rivals.sides(self.classes.start + k);
        let loss = self.rivals.loss;
        let problem = Problem { loss, targets: &targets, costs: &costs, shift: 0.0 };
        let primal = primal(&problem, &weights, &own);
        let dual = -0.5 * squared_norm(&weights) - proof.separable;
        let outcome = passes.outcome(status, primal, dual, proof.violation.range());
        let dual = self.seats.iter().map(|seat| seat.side(k) * seat.alpha[k].to_f64()).collect();
        Solution { weights, dual, outcome }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::dual;
    use super::*;
    use crate::data::Csr;
    use crate::solver::linear::rows::SparseRows;

    /// Sparse random rows of five classes, some without a cost.
    pub(in super::super) struct Contest {
        pub(in super::super) table: Csr<f64>,
        codes: Vec<u32>,
        rest_costs: Vec<f64>,
        own_costs: Vec<f64>,
    }

    impl Contest {
        /// Of some fifteen features each, and with costs of about this size.
        pub(in super::super) fn new(width: usize, cost: f64) -> Self {
            let mut generator = Generator::new(5);
            let height = 120;
            let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
            for _ in 0..height {
                for j in 0..width {
                    if generator.unit() * (width as f64) < 15.0 {
                        indices.push(j as u32);
                        values.push(generator.normal());
                    }
                }
                starts.push(indices.len());
            }
            let table = Csr::new(width, starts, indices, values).unwrap();
            let codes = (0..height as u32).map(|i| i * i % 7 % 5).collect();
            let rest_costs: Vec<f64> = (0..height).map(|i| cost * [1.0, 0.0, 2.0][i % 3]).collect();
            let own_costs = rest_costs.iter().map(|c| 3.0 * c).collect();
            Self { table, codes, rest_costs, own_costs }
        }

        pub(in super::super) fn rivals(&self, loss: Loss) -> Rivals<'_> {
            let Self { codes, rest_costs, own_costs, .. } = self;
            Rivals { loss, codes, rest_costs, own_costs }
        }
    }

    fn to(tol: f64) -> Options {
        Options { tol, max_passes: 100_000, shrinking: true, alone: true, singles: true }
    }

    #[test]
    fn a_problem_does_not_depend_on_its_company_and_is_solved_in_double_precision() {
        let contest = Contest::new(150, 1.0);
        let rows = SparseRows::new(&contest.table, contest.table.values(), Some(1.0));
        let (lists, context) = (rows.lists().unwrap(), Context::new());
        for loss in [Loss::Hinge, Loss::SquaredHinge] {
            let rivals = contest.rivals(loss);
            let coarse = to(COARSE);
            let together = solve_coarsely::<16, _>(
                &rows,
                &lists,
                &rivals,
                0..5,
                &coarse,
                &[None; 5],
                &context,
            );
            let apart =
                solve_coarsely::<8, _>(&rows, &lists, &rivals, 3..5, &coarse, &[None; 2], &context);
            assert_eq!(together[3].weights, apart[0].weights);
            assert_eq!(together[4].dual, apart[1].dual);
            for (class, found) in together.iter().enumerate() {
                let (targets, costs) = rivals.sides(class);
                let problem = Problem { loss, targets: &targets, costs: &costs, shift: 0.0 };
                let best = dual::solve(&rows, &problem, &to(1e-9), None, &context).outcome.primal;
                let Outcome { status, primal, violation, .. } = found.outcome;
                assert_eq!(status, Status::Solved);
                assert!(violation <= COARSE, "{violation}");
                let slack = COARSE * costs.iter().sum::<f64>();
                assert!(primal > best - 1e-9 && primal < best + slack, "{primal} {best}");
                let mut weights = vec![0.0; rows.width()];
                (0..rows.rows()).for_each(|i| rows.add(i, found.dual[i], &mut weights));
                let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-5;
                assert!(weights.iter().zip(&found.weights).all(close));
            }
        }
    }

    #[test]
    fn what_single_precision_cannot_solve_is_solved_in_double() {
        let contest = Contest::new(12, 10.0);
        let rows = SparseRows::new(&contest.table, contest.table.values(), Some(1.0));
        let (lists, context) = (rows.lists().unwrap(), Context::new());
        let rivals = contest.rivals(Loss::Hinge);
        let options = Options { max_passes: COARSE_PASSES, ..to(COARSE) };
        let single =
            solve::<f32, 8, _>(&rows, &lists, &rivals, 0..5, &options, &[None; 5], &context);
        assert!(single.iter().any(|solution| !solution.outcome.status.is_solved()));
        let options = to(COARSE);
        let found =
            solve_coarsely::<8, _>(&rows, &lists, &rivals, 0..5, &options, &[None; 5], &context);
        for (solution, single) in found.iter().zip(&single) {
            let Outcome { status, violation, blocks, .. } = solution.outcome;
            assert_eq!(status, Status::Solved);
            assert!(violation <= COARSE, "{violation}");
            assert!(single.outcome.status.is_solved() || blocks > single.outcome.blocks);
        }
    }
}
