//! Receiver operating characteristic: true against false positive rate.

use std::path::Path;

use plotters::prelude::*;

use super::{FONT, color, drawing, save};
use crate::failure::CommandResult;

/// One line of the picture.
pub(crate) struct Curve {
    /// Its entry in the legend.
    pub(crate) name: String,
    /// (false positive rate, true positive rate), from (0, 0) to (1, 1).
    pub(crate) points: Vec<(f64, f64)>,
}

/// Draws the curves and the diagonal of guessing.
pub(crate) fn roc(path: &Path, title: &str, curves: &[Curve]) -> CommandResult<()> {
    save(path, (640, 640), |canvas| {
        let mut chart = ChartBuilder::on(canvas)
            .caption(title, (FONT, 20))
            .margin(20)
            .x_label_area_size(45)
            .y_label_area_size(55)
            .build_cartesian_2d(0.0..1.0, 0.0..1.0)
            .map_err(drawing)?;
        chart
            .configure_mesh()
            .x_desc("false positive rate")
            .y_desc("true positive rate")
            .light_line_style(WHITE)
            .label_style((FONT, 13))
            .draw()
            .map_err(drawing)?;
        let guess = LineSeries::new([(0.0, 0.0), (1.0, 1.0)], RGBColor(180, 180, 180));
        chart.draw_series(guess).map_err(drawing)?;
        for (i, curve) in curves.iter().enumerate() {
            let style = color(i).stroke_width(2);
            chart
                .draw_series(LineSeries::new(curve.points.iter().copied(), style))
                .map_err(drawing)?
                .label(curve.name.clone())
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .label_font((FONT, 13))
            .background_style(WHITE.mix(0.8))
            .border_style(RGBColor(180, 180, 180))
            .draw()
            .map_err(drawing)
    })
}
