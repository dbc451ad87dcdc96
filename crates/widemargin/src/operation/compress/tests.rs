use super::*;
use crate::data::read::{ReadOptions, read_dataset};
use crate::data::{Dataset, Dense, Labels, Matrix};
use crate::kernel::Kernel;
use crate::machine::{Machine, OneClass, Precision, Scheme, SolverOptions, Svc, Svr};

fn shipped(name: &str) -> Dataset {
    let path = format!("{}/../../data/{name}", env!("CARGO_MANIFEST_DIR"));
    read_dataset(path, &ReadOptions::new()).unwrap()
}

/// Rows of the digits whose numbers leave `remainder` when divided by 3, pixels in [0, 1].
fn digits(keep: impl Fn(usize) -> bool) -> Dataset {
    let all = shipped("digits.libsvm.xz");
    let rows: Vec<usize> = (0..all.rows()).filter(|&i| keep(i)).collect();
    let mut values = Vec::new();
    let mut row = vec![0.0; all.features().columns()];
    for &i in &rows {
        all.features().copy_row(i, &mut row);
        values.extend(row.iter().map(|v| v / 16.0));
    }
    let features = Matrix::DenseF64(Dense::new(rows.len(), row.len(), values).unwrap());
    let labels: Vec<_> = rows.iter().filter_map(|&i| all.labels().get(i)).collect();
    Dataset::new(features, Labels::from_labels(&labels)).unwrap()
}

fn errors(model: &Model, data: &Dataset, context: &Context) -> usize {
    let answers = model.predictor(context).unwrap().predict(data.features()).unwrap();
    (0..data.rows()).filter(|&i| answers.get(i) != data.labels().get(i)).count()
}

/// The expansion after all merges.
fn all(merging: &bottom_up::Merging<'_>) -> Expansion {
    merging.after(merging.costs().count())
}

fn exact() -> SolverOptions {
    SolverOptions { precision: Precision::F64, ..SolverOptions::default() }
}

#[test]
fn digits_shrink_tenfold_at_hardly_any_loss() {
    let context = Context::new();
    let (train, test) = (digits(|i| i % 3 != 0), digits(|i| i % 3 == 0));
    for kernel in [
        Kernel::Gaussian { gamma: 0.1 },
        Kernel::Polynomial { gamma: 1.0 / 16.0, coef0: 0.0, degree: 3 },
    ] {
        let svc = Svc {
            c: 10.0,
            kernel: kernel.clone(),
            scheme: Scheme::OneVsRest,
            options: exact(),
            ..Svc::default()
        };
        let model = svc.fit(&train, &context).unwrap();
        let compressed = Compression::new(Target::Difference(1.0)).apply(&model, &context).unwrap();
        let before: usize = compressed.functions.iter().map(|f| f.before).sum();
        let after: usize = compressed.functions.iter().map(|f| f.after).sum();
        assert_eq!(after, compressed.model.support_count());
        assert!(after * 8 < before, "{kernel}: {before} to {after}");
        let lost = errors(&compressed.model, &test, &context) as i64
            - errors(&model, &test, &context) as i64;
        assert!(lost <= 3, "{kernel}: {lost} errors more");
    }
}

#[test]
fn no_value_changes_by_more_than_the_residual() {
    let context = Context::new();
    let train = digits(|i| i % 3 != 0);
    let svc = Svc {
        c: 10.0,
        kernel: Kernel::Gaussian { gamma: 0.1 },
        scheme: Scheme::OneVsRest,
        options: exact(),
        ..Svc::default()
    };
    let model = svc.fit(&train, &context).unwrap();
    let compressed = Compression::new(Target::Ratio(0.3)).apply(&model, &context).unwrap();
    let probes = digits(|i| i % 3 == 0);
    let values =
        |m: &Model| m.predictor(&context).unwrap().decision_values(probes.features()).unwrap();
    let (old, new) = (values(&model), values(&compressed.model));
    let rule = Rule::of(&model.kernel).unwrap();
    for (f, original) in expansions(&model).iter().enumerate() {
        let norm = squared_norm(&rule, original, &context).unwrap();
        let bound = (compressed.functions[f].relative_residual * norm).sqrt();
        for i in 0..probes.rows() {
            assert!((old.row(i)[f] - new.row(i)[f]).abs() <= bound + 1e-9);
        }
    }
}

