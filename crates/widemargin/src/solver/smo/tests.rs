//! The decomposition solver against an interior-point solver, on random quadratic programs.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettingsBuilder, DefaultSolver, IPSolver, SolverStatus, SupportedConeT,
};
use proptest::prelude::*;

use super::{Options, Problem, Solution, solve};
use crate::context::Context;
use crate::data::{Dense, Matrix};
use crate::kernel::{Kernel, KernelBlocks, KernelRows, RowCaching};
use crate::numeric::InstructionSet;
use crate::solver::Status;

/// A quadratic program with its dense matrix.
#[derive(Clone, Debug)]
struct Program {
    matrix: Vec<Vec<f64>>,
    problem: Problem,
}

/// A random positive semidefinite matrix of rank `rank` with boxes, groups and a feasible start.
fn program(n: usize, rank: usize, ridge: bool, groups: bool) -> impl Strategy<Value = Program> {
    let factor = prop::collection::vec(-1.0..1.0_f64, n * rank);
    let linear = prop::collection::vec(-2.0..2.0_f64, n);
    let width = prop::collection::vec(0.0..3.0_f64, n);
    let start = prop::collection::vec(0.0..=1.0_f64, n);
    let shift = prop::collection::vec(-1.0..1.0_f64, n);
    (factor, linear, width, start, shift).prop_map(move |(factor, linear, width, start, shift)| {
        let row = |i: usize| &factor[i * rank..(i + 1) * rank];
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
        let matrix = (0..n).map(|i| (0..n).map(|j| dot(row(i), row(j))).collect()).collect();
        let shift = if ridge { vec![0.0; n] } else { shift };
        let point = |i: usize| (shift[i] + width[i] * start[i]).min(shift[i] + width[i]);
        let problem = Problem {
            linear,
            start: (0..n).map(point).collect(),
            upper: (0..n)
                .map(|i| if ridge { f64::INFINITY } else { shift[i] + width[i] })
                .collect(),
            ridge: ridge.then(|| width.iter().map(|w| 0.1 + w).collect()),
            groups: groups.then(|| (0..n).map(|i| u8::from(i % 3 == 0)).collect()),
            lower: shift,
            // Some of the variables, so that this start is compared with the optimum too.
            bound_tolerance: 0.0,
            initial_working_set: (0..n as u32).filter(|&v| start[v as usize] > 0.7).collect(),
        };
        Program { matrix, problem }
    })
}

/// Minimum by an interior-point method.
fn reference(program: &Program) -> f64 {
    let n = program.matrix.len();
    let problem = &program.problem;
    let ridge = |i: usize| problem.ridge.as_ref().map_or(0.0, |r| r[i]);
    let entry = |i: usize, j: usize| program.matrix[i][j] + if i == j { ridge(i) } else { 0.0 };
    let dense: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect();
    let quadratic = CscMatrix::from(&dense).to_triu();
    let mut rows: Vec<Vec<f64>> = Vec::new();
    let mut bounds = Vec::new();
    let group = |i: usize| problem.groups.as_ref().map_or(0, |g| g[i]);
    let groups = (0..n).map(group).max().unwrap() + 1;
    for g in 0..groups {
        rows.push((0..n).map(|i| f64::from(u8::from(group(i) == g))).collect());
        bounds.push((0..n).filter(|&i| group(i) == g).map(|i| problem.start[i]).sum());
    }
    for i in 0..n {
        for (sign, bound) in [(1.0, problem.upper[i]), (-1.0, -problem.lower[i])] {
            if bound.is_finite() {
                rows.push((0..n).map(|j| if i == j { sign } else { 0.0 }).collect());
                bounds.push(bound);
            }
        }
    }
    let constraints = CscMatrix::from(&rows);
    let cones = [
        SupportedConeT::ZeroConeT(groups as usize),
        SupportedConeT::NonnegativeConeT(rows.len() - groups as usize),
    ];
    let settings = DefaultSettingsBuilder::default()
        .verbose(false)
        .tol_gap_abs(1e-11)
        .tol_gap_rel(1e-11)
        .tol_feas(1e-11)
        .build()
        .unwrap();
    let mut solver =
        DefaultSolver::new(&quadratic, &problem.linear, &constraints, &bounds, &cones, settings)
            .unwrap();
    solver.solve();
    assert!(matches!(solver.solution.status, SolverStatus::Solved | SolverStatus::AlmostSolved));
    solver.solution.obj_val
}

