//! The Bayes classifier on a mixture of Gaussians per class (JHU 685.621, 1.2.2).
//!
//! The answer is the class j with the smallest expected loss Σᵢ L(i, j) P(i | x), where
//! P(i | x) ∝ Pᵢ p(x | i); with the loss 1 of every error that is the most probable class.

use std::time::Instant;

use super::super::rows::{self, Effort, Priors, check_labelled, class_table, dense_rows, table};
use super::super::{Classic, ClassicPart, Mixtures};
use super::fit::GaussianMixture;
use crate::context::Context;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::machine::{Machine, Model};
use crate::solver::Status;

/// The Bayes classifier on mixtures of Gaussians; with one component a class it is quadratic
/// discriminant analysis.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::machine::{GaussianMixture, Machine, MixtureBayes};
/// use widemargin::Context;
///
/// let rows = vec![0., 0., 1., 0., 0., 1., 1., 1., 3., 2., 4., 2., 3., 3., 5., 4.];
/// let rows = Matrix::DenseF64(Dense::new(8, 2, rows)?);
/// let data = Dataset::new(rows, Labels::Int(vec![-1, -1, -1, -1, 1, 1, 1, 1]))?;
/// let mixture = GaussianMixture { floor: 0.0, ..GaussianMixture::default() };
/// let context = Context::new();
/// let model = MixtureBayes { mixture, ..MixtureBayes::default() }.fit(&data, &context)?;
/// let point = Matrix::DenseF64(Dense::new(1, 2, vec![2.0, 1.0])?);
/// let posterior = model.predictor(&context)?.probabilities(&point)?;
/// assert!((posterior.row(0)[1] - 0.8213820351).abs() < 1e-9);
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MixtureBayes {
    /// The mixture of every class.
    pub mixture: GaussianMixture,
    /// Class probabilities.
    pub priors: Priors,
    /// Loss of answering class j for class i, row by row, classes ascending; `None` where every
    /// error costs 1.
    pub loss: Option<Vec<f64>>,
}

impl Default for MixtureBayes {
    fn default() -> Self {
        Self { mixture: GaussianMixture::default(), priors: Priors::Frequencies, loss: None }
    }
}

impl Machine for MixtureBayes {
    fn fit(&self, data: &Dataset, context: &Context) -> Result<Model> {
        let started = Instant::now();
        self.mixture.validate()?;
        let classes = check_labelled(data)?;
        let members = classes.rows_by_class();
        let counts: Vec<usize> = members.iter().map(Vec::len).collect();
        let log_priors = self.priors.logarithms(&counts)?;
        let loss = self.loss.clone().unwrap_or_default();
        if self.loss.is_some() {
            check_loss(&loss, counts.len())?;
        }
        let columns = data.columns();
        let mut parts = Mixtures {
            covariance: self.mixture.covariance,
            components: Vec::new(),
            weights: Vec::new(),
            covariances: Vec::new(),
            log_priors,
            loss,
            log_likelihood: 0.0,
        };
        let mut means = Vec::new();
        let mut effort = Effort {
            status: Status::Solved,
            parameters: self.mixture.parameters(),
            ..Effort::closed_form(started, &[])
        };
        for (members, name) in members.iter().zip(&classes.names) {
            let own = dense_rows(&data.features().select_rows(members));
            let mut mixture = self.mixture.clone();
            if mixture.components > members.len() {
                mixture.components = members.len();
                let message = format!(
                    "class '{name}' has only {} rows and as many components",
                    members.len()
                );
                rows::warn(context, message);
            }
            let fitted = mixture.mixture(&own, columns, context)?;
            effort.status = effort.status.max(fitted.status);
            effort.change = effort.change.max(fitted.change.abs());
            effort.iterations += fitted.iterations;
            parts.log_likelihood +=
                fitted.log_likelihood * members.len() as f64 / data.rows() as f64;
            parts.components.push(fitted.weights.len());
            parts.weights.extend(fitted.weights);
            parts.covariances.extend(fitted.covariances);
            means.extend(fitted.means);
        }
        effort.objective = -parts.log_likelihood;
        let support = table(means, columns)?;
        let table = class_table(&classes, parts.components.clone());
        let part = ClassicPart::Mixtures(parts);
        let mut model = rows::model(Classic::MixtureBayes, data, support, part, effort);
        model.classes = Some(table);
        Ok(model)
    }
}

fn check_loss(loss: &[f64], classes: usize) -> Result<()> {
    if loss.len() != classes * classes {
        return Err(Error::length("losses", classes * classes, loss.len()));
    }
    match loss.iter().find(|value| !value.is_finite()) {
        Some(value) => Err(Error::parameter("loss", "finite numbers", value)),
        None => Ok(()),
    }
}
