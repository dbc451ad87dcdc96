//! Batched one-vs-rest dual coordinate descent for hinge losses.
//!
//! With w = Σ yᵢαᵢxᵢ every problem minimises `½‖w‖² + Σ ½rᵢαᵢ² − αᵢ` within `0 ≤ αᵢ ≤ uᵢ` as
//! [`dual`](super::dual) does, but a row is read once for all problems of the batch that look at it, and
//! their weights for a feature are adjacent. A problem's steps do not depend on the others: all follow the
//! same random orders of the rows, each leaving out its inactive ones.
//!
//! In single precision twice as many problems fit a line of the cache. What is coarse enough is solved so
//! and verified in double precision; problems that are not done within some passes go on in double
//! precision, and those that are slow there alone, where second-order methods help.

use std::ops::Range;

use super::dual;
use super::problem::{Options, Passes, Problem, RowLoss, Solution, primal, squared_norm};
use super::tuning::batch::{DOUBLES, MOST_SINGLE_ROWS, SINGLE_PASSES, SINGLE_TOLERANCE};
use super::tuning::dual::{
    LOOKS_BEFORE_NEWTON, MOST_RETURNS, MOST_SKIPPED, MOST_TIGHTENED, TIGHTER,
};
use super::variable::{Band, Violation};
use crate::context::Context;
use crate::numeric::InstructionSet;
use crate::numeric::random::Generator;
use crate::numeric::simd::Real;
use crate::solver::linear::rows::{
    BatchDuals, LinearRows, RowLists, SweepBounds, WeightTable, row_values, sweep,
};
use crate::solver::{Outcome, Status};

/// The inverse curvature of a row of zeros without a ridge, which any slope takes to its bound.
const UNBOUNDED_STEP: f64 = 1e30;

/// One-vs-rest problems, one for every class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OneVsRestProblems<'a> {
    /// Hinge or squared hinge here, logistic for `solve_logistic_batch`.
    pub loss: RowLoss,
    /// The class of every row.
    pub codes: &'a [u32],
    /// Cᵢ of every row in the problems of other classes; a row of cost 0 is not there.
    pub rest_costs: &'a [f64],
    /// Cᵢ of every row in the problem of its own class.
    pub own_costs: &'a [f64],
}

impl OneVsRestProblems<'_> {
    fn duals<T: Real, const L: usize>(
        &self,
        i: usize,
        square: f64,
        classes: &Range<usize>,
    ) -> BatchDuals<T, L> {
        let class = self.codes[i] as usize;
        let own = if classes.contains(&class) { class - classes.start } else { L };
        let costs = [self.rest_costs[i], self.own_costs[i]];
        let ridge = costs.map(|c| if self.loss.is_squared() && c > 0.0 { 0.5 / c } else { 0.0 });
        let bound = costs.map(|c| match self.loss.is_squared() && c > 0.0 {
            true => f64::INFINITY,
            false => c.max(0.0),
        });
        let inverse =
            ridge.map(|r| if square + r > 0.0 { 1.0 / (square + r) } else { UNBOUNDED_STEP });
        let (alpha, skip_until) = ([T::ZERO; L], [T::from_f64(f64::INFINITY); L]);
        let [bound, ridge, inverse_curvature] =
            [bound, ridge, inverse].map(|pair| pair.map(T::from_f64));
        let mut duals = BatchDuals { alpha, skip_until, own, bound, ridge, inverse_curvature };
        (0..classes.len()).for_each(|k| duals.reactivate(k));
        duals
    }

    /// The targets and costs of a class's problem.
    pub(crate) fn targets_and_costs(&self, class: usize) -> (Vec<f64>, Vec<f64>) {
        let side = |i: usize| match self.codes[i] as usize == class {
            true => (1.0, self.own_costs[i]),
            false => (-1.0, self.rest_costs[i]),
        };
        (0..self.codes.len()).map(side).unzip()
    }
}

