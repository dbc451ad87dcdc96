//! Problems, options and solutions of the linear solvers.
//!
//! The problem is `min ½‖w‖² + Σ Cᵢ ℓ(⟨w, xᵢ⟩, tᵢ)` (‖w‖₁ in the place of ½‖w‖² for sparse weights);
//! for the losses of two sides tᵢ is ±1 (or between them where the side is uncertain), for tubes it is any number.

use std::ops::Range;

use crate::context::{Context, Event};
use crate::solver::{Outcome, Status};

/// What a row costs when its value ⟨w, x⟩ is z.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RowLoss {
    /// max(0, 1 − tz)
    Hinge,
    /// max(0, 1 − tz)²
    SquaredHinge,
    /// ½(1 + t) max(0, 1 − z)² + ½(1 − t) max(0, 1 + z)²: that of a side which is +1 with probability ½(1 + t)
    ExpectedSquaredHinge,
    /// log(1 + exp(−tz))
    Logistic,
    /// max(0, |z − t| − ε)
    Tube(f64),
    /// max(0, |z − t| − ε)²
    SquaredTube(f64),
}

impl RowLoss {
    /// ℓ(z, t)
    #[inline]
    pub(crate) fn value(self, z: f64, target: f64) -> f64 {
        match self {
            Self::Hinge => (1.0 - target * z).max(0.0),
            Self::SquaredHinge => (1.0 - target * z).max(0.0).powi(2),
            Self::ExpectedSquaredHinge => {
                let (above, below) = ((1.0 - z).max(0.0), (1.0 + z).max(0.0));
                0.5 * ((1.0 + target) * above * above + (1.0 - target) * below * below)
            }
            Self::Logistic => {
                let margin = target * z;
                if margin >= 0.0 { (-margin).exp().ln_1p() } else { margin.exp().ln_1p() - margin }
            }
            Self::Tube(epsilon) => ((z - target).abs() - epsilon).max(0.0),
            Self::SquaredTube(epsilon) => ((z - target).abs() - epsilon).max(0.0).powi(2),
        }
    }

    /// ∂ℓ/∂z and ∂²ℓ/∂z² (a generalised one where there is a kink).
    #[inline]
    pub(crate) fn derivatives(self, z: f64, target: f64) -> (f64, f64) {
        match self {
            Self::Hinge => (if target * z < 1.0 { -target } else { 0.0 }, 0.0),
            Self::SquaredHinge => {
                let short = (1.0 - target * z).max(0.0);
                (-2.0 * target * short, if short > 0.0 { 2.0 } else { 0.0 })
            }
            Self::ExpectedSquaredHinge => {
                let (above, below) = ((1.0 - z).max(0.0), (1.0 + z).max(0.0));
                let mut second = if above > 0.0 { 1.0 + target } else { 0.0 };
                second += if below > 0.0 { 1.0 - target } else { 0.0 };
                ((1.0 - target) * below - (1.0 + target) * above, second)
            }
            Self::Logistic => {
                let other = 1.0 / (1.0 + (target * z).exp());
                (-target * other, other * (1.0 - other))
            }
            Self::Tube(epsilon) => {
                let excess = z - target;
                (if excess.abs() > epsilon { excess.signum() } else { 0.0 }, 0.0)
            }
            Self::SquaredTube(epsilon) => {
                let excess = z - target;
                let beyond = excess.abs() - epsilon;
                if beyond > 0.0 { (2.0 * beyond * excess.signum(), 2.0) } else { (0.0, 0.0) }
            }
        }
    }

    /// Whether it has a gradient everywhere.
    pub(crate) fn is_smooth(self) -> bool {
        matches!(
            self,
            Self::SquaredHinge | Self::ExpectedSquaredHinge | Self::Logistic | Self::SquaredTube(_)
        )
    }

    /// Whether it is a square.
    pub(crate) fn is_squared(self) -> bool {
        matches!(self, Self::SquaredHinge | Self::ExpectedSquaredHinge | Self::SquaredTube(_))
    }

    /// Half the width of the tube, 0 for losses of two sides.
    pub(crate) fn tube(self) -> f64 {
        match self {
            Self::Tube(epsilon) | Self::SquaredTube(epsilon) => epsilon,
            _ => 0.0,
        }
    }
}

/// A problem over rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Problem<'a> {
    /// What a row costs.
    pub loss: RowLoss,
    /// tᵢ of every row.
    pub targets: &'a [f64],
    /// Cᵢ of every row; a row of cost 0 is not there.
    pub costs: &'a [f64],
    /// A constant added to every ⟨w, xᵢ⟩, without a penalty; 0 for all but hinge and tube losses.
    pub shift: f64,
}

impl Problem<'_> {
    /// That of some rows alone.
    pub(crate) fn part(&self, rows: Range<usize>) -> Self {
        Self { targets: &self.targets[rows.clone()], costs: &self.costs[rows], ..*self }
    }

    /// Σ Cᵢ ℓ(zᵢ, tᵢ)
    pub(crate) fn total_loss(&self, values: impl Iterator<Item = f64>) -> f64 {
        let rows = values.zip(self.targets).zip(self.costs);
        let loss = |z: f64, target| self.loss.value(z + self.shift, target);
        rows.map(|((z, &t), &c)| if c > 0.0 { c * loss(z, t) } else { 0.0 }).sum()
    }
}

