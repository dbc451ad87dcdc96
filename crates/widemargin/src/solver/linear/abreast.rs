//! Dual coordinate descent for several classes against the rest, side by side.
//!
//! With w = Σ yᵢαᵢxᵢ every problem minimises `½‖w‖² + Σ ½rᵢαᵢ² − αᵢ` within `0 ≤ αᵢ ≤ uᵢ` as
//! [`dual`](super::dual) does, but a row is read once for all problems that look at it, and their
//! weights for a feature stand side by side. A problem's steps do not depend on its company: all
//! follow the same random orders of the rows, each leaving out those it has set aside.

use std::ops::Range;

use super::dual::MOST_RETURNS;
use super::problem::{Loss, Options, Passes, Problem, Solution, primal, squared_norm};
use super::variable::{Band, Violation};
use crate::context::Context;
use crate::kernel::{
    InstructionSet, LinearRows, Look, RowLists, Seat, WeightTable, row_values, sweep,
};
use crate::random::Generator;
use crate::solver::Status;

/// The longest rest of an idle variable, in passes.
const LONGEST: u8 = 7;

/// The reach of a row of zeros without a ridge, which any slope takes to its bound.
const ENDLESS: f64 = 1e150;

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
    fn seat<const L: usize>(&self, i: usize, square: f64, classes: &Range<usize>) -> Seat<L> {
        let class = self.codes[i] as usize;
        let own = if classes.contains(&class) { class - classes.start } else { L };
        let costs = [self.rest_costs[i], self.own_costs[i]];
        let ridge = costs.map(|c| if self.loss.is_squared() && c > 0.0 { 0.5 / c } else { 0.0 });
        let bound = costs.map(|c| match self.loss.is_squared() && c > 0.0 {
            true => f64::INFINITY,
            false => c.max(0.0),
        });
        let reach = ridge.map(|r| if square + r > 0.0 { 1.0 / (square + r) } else { ENDLESS });
        let (alpha, rest) = ([0.0; L], [f64::INFINITY; L]);
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
struct Descents<'a, const L: usize> {
    rivals: &'a Rivals<'a>,
    classes: Range<usize>,
    rows: &'a RowLists<'a>,
    set: InstructionSet,
    seats: Vec<Seat<L>>,
    weights: WeightTable<L>,
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

/// Solves the problems of at most `L` classes, each from β = its start or 0.
///
/// The tolerance bounds the range of projected gradients of each problem.
pub fn solve<const L: usize, R: LinearRows>(
    rows: &R,
    lists: &RowLists<'_>,
    rivals: &Rivals<'_>,
    classes: Range<usize>,
    options: &Options,
    starts: &[Option<&[f64]>],
    context: &Context,
) -> Vec<Solution> {
    let seat = |i: usize| rivals.seat(i, rows.squared_norm(i), &classes);
    let mut descents = Descents::<L> {
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
        movable: descents.seats.iter().filter(|seat| seat.rest[k] == 0.0).count() as f64,
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

impl<const L: usize> Descents<'_, L> {
    /// Gives problem `k` a start.
    fn begin<R: LinearRows>(&mut self, k: usize, start: &[f64], rows: &R) {
        let mut weights = vec![0.0; rows.width()];
        for (i, seat) in self.seats.iter_mut().enumerate() {
            let side = seat.side(k);
            seat.alpha[k] = (side * start[i]).clamp(0.0, seat.of(seat.bound, k));
            if seat.alpha[k] != 0.0 {
                rows.add(i, side * seat.alpha[k], &mut weights);
            }
        }
        self.weights.iter_mut().zip(weights).for_each(|(lanes, weight)| lanes[k] = weight);
    }

    /// One pass over the rows.
    fn pass(&mut self, pass: usize, order: &[u32], lanes: &mut [Lane<'_>], options: &Options) {
        let longest = if options.shrinking { LONGEST } else { 0 };
        let Band { above, below } = Band::OPEN;
        let mut look = Look { pass, above: [above; L], below: [below; L], longest };
        for (k, lane) in lanes.iter().enumerate() {
            (look.above[k], look.below[k]) = (lane.band.above, lane.band.below);
        }
        let Self { rows, set, seats, weights, .. } = self;
        let seen = sweep(*set, rows, seats, order, weights, &look);
        let mut ends = [false; L];
        for (k, lane) in lanes.iter_mut().enumerate() {
            if !matches!(lane.state, State::Running) {
                continue;
            }
            let (highest, lowest) = (seen.highest[k], seen.lowest[k]);
            let violation = Violation { highest, lowest, sum: f64::NAN };
            let range = violation.range();
            let stop = lane.passes.finish(seen.looks[k] as usize, range, || f64::NAN);
            lane.band = Band::after(&violation, options.shrinking);
            if range <= options.tol || stop.is_some() {
                let whole = range <= options.tol && seen.looks[k] == lane.movable;
                lane.state = State::Waiting { whole, stop };
                ends[k] = true;
            }
        }
        if ends.contains(&true) {
            for seat in seats {
                (0..L).filter(|&k| ends[k]).for_each(|k| seat.rest[k] = f64::INFINITY);
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
                    let alpha = seat.alpha[k];
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
        let weights: Vec<f64> = self.weights.iter().map(|weights| weights[k]).collect();
        let own: Vec<f64> = values.iter().map(|values| values[k]).collect();
        let (targets, costs) = self.rivals.sides(self.classes.start + k);
        let loss = self.rivals.loss;
        let problem = Problem { loss, targets: &targets, costs: &costs, shift: 0.0 };
        let primal = primal(&problem, &weights, &own);
        let dual = -0.5 * squared_norm(&weights) - proof.separable;
        let outcome = passes.outcome(status, primal, dual, proof.violation.range());
        let dual = self.seats.iter().map(|seat| seat.side(k) * seat.alpha[k]).collect();
        Solution { weights, dual, outcome }
    }
}
