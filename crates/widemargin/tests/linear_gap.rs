//! Ill-conditioned linear problems at the default tolerance: solved means within the duality gap, by
//! Newton's method with the full Hessian (smooth losses) and an interior-point solver (hinge).

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, SupportedConeT};
use widemargin::Context;
use widemargin::Status;
use widemargin::data::read::{ReadOptions, read};
use widemargin::data::{Dataset, Dense, Labels, Layout, Matrix};
use widemargin::machine::{
    LinearLoss, LinearMulticlass, LinearOneClass, LinearOptions, LinearSolver, LinearSvc,
    LinearSvr, Machine, Penalty,
};

/// The default of [`LinearOptions::gap`].
const GAP: f64 = 1e-3;

/// Standardised rows whose columns are nearly linear combinations of a few, and noisy classes.
struct Correlated {
    rows: usize,
    width: usize,
    values: Vec<f64>,
    targets: Vec<f64>,
}

impl Correlated {
    fn new(rows: usize, width: usize, seed: u64) -> Self {
        let mut state = seed;
        let mut next = move || {
            state =
                state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
            (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
        };
        const FACTORS: usize = 6;
        let loadings: Vec<f64> = (0..FACTORS * width).map(|_| next()).collect();
        let (mut values, mut targets) = (vec![0.0; rows * width], vec![0.0; rows]);
        for i in 0..rows {
            let factors: Vec<f64> = (0..FACTORS).map(|_| next()).collect();
            for j in 0..width {
                let common: f64 = (0..FACTORS).map(|f| factors[f] * loadings[f * width + j]).sum();
                values[i * width + j] = common + 0.02 * next();
            }
            let score = factors[0] - 0.7 * factors[1] + 0.3 * next();
            targets[i] = if score > 0.0 { 1.0 } else { -1.0 };
        }
        standardise(&mut values, width);
        Self { rows, width, values, targets }
    }

    fn data(&self, layout: Layout) -> Dataset {
        let table = Dense::new(self.rows, self.width, self.values.clone()).unwrap();
        let labels = Labels::Int(self.targets.iter().map(|&t| i64::from(t < 0.0)).collect());
        Dataset::new(Matrix::DenseF64(table).into_layout(layout), labels).unwrap()
    }

    /// A row with the constant feature.
    fn row(&self, i: usize) -> Vec<f64> {
        let own = &self.values[i * self.width..][..self.width];
        own.iter().copied().chain([1.0]).collect()
    }

    /// The least objective of a smooth loss, by Newton's method with the full Hessian.
    fn newton(&self, c: f64, loss: LinearLoss) -> f64 {
        let d = self.width + 1;
        let rows: Vec<Vec<f64>> = (0..self.rows).map(|i| self.row(i)).collect();
        let objective = |w: &[f64]| {
            let penalty = 0.5 * w.iter().map(|w| w * w).sum::<f64>();
            let each = rows.iter().zip(&self.targets).map(|(x, t)| {
                let margin: f64 = t * x.iter().zip(w).map(|(x, w)| x * w).sum::<f64>();
                match loss {
                    LinearLoss::Logistic => (-margin.abs()).exp().ln_1p() + (-margin).max(0.0),
                    _ => (1.0 - margin).max(0.0).powi(2),
                }
            });
            penalty + c * each.sum::<f64>()
        };
        let mut w = vec![0.0; d];
        for _ in 0..200 {
            let mut gradient = w.clone();
            let mut hessian = vec![0.0; d * d];
            (0..d).for_each(|j| hessian[j * d + j] = 1.0);
            for (x, t) in rows.iter().zip(&self.targets) {
                let margin: f64 = t * x.iter().zip(&w).map(|(x, w)| x * w).sum::<f64>();
                let (slope, curvature) = match loss {
                    LinearLoss::Logistic => {
                        let p = 1.0 / (1.0 + margin.exp());
                        (-p, p * (1.0 - p))
                    }
                    _ if margin < 1.0 => (2.0 * (margin - 1.0), 2.0),
                    _ => (0.0, 0.0),
                };
                for j in 0..d {
                    gradient[j] += c * slope * t * x[j];
                    (0..=j).for_each(|k| hessian[j * d + k] += c * curvature * x[j] * x[k]);
                }
            }
            let step = cholesky_solve(&mut hessian, &gradient);
            let slope: f64 = step.iter().zip(&gradient).map(|(s, g)| s * g).sum();
            let (before, mut share) = (objective(&w), 1.0);
            let moved = |share: f64| -> Vec<f64> {
                w.iter().zip(&step).map(|(w, s)| w - share * s).collect()
            };
            while objective(&moved(share)) > before - 1e-4 * share * slope && share > 1e-12 {
                share *= 0.5;
            }
            w = moved(share);
            if slope < 1e-12 * before {
                break;
            }
        }
        objective(&w)
    }

    /// The least objective of the hinge loss.
    fn hinge(&self, c: f64) -> f64 {
        let (n, d) = (self.rows, self.width + 1);
        let linear: Vec<f64> = (0..d + n).map(|k| if k < d { 0.0 } else { c }).collect();
        self.least(&[], (0..d, 1.0), &linear)
    }

    /// The least objective of the squared hinge loss with the ℓ1 penalty: Σ uⱼ + C Σ ξᵢ² with |wⱼ| ≤ uⱼ.
    fn squared_hinge_l1(&self, c: f64) -> f64 {
        let (n, d) = (self.rows, self.width + 1);
        let mut sizes = Vec::new();
        for column in 0..d {
            for sign in [1.0, -1.0] {
                sizes.push([(column, sign), (d + n + column, -1.0)]);
            }
        }
        let linear: Vec<f64> = (0..2 * d + n).map(|k| f64::from(u8::from(k >= d + n))).collect();
        self.least(&sizes, (d..d + n, 2.0 * c), &linear)
    }

    /// The least value of ⟨q, x⟩ + ½h Σ xₖ² over some k, by an interior-point solver. x begins with weights w and
    /// slacks ξ ≥ 0, tᵢ⟨w, xᵢ⟩ ≥ 1 − ξᵢ; sums over two entries in `at_most_zero` are at most 0.
    fn least(
        &self,
        at_most_zero: &[[(usize, f64); 2]],
        (curved, curvature): (std::ops::Range<usize>, f64),
        linear: &[f64],
    ) -> f64 {
        let (n, d) = (self.rows, self.width + 1);
        let (mut i, mut j, mut v) = (Vec::new(), Vec::new(), Vec::new());
        let mut entry = |row: usize, column: usize, value: f64| {
            i.push(row);
            j.push(column);
            v.push(value);
        };
        for row in 0..n {
            for (column, x) in self.row(row).into_iter().enumerate() {
                entry(row, column, -self.targets[row] * x);
            }
            entry(row, d + row, -1.0);
            entry(n + row, d + row, -1.0);
        }
        for (row, pair) in at_most_zero.iter().enumerate() {
            pair.iter().for_each(|&(column, value)| entry(2 * n + row, column, value));
        }
        let (height, width) = (2 * n + at_most_zero.len(), linear.len());
        let a = CscMatrix::new_from_triplets(height, width, i, j, v);
        let diagonal: Vec<usize> = curved.collect();
        let values = vec![curvature; diagonal.len()];
        let p = CscMatrix::new_from_triplets(width, width, diagonal.clone(), diagonal, values);
        let bounds: Vec<f64> = (0..height).map(|k| if k < n { -1.0 } else { 0.0 }).collect();
        let cones = [SupportedConeT::NonnegativeConeT(height)];
        let settings = DefaultSettingsBuilder::default().verbose(false).build().unwrap();
        let mut solver = DefaultSolver::new(&p, linear, &a, &bounds, &cones, settings).unwrap();
        solver.solve();
        solver.solution.obj_val
    }

    /// A bound from below on the objective of logistic regression with the ℓ1 penalty: the dual objective
    /// −C Σ (s ln s + (1 − s) ln(1 − s)) at the probabilities s of errors under `weights`, divided until
    /// |Σ C sᵢtᵢxᵢⱼ| ≤ 1.
    fn logistic_l1_bound(&self, c: f64, weights: &[f64]) -> f64 {
        let mut sums = vec![0.0; self.width + 1];
        let mut shares = Vec::new();
        for i in 0..self.rows {
            let x = self.row(i);
            let margin: f64 =
                self.targets[i] * x.iter().zip(weights).map(|(x, w)| x * w).sum::<f64>();
            let share = 1.0 / (1.0 + margin.exp());
            sums.iter_mut().zip(&x).for_each(|(sum, x)| *sum += c * share * self.targets[i] * x);
            shares.push(share);
        }
        let largest = sums.iter().fold(1.0_f64, |most, sum| most.max(sum.abs()));
        let entropy =
            |s: f64| if s > 0.0 && s < 1.0 { s * s.ln() + (1.0 - s) * (1.0 - s).ln() } else { 0.0 };
        -c * shares.iter().map(|share| entropy(share / largest)).sum::<f64>()
    }
}

/// Gives every column mean 0 and variance 1.
fn standardise(values: &mut [f64], width: usize) {
    let rows = values.len() / width;
    for j in 0..width {
        let column = || (0..rows).map(|i| values[i * width + j]);
        let mean = column().sum::<f64>() / rows as f64;
        let variance = column().map(|v| (v - mean).powi(2)).sum::<f64>() / rows as f64;
        for i in 0..rows {
            values[i * width + j] = (values[i * width + j] - mean) / variance.sqrt();
        }
    }
}

/// A⁻¹b, given the lower triangle of A.
fn cholesky_solve(a: &mut [f64], b: &[f64]) -> Vec<f64> {
    let d = b.len();
    let mut x = b.to_vec();
    for j in 0..d {
        for k in 0..=j {
            let sum: f64 = (0..k).map(|l| a[j * d + l] * a[k * d + l]).sum();
            let rest = a[j * d + k] - sum;
            a[j * d + k] = if j == k { rest.sqrt() } else { rest / a[k * d + k] };
        }
        let sum: f64 = (0..j).map(|l| a[j * d + l] * x[l]).sum();
        x[j] = (x[j] - sum) / a[j * d + j];
    }
    for j in (0..d).rev() {
        let sum: f64 = (j + 1..d).map(|l| a[l * d + j] * x[l]).sum();
        x[j] = (x[j] - sum) / a[j * d + j];
    }
    x
}

#[test]
fn solved_means_close_to_the_optimum_on_ill_conditioned_rows() {
    for (rows, width) in [(160, 40), (60, 90)] {
        let case = Correlated::new(rows, width, 11);
        for c in [1.0, 100.0, 10_000.0] {
            for loss in [LinearLoss::Hinge, LinearLoss::SquaredHinge, LinearLoss::Logistic] {
                let best = match loss {
                    LinearLoss::Hinge => case.hinge(c),
                    _ => case.newton(c, loss),
                };
                let mut solvers = vec![LinearSolver::Auto, LinearSolver::Dual];
                match loss {
                    LinearLoss::Logistic => solvers.push(LinearSolver::Newton),
                    LinearLoss::SquaredHinge => {
                        solvers.extend([LinearSolver::Newton, LinearSolver::Blocks]);
                    }
                    LinearLoss::Hinge => {}
                }
                for (solver, layout) in
                    solvers.into_iter().flat_map(|s| [(s, Layout::Dense), (s, Layout::Sparse)])
                {
                    let svc = LinearSvc { c, loss, solver, ..LinearSvc::default() };
                    let model = svc.fit(&case.data(layout), &Context::new()).unwrap();
                    let outcome = model.training.unwrap().outcome;
                    let what = format!(
                        "{rows} × {width}, C = {c}, {loss} {solver}: {outcome:?} for {best}"
                    );
                    assert_eq!(outcome.status, Status::Solved, "{what}");
                    assert!(outcome.gap() <= GAP * outcome.primal, "{what}");
                    let excess = outcome.primal - best;
                    assert!(excess > -1e-6 * best && excess <= GAP * best, "{what}");
                    assert!(outcome.dual <= best * (1.0 + 1e-6), "{what}");
                }
            }
        }
    }
}

#[test]
fn solved_means_close_to_the_optimum_with_the_l1_penalty() {
    for (rows, width, c) in [(160, 40, 1.0), (160, 40, 100.0), (60, 90, 100.0)] {
        let case = Correlated::new(rows, width, 11);
        for (loss, layout) in [LinearLoss::SquaredHinge, LinearLoss::Logistic]
            .into_iter()
            .flat_map(|loss| [(loss, Layout::Dense), (loss, Layout::Sparse)])
        {
            let svc = LinearSvc { c, loss, penalty: Penalty::L1, ..LinearSvc::default() };
            let model = svc.fit(&case.data(layout), &Context::new()).unwrap();
            let outcome = model.training.as_ref().unwrap().outcome;
            let best = match loss {
                LinearLoss::Logistic => {
                    let linear = model.linear().unwrap();
                    let mut weights = vec![0.0; width];
                    linear.weights.copy_row(0, &mut weights);
                    weights.push(-linear.offsets[0]);
                    let signed =
                        |sign: f64| -> Vec<f64> { weights.iter().map(|w| sign * w).collect() };
                    let bound = |sign| case.logistic_l1_bound(c, &signed(sign));
                    bound(1.0).max(bound(-1.0))
                }
                _ => case.squared_hinge_l1(c),
            };
            let what = format!("{rows} × {width}, C = {c}, {loss}: {outcome:?} for {best}");
            assert_eq!(outcome.status, Status::Solved, "{what}");
            assert!(outcome.gap() <= GAP * outcome.primal, "{what}");
            let excess = outcome.primal - best;
            assert!(excess > -1e-6 * best && excess <= 2.0 * GAP * best, "{what}");
        }
    }
}

#[test]
fn passes_that_run_out_are_followed_by_a_second_order_method_that_costs_little_more() {
    for (rows, width) in [(160, 40), (60, 90)] {
        let case = Correlated::new(rows, width, 11);
        for c in [1.0, 100.0, 1e4, 1e6] {
            let best = case.hinge(c);
            let found = |passes: u64| {
                // The defaults of Python and of LIBLINEAR's program but for the number of passes.
                let (tol, max_iterations) = (Some(1e-4), Some(passes));
                let options = LinearOptions { tol, max_iterations, ..LinearOptions::default() };
                let svc = LinearSvc { c, loss: LinearLoss::Hinge, options, ..LinearSvc::default() };
                let model = svc.fit(&case.data(Layout::Dense), &Context::new()).unwrap();
                model.training.unwrap().outcome
            };
            let outcome = found(1000);
            let what = format!("{rows} × {width}, C = {c}: {outcome:?} for {best}");
            assert!((outcome.primal - best).abs() <= GAP * best, "{what}");
            assert!(outcome.gap() <= GAP * outcome.primal, "{what}");
            // Two passes are as nothing beside it.
            assert_eq!(found(2).status, Status::IterationLimit);
        }
    }
}

#[test]
fn large_penalties_on_real_rows_end_within_the_gap() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/wdbc.csv");
    let data = read(path, &ReadOptions::new()).unwrap().dataset;
    let (rows, width) = (data.rows(), data.columns());
    let mut values = vec![0.0; rows * width];
    (0..rows).for_each(|i| data.features().copy_row(i, &mut values[i * width..(i + 1) * width]));
    standardise(&mut values, width);
    let first = data.labels().get(0);
    let target = |i| if data.labels().get(i) == first { 1.0 } else { -1.0 };
    let case = Correlated { rows, width, values, targets: (0..rows).map(target).collect() };
    for c in [1e4, 1e6] {
        let best = case.hinge(c);
        let svc = LinearSvc { c, loss: LinearLoss::Hinge, ..LinearSvc::default() };
        let model = svc.fit(&case.data(Layout::Dense), &Context::new()).unwrap();
        let outcome = model.training.unwrap().outcome;
        let what = format!("C = {c}: {outcome:?} for {best}");
        assert_eq!(outcome.status, Status::Solved, "{what}");
        assert!(outcome.gap() <= GAP * outcome.primal, "{what}");
        assert!((outcome.primal - best).abs() <= GAP * best, "{what}");
    }
}

