//! Learnt kernel weights against an interior-point solver on the conic form, closed forms and published values.
//!
//! With non-negative weights of kernels of trace n the problem is (Lu 2005; Lanckriet et al. 2004)
//! max −2pᵀβ − θ subject to βᵀKᵢβ ≤ θ for every kernel, and its value is twice the primal optimum.

use std::ops::Range;

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSolver, IPSolver, SupportedConeT};
use widemargin::data::{Dataset, Dense, Label, Labels, Matrix};
use widemargin::kernel::{Gram, Kernel};
use widemargin::machine::specification::Value;
use widemargin::machine::{
    AllInOne, BaseMachine, Machine, Model, MulticlassSvc, MultipleKernel, OneClass, Precision,
    Scheme, SolverOptions, Svc, Svr, WeightRule,
};
use widemargin::{Context, Status};

use crate::common::{Numbers, conic_settings};

fn options(gap: f64) -> SolverOptions {
    SolverOptions { tol: gap, precision: Precision::F64, ..SolverOptions::default() }
}

fn table(rows: usize, columns: usize, values: Vec<f64>) -> Matrix {
    Matrix::DenseF64(Dense::new(rows, columns, values).unwrap())
}

fn poly(degree: u32) -> Kernel {
    Kernel::Polynomial { gamma: 1.0, coef0: 1.0, degree }
}

/// A kernel of one range of columns.
fn view(columns: Range<usize>, kernel: Kernel) -> Kernel {
    Kernel::View { columns: std::iter::once(columns).collect(), kernel: Box::new(kernel) }
}

/// Gram matrices side by side, and a view of each.
fn given(grams: &[Vec<f64>], n: usize) -> (Matrix, Vec<Kernel>) {
    let values =
        (0..n).flat_map(|i| grams.iter().flat_map(move |g| g[i * n..(i + 1) * n].to_vec()));
    let views = (0..grams.len()).map(|k| view(k * n..(k + 1) * n, Kernel::Precomputed));
    (table(n, n * grams.len(), values.collect()), views.collect())
}

/// Twice the primal objective, twice the bound, and the weights.
fn learnt(machine: &MultipleKernel, data: &Dataset) -> (f64, f64, Vec<f64>, Model) {
    let model = machine.fit(data, &Context::new()).unwrap();
    let training = model.training.as_ref().unwrap();
    assert_eq!(training.outcome.status, Status::Solved, "{:?}", training.outcome);
    let weights = training.parameters.iter().find(|(name, _)| name == "kernel-weights");
    let Some((_, Value::Reals(weights))) = weights.cloned() else { panic!("no weights") };
    assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    (2.0 * training.outcome.primal, 2.0 * training.outcome.dual, weights, model)
}

/// Row j of the result has Σ over its entries of products equal to the matrix (pivoted Cholesky).
fn factor(gram: &[f64], n: usize) -> Vec<Vec<f64>> {
    let mut rest = gram.to_vec();
    let mut columns = Vec::new();
    for _ in 0..n {
        let pivot = (0..n).max_by(|&a, &b| rest[a * n + a].total_cmp(&rest[b * n + b])).unwrap();
        if rest[pivot * n + pivot] < 1e-13 {
            break;
        }
        let root = rest[pivot * n + pivot].sqrt();
        let column: Vec<f64> = (0..n).map(|i| rest[i * n + pivot] / root).collect();
        for i in 0..n {
            (0..n).for_each(|j| rest[i * n + j] -= column[i] * column[j]);
        }
        columns.push(column);
    }
    columns
}

/// A dual problem: variables that belong to a row and a score, linear term, bounds and sums.
#[derive(Default)]
struct Dual {
    places: Vec<(usize, usize)>,
    linear: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
    sums: Vec<(Vec<usize>, f64)>,
}

impl Dual {
    fn push(&mut self, row: usize, score: usize, linear: f64, lower: f64, upper: f64) -> usize {
        self.places.push((row, score));
        self.linear.push(linear);
        self.lower.push(lower);
        self.upper.push(upper);
        self.linear.len() - 1
    }

