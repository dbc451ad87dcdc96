//! Block-partitioned (two-level) dual coordinate descent: blocks of rows, one thread each.
//!
//! A pass is cut into rounds. In a round every block descends over some of its own rows from the common
//! w, and the steps are joined: β ← β + θδ, w ← w + θ ΣΔ with a θ ≤ 1 near the one that lowers the dual
//! most; so the optimum is that of one block, and a last pass over all rows, without steps, proves it.
//! After every pass some rows change their block, without which rows that contradict each other across
//! blocks would do so for ever; where rounds hinder each other all the same they become shorter, and at
//! last one block moves at a time. All of that depends on the data alone: the solution has the same bits
//! for any number of threads. After Jaggi et al. (CoCoA, 2014) and Ioannou, Mendler-Dünner and Parnell
//! (SySCD, 2019).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use super::active_set::ActiveSet;
use super::dual::{goal, movable, separable_cost, variable, weights as weights_of};
use super::problem::{
    Options, Passes, Problem, RowLoss, Solution, add_scaled, inner, primal, squared_norm,
};
use super::products::Products;
use super::spin_barrier::{BarrierGuard, SpinBarrier};
use super::sweep::sweep;
use super::table::Table;
use super::thread_tuner::ThreadTuner;
use super::tuning::blocks::{
    BLOCKS, EXCHANGED, MOST_PASSES, NEARLY_WHOLE, ROUND_VALUES, ROUNDS, SHORT, SHORTEST_ROUND,
    VALUES_PER_WEIGHT,
};
use super::tuning::dual::{MOST_RETURNS, MOST_TIGHTENED};
use super::variable::{Band, Goal, Variable, Violation};
use crate::context::Context;
use crate::numeric::random::Generator;
use crate::solver::Status;
use crate::solver::linear::rows::LinearRows;

/// Solves what [`solve`](super::dual::solve) solves, on up to as many threads as there are blocks; after
/// many passes that goes on, with its second-order methods.
pub(crate) fn solve<R: LinearRows>(
    rows: &R,
    problem: &Problem<'_>,
    options: &Options,
    start: Option<&[f64]>,
    context: &Context,
) -> Solution {
    let first = Options { max_passes: options.max_passes.min(MOST_PASSES), ..*options };
    let rest = Options { max_passes: options.max_passes - first.max_passes, ..*options };
    let before = descend(rows, problem, &first, start, context);
    if before.outcome.status != Status::IterationLimit || rest.max_passes == 0 {
        return before;
    }
    super::dual::solve(rows, problem, &rest, Some(&before.dual), context).after(&before.outcome)
}

/// As far as the blocks get.
fn descend<R: LinearRows>(
    rows: &R,
    problem: &Problem<'_>,
    options: &Options,
    start: Option<&[f64]>,
    context: &Context,
) -> Solution {
    let (team, movable) = Team::new(rows, problem, options, start, context);
    let mut weights = match start {
        Some(_) => weights_of(rows, team.variables().iter()),
        None => vec![0.0; rows.width()],
    };
    let mut lead = LeaderState {
        goal: goal(problem, options, start.is_some()),
        passes: Passes::new(options, context),
        shrinking: options.shrinking,
        movable,
        done: false,
        stop: None,
        tuner: ThreadTuner::new(context.threads().min(BLOCKS)),
    };
    let products = Products::new(rows, options.alone, context);
    let mut values = vec![0.0; rows.rows()];
    let (epsilon, mut returns, mut tightened) = (problem.loss.tube(), 0, 0);
    let (status, violation, primal, bound) = loop {
        weights = team.run(weights, &mut lead);
        if !lead.done && lead.stop.is_none() {
            continue;
        }
        products.write_values(&weights, &mut values);
        let variables = team.variables();
        let violation = Violation::of(variables.iter(), &values, epsilon);
        let primal = primal(problem, &weights, &values);
        let bound = -0.5 * squared_norm(&weights) - separable_cost(variables.iter(), epsilon);
        let met = lead.done && lead.goal.is_met(&violation);
        let status = if met && primal - bound <= options.gap * primal.abs() {
            Some(Status::Solved)
        } else if lead.stop.is_some() {
            lead.stop
        } else {
            if met {
                (lead.goal, tightened) = (lead.goal.tightened(), tightened + 1);
            } else {
                returns += 1;
            }
            let many = returns > MOST_RETURNS || tightened > MOST_TIGHTENED;
            many.then_some(Status::AlmostSolved)
        };
        if let Some(status) = status {
            break (status, violation, primal, bound);
        }
    };
    let outcome = lead.passes.outcome(status, primal, bound, violation.range());
    let mut dual = vec![0.0; rows.rows()];
    team.variables().iter().for_each(|variable| dual[variable.row as usize] = variable.beta);
    Solution { weights, dual, outcome }
}

