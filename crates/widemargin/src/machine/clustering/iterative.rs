//! Clusters of many rows: features in the place of the kernel matrix, regression on labels in turn with the labels
//! that it fits best, then machines with hinge losses in turn with theirs (Zhang, Tsang and Kwok 2007).
//!
//! No step raises the objective; what is reached is a local minimum without a bound.

use std::ops::RangeInclusive;
use std::time::Instant;

use super::many::allowed_sizes;
use super::{MarginClusters, MaxMarginClustering, first_seen};
use crate::context::{Context, Event};
use crate::data::{Dataset, Labels, Matrix};
use crate::error::{Error, Result};
use crate::kernel::{FeatureMap, Kernel, MapRule};
use crate::machine::linear::{LinearLoss, LinearSvc};
use crate::machine::model::{
    DecisionFunction, KernelExpansion, MachineKind, Model, Part, Training,
};
use crate::machine::parameters::Precision;
use crate::machine::{KMeans, Machine};
use crate::numeric::random::Generator;
use crate::outcome::{Outcome, Status};
use crate::solver::label_regression::{LabelRegression, Regressed, assign};

/// Most features that approximate a kernel.
const FEATURES: usize = 256;

/// Most features of rows for which the regression is solved: the square of this is factored.
const MOST_FEATURES: usize = 2048;

/// Principal directions that are tried as starts of two clusters.
const PRINCIPAL_STARTS: usize = 3;

/// Labels with the least regression objectives that go on with hinge losses; others seldom end below these.
const CONTINUED: usize = 3;

/// Rounds of machines with hinge losses.
const HINGE_ROUNDS: usize = 10;

/// Most passes over the rows of a machine that is trained after a stop was asked for.
const LAST_PASSES: u64 = 5;

/// Products of features and weights that these passes may compute, a moment; there is one pass at least.
const LAST_PRODUCTS: usize = 1 << 24;

/// Relative decrease of the objective below which these end.
const LEAST_DECREASE: f64 = 1e-3;

/// Labels, the machine that they have and its objective.
struct Trained {
    labels: Vec<usize>,
    model: Model,
    objective: f64,
}

impl MaxMarginClustering {
    /// Whether there are features for its kernel.
    pub(super) fn has_features(&self) -> bool {
        !self.centre && matches!(self.kernel, Kernel::Linear | Kernel::Gaussian { .. })
    }

    /// Clusters by features.
    pub(super) fn iterate(
        &self,
        data: &Dataset,
        imbalance: f64,
        started: Instant,
        context: &Context,
    ) -> Result<Model> {
        // Observers see the descent over labels alone.
        let quiet = &context.clone().with_observer(|_: &Event| {});
        let (map, rows) = self.features(data, context)?;
        self.check_rows(&rows)?;
        let sizes = allowed_sizes(data.rows(), self.clusters, imbalance);
        let regression = match rows.columns() <= MOST_FEATURES {
            true => {
                match LabelRegression::new(&rows, self.clusters, sizes.clone(), self.beta, context)
                {
                    // The starts are the best labels so far.
                    Err(Error::Interrupted) => None,
                    regression => Some(regression?),
                }
            }
            false => None,
        };
        let starts = self.starts(&rows, &sizes, regression.as_ref(), quiet)?;
        let starts = match &regression {
            Some(regression) => least_regressed(regression, starts, self.clusters, context),
            None => starts,
        };
        drop(regression);
        let mapped = Dataset::new(rows, Labels::None)?;
        let mut best: Option<Trained> = None;
        for labels in starts.into_iter().take(CONTINUED) {
            if best.is_some() && context.stop_request().is_some() {
                break;
            }
            let found = self.descend_hinge(&mapped, labels, &sizes, context)?;
            if best.as_ref().is_none_or(|best| found.objective < best.objective) {
                best = Some(found);
            }
        }
        let best = best.ok_or(Error::Interrupted)?;
        let status = context.stop_request().unwrap_or(Status::Solved);
        self.linear_model(data, map, best, imbalance, status, started)
    }

    /// Machines with hinge losses in turn with the labels that cost them least.
    fn descend_hinge(
        &self,
        mapped: &Dataset,
        labels: Vec<usize>,
        sizes: &RangeInclusive<usize>,
        context: &Context,
    ) -> Result<Trained> {
        let quiet = &context.clone().with_observer(|_: &Event| {});
        let mut best = self.hinge(mapped, labels, quiet)?;
        for round in 1..=HINGE_ROUNDS {
            context.report(&Event::Iteration {
                iteration: round,
                violation: f64::INFINITY,
                objective: best.objective,
                active: mapped.rows(),
            });
            if context.stop_request().is_some() {
                break;
            }
            let labels = assign(&self.gains(&best, mapped, context)?, self.clusters, sizes);
            if labels == best.labels {
                break;
            }
            let next = self.hinge(mapped, labels, quiet)?;
            let enough = next.objective >= best.objective * (1.0 - LEAST_DECREASE);
            if next.objective < best.objective {
                best = next;
            }
            if enough {
                break;
            }
        }
        Ok(best)
    }