    /// One binary problem with offset.
    fn binary(signs: &[f64], c: f64) -> Self {
        let mut dual = Self::default();
        for (row, &y) in signs.iter().enumerate() {
            dual.push(row, 0, -y, if y > 0.0 { 0.0 } else { -c }, if y > 0.0 { c } else { 0.0 });
        }
        dual.sums.push(((0..signs.len()).collect(), 0.0));
        dual
    }

    fn regression(targets: &[f64], c: f64, epsilon: f64) -> Self {
        let mut dual = Self::default();
        for (row, y) in targets.iter().enumerate() {
            dual.push(row, 0, epsilon - y, 0.0, c);
            dual.push(row, 0, -epsilon - y, -c, 0.0);
        }
        dual.sums.push(((0..2 * targets.len()).collect(), 0.0));
        dual
    }

    /// Lu 2005, (2.3): Σ over scores 0 for every row, α ≤ γd.
    fn crammer_singer(labels: &[i64], classes: usize, c: f64) -> Self {
        let mut dual = Self::default();
        for (row, &y) in labels.iter().enumerate() {
            let of = |k: usize| if k as i64 == y { 1.0 } else { 0.0 };
            let own = (0..classes).map(|k| dual.push(row, k, -of(k), -c, c * of(k)));
            let own = own.collect();
            dual.sums.push((own, 0.0));
        }
        dual
    }

    fn one_class(n: usize, nu: f64) -> Self {
        let mut dual = Self::default();
        (0..n).for_each(|row| {
            dual.push(row, 0, 0.0, 0.0, 1.0);
        });
        dual.sums.push(((0..n).collect(), nu * n as f64));
        dual
    }

    /// The same for every class or pair, on its own scores.
    fn joined(problems: Vec<(Vec<usize>, Self)>) -> Self {
        let mut all = Self::default();
        for (score, (rows, one)) in problems.into_iter().enumerate() {
            let first = all.linear.len();
            for v in 0..one.linear.len() {
                let (lower, upper) = (one.lower[v], one.upper[v]);
                all.push(rows[one.places[v].0], score, one.linear[v], lower, upper);
            }
            for (members, sum) in one.sums {
                all.sums.push((members.iter().map(|v| v + first).collect(), sum));
            }
        }
        all
    }

    /// Twice the primal optimum over the weights of `grams`, of trace n each over `n` rows, and the values
    /// K(µ)β + b of every variable's row and score at the solution.
    fn optimum(&self, grams: &[Vec<f64>], n: usize) -> (f64, Vec<f64>) {
        let size = self.linear.len() + 1;
        let scores = self.places.iter().map(|(_, score)| score + 1).max().unwrap();
        let mut linear: Vec<f64> = self.linear.iter().map(|p| 2.0 * p).collect();
        linear.push(1.0);
        let (mut rows, mut right, mut cones) = (Vec::new(), Vec::new(), Vec::new());
        let mut row = |entries: &[(usize, f64)], value: f64| {
            let mut dense = vec![0.0; size];
            entries.iter().for_each(|&(at, factor)| dense[at] += factor);
            rows.push(dense);
            right.push(value);
        };
        for (members, sum) in &self.sums {
            row(&members.iter().map(|&v| (v, 1.0)).collect::<Vec<_>>(), *sum);
        }
        cones.push(SupportedConeT::ZeroConeT(self.sums.len()));
        for v in 0..size - 1 {
            row(&[(v, 1.0)], self.upper[v]);
            row(&[(v, -1.0)], -self.lower[v]);
        }
        cones.push(SupportedConeT::NonnegativeConeT(2 * (size - 1)));
        for gram in grams {
            // ‖(2Lᵀβ, θ − 1)‖ ≤ θ + 1.
            let columns = factor(gram, n);
            row(&[(size - 1, -1.0)], 1.0);
            row(&[(size - 1, -1.0)], -1.0);
            for score in 0..scores {
                for column in &columns {
                    let own = self.places.iter().enumerate().filter(|(_, p)| p.1 == score);
                    row(&own.map(|(v, p)| (v, -2.0 * column[p.0])).collect::<Vec<_>>(), 0.0);
                }
            }
            cones.push(SupportedConeT::SecondOrderConeT(2 + scores * columns.len()));
        }
        let settings = conic_settings(1e-8);
        let zero = CscMatrix::from(&vec![vec![0.0; size]; size]).to_triu();
        let constraints = CscMatrix::from(&rows);
        let mut solver =
            DefaultSolver::new(&zero, &linear, &constraints, &right, &cones, settings).unwrap();
        solver.solve();
        let (primal, dual) = (solver.solution.obj_val, solver.solution.obj_val_dual);
        assert!((primal - dual).abs() <= 3e-7 * primal.abs(), "{:?}", solver.solution.status);
        (-0.5 * (primal + dual), self.values(&solver.solution.x, &solver.solution.z, grams, n))
    }

