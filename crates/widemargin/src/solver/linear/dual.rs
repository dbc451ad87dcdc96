//! Dual coordinate descent for hinge, squared hinge and tube losses.
//!
//! With w = Σ βᵢxᵢ it minimises `½‖w‖² + Σ ½rᵢβᵢ² − tᵢβᵢ + ε|βᵢ|` within `lᵢ ≤ βᵢ ≤ uᵢ`, one βᵢ at a
//! time in random order, setting aside those that sit at a bound (or at 0) with room to spare; the
//! status is `Solved` only when a last pass over all rows, without steps, finds the tolerance kept.
//! Hsieh, Chang, Lin, Keerthi and Sundararajan (2008); Ho and Lin (2012) for tubes.

use super::problem::{Loss, Options, Passes, Problem, Solution, inner, primal, squared_norm};
use super::products::Products;
use crate::context::Context;
use crate::kernel::{LinearRows, fetch};
use crate::random::Generator;
use crate::solver::Status;

/// Gradients closer to 0 than this move nothing.
const NEGLIGIBLE: f64 = 1e-12;

/// How often a descent that believed to be done is sent back by the last pass.
const MOST_RETURNS: u32 = 20;

/// Rows ahead of the current one that are fetched.
const AHEAD: usize = 4;

/// One variable of the dual and its piece of the problem.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variable {
    pub(super) beta: f64,
    pub(super) lower: f64,
    pub(super) upper: f64,
    pub(super) target: f64,
    pub(super) ridge: f64,
    /// 1 / (‖x‖² + r), or 0 for a row of zeros without a ridge.
    pub(super) reach: f64,
}

impl Variable {
    /// +1 when it can only be positive, −1 when only negative.
    #[inline(always)]
    fn side(&self) -> f64 {
        if self.upper > 0.0 { 1.0 } else { -1.0 }
    }
}

/// How far a pass found the optimality conditions violated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Violation {
    /// Largest projected gradient, at least 0 once anything was seen.
    pub(super) highest: f64,
    /// Smallest projected gradient.
    pub(super) lowest: f64,
    /// Sum of absolute projected gradients.
    pub(super) sum: f64,
}

impl Violation {
    pub(super) const NONE: Self = Self { highest: 0.0, lowest: 0.0, sum: 0.0 };

    #[inline(always)]
    fn see(&mut self, gradient: f64) {
        self.highest = self.highest.max(gradient);
        self.lowest = self.lowest.min(gradient);
        self.sum += gradient.abs();
    }

    /// That of `variables` whose rows have these values ⟨w, x⟩.
    pub(super) fn of(variables: &[Variable], values: &[f64], epsilon: f64) -> Self {
        let mut violation = Self::NONE;
        for (v, value) in variables.iter().zip(values) {
            if v.lower < v.upper {
                let gradient = value + v.ridge * v.beta - v.target;
                violation.see(projected(v, gradient, epsilon));
            }
        }
        violation
    }

    pub(super) fn join(self, other: Self) -> Self {
        Self {
            highest: self.highest.max(other.highest),
            lowest: self.lowest.min(other.lowest),
            sum: self.sum + other.sum,
        }
    }

    /// The range of projected gradients.
    pub(super) fn range(&self) -> f64 {
        self.highest - self.lowest
    }
}

/// When a descent may stop: LIBLINEAR's rules, so that its tolerances mean the same.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal {
    /// The range of projected gradients.
    Range(f64),
    /// The sum of their sizes, relative to what the first pass from 0 meets.
    Share(f64),
    /// The sum of their sizes.
    Sum(f64),
}

impl Goal {
    /// The goal once the first pass has been made.
    pub(super) fn after_first(self, violation: &Violation) -> Self {
        match self {
            Self::Share(tol) => Self::Sum(tol * violation.sum),
            other => other,
        }
    }

    pub(super) fn is_met(self, violation: &Violation) -> bool {
        match self {
            Self::Range(tol) => violation.range() <= tol,
            Self::Share(_) => false,
            Self::Sum(tol) => violation.sum <= tol,
        }
    }
}

/// Gradients beyond which a variable at its bound is set aside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Band {
    pub(super) above: f64,
    pub(super) below: f64,
}

impl Band {
    pub(super) const OPEN: Self = Self { above: f64::INFINITY, below: f64::NEG_INFINITY };

    /// The band that the violations of the last pass suggest.
    pub(super) fn after(violation: &Violation, shrinking: bool) -> Self {
        if !shrinking {
            return Self::OPEN;
        }
        let size = |v: f64| if v > 0.0 { v } else { f64::INFINITY };
        Self { above: size(violation.highest), below: -size(-violation.lowest) }
    }
}

