//! The outer loop: working sets, gradient updates, shrinking and the final check.

use super::active_block::ActiveBlock;
use super::gather::{Gathered, LastWorkingSet};
use super::hybrid::Hybrid;
use super::in_memory::HeldRows;
use super::inner::LazyRows;
use super::problem::{Options, Problem, Solution};
use super::select::{Selector, active_variables, is_active, worst_violators};
use super::state::{Extremes, State};
use crate::context::{Context, Event};
use crate::kernel::{MatrixRows, Row, RowCaching};
use crate::numeric::simd::{Real, accumulate};
use crate::solver::{Outcome, Status};

/// Columns of the gradient one task brings up to date.
const UPDATE_CHUNK: usize = 4096;

/// Steps of the inner solver between two checks of the time.
pub(super) const LOOK_STEPS: u64 = 1000;

/// Steps of the inner solver before its working set is chosen anew.
pub(super) const INNER_STEPS: u64 = 20_000;

/// Rows that join a problem that holds its rows at a time.
const LOAD_BATCH: usize = 64;

/// A working set is solved until its violation is this share of that of all variables; solving it
/// further would be undone by the next one.
pub(super) const SUBPROBLEM_SHARE: f64 = 0.5;

/// The same for a working set of nearly all violating variables, which little is left to undo.
const SUBPROBLEM_SHARE_ALL: f64 = 0.1;

/// Blocks in a row without a lower violation that only rounding explains.
const STALLED: usize = 1000;

/// Factor on the tolerance when a gap that was asked for is not reached.
const TIGHTER: f64 = 0.25;

/// The smallest tolerance that is tried for the sake of a gap.
const LAST_TOLERANCE: f64 = 1e-11;

/// A tighter tolerance has to lower the gap to this share, or rounding has stopped progress.
const PROGRESS: f64 = 0.8;

/// Share of the tolerance to which all variables are solved, so that rounding does not show.
const ALL_SOLVED: f64 = 0.95;

/// Part of the variables that a working set may be when its rows are not kept.
const STREAMED_SHARE: usize = 12;

/// Part of a largest working set that is left to violators beside the variables inside their boxes.
const VIOLATOR_SHARE: usize = 8;

/// Working set below which a small cache does not push.
const SMALLEST_WORKING_SET: usize = 64;

/// Working sets between two attempts at shrinking.
const SHRINK_EVERY: usize = 8;

/// A start is near the solution, as one is that was found with kernel values of another precision, where its
/// violation is at most this share of the largest linear term, or so many times the tolerance.
const NEAR_SHARE: f64 = 0.02;
const NEAR_TOLERANCES: f64 = 100.0;

/// Fresh gradients that may contradict the running one before the status is almost solved.
const MOST_CORRECTIONS: usize = 5;

