//! The specification's reference results on Ripley's synthetic two-class data: errors among the 1 000
//! test rows, and the numbers of the machines behind them.

use std::path::Path;

use widemargin::Context;
use widemargin::data::read::{ReadOptions, read_dataset};
use widemargin::data::{Dataset, Label, Labels};
use widemargin::kernel::Kernel;
use widemargin::machine::{
    Body, Fisher, FisherThreshold, GaussianMixture, KNearest, KernelAdatron, KernelFisher,
    KernelFisherThreshold, Machine, MixtureBayes, Model, NeighbourMetric, NetworkInput, Parzen,
    Precision, ProbabilisticNetwork, SolverOptions, Svc, WindowWidth,
};

fn load(part: &str) -> Dataset {
    let name = format!("../../data/ripley-{part}.csv");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    read_dataset(path, &ReadOptions::new()).unwrap()
}

fn fitted(machine: &dyn Machine) -> Model {
    machine.fit(&load("train"), &Context::new()).unwrap()
}

fn wrong(model: &Model, data: &Dataset) -> usize {
    let context = Context::new();
    let found = model.predictor(&context).unwrap().predict(data.features()).unwrap();
    (0..data.rows()).filter(|&i| found.get(i) != data.labels().get(i)).count()
}

fn errors(machine: &dyn Machine) -> usize {
    wrong(&fitted(machine), &load("test"))
}

/// γ of exp(−‖x − z‖² / 2σ²).
fn gaussian(sigma: f64) -> Kernel {
    Kernel::Gaussian { gamma: 0.5 / (sigma * sigma) }
}

fn bayes(components: usize) -> MixtureBayes {
    let starts = if components > 1 { 10 } else { 1 };
    let mixture =
        GaussianMixture { components, starts, floor: 0.0, tol: 1e-9, ..GaussianMixture::default() };
    let mixture = GaussianMixture { max_iterations: 2000, ..mixture };
    MixtureBayes { mixture, ..MixtureBayes::default() }
}

#[test]
fn fisher_s_weights_and_errors() {
    let model = fitted(&Fisher { threshold: FisherThreshold::Midpoint, ..Fisher::default() });
    let weights = model.linear_weights().unwrap();
    // Ours are positive for the first class.
    assert!((weights.row(0)[0] + 1.48306229).abs() < 1e-7);
    assert!((weights.row(0)[1] + 10.99671773).abs() < 1e-7);
    assert!((model.functions()[0].offset + 5.43842115).abs() < 1e-7);
    assert_eq!(wrong(&model, &load("test")), 108);
}

#[test]
fn gaussians_and_mixtures_of_classes() {
    assert_eq!(errors(&bayes(1)), 102);
    let likelihoods = [[-65.1024, -16.5980], [-5.6784, 16.6226], [-2.1309, 20.9097]];
    for (at, expected) in likelihoods.into_iter().enumerate() {
        let model = fitted(&bayes(at + 1));
        let Body::Mixtures(part) = &model.body else { panic!() };
        let found = 250.0 * part.log_likelihood;
        // Half of the rows are in each class; the priors are not in it.
        let total = 0.5 * 2.0 * (expected[0] + expected[1]);
        assert!((found - total).abs() < 2e-3, "{} components: {found} and {total}", at + 1);
        assert!([102_usize, 90, 90][at].abs_diff(wrong(&model, &load("test"))) <= 1);
    }
}

#[test]
fn neighbours() {
    for (k, expected) in [(1, 150), (3, 134), (5, 130), (7, 111), (9, 112), (15, 95), (25, 89)] {
        assert_eq!(errors(&KNearest { k, ..KNearest::default() }), expected, "k = {k}");
    }
    for (k, expected) in [(5, 119), (15, 93)] {
        let machine = KNearest { k, metric: NeighbourMetric::Mahalanobis, ..KNearest::default() };
        assert_eq!(errors(&machine), expected, "k = {k}");
    }
}

#[test]
fn kernel_discriminants() {
    let settings = [(0.3, 1e-3), (0.5, 1e-3), (0.3, 1e-2)];
    for (threshold, expected) in [
        (KernelFisherThreshold::Midpoint, [94, 96, 92]),
        (KernelFisherThreshold::Svm, [93, 96, 92]),
    ] {
        for ((sigma, mu), expected) in settings.into_iter().zip(expected) {
            let kernel = gaussian(sigma);
            let machine = KernelFisher { kernel, mu, threshold, ..KernelFisher::default() };
            assert_eq!(errors(&machine), expected, "{threshold} {sigma} {mu}");
        }
    }
}

