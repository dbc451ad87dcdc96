//! What a classical machine leaves in a model beside, or in the place of, decision functions.

use serde::{Deserialize, Serialize};

use super::{Covariance, NeighbourSearch, NetworkInput, Weighting, Window};
use crate::machine::{DecisionFunction, MachineKind, Model};

/// The part of a model that only its classical machine understands.
#[derive(Clone, Debug, PartialEq)]
pub enum ClassicPart {
    /// Of both Fisher discriminants.
    Discriminant(Discriminant),
    /// Of mixtures of Gaussians; the means are the model's support vectors.
    Mixtures(Mixtures),
    /// Of nearest neighbours; the rows are the model's support vectors.
    Neighbours(Neighbours),
    /// Of Parzen windows; the rows are the model's support vectors, class by class.
    Windows(Windows),
    /// Of k-means; the centres are the model's support vectors.
    Centres,
}

/// Directions that separate classes, and how well.
#[derive(Clone, Debug, PartialEq)]
pub struct Discriminant {
    /// The directions, the best first, as functions over the support vectors.
    pub projections: Vec<DecisionFunction>,
    /// Between-class over within-class scatter along each direction.
    pub ratios: Vec<f64>,
    /// J(w) at its maximum: the squared Mahalanobis distance of the means for two classes, the sum of
    /// the ratios for more.
    pub separability: f64,
    /// Fisher's ratio of every feature taken alone; empty for the kernel machine.
    pub feature_scores: Vec<f64>,
    /// What was added to the within-class scatter: a share for the linear, a number for the kernel
    /// machine.
    pub regularisation: f64,
}

/// A mixture of Gaussians per class, or a single one.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixtures {
    /// The shape of the covariances.
    pub covariance: Covariance,
    /// Components of each mixture.
    pub components: Vec<usize>,
    /// Weight of every component within its mixture.
    pub weights: Vec<f64>,
    /// Covariances, mixture after mixture, each in the shape of [`Covariance::values`].
    pub covariances: Vec<f64>,
    /// ln P of every class; a single 0 without classes.
    pub log_priors: Vec<f64>,
    /// Loss of answering class j for class i, row by row; empty where every error costs 1.
    pub loss: Vec<f64>,
    /// Log-likelihood of the training rows, per row.
    pub log_likelihood: f64,
}

/// Rows that vote.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbours {
    /// How many vote.
    pub k: usize,
    /// What a vote counts.
    pub weighting: Weighting,
    /// How they are found.
    pub search: NeighbourSearch,
    /// Class or cluster (from 0), or value of every row.
    pub targets: Vec<f64>,
    /// L⁻¹ of the covariance L Lᵀ whose distance is used, row by row; empty for Euclid's.
    pub whitening: Vec<f64>,
}

/// Windows around rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Windows {
    /// Their shape.
    pub window: Window,
    /// What is done to rows first.
    pub input: NetworkInput,
    /// Width of every class, or one.
    pub widths: Vec<f64>,
    /// ln P of every class; a single 0 without classes.
    pub log_priors: Vec<f64>,
}

/// Everything of a part that is no array of numbers, as model files hold it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum ClassicForm {
    /// See [`Discriminant`].
    Discriminant {
        /// As there.
        separability: f64,
        /// As there.
        regularisation: f64,
    },
    /// See [`Mixtures`].
    Mixtures {
        /// As there.
        covariance: Covariance,
        /// As there.
        components: Vec<usize>,
        /// As there.
        log_likelihood: f64,
    },
    /// See [`Neighbours`].
    Neighbours {
        /// As there.
        k: usize,
        /// As there.
        weighting: Weighting,
        /// As there.
        search: NeighbourSearch,
    },
    /// See [`Windows`].
    Windows {
        /// As there.
        window: Window,
        /// As there.
        input: NetworkInput,
    },
    /// Nothing beside the centres.
    Centres,
}

/// A named array of a part.
pub(crate) type NamedArray<'a> = (&'static str, &'a [f64]);

