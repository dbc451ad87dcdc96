//! Expectation and maximisation for one mixture (Dempster, Laird and Rubin, 1977).

use super::super::clusters::{Lloyd, Seeds};
use super::super::rows::{means, warn};
use super::covariance::Covariance;
use super::fit::{GaussianMixture, Initialisation, MixtureStop};
use super::pass::{Blocks, Component, Second, Source, Sums, pass};
use super::step::{Parameters, component_list, maximise};
use crate::context::{Context, Event};
use crate::error::{Error, Result};
use crate::numeric::algebra::{Cholesky, times_transposed, transposed};
use crate::numeric::random::Generator;
use crate::solver::Status;

/// Rows' worth of weight below which a component is empty.
const EMPTY: f64 = 1e-8;

/// A fitted mixture.
#[derive(Clone)]
pub(super) struct Fitted {
    /// The shape of the covariances.
    pub(super) covariance: Covariance,
    pub(super) weights: Vec<f64>,
    pub(super) means: Vec<f64>,
    pub(super) covariances: Vec<f64>,
    /// Mean log-likelihood before the last step, as scikit-learn's lower bound.
    pub(super) log_likelihood: f64,
    pub(super) change: f64,
    pub(super) iterations: usize,
    pub(super) status: Status,
}

impl Fitted {
    /// Bayes's information criterion, or Akaike's.
    pub(super) fn criterion(&self, rows: usize, features: usize, akaike: bool) -> f64 {
        let components = self.weights.len();
        let parameters = components - 1
            + components * features
            + self.covariance.parameters(components, features);
        let penalty = if akaike { 2.0 } else { (rows as f64).ln() };
        -2.0 * self.log_likelihood * rows as f64 + parameters as f64 * penalty
    }
}

/// Fits `components` components to rows, from the best of several starts.
pub(super) fn fit(
    machine: &GaussianMixture,
    rows: &[f64],
    features: usize,
    components: usize,
    context: &Context,
) -> Result<Fitted> {
    let origin = means(rows.chunks_exact(features), features);
    let blocks = Blocks::checked(rows, features, &origin)?;
    let total = match machine.covariance {
        Covariance::Tied => Some(blocks.scatter(false, context)?),
        Covariance::EqualSpherical => Some(blocks.scatter(true, context)?),
        _ => None,
    };
    let problem = Problem { machine, blocks: &blocks, origin: &origin, total, components, context };
    let mut generator = Generator::new(context.seed());
    let mut best: Option<Fitted> = None;
    for _ in 0..machine.starts.max(1) {
        let start = problem.start(&mut generator);
        let fitted = match start.and_then(|start| problem.run_em(start, &mut generator)) {
            // A start that was stopped early is not better than a whole one.
            Err(Error::Interrupted) if best.is_some() => break,
            fitted => fitted?,
        };
        let better = |other: &Fitted| fitted.log_likelihood > other.log_likelihood;
        if best.as_ref().is_none_or(better) {
            best = Some(fitted);
        }
        if context.stop_request().is_some() {
            break;
        }
    }
    let mut best = best.ok_or(Error::Interrupted)?;
    for mean in best.means.chunks_exact_mut(features) {
        mean.iter_mut().zip(&origin).for_each(|(value, origin)| *value += origin);
    }
    if best.status == Status::IterationLimit {
        warn(
            context,
            format!(
                "EM did not converge in {} iterations: the mean log-likelihood still rose by {:.1e}",
                best.iterations, best.change
            ),
        );
    }
    Ok(best)
}

struct Problem<'a> {
    machine: &'a GaussianMixture,
    blocks: &'a Blocks,
    origin: &'a [f64],
    /// The scatter of all rows, where one covariance is shared.
    total: Option<Vec<f64>>,
    components: usize,
    context: &'a Context,
}

