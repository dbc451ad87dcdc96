//! One problem of two classes: which rows count, and the function that they give.

use super::{DistancePrice, RELAXED, RobustLoss, RobustMethod, RobustSvc};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernel::Gram;
use crate::numeric::algebra::dot;
use crate::outcome::{Outcome, Status};
use crate::solver::elliptope::{self, BoxQp, Options, Problem};
use crate::solver::robust::{
    Fitted, LeaveOneOut, Local, Losses, Procedure, enumerate, hinge_power, leave_one_out,
};

/// Rows of two classes, those of the first one before the others.
pub(super) struct Pair<'a> {
    pub(super) machine: &'a RobustSvc,
    pub(super) gram: &'a Gram,
    /// Rows and their weights.
    pub(super) rows: Vec<(usize, f64)>,
    /// Number of rows of the first class.
    pub(super) first: usize,
}

/// What a relaxation found.
pub(super) struct Relaxed {
    pub(super) value: f64,
    pub(super) status: Status,
    products: u64,
    /// Share η of every row.
    pub(super) shares: Vec<f64>,
}

/// A function and what it says about its rows.
pub(super) struct Solved {
    fitted: Fitted,
    first: usize,
    pub(super) relaxed: Option<Relaxed>,
    pub(super) scores: Vec<f64>,
    /// Rows whose loss is capped or not counted.
    pub(super) dropped: Vec<bool>,
}

impl Solved {
    /// Coefficients of kernel values, positive ones for the first class.
    pub(super) fn signed_coefficients(&self, c: f64) -> Vec<f64> {
        let rows = self.fitted.coefficients.iter().enumerate();
        rows.map(|(i, a)| if i < self.first { c * a } else { -c * a }).collect()
    }

    pub(super) fn outcome(&self) -> Outcome {
        let Fitted { objective, bound, status, rounds, .. } = self.fitted;
        let relaxed = self.relaxed.as_ref();
        Outcome {
            status: relaxed.map_or(status, |relaxed| relaxed.status.max(status)),
            primal: objective,
            dual: bound.min(objective),
            violation: (objective - bound).max(0.0) / objective.abs().max(f64::MIN_POSITIVE),
            iterations: relaxed.map_or(rounds, |relaxed| relaxed.products),
            blocks: rounds,
            kernel_rows: 0,
        }
    }
}

