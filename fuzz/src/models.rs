//! What must hold for any bytes whatsoever given to a model loader: no panic, no runaway
//! allocation, and a model that is accepted is sound: it predicts, and survives being saved.
//!
//! Each function is a fuzz target and is also run on the committed corpus by
//! `crates/widemargin/tests/fuzz_models.rs`.

use serde_json::Value;
use widemargin::Context;
use widemargin::data::{Csr, Matrix, TaggedSequences};
use widemargin::kernel::Kernel;
use widemargin::machine::{Body, Model};

/// Version of the format that this build writes.
const VERSION: u8 = 2;

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
    for version in [1, VERSION] {
        if let Ok(model) = Model::load_from_bytes(&frame(version, document)) {
            check(&model);
        }
    }
}

/// Files of models of every family, to be changed.
pub(crate) const WHOLE: [&[u8]; 46] = [
    include_bytes!("../../crates/widemargin/tests/fixtures/models/c-svc-ovo.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/c-svc-ecoc-probability.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/c-svc-isotonic-probability.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/c-svc-combination.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/c-svc-sparse.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/c-svc-scaled.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/ww-bias.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/svdd.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/linear-svc-rff.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/linear-svc-nystroem.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/words.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/fisher.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/gmm-full.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/knn-ball-tree.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/pnn-lifted.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/spectral.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/chain-svc.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/mmc.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/mmc-enumeration.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/robust-svc.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/robust-svc-classes.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/rank-svm.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/learnt-nonnegative.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/learnt-signed.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/learnt-views.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/learnt-unlabelled.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/kmeans.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/gmm-bayes-losses.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/gmm-vev.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/knn-distance.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/knn-regressor.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/parzen.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/density.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/fisher-two.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/kernel-fisher.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/spectral.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/svdd-linear.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/ls-svc.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/linear-svc-sparse.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/linear-svc-nystroem.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/linear-one-class.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/logistic.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/words.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/words-linear.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/compressed-separate.wm"),
    include_bytes!("../../crates/widemargin/tests/fixtures/models/version2/threshold.wm"),
];

/// A sound model with changes that keep its file well formed: the first byte chooses the model, then
/// every four bytes are a change. The checksum is made anew, so that only the checks of the content are
/// left to notice.
pub(crate) fn model_structure(changes: &[u8]) {
    let Some((model, changes)) = changes.split_first() else { return };
    let whole = WHOLE[usize::from(*model) % WHOLE.len()];
    let (length, rest) = whole[24..].split_at(8);
    let length = u64::from_le_bytes(length.try_into().expect("eight bytes")) as usize;
    let mut arrays: Value = serde_json::from_slice(&rest[..length]).expect("a list of arrays");
    let text = arrays["__metadata__"]["widemargin"].as_str().expect("a header");
    let mut header: Value = serde_json::from_str(text).expect("a header");
    let mut data = rest[length..].to_vec();
    for change in changes.chunks_exact(4).take(16) {
        let [part, place, operation, value] = [change[0], change[1], change[2], change[3]];
        match part % 3 {
            0 => change_json(&mut header, place, operation, value),
            1 => change_json(&mut arrays, place, operation, value),
            _ => change_number(&mut data, u16::from_le_bytes([place, operation]).into(), value),
        }
    }
    if let Some(metadata) = arrays.get_mut("__metadata__").and_then(Value::as_object_mut) {
        metadata.insert("widemargin".into(), header.to_string().into());
    }
    let mut text = arrays.to_string().into_bytes();
    text.resize(text.len().next_multiple_of(8), b' ');
    let mut document = (text.len() as u64).to_le_bytes().to_vec();
    document.extend_from_slice(&text);
    document.extend_from_slice(&data);
    let Ok(model) = Model::load_from_bytes(&frame(whole[8], &document)) else { return };
    check(&model);
}

/// Changes one of the values in a JSON document.
fn change_json(document: &mut Value, place: u8, operation: u8, value: u8) {
    let count = nodes(document);
    let mut place = usize::from(place) % count;
    let Some(node) = node_at(document, &mut place) else { return };
    let numbers = [0.0, -1.0, 1.0, 0.5, 4_294_967_296.0, 1.8e19, 1e308, -1e-300];
    match operation % 6 {
        0 => *node = Value::Null,
        1 => *node = Value::from(numbers[usize::from(value) % numbers.len()]),
        2 => *node = Value::from(u64::from(value)),
        3 => *node = Value::from(format!("word{value}")),
        4 => match node {
            Value::Array(list) if !list.is_empty() => {
                list.remove(usize::from(value) % list.len());
            }
            Value::Object(map) => {
                let key = map.keys().nth(usize::from(value) % map.len().max(1)).cloned();
                key.map(|key| map.remove(&key));
            }
            _ => *node = Value::Array(Vec::new()),
        },
        _ => match node {
            Value::Array(list) if !list.is_empty() => {
                list.push(list[usize::from(value) % list.len()].clone());
            }
            _ => *node = Value::Object(Default::default()),
        },
    }
}

fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(nodes).sum(),
        Value::Object(map) => map.values().map(nodes).sum(),
        _ => 0,
    }
}

fn node_at<'a>(value: &'a mut Value, place: &mut usize) -> Option<&'a mut Value> {
    if *place == 0 {
        return Some(value);
    }
    *place -= 1;
    match value {
        Value::Array(list) => list.iter_mut().find_map(|item| node_at(item, place)),
        Value::Object(map) => map.values_mut().find_map(|item| node_at(item, place)),
        _ => None,
    }
}

/// Changes one of the numbers in the arrays.
fn change_number(data: &mut [u8], place: usize, value: u8) {
    let count = data.len() / 8;
    if count == 0 {
        return;
    }
    let bits = [
        f64::NAN.to_bits(),
        f64::INFINITY.to_bits(),
        0,
        1,
        u64::MAX,
        1 << 32,
        1e300_f64.to_bits(),
        (-1.0_f64).to_bits(),
    ];
    let at = 8 * (place % count);
    data[at..at + 8].copy_from_slice(&bits[usize::from(value) % bits.len()].to_le_bytes());
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
    if let Body::Chain(chain) = &model.body {
        let sequence = TaggedSequences::new(query, vec![1]).expect("one position");
        if let Ok(labeller) = chain.labeller(&context) {
            let _ = labeller.label(&sequence);
            let _ = labeller.n_best(&sequence, 3);
        }
        return;
    }
    let Ok(predictor) = model.predictor(&context) else { return };
    if let Ok(values) = predictor.decision_values(&query) {
        let _ = predictor.predictions(&values);
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
