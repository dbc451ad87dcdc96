//! IDX and NPY files against what NumPy wrote or read.

use std::path::{Path, PathBuf};

use widemargin::data::read::{
    Format, ReadOptions, StoredPrecision, read, read_bytes, read_dataset,
};
use widemargin::data::{Labels, Layout, Matrix};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/npy").join(name)
}

fn dense() -> ReadOptions {
    ReadOptions::new().layout(Layout::Dense)
}

#[test]
fn every_npy_type_byte_order_array_order_and_version_is_read() {
    let mut names: Vec<String> = ["fortran", "version2", "version3"].map(String::from).to_vec();
    for kind in ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"] {
        names.push(format!("le_{kind}"));
        names.push(format!("be_{kind}"));
    }
    let expected: Vec<f64> = (0..12).map(f64::from).collect();
    for name in names {
        let data = read_dataset(fixture(&format!("{name}.npy")), &dense()).unwrap();
        let mut values = vec![0.0; 12];
        for (i, row) in values.chunks_exact_mut(4).enumerate() {
            data.features().copy_row(i, row);
        }
        assert_eq!(values, expected, "{name}");
        let single = matches!(data.features(), Matrix::DenseF32(_));
        let narrow = ["f2", "f4", "i1", "i2", "u1", "u2", "version2", "version3"];
        assert_eq!(single, narrow.iter().any(|n| name.ends_with(n)), "{name}");
    }
    let bools = read_dataset(fixture("bool.npy"), &dense()).unwrap();
    assert_eq!(bools.features().density(), 0.5);
}

#[test]
fn npy_labels_keep_their_kind() {
    let with = |name: &str| dense().labels_path(fixture(name));
    let data = read_dataset(fixture("le_f8.npy"), &with("labels_int.npy")).unwrap();
    assert_eq!(*data.labels(), Labels::Int(vec![3, -1, 1 << 62]));
    let data = read_dataset(fixture("le_f8.npy"), &with("labels_real.npy")).unwrap();
    assert_eq!(*data.labels(), Labels::Real(vec![0.5, 1.0, -2.0]));
}

#[test]
fn labels_may_come_as_lines_of_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("labels.txt");
    std::fs::write(&path, "cat\r\ndog\n\ncat\n").unwrap();
    let data = read_dataset(fixture("le_f8.npy"), &dense().labels_path(&path)).unwrap();
    assert_eq!(*data.labels(), Labels::Text(["cat", "dog", "cat"].map(String::from).to_vec()));
}

fn idx(code: u8, sizes: &[u32], values: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, code, sizes.len() as u8];
    sizes.iter().for_each(|size| bytes.extend(size.to_be_bytes()));
    bytes.extend(values);
    bytes
}

#[test]
fn every_idx_type_is_read() {
    let numbers = [1.0, -2.0, 3.0, 4.0, 100.0, -6.0];
    let bytes = |encode: &dyn Fn(f64) -> Vec<u8>| -> Vec<u8> {
        numbers.iter().flat_map(|v| encode(*v)).collect()
    };
    let files = [
        (0x09, bytes(&|v| (v as i8).to_be_bytes().to_vec())),
        (0x0b, bytes(&|v| (v as i16).to_be_bytes().to_vec())),
        (0x0c, bytes(&|v| (v as i32).to_be_bytes().to_vec())),
        (0x0d, bytes(&|v| (v as f32).to_be_bytes().to_vec())),
        (0x0e, bytes(&|v| v.to_be_bytes().to_vec())),
    ];
    for (code, values) in files {
        let loaded = read_bytes(&idx(code, &[2, 3], &values), &dense()).unwrap();
        assert_eq!(loaded.format, Format::Idx);
        let mut row = [0.0; 3];
        loaded.dataset.features().copy_row(1, &mut row);
        assert_eq!(row, [4.0, 100.0, -6.0], "type {code}");
    }
    let data = read_bytes(&idx(0x08, &[2, 1, 3], &[0, 1, 2, 253, 254, 255]), &dense()).unwrap();
    let Matrix::DenseF32(pixels) = data.dataset.features() else { panic!("bytes fit f32") };
    assert_eq!(pixels.values(), [0.0, 1.0, 2.0, 253.0, 254.0, 255.0]);
}

#[test]
fn images_of_mnist_find_their_labels() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/mnist-500-images-idx3-ubyte.gz");
    let loaded = read(&path, &ReadOptions::new()).unwrap();
    let data = loaded.dataset;
    assert_eq!((loaded.format, data.rows(), data.columns()), (Format::Idx, 500, 784));
    let Labels::Int(labels) = data.labels() else { panic!("digits are whole numbers") };
    assert_eq!(labels[..10], [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]);
    // Sums computed with NumPy from the same files.
    let (mut all, mut first, mut count) = (0.0, 0.0, 0);
    for i in 0..500 {
        data.features().for_each_nonzero(i, |_, v| {
            all += v;
            count += 1;
            first += if i == 0 { v } else { 0.0 };
        });
    }
    assert_eq!((all, first, count), (12_613_080.0, 27_525.0, 72_856));
    let double = read_dataset(&path, &dense().precision(StoredPrecision::F64)).unwrap();
    assert!(matches!(double.features(), Matrix::DenseF64(_)));
}
