//! Probabilities against the true ones of data whose distribution is known, and against LIBSVM's.

use std::path::Path;
use std::sync::{Arc, Mutex};

use widemargin::data::read::{ReadOptions, read_dataset};
use widemargin::data::{Dataset, Dense, Labels, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{
    Calibration, CalibrationMethod, Machine, Model, OneClass, Scheme, Svc, Svdd, Svr,
    error_correcting_code,
};
use widemargin::operation::calibrate::calibrate;
use widemargin::{CancelToken, Context, Event};

/// Uniform numbers in (0, 1) from a multiplicative congruence (Park and Miller).
struct Uniform(u64);

impl Uniform {
    fn next(&mut self) -> f64 {
        self.0 = self.0 * 48271 % 2_147_483_647;
        self.0 as f64 / 2_147_483_647.0
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.next().ln()).sqrt() * (std::f64::consts::TAU * self.next()).cos()
    }
}

/// Rows of classes 0, 1, … whose centers lie one unit apart on a circle, with normal noise.
fn normal_classes(rows: usize, classes: usize, seed: u64) -> (Dataset, Vec<[f64; 2]>) {
    let mut random = Uniform(seed);
    let center = |class: usize| {
        let angle = std::f64::consts::TAU * class as f64 / classes as f64;
        [1.2 * angle.cos(), 1.2 * angle.sin()]
    };
    let mut values = Vec::new();
    for row in 0..rows {
        values.extend(center(row % classes).map(|middle| middle + random.normal()));
    }
    let features = Matrix::DenseF64(Dense::new(rows, 2, values).unwrap());
    let labels = Labels::Int((0..rows).map(|row| (row % classes) as i64).collect());
    (Dataset::new(features, labels).unwrap(), (0..classes).map(center).collect())
}

/// The true probabilities of the classes at a row.
fn posterior(x: &[f64], centers: &[[f64; 2]]) -> Vec<f64> {
    let density = |c: &[f64; 2]| (-0.5 * ((x[0] - c[0]).powi(2) + (x[1] - c[1]).powi(2))).exp();
    let total: f64 = centers.iter().map(density).sum();
    centers.iter().map(|c| density(c) / total).collect()
}

/// Mean distance of a model's probabilities from the true ones on fresh rows.
fn mean_error(model: &Model, classes: usize) -> f64 {
    let (fresh, centers) = normal_classes(600, classes, 77);
    let context = Context::new();
    let predictor = model.predictor(&context).unwrap();
    let found = predictor.probabilities(fresh.features()).unwrap();
    let mut x = [0.0; 2];
    let mut sum = 0.0;
    for row in 0..fresh.rows() {
        fresh.features().copy_row(row, &mut x);
        let probabilities = found.row(row);
        assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(probabilities.iter().all(|p| (0.0..=1.0).contains(p)));
        for (found, expected) in probabilities.iter().zip(posterior(&x, &centers)) {
            sum += (found - expected).abs();
        }
    }
    sum / (fresh.rows() * classes) as f64
}

fn calibrated(svc: &Svc, data: &Dataset, method: CalibrationMethod) -> Model {
    let context = Context::new().with_seed(3);
    let model = svc.fit(data, &context).unwrap();
    calibrate(svc, data, model, method, &context).unwrap()
}

#[test]
fn two_classes_get_about_their_true_probabilities() {
    let (data, _) = normal_classes(900, 2, 5);
    let svc = Svc { kernel: Kernel::Linear, c: 0.1, ..Svc::default() };
    let sigmoid = mean_error(&calibrated(&svc, &data, CalibrationMethod::Sigmoid), 2);
    assert!(sigmoid < 0.02, "{sigmoid}");
    let isotonic = mean_error(&calibrated(&svc, &data, CalibrationMethod::Isotonic), 2);
    assert!(isotonic < 0.05, "{isotonic}");
    // The yardstick: saying ½ everywhere is far worse.
    let (fresh, centers) = normal_classes(600, 2, 77);
    let mut x = [0.0; 2];
    let mut indifferent = 0.0;
    for row in 0..600 {
        fresh.features().copy_row(row, &mut x);
        indifferent += (posterior(&x, &centers)[0] - 0.5).abs() / 600.0;
    }
    assert!(indifferent > 0.3, "{indifferent}");
}

#[test]
fn every_scheme_gets_about_the_true_probabilities() {
    let (data, _) = normal_classes(900, 4, 5);
    for (scheme, limit) in [
        (Scheme::OneVsOne, 0.035),
        (Scheme::Dag, 0.035),
        (Scheme::OneVsRest, 0.07),
        (Scheme::ErrorCorrecting(error_correcting_code(4, 0).into()), 0.05),
    ] {
        let name = format!("{scheme:?}");
        let svc = Svc { kernel: Kernel::Gaussian { gamma: 0.1 }, scheme, ..Svc::default() };
        let error = mean_error(&calibrated(&svc, &data, CalibrationMethod::Sigmoid), 4);
        assert!(error < limit, "{name}: {error}");
    }
}