/// What a pass over a block of rows met, before it moved them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BlockReport {
    /// Largest projected gradient.
    pub highest: f64,
    /// Smallest projected gradient.
    pub lowest: f64,
    /// Sum of absolute projected gradients.
    pub sum: f64,
    /// Steps made.
    pub steps: u64,
}

impl BlockReport {
    fn see(&mut self, violation: &Violation) {
        (self.highest, self.lowest, self.sum) =
            (violation.highest, violation.lowest, violation.sum);
    }

    /// That of two blocks together.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self {
            highest: self.highest.max(other.highest),
            lowest: self.lowest.min(other.lowest),
            sum: self.sum + other.sum,
            steps: self.steps + other.steps,
        }
    }

    /// The range of projected gradients.
    pub fn range(&self) -> f64 {
        self.highest - self.lowest
    }
}

/// The dual of a problem, to be descended in one go or block by block.
#[derive(Clone, Debug)]
pub struct Descent {
    pub(super) variables: Vec<Variable>,
    pub(super) epsilon: f64,
    loss: Loss,
}

impl Descent {
    /// The dual of `problem` over `rows`, from β = `start` (cut to its bounds) or 0.
    pub fn new<R: LinearRows>(rows: &R, problem: &Problem<'_>, start: Option<&[f64]>) -> Self {
        let loss = problem.loss;
        let variable = |i: usize| {
            let (target, cost) = (problem.targets[i], problem.costs[i]);
            let (bound, ridge) = match (loss.is_squared(), cost > 0.0) {
                (_, false) => (0.0, 0.0),
                (true, true) => (f64::INFINITY, 0.5 / cost),
                (false, true) => (cost, 0.0),
            };
            let (lower, upper) = match loss {
                Loss::Tube(_) | Loss::SquaredTube(_) => (-bound, bound),
                _ if target > 0.0 => (0.0, bound),
                _ => (-bound, 0.0),
            };
            let beta = start.map_or(0.0, |s| s[i].clamp(lower, upper));
            let curvature = rows.squared_norm(i) + ridge;
            let reach = if curvature > 0.0 { 1.0 / curvature } else { 0.0 };
            let target = target - problem.shift;
            Variable { beta, lower, upper, target, ridge, reach }
        };
        let variables = (0..rows.rows()).map(variable).collect();
        Self { variables, epsilon: loss.tube(), loss }
    }

    /// Σ βᵢxᵢ
    pub fn weights<R: LinearRows>(&self, rows: &R) -> Vec<f64> {
        let mut weights = vec![0.0; rows.width()];
        self.add_to(rows, &mut weights);
        weights
    }

    /// Adds Σ βᵢxᵢ to weights.
    pub fn add_to<R: LinearRows>(&self, rows: &R, weights: &mut [f64]) {
        for (i, variable) in self.variables.iter().enumerate() {
            if variable.beta != 0.0 {
                rows.add(i, variable.beta, weights);
            }
        }
    }

    /// β of every row.
    pub fn dual(&self) -> Vec<f64> {
        self.variables.iter().map(|variable| variable.beta).collect()
    }

    /// The variables that can move at all.
    pub(super) fn movable(&self) -> Vec<u32> {
        let moves = |i: &u32| {
            let variable = &self.variables[*i as usize];
            variable.lower < variable.upper
        };
        (0..self.variables.len() as u32).filter(moves).collect()
    }

    /// What the variables add to the dual objective, beside ½‖w‖².
    pub fn separable_cost(&self) -> f64 {
        let cost = |v: &Variable| {
            (0.5 * v.ridge * v.beta - v.target) * v.beta + self.epsilon * v.beta.abs()
        };
        self.variables.iter().map(cost).sum()
    }

    /// Dual objective, as a maximum.
    pub(super) fn objective(&self, weights: &[f64]) -> f64 {
        -0.5 * squared_norm(weights) - self.separable_cost()
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
        let mut active = self.movable();
        let mut band = Band::OPEN;
        let mut report = BlockReport::default();
        for pass in 0..passes {
            generator.shuffle(&mut active);
            report.steps += active.len() as u64;
            let violation = self.sweep(rows, &mut active, weights, band);
            if pass == 0 {
                report.see(&violation);
            }
            band = Band::after(&violation, true);
        }
        report
    }

    /// How far the conditions are violated where the rows have these values ⟨w, x⟩.
    pub fn examine_block(&self, values: &[f64]) -> BlockReport {
        let mut report = BlockReport::default();
        report.see(&self.look(values));
        report
    }

