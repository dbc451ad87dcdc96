//! Labels ±1 out of a relaxation: signs of projections, cut where the balance allows it, improved by training and
//! relabelling in turn, which never increases the objective (Xu 2007, proposition 2).

use super::box_qp::BoxQp;
use super::enumerate::Labelling;
use super::relax::Relaxation;
use super::ties::Ties;
use crate::context::Context;
use crate::error::Result;
use crate::numeric::algebra::{Leading, dot, eigen_symmetric, leading_eigenvectors};
use crate::numeric::random::Generator;
use crate::outcome::Status;

/// Random projections of the relaxation (Goemans and Williamson 1995).
const DRAWS: usize = 100;

/// Labellings that are improved: those which the relaxation's λ bounds least from below.
const IMPROVED: usize = 6;

/// Eigenvectors of the matrix whose signs are tried too.
const EIGENVECTORS: usize = 3;

/// Rounds of training and relabelling; two to ten are usual.
const MAX_ROUNDS: usize = 50;

/// Relabels and trains in turn, from `first` on, while that lowers the objective.
pub(crate) fn train_and_relabel<L: PartialEq>(
    first: Labelling<L>,
    context: &Context,
    relabel: impl Fn(&Labelling<L>) -> Vec<L>,
    train: impl Fn(Vec<L>, &[f64]) -> Labelling<L>,
) -> Labelling<L> {
    let mut best = first;
    for _ in 0..MAX_ROUNDS {
        if let Some(stop) = context.stop_request() {
            best.status = stop;
            return best;
        }
        let labels = relabel(&best);
        if labels == best.labels {
            return best;
        }
        let next = train(labels, &best.lambda);
        if next.objective >= best.objective {
            return best;
        }
        best = next;
    }
    best.status = Status::IterationLimit;
    best
}

/// Leading eigenvectors of HGH, H = I − eeᵀ/n, to few digits.
///
/// # Errors
/// `Error::Interrupted` when the context asks to stop.
pub(crate) fn centred_eigenvectors(
    gram: &[f64],
    n: usize,
    count: usize,
    context: &Context,
) -> Result<Leading> {
    let scale = (0..n).map(|i| gram[i * n + i]).fold(0.0, f64::max);
    let centre = |vector: &mut Vec<f64>| {
        let mean = vector.iter().sum::<f64>() / n as f64;
        vector.iter_mut().for_each(|value| *value -= mean);
    };
    let product = |block: &[Vec<f64>]| {
        let multiply = |vector: &Vec<f64>| -> Vec<f64> {
            let mut vector = vector.clone();
            centre(&mut vector);
            let mut image = gram.chunks_exact(n).map(|row| dot(row, &vector)).collect();
            centre(&mut image);
            image
        };
        Ok(context.map(block, multiply))
    };
    leading_eigenvectors(n, count.min(n), 1e-3 * scale, product, context)
}

/// The search for labels.
pub(crate) struct Signs<'a> {
    gram: &'a [f64],
    ties: &'a Ties,
    /// Whether so many rows may be +1, for every number from 0.
    allowed: &'a [bool],
    context: &'a Context,
}

impl<'a> Signs<'a> {
    /// Labels of which an `allowed` number is +1; `None` where the ties leave none. As many may be −1 as +1.
    pub(crate) fn new(
        gram: &'a [f64],
        ties: &'a Ties,
        allowed: &'a [bool],
        context: &'a Context,
    ) -> Option<Self> {
        ties.best(&vec![0.0; ties.rows()], allowed)?;
        Some(Self { gram, ties, allowed, context })
    }

    fn size(&self) -> usize {
        self.ties.rows()
    }

    /// The best labels found, from the relaxation where there is one.
    pub(crate) fn search(&self, relaxation: Option<&Relaxation>) -> Labelling {
        let mut candidates = self.eigenvector_signs();
        if let Some(relaxation) = relaxation {
            candidates.extend(self.projections(relaxation));
        }
        candidates.sort_unstable();
        candidates.dedup();
        let lambda = relaxation.map_or_else(|| vec![1.0; self.size()], |r| r.lambda.clone());
        // Those that there is no time to compare come last.
        let energy = |labels: &[i8]| match self.context.stop_request() {
            Some(_) => f64::NEG_INFINITY,
            None => self.energy(&lambda, labels),
        };
        let mut ranked: Vec<(f64, Vec<i8>)> =
            candidates.into_iter().map(|labels| (energy(&labels), labels)).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut best: Option<Labelling> = None;
        for (_, labels) in ranked.into_iter().take(IMPROVED) {
            if best.is_some() && self.context.stop_request().is_some() {
                break;
            }
            let found = self.improve(labels);
            if best.as_ref().is_none_or(|best| found.objective < best.objective) {
                best = Some(found);
            }
        }
        let mut best = best.unwrap_or_else(|| self.improve(self.best(&vec![0.0; self.size()])));
        if best.labels.first() == Some(&-1) {
            best.labels.iter_mut().for_each(|label| *label = -*label);
        }
        best
    }