/// The rows of one thread, away from the cache lines of the others.
#[repr(align(128))]
struct Block {
    variables: Vec<Variable>,
    /// Those that can move at all.
    movable: Vec<u32>,
    set: ActiveSet,
    /// Where the next round begins, and how many before it stay active.
    next: usize,
    kept: usize,
    /// Variables that the last round moved, with their β before.
    moved: Vec<(u32, f64)>,
    violation: Violation,
    generator: Generator,
}

/// What one block did in a round.
#[derive(Default)]
#[repr(align(128))]
struct Part {
    /// Its weights, then how it would change them.
    change: Vec<f64>,
    /// Slope and curvature of the dual along its steps, but for those of ½‖w‖².
    slope: f64,
    curvature: f64,
}

impl Block {
    fn new(variables: Vec<Variable>, shrinking: bool, seed: u64) -> Self {
        let movable = movable(&variables);
        Self {
            variables,
            set: ActiveSet::new(movable.clone(), shrinking),
            movable,
            next: 0,
            kept: 0,
            moved: Vec::new(),
            violation: Violation::default(),
            generator: Generator::new(seed),
        }
    }

    fn begin_pass(&mut self) {
        self.generator.shuffle(&mut self.set.active);
        (self.next, self.kept, self.violation) = (0, 0, Violation::default());
    }

    /// Descends over the next rows from the common weights.
    fn round<R>(&mut self, team: &Team<'_, R>, order: &Order, weights: &[f64], part: &mut Part)
    where
        R: LinearRows,
    {
        part.change.clear();
        part.change.extend_from_slice(weights);
        let ActiveSet { active, skipped } = &mut self.set;
        let end = (self.next + order.per_round).min(active.len());
        let own = &mut active[self.next..end];
        self.moved.clear();
        let (epsilon, moved) = (team.loss.tube(), &mut self.moved);
        let (mut slope, mut curvature) = (0.0, 0.0);
        let on_step = |i: u32, before: &Variable, beta: f64| {
            let step = beta - before.beta;
            let tube = epsilon * (beta.abs() - before.beta.abs());
            slope += step * (before.ridge * before.beta - before.target) + tube;
            curvature += before.ridge * step * step;
            moved.push((i, before.beta));
        };
        let variables = &mut self.variables[..];
        let (band, loss, change) = (order.band, team.loss, &mut part.change[..]);
        let (kept, violation) =
            sweep(team.rows, variables, own, skipped, change, band, loss, on_step);
        (part.slope, part.curvature) = (slope, curvature);
        self.violation = self.violation.join(violation);
        active.copy_within(self.next..self.next + kept, self.kept);
        self.kept += kept;
        self.next = end;
        add_scaled(&mut part.change, -1.0, weights);
    }

    /// Makes no steps in a round.
    fn pause(&mut self, part: &mut Part, width: usize) {
        self.moved.clear();
        part.change.clear();
        part.change.resize(width, 0.0);
        (part.slope, part.curvature) = (0.0, 0.0);
    }

    /// Leaves the variables of the last round only a share of their steps.
    fn shorten(&mut self, share: f64) {
        for &(i, before) in &self.moved {
            let beta = &mut self.variables[i as usize].beta;
            *beta = before + share * (*beta - before);
        }
    }
}

/// What the first thread asks of all.
#[derive(Clone, Copy)]
struct Order {
    /// Whether to make another pass.
    stay: bool,
    band: Band,
    /// Rows of a block in a round.
    per_round: usize,
    /// Whether only one block at a time makes steps.
    one_at_a_time: bool,
    /// Rows of the pass.
    looked_at: usize,
    /// Rows of the longest block.
    longest: usize,
}

/// What the threads share.
struct Team<'a, R> {
    rows: &'a R,
    loss: RowLoss,
    blocks: Vec<Mutex<Block>>,
    /// By block, of even and of odd rounds: one is read while the other is written.
    parts: [Vec<RwLock<Part>>; 2],
    order: RwLock<Order>,
    /// Nanoseconds that threads have waited for each other in passes since the last reading.
    waited: AtomicU64,
}