/// Solves `problem` over the matrix `rows`.
///
/// The solution is always feasible; [`Outcome::status`] says whether the tolerance was reached.
///
/// # Panics
/// When the arrays of `problem` do not all have one entry per row of the matrix.
pub(crate) fn solve<R: MatrixRows>(
    rows: &R,
    problem: &Problem,
    options: &Options,
    context: &Context,
) -> Solution {
    let n = rows.len();
    problem.assert_lengths(n);
    let diagonal = (0..n)
        .map(|v| rows.diagonal(v) + problem.ridge.as_ref().map_or(0.0, |ridge| ridge[v]))
        .collect();
    let mut held = HeldRows::of(rows);
    let fits = rows.period() <= options.in_memory_up_to;
    let mut stopped = None;
    let gradient = fresh_gradient(problem, &problem.start, |beta| {
        if !fits || problem.initial_working_set.is_empty() {
            let (product, status) = stoppable_product(rows, beta, context);
            stopped = status;
            return product;
        }
        held.load(rows, &problem.initial_working_set);
        held.product(rows, beta, context.instruction_set())
    });
    let mut state = State::new(problem, gradient, diagonal);
    if let Some(status) = stopped {
        return unknown(problem, &mut state, status, rows.requested());
    }
    let hybrid = Hybrid::new(options, context).begun_near(is_near(problem, &state, options.tol));
    let linear = &problem.linear[..];
    let mut run = Run { linear, options, context, hybrid, whole: None, steps: 0, blocks: 0 };
    let (mut tol, mut corrections, mut last_gap) = (options.tol, 0, f64::INFINITY);
    if fits {
        held.load(rows, &problem.initial_working_set);
    } else {
        run.descend_initial(rows, &mut state, &problem.initial_working_set);
    }
    let (status, violation) = loop {
        let ended;
        state.gradient = if fits {
            ended = run.descend_in_memory(rows, &mut state, &mut held, tol);
            let set = context.instruction_set();
            fresh_gradient(problem, &state.beta, |beta| held.product(rows, beta, set))
        } else {
            ended = if rows.is_cheap() {
                run.descend_streamed(rows, &mut state, tol)
            } else {
                run.descend(rows, &mut state, tol)
            };
            match ended {
                // There is no time for a fresh gradient; the running one is that of this point.
                Some(Status::TimeLimit | Status::Interrupted) => {
                    std::mem::take(&mut state.gradient)
                }
                _ => fresh_gradient(problem, &state.beta, |beta| rows.product(beta)),
            }
        };
        let violation = worst(&state.extremes());
        if let Some(status) = ending_status(ended, violation, tol, &mut corrections) {
            let gap = options.gap.map(|asked| (relative_gap(problem, &state), asked));
            match (status, gap) {
                (Status::Solved | Status::AlmostSolved, Some((gap, asked)))
                    if gap > asked
                        && tol > LAST_TOLERANCE
                        && (gap <= PROGRESS * last_gap || tol >= asked) =>
                {
                    (tol, last_gap, corrections) = (tol * TIGHTER, gap, 0);
                }
                _ => break (status, violation),
            }
        }
    };
    let (steps, blocks) = (run.steps, run.blocks);
    finish(
        problem,
        &mut state,
        SolveStatistics { status, violation, steps, blocks, entries: rows.requested() },
    )
}

/// Whether the start is the solution of a problem that differs little from this one.
fn is_near(problem: &Problem, state: &State, tol: f64) -> bool {
    let largest = problem.linear.iter().map(|p| p.abs()).fold(0.0, f64::max);
    let near = (NEAR_SHARE * largest).max(NEAR_TOLERANCES * tol);
    problem.bound_tolerance > 0.0 && worst(&state.extremes()) <= near
}

/// Variables whose rows are multiplied between two checks of the time.
const PRODUCT_ROWS: usize = 512;

/// The product of the matrix with `beta`; a part of it, and why, when the context asks to stop.
fn stoppable_product<R: MatrixRows>(
    rows: &R,
    beta: &[f64],
    context: &Context,
) -> (Vec<f64>, Option<Status>) {
    let nonzero: Vec<usize> = (0..beta.len()).filter(|&v| beta[v] != 0.0).collect();
    let mut sum = vec![0.0; beta.len()];
    for run in nonzero.chunks(PRODUCT_ROWS) {
        if let Some(status) = context.stop_request() {
            return (sum, Some(status));
        }
        let mut part = vec![0.0; beta.len()];
        run.iter().for_each(|&v| part[v] = beta[v]);
        let product = rows.product(&part);
        sum.iter_mut().zip(product).for_each(|(sum, value)| *sum += value);
    }
    (sum, None)
}

/// The start as the solution of a solve that was stopped before its gradient was known: nothing is
/// known of its objective.
fn unknown(problem: &Problem, state: &mut State, status: Status, entries: u64) -> Solution {
    let effort = SolveStatistics { status, violation: f64::INFINITY, steps: 0, blocks: 0, entries };
    let solution = finish(problem, state, effort);
    let outcome =
        Outcome { primal: f64::INFINITY, dual: f64::NEG_INFINITY, status, ..solution.outcome };
    Solution { outcome, ..solution }
}

