//! The corpus of every fuzz target, run without a fuzzer.

use std::fs;
use std::path::Path;

use super::{exchanges, readers};

/// Runs `check` on every file of a target's corpus.
fn run_corpus(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files = 0;
    for entry in fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        check(&fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files >= 5, "{target} has only {files} seeds");
}

macro_rules! corpus {
    ($($name:ident => $check:path;)*) => {
        $(#[test] fn $name() { run_corpus(stringify!($name), $check); })*
    };
}

corpus! {
    libsvm => readers::libsvm;
    csv => readers::csv;
    idx => readers::idx;
    npy => readers::npy;
    range_file => readers::range_file;
    archive => readers::archive;
    any_file => readers::any_file;
    parquet => readers::parquet;
    label_file => readers::label_file;
    weight_file => readers::weight_file;
    sequences => readers::sequences;
    templates => readers::templates;
    exchange => exchanges::exchange;
}

#[test]
#[ignore = "writes the seeds of what sites tell each other"]
fn make_exchange_seeds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/exchange");
    for (number, seed) in exchanges::seeds().iter().enumerate() {
        fs::write(folder.join(format!("said_{number:02}")), seed).unwrap();
    }
}
