//! Trained machines: support vectors, decision functions over them, and how to read those.
//!
//! Every model is a set of functions f(x) = Σ cₛ K(x, xₛ) − offset (− w K(x, x) for SVDD) over one
//! list of support vectors; the [`Scheme`] says how their values become an answer.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{AllInOne, Classic, ClassicPart, Precision, Preparation};
use crate::data::{Label, Matrix};
use crate::error::{Error, Result};
use crate::kernel::{FeatureMap, Kernel};
use crate::solver::Outcome;

/// Which machine a model comes from.
///
/// In files it is its [`name`](Self::name).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum MachineKind {
    /// Classification with penalty C.
    CSvc,
    /// Classification with ν, the share of margin errors.
    NuSvc,
    /// Regression with an ε-wide tube.
    EpsilonSvr,
    /// Regression with ν, the share of rows outside the tube.
    NuSvr,
    /// Support of a distribution: a half-space away from the origin.
    OneClass,
    /// Support of a distribution: the smallest ball.
    Svdd,
    /// Classification with the scores of all classes learnt together.
    AllInOne(AllInOne),
    /// A classical machine beside the support vector machines.
    Classic(Classic),
    /// Linear classification with hinge losses, or by Crammer and Singer's linear machine.
    LinearSvc,
    /// Logistic regression.
    Logistic,
    /// Linear regression with an ε-wide tube.
    LinearSvr,
    /// Support of a distribution: a half-space of the features themselves.
    LinearOneClass,
}

impl MachineKind {
    /// The kinds that LIBSVM has, in its order (`-s 0` …).
    pub const LIBSVM: [Self; 5] =
        [Self::CSvc, Self::NuSvc, Self::OneClass, Self::EpsilonSvr, Self::NuSvr];

    /// The linear kinds.
    pub const LINEAR: [Self; 4] =
        [Self::LinearSvc, Self::Logistic, Self::LinearSvr, Self::LinearOneClass];

    /// Every kind, LIBSVM's first.
    pub fn all() -> impl Iterator<Item = Self> {
        let all_in_one = AllInOne::ALL.into_iter().map(Self::AllInOne);
        let classic = Classic::ALL.iter().copied().map(Self::Classic);
        let plain = Self::LIBSVM.into_iter().chain([Self::Svdd]).chain(all_in_one);
        plain.chain(Self::LINEAR).chain(classic)
    }

    /// Name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::CSvc => "c-svc",
            Self::NuSvc => "nu-svc",
            Self::EpsilonSvr => "epsilon-svr",
            Self::NuSvr => "nu-svr",
            Self::OneClass => "one-class",
            Self::Svdd => "svdd",
            Self::AllInOne(machine) => machine.name(),
            Self::Classic(machine) => machine.name(),
            Self::LinearSvc => "linear-svc",
            Self::Logistic => "logistic",
            Self::LinearSvr => "linear-svr",
            Self::LinearOneClass => "linear-one-class",
        }
    }

    /// Whether its models hold weights instead of support vectors.
    pub fn is_linear(self) -> bool {
        Self::LINEAR.contains(&self)
    }

    /// Whether it answers with a class label.
    pub fn is_classifier(self) -> bool {
        match self {
            Self::CSvc | Self::NuSvc | Self::AllInOne(_) => true,
            Self::LinearSvc | Self::Logistic => true,
            Self::Classic(machine) => machine.is_classifier(),
            _ => false,
        }
    }

    /// Whether it answers with a number.
    pub fn is_regressor(self) -> bool {
        let neighbours = Self::Classic(Classic::NeighboursRegression);
        matches!(self, Self::EpsilonSvr | Self::NuSvr | Self::LinearSvr) || self == neighbours
    }

    /// Whether it answers with the number of a cluster.
    pub fn is_clusterer(self) -> bool {
        matches!(self, Self::Classic(machine) if machine.is_clusterer())
    }

    /// Whether its answers can be right or wrong; densities cannot.
    pub fn has_true_answers(self) -> bool {
        self != Self::Classic(Classic::Density)
    }

    /// Whether it answers with 1 (inside) or −1 (outside).
    pub fn is_novelty_detector(self) -> bool {
        matches!(self, Self::OneClass | Self::Svdd | Self::LinearOneClass)
    }
}

