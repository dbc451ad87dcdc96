//! Labels by regression on their codes, in turn with the labels that the regression fits best (Zhang, Tsang and Kwok
//! 2007): squared losses pull back also rows far inside a cluster, so that rows at its boundary can change sides.
//!
//! ```text
//! minimise over labels y, W and b   β‖W‖² + Σ ‖c(yᵢ) − W zᵢ − b‖²
//! ```
//!
//! c(r) are the vertices of a regular simplex, ±1 for two clusters. Every half step is exact but for the sizes of more
//! than two clusters, and none that raises the objective is taken. The matrix ZᵀZ + βI is factored once.

use std::ops::RangeInclusive;

use crate::context::{Context, Event};
use crate::data::Matrix;
use crate::error::{Error, Result};
use crate::numeric::algebra::{Cholesky, add, add_products, dot, leading_eigenvectors};
use crate::outcome::Status;

/// Rows of one task and of one panel of the matrix.
const PANEL: usize = 2048;

/// Most rounds; ten to fifty are usual.
const MAX_ROUNDS: usize = 300;

/// Relative decrease of the objective below which it ends.
const LEAST_DECREASE: f64 = 1e-7;

/// The vertices of a regular simplex around 0, one a row: unit vectors with products −1/(κ − 1).
pub(crate) fn simplex(clusters: usize) -> Vec<f64> {
    let width = clusters - 1;
    let mut codes = vec![0.0; clusters * width];
    for k in 0..width {
        let left = (clusters - k) as f64;
        let height = (clusters as f64 * (left - 1.0) / (width as f64 * left)).sqrt();
        codes[k * width + k] = height;
        (k + 1..clusters).for_each(|r| codes[r * width + k] = -height / (left - 1.0));
    }
    codes
}

/// The labels with the largest gains (n × clusters) whose clusters have allowed sizes: rows are moved where that
/// loses least, which for two clusters is the best choice.
pub(crate) fn assign(gains: &[f64], clusters: usize, sizes: &RangeInclusive<usize>) -> Vec<usize> {
    let first_largest = |row: &[f64]| {
        let better = |best: usize, r: usize| if row[r] > row[best] { r } else { best };
        (1..row.len()).fold(0, better)
    };
    let mut labels: Vec<usize> = gains.chunks_exact(clusters).map(first_largest).collect();
    let mut counts = vec![0_usize; clusters];
    labels.iter().for_each(|&r| counts[r] += 1);
    let loss =
        |i: usize, from: usize, to: usize| gains[i * clusters + from] - gains[i * clusters + to];
    let by_loss = |mut moves: Vec<(f64, usize, usize)>| {
        moves.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        moves
    };
    let others = |r: usize| (0..clusters).filter(move |&to| to != r);
    for r in 0..clusters {
        if counts[r] <= *sizes.end() {
            continue;
        }
        let members = (0..labels.len()).filter(|&i| labels[i] == r);
        let moves = members.flat_map(|i| others(r).map(move |to| (loss(i, r, to), i, to)));
        for (_, i, to) in by_loss(moves.collect()) {
            if counts[r] > *sizes.end() && labels[i] == r && counts[to] < *sizes.end() {
                (labels[i], counts[r], counts[to]) = (to, counts[r] - 1, counts[to] + 1);
            }
        }
    }
    for r in 0..clusters {
        if counts[r] >= *sizes.start() {
            continue;
        }
        let members = (0..labels.len()).filter(|&i| labels[i] != r);
        let moves = members.map(|i| (loss(i, labels[i], r), i, r));
        for (_, i, _) in by_loss(moves.collect()) {
            let from = labels[i];
            if counts[r] < *sizes.start() && counts[from] > *sizes.start() {
                (labels[i], counts[r], counts[from]) = (r, counts[r] + 1, counts[from] - 1);
            }
        }
    }
    labels
}

/// Labels and what they cost.
#[derive(Clone, Debug)]
pub(crate) struct Regressed {
    pub labels: Vec<usize>,
    pub objective: f64,
    pub status: Status,
}

/// The regression over rows.
pub(crate) struct LabelRegression<'a> {
    rows: &'a Matrix,
    clusters: usize,
    sizes: RangeInclusive<usize>,
    beta: f64,
    context: &'a Context,
    codes: Vec<f64>,
    mean: Vec<f64>,
    /// ZᵀZ of the centred rows, plus βI.
    matrix: Vec<f64>,
    factor: Cholesky,
}