    /// Decision values times `factor` are `values`, up to an offset where no variable inside its bounds decides
    /// it, and up to the sign of a pair of classes.
    fn compare(&self, decided: &Dense<f64>, values: &[f64], factor: f64, place: &str) {
        let columns = decided.columns();
        for score in 0..=self.places.iter().map(|(_, score)| *score).max().unwrap() {
            let own: Vec<usize> =
                (0..values.len()).filter(|&v| self.places[v].1 == score).collect();
            let found = |v: usize| factor * decided.values()[self.places[v].0 * columns + score];
            let mean = |of: &dyn Fn(usize) -> f64| {
                own.iter().map(|&v| of(v)).sum::<f64>() / own.len() as f64
            };
            let (own_mean, other_mean) = (mean(&found), mean(&|v| values[v]));
            let spread = |v: usize| (found(v) - own_mean) * (values[v] - other_mean);
            let sign = if mean(&spread) < 0.0 { -1.0 } else { 1.0 };
            let offset = mean(&|v| sign * found(v) - values[v]);
            for &v in &own {
                let difference = sign * found(v) - values[v] - offset;
                let size = 1.0 + values[v].abs();
                assert!(difference.abs() <= 1e-3 * size, "{place}: {score}, {v}: {difference}");
            }
            if self.sums.len() == 1 {
                assert!(offset.abs() <= 1e-3, "{place}: {offset}");
            }
        }
    }

    /// Weights are the multipliers of the cones, offsets half of those of the sums.
    fn values(&self, x: &[f64], z: &[f64], grams: &[Vec<f64>], n: usize) -> Vec<f64> {
        let variables = self.linear.len();
        let scores = self.places.iter().map(|(_, score)| score + 1).max().unwrap();
        let mut start = self.sums.len() + 2 * variables;
        let mut kernel = vec![0.0; n * n];
        for gram in grams {
            let weight = z[start] + z[start + 1];
            kernel.iter_mut().zip(gram).for_each(|(sum, value)| *sum += weight * value);
            start += 2 + scores * factor(gram, n).len();
        }
        let value = |v: usize| {
            let (row, score) = self.places[v];
            let own = (0..variables).filter(|&u| self.places[u].1 == score);
            let product: f64 = own.map(|u| kernel[row * n + self.places[u].0] * x[u]).sum();
            // A sum over the scores of one row has no offset.
            let offset = |(s, (members, _)): (usize, &(Vec<usize>, f64))| {
                let own =
                    members.contains(&v) && members.iter().all(|&u| self.places[u].1 == score);
                if own { 0.5 * z[s] } else { 0.0 }
            };
            product + self.sums.iter().enumerate().map(offset).sum::<f64>()
        };
        (0..variables).map(value).collect()
    }
}