#[test]
fn the_scale_of_laplace_noise_is_found() {
    let mut random = Uniform(9);
    let x: Vec<f64> = (0..800).map(|_| random.next()).collect();
    let mut noise = || {
        let u = random.next() - 0.5;
        -0.3 * u.signum() * (1.0 - 2.0 * u.abs()).ln()
    };
    let y: Vec<f64> = x.iter().map(|x| 2.0 * x + noise()).collect();
    let features = Matrix::DenseF64(Dense::new(800, 1, x).unwrap());
    let data = Dataset::new(features, Labels::Real(y)).unwrap();
    let svr = Svr { kernel: Kernel::Linear, ..Svr::default() };
    let context = Context::new();
    let model = svr.fit(&data, &context).unwrap();
    let model = calibrate(&svr, &data, model, CalibrationMethod::Sigmoid, &context).unwrap();
    let Some(Calibration::Laplace { scale }) = model.calibration else { panic!() };
    assert!((scale - 0.3).abs() < 0.03, "{scale}");
    let error = model.predictor(&context).unwrap().probabilities(data.features()).unwrap_err();
    assert!(error.to_string().contains("a regressor has no class probabilities"), "{error}");
}

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/libsvm").join(name)
}

fn table(name: &str) -> Vec<Vec<f64>> {
    let text = std::fs::read_to_string(fixture(name)).unwrap();
    text.lines().map(|line| line.split(' ').map(|n| n.parse().unwrap()).collect()).collect()
}

#[test]
fn libsvm_models_predict_libsvm_probabilities() {
    let queries = read_dataset(fixture("queries.txt"), &ReadOptions::new().columns(4)).unwrap();
    let context = Context::new();
    for name in ["c_svc_linear_binary", "c_svc_rbf", "nu_svc_rbf", "one_class_rbf"] {
        let model = Model::load(fixture(&format!("{name}.model"))).unwrap();
        let predictor = model.predictor(&context).unwrap();
        let values = predictor.decision_values(queries.features()).unwrap();
        for (found, expected) in
            (0..12).map(|i| values.row(i)).zip(table(&format!("{name}.values")))
        {
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-9, "{name}: {found} for {expected}");
            }
        }
        let found = predictor.probabilities(queries.features()).unwrap();
        let expected = table(&format!("{name}.probabilities"));
        for (row, expected) in expected.iter().enumerate() {
            assert_eq!(found.row(row).len(), expected.len());
            for (found, expected) in found.row(row).iter().zip(expected) {
                assert!((found - expected).abs() < 1e-9, "{name}: {found} for {expected}");
            }
        }
    }
}

#[test]
fn density_marks_are_those_libsvm_finds() {
    let data = read_dataset(fixture("training.txt"), &ReadOptions::new().columns(4)).unwrap();
    let model = Model::load(fixture("one_class_rbf.model")).unwrap();
    let Some(Calibration::Density { marks: expected }) = model.calibration.clone() else {
        panic!()
    };
    let bare = Model { calibration: None, ..model };
    let machine = OneClass::default();
    let found = calibrate(&machine, &data, bare, CalibrationMethod::Sigmoid, &Context::new());
    let Some(Calibration::Density { marks }) = found.unwrap().calibration else { panic!() };
    for (found, expected) in marks.iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-9, "{found} for {expected}");
    }
}

#[test]
fn the_most_probable_class_is_named() {
    let (data, _) = normal_classes(120, 3, 5);
    let model = calibrated(&Svc::default(), &data, CalibrationMethod::Sigmoid);
    let context = Context::new();
    let predictor = model.predictor(&context).unwrap();
    let probabilities = predictor.probabilities(data.features()).unwrap();
    let predictions = predictor.most_probable(&probabilities).values().unwrap();
    for (row, prediction) in predictions.iter().enumerate() {
        let best = probabilities.row(row).iter().copied().fold(0.0, f64::max);
        assert_eq!(probabilities.row(row)[*prediction as usize], best);
    }
}

#[test]
fn models_without_probabilities_say_so() {
    let (data, _) = normal_classes(40, 2, 5);
    let context = Context::new();
    let model = Svc::default().fit(&data, &context).unwrap();
    let error = model.predictor(&context).unwrap().probabilities(data.features()).unwrap_err();
    let expected = "model: has no probabilities; train it with probability estimates";
    assert_eq!(error.to_string(), expected);
    let svdd = Svdd::default();
    let ball = svdd.fit(&data, &context).unwrap();
    assert!(calibrate(&svdd, &data, ball, CalibrationMethod::Sigmoid, &context).is_err());
}

#[test]
fn a_class_of_one_row_is_calibrated_too() {
    let (data, _) = normal_classes(41, 2, 5);
    let mut labels = data.labels().values().unwrap();
    labels[40] = 9.0;
    let data = Dataset::new(data.features().clone(), Labels::Real(labels)).unwrap();
    for scheme in [Scheme::OneVsOne, Scheme::OneVsRest] {
        let svc = Svc { scheme, ..Svc::default() };
        let model = calibrated(&svc, &data, CalibrationMethod::Isotonic);
        model.validate().unwrap();
        let context = Context::new();
        let predictor = model.predictor(&context).unwrap();
        assert_eq!(predictor.probabilities(data.features()).unwrap().columns(), 3);
    }
}

#[test]
fn an_interrupted_calibration_returns_the_model_with_a_warning() {
    let (data, _) = normal_classes(60, 2, 5);
    let svc = Svc::default();
    let model = svc.fit(&data, &Context::new()).unwrap();
    let token = CancelToken::new();
    token.cancel();
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let seen = warnings.clone();
    let context = Context::new().with_cancel_token(token).with_observer(move |event: &Event| {
        if let Event::Warning { message } = event {
            seen.lock().unwrap().push(message.clone());
        }
    });
    let kept = calibrate(&svc, &data, model.clone(), CalibrationMethod::Sigmoid, &context).unwrap();
    assert_eq!(kept, model);
    let expected = "calibrating was interrupted; the model has no probabilities";
    assert_eq!(*warnings.lock().unwrap(), [expected]);
}
