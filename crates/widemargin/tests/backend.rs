//! A backend of the tests: double loops in the place of SIMD blocks, and jobs that it takes over.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use widemargin::data::{Dataset, Dense, Labels, Matrix};
use widemargin::kernel::{Backend, DualProblem, ExpansionTerm, Kernel, PackedRows, Queries};
use widemargin::machine::{Machine, NuSvc, OneClass, Precision, SolverOptions, Svc, Svr};
use widemargin::{Context, Result};

/// How often each job was taken.
#[derive(Debug, Default)]
struct Counts {
    packs: AtomicUsize,
    blocks: AtomicUsize,
    problems: AtomicUsize,
    expansions: AtomicUsize,
}

fn count(counter: &AtomicUsize, by: usize) {
    counter.fetch_add(by, Ordering::Relaxed);
}

/// Takes Gaussian kernels in double precision.
#[derive(Debug, Default)]
struct DoubleLoops {
    counts: Arc<Counts>,
    takes_jobs: bool,
}

impl Backend for DoubleLoops {
    fn name(&self) -> &str {
        "double loops"
    }

    fn pack_f64(
        &self,
        kernel: &Kernel,
        rows: &Matrix,
        order: &[usize],
        _: &Context,
    ) -> Result<Option<Arc<dyn PackedRows<f64>>>> {
        let Kernel::Gaussian { gamma } = *kernel else { return Ok(None) };
        count(&self.counts.packs, 1);
        let rows = order.iter().map(|&row| row_of(rows, row)).collect();
        let (counts, takes_jobs) = (Arc::clone(&self.counts), self.takes_jobs);
        Ok(Some(Arc::new(Rows {
            diagonal: vec![1.0; order.len()],
            rows,
            gamma,
            counts,
            takes_jobs,
        })))
    }
}

fn row_of(matrix: &Matrix, row: usize) -> Vec<f64> {
    let mut values = vec![0.0; matrix.columns()];
    matrix.copy_row(row, &mut values);
    values
}

struct Rows {
    gamma: f64,
    rows: Vec<Vec<f64>>,
    diagonal: Vec<f64>,
    counts: Arc<Counts>,
    takes_jobs: bool,
}

impl Rows {
    fn value(&self, x: &[f64], j: usize) -> f64 {
        let squares = x.iter().zip(&self.rows[j]).map(|(a, b)| (a - b) * (a - b));
        (-self.gamma * squares.sum::<f64>()).exp()
    }
}

impl PackedRows<f64> for Rows {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn columns(&self) -> usize {
        self.rows[0].len()
    }

    fn diagonal(&self) -> &[f64] {
        &self.diagonal
    }

    fn products_per_value(&self) -> usize {
        self.columns()
    }

    fn gather(&self, rows: &[usize]) -> Queries<f64> {
        let left: Vec<Vec<f64>> = rows.iter().map(|&row| self.rows[row].clone()).collect();
        Queries::new(rows.len(), Some(vec![1.0; rows.len()]), left)
    }

    fn prepare(&self, queries: &Matrix, rows: &[usize]) -> Result<Queries<f64>> {
        let left: Vec<Vec<f64>> = rows.iter().map(|&row| row_of(queries, row)).collect();
        Ok(Queries::new(rows.len(), Some(vec![1.0; rows.len()]), left))
    }

    fn block(
        &self,
        left: &Queries<f64>,
        rows: Range<usize>,
        columns: Range<usize>,
        out: &mut [&mut [f64]],
    ) {
        count(&self.counts.blocks, 1);
        let left: &Vec<Vec<f64>> = left.packed();
        for (row, out) in rows.zip(out) {
            for (j, value) in columns.clone().zip(out.iter_mut()) {
                *value = self.value(&left[row], j);
            }
        }
    }

    fn subset(&self, keep: &[usize]) -> Arc<dyn PackedRows<f64>> {
        Arc::new(Self {
            rows: keep.iter().map(|&row| self.rows[row].clone()).collect(),
            diagonal: vec![1.0; keep.len()],
            counts: Arc::clone(&self.counts),
            ..*self
        })
    }

    fn takes_duals(&self) -> bool {
        self.takes_jobs
    }