/// Problems of some classes that are solved as a batch, and how.
#[derive(Debug)]
pub(crate) struct BatchInputs<'a, R> {
    /// The rows.
    pub rows: &'a R,
    /// The same, value by value.
    pub lists: &'a RowLists<'a>,
    /// The problems of all classes.
    pub problems: &'a OneVsRestProblems<'a>,
    /// Those of the batch.
    pub classes: Range<usize>,
    /// Options of the solver.
    pub options: &'a Options,
    /// β that each problem starts from, or 0.
    pub starts: &'a [Option<&'a [f64]>],
    /// Seed, instructions and limits.
    pub context: &'a Context,
}

impl<'a, R> BatchInputs<'a, R> {
    /// The same with other options.
    fn with_options(&self, options: &'a Options) -> Self {
        Self { options, classes: self.classes.clone(), ..*self }
    }
}

/// A batch of problems in the course of its solution.
struct Batch<'a, T, const L: usize> {
    problems: &'a OneVsRestProblems<'a>,
    classes: Range<usize>,
    rows: &'a RowLists<'a>,
    set: InstructionSet,
    duals: Vec<BatchDuals<T, L>>,
    weights: WeightTable<T, L>,
}

/// State of one of the problems.
struct ProblemState<'a> {
    tol: f64,
    tightened: u32,
    band: Band,
    /// Rows that can move.
    movable: f64,
    passes: Passes<'a>,
    returns: u32,
    phase: Phase,
}

/// What a problem does in a round of passes.
enum Phase {
    /// It goes on.
    Running,
    /// It has met the tolerance, maybe on all rows in one pass, or has to stop.
    Waiting { whole: bool, stop: Option<Status> },
    /// It has a solution.
    Ended(Solution),
}

/// KKT violation and dual objective of a problem.
#[derive(Clone, Copy)]
struct OptimalityMeasures {
    violation: Violation,
    /// What the variables add to the dual objective, beside ½‖w‖².
    separable: f64,
}

/// Whether single precision is good for problems of so many rows.
pub(crate) fn is_coarse(options: &Options, rows: usize) -> bool {
    options.singles && options.tol >= SINGLE_TOLERANCE && rows <= MOST_SINGLE_ROWS
}

/// Solves the problems of at most `L` classes, 8 or 16, in single precision, each from β = its start
/// or 0, and in double precision where that is not enough.
///
/// The tolerance bounds the range of projected gradients of each problem in double precision.
pub(crate) fn solve_in_singles<const L: usize, R: LinearRows>(
    inputs: &BatchInputs<'_, R>,
) -> Vec<Solution> {
    let (options, first) = (inputs.options, inputs.classes.start);
    let coarse = Options { max_passes: options.max_passes.min(SINGLE_PASSES), ..*options };
    let mut solutions = solve_batch::<f32, L, R>(&inputs.with_options(&coarse));
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
        let classes = first + at..first + at + before.len();
        let (options, starts) = (&fine, &starts[..]);
        let after = solve::<DOUBLES, R>(&BatchInputs { classes, options, starts, ..*inputs });
        for (before, after) in solutions[at..].iter_mut().zip(after) {
            *before = after.after(&before.outcome);
            at += 1;
        }
    }
    solutions
}

/// Solves the problems of at most `L` classes, each from β = its start or 0, in double precision; those
/// that are slow go on alone.
///
/// The tolerance bounds the range of projected gradients of each problem.
pub(crate) fn solve<const L: usize, R: LinearRows>(inputs: &BatchInputs<'_, R>) -> Vec<Solution> {
    let BatchInputs { rows, problems, options, context, .. } = *inputs;
    let together = Options { max_passes: options.max_passes.min(LOOKS_BEFORE_NEWTON), ..*options };
    let alone = Options { max_passes: options.max_passes - together.max_passes, ..*options };
    let batch = solve_batch::<f64, L, R>(&inputs.with_options(&together));
    let finish = |(class, before): (usize, Solution)| {
        if before.outcome.status != Status::IterationLimit || alone.max_passes == 0 {
            return before;
        }
        let (targets, costs) = problems.targets_and_costs(class);
        let problem = Problem { loss: problems.loss, targets: &targets, costs: &costs, shift: 0.0 };
        dual::solve(rows, &problem, &alone, Some(&before.dual), context).after(&before.outcome)
    };
    inputs.classes.clone().zip(batch).map(finish).collect()
}