/// Kernel matrices of trace n over all rows.
fn grams(kernels: &[Kernel], features: &Matrix) -> Vec<Vec<f64>> {
    let n = features.rows();
    let of = |kernel: &Kernel| {
        let mut gram = Gram::of(kernel, features, &Context::new()).unwrap();
        gram.scale_to_trace(n as f64).unwrap();
        gram.values().to_vec()
    };
    kernels.iter().map(of).collect()
}

/// Rows around the centres of their classes, with some noise.
fn rows(numbers: &mut Numbers, n: usize, classes: usize) -> (Matrix, Vec<i64>) {
    let labels: Vec<i64> = (0..n).map(|i| (i % classes) as i64).collect();
    let values = labels.iter().flat_map(|&y| {
        let angle = y as f64 * 2.1;
        let noise = [numbers.next() - 0.5, numbers.next() - 0.5];
        [1.2 * angle.cos() + 2.4 * noise[0], 1.2 * angle.sin() + 2.4 * noise[1]]
    });
    let values = values.collect();
    (table(n, 2, values), labels)
}

fn close(found: f64, expected: f64, share: f64, place: &str) {
    assert!((found - expected).abs() <= share * expected.abs(), "{place}: {found} and {expected}");
}

/// A machine of five kinds, its dual problem in the conic form, and the factor between their objectives.
fn machine_and_dual(
    machine: usize,
    labels: &[i64],
    targets: &[f64],
    classes: usize,
    c: f64,
) -> (BaseMachine, Dual, f64) {
    let gap = 1e-8;
    let sign = |one: bool| if one { 1.0 } else { -1.0 };
    let n = labels.len();
    let all: Vec<usize> = (0..n).collect();
    let svc = |scheme| Svc { c, scheme, options: options(gap), ..Svc::default() };
    match machine {
        0 => {
            // The machines ask for ½(f_y − f_c) ≥ 1 − ξ, Crammer and Singer (2001) for f_y − f_c ≥ 1 − ξ.
            let machine = AllInOne::CrammerSinger;
            let svc =
                MulticlassSvc { machine, c: 4.0 * c, options: options(gap), ..Default::default() };
            (BaseMachine::Multiclass(svc), Dual::crammer_singer(labels, classes, c), 0.25)
        }
        1 => {
            let one = |k: usize| {
                let signs: Vec<f64> = labels.iter().map(|&y| sign(y == k as i64)).collect();
                (all.clone(), Dual::binary(&signs, c))
            };
            let count = if classes == 2 { 1 } else { classes };
            let problems = (0..count).map(one).collect();
            let scheme = if classes == 2 { Scheme::OneVsOne } else { Scheme::OneVsRest };
            (BaseMachine::Svc(svc(scheme)), Dual::joined(problems), 1.0)
        }
        2 => {
            let mut problems = Vec::new();
            for i in 0..classes as i64 {
                for j in i + 1..classes as i64 {
                    let of = |&row: &usize| labels[row] == i || labels[row] == j;
                    let rows: Vec<usize> = all.iter().copied().filter(of).collect();
                    let signs: Vec<f64> = rows.iter().map(|&r| sign(labels[r] == i)).collect();
                    problems.push((rows, Dual::binary(&signs, c)));
                }
            }
            (BaseMachine::Svc(svc(Scheme::OneVsOne)), Dual::joined(problems), 1.0)
        }
        3 => {
            let svr = Svr { c, epsilon: 0.2, options: options(gap), ..Svr::default() };
            (BaseMachine::Svr(svr), Dual::regression(targets, c, 0.2), 1.0)
        }
        _ => {
            let machine = OneClass { nu: 0.4, options: options(gap), ..OneClass::default() };
            (BaseMachine::OneClass(machine), Dual::one_class(n, 0.4), 1.0)
        }
    }
}

