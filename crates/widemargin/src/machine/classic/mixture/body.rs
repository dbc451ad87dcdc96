//! Mixtures of Gaussians: a decision value is ln(prior · density) of a class, or ln(weight · density)
//! of a component where there are no classes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::rows::dense_rows;
use super::Covariance;
use super::pass::{Blocks, Component, ROWS, log_joints};
use super::step::component_list;
use crate::context::Context;
use crate::data::Matrix;
use crate::error::{Error, Result};
use crate::machine::Classic;
use crate::machine::model::{
    Attributes, Description, Evaluation, MAX_SQUARE, MachineKind, Model, ModelBody, PartsReader,
    PartsResult, PartsWriter, Prepared, check_classes, check_dense, check_finite, check_length,
    check_priors, fail, from_header, to_header,
};
use crate::machine::probability::log_sum;

/// A mixture of Gaussians per class, or a single one.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixtures {
    /// The means of all components, one per row.
    pub means: Matrix,
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
    /// Loss of predicting class j for class i, row by row; empty where every error costs 1.
    pub loss: Vec<f64>,
    /// Log-likelihood of the training rows, per row.
    pub log_likelihood: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    features: usize,
    covariance: Covariance,
    components: Vec<usize>,
    log_likelihood: f64,
}

impl ModelBody for Mixtures {
    fn suits(&self, kind: MachineKind) -> bool {
        [Classic::Mixture, Classic::CertifiedMixture, Classic::MixtureBayes]
            .map(MachineKind::Classic)
            .contains(&kind)
    }

    fn has_class_scores(&self) -> bool {
        true
    }

    fn vectors(&self) -> &Matrix {
        &self.means
    }

    fn outputs(&self, model: &Model) -> usize {
        model.classes.as_ref().map_or(self.means.rows(), |table| table.names.len())
    }

    fn check(&self, model: &Model) -> Result<()> {
        let (count, features) = (self.means.rows(), self.means.columns());
        let classes = model.classes.as_ref().map_or(1, |table| table.names.len());
        if let Some(table) = &model.classes {
            check_classes(table, None)?;
        }
        if count == 0 {
            return Err(Error::Empty { what: "row" });
        }
        check_dense("means", &self.means)?;
        if features > MAX_SQUARE {
            return fail(format!("expected at most {MAX_SQUARE} features, found {features}"));
        }
        check_length("mixtures", classes, self.components.len())?;
        let total = self.components.iter().try_fold(0_usize, |sum, &count| sum.checked_add(count));
        if total != Some(count) || self.components.contains(&0) {
            return fail(format!("expected mixtures of {count} components in all, found others"));
        }
        check_length("component weights", count, self.weights.len())?;
        let values = |count: &usize| self.covariance.values(*count, features);
        let expected = self.components.iter().map(values).sum();
        check_length("covariances", expected, self.covariances.len())?;
        check_length("priors", classes, self.log_priors.len())?;
        if !self.loss.is_empty() {
            check_length("losses", classes * classes, self.loss.len())?;
        }
        check_finite("covariances", &self.covariances)?;
        check_finite("component weights", &self.weights)?;
        check_finite("losses", &self.loss)?;
        check_priors(&self.log_priors)
    }

    fn describe(&self, _model: &Model) -> Description {
        Description::of_vectors("components")
    }

    fn attributes(&self, model: &Model) -> Attributes {
        let features = model.features();
        let of_mixture = |&count: &usize| {
            count - 1 + count * features + self.covariance.parameters(count, features)
        };
        let parameters: usize = self.components.iter().map(of_mixture).sum();
        let components: Vec<f64> = self.components.iter().map(|&count| count as f64).collect();
        vec![
            ("components", components.into()),
            ("loss", self.loss.clone().into()),
            ("covariance", self.covariance.to_string().into()),
            ("weights", self.weights.clone().into()),
            ("covariances", self.covariances.clone().into()),
            ("log_priors", self.log_priors.clone().into()),
            ("log_likelihood", self.log_likelihood.into()),
            ("parameters", parameters.into()),
        ]
    }