impl fmt::Display for MachineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for MachineKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if let Ok(machine) = text.parse() {
            return Ok(Self::AllInOne(machine));
        }
        Self::all().find(|kind| kind.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Self::all().map(Self::name).collect();
            Error::parameter("machine", format!("one of {}", names.join(", ")), text)
        })
    }
}

impl TryFrom<String> for MachineKind {
    type Error = Error;

    fn try_from(name: String) -> Result<Self> {
        name.parse()
    }
}

impl From<MachineKind> for String {
    fn from(kind: MachineKind) -> Self {
        kind.name().to_owned()
    }
}

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
    /// One function per column of a code matrix (classes × functions, entries −1, 0, +1); the
    /// class whose code loses least, by hinge loss, wins.
    ErrorCorrecting(Vec<Vec<i8>>),
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

/// Coefficients of one decision function on a run of support vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Support vectors concerned.
    pub support: Range<usize>,
    /// One coefficient for each of them.
    pub coefficients: Vec<f64>,
}

/// f(x) = Σ over parts Σ cₛ K(x, xₛ) − offset.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionFunction {
    /// Runs of support vectors with their coefficients, disjoint and ascending.
    pub parts: Vec<Part>,
    /// LIBSVM's ρ.
    pub offset: f64,
}

impl DecisionFunction {
    /// Coefficient of support vector `s`, 0 where the function does not use it.
    pub fn coefficient(&self, s: usize) -> f64 {
        self.parts
            .iter()
            .find(|part| part.support.contains(&s))
            .map_or(0.0, |part| part.coefficients[s - part.support.start])
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
    /// Parameters by name, as text, for people.
    pub parameters: Vec<(String, String)>,
}

impl Training {
    /// The penalty C, for machines that have one.
    pub fn penalty(&self) -> Option<f64> {
        let (_, text) = self.parameters.iter().find(|(name, _)| name == "c")?;
        text.parse().ok()
    }

    /// Replaces the penalty C, for machines that have one.
    pub(super) fn set_penalty(&mut self, c: f64) {
        if let Some((_, text)) = self.parameters.iter_mut().find(|(name, _)| name == "c") {
            *text = c.to_string();
        }
    }
}

/// A trained machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Which machine it comes from.
    pub kind: MachineKind,
    /// The kernel, all parameters resolved.
    pub kernel: Kernel,
    /// Number format prediction computes kernel values in.
    pub precision: Precision,
    /// The support vectors, one per row.
    pub support: Matrix,
    /// Training row (from 0) of every support vector; empty when not known.
    pub support_rows: Vec<usize>,
    /// The decision functions.
    pub functions: Vec<DecisionFunction>,
    /// Factor w of −K(x, x) in every function: 1 for SVDD, otherwise 0.
    pub self_weight: f64,
    /// Classes, for classifiers.
    pub classes: Option<ClassTable>,
    /// Probabilities, if calibrated.
    pub calibration: Option<Calibration>,
    /// What only its machine understands, for classical machines.
    pub classic: Option<ClassicPart>,
    /// What is done to rows before the kernel sees them.
    pub preparation: Preparation,
    /// Names of the features, if known.
    pub feature_names: Option<Vec<String>>,
    /// How it was trained; `None` for models of other programs.
    pub training: Option<Training>,
}

impl Model {
    /// Number of support vectors.
    pub fn support_count(&self) -> usize {
        self.support.rows()
    }

    /// Number of features a row to predict must have.
    pub fn features(&self) -> usize {
        self.preparation.map.as_ref().map_or(self.support.columns(), FeatureMap::inputs)
    }
}
