//! LIBLINEAR's model files: a header of keys and values, then a line of weights per feature.
//!
//! With k classes a line holds k weights, or one when there are two classes (and for regression and
//! one-class models); a bias that is not negative adds a last line (LIBLINEAR's programs' output).

mod read;
mod write;

pub(super) use read::read;
pub(super) use write::{Text, text};

use crate::machine::MachineKind;

/// The key every such file begins with.
const FIRST_KEY: &str = "solver_type";

/// Whether a file that begins like this could be a LIBLINEAR model.
pub(super) fn looks_like(bytes: &[u8]) -> bool {
    let first = bytes.split(u8::is_ascii_whitespace).find(|word| !word.is_empty());
    first == Some(FIRST_KEY.as_bytes())
}

/// The solvers by their names in these files, and the machines they train.
const SOLVERS: [(&str, MachineKind); 12] = [
    ("L2R_LR", MachineKind::Logistic),
    ("L2R_L2LOSS_SVC_DUAL", MachineKind::LinearSvc),
    ("L2R_L2LOSS_SVC", MachineKind::LinearSvc),
    ("L2R_L1LOSS_SVC_DUAL", MachineKind::LinearSvc),
    (CRAMMER_SINGER, MachineKind::LinearSvc),
    ("L1R_L2LOSS_SVC", MachineKind::LinearSvc),
    ("L1R_LR", MachineKind::Logistic),
    ("L2R_LR_DUAL", MachineKind::Logistic),
    ("L2R_L2LOSS_SVR", MachineKind::LinearSvr),
    ("L2R_L2LOSS_SVR_DUAL", MachineKind::LinearSvr),
    ("L2R_L1LOSS_SVR_DUAL", MachineKind::LinearSvr),
    ("ONECLASS_SVM", MachineKind::LinearOneClass),
];

/// The solver whose models have a function per class even for two classes.
const CRAMMER_SINGER: &str = "MCSVM_CS";
