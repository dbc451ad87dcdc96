//! The mixture of known variances as a machine: the largest likelihood that any weights and means have, with a
//! proven bound.

use std::time::Instant;

use super::super::rows::{self, TrainingSummary, check, check_number, dense_rows, named, table};
use super::super::{Classic, Mixtures};
use super::covariance::Covariance;
use crate::context::Context;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::machine::names::defaults;
use crate::machine::{Calibration, Model};
use crate::solver::mixture::{Certified, Limits, Problem, certify};

/// Most means that are searched for, counted with their features: the work for a box doubles with each.
const MOST_MEANS: usize = 12;

/// A mixture of round Gaussians of known variances with the largest likelihood that any weights and means have
/// (Lu, 2005, chapter 6, by branch and bound).
///
/// The training record has minus the log-likelihood as the primal and minus its proven bound as the dual objective,
/// so that the gap says how far from the best mixture this one can be. The work grows exponentially with the number
/// of means and hardly with the rows: it is meant for few components and features.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::machine::{CertifiedMixture, Machine};
/// use widemargin::Context;
///
/// let rows = Matrix::DenseF64(Dense::new(6, 1, vec![0.0, 0.1, 0.2, 0.7, 0.8, 0.9])?);
/// let data = Dataset::new(rows, Labels::None)?;
/// let machine = CertifiedMixture { components: 2, variances: vec![0.01], ..CertifiedMixture::default() };
/// let model = machine.fit(&data, &Context::new())?;
/// assert!(model.training.unwrap().outcome.gap() <= machine.gap);
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CertifiedMixture {
    /// Number of components.
    pub components: usize,
    /// The variance of every component along every axis, or one for all of them.
    pub variances: Vec<f64>,
    /// The search ends when bound and log-likelihood differ by no more.
    pub gap: f64,
    /// Most boxes of means whose bound is computed.
    pub max_iterations: usize,
    /// Starts of EM for the first mixture.
    pub starts: usize,
}

defaults!(CertifiedMixture {
    components: 1,
    variances: vec![1.0],
    gap: 1e-3,
    max_iterations: 1_000_000,
    starts: 10,
});

rows::trained_on_selected!(CertifiedMixture);

impl CertifiedMixture {
    /// The variance of every component.
    fn component_variances(&self) -> Result<Vec<f64>> {
        if self.components == 0 {
            return Err(Error::parameter("components", "at least 1", 0));
        }
        let variances = match self.variances.as_slice() {
            [one] => vec![*one; self.components],
            several => several.to_vec(),
        };
        if variances.len() != self.components {
            return Err(Error::length("variances", self.components, variances.len()));
        }
        match variances.iter().find(|s| !(s.is_finite() && **s >= f64::MIN_POSITIVE)) {
            Some(s) => Err(Error::parameter("variances", "finite numbers above 0", s)),
            None => Ok(variances),
        }
    }

    fn train(&self, data: &Dataset, context: &Context) -> Result<Model> {
        let started = Instant::now();
        let columns = data.columns();
        let most = (MOST_MEANS / columns.max(1)).max(1);
        if columns == 0 {
            return Err(Error::Empty { what: "feature" });
        }
        if self.components > most {
            let expected = format!(
                "at most {most}, because the work grows as 2 to the power of components times \
                 features (here {columns})"
            );
            return Err(Error::parameter("components", expected, self.components));
        }
        let variances = self.component_variances()?;
        check_number("gap", self.gap, 0.0)?;
        check(data)?;
        if data.rows() == 0 {
            return Err(Error::Empty { what: "row" });
        }
        let problem = Problem::new(&dense_rows(data.features())?, columns, variances.clone());
        let limits = Limits { gap: self.gap, regions: self.max_iterations, starts: self.starts };
        let Certified { mixture, bound, regions, status } = certify(&problem, &limits, context);
        if !(mixture.log_likelihood.is_finite() && bound.is_finite()) {
            let expected = "variances with which the likelihood of the rows is a finite number";
            return Err(Error::parameter("variances", expected, mixture.log_likelihood));
        }
        if !status.is_solved() {
            let gap = bound - mixture.log_likelihood;
            rows::warn(
                context,
                format!(
                    "the search did not end ({status}): the log-likelihood is within {gap:.2e} of \
                     the best"
                ),
            );
        }
        let effort = TrainingSummary {
            started,
            status,
            objective: -mixture.log_likelihood,
            change: bound - mixture.log_likelihood,
            iterations: regions,
            parameters: named(&[
                ("components", self.components.into()),
                ("variances", self.variances.clone().into()),
                ("gap", self.gap.into()),
                ("max-iter", self.max_iterations.into()),
                ("starts", self.starts.into()),
            ]),
        };
        let body = Mixtures {
            means: table(mixture.means, columns)?,
            covariance: Covariance::Spherical,
            components: vec![mixture.weights.len()],
            // Their logarithms have to be numbers.
            weights: mixture.weights.iter().map(|w| w.max(f64::MIN_POSITIVE)).collect(),
            covariances: variances,
            log_priors: vec![0.0],
            loss: Vec::new(),
            log_likelihood: mixture.log_likelihood / data.rows() as f64,
        };
        let mut model = rows::model(Classic::CertifiedMixture, data, body, effort);
        model.calibration = Some(Calibration::Softmax);
        if let Some(training) = &mut model.training {
            training.outcome.dual = -bound;
        }
        Ok(model)
    }
}
