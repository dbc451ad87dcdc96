//! What batch solvers have in common: the start, the offsets, the confirmation and the report.

use super::decompose::Blocks;
use super::linear::Linear;
use super::offset::{Offset, strength, totals};
use super::problem::{Options, Problem, Solution};
use crate::context::Context;
use crate::data::Matrix;
use crate::kernel::MatrixRows;
use crate::numeric::simd::{PlainLoop, run_plain};
use crate::solver::s2do::shared::table::{Table, largest};
use crate::solver::{Outcome, Status};

/// Fresh scores that may contradict the running ones before the status is almost solved.
const MOST_CORRECTIONS: usize = 5;

/// Centres of the offsets that are tried.
const CENTRES: usize = 200;

/// Factor on the strength of offsets whose sums do not fall fast enough.
const STRENGTH_FACTOR: f64 = 4.0;

/// Solves `problem` over the kernel matrix `rows`.
///
/// The solution is always feasible; [`Outcome::status`] says whether the tolerance was reached.
///
/// # Panics
/// When the arrays of `problem` do not have one entry per row, or the codes do not ascend.
pub(crate) fn solve<R: MatrixRows>(
    rows: &R,
    problem: &Problem,
    options: &Options,
    context: &Context,
) -> Solution {
    let diagonal = (0..rows.len()).map(|v| rows.diagonal(v)).collect();
    run(Blocks::new(rows, options, context), diagonal, problem, options, context)
}

/// Solves `problem` for the linear kernel of the rows `order` of `features`, with explicit weights
/// in double precision and without a kernel matrix.
///
/// The optimum is that of [`solve`] with the linear kernel.
///
/// # Panics
/// As [`solve`].
pub(crate) fn solve_linear(
    features: &Matrix,
    order: &[usize],
    problem: &Problem,
    options: &Options,
    context: &Context,
) -> Solution {
    let linear = Linear::new(features, order, problem.classes, options, context);
    let diagonal = linear.squared_lengths();
    run(linear, diagonal, problem, options, context)
}

/// A way to raise the dual.
pub(super) trait Ascent {
    /// Raises the objective until the violation over the examples of `table` is at most `tol`
    /// (`None`) or a limit ends it (`Some`).
    fn ascend(&mut self, table: &mut Table, offset: &Offset, tol: f64) -> Option<Status>;

    /// Computes all scores afresh.
    fn refresh(&mut self, table: &mut Table, offset: &Offset);

    /// Steps, blocks and kernel values so far.
    fn effort(&self) -> (u64, u64, u64);
}

fn run<A: Ascent>(
    mut ascent: A,
    diagonal: Vec<f64>,
    problem: &Problem,
    options: &Options,
    context: &Context,
) -> Solution {
    let (n, d) = (diagonal.len(), problem.classes);
    assert!(problem.codes.len() == n && problem.upper.len() == n, "one entry per example");
    assert!(problem.codes.is_sorted(), "examples in the order of their classes");
    let mut table = start(diagonal, problem);
    let mut offset = Offset::none(problem);
    if problem.bias {
        offset.strength = strength(&table);
        table.diagonal.iter_mut().for_each(|k| *k += offset.strength);
    }
    ascent.refresh(&mut table, &offset);
    let (status, violation) = if problem.bias {
        centre(&mut ascent, &mut table, &mut offset, options.tol, context)
    } else {
        confirm(&mut ascent, &mut table, &offset, options.tol, context)
    };
    let bias = offset.bias(&table);
    let (mut dual, gap) = table.objective_and_gap();
    dual += 0.5 * totals(&table).iter().zip(&bias).map(|(r, b)| r * b).sum::<f64>();
    let (iterations, blocks, kernel_rows) = ascent.effort();
    let primal = dual + gap;
    let outcome = Outcome { status, primal, dual, violation, iterations, blocks, kernel_rows }
        .with_checked_status();
    let mut coefficients = vec![0.0; n * d];
    let mut own = Vec::new();
    for i in 0..n {
        table.coefficients(i, &mut own);
        coefficients[i * d..(i + 1) * d].copy_from_slice(&own);
    }
    Solution { coefficients, bias, outcome }
}

/// The examples with the variables to start from, made feasible; scores are still zero.
fn start(diagonal: Vec<f64>, problem: &Problem) -> Table {
    let d = problem.classes;
    let (codes, upper) = (problem.codes.clone(), problem.upper.clone());
    let mut table = Table::new(problem.loss, d, codes, upper, diagonal);
    let Some(start) = &problem.start else { return table };
    for (i, values) in start.chunks_exact(d).enumerate() {
        let (y, upper) = (problem.codes[i] as usize, problem.upper[i]);
        let mut total = 0.0;
        for c in (0..d).filter(|&c| problem.loss.uses(y, c)) {
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

/// Ascends until fresh scores confirm the tolerance. Limits are not followed by fresh scores, which
/// may cost as much as all the steps before.
fn confirm<A: Ascent>(
    ascent: &mut A,
    table: &mut Table,
    offset: &Offset,
    tol: f64,
    context: &Context,
) -> (Status, f64) {
    let mut corrections = 0;
    loop {
        let ended = ascent.ascend(table, offset, tol);
        // Where rounding stopped it, fresh scores may set it going again.
        let converged = matches!(ended, None | Some(Status::AlmostSolved));
        if converged {
            ascent.refresh(table, offset);
        }
        let (_, violation) = scan(table, context);
        match ended {
            Some(status) if !converged => return (status, violation),
            _ if violation <= tol => return (Status::Solved, violation),
            _ if corrections < MOST_CORRECTIONS => corrections += 1,
            _ if violation <= 10.0 * tol => return (Status::AlmostSolved, violation),
            _ => return (Status::NumericalTrouble, violation),
        }
    }
}

/// Moves the centre of the offsets until the coefficients of every class sum to zero.
fn centre<A: Ascent>(
    ascent: &mut A,
    table: &mut Table,
    offset: &mut Offset,
    tol: f64,
    context: &Context,
) -> (Status, f64) {
    let scale = table.upper.iter().sum::<f64>() / table.len().max(1) as f64;
    let mut last = f64::INFINITY;
    for _ in 0..CENTRES {
        let (status, violation) = confirm(ascent, table, offset, tol, context);
        let total = totals(table);
        let worst = total.iter().fold(0.0_f64, |worst, r| worst.max(r.abs()));
        if !status.is_solved() || worst <= 0.01 * tol * scale {
            return (status, violation);
        }
        for (centre, r) in offset.centre.iter_mut().zip(&total) {
            *centre += offset.strength * r;
        }
        if worst > 0.5 * last {
            let more = STRENGTH_FACTOR * offset.strength;
            table.diagonal.iter_mut().for_each(|k| *k += more - offset.strength);
            offset.strength = more;
        }
        last = worst;
        ascent.refresh(table, offset);
    }
    let (_, violation) = scan(table, context);
    (Status::AlmostSolved, violation)
}

/// Violation of every example, and the largest.
pub(super) fn scan(table: &Table, context: &Context) -> (Vec<f64>, f64) {
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