#[test]
fn non_negative_weights_reach_the_optimum_of_the_conic_form() {
    let mut numbers = Numbers(11);
    for case in 0..36 {
        let classes = 2 + case % 4;
        let n = 12 + 2 * (case % 5);
        let (features, labels) = rows(&mut numbers, n, classes);
        let mut kernels = vec![Kernel::Linear, poly(2), Kernel::Gaussian { gamma: 0.5 }];
        if case % 3 == 0 {
            kernels.extend([
                poly(3),
                Kernel::Gaussian { gamma: 3.0 },
                Kernel::Gaussian { gamma: 0.05 },
            ]);
        }
        let matrices = grams(&kernels, &features);
        let c = [0.2, 1.5, 20.0][case % 3];
        let targets: Vec<f64> = (0..n).map(|i| labels[i] as f64 + numbers.next()).collect();
        let (machine, dual, factor) = machine_and_dual(case / 4 % 5, &labels, &targets, classes, c);
        let labels = match machine {
            BaseMachine::Svr(_) => Labels::Real(targets),
            _ => Labels::Int(labels),
        };
        let data = Dataset::new(features, labels).unwrap();
        let machine = MultipleKernel { kernels, ..MultipleKernel::new(machine) };
        let (expected, values) = dual.optimum(&matrices, n);
        let (t, bound, weights, model) = learnt(&machine, &data);
        let place = format!("case {case}, weights {weights:?}");
        close(factor * t, expected, 1e-6, &place);
        close(factor * bound, expected, 1e-6, &place);
        assert!(factor * bound <= expected + 3e-7 * expected.abs(), "{place}");
        let decided =
            model.predictor(&Context::new()).unwrap().decision_values(data.features()).unwrap();
        dual.compare(&decided, &values, factor.sqrt(), &place);
    }
}

/// NumPy's default_rng(0): three centres normal(3 × 2) · 1.5, 20 rows around them.
const KO_ROWS: [f64; 40] = [
    1.4925953767702271,
    0.7489236681922893,
    0.25689873985793055,
    -1.1080712953164928,
    -1.4267785222790188,
    0.5837185617114706,
    -2.1364354429987444,
    -0.41694895886949856,
    -0.285276971588142,
    -0.574917178973892,
    -1.3477630425989764,
    0.2260924259950725,
    0.6002258680142227,
    0.8443560745057248,
    0.8320993127208889,
    1.5238136462792453,
    -1.4686987332282802,
    0.8939026524572468,
    1.0920655132918986,
    -0.10414499717607827,
    0.21713472631111475,
    -0.7643752005288599,
    -1.2612298854090056,
    0.7625877058342765,
    -0.821022851898646,
    -0.4073328698086659,
    0.8014089657504454,
    0.6981957604153672,
    -0.5888449372353256,
    0.8977652914041485,
    -0.46523327777824947,
    -0.3277709286297223,
    1.7446094457262527,
    1.6507813209503204,
    -2.0625695918457865,
    2.05631635710329,
    1.5344707554223944,
    0.5831541057634746,
    1.2250896059942267,
    -0.15657263880686823,
];

/// NumPy's default_rng(1): uniform(−3, 3) and 0.2 (x² + 1) + uniform(−1, 1).
const REGRESSION: [[f64; 20]; 2] = [
    [
        0.0709297482015403,
        2.702782177955612,
        -2.135042323682198,
        2.6918966828234634,
        -1.1290112879370873,
        -0.4600413061645461,
        1.9662155629226508,
        -0.5448051817850326,
        0.29756212603835674,
        -2.83464532054159,
        1.521078652048839,
        0.2288598793156691,
        -1.021609701005447,
        1.7305722205704264,
        -1.18083102425013,
        -0.27901266311609074,
        -2.1957498165170115,
        -0.5813220813172246,
        -1.7792685559431023,
        -1.426119957348903,
    ],
    [
        0.7017355510960919,
        1.2218238162669761,
        1.0820630936461257,
        2.6107359498016702,
        1.3782476849854457,
        0.6919074822225836,
        1.0556544390707159,
        -0.18685505468929386,
        -0.4609873386792529,
        2.7468936450859314,
        0.6948732242395002,
        -0.5577934061863828,
        0.6557167873126887,
        1.3523422708066073,
        0.7048789836724032,
        1.050165022817632,
        0.24344920467530362,
        0.3247655989654413,
        0.7518310846043781,
        -0.26853721515048135,
    ],
];

