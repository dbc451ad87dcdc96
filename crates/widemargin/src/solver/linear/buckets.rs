//! Dual coordinate descent in buckets of rows, one thread each.
//!
//! A pass is cut into rounds. In a round every bucket descends over some of its own rows from the
//! common w, and the steps are joined: β ← β + θδ, w ← w + θ ΣΔ with a θ ≤ 1 near the one that
//! lowers the dual most; so the optimum is that of one bucket, and a last look at all rows, without
//! steps, proves it. After every pass some rows change their bucket, without which rows that
//! contradict each other across buckets would do so for ever; where rounds hinder each other all the
//! same they become shorter, and at last the buckets take turns. All of that depends on the data
//! alone: the answer has the same bits for any number of threads. After Jaggi et al. (CoCoA, 2014)
//! and Ioannou, Mendler-Dünner and Parnell (SySCD, 2019).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use super::dual::{self, goal, movable, separable_cost, variable};
use super::meeting::{Attendance, Meeting};
use super::pace::Pace;
use super::problem::{
    Loss, Options, Passes, Problem, Solution, add_scaled, inner, primal, squared_norm,
};
use super::products::Products;
use super::roster::Roster;
use super::slots::{Recorder, Slots};
use super::sweep::sweep;
use super::table::Table;
use super::variable::{Band, Goal, Violation};
use crate::context::Context;
use crate::numeric::random::Generator;
use crate::solver::Status;
use crate::solver::linear::rows::LinearRows;

/// Buckets, and so the most threads that help. Four hinder each other so much that they take
/// twice the steps.
const BUCKETS: usize = 2;

/// One in so many rows changes the bucket after a pass; without any, MNIST takes five times the steps.
const EXCHANGED: usize = 32;

/// Stored values that a bucket should look at in a round: some ten microseconds, many times what it
/// takes two processors that are far from each other to meet.
const ROUND_VALUES: usize = 1 << 13;

/// Stored values of a round for every weight, all of which are touched when steps are joined.
const VALUES_PER_WEIGHT: usize = 16;

/// Rounds of a pass over all rows, if that leaves them [`ROUND_VALUES`].
const ROUNDS: usize = 16;

/// The least share of the separate steps that is as good as all of them; the dual falls up to twice
/// the best share.
const NEARLY_WHOLE: f64 = 0.75;

/// Joint steps shorter than this share of the separate ones ask for shorter rounds.
const SHORT: f64 = 0.6;

/// Rows of the shortest round.
const SHORTEST_ROUND: usize = 32;

/// How often a descent that believed to be done is sent back by the last look.
const MOST_RETURNS: u32 = 20;

/// Solves what [`solve`](super::dual::solve) solves, on up to two threads.
pub fn solve<R: LinearRows>(
    rows: &R,
    problem: &Problem<'_>,
    options: &Options,
    start: Option<&[f64]>,
    context: &Context,
) -> Solution {
    let slots = Slots::new(rows.rows(), variable(rows, problem, start), context);
    let mut weights = match start {
        Some(_) => dual::weights(rows, slots.iter()),
        None => vec![0.0; rows.width()],
    };
    let movable = movable(slots.iter());
    let bucket = |number: usize| {
        let seed = context.seed() ^ (number as u64 + 1) << 32;
        Mutex::new(Bucket::new(dealt(&movable, number).collect(), options.shrinking, seed))
    };
    let per_row = (rows.nonzeros() / rows.rows().max(1)).max(1);
    let round = (VALUES_PER_WEIGHT * rows.width()).min(rows.nonzeros() / (ROUNDS * BUCKETS));
    let team = Team {
        rows,
        loss: problem.loss,
        slots,
        buckets: [0, 1].map(bucket),
        parts: Default::default(),
        order: RwLock::new(Order {
            stay: true,
            band: Band::OPEN,
            per_round: round.max(ROUND_VALUES).div_ceil(per_row).max(SHORTEST_ROUND),
            in_turn: false,
            looked_at: movable.len(),
            longest: movable.len().div_ceil(BUCKETS),
        }),
        waited: AtomicU64::new(0),
    };
    let mut lead = Lead {
        goal: goal(problem, options, start.is_some()),
        passes: Passes::new(options, context),
        shrinking: options.shrinking,
        movable: &movable,
        done: false,
        stop: None,
        pace: Pace::new(context.threads().min(BUCKETS)),
    };
    let products = Products::new(rows, options.alone, context);
    let mut values = vec![0.0; rows.rows()];
    let (epsilon, mut returns) = (problem.loss.tube(), 0);
    let (status, violation) = loop {
        weights = team.run(weights, &mut lead);
        if !lead.done && lead.stop.is_none() {
            continue;
        }
        products.write_values(&weights, &mut values);
        let violation = Violation::of(team.slots.iter(), &values, epsilon);
        returns += 1;
        if lead.done && lead.goal.is_met(&violation) {
            break (Status::Solved, violation);
        } else if let Some(status) = lead.stop {
            break (status, violation);
        } else if returns > MOST_RETURNS {
            break (Status::AlmostSolved, violation);
        }
    };
    let dual = -0.5 * squared_norm(&weights) - separable_cost(team.slots.iter(), epsilon);
    let primal = primal(problem, &weights, &values);
    let outcome = lead.passes.outcome(status, primal, dual, violation.range());
    let dual = team.slots.iter().map(|variable| variable.beta).collect();
    Solution { weights, dual, outcome }
}

