//! Learnt kernel weights over features: Nyström's method over all rows is exact, so that every machine has the value
//! that it has with tables of kernel values.

use widemargin::data::{Dataset, Dense, Label, Labels, Matrix};
use widemargin::kernel::{FeatureMap, Kernel, MapRule, Repair};
use widemargin::machine::specification::Value;
use widemargin::machine::{
    AllInOne, BaseMachine, Loss, Machine, Model, MulticlassSvc, MultipleKernel, OneClass,
    Precision, Scheme, SolverOptions, Svc, Svr, WeightRule,
};
use widemargin::{Context, Error, Status};

use crate::common::Numbers;

fn options(tol: f64) -> SolverOptions {
    SolverOptions { tol, precision: Precision::F64, ..SolverOptions::default() }
}

/// Rows around the centres of `classes` classes in two columns, beside a third of noise alone.
fn rows(n: usize, classes: usize) -> (Matrix, Vec<i64>) {
    let mut numbers = Numbers(3);
    let labels: Vec<i64> = (0..n).map(|i| (i % classes) as i64).collect();
    let mut values = Vec::with_capacity(3 * n);
    for y in &labels {
        let angle = *y as f64 * 2.1;
        values.push(1.2 * angle.cos() + 2.4 * (numbers.next() - 0.5));
        values.push(1.2 * angle.sin() + 2.4 * (numbers.next() - 0.5));
        values.push(numbers.next() - 0.5);
    }
    (Matrix::DenseF64(Dense::new(n, 3, values).unwrap()), labels)
}

fn view(columns: std::ops::Range<usize>, kernel: Kernel) -> Kernel {
    Kernel::View { columns: std::iter::once(columns).collect(), kernel: Box::new(kernel) }
}

fn kernels() -> Vec<Kernel> {
    let square = Kernel::Polynomial { gamma: 1.0, coef0: 1.0, degree: 2 };
    vec![
        Kernel::Linear,
        view(0..2, square),
        view(0..2, Kernel::Gaussian { gamma: 1.0 }),
        Kernel::Gaussian { gamma: 8.0 },
        view(2..3, Kernel::Linear),
    ]
}

fn svc(scheme: Scheme, tol: f64) -> BaseMachine {
    BaseMachine::Svc(Svc { c: 2.0, scheme, options: options(tol), ..Svc::default() })
}

fn crammer_singer(tol: f64) -> BaseMachine {
    let machine = AllInOne::CrammerSinger;
    let options = options(tol);
    BaseMachine::Multiclass(MulticlassSvc { machine, c: 6.0, options, ..Default::default() })
}

fn weights(model: &Model) -> Vec<f64> {
    let training = model.training.as_ref().unwrap();
    training.reals("kernel-weights").unwrap().to_vec()
}

/// Objective and bound of a training that ended as it should.
fn bounds(model: &Model) -> (f64, f64) {
    let outcome = model.training.as_ref().unwrap().outcome;
    assert_eq!(outcome.status, Status::Solved, "{outcome:?}");
    (outcome.primal, outcome.dual)
}

