//! Top-down construction: one vector after the other, each where the rest of the function is
//! largest, max_z Σ_f(R_f·Φ(z))²/K(z, z) with R the difference so far, and all weights anew after each.
//!
//! The fixed point of the Gaussian kernel is z ← Σcᵤ K(u, z) u / Σcᵤ K(u, z) over all vectors u of the
//! rest, cᵤ = Σ_f (R_f·Φ(z)) R_{fu} (Schölkopf et al. 1999); otherwise vector and weight descend together
//! (Burges 1996). Starts are support vectors drawn in proportion to their weights.

use super::element::Element;
use super::merge_kernel::MergeKernel;
use super::pool::VectorPool;
use super::refine::refine;
use super::sums::reweigh;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::numeric::algebra::squared_distance;
use crate::numeric::random::Generator;

/// Starts for every vector.
const STARTS: usize = 10;

/// Most steps of the iteration.
const STEPS: usize = 200;

/// Steps of a descent.
const DESCENT: usize = 40;

/// How a vector is sought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum VectorSearch {
    /// The fixed-point iteration of a Gaussian kernel.
    FixedPoint { gamma: f64 },
    /// Descent.
    Gradient,
}

/// `count` vectors for the functions of `original`, with their weights; fewer when the context asks to stop.
///
/// # Errors
/// [`Error::Interrupted`] when it asks before there is one.
pub(super) fn construct<T: Element>(
    kernel: &Kernel,
    rule: &MergeKernel,
    original: &VectorPool,
    count: usize,
    search: VectorSearch,
    context: &Context,
) -> Result<VectorPool> {
    let mut generator = Generator::new(context.seed());
    let mut reduced = original.over(Vec::new());
    while reduced.len() < count {
        let rest = rest(original, &reduced);
        let found = match next_vector::<T>(rule, original, &rest, search, &mut generator, context) {
            // Some vectors are better than none, none better than too few to be of use.
            Err(Error::Interrupted) if reduced.len() > 0 => break,
            found => found?,
        };
        let Some((vector, group)) = found else { break };
        reduced.vectors.push(vector);
        reduced.groups.push(group);
        reduced.weights.iter_mut().for_each(|w| w.push(0.0));
        reweigh::<f64>(kernel, &mut reduced, original, &context.with_grace())?;
    }
    Ok(reduced)
}

/// The best vector of several searches, and its group; `None` where no gain is a number.
fn next_vector<T: Element>(
    rule: &MergeKernel,
    original: &VectorPool,
    rest: &VectorPool,
    search: VectorSearch,
    generator: &mut Generator,
    context: &Context,
) -> Result<Option<(Vec<f64>, usize)>> {
    let mut best: Option<(f64, Vec<f64>, usize)> = None;
    for _ in 0..STARTS {
        context.checkpoint()?;
        let start = draw(original, generator);
        let group = original.groups[start];
        let start = &original.vectors[start];
        let found = match search {
            VectorSearch::FixedPoint { gamma } => fixed_point(gamma, rest, start, group, context)?,
            VectorSearch::Gradient => Some(descend::<T>(rule, rest, start, group, context)?),
        };
        // Where the search breaks down, the start itself is better than nothing.
        for vector in found.iter().chain([start]) {
            let gain = gain(rule, rest, vector, group);
            if gain.is_finite() && best.as_ref().is_none_or(|(other, ..)| gain > *other) {
                best = Some((gain, vector.clone(), group));
            }
        }
    }
    Ok(best.map(|(_, vector, group)| (vector, group)))
}

/// Ψ − Ψ' as one pool.
fn rest(original: &VectorPool, reduced: &VectorPool) -> VectorPool {
    let weights = original.weights.iter().zip(&reduced.weights);
    VectorPool {
        vectors: [original.vectors.as_slice(), &reduced.vectors].concat(),
        groups: [original.groups.as_slice(), &reduced.groups].concat(),
        weights: weights
            .map(|(a, b)| a.iter().copied().chain(b.iter().map(|b| -b)).collect())
            .collect(),
        uses: original.uses.clone(),
    }
}

