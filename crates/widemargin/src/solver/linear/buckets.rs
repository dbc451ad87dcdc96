//! Dual coordinate descent in buckets of rows, one thread each.
//!
//! A pass is cut into rounds. In a round every bucket descends over some of its own rows from the
//! common w, and the steps are joined: β ← β + θδ, w ← w + θ ΣΔ with the θ ≤ 1 that lowers the
//! dual most. A convex dual falls at least as far as by the average of the steps, so that the
//! optimum is that of one bucket; when θ stays small, because the rows of the buckets are too much
//! alike, rounds become shorter and at last the buckets take turns. All of that depends on the data
//! alone, so that the answer has the same bits for any number of threads. After Jaggi et al. (CoCoA, 2014) and Ioannou,
//! Mendler-Dünner and Parnell (SySCD, 2019).

use rayon::prelude::*;

use super::dual::{Descent, along, goal};
use super::problem::{Loss, Options, Passes, Problem, Solution, add_scaled, primal};
use super::products::Products;
use super::sweep::sweep;
use super::variable::{Band, Variable, Violation};
use crate::context::Context;
use crate::kernel::LinearRows;
use crate::random::Generator;
use crate::solver::Status;

/// Buckets, and so the most threads that help.
const BUCKETS: usize = 4;

/// Stored values that a bucket should look at in a round: some tens of microseconds.
const ROUND_VALUES: usize = 1 << 15;

/// Joint steps shorter than this share of the separate ones ask for shorter rounds.
const SHORT: f64 = 0.7;

/// Rows of the shortest round.
const SHORTEST_ROUND: usize = 64;

/// How often a descent that believed to be done is sent back by the last pass.
const MOST_RETURNS: u32 = 20;

/// The rows of one thread.
struct Bucket<'a> {
    first: usize,
    variables: &'a mut [Variable],
    all: Vec<u32>,
    active: Vec<u32>,
    /// Where the next round begins in `active`, and how many before it stay active.
    next: usize,
    kept: usize,
    weights: Vec<f64>,
    before: Vec<(u32, f64)>,
    generator: Generator,
    violation: Violation,
}

impl Bucket<'_> {
    /// Descends over rows `next..next + count` from the common weights; `weights` becomes the change.
    fn round<R: LinearRows>(
        &mut self,
        rows: &R,
        count: usize,
        common: &[f64],
        band: Band,
        loss: Loss,
    ) {
        self.weights.copy_from_slice(common);
        let end = (self.next + count).min(self.active.len());
        let part = &mut self.active[self.next..end];
        self.before.clear();
        self.before.extend(part.iter().map(|&i| (i, self.variables[i as usize].beta)));
        let (first, variables) = (self.first, &mut *self.variables);
        let (kept, violation) = sweep(rows, first, variables, part, &mut self.weights, band, loss);
        self.violation = self.violation.join(violation);
        self.active.copy_within(self.next..self.next + kept, self.kept);
        self.kept += kept;
        self.next = end;
        add_scaled(&mut self.weights, -1.0, common);
    }

    /// Descends over all its rows with the common weights.
    fn turn<R: LinearRows>(&mut self, rows: &R, weights: &mut [f64], band: Band, loss: Loss) {
        let (kept, violation) =
            sweep(rows, self.first, self.variables, &mut self.active, weights, band, loss);
        (self.kept, self.violation) = (kept, violation);
    }

    /// Variables before the round with their steps.
    fn steps(&self) -> impl Iterator<Item = (Variable, f64)> {
        self.before.iter().map(|&(i, beta)| {
            let now = self.variables[i as usize];
            (Variable { beta, ..now }, now.beta - beta)
        })
    }

    fn take_back(&mut self, share: f64) {
        for &(i, beta) in &self.before {
            let variable = &mut self.variables[i as usize];
            variable.beta = beta + share * (variable.beta - beta);
        }
    }
}