#[test]
fn all_rows_as_landmarks_are_the_exact_machine() {
    let (tol, context) = (1e-7, Context::new());
    let svr = Svr { c: 5.0, epsilon: 0.1, options: options(tol), ..Svr::default() };
    let one_class = OneClass { nu: 0.4, options: options(tol), ..OneClass::default() };
    let cases = [
        (2, svc(Scheme::OneVsOne, tol)),
        (3, svc(Scheme::OneVsOne, tol)),
        (3, svc(Scheme::OneVsRest, tol)),
        (2, crammer_singer(tol)),
        (4, crammer_singer(tol)),
        (2, BaseMachine::Svr(svr)),
        (2, BaseMachine::OneClass(one_class)),
    ];
    for (classes, base) in cases {
        let (features, labels) = rows(48, classes);
        let numbers = |y: &i64| *y as f64 + 0.1 * (*y as f64).sin();
        let labels = match base {
            BaseMachine::Svr(_) => Labels::Real(labels.iter().map(numbers).collect()),
            BaseMachine::OneClass(_) => Labels::None,
            _ => Labels::Int(labels),
        };
        let data = Dataset::new(features, labels).unwrap();
        for rule in [WeightRule::NonNegative, WeightRule::Norm(2.0), WeightRule::Uniform] {
            let exact = MultipleKernel {
                kernels: kernels(),
                weights: rule,
                ..MultipleKernel::new(base.clone())
            };
            let approximate = Some(MapRule::Nystroem(1000));
            let machine = MultipleKernel { approximate, ..exact.clone() };
            let place = format!("{rule:?} of {base:?}");
            let (exact, found) =
                (exact.fit(&data, &context).unwrap(), machine.fit(&data, &context).unwrap());
            let ((expected, _), (primal, dual)) = (bounds(&exact), bounds(&found));
            let close = |a: f64, b: f64, share: f64| (a - b).abs() <= share * b.abs();
            // The ball of a norm is the one whose surface the weights are on: two trainings end on balls that
            // differ by as much as their weights, which the gap holds less tightly.
            let share = if let WeightRule::Norm(_) = rule { 1e-4 } else { 1e-5 };
            assert!(close(primal, expected, share), "{primal} for {expected}: {place}");
            assert!(dual <= primal && close(dual, primal, 1.001 * tol), "{dual} {primal}: {place}");
            let (left, right) = (weights(&found), weights(&exact));
            let difference = left.iter().zip(&right).map(|(a, b)| (a - b).abs());
            assert!(difference.fold(0.0, f64::max) < 0.02, "{place}: {left:?} {right:?}");
            let values = |model: &Model| {
                let values = model.predictor(&context).unwrap().decision_values(data.features());
                values.unwrap().values().to_vec()
            };
            let (left, right) = (values(&exact), values(&found));
            let size = left.iter().fold(1.0_f64, |most, v| most.max(v.abs()));
            for (left, right) in left.iter().zip(&right) {
                assert!((left - right).abs() < 0.02 * size, "{place}: {left} {right}");
            }
        }
    }
}

#[test]
fn a_useless_kernel_has_hardly_any_weight_and_without_weight_no_features() {
    let (features, labels) = rows(200, 2);
    let data = Dataset::new(features, Labels::Int(labels)).unwrap();
    let noise = Kernel::Gaussian { gamma: 0.5 };
    let kernels = vec![view(2..3, noise), view(0..2, Kernel::Gaussian { gamma: 1.0 })];
    for rule in [MapRule::Fourier(100), MapRule::Nystroem(40)] {
        let machine = MultipleKernel {
            kernels: kernels.clone(),
            approximate: Some(rule),
            ..MultipleKernel::new(svc(Scheme::OneVsOne, 1e-4))
        };
        let context = Context::new();
        let model = machine.fit(&data, &context).unwrap();
        let (primal, dual) = bounds(&model);
        assert!(primal - dual <= 1e-4 * primal && dual <= primal, "{dual} {primal}");
        let weights = weights(&model);
        assert!(weights[0] < 0.01 && weights[1] > 0.99, "{rule}: {weights:?}");
        let Some(FeatureMap::Blocks(map)) = &model.preparation.map else { panic!("no features") };
        assert_eq!(map.kernels(), weights.iter().filter(|weight| **weight > 0.0).count());
        let predicted = model.predictor(&context).unwrap().predict(data.features()).unwrap();
        let (Labels::Int(found), Labels::Int(labels)) = (&predicted, data.labels()) else {
            panic!("whole numbers")
        };
        let right = found.iter().zip(labels).filter(|(a, b)| a == b).count();
        assert!(right > 170, "{rule}: {right}");
    }
}

