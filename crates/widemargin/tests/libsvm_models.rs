//! Model files of LIBSVM 3.37 (`fixtures/libsvm/make.py` made them) are read, evaluated as LIBSVM
//! evaluates them, and written again byte for byte; broken ones are refused with their place.

use std::path::{Path, PathBuf};

use widemargin::data::{Dense, Label, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{Ball, Calibration, MachineKind, Model, Part, Scheme};

const MODELS: [&str; 10] = [
    "c_svc_linear_binary",
    "c_svc_rbf",
    "c_svc_polynomial",
    "c_svc_sigmoid",
    "c_svc_precomputed",
    "nu_svc_rbf",
    "one_class_rbf",
    "epsilon_svr_rbf",
    "nu_svr_polynomial",
    "epsilon_svr_no_vectors",
];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/libsvm").join(name)
}

fn load(name: &str) -> Model {
    Model::load(fixture(&format!("{name}.model"))).unwrap()
}

/// Lines of numbers.
fn table(name: &str) -> Vec<Vec<f64>> {
    let text = std::fs::read_to_string(fixture(name)).unwrap();
    text.lines().map(|line| line.split(' ').map(|n| n.parse().unwrap()).collect()).collect()
}

/// Rows of a data file by index; index 0 is kept.
fn queries(name: &str) -> Vec<Vec<f64>> {
    let text = std::fs::read_to_string(fixture(name)).unwrap();
    let row = |line: &str| {
        let mut values = vec![0.0; 40];
        for pair in line.split(' ').skip(1).filter(|pair| !pair.is_empty()) {
            let (index, value) = pair.split_once(':').unwrap();
            values[index.parse::<usize>().unwrap()] = value.parse().unwrap();
        }
        values
    };
    text.lines().map(row).collect()
}

/// Σ c K(x, s) − offset, term by term; `x[1]` is the first feature.
fn decision_values(model: &Model, x: &[f64]) -> Vec<f64> {
    let mut vector = vec![0.0; model.features()];
    let mut kernel = |s: usize| {
        model.vectors().copy_row(s, &mut vector);
        let at = |j: usize| vector.get(j - 1).copied().unwrap_or(0.0);
        let product: f64 = (1..x.len()).map(|j| x[j] * at(j)).sum();
        let distance: f64 = (1..x.len()).map(|j| (x[j] - at(j)) * (x[j] - at(j))).sum();
        match model.kernel().unwrap() {
            Kernel::Linear => product,
            Kernel::Polynomial { gamma, coef0, degree } => {
                (gamma * product + coef0).powi(*degree as i32)
            }
            Kernel::Gaussian { gamma } => (-gamma * distance).exp(),
            Kernel::Sigmoid { gamma, coef0 } => (gamma * product + coef0).tanh(),
            Kernel::Precomputed => x[model.support_rows()[s] + 1],
            other => panic!("LIBSVM has no {}", other.name()),
        }
    };
    let values: Vec<f64> = (0..model.support_count()).map(&mut kernel).collect();
    let function = |f: &widemargin::machine::DecisionFunction| {
        let sum: f64 = (0..values.len()).map(|s| f.coefficient(s) * values[s]).sum();
        sum - f.offset
    };
    model.functions().iter().map(function).collect()
}

#[test]
fn loaded_models_decide_as_libsvm_does() {
    for name in MODELS {
        let model = load(name);
        let rows = match model.kernel().unwrap() {
            Kernel::Precomputed => queries("queries_precomputed.txt"),
            _ => queries("queries.txt"),
        };
        let expected = table(&format!("{name}.values"));
        assert_eq!(rows.len(), expected.len());
        for (x, expected) in rows.iter().zip(&expected) {
            let found = decision_values(&model, x);
            assert_eq!(found.len(), expected.len(), "{name}");
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-12, "{name}: {found} for {expected}");
            }
        }
    }
}

