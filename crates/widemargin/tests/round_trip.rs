//! What is written is read back as itself.

use proptest::prelude::*;
use widemargin::data::read::{
    Format, ReadOptions, StoredPrecision, read, read_bytes, read_dataset,
};
use widemargin::data::write::{
    save_csv, save_libsvm, save_npy, save_npy_labels, write_csv, write_libsvm, write_npy,
};
use widemargin::data::{Csr, Dataset, Dense, Labels, Layout, Matrix};

fn finite() -> impl Strategy<Value = f64> {
    prop_oneof![
        2 => Just(0.0),
        2 => -10.0..10.0_f64,
        1 => any::<f64>().prop_filter("finite, and no negative zero", |v| v.is_finite() && v.to_bits() != 1 << 63),
    ]
}

fn labels(rows: usize) -> impl Strategy<Value = Labels> {
    prop_oneof![
        prop::collection::vec(any::<i64>(), rows).prop_map(Labels::Int),
        prop::collection::vec(finite(), rows).prop_map(|mut values| {
            values[0] = 0.5;
            Labels::Real(values)
        }),
        prop::collection::vec("[a-zA-Z_é][a-z0-9_,;é]{3,6}", rows).prop_map(Labels::Text),
    ]
}

fn data() -> impl Strategy<Value = Dataset> {
    (1_usize..8, 1_usize..8, any::<bool>()).prop_flat_map(|(rows, columns, single)| {
        let values = prop::collection::vec(finite(), rows * columns);
        (values, labels(rows)).prop_map(move |(values, labels)| {
            let matrix = if single {
                let clip = |v: f64| (v as f32).clamp(f32::MIN, f32::MAX) + 0.0;
                let values = values.into_iter().map(clip).collect();
                Matrix::DenseF32(Dense::new(rows, columns, values).unwrap())
            } else {
                Matrix::DenseF64(Dense::new(rows, columns, values).unwrap())
            };
            Dataset::new(matrix, labels).unwrap()
        })
    })
}

fn options(data: &Dataset, format: Format) -> ReadOptions {
    let single = matches!(data.features(), Matrix::DenseF32(_) | Matrix::SparseF32(_));
    let layout = if data.features().is_sparse() { Layout::Sparse } else { Layout::Dense };
    ReadOptions::new().format(format).layout(layout).precision(if single {
        StoredPrecision::F32
    } else {
        StoredPrecision::F64
    })
}

proptest! {
    #[test]
    fn libsvm_text(data in data(), sparse in any::<bool>(), zero_based in any::<bool>()) {
        let layout = if sparse { Layout::Sparse } else { Layout::Dense };
        let features = data.features().clone().into_layout(layout);
        let data = data.with_features(features).unwrap();
        let first = u32::from(!zero_based);
        let mut text = Vec::new();
        write_libsvm(&mut text, &data, first).unwrap();
        let base = if zero_based { widemargin::data::read::IndexBase::Zero } else { widemargin::data::read::IndexBase::One };
        let options = options(&data, Format::Libsvm).index_base(base).columns(data.columns());
        prop_assert_eq!(read_bytes(&text, &options).unwrap().dataset, data);
    }

    #[test]
    fn csv_text(data in data()) {
        let mut text = Vec::new();
        write_csv(&mut text, &data, b',').unwrap();
        let back = read_bytes(&text, &options(&data, Format::Csv)).unwrap().dataset;
        prop_assert_eq!(back.features(), data.features());
        prop_assert_eq!(back.labels(), data.labels());
    }

    #[test]
    fn npy_arrays(data in data()) {
        let mut bytes = Vec::new();
        write_npy(&mut bytes, data.features()).unwrap();
        let back = read_bytes(&bytes, &ReadOptions::new().layout(Layout::Dense)).unwrap().dataset;
        prop_assert_eq!(back.features(), data.features());
    }
}

