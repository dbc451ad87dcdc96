//! Weights that put pairs of rows in order: `min ½‖w‖² + Σ C ℓ(1 − ⟨w, xᵢ − xⱼ⟩)` over the pairs (i, j) of
//! which i belongs before j, with ℓ(ξ) = ξ₊ or ξ₊² (Joachims, 2002; Chapelle and Keerthi, 2010).
//!
//! Newton's method with conjugate gradients: a product with the Hessian is a pass over the table and one
//! over [`OrderedPairs`], whatever the number of pairs (Lee and Lin, 2014). The hinge loss is approached by
//! the smooth loss (ξ₊² − (ξ − μ)₊²) / 2μ with μ → 0. Its slopes are feasible dual variables of the hinge
//! loss itself, so that every step has a duality gap of the problem that was asked for; for the squared
//! hinge the gap is ½‖∇‖².

mod pairs;

pub(crate) use pairs::OrderedPairs;
use pairs::ViolatedPairs;

use super::problem::{Options, Passes, Solution, add_scaled, inner, squared_norm};
use super::products::Products;
use super::rows::LinearRows;
use super::table::{Table, WeightedRows};
use crate::context::Context;
use crate::numeric::parallel::Threads;
use crate::solver::Status;

/// μ of the first smooth loss: half of the margin that a pair should have.
const FIRST_SMOOTHING: f64 = 0.5;

/// Factor on μ once what is left of the gap is due to it.
const SMOOTHING_FACTOR: f64 = 0.25;

/// Below this μ the difference of the two squares has lost half of its digits.
const LEAST_SMOOTHING: f64 = 1e-8;

/// ½‖∇‖² is what the gradient leaves of the gap; below this share of it μ is the cause of the rest.
const CONVERGED: f64 = 0.1;

/// Conjugate-gradient steps of a Newton step, and the residual they reach, relative to the gradient.
const MOST_CG_STEPS: usize = 1000;
const RESIDUAL: f64 = 0.1;

/// Points tried in the search along a step, and the share of the slope that may be left.
const MOST_LINE_STEPS: usize = 20;
const SLOPE_LEFT: f64 = 0.1;

/// Newton steps without a better gap after which rounding is taken to be the reason.
const MOST_STALLS: usize = 20;

/// Finds the weights for `pairs` of the rows, with the squared hinge if `squared`, down to the relative
/// duality gap of `options`.
pub(crate) fn solve<R: LinearRows>(
    rows: &R,
    pairs: &OrderedPairs,
    squared: bool,
    options: &Options,
    context: &Context,
) -> Solution {
    let products = Products::new(rows, options.alone, context);
    let threads = Threads::of_current_pool(context.is_parallel());
    let newton = Newton { table: &products, pairs, threads, context };
    newton.descend(squared, options)
}

/// ℓ(ξ) = factor · (ξ₊² − (ξ − knee)₊²)
#[derive(Clone, Copy)]
struct SmoothLoss {
    factor: f64,
    knee: Option<f64>,
}

impl SmoothLoss {
    const SQUARED: Self = Self { factor: 1.0, knee: None };

    fn hinge(smoothing: f64) -> Self {
        Self { factor: 0.5 / smoothing, knee: Some(smoothing) }
    }
}

/// The losses of all pairs at some values.
struct Losses {
    smooth: f64,
    hinge: f64,
    /// Sum of the dual variables of the hinge loss.
    duals: f64,
    /// Minus the derivative of the smooth loss by the value of each row.
    pulls: Vec<f64>,
}

/// What is known at a point.
struct Point {
    gradient: Vec<f64>,
    primal: f64,
    dual: f64,
}

/// The best certificate so far.
struct Certificate {
    weights: Vec<f64>,
    primal: f64,
    dual: f64,
    stalls: usize,
}

impl Certificate {
    fn gap(&self) -> f64 {
        self.primal - self.dual
    }