#[test]
fn loaded_models_are_written_byte_for_byte() {
    for name in MODELS.into_iter().chain(["c_svc_one_label"]) {
        let original = std::fs::read(fixture(&format!("{name}.model"))).unwrap();
        let written = load(name).to_libsvm_bytes().unwrap();
        assert_eq!(String::from_utf8(written), String::from_utf8(original), "{name}");
    }
}

#[test]
fn loaded_models_survive_the_native_format() {
    for name in MODELS.into_iter().chain(["c_svc_one_label"]) {
        let model = load(name);
        assert_eq!(Model::load_from_bytes(&model.to_bytes().unwrap()).unwrap(), model);
    }
}

#[test]
fn headers_keep_their_meaning() {
    let model = load("c_svc_rbf");
    assert_eq!(model.kind, MachineKind::CSvc);
    assert_eq!(model.kernel().unwrap(), &Kernel::Gaussian { gamma: 0.5 });
    let table = model.classes.as_ref().unwrap();
    assert_eq!(table.names, [Label::Int(3), Label::Int(-1), Label::Int(7)]);
    assert_eq!(table.support, [12, 9, 12]);
    assert_eq!(
        model.calibration,
        Some(Calibration::Sigmoid {
            a: vec![-2.662674813743186, -0.4300738670059773, -2.643029134326542],
            b: vec![-0.14297350840610137, -0.02274812657651598, 0.4264571097332055],
        })
    );
    assert!(matches!(load("epsilon_svr_rbf").calibration, Some(Calibration::Laplace { .. })));
    let marks = match load("one_class_rbf").calibration {
        Some(Calibration::Density { marks }) => marks,
        other => panic!("found {other:?}"),
    };
    assert_eq!(marks.len(), 10);
}

#[test]
fn line_breaks_key_order_and_short_numbers_are_tolerated() {
    let text = "\n total_sv 2\r\nnr_class\n2\r\nlabel 1\n-1 nr_sv 1 1 rho .5 kernel_type linear\n\
                svm_type c_svc\r\nSV\r\n+1 1:1. 7:2e0\r\n-1e0\t\r\n\n";
    let model = Model::load_from_bytes(text.as_bytes()).unwrap();
    assert_eq!(model.features(), 7);
    let mut row = vec![0.0; 7];
    model.vectors().copy_row(0, &mut row);
    assert_eq!(row, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0]);
    assert_eq!(model.functions()[0].coefficient(1), -1.0);
    assert_eq!(model.functions()[0].offset, 0.5);
}

#[test]
fn indices_count_from_zero_when_the_file_does() {
    let text = "svm_type one_class\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 1\nSV\n\
                0.5 0:3 2:4\n0.5 1:5\n";
    let model = Model::load_from_bytes(text.as_bytes()).unwrap();
    let mut row = vec![0.0; 3];
    model.vectors().copy_row(0, &mut row);
    assert_eq!(row, [3.0, 0.0, 4.0]);
    let written = String::from_utf8(model.to_libsvm_bytes().unwrap()).unwrap();
    assert!(written.ends_with("SV\n0.5 0:3 2:4 \n0.5 1:5 \n"), "{written}");
}

const BINARY: &str = "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0\n\
                      label 1 -1\nnr_sv 1 1\nSV\n1 1:1\n-1 1:2\n";

