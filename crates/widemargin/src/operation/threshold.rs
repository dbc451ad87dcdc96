//! Moving the boundary of two classes so that one kind of error stays rare.
//!
//! A two-class machine predicts a class when its score exceeds a threshold, which training puts
//! where both kinds of error cost the same. Sweeping it over the sorted scores of labelled rows that
//! did not train the model gives the ROC curve; the threshold taken is the one with the fewest errors
//! of the other kind among those within the limit (JHU 685.621, 1.4 and 1.7).

use super::metrics::RocCurve;
use crate::context::Context;
use crate::data::{Dataset, Label};
use crate::error::{Error, Result};
use crate::machine::Model;

/// Which errors are limited, as a share of the rows that could be one.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorLimit {
    /// Rows of the other class that are taken for the positive one.
    FalsePositives(f64),
    /// Rows of the positive class that are missed.
    FalseNegatives(f64),
}

/// A model with another boundary.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MovedThreshold {
    /// The model; it has no probabilities any more.
    pub model: Model,
    /// By how much a score must now exceed the old boundary for the positive class.
    pub shift: f64,
    /// Share of the other class taken for the positive one.
    pub false_positives: f64,
    /// Share of the positive class missed.
    pub false_negatives: f64,
    /// The rates of all thresholds.
    pub curve: RocCurve,
}

/// Moves the boundary of a model with two classes and one decision function.
///
/// # Errors
/// [`Error::Model`] for other models; [`Error::Parameter`] for a share outside 0 to 1 or an unknown
/// positive class; [`Error::Labels`] when one of the classes is missing among the rows.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Label, Labels, Matrix};
/// use widemargin::machine::{Fisher, Machine};
/// use widemargin::operation::threshold::{ErrorLimit, move_threshold};
/// use widemargin::Context;
///
/// let rows = Matrix::DenseF64(Dense::new(6, 1, vec![0.0, 1.0, 2.5, 2.0, 3.0, 4.0])?);
/// let data = Dataset::new(rows, Labels::Int(vec![0, 0, 0, 1, 1, 1]))?;
/// let context = Context::new();
/// let model = Fisher::default().fit(&data, &context)?;
/// // No row of class 1 may be missed.
/// let limit = ErrorLimit::FalseNegatives(0.0);
/// let moved = move_threshold(&model, &data, &Label::Int(1), limit, &context)?;
/// assert_eq!((moved.false_negatives, moved.false_positives), (0.0, 1.0 / 3.0));
/// # Ok::<(), widemargin::Error>(())
/// ```
pub fn move_threshold(
    model: &Model,
    data: &Dataset,
    positive: &Label,
    limit: ErrorLimit,
    context: &Context,
) -> Result<MovedThreshold> {
    let names = match &model.classes {
        Some(table) if table.names.len() == 2 && model.offsets().len() == 1 => &table.names,
        _ => {
            let message = format!("{} has no single boundary between two classes", model.kind);
            return Err(Error::Model { message });
        }
    };
    let place = names.iter().position(|name| name.to_string() == positive.to_string());
    let Some(place) = place else {
        let expected = format!("{} or {}", names[0], names[1]);
        return Err(Error::parameter("positive", expected, positive));
    };
    let (ErrorLimit::FalsePositives(share) | ErrorLimit::FalseNegatives(share)) = limit;
    if !(0.0..=1.0).contains(&share) {
        return Err(Error::parameter("limit", "a share from 0 to 1", share));
    }
    // Decision values are positive for the first class.
    let sign = if place == 0 { 1.0 } else { -1.0 };
    let values = model.predictor(context)?.decision_values_in_time(data.features())?;
    let scores: Vec<f64> = values.values().iter().map(|value| sign * value).collect();
    let curve = RocCurve::of_class(&scores, data.labels(), positive)?;
    let mut distinct = scores;
    distinct.sort_by(|a, b| b.total_cmp(a));
    distinct.dedup();
    let allowed = |&(alarms, hits): &(f64, f64)| match limit {
        ErrorLimit::FalsePositives(share) => alarms <= share,
        ErrorLimit::FalseNegatives(share) => 1.0 - hits <= share + f64::EPSILON,
    };
    // Both rates grow along the curve: the last point within the limit, or the first.
    let chosen = match limit {
        ErrorLimit::FalsePositives(_) => curve.points.iter().rposition(allowed),
        ErrorLimit::FalseNegatives(_) => curve.points.iter().position(allowed),
    };
    let chosen = chosen.unwrap_or(0);
    let shift = between(&distinct, chosen);
    let mut moved = model.clone();
    moved.move_offset(0, sign * shift);
    moved.calibration = None;
    let (false_positives, hits) = curve.points[chosen];
    Ok(MovedThreshold { model: moved, shift, false_positives, false_negatives: 1.0 - hits, curve })
}

