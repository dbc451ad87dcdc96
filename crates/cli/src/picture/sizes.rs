//! What a compressed model is worth at every size.

use std::path::Path;

use plotters::prelude::*;

use super::{FONT, color, drawing, save};
use crate::failure::CommandResult;

/// Draws a score against the number of vectors, with a mark at `chosen` vectors.
pub(crate) fn sizes(
    path: &Path,
    score: &str,
    points: &[(usize, f64)],
    chosen: usize,
) -> CommandResult<()> {
    let most = points.iter().map(|p| p.0).max().unwrap_or(1).max(2) as f64;
    let least = points.iter().map(|p| p.0).min().unwrap_or(1).max(1) as f64;
    let top = points.iter().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
    let bottom = points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let room = (0.05 * (top - bottom)).max(0.002);
    save(path, (760, 480), |canvas| {
        let mut chart = ChartBuilder::on(canvas)
            .caption(format!("{score} against size"), (FONT, 20))
            .margin(20)
            .x_label_area_size(45)
            .y_label_area_size(65)
            .build_cartesian_2d((0.8 * least..1.25 * most).log_scale(), bottom - room..top + room)
            .map_err(drawing)?;
        chart
            .configure_mesh()
            .x_desc("vectors")
            .y_desc(score)
            .light_line_style(WHITE)
            .label_style((FONT, 13))
            .x_label_formatter(&|vectors| format!("{vectors:.0}"))
            .draw()
            .map_err(drawing)?;
        let line = points.iter().map(|&(vectors, score)| (vectors as f64, score));
        chart
            .draw_series(LineSeries::new(line.clone(), color(0).stroke_width(2)))
            .map_err(drawing)?;
        chart
            .draw_series(line.map(|point| Circle::new(point, 4, color(0).filled())))
            .map_err(drawing)?;
        let mark = [(chosen as f64, bottom - room), (chosen as f64, top + room)];
        chart.draw_series(LineSeries::new(mark, color(1).stroke_width(1))).map_err(drawing)?;
        Ok(())
    })
}
