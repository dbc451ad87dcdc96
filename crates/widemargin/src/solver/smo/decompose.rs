//! The outer loop: working sets, gradient updates, shrinking and the final check.

use rayon::prelude::*;

use super::inner::{Inner, padded};
use super::problem::{Options, Problem, Solution};
use super::select::{Selector, unsettled};
use super::state::{Extremes, State};
use crate::context::{Context, Event};
use crate::kernel::{MatrixRows, Real, Row, accumulate, vectorize};
use crate::solver::{Outcome, Status};

/// Columns of the gradient one task brings up to date.
const UPDATE_CHUNK: usize = 4096;

/// Fewest variables for which setting some aside pays for repacking the rest.
const SHRINK_FROM: usize = 4000;

/// Working sets between two looks at what could be set aside.
const SHRINK_EVERY: usize = 8;

/// Fresh gradients that may contradict the running one before the answer is called almost solved.
const CONFIRMATIONS: usize = 5;

/// Solves `problem` over the matrix `rows`.
///
/// The answer is always feasible; [`Outcome::status`] tells whether the tolerance was reached.
///
/// # Panics
/// When the arrays of `problem` do not all have one entry per row of the matrix.
pub fn solve<R: MatrixRows>(
    rows: &R,
    problem: &Problem,
    options: &Options,
    context: &Context,
) -> Solution {
    let n = rows.len();
    assert!(
        [&problem.linear, &problem.lower, &problem.upper, &problem.start]
            .iter()
            .all(|array| array.len() == n),
        "one entry of every array per variable"
    );
    let diagonal = (0..n)
        .map(|v| rows.diagonal(v) + problem.ridge.as_ref().map_or(0.0, |ridge| ridge[v]))
        .collect();
    let gradient = fresh_gradient(rows, problem, &problem.start);
    let mut state = State::new(problem, gradient, diagonal);
    let mut run = Run { linear: &problem.linear, options, context, steps: 0, blocks: 0 };
    let mut selector = Selector::new(n);
    let mut confirmations = 0;
    let (status, violation) = loop {
        let ended = run.descend(rows, &mut state, &mut selector, options.tol, true);
        state.gradient = fresh_gradient(rows, problem, &state.beta);
        let violation = worst(&state.extremes());
        match ended {
            Some(status) => break (status, violation),
            None if violation <= options.tol => break (Status::Solved, violation),
            None if confirmations == CONFIRMATIONS => {
                let almost = violation <= 10.0 * options.tol;
                let status = if almost { Status::AlmostSolved } else { Status::NumericalTrouble };
                break (status, violation);
            }
            None => confirmations += 1,
        }
    };
    let multipliers = state.multipliers();
    let objective = state.objective(&problem.linear);
    let outcome = Outcome {
        status,
        dual: -objective,
        primal: -objective + state.gap(&multipliers),
        violation,
        iterations: run.steps,
        blocks: run.blocks,
        kernel_rows: rows.computed(),
    };
    Solution { beta: state.beta, gradient: state.gradient, multipliers, outcome }
}

fn fresh_gradient<R: MatrixRows>(rows: &R, problem: &Problem, beta: &[f64]) -> Vec<f64> {
    let mut gradient =
        if beta.iter().all(|&b| b == 0.0) { vec![0.0; beta.len()] } else { rows.product(beta) };
    for v in 0..beta.len() {
        gradient[v] += problem.linear[v];
        if let Some(ridge) = &problem.ridge {
            gradient[v] += ridge[v] * beta[v];
        }
    }
    gradient
}

fn worst(extremes: &[Extremes; 2]) -> f64 {
    extremes.iter().map(|e| e.violation()).fold(0.0, f64::max)
}

/// One solve: what stays the same while variables come and go.
struct Run<'a> {
    linear: &'a [f64],
    options: &'a Options,
    context: &'a Context,
    steps: u64,
    blocks: u64,
}

impl Run<'_> {
    /// Lowers the objective until the violation over the variables of `state` is at most `tol`
    /// (`None`) or a limit ends it (`Some`).
    fn descend<R: MatrixRows>(
        &mut self,
        rows: &R,
        state: &mut State,
        selector: &mut Selector,
        tol: f64,
        may_shrink: bool,
    ) -> Option<Status> {
        let mut block = Block::new();
        let mut until_shrink = SHRINK_EVERY;
        loop {
            let extremes = state.extremes();
            let violation = worst(&extremes);
            self.context.report(&Event::Iteration {
                iteration: self.blocks as usize,
                violation,
                objective: -state.objective(self.linear),
                active: state.len(),
            });
            if violation <= tol {
                return None;
            }
            if let Some(status) = self.context.stop_request() {
                return Some(status);
            }
            if self.steps >= self.options.max_iterations {
                return Some(Status::IterationLimit);
            }
            if self.options.shrinking && may_shrink && state.len() >= SHRINK_FROM {
                until_shrink -= 1;
                if until_shrink == 0 {
                    until_shrink = SHRINK_EVERY;
                    let keep = unsettled(state, &extremes);
                    if keep.len() < state.len() / 2 {
                        let compact = rows.compact(&keep);
                        let target = (0.1 * violation).max(tol);
                        let ended = self.shrunk(rows, &compact, state, selector, &keep, target);
                        if ended.is_some() {
                            return ended;
                        }
                        continue;
                    }
                }
            }
            let env = |k: &str, d: f64| std::env::var(k).ok().map_or(d, |v| v.parse().unwrap());
            let size = env("WS", self.options.working_set as f64) as usize;
            let fresh = (env("FRESH", 0.25) * size as f64) as usize;
            let set = selector.select(state, &extremes, size, fresh);
            let inner_tol = (env("IT", 0.1) * violation).max(0.5 * tol);
            let steps = self.options.max_iterations - self.steps;
            self.steps += block.improve(rows, state, &set, inner_tol, steps, self.context);
            self.blocks += 1;
        }
    }

    /// Descends on the variables `keep` alone, then brings the gradient of the others up to date.
    fn shrunk<R: MatrixRows, C: MatrixRows>(
        &mut self,
        rows: &R,
        compact: &C,
        state: &mut State,
        selector: &mut Selector,
        keep: &[u32],
        tol: f64,
    ) -> Option<Status> {
        let mut part = state.select(keep);
        let mut part_selector = selector.compact(keep);
        let ended = self.descend(compact, &mut part, &mut part_selector, tol, true);
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
}

