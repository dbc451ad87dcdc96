//! Trained machines.
//!
//! A [`Model`] is what all of them share (kind, classes, calibration, preparation, names of the
//! features, training record) and a [`Body`]: what its family has learnt and computes decision
//! values from. The [`Scheme`] says how these values become a class.

mod ball;
mod body;
mod expansion;
mod functions;
mod kernel_depth;
mod kind;
mod linear;
mod parts;
mod validate;

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::codes::OutputCode;
use super::specification::{Specification, Value};
use super::{Precision, Preparation};
use crate::data::{Label, Matrix};
use crate::kernel::{FeatureMap, Kernel};
use crate::outcome::Outcome;

pub use ball::Ball;
pub(super) use body::{Attributes, Evaluation, ModelBody, Nearest, Prepared, Scratch, run_of};
pub use body::{Body, Description};
pub(crate) use expansion::ExpansionHeader;
pub use expansion::KernelExpansion;
pub use functions::{DecisionFunction, Part};
pub(super) use functions::{put as put_functions, take as take_functions};
#[cfg(test)]
pub(crate) use kernel_depth::MAX_KERNEL_DEPTH;
pub use kind::MachineKind;
pub use linear::Linear;
pub(crate) use linear::arranged;
pub(crate) use parts::{PartsReader, PartsResult, PartsWriter};
pub(super) use parts::{from_header, to_header};
pub(crate) use validate::reason;
pub(super) use validate::{
    MAX_SQUARE, check_classes, check_dense, check_finite, check_length, check_priors, check_rows,
    fail,
};

/// How several two-class functions become one class label.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// One function per pair i < j, positive meaning i; most votes win, ties go to the lower class
    /// (LIBSVM's rule).
    #[default]
    OneVsOne,
    /// One function per class, positive meaning the class; the largest value wins.
    OneVsRest,
    /// The functions of one-vs-one, asked along a decision graph that removes one class a step.
    Dag,
    /// One function per column of a code matrix; the class whose code loses least wins.
    ErrorCorrecting(OutputCode),
}

impl Scheme {
    /// Number of decision functions for `classes` classes.
    pub fn functions(&self, classes: usize) -> usize {
        match self {
            Self::OneVsOne | Self::Dag => classes * classes.saturating_sub(1) / 2,
            Self::OneVsRest => classes,
            Self::ErrorCorrecting(codes) => codes.first().map_or(0, Vec::len),
        }
    }
}

/// The classes of a classifier and how its functions vote.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassTable {
    /// Label of every class.
    pub names: Vec<Label>,
    /// How the functions vote.
    pub scheme: Scheme,
    /// Number of support vectors of every class; the support vectors stand in class order.
    pub support: Vec<usize>,
}

impl ClassTable {
    /// The place of the class that counts as positive by default: of two classes the
    /// second in ascending order, whatever their order in the model.
    pub fn positive(&self) -> usize {
        let places = 0..self.names.len();
        places.max_by(|&a, &b| self.names[a].order(&self.names[b])).unwrap_or(0)
    }
}

/// Maps decision values to probabilities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Calibration {
    /// P(positive | f) = 1 / (1 + exp(A f + B)) per function (Platt; LIBSVM's `probA`, `probB`).
    Sigmoid {
        /// A of every function.
        a: Vec<f64>,
        /// B of every function.
        b: Vec<f64>,
    },
    /// A non-decreasing step function per decision function, linear between its knots.
    Isotonic {
        /// (decision value, probability) knots of every function, values ascending.
        knots: Vec<Vec<(f64, f64)>>,
    },
    /// Regression: the noise is Laplace distributed with this scale (LIBSVM's `probA` for SVR).
    Laplace {
        /// Scale σ.
        scale: f64,
    },
    /// One-class: ascending decision values that split the rows into bins of equal mass (LIBSVM's
    /// `prob_density_marks`); a value below mark i has probability i / number of marks.
    Density {
        /// The marks.
        marks: Vec<f64>,
    },
    /// The values are logarithms of what is to be divided by its sum; of a single value f the
    /// logarithms are f and 0.
    Softmax,
    /// The values are the probabilities.
    Shares,
}

/// How the model was trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Training {
    /// What the solver reached.
    pub outcome: Outcome,
    /// Rows it was trained on.
    pub rows: usize,
    /// Wall time of the fit in seconds.
    pub seconds: f64,
    /// Parameters by name, and what was learnt beside the functions, such as the ε of ν-SVR.
    pub parameters: Vec<(String, Value)>,
    /// The specification it was trained from, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub specification: Option<Specification>,
}

impl Training {
    /// The record of a training that began at `started`.
    pub(crate) fn new<'a>(
        outcome: Outcome,
        rows: usize,
        started: Instant,
        parameters: impl IntoIterator<Item = (&'a str, Value)>,
    ) -> Self {
        let parameters = parameters.into_iter().map(|(name, value)| (name.to_owned(), value));
        let (seconds, parameters) = (started.elapsed().as_secs_f64(), parameters.collect());
        Self { outcome, rows, seconds, parameters, specification: None }
    }

    /// The penalty C, for machines that have one.
    pub fn penalty(&self) -> Option<f64> {
        self.parameters.iter().find(|(name, _)| name == "c")?.1.number()
    }