#[test]
fn merging_alone_keeps_to_the_difference_asked_for() {
    let context = Context::new();
    let train = digits(|i| i % 3 == 1);
    let svc = Svc {
        kernel: Kernel::Gaussian { gamma: 0.1 },
        scheme: Scheme::OneVsRest,
        options: exact(),
        ..Svc::default()
    };
    let model = svc.fit(&train, &context).unwrap();
    let rule = Rule::of(&model.kernel).unwrap();
    for original in expansions(&model) {
        let merging = merge(&original, &rule, Stop::Difference(0.4), &context).unwrap();
        let difference = largest_difference(&rule, &all(&merging), &original, &context).unwrap();
        assert!(difference <= 0.4 + 1e-8, "{difference}");
        assert!(all(&merging).vectors.len() < original.vectors.len());
    }
}

#[test]
fn zero_difference_merges_duplicates_only_and_a_budget_of_one_leaves_a_vector_per_sign() {
    let original = Expansion {
        vectors: vec![vec![0.0, 1.0], vec![2.0, 0.0], vec![0.0, 1.0], vec![1.0, 1.0]],
        weights: vec![0.5, -1.0, 0.25, 0.25],
    };
    let context = Context::new();
    let rule = Rule::of(&Kernel::Gaussian { gamma: 0.7 }).unwrap();
    let exact = merge(&original, &rule, Stop::Difference(0.0), &context).unwrap();
    assert_eq!(all(&exact).vectors.len(), 3);
    assert!(largest_difference(&rule, &all(&exact), &original, &context).unwrap() < 1e-12);
    let least = merge(&original, &rule, Stop::Vectors(1), &context).unwrap();
    assert_eq!(all(&least).vectors.len(), 2);
    assert!(all(&least).weights[0] * all(&least).weights[1] < 0.0);
}

#[test]
fn the_gradient_of_the_refinement_is_that_of_the_residual() {
    let original = Expansion {
        vectors: (0..6).map(|i| vec![(i as f64).sin(), (1.3 * i as f64).cos(), 0.2]).collect(),
        weights: vec![0.5, -1.0, 0.25, 0.75, -0.3, -0.2],
    };
    let context = Context::new();
    for kernel in
        [Kernel::Gaussian { gamma: 0.7 }, Kernel::Polynomial { gamma: 0.5, coef0: 1.0, degree: 3 }]
    {
        let rule = Rule::of(&kernel).unwrap();
        let mut reduced = all(&merge(&original, &rule, Stop::Vectors(3), &context).unwrap());
        let residual = |e: &Expansion| {
            Tables::new(&rule, &e.vectors, &original, &context)
                .unwrap()
                .partial_residual(&e.weights)
        };
        let before = residual(&reduced);
        refine::refine(&rule, &mut reduced, &original, 500, &context).unwrap();
        let after = residual(&reduced);
        assert!(after < before);
        for j in 0..reduced.vectors.len() {
            for k in 0..3 {
                let mut nudged = reduced.clone();
                nudged.vectors[j][k] += 1e-5;
                let up = residual(&nudged);
                nudged.vectors[j][k] -= 2e-5;
                let slope = (up - residual(&nudged)) / 2e-5;
                assert!(slope.abs() < 1e-3, "{kernel}: {slope}");
            }
        }
    }
}