/// Checks the solution by working sets of the given size, with shrinking, and with all rows held, by
/// pair steps and by Newton steps after every few of them.
fn check(program: &Program, working_set: usize) -> Result<(), TestCaseError> {
    for pairs_share in [1.0, 0.0] {
        check_one(program, working_set, 0, pairs_share)?;
        check_one(program, working_set, program.matrix.len(), pairs_share)?;
    }
    Ok(())
}

/// Solves a program whose rows are in two pieces.
fn solve_dense(program: &Program, options: &Options) -> Solution {
    let n = program.matrix.len();
    solve_in(&program.matrix, vec![0, n / 2, n], &[0, 1], &program.problem, options)
}

/// Solves a problem over some segments of a matrix.
fn solve_in(
    matrix: &[Vec<f64>],
    boundaries: Vec<usize>,
    segments: &[usize],
    problem: &Problem,
    options: &Options,
) -> Solution {
    let n = matrix.len();
    let context = Context::new();
    let values = Dense::new(n, n, matrix.concat()).unwrap();
    let blocks = KernelBlocks::<f64>::on_cpu(
        &Kernel::Precomputed,
        &Matrix::DenseF64(values),
        None,
        InstructionSet::detect(),
    )
    .unwrap();
    let rows = KernelRows::new(blocks, boundaries, RowCaching::OwnSegment, 1 << 20);
    let view = rows.view(segments, &context);
    solve(&view, problem, options, &context)
}

fn check_one(
    program: &Program,
    working_set: usize,
    in_memory_up_to: usize,
    pairs_share: f64,
) -> Result<(), TestCaseError> {
    let n = program.matrix.len();
    let options = Options {
        tol: 1e-8,
        working_set,
        in_memory_up_to,
        pairs_share,
        shrink_from: 0,
        ..Options::default()
    };
    let solution = solve_dense(program, &options);
    prop_assert_eq!(solution.outcome.status, Status::Solved);

    let problem = &program.problem;
    let beta = &solution.beta;
    for i in 0..n {
        prop_assert!(problem.lower[i] <= beta[i] && beta[i] <= problem.upper[i]);
    }
    let group = |i: usize| problem.groups.as_ref().map_or(0, |groups| groups[i]);
    for g in 0..2 {
        let sum = |point: &[f64]| (0..n).filter(|&i| group(i) == g).map(|i| point[i]).sum::<f64>();
        prop_assert!((sum(beta) - sum(&problem.start)).abs() < 1e-9);
    }
    let objective: f64 = (0..n)
        .map(|i| {
            let product: f64 = (0..n).map(|j| program.matrix[i][j] * beta[j]).sum();
            let ridge = problem.ridge.as_ref().map_or(0.0, |r| r[i]) * beta[i];
            beta[i] * (0.5 * (product + ridge) + problem.linear[i])
        })
        .sum();
    prop_assert!((objective + solution.outcome.dual).abs() <= 1e-9 * objective.abs().max(1.0));
    let minimum = reference(program);
    let scale = minimum.abs().max(1.0);
    prop_assert!((objective - minimum).abs() <= 1e-6 * scale, "{} but {}", objective, minimum);
    prop_assert!((-1e-9..=1e-6 * scale).contains(&solution.outcome.gap()));
    Ok(())
}

/// Programs without a unique optimum or without a variable inside its box: every row of the matrix
/// twice, and a start whose sum is near one of its limits, 0 being the lower one and 1 the upper.
fn degenerate(n: usize, rank: usize, groups: bool) -> impl Strategy<Value = Program> {
    let limit = prop::sample::select(vec![0.0, 1e-3, 0.5, 1.0 - 1e-3, 1.0]);
    (program(n, rank, false, groups), limit).prop_map(|(mut program, limit)| {
        let n = program.matrix.len();
        let original = |i: usize| i / 2 * 2;
        program.matrix = (0..n)
            .map(|i| (0..n).map(|j| program.matrix[original(i)][original(j)]).collect())
            .collect();
        let problem = &mut program.problem;
        for i in 0..n {
            let (lower, upper) = (problem.lower[i], problem.upper[i]);
            problem.start[i] = (lower + limit * (upper - lower)).clamp(lower, upper);
            problem.linear[i] = problem.linear[original(i)];
        }
        program
    })
}

/// A matrix with as many negative eigenvalues as positive ones, or with no positive one.
fn indefinite(n: usize, negative: bool) -> impl Strategy<Value = Program> {
    program(n, n, false, false).prop_map(move |mut program| {
        let n = program.matrix.len();
        for i in 0..n {
            for j in 0..n {
                let sign = if negative || i % 2 == 0 && j % 2 == 0 { -1.0 } else { 1.0 };
                program.matrix[i][j] *= if (i + j) % 2 == 0 { sign } else { 0.0 };
            }
        }
        program
    })
}

