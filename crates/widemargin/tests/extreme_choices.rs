//! Extremes of what `extremes` leaves at its default: every choice of every machine, rows without labels, queries,
//! strings, structures of the user, training from disk, probabilities and compression.

use std::time::Duration;

use widemargin::data::read::ReadOptions;
use widemargin::data::{Dataset, Labels, Matrix};
use widemargin::machine::specification::Domain;
use widemargin::machine::{
    CalibrationMethod, LinearLoss, LinearSvc, MachineKind, Specification, StructuredProblem,
    StructuredSvm,
};
use widemargin::operation::calibrate::calibrate;
use widemargin::operation::compress::{CompressionMethod, CompressionTarget, ModelCompression};
use widemargin::operation::out_of_core::{LEAST_MEMORY, OutOfCore, OutOfCoreMachine, train};
use widemargin::{Context, Error, Result};

use crate::extremes::{
    check_fit, check_model, check_specifications, in_time, rows_of_classes, with_extreme_numbers,
};

/// Scales of a feature, from vanishing to overflowing in double precision.
const SCALES: [f64; 5] = [1e-300, 1.0, 2e7, 1e150, 1e300];

/// Every machine with each of its choices, flags and names of rules.
fn chosen() -> Vec<Specification> {
    let mut all = Vec::new();
    for plain in Specification::all() {
        for parameter in plain.entry().parameters() {
            let words: &[&str] = match parameter.domain {
                Domain::Flag => &["true", "false"],
                Domain::Choice(names) | Domain::Reals(names) => names,
                Domain::Real { names, .. } | Domain::Integer { names, .. } => names,
                Domain::Scaling => &["standard", "minmax"],
                Domain::Kernel => &["linear", "poly", "sigmoid", "laplacian", "chi2", "cosine"],
                Domain::Map => &["rff:10", "nystroem:10"],
                _ => &[],
            };
            for word in words {
                let mut changed = plain.clone();
                if changed.parse(parameter.name, word).is_ok() {
                    all.push(changed);
                }
            }
        }
    }
    all
}

#[test]
fn every_choice_on_extreme_features_ends_in_time_and_finite() {
    let chosen = chosen();
    assert!(chosen.len() > 100, "{}", chosen.len());
    for scale in [2e7, 1e300] {
        check_specifications(&chosen, &rows_of_classes(40, scale, 2));
    }
}

/// Machines that learn from rows without labels.
fn semi_supervised() -> Vec<Specification> {
    let with = |kind: &str, words: &[(&str, &str)]| {
        let mut specification = Specification::new(kind.parse().unwrap());
        words.iter().for_each(|(name, value)| specification.parse(name, value).unwrap());
        specification
    };
    let mark = ("unlabelled", "?");
    let kernels = ("kernels", "linear, rbf(gamma=1)");
    vec![
        with("semi-svc", &[mark]),
        with("semi-svc", &[mark, ("kernel", "rbf")]),
        with("semi-svc", &[mark, ("labelling", "switching")]),
        with("semi-svc", &[mark, ("labelling", "relaxation")]),
        with("gmm-bayes", &[mark, ("components", "2")]),
        with("c-svc", &[mark, kernels]),
        with("cs", &[mark, kernels]),
        with("epsilon-svr", &[mark, kernels]),
    ]
}

/// Rows of which every third has a label.
fn partly_labelled(scale: f64, classes: i64) -> Dataset {
    let data = rows_of_classes(36, scale, classes);
    let label = |row: usize| match row % 3 {
        0 => (row as i64 / 3 % classes).to_string(),
        _ => "?".to_owned(),
    };
    data.with_labels(Labels::Text((0..36).map(label).collect())).unwrap()
}

#[test]
fn rows_without_labels_with_extreme_numbers_end_in_time_and_finite() {
    for plain in semi_supervised() {
        let ordinary = partly_labelled(1.0, 2);
        let model = plain.build(&ordinary, 0).unwrap().fit(&ordinary, &Context::new());
        check_model(&model.unwrap(), &ordinary, &plain.to_string());
        check_specifications(&with_extreme_numbers(&plain), &ordinary);
        for scale in SCALES {
            for classes in [2, 3] {
                check_specifications(
                    std::slice::from_ref(&plain),
                    &partly_labelled(scale, classes),
                );
            }
        }
    }
}