#[test]
fn windows_and_the_network() {
    let widths = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5];
    for (width, expected) in widths.into_iter().zip([126, 93, 87, 83, 81, 82, 157]) {
        let machine = Parzen { width: WindowWidth::Value(width), ..Parzen::default() };
        assert_eq!(errors(&machine), expected, "{width}");
    }
    let network = |input, width| {
        let width = WindowWidth::Value(width);
        errors(&ProbabilisticNetwork { input, width, ..ProbabilisticNetwork::default() })
    };
    for (width, expected) in [(0.1, 220), (0.2, 170), (0.3, 183)] {
        assert_eq!(network(NetworkInput::UnitNorm, width), expected, "{width}");
    }
    // The largest length among training and test rows.
    let mut radius = 0.0_f64;
    for data in [load("train"), load("test")] {
        for i in 0..data.rows() {
            let mut squares = 0.0;
            data.features().for_each_nonzero(i, |_, value| squares += value * value);
            radius = radius.max(squares.sqrt());
        }
    }
    for (width, expected) in [(0.05, 124), (0.1, 91), (0.15, 90)] {
        assert_eq!(network(NetworkInput::Lifted { radius }, width), expected, "{width}");
    }
}

#[test]
fn narrow_windows_ask_the_nearest_row_and_wide_ones_the_majority() {
    let context = Context::new();
    let test = load("test");
    let predictions = |machine: &dyn Machine, data: &Dataset| {
        let model = machine.fit(data, &context).unwrap();
        model.predictor(&context).unwrap().predict(test.features()).unwrap()
    };
    let narrow = Parzen { width: WindowWidth::Value(1e-4), ..Parzen::default() };
    let nearest = KNearest { k: 1, ..KNearest::default() };
    assert_eq!(predictions(&narrow, &load("train")), predictions(&nearest, &load("train")));
    // All of the first class and a third of the second.
    let uneven = load("train").select_rows(&(0..165).collect::<Vec<_>>());
    let wide = Parzen { width: WindowWidth::Value(1e6), ..Parzen::default() };
    assert_eq!(predictions(&wide, &uneven), Labels::Int(vec![0; 1000]));
}

#[test]
fn widths_by_cross_validation() {
    let widths = |machine: &dyn Machine| {
        let model = fitted(machine);
        let Body::Windows(part) = &model.body else { panic!() };
        (part.widths.clone(), wrong(&model, &load("test")))
    };
    let (likeliest, _) = widths(&Parzen { width: WindowWidth::LeaveOneOut, ..Parzen::default() });
    assert!((likeliest[0] - 0.1084).abs() < 5e-4 && (likeliest[1] - 0.0961).abs() < 5e-4);
    let (chosen, errors) = widths(&ProbabilisticNetwork::default());
    assert!(errors <= 95, "{chosen:?}: {errors}");
    // Left-out errors by a plain loop: none of the grid's pairs of widths has fewer than found by
    // moving one class at a time from the best common factor.
    let data = load("train");
    let mut row = [0.0; 2];
    let rows: Vec<[f64; 2]> = (0..250)
        .map(|i| {
            data.features().copy_row(i, &mut row);
            row
        })
        .collect();
    let Labels::Int(truth) = data.labels() else { panic!() };
    let left_out = |widths: [f64; 2]| {
        let score = |i: usize, class: usize| -> f64 {
            let others = (0..250).filter(|&j| j != i && truth[j] == class as i64);
            let (mut sum, mut count) = (0.0, 0.0);
            for j in others {
                let squares = (rows[i][0] - rows[j][0]).powi(2) + (rows[i][1] - rows[j][1]).powi(2);
                sum += (-0.5 * squares / widths[class].powi(2)).exp();
                count += 1.0;
            }
            sum / (count * widths[class].powi(2))
        };
        (0..250).filter(|&i| score(i, truth[i] as usize) < score(i, 1 - truth[i] as usize)).count()
    };
    let found = left_out([chosen[0], chosen[1]]);
    assert!(found < left_out([likeliest[0], likeliest[1]]));
    for s in -8..=8 {
        let factor = 2.0_f64.powf(f64::from(s) / 4.0);
        assert!(found <= left_out([factor * likeliest[0], factor * likeliest[1]]), "{s}");
        assert!(found <= left_out([factor * likeliest[0], chosen[1]]), "{s}");
        assert!(found <= left_out([chosen[0], factor * likeliest[1]]), "{s}");
    }
}