/// How a descent whose fresh gradient shows `violation` ends; `None` when it must go on.
pub(super) fn ending_status(
    ended: Option<Status>,
    violation: f64,
    tol: f64,
    corrections: &mut usize,
) -> Option<Status> {
    match ended {
        Some(status) => Some(status),
        None if violation <= tol => Some(Status::Solved),
        None if *corrections == MOST_CORRECTIONS => {
            let almost = violation <= 10.0 * tol;
            Some(if almost { Status::AlmostSolved } else { Status::NumericalTrouble })
        }
        None => {
            *corrections += 1;
            None
        }
    }
}

/// Primal minus dual objective of a state with a fresh gradient, as a share of the primal one.
fn relative_gap(problem: &Problem, state: &State) -> f64 {
    let gap = state.gap(&state.multipliers(problem.bound_tolerance));
    gap / (gap - state.objective(&problem.linear)).abs()
}

/// Status, KKT violation and work of a solve.
pub(super) struct SolveStatistics {
    pub(super) status: Status,
    pub(super) violation: f64,
    pub(super) steps: u64,
    pub(super) blocks: u64,
    pub(super) entries: u64,
}

/// The solution that a state with a fresh gradient stands for; takes its point and gradient.
pub(super) fn finish(problem: &Problem, state: &mut State, effort: SolveStatistics) -> Solution {
    let multipliers = state.multipliers(problem.bound_tolerance);
    let objective = state.objective(&problem.linear);
    let outcome = Outcome {
        status: effort.status,
        dual: -objective,
        primal: -objective + state.gap(&multipliers),
        violation: effort.violation,
        iterations: effort.steps,
        blocks: effort.blocks,
        kernel_rows: effort.entries,
    }
    .with_checked_status();
    let (beta, gradient) = (std::mem::take(&mut state.beta), std::mem::take(&mut state.gradient));
    Solution { beta, gradient, multipliers, outcome }
}

/// f at `beta`, given the product with the matrix.
pub(super) fn fresh_gradient(
    problem: &Problem,
    beta: &[f64],
    product: impl FnOnce(&[f64]) -> Vec<f64>,
) -> Vec<f64> {
    let mut gradient =
        if beta.iter().all(|&b| b == 0.0) { vec![0.0; beta.len()] } else { product(beta) };
    for v in 0..beta.len() {
        gradient[v] += problem.linear[v];
        if let Some(ridge) = &problem.ridge {
            gradient[v] += ridge[v] * beta[v];
        }
    }
    gradient
}

pub(super) fn worst(extremes: &[Extremes; 2]) -> f64 {
    extremes.iter().map(|e| e.violation()).fold(0.0, f64::max)
}

/// Result of a check of the state.
enum Check {
    /// The extremes and their violation, which is too large.
    GoOn([Extremes; 2], f64),
    /// The tolerance is reached (`None`) or a limit ends the descent.
    End(Option<Status>),
}

/// One solve: what stays the same while variables come and go.
struct Run<'a> {
    linear: &'a [f64],
    options: &'a Options,
    context: &'a Context,
    hybrid: Hybrid,
    /// While a part of the variables descends and somebody watches: where it began.
    whole: Option<PartStart>,
    steps: u64,
    blocks: u64,
}

/// Where a part of the variables began to descend.
struct PartStart {
    /// The objective over all variables.
    objective: f64,
    /// The part's β and f.
    beta: Vec<f64>,
    gradient: Vec<f64>,
}

impl PartStart {
    /// The objective over all variables when the part is in `state`: that of the start and
    /// ½(β − β₀)ᵀ(f + f₀), as nothing outside the part moves.
    fn objective(&self, state: &State) -> f64 {
        let terms = (0..state.len())
            .map(|v| (state.beta[v] - self.beta[v]) * (state.gradient[v] + self.gradient[v]));
        self.objective + 0.5 * terms.sum::<f64>()
    }
}

