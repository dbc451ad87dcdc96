//! Mixtures made ready to answer.

use std::ops::Range;

use super::super::Mixtures;
use super::super::rows::dense_rows;
use super::pass::{Blocks, Component, ROWS, log_joints};
use super::step::component_list;
use crate::context::Context;
use crate::data::Matrix;
use crate::error::Result;
use crate::machine::probability::log_sum;

/// A model of mixtures, ready.
pub(crate) struct Ready {
    components: Vec<Component>,
    /// Components of each class and its ln P; empty where every component is an output.
    classes: Vec<(usize, f64)>,
    features: usize,
}

impl Ready {
    pub(in super::super) fn new(
        means: &Matrix,
        part: &Mixtures,
        has_classes: bool,
        context: &Context,
    ) -> Result<Self> {
        let features = means.columns();
        let means = dense_rows(means);
        let mut components = Vec::new();
        let (mut first, mut value) = (0, 0);
        for &count in &part.components {
            let values = part.covariance.values(count, features);
            let own = &part.covariances[value..value + values];
            let factors = part.covariance.factors(own, count, features, context)?;
            let weights = &part.weights[first..first + count];
            components.extend(component_list(
                weights,
                &means[first * features..],
                factors,
                features,
            ));
            first += count;
            value += values;
        }
        let classes = match has_classes {
            true => part.components.iter().copied().zip(part.log_priors.iter().copied()).collect(),
            false => Vec::new(),
        };
        Ok(Self { components, classes, features })
    }

    /// ln(prior · density) of every class, or ln(weight · density) of every component.
    pub(in super::super) fn evaluate(
        &self,
        queries: &Matrix,
        range: Range<usize>,
        out: &mut [f64],
        context: &Context,
    ) {
        let part = queries.select_rows(&range.clone().collect::<Vec<_>>());
        let blocks = Blocks::new(&dense_rows(&part), self.features, &vec![0.0; self.features]);
        let width =
            if self.classes.is_empty() { self.components.len() } else { self.classes.len() };
        for (block, out) in out.chunks_mut(ROWS * width).enumerate() {
            let joints = log_joints(&blocks, block, &self.components, context);
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
    }
}
