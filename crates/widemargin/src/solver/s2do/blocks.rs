//! The batch solver: blocks of the worst examples, solved example by example, then one update of
//! all scores.

use rayon::prelude::*;

use super::example::Example;
use super::rule::Rule;
use super::table::{Table, largest};
use crate::context::{Context, Event};
use crate::kernel::{MatrixRows, PlainLoop, Real, Reuse, Row, accumulate, run_plain};
use crate::solver::{Outcome, Status};

/// Examples whose scores one task brings up to date.
const UPDATE_CHUNK: usize = 1024;

/// Rows fetched at once when all scores are computed afresh.
const FRESH_ROWS: usize = 256;

/// A block has settled when its violation is this share of that of all examples.
const SETTLED: f64 = 0.2;

/// Examples whose violation is at least this share of the worst take a step before the next look at
/// all of them.
const EAGER: f64 = 0.8;

/// Fresh scores that may contradict the running ones before the answer is called almost solved.
const CONFIRMATIONS: usize = 5;

/// Examples in the first blocks.
const SMALL_BLOCK: usize = 384;

/// Blocks after which their size doubles.
const GROW_AFTER: usize = 10;

/// Centres of the offsets that are tried.
const CENTRES: usize = 200;

/// Factor on the strength of offsets whose sums do not fall fast enough.
const STRONGER: f64 = 4.0;

/// Steps of a block per example of it.
const STEPS_PER_EXAMPLE: usize = 20;

/// A dual problem; see the [module](crate::solver::s2do) for the formula.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The machine.
    pub rule: Rule,
    /// Number of classes, those without examples included.
    pub classes: usize,
    /// Class of every example, ascending.
    pub codes: Vec<u32>,
    /// Bound U of every example.
    pub upper: Vec<f64>,
    /// Variables to start from, example after example; clipped to be feasible.
    pub start: Option<Vec<f64>>,
    /// Whether every class has an offset of its own, free of charge.
    pub bias: bool,
}

/// Accuracy and effort of a solve.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Largest violation of the optimality conditions accepted.
    pub tol: f64,
    /// Whether examples that seem settled are set aside.
    pub shrinking: bool,
    /// Limit on steps.
    pub max_iterations: u64,
    /// Most examples in a block.
    pub working_set: usize,
    /// Examples of a part that is solved with all its kernel values at hand.
    pub part: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { tol: 1e-3, shrinking: true, max_iterations: u64::MAX, working_set: 1024, part: 4096 }
    }
}

/// A solution with its certificate.
#[derive(Clone, Debug)]
pub struct Solution {
    /// Dual variables, example after example.
    pub alpha: Vec<f64>,
    /// Coefficients of every class's score, projected where the scores sum to zero, example after
    /// example.
    pub coefficients: Vec<f64>,
    /// Offsets added to the scores, one per class.
    pub bias: Vec<f64>,
    /// How it ended.
    pub outcome: Outcome,
}

/// Solves `problem` over the kernel matrix `rows`.
///
/// The answer is always feasible; [`Outcome::status`] tells whether the tolerance was reached.
///
/// # Panics
/// When the arrays of `problem` do not have one entry per row, or the codes do not ascend.
pub fn solve<R: MatrixRows>(
    rows: &R,
    problem: &Problem,
    options: &Options,
    context: &Context,
) -> Solution {
    let n = rows.len();
    assert!(problem.codes.len() == n && problem.upper.len() == n, "one entry per example");
    assert!(problem.codes.is_sorted(), "examples in the order of their classes");
    let mut table = start(rows, problem);
    let mut run = Run { options, context, offset: Offset::none(problem), steps: 0, blocks: 0 };
    if problem.bias {
        run.offset.strength = strength(&table);
        table.diagonal.iter_mut().for_each(|k| *k += run.offset.strength);
    }
    fresh_scores(rows, &mut table, &run.offset, context);
    let (status, violation) = if problem.bias {
        run.ascend_with_bias(rows, &mut table)
    } else {
        run.ascend_and_confirm(rows, &mut table, options.tol)
    };
    let bias = run.offset.bias(&table);
    let (mut dual, gap) = table.objective_and_gap();
    dual += 0.5 * totals(&table).iter().zip(&bias).map(|(r, b)| r * b).sum::<f64>();
    let outcome = Outcome {
        status,
        primal: dual + gap,
        dual,
        violation,
        iterations: run.steps,
        blocks: run.blocks,
        kernel_rows: rows.computed(),
    };
    let d = problem.classes;
    let mut alpha = vec![0.0; n * d];
    let mut coefficients = vec![0.0; n * d];
    let mut own = Vec::new();
    for i in 0..n {
        table.coefficients(i, &mut own);
        let mean = own.get(d).copied().unwrap_or(0.0);
        for c in 0..d {
            alpha[i * d + c] = table.alpha[c][i];
            coefficients[i * d + c] = own[c] - mean;
        }
    }
    Solution { alpha, coefficients, bias, outcome }
}

