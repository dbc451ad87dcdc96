//! More than two clusters, by simplex codes: cluster r has the vertex c(r) of a regular simplex, rows the loss
//! max(0, 1 − ⟨c(yᵢ), f(xᵢ)⟩), and the dual of the machine is that of two clusters with Mᵢⱼ = ⟨c(yᵢ), c(yⱼ)⟩ in the
//! place of yᵢyⱼ.
//!
//! So the relaxation over correlation matrices bounds it as well. (The multi-class relaxation of Xu and Schuurmans
//! 2005 over indicators of the clusters does not: it is symmetric in their names, so that its optimum knows no
//! margin.) Labels come from k-means on the rows of V, on leading eigenvectors of the kernel and on the rows
//! themselves, and are improved by training and relabelling in turn.

use std::ops::RangeInclusive;

use crate::context::Context;
use crate::data::{Dataset, Dense, Labels, Matrix};
use crate::error::{Error, Result};
use crate::machine::{KMeans, Machine};
use crate::numeric::algebra::dot;
use crate::outcome::Status;
use crate::solver::elliptope::{
    BoxQp, Labelling, Relaxation, centred_eigenvectors, train_and_relabel,
};
use crate::solver::label_regression::{assign, simplex};

/// Starts of k-means.
const STARTS: usize = 20;

/// Clusters of the rows and the machine that they have.
pub(super) type Coded = Labelling<usize>;

/// The search for labels of several clusters.
pub(super) struct ManyClusters<'a> {
    /// The matrix G.
    pub(super) gram: &'a [f64],
    pub(super) clusters: usize,
    /// Numbers of rows that a cluster may have.
    pub(super) sizes: RangeInclusive<usize>,
    pub(super) context: &'a Context,
}

/// Rows that a cluster may have, so that no two clusters differ by more than `imbalance`.
pub(super) fn allowed_sizes(rows: usize, clusters: usize, imbalance: f64) -> RangeInclusive<usize> {
    let even = rows as f64 / clusters as f64;
    let least = (even - 0.5 * imbalance).ceil().max(1.0) as usize;
    let most = (even + 0.5 * imbalance).floor() as usize;
    least.min(rows / clusters)..=most.max(rows.div_ceil(clusters)).min(rows)
}

/// The largest ‖Σ c(yᵢ)‖ of clusters whose sizes differ by no more than `imbalance`: half of them large, half small.
pub(super) fn largest_sum(clusters: usize, imbalance: f64) -> f64 {
    let pairs = (clusters / 2) * clusters.div_ceil(2);
    imbalance * (pairs as f64 / (clusters - 1) as f64).sqrt()
}

/// ⟨c(r), c(s)⟩ of all pairs of clusters.
pub(super) fn products(clusters: usize) -> Vec<f64> {
    let codes = simplex(clusters);
    let rows = || codes.chunks_exact(clusters - 1);
    rows().flat_map(|a| rows().map(move |b| dot(a, b))).collect()
}

impl ManyClusters<'_> {
    /// The best labels found, from the relaxation where there is one.
    pub(super) fn search(&self, data: &Dataset, relaxation: Option<&Relaxation>) -> Result<Coded> {
        let n = data.rows();
        let of_relaxation = |found: &Relaxation| -> Result<Matrix> {
            Ok(Matrix::DenseF64(Dense::new(n, found.width, found.vectors.clone())?))
        };
        let rows = || Ok(data.features().clone());
        let first = relaxation.map_or_else(rows, of_relaxation)?;
        let labels = match self.k_means(first.clone(), STARTS, self.context) {
            Err(Error::Interrupted) => self.k_means(first, 1, &self.context.after_stop())?,
            labels => labels?,
        };
        let mut best = self.improve(labels);
        for eigenvectors in [true, false] {
            let table = match (eigenvectors, relaxation) {
                (true, _) => self.eigenvectors(n),
                (false, Some(_)) => rows(),
                (false, None) => break,
            };
            let labels = table.and_then(|table| self.k_means(table, STARTS, self.context));
            let found = match labels {
                Err(Error::Interrupted) => break,
                labels => self.improve(labels?),
            };
            if found.objective < best.objective {
                best = found;
            }
        }
        if let Some(stop) = self.context.stop_request() {
            best.status = stop;
        }
        Ok(best)
    }

    /// Leading eigenvectors of the centred matrix, scaled by the roots of their eigenvalues.
    fn eigenvectors(&self, n: usize) -> Result<Matrix> {
        let found = centred_eigenvectors(self.gram, n, self.clusters, self.context)?;
        let roots: Vec<f64> = found.values.iter().map(|value| value.max(0.0).sqrt()).collect();
        let row = |i: usize| found.vectors.iter().zip(&roots).map(move |(v, root)| v[i] * root);
        let values: Vec<f64> = (0..n).flat_map(|i| row(i).collect::<Vec<_>>()).collect();
        Ok(Matrix::DenseF64(Dense::new(n, found.vectors.len(), values)?))
    }

    /// Clusters of the rows of a table, moved where sizes ask for it.
    fn k_means(&self, table: Matrix, starts: usize, context: &Context) -> Result<Vec<usize>> {
        let n = table.rows();
        let data = Dataset::new(table, Labels::None)?;
        let machine = KMeans { clusters: self.clusters, starts, ..KMeans::default() };
        let model = machine.fit(&data, context)?;
        let distances = model.predictor(context)?.decision_values(data.features())?;
        let labels = assign(distances.values(), self.clusters, &self.sizes);
        debug_assert_eq!(labels.len(), n);
        Ok(labels)
    }

    /// Trains and relabels while that lowers the objective.
    fn improve(&self, labels: Vec<usize>) -> Coded {
        let n = labels.len();
        let first = self.train(labels, &vec![0.0; n]);
        let train = |labels: Vec<usize>, start: &[f64]| self.train(labels, start);
        train_and_relabel(first, self.context, |best: &Coded| self.relabel(best), train)
    }

    /// The labels that cost the decision values least.
    fn relabel(&self, coded: &Coded) -> Vec<usize> {
        let n = coded.labels.len();
        let products = products(self.clusters);
        let rows: Vec<&[f64]> = self.gram.chunks_exact(n).collect();
        let gains = self.context.map(&rows, |row| {
            let mut by_cluster = vec![0.0; self.clusters];
            for ((value, lambda), &label) in row.iter().zip(&coded.lambda).zip(&coded.labels) {
                by_cluster[label] += value * lambda;
            }
            let margins = products.chunks_exact(self.clusters).map(|r| dot(r, &by_cluster));
            margins.map(|z| -(1.0 - z).max(0.0)).collect::<Vec<f64>>()
        });
        assign(&gains.concat(), self.clusters, &self.sizes)
    }

    fn train(&self, labels: Vec<usize>, start: &[f64]) -> Coded {
        let products = products(self.clusters);
        let mut q = self.gram.to_vec();
        for (row, &r) in q.chunks_exact_mut(labels.len()).zip(&labels) {
            let codes = &products[r * self.clusters..][..self.clusters];
            row.iter_mut().zip(&labels).for_each(|(value, &s)| *value *= codes[s]);
        }
        let solution = BoxQp::solve(&q, &vec![1.0; labels.len()], start, self.context);
        // The upper end of the gap: never less than the objective.
        let objective = solution.value + solution.gap;
        Coded { labels, lambda: solution.lambda, objective, status: Status::Solved }
    }
}
