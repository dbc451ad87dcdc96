//! k-means: centres that minimise Σ ‖x − nearest centre‖².

use std::time::Instant;

use super::super::Classic;
use super::super::rows::{self, TrainingSummary, check, check_number, named, table};
use super::Centres;
use super::lloyd::{Assignment, Lloyd, Seeds};
use crate::context::Context;
use crate::data::{Dataset, Matrix, memory};
use crate::error::{Error, Result};
use crate::machine::Model;
use crate::machine::occurring::Occurring;
use crate::numeric::random::Generator;
use crate::solver::Status;

/// k-means clusters.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::machine::{KMeans, Machine};
/// use widemargin::Context;
///
/// let rows = Matrix::DenseF64(Dense::new(4, 1, vec![0.0, 1.0, 10.0, 11.0])?);
/// let data = Dataset::new(rows, Labels::None)?;
/// let context = Context::new();
/// let model = KMeans { clusters: 2, ..KMeans::default() }.fit(&data, &context)?;
/// let Labels::Int(found) = model.predictor(&context)?.predict(data.features())? else { panic!() };
/// assert!(found[0] == found[1] && found[1] != found[2] && found[2] == found[3]);
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct KMeans {
    /// Number of clusters.
    pub clusters: usize,
    /// Starts, of which the best is kept.
    pub starts: usize,
    /// Most rounds from one start.
    pub max_iterations: usize,
    /// Ends when the squared moves of the centres sum to less than this times the mean variance.
    pub tol: f64,
    /// Centres to start from, one after the other, in the place of k-means++.
    pub centres: Option<Vec<f64>>,
}

impl Default for KMeans {
    fn default() -> Self {
        Self { clusters: 8, starts: 1, max_iterations: 300, tol: 1e-4, centres: None }
    }
}

impl KMeans {
    /// The best centres and what they are near to.
    pub(super) fn cluster(
        &self,
        lloyd: &Lloyd<'_>,
        context: &Context,
    ) -> Result<(Vec<f64>, Assignment)> {
        let mut generator = Generator::new(context.seed());
        let starts = if self.centres.is_some() { 1 } else { self.starts.max(1) };
        let mut best: Option<(Vec<f64>, Assignment)> = None;
        for _ in 0..starts {
            let seeds = match &self.centres {
                Some(centres) => Seeds::given(lloyd, centres),
                None => Seeds::draw(lloyd, self.clusters, &mut generator),
            };
            if let (Err(Error::Interrupted), Some((_, found))) = (&seeds, &mut best) {
                found.status = context.stop_request().unwrap_or(Status::Interrupted);
                break;
            }
            let (centres, found) = lloyd.run(seeds?, self.max_iterations, self.tol)?;
            if best.as_ref().is_none_or(|(_, other)| found.inertia() < other.inertia()) {
                best = Some((centres, found));
            }
        }
        best.ok_or(Error::Interrupted)
    }
}

rows::trained_on_selected!(KMeans);

impl KMeans {
    fn train(&self, data: &Dataset, context: &Context) -> Result<Model> {
        let started = Instant::now();
        check(data)?;
        check_number("tol", self.tol, 0.0)?;
        if self.max_iterations == 0 {
            return Err(Error::parameter("max_iter", "at least 1", 0));
        }
        if self.clusters == 0 || self.clusters > data.rows() {
            let expected = format!("at least 1 and at most the {} rows", data.rows());
            return Err(Error::parameter("clusters", expected, self.clusters));
        }
        if let Some(centres) = &self.centres
            && centres.len() != self.clusters * data.columns()
        {
            let expected = self.clusters * data.columns();
            return Err(Error::length("values of starting centres", expected, centres.len()));
        }
        // Centres that are given may have any columns.
        let occurring = match &self.centres {
            None => Occurring::of(data.features())?,
            Some(_) => None,
        };
        let (centres, found) = match &occurring {
            None => self.centres(data.features(), context)?,
            Some(occurring) => {
                // The tolerance is a share of the mean variance of all columns.
                let machine = Self { tol: self.tol * occurring.share(), ..self.clone() };
                let narrow = occurring.gathered(data.features());
                let (centres, found) = machine.centres(&narrow, context)?;
                (occurring.spread(&centres), found)
            }
        };
        if found.status == Status::IterationLimit {
            rows::warn(context, format!("k-means did not converge in {} rounds", found.rounds));
        }
        let effort = TrainingSummary {
            started,
            status: found.status,
            objective: found.inertia(),
            change: 0.0,
            iterations: found.rounds,
            parameters: named(&[
                ("clusters", self.clusters.into()),
                ("starts", self.starts.into()),
            ]),
        };
        let body = Centres { centres };
        Ok(rows::model(Classic::KMeans, data, body, effort))
    }

    /// The centres of checked rows.
    fn centres(&self, features: &Matrix, context: &Context) -> Result<(Matrix, Assignment)> {
        let columns = features.columns();
        // Centres of three rounds and the packed ones.
        let bytes = 4 * 8 * self.clusters as u128 * columns as u128;
        memory::check(|| format!("{} centres of {columns} features", self.clusters), bytes)?;
        let (centres, found) = self.cluster(&Lloyd::new(features, context)?, context)?;
        Ok((table(centres, columns)?, found))
    }
}
