//! What a search found: its trials and the best of them.

use super::{Point, Record};
use crate::solver::Status;

/// A point with what was found about it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Trial {
    /// The point.
    pub point: Point,
    /// Rows that it learnt from on the first split: fewer than all in early rounds of halving.
    pub rows: usize,
    /// What it made of every split; `None` where it was not tried or has not finished.
    pub records: Vec<Option<Record>>,
    /// Why it has no score somewhere.
    pub failure: Option<String>,
}

impl Trial {
    /// A point that has not been tried yet.
    pub(super) fn new(point: Point, rows: usize, splits: usize) -> Self {
        Self { point, rows, records: vec![None; splits], failure: None }
    }

    /// The scores that are known.
    pub(super) fn scores(&self) -> impl Iterator<Item = f64> + '_ {
        self.records.iter().flatten().filter_map(|record| record.score)
    }

    /// Mean score over the splits; `None` unless all have one.
    pub fn mean(&self) -> Option<f64> {
        let count = self.scores().count();
        (count == self.records.len() && count > 0)
            .then(|| self.scores().sum::<f64>() / count as f64)
            .filter(|mean| !mean.is_nan())
    }

    /// Mean score over the splits that have one.
    pub fn partial_mean(&self) -> Option<f64> {
        let count = self.scores().count();
        let mean = self.scores().sum::<f64>() / count as f64;
        (count > 0 && !mean.is_nan()).then_some(mean)
    }

    /// How many splits have a score.
    pub fn scored_splits(&self) -> usize {
        self.scores().count()
    }

    /// Standard deviation of the scores over the splits.
    pub fn deviation(&self) -> Option<f64> {
        let (mean, count) = (self.mean()?, self.records.len() as f64);
        let squares: f64 = self.scores().map(|score| (score - mean).powi(2)).sum();
        Some((squares / count).sqrt())
    }

    /// Seconds of training over the splits.
    pub fn fit_seconds(&self) -> f64 {
        self.records.iter().flatten().map(|record| record.fit_seconds).sum()
    }

    /// Steps of the solver over the splits.
    pub fn iterations(&self) -> u64 {
        self.records.iter().flatten().map(|record| record.iterations).sum()
    }
}

/// What a search found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Found {
    /// Everything that was tried, in order.
    pub trials: Vec<Trial>,
    /// The trial with the best mean on the most rows that any was finished on, the first of equals;
    /// where a stopped search finished none, of those with the most splits.
    pub best: Option<usize>,
    /// Why trials are missing, if so.
    pub stopped: Option<Status>,
}

impl Found {
    /// The best trial.
    pub fn best(&self) -> Option<&Trial> {
        self.best.map(|best| &self.trials[best])
    }

    /// The trials whose mean is within one standard error of the best.
    pub fn near_best(&self) -> Vec<usize> {
        let Some(best) = self.best() else { return Vec::new() };
        let (Some(mean), Some(deviation)) = (best.mean(), best.deviation()) else {
            return Vec::new();
        };
        let error = deviation / (best.records.len() as f64).sqrt();
        let near = |trial: &Trial| {
            trial.rows == best.rows && trial.mean().is_some_and(|own| own >= mean - error)
        };
        (0..self.trials.len()).filter(|&t| near(&self.trials[t])).collect()
    }
}
