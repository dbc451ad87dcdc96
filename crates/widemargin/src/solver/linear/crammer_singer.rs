//! Dual coordinate descent for the multi-class machine of Crammer and Singer.
//!
//! `min ½ Σₘ‖wₘ‖² + Σ Cᵢ max(0, maxₘ≠c 1 + ⟨wₘ − w_c, xᵢ⟩)` with c the choice of row i; dual variables
//! αᵢᵐ ≤ Cᵢ[m = c], Σₘ αᵢᵐ = 0, wₘ = Σ αᵢᵐxᵢ. All variables of one row are minimised together, in
//! closed form after a sort, and both rows and alternatives that seem settled are set aside.
//! Keerthi, Sundararajan, Chang, Hsieh and Lin (2008).

use super::problem::{Options, Passes, Solution, squared_norm};
use crate::context::Context;
use crate::kernel::LinearRows;
use crate::random::Generator;
use crate::solver::Status;

/// Differences closer to 0 than this move nothing.
const NEGLIGIBLE: f64 = 1e-12;

/// What each row should be chosen as.
#[derive(Clone, Copy, Debug)]
pub struct Choices<'a> {
    /// Number of alternatives.
    pub count: usize,
    /// The right one for every row.
    pub right: &'a [u32],
    /// Cᵢ of every row.
    pub costs: &'a [f64],
}

struct Row {
    /// Alternatives, the active ones first.
    order: Vec<u32>,
    active: usize,
}

struct Descent<'a, R> {
    rows: &'a R,
    choices: Choices<'a>,
    /// Weights feature by feature, all alternatives of one side by side.
    weights: Vec<f64>,
    /// αᵢᵐ row by row.
    alpha: Vec<f64>,
    squares: Vec<f64>,
    states: Vec<Row>,
    gradient: Vec<f64>,
    scratch: Vec<f64>,
}

/// Solves the problem; the weights are those of the first alternative, then of the second, ...
///
/// The tolerance bounds the range of the gradient over the variables of a row that can move.
pub fn solve<R: LinearRows>(
    rows: &R,
    choices: Choices<'_>,
    options: &Options,
    context: &Context,
) -> Solution {
    let k = choices.count;
    let mut descent = Descent {
        rows,
        choices,
        weights: vec![0.0; rows.width() * k],
        alpha: vec![0.0; rows.rows() * k],
        squares: (0..rows.rows()).map(|i| rows.squared_norm(i)).collect(),
        states: (0..rows.rows())
            .map(|_| Row { order: (0..k as u32).collect(), active: k })
            .collect(),
        gradient: vec![0.0; k],
        scratch: Vec::with_capacity(k),
    };
    let all: Vec<u32> = (0..rows.rows() as u32)
        .filter(|&i| choices.costs[i as usize] > 0.0 && descent.squares[i as usize] > 0.0)
        .collect();
    let mut active = all.clone();
    let mut generator = Generator::new(context.seed());
    let mut passes = Passes::new(options, context);
    let mut slack = (10.0 * options.tol).max(1.0);
    let mut from_all = true;
    let status = loop {
        generator.shuffle(&mut active);
        let looked_at = active.len();
        let (mut worst, mut kept) = (f64::NEG_INFINITY, 0);
        for s in 0..active.len() {
            let i = active[s] as usize;
            let stays = descent.step(i, slack, options.shrinking, &mut worst);
            if stays {
                active[kept] = active[s];
                kept += 1;
            }
        }
        active.truncate(kept);
        let stop = passes.finish(looked_at, worst, || descent.objective());
        if worst < slack {
            if worst < options.tol && from_all {
                break Status::Solved;
            }
            active.clone_from(&all);
            descent.states.iter_mut().for_each(|state| state.active = k);
            slack = (0.5 * slack).max(options.tol);
            from_all = true;
        } else {
            from_all = false;
        }
        if let Some(status) = stop {
            break status;
        }
    };
    let (loss, violation) = descent.look();
    let primal = 0.5 * squared_norm(&descent.weights) + loss;
    let outcome = passes.outcome(status, primal, descent.objective(), violation);
    let width = rows.width();
    let weights = (0..k * width).map(|at| descent.weights[at % width * k + at / width]).collect();
    Solution { weights, dual: descent.alpha, outcome }
}