#[test]
fn support_vector_machines() {
    let settings = [(1.0, 0.3), (10.0, 0.3), (1.0, 0.5), (100.0, 0.5)];
    let expected = [
        (99, 94, -0.173502, 76.925206),
        (99, 77, -0.160801, 642.232407),
        (92, 102, -0.335775, 87.519242),
        (100, 73, -2.195343, 6354.60415),
    ];
    for ((c, sigma), (errors, support, offset, dual)) in settings.into_iter().zip(expected) {
        let options = SolverOptions { tol: 1e-6, ..SolverOptions::default() };
        let precision = widemargin::machine::Precision::F64;
        let options = SolverOptions { precision, ..options };
        let model = fitted(&Svc { c, kernel: gaussian(sigma), options, ..Svc::default() });
        assert_eq!(wrong(&model, &load("test")), errors);
        assert_eq!(model.support_count(), support);
        assert!(
            (model.functions()[0].offset - offset).abs() < 1e-4,
            "{}",
            model.functions()[0].offset
        );
        let outcome = &model.training.as_ref().unwrap().outcome;
        assert!((outcome.dual.abs() / dual - 1.0).abs() < 1e-6, "{}", outcome.dual);
    }
}

/// The training rows with most labels hidden.
fn hidden(shown: usize) -> Dataset {
    let data = load("train");
    let Labels::Int(labels) = data.labels() else { panic!() };
    let mut seen = [0; 2];
    let labels = labels
        .iter()
        .map(|&label| {
            seen[label as usize] += 1;
            if seen[label as usize] <= shown { label } else { -1 }
        })
        .collect();
    data.with_labels(Labels::Int(labels)).unwrap()
}

#[test]
fn rows_without_labels_are_learnt_from() {
    let context = Context::new();
    let machine = |components, max_iterations, floor| MixtureBayes {
        mixture: GaussianMixture {
            components,
            floor,
            tol: 0.0,
            max_iterations,
            ..GaussianMixture::default()
        },
        unlabelled: Some(Label::Int(-1)),
        ..MixtureBayes::default()
    };
    let data = hidden(12);
    let mut before = f64::NEG_INFINITY;
    for iterations in 2..30 {
        let model = machine(1, iterations, 0.0).fit(&data, &context).unwrap();
        let Body::Mixtures(part) = &model.body else { panic!() };
        let priors: f64 = part.log_priors.iter().map(|p| p.exp()).sum();
        assert!((priors - 1.0).abs() < 1e-12);
        assert!(part.log_likelihood >= before - 1e-9, "{before} then {}", part.log_likelihood);
        before = part.log_likelihood;
    }
    // What a plain EM in NumPy reaches after 200 steps.
    let test = load("test");
    for (shown, without, with) in [(12, 212, 161), (20, 113, 108), (30, 109, 107)] {
        let data = hidden(shown);
        let all = machine(1, 200, 0.0).fit(&data, &context).unwrap();
        assert_eq!(all.classes.as_ref().unwrap().names, [Label::Int(0), Label::Int(1)]);
        let few: Vec<usize> =
            (0..250).filter(|&i| data.labels().get(i) != Some(Label::Int(-1))).collect();
        assert_eq!(few.len(), 2 * shown);
        let labelled = machine(1, 200, 0.0).fit(&data.select_rows(&few), &context).unwrap();
        assert_eq!((wrong(&labelled, &test), wrong(&all, &test)), (without, with), "{shown}");
    }
    let machine = |max_iterations| machine(2, max_iterations, 1e-3);
    // Without rows of that label it is the plain machine.
    let plain = MixtureBayes { unlabelled: None, ..machine(50) }.fit(&load("train"), &context);
    let marked = machine(50).fit(&load("train"), &context).unwrap();
    assert_eq!(plain.unwrap().body, marked.body);
}

/// The optimum with a penalised offset, from a quadratic programming solver.
#[test]
fn the_kernel_adatron_reaches_the_optimum_with_a_penalised_offset() {
    let best = 76.93834;
    let fit = |rate: f64, sweeps: u64| {
        let max_iterations = Some(sweeps);
        let options = SolverOptions {
            tol: 1e-6,
            precision: Precision::F64,
            max_iterations,
            ..SolverOptions::default()
        };
        fitted(&KernelAdatron { c: 1.0, kernel: gaussian(0.3), rate, options })
    };
    let early = fit(1.0, 300);
    let reached = early.training.as_ref().unwrap().outcome.dual;
    assert!(reached > best - 0.002 && reached < best + 1e-5, "{reached}");
    assert_eq!(wrong(&early, &load("test")), 99);
    for rate in [0.5, 1.0, 1.9] {
        let outcome = fit(rate, 100_000).training.unwrap().outcome;
        assert!(outcome.status.is_solved(), "{rate}: {outcome:?}");
        assert!((outcome.dual - best).abs() < 1e-5, "{rate}: {outcome:?}");
        assert!(outcome.gap() >= 0.0 && outcome.gap() < 1e-3, "{rate}: {outcome:?}");
    }
}