/// Checks what can be promised of a matrix that is not definite: a feasible point that is no worse than the
/// start, by both kinds of steps, and a status.
fn check_indefinite(program: &Program) -> Result<(), TestCaseError> {
    let problem = &program.problem;
    let objective = |point: &[f64]| -> f64 {
        let product =
            |i: usize| -> f64 { program.matrix[i].iter().zip(point).map(|(k, b)| k * b).sum() };
        (0..point.len()).map(|i| point[i] * (0.5 * product(i) + problem.linear[i])).sum()
    };
    for (in_memory_up_to, pairs_share) in [(0, 1.0), (0, 0.0), (100, 1.0), (100, 0.0)] {
        let options = Options {
            tol: 1e-8,
            in_memory_up_to,
            pairs_share,
            shrink_from: 0,
            max_iterations: 20_000,
            ..Options::default()
        };
        let solution = solve_dense(program, &options);
        let beta = &solution.beta;
        for i in 0..beta.len() {
            prop_assert!(problem.lower[i] <= beta[i] && beta[i] <= problem.upper[i]);
        }
        let sum = |point: &[f64]| point.iter().sum::<f64>();
        prop_assert!((sum(beta) - sum(&problem.start)).abs() < 1e-9);
        let (from, to) = (objective(&problem.start), objective(beta));
        prop_assert!(to <= from + 1e-9 * from.abs().max(1.0), "{} but {}", to, from);
        prop_assert!((to + solution.outcome.dual).abs() <= 1e-8 * to.abs().max(1.0));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn boxes_and_one_sum(program in program(24, 6, false, false), size in 2_usize..30) {
        check(&program, size)?;
    }

    #[test]
    fn boxes_and_two_sums(program in program(20, 20, false, true), size in 4_usize..24) {
        check(&program, size)?;
    }

    #[test]
    fn a_ridge_and_no_upper_bound(program in program(18, 4, true, false), size in 2_usize..20) {
        check(&program, size)?;
    }

    #[test]
    fn rows_twice_and_sums_at_their_limits(
        program in degenerate(26, 4, false), size in 2_usize..30,
    ) {
        check(&program, size)?;
    }

    #[test]
    fn rows_twice_and_two_sums_at_their_limits(
        program in degenerate(24, 3, true), size in 4_usize..24,
    ) {
        check(&program, size)?;
    }

    #[test]
    fn variables_that_are_the_same_rows_again(
        program in program(28, 9, false, false), groups in any::<bool>(),
    ) {
        let mut program = program;
        let half = program.matrix.len() / 2;
        let rows: Vec<Vec<f64>> = program.matrix[..half].iter().map(|r| r[..half].to_vec()).collect();
        program.matrix = (0..2 * half).map(|v| [&rows[v % half][..]; 2].concat()).collect();
        program.problem.groups = groups.then(|| (0..2 * half).map(|v| u8::from(v >= half)).collect());
        for (in_memory_up_to, pairs_share) in [(0, 1.0), (half, 1.0), (half, 0.0)] {
            let options = Options { tol: 1e-8, in_memory_up_to, pairs_share, ..Options::default() };
            let solution = solve_in(&rows, vec![0, half], &[0, 0], &program.problem, &options);
            prop_assert_eq!(solution.outcome.status, Status::Solved);
            let minimum = reference(&program);
            let difference = (minimum + solution.outcome.dual).abs();
            prop_assert!(difference <= 1e-6 * minimum.abs().max(1.0), "{}", difference);
        }
    }

    /// Newton steps begin at once there.
    #[test]
    fn a_start_near_the_solution(program in program(40, 12, false, true), size in 4_usize..40) {
        for in_memory_up_to in [0, 40] {
            let coarse = Options { tol: 1e-6, in_memory_up_to, ..Options::default() };
            let start = solve_dense(&program, &coarse).beta;
            let bound_tolerance = Problem::BOUND_TOLERANCE;
            let problem = Problem { start, bound_tolerance, ..program.problem.clone() };
            check(&Program { problem, ..program.clone() }, size)?;
        }
    }

    #[test]
    fn a_matrix_with_negative_eigenvalues(program in indefinite(30, false)) {
        check_indefinite(&program)?;
    }

    #[test]
    fn a_matrix_with_a_negative_diagonal(program in indefinite(30, true)) {
        check_indefinite(&program)?;
    }

    #[test]
    fn many_variables_of_a_singular_matrix(program in program(90, 40, false, true)) {
        check(&program, 64)?;
    }
}