#[test]
fn extreme_orders_of_queries_end_in_time_and_finite() {
    let plain = Specification::new(MachineKind::RankSvm);
    for scale in SCALES {
        let groups = (0..40).map(|row| row / 10).collect();
        let data = rows_of_classes(40, scale, 5).with_groups(groups).unwrap();
        check_specifications(&with_extreme_numbers(&plain), &data);
        let targets = (0..40).map(|row| scale * f64::from(row * 7 % 5)).collect();
        let data = data.with_labels(Labels::Real(targets)).unwrap();
        check_specifications(std::slice::from_ref(&plain), &data);
    }
}

#[test]
fn strings_with_extreme_parameters_end_in_time_and_finite() {
    let kernels = [
        "spectrum(length=1)",
        "spectrum(length=1000000)",
        "mismatch(length=10,mismatches=9)",
        "mismatch(length=3,mismatches=0,decay=1e-300)",
        "subsequence(length=1,decay=1e-300)",
        "subsequence(length=30,decay=1)",
        "subsequence(length=3,decay=1e-30,normalize=false)",
        "alignment(beta=1e-300)",
        "alignment(beta=1e300)",
        "alignment(match=1e300)",
        "alignment(match=1e6,normalize=false)",
        "alignment(open=1e300,extend=1e300)",
        "alignment(mismatch=-1e300,log=true)",
        "alignment(beta=700,log=true)",
    ];
    let repeated = |unit: &str, times: usize| unit.repeat(times);
    let strings = [
        vec![String::new(); 6],
        (0..6).map(|i| repeated("a", 1 + i)).collect(),
        (0..6).map(|i| repeated(["ab", "ba"][i % 2], 150)).collect(),
        (0..6).map(|i| if i == 0 { String::new() } else { repeated("\u{10ffff}a", i) }).collect(),
    ];
    let mut trained = 0;
    for strings in &strings {
        let features = Matrix::of_strings(strings).unwrap();
        let labels = Labels::Int((0..6).map(|i| i % 2).collect());
        let data = Dataset::new(features, labels).unwrap();
        for kernel in kernels {
            for kind in ["c-svc", "one-class", "kernel-fisher", "mmc"] {
                let mut specification = Specification::new(kind.parse().unwrap());
                if specification.parse("kernel", kernel).is_err() {
                    continue;
                }
                let Ok(machine) = specification.build(&data, 0) else { continue };
                let place = format!("{specification} on {:?}", &strings[1]);
                check_fit(&*machine, &data, &place);
                trained += 1;
            }
        }
    }
    assert!(trained > 100, "{trained}");
}

/// Two classes of a number, which is also the size of a loss.
struct Sides {
    loss: f64,
}

impl StructuredProblem for Sides {
    type Input = f64;
    type Output = bool;

    fn dimension(&self) -> usize {
        1
    }

    fn joint_features(&self, x: &f64, y: &bool) -> Result<Vec<(usize, f64)>> {
        Ok(vec![(0, if *y { *x } else { -*x })])
    }

    fn loss(&self, truth: &bool, other: &bool) -> Result<f64> {
        Ok(if truth == other { 0.0 } else { self.loss })
    }

    fn decode(&self, x: &f64, w: &[f64], truth: Option<&bool>) -> Result<bool> {
        let value = |y: bool| {
            let loss = truth.map_or(0.0, |truth| if *truth == y { 0.0 } else { self.loss });
            loss + if y { w[0] * x } else { -w[0] * x }
        };
        Ok(value(true) > value(false))
    }
}

#[test]
fn structures_with_extreme_numbers_end_in_time_and_finite() {
    for scale in SCALES {
        for loss in [1e-300, 1.0, 1e150, 1e300] {
            for c in [1e-300, 1.0, 1e150, 1e300] {
                let place = format!("features of {scale:e}, losses of {loss:e}, C = {c:e}");
                let value = |i: i32| scale * f64::from(i * 7 % 11 - 5);
                let examples: Vec<(f64, bool)> = (0..20).map(|i| (value(i), i % 3 > 0)).collect();
                let machine = StructuredSvm { c, max_iterations: usize::MAX, ..Default::default() };
                let fit = |context: &Context| machine.fit(&Sides { loss }, &examples, context);
                let Ok(found) = in_time(&place, fit) else { continue };
                let outcome = found.outcome;
                let finite = outcome.primal.is_finite()
                    && outcome.dual.is_finite()
                    && found.weights[0].is_finite();
                assert!(finite || !outcome.status.is_solved(), "{place}: {outcome:?}");
            }
        }
    }
}