/// The examples with the variables to start from, made feasible; scores are still zero.
fn start<R: MatrixRows>(rows: &R, problem: &Problem) -> Table {
    let d = problem.classes;
    let diagonal = (0..rows.len()).map(|v| rows.diagonal(v)).collect();
    let (codes, upper) = (problem.codes.clone(), problem.upper.clone());
    let mut table = Table::new(problem.rule, d, codes, upper, diagonal);
    let Some(start) = &problem.start else { return table };
    for (i, values) in start.chunks_exact(d).enumerate() {
        let (y, upper) = (problem.codes[i] as usize, problem.upper[i]);
        let mut total = 0.0;
        for c in (0..d).filter(|&c| problem.rule.uses(y, c)) {
            let room = if table.sum.is_empty() { upper } else { upper - total };
            let value = values[c].max(0.0).min(room.max(0.0));
            table.alpha[c][i] = value;
            total += value;
        }
        if !table.sum.is_empty() {
            table.sum[i] = total.min(upper);
        }
    }
    table
}

/// The offsets of the classes: a centre that stays while variables move, and a constant added to
/// every kernel value, which charges offsets by their distance to it.
///
/// A solve moves the centre to the offsets it found and starts again (the proximal point method, on
/// the dual side the method of multipliers for Σᵢ b_{i,c} = 0).
struct Offset {
    centre: Vec<f64>,
    strength: f64,
}

impl Offset {
    fn none(problem: &Problem) -> Self {
        let columns = problem.classes + usize::from(problem.rule.is_centred());
        Self { centre: vec![0.0; columns], strength: 0.0 }
    }

    /// The projected offsets that the scores of `table` hold.
    fn bias(&self, table: &Table) -> Vec<f64> {
        let mean = self.centre.get(table.classes).copied().unwrap_or(0.0);
        let total = totals(table);
        (0..table.classes).map(|c| self.centre[c] - mean + self.strength * total[c]).collect()
    }
}

/// Σᵢ b_{i,c}, projected, for every class.
fn totals(table: &Table) -> Vec<f64> {
    let (mut total, mut own) = (vec![0.0; table.score.len()], Vec::new());
    for i in 0..table.len() {
        table.coefficients(i, &mut own);
        total.iter_mut().zip(&own).for_each(|(t, b)| *t += b);
    }
    let mean = total.get(table.classes).copied().unwrap_or(0.0);
    total.truncate(table.classes);
    total.iter_mut().for_each(|t| *t -= mean);
    total
}

/// A constant of the size of the kernel values.
fn strength(table: &Table) -> f64 {
    let mean = table.diagonal.iter().sum::<f64>() / table.len().max(1) as f64;
    if mean > 0.0 { mean } else { 1.0 }
}

/// Violation of every example, and the largest.
fn scan(table: &Table, context: &Context) -> (Vec<f64>, f64) {
    struct Scan<'a>(&'a Table);
    impl PlainLoop for Scan<'_> {
        type Output = (Vec<f64>, f64);

        #[inline(always)]
        fn run(self) -> Self::Output {
            let (mut out, mut spare) = (Vec::new(), Vec::new());
            self.0.violations(&mut out, &mut spare);
            let worst = largest(&out).max(0.0);
            (out, worst)
        }
    }
    run_plain(context.instruction_set(), Scan(table))
}

