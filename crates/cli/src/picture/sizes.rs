//! What a compressed model is worth at every size.

use std::path::Path;

use super::axis::Scale;
use super::chart::{Chart, Draw, Series};
use crate::failure::CommandResult;

/// Draws a score against the number of vectors, with a mark at `chosen` vectors.
pub(crate) fn sizes(
    path: &Path,
    score: &str,
    points: &[(usize, f64)],
    chosen: usize,
) -> CommandResult<()> {
    let places = || points.iter().map(|&(vectors, score)| (vectors as f64, score));
    let y = Scale::linear(places().map(|place| place.1));
    let vectors = places().map(|place| place.0).chain([chosen as f64]);
    let Scale::Linear(low, high) = y else { return Ok(()) };
    let mark = vec![(chosen as f64, low), (chosen as f64, high)];
    let chart = Chart {
        title: format!("{score} against size"),
        note: None,
        x: ("vectors".into(), Scale::fitting(vectors)),
        y: (score.into(), y),
        series: vec![
            Series::new(format!("{score} on --data"), Draw::Marked, places().collect()),
            Series::new(format!("model written: {chosen} vectors"), Draw::Line, mark).styled(1),
        ],
        shades: None,
        size: (560.0, 360.0),
    };
    chart.draw(path)
}