fn crammer_singer(gamma: f64, gap: f64) -> BaseMachine {
    let machine = AllInOne::CrammerSinger;
    let c = 4.0 * gamma;
    BaseMachine::Multiclass(MulticlassSvc {
        machine,
        c,
        options: options(gap),
        ..Default::default()
    })
}

#[test]
fn fourteen_labelled_of_twenty_rows_have_the_values_of_the_semidefinite_program() {
    let features = table(20, 2, KO_ROWS.to_vec());
    let labels = (0..20).map(|i| if i < 14 { i % 3 } else { -1 }).collect();
    let data = Dataset::new(features, Labels::Int(labels)).unwrap();
    let all = [Kernel::Linear, poly(2), Kernel::Gaussian { gamma: 0.5 }];
    let fit = |kernels: &[Kernel], weights, jitter| {
        let machine = MultipleKernel {
            kernels: kernels.to_vec(),
            weights,
            jitter,
            unlabelled: Some(Label::Int(-1)),
            ..MultipleKernel::new(crammer_singer(1.5, 1e-7))
        };
        let (t, bound, weights, _) = learnt(&machine, &data);
        (0.25 * t, 0.25 * bound, weights)
    };
    let (single, ..) = fit(&all[2..], WeightRule::NonNegative, 0.0);
    close(single, 2.0 * 9.491435, 1e-6, "the Gaussian kernel alone");
    let (plain, bound, weights) = fit(&all, WeightRule::NonNegative, 0.0);
    close(plain, 18.982870, 1e-6, "non-negative");
    close(bound, 18.982870, 1e-6, "its bound");
    assert!(weights[2] > 1.0 - 1e-4, "{weights:?}");
    let (signed, bound, _) = fit(&all, WeightRule::Signed, 0.0);
    close(signed, 18.062395, 1e-5, "signed");
    close(bound, 18.062395, 1e-5, "its bound");
    for kernel in &all {
        let (alone, ..) = fit(std::slice::from_ref(kernel), WeightRule::Uniform, 0.0);
        assert!(signed <= plain && plain <= alone * (1.0 + 1e-6));
    }
}

#[test]
fn fifteen_of_twenty_rows_have_the_regression_values_of_the_semidefinite_program() {
    let targets = (0..20).map(|i| if i < 15 { REGRESSION[1][i].to_string() } else { "?".into() });
    let features = table(20, 1, REGRESSION[0].to_vec());
    let data = Dataset::new(features, Labels::Text(targets.collect())).unwrap();
    let fit = |weights, jitter, gap| {
        let svr = Svr { c: 3.0, epsilon: 0.3, options: options(gap), ..Svr::default() };
        let machine = MultipleKernel {
            kernels: vec![poly(1), poly(2), poly(3), Kernel::Gaussian { gamma: 0.5 }],
            weights,
            jitter,
            unlabelled: Some(Label::Text("?".into())),
            ..MultipleKernel::new(BaseMachine::Svr(svr))
        };
        learnt(&machine, &data)
    };
    let (plain, bound, weights, _) = fit(WeightRule::NonNegative, 0.0, 1e-7);
    close(plain, 16.05604, 1e-6, "non-negative");
    close(bound, 16.05604, 1e-6, "its bound");
    assert!((weights[1] - 0.229).abs() < 0.01 && (weights[3] - 0.636).abs() < 0.01, "{weights:?}");
    let (signed, bound, ..) = fit(WeightRule::Signed, 1e-3, 1e-6);
    close(signed, 14.111381, 1e-5, "signed");
    close(bound, 14.111381, 1e-5, "its bound");
}

