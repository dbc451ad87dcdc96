//! Pictures of scores: precision against recall, probabilities against shares, errors against predictions.

use widemargin::data::{Dataset, Label};
use widemargin::machine::Model;
use widemargin::operation::metrics::{RegressionErrors, RocCurve};

use super::{Common, scores, title};
use crate::failure::{CommandResult, Failure};
use crate::picture::{Chart, Draw, Scale, Series};
use crate::session::Session;

const SQUARE: (f64, f64) = (520.0, 520.0);

/// Whether every row is of a class.
fn is_of(data: &Dataset, class: &Label) -> Vec<bool> {
    let labels = (0..data.rows()).map(|i| data.labels().get(i));
    labels.map(|label| label.is_some_and(|label| is_same(&label, class))).collect()
}

/// Whether two labels name the same class: 1 and 1.0 do.
fn is_same(a: &Label, b: &Label) -> bool {
    let number = |label: &Label| match label {
        Label::Int(value) => Some(*value as f64),
        Label::Real(value) => Some(*value),
        _ => None,
    };
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// (recall, precision) at every threshold, from high to low, and the average precision: the sum of
/// precisions weighted with the steps of the recall (scikit-learn's definition).
fn precision_recall(curve: &RocCurve, positives: usize, rows: usize) -> (Vec<(f64, f64)>, f64) {
    let (positives, negatives) = (positives as f64, (rows - positives) as f64);
    let (mut average, mut last) = (0.0, 0.0);
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(curve.points.len());
    for &(alarms, recall) in curve.points.iter().skip(1) {
        let (hits, alarms) = (recall * positives, alarms * negatives);
        let precision = hits / (hits + alarms);
        average += (recall - last) * precision;
        // As steps: a precision holds until the next threshold.
        points.extend([(last, precision), (recall, precision)]);
        last = recall;
    }
    (points, average)
}

/// Draws precision against recall of every class.
pub(super) fn draw_precision_recall(
    common: &Common,
    session: &Session<'_>,
    model: &Model,
    data: &Dataset,
) -> CommandResult<()> {
    let of_classes = session.ask("predicting", |context| scores(model, data, context))?;
    let mut series = Vec::new();
    for (style, (class, scores)) in of_classes.into_iter().enumerate() {
        let curve = RocCurve::of_class(&scores, data.labels(), &class)?;
        let positives = is_of(data, &class).into_iter().filter(|is| *is).count();
        let (points, average) = precision_recall(&curve, positives, data.rows());
        let chance = share(positives, data.rows());
        let name = format!("{class} (average {average:.4}, chance {chance:.4})");
        series.push(Series::new(name, Draw::Line, points).styled(style));
    }
    let axis = |name: &str| (name.to_owned(), Scale::Linear(0.0, 1.0));
    let chart = Chart {
        title: title(common, || "precision and recall".to_owned()),
        note: None,
        x: axis("recall"),
        y: axis("precision"),
        series,
        shades: None,
        size: SQUARE,
    };
    session.save(|| chart.draw(&common.output))
}

/// Bins of equal width that probabilities fall into.
const BINS: usize = 10;

/// Mean probability and share of the class in every bin with rows, and the Brier score: the mean squared
/// difference between probability and truth.
fn reliability(probabilities: &[f64], truth: &[bool]) -> (Vec<(f64, f64)>, f64) {
    let mut bins = [(0_usize, 0.0_f64, 0_usize); BINS];
    let mut brier = 0.0;
    for (&probability, &is) in probabilities.iter().zip(truth) {
        let bin = &mut bins[((probability * BINS as f64) as usize).min(BINS - 1)];
        *bin = (bin.0 + 1, bin.1 + probability, bin.2 + usize::from(is));
        brier += (probability - f64::from(u8::from(is))).powi(2);
    }
    let points = bins.iter().filter(|bin| bin.0 > 0);
    let points = points.map(|bin| (bin.1 / bin.0 as f64, share(bin.2, bin.0))).collect();
    (points, brier / truth.len().max(1) as f64)
}

/// Draws the share of a class among the rows that got about the same probability of it.
pub(super) fn draw_calibration(
    common: &Common,
    session: &Session<'_>,
    model: &Model,
    data: &Dataset,
) -> CommandResult<()> {
    let (Some(table), Some(_)) = (&model.classes, &model.calibration) else {
        let message = "a calibration curve needs classes with probabilities: train --probability";
        return Err(Failure::usage(message));
    };
    let probabilities = session.ask("predicting", |context| {
        let predictor = model.predictor(context)?;
        predictor.probabilities_of(&predictor.decision_values_in_time(data.features())?)
    })?;
    if data.labels().is_empty() {
        return Err(Failure::usage("a calibration curve needs labels"));
    }
    let shown: Vec<usize> = match table.names.len() {
        2 => vec![table.positive()],
        count => (0..count).collect(),
    };
    let mut series = vec![Series::new("calibrated", Draw::Guide, vec![(0.0, 0.0), (1.0, 1.0)])];
    for (style, class) in shown.into_iter().enumerate() {
        let of: Vec<f64> = (0..data.rows()).map(|i| probabilities.row(i)[class]).collect();
        let (points, brier) = reliability(&of, &is_of(data, &table.names[class]));
        let name = format!("{} (Brier score {brier:.4})", table.names[class]);
        series.push(Series::new(name, Draw::Marked, points).styled(style));
    }
    let axis = |name: &str| (name.to_owned(), Scale::Linear(0.0, 1.0));
    let chart = Chart {
        title: title(common, || "calibration".to_owned()),
        note: Some(format!("rows in {BINS} bins of equal width by their probability")),
        x: axis("mean probability"),
        y: axis("share of the class"),
        series,
        shades: None,
        size: SQUARE,
    };
    session.save(|| chart.draw(&common.output))
}

/// Draws what predictions of numbers miss against the predictions.
pub(super) fn draw_residuals(
    common: &Common,
    session: &Session<'_>,
    model: &Model,
    data: &Dataset,
) -> CommandResult<()> {
    if !model.kind.is_regressor() {
        return Err(Failure::usage(format!("residuals need numbers, not {}", model.kind)));
    }
    let predictions = session.ask("predicting", |context| super::predict(model, data, context))?;
    let (truth, predictions) = (data.labels().values()?, predictions.values()?);
    let errors = RegressionErrors::new(&truth, &predictions)?;
    let points: Vec<(f64, f64)> =
        predictions.iter().zip(&truth).map(|(&f, &y)| (f, y - f)).collect();
    let x = Scale::linear(points.iter().map(|p| p.0));
    let Scale::Linear(low, high) = x else { return Ok(()) };
    let chart = Chart {
        title: title(common, || "residuals".to_owned()),
        note: Some(format!(
            "root mean squared error {:.6}, R² {:.4}",
            errors.mean_squared_error.sqrt(),
            errors.determination
        )),
        y: ("truth − prediction".into(), Scale::linear(points.iter().map(|p| p.1).chain([0.0]))),
        x: ("prediction".into(), x),
        series: vec![
            Series::new("no error", Draw::Guide, vec![(low, 0.0), (high, 0.0)]),
            Series::new("one row", Draw::Specks, points),
        ],
        shades: None,
        size: (560.0, 420.0),
    };
    session.save(|| chart.draw(&common.output))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn average_precision_is_that_of_its_definition() {
        // scikit-learn's example: average_precision_score([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).
        let truth = [false, false, true, true];
        let curve = RocCurve::new(&[0.1, 0.4, 0.35, 0.8], &truth).unwrap();
        let (points, average) = precision_recall(&curve, 2, 4);
        assert!((average - 0.833_333_333_333_333_4).abs() < 1e-12);
        assert_eq!(points[1], (0.5, 1.0));
        assert_eq!(points.last(), Some(&(1.0, 0.5)));
    }

    #[test]
    fn bins_hold_means_and_shares() {
        // Sums of powers of two are exact.
        let probabilities = [0.0625, 0.03125, 0.9375, 1.0];
        let (points, brier) = reliability(&probabilities, &[false, true, true, true]);
        assert_eq!(points, [(0.046875, 0.5), (0.96875, 1.0)]);
        let expected = (0.0625_f64.powi(2) + 0.96875_f64.powi(2) + 0.0625_f64.powi(2)) / 4.0;
        assert!((brier - expected).abs() < 1e-15);
    }
}