    /// Several numbers that were learnt beside the functions, such as a score of every training row.
    pub fn reals(&self, name: &str) -> Option<&[f64]> {
        match &self.parameters.iter().find(|(own, _)| own == name)?.1 {
            Value::Reals(numbers) => Some(numbers),
            _ => None,
        }
    }

    /// Replaces the penalty C, for machines that have one.
    pub(super) fn set_penalty(&mut self, c: f64) {
        if let Some((_, value)) = self.parameters.iter_mut().find(|(name, _)| name == "c") {
            *value = c.into();
        }
    }
}

/// A trained machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Which machine it comes from.
    pub kind: MachineKind,
    /// What it has learnt.
    pub body: Body,
    /// Classes, for classifiers.
    pub classes: Option<ClassTable>,
    /// Probabilities, if calibrated.
    pub calibration: Option<Calibration>,
    /// What is done to rows before the body sees them.
    pub preparation: Preparation,
    /// Names of the features, if known.
    pub feature_names: Option<Vec<String>>,
    /// How it was trained; `None` for models of other programs.
    pub training: Option<Training>,
}

impl Model {
    /// A model of this kind and body, with nothing else known.
    pub fn new(kind: MachineKind, body: impl Into<Body>) -> Self {
        Self {
            kind,
            body: body.into(),
            classes: None,
            calibration: None,
            preparation: Preparation::default(),
            feature_names: None,
            training: None,
        }
    }

    /// Number of features a row to predict must have.
    pub fn features(&self) -> usize {
        let own = self.body.vectors().columns();
        self.preparation.map.as_ref().map_or(own, FeatureMap::inputs)
    }

    /// Number of decision values of a row.
    pub fn outputs(&self) -> usize {
        self.body.get().outputs(self)
    }

    /// The support vectors, where nothing but the decision functions depends on them.
    pub(crate) fn replaceable_expansion(&self) -> Option<&KernelExpansion> {
        self.body.get().replaceable()
    }

    /// The expansion over support vectors, for models that are one or hold one.
    pub fn expansion(&self) -> Option<&KernelExpansion> {
        self.body.get().expansion()
    }

    /// The same, to be changed.
    pub fn expansion_mut(&mut self) -> Option<&mut KernelExpansion> {
        self.body.get_mut().expansion_mut()
    }

    /// The weights, for linear machines.
    pub fn linear(&self) -> Option<&Linear> {
        self.body.get().linear()
    }

    /// The kernel, for models over support vectors.
    pub fn kernel(&self) -> Option<&Kernel> {
        self.expansion().map(|expansion| &expansion.kernel)
    }

    /// Whether decision values are sums of precomputed kernel values.
    pub fn is_precomputed(&self) -> bool {
        self.kernel() == Some(&Kernel::Precomputed)
    }

    /// Number format that decision values are computed in.
    pub fn precision(&self) -> Precision {
        self.expansion().map_or(Precision::F64, |expansion| expansion.precision)
    }

    /// The vectors that the body keeps: support vectors, weight vectors, means, rows or centres.
    pub fn vectors(&self) -> &Matrix {
        self.body.vectors()
    }

    /// Number of vectors that the body keeps.
    pub fn support_count(&self) -> usize {
        self.vectors().rows()
    }

    /// Training row (from 0) of every vector; empty when not known.
    pub fn support_rows(&self) -> &[usize] {
        self.body.get().training_rows()
    }

    /// The decision functions over support vectors; none for models of another body.
    pub fn functions(&self) -> &[DecisionFunction] {
        self.expansion().map_or(&[], |expansion| &expansion.functions)
    }

    /// The offset ρ of every decision function f(x) − ρ; none for models without such functions.
    pub fn offsets(&self) -> Vec<f64> {
        self.body.get().offsets()
    }

    /// Adds `shift` to the offset of a decision function, if there is such a function.
    pub(crate) fn move_offset(&mut self, function: usize, shift: f64) {
        if let Some(offset) = self.body.get_mut().offset_mut(function) {
            *offset += shift;
        }
    }

    /// The body's properties, for people.
    pub fn describe(&self) -> Description {
        self.body.get().describe(self)
    }

    /// What the body holds beside vectors and functions, by name: what Python's estimators make their
    /// attributes of.
    pub fn attributes(&self) -> Vec<(&'static str, Value)> {
        self.body.get().attributes(self)
    }

    /// For a discriminant: the model whose decision values are the projections on its directions.
    pub fn projection(&self) -> Option<Self> {
        let body = self.body.get().projection()?;
        Some(Self { body, classes: None, calibration: None, ..self.clone() })
    }

    /// Whether rows with so many features can be predicted: as many as the training rows had, or any
    /// number where all of them are the characters of strings.
    pub fn takes_columns(&self, columns: usize) -> bool {
        let any = || self.kernel().is_some_and(Kernel::takes_any_width);
        columns == self.features() || (self.preparation.scaler.is_none() && any())
    }

    /// Gives the model more features, which are 0 in all rows that it was trained on; returns
    /// whether it can take them.
    pub fn widen(&mut self, features: usize) -> bool {
        let preparation = &self.preparation;
        if preparation.scaler.is_some() || preparation.map.is_some() {
            return false;
        }
        let widened = self.body.get_mut().widen(features);
        if widened {
            self.feature_names = None;
        }
        widened
    }
}
