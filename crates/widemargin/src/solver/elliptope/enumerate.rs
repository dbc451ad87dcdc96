//! The best labels of few rows, by branch and bound: rows get their labels one after the other, and labels of the
//! first rows whose objective alone is no better than the best found are not completed, since further rows can
//! only add to it.

use super::box_qp::BoxQp;
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

/// The labels with the least objective among those with |Σ yᵢ| ≤ `imbalance` that agree with the `known` ones
/// (0: unknown); `start` is the best known so far. The first unknown label is +1 where none is known.
pub(crate) fn enumerate(
    gram: &[f64],
    known: &[i8],
    imbalance: f64,
    start: Labelling,
    context: &Context,
) -> Labelling {
    let n = known.len();
    let mut order: Vec<usize> = (0..n).filter(|&i| known[i] != 0).collect();
    order.extend((0..n).filter(|&i| known[i] == 0));
    let free_sign = known.iter().all(|&label| label == 0);
    let mut search = Search {
        gram,
        known,
        imbalance,
        order,
        labels: vec![0; n],
        best: start,
        free_sign,
        context,
    };
    search.extend(0, 0, &[]);
    search.best
}

struct Search<'a> {
    gram: &'a [f64],
    known: &'a [i8],
    imbalance: f64,
    order: Vec<usize>,
    labels: Vec<i8>,
    best: Labelling,
    free_sign: bool,
    context: &'a Context,
}

impl Search<'_> {
    /// Labels the row at `depth` of the order; `sum` is that of the labels before it, `lambda` their solution.
    fn extend(&mut self, depth: usize, sum: i64, lambda: &[f64]) {
        if let Some(stop) = self.context.stop_request() {
            self.best.status = stop;
            return;
        }
        let n = self.known.len();
        let row = self.order[depth];
        let choices: &[i8] = match self.known[row] {
            0 if depth == 0 && self.free_sign => &[1],
            0 => &[1, -1],
            1 => &[1],
            _ => &[-1],
        };
        for &label in choices {
            let sum = sum + i64::from(label);
            let rest = (n - depth - 1) as f64;
            if sum.unsigned_abs() as f64 - rest > self.imbalance {
                continue;
            }
            self.labels[row] = label;
            let (objective, solution) = self.objective(depth + 1, lambda);
            if objective >= self.best.objective {
                continue;
            }
            if depth + 1 < n {
                self.extend(depth + 1, sum, &solution);
            } else {
                self.best.labels.clone_from(&self.labels);
                self.best.objective = objective;
                self.best.lambda = vec![0.0; n];
                for (&row, value) in self.order.iter().zip(solution) {
                    self.best.lambda[row] = value;
                }
            }
        }
        self.labels[row] = 0;
    }

    /// Objective of the first `count` rows of the order.
    fn objective(&self, count: usize, start: &[f64]) -> (f64, Vec<f64>) {
        let (n, rows) = (self.known.len(), &self.order[..count]);
        let mut q = Vec::with_capacity(count * count);
        for &i in rows {
            let signed =
                |&j: &usize| self.gram[i * n + j] * f64::from(self.labels[i] * self.labels[j]);
            q.extend(rows.iter().map(signed));
        }
        let mut start = start.to_vec();
        start.resize(count, 0.0);
        let solution = BoxQp::solve(&q, &vec![1.0; count], &start, self.context);
        (solution.value, solution.lambda)
    }
}
