//! One problem of two classes: which rows count, and the function that they give.

use super::{DistancePrice, RELAXED, RobustLoss, RobustMethod, RobustSvc};
use crate::context::{Context, Event};
use crate::error::{Error, Result};
use crate::kernel::Gram;
use crate::numeric::algebra::dot;
use crate::numeric::random::Generator;
use crate::outcome::{Outcome, Status};
use crate::solver::elliptope::{self, BoxQp, Options, Problem};
use crate::solver::linear::rows::LinearRows;
use crate::solver::robust::{
    FeatureRows, Fitted, LeaveOneOut, Local, Losses, MatrixRows, Procedure, SignedRows, enumerate,
    hinge_power, leave_one_out,
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
    /// A function of rows of which `first` are of the first class.
    fn new(fitted: Fitted, relaxed: Option<Relaxed>, losses: Losses, first: usize, c: f64) -> Self {
        let dropped = losses.dropped(&fitted.margins);
        // ‖w‖² = C aᵀQa.
        let norm = (c * fitted.squared_norm).sqrt();
        let scale = if norm > 0.0 { 1.0 / norm } else { 0.0 };
        let scores = fitted.margins.iter().map(|z| -z * scale).collect();
        Self { fitted, first, relaxed, scores, dropped }
    }

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
        Ok(Solved::new(fitted, relaxed, losses, self.first, self.machine.c))
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
        let (losses, procedure) = (machine.losses(n), machine.procedure(method));
        let rows = &MatrixRows { q };
        let local = Local { rows, weights, losses, procedure, context };
        if !relaxes {
            let part = |rows: &[usize]| -> Vec<f64> {
                rows.iter().flat_map(|&i| rows.iter().map(move |&j| q[i * n + j])).collect()
            };
            let more = match machine.method {
                RobustMethod::Auto if !weighted => start_of_part(&local, machine, self.first, part),
                _ => Vec::new(),
            };
            return Ok((local.search(machine.starts, &more), None, losses));
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

impl RobustSvc {
    /// The losses of so many rows.
    fn losses(&self, n: usize) -> Losses {
        // A share such as 0.55 of 100 rows is 55, not 56 by rounding.
        let kept = ((self.keep * n as f64 - 1e-9).ceil() as usize).clamp(1, n);
        match self.loss {
            RobustLoss::Trimmed => Losses::Trimmed(kept),
            _ => Losses::Ramp,
        }
    }

    fn procedure(&self, method: RobustMethod) -> Procedure {
        match method {
            RobustMethod::Alternation => Procedure::Alternation,
            RobustMethod::ConcaveConvex => Procedure::ConcaveConvex,
            _ if self.loss == RobustLoss::Ramp => Procedure::ConcaveConvex,
            _ => Procedure::Alternation,
        }
    }

    /// The linear function of rows of two classes, `first` of the first one, without a matrix.
    pub(super) fn solve_linear<R: LinearRows>(
        &self,
        table: &R,
        members: &[(usize, f64)],
        first: usize,
        context: &Context,
    ) -> Solved {
        let n = members.len();
        let sign = |i: usize| if i < first { 1.0 } else { -1.0 };
        let rows = members.iter().enumerate().map(|(i, &(row, _))| (row, sign(i))).collect();
        let rows = &FeatureRows { table, members: rows, c: self.c };
        let weights: Vec<f64> = members.iter().map(|&(_, weight)| weight).collect();
        let (losses, procedure) = (self.losses(n), self.procedure(self.method));
        let local = Local { rows, weights: &weights, losses, procedure, context };
        let weighted = weights.iter().any(|weight| *weight != 1.0);
        let more = match self.method {
            RobustMethod::Auto if !weighted => {
                start_of_part(&local, self, first, |part| rows.matrix(part))
            }
            _ => Vec::new(),
        };
        Solved::new(local.search(self.starts, &more), None, losses, first, self.c)
    }
}

/// Margins of all rows by the relaxation of so many of them that it takes a moment, chosen at random, as many of either
/// class as of all: a start that outliers pull less than that from the machine of all rows. `part` is the matrix of
/// some rows; it counts as many times as rows stand for one.
fn start_of_part<M: SignedRows>(
    local: &Local<'_, M>,
    machine: &RobustSvc,
    first: usize,
    part: impl Fn(&[usize]) -> Vec<f64>,
) -> Vec<Vec<f64>> {
    let n = local.weights.len();
    let mut generator = Generator::new(local.context.seed() ^ 0x0070_6172_7400);
    let mut chosen: Vec<usize> = Vec::with_capacity(RELAXED);
    for members in [0..first, first..n] {
        let count = (RELAXED * members.len()).div_ceil(n).min(members.len());
        let mut of_class: Vec<usize> = members.collect();
        generator.shuffle(&mut of_class);
        chosen.extend(&of_class[..count]);
    }
    let m = chosen.len();
    let factor = n as f64 / m as f64;
    let q: Vec<f64> = part(&chosen).into_iter().map(|value| factor * value).collect();
    let quiet = &local.context.clone().with_observer(|_: &Event| {});
    let weights = vec![1.0; m];
    let (losses, procedure) = (machine.losses(m), local.procedure);
    let few =
        Local { rows: &MatrixRows { q: &q }, weights: &weights, losses, procedure, context: quiet };
    let (_, start, _) = relaxation(&few, machine.tol.max(1e-3));
    let mut coefficients = vec![0.0; n];
    chosen.iter().zip(&start.coefficients).for_each(|(&i, a)| coefficients[i] = *a);
    vec![local.rows.decision(&coefficients, local.context).0]
}

/// The semidefinite relaxation, the function of its multipliers λ and shares η, w = Σ λᵢηᵢyᵢφ(xᵢ), and the bound.
fn relaxation(local: &Local<'_, MatrixRows<'_>>, tol: f64) -> (Relaxed, Fitted, f64) {
    let n = local.weights.len();
    let least = match local.losses {
        Losses::Ramp => None,
        Losses::Trimmed(kept) => Some(kept as f64),
    };
    let problem = Problem::robust(local.rows.q.to_vec(), n, least);
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
