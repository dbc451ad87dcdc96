//! The batch solver: blocks of the worst examples, solved example by example, then one update of
//! all scores.

use std::marker::PhantomData;
use std::time::{Duration, Instant};

use super::offset::Offset;
use super::problem::Options;
use super::scores::{refresh, stream, update};
use super::solve::{Ascent, scan};
use crate::context::{Context, Event};
use crate::kernel::{MatrixRows, Row, RowCaching};
use crate::numeric::simd::{Real, run_plain};
use crate::solver::Status;
use crate::solver::s2do::shared::block::Block;
use crate::solver::s2do::shared::block_rows::{BlockRows, Cut, Held};
use crate::solver::s2do::shared::table::Table;

/// A block is solved until its KKT violation is this share of that of all examples.
const BLOCK_SHARE: f64 = 0.2;

/// Tolerance below which scores inside a block are kept in double precision.
const DOUBLE_BELOW: f64 = 1e-4;

/// Examples in the first blocks.
const SMALL_BLOCK: usize = 384;

/// Most examples that are one block together.
const LARGEST_SINGLE_BLOCK: usize = 4096;

/// Share of the tolerance to which such a block is solved.
const WHOLE_TOL: f64 = 0.9;

/// Blocks after which their size doubles.
const GROW_AFTER: usize = 10;

/// Blocks without a smaller violation than ever before after which rounding is taken to be the cause.
const STALLED_BLOCKS: usize = 5000;

/// Least time between two reports.
const REPORT_EVERY: Duration = Duration::from_millis(50);

/// Parts, each twice as large as the one before, until they have their full size.
const FIRST_PARTS: usize = 4;

/// Steps of a block per example of it.
const STEPS_PER_EXAMPLE: usize = 20;

/// Scores that the steps of a block may touch before the next check of the limits.
const STEP_COST: usize = 1 << 30;

/// The ascent by kernel rows.
pub(super) struct Blocks<'a, R> {
    rows: &'a R,
    run: Run<'a>,
}

impl<'a, R: MatrixRows> Blocks<'a, R> {
    pub(super) fn new(rows: &'a R, options: &'a Options, context: &'a Context) -> Self {
        let run = Run {
            options,
            context,
            constant: 0.0,
            fine: options.tol < DOUBLE_BELOW,
            reserve: Duration::ZERO,
            seconds_per_row: 0.0,
            reported: None,
            steps: 0,
            blocks: 0,
        };
        Self { rows, run }
    }
}

impl<R: MatrixRows> Ascent for Blocks<'_, R> {
    fn ascend(&mut self, table: &mut Table, offset: &Offset, tol: f64) -> Option<Status> {
        self.run.constant = offset.strength;
        self.run.ascend(self.rows, table, tol, false)
    }

    fn refresh(&mut self, table: &mut Table, offset: &Offset) {
        refresh(self.rows, table, offset);
    }

    fn effort(&self) -> (u64, u64, u64) {
        (self.run.steps, self.run.blocks, self.rows.requested())
    }
}

/// What stays the same while examples come and go.
struct Run<'a> {
    options: &'a Options,
    context: &'a Context,
    /// Added to every kernel value.
    constant: f64,
    /// Whether scores inside blocks are double precision.
    fine: bool,
    /// Time that has to be left for bringing the scores of all examples up to date.
    reserve: Duration,
    /// What that takes for every example that moved.
    seconds_per_row: f64,
    /// When the last report was made.
    reported: Option<Instant>,
    steps: u64,
    blocks: u64,
}

