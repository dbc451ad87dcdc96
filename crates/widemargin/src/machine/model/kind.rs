//! The kinds of machines, by their names on the command line and in files.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::machine::{AllInOne, Classic};

/// Which machine a model comes from.
///
/// In files it is its [`name`](Self::name).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
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
    /// Linear ranking by pairs of rows.
    RankSvm,
    /// Classification by least squares.
    LsSvc,
    /// Regression by least squares.
    LsSvr,
    /// Classification with losses that outliers do not pull.
    RobustSvc,
    /// Classification of rows of which only some have labels.
    SemiSupervised,
    /// Two clusters with the largest margin between them.
    MaxMarginClustering,
    /// Tags of sequences with the largest margin to all others.
    ChainSvc,
    /// Hidden Markov models of sequences.
    HiddenMarkov,
}

impl MachineKind {
    /// The kinds that LIBSVM has, in its order (`-s 0` …).
    pub const LIBSVM: [Self; 5] =
        [Self::CSvc, Self::NuSvc, Self::OneClass, Self::EpsilonSvr, Self::NuSvr];

    /// The linear kinds.
    pub const LINEAR: [Self; 5] =
        [Self::LinearSvc, Self::Logistic, Self::LinearSvr, Self::LinearOneClass, Self::RankSvm];

    /// The kinds that are trained on sequences.
    pub const SEQUENCES: [Self; 2] = [Self::ChainSvc, Self::HiddenMarkov];

    /// Every kind that is trained on rows, LIBSVM's first.
    pub fn all() -> impl Iterator<Item = Self> {
        let all_in_one = AllInOne::ALL.into_iter().map(Self::AllInOne);
        let classic = Classic::ALL.iter().copied().map(Self::Classic);
        let plain =
            Self::LIBSVM.into_iter().chain([Self::Svdd, Self::LsSvc, Self::LsSvr, Self::RobustSvc]);
        let plain = plain.chain(all_in_one);
        plain
            .chain(Self::LINEAR)
            .chain(classic)
            .chain([Self::SemiSupervised, Self::MaxMarginClustering])
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
            Self::RankSvm => "rank-svm",
            Self::LsSvc => "ls-svc",
            Self::LsSvr => "ls-svr",
            Self::RobustSvc => "robust-svc",
            Self::SemiSupervised => "semi-svc",
            Self::MaxMarginClustering => "mmc",
            Self::ChainSvc => "chain-svc",
            Self::HiddenMarkov => "hmm",
        }
    }

    /// Whether it predicts a class label.
    pub fn is_classifier(self) -> bool {
        match self {
            Self::CSvc | Self::NuSvc | Self::LsSvc | Self::AllInOne(_) => true,
            Self::RobustSvc => true,
            Self::LinearSvc | Self::Logistic | Self::SemiSupervised => true,
            Self::Classic(machine) => machine.is_classifier(),
            _ => false,
        }
    }

    /// Whether it predicts a number.
    pub fn is_regressor(self) -> bool {
        let neighbours = Self::Classic(Classic::NeighboursRegression);
        matches!(self, Self::EpsilonSvr | Self::NuSvr | Self::LsSvr | Self::LinearSvr)
            || self == neighbours
    }

    /// Whether it predicts scores of which only the order within a query matters.
    pub fn is_ranker(self) -> bool {
        self == Self::RankSvm
    }

    /// Whether it predicts the number of a cluster.
    pub fn is_clusterer(self) -> bool {
        match self {
            Self::Classic(machine) => machine.is_clusterer(),
            kind => kind == Self::MaxMarginClustering,
        }
    }

    /// Whether its models may have probabilities.
    pub fn has_probabilities(self) -> bool {
        match self {
            Self::Classic(machine) => {
                machine.is_classifier()
                    || matches!(machine, Classic::Mixture | Classic::CertifiedMixture)
            }
            kind => !matches!(kind, Self::Svdd | Self::RankSvm | Self::MaxMarginClustering),
        }
    }

    /// Whether its predictions can be compared with true labels; densities cannot.
    pub fn has_true_labels(self) -> bool {
        self != Self::Classic(Classic::Density)
    }

    /// Whether its models are kernel expansions without anything else.
    pub(crate) fn has_expansion(self) -> bool {
        let classifies = matches!(
            self,
            Self::CSvc | Self::NuSvc | Self::LsSvc | Self::RobustSvc | Self::SemiSupervised
        );
        let others = [Self::EpsilonSvr, Self::NuSvr, Self::LsSvr, Self::OneClass];
        classifies || matches!(self, Self::AllInOne(_)) || others.contains(&self)
    }

    /// Whether it predicts 1 (inside) or −1 (outside).
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
        Self::all().chain(Self::SEQUENCES).find(|kind| kind.name() == text).ok_or_else(|| {
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