#[test]
fn rows_without_labels_count_for_the_traces() {
    let (features, labels) = rows(48, 3);
    let marked = labels.iter().enumerate().map(|(i, y)| if i % 4 == 1 { -1 } else { *y });
    let data = Dataset::new(features, Labels::Int(marked.collect())).unwrap();
    let exact = MultipleKernel {
        kernels: kernels(),
        unlabelled: Some(Label::Int(-1)),
        ..MultipleKernel::new(crammer_singer(1e-7))
    };
    let machine = MultipleKernel { approximate: Some(MapRule::Nystroem(48)), ..exact.clone() };
    let context = Context::new();
    let (exact, found) =
        (exact.fit(&data, &context).unwrap(), machine.fit(&data, &context).unwrap());
    let ((expected, _), (primal, _)) = (bounds(&exact), bounds(&found));
    assert!((primal - expected).abs() < 1e-5 * expected, "{primal} {expected}");
    let unlabelled = |model: &Model| {
        let parameters = model.training.as_ref().unwrap().parameters.clone();
        parameters.into_iter().find(|(name, _)| name == "unlabelled-rows").map(|(_, value)| value)
    };
    assert_eq!(unlabelled(&found), Some(Value::Integer(12)));
    assert_eq!(found.training.unwrap().rows, 48);
}

#[test]
fn a_training_out_of_time_ends_with_what_it_has_or_says_so() {
    let (features, labels) = rows(400, 2);
    let data = Dataset::new(features, Labels::Int(labels)).unwrap();
    let machine = MultipleKernel {
        kernels: kernels(),
        approximate: Some(MapRule::Nystroem(100)),
        ..MultipleKernel::new(svc(Scheme::OneVsOne, 1e-12))
    };
    let context = Context::new().with_time_limit(std::time::Duration::from_millis(1));
    match machine.fit(&data, &context) {
        Err(Error::Interrupted) => {}
        Ok(model) => {
            let outcome = model.training.unwrap().outcome;
            assert_eq!(outcome.status, Status::TimeLimit);
            assert!(outcome.dual <= outcome.primal, "{outcome:?}");
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn what_features_cannot_express_is_refused() {
    let (features, labels) = rows(24, 2);
    let data = Dataset::new(features, Labels::Int(labels)).unwrap();
    let base = MultipleKernel {
        kernels: vec![Kernel::Linear, Kernel::Gaussian { gamma: 1.0 }],
        approximate: Some(MapRule::Nystroem(10)),
        ..MultipleKernel::new(svc(Scheme::OneVsOne, 1e-3))
    };
    let squared = Svc { loss: Loss::SquaredHinge, ..Svc::default() };
    let other = MulticlassSvc { machine: AllInOne::WestonWatkins, ..Default::default() };
    let of_kernel = |kernel: Kernel| MultipleKernel { kernels: vec![kernel], ..base.clone() };
    let sigmoid = Kernel::Sigmoid { gamma: 1.0, coef0: -2.0 };
    let zeros = view(0..1, Kernel::Polynomial { gamma: 0.0, coef0: 0.0, degree: 2 });
    let fourier = Some(MapRule::Fourier(10));
    let cosine = MultipleKernel { approximate: fourier, ..of_kernel(Kernel::Cosine) };
    for (machine, message) in [
        (MultipleKernel { weights: WeightRule::Signed, ..base.clone() }, "nonnegative, lp=P"),
        (MultipleKernel { weights: WeightRule::Alignment, ..base.clone() }, "nonnegative, lp=P"),
        (MultipleKernel { jitter: 0.1, ..base.clone() }, "0 with approximate features"),
        (MultipleKernel { repair: Some(Repair::Shift), ..base.clone() }, "none with approximate"),
        (MultipleKernel { machine: BaseMachine::Svc(squared), ..base.clone() }, "hinge with"),
        (MultipleKernel { machine: BaseMachine::Multiclass(other), ..base.clone() }, "c-svc or cs"),
        (of_kernel(view(0..3, Kernel::Precomputed)), "whose features can be computed"),
        (of_kernel(sigmoid), "a positive semidefinite matrix"),
        (of_kernel(zeros), "a positive trace"),
        (of_kernel(view(1..4, Kernel::Linear)), "columns of a view: expected 4, found 3"),
        (cosine, "random Fourier features"),
    ] {
        let error = machine.fit(&data, &Context::new()).unwrap_err().to_string();
        assert!(error.contains(message), "expected {message}: {error}");
    }
}
