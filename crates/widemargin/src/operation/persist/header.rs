//! The JSON part of a native model file: everything that is not an array of numbers.
//!
//! These types are the file format; they mirror the model's so that renaming a field in the code
//! does not silently change the files.

use serde::{Deserialize, Serialize};

use super::MAX_KERNEL_DEPTH;
use crate::data::Label;
use crate::kernel::Kernel;
use crate::machine::{ClassicForm, MachineKind, Precision, Preparation, Scheme, Training};
use crate::solver::{Outcome, Status};

/// Everything of a model but its arrays.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub(super) machine: MachineKind,
    pub(super) kernel: KernelHeader,
    pub(super) precision: Precision,
    pub(super) features: usize,
    pub(super) self_weight: f64,
    pub(super) classes: Option<ClassHeader>,
    pub(super) calibration: Option<CalibrationHeader>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) classic: Option<ClassicForm>,
    #[serde(default, skip_serializing_if = "Preparation::is_empty")]
    pub(super) preparation: Preparation,
    pub(super) feature_names: Option<Vec<String>>,
    pub(super) training: Option<TrainingHeader>,
}

/// Classes and scheme of a classifier.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClassHeader {
    pub(super) names: Vec<LabelHeader>,
    pub(super) scheme: Scheme,
    pub(super) support: Vec<usize>,
}

/// Which calibration the arrays hold.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum CalibrationHeader {
    Sigmoid,
    Isotonic,
    Laplace { scale: f64 },
    Density,
    Softmax,
    Shares,
}

/// A number that need not be finite, which JSON has no notation for.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Number {
    Finite(f64),
    Special(Special),
}

#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) enum Special {
    #[serde(rename = "inf")]
    Infinity,
    #[serde(rename = "-inf")]
    NegativeInfinity,
    #[serde(rename = "nan")]
    NotANumber,
}

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        if value.is_finite() {
            Self::Finite(value)
        } else if value.is_nan() {
            Self::Special(Special::NotANumber)
        } else if value > 0.0 {
            Self::Special(Special::Infinity)
        } else {
            Self::Special(Special::NegativeInfinity)
        }
    }
}

impl From<Number> for f64 {
    fn from(number: Number) -> Self {
        match number {
            Number::Finite(value) => value,
            Number::Special(Special::Infinity) => f64::INFINITY,
            Number::Special(Special::NegativeInfinity) => f64::NEG_INFINITY,
            Number::Special(Special::NotANumber) => f64::NAN,
        }
    }
}

/// A label with its kind, so that `1`, `1.0` and `"1"` stay apart.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum LabelHeader {
    Int(i64),
    Real(Number),
    Text(String),
}

impl From<&Label> for LabelHeader {
    fn from(label: &Label) -> Self {
        match label {
            Label::Int(value) => Self::Int(*value),
            Label::Real(value) => Self::Real((*value).into()),
            Label::Text(text) => Self::Text(text.clone()),
        }
    }
}

impl From<LabelHeader> for Label {
    fn from(label: LabelHeader) -> Self {
        match label {
            LabelHeader::Int(value) => Self::Int(value),
            LabelHeader::Real(value) => Self::Real(value.into()),
            LabelHeader::Text(text) => Self::Text(text),
        }
    }
}

/// A kernel without user functions.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum KernelHeader {
    Linear,
    Polynomial { gamma: f64, coef0: f64, degree: u32 },
    Rbf { gamma: f64 },
    Sigmoid { gamma: f64, coef0: f64 },
    Laplacian { gamma: f64 },
    Chi2 { gamma: f64 },
    Cosine,
    Precomputed,
    Sum(Vec<(f64, KernelHeader)>),
    Product(Vec<KernelHeader>),
}

impl KernelHeader {
    /// The file's form of a kernel.
    pub(super) fn new(kernel: &Kernel) -> Result<Self, String> {
        Self::nested(kernel, MAX_KERNEL_DEPTH)
    }