    /// One pass over `active`, which loses the variables that are set aside.
    #[inline]
    pub(super) fn sweep<R: LinearRows>(
        &mut self,
        rows: &R,
        active: &mut Vec<u32>,
        weights: &mut [f64],
        band: Band,
    ) -> Violation {
        let (kept, violation) =
            sweep(rows, 0, &mut self.variables, active, weights, band, self.loss);
        active.truncate(kept);
        violation
    }

    /// The violation where all rows have these values ⟨w, x⟩.
    pub(super) fn look(&self, values: &[f64]) -> Violation {
        Violation::of(&self.variables, values, self.epsilon)
    }
}

/// The part of the gradient that a variable can still follow.
fn projected(v: &Variable, gradient: f64, epsilon: f64) -> f64 {
    if v.lower == 0.0 || v.upper == 0.0 {
        let slope = v.side() * gradient;
        return if v.beta == 0.0 {
            slope.min(0.0)
        } else if v.beta <= v.lower || v.beta >= v.upper {
            slope.max(0.0)
        } else {
            slope
        };
    }
    let (up, down) = (gradient + epsilon, gradient - epsilon);
    if v.beta == 0.0 {
        up.min(0.0) + down.max(0.0)
    } else if v.beta >= v.upper {
        up.max(0.0)
    } else if v.beta <= v.lower {
        down.min(0.0)
    } else if v.beta > 0.0 {
        up
    } else {
        down
    }
}

/// A pass over variables with or without a tube, as the loss says; see [`sweep_box`].
pub(super) fn sweep<R: LinearRows>(
    rows: &R,
    first: usize,
    variables: &mut [Variable],
    active: &mut [u32],
    weights: &mut [f64],
    band: Band,
    loss: Loss,
) -> (usize, Violation) {
    match loss {
        Loss::Tube(epsilon) | Loss::SquaredTube(epsilon) => {
            sweep_tube(rows, first, variables, active, weights, band, epsilon)
        }
        _ => sweep_box(rows, first, variables, active, weights, band),
    }
}

/// A pass over variables without a tube; row `first` + i belongs to variable i. The first of
/// `active`, as many as it says, stay active.
#[inline]
fn sweep_box<R: LinearRows>(
    rows: &R,
    first: usize,
    variables: &mut [Variable],
    active: &mut [u32],
    weights: &mut [f64],
    band: Band,
) -> (usize, Violation) {
    let mut violation = Violation::NONE;
    let mut kept = 0;
    for s in 0..active.len() {
        if let Some(&next) = active.get(s + AHEAD) {
            rows.prefetch(first + next as usize);
            fetch(variables, next as usize);
        }
        let i = active[s];
        let row = first + i as usize;
        let v = &mut variables[i as usize];
        let gradient = rows.dot(row, weights) + v.ridge * v.beta - v.target;
        let side = v.side();
        // Seen from its side, every variable begins at 0 and ends at its bound.
        let slope = side * gradient;
        let followed = if v.beta == 0.0 {
            if slope > band.above {
                continue;
            }
            slope.min(0.0)
        } else if v.beta <= v.lower || v.beta >= v.upper {
            if slope < band.below {
                continue;
            }
            slope.max(0.0)
        } else {
            slope
        };
        active[kept] = i;
        kept += 1;
        violation.see(followed);
        if followed.abs() > NEGLIGIBLE {
            let target = if v.reach > 0.0 {
                (v.beta - gradient * v.reach).clamp(v.lower, v.upper)
            } else {
                edge(v, gradient)
            };
            let step = target - v.beta;
            v.beta = target;
            rows.add(row, step, weights);
        }
    }
    (kept, violation)
}

/// A pass over variables with a tube; otherwise as [`sweep_box`].
#[inline]
fn sweep_tube<R: LinearRows>(
    rows: &R,
    first: usize,
    variables: &mut [Variable],
    active: &mut [u32],
    weights: &mut [f64],
    band: Band,
    epsilon: f64,
) -> (usize, Violation) {
    let mut violation = Violation::NONE;
    let mut kept = 0;
    for s in 0..active.len() {
        if let Some(&next) = active.get(s + AHEAD) {
            rows.prefetch(first + next as usize);
            fetch(variables, next as usize);
        }
        let i = active[s];
        let row = first + i as usize;
        let v = &mut variables[i as usize];
        let gradient = rows.dot(row, weights) + v.ridge * v.beta - v.target;
        let (up, down) = (gradient + epsilon, gradient - epsilon);
        let settled = if v.beta == 0.0 {
            up > band.above && down < band.below
        } else if v.beta >= v.upper {
            up < band.below
        } else {
            v.beta <= v.lower && down > band.above
        };
        if settled {
            continue;
        }
        active[kept] = i;
        kept += 1;
        violation.see(projected(v, gradient, epsilon));
        let target = if v.reach == 0.0 {
            let idle = up >= 0.0 && down <= 0.0;
            if idle { 0.0 } else { edge(v, gradient) }
        } else if up * v.reach < v.beta {
            v.beta - up * v.reach
        } else if down * v.reach > v.beta {
            v.beta - down * v.reach
        } else {
            0.0
        };
        let target = target.clamp(v.lower, v.upper);
        let step = target - v.beta;
        if step.abs() > NEGLIGIBLE {
            v.beta = target;
            rows.add(row, step, weights);
        }
    }
    (kept, violation)
}

