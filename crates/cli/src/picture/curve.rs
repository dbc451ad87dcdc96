//! Receiver operating characteristic: true against false positive rate.

use std::path::Path;

use super::axis::Scale;
use super::chart::{Chart, Draw, Series};
use crate::failure::CommandResult;

/// One line of the picture.
pub(crate) struct Curve {
    /// Its entry in the legend.
    pub(crate) name: String,
    /// Area below it.
    pub(crate) area: f64,
    /// (false positive rate, true positive rate), from (0, 0) to (1, 1).
    pub(crate) points: Vec<(f64, f64)>,
}

/// Most curves of one picture: every one has a colour and a stroke of its own.
const MOST: usize = 32;

/// Draws the curves and the diagonal of guessing; of very many curves those with the smallest areas.
pub(crate) fn roc(path: &Path, title: &str, mut curves: Vec<Curve>) -> CommandResult<()> {
    let all = curves.len();
    let note = match all {
        0 | 1 => None,
        _ => {
            let mean = curves.iter().map(|curve| curve.area).sum::<f64>() / all as f64;
            let part = match all > MOST {
                true => format!("; the {MOST} smallest of {all} areas are drawn"),
                false => String::new(),
            };
            Some(format!("mean area of the {all} classes: {mean:.4}{part}"))
        }
    };
    if all > MOST {
        curves.sort_by(|a, b| a.area.total_cmp(&b.area));
        curves.truncate(MOST);
    }
    let diagonal = vec![(0.0, 0.0), (1.0, 1.0)];
    let mut series = Vec::with_capacity(curves.len() + 1);
    for (style, curve) in curves.into_iter().enumerate() {
        series.push(Series::new(curve.name, Draw::Line, curve.points).styled(style));
    }
    series.push(Series::new("guessing", Draw::Guide, diagonal));
    let rate = |which: &str| (format!("{which} positive rate"), Scale::Linear(0.0, 1.0));
    let chart = Chart {
        title: title.to_owned(),
        note,
        x: rate("false"),
        y: rate("true"),
        series,
        shades: None,
        size: (520.0, 520.0),
    };
    chart.draw(path)
}
