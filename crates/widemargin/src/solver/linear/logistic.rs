//! Dual coordinate descent for the logistic loss.
//!
//! With w = Σ tᵢαᵢxᵢ it minimises `½‖w‖² + Σ αᵢ log αᵢ + (Cᵢ − αᵢ) log(Cᵢ − αᵢ)` over 0 < αᵢ < Cᵢ, one
//! αᵢ at a time by Newton's method on whichever of αᵢ and Cᵢ − αᵢ is the smaller at the end, so
//! that neither loses digits. Yu, Huang and Lin (2011).

use super::problem::{Options, Passes, Problem, Solution, primal, squared_norm};
use super::products::Products;
use super::table::{Listed, Table};
use super::tall::{Penalty, suits};
use super::variable::BlockReport;
use crate::context::Context;
use crate::numeric::random::Generator;
use crate::solver::Status;
use crate::solver::linear::rows::{LinearRows, fetch};

/// Newton steps for one variable.
pub(super) const MOST_STEPS: usize = 100;

/// How closely a variable is minimised in the beginning.
pub(super) const FIRST_PRECISION: f64 = 1e-2;

/// How closely a variable is minimised in the end.
pub(super) fn finest_precision(tol: f64) -> f64 {
    tol.min(1e-8)
}

/// The least that a variable of this cost can be, and the least that it can be short of it.
pub(super) fn least_variable(cost: f64) -> f64 {
    (1e-3 * cost).min(1e-8)
}

/// How far from the optimum the weights of a guess may be, by their gradient relative to that at 0.
const GUESS: f64 = 1e-5;

/// Rows ahead of the current one that are fetched.
const AHEAD: usize = 4;

#[derive(Clone, Copy)]
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

/// The dual of a logistic problem, to be descended in one go or block by block.
pub struct LogisticDescent {
    variables: Vec<Variable>,
    /// The rows that cost something.
    order: Vec<u32>,
    /// How closely one variable is minimised.
    precision: f64,
    finest: f64,
}

impl LogisticDescent {
    /// The dual of `problem` over `rows`, from the dual variables `start` or nearly 0.
    ///
    /// Variables are never 0: those of a start that are belong to no w yet, see
    /// [`add_new`](Self::add_new).
    pub fn new<R: LinearRows>(
        rows: &R,
        problem: &Problem<'_>,
        start: Option<&[f64]>,
        tol: f64,
    ) -> Self {
        let variable = |i: usize| {
            let cost = problem.costs[i];
            let least = least_variable(cost);
            let alpha = start.map_or(least, |s| s[i].abs().clamp(least, cost - least));
            let parts = [alpha, cost - alpha];
            let (odds, square) = ((parts[0] / parts[1]).ln(), rows.squared_norm(i));
            Variable { parts, odds, target: problem.targets[i], cost, square }
        };
        let variables: Vec<Variable> = (0..rows.rows()).map(variable).collect();
        let costs = |i: &u32| variables[*i as usize].cost > 0.0;
        let order = (0..rows.rows() as u32).filter(costs).collect();
        Self { variables, order, precision: FIRST_PRECISION, finest: finest_precision(tol) }
    }

    /// Adds to weights what the variables contribute whose `start` is 0.
    pub fn add_new<R: LinearRows>(&self, rows: &R, start: &[f64], weights: &mut [f64]) {
        for &i in &self.order {
            if start[i as usize] == 0.0 {
                let v = &self.variables[i as usize];
                rows.add(i as usize, v.target * v.parts[0], weights);
            }
        }
    }

