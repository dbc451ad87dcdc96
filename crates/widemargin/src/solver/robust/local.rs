//! Descent to a local minimum of a capped or trimmed hinge loss, from several starts.

use super::{Fitted, SignedRows};
use crate::context::{Context, Event};
use crate::numeric::random::Generator;
use crate::outcome::Status;

/// Rounds of one descent; two to ten are usual.
const MAX_ROUNDS: usize = 100;

/// Which part of the hinge losses counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Losses {
    /// Every one up to 1.
    Ramp,
    /// The so many smallest.
    Trimmed(usize),
}

/// How the objective is lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Procedure {
    /// The concave part of the loss is replaced by its tangent.
    ConcaveConvex,
    /// Rows whose loss does not count are left out.
    Alternation,
}

impl Losses {
    /// Rows whose losses are capped or left out at these margins.
    pub(crate) fn dropped(self, margins: &[f64]) -> Vec<bool> {
        match self {
            Self::Ramp => margins.iter().map(|z| *z <= 0.0).collect(),
            Self::Trimmed(kept) => {
                let mut order: Vec<usize> = (0..margins.len()).collect();
                order.sort_by(|&a, &b| margins[b].total_cmp(&margins[a]).then(a.cmp(&b)));
                let mut dropped = vec![false; margins.len()];
                order.iter().skip(kept).for_each(|&i| dropped[i] = true);
                dropped
            }
        }
    }

    /// The objective.
    pub(crate) fn objective(self, margins: &[f64], weights: &[f64], squared_norm: f64) -> f64 {
        let hinge = |z: &f64| (1.0 - z).max(0.0);
        let losses: f64 = match self {
            Self::Ramp => margins.iter().zip(weights).map(|(z, w)| w * hinge(z).min(1.0)).sum(),
            Self::Trimmed(_) => {
                let rows = margins.iter().zip(self.dropped(margins));
                rows.map(|(z, dropped)| if dropped { 0.0 } else { hinge(z) }).sum()
            }
        };
        0.5 * squared_norm + losses
    }
}

/// The descent over rows with the matrix Q.
pub(crate) struct Local<'a, M> {
    /// The rows.
    pub rows: &'a M,
    /// Weight u of every row.
    pub weights: &'a [f64],
    /// Which losses count.
    pub losses: Losses,
    /// How it descends.
    pub procedure: Procedure,
    /// What it runs in.
    pub context: &'a Context,
}

impl<M: SignedRows> Local<'_, M> {
    /// The best of descents from the support vector machine of all rows, from the direction between the means of the
    /// classes, and from machines of `starts` random halves of the rows; `more` are margins of further starts.
    pub(crate) fn search(&self, starts: usize, more: &[Vec<f64>]) -> Fitted {
        let n = self.weights.len();
        let all = self.trained(&vec![false; n], &vec![0.0; n]);
        let mut best = self.descend(&all.margins);
        let mean: Vec<f64> = vec![1.0 / n as f64; n];
        let (between, _) = self.rows.decision(&mean, self.context);
        let mut generator = Generator::new(self.context.seed() ^ 0x0072_6f62_7573);
        let mut rounds = best.rounds;
        let mut consider = |start: &[f64]| {
            if self.context.stop_request().is_some() {
                return;
            }
            let found = self.descend(start);
            rounds += found.rounds;
            if found.objective < best.objective {
                best = found;
            }
        };
        more.iter().chain([&between]).for_each(|start| consider(start));
        for _ in 0..starts {
            if self.context.stop_request().is_some() {
                break;
            }
            let half: Vec<bool> = (0..n).map(|_| generator.unit() < 0.5).collect();
            consider(&self.trained(&half, &all.coefficients).margins);
        }
        best.rounds = rounds;
        if let Some(stop) = self.context.stop_request() {
            best.status = best.status.max(stop);
        }
        best
    }

    /// Descends from margins, which only say what is capped or left out at first.
    pub(crate) fn descend(&self, margins: &[f64]) -> Fitted {
        let mut dropped = self.losses.dropped(margins);
        let mut best = self.step(&dropped, margins, &vec![0.0; margins.len()]);
        for round in 1..MAX_ROUNDS {
            best.rounds = round as u64;
            self.context.report(&Event::Iteration {
                iteration: round,
                violation: f64::INFINITY,
                objective: best.objective,
                active: dropped.iter().filter(|d| !**d).count(),
            });
            if let Some(stop) = self.context.stop_request() {
                best.status = best.status.max(stop);
                return best;
            }
            let next = self.losses.dropped(&best.margins);
            if next == dropped {
                return best;
            }
            let found = self.step(&next, &best.margins, &best.coefficients);
            if found.objective >= best.objective * (1.0 - 1e-12) {
                return best;
            }
            (best, dropped) = (found, next);
        }
        best.status = best.status.max(Status::IterationLimit);
        best
    }

    /// The machine of the rows that are not dropped, from coefficients.
    fn trained(&self, dropped: &[bool], start: &[f64]) -> Fitted {
        let drop_all = Self { procedure: Procedure::Alternation, ..*self };
        drop_all.step(dropped, &[], start)
    }

    /// Minimises with some rows dropped, in the sense of the procedure.
    fn step(&self, dropped: &[bool], margins: &[f64], start: &[f64]) -> Fitted {
        let n = self.weights.len();
        let (coefficients, exact) = match self.procedure {
            Procedure::Alternation => {
                let kept = self.weights.iter().zip(dropped);
                let upper: Vec<f64> = kept.map(|(w, d)| if *d { 0.0 } else { *w }).collect();
                self.rows.solve(&vec![1.0; n], &upper, start, 0.0, self.context)
            }
            Procedure::ConcaveConvex => {
                // Rows beyond the hinge have no tangent to take away.
                let capped = |i: usize| dropped[i] && margins.get(i).is_none_or(|z| *z < 1.0);
                let delta: Vec<f64> =
                    (0..n).map(|i| if capped(i) { self.weights[i] } else { 0.0 }).collect();
                let (shift, square) = self.rows.decision(&delta, self.context);
                let linear: Vec<f64> = shift.iter().map(|s| 1.0 + s).collect();
                let moved: Vec<f64> = start.iter().zip(&delta).map(|(a, d)| a + d).collect();
                let (lambda, exact) =
                    self.rows.solve(&linear, self.weights, &moved, 0.5 * square, self.context);
                let rows = lambda.iter().zip(&delta);
                (rows.map(|(lambda, delta)| lambda - delta).collect(), exact)
            }
        };
        self.judged(coefficients, if exact { Status::Solved } else { Status::AlmostSolved })
    }

    /// The function of these coefficients.
    pub(crate) fn judged(&self, coefficients: Vec<f64>, status: Status) -> Fitted {
        let (margins, squared_norm) = self.rows.decision(&coefficients, self.context);
        let objective = self.losses.objective(&margins, self.weights, squared_norm);
        Fitted { coefficients, margins, squared_norm, objective, bound: 0.0, status, rounds: 1 }
    }
}
