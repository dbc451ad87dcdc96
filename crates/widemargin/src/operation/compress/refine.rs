//! Phase 2: all vectors and weights of a reduced expansion moved together to the least residual
//! F = ½‖Ψ − Ψ'‖² (Nguyen 2006, 3.3.3), by L-BFGS from where merging ended.

use super::bottom_up::Expansion;
use super::residual::{dot, similarities};
use super::rule::Rule;
use crate::context::Context;
use crate::error::Result;
use crate::kernel::accumulate;

/// Steps remembered.
const MEMORY: usize = 10;

/// Halvings of a step before giving up.
const BACKTRACKS: usize = 25;

/// Share of the predicted decrease that a step must reach.
const ARMIJO: f64 = 1e-4;

/// Relative decrease below which the search ends.
const LEAST_DECREASE: f64 = 1e-9;

/// Moves `reduced` towards `original`; never ends further away than it began.
pub(super) fn refine(
    rule: &Rule,
    reduced: &mut Expansion,
    original: &Expansion,
    iterations: usize,
    context: &Context,
) -> Result<()> {
    let count = reduced.vectors.len();
    if count == 0 {
        return Ok(());
    }
    let mean = reduced.weights.iter().map(|w| w.abs()).sum::<f64>() / count as f64;
    let problem = Problem {
        rule,
        original,
        columns: reduced.vectors[0].len(),
        count,
        scale: if mean > 0.0 { mean } else { 1.0 },
        context,
    };
    let mut point = problem.flatten(reduced);
    let (mut value, mut gradient) = problem.evaluate(&point)?;
    let mut memory: Vec<(Vec<f64>, Vec<f64>, f64)> = Vec::new();
    for _ in 0..iterations {
        if context.stop_request().is_some() {
            break;
        }
        let mut direction = two_loops(&memory, &gradient);
        let mut slope = dot(&direction, &gradient);
        if slope.is_nan() || slope >= 0.0 {
            memory.clear();
            direction = gradient.iter().map(|g| -g).collect();
            slope = -dot(&gradient, &gradient);
        }
        if slope == 0.0 {
            break;
        }
        let first = if memory.is_empty() { (1.0 / (-slope).sqrt()).min(1.0) } else { 1.0 };
        let Some((next, next_value, next_gradient)) =
            problem.line_search(&point, value, &direction, slope, first)?
        else {
            if memory.is_empty() {
                break;
            }
            memory.clear();
            continue;
        };
        let step: Vec<f64> = next.iter().zip(&point).map(|(a, b)| a - b).collect();
        let bend: Vec<f64> = next_gradient.iter().zip(&gradient).map(|(a, b)| a - b).collect();
        let curvature = dot(&step, &bend);
        if curvature > 1e-12 * dot(&bend, &bend).sqrt() * dot(&step, &step).sqrt() {
            if memory.len() == MEMORY {
                memory.remove(0);
            }
            memory.push((step, bend, 1.0 / curvature));
        }
        let decrease = value - next_value;
        (point, value, gradient) = (next, next_value, next_gradient);
        if decrease <= LEAST_DECREASE * value.abs() {
            break;
        }
    }
    problem.unflatten(&point, reduced);
    Ok(())
}

struct Problem<'a> {
    rule: &'a Rule,
    original: &'a Expansion,
    columns: usize,
    count: usize,
    /// Weights are divided by their mean magnitude, so that they weigh as much as features.
    scale: f64,
    context: &'a Context,
}

type Step = (Vec<f64>, f64, Vec<f64>);

impl Problem<'_> {
    fn flatten(&self, expansion: &Expansion) -> Vec<f64> {
        let mut point = expansion.vectors.concat();
        point.extend(expansion.weights.iter().map(|w| w / self.scale));
        point
    }

    fn unflatten(&self, point: &[f64], expansion: &mut Expansion) {
        let (vectors, weights) = point.split_at(self.count * self.columns);
        expansion.vectors = vectors.chunks(self.columns.max(1)).map(<[f64]>::to_vec).collect();
        expansion.weights = weights.iter().map(|w| w * self.scale).collect();
    }

    /// F without its constant part, and its gradient.
    fn evaluate(&self, point: &[f64]) -> Result<(f64, Vec<f64>)> {
        let mut reduced = Expansion { vectors: Vec::new(), weights: Vec::new() };
        self.unflatten(point, &mut reduced);
        let mut gradient = vec![0.0; point.len()];
        let (towards_vectors, towards_weights) = gradient.split_at_mut(self.count * self.columns);
        let mut value = 0.0;
        for (other, sign) in [(&reduced, 1.0), (self.original, -1.0)] {
            let rows: Vec<&[f64]> = other.vectors.iter().map(Vec::as_slice).collect();
            let table = similarities(self.rule, &reduced.vectors, &other.vectors, self.context)?;
            let part = if sign > 0.0 { 0.5 } else { -1.0 };
            let mut slopes = vec![0.0; rows.len()];
            for (j, bases) in table.chunks(rows.len().max(1)).enumerate() {
                let weight = reduced.weights[j];
                let (mut sum, mut pulls) = (0.0, 0.0);
                for (i, (&base, &other_weight)) in bases.iter().zip(&other.weights).enumerate() {
                    let (slope, pull) = self.rule.gradient(base);
                    sum += other_weight * self.rule.value(base);
                    slopes[i] = sign * weight * other_weight * slope;
                    pulls += sign * weight * other_weight * pull;
                }
                value += part * weight * sum;
                towards_weights[j] += sign * sum * self.scale;
                let out = &mut towards_vectors[j * self.columns..(j + 1) * self.columns];
                accumulate(self.context.instruction_set(), out, &rows, &slopes);
                for (out, z) in out.iter_mut().zip(&reduced.vectors[j]) {
                    *out += pulls * z;
                }
            }
        }
        Ok((value, gradient))
    }

    fn line_search(
        &self,
        point: &[f64],
        value: f64,
        direction: &[f64],
        slope: f64,
        first: f64,
    ) -> Result<Option<Step>> {
        let mut length = first;
        for _ in 0..BACKTRACKS {
            let next: Vec<f64> = point.iter().zip(direction).map(|(p, d)| p + length * d).collect();
            let (next_value, gradient) = self.evaluate(&next)?;
            if next_value <= value + ARMIJO * length * slope {
                return Ok(Some((next, next_value, gradient)));
            }
            length *= 0.5;
        }
        Ok(None)
    }
}

/// −H g by the two loops of L-BFGS.
fn two_loops(memory: &[(Vec<f64>, Vec<f64>, f64)], gradient: &[f64]) -> Vec<f64> {
    let mut direction: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut factors = vec![0.0; memory.len()];
    for (factor, (step, bend, inverse)) in factors.iter_mut().zip(memory).rev() {
        *factor = inverse * dot(step, &direction);
        add(&mut direction, -*factor, bend);
    }
    if let Some((_, bend, inverse)) = memory.last() {
        let scale = 1.0 / (inverse * dot(bend, bend));
        direction.iter_mut().for_each(|d| *d *= scale);
    }
    for (factor, (step, bend, inverse)) in factors.iter().zip(memory) {
        let along = inverse * dot(bend, &direction);
        add(&mut direction, factor - along, step);
    }
    direction
}

fn add(to: &mut [f64], factor: f64, what: &[f64]) {
    for (to, x) in to.iter_mut().zip(what) {
        *to += factor * x;
    }
}
