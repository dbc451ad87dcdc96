//! The leave-one-out machine: a linear program over coefficients of the rows (Weston and Herbrich 2000).
//!
//! ```text
//! minimise over α ≥ 0, ξ ≥ 0   Σ wᵢ ξᵢ + r Σ αᵢ Qᵢᵢ
//! subject to                   Σⱼ Qᵢⱼ αⱼ − θ αᵢ Qᵢᵢ ≥ 1 − ξᵢ
//! ```
//!
//! With θ = 1 and r = 0 the left side is the value of row i when it is left out, and Σξ bounds the number of
//! leave-one-out errors (Jaakkola and Haussler 1999). With P the matrix of the left side, the dual is
//! max Σu over 0 ≤ u ≤ w, Pᵀu ≤ r diag(Q). Mehrotra's predictor and corrector (1992) step in both; every step
//! factors P D Pᵀ plus a diagonal matrix.

use super::{Fitted, decision};
use crate::context::Context;
use crate::numeric::algebra::{Cholesky, dot};
use crate::outcome::Status;

/// Most steps; some twenty are usual.
const MAX_STEPS: usize = 100;

/// Relative gap and infeasibility that end them.
const TOLERANCE: f64 = 1e-9;

/// Share of the way to the boundary that a step goes.
const TO_BOUNDARY: f64 = 0.995;

/// The program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaveOneOut<'a> {
    /// Q, n × n.
    pub q: &'a [f64],
    /// Weight w of every row.
    pub weights: &'a [f64],
    /// Price r of the coefficients.
    pub price: f64,
    /// Share θ of its own value that a row has to do without.
    pub left_out: f64,
}

/// Solves the program; the best point so far when the context asks to stop.
pub(crate) fn leave_one_out(problem: &LeaveOneOut<'_>, context: &Context) -> Fitted {
    let LeaveOneOut { q, weights, price, left_out } = *problem;
    let n = weights.len();
    // Entries of about 1, whatever C is.
    let scale = (0..n).map(|i| q[i * n + i]).sum::<f64>() / n.max(1) as f64;
    let scale = if scale > 0.0 { scale } else { 1.0 };
    let mut p: Vec<f64> = q.iter().map(|value| value / scale).collect();
    (0..n).for_each(|i| p[i * n + i] *= 1.0 - left_out);
    let costs: Vec<f64> = (0..n).map(|i| price * q[i * n + i] / scale).collect();
    let mut state = State::new(&p, &costs, weights, context);
    let mut status = Status::IterationLimit;
    let mut steps = 0;
    while steps < MAX_STEPS {
        if state.is_solved() {
            status = Status::Solved;
            break;
        }
        if let Some(stop) = context.stop_request() {
            status = stop;
            break;
        }
        match state.step() {
            Some(true) => steps += 1,
            // The next request to stop says why.
            None => {}
            Some(false) => {
                let near = state.error() <= 1e3 * TOLERANCE;
                status = if near { Status::AlmostSolved } else { Status::NumericalTrouble };
                break;
            }
        }
    }
    let coefficients: Vec<f64> = state.point.alpha.iter().map(|a| a / scale).collect();
    let bound = state.certified_bound();
    let (margins, squared_norm) = decision(q, &coefficients, context);
    let slack = |i: usize| 1.0 - margins[i] + left_out * coefficients[i] * q[i * n + i];
    let each =
        (0..n).map(|i| weights[i] * slack(i).max(0.0) + price * q[i * n + i] * coefficients[i]);
    let objective = each.sum();
    Fitted { coefficients, margins, squared_norm, objective, bound, status, rounds: steps as u64 }
}

/// Variables, slacks s of the rows and multipliers: u of the rows, `alpha_price` and `xi_price` of the signs.
#[derive(Clone)]
struct Point {
    alpha: Vec<f64>,
    xi: Vec<f64>,
    s: Vec<f64>,
    u: Vec<f64>,
    alpha_price: Vec<f64>,
    xi_price: Vec<f64>,
}

impl Point {
    /// The products that vanish at the optimum, one pair of factors after another.
    fn pairs(&self) -> [(&[f64], &[f64]); 3] {
        [(&self.alpha, &self.alpha_price), (&self.xi, &self.xi_price), (&self.s, &self.u)]
    }

    fn complementarity(&self) -> f64 {
        self.pairs().iter().map(|(a, b)| dot(a, b)).sum()
    }
}

