//! Claims about the native format, with models of every shape and files broken in every way.

use proptest::prelude::*;

use super::{ModelFormat, envelope, native};
use crate::data::scaling::Scaler;
use crate::data::{Csr, Dense, Label, Matrix};
use crate::kernel::{CustomKernel, Kernel};
use crate::machine::{
    Ball, Calibration, ClassTable, DecisionFunction, KernelExpansion, MachineKind, Model, Part,
    Precision, Preparation, Scheme, Training,
};
use crate::solver::{Outcome, Status};

/// Three classes, four support vectors, one-vs-one.
fn small_classifier() -> Model {
    let part = |start: usize, coefficients: &[f64]| Part {
        support: start..start + coefficients.len(),
        coefficients: coefficients.to_vec(),
    };
    let function = |parts, offset| DecisionFunction { parts, offset };
    let body = KernelExpansion {
        kernel: Kernel::Gaussian { gamma: 0.1 },
        precision: Precision::F32,
        support: Matrix::DenseF32(
            Dense::new(4, 2, vec![0.1, -0.0, 1e-40, 3.0, -2.5, 1e30, 0.5, 0.25]).unwrap(),
        ),
        support_rows: vec![2, 5, 7, 9],
        functions: vec![
            function(vec![part(0, &[0.1, 0.2]), part(2, &[-0.3])], 0.5),
            function(vec![part(0, &[0.4, 0.5]), part(3, &[-0.9])], -1.0 / 3.0),
            function(vec![part(2, &[1.0]), part(3, &[-1.0])], 5e-324),
        ],
    };
    Model {
        classes: Some(ClassTable {
            names: vec![Label::Text("ä \"1\"".into()), Label::Int(-7), Label::Real(0.1)],
            scheme: Scheme::OneVsOne,
            support: vec![2, 1, 1],
        }),
        calibration: Some(Calibration::Sigmoid { a: vec![-1.0, -2.0, 0.1], b: vec![0.0; 3] }),
        feature_names: Some(vec!["length".into(), "width\n".into()]),
        training: Some(Training {
            outcome: Outcome {
                status: Status::TimeLimit,
                primal: f64::INFINITY,
                dual: 0.1 + 0.2,
                violation: f64::NEG_INFINITY,
                iterations: u64::MAX,
                blocks: 3,
                kernel_rows: 12,
            },
            rows: 10,
            seconds: 0.1,
            parameters: vec![("c".into(), 1.0.into())],
            specification: None,
        }),
        ..Model::new(MachineKind::CSvc, body)
    }
}

fn small_regressor() -> Model {
    let model = Model {
        kind: MachineKind::EpsilonSvr,
        classes: None,
        calibration: Some(Calibration::Laplace { scale: 0.1 }),
        ..small_classifier()
    };
    with_body(model, |body| {
        body.functions = vec![DecisionFunction {
            parts: vec![Part { support: 0..4, coefficients: vec![1.0, -1.0, 0.5, -0.5] }],
            offset: 0.25,
        }];
    })
}

/// The model with something of its expansion changed.
fn with_body(mut model: Model, change: impl FnOnce(&mut KernelExpansion)) -> Model {
    change(model.expansion_mut().unwrap());
    model
}

fn message(bytes: &[u8]) -> String {
    Model::load_from_bytes(bytes).expect_err("a broken file was accepted").to_string()
}

#[test]
fn every_changed_byte_is_noticed() {
    let bytes = small_classifier().to_bytes().unwrap();
    assert_eq!(Model::load_from_bytes(&bytes).unwrap(), small_classifier());
    let mut changed = bytes.clone();
    for at in 0..bytes.len() {
        for mask in [1, 0x80, 0xff] {
            changed[at] ^= mask;
            message(&changed);
            changed[at] = bytes[at];
        }
    }
}

#[test]
fn every_missing_or_added_byte_is_noticed() {
    let mut bytes = small_classifier().to_bytes().unwrap();
    for length in 0..bytes.len() {
        message(&bytes[..length]);
    }
    assert!(message(&bytes[..100]).contains("found 100: it is cut short"));
    bytes.push(0);
    assert!(message(&bytes).contains("something was appended"));
}

