//! Limits and requests to stop end with a feasible model that says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use widemargin::Status;
use widemargin::data::{Dataset, Dense, Label, Labels, Matrix};
use widemargin::kernel::{CustomKernel, Kernel};
use widemargin::machine::sequence::{BaumWelch, Emission, Hmm, Sequences};
use widemargin::machine::{
    ClusteringMethod, Covariance, Fisher, GaussianMixture, Initialisation, KNearest, KernelFisher,
    LsSvc, LsSvr, Machine, MaxMarginClustering, MixtureBayes, Model, MulticlassSvc,
    NeighbourMetric, NuSvc, Precision, SolverOptions, Svc,
};
use widemargin::operation::threshold::{ErrorLimit, move_threshold};
use widemargin::{CancelToken, Context, Error, Event};

use crate::extremes::{check_stopped, rows_of_classes};

/// Rows on a circle with labels that alternate: slow to separate.
fn hard(n: usize) -> Dataset {
    let angle = |i: usize| i as f64 * 2.399_963;
    let values = (0..n).flat_map(|i| [angle(i).cos(), angle(i).sin(), (i % 7) as f64]).collect();
    let labels = (0..n).map(|i| ((i * i + 3 * i) % 5 < 2) as i64).collect();
    let features = Matrix::DenseF64(Dense::new(n, 3, values).unwrap());
    Dataset::new(features, Labels::Int(labels)).unwrap()
}

fn svc(max_iterations: Option<u64>) -> Svc {
    let options = SolverOptions { max_iterations, tol: 1e-6, ..SolverOptions::default() };
    Svc { c: 1e4, kernel: Kernel::Gaussian { gamma: 5.0 }, options, ..Svc::default() }
}

/// Checks that the model is usable and its coefficients feasible: |c| ≤ C and Σc = 0.
fn assert_feasible(model: &Model, c: f64) {
    let coefficients: Vec<f64> =
        model.functions()[0].parts.iter().flat_map(|part| part.coefficients.clone()).collect();
    assert!(coefficients.iter().all(|v| v.abs() <= c));
    assert!(coefficients.iter().sum::<f64>().abs() <= 1e-9 * c * coefficients.len() as f64);
    let outcome = model.training.as_ref().unwrap().outcome;
    assert!(outcome.violation > 1e-6 && outcome.gap() > 0.0);
}

#[test]
fn the_iteration_limit_is_kept() {
    for n in [500, 6000] {
        let model = svc(Some(100)).fit(&hard(n), &Context::new()).unwrap();
        let outcome = model.training.as_ref().unwrap().outcome;
        assert_eq!(outcome.status, Status::IterationLimit);
        assert!(outcome.iterations <= 100);
        assert_feasible(&model, 1e4);
    }
}

#[test]
fn the_time_limit_is_kept() {
    let context = Context::new().with_time_limit(Duration::ZERO);
    for n in [500, 6000] {
        let model = svc(None).fit(&hard(n), &context).unwrap();
        assert_eq!(model.training.as_ref().unwrap().outcome.status, Status::TimeLimit);
    }
}

#[test]
fn cancelling_stops_at_the_next_block() {
    for n in [500, 6000] {
        let token = CancelToken::new();
        let reports = Arc::new(AtomicUsize::new(0));
        let (seen, cancel) = (Arc::clone(&reports), token.clone());
        let context =
            Context::new().with_cancel_token(token).with_observer(move |event: &Event| {
                if matches!(event, Event::Iteration { .. })
                    && seen.fetch_add(1, Ordering::Relaxed) == 2
                {
                    cancel.cancel();
                }
            });
        let model = svc(None).fit(&hard(n), &context).unwrap();
        assert_eq!(model.training.as_ref().unwrap().outcome.status, Status::Interrupted);
        assert_eq!(reports.load(Ordering::Relaxed), 3);
        assert_feasible(&model, 1e4);
    }
}

#[test]
fn the_dual_never_decreases() {
    let duals = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&duals);
    let context = Context::new().with_observer(move |event: &Event| {
        if let Event::Iteration { objective, .. } = event {
            seen.lock().unwrap().push(*objective);
        }
    });
    svc(Some(200_000)).fit(&hard(5000), &context).unwrap();
    let duals = duals.lock().unwrap();
    assert!(duals.len() > 3);
    for pair in duals.windows(2) {
        assert!(pair[1] >= pair[0] - 1e-6 * pair[0].abs(), "{pair:?}");
    }
}