/// One solve: what stays the same while examples come and go.
struct Run<'a> {
    options: &'a Options,
    context: &'a Context,
    offset: Offset,
    steps: u64,
    blocks: u64,
}

impl Run<'_> {
    fn limit(&self) -> Option<Status> {
        let spent = self.steps >= self.options.max_iterations;
        self.context.stop_request().or(spent.then_some(Status::IterationLimit))
    }

    /// Ascends until fresh scores confirm the tolerance.
    fn ascend_and_confirm<R: MatrixRows>(
        &mut self,
        rows: &R,
        table: &mut Table,
        tol: f64,
    ) -> (Status, f64) {
        let mut confirmations = 0;
        loop {
            let ended = self.ascend(rows, table, tol);
            fresh_scores(rows, table, &self.offset, self.context);
            let (_, violation) = scan(table, self.context);
            match ended {
                // Rounding stopped it; fresh scores may set it going again.
                Some(Status::AlmostSolved) if violation <= tol => {
                    return (Status::Solved, violation);
                }
                Some(Status::AlmostSolved) if confirmations < CONFIRMATIONS => confirmations += 1,
                Some(Status::AlmostSolved) if violation > 10.0 * tol => {
                    return (Status::NumericalTrouble, violation);
                }
                Some(status) => return (status, violation),
                None if violation <= tol => return (Status::Solved, violation),
                None if confirmations == CONFIRMATIONS => {
                    let almost = violation <= 10.0 * tol;
                    let status =
                        if almost { Status::AlmostSolved } else { Status::NumericalTrouble };
                    return (status, violation);
                }
                None => confirmations += 1,
            }
        }
    }

    /// Moves the centre of the offsets until the coefficients of every class sum to zero.
    fn ascend_with_bias<R: MatrixRows>(&mut self, rows: &R, table: &mut Table) -> (Status, f64) {
        let tol = self.options.tol;
        let scale = table.upper.iter().sum::<f64>() / table.len().max(1) as f64;
        let mut last = f64::INFINITY;
        for _ in 0..CENTRES {
            let (status, violation) = self.ascend_and_confirm(rows, table, tol);
            let total = totals(table);
            let worst = total.iter().fold(0.0_f64, |worst, r| worst.max(r.abs()));
            if !status.is_solved() || worst <= 0.01 * tol * scale {
                return (status, violation);
            }
            let mean = total.iter().sum::<f64>() / table.classes as f64;
            for (centre, r) in self.offset.centre.iter_mut().zip(total.iter().chain([&mean])) {
                *centre += self.offset.strength * r;
            }
            if worst > 0.5 * last {
                let more = STRONGER * self.offset.strength;
                table.diagonal.iter_mut().for_each(|k| *k += more - self.offset.strength);
                self.offset.strength = more;
            }
            last = worst;
            fresh_scores(rows, table, &self.offset, self.context);
        }
        let (_, violation) = scan(table, self.context);
        (Status::AlmostSolved, violation)
    }

    /// Raises the objective until the violation over the examples of `table` is at most `tol`
    /// (`None`) or a limit ends it (`Some`).
    fn ascend<R: MatrixRows>(&mut self, rows: &R, table: &mut Table, tol: f64) -> Option<Status> {
        let parts = table.len() > 2 * self.options.part && self.options.shrinking;
        let mut recent: Vec<u32> = Vec::new();
        let mut rounds = 0;
        loop {
            let (violations, worst) = scan(table, self.context);
            self.context.report(&Event::Iteration {
                iteration: self.blocks as usize,
                violation: worst,
                objective: table.objective_and_gap().0,
                active: table.len(),
            });
            if worst <= tol {
                return None;
            }
            if let Some(status) = self.limit() {
                return Some(status);
            }
            if parts {
                let set = choose(&violations, self.options.part, tol);
                let target = (SETTLED * worst).max(0.5 * tol);
                let ended = self.ascend_part(rows, table, &set, target);
                if ended.is_some() {
                    return ended;
                }
            } else {
                // Few examples settle few; problems that need more get larger blocks.
                let size =
                    (SMALL_BLOCK << (rounds / GROW_AFTER).min(16)).min(self.options.working_set);
                rounds += 1;
                let mut set = choose(&violations, size, tol);
                fill_up(&mut set, &recent, size);
                let target = (SETTLED * worst).max(0.5 * tol);
                if !self.block(rows, table, &set, target) {
                    return Some(Status::AlmostSolved);
                }
                recent = set;
            }
        }
    }

    /// Ascends on the examples `keep` alone, then brings the scores of all up to date.
    fn ascend_part<R: MatrixRows>(
        &mut self,
        rows: &R,
        table: &mut Table,
        keep: &[u32],
        tol: f64,
    ) -> Option<Status> {
        let mut part = table.select(keep);
        let ended = {
            let compact = rows.compact(keep, Reuse::Everywhere);
            self.ascend(&compact, &mut part, tol)
        };
        let mut moved: Vec<u32> = Vec::new();
        let mut changes: Vec<Vec<f64>> = Vec::new();
        for (w, &v) in keep.iter().enumerate() {
            let i = v as usize;
            if (0..table.classes).any(|c| table.alpha[c][i] != part.alpha[c][w]) {
                moved.push(v);
                changes.push(table.adopt(i, &part, w));
            }
        }
        for (moved, changes) in moved.chunks(FRESH_ROWS).zip(changes.chunks(FRESH_ROWS)) {
            let fetched = rows.fetch(moved);
            update(rows, table, &fetched, changes, self.offset.strength, self.context);
        }
        ended
    }

    /// Solves the block of the examples `set` to `tol` and updates the scores of all; tells whether
    /// any variable moved.
    fn block<R: MatrixRows>(&mut self, rows: &R, table: &mut Table, set: &[u32], tol: f64) -> bool {
        let fetched = rows.fetch(set);
        let mut part = table.select(set);
        let q = set.len();
        let values = |i: usize, out: &mut Vec<R::Value>| cut(rows, &fetched[i], set, out);
        let left = self.options.max_iterations - self.steps;
        let max_steps = left.min((STEPS_PER_EXAMPLE * q) as u64);
        let inner = Inner {
            table: &mut part,
            values,
            rows: std::marker::PhantomData,
            constant: self.offset.strength,
            tol,
            max_steps,
        };
        let (steps, touched) = run_plain(self.context.instruction_set(), inner);
        self.steps += steps;
        self.blocks += 1;
        let mut changed = Vec::new();
        let mut changes = Vec::new();
        for (w, row) in fetched.into_iter().enumerate().filter(|(w, _)| touched[*w]) {
            changed.push(row);
            changes.push(table.adopt(set[w] as usize, &part, w));
        }
        update(rows, table, &changed, &changes, self.offset.strength, self.context);
        !changed.is_empty()
    }
}