impl Problem<'_> {
    fn covariance(&self) -> Covariance {
        self.machine.covariance
    }

    fn second(&self) -> Second {
        if self.total.is_some() { Second::Nothing } else { self.covariance().second() }
    }

    fn start(&self, generator: &mut Generator) -> Result<Parameters> {
        let (features, count) = (self.blocks.features, self.components);
        let given = &self.machine.start;
        let whole = given.weights.is_some() && given.means.is_some() && given.precisions.is_some();
        let mut start = if whole {
            Parameters { weights: vec![], means: vec![], covariances: vec![] }
        } else {
            let shares = self.shares(generator)?;
            let none = Component {
                mean: vec![0.0; features],
                factor: super::covariance::Factor {
                    lower: Vec::new(),
                    scales: Vec::new(),
                    log_determinant: 0.0,
                },
                constant: 0.0,
            };
            let source = Source::Given(&shares);
            let sums = pass(self.blocks, &vec![none; count], source, self.second(), self.context)?;
            self.maximise(&vec![0.0; count * features], &sums)?
        };
        if let Some(weights) = &given.weights {
            check_length("starting weights", count, weights)?;
            start.weights.clone_from(weights);
        }
        if let Some(means) = &given.means {
            check_length("starting means", count * features, means)?;
            let moved = means.iter().enumerate().map(|(i, v)| v - self.origin[i % features]);
            start.means = moved.collect();
        }
        if let Some(precisions) = &given.precisions {
            let values = self.covariance().values(count, features);
            check_length("starting precisions", values, precisions)?;
            start.covariances = inverses(self.covariance(), precisions, features, self.context)?;
        }
        Ok(start)
    }

    /// Responsibilities to start from, row by row.
    fn shares(&self, generator: &mut Generator) -> Result<Vec<f64>> {
        let (rows, count) = (self.blocks.rows, self.components);
        let mut shares = vec![0.0; rows * count];
        match self.machine.initialisation {
            Initialisation::Random => {
                for row in shares.chunks_exact_mut(count) {
                    row.iter_mut().for_each(|share| *share = generator.unit() + f64::EPSILON);
                    let total: f64 = row.iter().sum();
                    row.iter_mut().for_each(|share| *share /= total);
                }
            }
            Initialisation::KMeans | Initialisation::KMeansPlusPlus => {
                let table = self.table()?;
                let lloyd = Lloyd::new(&table, self.context)?;
                let seeds = Seeds::draw(&lloyd, count, generator)?;
                let rounds =
                    if self.machine.initialisation == Initialisation::KMeans { 300 } else { 0 };
                let (_, found) = lloyd.run(seeds, rounds, 1e-4)?;
                for (row, &cluster) in shares.chunks_exact_mut(count).zip(&found.labels) {
                    row[cluster as usize] = 1.0;
                }
            }
        }
        Ok(shares)
    }

    fn table(&self) -> Result<crate::data::Matrix> {
        super::super::rows::table(self.blocks.rows_again(), self.blocks.features)
    }

    fn components(&self, parameters: &Parameters) -> Result<Vec<Component>> {
        let features = self.blocks.features;
        let factors = self.covariance().factors(
            &parameters.covariances,
            self.components,
            features,
            self.context,
        )?;
        Ok(component_list(&parameters.weights, &parameters.means, factors, features))
    }

    fn maximise(&self, means: &[f64], sums: &Sums) -> Result<Parameters> {
        maximise(self.machine, means, sums, self.total.as_deref(), self.context)
    }

    /// The sums of a pass and the parameters that maximise the likelihood that they expect.
    fn step(&self, parameters: &Parameters) -> Result<(Sums, Parameters)> {
        let components = self.components(parameters)?;
        let sums = pass(self.blocks, &components, Source::Densities, self.second(), self.context)?;
        if !sums.log_likelihood.is_finite() {
            return Err(Error::model("the likelihood of a mixture overflowed; scale the data"));
        }
        let next = self.maximise(&parameters.means, &sums)?;
        Ok((sums, next))
    }

    fn run_em(&self, start: Parameters, generator: &mut Generator) -> Result<Fitted> {
        let mut parameters = start;
        let rows = self.blocks.rows as f64;
        let mut bound = f64::NEG_INFINITY;
        let mut change = f64::INFINITY;
        let mut status = Status::IterationLimit;
        let mut iterations = 0;
        while iterations < self.machine.max_iterations {
            let (sums, mut next) = match self.step(&parameters) {
                Err(Error::Interrupted) if iterations > 0 => {
                    status = self.context.stop_request().unwrap_or(Status::Interrupted);
                    break;
                }
                step => step?,
            };
            let reached = sums.log_likelihood / rows;
            change = reached - bound;
            bound = reached;
            iterations += 1;
            let emptied = self.reseed(&mut next, &sums, generator);
            let moved = match self.machine.stop {
                MixtureStop::Likelihood => change.abs(),
                MixtureStop::Parameters => {
                    change = parameters.change(&next);
                    change
                }
            };
            parameters = next;
            self.context.report(&Event::Iteration {
                iteration: iterations,
                violation: change,
                objective: bound,
                active: self.components,
            });
            if moved < self.machine.tol && !emptied {
                status = Status::Solved;
                break;
            }
            if let Some(stopped) = self.context.stop_request() {
                status = stopped;
                break;
            }
        }
        Ok(Fitted {
            covariance: self.covariance(),
            weights: parameters.weights,
            means: parameters.means,
            covariances: parameters.covariances,
            log_likelihood: bound,
            change,
            iterations,
            status,
        })
    }

    /// Puts empty components on random rows, with the spread of all; returns whether there were any.
    fn reseed(&self, next: &mut Parameters, sums: &Sums, generator: &mut Generator) -> bool {
        let features = self.blocks.features;
        let empty: Vec<usize> = (0..self.components).filter(|&k| sums.weights[k] < EMPTY).collect();
        for &k in &empty {
            warn(self.context, format!("component {} was empty and starts again elsewhere", k + 1));
            let row = generator.below(self.blocks.rows);
            for j in 0..features {
                next.means[k * features + j] = self.blocks.value(row, j);
            }
            next.weights[k] = 1.0 / self.blocks.rows as f64;
            self.widen(next, k);
        }
        let total: f64 = next.weights.iter().sum();
        if !empty.is_empty() {
            next.weights.iter_mut().for_each(|weight| *weight /= total);
        }
        !empty.is_empty()
    }

    /// Gives component k the variances of all rows, where covariances are its own.
    fn widen(&self, next: &mut Parameters, k: usize) {
        let features = self.blocks.features;
        let rows = self.blocks.rows as f64;
        let variance = |j: usize| {
            let squares = (0..self.blocks.rows).map(|i| self.blocks.value(i, j).powi(2));
            squares.sum::<f64>() / rows + self.machine.floor
        };
        let variances: Vec<f64> = (0..features).map(variance).collect();
        match self.covariance() {
            Covariance::Full | Covariance::EqualShape | Covariance::VariableVolume => {
                let square = features * features;
                let own = &mut next.covariances[k * square..(k + 1) * square];
                own.fill(0.0);
                (0..features).for_each(|j| own[j * features + j] = variances[j]);
            }
            Covariance::Diagonal => {
                next.covariances[k * features..(k + 1) * features].copy_from_slice(&variances);
            }
            Covariance::Spherical => {
                next.covariances[k] = variances.iter().sum::<f64>() / features as f64;
            }
            Covariance::Tied | Covariance::EqualSpherical => {}
        }
    }
}

fn check_length(what: &'static str, expected: usize, found: &[f64]) -> Result<()> {
    if found.len() != expected {
        return Err(Error::length(what, expected, found.len()));
    }
    match found.iter().find(|value| !value.is_finite()) {
        Some(value) => Err(Error::parameter("start", "finite numbers", value)),
        None => Ok(()),
    }
}

/// Covariances from precisions of the same shape.
fn inverses(
    covariance: Covariance,
    precisions: &[f64],
    features: usize,
    context: &Context,
) -> Result<Vec<f64>> {
    if covariance.is_diagonal() {
        return Ok(precisions.iter().map(|p| 1.0 / p).collect());
    }
    let mut all = Vec::with_capacity(precisions.len());
    for matrix in precisions.chunks_exact(features * features) {
        let factor =
            Cholesky::interruptible(matrix.to_vec(), features, context)?.ok_or_else(|| {
                Error::parameter("start", "positive definite precisions", "a singular one")
            })?;
        // L⁻ᵀL⁻¹ are the products of the columns of L⁻¹.
        let columns = transposed(&factor.inverse_lower(context)?, features, features);
        all.extend(times_transposed(&columns, &columns, features, context)?);
    }
    Ok(all)
}