/// The same with sums of type `T`, as far as the batch gets.
fn solve_batch<T: Real, const L: usize, R: LinearRows>(
    inputs: &BatchInputs<'_, R>,
) -> Vec<Solution> {
    let BatchInputs { rows, lists, problems, ref classes, options, starts, context } = *inputs;
    let duals = |i: usize| problems.duals(i, rows.squared_norm(i), classes);
    let mut batch = Batch::<T, L> {
        problems,
        rows: lists,
        set: context.instruction_set(),
        duals: (0..lists.rows()).map(duals).collect(),
        weights: WeightTable::new(lists.width()),
        classes: classes.clone(),
    };
    for (k, start) in starts.iter().enumerate() {
        if let Some(start) = start {
            batch.begin(k, start, rows);
        }
    }
    let state = |k: usize| ProblemState {
        tol: options.tol,
        tightened: 0,
        band: Band::OPEN,
        movable: batch.duals.iter().filter(|own| own.skip_until[k] == T::ZERO).count() as f64,
        passes: Passes::new(options, context),
        returns: 0,
        phase: Phase::Running,
    };
    let mut states: Vec<ProblemState<'_>> = (0..classes.len()).map(state).collect();
    // All begin a round together, so that the others make no difference.
    for round in 0.. {
        let mut generator = Generator::new(context.seed().wrapping_add(round));
        let mut order: Vec<u32> = (0..lists.rows() as u32).collect();
        for pass in 0.. {
            generator.shuffle(&mut order);
            batch.pass(pass, &order, &mut states, options);
            if !states.iter().any(|state| matches!(state.phase, Phase::Running)) {
                break;
            }
        }
        batch.judge(&mut states, options);
        if states.iter().all(|state| matches!(state.phase, Phase::Ended(_))) {
            break;
        }
    }
    let solution = |state: ProblemState<'_>| match state.phase {
        Phase::Ended(solution) => Some(solution),
        _ => None,
    };
    states.into_iter().filter_map(solution).collect()
}

