//! LIBSVM's model files: a header of keys and values, then one line per support vector.
//!
//! With k classes and support vectors in class order, a line holds k − 1 coefficients: of a support
//! vector of class i, place j (j < i) belongs to the pair (j, i) and place j − 1 (j > i) to the pair
//! (i, j); after them come `index:value` pairs (Chang & Lin, "LIBSVM: a library for support vector
//! machines", 2011, and its programs' output).

mod read;
mod write;

pub(super) use read::read;
pub(super) use write::{whole_label, write};

use crate::machine::MachineKind;

/// Keys of the header; a file may begin with any of them.
const KEYS: [&str; 14] = [
    "svm_type",
    "kernel_type",
    "degree",
    "gamma",
    "coef0",
    "nr_class",
    "total_sv",
    "rho",
    "label",
    "probA",
    "probB",
    "prob_density_marks",
    "nr_sv",
    "SV",
];

/// Bytes that show whether a file is one of LIBSVM's.
pub(super) const LONGEST_PREAMBLE: usize = 4096;

/// Whether a file that begins like this could be a LIBSVM model.
pub(super) fn looks_like(bytes: &[u8]) -> bool {
    let beginning = &bytes[..bytes.len().min(LONGEST_PREAMBLE)];
    let mut words = beginning.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let Some(first) = words.next() else { return false };
    let is_key = KEYS.iter().any(|key| key.as_bytes() == first);
    // `label` or `gamma` may also head a column of a table; only a model has these two.
    let is_model = |word: &[u8]| word == b"svm_type" || word == b"kernel_type";
    is_key && (is_model(first) || words.any(is_model))
}

/// Machines by their names in these files.
const MACHINES: [(&str, MachineKind); 5] = [
    ("c_svc", MachineKind::CSvc),
    ("nu_svc", MachineKind::NuSvc),
    ("one_class", MachineKind::OneClass),
    ("epsilon_svr", MachineKind::EpsilonSvr),
    ("nu_svr", MachineKind::NuSvr),
];

/// Kernels by their names in these files.
const KERNELS: [&str; 5] = ["linear", "polynomial", "rbf", "sigmoid", "precomputed"];
