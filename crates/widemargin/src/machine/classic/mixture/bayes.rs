//! The Bayes classifier on a mixture of Gaussians per class (JHU 685.621, 1.2.2).
//!
//! The prediction is the class j with the smallest expected loss Σᵢ L(i, j) P(i | x), where
//! P(i | x) ∝ Pᵢ p(x | i); with the loss 1 of every error that is the most probable class.

use std::time::Instant;

use super::super::rows::{self, Priors, TrainingSummary, check_labelled, dense_rows, table};
use super::super::{Classic, Mixtures};
use super::fit::GaussianMixture;
use super::semi::{Rows, improve};
use crate::context::Context;
use crate::data::{ClassOrder, Classes, Dataset, Label};
use crate::error::{Error, Result};
use crate::machine::fit::FitInput;
use crate::machine::names::defaults;
use crate::machine::{ClassTable, Machine, Model, Scheme};
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
    /// Loss of predicting class j for class i, row by row, classes ascending; `None` where every
    /// error costs 1.
    pub loss: Option<Vec<f64>>,
    /// Whether covariances are divided by one less than the number of rows; for one component a
    /// class.
    pub unbiased: bool,
    /// The label of rows whose class is not known; they are shared among all classes by EM.
    pub unlabelled: Option<Label>,
}

defaults!(MixtureBayes {
    mixture: GaussianMixture::default(),
    priors: Priors::Frequencies,
    loss: None,
    unbiased: false,
    unlabelled: None,
});

impl Machine for MixtureBayes {
    fn fit_with(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        input.fit_selected(None, |data| self.train(data, context))
    }

    fn unlabelled(&self) -> Option<&Label> {
        self.unlabelled.as_ref()
    }
}

impl MixtureBayes {
    fn train(&self, data: &Dataset, context: &Context) -> Result<Model> {
        let started = Instant::now();
        self.mixture.validate()?;
        if self.unbiased && (self.mixture.components > 1 || self.unlabelled.is_some()) {
            let expected = "one component a class, all rows labelled, for unbiased covariances";
            return Err(Error::parameter("unbiased", expected, true));
        }
        let (LabelledRows { names, members }, class_of) = self.known(data)?;
        let counts: Vec<usize> = members.iter().map(Vec::len).collect();
        let known: usize = counts.iter().sum();
        let log_priors = self.priors.logarithms(&counts)?;
        let loss = self.loss.clone().unwrap_or_default();
        if self.loss.is_some() {
            check_loss(&loss, counts.len())?;
        }
        let columns = data.columns();
        let mut parts = Mixtures {
            means: table(Vec::new(), columns)?,
            covariance: self.mixture.covariance,
            components: Vec::new(),
            weights: Vec::new(),
            covariances: Vec::new(),
            log_priors,
            loss,
            log_likelihood: 0.0,
        };
        let mut means = Vec::new();
        let mut effort = TrainingSummary {
            status: Status::Solved,
            parameters: self.mixture.parameters(),
            ..TrainingSummary::closed_form(started, &[])
        };
        for (members, name) in members.iter().zip(&names) {
            let own = dense_rows(&data.features().select_rows(members))?;
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
            parts.log_likelihood += fitted.log_likelihood * members.len() as f64 / known as f64;
            parts.components.push(fitted.weights.len());
            parts.weights.extend(fitted.weights);
            let factor = rows::divisor_factor(members.len(), self.unbiased);
            parts.covariances.extend(fitted.covariances.iter().map(|value| factor * value));
            means.extend(fitted.means);
        }
        if class_of.contains(&None) {
            let values = dense_rows(data.features())?;
            let all = Rows { values: &values, classes: &class_of, features: columns };
            let fixed = self.priors != Priors::Frequencies;
            let fitted = improve(self, &all, &mut parts, &mut means, fixed, context)?;
            effort.status = effort.status.max(fitted.status);
            effort.change = fitted.change.abs();
            effort.iterations += fitted.iterations;
        }
        effort.objective = -parts.log_likelihood;
        parts.means = table(means, columns)?;
        let support = parts.components.clone();
        let classes = ClassTable { names, scheme: Scheme::OneVsRest, support };
        let mut model = rows::model(Classic::MixtureBayes, data, parts, effort);
        model.classes = Some(classes);
        Ok(model)
    }
}

impl MixtureBayes {
    /// The classes of the rows that have one, by the places of those rows in the data, and the
    /// class of every row.
    fn known(&self, data: &Dataset) -> Result<(LabelledRows, Vec<Option<usize>>)> {
        let Some(mark) = &self.unlabelled else {
            let classes = check_labelled(data)?;
            let class_of = classes.codes.iter().map(|&code| Some(code as usize)).collect();
            return Ok((
                LabelledRows { members: classes.rows_by_class(), names: classes.names },
                class_of,
            ));
        };
        rows::check(data)?;
        let Classes { mut names, codes } = data.labels().classes(ClassOrder::Sorted)?;
        let place = names.iter().position(|name| name.to_string() == mark.to_string());
        if let Some(place) = place {
            names.remove(place);
        }
        if let [only] = names.as_slice() {
            return Err(Error::OneClass { label: only.to_string() });
        }
        let class = |&code: &u32| {
            let code = code as usize;
            match place {
                Some(place) if code == place => None,
                Some(place) if code > place => Some(code - 1),
                _ => Some(code),
            }
        };
        let class_of: Vec<Option<usize>> = codes.iter().map(class).collect();
        let mut members = vec![Vec::new(); names.len()];
        for (row, class) in class_of.iter().enumerate() {
            if let Some(class) = class {
                members[*class].push(row);
            }
        }
        Ok((LabelledRows { names, members }, class_of))
    }
}

/// Classes and their rows.
struct LabelledRows {
    names: Vec<Label>,
    members: Vec<Vec<usize>>,
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
