//! How good a machine is as the rows that it learns from become more.
//!
//! Of every split a growing part of the training rows is learnt from, with the shares of the classes; held-out rows and
//! the rows of the part itself are predicted. Where the two scores have met, further
//! rows will not help; where the second is far above the first, further rows or a simpler machine may.

use std::sync::Mutex;

use super::tune::{Evaluation, Job, Metric, Predictions, Reuse, Split, evaluate, subsample};
use crate::context::Context;
use crate::data::{ClassOrder, Dataset, Dense, Labels};
use crate::error::{Error, Result};
use crate::machine::Machine;

/// One size of the training parts.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LearningPoint {
    /// Rows that were learnt from, on the first split.
    pub rows: usize,
    /// The score of held-out rows on every split that was finished.
    pub held_out: Vec<f64>,
    /// The score of the rows that were learnt from on each of these splits.
    pub training: Vec<f64>,
}

/// Mean and standard deviation of scores.
pub fn mean_and_deviation(scores: &[f64]) -> (f64, f64) {
    let count = scores.len() as f64;
    let mean = scores.iter().sum::<f64>() / count;
    let squares: f64 = scores.iter().map(|score| (score - mean) * (score - mean)).sum();
    (mean, (squares / count).sqrt())
}

/// Of every part: the scores of held-out rows and of its own, or why there are none.
type Scores = Vec<Option<Result<(f64, f64)>>>;

/// The scores of a machine trained on each of some shares of the training rows; errors have a negative sign. At a
/// deadline or an interruption the finished trainings are kept.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::kernel::Kernel;
/// use widemargin::machine::Svc;
/// use widemargin::operation::folds::Folds;
/// use widemargin::operation::learning_curve::learning_curve;
/// use widemargin::operation::tune::{Metric, repeated};
/// use widemargin::Context;
///
/// let rows = Dense::new(8, 1, vec![0.0, 0.1, 0.2, 0.3, 1.0, 1.1, 1.2, 1.3])?;
/// let data = Dataset::new(Matrix::DenseF64(rows), Labels::Int(vec![0, 0, 0, 0, 1, 1, 1, 1]))?;
/// let svc = Svc { kernel: Kernel::Linear, ..Svc::default() };
/// let splits = repeated(&Folds::Stratified(2), 1, &data, None, 0)?;
/// let shares = [0.5, 1.0];
/// let curve = learning_curve(Box::new(svc), &data, &splits, &shares, Metric::Accuracy, &Context::new())?;
/// assert_eq!((curve[0].rows, curve[1].rows), (2, 4));
/// # Ok::<(), widemargin::Error>(())
/// ```
///
/// # Errors
/// [`Error::Parameter`] for shares outside of (0, 1] or none; the first failure of a training where no share has a
/// score; [`Error::Interrupted`] when nothing was finished.
pub fn learning_curve(
    machine: Box<dyn Machine>,
    data: &Dataset,
    splits: &[Split],
    shares: &[f64],
    metric: Metric,
    context: &Context,
) -> Result<Vec<LearningPoint>> {
    if shares.is_empty() || shares.iter().any(|share| !(*share > 0.0 && *share <= 1.0)) {
        let expected = "shares above 0 and at most 1";
        return Err(Error::parameter("sizes", expected, format!("{shares:?}")));
    }
    let classes = match data.labels() {
        Labels::Real(_) | Labels::None => None,
        labels => labels.classes(ClassOrder::Sorted).ok(),
    };
    let codes = classes.as_ref().map(|classes| &classes.codes[..]);
    let part = |split: &Split, share: f64| {
        let rows = ((share * split.train.len() as f64).round() as usize).max(1);
        let train = subsample(&split.train, rows.min(split.train.len()), codes);
        let test = split.test.iter().chain(&train).copied().collect();
        Split { train, test }
    };
    let parts: Vec<Split> =
        shares.iter().flat_map(|&s| splits.iter().map(move |split| part(split, s))).collect();
    let machines = [machine];
    let job = Job {
        machines: &machines,
        data,
        splits: &parts,
        scaling: None,
        response: metric.response(),
        reuse: Reuse::Nothing,
    };
    let scores: Mutex<Scores> = Mutex::new((0..parts.len()).map(|_| None).collect());
    let take = |_: usize, s: usize, evaluation: Result<Evaluation<'_>>| {
        let held = splits[s % splits.len()].test.len();
        let score = evaluation.and_then(|one| both_scores(&one, data, &parts[s], held, metric));
        scores.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[s] = Some(score);
        Ok(())
    };
    evaluate(&job, |_, _| true, take, context)?;
    let scores = scores.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let points = (shares.iter().enumerate()).map(|(at, _)| {
        let own = &scores[at * splits.len()..(at + 1) * splits.len()];
        let found: Vec<(f64, f64)> =
            own.iter().flatten().filter_map(|score| score.as_ref().ok().copied()).collect();
        let (held_out, training) = found.into_iter().unzip();
        LearningPoint { rows: parts[at * splits.len()].train.len(), held_out, training }
    });
    let points: Vec<LearningPoint> = points.filter(|point| !point.held_out.is_empty()).collect();
    if points.is_empty() {
        return Err(scores
            .into_iter()
            .flatten()
            .find_map(Result::err)
            .unwrap_or(Error::Interrupted));
    }
    Ok(points)
}

/// The scores of the first `held` rows of a split and of the others.
fn both_scores(
    evaluation: &Evaluation<'_>,
    data: &Dataset,
    split: &Split,
    held: usize,
    metric: Metric,
) -> Result<(f64, f64)> {
    let score = |range: std::ops::Range<usize>| {
        let places: Vec<usize> = range.clone().collect();
        let table = |table: &Dense<f64>| {
            let width = table.columns();
            let values = table.values()[range.start * width..range.end * width].to_vec();
            Dense::new(range.len(), width, values)
        };
        let all = &evaluation.predictions;
        let predictions = Predictions {
            labels: all.labels.select(&places),
            values: all.values.as_ref().map(table).transpose()?,
            probabilities: all.probabilities.as_ref().map(table).transpose()?,
        };
        let rows = &split.test[range.clone()];
        let groups = data.groups().map(|groups| rows.iter().map(|&row| groups[row]).collect());
        let groups: Option<Vec<i64>> = groups;
        let one = Evaluation { predictions, ..*evaluation };
        metric.score(&one, &data.labels().select(rows), groups.as_deref())
    };
    Ok((score(0..held)?, score(held..split.test.len())?))
}
