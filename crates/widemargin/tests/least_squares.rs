//! Least-squares machines against the linear system they solve, worked out by Gaussian elimination, and
//! against their optimality condition αᵢ = C wᵢ (yᵢ − f(xᵢ)).

use widemargin::data::{Dataset, Dense, Labels, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{LsSvc, LsSvr, Machine, Model, Precision, SolverOptions};
use widemargin::{Context, Error, Status};

/// Numbers in (−1, 1) that look random.
fn noise(i: usize) -> f64 {
    2.0 * ((i as f64 * 12.9898).sin() * 43_758.545_3).fract()
}

fn table(rows: usize, columns: usize) -> Matrix {
    let values = (0..rows * columns).map(noise).collect();
    Matrix::DenseF64(Dense::new(rows, columns, values).unwrap())
}

fn curve(rows: usize, columns: usize) -> Dataset {
    let features = table(rows, columns);
    let mut row = vec![0.0; columns];
    let targets = (0..rows).map(|i| {
        features.copy_row(i, &mut row);
        (3.0 * row[0]).sin() + row[1] * row[1] + 0.1 * noise(i + 7)
    });
    let targets = targets.collect();
    Dataset::new(features, Labels::Real(targets)).unwrap()
}

fn exact(tol: f64) -> SolverOptions {
    SolverOptions { tol, precision: Precision::F64, ..SolverOptions::default() }
}

fn gaussian(gamma: f64) -> Kernel {
    Kernel::Gaussian { gamma }
}

/// Solves A x = b by elimination with pivots.
fn eliminate(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).unwrap();
        a.swap(k, pivot);
        b.swap(k, pivot);
        for i in k + 1..n {
            let factor = a[i][k] / a[k][k];
            for j in k..n {
                a[i][j] -= factor * a[k][j];
            }
            b[i] -= factor * b[k];
        }
    }
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| a[k][j] * b[j]).sum();
        b[k] = (b[k] - known) / a[k][k];
    }
    b
}

fn values_of(model: &Model, features: &Matrix) -> Vec<f64> {
    let context = Context::new();
    model.predictor(&context).unwrap().decision_values(features).unwrap().values().to_vec()
}

#[test]
fn regression_solves_the_bordered_system() {
    let data = curve(40, 2);
    let weights: Vec<f64> = (0..40).map(|i| 0.5 + (i % 4) as f64).collect();
    let data = data.with_weights(weights.clone()).unwrap();
    let (gamma, c) = (0.8, 5.0);
    let machine = LsSvr { c, kernel: gaussian(gamma), options: exact(1e-9) };
    let model = machine.fit(&data, &Context::new()).unwrap();

    let rows: Vec<Vec<f64>> = (0..40)
        .map(|i| {
            let mut row = vec![0.0; 2];
            data.features().copy_row(i, &mut row);
            row
        })
        .collect();
    let kernel = |x: &[f64], z: &[f64]| {
        (-gamma * x.iter().zip(z).map(|(a, b)| (a - b) * (a - b)).sum::<f64>()).exp()
    };
    let mut system = vec![vec![0.0; 41]; 41];
    let mut right = vec![0.0; 41];
    let targets = data.labels().values().unwrap();
    for i in 0..40 {
        (system[0][i + 1], system[i + 1][0]) = (1.0, 1.0);
        right[i + 1] = targets[i];
        for j in 0..40 {
            system[i + 1][j + 1] = kernel(&rows[i], &rows[j]);
        }
        system[i + 1][i + 1] += 1.0 / (c * weights[i]);
    }
    let solution = eliminate(system, right);
    for (i, value) in values_of(&model, data.features()).into_iter().enumerate() {
        let terms = (0..40).map(|j| solution[j + 1] * kernel(&rows[i], &rows[j]));
        let expected = solution[0] + terms.sum::<f64>();
        assert!((value - expected).abs() < 1e-9, "row {i}: {value}, not {expected}");
    }
    let outcome = model.training.as_ref().unwrap().outcome;
    assert_eq!(outcome.status, Status::Solved);
    assert!(outcome.gap() >= -1e-9 && outcome.gap() < 1e-6 * outcome.primal, "{outcome:?}");
}

/// Largest |yᵢ − f(xᵢ) − αᵢ / C| over a model's training rows, and |Σ αᵢ|, of one function.
fn residuals(
    model: &Model,
    data: &Dataset,
    targets: &[f64],
    function: usize,
    c: f64,
) -> (f64, f64) {
    let values = values_of(model, data.features());
    let expansion = model.expansion().unwrap();
    let outputs = expansion.functions.len();
    let mut alpha = vec![0.0; data.rows()];
    for (s, &row) in expansion.support_rows.iter().enumerate() {
        alpha[row] = expansion.functions[function].coefficient(s);
    }
    let error = |i: usize| targets[i] - values[i * outputs + function] - alpha[i] / c;
    let worst = (0..data.rows()).map(|i| error(i).abs()).fold(0.0, f64::max);
    (worst, alpha.iter().sum::<f64>().abs())
}