/// Changes of [`BINARY`] that break it, with place and message.
const BROKEN: [(&str, &str, &str); 30] = [
    (
        "c_svc",
        "d_svc",
        "1:10: expected one of c_svc, nu_svc, one_class, epsilon_svr, nu_svr, found 'd_svc'",
    ),
    ("svm_type c_svc\n", "", "8:1: expected svm_type, found none before 'SV'"),
    (
        "rbf",
        "gauss",
        "2:13: expected one of linear, polynomial, rbf, sigmoid, precomputed, found 'gauss'",
    ),
    ("gamma 0.5\n", "", "8:1: expected gamma, found none before 'SV'"),
    ("0.5", "nan", "3:7: expected a finite number, found 'nan'"),
    ("0.5", "0.5.1", "3:7: expected a finite number, found '0.5.1'"),
    ("nr_class 2", "nr_class 0", "4:10: expected at least one class, found '0'"),
    ("nr_class 2", "nr_class -2", "4:10: expected a number of classes, found '-2'"),
    ("nr_class 2", "nr_class 4294967295", "7:1: expected a finite number, found 'label'"),
    ("nr_class 2", "nr_class 3", "7:1: expected a finite number, found 'label'"),
    ("nr_class 2\n", "", "5:1: expected nr_class first, found 'rho'"),
    ("total_sv 2", "total_sv 3", "9:1: expected nr_sv that adds up to total_sv 3, found 2"),
    (
        "total_sv 2",
        "total_sv 99999999999999999999",
        "5:10: expected a number of vectors, found '99999999999999999999'",
    ),
    ("rho 0\n", "rho\n", "7:1: expected a finite number, found 'label'"),
    ("rho 0\n", "", "8:1: expected rho, found none before 'SV'"),
    ("rho 0\n", "rho 0\nrho 0\n", "7:1: expected every key once, found 'rho'"),
    ("label 1 -1", "label 1 1", "expected distinct class labels, found '1' twice"),
    ("label 1 -1", "label 1 x", "7:9: expected a whole number, found 'x'"),
    (
        "nr_sv 1 1",
        "nr_sv 18446744073709551615 3",
        "9:1: expected nr_sv that adds up to total_sv 2, found far more",
    ),
    (
        "nr_sv 1 1",
        "nr_sv 1 1\ncolour red",
        "9:1: expected one of svm_type, kernel_type, degree, gamma, coef0, nr_class, total_sv, rho, label, probA, probB, prob_density_marks, nr_sv, SV, found 'colour'",
    ),
    (
        "label 1 -1",
        "label 1 -1\nprobA 1",
        "10:1: expected the probability entries of c-svc, found probA alone",
    ),
    (
        "SV\n1 1:1\n-1 1:2\n",
        "",
        "9:1: expected 'SV' and support vectors, found the end of the file",
    ),
    ("-1 1:2\n", "", "9:1: expected 2 support vectors as total_sv says, found only 1"),
    (
        "-1 1:2\n",
        "-1 1:2\n1 1:3\n",
        "12:1: expected the end after 2 support vectors as total_sv says, found '1'",
    ),
    ("\n-1 1:2", "\n\n-1 1:2", "11:1: expected a coefficient, found the end of the line"),
    ("-1 1:2", "-1 1=2", "11:4: expected index:value, found '1=2'"),
    (
        "-1 1:2",
        "-1 2:1 1:2",
        "11:8: expected ascending feature indices, here at least 3, found '1'",
    ),
    (
        "-1 1:2",
        "-1 4294967295:1",
        "11:4: expected a feature index of at most 134217728, found '4294967295'",
    ),
    ("-1 1:2", "-1 1:inf", "11:6: expected a finite value, found 'inf'"),
    ("-1 1:2", "inf 1:2", "11:1: expected a finite coefficient, found 'inf'"),
];

#[test]
fn broken_files_are_refused_with_their_place() {
    Model::load_from_bytes(BINARY.as_bytes()).unwrap();
    for (old, new, expected) in BROKEN {
        assert!(BINARY.contains(old), "{old:?}");
        let text = BINARY.replacen(old, new, 1);
        let found = Model::load_from_bytes(text.as_bytes()).expect_err(expected).to_string();
        let place = if expected.starts_with("expected") { "model: " } else { "model:" };
        assert_eq!(found, format!("{place}{expected}"), "{text}");
    }
}