#[test]
fn a_newer_version_says_so() {
    let mut bytes = small_classifier().to_bytes().unwrap();
    bytes[8] = 3;
    let expected = "model: expected a model format version from 1 to 2, found 3: a newer widemargin wrote \
         the file, or it is damaged";
    assert_eq!(message(&bytes), expected);
}

#[test]
fn the_same_model_gives_the_same_bytes() {
    assert_eq!(small_classifier().to_bytes().unwrap(), small_classifier().to_bytes().unwrap());
}

#[test]
fn user_kernels_are_refused_by_name() {
    let custom = Kernel::Custom(CustomKernel::new("my-kernel", |a, b| a[0] * b[0]));
    for kernel in [custom.clone(), Kernel::Sum(vec![(1.0, Kernel::Linear), (2.0, custom)])] {
        let model = with_body(small_classifier(), |body| body.kernel = kernel);
        let error = model.to_bytes().unwrap_err().to_string();
        assert!(
            error.contains("kernel 'my-kernel' is a function of the user's program"),
            "{error}"
        );
    }
}

#[test]
fn kernels_nest_to_the_limit_and_no_deeper() {
    let nested = |depth: usize| {
        (0..depth).fold(Kernel::Linear, |kernel, level| match level % 2 {
            0 => Kernel::Sum(vec![(0.1, kernel), (2.0, Kernel::Cosine)]),
            _ => Kernel::Product(vec![kernel]),
        })
    };
    let model = |depth| with_body(small_classifier(), |body| body.kernel = nested(depth));
    let deepest = model(crate::machine::MAX_KERNEL_DEPTH);
    assert_eq!(Model::load_from_bytes(&deepest.to_bytes().unwrap()).unwrap(), deepest);
    assert!(model(crate::machine::MAX_KERNEL_DEPTH + 1).to_bytes().is_err());
}

/// Models whose body breaks an invariant, and the message about each.
fn broken_bodies() -> Vec<(Model, &'static str)> {
    let base = small_classifier;
    let with_part = |support: std::ops::Range<usize>, count: usize| {
        let part = Part { support, coefficients: vec![1.0; count] };
        with_body(base(), |body| body.functions[0].parts[1] = part)
    };
    let infinite = with_body(base(), |body| body.functions[1].offset = f64::INFINITY);
    let not_a_number =
        with_body(base(), |body| body.functions[1].parts[0].coefficients[1] = f64::NAN);
    let missing_function = with_body(base(), |body| drop(body.functions.pop()));
    let with_rows = |rows: Vec<usize>| with_body(base(), |body| body.support_rows = rows);
    let with_kernel = |kernel: Kernel| with_body(base(), |body| body.kernel = kernel);
    let nan = Matrix::DenseF64(
        Dense::new(4, 2, vec![0.0, 0.0, 0.0, 0.0, 0.0, f64::NAN, 0.0, 0.0]).unwrap(),
    );
    vec![
        (
            with_part(3..5, 2),
            "function 1: expected ascending runs of 4 support vectors, found 3..5",
        ),
        (
            with_part(1..2, 1),
            "function 1: expected ascending runs of 4 support vectors, found 1..2",
        ),
        (infinite, "function 2: expected a finite offset, found inf"),
        (not_a_number, "function 2: expected finite coefficients, found NaN"),
        (missing_function, "decision functions: expected 3, found 2"),
        (
            with_body(base(), |body| body.support = nan),
            "row 3, feature 2: expected a finite number, found NaN",
        ),
        (
            with_kernel(Kernel::Gaussian { gamma: -1.0 }),
            "parameter gamma: expected a finite number of at least 0, found -1",
        ),
        (
            Model { kind: MachineKind::Svdd, classes: None, ..base() },
            "expected the body of svdd, found kernel-expansion",
        ),
        (with_rows(vec![1]), "training rows of support vectors: expected 4, found 1"),
        (with_rows(vec![1, 2, 3, 10]), "expected training rows below 10, found 10"),
        (
            with_body(with_kernel(Kernel::Precomputed), |body| body.support_rows.clear()),
            "a precomputed kernel needs the training row of every support vector, found none",
        ),
    ]
}