impl<R: LinearRows> Descent<'_, R> {
    /// ⟨wₘ, xᵢ⟩ + [m ≠ right] for the active alternatives of row i, in their order.
    #[inline]
    fn differentiate(&mut self, i: usize) {
        let k = self.choices.count;
        let Row { order, active } = &self.states[i];
        let right = self.choices.right[i];
        for (at, &m) in order[..*active].iter().enumerate() {
            self.gradient[at] = if m == right { 0.0 } else { 1.0 };
        }
        if *active == k && order.iter().enumerate().all(|(at, &m)| at as u32 == m) {
            let gradient = &mut self.gradient[..k];
            self.rows.visit(i, |j, x| {
                for (g, w) in gradient.iter_mut().zip(&self.weights[j * k..(j + 1) * k]) {
                    *g += x * w;
                }
            });
        } else {
            let gradient = &mut self.gradient[..*active];
            self.rows.visit(i, |j, x| {
                let weights = &self.weights[j * k..(j + 1) * k];
                for (g, &m) in gradient.iter_mut().zip(&order[..*active]) {
                    *g += x * weights[m as usize];
                }
            });
        }
    }

    /// Range of the gradient over the variables of row i that can move: the largest value, and the
    /// smallest of one that can still fall.
    fn range(&self, i: usize) -> (f64, f64) {
        let k = self.choices.count;
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        let Row { order, active } = &self.states[i];
        for (at, &m) in order[..*active].iter().enumerate() {
            let (g, alpha) = (self.gradient[at], self.alpha[i * k + m as usize]);
            high = high.max(g);
            let bound = if m == self.choices.right[i] { self.choices.costs[i] } else { 0.0 };
            if alpha < bound {
                low = low.min(g);
            }
        }
        (low, high)
    }

    /// Minimises over the variables of row i; whether it stays active.
    fn step(&mut self, i: usize, slack: f64, shrinking: bool, worst: &mut f64) -> bool {
        let (k, right, cost) = (self.choices.count, self.choices.right[i], self.choices.costs[i]);
        self.differentiate(i);
        let (low, high) = self.range(i);
        if shrinking {
            self.set_aside(i, low);
        }
        let active = self.states[i].active;
        if active <= 1 {
            return false;
        }
        let range = high - low;
        *worst = worst.max(range);
        if range <= NEGLIGIBLE {
            return !shrinking || range > slack;
        }
        let square = self.squares[i];
        self.scratch.clear();
        let order = &self.states[i].order[..active];
        for (at, &m) in order.iter().enumerate() {
            self.gradient[at] -= square * self.alpha[i * k + m as usize];
            let own = if m == right { square * cost } else { 0.0 };
            self.scratch.push(self.gradient[at] + own);
        }
        let level = level(&mut self.scratch, square * cost);
        self.scratch.clear();
        for (at, &m) in order.iter().enumerate() {
            let bound = if m == right { cost } else { 0.0 };
            let alpha = &mut self.alpha[i * k + m as usize];
            let reached = ((level - self.gradient[at]) / square).min(bound);
            let step = reached - *alpha;
            *alpha = reached;
            self.scratch.push(if step.abs() >= NEGLIGIBLE { step } else { 0.0 });
        }
        let steps = &self.scratch;
        let weights = &mut self.weights;
        self.rows.visit(i, |j, x| {
            let weights = &mut weights[j * k..(j + 1) * k];
            for (&m, step) in order.iter().zip(steps) {
                weights[m as usize] += x * step;
            }
        });
        true
    }

    /// Sets alternatives aside that sit at their bound with a gradient below `low`.
    fn set_aside(&mut self, i: usize, low: f64) {
        let k = self.choices.count;
        let state = &mut self.states[i];
        let mut at = 0;
        while at < state.active {
            let m = state.order[at];
            let bound = if m == self.choices.right[i] { self.choices.costs[i] } else { 0.0 };
            if self.alpha[i * k + m as usize] >= bound && self.gradient[at] < low {
                state.active -= 1;
                state.order.swap(at, state.active);
                self.gradient.swap(at, state.active);
            } else {
                at += 1;
            }
        }
    }

    /// Total loss and largest violation with all variables.
    fn look(&mut self) -> (f64, f64) {
        let (mut loss, mut worst) = (0.0, 0.0_f64);
        for i in 0..self.rows.rows() {
            if self.choices.costs[i] <= 0.0 {
                continue;
            }
            self.states[i].active = self.choices.count;
            self.differentiate(i);
            let (low, high) = self.range(i);
            worst = worst.max(high - low);
            let right = self.choices.right[i];
            let own = self.states[i].order.iter().position(|m| *m == right);
            let own = own.map_or(0.0, |at| self.gradient[at]);
            loss += self.choices.costs[i] * (high - own);
        }
        (loss, worst)
    }

    fn objective(&self) -> f64 {
        let k = self.choices.count;
        let mut sum = 0.0;
        for (i, alpha) in self.alpha.chunks_exact(k).enumerate() {
            sum += alpha.iter().sum::<f64>() - alpha[self.choices.right[i] as usize];
        }
        -0.5 * squared_norm(&self.weights) - sum
    }
}

/// The multiplier at which the variables, cut to their bounds, sum to 0; sorts `terms`.
fn level(terms: &mut [f64], budget: f64) -> f64 {
    terms.sort_unstable_by(|a, b| b.total_cmp(a));
    let mut sum = terms[0] - budget;
    let mut used = 1;
    while used < terms.len() && sum < used as f64 * terms[used] {
        sum += terms[used];
        used += 1;
    }
    sum / used as f64
}