/// A vector, drawn in proportion to the sum of its weights' magnitudes.
fn draw(pool: &VectorPool, generator: &mut Generator) -> usize {
    let size = |v: usize| pool.weights.iter().map(|w| w[v].abs()).sum::<f64>();
    let total: f64 = (0..pool.len()).map(size).sum();
    let mut at = generator.unit() * total;
    for v in 0..pool.len() {
        at -= size(v);
        if at < 0.0 {
            return v;
        }
    }
    pool.len() - 1
}

/// R_f·Φ(z) of the functions that use a group.
fn products(rule: &MergeKernel, rest: &VectorPool, values: &[f64], group: usize) -> Vec<f64> {
    let product = |(weights, uses): (&Vec<f64>, &Vec<bool>)| match uses[group] {
        true => weights.iter().zip(values).map(|(w, &base)| w * rule.value(base)).sum(),
        false => 0.0,
    };
    rest.weights.iter().zip(&rest.uses).map(product).collect()
}

/// How much of the rest a vector takes away, Σ_f (R_f·Φ(z))²/K(z, z).
fn gain(rule: &MergeKernel, rest: &VectorPool, z: &[f64], group: usize) -> f64 {
    let values: Vec<f64> = rest.vectors.iter().map(|u| rule.base_of(u, z)).collect();
    let squares = products(rule, rest, &values, group).iter().map(|p| p * p).sum::<f64>();
    squares / rule.value(rule.own_base(z))
}

/// The fixed point reached from a start; `None` when the iteration breaks down or runs in circles.
///
/// # Errors
/// [`Error::Interrupted`] when the context asks to stop.
pub(super) fn fixed_point(
    gamma: f64,
    rest: &VectorPool,
    start: &[f64],
    group: usize,
    context: &Context,
) -> Result<Option<Vec<f64>>> {
    let mut z = start.to_vec();
    for _ in 0..STEPS {
        context.checkpoint()?;
        let values: Vec<f64> =
            rest.vectors.iter().map(|u| (-gamma * squared_distance(u, &z)).exp()).collect();
        let products: Vec<f64> = rest
            .weights
            .iter()
            .zip(&rest.uses)
            .map(|(w, uses)| match uses[group] {
                true => w.iter().zip(&values).map(|(w, k)| w * k).sum(),
                false => 0.0,
            })
            .collect();
        let (mut next, mut total, mut size) = (vec![0.0; z.len()], 0.0, 0.0);
        for (v, (u, k)) in rest.vectors.iter().zip(&values).enumerate() {
            let c: f64 = products.iter().zip(&rest.weights).map(|(p, w)| p * w[v]).sum();
            let c = c * k;
            total += c;
            size += c.abs();
            next.iter_mut().zip(u).for_each(|(next, u)| *next += c * u);
        }
        if total.abs() <= 1e-10 * size || !total.is_finite() || size == 0.0 {
            return Ok(None);
        }
        next.iter_mut().for_each(|next| *next /= total);
        let moved = squared_distance(&next, &z);
        z = next;
        if gamma * moved <= 1e-24 {
            return Ok(Some(z));
        }
    }
    // Not yet at rest, but of use: its gain is compared with that of others.
    Ok(z.iter().all(|v| v.is_finite()).then_some(z))
}

/// Where a vector comes to rest that descends from a start.
fn descend<T: Element>(
    rule: &MergeKernel,
    rest: &VectorPool,
    start: &[f64],
    group: usize,
    context: &Context,
) -> Result<Vec<f64>> {
    let values: Vec<f64> = rest.vectors.iter().map(|u| rule.base_of(u, start)).collect();
    let own = rule.value(rule.own_base(start));
    let weights = products(rule, rest, &values, group).into_iter().map(|p| vec![p / own]);
    let mut one = VectorPool {
        vectors: vec![start.to_vec()],
        groups: vec![group],
        weights: weights.collect(),
        uses: rest.uses.clone(),
    };
    refine::<T>(rule, &mut one, rest, DESCENT, context)?;
    Ok(one.vectors.swap_remove(0))
}