/// Right sides of the linearised conditions.
struct Residuals {
    rows: Vec<f64>,
    alpha: Vec<f64>,
    xi: Vec<f64>,
}

struct State<'a> {
    p: &'a [f64],
    costs: &'a [f64],
    weights: &'a [f64],
    context: &'a Context,
    point: Point,
    residuals: Residuals,
}

impl<'a> State<'a> {
    fn new(p: &'a [f64], costs: &'a [f64], weights: &'a [f64], context: &'a Context) -> Self {
        let n = weights.len();
        let mean = p.iter().map(|v| v.abs()).sum::<f64>() / (n * n).max(1) as f64;
        let start = 1.0 / (mean * n as f64).max(f64::MIN_POSITIVE);
        let half: Vec<f64> = weights.iter().map(|w| 0.5 * w.max(f64::MIN_POSITIVE)).collect();
        let point = Point {
            alpha: vec![start.clamp(1e-8, 1e8); n],
            xi: vec![1.0; n],
            s: vec![1.0; n],
            u: half.clone(),
            alpha_price: vec![1.0 / start.clamp(1e-8, 1e8); n],
            xi_price: half,
        };
        let none = Residuals { rows: Vec::new(), alpha: Vec::new(), xi: Vec::new() };
        let mut state = Self { p, costs, weights, context, point, residuals: none };
        state.refresh();
        state
    }

    /// P v and Pᵀ v; P is symmetric.
    fn product(&self, v: &[f64]) -> Vec<f64> {
        let rows: Vec<&[f64]> = self.p.chunks_exact(v.len()).collect();
        self.context.map(&rows, |row| dot(row, v))
    }

    fn refresh(&mut self) {
        let Point { alpha, xi, s, u, alpha_price, xi_price } = &self.point;
        let (values, images) = (self.product(alpha), self.product(u));
        let rows = (0..u.len()).map(|i| 1.0 - values[i] - xi[i] + s[i]).collect();
        let by_alpha = (0..u.len()).map(|i| self.costs[i] - images[i] - alpha_price[i]).collect();
        let by_xi = (0..u.len()).map(|i| self.weights[i] - u[i] - xi_price[i]).collect();
        self.residuals = Residuals { rows, alpha: by_alpha, xi: by_xi };
    }

    fn error(&self) -> f64 {
        let largest = |r: &[f64]| r.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
        let Residuals { rows, alpha, xi } = &self.residuals;
        let objective: f64 = dot(self.weights, &self.point.xi) + dot(self.costs, &self.point.alpha);
        let gap = self.point.complementarity() / (1.0 + objective.abs());
        let scale = 1.0 + largest(self.weights).max(largest(self.costs));
        gap.max(largest(rows)).max(largest(alpha).max(largest(xi)) / scale)
    }

    fn is_solved(&self) -> bool {
        self.error() <= TOLERANCE
    }

    /// A predictor and a corrector step; whether the matrix could be factored and the step was one. `None` when
    /// the context asked to stop.
    fn step(&mut self) -> Option<bool> {
        let n = self.weights.len();
        let Point { alpha, xi, s, u, alpha_price, xi_price } = &self.point;
        let scale: Vec<f64> = alpha.iter().zip(alpha_price).map(|(a, z)| a / z).collect();
        let p = self.p;
        let rows: Vec<usize> = (0..n).collect();
        let lines = self.context.try_map(&rows, |&i| {
            self.context.checkpoint()?;
            let scaled: Vec<f64> = p[i * n..][..n].iter().zip(&scale).map(|(v, d)| v * d).collect();
            let mut line: Vec<f64> = p.chunks_exact(n).map(|row| dot(row, &scaled)).collect();
            line[i] += xi[i] / xi_price[i] + s[i] / u[i];
            Ok(line)
        });
        let factored =
            lines.and_then(|lines| Cholesky::interruptible(lines.concat(), n, self.context));
        let Some(factor) = factored.ok()? else { return Some(false) };
        let total = 3.0 * n as f64;
        let mu = self.point.complementarity() / total;
        let predictor = self.direction(&factor, 0.0, None);
        let (primal, dual) = self.lengths(&predictor, 1.0);
        let ahead = self.moved(&predictor, primal, dual).complementarity() / total;
        let centring = (ahead / mu).powi(3);
        let direction = self.direction(&factor, centring * mu, Some(&predictor));
        let (primal, dual) = self.lengths(&direction, TO_BOUNDARY);
        if !(primal.is_finite() && dual.is_finite()) || primal.max(dual) < 1e-10 {
            return Some(false);
        }
        self.point = self.moved(&direction, primal, dual);
        self.refresh();
        Some(true)
    }

