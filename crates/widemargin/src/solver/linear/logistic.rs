//! Dual coordinate descent for the logistic loss.
//!
//! With w = Σ tᵢαᵢxᵢ it minimises `½‖w‖² + Σ αᵢ log αᵢ + (Cᵢ − αᵢ) log(Cᵢ − αᵢ)` over 0 < αᵢ < Cᵢ, one
//! αᵢ at a time by Newton's method on whichever of αᵢ and Cᵢ − αᵢ is the smaller at the end, so
//! that neither loses digits. Yu, Huang and Lin (2011).

use super::problem::{Options, Passes, Problem, Solution, primal, squared_norm};
use super::products::Products;
use crate::context::Context;
use crate::kernel::{LinearRows, fetch};
use crate::random::Generator;
use crate::solver::Status;

/// Newton steps for one variable.
const MOST_STEPS: usize = 100;

/// Rows ahead of the current one that are fetched.
const AHEAD: usize = 4;

struct Variable {
    /// α and C − α.
    parts: [f64; 2],
    /// log α / (C − α)
    odds: f64,
    target: f64,
    cost: f64,
    square: f64,
}

impl Variable {
    /// The gradient of the dual with respect to α at y⟨w, x⟩ = `margin`.
    fn gradient(&self, margin: f64) -> f64 {
        margin + self.odds
    }

    /// Minimises over α with all others fixed; the change of α and the gradient met first.
    #[inline]
    fn step(&mut self, margin: f64, precision: f64) -> (f64, f64) {
        let middle = 0.5 * self.square * (self.parts[1] - self.parts[0]) + margin;
        let (own, sign) = if middle < 0.0 { (1, -1.0) } else { (0, 1.0) };
        let old = self.parts[own];
        let (mut z, mut odds) = (old, sign * self.odds);
        if self.cost - old < 0.5 * self.cost {
            z = 0.1 * old;
            odds = (z / (self.cost - z)).ln();
        }
        let mut gradient = self.square * (z - old) + sign * margin + odds;
        let first = gradient.abs();
        let mut steps = 0;
        while steps < MOST_STEPS && gradient.abs() >= precision {
            let curvature = self.square + self.cost / (self.cost - z) / z;
            let next = z - gradient / curvature;
            z = if next <= 0.0 { 0.1 * z } else { next };
            odds = (z / (self.cost - z)).ln();
            gradient = self.square * (z - old) + sign * margin + odds;
            steps += 1;
        }
        if steps == 0 {
            return (0.0, first);
        }
        self.parts[own] = z;
        self.parts[1 - own] = self.cost - z;
        self.odds = sign * odds;
        (sign * (z - old), first)
    }
}

/// Solves the dual of a logistic problem, from the dual variables `start` or nearly 0.
///
/// The tolerance bounds the largest gradient of the dual.
pub fn solve<R: LinearRows>(
    rows: &R,
    problem: &Problem<'_>,
    options: &Options,
    start: Option<&[f64]>,
    context: &Context,
) -> Solution {
    let variable = |i: usize| {
        let cost = problem.costs[i];
        let least = (1e-3 * cost).min(1e-8);
        let alpha = start.map_or(least, |s| s[i].abs().clamp(least, cost - least));
        let parts = [alpha, cost - alpha];
        let (odds, square) = ((parts[0] / parts[1]).ln(), rows.squared_norm(i));
        Variable { parts, odds, target: problem.targets[i], cost, square }
    };
    let mut variables: Vec<Variable> = (0..rows.rows()).map(variable).collect();
    let mut weights = vec![0.0; rows.width()];
    let mut order: Vec<u32> =
        (0..rows.rows() as u32).filter(|&i| variables[i as usize].cost > 0.0).collect();
    for &i in &order {
        let v = &variables[i as usize];
        rows.add(i as usize, v.target * v.parts[0], &mut weights);
    }
    let mut generator = Generator::new(context.seed());
    let mut passes = Passes::new(options, context);
    let finest = options.tol.min(1e-8);
    let mut precision = 1e-2_f64;
    let status = loop {
        generator.shuffle(&mut order);
        let (mut worst, mut moved) = (0.0_f64, 0);
        for s in 0..order.len() {
            if let Some(&next) = order.get(s + AHEAD) {
                rows.prefetch(next as usize);
                fetch(&variables, next as usize);
            }
            let i = order[s] as usize;
            let v = &mut variables[i];
            let margin = v.target * rows.dot(i, &weights);
            let (step, gradient) = v.step(margin, precision);
            worst = worst.max(gradient);
            if step != 0.0 {
                moved += 1;
                rows.add(i, step * v.target, &mut weights);
            }
        }
        let objective = || -0.5 * squared_norm(&weights) - entropy(&variables);
        let stop = passes.finish(order.len(), worst, objective);
        if worst < options.tol {
            break Status::Solved;
        }
        if moved <= order.len() / 10 {
            precision = finest.max(0.1 * precision);
        }
        if let Some(status) = stop {
            break status;
        }
    };
    let values = Products::new(rows, context).values(&weights);
    let mut violation = 0.0_f64;
    for &i in &order {
        let v = &variables[i as usize];
        violation = violation.max(v.gradient(v.target * values[i as usize]).abs());
    }
    let dual = -0.5 * squared_norm(&weights) - entropy(&variables);
    let primal = primal(problem, &weights, &values);
    let outcome = passes.outcome(status, primal, dual, violation);
    let signed = |v: &Variable| if v.cost > 0.0 { v.target * v.parts[0] } else { 0.0 };
    Solution { dual: variables.iter().map(signed).collect(), weights, outcome }
}

/// Σ α log α + (C − α) log(C − α) − C log C
fn entropy(variables: &[Variable]) -> f64 {
    let term = |v: &Variable| match v.cost > 0.0 {
        true => v.parts.iter().map(|p| p * p.ln()).sum::<f64>() - v.cost * v.cost.ln(),
        false => 0.0,
    };
    variables.iter().map(term).sum()
}
