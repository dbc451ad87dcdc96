//! Mixtures of classes of which some rows have no label (JHU 685.621, 1.2.1; Miller and Uyar, 1997).
//!
//! EM of Σ_labelled ln P_c p(x | c) + Σ_others ln Σ_c P_c p(x | c): rows with a label are shared
//! among the components of their class only, others among all.

use super::super::Mixtures;
use super::super::rows::{means as mean_row, warn};
use super::bayes::MixtureBayes;
use super::pass::{Blocks, Component, ROWS, Source, Sums, log_joints, pass};
use super::step::{Parameters, component_list, maximise};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::machine::probability::log_sum;
use crate::solver::Status;

/// How the ascent ended.
pub(super) struct Ascent {
    pub(super) status: Status,
    pub(super) iterations: usize,
    pub(super) change: f64,
}

/// Rows with and without labels.
pub(super) struct Rows<'a> {
    pub(super) values: &'a [f64],
    /// The class of each, where it has one.
    pub(super) classes: &'a [Option<usize>],
    pub(super) features: usize,
}

/// Improves mixtures that know the labelled rows only; `fixed` priors stay as they are.
pub(super) fn improve(
    machine: &MixtureBayes,
    rows: &Rows<'_>,
    parts: &mut Mixtures,
    means: &mut Vec<f64>,
    fixed: bool,
    context: &Context,
) -> Result<Ascent> {
    let features = rows.features;
    let origin = mean_row(rows.values.chunks_exact(features), features);
    let blocks = Blocks::checked(rows.values, features, &origin)?;
    let mut classes = parameters_by_class(parts, means, &origin, features);
    let count = rows.classes.len() as f64;
    let mut ascent =
        Ascent { status: Status::IterationLimit, iterations: 0, change: f64::INFINITY };
    let mut reached = f64::NEG_INFINITY;
    while ascent.iterations < machine.mixture.max_iterations {
        let step = match next(machine, parts, &classes, &blocks, rows, context) {
            // The parameters so far: those of the labelled rows at least.
            Err(Error::Interrupted) => {
                ascent.status = context.stop_request().unwrap_or(Status::Interrupted);
                break;
            }
            step => step?,
        };
        ascent.change = step.log_likelihood / count - reached;
        reached = step.log_likelihood / count;
        ascent.iterations += 1;
        if !reached.is_finite() {
            return Err(Error::model("the likelihood of a mixture overflowed; scale the data"));
        }
        if !fixed {
            parts.log_priors = step.weights.iter().map(|weight| (weight / count).ln()).collect();
        }
        classes = step.classes;
        if ascent.change.abs() < machine.mixture.tol {
            ascent.status = Status::Solved;
            break;
        }
        if let Some(stopped) = context.stop_request() {
            ascent.status = stopped;
            break;
        }
    }
    if ascent.status == Status::IterationLimit {
        warn(context, format!("EM did not converge in {} iterations", ascent.iterations));
    }
    if ascent.iterations > 0 {
        parts.log_likelihood = reached;
    }
    parts.weights = classes.iter().flat_map(|own| own.weights.clone()).collect();
    parts.covariances = classes.iter().flat_map(|own| own.covariances.clone()).collect();
    *means = classes.iter().flat_map(|own| own.means.clone()).collect();
    means.iter_mut().enumerate().for_each(|(at, value)| *value += origin[at % features]);
    Ok(ascent)
}

/// One step of EM.
struct Step {
    /// The log-likelihood before.
    log_likelihood: f64,
    /// The new parameters of every class.
    classes: Vec<Parameters>,
    /// The rows' weight in every class.
    weights: Vec<f64>,
}

/// The step from the parameters of `classes`.
fn next(
    machine: &MixtureBayes,
    parts: &Mixtures,
    classes: &[Parameters],
    blocks: &Blocks,
    rows: &Rows<'_>,
    context: &Context,
) -> Result<Step> {
    let components = components(parts, classes, rows.features, context)?;
    let (shares, log_likelihood) = share(blocks, &components, classes, rows, context)?;
    let second = parts.covariance.second();
    let sums = pass(blocks, &components, Source::Given(&shares), second, context)?;
    let mut step = Step { log_likelihood, classes: Vec::new(), weights: Vec::new() };
    let mut first = 0;
    for parameters in classes {
        let own = sums.part(first, parameters.weights.len());
        first += parameters.weights.len();
        step.weights.push(own.weights.iter().sum());
        step.classes.push(maximise(&machine.mixture, &parameters.means, &own, None, context)?);
    }
    Ok(step)
}

/// The parameters of every class, means from the origin.
fn parameters_by_class(
    parts: &Mixtures,
    means: &[f64],
    origin: &[f64],
    features: usize,
) -> Vec<Parameters> {
    let (mut first, mut value) = (0, 0);
    let each = parts.components.iter().map(|&count| {
        let values = parts.covariance.values(count, features);
        let own = means[first * features..(first + count) * features].iter();
        let parameters = Parameters {
            weights: parts.weights[first..first + count].to_vec(),
            means: own.enumerate().map(|(at, mean)| mean - origin[at % features]).collect(),
            covariances: parts.covariances[value..value + values].to_vec(),
        };
        first += count;
        value += values;
        parameters
    });
    each.collect()
}

/// The components of all classes, their weights times the priors.
fn components(
    parts: &Mixtures,
    classes: &[Parameters],
    features: usize,
    context: &Context,
) -> Result<Vec<Component>> {
    let mut all = Vec::new();
    for (own, log_prior) in classes.iter().zip(&parts.log_priors) {
        let count = own.weights.len();
        let factors = parts.covariance.factors(&own.covariances, count, features, context)?;
        let mut list = component_list(&own.weights, &own.means, factors, features);
        list.iter_mut().for_each(|component| component.constant += log_prior);
        all.extend(list);
    }
    Ok(all)
}

/// Responsibilities row by row, and the log-likelihood.
fn share(
    blocks: &Blocks,
    components: &[Component],
    classes: &[Parameters],
    rows: &Rows<'_>,
    context: &Context,
) -> Result<(Vec<f64>, f64)> {
    let count = components.len();
    let mut ends = vec![0];
    classes.iter().for_each(|own| ends.push(ends[ends.len() - 1] + own.weights.len()));
    let mut shares = vec![0.0; rows.classes.len() * count];
    let mut log_likelihood = 0.0;
    for (block, out) in shares.chunks_mut(ROWS * count).enumerate() {
        let joints = log_joints(blocks, block, components, context)?;
        for (r, out) in out.chunks_exact_mut(count).enumerate() {
            let among = match rows.classes[block * ROWS + r] {
                Some(class) => ends[class]..ends[class + 1],
                None => 0..count,
            };
            let own: Vec<f64> = among.clone().map(|k| joints[k * ROWS + r]).collect();
            let total = log_sum(&own);
            log_likelihood += total;
            for (k, joint) in among.zip(own) {
                out[k] = (joint - total).exp();
            }
        }
    }
    Ok((shares, log_likelihood))
}

impl Sums {
    /// The sums of some components.
    fn part(&self, first: usize, count: usize) -> Self {
        let all = self.weights.len();
        let of = |values: &[f64]| {
            let size = values.len() / all;
            values[first * size..(first + count) * size].to_vec()
        };
        Self {
            log_likelihood: self.log_likelihood,
            weights: of(&self.weights),
            first: of(&self.first),
            second: of(&self.second),
        }
    }
}
