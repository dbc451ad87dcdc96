//! Cross-validation against closed forms, hand counting and a machine that takes notes.

use std::sync::Mutex;

use widemargin::Status;
use widemargin::data::{Dataset, Dense, Label, Labels, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{
    BaseMachine, DecisionFunction, FitInput, KernelExpansion, Machine, MachineKind, MixtureBayes,
    Model, MultipleKernel, Precision, Scaled, ScalingRule, SemiSupervisedSvc, Svc, Svr,
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

/// Two clusters, of which every sixth row has a label, a number written as a word because of the mark.
fn partly_labelled() -> Dataset {
    let wobble = |i: usize, k: usize| ((i * k) as f64 * 0.7).sin() * 0.6;
    let side = |i: usize| if i.is_multiple_of(2) { -1.5 } else { 1.5 };
    let values = (0..60).flat_map(|i| [side(i) + wobble(i, 3), wobble(i, 7)]).collect();
    let label = |i: usize| if i % 6 < 2 { (i % 2).to_string() } else { "?".to_owned() };
    let labels = Labels::Text((0..60).map(label).collect());
    Dataset::new(Matrix::DenseF64(Dense::new(60, 2, values).unwrap()), labels).unwrap()
}

#[test]
fn rows_without_labels_are_learnt_from_in_every_fold_and_not_counted() {
    let data = partly_labelled();
    let mark = Some(Label::Text("?".into()));
    let context = Context::new();
    let svc = SemiSupervisedSvc { unlabelled: mark.clone(), ..Default::default() };
    let mixtures = MixtureBayes { unlabelled: mark, ..Default::default() };
    let scaled = Scaled { rule: ScalingRule::Standard, machine: Box::new(svc.clone()) };
    for machine in [&svc as &dyn Machine, &mixtures, &scaled] {
        let result = cross_validate(machine, &data, &Folds::Stratified(4), &context).unwrap();
        let labelled: Vec<usize> = (0..60).filter(|i| i % 6 < 2).collect();
        assert_eq!(result.rows, labelled);
        // What a training without the fold alone predicts.
        let (train, held) = result.plan.split(0);
        assert_eq!(train.len() + held.len(), 60);
        let model = machine.fit(&data.select_rows(&train), &context).unwrap();
        let rows = data.features().select_rows(&held);
        let expected = model.predictor(&context).unwrap().predict(&rows).unwrap();
        for (i, row) in held.iter().enumerate() {
            let at = result.rows.binary_search(row).unwrap();
            assert_eq!(
                result.predictions.get(at).unwrap().to_string(),
                expected.get(i).unwrap().to_string()
            );
        }
        let Some(Quality::Classes(confusion)) = result.quality else { panic!("no classes") };
        assert_eq!((confusion.total(), confusion.classes.len()), (20, 2));
        assert!(confusion.accuracy() > 0.9, "{confusion:?}");
    }
}

#[test]
fn targets_that_a_mark_made_words_are_compared_as_numbers() {
    let values = (0..40).map(f64::from).collect();
    let target =
        |i: usize| if i.is_multiple_of(4) { "?".to_owned() } else { format!("{}", 0.5 * i as f64) };
    let labels = Labels::Text((0..40).map(target).collect());
    let data = Dataset::new(Matrix::DenseF64(Dense::new(40, 1, values).unwrap()), labels).unwrap();
    let svr = Svr { c: 100.0, epsilon: 0.01, ..Svr::default() };
    let machine = MultipleKernel {
        kernels: vec![Kernel::Linear, Kernel::Gaussian { gamma: 0.01 }],
        unlabelled: Some(Label::Text("?".into())),
        ..MultipleKernel::new(BaseMachine::Svr(svr))
    };
    let result = cross_validate(&machine, &data, &Folds::Random(5), &Context::new()).unwrap();
    let Some(Quality::Numbers(errors)) = result.quality else { panic!("no numbers") };
    assert_eq!(result.rows.len(), 30);
    assert!(errors.mean_squared_error < 3.0, "{errors:?}");
}

#[test]
fn rows_without_labels_are_never_held_out() {
    let labels = (0..30).map(|row| if row % 3 == 0 { 9 } else { row % 2 }).collect();
    let labels = Labels::Int(labels);
    let data = line(30)
        .with_labels(labels)
        .unwrap()
        .with_groups((0..30).map(|row| row / 3).collect())
        .unwrap();
    let given = Folds::Given((0..30).map(|row| row % 2 + 5).collect());
    for folds in [Folds::Random(4), Folds::Stratified(4), Folds::Grouped(4), given] {
        let plan = folds.assign_labelled(&data, Some(&Label::Int(9)), 0).unwrap();
        let mut held_out = Vec::new();
        for fold in 0..plan.count() {
            let (train, held) = plan.split(fold);
            assert!((0..30).step_by(3).all(|row| train.contains(&row)), "{folds:?}");
            held_out.extend(held);
        }
        held_out.sort_unstable();
        let labelled: Vec<usize> = (0..30).filter(|row| row % 3 > 0).collect();
        assert_eq!(held_out, labelled, "{folds:?}");
    }
    let none = Folds::Random(2).assign_labelled(&data, Some(&Label::Int(7)), 0).unwrap();
    assert_eq!(none, Folds::Random(2).assign(&data, 0).unwrap());
}