#[test]
fn conjugate_gradients_reach_the_tolerance_on_more_rows_than_are_factored() {
    let data = curve(2300, 8);
    let targets = data.labels().values().unwrap();
    for (precision, tol) in [(Precision::F64, 1e-6), (Precision::F32, 1e-3)] {
        let options = SolverOptions { tol, precision, ..SolverOptions::default() };
        let machine = LsSvr { c: 100.0, kernel: gaussian(1.0), options };
        let model = machine.fit(&data, &Context::new()).unwrap();
        let outcome = model.training.as_ref().unwrap().outcome;
        assert_eq!(outcome.status, Status::Solved, "{outcome:?}");
        assert!(outcome.iterations > 1 && outcome.iterations < 200, "{outcome:?}");
        let (worst, total) = residuals(&model, &data, &targets, 0, 100.0);
        assert!(worst <= tol, "{worst} with tol {tol}");
        assert!(total < 1e-6, "{total}");
    }
}

#[test]
fn a_warm_start_saves_products_and_changes_nothing() {
    let data = curve(2100, 8);
    let context = Context::new();
    let near = LsSvr { c: 90.0, kernel: gaussian(1.0), options: exact(1e-6) };
    let machine = LsSvr { c: 100.0, ..near.clone() };
    let start = near.fit(&data, &context).unwrap();
    let cold = machine.fit(&data, &context).unwrap();
    let input = widemargin::machine::FitInput::new(&data);
    let start = widemargin::machine::Start::of(&start, &machine);
    let warm = machine.warm_start().unwrap().fit_from(input, start, &context).unwrap();
    let steps = |model: &Model| model.training.as_ref().unwrap().outcome.iterations;
    assert!(steps(&warm) < steps(&cold), "{} and {}", steps(&warm), steps(&cold));
    let pairs =
        values_of(&warm, data.features()).into_iter().zip(values_of(&cold, data.features()));
    assert!(pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) < 1e-5);
}

#[test]
fn classes_are_separated_one_against_the_rest() {
    let features = table(90, 2);
    let mut row = [0.0; 2];
    let labels: Vec<i64> = (0..90)
        .map(|i| {
            features.copy_row(i, &mut row);
            if row[0] > 0.3 { 2 } else { i64::from(row[1] > 0.0) }
        })
        .collect();
    let data = Dataset::new(features, Labels::Int(labels.clone())).unwrap();
    let machine =
        LsSvc { c: 50.0, kernel: gaussian(2.0), options: exact(1e-9), ..LsSvc::default() };
    let context = Context::new().with_threads(2).unwrap();
    let model = machine.fit(&data, &context).unwrap();
    for class in 0..3 {
        let targets: Vec<f64> =
            labels.iter().map(|&label| if label == class as i64 { 1.0 } else { -1.0 }).collect();
        let (worst, total) = residuals(&model, &data, &targets, class, 50.0);
        assert!(worst < 1e-8 && total < 1e-9, "class {class}: {worst}, {total}");
    }
    let predicted = model.predictor(&context).unwrap().predict(data.features()).unwrap();
    let right = (0..90).filter(|&i| predicted.select(&[i]) == data.labels().select(&[i])).count();
    assert!(right >= 86, "{right} of 90");
}

#[test]
fn what_cannot_be_trained_is_refused() {
    let data = curve(20, 2);
    let context = Context::new();
    let machine = LsSvr { c: 0.0, ..LsSvr::default() };
    assert!(matches!(machine.fit(&data, &context), Err(Error::Parameter { name: "c", .. })));
    let one = Dataset::new(table(5, 1), Labels::Int(vec![1; 5])).unwrap();
    assert!(matches!(LsSvc::default().fit(&one, &context), Err(Error::OneClass { .. })));
    // tanh(0.1 x·z − 1) is negative on the diagonal.
    let kernel = Kernel::Sigmoid { gamma: 0.1, coef0: -1.0 };
    let indefinite = LsSvr { c: 1e3, kernel, options: exact(1e-6) };
    let message = indefinite.fit(&data, &context).unwrap_err().to_string();
    assert!(message.contains("positive definite"), "{message}");
    let none = data.with_weights(vec![0.0; 20]).unwrap();
    let error = LsSvr::default().fit(&none, &context).unwrap_err();
    assert!(matches!(error, Error::Empty { what: "row of positive weight" }), "{error}");
}