impl Run<'_> {
    fn limit(&self) -> Option<Status> {
        let spent = self.steps >= self.options.max_iterations;
        let late = self.context.time_left().is_some_and(|left| left < self.reserve);
        self.context
            .stop_request()
            .or(spent.then_some(Status::IterationLimit))
            .or(late.then_some(Status::TimeLimit))
    }

    /// The size of a part, at most `size`, after which the scores can be brought up to date in half of the
    /// time left; the other half is for its steps. `None` when that is not enough for one example.
    fn affordable(&self, size: usize) -> Option<usize> {
        let Some(left) = self.context.time_left() else { return Some(size) };
        if self.seconds_per_row == 0.0 {
            return Some(size);
        }
        let most = 0.5 * left.as_secs_f64() / self.seconds_per_row;
        (most >= 1.0).then(|| size.min(most as usize))
    }

    /// Raises the objective until the violation over the examples of `table` is at most `tol`
    /// (`None`) or a limit ends it (`Some`).
    fn ascend<R: MatrixRows>(
        &mut self,
        rows: &R,
        table: &mut Table,
        tol: f64,
        nested: bool,
    ) -> Option<Status> {
        let capacity = rows.capacity();
        if table.len() <= LARGEST_SINGLE_BLOCK.min(capacity) && rows.pieces().len() == 2 {
            return self.ascend_whole(rows, table, tol);
        }
        // A part fits into half of the cache with all its rows.
        let part = ((capacity as f64 * table.len() as f64).sqrt() as usize).max(SMALL_BLOCK);
        let fits = 2 * capacity >= table.len() || part >= table.len();
        let in_parts = !nested && !fits && self.options.shrinking;
        let mut recent: Vec<u32> = Vec::new();
        let mut rounds = 0;
        let (mut least, mut since) = (f64::INFINITY, 0);
        loop {
            let (violations, worst) = scan(table, self.context);
            (least, since) = if worst < least { (worst, 0) } else { (least, since + 1) };
            if since > STALLED_BLOCKS {
                return Some(Status::AlmostSolved);
            }
            self.report(table, worst);
            if worst <= tol {
                return None;
            }
            if !worst.is_finite() {
                return Some(Status::NumericalTrouble);
            }
            if let Some(status) = self.limit() {
                return Some(status);
            }
            let target = (BLOCK_SHARE * worst).max(0.5 * tol);
            if in_parts {
                // The first parts are small: they measure the cost of updating the scores.
                let size = (part >> (FIRST_PARTS - rounds.min(FIRST_PARTS))).max(SMALL_BLOCK);
                let Some(size) = self.affordable(size) else { return Some(Status::TimeLimit) };
                rounds += 1;
                let mut set = choose(&violations, size, target.min(tol));
                fill_up(&mut set, &recent, size);
                let ended = self.ascend_part(rows, table, &set, target);
                if ended.is_some() {
                    return ended;
                }
                recent = set;
            } else {
                // Small blocks first; problems that need more get larger ones. A part has to be solved as
                // a whole and begins with large blocks.
                let largest = largest_block(table.len()).min(capacity.max(SMALL_BLOCK));
                let size =
                    if nested { largest } else { SMALL_BLOCK << (rounds / GROW_AFTER).min(16) };
                let size = size.min(largest);
                rounds += 1;
                let mut set = choose(&violations, size, target.min(tol));
                fill_up(&mut set, &recent, size);
                if !self.block(rows, table, &set, target) {
                    if self.fine {
                        return Some(Status::AlmostSolved);
                    }
                    self.fine = true;
                }
                recent = set;
            }
        }
    }

    /// Ascends on the examples `keep` alone, then brings the scores of all up to date. A request to
    /// stop at once leaves everything as it was.
    fn ascend_part<R: MatrixRows>(
        &mut self,
        rows: &R,
        table: &mut Table,
        keep: &[u32],
        tol: f64,
    ) -> Option<Status> {
        let mut part = table.select(keep);
        let reserve = Duration::from_secs_f64(self.seconds_per_row * keep.len() as f64);
        let outer = self.reserve;
        self.reserve += reserve;
        let ended = {
            let compact = rows.compact(keep, RowCaching::All);
            self.ascend(&compact, &mut part, tol, true)
        };
        self.reserve = outer;
        if ended == Some(Status::Interrupted) {
            return ended;
        }
        let (mut moved, mut changes) = (Vec::new(), Vec::new());
        for (w, &v) in keep.iter().enumerate() {
            let i = v as usize;
            if (0..table.classes).any(|c| table.alpha[c][i] != part.alpha[c][w]) {
                moved.push(v);
                changes.extend(table.adopt(i, &part, w));
            }
        }
        let started = Instant::now();
        stream(rows, table, &moved, &changes, self.constant);
        self.seconds_per_row = started.elapsed().as_secs_f64() / moved.len().max(1) as f64;
        ended
    }

    /// Solves the block of the examples `set` to `tol` and updates the scores of all; returns whether
    /// any variable moved.
    fn block<R: MatrixRows>(&mut self, rows: &R, table: &mut Table, set: &[u32], tol: f64) -> bool {
        let fetched = rows.fetch(set);
        let mut part = table.select(set);
        let (touched, _) = self.steps(&mut part, Cut::new(rows, &fetched, set), tol);
        let (mut changed, mut changes) = (Vec::new(), Vec::new());
        for (w, row) in fetched.into_iter().enumerate().filter(|(w, _)| touched[*w]) {
            changed.push(row);
            changes.extend(table.adopt(set[w] as usize, &part, w));
        }
        update(rows, table, &changed, &changes, self.constant, self.context);
        !changed.is_empty()
    }

    /// Takes the steps of a block; returns which of its examples moved, and their scores class by
    /// class.
    fn steps<T: Real>(
        &mut self,
        table: &mut Table,
        rows: impl BlockRows<T>,
        tol: f64,
    ) -> (Vec<bool>, Vec<f64>) {
        let left = self.options.max_iterations - self.steps;
        let most = (STEPS_PER_EXAMPLE * table.len()).min(STEP_COST / (table.len() * table.classes));
        let (constant, max_steps) = (self.constant, left.min(most as u64));
        let set = self.context.instruction_set();
        let (steps, touched, scores) = if self.fine {
            let precision = PhantomData::<(f64, T)>;
            run_plain(set, Block { table, rows, constant, tol, max_steps, precision })
        } else {
            let precision = PhantomData::<(T, T)>;
            let block = Block { table, rows, constant, tol, max_steps, precision };
            let (steps, touched, scores) = run_plain(set, block);
            (steps, touched, scores.into_iter().map(Real::to_f64).collect())
        };
        self.steps += steps;
        self.blocks += 1;
        (touched, scores)
    }

    /// As [`ascend`](Self::ascend) for few examples: all of them are one block, whose steps bring
    /// all scores up to date.
    fn ascend_whole<R: MatrixRows>(
        &mut self,
        rows: &R,
        table: &mut Table,
        tol: f64,
    ) -> Option<Status> {
        let mut held: Vec<Option<Row<R::Value>>> = vec![None; table.len()];
        let (mut least, mut since) = (f64::INFINITY, 0);
        loop {
            let (_, worst) = scan(table, self.context);
            self.report(table, worst);
            if worst <= tol {
                return None;
            }
            if !worst.is_finite() {
                return Some(Status::NumericalTrouble);
            }
            (least, since) = if worst < least { (worst, 0) } else { (least, since + 1) };
            if since > STALLED_BLOCKS {
                return Some(Status::AlmostSolved);
            }
            if let Some(status) = self.limit() {
                return Some(status);
            }
            let source = Held::new(rows, &mut held);
            let (touched, scores) = self.steps(table, source, WHOLE_TOL * tol);
            for (column, scores) in table.score.iter_mut().zip(scores.chunks_exact(touched.len())) {
                column.copy_from_slice(scores);
            }
            if !touched.contains(&true) {
                if self.fine {
                    return Some(Status::AlmostSolved);
                }
                self.fine = true;
            }
        }
    }

    fn report(&mut self, table: &Table, worst: f64) {
        let due = self.reported.is_none_or(|at| at.elapsed() >= REPORT_EVERY);
        if self.context.is_observed() && due {
            self.reported = Some(Instant::now());
            self.context.report(&Event::Iteration {
                iteration: self.blocks as usize,
                violation: worst,
                objective: table.objective_and_gap().0,
                active: table.len(),
            });
        }
    }
}

