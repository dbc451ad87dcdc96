//! What must hold for any bytes whatsoever given to a reader: no panic, no runaway allocation, and
//! whatever is accepted comes back unchanged through the writer.
//!
//! Each function is a fuzz target and is also run on the committed corpus by
//! `crates/widemargin/tests/fuzz_corpus.rs`.

use std::path::Path;

use widemargin::data::read::{
    Format, IndexBase, LabelColumn, Missing, ReadOptions, SequenceFormat, SequenceOptions,
    TableEncoding, TokenColumn, decompress, parse_weights, read_bytes, read_label_bytes,
    read_sequence_bytes,
};
use widemargin::data::scaling::RangeScaling;
use widemargin::data::write::write_libsvm;
use widemargin::data::{Dictionary, Labels, Layout, Templates};

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

/// Files of sequences: the first byte chooses the format and the options, templates stand before the first
/// byte 0.
pub(crate) fn sequences(bytes: &[u8]) {
    let Some((choice, rest)) = bytes.split_first() else { return };
    let (templates, text) = match rest.iter().position(|byte| *byte == 0) {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (&[][..], rest),
    };
    let templates = std::str::from_utf8(templates).ok().and_then(parsed);
    let formats = [
        None,
        Some(SequenceFormat::Columns),
        Some(SequenceFormat::Crfsuite),
        Some(SequenceFormat::SvmHmm),
        Some(SequenceFormat::Table),
    ];
    let options = SequenceOptions {
        format: formats[usize::from(choice & 7) % formats.len()],
        templates,
        tagged: choice & 8 == 0,
        tag_column: (choice & 16 != 0).then_some(TokenColumn::Index(0)),
        ..SequenceOptions::default()
    };
    let mut dictionary = Dictionary::new();
    let Ok(loaded) = read_sequence_bytes(text, &options, &mut dictionary) else { return };
    let data = loaded.data;
    assert_eq!(data.lengths().sum::<usize>(), data.positions());
    // All names are known by now, and so the same sequences are read again.
    let mut closed = Dictionary::closed(dictionary.names());
    let again = read_sequence_bytes(text, &options, &mut closed).expect("what was read");
    assert_eq!(again.unknown_features, 0);
    if data.rows().validate().is_ok() {
        assert_eq!(again.data, data);
    }
}

/// Feature templates, on their own and applied to some words.
pub(crate) fn templates(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Some(templates) = parsed(text) else { return };
    let options = SequenceOptions { templates: Some(templates), ..SequenceOptions::default() };
    let words = b"a p X\nb q Y\nc r X\n\na q Y\n";
    let mut dictionary = Dictionary::new();
    let Ok(loaded) = read_sequence_bytes(words, &options, &mut dictionary) else { return };
    assert_eq!(loaded.data.rows().columns(), dictionary.len());
}

/// The templates of a text, which come back from their own text.
fn parsed(text: &str) -> Option<Templates> {
    let templates = Templates::parse(text).ok()?;
    let again = Templates::parse(&templates.to_string()).expect("what was written");
    assert_eq!(again, templates);
    Some(templates)
}