#[test]
fn precomputed_vectors_need_their_serial_numbers() {
    let text = |vector: &str| {
        format!(
            "svm_type one_class\nkernel_type precomputed\nnr_class 2\ntotal_sv 1\nrho 1\nSV\n\
             1 {vector}\n"
        )
    };
    let model = Model::load_from_bytes(text("0:4").as_bytes()).unwrap();
    assert_eq!((model.support_rows(), model.vectors().columns()), (&[3][..], 4));
    for vector in ["", "0:0", "1:4", "0:4.5", "0:4 1:1", "0:-1"] {
        let error = Model::load_from_bytes(text(vector).as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("model:7:"), "{vector}: {error}");
    }
}

#[test]
fn models_libsvm_does_not_know_are_refused_with_advice() {
    let model = || load("c_svc_rbf");
    let with_scheme = |scheme| {
        let mut model = model();
        model.classes.as_mut().unwrap().scheme = scheme;
        model
    };
    let with_label = |label| {
        let mut model = model();
        model.classes.as_mut().unwrap().names[1] = label;
        model
    };
    let with_kernel = |kernel| {
        let mut model = model();
        model.expansion_mut().unwrap().kernel = kernel;
        model
    };
    let regressor = load("epsilon_svr_no_vectors");
    let curve = vec![(0.0, 0.0), (1.0, 1.0)];
    let mut strange = model();
    let rows = strange.support_count();
    strange.expansion_mut().unwrap().functions[0].parts =
        vec![Part { support: 0..rows, coefficients: vec![1.0; rows] }];
    let native = "; save it in the native format instead";
    for (model, expected) in [
        (
            with_kernel(Kernel::Laplacian { gamma: 1.0 }),
            format!("LIBSVM has no laplacian kernel{native}"),
        ),
        (
            with_kernel(Kernel::Sum(vec![(1.0, Kernel::Linear)])),
            format!("LIBSVM has no sum kernel{native}"),
        ),
        (
            Model::new(MachineKind::Svdd, Ball(regressor.expansion().unwrap().clone())),
            format!("LIBSVM has no svdd machine{native}"),
        ),
        (
            Model { calibration: Some(Calibration::Isotonic { knots: vec![curve; 3] }), ..model() },
            format!("LIBSVM has no isotonic probabilities (it has sigmoid ones){native}"),
        ),
        (strange, format!("a pair of classes uses support vectors of a third{native}")),
        (
            with_label(Label::Text("setosa".into())),
            format!("LIBSVM's class labels are 32-bit whole numbers, not 'setosa'{native}"),
        ),
        (
            with_label(Label::Real(0.5)),
            format!("LIBSVM's class labels are 32-bit whole numbers, not '0.5'{native}"),
        ),
        (
            with_scheme(Scheme::Dag),
            "LIBSVM has only one-vs-one classifiers: train with scheme one-vs-one, or save in the \
             native format instead"
                .to_owned(),
        ),
        (
            with_scheme(Scheme::OneVsRest),
            "LIBSVM has only one-vs-one classifiers: train with scheme one-vs-one, or save in the \
             native format instead"
                .to_owned(),
        ),
    ] {
        let error = model.to_libsvm_bytes().unwrap_err().to_string();
        assert_eq!(error, format!("model: {expected}"));
    }
    assert!(with_label(Label::Real(4.0)).to_libsvm_bytes().is_ok());
}

#[test]
fn single_precision_values_are_written_exactly() {
    let mut model = load("epsilon_svr_no_vectors");
    let body = model.expansion_mut().unwrap();
    body.support = Matrix::DenseF32(Dense::new(1, 2, vec![0.1, 0.0]).unwrap());
    body.functions[0].parts[0] = Part { support: 0..1, coefficients: vec![1.0] };
    let text = String::from_utf8(model.to_libsvm_bytes().unwrap()).unwrap();
    assert!(text.ends_with("SV\n1 1:0.10000000149011612 \n"), "{text}");
}