/// A number below the first `above` of descending scores and above the others.
fn between(scores: &[f64], above: usize) -> f64 {
    match (above.checked_sub(1).map(|last| scores[last]), scores.get(above)) {
        (Some(last), Some(next)) => 0.5 * (last + next),
        (None, Some(first)) => first + first.abs().max(1.0),
        (Some(last), None) => last - last.abs().max(1.0),
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Labels, Matrix};
    use crate::kernel::Kernel;
    use crate::machine::{Machine, Svc};
    use crate::numeric::random::Generator;

    fn clouds() -> Dataset {
        let mut generator = Generator::new(8);
        let values = (0..400).flat_map(|i| {
            let centre = if i % 4 == 0 { 1.2 } else { 0.0 };
            [centre + generator.normal(), centre + generator.normal()]
        });
        let table = Dense::new(400, 2, values.collect()).unwrap();
        let labels = (0..400).map(|i| if i % 4 == 0 { "ill" } else { "well" }.to_owned());
        Dataset::new(Matrix::DenseF64(table), Labels::Text(labels.collect())).unwrap()
    }

    #[test]
    fn limits_are_kept_by_the_answers_and_cost_as_little_as_can_be() {
        let data = clouds();
        let context = Context::new();
        let machine = Svc { kernel: Kernel::Gaussian { gamma: 0.5 }, ..Svc::default() };
        let model = machine.fit(&data, &context).unwrap();
        let rates = |model: &Model| {
            let found = model.predictor(&context).unwrap().predict(data.features()).unwrap();
            let is = |labels: &Labels, i: usize| labels.get(i) == Some(Label::Text("ill".into()));
            let rate = |truth: bool| {
                let rows: Vec<usize> =
                    (0..400).filter(|&i| is(data.labels(), i) == truth).collect();
                let wrong = rows.iter().filter(|&&i| is(&found, i) != truth).count();
                wrong as f64 / rows.len() as f64
            };
            (rate(false), rate(true))
        };
        let same = |(alarms, missed): (f64, f64), moved: &MovedThreshold| {
            assert!((alarms - moved.false_positives).abs() < 1e-12, "{alarms} {missed}");
            assert!((missed - moved.false_negatives).abs() < 1e-12, "{alarms} {missed}");
        };
        let mut before = f64::INFINITY;
        for share in [0.0, 0.02, 0.1, 0.5, 1.0] {
            let positive = Label::Text("ill".into());
            let limit = ErrorLimit::FalseNegatives(share);
            let moved = move_threshold(&model, &data, &positive, limit, &context).unwrap();
            same(rates(&moved.model), &moved);
            assert!(moved.false_negatives <= share + 1e-12 && moved.false_positives <= before);
            before = moved.false_positives;
            let rising = |pair: &[(f64, f64)]| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1;
            assert!(moved.curve.points.windows(2).all(rising));
            // No other threshold within the limit has fewer false positives.
            let fewer = moved.curve.points.iter().filter(|point| 1.0 - point.1 <= share + 1e-12);
            assert!(fewer.into_iter().all(|point| point.0 >= moved.false_positives));
            let limit = ErrorLimit::FalsePositives(share);
            let moved = move_threshold(&model, &data, &positive, limit, &context).unwrap();
            same(rates(&moved.model), &moved);
            assert!(moved.false_positives <= share);
        }
    }

    #[test]
    fn what_has_no_boundary_is_refused() {
        let data = clouds();
        let context = Context::new();
        let model = Svc::default().fit(&data, &context).unwrap();
        let fail = |positive: &str, limit| {
            let positive = Label::Text(positive.into());
            move_threshold(&model, &data, &positive, limit, &context).unwrap_err().to_string()
        };
        assert!(fail("dead", ErrorLimit::FalsePositives(0.1)).contains("ill or well"));
        assert!(fail("ill", ErrorLimit::FalsePositives(1.5)).contains("from 0 to 1"));
    }
}