    fn nested(kernel: &Kernel, depth: usize) -> Result<Self, String> {
        let inner = |kernel: &Kernel| match depth.checked_sub(1) {
            Some(depth) => Self::nested(kernel, depth),
            None => Err(too_deep()),
        };
        Ok(match kernel {
            Kernel::Linear => Self::Linear,
            &Kernel::Polynomial { gamma, coef0, degree } => {
                Self::Polynomial { gamma, coef0, degree }
            }
            &Kernel::Gaussian { gamma } => Self::Rbf { gamma },
            &Kernel::Sigmoid { gamma, coef0 } => Self::Sigmoid { gamma, coef0 },
            &Kernel::Laplacian { gamma } => Self::Laplacian { gamma },
            &Kernel::ChiSquared { gamma } => Self::Chi2 { gamma },
            Kernel::Cosine => Self::Cosine,
            Kernel::Precomputed => Self::Precomputed,
            Kernel::Custom(custom) => {
                return Err(format!(
                    "kernel '{}' is a function of the user's program and cannot be saved; \
                     train with kernel values computed beforehand (precomputed) instead",
                    custom.name()
                ));
            }
            Kernel::Sum(terms) => {
                let terms = terms.iter().map(|(weight, kernel)| Ok((*weight, inner(kernel)?)));
                Self::Sum(terms.collect::<Result<_, String>>()?)
            }
            Kernel::Product(factors) => {
                Self::Product(factors.iter().map(inner).collect::<Result<_, String>>()?)
            }
        })
    }

    /// The kernel, its parameters still to be validated.
    pub(super) fn into_kernel(self) -> Result<Kernel, String> {
        self.unnest(MAX_KERNEL_DEPTH)
    }

    fn unnest(self, depth: usize) -> Result<Kernel, String> {
        let inner = |kernel: Self| match depth.checked_sub(1) {
            Some(depth) => kernel.unnest(depth),
            None => Err(too_deep()),
        };
        Ok(match self {
            Self::Linear => Kernel::Linear,
            Self::Polynomial { gamma, coef0, degree } => {
                Kernel::Polynomial { gamma, coef0, degree }
            }
            Self::Rbf { gamma } => Kernel::Gaussian { gamma },
            Self::Sigmoid { gamma, coef0 } => Kernel::Sigmoid { gamma, coef0 },
            Self::Laplacian { gamma } => Kernel::Laplacian { gamma },
            Self::Chi2 { gamma } => Kernel::ChiSquared { gamma },
            Self::Cosine => Kernel::Cosine,
            Self::Precomputed => Kernel::Precomputed,
            Self::Sum(terms) => {
                let terms = terms.into_iter().map(|(weight, kernel)| Ok((weight, inner(kernel)?)));
                Kernel::Sum(terms.collect::<Result<_, String>>()?)
            }
            Self::Product(factors) => {
                Kernel::Product(factors.into_iter().map(inner).collect::<Result<_, String>>()?)
            }
        })
    }
}

fn too_deep() -> String {
    format!("expected kernels nested at most {MAX_KERNEL_DEPTH} deep, found more")
}

/// How the model was trained.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrainingHeader {
    status: Status,
    primal: Number,
    dual: Number,
    violation: Number,
    iterations: u64,
    blocks: u64,
    kernel_rows: u64,
    rows: usize,
    seconds: Number,
    parameters: Vec<(String, String)>,
}

impl From<&Training> for TrainingHeader {
    fn from(training: &Training) -> Self {
        let outcome = training.outcome;
        Self {
            status: outcome.status,
            primal: outcome.primal.into(),
            dual: outcome.dual.into(),
            violation: outcome.violation.into(),
            iterations: outcome.iterations,
            blocks: outcome.blocks,
            kernel_rows: outcome.kernel_rows,
            rows: training.rows,
            seconds: training.seconds.into(),
            parameters: training.parameters.clone(),
        }
    }
}

impl From<TrainingHeader> for Training {
    fn from(header: TrainingHeader) -> Self {
        Self {
            outcome: Outcome {
                status: header.status,
                primal: header.primal.into(),
                dual: header.dual.into(),
                violation: header.violation.into(),
                iterations: header.iterations,
                blocks: header.blocks,
                kernel_rows: header.kernel_rows,
            },
            rows: header.rows,
            seconds: header.seconds.into(),
            parameters: header.parameters,
        }
    }
}