/// The rows that bucket `number` begins with.
fn dealt(rows: &[u32], number: usize) -> impl Iterator<Item = u32> {
    rows.iter().skip(number).step_by(BUCKETS).copied()
}

/// The rows of one thread, away from the cache lines of the other.
#[repr(align(128))]
struct Bucket {
    roster: Roster,
    /// Where the next round begins, and how many before it stay active.
    next: usize,
    kept: usize,
    /// Rows that the last round moved, with their β before.
    moved: Vec<(u32, f64)>,
    violation: Violation,
    generator: Generator,
}

/// What one bucket did in a round.
#[derive(Default)]
#[repr(align(128))]
struct Part {
    /// Its weights, then how it would change them.
    change: Vec<f64>,
    /// Slope and curvature of the dual along its steps, but for those of ½‖w‖².
    slope: f64,
    curvature: f64,
}

impl Bucket {
    fn new(rows: Vec<u32>, shrinking: bool, seed: u64) -> Self {
        Self {
            roster: Roster::new(rows, shrinking),
            next: 0,
            kept: 0,
            moved: Vec::new(),
            violation: Violation::NONE,
            generator: Generator::new(seed),
        }
    }

    fn begin_pass(&mut self) {
        self.generator.shuffle(&mut self.roster.active);
        (self.next, self.kept, self.violation) = (0, 0, Violation::NONE);
    }

    /// Descends over the next rows from the common weights.
    fn round<R>(&mut self, team: &Team<'_, R>, order: &Order, weights: &[f64], part: &mut Part)
    where
        R: LinearRows,
    {
        let Part { change, slope, curvature } = part;
        change.clear();
        change.extend_from_slice(weights);
        let Roster { active, rests } = &mut self.roster;
        let end = (self.next + order.per_round).min(active.len());
        let rows = &mut active[self.next..end];
        self.moved.clear();
        let mut recorder = Recorder::new(&team.slots, &mut self.moved, team.loss.tube());
        let (kept, violation) =
            sweep(team.rows, &mut recorder, rows, rests, change, order.band, team.loss);
        (*slope, *curvature) = (recorder.slope, recorder.curvature);
        self.violation = self.violation.join(violation);
        active.copy_within(self.next..self.next + kept, self.kept);
        self.kept += kept;
        self.next = end;
        add_scaled(change, -1.0, weights);
    }

    /// Makes no steps in a round.
    fn pause(&mut self, part: &mut Part, width: usize) {
        self.moved.clear();
        part.change.clear();
        part.change.resize(width, 0.0);
        (part.slope, part.curvature) = (0.0, 0.0);
    }

    /// Leaves the rows of the last round only a share of their steps.
    fn take_back(&self, slots: &Slots, share: f64) {
        for &(i, before) in &self.moved {
            let beta = slots.get(i as usize).beta;
            slots.set(i as usize, before + share * (beta - before));
        }
    }
}

/// What the first thread asks of all.
#[derive(Clone, Copy)]
struct Order {
    /// Whether to make another pass.
    stay: bool,
    band: Band,
    /// Rows of a bucket in a round.
    per_round: usize,
    /// Whether only one bucket at a time makes steps.
    in_turn: bool,
    /// Rows of the pass.
    looked_at: usize,
    /// Rows of the longer bucket.
    longest: usize,
}

/// What the threads share.
struct Team<'a, R> {
    rows: &'a R,
    loss: Loss,
    slots: Slots,
    buckets: [Mutex<Bucket>; BUCKETS],
    /// By bucket, of even and of odd rounds: one is read while the other is written.
    parts: [[RwLock<Part>; BUCKETS]; 2],
    order: RwLock<Order>,
    /// Nanoseconds that threads have waited for each other in passes since the lead asked last.
    waited: AtomicU64,
}