    /// Σ Gᵢⱼ λᵢλⱼyᵢyⱼ: the larger, the smaller the bound Σλ − ½ of it on the objective.
    fn energy(&self, lambda: &[f64], labels: &[i8]) -> f64 {
        let signed: Vec<f64> = lambda.iter().zip(labels).map(|(l, y)| l * f64::from(*y)).collect();
        let rows = self.gram.chunks_exact(self.size()).zip(&signed);
        rows.map(|(row, value)| value * dot(row, &signed)).sum()
    }

    fn eigenvector_signs(&self) -> Vec<Vec<i8>> {
        let found = centred_eigenvectors(self.gram, self.size(), EIGENVECTORS, self.context);
        found.map_or_else(
            |_| Vec::new(),
            |found| found.vectors.iter().map(|vector| self.best(vector)).collect(),
        )
    }

    /// The first principal axis of V, and random directions.
    fn projections(&self, relaxation: &Relaxation) -> Vec<Vec<i8>> {
        let width = relaxation.width;
        let rows = || relaxation.vectors.chunks_exact(width);
        let mut gram = vec![0.0; width * width];
        for row in rows() {
            for (i, a) in row.iter().enumerate() {
                row.iter().enumerate().for_each(|(j, b)| gram[i * width + j] += a * b);
            }
        }
        let principal = eigen_symmetric(gram, width, self.context).vector(0).to_vec();
        let mut generator = Generator::new(self.context.seed() ^ 0x0072_6f75_6e64);
        let random = (0..DRAWS).map(|_| (0..width).map(|_| generator.normal()).collect());
        let directions: Vec<Vec<f64>> = std::iter::once(principal).chain(random).collect();
        let scores = |direction: &Vec<f64>| -> Vec<f64> {
            let of_groups: Vec<f64> = rows().map(|row| dot(row, direction)).collect();
            let signed = self.ties.group.iter().zip(&self.ties.sign);
            signed.map(|(&group, &sign)| f64::from(sign) * of_groups[group]).collect()
        };
        directions.iter().map(|direction| self.best(&scores(direction))).collect()
    }

    /// The labels with the largest Σ yᵢ gainᵢ; the first row counts as +1, since the signs may be exchanged.
    fn best(&self, gains: &[f64]) -> Vec<i8> {
        let mut labels = self.ties.best(gains, self.allowed).expect("`new` found some");
        if labels[0] < 0 {
            labels.iter_mut().for_each(|label| *label = -*label);
        }
        labels
    }

    /// The labels that cost decision values least: Σ max(0, 1 − yᵢfᵢ).
    fn relabel(&self, values: &[f64]) -> Vec<i8> {
        let gain = |f: &f64| 0.5 * ((1.0 + f).max(0.0) - (1.0 - f).max(0.0));
        self.best(&values.iter().map(gain).collect::<Vec<f64>>())
    }

    /// Trains and relabels while that lowers the objective.
    pub(crate) fn improve(&self, labels: Vec<i8>) -> Labelling {
        let first = self.train(labels, &vec![0.0; self.size()]);
        let relabel = |best: &Labelling| {
            let signed: Vec<f64> =
                best.lambda.iter().zip(&best.labels).map(|(l, y)| l * f64::from(*y)).collect();
            let values: Vec<f64> =
                self.gram.chunks_exact(self.size()).map(|row| dot(row, &signed)).collect();
            self.relabel(&values)
        };
        train_and_relabel(first, self.context, relabel, |labels, start| self.train(labels, start))
    }

    fn train(&self, labels: Vec<i8>, start: &[f64]) -> Labelling {
        let mut q = self.gram.to_vec();
        for (row, &label) in q.chunks_exact_mut(self.size()).zip(&labels) {
            for (value, &other) in row.iter_mut().zip(&labels) {
                *value *= f64::from(label * other);
            }
        }
        let linear = vec![1.0; self.size()];
        let solution = BoxQp::solve(&q, &linear, start, self.context);
        // The upper end of the gap: never less than the objective.
        let objective = solution.value + solution.gap;
        Labelling { labels, lambda: solution.lambda, objective, status: Status::Solved }
    }
}