fn identity_and_ones(n: usize) -> (Matrix, Vec<Kernel>) {
    let identity = (0..n * n).map(|at| if at % (n + 1) == 0 { 1.0 } else { 0.0 }).collect();
    given(&[identity, vec![1.0; n * n]], n)
}

#[test]
fn the_identity_and_the_matrix_of_ones_have_closed_forms() {
    let (features, kernels) = identity_and_ones(3);
    let data = Dataset::new(features, Labels::Int(vec![1, 2, 3])).unwrap();
    for (weights, mu, expected) in
        [(WeightRule::Signed, [1.5, -0.5], 4.0 / 3.0), (WeightRule::NonNegative, [1.0, 0.0], 2.0)]
    {
        let kernels = kernels.clone();
        let base = crammer_singer(1.0, 1e-8);
        let machine = MultipleKernel { kernels, weights, ..MultipleKernel::new(base) };
        let (t, bound, found, _) = learnt(&machine, &data);
        close(0.25 * t, expected, 1e-6, "t");
        close(0.25 * bound, expected, 1e-6, "bound");
        assert!(found.iter().zip(mu).all(|(a, b)| (a - b).abs() < 1e-5), "{found:?}");
    }
    let (features, kernels) = identity_and_ones(2);
    let data = Dataset::new(features, Labels::Real(vec![1.0, -1.0])).unwrap();
    for (weights, mu, expected) in
        [(WeightRule::Signed, [2.0, -1.0], 0.64), (WeightRule::NonNegative, [1.0, 0.0], 1.28)]
    {
        let svr = Svr { c: 10.0, epsilon: 0.2, options: options(1e-8), ..Svr::default() };
        let (kernels, base) = (kernels.clone(), BaseMachine::Svr(svr));
        let machine = MultipleKernel { kernels, weights, ..MultipleKernel::new(base) };
        let (t, bound, found, _) = learnt(&machine, &data);
        close(t, expected, 1e-6, "t");
        close(bound, expected, 1e-6, "bound");
        assert!(found.iter().zip(mu).all(|(a, b)| (a - b).abs() < 1e-5), "{found:?}");
    }
}

#[test]
fn weights_are_ordered_and_candidates_can_repeat_or_change_their_scale() {
    let mut numbers = Numbers(5);
    let (features, labels) = rows(&mut numbers, 24, 3);
    let data = Dataset::new(features, Labels::Int(labels)).unwrap();
    let fit = |kernels: &[Kernel], weights| {
        let svc = Svc { c: 2.0, options: options(1e-6), ..Svc::default() };
        let machine = MultipleKernel {
            kernels: kernels.to_vec(),
            weights,
            jitter: 1e-3,
            ..MultipleKernel::new(BaseMachine::Svc(svc))
        };
        learnt(&machine, &data).0
    };
    let kernels = [Kernel::Linear, poly(2), Kernel::Gaussian { gamma: 0.4 }];
    let signed = fit(&kernels, WeightRule::Signed);
    let plain = fit(&kernels, WeightRule::NonNegative);
    let norm = fit(&kernels, WeightRule::Norm(2.0));
    let uniform = fit(&kernels, WeightRule::Uniform);
    let room = 1.0 + 2e-6;
    assert!(signed <= plain * room && plain <= norm * room && plain <= uniform * room);
    for kernel in &kernels {
        assert!(plain <= fit(std::slice::from_ref(kernel), WeightRule::Uniform) * room);
    }
    assert!(plain <= fit(&kernels[..2], WeightRule::NonNegative) * room);
    let repeated = [&kernels[..], &kernels[2..]].concat();
    close(fit(&repeated, WeightRule::NonNegative), plain, 2e-6, "a repeated candidate");
    let mut scaled = kernels.to_vec();
    scaled[1] = Kernel::Sum(vec![(7.0, poly(2))]);
    close(fit(&scaled, WeightRule::NonNegative), plain, 2e-6, "a scaled candidate");
}

