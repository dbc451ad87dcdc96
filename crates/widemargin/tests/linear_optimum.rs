//! Linear machines against an interior-point solver on the primal problem, for every loss, penalty,
//! bias and algorithm.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSolver, IPSolver, SolverStatus, SupportedConeT};
use widemargin::Context;
use widemargin::Status;
use widemargin::data::{ClassOrder, Dataset, Dense, Labels, Layout, Matrix};
use widemargin::machine::{
    Bias, ClassWeights, LinearLoss, LinearMulticlass, LinearOneClass, LinearOptions, LinearSolver,
    LinearSvc, LinearSvr, Machine, Model, Penalty, Precision,
};

use crate::common::{conic_settings, signed_numbers};

const FEATURES: usize = 4;

/// Rows with targets and weights.
struct Case {
    rows: Vec<[f64; FEATURES]>,
    noise: Vec<f64>,
    weights: Vec<f64>,
    c: f64,
}

fn cases() -> Vec<Case> {
    (0..4_u64)
        .map(|index| {
            let mut next = signed_numbers(index + 3);
            let n = 18 + 4 * index as usize;
            let mut rows: Vec<[f64; FEATURES]> = (0..n)
                .map(|_| [next(), 3.0 * next(), if next() > 0.3 { next() } else { 0.0 }, next()])
                .collect();
            rows[1] = rows[0];
            if index == 2 {
                rows[5] = [0.0; FEATURES];
            }
            let noise = (0..n).map(|_| next()).collect();
            let weights = (0..n).map(|i| if i == 3 { 0.0 } else { 1.0 + 0.5 * next() }).collect();
            Case { rows, noise, weights, c: [0.1, 1.0, 5.0, 30.0][index as usize] }
        })
        .collect()
}

impl Case {
    fn score(&self, i: usize) -> f64 {
        let x = &self.rows[i];
        x[0] - 0.5 * x[1] + 0.3 * x[3] + 0.8 * self.noise[i] + 0.4
    }

    fn class(&self, i: usize, classes: usize) -> usize {
        if i < classes { i } else { ((self.score(i) + 2.0).max(0.0) as usize).min(classes - 1) }
    }

    fn data(&self, labels: Labels, layout: Layout) -> Dataset {
        let table = Dense::new(self.rows.len(), FEATURES, self.rows.concat()).unwrap();
        let table = Matrix::DenseF64(table).into_layout(layout);
        Dataset::new(table, labels).unwrap().with_weights(self.weights.clone()).unwrap()
    }
}

/// A conic program: minimise ½xᵀPx + qᵀx with b − Ax in a product of cones.
#[derive(Default)]
struct Program {
    squares: Vec<f64>,
    linear: Vec<f64>,
    rows: Vec<(Vec<(usize, f64)>, f64)>,
    cones: Vec<SupportedConeT<f64>>,
}

impl Program {
    fn variable(&mut self, square: f64, linear: f64) -> usize {
        self.squares.push(square);
        self.linear.push(linear);
        self.linear.len() - 1
    }

    /// `sum` ≤ `bound`
    fn at_most(&mut self, sum: Vec<(usize, f64)>, bound: f64) {
        self.rows.push((sum, bound));
        self.cones.push(SupportedConeT::NonnegativeConeT(1));
    }

    /// exp(constant − sum) ≤ variable
    fn exponential(&mut self, sum: Vec<(usize, f64)>, constant: f64, variable: usize) {
        self.rows.push((sum, constant));
        self.rows.push((Vec::new(), 1.0));
        self.rows.push((vec![(variable, -1.0)], 0.0));
        self.cones.push(SupportedConeT::ExponentialConeT());
    }

    fn minimum(&self) -> f64 {
        let n = self.linear.len();
        let diagonal = (0..n).map(|j| (j, j, self.squares[j]));
        let (rows, (columns, values)): (Vec<_>, (Vec<_>, Vec<_>)) =
            diagonal.map(|(i, j, v)| (i, (j, v))).unzip();
        let p = CscMatrix::new_from_triplets(n, n, rows, columns, values);
        let (mut rows, mut columns, mut values, mut bounds) = (vec![], vec![], vec![], vec![]);
        for (i, (row, bound)) in self.rows.iter().enumerate() {
            for &(j, value) in row {
                rows.push(i);
                columns.push(j);
                values.push(value);
            }
            bounds.push(*bound);
        }
        let a = CscMatrix::new_from_triplets(self.rows.len(), n, rows, columns, values);
        let settings = conic_settings(1e-10);
        let mut solver =
            DefaultSolver::new(&p, &self.linear, &a, &bounds, &self.cones, settings).unwrap();
        solver.solve();
        let solved =
            matches!(solver.solution.status, SolverStatus::Solved | SolverStatus::AlmostSolved);
        assert!(solved, "{:?}", solver.solution.status);
        solver.solution.obj_val
    }
}