/// Models whose common part breaks an invariant, and the message about each.
fn broken_common_parts() -> Vec<(Model, &'static str)> {
    let base = small_classifier;
    let with_table = |change: fn(&mut ClassTable)| {
        let mut model = base();
        model.classes.as_mut().map(change);
        model
    };
    let with_calibration = |calibration| Model { calibration: Some(calibration), ..base() };
    vec![
        (Model { classes: None, ..base() }, "expected classes for c-svc, found none"),
        (
            Model { kind: MachineKind::NuSvr, ..base() },
            "expected no classes for nu-svr, found some",
        ),
        (
            with_table(|table| table.support[0] = 3),
            "expected class counts that add up to 4 support vectors, found 5",
        ),
        (
            with_table(|table| table.support[0] = usize::MAX),
            "expected class counts that add up to 4 support vectors, found far more",
        ),
        (
            with_table(|table| table.names[2] = Label::Int(-7)),
            "expected distinct class labels, found '-7' twice",
        ),
        (
            with_table(|table| {
                table.scheme = Scheme::ErrorCorrecting(vec![vec![1, 1, 2]; 3].into())
            }),
            "expected code entries -1, 0 or 1, found 2",
        ),
        (
            with_calibration(Calibration::Sigmoid { a: vec![1.0], b: vec![1.0; 3] }),
            "calibration slopes: expected 3, found 1",
        ),
        (
            with_calibration(Calibration::Laplace { scale: 1.0 }),
            "expected a calibration made for c-svc, found another machine's",
        ),
        (
            with_calibration(Calibration::Isotonic {
                knots: vec![vec![(0.0, 0.5), (1.0, 0.4)]; 3],
            }),
            "expected a non-decreasing calibration curve, found another",
        ),
        (
            Model { feature_names: Some(vec!["one".into()]), ..base() },
            "feature names: expected 2, found 1",
        ),
    ]
}

#[test]
fn broken_models_are_neither_saved_nor_loaded() {
    for (model, expected) in broken_bodies().into_iter().chain(broken_common_parts()) {
        let refused = model.to_bytes().expect_err(expected).to_string();
        assert!(refused.ends_with(expected), "{refused}");
        let loaded = message(&native::encode(&model).unwrap());
        assert!(loaded.ends_with(expected), "{loaded}");
    }
}

/// Swaps text of a sound file's JSON for text of the same length and makes the frame fit again.
fn with_text(model: &Model, old: &str, new: &str) -> Vec<u8> {
    let sealed = model.to_bytes().unwrap();
    let mut document = sealed[envelope::FRAME..].to_vec();
    let new = format!("{new:<width$}", width = old.len());
    assert_eq!(new.len(), old.len(), "{new} is longer than {old}");
    let at = document.windows(old.len()).position(|window| window == old.as_bytes());
    let at = at.unwrap_or_else(|| panic!("{old} is not in the file"));
    document[at..at + old.len()].copy_from_slice(new.as_bytes());
    envelope::seal(&document)
}