/// Columns of size 10⁶ beside columns of size 1 and 10⁻³, and classes that overlap.
fn unscaled(n: usize) -> Dataset {
    let mut state = 1_u64;
    let mut uniform = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1_u32 << 30) - 1.0
    };
    // Sums of four uniform numbers are nearly normal.
    let mut normal = || (0..4).map(|_| uniform()).sum::<f64>();
    let rows: Vec<[f64; 7]> = (0..n).map(|_| std::array::from_fn(|_| normal())).collect();
    let label = |row: &[f64; 7]| i64::from(row[0] * row[1] + 0.3 * row[2] + 0.5 * row[6] > 0.0);
    let labels = rows.iter().map(label).collect();
    let scaled = |r: &[f64; 7]| [1e6 * r[0], 1e6 * r[1], 1e6 * r[2], r[3], 1e-3 * r[4], 1e6 * r[5]];
    let features = Dense::new(n, 6, rows.iter().flat_map(scaled).collect()).unwrap();
    Dataset::new(Matrix::DenseF64(features), Labels::Int(labels)).unwrap()
}

#[test]
fn unscaled_columns_and_a_huge_penalty_end_in_time_with_an_honest_status() {
    let (data, limit) = (unscaled(400), Duration::from_secs(1));
    let quintic = |gamma| Kernel::Polynomial { gamma, coef0: 1.0, degree: 5 };
    for (kernel, precision, is_solved) in [
        (quintic(1e-12), Precision::F64, true),
        (quintic(1e-12), Precision::F32, false),
        (quintic(1.0), Precision::F32, false),
        (Kernel::Linear, Precision::F64, false),
    ] {
        let violations = Arc::new(std::sync::Mutex::new(Vec::new()));
        let seen = Arc::clone(&violations);
        let observer = move |event: &Event| {
            if let Event::Iteration { violation, .. } = event {
                seen.lock().unwrap().push(*violation);
            }
        };
        let context = Context::new().with_time_limit(limit).with_observer(observer);
        let options = SolverOptions { precision, ..SolverOptions::default() };
        let machine = Svc { c: 1e6, kernel, options, ..Svc::default() };
        let begin = Instant::now();
        let model = machine.fit(&data, &context).unwrap();
        // Ten times the limit, for a machine that is busy.
        assert!(begin.elapsed() < 10 * limit, "{machine:?}");
        let outcome = model.training.as_ref().unwrap().outcome;
        assert!(outcome.is_finite(), "{outcome:?}");
        assert_eq!(outcome.status == Status::Solved, outcome.violation <= 1e-3, "{outcome:?}");
        assert!(!is_solved || outcome.status == Status::Solved, "{outcome:?}");
        let coefficients = model.functions()[0].parts.iter().flat_map(|part| &part.coefficients);
        assert!(coefficients.clone().all(|value| value.abs() <= 1e6));
        let sizes: f64 = coefficients.clone().map(|value| value.abs()).sum();
        assert!(coefficients.sum::<f64>().abs() <= 1e-9 * sizes, "{outcome:?}");
        let violations = violations.lock().unwrap();
        let lowest = violations.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(!is_solved || lowest < 1e-3 * violations[0], "{violations:?}");
    }
}

/// A Gaussian kernel that counts its values and asks to stop at `cancel_at` of them.
fn counting_kernel(cancel_at: usize) -> (Kernel, CancelToken, Arc<AtomicUsize>) {
    let (token, count) = (CancelToken::new(), Arc::new(AtomicUsize::new(0)));
    let (cancel, counted) = (token.clone(), Arc::clone(&count));
    let value = move |a: &[f64], b: &[f64]| {
        if counted.fetch_add(1, Ordering::Relaxed) == cancel_at {
            cancel.cancel();
        }
        (-a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>()).exp()
    };
    (Kernel::Custom(CustomKernel::new("counting", value)), token, count)
}

#[test]
fn least_squares_stops_inside_a_product() {
    // One product has 9 million values, of which at most four million are between two looks.
    let (n, cancel_at) = (3000, 2_000_000);
    let data = hard(n);
    for classes in [true, false] {
        let (kernel, token, count) = counting_kernel(cancel_at);
        let context = Context::new().with_cancel_token(token);
        let machine: Box<dyn Machine> = match classes {
            true => Box::new(LsSvc { kernel, ..LsSvc::default() }),
            false => Box::new(LsSvr { kernel, ..LsSvr::default() }),
        };
        let model = machine.fit(&data, &context).unwrap();
        let outcome = model.training.unwrap().outcome;
        assert_eq!(outcome.status, Status::Interrupted);
        assert!(outcome.is_finite() && outcome.violation > 0.0);
        let values = count.load(Ordering::Relaxed);
        assert!(values <= cancel_at + (1 << 22) + n, "{values}");
    }
}

#[test]
fn least_squares_without_time_returns_a_model_that_says_so() {
    let context = Context::new().with_time_limit(Duration::ZERO);
    for n in [200, 3000] {
        let model = LsSvc::default().fit(&hard(n), &context).unwrap();
        let outcome = model.training.as_ref().unwrap().outcome;
        assert_eq!(outcome.status, Status::TimeLimit);
        // All coefficients are zero, where the residuals are the targets -1 and 1.
        assert_eq!((outcome.violation, outcome.dual), (2.0, 0.0));
    }
}