impl<R: LinearRows> Team<'_, R> {
    /// Passes on as many threads as the pace asks for, until the lead calls for a break.
    fn run(&self, weights: Vec<f64>, lead: &mut Lead<'_>) -> Vec<f64> {
        let members = lead.pace.begin();
        self.order.write().unwrap_or_else(PoisonError::into_inner).stay = true;
        let meeting = &Meeting::new(members);
        thread::scope(|scope| {
            for member in 1..members {
                let weights = weights.clone();
                scope.spawn(move || self.work(member, members, meeting, weights, None));
            }
            self.work(0, members, meeting, weights, Some(lead))
        })
    }

    /// What one thread does; its weights, which are those of all.
    fn work(
        &self,
        member: usize,
        members: usize,
        meeting: &Meeting,
        mut weights: Vec<f64>,
        mut lead: Option<&mut Lead<'_>>,
    ) -> Vec<f64> {
        let mut attendance = meeting.attend();
        let mut change = vec![0.0; weights.len()];
        loop {
            let order = *self.order.read().unwrap_or_else(PoisonError::into_inner);
            if !order.stay {
                return weights;
            }
            let own = (member..BUCKETS).step_by(members);
            let mut buckets: Vec<(usize, MutexGuard<'_, Bucket>)> =
                own.map(|number| (number, open(&self.buckets[number]))).collect();
            attendance.waited = Duration::ZERO;
            let share = self.pass(&mut buckets, &order, &mut attendance, &mut weights, &mut change);
            drop(buckets);
            self.waited.fetch_add(attendance.waited.as_nanos() as u64, Ordering::Relaxed);
            attendance.wait();
            if let Some(lead) = &mut lead {
                lead.decide(self, share);
            }
            attendance.wait();
        }
    }

    /// A pass in rounds; the mean share of the separate steps that the joint ones made.
    fn pass(
        &self,
        buckets: &mut [(usize, MutexGuard<'_, Bucket>)],
        order: &Order,
        attendance: &mut Attendance<'_>,
        weights: &mut [f64],
        change: &mut [f64],
    ) -> f64 {
        buckets.iter_mut().for_each(|(_, bucket)| bucket.begin_pass());
        let turns = if order.in_turn { BUCKETS } else { 1 };
        let rounds = turns * order.longest.div_ceil(order.per_round);
        let mut shares = 0.0;
        for round in 0..rounds {
            let parts = &self.parts[round % 2];
            for (number, bucket) in &mut *buckets {
                let mut part = parts[*number].write().unwrap_or_else(PoisonError::into_inner);
                if order.in_turn && round % BUCKETS != *number {
                    bucket.pause(&mut part, weights.len());
                } else {
                    bucket.round(self, order, weights, &mut part);
                }
            }
            attendance.wait();
            let [first, second] =
                [0, 1].map(|b: usize| parts[b].read().unwrap_or_else(PoisonError::into_inner));
            for (c, (a, b)) in change.iter_mut().zip(first.change.iter().zip(&second.change)) {
                *c = a + b;
            }
            let slope = inner(weights, change) + first.slope + second.slope;
            let curvature = squared_norm(change) + first.curvature + second.curvature;
            let best = if curvature > 0.0 { (-slope / curvature).clamp(0.0, 1.0) } else { 1.0 };
            // Nearly whole steps are made whole, so that variables end at their bounds exactly.
            let share = if best < NEARLY_WHOLE && !order.in_turn { best } else { 1.0 };
            if share < 1.0 {
                buckets.iter().for_each(|(_, bucket)| bucket.take_back(&self.slots, share));
            }
            add_scaled(weights, share, change);
            shares += best;
        }
        for (_, bucket) in buckets {
            let Bucket { roster, kept, .. } = &mut **bucket;
            roster.end_pass(*kept);
        }
        if rounds > 0 { shares / rounds as f64 } else { 1.0 }
    }
}

/// Where the descent stands; the first thread has it.
struct Lead<'a> {
    goal: Goal,
    passes: Passes<'a>,
    shrinking: bool,
    movable: &'a [u32],
    /// Whether the last pass was over all rows and found the goal met.
    done: bool,
    /// Why it has to stop, if it has.
    stop: Option<Status>,
    pace: Pace,
}

impl Lead<'_> {
    /// Gives the next order after a pass.
    fn decide<R>(&mut self, team: &Team<'_, R>, share: f64) {
        let [mut first, mut second] = [0, 1].map(|b: usize| open(&team.buckets[b]));
        let mut order = team.order.write().unwrap_or_else(PoisonError::into_inner);
        let violation = first.violation.join(second.violation);
        self.stop = self.passes.finish(order.looked_at, violation.range(), || f64::NAN);
        self.goal = self.goal.after_first(&violation);
        if share < SHORT {
            order.in_turn = order.per_round <= SHORTEST_ROUND;
            order.per_round = (order.per_round / 2).max(SHORTEST_ROUND);
        }
        let met = self.goal.is_met(&violation);
        self.done = met && order.looked_at == self.movable.len();
        if met {
            first.roster.call(dealt(self.movable, 0));
            second.roster.call(dealt(self.movable, 1));
            order.band = Band::OPEN;
        } else {
            order.band = Band::after(&violation, self.shrinking);
        }
        let waited = Duration::from_nanos(team.waited.swap(0, Ordering::Relaxed));
        let rest = self.pace.after(order.looked_at, waited);
        order.stay = !rest && !self.done && self.stop.is_none();
        let some = first.roster.active.len().min(second.roster.active.len()) / EXCHANGED;
        first.roster.active[..some].swap_with_slice(&mut second.roster.active[..some]);
        let lengths = [first.roster.active.len(), second.roster.active.len()];
        order.looked_at = lengths.iter().sum();
        order.longest = lengths[0].max(lengths[1]);
    }
}

/// A bucket that no other thread has.
fn open(bucket: &Mutex<Bucket>) -> MutexGuard<'_, Bucket> {
    bucket.lock().unwrap_or_else(PoisonError::into_inner)
}
