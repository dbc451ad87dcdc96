//! The mixture as a machine: p(x) = Σ_k w_k N(x; μ_k, Σ_k), without labels (JHU 685.621, 1.2).

use std::time::Instant;

use super::super::rows::{self, TrainingSummary, check, check_number, dense_rows, named, table};
use super::super::{Classic, Mixtures};
use super::covariance::Covariance;
use super::em::{self, Fitted};
use crate::context::Context;
use crate::data::{Dataset, memory};
use crate::error::{Error, Result};
use crate::machine::names::{defaults, names};
use crate::machine::specification::Value;
use crate::machine::{Calibration, Model};

/// Where EM starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Initialisation {
    /// The clusters of k-means, itself started by k-means++.
    #[default]
    KMeans,
    /// The seeds of k-means++ and the rows nearest to each.
    KMeansPlusPlus,
    /// Random responsibilities.
    Random,
}

/// How the number of components is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MixtureCriterion {
    /// −2 ℓ + q ln n (Schwarz, 1978).
    Bic,
    /// −2 ℓ + 2 q (Akaike, 1974).
    Aic,
}

/// When EM ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MixtureStop {
    /// When the mean log-likelihood changes by less than the tolerance.
    #[default]
    Likelihood,
    /// When no weight, mean or covariance changes by more, in Euclid's norm: the notes' rule.
    Parameters,
}

names!(MixtureStop, "stop", Likelihood: "likelihood", Parameters: "parameters");
names!(Initialisation, "init", KMeans: "kmeans", KMeansPlusPlus: "k-means++", Random: "random");
names!(MixtureCriterion, "criterion", Bic: "bic", Aic: "aic");

/// Parameters to start from, in the place of what the initialisation gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MixtureStart {
    /// Weight of every component.
    pub weights: Option<Vec<f64>>,
    /// Means, one after the other.
    pub means: Option<Vec<f64>>,
    /// Inverse covariances, in the shape of [`Covariance::values`].
    pub precisions: Option<Vec<f64>>,
}

/// A mixture of Gaussians.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::machine::{GaussianMixture, Machine};
/// use widemargin::Context;
///
/// let rows = Matrix::DenseF64(Dense::new(6, 1, vec![0.0, 0.1, 0.2, 9.0, 9.1, 9.2])?);
/// let data = Dataset::new(rows, Labels::None)?;
/// let context = Context::new();
/// let model = GaussianMixture { components: 2, ..GaussianMixture::default() }.fit(&data, &context)?;
/// let Labels::Int(cluster) = model.predictor(&context)?.predict(data.features())? else { panic!() };
/// assert!(cluster[0] == cluster[2] && cluster[2] != cluster[3] && cluster[3] == cluster[5]);
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianMixture {
    /// Number of components; with a criterion, the largest number tried.
    pub components: usize,
    /// Chooses the number of components, from 1 on.
    pub criterion: Option<MixtureCriterion>,
    /// The shape of the covariances.
    pub covariance: Covariance,
    /// Shapes among which the criterion chooses in the place of `covariance`; empty: that one alone.
    pub shapes: Vec<Covariance>,
    /// What is added to every variance, so that no component can collapse on a point.
    pub floor: f64,
    /// τ of Σ ← (1 − τ)Σ + τ tr Σ/d I after every step, from 0 to 1; for components of few rows.
    pub shrinkage: f64,
    /// What must change by less than `tol`.
    pub stop: MixtureStop,
    /// EM ends when the mean log-likelihood, or every parameter, changes by less.
    pub tol: f64,
    /// Most iterations from one start.
    pub max_iterations: usize,
    /// Starts, of which the best is kept.
    pub starts: usize,
    /// Where they are.
    pub initialisation: Initialisation,
    /// What is given of the start.
    pub start: MixtureStart,
}

defaults!(GaussianMixture {
    components: 1,
    criterion: None,
    covariance: Covariance::Full,
    shapes: Vec::new(),
    floor: 1e-6,
    shrinkage: 0.0,
    stop: MixtureStop::Likelihood,
    tol: 1e-6,
    max_iterations: 200,
    starts: 1,
    initialisation: Initialisation::KMeans,
    start: MixtureStart::default(),
});