    /// The rows must differ.
    fn check_rows(&self, rows: &Matrix) -> Result<()> {
        let (mut first, mut row) = (vec![0.0; rows.columns()], vec![0.0; rows.columns()]);
        rows.copy_row(0, &mut first);
        for i in 1..rows.rows() {
            rows.copy_row(i, &mut row);
            if row != first {
                return Ok(());
            }
        }
        let found = "the same row everywhere";
        Err(Error::kernel(self.kernel.name(), "values that tell rows apart", found))
    }

    fn features(&self, data: &Dataset, context: &Context) -> Result<(Option<FeatureMap>, Matrix)> {
        match self.kernel {
            Kernel::Gaussian { gamma } => {
                let rule = MapRule::Nystroem(FEATURES.min(data.rows()));
                let map = rule.fit(data.features(), gamma, context)?;
                let rows = map.transform(data.features(), context)?;
                Ok((Some(map), rows))
            }
            _ => Ok((None, data.features().clone())),
        }
    }

    /// k-means, the principal directions of two clusters, and random projections.
    fn starts(
        &self,
        rows: &Matrix,
        sizes: &RangeInclusive<usize>,
        regression: Option<&LabelRegression<'_>>,
        context: &Context,
    ) -> Result<Vec<Vec<usize>>> {
        let table = Dataset::new(rows.clone(), Labels::None)?;
        let k_means = KMeans { clusters: self.clusters, starts: 3, ..KMeans::default() };
        let mut starts = Vec::new();
        let found = k_means
            .fit(&table, context)
            .and_then(|model| model.predictor(context)?.decision_values(table.features()));
        match found {
            // Random projections take one pass.
            Err(Error::Interrupted) => {}
            distances => starts.push(assign(distances?.values(), self.clusters, sizes)),
        }
        if self.clusters == 2
            && let Some(regression) = regression
        {
            let scores = regression.principal_scores(PRINCIPAL_STARTS).unwrap_or_default();
            for scores in scores {
                let gains: Vec<f64> = scores.iter().flat_map(|score| [*score, -score]).collect();
                starts.push(assign(&gains, self.clusters, sizes));
            }
        }
        let mut generator = Generator::new(context.seed() ^ 0x0073_7461_7274);
        // There is at least one start.
        let random = if starts.is_empty() { self.starts.max(1) } else { self.starts };
        for _ in 0..random {
            // One start is enough where there is no time to compare them.
            if !starts.is_empty() && context.stop_request().is_some() {
                break;
            }
            let directions: Vec<Vec<f64>> = (0..self.clusters)
                .map(|_| (0..rows.columns()).map(|_| generator.normal()).collect())
                .collect();
            let mut gains = Vec::with_capacity(rows.rows() * self.clusters);
            for i in 0..rows.rows() {
                for direction in &directions {
                    let mut sum = 0.0;
                    rows.for_each_nonzero(i, |j, value| sum += value * direction[j]);
                    gains.push(sum);
                }
            }
            starts.push(assign(&gains, self.clusters, sizes));
        }
        Ok(starts)
    }

    /// The linear machine of labels.
    fn hinge(&self, rows: &Dataset, labels: Vec<usize>, context: &Context) -> Result<Trained> {
        let codes = labels.iter().map(|&r| r as i64).collect();
        let data = rows.clone().with_labels(Labels::Int(codes))?;
        let mut machine =
            LinearSvc { c: 1.0 / self.beta, loss: LinearLoss::Hinge, ..LinearSvc::default() };
        let model = match context.stop_request() {
            None => machine.fit(&data, context)?,
            Some(_) => {
                let products = rows.rows() * rows.columns() * self.clusters;
                let passes = (LAST_PRODUCTS / products.max(1)) as u64;
                machine.options.max_iterations = Some(passes.clamp(1, LAST_PASSES));
                machine.fit(&data, &context.after_stop())?
            }
        };
        let outcome = model.training.as_ref().map(|training| training.outcome);
        let objective = outcome.map_or(f64::INFINITY, |outcome| self.beta * outcome.primal);
        Ok(Trained { labels, model, objective })
    }