    fn solve_duals(
        &self,
        problems: &[DualProblem<'_>],
        tol: f64,
        _: &Context,
    ) -> Option<Vec<Vec<f64>>> {
        count(&self.counts.problems, problems.len());
        Some(problems.iter().map(|problem| self.solve(problem, tol)).collect())
    }

    fn evaluate(
        &self,
        queries: &Matrix,
        rows: &[usize],
        terms: &[ExpansionTerm<'_>],
        functions: usize,
        sums: &mut [f64],
    ) -> Option<Result<()>> {
        if !self.takes_jobs {
            return None;
        }
        count(&self.counts.expansions, 1);
        for (&row, sums) in rows.iter().zip(sums.chunks_exact_mut(functions)) {
            let x = row_of(queries, row);
            for term in terms {
                for (j, c) in term.support.clone().zip(term.coefficients) {
                    sums[term.function] += c * self.value(&x, j);
                }
            }
        }
        Some(Ok(()))
    }
}

impl Rows {
    /// Pair by pair, the most violating of a group each time.
    fn solve(&self, problem: &DualProblem<'_>, tol: f64) -> Vec<f64> {
        let n = problem.start.len();
        let kernel = |u: usize, v: usize| {
            let own = if u == v { problem.ridge.map_or(0.0, |ridge| ridge[u]) } else { 0.0 };
            self.value(&self.rows[problem.rows[u]], problem.rows[v]) + own
        };
        let group = |v: usize| problem.groups.map_or(0, |groups| groups[v]);
        let mut beta = problem.start.to_vec();
        loop {
            let gradient: Vec<f64> = (0..n)
                .map(|u| problem.linear[u] + (0..n).map(|v| kernel(u, v) * beta[v]).sum::<f64>())
                .collect();
            let mut best: Option<(usize, usize, f64)> = None;
            for up in (0..n).filter(|&u| beta[u] < problem.upper[u]) {
                for down in (0..n).filter(|&d| beta[d] > problem.lower[d] && group(d) == group(up))
                {
                    let violation = gradient[down] - gradient[up];
                    if violation > best.map_or(0.5 * tol, |(_, _, worst)| worst) {
                        best = Some((up, down, violation));
                    }
                }
            }
            let Some((up, down, violation)) = best else { return beta };
            let curvature = kernel(up, up) + kernel(down, down) - 2.0 * kernel(up, down);
            let room = (problem.upper[up] - beta[up]).min(beta[down] - problem.lower[down]);
            let step = (violation / curvature.max(1e-12)).min(room);
            beta[up] += step;
            beta[down] -= step;
        }
    }
}

fn data(classes: i64) -> Dataset {
    let value = |k: usize| ((k * 7919 + k * k * 31) % 1009) as f64 / 1009.0;
    let values: Vec<f64> = (0..60 * 4).map(value).collect();
    let labels = (0..60).map(|i| ((values[i * 4] + values[i * 4 + 1]) * 1.5) as i64 % classes);
    let labels = Labels::Int(labels.collect());
    Dataset::new(Matrix::DenseF64(Dense::new(60, 4, values).unwrap()), labels).unwrap()
}

fn options() -> SolverOptions {
    SolverOptions { tol: 1e-6, precision: Precision::F64, ..SolverOptions::default() }
}

fn machines() -> Vec<(Box<dyn Machine>, Dataset, usize)> {
    let kernel = Kernel::Gaussian { gamma: 0.8 };
    vec![
        (
            Box::new(Svc { kernel: kernel.clone(), c: 2.0, options: options(), ..Svc::default() }),
            data(3),
            3,
        ),
        (
            Box::new(NuSvc {
                kernel: kernel.clone(),
                nu: 0.2,
                options: options(),
                ..NuSvc::default()
            }),
            data(2),
            1,
        ),
        (
            Box::new(Svr { kernel: kernel.clone(), options: options(), ..Svr::default() }),
            data(3),
            1,
        ),
        (Box::new(OneClass { kernel, options: options(), ..OneClass::default() }), data(3), 1),
    ]
}

#[test]
fn machines_train_and_predict_by_any_backend() {
    for (machine, data, problems) in machines() {
        let context = Context::new();
        let model = machine.fit(&data, &context).unwrap();
        let expected = model.predictor(&context).unwrap().decision_values(data.features()).unwrap();
        for takes_jobs in [false, true] {
            let backend = DoubleLoops { takes_jobs, ..DoubleLoops::default() };
            let counts = Arc::clone(&backend.counts);
            let context = Context::new().with_backend(backend);
            let model = machine.fit(&data, &context).unwrap();
            assert!(model.training.as_ref().unwrap().outcome.status.is_solved());
            let found =
                model.predictor(&context).unwrap().decision_values(data.features()).unwrap();
            for (a, b) in expected.values().iter().zip(found.values()) {
                assert!(
                    (a - b).abs() < 1e-4 * (1.0 + a.abs()),
                    "{a} by the CPU, {b} by the backend"
                );
            }
            let taken = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
            assert_eq!(taken(&counts.packs), 2, "training rows and support vectors");
            assert!(taken(&counts.blocks) > 0, "the solver verifies what it is given");
            assert_eq!(taken(&counts.problems), if takes_jobs { problems } else { 0 });
            assert_eq!(taken(&counts.expansions), usize::from(takes_jobs));
        }
    }
}

#[test]
fn what_a_backend_does_not_take_is_computed_by_the_cpu() {
    let backend = DoubleLoops::default();
    let counts = Arc::clone(&backend.counts);
    let context = Context::new().with_backend(backend);
    let sum = Kernel::Sum(vec![(1.0, Kernel::Gaussian { gamma: 0.8 }), (0.5, Kernel::Linear)]);
    for (kernel, packs) in [(Kernel::Linear, 0), (sum, 1)] {
        let svc = Svc { kernel, options: options(), ..Svc::default() };
        let model = svc.fit(&data(2), &context).unwrap();
        assert!(model.training.as_ref().unwrap().outcome.status.is_solved());
        assert_eq!(
            counts.packs.load(Ordering::Relaxed),
            packs,
            "the Gaussian part of the sum alone"
        );
    }
    assert!(format!("{context:?}").contains("double loops"));
}