    fn has_density(&self) -> bool {
        true
    }

    fn losses(&self) -> &[f64] {
        &self.loss
    }

    fn prepare(&self, model: &Model, context: &Context) -> Result<Box<dyn Prepared>> {
        Ok(Box::new(PreparedMixtures::new(self, model.classes.is_some(), context)?))
    }

    fn write(&self, parts: &mut PartsWriter) -> PartsResult<Value> {
        parts.put_matrix("means", &self.means);
        parts.put_list("weights", self.weights.iter().copied());
        parts.put_list("covariances", self.covariances.iter().copied());
        parts.put_list("log_priors", self.log_priors.iter().copied());
        parts.put_list("loss", self.loss.iter().copied());
        to_header(&Header {
            features: self.means.columns(),
            covariance: self.covariance,
            components: self.components.clone(),
            log_likelihood: self.log_likelihood,
        })
    }

    fn read(header: Value, parts: &mut PartsReader<'_>) -> PartsResult<Self> {
        let header: Header = from_header(header)?;
        Ok(Self {
            means: parts.take_matrix("means", header.features)?,
            covariance: header.covariance,
            components: header.components,
            weights: parts.take_list("weights")?,
            covariances: parts.take_list("covariances")?,
            log_priors: parts.take_list("log_priors")?,
            loss: parts.take_list("loss")?,
            log_likelihood: header.log_likelihood,
        })
    }
}

/// Components with their covariances factored.
struct PreparedMixtures {
    components: Vec<Component>,
    /// Components of each class and its ln P; empty where every component is an output.
    classes: Vec<(usize, f64)>,
    features: usize,
}

impl PreparedMixtures {
    fn new(body: &Mixtures, has_classes: bool, context: &Context) -> Result<Self> {
        let features = body.means.columns();
        let means = dense_rows(&body.means)?;
        let mut components = Vec::new();
        let (mut first, mut value) = (0, 0);
        for &count in &body.components {
            let values = body.covariance.values(count, features);
            let own = &body.covariances[value..value + values];
            let factors = body.covariance.factors(own, count, features, context)?;
            let weights = &body.weights[first..first + count];
            let means = &means[first * features..];
            components.extend(component_list(weights, means, factors, features));
            first += count;
            value += values;
        }
        let classes = match has_classes {
            true => body.components.iter().copied().zip(body.log_priors.iter().copied()).collect(),
            false => Vec::new(),
        };
        Ok(Self { components, classes, features })
    }
}

impl Prepared for PreparedMixtures {
    /// ln(prior · density) of every class, or ln(weight · density) of every component.
    fn evaluate(&self, evaluation: Evaluation<'_>) -> Result<()> {
        let Evaluation { queries, rows, out, context, .. } = evaluation;
        let part = queries.select_rows(rows);
        let origin = vec![0.0; self.features];
        let blocks = Blocks::checked(&dense_rows(&part)?, self.features, &origin)?;
        let width =
            if self.classes.is_empty() { self.components.len() } else { self.classes.len() };
        for (block, out) in out.chunks_mut(ROWS * width).enumerate() {
            let joints = log_joints(&blocks, block, &self.components, context)?;
            for (r, out) in out.chunks_exact_mut(width).enumerate() {
                let joint = |k: usize| joints[k * ROWS + r];
                if self.classes.is_empty() {
                    (0..width).for_each(|k| out[k] = joint(k));
                    continue;
                }
                let mut first = 0;
                for (value, &(count, log_prior)) in out.iter_mut().zip(&self.classes) {
                    let own: Vec<f64> = (first..first + count).map(joint).collect();
                    *value = log_prior + log_sum(&own);
                    first += count;
                }
            }
        }
        Ok(())
    }
}
