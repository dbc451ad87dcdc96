//! Size against quality on held-out rows: the smallest model that predicts nearly as well, and the
//! score at several sizes.

use super::element::Element;
use super::pool::VectorPool;
use super::{Compressed, CompressionTarget, ModelCompression};
use crate::context::Context;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::machine::{Model, Precision};
use crate::operation::cross_validate::Quality;

/// Each size tried is this share of the one before.
const SIZE_RATIO: f64 = 0.8;

/// Sizes of a curve.
const MOST_SIZES: usize = 12;

/// A number of vectors and the score of the model with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeScore {
    /// Vectors of the model.
    pub vectors: usize,
    /// Accuracy, or the coefficient of determination of a regressor, on held-out rows.
    pub score: f64,
}

/// Compresses as far as the score on `held_out` falls by at most `max_loss`; `None` when even the
/// first step costs more.
///
/// The score is the accuracy of a classifier (0.002 allows 0.2 percentage points) or the coefficient
/// of determination of a regressor. Vectors are merged once; sizes on the way, each four fifths of the
/// one before, are tried by bisection, so the result is the smallest size tried that is good enough,
/// not a proof that none smaller is. The target of `compression` is not used.
///
/// # Errors
/// As [`ModelCompression::apply`]; [`Error::Parameter`] for a loss out of range, [`Error::Labels`] for rows
/// without labels, [`Error::Interrupted`] when it was stopped before a smaller model was good enough.
pub fn smallest_within(
    model: &Model,
    held_out: &Dataset,
    max_loss: f64,
    compression: &ModelCompression,
    context: &Context,
) -> Result<Option<Compressed>> {
    if !(max_loss.is_finite() && (0.0..1.0).contains(&max_loss)) {
        return Err(Error::parameter("max_loss", "a number of at least 0 and below 1", max_loss));
    }
    let wanted = score(model, held_out, context)? - max_loss;
    let path = SizePath::new(model, compression, SIZE_RATIO, usize::MAX, context)?;
    // Sizes before `good` are good enough, those from `bad` on are not.
    let (mut good, mut bad, mut best) = (0, path.starts.len(), None);
    let attempt = |step: usize| -> Result<Option<Compressed>> {
        context.checkpoint()?;
        let candidate = path.complete(step, context)?;
        // One that was stopped is not of its size.
        context.checkpoint()?;
        let is_good = score(&candidate.model, held_out, context)? >= wanted;
        Ok(is_good.then_some(candidate))
    };
    while good < bad {
        let middle = good + (bad - good) / 2;
        match attempt(middle) {
            // The best model so far, if there is one.
            Err(Error::Interrupted) if best.is_some() => break,
            other => match other? {
                Some(candidate) => (best, good) = (Some(candidate), middle + 1),
                None => bad = middle,
            },
        }
    }
    Ok(best)
}

/// The score on `held_out` at a dozen sizes, each a half of the one before, the model itself first.
///
/// # Errors
/// As [`smallest_within`].
pub fn accuracy_by_size(
    model: &Model,
    held_out: &Dataset,
    compression: &ModelCompression,
    context: &Context,
) -> Result<Vec<SizeScore>> {
    let whole =
        SizeScore { vectors: model.support_count(), score: score(model, held_out, context)? };
    let path = SizePath::new(model, compression, 0.5, MOST_SIZES, context)?;
    let mut points = vec![whole];
    for step in 0..path.starts.len() {
        if context.stop_request().is_some() {
            break;
        }
        let smaller = path.complete(step, context)?.model;
        let vectors = smaller.support_count();
        if vectors < points[points.len() - 1].vectors {
            match score(&smaller, held_out, context) {
                Err(Error::Interrupted) => break,
                score => points.push(SizeScore { vectors, score: score? }),
            }
        }
    }
    Ok(points)
}

/// A model merged once, as it is at several sizes.
struct SizePath<'a> {
    model: &'a Model,
    compression: ModelCompression,
    originals: Vec<VectorPool>,
    starts: Vec<Vec<VectorPool>>,
}

impl<'a> SizePath<'a> {
    fn new(
        model: &'a Model,
        compression: &ModelCompression,
        step: f64,
        most: usize,
        context: &Context,
    ) -> Result<Self> {
        let compression =
            ModelCompression { target: CompressionTarget::Vectors(1), ..*compression };
        let originals = compression.originals(model)?;
        let total: usize = originals.iter().map(VectorPool::len).sum();
        let fewest = model.classes.as_ref().map_or(1, |table| table.names.len());
        let sizes = std::iter::successors(Some(total as f64 * step), |size| Some(size * step));
        let sizes = sizes.map(|size| size.round() as usize).take_while(|&size| size >= fewest);
        let mut sizes: Vec<usize> = sizes.take(most.min(200)).collect();
        sizes.dedup();
        let starts = match model.precision() {
            Precision::F32 => compression.starts::<f32>(model, &originals, &sizes, context)?,
            Precision::F64 => compression.starts::<f64>(model, &originals, &sizes, context)?,
        };
        Ok(Self { model, compression, originals, starts })
    }

    fn complete(&self, step: usize, context: &Context) -> Result<Compressed> {
        match self.model.precision() {
            Precision::F32 => self.complete_in::<f32>(step, context),
            Precision::F64 => self.complete_in::<f64>(step, context),
        }
    }

    fn complete_in<T: Element>(&self, step: usize, context: &Context) -> Result<Compressed> {
        let start = self.starts[step].clone();
        self.compression.complete::<T>(self.model, &self.originals, start, context)
    }
}

/// Accuracy or coefficient of determination.
fn score(model: &Model, data: &Dataset, context: &Context) -> Result<f64> {
    let predictions = model.predictor(context)?.predict_in_time(data.features())?;
    Ok(match Quality::new(model.kind, data.labels(), data.groups(), &predictions)? {
        Quality::Classes(confusion) => confusion.accuracy(),
        Quality::Numbers(errors) => errors.determination,
        Quality::Orders(orders) => orders.kendall_tau,
    })
}
