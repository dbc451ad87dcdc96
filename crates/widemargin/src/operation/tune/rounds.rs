//! Searches in rounds: successive halving, races and a surrogate of the scores.
//!
//! What is tried next depends on scores alone. Candidates are known by their numbers and splits by their
//! rows; training and scoring them is left to the caller, so that a search over machines of this crate
//! ([`search`](super::search)) and one over estimators of others take the same decisions.
//!
//! The first round is always tried; later ones only while the context has not asked to stop.

use std::ops::Range;

use super::Split;
use super::elimination::{RaceScores, subsample, survivors};
use super::surrogate::suggest;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::numeric::random::Generator;

/// Which candidates are tried on what.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SearchRound<'a> {
    /// The candidates, ascending.
    pub candidates: &'a [usize],
    /// Rows to learn from on the first split.
    pub rows: usize,
    /// All splits; rows to learn from may be fewer than those of the search.
    pub splits: &'a [Split],
    /// The splits that candidates are tried on.
    pub tried: Range<usize>,
}

/// Successive halving: all candidates on few rows, then the best of them on more, until one share of
/// `factor` is left on all rows (Jamieson and Talwalkar 2016).
///
/// `evaluate` returns the scores of every candidate of a round, NaN where it failed; more is better.
/// `classes`, the class of every row, keeps their shares the same on few rows.
///
/// ```
/// use widemargin::Context;
/// use widemargin::operation::tune::{Split, halving};
///
/// let splits = [Split { train: (0..80).collect(), test: (80..100).collect() }];
/// let mut rounds = Vec::new();
/// halving(4, &splits, None, 2, 20, &Context::new(), |round| {
///     rounds.push((round.candidates.to_vec(), round.rows));
///     Ok(round.candidates.iter().map(|&c| vec![c as f64]).collect())
/// })?;
/// assert_eq!(rounds, [(vec![0, 1, 2, 3], 20), (vec![2, 3], 40), (vec![3], 80)]);
/// # Ok::<(), widemargin::Error>(())
/// ```
///
/// # Errors
/// [`Error::Parameter`] for a factor or rows below 2; what `evaluate` returns; [`Error::Length`] unless
/// it returns something for every candidate.
pub fn halving(
    candidates: usize,
    splits: &[Split],
    classes: Option<&[u32]>,
    factor: usize,
    smallest: usize,
    context: &Context,
    mut evaluate: impl FnMut(&SearchRound<'_>) -> Result<Vec<Vec<f64>>>,
) -> Result<()> {
    if factor < 2 || smallest < 2 {
        let found = format!("factor {factor}, {smallest} rows");
        return Err(Error::parameter("halving", "a factor and rows of at least 2", found));
    }
    let largest = splits.first().map_or(0, |split| split.train.len());
    let mut rows = smallest.min(largest);
    let mut running: Vec<usize> = (0..candidates).collect();
    while !running.is_empty() {
        let part = |split: &Split| match rows < largest {
            true => {
                Split { train: subsample(&split.train, rows, classes), test: split.test.clone() }
            }
            false => split.clone(),
        };
        let splits: Vec<Split> = splits.iter().map(part).collect();
        let tried = 0..splits.len();
        let round = SearchRound { candidates: &running, rows, splits: &splits, tried };
        let scores = complete(evaluate(&round)?, running.len())?;
        if context.stop_request().is_some() {
            break;
        }
        let mean = |scores: &Vec<f64>| scores.iter().sum::<f64>() / scores.len() as f64;
        let means: Vec<f64> = scores.iter().map(mean).collect();
        let (kept, more) = survivors(&means, factor, rows, largest);
        running = kept.iter().map(|&k| running[k]).collect();
        rows = more;
    }
    Ok(())
}

/// A race: all candidates split by split, without those that are clearly worse than the leader on the
/// splits so far, or have failed (Maron and Moore 1997).
///
/// `evaluate` returns the scores of every candidate of a round, here one each.
///
/// # Errors
/// What `evaluate` returns; [`Error::Length`] unless it returns something for every candidate.
pub fn race(
    candidates: usize,
    splits: &[Split],
    context: &Context,
    mut evaluate: impl FnMut(&SearchRound<'_>) -> Result<Vec<Vec<f64>>>,
) -> Result<()> {
    let rows = splits.first().map_or(0, |split| split.train.len());
    let mut race = RaceScores::new(candidates);
    for split in 0..splits.len() {
        let tried = split..split + 1;
        let round = SearchRound { candidates: race.running(), rows, splits, tried };
        let scores = complete(evaluate(&round)?, race.running().len())?;
        race.add(scores.iter().map(|scores| scores.first().copied().unwrap_or(f64::NAN)));
        if race.running().is_empty() || context.stop_request().is_some() {
            break;
        }
    }
    Ok(())
}

/// Points at random, then points where a Gaussian process through the scores expects the largest
/// improvement, `points` in all.
///
/// `evaluate` is given points of the unit cube of `dimensions` dimensions and returns, for each, the
/// middle of all points that mean the same and the score, NaN if it failed; more is better.
///
/// ```
/// use widemargin::Context;
/// use widemargin::operation::tune::surrogate;
///
/// let mut best = f64::NEG_INFINITY;
/// surrogate(1, 12, &Context::new(), |points| {
///     let scored = |x: &Vec<f64>| (x.clone(), -(x[0] - 0.3).powi(2));
///     let scored: Vec<_> = points.iter().map(scored).collect();
///     best = scored.iter().map(|(_, score)| *score).fold(best, f64::max);
///     Ok(scored)
/// })?;
/// assert!(best > -1e-3);
/// # Ok::<(), widemargin::Error>(())
/// ```
///
/// # Errors
/// What `evaluate` returns; [`Error::Length`] unless it returns something for every candidate.
pub fn surrogate(
    dimensions: usize,
    points: usize,
    context: &Context,
    mut evaluate: impl FnMut(&[Vec<f64>]) -> Result<Vec<(Vec<f64>, f64)>>,
) -> Result<()> {
    let mut generator = Generator::new(context.seed());
    let (mut places, mut scores): (Vec<Vec<f64>>, Vec<f64>) = (Vec::new(), Vec::new());
    while places.len() < points && (places.is_empty() || context.stop_request().is_none()) {
        let mut next = suggest(&places, &scores, dimensions, &mut generator, context);
        next.truncate(points - places.len());
        for (place, score) in complete(evaluate(&next)?, next.len())? {
            places.push(place);
            scores.push(score);
        }
    }
    Ok(())
}

/// What was returned for `candidates` candidates, if it is as many.
fn complete<T>(results: Vec<T>, candidates: usize) -> Result<Vec<T>> {
    if results.len() == candidates {
        return Ok(results);
    }
    Err(Error::length("results of a round of candidates", candidates, results.len()))
}