impl GaussianMixture {
    pub(super) fn validate(&self) -> Result<()> {
        if self.components == 0 {
            return Err(Error::parameter("components", "at least 1", 0));
        }
        if self.max_iterations == 0 {
            return Err(Error::parameter("max_iter", "at least 1", 0));
        }
        if !(0.0..=1.0).contains(&self.shrinkage) {
            return Err(Error::parameter("shrinkage", "a share from 0 to 1", self.shrinkage));
        }
        if !self.shapes.is_empty() && self.criterion.is_none() {
            return Err(Error::parameter("criterion", "bic or aic to choose a shape", "none"));
        }
        check_number("floor", self.floor, 0.0)?;
        check_number("tol", self.tol, 0.0)
    }

    /// The mixture of rows, its number of components chosen where that is asked for.
    pub(super) fn mixture(
        &self,
        values: &[f64],
        features: usize,
        context: &Context,
    ) -> Result<Fitted> {
        let count = values.len() / features;
        let is_square = |covariance: &Covariance| !covariance.is_diagonal();
        if is_square(&self.covariance) || self.shapes.iter().any(is_square) {
            rows::check_square("a covariance", features)?;
        }
        // Means and covariances of this round, the best one so far and their sums.
        let numbers = self.components as u128 * features as u128
            + self.covariance.values(self.components, features) as u128;
        memory::check(|| format!("a mixture of {features} features"), 3 * 8 * numbers)?;
        let Some(criterion) = self.criterion else {
            return em::fit(self, values, features, self.components, context);
        };
        let own = [self.covariance];
        let shapes = if self.shapes.is_empty() { &own[..] } else { &self.shapes };
        let mut best: Option<(f64, Fitted)> = None;
        for &covariance in shapes {
            let machine = Self { covariance, ..self.clone() };
            for components in 1..=self.components.min(count) {
                let fitted = em::fit(&machine, values, features, components, context)?;
                let akaike = criterion == MixtureCriterion::Aic;
                let value = fitted.criterion(count, features, akaike);
                if best.as_ref().is_none_or(|(least, _)| value < *least) {
                    best = Some((value, fitted));
                }
            }
        }
        best.map(|(_, fitted)| fitted).ok_or(Error::Interrupted)
    }

    pub(super) fn parameters(&self) -> Vec<(String, Value)> {
        named(&[
            ("components", self.components.into()),
            ("covariance", self.covariance.to_string().into()),
            ("floor", self.floor.into()),
            ("tol", self.tol.into()),
            ("init", self.initialisation.to_string().into()),
            ("starts", self.starts.into()),
        ])
    }
}

rows::trained_on_selected!(GaussianMixture);

impl GaussianMixture {
    fn train(&self, data: &Dataset, context: &Context) -> Result<Model> {
        let started = Instant::now();
        self.validate()?;
        check(data)?;
        if self.components > data.rows() {
            let expected = format!("at most the {} rows", data.rows());
            return Err(Error::parameter("components", expected, self.components));
        }
        let columns = data.columns();
        let fitted = self.mixture(&dense_rows(data.features())?, columns, context)?;
        let effort = TrainingSummary {
            started,
            status: fitted.status,
            objective: -fitted.log_likelihood,
            change: fitted.change.abs(),
            iterations: fitted.iterations,
            parameters: self.parameters(),
        };
        let body = Mixtures {
            means: table(fitted.means, columns)?,
            covariance: fitted.covariance,
            components: vec![fitted.weights.len()],
            weights: fitted.weights,
            covariances: fitted.covariances,
            log_priors: vec![0.0],
            loss: Vec::new(),
            log_likelihood: fitted.log_likelihood,
        };
        let mut model = rows::model(Classic::Mixture, data, body, effort);
        model.calibration = Some(Calibration::Softmax);
        Ok(model)
    }
}
