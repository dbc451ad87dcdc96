//! The smallest model that answers held-out rows nearly as well.

use super::{Compressed, Compression, Target};
use crate::context::Context;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::machine::Model;
use crate::operation::cross_validate::Quality;

/// Compresses as far as the score on `held_out` falls by at most `max_loss`; `None` when even the
/// first step costs more.
///
/// The score is the accuracy of a classifier (0.002 allows 0.2 percentage points) or the coefficient
/// of determination of a regressor. Sizes are tried by bisection on a logarithmic scale, so the
/// answer is the smallest size tried that is good enough, not a proof that none smaller is.
///
/// # Errors
/// As [`Compression::apply`]; [`Error::Parameter`] for a loss out of range, [`Error::Labels`] for rows
/// without labels.
pub fn smallest_within(
    model: &Model,
    held_out: &Dataset,
    max_loss: f64,
    refinement: usize,
    context: &Context,
) -> Result<Option<Compressed>> {
    if !(max_loss.is_finite() && (0.0..1.0).contains(&max_loss)) {
        return Err(Error::parameter("max_loss", "a number of at least 0 and below 1", max_loss));
    }
    let wanted = score(model, held_out, context)? - max_loss;
    let total: usize =
        model.functions.iter().flat_map(|f| &f.parts).map(|part| part.coefficients.len()).sum();
    let (mut bad, mut good) = (model.functions.len().max(1), total);
    let mut best = None;
    while good > bad + 1 && (good as f64) > 1.05 * bad as f64 && context.stop_request().is_none() {
        let count = ((good as f64 * bad as f64).sqrt().round() as usize).clamp(bad + 1, good - 1);
        let compression = Compression { target: Target::Vectors(count), refinement };
        let candidate = compression.apply(model, context)?;
        if score(&candidate.model, held_out, context)? >= wanted {
            good = candidate.model.support_count().min(count);
            best = Some(candidate);
        } else {
            bad = count;
        }
    }
    Ok(best)
}

/// Accuracy or coefficient of determination.
fn score(model: &Model, data: &Dataset, context: &Context) -> Result<f64> {
    let answers = model.predictor(context)?.predict(data.features())?;
    Ok(match Quality::new(model.kind, data.labels(), &answers)? {
        Quality::Classes(confusion) => confusion.accuracy(),
        Quality::Numbers(errors) => errors.determination,
    })
}
