//! What must hold for any bytes whatsoever given to a model loader: no panic, no runaway
//! allocation, and a model that is accepted is sound: it predicts, and survives being saved.
//!
//! Each function is a fuzz target and is also run on the committed corpus by
//! `crates/widemargin/tests/fuzz_models.rs`.

use widemargin::Context;
use widemargin::data::{Csr, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::Model;

/// A frame around a native document, with the checksum that lets it through.
fn frame(version: u8, document: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x8aWMODEL\n".to_vec();
    bytes.extend_from_slice(&[version, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(&(24 + document.len() as u64).to_le_bytes());
    bytes.extend_from_slice(document);
    let mut sum = crc32fast::Hasher::new();
    sum.update(&bytes[..12]);
    sum.update(&bytes[16..]);
    bytes[12..16].copy_from_slice(&sum.finalize().to_le_bytes());
    bytes
}

/// The document inside a native model file, without the frame that would reject nearly all of them.
pub(crate) fn model_native(document: &[u8]) {
    let _ = Model::load_from_bytes(document);
    for version in [1, 2] {
        if let Ok(model) = Model::load_from_bytes(&frame(version, document)) {
            check(&model);
        }
    }
}

/// LIBSVM's model files.
pub(crate) fn model_libsvm(text: &[u8]) {
    model_text(text, Model::to_libsvm_bytes);
}

/// LIBLINEAR's model files.
pub(crate) fn model_liblinear(text: &[u8]) {
    model_text(text, Model::to_liblinear_bytes);
}

fn model_text(text: &[u8], write: fn(&Model) -> widemargin::Result<Vec<u8>>) {
    let Ok(model) = Model::load_from_bytes(text) else { return };
    check(&model);
    let Ok(written) = write(&model) else { return };
    let again = Model::load_from_bytes(&written).expect("what was written is readable");
    let rewritten = write(&again).expect("what was read can be written");
    assert_eq!(String::from_utf8_lossy(&rewritten), String::from_utf8_lossy(&written));
}

fn check(model: &Model) {
    model.validate().expect("loaded models are valid");
    let bytes = model.to_bytes().expect("loaded models can be saved");
    let again = Model::load_from_bytes(&bytes).expect("saved models can be loaded");
    assert_eq!(again.to_bytes().expect("memory"), bytes);
    // Few features and support vectors, so that the fuzzer stays fast.
    if model.features() > 1000 || model.support_count() > 100 || model.kernel().is_some_and(deep) {
        return;
    }
    let query = Csr::new(model.features(), vec![0, 0], Vec::new(), Vec::new());
    let query = Matrix::SparseF64(query.expect("an empty row"));
    let context = Context::new();
    let Ok(predictor) = model.predictor(&context) else { return };
    if let Ok(values) = predictor.decision_values(&query) {
        let _ = predictor.answers(&values);
        if let Ok(probabilities) = predictor.probabilities_of(&values) {
            let _ = predictor.most_probable(&probabilities);
        }
    }
}

/// Whether a kernel is a combination of many.
fn deep(kernel: &Kernel) -> bool {
    match kernel {
        Kernel::Sum(terms) => terms.len() > 3 || terms.iter().any(|(_, kernel)| deep(kernel)),
        Kernel::Product(factors) => factors.len() > 3 || factors.iter().any(deep),
        _ => false,
    }
}