impl<'a> LabelRegression<'a> {
    /// Factors the matrix of the rows.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the context asks to stop.
    pub(crate) fn new(
        rows: &'a Matrix,
        clusters: usize,
        sizes: RangeInclusive<usize>,
        beta: f64,
        context: &'a Context,
    ) -> Result<Self> {
        let (n, width) = (rows.rows(), rows.columns());
        let mut matrix = vec![0.0; width * width];
        let mut mean = vec![0.0; width];
        for start in (0..n).step_by(PANEL) {
            let count = PANEL.min(n - start);
            let mut panel = vec![0.0; width * count];
            let mut row = vec![0.0; width];
            for i in 0..count {
                rows.copy_row(start + i, &mut row);
                row.iter().enumerate().for_each(|(j, value)| panel[j * count + i] = *value);
                add(&mut mean, &row, 1.0 / n as f64);
            }
            add_products(&mut matrix, width, &panel, count, context)?;
        }
        for j in 0..width {
            let of_means = mean[j] * n as f64;
            add(&mut matrix[j * width..][..=j], &mean[..=j], -of_means);
            matrix[j * width + j] += beta;
        }
        for j in 0..width {
            for k in 0..j {
                matrix[k * width + j] = matrix[j * width + k];
            }
        }
        let factor = Cholesky::interruptible(matrix.clone(), width, context)?;
        let factor = factor.ok_or_else(|| Error::parameter("beta", "a larger number", beta))?;
        let codes = simplex(clusters);
        Ok(Self { rows, clusters, sizes, beta, context, codes, mean, matrix, factor })
    }

    /// The coordinates of all rows, from their mean, along their principal directions, a list for each direction.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the context asks to stop.
    pub(crate) fn principal_scores(&self, count: usize) -> Result<Vec<Vec<f64>>> {
        let width = self.mean.len();
        let largest = (0..width).map(|j| self.matrix[j * width + j]).fold(0.0, f64::max);
        let product = |block: &[Vec<f64>]| {
            Ok(self.context.map(block, |vector| {
                self.matrix.chunks_exact(width).map(|row| dot(row, vector)).collect::<Vec<f64>>()
            }))
        };
        let count = count.min(width);
        let found = leading_eigenvectors(width, count, 1e-3 * largest, product, self.context)?;
        // One function each, so that the scores of every direction stand together.
        Ok(found.vectors.iter().map(|vector| self.products(vector, 1)).collect())
    }

    /// Alternates from labels until they repeat.
    pub(crate) fn descend(&self, labels: Vec<usize>) -> Regressed {
        let mut best =
            Regressed { labels, objective: f64::INFINITY, status: Status::IterationLimit };
        for round in 1..=MAX_ROUNDS {
            let weights = self.fit(&best.labels);
            let scores = self.scores(&weights);
            let objective = self.objective(&weights, &scores, &best.labels);
            let settled = objective >= best.objective * (1.0 - LEAST_DECREASE);
            best.objective = objective.min(best.objective);
            self.context.report(&Event::Iteration {
                iteration: round,
                violation: f64::INFINITY,
                objective: best.objective,
                active: self.rows.rows(),
            });
            if let Some(stop) = self.context.stop_request() {
                best.status = stop;
                return best;
            }
            let next = self.relabel(&scores, &best.labels);
            if settled
                || next == best.labels
                || self.objective(&weights, &scores, &next) > objective
            {
                best.status = Status::Solved;
                return best;
            }
            best.labels = next;
        }
        best
    }

    fn width(&self) -> usize {
        self.clusters - 1
    }

    fn code(&self, r: usize) -> &[f64] {
        &self.codes[r * self.width()..][..self.width()]
    }

    /// The number of rows in every cluster and the mean of the codes.
    fn mean_code(&self, labels: &[usize]) -> Vec<f64> {
        let mut mean = vec![0.0; self.width()];
        labels.iter().for_each(|&r| add(&mut mean, self.code(r), 1.0 / labels.len() as f64));
        mean
    }

    fn tasks(&self) -> Vec<usize> {
        (0..self.rows.rows()).step_by(PANEL).collect()
    }

    /// W, one row for each dimension of the codes.
    fn fit(&self, labels: &[usize]) -> Vec<f64> {
        let (features, width) = (self.mean.len(), self.width());
        let parts = self.context.map(&self.tasks(), |&start| {
            let end = (start + PANEL).min(self.rows.rows());
            let mut sums = vec![0.0; width * features];
            let mut row = vec![0.0; features];
            for (i, &label) in (start..end).zip(&labels[start..end]) {
                self.rows.copy_row(i, &mut row);
                for (sum, code) in sums.chunks_exact_mut(features).zip(self.code(label)) {
                    add(sum, &row, *code);
                }
            }
            sums
        });
        let mut sums = vec![0.0; width * features];
        parts.iter().for_each(|part| add(&mut sums, part, 1.0));
        let n = labels.len() as f64;
        for (sum, code) in sums.chunks_exact_mut(features).zip(self.mean_code(labels)) {
            add(sum, &self.mean, -n * code);
            self.factor.solve(sum);
        }
        sums
    }

    /// W(zᵢ − mean) of every row.
    fn scores(&self, weights: &[f64]) -> Vec<f64> {
        self.products(weights, self.width())
    }

    /// The same for so many rows of weights.
    fn products(&self, weights: &[f64], functions: usize) -> Vec<f64> {
        debug_assert_eq!(weights.len(), functions * self.mean.len());
        let features = self.mean.len();
        let shifts: Vec<f64> = weights.chunks_exact(features).map(|w| dot(w, &self.mean)).collect();
        let parts = self.context.map(&self.tasks(), |&start| {
            let end = (start + PANEL).min(self.rows.rows());
            let mut row = vec![0.0; features];
            let mut scores = Vec::with_capacity((end - start) * shifts.len());
            for i in start..end {
                self.rows.copy_row(i, &mut row);
                let each = weights.chunks_exact(features).zip(&shifts);
                scores.extend(each.map(|(w, shift)| dot(w, &row) - shift));
            }
            scores
        });
        parts.concat()
    }