/// Buffers of the working-set sub-problem, kept between blocks.
struct Block<T> {
    matrix: Vec<T>,
    filled: Vec<bool>,
}

impl<T: Real> Block<T> {
    fn new() -> Self {
        Self { matrix: Vec::new(), filled: Vec::new() }
    }

    /// Solves the sub-problem of the variables `set` and updates the state; returns the steps.
    fn improve<R: MatrixRows<Value = T>>(
        &mut self,
        rows: &R,
        state: &mut State,
        set: &[u32],
        tol: f64,
        max_steps: u64,
        context: &Context,
    ) -> u64 {
        let fetched = rows.fetch(set);
        let (q, width) = (set.len(), padded(set.len()));
        self.matrix.resize(q * width, T::ZERO);
        self.filled.clear();
        self.filled.resize(q, false);
        let pick = |values: &[f64], rest: f64| {
            let mut picked: Vec<f64> = set.iter().map(|&v| values[v as usize]).collect();
            picked.resize(width, rest);
            picked
        };
        let mut beta = pick(&state.beta, 0.0);
        let mut gradient = pick(&state.gradient, 0.0);
        let (lower, upper) = (pick(&state.lower, 0.0), pick(&state.upper, 0.0));
        let diagonal = pick(&state.diagonal, 1.0);
        let ridge = state.ridge.as_ref().map_or_else(|| vec![0.0; width], |r| pick(r, 0.0));
        let groups: Vec<u8> = set.iter().map(|&v| state.group(v as usize) as u8).collect();
        let mut rise = vec![f64::NEG_INFINITY; width * state.group_count];
        let mut fall = rise.clone();
        for w in 0..q {
            let at = usize::from(groups[w]) * width + w;
            if beta[w] < upper[w] {
                rise[at] = 0.0;
            }
            if beta[w] > lower[w] {
                fall[at] = 0.0;
            }
        }
        let spans = piece_spans(rows.pieces(), set);
        let mut fill =
            |w: usize, out: &mut [T]| gather(&fetched[w], rows.pieces(), &spans, set, out);
        let steps = vectorize(
            context.instruction_set(),
            Inner {
                matrix: &mut self.matrix,
                filled: &mut self.filled,
                fill: &mut fill,
                beta: &mut beta,
                gradient: &mut gradient,
                lower: &lower,
                upper: &upper,
                diagonal: &diagonal,
                ridge: &ridge,
                rise: &mut rise,
                fall: &mut fall,
                groups: &groups,
                group_count: state.group_count,
                tol,
                max_steps,
            },
        );
        let mut changes = Vec::with_capacity(q);
        let mut changed_rows = Vec::with_capacity(q);
        for (w, &v) in set.iter().enumerate() {
            let v = v as usize;
            let change = beta[w] - state.beta[v];
            if change != 0.0 {
                state.beta[v] = beta[w];
                if let Some(ridge) = &state.ridge {
                    state.gradient[v] += ridge[v] * change;
                }
                changes.push(change);
                changed_rows.push(&fetched[w]);
            }
        }
        update_gradient(&mut state.gradient, rows.pieces(), &changed_rows, &changes, context);
        steps
    }
}

/// Positions of `set` that fall into each piece.
fn piece_spans(pieces: &[usize], set: &[u32]) -> Vec<std::ops::Range<usize>> {
    let position = |bound: usize| set.partition_point(|&v| (v as usize) < bound);
    pieces.windows(2).map(|piece| position(piece[0])..position(piece[1])).collect()
}

/// The entries of `row` at the variables of `set`.
fn gather<T: Real>(
    row: &Row<T>,
    pieces: &[usize],
    spans: &[std::ops::Range<usize>],
    set: &[u32],
    out: &mut [T],
) {
    for ((part, span), &start) in row.iter().zip(spans).zip(pieces) {
        for (o, &v) in out[span.clone()].iter_mut().zip(&set[span.clone()]) {
            *o = part[v as usize - start];
        }
    }
    out[set.len()..].fill(T::ZERO);
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
        if context.is_parallel() && part.len() > UPDATE_CHUNK {
            part.par_chunks_mut(UPDATE_CHUNK).enumerate().for_each(update);
        } else {
            part.chunks_mut(UPDATE_CHUNK).enumerate().for_each(update);
        }
    }
}