/// Appends the entries of a row at the examples `set`.
fn cut<R: MatrixRows>(rows: &R, row: &Row<R::Value>, set: &[u32], out: &mut Vec<R::Value>) {
    let mut w = 0;
    for (part, piece) in row.iter().zip(rows.pieces().windows(2)) {
        let end = w + set[w..].partition_point(|&v| (v as usize) < piece[1]);
        out.extend(set[w..end].iter().map(|&v| part[v as usize - piece[0]]));
        w = end;
    }
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

/// Adds examples of an earlier block, which answer to the steps of the others, up to `size`.
fn fill_up(set: &mut Vec<u32>, recent: &[u32], size: usize) {
    if set.len() < size {
        let room = size - set.len();
        let more: Vec<u32> =
            recent.iter().filter(|v| set.binary_search(v).is_err()).take(room).copied().collect();
        set.extend(more);
        set.sort_unstable();
    }
}

/// The sub-problem of a block: steps on single examples, the worst first.
struct Inner<'a, T, V: Fn(usize, &mut Vec<T>)> {
    table: &'a mut Table,
    /// Appends the kernel values of an example with all of the block.
    values: V,
    rows: std::marker::PhantomData<T>,
    /// Added to every kernel value.
    constant: f64,
    tol: f64,
    max_steps: u64,
}