    /// β‖W‖² + Σ ‖c(yᵢ) − scoreᵢ − b‖² with the best b, the mean of the codes.
    fn objective(&self, weights: &[f64], scores: &[f64], labels: &[usize]) -> f64 {
        let mean = self.mean_code(labels);
        let rows = scores.chunks_exact(self.width()).zip(labels);
        let square = |(score, &r): (&[f64], &usize)| {
            let parts = self.code(r).iter().zip(score).zip(&mean);
            parts.map(|((c, s), b)| (c - s - b) * (c - s - b)).sum::<f64>()
        };
        self.beta * dot(weights, weights) + rows.map(square).sum::<f64>()
    }

    /// The labels that fit the scores best.
    fn relabel(&self, scores: &[f64], labels: &[usize]) -> Vec<usize> {
        if self.clusters == 2 {
            return self.cut(scores);
        }
        let mean = self.mean_code(labels);
        let gains = scores.chunks_exact(self.width()).flat_map(|score| {
            let moved: Vec<f64> = score.iter().zip(&mean).map(|(s, b)| s + b).collect();
            (0..self.clusters).map(move |r| dot(self.code(r), &moved)).collect::<Vec<f64>>()
        });
        assign(&gains.collect::<Vec<f64>>(), self.clusters, &self.sizes)
    }

    /// For two clusters: the `count` largest scores on one side, with the best b for every count. The scores have
    /// mean 0, so that the count maximises 2 (sum of the largest) + (2 count − n)²/2n.
    fn cut(&self, scores: &[f64]) -> Vec<usize> {
        let n = scores.len();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
        let (mut sum, mut best) = (0.0, (f64::NEG_INFINITY, 0));
        for (at, &i) in order.iter().enumerate() {
            sum += scores[i];
            let count = at + 1;
            let difference = 2.0 * count as f64 - n as f64;
            let gain = 2.0 * sum + 0.5 * difference * difference / n as f64;
            if self.sizes.contains(&count) && gain > best.0 {
                best = (gain, count);
            }
        }
        let mut labels = vec![1; n];
        order[..best.1].iter().for_each(|&i| labels[i] = 0);
        labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;
    use crate::numeric::random::Generator;

    #[test]
    fn codes_are_a_regular_simplex() {
        for clusters in 2..7 {
            let codes = simplex(clusters);
            let row = |r: usize| &codes[r * (clusters - 1)..][..clusters - 1];
            for r in 0..clusters {
                for s in 0..clusters {
                    let expected = if r == s { 1.0 } else { -1.0 / (clusters - 1) as f64 };
                    assert!((dot(row(r), row(s)) - expected).abs() < 1e-14);
                }
            }
        }
    }

    #[test]
    fn two_clusters_are_assigned_as_well_as_any() {
        let mut generator = Generator::new(3);
        for n in [5, 8] {
            let gains: Vec<f64> = (0..2 * n).map(|_| generator.normal()).collect();
            let labels = assign(&gains, 2, &(2..=n - 2));
            let gain = |labels: &[usize]| -> f64 {
                labels.iter().enumerate().map(|(i, &r)| gains[2 * i + r]).sum()
            };
            let best = (0..1_u32 << n)
                .map(|mask| (0..n).map(|i| ((mask >> i) & 1) as usize).collect::<Vec<_>>())
                .filter(|labels| (2..=n - 2).contains(&labels.iter().sum::<usize>()))
                .map(|labels| gain(&labels))
                .fold(f64::NEG_INFINITY, f64::max);
            assert!((gain(&labels) - best).abs() < 1e-12);
        }
    }

    #[test]
    fn the_cut_is_the_best_of_all_and_the_descent_is_monotone() {
        let mut generator = Generator::new(5);
        let n = 9;
        let values: Vec<f64> = (0..2 * n).map(|_| generator.normal()).collect();
        let rows = Matrix::DenseF64(Dense::new(n, 2, values).unwrap());
        let context = Context::new();
        let regression = LabelRegression::new(&rows, 2, 3..=6, 0.1, &context).unwrap();
        let weights = regression.fit(&[0, 1, 0, 1, 0, 1, 0, 1, 0]);
        let scores = regression.scores(&weights);
        let cut = regression.cut(&scores);
        let cost = regression.objective(&weights, &scores, &cut);
        for mask in 0..1_u32 << n {
            let labels: Vec<usize> = (0..n).map(|i| ((mask >> i) & 1) as usize).collect();
            if (3..=6).contains(&labels.iter().sum::<usize>()) {
                assert!(regression.objective(&weights, &scores, &labels) >= cost - 1e-12);
            }
        }
        let found = regression.descend(cut);
        assert!(found.objective <= cost);
    }
}