/// Solves what [`solve`](super::dual::solve) solves, on the threads of the context.
pub fn solve<R: LinearRows>(
    rows: &R,
    problem: &Problem<'_>,
    options: &Options,
    start: Option<&[f64]>,
    context: &Context,
) -> Solution {
    let mut descent = Descent::new(rows, problem, start);
    let mut weights = descent.weights(rows);
    let epsilon = descent.epsilon;
    let mut goal = goal(problem, options, start.is_some());
    let mut passes = Passes::new(options, context);
    let mut variables = std::mem::take(&mut descent.variables);
    let size = variables.len().div_ceil(BUCKETS).max(1);
    let mut buckets: Vec<Bucket<'_>> = variables
        .chunks_mut(size)
        .enumerate()
        .map(|(b, variables)| {
            let movable = |i: &u32| variables[*i as usize].lower < variables[*i as usize].upper;
            let all: Vec<u32> = (0..variables.len() as u32).filter(movable).collect();
            Bucket {
                first: b * size,
                active: all.clone(),
                all,
                variables,
                next: 0,
                kept: 0,
                weights: vec![0.0; weights.len()],
                before: Vec::new(),
                generator: Generator::new(context.seed() ^ (b as u64 + 1) << 32),
                violation: Violation::NONE,
            }
        })
        .collect();
    let everyone: usize = buckets.iter().map(|bucket| bucket.all.len()).sum();
    let per_row = (rows.nonzeros() / rows.rows().max(1)).max(1);
    let mut per_round = ROUND_VALUES.max(2 * rows.width()).div_ceil(per_row);
    let mut in_turn = false;
    let mut band = Band::OPEN;
    let mut returns = 0;
    let products = Products::new(rows, context);
    let mut values = vec![0.0; rows.rows()];
    let status = loop {
        for bucket in &mut buckets {
            bucket.generator.shuffle(&mut bucket.active);
            (bucket.next, bucket.kept, bucket.violation) = (0, 0, Violation::NONE);
        }
        let looked_at: usize = buckets.iter().map(|bucket| bucket.active.len()).sum();
        if in_turn {
            for bucket in &mut buckets {
                bucket.turn(rows, &mut weights, band, problem.loss);
            }
        } else {
            let share =
                rounds(rows, &mut buckets, &mut weights, per_round, band, problem.loss, context);
            if share < SHORT {
                in_turn = per_round <= SHORTEST_ROUND;
                per_round = (per_round / 2).max(SHORTEST_ROUND);
            }
        }
        for bucket in &mut buckets {
            bucket.active.truncate(bucket.kept);
        }
        let violation =
            buckets.iter().map(|bucket| bucket.violation).fold(Violation::NONE, Violation::join);
        let stop = passes.finish(looked_at, violation.range(), || f64::NAN);
        goal = goal.after_first(&violation);
        if goal.is_met(&violation) {
            let whole = looked_at == everyone;
            for bucket in &mut buckets {
                bucket.active.clone_from(&bucket.all);
            }
            band = Band::OPEN;
            if whole {
                products.write_values(&weights, &mut values);
                let fresh = look(&buckets, &values, epsilon);
                returns += 1;
                if goal.is_met(&fresh) {
                    break Status::Solved;
                } else if returns > MOST_RETURNS {
                    break Status::AlmostSolved;
                }
            }
        } else {
            band = Band::after(&violation, options.shrinking);
        }
        if let Some(status) = stop {
            break status;
        }
    };
    products.write_values(&weights, &mut values);
    let violation = look(&buckets, &values, epsilon);
    drop(buckets);
    descent.variables = variables;
    let dual = descent.objective(&weights);
    let primal = primal(problem, &weights, &values);
    let outcome = passes.outcome(status, primal, dual, violation.range());
    Solution { weights, dual: descent.dual(), outcome }
}

/// A pass in rounds; the mean share of the separate steps that the joint ones made.
fn rounds<R: LinearRows>(
    rows: &R,
    buckets: &mut [Bucket<'_>],
    weights: &mut [f64],
    per_round: usize,
    band: Band,
    loss: Loss,
    context: &Context,
) -> f64 {
    let (mut shares, mut count) = (0.0, 0.0);
    while buckets.iter().any(|bucket| bucket.next < bucket.active.len()) {
        each(buckets, context, |bucket| bucket.round(rows, per_round, weights, band, loss));
        let mut change = std::mem::take(&mut buckets[0].weights);
        for bucket in &buckets[1..] {
            add_scaled(&mut change, 1.0, &bucket.weights);
        }
        let steps = buckets.iter().flat_map(Bucket::steps);
        let (slope, curvature) = along(weights, &change, steps, loss.tube());
        let share = if curvature > 0.0 { (-slope / curvature).clamp(0.0, 1.0) } else { 1.0 };
        if share < 1.0 {
            each(buckets, context, |bucket| bucket.take_back(share));
        }
        add_scaled(weights, share, &change);
        buckets[0].weights = change;
        shares += share;
        count += 1.0;
    }
    if count > 0.0 { shares / count } else { 1.0 }
}

/// The violation of all buckets where all rows have these values ⟨w, x⟩.
fn look(buckets: &[Bucket<'_>], values: &[f64], epsilon: f64) -> Violation {
    let own =
        |bucket: &Bucket<'_>| Violation::of(bucket.variables, &values[bucket.first..], epsilon);
    buckets.iter().map(own).fold(Violation::NONE, Violation::join)
}

fn each<'a>(
    buckets: &mut [Bucket<'a>],
    context: &Context,
    work: impl Fn(&mut Bucket<'a>) + Sync + Send,
) {
    if context.is_parallel() {
        buckets.par_iter_mut().for_each(work);
    } else {
        buckets.iter_mut().for_each(work);
    }
}