#[test]
fn regression_and_novelty_detection_shrink_too() {
    let context = Context::new();
    let rows = 300_u32;
    let x: Vec<f64> = (0..rows).map(|i| f64::from(i) / 30.0).collect();
    let y: Vec<f64> = x.iter().map(|x| x.sin() + 0.05 * (37.0 * x).cos()).collect();
    let features = Matrix::DenseF64(Dense::new(300, 1, x).unwrap());
    let data = Dataset::new(features.clone(), Labels::Real(y)).unwrap();
    let svr = Svr { c: 10.0, epsilon: 0.02, options: exact(), ..Svr::default() };
    let model = svr.fit(&data, &context).unwrap();
    let compressed = Compression::new(Target::Vectors(20)).apply(&model, &context).unwrap();
    assert_eq!(compressed.model.support_count(), 20);
    assert!(compressed.functions[0].largest_difference < 0.05);
    let unlabelled = Dataset::new(features, Labels::None).unwrap();
    let one_class = OneClass { nu: 0.3, options: exact(), ..OneClass::default() };
    let model = one_class.fit(&unlabelled, &context).unwrap();
    let compressed = Compression::new(Target::Vectors(5)).apply(&model, &context).unwrap();
    assert_eq!(compressed.model.support_count(), 5);
}

#[test]
fn every_scheme_and_every_thread_count_gives_an_ordinary_model() {
    let train = digits(|i| i % 4 == 1);
    for scheme in [Scheme::OneVsOne, Scheme::Dag, Scheme::OneVsRest] {
        let svc = Svc {
            kernel: Kernel::Gaussian { gamma: 0.1 },
            scheme: scheme.clone(),
            ..Svc::default()
        };
        let one = Context::new();
        let model = svc.fit(&train, &one).unwrap();
        let compression = Compression { target: Target::Ratio(0.3), refinement: 5 };
        let compressed = compression.apply(&model, &one).unwrap();
        let two = Context::new().with_threads(2).unwrap();
        assert_eq!(compression.apply(&model, &two).unwrap().model, compressed.model);
        let bytes = compressed.model.to_bytes().unwrap();
        assert_eq!(Model::load_from_bytes(&bytes).unwrap(), compressed.model);
        let table = compressed.model.classes.as_ref().unwrap();
        assert_eq!(table.support.iter().sum::<usize>(), compressed.model.support_count());
        assert!(errors(&compressed.model, &train, &one) <= errors(&model, &train, &one) + 20);
    }
}

#[test]
fn impossible_wishes_are_refused() {
    let context = Context::new();
    let train = digits(|i| i % 6 == 1);
    let model = Svc::default().fit(&train, &context).unwrap();
    for target in [
        Target::Difference(-1.0),
        Target::Difference(f64::NAN),
        Target::Vectors(0),
        Target::Ratio(0.0),
        Target::Ratio(1.5),
    ] {
        let refused = Compression::new(target).apply(&model, &context);
        assert!(matches!(refused, Err(Error::Parameter { .. })), "{target:?}");
    }
    let laplacian = Svc { kernel: Kernel::Laplacian { gamma: 0.1 }, ..Svc::default() };
    let model = laplacian.fit(&train, &context).unwrap();
    let refused = Compression::new(Target::Ratio(0.5)).apply(&model, &context);
    assert!(matches!(refused, Err(Error::Kernel { .. })));
}

#[test]
fn a_loss_allowed_on_held_out_rows_is_used_but_not_exceeded() {
    let context = Context::new();
    let (train, test) = (digits(|i| i % 3 != 0), digits(|i| i % 3 == 0));
    let svc = Svc { c: 10.0, kernel: Kernel::Gaussian { gamma: 0.1 }, ..Svc::default() };
    let model = svc.fit(&train, &context).unwrap();
    let allowed = errors(&model, &test, &context) + test.rows() / 100;
    let smaller = smallest_within(&model, &test, 0.01, 20, &context).unwrap().unwrap();
    assert!(errors(&smaller.model, &test, &context) <= allowed);
    assert!(smaller.model.support_count() * 4 < model.support_count());
    assert!(smallest_within(&model, &test, 1.5, 20, &context).is_err());
}