impl<T: Real, const L: usize> Batch<'_, T, L> {
    /// Gives problem `k` a start.
    fn begin<R: LinearRows>(&mut self, k: usize, start: &[f64], rows: &R) {
        let mut weights = vec![0.0; rows.width()];
        for (i, duals) in self.duals.iter_mut().enumerate() {
            let side = duals.side(k);
            let alpha = T::from_f64((side * start[i]).clamp(0.0, duals.of(duals.bound, k)));
            duals.alpha[k] = alpha;
            if alpha != T::ZERO {
                rows.add(i, side * alpha.to_f64(), &mut weights);
            }
        }
        let weights = weights.into_iter().map(T::from_f64);
        self.weights.iter_mut().zip(weights).for_each(|(all, weight)| all[k] = weight);
    }

    /// One pass over the rows.
    fn pass(
        &mut self,
        pass: usize,
        order: &[u32],
        states: &mut [ProblemState<'_>],
        options: &Options,
    ) {
        let most_skipped = if options.shrinking { MOST_SKIPPED } else { 0 };
        let edges = |band: &Band| (T::from_f64(band.above), T::from_f64(band.below));
        let (above, below) = edges(&Band::OPEN);
        let mut bounds = SweepBounds { pass, above: [above; L], below: [below; L], most_skipped };
        for (k, state) in states.iter().enumerate() {
            (bounds.above[k], bounds.below[k]) = edges(&state.band);
        }
        let Self { rows, set, duals, weights, .. } = self;
        let seen = sweep(*set, rows, duals, order, weights, &bounds);
        let mut ends = [false; L];
        for (k, state) in states.iter_mut().enumerate() {
            if !matches!(state.phase, Phase::Running) {
                continue;
            }
            let [highest, lowest, looks] =
                [seen.highest[k], seen.lowest[k], seen.looks[k]].map(T::to_f64);
            let violation = Violation { highest, lowest, ..Violation::default() };
            let range = violation.range();
            let stop = state.passes.finish(looks as usize, range, || f64::NAN);
            state.band = Band::after(&violation, options.shrinking);
            if range <= state.tol || stop.is_some() {
                let whole = range <= state.tol && looks == state.movable;
                state.phase = Phase::Waiting { whole, stop };
                ends[k] = true;
            }
        }
        if ends.contains(&true) {
            for duals in duals {
                let never = T::from_f64(f64::INFINITY);
                (0..L).filter(|&k| ends[k]).for_each(|k| duals.skip_until[k] = never);
            }
        }
    }

    /// Ends problems that are solved or have to stop, and reactivates all rows of the others.
    fn judge(&mut self, states: &mut [ProblemState<'_>], options: &Options) {
        let values = row_values(self.set, self.rows, &self.weights);
        let proofs = self.proofs(&values);
        let mut active = [false; L];
        for (k, state) in states.iter_mut().enumerate() {
            let Phase::Waiting { whole, stop } = state.phase else { continue };
            let mut status = stop;
            let mut solution = self.solution(k, &state.passes, Status::Solved, &proofs[k], &values);
            let met = proofs[k].violation.range() <= state.tol;
            if whole && !met {
                state.returns += 1;
                if state.returns > MOST_RETURNS {
                    status = Some(Status::AlmostSolved);
                }
            } else if whole {
                let Outcome { primal, dual, .. } = solution.outcome;
                if primal - dual <= options.gap * primal.abs() {
                    status = Some(Status::Solved);
                } else if size_of::<T>() == size_of::<f32>() || state.tightened == MOST_TIGHTENED {
                    status = Some(Status::AlmostSolved);
                } else {
                    (state.tol, state.tightened) = (TIGHTER * state.tol, state.tightened + 1);
                }
            }
            if let Some(status) = status {
                solution.outcome.status = status;
                state.phase = Phase::Ended(solution);
            } else {
                state.phase = Phase::Running;
                state.band = Band::OPEN;
                active[k] = true;
            }
        }
        if active.contains(&true) {
            for duals in &mut self.duals {
                (0..L).filter(|&k| active[k]).for_each(|k| duals.reactivate(k));
            }
        }
    }

    /// What is known of every problem where the rows have these values.
    fn proofs(&self, values: &[[f64; L]]) -> [OptimalityMeasures; L] {
        let mut proofs =
            [OptimalityMeasures { violation: Violation::default(), separable: 0.0 }; L];
        for (duals, value) in self.duals.iter().zip(values) {
            for (k, proof) in proofs.iter_mut().enumerate().take(self.classes.len()) {
                if duals.of(duals.bound, k) > 0.0 {
                    proof.violation.see(duals.projected(k, value[k]));
                    let alpha = duals.alpha[k].to_f64();
                    proof.separable += (0.5 * duals.of(duals.ridge, k) * alpha - 1.0) * alpha;
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
        proof: &OptimalityMeasures,
        values: &[[f64; L]],
    ) -> Solution {
        let weights: Vec<f64> = self.weights.iter().map(|weights| weights[k].to_f64()).collect();
        let own: Vec<f64> = values.iter().map(|values| values[k]).collect();
        let (targets, costs) = self.problems.targets_and_costs(self.classes.start + k);
        let loss = self.problems.loss;
        let problem = Problem { loss, targets: &targets, costs: &costs, shift: 0.0 };
        let primal = primal(&problem, &weights, &own);
        let dual = -0.5 * squared_norm(&weights) - proof.separable;
        let outcome = passes.outcome(status, primal, dual, proof.violation.range());
        let signed = |duals: &BatchDuals<T, L>| duals.side(k) * duals.alpha[k].to_f64();
        let dual = self.duals.iter().map(signed).collect();
        Solution { weights, dual, outcome }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::data::Csr;
    use crate::solver::linear::rows::SparseRows;

    /// Sparse random rows of five classes, some without a cost.
    pub(in super::super) struct RandomProblems {
        pub(in super::super) table: Csr<f64>,
        codes: Vec<u32>,
        rest_costs: Vec<f64>,
        own_costs: Vec<f64>,
    }

    impl RandomProblems {
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

        pub(in super::super) fn problems(&self, loss: RowLoss) -> OneVsRestProblems<'_> {
            let Self { codes, rest_costs, own_costs, .. } = self;
            OneVsRestProblems { loss, codes, rest_costs, own_costs }
        }
    }

    fn to(tol: f64) -> Options {
        Options { tol, ..Options::default() }
    }

    #[test]
    fn a_problem_does_not_depend_on_the_batch_and_is_verified_in_double_precision() {
        let random = RandomProblems::new(150, 1.0);
        let rows = SparseRows::new(&random.table, random.table.values(), Some(1.0));
        let (lists, context) = (rows.lists().unwrap(), &Context::new());
        for loss in [RowLoss::Hinge, RowLoss::SquaredHinge] {
            let problems = random.problems(loss);
            let coarse = to(SINGLE_TOLERANCE);
            let (rows, lists, problems) = (&rows, &lists, &problems);
            let of = |classes: Range<usize>| {
                let starts = &[None; 5][classes.clone()];
                BatchInputs { rows, lists, problems, classes, options: &coarse, starts, context }
            };
            let together = solve_in_singles::<16, _>(&of(0..5));
            let apart = solve_in_singles::<8, _>(&of(3..5));
            assert_eq!(together[3].weights, apart[0].weights);
            assert_eq!(together[4].dual, apart[1].dual);
            for (class, found) in together.iter().enumerate() {
                let (targets, costs) = problems.targets_and_costs(class);
                let problem = Problem { loss, targets: &targets, costs: &costs, shift: 0.0 };
                let best = dual::solve(rows, &problem, &to(1e-9), None, context).outcome.primal;
                let Outcome { status, primal, violation, .. } = found.outcome;
                assert_eq!(status, Status::Solved);
                assert!(violation <= SINGLE_TOLERANCE, "{violation}");
                let slack = SINGLE_TOLERANCE * costs.iter().sum::<f64>();
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
        let random = RandomProblems::new(12, 10.0);
        let rows = SparseRows::new(&random.table, random.table.values(), Some(1.0));
        let (lists, context) = (rows.lists().unwrap(), Context::new());
        let problems = random.problems(RowLoss::Hinge);
        let options = Options { max_passes: SINGLE_PASSES, ..to(SINGLE_TOLERANCE) };
        let inputs = BatchInputs {
            rows: &rows,
            lists: &lists,
            problems: &problems,
            classes: 0..5,
            options: &options,
            starts: &[None; 5],
            context: &context,
        };
        let single = solve_batch::<f32, 8, _>(&inputs);
        assert!(single.iter().any(|solution| !solution.outcome.status.is_solved()));
        let found = solve_in_singles::<8, _>(&inputs.with_options(&to(SINGLE_TOLERANCE)));
        for (solution, single) in found.iter().zip(&single) {
            let Outcome { status, violation, blocks, .. } = solution.outcome;
            assert_eq!(status, Status::Solved);
            assert!(violation <= SINGLE_TOLERANCE, "{violation}");
            assert!(single.outcome.status.is_solved() || blocks > single.outcome.blocks);
        }
    }
}