#[derive(Clone, Copy)]
enum Shape {
    Two(LinearLoss),
    Tube { squared: bool, epsilon: f64 },
}

/// The optimum of the primal problem.
fn optimum(
    case: &Case,
    shape: Shape,
    targets: &[f64],
    costs: &[f64],
    penalty: Penalty,
    bias: Bias,
) -> f64 {
    let mut program = Program::default();
    let ridge = if penalty == Penalty::L2 { 1.0 } else { 0.0 };
    let mut weights: Vec<(usize, f64)> = Vec::new();
    let charge = |program: &mut Program, w: usize| {
        if penalty == Penalty::L1 {
            let size = program.variable(0.0, 1.0);
            program.at_most(vec![(w, 1.0), (size, -1.0)], 0.0);
            program.at_most(vec![(w, -1.0), (size, -1.0)], 0.0);
        }
    };
    for _ in 0..FEATURES {
        let w = program.variable(ridge, 0.0);
        charge(&mut program, w);
        weights.push((w, 0.0));
    }
    match bias {
        Bias::None => {}
        Bias::Appended(value) => {
            let w = program.variable(ridge, 0.0);
            charge(&mut program, w);
            weights.push((w, value));
        }
        Bias::Free => {
            let w = program.variable(0.0, 0.0);
            weights.push((w, 1.0));
        }
    }
    for (i, row) in case.rows.iter().enumerate().filter(|(i, _)| costs[*i] > 0.0) {
        let value = |factor: f64| -> Vec<(usize, f64)> {
            let features = row.iter().copied().chain(weights[FEATURES..].iter().map(|w| w.1));
            weights.iter().zip(features).map(|(w, x)| (w.0, factor * x)).collect()
        };
        let squared = match shape {
            Shape::Two(loss) => loss == LinearLoss::SquaredHinge,
            Shape::Tube { squared, .. } => squared,
        };
        let slack = match squared {
            true => program.variable(2.0 * costs[i], 0.0),
            false => program.variable(0.0, costs[i]),
        };
        let with_slack = |mut sum: Vec<(usize, f64)>| {
            sum.push((slack, -1.0));
            sum
        };
        let t = targets[i];
        match shape {
            Shape::Two(LinearLoss::Logistic) => {
                let (p, q) = (program.variable(0.0, 0.0), program.variable(0.0, 0.0));
                program.at_most(vec![(p, 1.0), (q, 1.0)], 1.0);
                program.exponential(vec![(slack, 1.0)], 0.0, p);
                let mut sum = value(t);
                sum.push((slack, 1.0));
                program.exponential(sum, 0.0, q);
            }
            Shape::Two(_) => {
                program.at_most(vec![(slack, -1.0)], 0.0);
                program.at_most(with_slack(value(-t)), -1.0);
            }
            Shape::Tube { epsilon, .. } => {
                program.at_most(vec![(slack, -1.0)], 0.0);
                program.at_most(with_slack(value(1.0)), t + epsilon);
                program.at_most(with_slack(value(-1.0)), epsilon - t);
            }
        }
    }
    program.minimum()
}

/// The objective of function `f` of a model, written out.
fn objective(
    model: &Model,
    f: usize,
    case: &Case,
    shape: Shape,
    targets: &[f64],
    costs: &[f64],
    penalty: Penalty,
    bias: Bias,
) -> f64 {
    let mut weights = vec![0.0; FEATURES];
    model.vectors().copy_row(f, &mut weights);
    let constant = -model.offsets()[f];
    let mut charged = weights.clone();
    if let Bias::Appended(value) = bias {
        charged.push(constant / value);
    }
    let price: f64 = match penalty {
        Penalty::L2 => 0.5 * charged.iter().map(|w| w * w).sum::<f64>(),
        Penalty::L1 => charged.iter().map(|w| w.abs()).sum(),
    };
    let mut total = price;
    for (i, row) in case.rows.iter().enumerate() {
        let z: f64 = row.iter().zip(&weights).map(|(x, w)| x * w).sum::<f64>() + constant;
        total += costs[i]
            * match shape {
                Shape::Two(LinearLoss::Hinge) => (1.0 - targets[i] * z).max(0.0),
                Shape::Two(LinearLoss::SquaredHinge) => (1.0 - targets[i] * z).max(0.0).powi(2),
                Shape::Two(LinearLoss::Logistic) => (-targets[i] * z).exp().ln_1p(),
                Shape::Tube { squared, epsilon } => {
                    let excess = ((z - targets[i]).abs() - epsilon).max(0.0);
                    if squared { excess * excess } else { excess }
                }
            };
    }
    total
}