#[test]
fn wrong_headers_are_told_apart() {
    let model = small_classifier();
    for (old, new, expected) in [
        (
            r#"\"machine\":\"c-svc\""#,
            r#"\"machine\":\"d-svc\""#,
            "found 'd-svc': a newer widemargin wrote this file",
        ),
        (
            r#"\"body\":\"kernel-expansion\""#,
            r#"\"body\":\"kernel-evolution\""#,
            "found 'kernel-evolution': a newer widemargin wrote this file",
        ),
        (r#"\"features\":2"#, r#"\"features\":3"#, "expected 3 features, found 2"),
        (r#"\"precision\""#, r#"\"prezision\""#, "unknown field 'prezision'"),
        (r#""functions.offsets""#, r#""functions.ofsets""#, "array 'functions.offsets' is missing"),
        (r#""calibration.a""#, r#""calibration.c""#, "array 'calibration.a' is missing"),
        (r#"\"sigmoid\""#, r#"\"density\""#, "array 'calibration.marks' is missing"),
        (r#""widemargin""#, r#""narrowmarg""#, "no 'widemargin' entry in its metadata"),
        (r#""dtype":"F32""#, r#""dtype":"U32""#, "expected F64 numbers, found U32"),
        (r#""shape":[4,2]"#, r#""shape":[8,1]"#, "expected 2 features, found 1"),
        (r#""shape":[4,2]"#, r#""shape":[4,3]"#, "invalid shape"),
        (r#""__metadata__""#, r#""__metadata_""#, "JSON"),
    ] {
        let found = message(&with_text(&model, old, new));
        assert!(found.contains(expected), "{old} -> {new}: {found}");
    }
}

/// A file of an earlier build with some text replaced and a checksum that fits again.
fn earlier(name: &str, old: &str, new: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/models/");
    let mut bytes = std::fs::read(format!("{folder}{name}.wm")).unwrap();
    assert_eq!((bytes[8], old.len()), (1, new.len()));
    let at = bytes.windows(old.len()).position(|window| window == old.as_bytes()).expect(old);
    bytes[at..at + old.len()].copy_from_slice(new.as_bytes());
    let mut sum = crc32fast::Hasher::new();
    sum.update(&bytes[..12]);
    sum.update(&bytes[16..]);
    bytes[12..16].copy_from_slice(&sum.finalize().to_le_bytes());
    bytes
}

#[test]
fn mistakes_in_files_of_version_1_are_told_apart() {
    let weight = r#"\"self_weight\":"#;
    let [zero, one] = ["0.0", "1.0"].map(|value| format!("{weight}{value}"));
    for (name, old, new, expected) in [
        ("c-svc-ovo", &zero[..], &one[..], "expected self weight 0, found 1"),
        ("svdd", &one, &zero, "expected self weight 1, found 0"),
        ("knn", r#"\"knn\""#, r#"\"gmm\""#, "expected the body of gmm, found neighbours"),
        ("c-svc-f64", "c-svc", "d-svc", "found d-svc"),
        ("kmeans", "centres", "midways", "unknown variant 'midways'"),
    ] {
        let found = message(&earlier(name, old, new));
        assert!(found.contains(expected), "{name}: {found}");
    }
}

#[test]
fn absurd_sizes_cost_no_memory() {
    let mut document = vec![0xff; 8];
    document.extend_from_slice(b"{}");
    assert!(message(&envelope::seal(&document)).contains("header"));
    let mut announced = small_classifier().to_bytes().unwrap();
    announced[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(message(&announced).contains("cut short"));
}

#[test]
fn files_of_other_kinds_are_named_as_such() {
    let expected = "model: expected a widemargin, LIBSVM or LIBLINEAR model file, but it ";
    assert_eq!(message(b""), format!("{expected}is empty"));
    assert_eq!(message(b"1 1:0.5\n"), format!("{expected}begins with \"1 1:0.5\\n\""));
    assert_eq!(
        message(b"\x7fELF and many more bytes"),
        format!("{expected}begins with \"\\x7fELF and many mo\"")
    );
    assert_eq!(ModelFormat::detect(b"\n svm_type c_svc"), Some(ModelFormat::Libsvm));
}

fn finite() -> impl Strategy<Value = f64> {
    use proptest::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    (NORMAL | SUBNORMAL | ZERO | POSITIVE | NEGATIVE).prop_filter("finite", |v| v.is_finite())
}

fn kernels() -> impl Strategy<Value = Kernel> {
    let gamma = || 0.0_f64..1e300;
    let leaf =
        prop_oneof![
            Just(Kernel::Linear),
            Just(Kernel::Cosine),
            (gamma(), finite(), any::<u32>())
                .prop_map(|(gamma, coef0, degree)| Kernel::Polynomial { gamma, coef0, degree }),
            gamma().prop_map(|gamma| Kernel::Gaussian { gamma }),
            gamma().prop_map(|gamma| Kernel::Laplacian { gamma }),
            gamma().prop_map(|gamma| Kernel::ChiSquared { gamma }),
            (gamma(), finite()).prop_map(|(gamma, coef0)| Kernel::Sigmoid { gamma, coef0 }),
        ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec((1e-300_f64..1e300, inner.clone()), 1..4).prop_map(Kernel::Sum),
            prop::collection::vec(inner, 1..4).prop_map(Kernel::Product),
        ]
    })
}

fn matrices(rows: usize) -> impl Strategy<Value = Matrix> {
    (1..6_usize).prop_flat_map(move |columns| {
        let values = prop::collection::vec(finite(), rows * columns);
        let kept = prop::collection::vec(any::<bool>(), rows * columns);
        (values, kept, 0..4).prop_map(move |(values, kept, storage)| {
            let single: Vec<f32> = values.iter().map(|&v| (v as f32).clamp(-3e38, 3e38)).collect();
            let mut starts = vec![0];
            let mut indices = Vec::new();
            for row in 0..rows {
                indices.extend((0..columns).filter(|c| kept[row * columns + c]).map(|c| c as u32));
                starts.push(indices.len());
            }
            let stored = indices.len();
            match storage {
                0 => Matrix::DenseF32(Dense::new(rows, columns, single).unwrap()),
                1 => Matrix::DenseF64(Dense::new(rows, columns, values).unwrap()),
                2 => Matrix::SparseF32(
                    Csr::new(columns, starts, indices, single[..stored].to_vec()).unwrap(),
                ),
                _ => Matrix::SparseF64(
                    Csr::new(columns, starts, indices, values[..stored].to_vec()).unwrap(),
                ),
            }
        })
    })
}

/// Functions over `rows` vectors, each with up to three runs.
fn functions(count: usize, rows: usize) -> impl Strategy<Value = Vec<DecisionFunction>> {
    let function = (prop::collection::vec(0..=rows, 0..=6), finite()).prop_flat_map(
        move |(mut cuts, offset)| {
            cuts.sort_unstable();
            let ranges: Vec<_> = cuts.chunks_exact(2).map(|cut| cut[0]..cut[1]).collect();
            let parts: Vec<_> = ranges
                .into_iter()
                .map(|support| {
                    prop::collection::vec(finite(), support.len()).prop_map(move |coefficients| {
                        Part { support: support.clone(), coefficients }
                    })
                })
                .collect();
            parts.prop_map(move |parts| DecisionFunction { parts, offset })
        },
    );
    prop::collection::vec(function, count)
}

fn schemes(classes: usize) -> impl Strategy<Value = Scheme> {
    let codes = (1..5_usize).prop_flat_map(move |length| {
        prop::collection::vec(prop::collection::vec(-1..=1_i8, length), classes)
    });
    prop_oneof![
        Just(Scheme::OneVsOne),
        Just(Scheme::OneVsRest),
        Just(Scheme::Dag),
        codes.prop_map(|rows| Scheme::ErrorCorrecting(rows.into())),
    ]
}

fn labels(count: usize) -> impl Strategy<Value = Vec<Label>> {
    prop_oneof![
        prop::collection::hash_set(any::<i64>(), count)
            .prop_map(|set| set.into_iter().map(Label::Int).collect()),
        prop::collection::hash_set("\\PC{0,5}", count)
            .prop_map(|set| set.into_iter().map(Label::Text).collect()),
        prop::collection::vec(1e-300_f64..1e300, count)
            .prop_map(|list| list.into_iter().map(Label::Real).collect::<Vec<_>>())
            .prop_filter("distinct", |list| {
                (1..list.len()).all(|i| !list[..i].contains(&list[i]))
            }),
    ]
}

fn calibrations(functions: usize) -> impl Strategy<Value = Option<Calibration>> {
    let list = move || prop::collection::vec(finite(), functions);
    let curve = prop::collection::btree_map(-1000..1000_i32, 0.0..1.0_f64, 1..5).prop_map(|map| {
        let mut probabilities: Vec<f64> = map.values().copied().collect();
        probabilities.sort_by(f64::total_cmp);
        map.keys().map(|&key| f64::from(key) / 7.0).zip(probabilities).collect::<Vec<_>>()
    });
    prop::option::of(prop_oneof![
        (list(), list()).prop_map(|(a, b)| Calibration::Sigmoid { a, b }),
        prop::collection::vec(curve, functions).prop_map(|knots| Calibration::Isotonic { knots }),
    ])
}

fn classifiers() -> impl Strategy<Value = Model> {
    (1..5_usize, prop::collection::vec(0..4_usize, 4))
        .prop_flat_map(|(classes, support)| {
            let support = support[..classes].to_vec();
            let rows = support.iter().sum();
            let scheme = schemes(classes);
            (labels(classes), scheme, kernels(), matrices(rows), Just(support))
        })
        .prop_flat_map(|(names, scheme, kernel, support, counts)| {
            let (rows, count) = (support.rows(), scheme.functions(names.len()));
            let table = ClassTable { names, scheme, support: counts };
            let model = Model { classes: Some(table), feature_names: None, ..small_classifier() };
            let model = with_body(model, |body| {
                (body.kernel, body.support, body.support_rows) = (kernel, support, Vec::new());
            });
            (Just(model), functions(count, rows), calibrations(count))
        })
        .prop_map(|(model, functions, calibration)| {
            with_body(Model { calibration, ..model }, |body| body.functions = functions)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_classifier_survives_a_file(model in classifiers()) {
        let bytes = model.to_bytes().unwrap();
        let loaded = Model::load_from_bytes(&bytes).unwrap();
        prop_assert_eq!(&loaded, &model);
        // Equality takes -0 for 0; the bytes do not.
        prop_assert_eq!(loaded.to_bytes().unwrap(), bytes);
    }

    #[test]
    fn no_bytes_make_the_loader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Model::load_from_bytes(&bytes);
        let _ = Model::load_from_bytes(&envelope::seal(&bytes));
    }

    #[test]
    fn no_mutation_makes_the_loader_panic(
        model in classifiers(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let sealed = model.to_bytes().unwrap();
        let mut document = sealed[envelope::FRAME..].to_vec();
        for (at, byte) in changes {
            let at = at.index(document.len());
            document[at] = byte;
        }
        if let Ok(model) = Model::load_from_bytes(&envelope::seal(&document)) {
            prop_assert!(model.validate().is_ok());
        }
    }
}

#[test]
fn other_machines_survive_a_file() {
    let one_class = Model {
        kind: MachineKind::OneClass,
        calibration: Some(Calibration::Density { marks: vec![-1.0, 0.0, 0.0, 2.0] }),
        training: None,
        ..small_regressor()
    };
    let one_class = with_body(one_class, |body| body.support_rows.clear());
    let ball = Ball(small_regressor().expansion().unwrap().clone());
    let svdd = Model {
        kind: MachineKind::Svdd,
        body: ball.into(),
        calibration: None,
        ..small_regressor()
    };
    let nameless = || Model { feature_names: None, ..small_regressor() };
    let precomputed = with_body(nameless(), |body| {
        body.kernel = Kernel::Precomputed;
        body.support = Matrix::SparseF64(Csr::new(10, vec![0; 5], vec![], vec![]).unwrap());
    });
    let empty = with_body(nameless(), |body| {
        body.support = Matrix::DenseF64(Dense::new(0, 0, vec![]).unwrap());
        body.support_rows.clear();
        body.functions = vec![DecisionFunction { parts: vec![], offset: 1.0 }];
    });
    for model in [small_regressor(), one_class, svdd, precomputed, empty] {
        assert_eq!(Model::load_from_bytes(&model.to_bytes().unwrap()).unwrap(), model);
    }
}

#[test]
fn the_preparation_of_rows_survives_a_file() {
    let data = crate::data::read::read_bytes(b"1 0:3 1:5\n2 1:7\n", &Default::default()).unwrap();
    let mut preparation = Preparation::of_file(&data);
    assert!(preparation.index_base.is_some());
    for scaler in [
        Scaler::fit_range(data.dataset.features(), -1.0, 1.0),
        Scaler::fit_standard(data.dataset.features()),
    ] {
        preparation.scaler = Some(scaler.unwrap());
        let model = Model { preparation: preparation.clone(), ..small_regressor() };
        assert_eq!(Model::load_from_bytes(&model.to_bytes().unwrap()).unwrap(), model);
        let error = Model { calibration: None, ..model }.to_libsvm_bytes().unwrap_err();
        assert!(error.to_string().contains("scaling"), "{error}");
    }
    let narrow = Matrix::DenseF64(Dense::new(1, 1, vec![1.0]).unwrap());
    preparation.scaler = Some(Scaler::fit_range(&narrow, 0.0, 1.0).unwrap());
    assert!(Model { preparation, ..small_regressor() }.to_bytes().is_err());
}
