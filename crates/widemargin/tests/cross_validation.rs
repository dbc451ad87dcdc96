//! Cross-validation against closed forms, hand counting and a machine that takes notes.

use std::sync::Mutex;

use widemargin::Status;
use widemargin::data::{Dataset, Dense, Label, Labels, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{
    DecisionFunction, FitInput, KernelExpansion, Machine, MachineKind, Model, Precision, Svc, Svr,
};
use widemargin::operation::cross_validate::{Quality, cross_validate};
use widemargin::operation::folds::Folds;
use widemargin::{CancelToken, Context, Error, Event, Result};

/// Predicts the mean of its targets, remembers how often it was trained and may pull the plug.
#[derive(Default)]
struct Mean {
    trained_on: Mutex<Vec<usize>>,
    cancel: Option<(usize, CancelToken)>,
}

impl Machine for Mean {
    fn fit_with(&self, input: FitInput<'_>, _: &Context) -> Result<Model> {
        let data = input.selected();
        let targets = data.labels().values()?;
        let mut notes = self.trained_on.lock().unwrap();
        notes.push(data.rows());
        if let Some((after, token)) = &self.cancel
            && notes.len() == *after
        {
            token.cancel();
        }
        let mean = targets.iter().sum::<f64>() / targets.len() as f64;
        let body = KernelExpansion {
            kernel: Kernel::Linear,
            precision: Precision::F64,
            support: Matrix::DenseF64(Dense::new(1, data.columns(), vec![0.0; data.columns()])?),
            support_rows: Vec::new(),
            functions: vec![DecisionFunction { parts: Vec::new(), offset: -mean }],
        };
        Ok(Model::new(MachineKind::EpsilonSvr, body))
    }
}

fn line(rows: usize) -> Dataset {
    let values: Vec<f64> = (0..rows).map(|i| i as f64).collect();
    let features = Dense::new(rows, 1, values.clone()).unwrap();
    Dataset::new(Matrix::DenseF64(features), Labels::Real(values)).unwrap()
}

/// Two overlapping clouds and a third, in a fixed pattern.
fn clouds(rows: usize) -> Dataset {
    let mut values = Vec::new();
    let mut labels = Vec::new();
    for i in 0..rows {
        let class = i % 3;
        let wobble = |k: usize| ((i * k) as f64 * 0.7).sin() * 1.3;
        values.extend([class as f64 * 1.5 + wobble(3), wobble(7) - class as f64 * 0.5]);
        labels.push(["one", "two", "three"][class].to_owned());
    }
    let features = Dense::new(rows, 2, values).unwrap();
    Dataset::new(Matrix::DenseF64(features), Labels::Text(labels)).unwrap()
}

#[test]
fn leave_one_out_of_the_mean_has_its_closed_form() {
    // The held-out answer is (n·mean − y)/(n − 1), so the error is n/(n − 1) · (y − mean).
    let data = line(9);
    let result =
        cross_validate(&Mean::default(), &data, &Folds::LeaveOneOut, &Context::new()).unwrap();
    let Some(Quality::Numbers(errors)) = result.quality else { panic!("{result:?}") };
    let variance = (0..9).map(|i| (f64::from(i) - 4.0).powi(2)).sum::<f64>() / 9.0;
    assert!((errors.mean_squared_error - variance * (9.0_f64 / 8.0).powi(2)).abs() < 1e-12);
    // The answers fall exactly as the truth rises.
    assert!((errors.squared_correlation - 1.0).abs() < 1e-12);
    assert_eq!(result.rows, (0..9).collect::<Vec<_>>());
    assert_eq!(result.folds.len(), 9);
    assert_eq!(result.status, Status::Solved);
}

#[test]
fn every_fold_trains_on_the_others() {
    let machine = Mean::default();
    let folds = Folds::Given(vec![0, 0, 0, 1, 1, 2, 2, 2, 2, 2]);
    let result = cross_validate(&machine, &line(10), &folds, &Context::new()).unwrap();
    assert_eq!(*machine.trained_on.lock().unwrap(), [7, 8, 5]);
    assert_eq!(result.folds.iter().map(|fold| fold.rows).collect::<Vec<_>>(), [3, 2, 5]);
    let expected = (45.0 - 3.0) / 7.0;
    assert!(
        matches!(result.predictions.get(0), Some(Label::Real(v)) if (v - expected).abs() < 1e-12)
    );
}

#[test]
fn answers_equal_those_counted_by_hand() {
    let data = clouds(60);
    let svc = Svc { kernel: Kernel::Gaussian { gamma: 0.5 }, ..Svc::default() };
    let fold_of: Vec<usize> = (0..60).map(|row| row * 7 % 4).collect();
    let context = Context::new();
    let folds = Folds::Given(fold_of.clone());
    let result = cross_validate(&svc, &data, &folds, &context).unwrap();
    let mut right = 0;
    for fold in 0..4 {
        let train: Vec<usize> = (0..60).filter(|&row| fold_of[row] != fold).collect();
        let model = svc.fit(&data.select_rows(&train), &context).unwrap();
        let predictor = model.predictor(&context).unwrap();
        for row in (0..60).filter(|&row| fold_of[row] == fold) {
            let prediction =
                predictor.predict(&data.features().select_rows(&[row])).unwrap().get(0);
            assert_eq!(result.predictions.get(row), prediction);
            right += usize::from(prediction == data.labels().get(row));
        }
    }
    let Some(Quality::Classes(confusion)) = &result.quality else { panic!() };
    assert_eq!((confusion.correct(), confusion.total()), (right, 60));
    let by_fold: usize = result
        .folds
        .iter()
        .map(|fold| match &fold.quality {
            Some(Quality::Classes(confusion)) => confusion.correct(),
            _ => 0,
        })
        .sum();
    assert_eq!(by_fold, right);
    assert!(right > 30, "the data is not learnable: {right}");
}

#[test]
fn threads_change_nothing_but_time() {
    let data = clouds(90);
    let svc = Svc::default();
    let run = |threads| {
        let context = Context::new().with_threads(threads).unwrap().with_seed(5);
        cross_validate(&svc, &data, &Folds::Stratified(5), &context).unwrap()
    };
    let (one, three) = (run(1), run(3));
    assert_eq!(
        (one.predictions, one.plan, one.quality),
        (three.predictions, three.plan, three.quality)
    );
}

#[test]
fn a_precomputed_kernel_gives_the_answers_of_the_kernel() {
    let data = clouds(45);
    let features = data.features();
    let mut rows = vec![vec![0.0; 2]; 45];
    (0..45).for_each(|i| features.copy_row(i, &mut rows[i]));
    let product = |i: usize, j: usize| rows[i][0] * rows[j][0] + rows[i][1] * rows[j][1];
    let gram = (0..45).flat_map(|i| (0..45).map(move |j| (i, j))).map(|(i, j)| product(i, j));
    let gram = Matrix::DenseF64(Dense::new(45, 45, gram.collect()).unwrap());
    let precomputed = Dataset::new(gram, data.labels().clone()).unwrap();
    let run = |kernel, data| {
        let svc = Svc { kernel, ..Svc::default() };
        cross_validate(&svc, data, &Folds::Stratified(3), &Context::new()).unwrap().predictions
    };
    assert_eq!(run(Kernel::Precomputed, &precomputed), run(Kernel::Linear, &data));
}

#[test]
fn an_interruption_keeps_the_finished_folds() {
    let token = CancelToken::new();
    let machine = Mean { cancel: Some((2, token.clone())), ..Mean::default() };
    let context = Context::new().with_cancel_token(token.clone());
    let result = cross_validate(&machine, &line(20), &Folds::Random(5), &context).unwrap();
    assert_eq!(result.status, Status::Interrupted);
    assert_eq!((result.folds.len(), result.rows.len(), result.predictions.len()), (2, 8, 8));
    let none = cross_validate(&machine, &line(20), &Folds::Random(5), &context);
    assert!(matches!(none, Err(Error::Interrupted)));
}

#[test]
fn folds_are_reported_and_their_own_stages_are_not() {
    let events = std::sync::Arc::new(Mutex::new(Vec::new()));
    let seen = events.clone();
    let context = Context::new()
        .with_observer(move |event: &Event| seen.lock().unwrap().push(format!("{event:?}")));
    cross_validate(&Svc::default(), &clouds(30), &Folds::Stratified(3), &context).unwrap();
    let events = events.lock().unwrap();
    assert_eq!(events.len(), 4, "{events:?}");
    assert!(events[0].contains("total: 3"));
}

#[test]
fn a_fold_that_leaves_one_class_is_refused() {
    let features = Dense::new(4, 1, vec![0.0, 1.0, 2.0, 3.0]).unwrap();
    let data = Dataset::new(Matrix::DenseF64(features), Labels::Int(vec![1, 2, 2, 2])).unwrap();
    let error = cross_validate(&Svc::default(), &data, &Folds::LeaveOneOut, &Context::new());
    assert_eq!(error.unwrap_err().to_string(), "expected at least two classes, found only '2'");
}

#[test]
fn regression_errors_are_those_of_held_out_rows() {
    let result =
        cross_validate(&Svr { c: 100.0, ..Svr::default() }, &line(30), &Folds::Random(5), &{
            Context::new()
        });
    let result = result.unwrap();
    let truth: Vec<f64> = (0..30).map(f64::from).collect();
    let predictions = result.predictions.values().unwrap();
    let squares: f64 = truth.iter().zip(&predictions).map(|(y, f)| (y - f).powi(2)).sum();
    let Some(Quality::Numbers(errors)) = result.quality else { panic!() };
    assert!((errors.mean_squared_error - squares / 30.0).abs() < 1e-12);
}