impl<'a, R: LinearRows> Team<'a, R> {
    /// The blocks at the start of a descent, and how many of their variables can move.
    fn new(
        rows: &'a R,
        problem: &Problem<'_>,
        options: &Options,
        start: Option<&[f64]>,
        context: &Context,
    ) -> (Self, usize) {
        let variable = variable(rows, problem, start);
        let block = |number: usize| {
            let own = (number..rows.rows()).step_by(BLOCKS).map(&variable).collect();
            let seed = context.seed() ^ (number as u64 + 1) << 32;
            Mutex::new(Block::new(own, options.shrinking, seed))
        };
        let blocks: Vec<Mutex<Block>> = (0..BLOCKS).map(block).collect();
        let lengths: Vec<usize> = blocks.iter().map(|block| lock(block).movable.len()).collect();
        let per_row = (rows.nonzeros() / rows.rows().max(1)).max(1);
        let round = (VALUES_PER_WEIGHT * rows.width()).min(rows.nonzeros() / (ROUNDS * BLOCKS));
        let movable = lengths.iter().sum();
        let team = Self {
            rows,
            loss: problem.loss,
            blocks,
            parts: [0, 1].map(|_| (0..BLOCKS).map(|_| RwLock::default()).collect()),
            order: RwLock::new(Order {
                stay: true,
                band: Band::OPEN,
                per_round: round.max(ROUND_VALUES).div_ceil(per_row).max(SHORTEST_ROUND),
                one_at_a_time: false,
                looked_at: movable,
                longest: lengths.iter().copied().max().unwrap_or(0),
            }),
            waited: AtomicU64::new(0),
        };
        (team, movable)
    }

    /// All variables, block after block.
    fn variables(&self) -> Vec<Variable> {
        self.blocks.iter().flat_map(|block| lock(block).variables.clone()).collect()
    }

    /// Passes on as many threads as the tuner asks for, until the lead calls for a break.
    fn run(&self, weights: Vec<f64>, lead: &mut LeaderState<'_>) -> Vec<f64> {
        let members = lead.tuner.begin();
        self.order.write().unwrap_or_else(PoisonError::into_inner).stay = true;
        let barrier = &SpinBarrier::new(members);
        thread::scope(|scope| {
            for member in 1..members {
                let weights = weights.clone();
                scope.spawn(move || self.work(member, members, barrier, weights, None));
            }
            self.work(0, members, barrier, weights, Some(lead))
        })
    }

