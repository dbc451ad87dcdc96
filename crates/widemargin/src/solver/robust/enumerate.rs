//! The best rows to leave out of few, by branch and bound: rows are kept or dropped one after the other, and a choice
//! is not completed once what it costs already is no better than the best found, since further rows can only add.

use super::{Fitted, Local, Losses, MatrixRows, SignedRows};
use crate::outcome::Status;
use crate::solver::elliptope::BoxQp;

/// The least objective of all, `start` being the best known; its bound is proven unless the search was stopped.
pub(crate) fn enumerate(local: &Local<'_, MatrixRows<'_>>, start: Fitted) -> Fitted {
    let n = local.weights.len();
    let mut order: Vec<usize> = (0..n).collect();
    // Rows that are kept for sure come first, so that bounds grow early.
    order.sort_by(|&a, &b| start.margins[a].total_cmp(&start.margins[b]).then(a.cmp(&b)));
    let most = match local.losses {
        Losses::Ramp => n,
        Losses::Trimmed(kept) => n - kept.min(n),
    };
    let mut search = Search { local, order, most, best: start, status: Status::Solved };
    search.extend(0, &[], &[], 0.0, 0);
    let Search { mut best, status, .. } = search;
    best.status = status;
    if status == Status::Solved {
        best.bound = best.objective;
    }
    best
}

struct Search<'a> {
    local: &'a Local<'a, MatrixRows<'a>>,
    order: Vec<usize>,
    /// Most rows that may be dropped.
    most: usize,
    best: Fitted,
    status: Status,
}

impl Search<'_> {
    /// Decides on the row at `depth`; `kept` are the rows kept before with their solution, `cost` that of the rows
    /// dropped.
    fn extend(&mut self, depth: usize, kept: &[usize], lambda: &[f64], cost: f64, dropped: usize) {
        if let Some(stop) = self.local.context.stop_request() {
            self.status = stop;
            return;
        }
        let (value, solution) = self.machine(kept, lambda);
        if value + cost >= self.best.objective * (1.0 - 1e-12) {
            return;
        }
        let Some(&row) = self.order.get(depth) else {
            return self.take(kept, &solution);
        };
        let mut with = kept.to_vec();
        with.push(row);
        let price = match self.local.losses {
            Losses::Ramp => self.local.weights[row],
            Losses::Trimmed(_) => 0.0,
        };
        if dropped < self.most {
            self.extend(depth + 1, kept, &solution, cost + price, dropped + 1);
        }
        self.extend(depth + 1, &with, &solution, cost, dropped);
    }

    /// Keeps a complete choice, if it is better.
    fn take(&mut self, kept: &[usize], solution: &[f64]) {
        let Local { rows, weights, losses, context, .. } = *self.local;
        let mut coefficients = vec![0.0; weights.len()];
        kept.iter().zip(solution).for_each(|(&row, value)| coefficients[row] = *value);
        let (margins, squared_norm) = rows.decision(&coefficients, context);
        let objective = losses.objective(&margins, weights, squared_norm);
        if objective < self.best.objective {
            let (bound, rounds) = (0.0, self.best.rounds);
            let status = Status::Solved;
            self.best =
                Fitted { coefficients, margins, squared_norm, objective, bound, status, rounds };
        }
    }

    /// Objective and solution of the machine of some rows.
    fn machine(&self, rows: &[usize], start: &[f64]) -> (f64, Vec<f64>) {
        if rows.is_empty() {
            return (0.0, Vec::new());
        }
        let n = self.local.weights.len();
        let pick = |&i: &usize| rows.iter().map(move |&j| self.local.rows.q[i * n + j]);
        let q: Vec<f64> = rows.iter().flat_map(pick).collect();
        let upper: Vec<f64> = rows.iter().map(|&i| self.local.weights[i]).collect();
        let mut start = start.to_vec();
        start.resize(rows.len(), 0.0);
        let linear = vec![1.0; rows.len()];
        let solution = BoxQp::within(&q, &linear, &upper, &start, self.local.context);
        (solution.value, solution.lambda)
    }
}