impl Run<'_> {
    /// As [`descend`](Self::descend), holding the row of every variable that takes part; those that are
    /// held already take part from the beginning.
    fn descend_in_memory<R: MatrixRows>(
        &mut self,
        rows: &R,
        state: &mut State,
        held: &mut HeldRows<R::Value>,
        tol: f64,
    ) -> Option<Status> {
        let n = state.len();
        rows.matrices().with(|memory| {
            let mut block = ActiveBlock::new(n, n, std::mem::take(memory));
            let ended = self.descend_block(rows, state, held, &mut block, tol);
            *memory = block.into_memory();
            ended
        })
    }

    fn descend_block<R: MatrixRows>(
        &mut self,
        rows: &R,
        state: &mut State,
        held: &mut HeldRows<R::Value>,
        block: &mut ActiveBlock<R::Value>,
        tol: f64,
    ) -> Option<Status> {
        let n = state.len();
        let mut part = State::default();
        self.hybrid.forget();
        held.load(rows, &state.inside());
        let bounds = state.held_at_bounds();
        let takes_part = |v: &u32| held.has(*v as usize) && is_active(state, &bounds, *v as usize);
        let at_hand: Vec<u32> = (0..n as u32).filter(takes_part).collect();
        join_held(block, &at_hand, held);
        let (mut is_solved, mut lowest, mut rounds) = (false, f64::INFINITY, 0);
        loop {
            let (extremes, violation) = match self.check(state, tol) {
                Check::GoOn(extremes, violation) => (extremes, violation),
                Check::End(ended) => return ended,
            };
            let outside = |v: usize| !block.contains(v);
            let fresh = worst_violators(state, &extremes, LOAD_BATCH, outside, self.context);
            rounds = if violation < lowest { 0 } else { rounds + 1 };
            lowest = lowest.min(violation);
            // What violates now was solved already: rounding, on which a fresh gradient decides.
            if fresh.is_empty() && is_solved || rounds == STALLED {
                return None;
            }
            held.load(rows, &fresh);
            if fresh.len() > LOAD_BATCH / 2 {
                self.hybrid.pause();
            }
            let bounds = state.held_at_bounds();
            if block.keep(|v| is_active(state, &bounds, v)) {
                self.hybrid.forget();
            }
            join_held(block, &fresh, held);
            let share = if fresh.is_empty() { 0.0 } else { SUBPROBLEM_SHARE };
            let inner_tol = (share * violation).max(ALL_SOLVED * tol);
            state.select_into(block.members(), &mut part);
            let (most, context) = (self.steps_left(), self.context);
            let mut matrix = block.matrix();
            let steps =
                self.hybrid.descend_and_end(&mut part, &mut matrix, inner_tol, most, context);
            is_solved = inner_tol <= tol && worst(&part.extremes()) <= inner_tol;
            self.steps += steps;
            self.blocks += 1;
            take_over(state, &part, block.members(), held, context);
        }
    }

    /// Reports how far the descent has come and says whether it goes on.
    fn check(&self, state: &State, tol: f64) -> Check {
        let extremes = state.extremes();
        let violation = worst(&extremes);
        // A training stopped at its first report has a model to go on with.
        if self.blocks > 0 {
            self.report(state, violation);
        }
        if violation <= tol {
            return Check::End(None);
        }
        if !violation.is_finite() {
            return Check::End(Some(Status::NumericalTrouble));
        }
        match self.limit() {
            Some(status) => Check::End(Some(status)),
            None => Check::GoOn(extremes, violation),
        }
    }

    /// Why the solve has to end before it is done, if it has to.
    fn limit(&self) -> Option<Status> {
        let spent = self.steps >= self.options.max_iterations;
        self.context.stop_request().or(spent.then_some(Status::IterationLimit))
    }

    /// Steps that the inner solver may take at once.
    fn steps_left(&self) -> u64 {
        (self.options.max_iterations - self.steps).min(INNER_STEPS)
    }

    fn report(&self, state: &State, violation: f64) {
        if !self.context.is_observed() {
            return;
        }
        self.context.report(&Event::Iteration {
            iteration: self.blocks as usize,
            violation,
            objective: -self.objective(state),
            active: state.len(),
        });
    }

    /// The objective over all variables, of which those of `state` descend.
    fn objective(&self, state: &State) -> f64 {
        match &self.whole {
            Some(start) => start.objective(state),
            None => state.objective(self.linear),
        }
    }

    /// Lowers the objective until the violation over the variables of `state` is at most `tol`
    /// (`None`) or a limit ends it (`Some`).
    fn descend<R: MatrixRows>(&mut self, rows: &R, state: &mut State, tol: f64) -> Option<Status> {
        let capacity = rows.capacity();
        let mut selector = Selector::new(state.len(), capacity);
        let size = self.options.working_set.min(capacity.max(SMALLEST_WORKING_SET));
        let mut earlier = LastWorkingSet::default();
        let mut until_shrink = SHRINK_EVERY;
        loop {
            let (extremes, violation) = match self.check(state, tol) {
                Check::GoOn(extremes, violation) => (extremes, violation),
                Check::End(ended) => return ended,
            };
            if self.options.shrinking && state.len() >= self.options.shrink_from {
                until_shrink -= 1;
                if until_shrink == 0 {
                    until_shrink = SHRINK_EVERY;
                    let keep = active_variables(state, &extremes);
                    if keep.len() < state.len() / 2 && capacity < state.len() / 2 {
                        let target = (0.1 * violation).max(tol);
                        let ended = self.descend_part(rows, state, &keep, target);
                        if ended.is_some() {
                            return ended;
                        }
                        continue;
                    }
                }
            }
            let set = selector.select(state, &extremes, size, size / 8);
            let inner_tol = (SUBPROBLEM_SHARE * violation).max(0.5 * tol);
            let steps = self.steps_left();
            self.steps += self.improve(rows, state, set, &mut earlier, inner_tol, steps);
            self.blocks += 1;
        }
    }

    /// As [`descend`](Self::descend), for rows that cost less to compute again than to keep: the
    /// worst violators and the variables inside their boxes descend among themselves, and only rows of
    /// variables that moved are computed in full, a few columns at a time.
    fn descend_streamed<R: MatrixRows>(
        &mut self,
        rows: &R,
        state: &mut State,
        tol: f64,
    ) -> Option<Status> {
        let largest = self.options.in_memory_up_to.max(SMALLEST_WORKING_SET);
        let size = (state.len() / STREAMED_SHARE).max(self.options.working_set).min(largest);
        let mut selector = Selector::new(state.len(), state.len());
        loop {
            let (extremes, violation) = match self.check(state, tol) {
                Check::GoOn(extremes, violation) => (extremes, violation),
                Check::End(ended) => return ended,
            };
            // What moves the violators moves the gradients of the variables inside their boxes: left out,
            // these are the violators of the next round.
            let mut inside = state.inside();
            if largest - largest / VIOLATOR_SHARE < inside.len() {
                inside.clear();
            }
            let size = size.min(largest - inside.len());
            let mut set = selector.select_worst(state, &extremes, size, self.context);
            let crowded = set.len() >= size - size / 32;
            set.extend(inside);
            set.sort_unstable();
            set.dedup();
            let settled = if crowded { SUBPROBLEM_SHARE } else { SUBPROBLEM_SHARE_ALL };
            let target = (settled * violation).max(0.5 * tol);
            let ended = self.descend_part(rows, state, &set, target);
            if ended.is_some() {
                return ended;
            }
        }
    }

    /// Solves the sub-problem of the first variables of `initial`, as many as a working set has room for.
    fn descend_initial<R: MatrixRows>(&mut self, rows: &R, state: &mut State, initial: &[u32]) {
        let room = self.options.in_memory_up_to.max(SMALLEST_WORKING_SET);
        let set = &initial[..initial.len().min(room)];
        if !set.is_empty() && self.limit().is_none() {
            let violation = worst(&state.extremes());
            let target = (SUBPROBLEM_SHARE_ALL * violation).max(self.options.tol);
            self.descend_part(rows, state, set, target);
        }
    }

    /// Descends on the variables `keep` alone, then brings the gradient of the others up to date.
    fn descend_part<R: MatrixRows>(
        &mut self,
        rows: &R,
        state: &mut State,
        keep: &[u32],
        tol: f64,
    ) -> Option<Status> {
        let mut part = state.select(keep);
        let whole = self.context.is_observed().then(|| PartStart {
            objective: self.objective(state),
            beta: part.beta.clone(),
            gradient: part.gradient.clone(),
        });
        let outer = std::mem::replace(&mut self.whole, whole);
        let ended = if keep.len() <= self.options.in_memory_up_to {
            let compact = rows.compact(keep, RowCaching::Off);
            self.descend_in_memory(&compact, &mut part, &mut HeldRows::of(&compact), tol)
        } else {
            self.descend(&rows.compact(keep, RowCaching::All), &mut part, tol)
        };
        self.whole = outer;
        let mut change = vec![0.0; state.len()];
        for (&v, &beta) in keep.iter().zip(&part.beta) {
            change[v as usize] = beta - state.beta[v as usize];
            state.beta[v as usize] = beta;
        }
        let product = rows.product(&change);
        for v in 0..state.len() {
            state.gradient[v] += product[v];
            if let Some(ridge) = &state.ridge {
                state.gradient[v] += ridge[v] * change[v];
            }
        }
        ended
    }

    /// Solves the sub-problem of the variables `set` and updates the state; returns the steps.
    fn improve<R: MatrixRows>(
        &mut self,
        rows: &R,
        state: &mut State,
        set: Vec<u32>,
        earlier: &mut LastWorkingSet<R::Value>,
        tol: f64,
        max_steps: u64,
    ) -> u64 {
        let context = self.context;
        let fetched = rows.fetch(&set);
        let mut part = state.select(&set);
        let source = Gathered::new(rows, &fetched, &set, earlier);
        let mut in_memory = (0..set.len()).map(|_| None).collect();
        let matrix = LazyRows { rows: &mut in_memory, source };
        let steps = self.hybrid.descend(&mut part, matrix, tol, max_steps, context);
        let mut changes = Vec::with_capacity(set.len());
        let mut changed_rows = Vec::with_capacity(set.len());
        for (w, &v) in set.iter().enumerate() {
            let v = v as usize;
            let change = part.beta[w] - state.beta[v];
            if change != 0.0 {
                state.beta[v] = part.beta[w];
                if let Some(ridge) = &state.ridge {
                    state.gradient[v] += ridge[v] * change;
                }
                changes.push(change);
                changed_rows.push(&fetched[w]);
            }
        }
        update_gradient(&mut state.gradient, rows.pieces(), &changed_rows, &changes, context);
        *earlier = LastWorkingSet { set, rows: in_memory };
        steps
    }
}

