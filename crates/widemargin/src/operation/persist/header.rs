//! The JSON part of a native model file: everything that is not an array of numbers.
//!
//! These types are the file format; they mirror the model's so that renaming a field in the code
//! does not silently change the files.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::data::Label;
use crate::machine::specification::{Specification, Value as Setting};
use crate::machine::{ClassTable, Preparation, Scheme, Training};
use crate::solver::{Outcome, Status};

/// Everything of a model but its arrays.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub(super) machine: String,
    /// Name of the body.
    pub(super) body: String,
    /// What the body keeps beside its arrays.
    pub(super) parts: Value,
    pub(super) classes: Option<ClassHeader>,
    pub(super) calibration: Option<CalibrationHeader>,
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

impl From<&ClassTable> for ClassHeader {
    fn from(table: &ClassTable) -> Self {
        Self {
            names: table.names.iter().map(Into::into).collect(),
            scheme: table.scheme.clone(),
            support: table.support.clone(),
        }
    }
}

impl From<ClassHeader> for ClassTable {
    fn from(header: ClassHeader) -> Self {
        Self {
            names: header.names.into_iter().map(Into::into).collect(),
            scheme: header.scheme,
            support: header.support,
        }
    }
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
    parameters: Vec<(String, Setting)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    specification: Option<Specification>,
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
            parameters: training.parameters.iter().map(written).collect(),
            specification: training.specification.clone(),
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
            parameters: header.parameters.into_iter().map(read).collect(),
            specification: header.specification,
        }
    }
}

/// JSON has no numbers that are not finite: they are written as text.
fn written((name, value): &(String, Setting)) -> (String, Setting) {
    let value = match value {
        Setting::Real(number) if !number.is_finite() => Setting::Text(number.to_string()),
        other => other.clone(),
    };
    (name.clone(), value)
}

/// Files of before held all values as text.
fn read((name, value): (String, Setting)) -> (String, Setting) {
    let number = match &value {
        Setting::Text(text) => text.parse().ok().map(Setting::Real),
        _ => None,
    };
    (name, number.unwrap_or(value))
}