/// Where a row of zeros goes: as far as its linear term pulls, if that is not endless.
fn edge(v: &Variable, gradient: f64) -> f64 {
    let bound = if gradient > 0.0 { v.lower } else { v.upper };
    if bound.is_finite() { bound } else { v.beta }
}

/// Solves the dual of a hinge, squared hinge or tube problem, from β = `start` or 0.
///
/// The tolerance bounds the range of projected gradients; for tubes the sum of their sizes relative
/// to that sum in the first pass, or at 0 where there is a start.
pub fn solve<R: LinearRows>(
    rows: &R,
    problem: &Problem<'_>,
    options: &Options,
    start: Option<&[f64]>,
    context: &Context,
) -> Solution {
    let mut descent = Descent::new(rows, problem, start);
    let mut weights = match start {
        Some(_) => descent.weights(rows),
        None => vec![0.0; rows.width()],
    };
    let mut generator = Generator::new(context.seed());
    let mut goal = goal(problem, options, start.is_some());
    let mut passes = Passes::new(options, context);
    let all = descent.movable();
    let mut active = all.clone();
    let mut band = Band::OPEN;
    let mut returns = 0;
    let products = Products::new(rows, context);
    let mut values = vec![0.0; rows.rows()];
    let status = loop {
        let whole = active.len() == all.len();
        generator.shuffle(&mut active);
        let looked_at = active.len();
        let violation = descent.sweep(rows, &mut active, &mut weights, band);
        let stop = passes.finish(looked_at, violation.range(), || descent.objective(&weights));
        goal = goal.after_first(&violation);
        if goal.is_met(&violation) {
            if !whole {
                active.clone_from(&all);
                band = Band::OPEN;
            } else {
                products.write_values(&weights, &mut values);
                returns += 1;
                if goal.is_met(&descent.look(&values)) {
                    break Status::Solved;
                } else if returns > MOST_RETURNS {
                    break Status::AlmostSolved;
                }
            }
        } else {
            band = Band::after(&violation, options.shrinking);
        }
        if let Some(status) = stop {
            products.write_values(&weights, &mut values);
            break status;
        }
    };
    let violation = descent.look(&values);
    let dual = descent.objective(&weights);
    let primal = primal(problem, &weights, &values);
    let outcome = passes.outcome(status, primal, dual, violation.range());
    Solution { weights, dual: descent.dual(), outcome }
}

/// When a descent of `problem`, from a start or from 0, may stop.
pub(super) fn goal(problem: &Problem<'_>, options: &Options, started: bool) -> Goal {
    match problem.loss {
        Loss::Tube(_) | Loss::SquaredTube(_) if !started => Goal::Share(options.tol),
        Loss::Tube(epsilon) | Loss::SquaredTube(epsilon) => {
            let rows = problem.targets.iter().zip(problem.costs);
            let at_zero = rows.map(|(t, c)| {
                if *c > 0.0 { ((t - problem.shift).abs() - epsilon).max(0.0) } else { 0.0 }
            });
            Goal::Sum(options.tol * at_zero.sum::<f64>())
        }
        _ => Goal::Range(options.tol),
    }
}

/// The slope and curvature of the dual along a joint step from β to β + δ, w to w + Δ.
pub(super) fn along(
    weights: &[f64],
    change: &[f64],
    pieces: impl Iterator<Item = (Variable, f64)>,
    epsilon: f64,
) -> (f64, f64) {
    let (mut slope, mut curvature) = (inner(weights, change), squared_norm(change));
    for (v, step) in pieces {
        slope +=
            step * (v.ridge * v.beta - v.target) + epsilon * ((v.beta + step).abs() - v.beta.abs());
        curvature += v.ridge * step * step;
    }
    (slope, curvature)
}
