//! The semidefinite relaxation of two classes (Xu 2007, 3.5; De Bie and Cristianini 2004): hinge losses, labels whose
//! products are any correlation matrix in which the labelled rows are one vector and its opposite.
//!
//! ```text
//! minimise over the missing labels   max over 0 ≤ λ ≤ 1 of  Σ cᵢλᵢ − ½ Σ Kᵢⱼ cᵢcⱼ λᵢλⱼ yᵢyⱼ
//! ```
//!
//! Its value has a proven lower bound, below the objective of any labels with as many rows of each class. Labels come
//! from the products with the labelled vector, the largest ones, and are improved by training and relabelling in turn.

use crate::context::Context;
use crate::numeric::algebra::dot;
use crate::outcome::Status;
use crate::solver::elliptope::{BoxQp, Options, Problem, Relaxation, relax};

/// Rounds of training and relabelling; two to ten are usual.
const MAX_ROUNDS: usize = 50;

/// The rows of a problem.
pub(super) struct Rows {
    /// The kernel matrix.
    pub(super) gram: Vec<f64>,
    /// Labels ±1 of the rows that have one, 0 of others.
    pub(super) known: Vec<i8>,
    /// Price of every row's loss.
    pub(super) costs: Vec<f64>,
    /// How many of the rows without a label are to be +1.
    pub(super) positive: usize,
}

/// The best labels, and what is known about all.
pub(super) struct Labelled {
    pub(super) labels: Vec<i8>,
    /// Coefficients of the rows in the function.
    pub(super) coefficients: Vec<f64>,
    /// ½‖w‖² + Σ cᵢ hinge losses.
    pub(super) objective: f64,
    pub(super) relaxation: Relaxation,
    pub(super) status: Status,
}

impl Rows {
    /// Solves the relaxation to a relative gap and finds labels, also from `start`.
    pub(super) fn solve(&self, gap: f64, start: Vec<i8>, context: &Context) -> Labelled {
        let unknown = self.known.iter().filter(|label| **label == 0).count();
        let sum = 2.0 * self.positive as f64 - unknown as f64;
        let problem = Problem::semi_supervised(&self.gram, &self.known, &self.costs, sum);
        let options = Options { gap, ..Options::default() };
        let relaxation = relax(&problem, &options, context);
        drop(problem);
        let width = relaxation.width;
        let anchor = &relaxation.vectors[..width];
        let mut vectors = relaxation.vectors[width..].chunks_exact(width);
        let score = |label: &i8| match *label {
            0 => vectors.next().map_or(0.0, |own| dot(anchor, own)),
            _ => 0.0,
        };
        let scores: Vec<f64> = self.known.iter().map(score).collect();
        let candidates = [self.largest(&scores), start];
        let found = candidates.map(|labels| self.improve(labels, context));
        let best = found.into_iter().min_by(|a, b| a.2.total_cmp(&b.2));
        let (labels, coefficients, objective, stop) = best.expect("two candidates");
        let status = relaxation.status.max(stop);
        Labelled { labels, coefficients, objective, relaxation, status }
    }

    /// The known labels, and +1 for the rows without one that have the largest scores.
    fn largest(&self, scores: &[f64]) -> Vec<i8> {
        let mut order: Vec<usize> = (0..scores.len()).filter(|&i| self.known[i] == 0).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
        let mut labels = self.known.clone();
        for (place, &i) in order.iter().enumerate() {
            labels[i] = if place < self.positive { 1 } else { -1 };
        }
        labels
    }

    /// Trains and relabels while that lowers the objective: labels, coefficients, objective, status.
    fn improve(&self, labels: Vec<i8>, context: &Context) -> (Vec<i8>, Vec<f64>, f64, Status) {
        let n = self.known.len();
        let (mut coefficients, mut objective) = self.train(&labels, context);
        let mut labels = labels;
        for _ in 0..MAX_ROUNDS {
            if let Some(stop) = context.stop_request() {
                return (labels, coefficients, objective, stop);
            }
            let rows = self.gram.chunks_exact(n);
            let values: Vec<f64> = rows.map(|row| dot(row, &coefficients)).collect();
            let next = self.largest(&values);
            if next == labels {
                break;
            }
            let (other, value) = self.train(&next, context);
            if value >= objective {
                break;
            }
            (labels, coefficients, objective) = (next, other, value);
        }
        (labels, coefficients, objective, Status::Solved)
    }

    fn train(&self, labels: &[i8], context: &Context) -> (Vec<f64>, f64) {
        let n = labels.len();
        let signed: Vec<f64> =
            self.costs.iter().zip(labels).map(|(cost, label)| cost * f64::from(*label)).collect();
        let mut q = self.gram.clone();
        for (row, own) in q.chunks_exact_mut(n).zip(&signed) {
            row.iter_mut().zip(&signed).for_each(|(value, other)| *value *= own * other);
        }
        let solution = BoxQp::solve(&q, &self.costs, &vec![0.0; n], context);
        let coefficients = solution.lambda.iter().zip(&signed).map(|(l, s)| l * s).collect();
        // The upper end of the gap: never less than the objective.
        (coefficients, solution.value + solution.gap)
    }
}