#[test]
fn rows_on_disk_with_extreme_numbers_end_in_time_and_finite() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("rows.txt");
    for scale in SCALES {
        let value = |i: usize| scale * ((i * 7919 % 1013) as f64 / 1013.0 - 0.5);
        let line = |i: usize| format!("{} 1:{} 2:{}\n", i % 2, 0.3 * (i % 7) as f64, value(i));
        std::fs::write(&text, (0..60).map(line).collect::<String>()).unwrap();
        for c in [1e-300, 1.0, 1e300] {
            for loss in [LinearLoss::Hinge, LinearLoss::SquaredHinge, LinearLoss::Logistic] {
                let place = format!("features of {scale:e}, {loss:?}, C = {c:e}");
                let job = OutOfCore {
                    inputs: vec![text.clone()],
                    folder: folder.path().join(format!("{scale:e}-{loss:?}-{c:e}")),
                    memory: LEAST_MEMORY,
                    read: ReadOptions::new(),
                };
                let machine =
                    OutOfCoreMachine::Classifier(LinearSvc { c, loss, ..LinearSvc::default() });
                let Ok(model) = in_time(&place, |context| train(&machine, &job, context)) else {
                    continue;
                };
                let outcome = model.training.as_ref().unwrap().outcome;
                let finite = outcome.primal.is_finite() && outcome.dual.is_finite();
                assert!(finite || !outcome.status.is_solved(), "{place}: {outcome:?}");
            }
        }
    }
}

#[test]
fn probabilities_and_smaller_models_of_extreme_features_are_finite_or_refused() {
    let context = Context::new().with_time_limit(Duration::from_secs(60));
    let mut checked = 0;
    for specification in Specification::all().filter(|s| s.kind().has_probabilities()) {
        for scale in SCALES {
            let data = rows_of_classes(40, scale, 2);
            let Ok(machine) = specification.build(&data, 0) else { continue };
            let Ok(model) = machine.fit(&data, &context) else { continue };
            let place = format!("{specification}, features of {scale:e}");
            if model.training.as_ref().is_some_and(|training| !training.outcome.is_finite()) {
                continue;
            }
            let target = CompressionTarget::Vectors(3);
            for method in [CompressionMethod::Merge, CompressionMethod::Prune] {
                let smaller = ModelCompression { method, ..ModelCompression::new(target) };
                if let Ok(found) = smaller.apply(&model, &context) {
                    let predictor = found.model.predictor(&context).unwrap();
                    if let Ok(values) = predictor.decision_values(data.features()) {
                        assert!(values.values().iter().all(|v| !v.is_nan()), "{place}");
                    }
                    checked += 1;
                }
            }
            for method in [CalibrationMethod::Sigmoid, CalibrationMethod::Isotonic] {
                let found = calibrate(&*machine, &data, model.clone(), method, &context);
                let Ok(found) = found else { continue };
                let predictor = found.predictor(&context).unwrap();
                let Ok(values) = predictor.decision_values(data.features()) else { continue };
                let Ok(shares) = predictor.probabilities_of(&values) else { continue };
                let sound = shares.values().iter().all(|p| (0.0..=1.0).contains(p));
                assert!(sound, "{place}, {method:?}: {shares:?}");
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "{checked}");
}

#[test]
fn probabilities_of_rows_without_labels_are_refused() {
    let data = partly_labelled(1.0, 2);
    for specification in semi_supervised() {
        let machine = specification.build(&data, 0).unwrap();
        let model = machine.fit(&data, &Context::new()).unwrap();
        if model.calibration.is_some() {
            continue;
        }
        let found = calibrate(&*machine, &data, model, CalibrationMethod::Sigmoid, &Context::new());
        assert!(matches!(&found, Err(Error::Model { .. })), "{specification}: {found:?}");
    }
}
