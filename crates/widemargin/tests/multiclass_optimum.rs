//! The all-in-one machines against an interior-point solver on the primal problem, whose losses are
//! written out here machine by machine.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSolver, IPSolver, SolverStatus, SupportedConeT};
use widemargin::Context;
use widemargin::Status;
use widemargin::data::{Dataset, Dense, Label, Labels, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{AllInOne, Machine, Model, MulticlassSvc, Precision, SolverOptions, Svc};

use crate::common::{Numbers, conic_settings};

/// A small problem.
struct Case {
    rows: Vec<Vec<f64>>,
    labels: Vec<usize>,
    classes: usize,
    c: f64,
    gamma: Option<f64>,
}

/// Twenty-four problems: two to four classes, linear kernels of low rank and Gaussian ones,
/// duplicate points, contradicting duplicates, a zero row, an absent class.
fn cases() -> Vec<Case> {
    let mut numbers = Numbers(7);
    (0..24)
        .map(|index| {
            let n = 5 + numbers.below(9);
            let classes = 2 + index % 3;
            let mut rows: Vec<Vec<f64>> =
                (0..n).map(|_| (0..2).map(|_| 4.0 * numbers.next() - 2.0).collect()).collect();
            let mut labels: Vec<usize> = (0..n).map(|_| numbers.below(classes)).collect();
            if index % 4 == 1 {
                rows[1] = rows[0].clone();
                labels[1] = labels[0];
            }
            if index % 4 == 2 {
                rows[1] = rows[0].clone();
                labels[1] = (labels[0] + 1) % classes;
            }
            if index % 6 == 3 {
                rows[2] = vec![0.0; 2];
            }
            if index % 5 == 4 {
                labels.iter_mut().for_each(|y| *y %= classes - 1);
            }
            let c = [0.05, 0.5, 3.0, 40.0][numbers.below(4)];
            let gamma = (index % 2 == 0).then(|| 0.1 + numbers.next());
            Case { rows, labels, classes, c, gamma }
        })
        .collect()
}

impl Case {
    fn kernel_value(&self, i: usize, j: usize) -> f64 {
        let pairs = || self.rows[i].iter().zip(&self.rows[j]);
        match self.gamma {
            None => pairs().map(|(a, b)| a * b).sum(),
            Some(gamma) => (-gamma * pairs().map(|(a, b)| (a - b) * (a - b)).sum::<f64>()).exp(),
        }
    }

    fn kernel(&self) -> Kernel {
        self.gamma.map_or(Kernel::Linear, |gamma| Kernel::Gaussian { gamma })
    }

    fn data(&self) -> Dataset {
        let values = Dense::new(self.rows.len(), self.rows[0].len(), self.rows.concat()).unwrap();
        let labels = self.labels.iter().map(|&y| y as i64).collect();
        Dataset::new(Matrix::DenseF64(values), Labels::Int(labels)).unwrap()
    }

    fn fit(&self, machine: AllInOne, bias: bool, tol: f64) -> Model {
        let svc = MulticlassSvc {
            machine,
            c: self.c,
            kernel: self.kernel(),
            bias,
            classes: Some((0..self.classes as i64).map(Label::Int).collect()),
            options: SolverOptions { tol, precision: Precision::F64, ..SolverOptions::default() },
            ..MulticlassSvc::default()
        };
        svc.fit(&self.data(), &Context::new()).unwrap()
    }
}

/// Coefficients of the scores, target and slack of a constraint.
type Constraint = (Vec<(usize, f64)>, f64, usize);

/// The constraints of an example of class `y`.
fn constraints(machine: AllInOne, y: usize, d: usize) -> Vec<Constraint> {
    let others = || (0..d).filter(move |&c| c != y);
    let relative = |c: usize| vec![(y, 0.5), (c, -0.5)];
    let absolute = |c: usize| vec![(c, if c == y { 1.0 } else { -1.0 })];
    match machine {
        AllInOne::WestonWatkins => others().map(|c| (relative(c), 1.0, c)).collect(),
        AllInOne::CrammerSinger => others().map(|c| (relative(c), 1.0, 0)).collect(),
        AllInOne::LeeLinWahba => others().map(|c| (absolute(c), 1.0, c)).collect(),
        AllInOne::Adm => others().map(|c| (absolute(c), 1.0, 0)).collect(),
        AllInOne::Atm => (0..d).map(|c| (absolute(c), 1.0, 0)).collect(),
        AllInOne::Ats | AllInOne::OneVsAll => (0..d).map(|c| (absolute(c), 1.0, c)).collect(),
        AllInOne::Mmr => vec![(absolute(y), 1.0, y)],
        AllInOne::Reinforced => {
            let target = |c| if c == y { d as f64 - 1.0 } else { 1.0 };
            (0..d).map(|c| (absolute(c), target(c), c)).collect()
        }
    }
}

/// Rows φ with φᵢ·φⱼ = K(i, j), by Cholesky's factorisation with pivots.
fn feature_rows(case: &Case) -> Vec<Vec<f64>> {
    let n = case.rows.len();
    let mut rest: Vec<Vec<f64>> =
        (0..n).map(|i| (0..n).map(|j| case.kernel_value(i, j)).collect()).collect();
    let mut features = vec![Vec::new(); n];
    for _ in 0..n {
        let pivot = (0..n).max_by(|&a, &b| rest[a][a].total_cmp(&rest[b][b])).unwrap();
        if rest[pivot][pivot] < 1e-12 {
            break;
        }
        let root = rest[pivot][pivot].sqrt();
        let column: Vec<f64> = (0..n).map(|i| rest[i][pivot] / root).collect();
        for i in 0..n {
            features[i].push(column[i]);
            (0..n).for_each(|j| rest[i][j] -= column[i] * column[j]);
        }
    }
    features
}

/// Primal minimum over the weights of every class.
fn reference(case: &Case, machine: AllInOne, bias: bool) -> f64 {
    let features = feature_rows(case);
    let (n, m, d) = (case.rows.len(), features[0].len(), case.classes);
    let weight = |c: usize, j: usize| c * m + j;
    let offset = |c: usize| d * m + c;
    let slacks = d * m + if bias { d } else { 0 };
    let mut linear = vec![0.0; slacks];
    let (mut equal, mut below): (Vec<Vec<(usize, f64)>>, Vec<_>) = (Vec::new(), Vec::new());
    let mut bounds = Vec::new();
    if machine != AllInOne::OneVsAll {
        (0..m).for_each(|j| equal.push((0..d).map(|c| (weight(c, j), 1.0)).collect()));
        if bias {
            equal.push((0..d).map(|c| (offset(c), 1.0)).collect());
        }
    }
    for i in 0..n {
        let mut slack_of = vec![None; d];
        for (scores, target, r) in constraints(machine, case.labels[i], d) {
            let slack = *slack_of[r].get_or_insert_with(|| {
                linear.push(case.c);
                below.push(vec![(linear.len() - 1, -1.0)]);
                bounds.push(0.0);
                linear.len() - 1
            });
            let mut row = vec![(slack, -1.0)];
            for (c, factor) in scores {
                row.extend((0..m).map(|j| (weight(c, j), -factor * features[i][j])));
                if bias {
                    row.push((offset(c), -factor));
                }
            }
            below.push(row);
            bounds.push(-target);
        }
    }
    let size = linear.len();
    let dense = |rows: &[Vec<(usize, f64)>]| -> Vec<Vec<f64>> {
        let fill = |entries: &Vec<(usize, f64)>| {
            let mut row = vec![0.0; size];
            entries.iter().for_each(|&(at, value)| row[at] += value);
            row
        };
        rows.iter().map(fill).collect()
    };
    let mut quadratic = vec![vec![0.0; size]; size];
    (0..d * m).for_each(|at| quadratic[at][at] = 1.0);
    let cones =
        [SupportedConeT::ZeroConeT(equal.len()), SupportedConeT::NonnegativeConeT(below.len())];
    let right: Vec<f64> = vec![0.0; equal.len()].into_iter().chain(bounds).collect();
    equal.extend(below);
    let settings = conic_settings(1e-10);
    let quadratic = CscMatrix::from(&quadratic).to_triu();
    let constraints = CscMatrix::from(&dense(&equal));
    let mut solver =
        DefaultSolver::new(&quadratic, &linear, &constraints, &right, &cones, settings).unwrap();
    solver.solve();
    let status = solver.solution.status;
    assert!(matches!(status, SolverStatus::Solved | SolverStatus::AlmostSolved), "{status:?}");
    solver.solution.obj_val
}

fn agrees(machine: AllInOne, bias: bool) {
    for (index, case) in cases().iter().enumerate() {
        let model = case.fit(machine, bias, 1e-8);
        let outcome = model.training.as_ref().unwrap().outcome;
        let best = reference(case, machine, bias);
        let place = format!("{machine}, case {index}: {outcome:?}, expected {best}");
        assert_eq!(outcome.status, Status::Solved, "{place}");
        // An optimum of zero is met to a part of what an error costs.
        let scale = best.abs().max(0.1 * case.c);
        assert!((outcome.dual - best).abs() <= 1e-6 * scale, "{place}");
        assert!((outcome.primal - best).abs() <= 1e-6 * scale, "{place}");
        if machine != AllInOne::OneVsAll {
            for s in 0..model.support_count() {
                let sum: f64 = model.functions().iter().map(|f| f.coefficient(s)).sum();
                assert!(sum.abs() <= 1e-10 * case.c, "{place}: scores sum to zero");
            }
        }
    }
}

macro_rules! optimum {
    ($($name:ident, $with_bias:ident: $machine:ident;)*) => {
        $(
            #[test]
            fn $name() {
                agrees(AllInOne::$machine, false);
            }

            #[test]
            fn $with_bias() {
                agrees(AllInOne::$machine, true);
            }
        )*
    };
}

optimum! {
    weston_watkins, weston_watkins_with_bias: WestonWatkins;
    crammer_singer, crammer_singer_with_bias: CrammerSinger;
    lee_lin_wahba, lee_lin_wahba_with_bias: LeeLinWahba;
    absolute_largest_other, absolute_largest_other_with_bias: Adm;
    absolute_largest, absolute_largest_with_bias: Atm;
    absolute_sum, absolute_sum_with_bias: Ats;
    own_class_alone, own_class_alone_with_bias: Mmr;
    one_versus_all, one_versus_all_with_bias: OneVsAll;
    reinforced, reinforced_with_bias: Reinforced;
}

/// The published optima of five small problems (Shark's unit test and the four edge cases beside
/// it): five points, contradicting duplicates, a zero row, an absent class, a single example.
#[test]
fn published_optima() {
    let case = |rows: &[&[f64]], labels: &[usize], c: f64| Case {
        rows: rows.iter().map(|row| row.to_vec()).collect(),
        labels: labels.to_vec(),
        classes: 3,
        c,
        gamma: None,
    };
    let five: [&[f64]; 5] = [&[-1.0, -1.0], &[1.0, -1.0], &[0.0, 1.0], &[0.0, 2.0], &[0.0, 99.0]];
    let problems = [
        case(&five, &[0, 1, 2, 2, 2], 0.5),
        case(&[&[1.0], &[1.0]], &[0, 1], 0.5),
        case(&[&[0.0, 0.0], &[1.0, 2.0]], &[0, 1], 0.5),
        case(&[&[1.0, 0.0], &[0.0, 1.0], &[1.0, 1.0]], &[0, 1, 0], 1.0),
        case(&[&[1.0, 0.0]], &[2], 1.0),
    ];
    use AllInOne::*;
    let expected = [
        (WestonWatkins, [1.703125, 1.8125, 1.266667, 3.0625, 1.25]),
        (CrammerSinger, [1.333333, 1.0, 0.765625, 2.25, 0.8125]),
        (LeeLinWahba, [2.5, 1.916667, 1.583333, 4.375, 1.666667]),
        (Adm, [1.744792, 1.0, 0.895833, 2.666667, 0.916667]),
        (Atm, [1.744792, 1.0, 0.895833, 2.666667, 0.916667]),
        (Ats, [2.5, 2.666667, 2.083333, 4.833333, 1.75]),
        (Mmr, [0.916667, 0.916667, 0.65, 1.5, 0.666667]),
        (Reinforced, [3.75, 3.666667, 2.6, 6.714286, 2.666667]),
        (OneVsAll, [2.5, 2.5, 1.8, 4.0, 1.5]),
    ];
    for (machine, optima) in expected {
        for (index, (problem, optimum)) in problems.iter().zip(optima).enumerate() {
            let model = problem.fit(machine, false, 1e-9);
            let dual = model.training.unwrap().outcome.dual;
            assert!((dual - optimum).abs() < 1e-6, "{machine} G{}: {dual}", index + 1);
        }
    }
}

/// Two classes are the binary machine with bias: half of C for six of the machines, the same C for
/// those that charge both scores; the objective doubles.
#[test]
fn two_classes_reduce_to_the_binary_machine() {
    for case in cases().iter().filter(|case| case.classes == 2) {
        if case.labels.iter().all(|&y| y == case.labels[0]) {
            continue;
        }
        for machine in AllInOne::ALL {
            use AllInOne::{Ats, OneVsAll, Reinforced};
            let factor = if matches!(machine, Ats | Reinforced | OneVsAll) { 1.0 } else { 0.5 };
            let svc = Svc {
                c: factor * case.c,
                kernel: case.kernel(),
                options: SolverOptions {
                    tol: 1e-9,
                    precision: Precision::F64,
                    ..SolverOptions::default()
                },
                ..Svc::default()
            };
            let binary = svc.fit(&case.data(), &Context::new()).unwrap();
            let expected = 2.0 * binary.training.unwrap().outcome.dual;
            let dual = case.fit(machine, true, 1e-9).training.unwrap().outcome.dual;
            let scale = expected.abs().max(1e-3);
            assert!((dual - expected).abs() < 1e-6 * scale, "{machine}: {dual} not {expected}");
        }
    }
}
