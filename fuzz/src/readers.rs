//! What must hold for any bytes whatsoever given to a reader: no panic, no runaway allocation, and
//! whatever is accepted comes back unchanged through the writer.
//!
//! Each function is a fuzz target and is also run on the committed corpus by
//! `crates/widemargin/tests/fuzz_corpus.rs`.

use std::path::Path;

use widemargin::data::read::{
    Format, IndexBase, LabelColumn, Missing, ReadOptions, TableEncoding, decompress, parse_weights,
    read_bytes, read_label_bytes,
};
use widemargin::data::scaling::RangeScaling;
use widemargin::data::write::write_libsvm;
use widemargin::data::{Labels, Layout};

/// Options made from one byte, so that the fuzzer can choose them too.
fn options(choice: u8, format: Format) -> ReadOptions {
    let layout = [Layout::Auto, Layout::Sparse][usize::from(choice & 1)];
    let base = [IndexBase::Auto, IndexBase::Zero, IndexBase::One][usize::from(choice >> 1 & 3) % 3];
    let mut options = ReadOptions::new().format(format).layout(layout).index_base(base);
    if choice & 8 != 0 {
        options = options.columns(7);
    }
    if choice & 16 != 0 {
        options = options.label_column(LabelColumn::Absent);
    }
    if choice & 32 != 0 {
        options = options.missing(Missing::Median);
    }
    if choice & 64 != 0 {
        options = options.header(choice & 128 != 0);
    }
    options
}

/// LIBSVM text; the first byte chooses the options.
pub(crate) fn libsvm(bytes: &[u8]) {
    let Some((choice, text)) = bytes.split_first() else { return };
    let options = options(*choice, Format::Libsvm);
    let Ok(loaded) = read_bytes(text, &options) else { return };
    let data = loaded.dataset;
    let base = loaded.index_base.expect("LIBSVM text has a base");
    let mut written = Vec::new();
    write_libsvm(&mut written, &data, u32::from(base == IndexBase::One)).expect("memory");
    let again = ReadOptions::new()
        .format(Format::Libsvm)
        .layout(Layout::Sparse)
        .index_base(base)
        .columns(data.columns());
    let back = read_bytes(&written, &again).expect("what was written is readable").dataset;
    assert_eq!(back.features(), &data.features().clone().into_layout(Layout::Sparse));
    if !matches!(data.labels(), Labels::None) {
        assert_eq!(back.labels(), data.labels());
    }
    assert_eq!(back.groups(), data.groups());
}

/// Delimited text; the first byte chooses the options.
pub(crate) fn csv(bytes: &[u8]) {
    let Some((choice, text)) = bytes.split_first() else { return };
    let options = options(*choice, Format::Csv);
    let Ok(loaded) = read_bytes(text, &options) else { return };
    let encoding = loaded.encoding.expect("tables have an encoding");
    let json = serde_json::to_string(&encoding).expect("memory");
    let restored: TableEncoding = serde_json::from_str(&json).expect("what was written");
    assert_eq!(restored, encoding);
    assert_eq!(encoding.feature_count(), loaded.dataset.columns());
    // A later file may be anything.
    let _ = read_bytes(text, &options.encoding(restored));
}

/// IDX files.
pub(crate) fn idx(bytes: &[u8]) {
    let _ = read_bytes(bytes, &ReadOptions::new().format(Format::Idx));
}

/// NPY files.
pub(crate) fn npy(bytes: &[u8]) {
    let _ = read_bytes(bytes, &ReadOptions::new().format(Format::Npy));
}

/// Range files of `svm-scale`.
pub(crate) fn range_file(bytes: &[u8]) {
    let Ok(scaling) = RangeScaling::parse_range_file(bytes, Path::new("-")) else { return };
    let mut written = Vec::new();
    scaling.write_range_file(&mut written).expect("memory");
    let back = RangeScaling::parse_range_file(&written, Path::new("-")).expect("what was written");
    assert_eq!(back.ranges(), scaling.ranges());
    assert_eq!(back.target(), scaling.target());
}

/// Parquet files.
pub(crate) fn parquet(bytes: &[u8]) {
    let options = ReadOptions::new().format(Format::Parquet).missing(Missing::MostFrequent);
    let Ok(loaded) = read_bytes(bytes, &options) else { return };
    let encoding = loaded.encoding.expect("tables have an encoding");
    assert_eq!(encoding.feature_count(), loaded.dataset.columns());
    let _ = read_bytes(bytes, &options.encoding(encoding));
}

/// Files of labels.
pub(crate) fn label_file(bytes: &[u8]) {
    let Ok(labels) = read_label_bytes(bytes) else { return };
    assert!(!labels.is_empty());
}

/// Files of row weights.
pub(crate) fn weight_file(bytes: &[u8]) {
    let Ok(weights) = parse_weights(bytes, Path::new("-")) else { return };
    assert!(weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0));
}

/// Archives: gzip, xz, zstd and bzip2.
pub(crate) fn archive(bytes: &[u8]) {
    let _ = decompress(bytes.to_vec(), Path::new("-"), Some(1 << 24));
}

/// A file of any format, recognised by its content.
pub(crate) fn any_file(bytes: &[u8]) {
    let _ = read_bytes(bytes, &ReadOptions::new());
}
