//! Parquet files written by pyarrow.
#![cfg(feature = "parquet")]

use std::path::{Path, PathBuf};

use widemargin::data::read::{Missing, ReadOptions, read};
use widemargin::data::{Labels, Layout};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet").join(name)
}

fn options() -> ReadOptions {
    ReadOptions::new().layout(Layout::Dense).missing(Missing::MostFrequent)
}

#[test]
fn every_codec_gives_the_same_table() {
    for codec in ["none", "snappy", "gzip", "lz4", "brotli"] {
        let loaded = read(fixture(&format!("{codec}.parquet")), &options()).unwrap();
        let data = loaded.dataset;
        let names = data.feature_names().unwrap();
        let expected =
            ["small", "unsigned", "long", "single", "double", "flag", "colour=blue", "colour=red"];
        assert_eq!(names, expected, "{codec}");
        let mut rows = vec![vec![0.0; 8]; 5];
        rows.iter_mut().enumerate().for_each(|(i, row)| data.features().copy_row(i, row));
        assert_eq!(rows[0], [1.0, 1.0, 1.0, 0.5, 0.1, 1.0, 0.0, 1.0]);
        assert_eq!(rows[1], [-2.0, 2.0, -3.0, 1.5, 0.1, 0.0, 1.0, 0.0]);
        assert_eq!(rows[2], [3.0, 3.0, -3.0, -2.5, 0.3, 1.0, 1.0, 0.0]);
        assert_eq!(rows[4], [5.0, 4294967295.0, 6.0, 4.5, 0.6, 0.0, 1.0, 0.0]);
        let labels = ["p", "n", "p", "n", "p"].map(String::from).to_vec();
        assert_eq!(*data.labels(), Labels::Text(labels));
        let again = options().encoding(loaded.encoding.unwrap());
        let back = read(fixture("none.parquet"), &again).unwrap().dataset;
        assert_eq!(back, data);
    }
}

#[test]
fn what_cannot_be_read_says_so() {
    let message = |name: &str, options: &ReadOptions| {
        let error = read(fixture(name), options).unwrap_err().to_string();
        error.split(".parquet: ").nth(1).unwrap().to_owned()
    };
    assert_eq!(
        message("none.parquet", &ReadOptions::new()),
        "row 2: expected a value in column 'long' (or an option that fills gaps), found none"
    );
    assert!(message("nested.parquet", &options()).contains("is nested; expected plain values"));
    assert!(
        message("zstd.parquet", &options()).contains("zstd"),
        "{}",
        message("zstd.parquet", &options())
    );
}

#[test]
fn damaged_files_are_errors_not_panics() {
    let whole = std::fs::read(fixture("snappy.parquet")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged");
    for cut in (4..whole.len()).step_by(37) {
        std::fs::write(&path, &whole[..cut]).unwrap();
        assert!(read(&path, &options()).is_err());
    }
    for place in (4..whole.len() - 8).step_by(13) {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x55;
        std::fs::write(&path, &bytes).unwrap();
        // Some bytes are only data; no outcome but a panic or an abort is wrong.
        let _ = read(&path, &options());
    }
}