#[test]
fn a_tighter_gap_is_kept() {
    let case = Correlated::new(160, 40, 3);
    let options = LinearOptions { gap: 1e-7, ..LinearOptions::default() };
    for loss in [LinearLoss::SquaredHinge, LinearLoss::Logistic] {
        let svc = LinearSvc { c: 100.0, loss, options, ..LinearSvc::default() };
        let model = svc.fit(&case.data(Layout::Dense), &Context::new()).unwrap();
        let (outcome, best) = (model.training.unwrap().outcome, case.newton(100.0, loss));
        assert!(outcome.gap() <= 1e-7 * outcome.primal, "{loss}: {outcome:?}");
        assert!((outcome.primal - best).abs() <= 2e-7 * best, "{loss}: {outcome:?} for {best}");
    }
    let svc = LinearSvc {
        options: LinearOptions { gap: 0.0, ..LinearOptions::default() },
        ..LinearSvc::default()
    };
    let message = svc.fit(&case.data(Layout::Dense), &Context::new()).unwrap_err().to_string();
    assert_eq!(message, "parameter gap: expected a number above 0, found 0");
}

#[test]
fn every_machine_names_the_remedy_where_the_objective_overflows() {
    let values = vec![1e300, -1e300, 3e299, 0.5, -1e300, 1.0, 2.0, 1e300];
    for layout in [Layout::Dense, Layout::Sparse] {
        let table = Matrix::DenseF64(Dense::new(4, 2, values.clone()).unwrap()).into_layout(layout);
        let labels = Labels::Int(vec![0, 1, 0, 1]);
        let data = Dataset::new(table.clone(), labels).unwrap();
        let three = Dataset::new(table, Labels::Int(vec![0, 1, 2, 1])).unwrap();
        let mut machines: Vec<(String, Box<dyn Machine>)> = Vec::new();
        for loss in [LinearLoss::Hinge, LinearLoss::SquaredHinge, LinearLoss::Logistic] {
            for penalty in [Penalty::L2, Penalty::L1] {
                if (loss, penalty) != (LinearLoss::Hinge, Penalty::L1) {
                    let svc = LinearSvc { loss, penalty, ..LinearSvc::default() };
                    machines.push((format!("{loss} {penalty}"), Box::new(svc)));
                }
            }
        }
        let multiclass = LinearMulticlass::CrammerSinger;
        machines.push(("cs".into(), Box::new(LinearSvc { multiclass, ..LinearSvc::default() })));
        for squared in [false, true] {
            let svr = LinearSvr { squared, ..LinearSvr::default() };
            machines.push((format!("svr {squared}"), Box::new(svr)));
        }
        machines.push(("one-class".into(), Box::new(LinearOneClass::default())));
        for (name, machine) in machines {
            for data in [&data, &three] {
                match machine.fit(data, &Context::new()) {
                    Ok(model) => {
                        let outcome = model.training.unwrap().outcome;
                        let finite = outcome.primal.is_finite() && outcome.dual.is_finite();
                        assert!(finite, "{name}: {outcome:?}");
                    }
                    Err(error) => {
                        let message = error.to_string();
                        assert!(message.contains("scale the features"), "{name}: {message}");
                    }
                }
            }
        }
    }
}