    fn update(&mut self, weights: &[f64], point: &Point) {
        let before = self.gap();
        if point.primal < self.primal {
            self.primal = point.primal;
            self.weights.copy_from_slice(weights);
        }
        self.dual = self.dual.max(point.dual);
        self.stalls = if self.gap() < before { 0 } else { self.stalls + 1 };
    }
}

struct Newton<'a, T> {
    table: &'a T,
    pairs: &'a OrderedPairs,
    threads: Threads<'a>,
    context: &'a Context,
}

impl<T: Table> Newton<'_, T> {
    fn descend(&self, squared: bool, options: &Options) -> Solution {
        let mut loss = match squared {
            true => SmoothLoss::SQUARED,
            false => SmoothLoss::hinge(FIRST_SMOOTHING),
        };
        let width = self.table.width();
        let (mut weights, mut values) = (vec![0.0; width], vec![0.0; self.table.rows()]);
        let mut passes = Passes::new(options, self.context);
        let (mut best, mut steps) = (
            Certificate {
                weights: weights.clone(),
                primal: f64::INFINITY,
                dual: f64::NEG_INFINITY,
                stalls: 0,
            },
            0,
        );
        let (status, violation) = loop {
            let point = self.at(loss, &weights, &values);
            best.update(&weights, &point);
            let norm = squared_norm(&point.gradient);
            if best.gap() <= options.gap * best.primal.abs() {
                break (Status::Solved, norm.sqrt());
            }
            if let Some(status) = passes.finish(steps, norm.sqrt(), || point.primal) {
                break (status, norm.sqrt());
            }
            let smoothing =
                loss.knee.filter(|_| 0.5 * norm <= CONVERGED * (point.primal - point.dual));
            if best.stalls > MOST_STALLS || smoothing.is_some_and(|knee| knee <= LEAST_SMOOTHING) {
                let near = best.gap() <= 10.0 * options.gap * best.primal.abs();
                let status = if near { Status::AlmostSolved } else { Status::NumericalTrouble };
                break (status, norm.sqrt());
            }
            if let Some(knee) = smoothing {
                (loss, steps) = (SmoothLoss::hinge(SMOOTHING_FACTOR * knee), 0);
                continue;
            }
            let step;
            (step, steps) = match self.newton_step(loss, &values, &point.gradient) {
                Ok(found) => found,
                Err(status) => break (status, norm.sqrt()),
            };
            let change = self.table.values(&step);
            let slope = inner(&point.gradient, &step);
            let length = self.line_search(loss, &values, &change, [&weights, &step], slope);
            add_scaled(&mut weights, length, &step);
            add_scaled(&mut values, length, &change);
        };
        let outcome = passes.outcome(status, best.primal, best.dual, violation);
        Solution { weights: best.weights, dual: Vec::new(), outcome }
    }

    /// Gradient of the smooth problem, and objectives of the problem itself.
    fn at(&self, loss: SmoothLoss, weights: &[f64], values: &[f64]) -> Point {
        let losses = self.losses(loss, values);
        let pull = self.table.transposed(&WeightedRows::new(&losses.pulls));
        let gradient: Vec<f64> = weights.iter().zip(&pull).map(|(w, p)| w - p).collect();
        let penalty = 0.5 * squared_norm(weights);
        let (primal, dual) = match loss.knee {
            // With αᵢⱼ = 2Cξᵢⱼ the two objectives differ by ½‖w − Σ αᵢⱼ(xᵢ − xⱼ)‖².
            None => {
                let primal = penalty + losses.smooth;
                (primal, primal - 0.5 * squared_norm(&gradient))
            }
            Some(_) => (penalty + losses.hinge, losses.duals - 0.5 * squared_norm(&pull)),
        };
        Point { gradient, primal, dual }
    }

    fn losses(&self, loss: SmoothLoss, values: &[f64]) -> Losses {
        let outer = self.pairs.sums(values, 1.0, self.threads);
        let (twice, hinge, mut pulls) = (2.0 * loss.factor, outer.hinge, outer.pulls);
        let Some(knee) = loss.knee else {
            pulls.iter_mut().for_each(|pull| *pull *= twice);
            return Losses { smooth: loss.factor * outer.squares, hinge, duals: 0.0, pulls };
        };
        let linear = self.pairs.sums(values, 1.0 - knee, self.threads);
        for (pull, other) in pulls.iter_mut().zip(&linear.pulls) {
            *pull = twice * (*pull - other);
        }
        Losses {
            smooth: loss.factor * (outer.squares - linear.squares),
            hinge,
            duals: twice * (outer.hinge - linear.hinge),
            pulls,
        }
    }

    /// The minimum of the quadratic model by conjugate gradients, and the steps it took.
    fn newton_step(
        &self,
        loss: SmoothLoss,
        values: &[f64],
        gradient: &[f64],
    ) -> Result<(Vec<f64>, usize), Status> {
        let violated = |margin| self.pairs.violated(values, margin, self.threads);
        let curved = [Some(violated(1.0)), loss.knee.map(|knee| violated(1.0 - knee))];
        let mut step = vec![0.0; gradient.len()];
        let mut residual: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let mut direction = residual.clone();
        let mut size = squared_norm(&residual);
        let enough = RESIDUAL * RESIDUAL * size;
        for steps in 1..=MOST_CG_STEPS {
            let image = self.hessian_product(loss, &curved, &direction);
            if let Some(status) = self.context.stop_request() {
                return Err(status);
            }
            let curvature = inner(&direction, &image);
            if curvature.is_nan() || curvature <= 0.0 {
                return Ok((step, steps));
            }
            let length = size / curvature;
            add_scaled(&mut step, length, &direction);
            add_scaled(&mut residual, -length, &image);
            let next = squared_norm(&residual);
            if next <= enough {
                return Ok((step, steps));
            }
            let keep = next / size;
            size = next;
            for (d, r) in direction.iter_mut().zip(&residual) {
                *d = r + keep * *d;
            }
        }
        Ok((step, MOST_CG_STEPS))
    }

    /// d + XᵀLXd, where L is the second derivative of the smooth loss by the values.
    fn hessian_product(
        &self,
        loss: SmoothLoss,
        curved: &[Option<ViolatedPairs>; 2],
        direction: &[f64],
    ) -> Vec<f64> {
        let change = self.table.values(direction);
        let mut product = vec![0.0; change.len()];
        for (pairs, sign) in curved.iter().zip([2.0, -2.0]) {
            if let Some(pairs) = pairs {
                let factor = sign * loss.factor;
                self.pairs.add_product(pairs, &change, factor, &mut product, self.threads);
            }
        }
        let mut image = self.table.transposed(&WeightedRows::new(&product));
        add_scaled(&mut image, 1.0, direction);
        image
    }

    /// How far along a step the smooth objective falls; the table is not read.
    fn line_search(
        &self,
        loss: SmoothLoss,
        values: &[f64],
        change: &[f64],
        [weights, step]: [&[f64]; 2],
        start: f64,
    ) -> f64 {
        let (product, square) = (inner(weights, step), squared_norm(step));
        let mut tried = vec![0.0; values.len()];
        let mut slope_at = |length: f64| {
            for (tried, (value, change)) in tried.iter_mut().zip(values.iter().zip(change)) {
                *tried = value + length * change;
            }
            let pulls = self.losses(loss, &tried).pulls;
            product + length * square - inner(change, &pulls)
        };
        let (mut low, mut high) = ((0.0, start), None);
        let mut length = 1.0;
        for _ in 0..MOST_LINE_STEPS {
            let slope = slope_at(length);
            if slope.is_nan() || slope.abs() <= SLOPE_LEFT * start.abs() {
                break;
            }
            if slope < 0.0 {
                low = (length, slope);
            } else {
                high = Some((length, slope));
            }
            length = match high {
                None => 2.0 * length,
                Some((end, last)) => {
                    let share = (-low.1 / (last - low.1)).clamp(0.1, 0.9);
                    low.0 + share * (end - low.0)
                }
            };
        }
        length
    }
}