/// Lets variables whose rows are held join a block.
fn join_held<T: Real>(block: &mut ActiveBlock<T>, variables: &[u32], held: &HeldRows<T>) {
    block.join(variables, |fresh, columns, out, stride| held.gather(fresh, columns, out, stride));
}

/// Moves the variables `members` to where they are in `part` and brings the gradient up to date.
fn take_over<T: Real>(
    state: &mut State,
    part: &State,
    members: &[u32],
    held: &HeldRows<T>,
    context: &Context,
) {
    let (mut moved, mut changes) = (Vec::new(), Vec::new());
    for (&v, &beta) in members.iter().zip(&part.beta) {
        let v = v as usize;
        let change = beta - state.beta[v];
        if change != 0.0 {
            state.beta[v] = beta;
            if let Some(ridge) = &state.ridge {
                state.gradient[v] += ridge[v] * change;
            }
            moved.push(v);
            changes.push(change);
        }
    }
    held.add(&mut state.gradient, &moved, &changes, context.instruction_set());
}

/// gradient += Σ changeᵣ rowᵣ.
fn update_gradient<T: Real>(
    gradient: &mut [f64],
    pieces: &[usize],
    rows: &[&Row<T>],
    changes: &[f64],
    context: &Context,
) {
    let mut rest = gradient;
    for (k, piece) in pieces.windows(2).enumerate() {
        let (part, tail) = rest.split_at_mut(piece[1] - piece[0]);
        rest = tail;
        let update = |(c, chunk): (usize, &mut [f64])| {
            let start = c * UPDATE_CHUNK;
            let parts: Vec<&[T]> =
                rows.iter().map(|row| &row[k][start..start + chunk.len()]).collect();
            accumulate(context.instruction_set(), chunk, &parts, changes);
        };
        let worth = part.len() > UPDATE_CHUNK;
        context.for_each_if(worth, part.chunks_mut(UPDATE_CHUNK).enumerate(), update);
    }
}