    /// Newton's direction towards products of `mu`, corrected by those of an earlier direction.
    fn direction(&self, factor: &Cholesky, mu: f64, earlier: Option<&Point>) -> Point {
        let Point { alpha, xi, s, u, alpha_price, xi_price } = &self.point;
        let target = |pair: usize| -> Vec<f64> {
            let (a, b) = self.point.pairs()[pair];
            let mut target: Vec<f64> = a.iter().zip(b).map(|(a, b)| mu - a * b).collect();
            if let Some(earlier) = earlier {
                let (a, b) = earlier.pairs()[pair];
                target.iter_mut().zip(a.iter().zip(b)).for_each(|(t, (a, b))| *t -= a * b);
            }
            target
        };
        let (by_alpha, by_xi, by_s) = (target(0), target(1), target(2));
        let Residuals { rows, alpha: r_alpha, xi: r_xi } = &self.residuals;
        let n = u.len();
        let fixed: Vec<f64> =
            (0..n).map(|i| (by_alpha[i] - alpha[i] * r_alpha[i]) / alpha_price[i]).collect();
        let image = self.product(&fixed);
        let mut du: Vec<f64> = (0..n)
            .map(|i| {
                rows[i] - image[i] - (by_xi[i] - xi[i] * r_xi[i]) / xi_price[i] + by_s[i] / u[i]
            })
            .collect();
        factor.solve(&mut du);
        let turned = self.product(&du);
        Point {
            alpha: (0..n).map(|i| fixed[i] + alpha[i] * turned[i] / alpha_price[i]).collect(),
            xi: (0..n)
                .map(|i| (by_xi[i] - xi[i] * r_xi[i] + xi[i] * du[i]) / xi_price[i])
                .collect(),
            s: (0..n).map(|i| (by_s[i] - s[i] * du[i]) / u[i]).collect(),
            alpha_price: (0..n).map(|i| r_alpha[i] - turned[i]).collect(),
            xi_price: (0..n).map(|i| r_xi[i] - du[i]).collect(),
            u: du,
        }
    }

    /// The longest steps that keep the variables, and the multipliers, positive.
    fn lengths(&self, direction: &Point, share: f64) -> (f64, f64) {
        let longest = |values: &[f64], steps: &[f64]| {
            let limits = values.iter().zip(steps).filter(|(_, d)| **d < 0.0);
            limits.map(|(v, d)| -v / d).fold(f64::INFINITY, f64::min)
        };
        let (mut primal, mut dual) = (f64::INFINITY, f64::INFINITY);
        for ((a, b), (da, db)) in self.point.pairs().into_iter().zip(direction.pairs()) {
            (primal, dual) = (primal.min(longest(a, da)), dual.min(longest(b, db)));
        }
        ((share * primal).min(1.0), (share * dual).min(1.0))
    }

    fn moved(&self, direction: &Point, primal: f64, dual: f64) -> Point {
        let along = |a: &[f64], d: &[f64], length: f64| -> Vec<f64> {
            a.iter().zip(d).map(|(a, d)| a + length * d).collect()
        };
        let point = &self.point;
        Point {
            alpha: along(&point.alpha, &direction.alpha, primal),
            xi: along(&point.xi, &direction.xi, primal),
            s: along(&point.s, &direction.s, primal),
            u: along(&point.u, &direction.u, dual),
            alpha_price: along(&point.alpha_price, &direction.alpha_price, dual),
            xi_price: along(&point.xi_price, &direction.xi_price, dual),
        }
    }

    /// Σu of multipliers made feasible: clipped to the box, then shortened until Pᵀu ≤ costs.
    fn certified_bound(&self) -> f64 {
        let rows = self.point.u.iter().zip(self.weights);
        let u: Vec<f64> = rows.map(|(u, w)| u.clamp(0.0, *w)).collect();
        let images = self.product(&u);
        let limits = images.iter().zip(self.costs).filter(|(image, cost)| image > cost);
        let share = limits.map(|(image, cost)| cost / image).fold(1.0, f64::min);
        share.max(0.0) * u.iter().sum::<f64>()
    }
}
