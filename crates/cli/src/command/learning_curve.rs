//! `cross-validate --sizes`: how the quality grows with the rows that are learnt from.

use std::path::Path;

use serde_json::{Value, json};
use widemargin::Status;
use widemargin::operation::learning_curve::{LearningPoint, mean_and_deviation};
use widemargin::operation::tune::Metric;

use crate::failure::CommandResult;
use crate::picture::{Chart, Draw, Scale, Series};
use crate::table::grid;

/// A score as people read it: errors without their sign.
fn shown(metric: Metric, score: f64) -> f64 {
    let is_error = matches!(metric, Metric::SquaredError | Metric::AbsoluteError | Metric::LogLoss);
    if is_error { -score } else { score }
}

/// The table of a curve.
pub(super) fn text(points: &[LearningPoint], metric: Metric) -> String {
    let heading =
        ["rows", &format!("held-out {metric}"), "deviation", &format!("training {metric}")];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for point in points {
        let (held, spread) = mean_and_deviation(&point.held_out);
        let (own, _) = mean_and_deviation(&point.training);
        let number = |score: f64| format!("{:.6}", shown(metric, score));
        rows.push(vec![point.rows.to_string(), number(held), format!("{spread:.6}"), number(own)]);
    }
    grid(&rows)
}

/// A curve as JSON.
pub(super) fn document(points: &[LearningPoint], metric: Metric, status: Option<Status>) -> Value {
    let of = |point: &LearningPoint| {
        let all = |scores: &[f64]| scores.iter().map(|s| shown(metric, *s)).collect::<Vec<f64>>();
        json!({
            "rows": point.rows,
            "held_out": all(&point.held_out),
            "training": all(&point.training),
        })
    };
    json!({
        "metric": metric.name(),
        "points": points.iter().map(of).collect::<Vec<_>>(),
        "status": status.unwrap_or(Status::Solved),
    })
}

/// Draws both scores over the number of rows.
pub(super) fn draw(path: &Path, points: &[LearningPoint], metric: Metric) -> CommandResult<()> {
    let series = |name: &str, style: usize, of: fn(&LearningPoint) -> &[f64]| {
        let scores = points.iter().map(|point| (point.rows as f64, mean_and_deviation(of(point))));
        let (places, spread): (Vec<(f64, f64)>, Vec<f64>) =
            scores.map(|(rows, (mean, spread))| ((rows, shown(metric, mean)), spread)).unzip();
        Series { spread, ..Series::new(name, Draw::Marked, places) }.styled(style)
    };
    let held = series("held-out rows ± standard deviation", 0, |point| &point.held_out);
    let training = series("rows learnt from ± standard deviation", 1, |point| &point.training);
    let all = [&held, &training];
    let ends = all.iter().flat_map(|series| {
        let both = series.points.iter().zip(&series.spread);
        both.flat_map(|(point, spread)| [point.1 - spread, point.1 + spread])
    });
    let y = Scale::linear(ends.collect::<Vec<f64>>());
    let rows: Vec<f64> = points.iter().map(|point| point.rows as f64).collect();
    Chart {
        title: format!("{metric} over the rows that are learnt from"),
        note: None,
        x: ("rows".to_owned(), Scale::fitting(rows)),
        y: (metric.name().to_owned(), y),
        series: vec![held, training],
        shades: None,
        size: (560.0, 360.0),
    }
    .draw(path)
}