impl<T: Real, V: Fn(usize, &mut Vec<T>)> PlainLoop for Inner<'_, T, V> {
    type Output = (u64, Vec<bool>);

    #[inline(always)]
    fn run(self) -> (u64, Vec<bool>) {
        let q = self.table.len();
        let mut touched = vec![false; q];
        let (mut violations, mut spare, mut change) = (Vec::new(), Vec::new(), Vec::new());
        let mut example = Example::default();
        let mut rows: Vec<Vec<T>> = vec![Vec::new(); q];
        let mut steps = 0;
        while steps < self.max_steps {
            self.table.violations(&mut violations, &mut spare);
            let worst = largest(&violations);
            if worst <= self.tol {
                break;
            }
            let least = (EAGER * worst).max(self.tol);
            let mut moved = false;
            for i in 0..q {
                if violations[i] < least {
                    continue;
                }
                steps += 1;
                if !self.table.improve(i, &mut example, &mut change) {
                    continue;
                }
                (moved, touched[i]) = (true, true);
                if rows[i].is_empty() {
                    (self.values)(i, &mut rows[i]);
                }
                let row = &rows[i][..q];
                for (column, &amount) in self.table.score.iter_mut().zip(&change) {
                    if amount != 0.0 {
                        for (score, &k) in column.iter_mut().zip(row) {
                            *score += amount * (k.to_f64() + self.constant);
                        }
                    }
                }
            }
            if !moved {
                break;
            }
        }
        (steps, touched)
    }
}

/// Adds Σᵣ `changes[r]` (kᵣ + `constant`) to the scores of all examples.
fn update<R: MatrixRows>(
    rows: &R,
    table: &mut Table,
    fetched: &[Row<R::Value>],
    changes: &[Vec<f64>],
    constant: f64,
    context: &Context,
) {
    if fetched.is_empty() {
        return;
    }
    let columns = table.score.len();
    // Rows that change each column, and by how much.
    let users: Vec<(Vec<usize>, Vec<f64>)> = (0..columns)
        .map(|c| {
            (0..fetched.len()).filter(|&r| changes[r][c] != 0.0).map(|r| (r, changes[r][c])).unzip()
        })
        .collect();
    let pieces = rows.pieces();
    let mut tasks: Vec<(usize, usize, Vec<&mut [f64]>)> = Vec::new();
    for (k, piece) in pieces.windows(2).enumerate() {
        for start in (0..piece[1] - piece[0]).step_by(UPDATE_CHUNK) {
            tasks.push((k, start, Vec::with_capacity(columns)));
        }
    }
    for column in &mut table.score {
        let mut rest = &mut column[..];
        let mut t = 0;
        for piece in pieces.windows(2) {
            let (part, tail) = rest.split_at_mut(piece[1] - piece[0]);
            rest = tail;
            for chunk in part.chunks_mut(UPDATE_CHUNK) {
                tasks[t].2.push(chunk);
                t += 1;
            }
        }
    }
    let set = context.instruction_set();
    let work = |(k, start, chunks): &mut (usize, usize, Vec<&mut [f64]>)| {
        for (chunk, (users, amounts)) in chunks.iter_mut().zip(&users) {
            let range = *start..*start + chunk.len();
            let parts: Vec<&[R::Value]> =
                users.iter().map(|&r| &fetched[r][*k][range.clone()]).collect();
            accumulate(set, chunk, &parts, amounts);
            if constant != 0.0 {
                let shift = constant * amounts.iter().sum::<f64>();
                chunk.iter_mut().for_each(|score| *score += shift);
            }
        }
    };
    if context.is_parallel() && tasks.len() > 1 {
        tasks.par_iter_mut().for_each(work);
    } else {
        tasks.iter_mut().for_each(work);
    }
}

/// All scores computed afresh.
fn fresh_scores<R: MatrixRows>(rows: &R, table: &mut Table, offset: &Offset, context: &Context) {
    for (column, &centre) in table.score.iter_mut().zip(&offset.centre) {
        column.fill(centre);
    }
    let support: Vec<u32> =
        (0..table.len() as u32).filter(|&i| table.is_support(i as usize)).collect();
    for group in support.chunks(FRESH_ROWS) {
        let fetched = rows.fetch(group);
        let changes: Vec<Vec<f64>> = group
            .iter()
            .map(|&i| {
                let mut own = Vec::new();
                table.coefficients(i as usize, &mut own);
                own
            })
            .collect();
        update(rows, table, &fetched, &changes, offset.strength, context);
    }
}