/// The relative duality gap that is asked for unless the user sets one.
pub(crate) const DEFAULT_GAP: f64 = 1e-3;

/// Passes allowed unless the user sets a limit.
pub(crate) const MOST_PASSES: u64 = 100_000;

/// Options of the solver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Options {
    /// Where to stop; what it bounds is LIBLINEAR's measure for each algorithm.
    pub tol: f64,
    /// The duality gap, relative to the objective, that has to be reached as well.
    pub gap: f64,
    /// Limit on passes over the rows (Newton: steps).
    pub max_passes: u64,
    /// Whether variables that stay at their bound become inactive.
    pub shrinking: bool,
    /// Whether the problem has the threads for itself; one of many over the same rows has one thread.
    pub alone: bool,
    /// Whether a coarse solution may be found in single precision.
    pub singles: bool,
}

impl Default for Options {
    fn default() -> Self {
        let (tol, gap, max_passes) = (0.1, DEFAULT_GAP, MOST_PASSES);
        Self { tol, gap, max_passes, shrinking: true, alone: true, singles: true }
    }
}

/// Weights and what proves them.
#[derive(Clone, Debug)]
pub(crate) struct Solution {
    /// w, the bias last.
    pub weights: Vec<f64>,
    /// Dual variable of every row, with the sign of its influence on w; empty for primal solvers.
    pub dual: Vec<f64>,
    /// What was reached.
    pub outcome: Outcome,
}

impl Solution {
    /// The solution with the effort of the solver that went before it added to its own.
    pub(super) fn after(mut self, before: &Outcome) -> Self {
        self.outcome.iterations += before.iterations;
        self.outcome.blocks += before.blocks;
        self
    }
}

/// Progress of a solver: how many passes it has made and whether it has to stop.
pub(super) struct Passes<'a> {
    context: &'a Context,
    limit: u64,
    pub(super) done: u64,
    pub(super) steps: u64,
}

impl<'a> Passes<'a> {
    pub(super) fn new(options: &Options, context: &'a Context) -> Self {
        Self { context, limit: options.max_passes, done: 0, steps: 0 }
    }

    /// What it is run in.
    pub(super) fn context(&self) -> &'a Context {
        self.context
    }

    /// Counts and reports a pass; returns why to stop, if there is a reason.
    pub(super) fn finish(
        &mut self,
        steps: usize,
        violation: f64,
        objective: impl FnOnce() -> f64,
    ) -> Option<Status> {
        self.done += 1;
        self.steps += steps as u64;
        if !violation.is_finite() {
            return Some(Status::NumericalTrouble);
        }
        if self.context.is_observed() {
            self.context.report(&Event::Iteration {
                iteration: self.done as usize,
                violation,
                objective: objective(),
                active: steps,
            });
        }
        self.stop()
    }

    /// Why to stop now, if one has to.
    pub(super) fn stop(&self) -> Option<Status> {
        self.context
            .stop_request()
            .or_else(|| (self.done >= self.limit).then_some(Status::IterationLimit))
    }

    pub(super) fn outcome(
        &self,
        status: Status,
        primal: f64,
        dual: f64,
        violation: f64,
    ) -> Outcome {
        Outcome {
            status,
            primal,
            dual,
            violation,
            iterations: self.steps,
            blocks: self.done,
            kernel_rows: 0,
        }
    }
}

/// sup over z of −βz − Cℓ(z, t): what β adds to the dual, as a minimum.
pub(crate) fn conjugate(loss: RowLoss, beta: f64, target: f64, cost: f64) -> f64 {
    if cost <= 0.0 {
        return 0.0;
    }
    match loss {
        RowLoss::Logistic => {
            let share = (beta * target / cost).clamp(0.0, 1.0);
            let part = |p: f64| if p > 0.0 { p * p.ln() } else { 0.0 };
            cost * (part(share) + part(1.0 - share))
        }
        _ => {
            let ridge = if loss.is_squared() { 0.5 / cost } else { 0.0 };
            (0.5 * ridge * beta - target) * beta + loss.tube() * beta.abs()
        }
    }
}

/// ½‖w‖² + Σ Cᵢ ℓ(⟨w, xᵢ⟩, tᵢ) at the values ⟨w, xᵢ⟩.
pub(super) fn primal(problem: &Problem<'_>, weights: &[f64], values: &[f64]) -> f64 {
    0.5 * squared_norm(weights) + problem.total_loss(values.iter().copied())
}

/// ‖v‖²
pub(super) fn squared_norm(vector: &[f64]) -> f64 {
    inner(vector, vector)
}

/// Sums that are added up as one vector.
const LANES: usize = 8;

/// ⟨a, b⟩
pub(super) fn inner(a: &[f64], b: &[f64]) -> f64 {
    let ((a, last_a), (b, last_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let last: f64 = last_a.iter().zip(last_b).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + last
}

/// a ← a + factor · b
pub(super) fn add_scaled(a: &mut [f64], factor: f64, b: &[f64]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += factor * b);
}