#[test]
fn given_tables_train_and_predict_as_their_kernels_do() {
    let mut numbers = Numbers(8);
    let (features, labels) = rows(&mut numbers, 30, 3);
    let kernels = vec![Kernel::Linear, poly(2), Kernel::Gaussian { gamma: 0.4 }];
    let context = Context::new();
    let tables: Vec<Vec<f64>> = kernels
        .iter()
        .map(|kernel| Gram::of(kernel, &features, &context).unwrap().values().to_vec())
        .collect();
    let (stacked, views) = given(&tables, 30);
    let svc = Svc { c: 2.0, options: options(1e-7), ..Svc::default() };
    let base = MultipleKernel::new(BaseMachine::Svc(svc));
    let by_name = MultipleKernel { kernels, ..base.clone() };
    let by_table = MultipleKernel { kernels: views, ..base };
    let labels = Labels::Int(labels);
    let (_, _, _, named) =
        learnt(&by_name, &Dataset::new(features.clone(), labels.clone()).unwrap());
    let (_, _, _, tabled) = learnt(&by_table, &Dataset::new(stacked.clone(), labels).unwrap());
    let left = named.predictor(&context).unwrap().decision_values(&features).unwrap();
    let right = tabled.predictor(&context).unwrap().decision_values(&stacked).unwrap();
    let pairs = left.values().iter().zip(right.values());
    assert!(pairs.clone().all(|(a, b)| (a - b).abs() < 1e-3), "{:?}", pairs.collect::<Vec<_>>());
}

#[test]
fn bad_candidates_have_messages_of_their_own() {
    let mut numbers = Numbers(9);
    let (features, labels) = rows(&mut numbers, 6, 2);
    let svc = Svc { options: options(1e-3), ..Svc::default() };
    let base = MultipleKernel::new(BaseMachine::Svc(svc));
    let message = |machine: MultipleKernel, features: Matrix, labels: Vec<i64>| {
        let data = Dataset::new(features, Labels::Int(labels)).unwrap();
        machine.fit(&data, &Context::new()).unwrap_err().to_string()
    };
    let none = message(base.clone(), features.clone(), labels.clone());
    assert!(none.contains("at least one kernel"), "{none}");
    let kernels = vec![Kernel::Linear, poly(2)];
    let two = MultipleKernel { kernels, ..base.clone() };
    let one_class = message(two.clone(), features.clone(), vec![4; 6]);
    assert!(one_class.contains("at least two classes"), "{one_class}");
    let zeros = message(two.clone(), table(6, 2, vec![0.0; 12]), labels.clone());
    assert!(zeros.contains("1 (linear): expected a positive trace"), "{zeros}");
    let (mut values, views) = given(&[vec![1.0; 36], vec![1.0; 36]], 6);
    let given_two = MultipleKernel { kernels: views, ..base.clone() };
    let nan = table(6, 12, (0..72).map(|i| if i == 40 { f64::NAN } else { 1.0 }).collect());
    let nan = message(given_two.clone(), nan, labels.clone());
    assert!(nan.contains("row 4, feature 5"), "{nan}");
    if let Matrix::DenseF64(dense) = &values {
        let mut changed = dense.values().to_vec();
        changed[7] = 5.0;
        values = table(6, 12, changed);
    }
    let asymmetric = message(given_two, values, labels.clone());
    assert!(asymmetric.contains("2 (precomputed): expected a symmetric table"), "{asymmetric}");
    let wide = view(0..7, Kernel::Precomputed);
    let oblong = MultipleKernel { kernels: vec![wide], ..base.clone() };
    let oblong = message(oblong, table(6, 7, vec![1.0; 42]), labels.clone());
    assert!(oblong.contains("as many columns as training rows"), "{oblong}");
    let missing = view(1..3, Kernel::Linear);
    let missing = MultipleKernel { kernels: vec![missing], ..base };
    let missing = message(missing, features, labels);
    assert!(missing.contains("columns of a view: expected 3, found 2"), "{missing}");
}
