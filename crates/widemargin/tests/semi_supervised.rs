//! Semi-supervised classification against all labels of few rows, against what its parts demand, and on rows that
//! only their neighbours tell the class of.

use widemargin::data::{Csr, Dataset, Dense, Label, Labels, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{
    Bias, ClassShares, LinearLoss, LinearOptions, LinearSvc, Machine, Model, SemiSupervisedMethod,
    SemiSupervisedSvc,
};
use widemargin::{CancelToken, Context, Error, Status};

use crate::common::random;

const METHODS: [SemiSupervisedMethod; 2] =
    [SemiSupervisedMethod::Annealing, SemiSupervisedMethod::Switching];

fn table(columns: usize, values: &[f64], labels: Vec<i64>) -> Dataset {
    let dense = Dense::new(values.len() / columns, columns, values.to_vec()).unwrap();
    Dataset::new(Matrix::DenseF64(dense), Labels::Int(labels)).unwrap()
}

fn machine() -> SemiSupervisedSvc {
    SemiSupervisedSvc { unlabelled: Some(Label::Int(-1)), ..SemiSupervisedSvc::default() }
}

fn predictions(model: &Model, data: &Dataset) -> Vec<i64> {
    let context = Context::new();
    match model.predictor(&context).unwrap().predict(data.features()).unwrap() {
        Labels::Int(labels) => labels,
        other => panic!("{other:?}"),
    }
}

fn wrong(model: &Model, data: &Dataset, truth: &[i64]) -> usize {
    predictions(model, data).iter().zip(truth).filter(|(a, b)| a != b).count()
}

/// Rows around centres in two dimensions and the number of each row's centre.
fn blobs(centres: &[[f64; 2]], rows: usize, spread: f64, seed: u64) -> (Vec<f64>, Vec<i64>) {
    let noise = random(8 * rows, seed);
    let mut values = Vec::new();
    for i in 0..rows {
        for k in 0..2 {
            let sum: f64 = noise[8 * i + 4 * k..][..4].iter().sum();
            values.push(centres[i % centres.len()][k] + spread * (sum - 2.0));
        }
    }
    (values, (0..rows).map(|i| (i % centres.len()) as i64).collect())
}

/// Labels of the first `count` rows of every class, −1 for the others.
fn first_of_each(truth: &[i64], count: usize) -> Vec<i64> {
    let mut seen = std::collections::HashMap::new();
    let mut keep = |label: i64| {
        let seen = seen.entry(label).or_insert(0);
        *seen += 1;
        if *seen <= count { label } else { -1 }
    };
    truth.iter().map(|&label| keep(label)).collect()
}

/// min ½‖v‖² + Σ cᵢ max(0, 1 − yᵢ⟨v, zᵢ⟩)² by gradient steps of a fixed length.
fn least_objective(rows: &[Vec<f64>], sides: &[f64], costs: &[f64]) -> f64 {
    let width = rows[0].len();
    let curvature = rows.iter().zip(costs);
    let bound: f64 =
        1.0 + curvature.map(|(z, c)| 2.0 * c * z.iter().map(|v| v * v).sum::<f64>()).sum::<f64>();
    let mut v = vec![0.0; width];
    let mut value = f64::INFINITY;
    for _ in 0..200_000 {
        let mut gradient = v.clone();
        value = 0.5 * v.iter().map(|x| x * x).sum::<f64>();
        for ((z, y), c) in rows.iter().zip(sides).zip(costs) {
            let f: f64 = z.iter().zip(&v).map(|(a, b)| a * b).sum();
            let short = (1.0 - y * f).max(0.0);
            value += c * short * short;
            gradient.iter_mut().zip(z).for_each(|(g, x)| *g -= 2.0 * c * y * short * x);
        }
        v.iter_mut().zip(&gradient).for_each(|(v, g)| *v -= g / bound);
        if gradient.iter().map(|g| g * g).sum::<f64>() < 1e-22 {
            break;
        }
    }
    value
}

#[test]
fn the_objective_is_that_of_its_labels_and_the_bound_is_below_that_of_all_labels() {
    for seed in 0..4 {
        let (values, truth) = blobs(&[[0.0, 0.0], [2.5, 1.0]], 11, 1.5, seed);
        let labels = first_of_each(&truth, 2);
        let data = table(2, &values, labels.clone());
        let mean = |k: usize| (0..11).map(|i| values[2 * i + k]).sum::<f64>() / 11.0;
        let means = [mean(0), mean(1)];
        let scale = (0..22).map(|at| (values[at] - means[at % 2]).powi(2)).sum::<f64>() / 11.0;
        let rows: Vec<Vec<f64>> =
            values.chunks(2).map(|row| vec![row[0], row[1], scale.sqrt()]).collect();
        let c = 2.0;
        let unlabelled = labels.iter().filter(|label| **label < 0).count();
        let costs: Vec<f64> = labels
            .iter()
            .map(|&label| if label < 0 { c * 4.0 / unlabelled as f64 } else { c })
            .collect();
        // As many rows of class 1 as there are: three of seven.
        let shares = ClassShares::Given(vec![3.0 / 7.0]);
        let mut least = f64::INFINITY;
        for mask in (0_u32..1 << unlabelled).filter(|mask| mask.count_ones() == 3) {
            let mut next = 0;
            let side = |&label: &i64| match label {
                0 => -1.0,
                1 => 1.0,
                _ => {
                    next += 1;
                    if mask >> (next - 1) & 1 == 1 { 1.0 } else { -1.0 }
                }
            };
            let sides: Vec<f64> = labels.iter().map(side).collect();
            least = least.min(least_objective(&rows, &sides, &costs));
        }
        for method in METHODS {
            let machine = SemiSupervisedSvc {
                c: Some(c),
                method,
                shares: shares.clone(),
                tol: 1e-8,
                ..machine()
            };
            let model = machine.fit(&data, &Context::new()).unwrap();
            let outcome = model.training.as_ref().unwrap().outcome;
            assert_eq!(outcome.status, Status::Solved);
            assert!(outcome.primal >= least * (1.0 - 1e-6), "{method}: {} {least}", outcome.primal);
            assert!(outcome.primal <= least * 1.3, "{method}: {} {least}", outcome.primal);
            let (bound, rounding) = (outcome.dual, 1.0 + 1e-9);
            assert!(bound <= least * rounding && bound > 0.0, "{method}: {bound} {least}");
            // Without the unlabelled rows: what the bound is.
            let known: Vec<usize> = (0..11).filter(|&i| labels[i] >= 0).collect();
            let alone = least_objective(
                &known.iter().map(|&i| rows[i].clone()).collect::<Vec<_>>(),
                &known.iter().map(|&i| 2.0 * labels[i] as f64 - 1.0).collect::<Vec<_>>(),
                &vec![c; known.len()],
            );
            assert!(outcome.dual <= alone * (1.0 + 1e-9) && outcome.dual >= 0.99 * alone);
        }
    }
}

#[test]
fn unlabelled_rows_move_the_boundary_into_the_gap() {
    // One label of each class, both off the centre of its rows, so that the supervised boundary is askew.
    let (mut values, truth) = blobs(&[[-2.0, 0.0], [2.0, 0.0]], 200, 1.2, 7);
    (values[0], values[1], values[2], values[3]) = (-0.6, 2.0, 0.6, -2.0);
    let labels = first_of_each(&truth, 1);
    let data = table(2, &values, labels);
    let context = Context::new();
    let blind = machine().fit(&data.select_rows(&[0, 1]), &context).unwrap();
    assert!(wrong(&blind, &data, &truth) > 10);
    for method in METHODS {
        for shares in [ClassShares::Auto, ClassShares::Given(vec![0.5])] {
            let machine = SemiSupervisedSvc { method, shares, ..machine() };
            let model = machine.fit(&data, &context).unwrap();
            assert!(wrong(&model, &data, &truth) <= 4, "{method} {}", wrong(&model, &data, &truth));
        }
    }
}

#[test]
fn several_classes_share_one_set_of_labels() {
    let centres = [[0.0, 0.0], [3.0, 0.0], [1.5, 3.0], [4.5, 3.0]];
    let (values, truth) = blobs(&centres, 240, 0.8, 3);
    let data = table(2, &values, first_of_each(&truth, 1));
    for method in METHODS {
        let shares = ClassShares::Given(vec![0.25; 4]);
        let machine = SemiSupervisedSvc { method, shares, ..machine() };
        let model = machine.fit(&data, &Context::new()).unwrap();
        let errors = wrong(&model, &data, &truth);
        assert!(errors <= 8, "{method} {errors}");
    }
}

#[test]
fn a_kernel_separates_what_no_line_does() {
    let noise = random(400, 5);
    let (mut values, mut truth) = (Vec::new(), Vec::new());
    for i in 0..200 {
        let angle = 2.0 * std::f64::consts::PI * noise[2 * i];
        let radius = if i % 2 == 0 { 1.0 } else { 2.5 } + 0.3 * noise[2 * i + 1];
        values.extend([radius * angle.cos(), radius * angle.sin()]);
        truth.push((i % 2) as i64);
    }
    let data = table(2, &values, first_of_each(&truth, 5));
    for landmarks in [60, 500] {
        let kernel = Kernel::Gaussian { gamma: 0.5 };
        let machine = SemiSupervisedSvc { kernel, landmarks, ..machine() };
        let model = machine.fit(&data, &Context::new()).unwrap();
        assert!(wrong(&model, &data, &truth) <= 4);
        let again = Model::load_from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!(predictions(&again, &data), predictions(&model, &data));
    }
}

#[test]
fn storage_threads_and_repetition_do_not_change_the_model() {
    let (values, truth) = blobs(&[[-1.0, 0.0], [1.0, 0.5]], 300, 1.0, 11);
    let data = table(2, &values, first_of_each(&truth, 3));
    let model = machine().fit(&data, &Context::new()).unwrap();
    let two = Context::new().with_threads(2).unwrap();
    assert_eq!(machine().fit(&data, &two).unwrap().body, model.body);
    let starts: Vec<usize> = (0..=300).map(|i| 2 * i).collect();
    let sparse = Csr::new(2, starts, [0_u32, 1].repeat(300), values).unwrap();
    let sparse = data.clone().with_features(Matrix::SparseF64(sparse)).unwrap();
    let other = machine().fit(&sparse, &Context::new()).unwrap();
    assert_eq!(predictions(&other, &data), predictions(&model, &data));
    // The order of the classes names the functions only.
    let truth: Vec<i64> = truth.iter().map(|label| 1 - label).collect();
    let swapped = data.with_labels(Labels::Int(first_of_each(&truth, 3))).unwrap();
    let swapped = machine().fit(&swapped, &Context::new()).unwrap();
    let exchanged: Vec<i64> = predictions(&swapped, &sparse).iter().map(|l| 1 - l).collect();
    assert_eq!(exchanged, predictions(&model, &sparse));
}

#[test]
fn without_unlabelled_rows_it_is_the_machine_of_the_labelled_ones() {
    let (values, truth) = blobs(&[[-1.0, 0.0], [1.0, 0.5]], 80, 1.0, 4);
    let data = table(2, &values, truth);
    let context = Context::new();
    let mean = |k: usize| (0..80).map(|i| values[2 * i + k]).sum::<f64>() / 80.0;
    let means = [mean(0), mean(1)];
    let scale = (0..160).map(|at| (values[at] - means[at % 2]).powi(2)).sum::<f64>() / 80.0;
    let supervised = LinearSvc {
        c: 0.7,
        loss: LinearLoss::SquaredHinge,
        bias: Bias::Appended(scale.sqrt()),
        options: LinearOptions { tol: Some(1e-9), ..LinearOptions::default() },
        ..LinearSvc::default()
    };
    let expected = supervised.fit(&data, &context).unwrap();
    let expected = expected.predictor(&context).unwrap().decision_values(data.features()).unwrap();
    for method in METHODS {
        let machine = SemiSupervisedSvc { c: Some(0.7), method, tol: 1e-9, ..machine() };
        let model = machine.fit(&data, &context).unwrap();
        let outcome = model.training.as_ref().unwrap().outcome;
        assert!((outcome.primal - outcome.dual).abs() <= 1e-6 * outcome.primal, "{outcome:?}");
        let found = model.predictor(&context).unwrap().decision_values(data.features()).unwrap();
        for (a, b) in found.values().iter().zip(expected.values()) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
    }
}

#[test]
fn a_stopped_training_leaves_a_model_that_says_so() {
    let (values, truth) = blobs(&[[-1.0, 0.0], [1.0, 0.5]], 60, 1.0, 2);
    let data = table(2, &values, first_of_each(&truth, 3));
    let token = CancelToken::new();
    token.cancel();
    let model = machine().fit(&data, &Context::new().with_cancel_token(token)).unwrap();
    assert_eq!(model.training.unwrap().outcome.status, Status::Interrupted);
}

#[test]
fn bad_input_is_refused_with_its_own_message() {
    let context = Context::new();
    let rows = [0.0, 1.0, 2.0, 3.0];
    let message = |machine: &SemiSupervisedSvc, labels: [i64; 4], rows: &[f64]| {
        machine.fit(&table(1, rows, labels.to_vec()), &context).unwrap_err().to_string()
    };
    let good = [0, -1, -1, 1];
    assert!(message(&machine(), [-1; 4], &rows).contains("row with a label"));
    assert!(message(&machine(), [0, -1, 0, -1], &rows).contains("only '0'"));
    let unmarked = SemiSupervisedSvc { unlabelled: None, ..machine() };
    assert!(message(&unmarked, good, &rows).contains("unlabelled"));
    let nan = message(&machine(), good, &[0.0, f64::NAN, 2.0, 3.0]);
    assert!(nan.contains("row 2") && nan.contains("NaN"), "{nan}");
    assert!(message(&machine(), good, &[1.0; 4]).contains("rows that differ"));
    let cases: [(&[f64], &str); 5] = [
        (&[0.0], "above 0"),
        (&[1.0], "above 0"),
        (&[0.2, 0.3], "add up to 1"),
        (&[0.2, 0.3, 0.5], "each of 2 classes"),
        (&[f64::NAN], "above 0"),
    ];
    for (shares, expected) in cases {
        let machine = SemiSupervisedSvc { shares: ClassShares::Given(shares.into()), ..machine() };
        let found = message(&machine, good, &rows);
        assert!(found.contains("share") && found.contains(expected), "{found}");
    }
    for c in [0.0, -1.0, f64::NAN] {
        let machine = SemiSupervisedSvc { c: Some(c), ..machine() };
        assert!(message(&machine, good, &rows).contains("parameter c"));
    }
    let weights = table(1, &rows, good.to_vec()).with_weights(vec![0.0, 1.0, 1.0, 1.0]).unwrap();
    let error = machine().fit(&weights, &context).unwrap_err();
    assert!(matches!(error, Error::Labels { .. }), "{error}");
}

#[test]
fn few_labels_leave_the_share_to_the_margin() {
    // Of 120 rows three in four are around the second centre, of the six labels a half.
    let centres = [[0.0, 0.0], [4.0, 0.0], [4.0, 0.0], [4.0, 0.0]];
    let (values, centre) = blobs(&centres, 120, 1.2, 5);
    let truth: Vec<i64> = centre.iter().map(|&centre| i64::from(centre > 0)).collect();
    let few = first_of_each(&truth, 3);
    let data = table(2, &values, few.clone());
    let model = machine().fit(&data, &Context::new()).unwrap();
    let training = model.training.as_ref().unwrap();
    let shares = training.reals("shares").unwrap();
    assert!((shares[1] - 0.75).abs() < 0.1, "{shares:?}");
    assert!(wrong(&model, &data, &truth) <= 8, "{}", wrong(&model, &data, &truth));
    let labelled = SemiSupervisedSvc { shares: ClassShares::Labelled, ..machine() };
    let by_labels = labelled.fit(&data, &Context::new()).unwrap();
    assert!(wrong(&by_labels, &data, &truth) > wrong(&model, &data, &truth));
}