#[test]
fn an_all_in_one_machine_uses_the_time_it_has() {
    // The scores of all rows take long to bring up to date after a large part: parts are made as large as
    // the time left allows instead of giving up before the first.
    let limit = Duration::from_secs(1);
    let context = Context::new().with_cache_bytes(64 << 20).with_time_limit(limit);
    let machine = MulticlassSvc {
        kernel: Kernel::Gaussian { gamma: 5.0 },
        c: 100.0,
        ..MulticlassSvc::default()
    };
    let started = Instant::now();
    let model = machine.fit(&hard(12_000), &context).unwrap();
    let outcome = model.training.as_ref().unwrap().outcome;
    if outcome.status == Status::TimeLimit {
        let used = started.elapsed();
        assert!(used >= limit.mul_f64(0.8), "gave up after {used:?}");
        assert!(outcome.dual > 0.0);
    } else {
        assert!(outcome.status.is_solved());
    }
}

#[test]
fn a_nu_machine_whose_margin_is_small_beside_the_tolerance_closes_its_gap_or_warns() {
    // Two classes whose rows stand in each other's way: a narrow kernel separates them by a small margin.
    let value = |i: usize| (i * 7919 % 1013) as f64 / 1013.0 - 0.5;
    let features = Matrix::DenseF64(Dense::new(60, 5, (0..300).map(value).collect()).unwrap());
    let data = Dataset::new(features, Labels::Int((0..60).map(|i| i % 2).collect())).unwrap();
    let share_and_warnings = |tol: f64, max_iterations: Option<u64>| {
        let warnings = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&warnings);
        let context = Context::new().with_observer(move |event: &Event| {
            if let Event::Warning { message } = event {
                assert!(message.contains("duality gap"), "{message}");
                seen.fetch_add(1, Ordering::Relaxed);
            }
        });
        let precision = Precision::F64;
        let options = SolverOptions { tol, precision, max_iterations, ..SolverOptions::default() };
        let kernel = Kernel::Gaussian { gamma: 1000.0 };
        let machine = NuSvc { nu: 0.05, kernel, options, ..NuSvc::default() };
        let outcome = machine.fit(&data, &context).unwrap().training.unwrap().outcome;
        assert!(outcome.status.is_solved());
        (outcome.gap() / outcome.primal.abs(), warnings.load(Ordering::Relaxed))
    };
    // The tolerance is met before the first step; too few steps are left to close the gap.
    let (open, warned) = share_and_warnings(1.0, Some(10));
    assert!(open > 0.01 && warned == 1, "{open} {warned}");
    for tol in [1.0, 0.1, 1e-2, 1e-3] {
        let (share, warned) = share_and_warnings(tol, None);
        assert_eq!(warned, usize::from(share > 0.01), "{tol}: {share}");
    }
    let (usual, _) = share_and_warnings(1e-3, None);
    assert!(usual < 0.01, "{usual}");
}

#[test]
fn predictions_end_at_the_time_limit() {
    let data = hard(2000);
    let model = svc(Some(100)).fit(&data, &Context::new()).unwrap();
    let in_time = Context::new().with_time_limit(Duration::from_secs(600));
    let whole = model.predictor(&in_time).unwrap().decision_values(data.features()).unwrap();
    let parts = model.predictor(&in_time).unwrap().decision_values_in_time(data.features());
    for (part, whole) in parts.unwrap().values().iter().zip(whole.values()) {
        assert!((part - whole).abs() <= 1e-9 * (1.0 + whole.abs()), "{part} {whole}");
    }
    let late = Context::new().with_time_limit(Duration::ZERO);
    let predictor = model.predictor(&late).unwrap();
    let limit = ErrorLimit::FalsePositives(0.1);
    for error in [
        predictor.decision_values_in_time(data.features()).unwrap_err(),
        predictor.predict_in_time(data.features()).unwrap_err(),
        move_threshold(&model, &data, &Label::Int(1), limit, &late).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Interrupted), "{error}");
    }
}

/// Rows in which every feature is one of a thousand numbers, of three classes.
fn wide(rows: usize, columns: usize) -> Dataset {
    let value = |at: usize| {
        let mixed = (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed ^ (mixed >> 29)) % 1009) as f64 / 1009.0 - 0.5
    };
    let features = Dense::new(rows, columns, (0..rows * columns).map(value).collect()).unwrap();
    let labels = Labels::Int((0..rows as i64).map(|i| i * i % 7 % 3).collect());
    Dataset::new(Matrix::DenseF64(features), labels).unwrap()
}