    /// What one thread does; its weights, which are those of all.
    fn work(
        &self,
        member: usize,
        members: usize,
        barrier: &SpinBarrier,
        mut weights: Vec<f64>,
        mut lead: Option<&mut LeaderState<'_>>,
    ) -> Vec<f64> {
        let mut guard = barrier.guard();
        let mut change = vec![0.0; weights.len()];
        loop {
            let order = *self.order.read().unwrap_or_else(PoisonError::into_inner);
            if !order.stay {
                return weights;
            }
            let own = (member..BLOCKS).step_by(members);
            let mut blocks: Vec<(usize, MutexGuard<'_, Block>)> =
                own.map(|number| (number, lock(&self.blocks[number]))).collect();
            guard.waited = Duration::ZERO;
            let share = self.pass(&mut blocks, &order, &mut guard, &mut weights, &mut change);
            drop(blocks);
            self.waited.fetch_add(guard.waited.as_nanos() as u64, Ordering::Relaxed);
            guard.wait();
            if let Some(lead) = &mut lead {
                lead.decide(self, share);
            }
            guard.wait();
        }
    }

    /// A pass in rounds; the mean share of the separate steps that the joint ones made.
    fn pass(
        &self,
        blocks: &mut [(usize, MutexGuard<'_, Block>)],
        order: &Order,
        guard: &mut BarrierGuard<'_>,
        weights: &mut [f64],
        change: &mut [f64],
    ) -> f64 {
        blocks.iter_mut().for_each(|(_, block)| block.begin_pass());
        let turns = if order.one_at_a_time { BLOCKS } else { 1 };
        let rounds = turns * order.longest.div_ceil(order.per_round);
        let mut shares = 0.0;
        for round in 0..rounds {
            let parts = &self.parts[round % 2];
            for (number, block) in &mut *blocks {
                let mut part = parts[*number].write().unwrap_or_else(PoisonError::into_inner);
                if order.one_at_a_time && round % BLOCKS != *number {
                    block.pause(&mut part, weights.len());
                } else {
                    block.round(self, order, weights, &mut part);
                }
            }
            guard.wait();
            let (mut slope, mut curvature) = (0.0, 0.0);
            for (number, part) in parts.iter().enumerate() {
                let part = part.read().unwrap_or_else(PoisonError::into_inner);
                (slope, curvature) = (slope + part.slope, curvature + part.curvature);
                match number {
                    0 => change.copy_from_slice(&part.change),
                    _ => add_scaled(change, 1.0, &part.change),
                }
            }
            slope += inner(weights, change);
            curvature += squared_norm(change);
            let best = if curvature > 0.0 { (-slope / curvature).clamp(0.0, 1.0) } else { 1.0 };
            // Nearly whole steps are made whole, so that variables end at their bounds exactly.
            let share = if best < NEARLY_WHOLE && !order.one_at_a_time { best } else { 1.0 };
            if share < 1.0 {
                blocks.iter_mut().for_each(|(_, block)| block.shorten(share));
            }
            add_scaled(weights, share, change);
            shares += best;
        }
        for (_, block) in blocks {
            let Block { set, kept, .. } = &mut **block;
            set.end_pass(*kept);
        }
        if rounds > 0 { shares / rounds as f64 } else { 1.0 }
    }
}

/// State of the descent, which the first thread has.
struct LeaderState<'a> {
    goal: Goal,
    passes: Passes<'a>,
    shrinking: bool,
    /// Variables that can move.
    movable: usize,
    /// Whether the last pass was over all rows and found the goal met.
    done: bool,
    /// Why it has to stop, if it has.
    stop: Option<Status>,
    tuner: ThreadTuner,
}

impl LeaderState<'_> {
    /// Gives the next order after a pass.
    fn decide<R>(&mut self, team: &Team<'_, R>, share: f64) {
        let mut blocks: Vec<MutexGuard<'_, Block>> = team.blocks.iter().map(lock).collect();
        let mut order = team.order.write().unwrap_or_else(PoisonError::into_inner);
        let all = blocks.iter().map(|block| block.violation);
        let violation = all.fold(Violation::default(), Violation::join);
        self.stop = self.passes.finish(order.looked_at, violation.range(), || f64::NAN);
        self.goal = self.goal.after_first(&violation);
        if share < SHORT {
            order.one_at_a_time = order.per_round <= SHORTEST_ROUND;
            order.per_round = (order.per_round / 2).max(SHORTEST_ROUND);
        }
        let met = self.goal.is_met(&violation);
        self.done = met && order.looked_at == self.movable;
        order.band = Band::after(&violation, self.shrinking);
        if met {
            for block in &mut blocks {
                let Block { set, movable, .. } = &mut **block;
                set.reactivate(movable);
            }
            order.band = Band::OPEN;
        }
        let waited = Duration::from_nanos(team.waited.swap(0, Ordering::Relaxed));
        let pause = self.tuner.after(order.looked_at, waited);
        order.stay = !pause && !self.done && self.stop.is_none();
        for number in 1..blocks.len() {
            let (before, after) = blocks.split_at_mut(number);
            exchange(&mut before[number - 1], &mut after[0]);
        }
        let lengths = || blocks.iter().map(|block| block.set.active.len());
        order.looked_at = lengths().sum();
        order.longest = lengths().max().unwrap_or(0);
    }
}

/// Has some active rows of two blocks change places.
fn exchange(first: &mut Block, second: &mut Block) {
    let some = first.set.active.len().min(second.set.active.len()) / EXCHANGED;
    for (&a, &b) in first.set.active[..some].iter().zip(&second.set.active[..some]) {
        let (a, b) = (&mut first.variables[a as usize], &mut second.variables[b as usize]);
        std::mem::swap(a, b);
    }
}

/// A block that no other thread has.
fn lock(block: &Mutex<Block>) -> MutexGuard<'_, Block> {
    block.lock().unwrap_or_else(PoisonError::into_inner)
}