#[test]
fn groups_come_back() {
    let matrix =
        Matrix::SparseF64(Csr::new(3, vec![0, 1, 1, 2], vec![2, 0], vec![0.1, 1e-300]).unwrap());
    let data = Dataset::new(matrix, Labels::Int(vec![3, 2, 1]))
        .and_then(|d| d.with_groups(vec![7, 7, -8]))
        .unwrap();
    let mut text = Vec::new();
    write_libsvm(&mut text, &data, 1).unwrap();
    assert_eq!(String::from_utf8_lossy(&text), "3 qid:7 3:0.1\n2 qid:7\n1 qid:-8 1:1e-300\n");
    assert_eq!(
        read_bytes(&text, &ReadOptions::new().layout(Layout::Sparse)).unwrap().dataset,
        data
    );
}

#[test]
fn files_are_recognised_when_they_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let values = vec![1.0, 0.0, 2.5, -3.0, 4.0, 5.0];
    let features = Matrix::DenseF64(Dense::new(3, 2, values).unwrap());
    let data = Dataset::new(features, Labels::Int(vec![1, 0, 1])).unwrap();
    let path = |name: &str| folder.path().join(name);
    save_libsvm(path("a.txt"), &data, 1).unwrap();
    save_csv(path("b.txt"), &data, b',').unwrap();
    save_npy(path("c.bin"), data.features()).unwrap();
    save_npy_labels(path("d.bin"), data.labels()).unwrap();
    let loaded = read(path("a.txt"), &ReadOptions::new()).unwrap();
    assert_eq!((loaded.format, &loaded.dataset), (Format::Libsvm, &data));
    let loaded = read(path("b.txt"), &ReadOptions::new()).unwrap();
    assert_eq!((loaded.format, loaded.dataset.labels()), (Format::Csv, data.labels()));
    assert_eq!(loaded.dataset.features(), data.features());
    let with_labels = ReadOptions::new().labels_path(path("d.bin"));
    assert_eq!(read_dataset(path("c.bin"), &with_labels).unwrap(), data);
    assert!(save_npy_labels(path("e"), &Labels::Text(vec!["a".into()])).is_err());
}

#[test]
fn a_label_that_would_not_come_back_is_refused() {
    for word in ["two words", "a:b", "a#b", ""] {
        let features = Matrix::DenseF64(Dense::new(1, 1, vec![1.0]).unwrap());
        let data = Dataset::new(features, Labels::Text(vec![word.into()])).unwrap();
        assert!(write_libsvm(&mut Vec::new(), &data, 1).is_err(), "{word:?}");
    }
}

#[test]
fn a_large_file_read_on_several_threads_is_the_same() {
    let mut text = String::new();
    for i in 0..80_000_u32 {
        let value = f64::from(i).sin();
        text += &format!("{} {}:{value} {}:{}\n", i % 3, i % 50 + 1, i % 40 + 60, i);
    }
    assert!(text.len() > 2 << 20, "several chunks");
    let alone = read_bytes(text.as_bytes(), &ReadOptions::new()).unwrap().dataset;
    for threads in [2, 4] {
        let context = widemargin::Context::new().with_threads(threads).unwrap();
        for layout in [Layout::Sparse, Layout::Dense] {
            let options = ReadOptions::new().layout(layout);
            let data = context.install(|| read_bytes(text.as_bytes(), &options)).unwrap().dataset;
            let expected = alone.features().clone().into_layout(layout);
            assert_eq!(*data.features(), expected);
            assert_eq!(data.labels(), alone.labels());
        }
    }
    let broken = format!("{text}1 3:1 2:1\n{text}");
    let alone = read_bytes(broken.as_bytes(), &ReadOptions::new()).unwrap_err().to_string();
    let context = widemargin::Context::new().with_threads(3).unwrap();
    let together = context.install(|| read_bytes(broken.as_bytes(), &ReadOptions::new()));
    assert_eq!(together.unwrap_err().to_string(), alone);
    assert!(alone.starts_with("-:80001:7: "), "{alone}");
}