    /// Minus the hinge losses of every row in every cluster; of several clusters those of one against the rest.
    fn gains(&self, trained: &Trained, rows: &Dataset, context: &Context) -> Result<Vec<f64>> {
        let finishing = context.after_stop();
        let values = trained.model.predictor(&finishing)?.decision_values(rows.features())?;
        let clusters = self.clusters;
        let place = places(&trained.model, clusters);
        let mut gains = vec![0.0; rows.rows() * clusters];
        let hinge = |z: f64| (1.0 - z).max(0.0);
        for (gains, f) in
            gains.chunks_exact_mut(clusters).zip(values.values().chunks_exact(values.columns()))
        {
            if let [f] = *f {
                (gains[place[0]], gains[place[1]]) = (-hinge(f), -hinge(-f));
            } else {
                f.iter().zip(&place).for_each(|(f, &r)| gains[r] = hinge(-f) - hinge(*f));
            }
        }
        Ok(gains)
    }

    fn linear_model(
        &self,
        data: &Dataset,
        map: Option<FeatureMap>,
        best: Trained,
        imbalance: f64,
        status: Status,
        started: Instant,
    ) -> Result<Model> {
        let n = data.rows();
        let Trained { labels, model, objective } = best;
        let linear = model.linear().ok_or(Error::Interrupted)?;
        let place = places(&model, self.clusters);
        let numbers = first_seen(&labels, self.clusters);
        let named: Vec<usize> = labels.iter().map(|&label| numbers[label]).collect();
        let function = |support: usize, sign: f64| DecisionFunction {
            parts: vec![Part { support: support..support + 1, coefficients: vec![sign] }],
            offset: sign * linear.offsets[support],
        };
        let functions = (0..self.clusters).map(|number| {
            let at = place.iter().position(|&label| numbers[label] == number).unwrap_or(0);
            match self.clusters {
                2 => function(0, if at == 0 { 1.0 } else { -1.0 }),
                _ => function(at, 1.0),
            }
        });
        let count = linear.offsets.len();
        let values: Vec<f64> = (0..count).flat_map(|f| linear.function_weights(f)).collect();
        let support = crate::data::Dense::new(count, linear.weights.columns(), values)?;
        let expansion = KernelExpansion {
            kernel: Kernel::Linear,
            precision: Precision::F64,
            functions: functions.collect(),
            support: Matrix::DenseF64(support),
            support_rows: Vec::new(),
        };
        let outcome = model.training.as_ref().map(|training| training.outcome);
        let solved = outcome.unwrap_or(Outcome {
            status,
            primal: objective,
            dual: 0.0,
            violation: 0.0,
            iterations: 0,
            blocks: 0,
            kernel_rows: 0,
        });
        let outcome =
            Outcome { status: status.max(solved.status), primal: objective, dual: 0.0, ..solved };
        let body = MarginClusters {
            expansion,
            labels: named,
            objective,
            relaxation: None,
            bound: 0.0,
            imbalance,
            memberships: Vec::new(),
        };
        let mut parameters = vec![("beta", self.beta.into())];
        if let Some(map) = &map {
            parameters.push(("features", map.outputs().into()));
        }
        let mut clusters = Model {
            feature_names: data.feature_names().map(<[String]>::to_vec),
            training: Some(Training::new(outcome, n, started, parameters)),
            ..Model::new(MachineKind::MaxMarginClustering, body)
        };
        clusters.preparation.map = map;
        Ok(clusters)
    }
}

/// What descents from some labels reach, those with the least objectives first and each once.
fn least_regressed(
    regression: &LabelRegression<'_>,
    starts: Vec<Vec<usize>>,
    clusters: usize,
    context: &Context,
) -> Vec<Vec<usize>> {
    let mut found: Vec<Regressed> = Vec::new();
    for labels in starts {
        if !found.is_empty() && context.stop_request().is_some() {
            break;
        }
        found.push(regression.descend(labels));
    }
    found.sort_by(|a, b| a.objective.total_cmp(&b.objective));
    let numbered = |found: Regressed| -> Vec<usize> {
        let numbers = first_seen(&found.labels, clusters);
        found.labels.iter().map(|&label| numbers[label]).collect()
    };
    let mut labels: Vec<Vec<usize>> = found.into_iter().map(numbered).collect();
    labels.dedup();
    labels
}

/// The cluster of every class of a model, in the order of its functions.
fn places(model: &Model, clusters: usize) -> Vec<usize> {
    let names = model.classes.as_ref().map_or(&[][..], |table| &table.names);
    let numbers = names.iter().map(|name| match name {
        crate::data::Label::Int(number) => *number as usize,
        _ => 0,
    });
    let places: Vec<usize> = numbers.collect();
    if places.len() == clusters { places } else { (0..clusters).collect() }
}