#[test]
fn matrices_of_many_features_are_left_when_the_time_is_over() {
    let status = |model: Model| model.training.unwrap().outcome.status;
    let data = wide(1_600, 1_500);
    let fit = |place: String, machine: &dyn Machine, data: &Dataset| {
        check_stopped(&place, |context| machine.fit(data, context).map(status));
    };
    for covariance in
        [Covariance::Full, Covariance::Tied, Covariance::EqualShape, Covariance::VariableVolume]
    {
        // Every pass, factor and system of eigenvectors takes longer than the limit.
        let initialisation = Initialisation::Random;
        let mixture =
            GaussianMixture { components: 3, covariance, initialisation, ..Default::default() };
        fit(format!("mixture {covariance}"), &mixture, &data);
    }
    let mixture = GaussianMixture { components: 2, ..GaussianMixture::default() };
    let classes = Labels::Int((0..1_600).map(|i| i % 3).collect());
    let data = data.with_labels(classes).unwrap();
    let unlabelled = Some(Label::Int(0));
    fit("bayes".into(), &MixtureBayes { mixture, unlabelled, ..MixtureBayes::default() }, &data);
    for metric in [NeighbourMetric::Mahalanobis, NeighbourMetric::MahalanobisWithin] {
        // Fewer rows than features: eigenvectors after a factor that fails.
        fit(metric.to_string(), &KNearest { metric, ..KNearest::default() }, &wide(1_200, 1_500));
    }
    fit("fisher".into(), &Fisher::default(), &wide(1_200, 1_500));
    let many = wide(2_400, 10).with_labels(Labels::Int((0..2_400).map(|i| i % 1_200).collect()));
    let machine =
        KernelFisher { kernel: Kernel::Gaussian { gamma: 5.0 }, ..KernelFisher::default() };
    fit("kernel fisher".into(), &machine, &many.unwrap());
}

#[test]
fn distances_between_many_features_are_left_when_the_time_is_over() {
    let data = wide(4_000, 1_500);
    let whitened = Context::new();
    let machine = GaussianMixture { covariance: Covariance::Full, ..GaussianMixture::default() };
    let machine = GaussianMixture { max_iterations: 1, floor: 1.0, ..machine };
    let few = data.select_rows(&(0..20).collect::<Vec<_>>());
    let mixture = machine.fit(&few, &whitened).unwrap();
    check_stopped("densities", |context| {
        let values = mixture.predictor(context)?.decision_values_in_time(data.features())?;
        assert_eq!(values.rows(), data.rows());
        Ok(Status::Solved)
    });
}

#[test]
fn clusters_of_many_rows_are_finished_in_a_moment() {
    let status = |model: Model| model.training.unwrap().outcome.status;
    let data = rows_of_classes(40_000, 1.0, 2);
    let machine = MaxMarginClustering {
        method: ClusteringMethod::Iterative,
        clusters: 3,
        kernel: Kernel::Linear,
        ..MaxMarginClustering::default()
    };
    check_stopped("iterative", |context| machine.fit(&data, context).map(status));
}

#[test]
fn one_long_sequence_is_left_when_the_time_is_over() {
    let wide = wide(6_000, 64);
    let Matrix::DenseF64(rows) = wide.features() else { panic!("dense rows") };
    let sequences = Sequences::of_rows(rows.clone(), None).unwrap();
    let (states, size) = (40, 64);
    let unit: Vec<f64> = (0..size * size).map(|at| f64::from(at % (size + 1) == 0)).collect();
    let means = (0..states * size).map(|at| (at % 13) as f64 / 13.0).collect();
    let (shape, covariances) = (Covariance::Full, unit.repeat(states));
    let emission = Emission::Gaussian { means, shape, covariances };
    let first = Hmm::random(states, &emission, &sequences, 1).unwrap();
    check_stopped("densities of one sequence", |context| {
        let learning = BaumWelch { iterations: 1_000, tol: 0.0, ..BaumWelch::default() };
        learning.fit(&first, &sequences, context).map(|found| found.status)
    });
    // Sums of logarithms over pairs of many states.
    let (states, symbols) = (600, (0..4_000).map(|i| i * i % 7).collect());
    let uniform = vec![1.0 / 600.0; states];
    let emission = Emission::Categorical { probabilities: vec![1.0 / 7.0; 7 * states] };
    let hmm = Hmm::new(uniform.clone(), uniform.repeat(states), emission).unwrap();
    let sequences = Sequences::of_symbols(symbols, None).unwrap();
    for logarithms in [false, true] {
        check_stopped("sums of one sequence", |context| {
            hmm.posteriors(&sequences, logarithms, context).map(|_| Status::Solved)
        });
    }
    check_stopped("the best path of one sequence", |context| {
        hmm.viterbi(&sequences, context).map(|_| Status::Solved)
    });
}