impl ClassicPart {
    /// What is no array, and the arrays by name; projections are kept apart.
    pub(crate) fn taken_apart(&self) -> (ClassicForm, Vec<NamedArray<'_>>) {
        match self {
            Self::Discriminant(d) => (
                ClassicForm::Discriminant {
                    separability: d.separability,
                    regularisation: d.regularisation,
                },
                vec![("classic.ratios", &d.ratios), ("classic.feature_scores", &d.feature_scores)],
            ),
            Self::Mixtures(m) => (
                ClassicForm::Mixtures {
                    covariance: m.covariance,
                    components: m.components.clone(),
                    log_likelihood: m.log_likelihood,
                },
                vec![
                    ("classic.weights", &m.weights),
                    ("classic.covariances", &m.covariances),
                    ("classic.log_priors", &m.log_priors),
                    ("classic.loss", &m.loss),
                ],
            ),
            Self::Neighbours(n) => (
                ClassicForm::Neighbours { k: n.k, weighting: n.weighting, search: n.search },
                vec![("classic.targets", &n.targets), ("classic.whitening", &n.whitening)],
            ),
            Self::Windows(w) => (
                ClassicForm::Windows { window: w.window, input: w.input },
                vec![("classic.widths", &w.widths), ("classic.log_priors", &w.log_priors)],
            ),
            Self::Centres => (ClassicForm::Centres, Vec::new()),
        }
    }

    /// The inverse of [`taken_apart`](Self::taken_apart).
    pub(crate) fn put_together<E>(
        form: ClassicForm,
        projections: Vec<DecisionFunction>,
        mut array: impl FnMut(&'static str) -> Result<Vec<f64>, E>,
    ) -> Result<Self, E> {
        Ok(match form {
            ClassicForm::Discriminant { separability, regularisation } => {
                Self::Discriminant(Discriminant {
                    projections,
                    ratios: array("classic.ratios")?,
                    separability,
                    feature_scores: array("classic.feature_scores")?,
                    regularisation,
                })
            }
            ClassicForm::Mixtures { covariance, components, log_likelihood } => {
                Self::Mixtures(Mixtures {
                    covariance,
                    components,
                    weights: array("classic.weights")?,
                    covariances: array("classic.covariances")?,
                    log_priors: array("classic.log_priors")?,
                    loss: array("classic.loss")?,
                    log_likelihood,
                })
            }
            ClassicForm::Neighbours { k, weighting, search } => Self::Neighbours(Neighbours {
                k,
                weighting,
                search,
                targets: array("classic.targets")?,
                whitening: array("classic.whitening")?,
            }),
            ClassicForm::Windows { window, input } => Self::Windows(Windows {
                window,
                input,
                widths: array("classic.widths")?,
                log_priors: array("classic.log_priors")?,
            }),
            ClassicForm::Centres => Self::Centres,
        })
    }
}

impl Model {
    /// For a discriminant: the model whose decision values are the projections on its directions.
    pub fn projection(&self) -> Option<Self> {
        match &self.classic {
            Some(ClassicPart::Discriminant(part)) => Some(Self {
                functions: part.projections.clone(),
                classes: None,
                calibration: None,
                ..self.clone()
            }),
            _ => None,
        }
    }

    /// Numbers that every row gets before they become an answer.
    pub fn outputs(&self) -> usize {
        match (&self.classic, &self.classes) {
            (None | Some(ClassicPart::Discriminant(_)), _) => self.functions.len(),
            (Some(_), Some(table)) => table.names.len(),
            (Some(ClassicPart::Mixtures(_) | ClassicPart::Centres), None) => self.support_count(),
            (Some(ClassicPart::Neighbours(part)), None)
                if self.kind != MachineKind::Classic(super::Classic::NeighboursRegression) =>
            {
                part.targets.iter().fold(0, |most, &target| most.max(target as usize + 1))
            }
            (Some(_), None) => 1,
        }
    }
}