/// Most examples in a block of one of `n` examples: blocks much smaller than the problem undo each
/// other's work, larger ones cost more for every step.
fn largest_block(n: usize) -> usize {
    (2 * n / 5).clamp(2048, 8192)
}

/// The examples that violate most, at most `size` of those above `tol`, ascending.
fn choose(violations: &[f64], size: usize, tol: f64) -> Vec<u32> {
    let mut set: Vec<u32> =
        (0..violations.len() as u32).filter(|&i| violations[i as usize] > tol).collect();
    if set.len() > size {
        set.select_nth_unstable_by(size, |&a, &b| {
            let (va, vb) = (violations[a as usize], violations[b as usize]);
            vb.total_cmp(&va).then(scatter(a).cmp(&scatter(b)))
        });
        set.truncate(size);
        set.sort_unstable();
    }
    set
}

/// An order that has nothing to do with classes, for examples that violate alike.
fn scatter(example: u32) -> u32 {
    example.wrapping_mul(0x9e37_79b1)
}

/// Adds examples of an earlier block, whose scores follow the steps of the others, up to `size`.
fn fill_up(set: &mut Vec<u32>, recent: &[u32], size: usize) {
    if set.len() < size {
        let room = size - set.len();
        let more: Vec<u32> =
            recent.iter().filter(|v| set.binary_search(v).is_err()).take(room).copied().collect();
        set.extend(more);
        set.sort_unstable();
    }
}
