//! Kernel weights over features that approximate the kernels (random Fourier features, Nyström's method), for more
//! rows than tables of kernel values can have.
//!
//! Every kernel has a block of features φᵢ, and K(µ) becomes Σ µᵢfᵢ ΦᵢΦᵢᵀ with fᵢ = n / Σ‖φᵢ(x)‖²: the weights of
//! the kernels are those of groups of features (the group lasso in its variational form; Bach, Lanckriet and Jordan
//! 2004), learnt by the same cuts around linear solvers. Memory and time of a pass grow with rows times features.
//! Bounds are those of the approximated problem.

mod duals;
mod problem;
mod tables;

use std::time::Instant;

use self::duals::{FeatureDuals, LearntFunction};
pub(super) use self::problem::{Classes, FeatureProblem, Function, HalfSpace, ProblemKind};
use self::tables::FeatureTables;
use super::formulation::Formulation;
use super::{MultipleKernel, warn_of_signed};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernel::{BlockMap, FeatureMap, MapRule};
use crate::machine::fit::FitInput;
use crate::machine::model::{Model, Training};
use crate::outcome::Outcome;
use crate::solver::kernel_weights::{self, Options, WeightRule};
use crate::solver::linear::MOST_PASSES;

impl MultipleKernel {
    /// Refuses what features cannot express.
    pub(super) fn check_approximation(&self) -> Result<()> {
        let refuse = |name: &'static str, expected: &str, found: String| {
            Err(Error::parameter(name, format!("{expected} with approximate features"), found))
        };
        match self.weights {
            WeightRule::NonNegative | WeightRule::Norm(_) | WeightRule::Uniform => {}
            other => {
                let found = super::WeightsText(other).to_string();
                return refuse("weights", "nonnegative, lp=P or uniform", found);
            }
        }
        if self.jitter > 0.0 {
            return refuse("jitter", "0", self.jitter.to_string());
        }
        match self.repair {
            Some(repair) => refuse("repair", "none", repair.to_string()),
            None => Ok(()),
        }
    }

    /// Learns weights and machine on features of the kernels.
    pub(super) fn fit_features(
        &self,
        rule: MapRule,
        input: FitInput<'_>,
        unlabelled: &[usize],
        formulation: &Formulation,
        context: &Context,
    ) -> Result<Model> {
        let started = Instant::now();
        let problems = formulation.feature_problems()?;
        let mut order = formulation.rows.concat();
        order.extend(unlabelled);
        let features = input.data().features();
        let is_all =
            order.len() == features.rows() && order.iter().enumerate().all(|(i, &r)| i == r);
        let selected = if is_all { None } else { Some(features.select_rows(&order)) };
        let features = selected.as_ref().unwrap_or(features);
        let tables = FeatureTables::new(rule, &self.kernels, features, context)?;
        let options = self.machine.options();
        let passes = options.max_iterations.unwrap_or(MOST_PASSES);
        let mut duals = FeatureDuals::new(&tables, problems, passes, options.shrinking, context);
        let limits = Options { gap: options.tol, ..Options::default() };
        let kernels = self.kernels.len();
        let found =
            kernel_weights::minimise(&mut duals, kernels, self.weights, &[], &limits, context)?;
        warn_of_signed(&found, context);
        let (effort, functions) = duals.finish();
        let width = tables.width();
        let raw: Vec<f64> = found.weights.iter().zip(&tables.factors).map(|(w, f)| w * f).collect();
        let (map, weights) = combined(tables, &raw, &functions, features.columns());
        let constants: Vec<f64> = functions.iter().map(|function| function.constant).collect();
        let mut model = formulation.linear_model(map.outputs(), weights, &constants)?;
        let outcome =
            Outcome { status: found.status, primal: found.objective, dual: found.bound, ..effort };
        let mut parameters = self.record(&found, formulation);
        parameters.push(("raw-kernel-weights".into(), raw.into()));
        parameters.push(("approximate".into(), rule.to_string().into()));
        parameters.push(("features".into(), width.into()));
        if !unlabelled.is_empty() {
            parameters.push(("unlabelled-rows".into(), unlabelled.len().into()));
        }
        model.feature_names = input.data().feature_names().map(<[String]>::to_vec);
        model.training = Some(Training {
            outcome,
            rows: order.len(),
            seconds: started.elapsed().as_secs_f64(),
            parameters,
            specification: None,
        });
        model.preparation.map = Some(map);
        Ok(model)
    }
}

/// The features of the kernels that have a weight, and the weights of these features, function after function.
fn combined(
    tables: FeatureTables,
    raw: &[f64],
    functions: &[LearntFunction],
    inputs: usize,
) -> (FeatureMap, Vec<f64>) {
    let spans = tables.spans();
    let used = || raw.iter().zip(&spans).filter(|(weight, _)| **weight > 0.0);
    let of = |function: &LearntFunction| {
        let own = used().flat_map(|(weight, span)| {
            function.sums[span.clone()].iter().map(move |sum| weight * sum)
        });
        own.collect::<Vec<f64>>()
    };
    let weights = functions.iter().flat_map(of).collect();
    let maps = tables.maps.into_iter().zip(raw).filter(|(_, weight)| **weight > 0.0);
    let blocks = maps.map(|(map, _)| map).collect();
    (FeatureMap::Blocks(BlockMap::new(inputs, blocks)), weights)
}