    /// One pass in random order, w following; the largest gradient met.
    fn sweep<R: LinearRows>(
        &mut self,
        rows: &R,
        weights: &mut [f64],
        generator: &mut Generator,
    ) -> f64 {
        generator.shuffle(&mut self.order);
        let (mut worst, mut moved) = (0.0_f64, 0);
        for s in 0..self.order.len() {
            if let Some(&next) = self.order.get(s + AHEAD) {
                rows.prefetch(next as usize);
                fetch(&self.variables, next as usize);
            }
            let i = self.order[s] as usize;
            let v = &mut self.variables[i];
            let margin = v.target * rows.dot(i, weights);
            let (step, gradient) = v.step(margin, self.precision);
            worst = worst.max(gradient);
            if step != 0.0 {
                moved += 1;
                rows.add(i, step * v.target, weights);
            }
        }
        if moved <= self.order.len() / 10 {
            self.precision = self.finest.max(0.1 * self.precision);
        }
        worst
    }

    /// Passes over the rows of a block, w following, at most `passes` of them.
    pub fn descend_block<R: LinearRows>(
        &mut self,
        rows: &R,
        weights: &mut [f64],
        passes: usize,
        seed: u64,
    ) -> BlockReport {
        let mut generator = Generator::new(seed);
        let mut report = BlockReport::default();
        for pass in 0..passes {
            let worst = self.sweep(rows, weights, &mut generator);
            report.steps += self.order.len() as u64;
            if pass == 0 {
                report.highest = worst;
            }
        }
        report
    }

    /// How far the conditions are violated where the rows have these values ⟨w, x⟩.
    pub fn examine_block(&self, values: &[f64]) -> BlockReport {
        let gradient = |i: &u32| {
            let v = &self.variables[*i as usize];
            v.gradient(v.target * values[*i as usize]).abs()
        };
        let highest = self.order.iter().map(gradient).fold(0.0, f64::max);
        BlockReport { highest, ..BlockReport::default() }
    }

    /// Dual variable of every row, with the sign of its influence on w.
    pub fn dual(&self) -> Vec<f64> {
        let signed = |v: &Variable| if v.cost > 0.0 { v.target * v.parts[0] } else { 0.0 };
        self.variables.iter().map(signed).collect()
    }

    /// Σ α log α + (C − α) log(C − α) − C log C
    fn entropy(&self) -> f64 {
        let term = |v: &Variable| match v.cost > 0.0 {
            true => v.parts.iter().map(|p| p * p.ln()).sum::<f64>() - v.cost * v.cost.ln(),
            false => 0.0,
        };
        self.variables.iter().map(term).sum()
    }

    /// Dual objective, as a maximum.
    fn objective(&self, weights: &[f64]) -> f64 {
        -0.5 * squared_norm(weights) - self.entropy()
    }
}

/// Solves the dual of a logistic problem, from the dual variables `start`, those that belong to a
/// guess of the weights where rows abound, or nearly 0.
///
/// The tolerance bounds the largest gradient of the dual.
pub fn solve<R: LinearRows>(
    rows: &R,
    problem: &Problem<'_>,
    options: &Options,
    start: Option<&[f64]>,
    context: &Context,
) -> Solution {
    let guessed = match start {
        None if suits(rows, Penalty::Squares) => {
            let options = Options { tol: GUESS, ..*options };
            Some(super::tall::solve(
                rows,
                problem,
                Penalty::Squares,
                &options,
                None,
                false,
                context,
            ))
        }
        _ => None,
    };
    let start = start.or(guessed.as_ref().map(|guess| &guess.dual[..]));
    let mut descent = LogisticDescent::new(rows, problem, start, options.tol);
    let mut weights =
        Products::new(rows, options.alone, context).transposed(&Listed::new(&descent.dual()));
    let mut generator = Generator::new(context.seed());
    let mut passes = Passes::new(options, context);
    let status = loop {
        let worst = descent.sweep(rows, &mut weights, &mut generator);
        let stop = passes.finish(descent.order.len(), worst, || descent.objective(&weights));
        if worst < options.tol {
            break Status::Solved;
        }
        if let Some(status) = stop {
            break status;
        }
    };
    let values = Products::new(rows, options.alone, context).values(&weights);
    let violation = descent.examine_block(&values).highest;
    let primal = primal(problem, &weights, &values);
    let outcome = passes.outcome(status, primal, descent.objective(&weights), violation);
    Solution { dual: descent.dual(), weights, outcome }
}
