//! Searches in rounds over any estimator: the library decides what is tried next, a callable of Python
//! trains and scores it.

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use widemargin::operation::tune::{self, SearchRound, Split};
use widemargin::{Context, Error};

use crate::errors::exception;
use crate::machines::limited;
use crate::search::rows;
use crate::training::slice;

/// A callable that evaluates rounds, and what it raised.
struct Evaluator<'py> {
    function: Bound<'py, PyAny>,
    raised: Option<PyErr>,
}

impl<'py> Evaluator<'py> {
    fn new(function: Bound<'py, PyAny>) -> Self {
        Self { function, raised: None }
    }

    /// Keeps an exception for [`finish`](Self::finish) and ends the search.
    fn kept<T>(&mut self, result: PyResult<T>) -> widemargin::Result<T> {
        result.map_err(|error| {
            self.raised = Some(error);
            Error::Interrupted
        })
    }

    /// Calls `function(candidates, rows, [(split, training rows), …])`, which returns the scores of
    /// every candidate.
    fn scores(&mut self, round: &SearchRound<'_>) -> widemargin::Result<Vec<Vec<f64>>> {
        let py = self.function.py();
        let part = |s: usize| {
            let train = round.splits[s].train.iter().map(|&row| row as i64);
            (s, PyArray1::from_iter(py, train))
        };
        let splits: Vec<_> = round.tried.clone().map(part).collect();
        let called = self.function.call1((round.candidates.to_vec(), round.rows, splits));
        let scores = called.and_then(|scores| scores.extract());
        self.kept(scores)
    }

    /// Calls `function(points)`, which returns the place and the score of every point.
    fn points(&mut self, points: &[Vec<f64>]) -> widemargin::Result<Vec<(Vec<f64>, f64)>> {
        let called = self.function.call1((points.to_vec(),));
        let scored = called.and_then(|scored| scored.extract());
        self.kept(scored)
    }

    fn finish(self, result: widemargin::Result<()>) -> PyResult<()> {
        match self.raised {
            Some(error) => Err(error),
            None => result.map_err(exception),
        }
    }
}

/// The splits with these rows to learn from; their evaluation knows those held out.
fn splits(trains: &[PyReadonlyArray1<'_, i64>]) -> PyResult<Vec<Split>> {
    trains.iter().map(|train| Ok(Split { train: rows(train)?, test: Vec::new() })).collect()
}

/// Successive halving of so many candidates over splits with the rows `trains` to learn from.
#[pyfunction]
pub(crate) fn halving<'py>(
    candidates: usize,
    trains: Vec<PyReadonlyArray1<'py, i64>>,
    classes: Option<PyReadonlyArray1<'py, u32>>,
    factor: usize,
    smallest: usize,
    max_seconds: Option<f64>,
    evaluate: Bound<'py, PyAny>,
) -> PyResult<()> {
    let classes = classes.as_ref().map(slice).transpose()?;
    let (splits, context) = (splits(&trains)?, limited(Context::new(), max_seconds));
    let mut evaluator = Evaluator::new(evaluate);
    let scores = |round: &SearchRound<'_>| evaluator.scores(round);
    let ended = tune::halving(candidates, &splits, classes, factor, smallest, &context, scores);
    evaluator.finish(ended)
}

/// A race of so many candidates over splits with the rows `trains` to learn from.
#[pyfunction]
pub(crate) fn race<'py>(
    candidates: usize,
    trains: Vec<PyReadonlyArray1<'py, i64>>,
    max_seconds: Option<f64>,
    evaluate: Bound<'py, PyAny>,
) -> PyResult<()> {
    let (splits, context) = (splits(&trains)?, limited(Context::new(), max_seconds));
    let mut evaluator = Evaluator::new(evaluate);
    let ended = tune::race(candidates, &splits, &context, |round| evaluator.scores(round));
    evaluator.finish(ended)
}

/// So many points of the unit cube, where a surrogate of their scores expects most.
#[pyfunction]
pub(crate) fn surrogate<'py>(
    dimensions: usize,
    points: usize,
    seed: u64,
    max_seconds: Option<f64>,
    evaluate: Bound<'py, PyAny>,
) -> PyResult<()> {
    let context = limited(Context::new(), max_seconds).with_seed(seed);
    let mut evaluator = Evaluator::new(evaluate);
    let ended = tune::surrogate(dimensions, points, &context, |points| evaluator.points(points));
    evaluator.finish(ended)
}