impl Pair<'_> {
    pub(super) fn solve(self, context: &Context) -> Result<Solved> {
        let q = self.matrix();
        let weights: Vec<f64> = self.rows.iter().map(|&(_, weight)| weight).collect();
        let n = weights.len();
        let (fitted, relaxed, losses) = match self.machine.loss {
            RobustLoss::Ramp | RobustLoss::Eta | RobustLoss::Trimmed => {
                self.dropping(&q, &weights, context)?
            }
            RobustLoss::Centroid => {
                (self.centroid(&q, &weights, context), None, Losses::Trimmed(n))
            }
            RobustLoss::LeaveOneOut => {
                // Q holds C K and α is C times the coefficient: Σ αK/C is Σ a Qᵢᵢ/C.
                let (price, left_out) = (1.0 / self.machine.c, self.machine.left_out);
                let program = LeaveOneOut { q: &q, weights: &weights, price, left_out };
                (leave_one_out(&program, context), None, Losses::Trimmed(n))
            }
            RobustLoss::Power => {
                let power = self.machine.power;
                (hinge_power(&q, &weights, power, context), None, Losses::Trimmed(n))
            }
        };
        let dropped = losses.dropped(&fitted.margins);
        // ‖w‖² = C aᵀQa.
        let norm = (self.machine.c * fitted.squared_norm).sqrt();
        let scale = if norm > 0.0 { 1.0 / norm } else { 0.0 };
        let scores = fitted.margins.iter().map(|z| -z * scale).collect();
        Ok(Solved { fitted, first: self.first, relaxed, scores, dropped })
    }

    fn sign(&self, i: usize) -> f64 {
        if i < self.first { 1.0 } else { -1.0 }
    }

    /// C (K + lift) ∘ yyᵀ.
    fn matrix(&self) -> Vec<f64> {
        let (c, lift) = (self.machine.c, self.machine.lift());
        let mut q = Vec::with_capacity(self.rows.len() * self.rows.len());
        for (i, &(row, _)) in self.rows.iter().enumerate() {
            let line = self.gram.row(row);
            let factor = c * self.sign(i);
            let each = self.rows.iter().enumerate();
            q.extend(each.map(|(j, &(column, _))| factor * self.sign(j) * (line[column] + lift)));
        }
        q
    }

    /// Losses of which some rows are left out.
    fn dropping(
        &self,
        q: &[f64],
        weights: &[f64],
        context: &Context,
    ) -> Result<(Fitted, Option<Relaxed>, Losses)> {
        let (machine, n) = (self.machine, weights.len());
        let weighted = weights.iter().any(|weight| *weight != 1.0);
        let method = match machine.method {
            RobustMethod::Auto if n <= RELAXED && !weighted => RobustMethod::Relaxation,
            RobustMethod::Auto if machine.loss == RobustLoss::Ramp => RobustMethod::ConcaveConvex,
            RobustMethod::Auto => RobustMethod::Alternation,
            method => method,
        };
        let relaxes = matches!(method, RobustMethod::Relaxation | RobustMethod::Enumeration);
        if weighted && relaxes {
            let expected = format!("rows of weight 1 with method {method}");
            return Err(Error::parameter("weights", expected, "others"));
        }
        // A share such as 0.55 of 100 rows is 55, not 56 by rounding.
        let kept = ((machine.keep * n as f64 - 1e-9).ceil() as usize).clamp(1, n);
        let losses = match machine.loss {
            RobustLoss::Trimmed => Losses::Trimmed(kept),
            _ => Losses::Ramp,
        };
        let procedure = match method {
            RobustMethod::Alternation => Procedure::Alternation,
            RobustMethod::ConcaveConvex => Procedure::ConcaveConvex,
            _ if machine.loss == RobustLoss::Ramp => Procedure::ConcaveConvex,
            _ => Procedure::Alternation,
        };
        let local = Local { q, weights, losses, procedure, context };
        if !relaxes {
            return Ok((local.search(machine.starts, &[]), None, losses));
        }
        let (relaxed, start, bound) = relaxation(&local, machine.tol);
        let mut best = local.search(machine.starts, std::slice::from_ref(&start.margins));
        if start.objective < best.objective {
            best = Fitted { rounds: best.rounds, status: best.status, ..start };
        }
        if method == RobustMethod::Enumeration {
            best = enumerate(&local, best);
        }
        best.bound = best.bound.max(bound);
        Ok((best, Some(relaxed), losses))
    }

    /// Margins that are smaller for rows far from the mean of their class.
    fn centroid(&self, q: &[f64], weights: &[f64], context: &Context) -> Fitted {
        let distances = self.squared_distances();
        let price = match self.machine.distance_price {
            DistancePrice::Value(price) => price,
            DistancePrice::Auto => {
                let mut sorted = distances.clone();
                sorted.sort_by(f64::total_cmp);
                let median = sorted[sorted.len() / 2];
                if median > 0.0 { 0.5 / median } else { 0.0 }
            }
        };
        let targets: Vec<f64> = distances.iter().map(|d| 1.0 - price * d).collect();
        let n = weights.len();
        let solution = BoxQp::within(q, &targets, weights, &vec![0.0; n], context);
        let coefficients = solution.lambda;
        let margins: Vec<f64> = q.chunks_exact(n).map(|row| dot(row, &coefficients)).collect();
        let squared_norm = dot(&margins, &coefficients).max(0.0);
        let stopped = context.stop_request();
        let exact = solution.gap <= 1e-9 * solution.value.abs().max(1.0);
        let ended = if exact { Status::Solved } else { Status::AlmostSolved };
        Fitted {
            objective: solution.value + solution.gap,
            bound: solution.value,
            status: stopped.unwrap_or(ended),
            coefficients,
            margins,
            squared_norm,
            rounds: 1,
        }
    }

    /// ‖φ(x) − mean of its class‖² of every row.
    fn squared_distances(&self) -> Vec<f64> {
        let n = self.rows.len();
        let mut distances = vec![0.0; n];
        for members in [0..self.first, self.first..n] {
            let count = members.len() as f64;
            let sum_of = |i: usize| -> f64 {
                let line = self.gram.row(self.rows[i].0);
                members.clone().map(|j| line[self.rows[j].0]).sum()
            };
            let sums: Vec<f64> = members.clone().map(sum_of).collect();
            let square = sums.iter().sum::<f64>() / (count * count);
            for (i, sum) in members.zip(sums) {
                let own = self.gram.row(self.rows[i].0)[self.rows[i].0];
                distances[i] = (own - 2.0 * sum / count + square).max(0.0);
            }
        }
        distances
    }
}

/// The semidefinite relaxation, the function of its multipliers λ and shares η, w = Σ λᵢηᵢyᵢφ(xᵢ), and the bound.
fn relaxation(local: &Local<'_>, tol: f64) -> (Relaxed, Fitted, f64) {
    let n = local.weights.len();
    let least = match local.losses {
        Losses::Ramp => None,
        Losses::Trimmed(kept) => Some(kept as f64),
    };
    let problem = Problem::robust(local.q.to_vec(), n, least);
    let options = Options { gap: tol, ..Options::default() };
    let found = elliptope::relax(&problem, &options, local.context);
    let mut rows = found.vectors.chunks_exact(found.width);
    let anchor = rows.next().unwrap_or(&[]);
    let shares: Vec<f64> = rows.map(|row| (0.5 + 0.5 * dot(anchor, row)).clamp(0.0, 1.0)).collect();
    let coefficients: Vec<f64> = found.lambda.iter().zip(&shares).map(|(l, s)| l * s).collect();
    let start = local.judged(coefficients, Status::Solved);
    let relaxed =
        Relaxed { value: found.value, status: found.status, products: found.products, shares };
    (relaxed, start, found.bound.max(0.0))
}
