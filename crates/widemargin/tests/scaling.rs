//! Scaling against recorded runs of LIBSVM's `svm-scale` (see `fixtures/svm_scale/make.sh`).

use std::path::{Path, PathBuf};

use widemargin::Error;
use widemargin::data::read::{ReadOptions, read_bytes, read_dataset};
use widemargin::data::scaling::{RangeScaling, Scaler, StandardScaling};
use widemargin::data::write::write_svm_scale;
use widemargin::data::{Dataset, Dense, Labels, Layout, Matrix};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/svm_scale").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(fixture(name)).unwrap()
}

fn scaled_text(scaling: &RangeScaling, name: &str, layout: Layout) -> String {
    let data = read_dataset(fixture(name), &ReadOptions::new().layout(layout)).unwrap();
    let scaler = Scaler::Range(scaling.clone());
    let features = scaler.transform_resized(data.features().clone()).unwrap();
    let mut data = data.with_features(features).unwrap();
    if let Some(target) = scaling.target() {
        let labels = target.transform(data.labels()).unwrap();
        data = data.with_labels(labels).unwrap();
    }
    let mut out = Vec::new();
    write_svm_scale(&mut out, &data, 1).unwrap();
    String::from_utf8(out).unwrap()
}

fn range_text(scaling: &RangeScaling) -> String {
    let mut out = Vec::new();
    scaling.write_range_file(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn training_and_test_files_are_scaled_byte_for_byte_as_svm_scale_does() {
    for layout in [Layout::Dense, Layout::Sparse] {
        let options = ReadOptions::new().layout(layout);
        let train = read_dataset(fixture("train.libsvm"), &options).unwrap();
        let plain = RangeScaling::fit(train.features(), -1.0, 1.0).unwrap();
        assert_eq!(range_text(&plain), text("default.range"));
        assert_eq!(scaled_text(&plain, "train.libsvm", layout), text("default.train"));
        assert_eq!(scaled_text(&plain, "test.libsvm", layout), text("default.test"));

        let with_target = RangeScaling::fit(train.features(), 0.0, 1.0)
            .and_then(|scaling| scaling.with_target(train.labels(), -1.0, 2.0))
            .unwrap();
        assert_eq!(range_text(&with_target), text("target.range"));
        assert_eq!(scaled_text(&with_target, "train.libsvm", layout), text("target.train"));
        assert_eq!(scaled_text(&with_target, "test.libsvm", layout), text("target.test"));
    }
}

#[test]
fn range_files_come_back_unchanged() {
    for name in ["default.range", "target.range"] {
        let scaling = RangeScaling::load_range_file(fixture(name)).unwrap();
        assert_eq!(range_text(&scaling), text(name));
        assert_eq!(
            scaled_text(&scaling, "test.libsvm", Layout::Auto),
            text(&name.replace("range", "test"))
        );
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy.range");
        scaling.save_range_file(&copy).unwrap();
        assert_eq!(std::fs::read_to_string(copy).unwrap(), text(name));
    }
}

#[test]
fn a_scaler_survives_json() {
    let train = read_dataset(fixture("train.libsvm"), &ReadOptions::new()).unwrap();
    for scaler in [
        Scaler::fit_range(train.features(), -1.0, 1.0).unwrap(),
        Scaler::fit_standard(train.features()).unwrap(),
    ] {
        let json = serde_json::to_string(&scaler).unwrap();
        assert_eq!(serde_json::from_str::<Scaler>(&json).unwrap(), scaler);
    }
    let lie =
        r#"{"kind":"range","lower":0,"upper":1,"columns":1,"ranges":[[5,{"min":0,"max":1}]]}"#;
    assert!(serde_json::from_str::<Scaler>(lie).is_err());
    let lie = r#"{"kind":"standard","means":[1],"deviations":[1,2]}"#;
    assert!(serde_json::from_str::<Scaler>(lie).is_err());
}

#[test]
fn standardising_gives_mean_zero_and_deviation_one() {
    let offset = 1e6;
    let values: Vec<f64> =
        (0..50).flat_map(|i| [offset + f64::from(i % 7), 3.0, f64::from(i)]).collect();
    let matrix = Matrix::DenseF64(Dense::new(50, 3, values).unwrap());
    let scaled = StandardScaling::fit(&matrix).unwrap().transform(matrix).unwrap();
    let Matrix::DenseF64(scaled) = scaled else { panic!("dense stays dense") };
    for j in [0, 2] {
        let column: Vec<f64> = (0..50).map(|i| scaled.row(i)[j]).collect();
        let mean = column.iter().sum::<f64>() / 50.0;
        let variance = column.iter().map(|v| v * v).sum::<f64>() / 50.0;
        assert!(mean.abs() < 1e-9 && (variance - 1.0).abs() < 1e-9, "{mean} {variance}");
    }
    assert!((0..50).all(|i| scaled.row(i)[1] == 0.0));
}

#[test]
fn standardising_sparse_data_divides_by_the_same_deviation_and_keeps_zeros() {
    let text = b"1 1:2 3:5\n1 2:4\n1 1:-2 2:1 3:5\n1\n";
    let dense = read_bytes(text, &ReadOptions::new().layout(Layout::Dense)).unwrap().dataset;
    let sparse = read_bytes(text, &ReadOptions::new().layout(Layout::Sparse)).unwrap().dataset;
    let of_dense = StandardScaling::fit(dense.features()).unwrap();
    let of_sparse = StandardScaling::fit(sparse.features()).unwrap();
    for (a, b) in of_dense.deviations().iter().zip(of_sparse.deviations()) {
        assert!((a - b).abs() < 1e-15);
    }
    let scaled = of_sparse.transform(sparse.features().clone()).unwrap();
    assert!(scaled.is_sparse());
    assert_eq!(scaled.density(), sparse.features().density());
    // Feature 1 is 2, 0, −2, 0: deviation √2.
    scaled.for_each_nonzero(0, |j, v| {
        if j == 0 {
            assert!((v - 2_f64.sqrt()).abs() < 1e-15);
        }
    });
}

#[test]
fn zeros_that_stay_zero_keep_the_table_sparse() {
    let text = b"1 1:2 30:5\n1 2:4\n1 1:1 2:1 3:5\n";
    let data = read_bytes(text, &ReadOptions::new().layout(Layout::Sparse)).unwrap().dataset;
    let unit = Scaler::fit_range(data.features(), 0.0, 1.0).unwrap();
    assert!(unit.transform(data.features().clone()).unwrap().is_sparse());
    let few_move = RangeScaling::fit(data.features(), -1.0, 1.0).unwrap();
    let scaled = few_move.transform(data.features().clone()).unwrap();
    assert!(scaled.is_sparse());
    let again = few_move.transform(data.features().clone().into_layout(Layout::Dense)).unwrap();
    assert_eq!(scaled.into_layout(Layout::Dense), again);
}

#[test]
fn another_width_is_refused_unless_resizing_was_asked_for() {
    let matrix = |columns: usize| {
        let values = (0..4 * columns).map(|v| (v * v % 7) as f32).collect();
        Matrix::DenseF32(Dense::new(4, columns, values).unwrap())
    };
    let scaler = Scaler::fit_range(&matrix(5), -1.0, 1.0).unwrap();
    for columns in [4, 6] {
        let error = scaler.transform(matrix(columns)).unwrap_err();
        assert!(matches!(error, Error::Length { expected: 5, found, .. } if found == columns));
        assert_eq!(scaler.transform_resized(matrix(columns)).unwrap().columns(), 5);
    }
}

#[test]
fn scaling_inside_a_pool_gives_the_same_bits() {
    let values: Vec<f64> = (0..3000 * 7).map(|v| f64::from(v).sin() * 1e3).collect();
    let matrix = Matrix::DenseF64(Dense::new(3000, 7, values).unwrap());
    let scaler = Scaler::fit_standard(&matrix).unwrap();
    let alone = scaler.transform(matrix.clone()).unwrap();
    let context = widemargin::Context::new().with_threads(3).unwrap();
    assert_eq!(context.install(|| scaler.transform(matrix)).unwrap(), alone);
}

#[test]
fn targets_come_back_from_their_scaled_images() {
    let features = Matrix::DenseF64(Dense::new(3, 1, vec![1.0, 2.0, 4.0]).unwrap());
    let data = Dataset::new(features, Labels::Real(vec![3.5, -1.0, 10.0])).unwrap();
    let scaling = RangeScaling::fit(data.features(), 0.0, 1.0)
        .and_then(|scaling| scaling.with_target(data.labels(), -1.0, 1.0))
        .unwrap();
    let target = scaling.target().unwrap();
    assert_eq!((target.scale(-1.0), target.scale(10.0)), (-1.0, 1.0));
    assert!((target.unscale(target.scale(3.5)) - 3.5).abs() < 1e-12);
}

#[test]
fn a_few_values_far_apart_are_scaled_without_a_list_of_all_features() {
    let wide = b"1 3:2 134217728:6\n2 3:4\n1 134217728:2\n";
    let narrow = b"1 3:2 5:6\n2 3:4\n1 5:2\n";
    let load = |text: &[u8]| {
        let options = ReadOptions::new().layout(Layout::Sparse);
        read_bytes(text, &options).unwrap().dataset.features().clone()
    };
    let values = |table: &Matrix| {
        let mut all = Vec::new();
        (0..table.rows()).for_each(|i| table.for_each_nonzero(i, |_, value| all.push((i, value))));
        all
    };
    for (lower, upper) in [(0.0, 1.0), (-1.0, 1.0)] {
        let of_wide = RangeScaling::fit(&load(wide), lower, upper).unwrap();
        let of_narrow = RangeScaling::fit(&load(narrow), lower, upper).unwrap();
        assert_eq!(of_wide.columns(), 1 << 27);
        assert_eq!(of_wide.ranges()[0], of_narrow.ranges()[0]);
        assert_eq!(of_wide.ranges()[1].1, of_narrow.ranges()[1].1);
        let scaled = of_wide.transform(load(wide)).unwrap();
        let expected = of_narrow.transform(load(narrow)).unwrap();
        assert_eq!(values(&scaled), values(&expected), "{lower} to {upper}");
    }
}
