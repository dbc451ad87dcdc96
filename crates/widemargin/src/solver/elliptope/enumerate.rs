//! The best labels of few rows, by branch and bound: rows get their labels one after the other, and labels of the
//! first rows whose objective alone is no better than the best found are not completed, since further rows can
//! only add to it.

use super::box_qp::BoxQp;
use super::ties::Ties;
use crate::context::Context;
use crate::outcome::Status;

/// Labels, ±1 or numbers of clusters, and the machine that they have.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Labelling<L = i8> {
    /// The labels.
    pub labels: Vec<L>,
    /// Multipliers λ of the rows.
    pub lambda: Vec<f64>,
    /// max Σλ − ½ λᵀ(G ∘ M)λ over the box, M = yyᵀ for labels ±1.
    pub objective: f64,
    /// Whether the search was complete.
    pub status: Status,
}

/// The labels with the least objective among those of which an `allowed` number is +1 (one entry for every number from
/// 0, the same from both ends); `start` is the best known so far. The first label is +1.
pub(crate) fn enumerate(
    gram: &[f64],
    ties: &Ties,
    allowed: &[bool],
    start: Labelling,
    context: &Context,
) -> Labelling {
    let n = ties.rows();
    let sums = (0..=n).filter(|&count| allowed[count]).map(|count| (2 * count).abs_diff(n));
    let largest = sums.max().unwrap_or(0);
    let groups = vec![0; ties.groups()];
    let labels = vec![0; n];
    let mut search = Search { gram, ties, allowed, largest, groups, labels, best: start, context };
    search.extend(0, 0, &[]);
    search.best
}

struct Search<'a> {
    gram: &'a [f64],
    ties: &'a Ties,
    allowed: &'a [bool],
    /// Largest |Σ yᵢ|.
    largest: usize,
    /// Labels of the groups, 0 before they have one.
    groups: Vec<i8>,
    labels: Vec<i8>,
    best: Labelling,
    context: &'a Context,
}

impl Search<'_> {
    /// Labels a row; `sum` is that of the labels of the rows before it, `lambda` their solution.
    fn extend(&mut self, row: usize, sum: i64, lambda: &[f64]) {
        if let Some(stop) = self.context.stop_request() {
            self.best.status = stop;
            return;
        }
        let n = self.labels.len();
        let (group, sign) = (self.ties.group[row], self.ties.sign[row]);
        let tied = self.groups[group];
        let choices: &[i8] = match tied * sign {
            0 if row == 0 => &[1],
            0 => &[1, -1],
            1 => &[1],
            _ => &[-1],
        };
        for &label in choices {
            let sum = sum + i64::from(label);
            if sum.unsigned_abs() as usize > self.largest + (n - row - 1) {
                continue;
            }
            self.labels[row] = label;
            self.groups[group] = label * sign;
            let (objective, solution) = self.objective(row + 1, lambda);
            if objective >= self.best.objective {
                continue;
            }
            if row + 1 < n {
                self.extend(row + 1, sum, &solution);
            } else if self.allowed[self.labels.iter().filter(|label| **label > 0).count()] {
                self.best.labels.clone_from(&self.labels);
                self.best.objective = objective;
                self.best.lambda = solution;
            }
        }
        self.groups[group] = tied;
    }

    /// Objective of the first `count` rows.
    fn objective(&self, count: usize, start: &[f64]) -> (f64, Vec<f64>) {
        let n = self.labels.len();
        let mut q = Vec::with_capacity(count * count);
        for i in 0..count {
            let signed =
                |j: usize| self.gram[i * n + j] * f64::from(self.labels[i] * self.labels[j]);
            q.extend((0..count).map(signed));
        }
        let mut start = start.to_vec();
        start.resize(count, 0.0);
        let solution = BoxQp::solve(&q, &vec![1.0; count], &start, self.context);
        (solution.value, solution.lambda)
    }
}