fn options() -> LinearOptions {
    LinearOptions { tol: Some(1e-9), precision: Precision::F64, ..LinearOptions::default() }
}

const BIASES: [Bias; 3] = [Bias::None, Bias::Appended(2.0), Bias::Free];

fn check(found: f64, best: f64, model: &Model, what: &str) {
    let outcome = model.training.as_ref().unwrap().outcome;
    assert!(
        (found - best).abs() <= 2e-7 * best.abs().max(1.0),
        "{what}: {found} instead of {best}"
    );
    assert!(
        matches!(outcome.status, Status::Solved | Status::AlmostSolved),
        "{what}: {}",
        outcome.status
    );
}

#[test]
fn classifiers_reach_the_optimum() {
    let factors = [1.5, 0.75];
    for (number, case) in cases().iter().enumerate() {
        let labels: Vec<usize> = (0..case.rows.len()).map(|i| case.class(i, 2)).collect();
        let targets: Vec<f64> = labels.iter().map(|&y| if y == 0 { 1.0 } else { -1.0 }).collect();
        let costs: Vec<f64> =
            labels.iter().zip(&case.weights).map(|(&y, w)| case.c * w * factors[y]).collect();
        for loss in [LinearLoss::Hinge, LinearLoss::SquaredHinge, LinearLoss::Logistic] {
            for penalty in [Penalty::L2, Penalty::L1] {
                for bias in BIASES {
                    let mut solvers = vec![LinearSolver::Auto];
                    if penalty == Penalty::L2 {
                        let free = bias == Bias::Free;
                        match loss {
                            LinearLoss::Hinge => solvers.push(LinearSolver::Blocks),
                            _ if free => {}
                            LinearLoss::SquaredHinge => {
                                solvers.extend([LinearSolver::Dual, LinearSolver::Blocks]);
                            }
                            LinearLoss::Logistic => solvers.push(LinearSolver::Dual),
                        }
                    } else if loss == LinearLoss::Hinge {
                        continue;
                    }
                    let shape = Shape::Two(loss);
                    let best = optimum(case, shape, &targets, &costs, penalty, bias);
                    for (solver, layout) in
                        solvers.into_iter().flat_map(|s| [(s, Layout::Dense), (s, Layout::Sparse)])
                    {
                        let names = Labels::Int(labels.iter().map(|&y| y as i64).collect());
                        let weights = ClassWeights::Given(vec![
                            (widemargin::data::Label::Int(0), factors[0]),
                            (widemargin::data::Label::Int(1), factors[1]),
                        ]);
                        let svc = LinearSvc {
                            c: case.c,
                            loss,
                            penalty,
                            bias,
                            solver,
                            class_weights: weights,
                            options: options(),
                            ..LinearSvc::default()
                        };
                        let data = case.data(names, layout);
                        let model = svc.fit(&data, &Context::new()).unwrap();
                        let found =
                            objective(&model, 0, case, shape, &targets, &costs, penalty, bias);
                        let what = format!("case {number} {loss} {penalty} {bias} {solver}");
                        check(found, best, &model, &what);
                        let outcome = model.training.as_ref().unwrap().outcome;
                        let told = (outcome.primal - found).abs();
                        assert!(told <= 1e-6 * found.max(1.0), "{what}: told {}", outcome.primal);
                        if bias != Bias::Free {
                            let gap = outcome.gap();
                            assert!(gap > -1e-8 && gap < 1e-5 * best.max(1.0), "{what}: gap {gap}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn regressors_reach_the_optimum() {
    for (number, case) in cases().iter().enumerate() {
        let targets: Vec<f64> = (0..case.rows.len()).map(|i| 3.0 * case.score(i)).collect();
        let costs: Vec<f64> = case.weights.iter().map(|w| case.c * w).collect();
        for (squared, epsilon) in [(false, 0.3), (true, 0.3), (false, 0.0), (true, 0.0)] {
            for bias in BIASES {
                let shape = Shape::Tube { squared, epsilon };
                let best = optimum(case, shape, &targets, &costs, Penalty::L2, bias);
                let solvers: &[LinearSolver] = match (squared, bias) {
                    (true, Bias::Free) => &[LinearSolver::Newton],
                    (true, _) => &[LinearSolver::Newton, LinearSolver::Dual, LinearSolver::Blocks],
                    (false, _) => &[LinearSolver::Dual, LinearSolver::Blocks],
                };
                for &solver in solvers {
                    let svr =
                        LinearSvr { c: case.c, epsilon, squared, bias, solver, options: options() };
                    let data = case.data(Labels::Real(targets.clone()), Layout::Dense);
                    let model = svr.fit(&data, &Context::new()).unwrap();
                    let penalty = Penalty::L2;
                    let found = objective(&model, 0, case, shape, &targets, &costs, penalty, bias);
                    let what = format!("case {number} squared {squared} {epsilon} {bias} {solver}");
                    check(found, best, &model, &what);
                }
            }
        }
    }
}

/// Measurements as they come: far from 0, of different sizes and alike, on which descent along single
/// variables takes hundreds of thousands of passes.
#[test]
fn raw_measurements_reach_the_optimum_in_few_passes() {
    let mut next = signed_numbers(7);
    let mut row = |_| {
        let size = 5.0 + next();
        [size, 0.6 * size + 0.1 * next(), 4.0 * size + 0.3 * next(), 0.2 + 0.02 * next()]
    };
    let rows: Vec<[f64; FEATURES]> = (0..90).map(&mut row).collect();
    let noise = (0..90).map(|_| next()).collect();
    let case = Case { rows, noise, weights: vec![1.0; 90], c: 10.0 };
    let (penalty, bias) = (Penalty::L2, Bias::Appended(1.0));
    let check_passes = |model: &Model, found: f64, best: f64| {
        let outcome = model.training.as_ref().unwrap().outcome;
        check(found, best, model, &format!("objective {best}"));
        assert_eq!(outcome.status, Status::Solved);
        assert!(outcome.primal - outcome.dual <= 1e-8 * best, "{outcome:?} at {best}");
        assert!(outcome.blocks < 20_000, "{outcome:?} at {best}");
    };
    let options = LinearOptions { tol: Some(1e-6), ..options() };
    let costs = vec![case.c; 90];
    for epsilon in [0.0, 0.1] {
        let targets: Vec<f64> = (0..90).map(|i| case.score(i)).collect();
        let svr = LinearSvr { c: case.c, epsilon, bias, options, ..LinearSvr::default() };
        let data = case.data(Labels::Real(targets.clone()), Layout::Dense);
        let model = svr.fit(&data, &Context::new()).unwrap();
        let shape = Shape::Tube { squared: false, epsilon };
        let found = objective(&model, 0, &case, shape, &targets, &costs, penalty, bias);
        let best = optimum(&case, shape, &targets, &costs, penalty, bias);
        check_passes(&model, found, best);
    }
    let labels: Vec<i64> =
        (0..90).map(|i| i64::from(case.rows[i][2] + 3.0 * case.noise[i] > 20.0)).collect();
    let targets: Vec<f64> = labels.iter().map(|&y| if y == 0 { 1.0 } else { -1.0 }).collect();
    let data = case.data(Labels::Int(labels), Layout::Sparse);
    let class_order = ClassOrder::Sorted;
    let shape = Shape::Two(LinearLoss::Hinge);
    let (c, loss) = (case.c, LinearLoss::Hinge);
    let svc = LinearSvc { c, loss, bias, class_order, options, ..LinearSvc::default() };
    let model = svc.fit(&data, &Context::new()).unwrap();
    let found = objective(&model, 0, &case, shape, &targets, &costs, penalty, bias);
    check_passes(&model, found, optimum(&case, shape, &targets, &costs, penalty, bias));

    let multiclass = LinearMulticlass::CrammerSinger;
    let model = LinearSvc { multiclass, ..svc }.fit(&data, &Context::new()).unwrap();
    // Half the hinge machine of twice the costs and the weights.
    let costs = vec![2.0 * case.c; 90];
    let best = 0.5 * optimum(&case, shape, &targets, &costs, penalty, bias);
    check_passes(&model, model.training.as_ref().unwrap().outcome.primal, best);
}

#[test]
fn every_class_against_the_rest_is_at_its_optimum() {
    let case = &cases()[1];
    let labels: Vec<usize> = (0..case.rows.len()).map(|i| case.class(i, 3)).collect();
    let data = case.data(Labels::Int(labels.iter().map(|&y| y as i64).collect()), Layout::Sparse);
    let svc = LinearSvc { loss: LinearLoss::Hinge, options: options(), ..LinearSvc::default() };
    let model = svc.fit(&data, &Context::new()).unwrap();
    assert_eq!(model.offsets().len(), 3);
    let shape = Shape::Two(LinearLoss::Hinge);
    for f in 0..3 {
        let targets: Vec<f64> = labels.iter().map(|&y| if y == f { 1.0 } else { -1.0 }).collect();
        let (penalty, bias) = (Penalty::L2, Bias::Appended(1.0));
        let best = optimum(case, shape, &targets, &case.weights, penalty, bias);
        let found = objective(&model, f, case, shape, &targets, &case.weights, penalty, bias);
        check(found, best, &model, &format!("class {f}"));
    }
}

#[test]
fn crammer_and_singers_machine_reaches_the_optimum() {
    for (number, case) in cases().iter().enumerate() {
        for classes in [2, 3] {
            let labels: Vec<usize> = (0..case.rows.len()).map(|i| case.class(i, classes)).collect();
            let names = Labels::Int(labels.iter().map(|&y| y as i64).collect());
            let svc = LinearSvc {
                c: case.c,
                multiclass: LinearMulticlass::CrammerSinger,
                bias: Bias::None,
                class_order: ClassOrder::Sorted,
                options: options(),
                ..LinearSvc::default()
            };
            let model = svc.fit(&case.data(names, Layout::Dense), &Context::new()).unwrap();
            let mut program = Program::default();
            for _ in 0..classes * FEATURES {
                program.variable(1.0, 0.0);
            }
            let (mut found, mut weights) = (0.0, vec![[0.0; FEATURES]; classes]);
            for (m, own) in weights.iter_mut().enumerate() {
                model.vectors().copy_row(m, own);
                found += 0.5 * own.iter().map(|w| w * w).sum::<f64>();
            }
            for (i, row) in case.rows.iter().enumerate() {
                let cost = case.c * case.weights[i];
                let slack = program.variable(0.0, cost);
                program.at_most(vec![(slack, -1.0)], 0.0);
                let value =
                    |m: usize| -> f64 { row.iter().zip(&weights[m]).map(|(x, w)| x * w).sum() };
                let mut worst = 0.0_f64;
                for m in (0..classes).filter(|m| *m != labels[i]) {
                    let mut sum = vec![(slack, -1.0)];
                    for j in 0..FEATURES {
                        sum.push((m * FEATURES + j, row[j]));
                        sum.push((labels[i] * FEATURES + j, -row[j]));
                    }
                    program.at_most(sum, -1.0);
                    worst = worst.max(1.0 + value(m) - value(labels[i]));
                }
                found += cost * worst;
            }
            check(found, program.minimum(), &model, &format!("case {number}, {classes} classes"));
        }
    }
}

#[test]
fn the_one_class_machine_reaches_the_optimum() {
    for (number, case) in cases().iter().enumerate() {
        for nu in [0.2, 0.7] {
            let machine = LinearOneClass { nu, options: options() };
            let model =
                machine.fit(&case.data(Labels::None, Layout::Dense), &Context::new()).unwrap();
            let total = nu * case.weights.iter().sum::<f64>();
            let mut program = Program::default();
            for _ in 0..FEATURES {
                program.variable(1.0, 0.0);
            }
            let rho = program.variable(0.0, -total);
            let mut weights = [0.0; FEATURES];
            model.vectors().copy_row(0, &mut weights);
            let offset = model.offsets()[0];
            let mut found = 0.5 * weights.iter().map(|w| w * w).sum::<f64>() - total * offset;
            for (i, row) in case.rows.iter().enumerate() {
                let slack = program.variable(0.0, case.weights[i]);
                program.at_most(vec![(slack, -1.0)], 0.0);
                let mut sum = vec![(slack, -1.0), (rho, 1.0)];
                sum.extend(row.iter().enumerate().map(|(j, x)| (j, -x)));
                program.at_most(sum, 0.0);
                let z: f64 = row.iter().zip(&weights).map(|(x, w)| x * w).sum();
                found += case.weights[i] * (offset - z).max(0.0);
            }
            check(found, program.minimum(), &model, &format!("case {number}, nu {nu}"));
        }
    }
}
