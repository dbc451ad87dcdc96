//! Decision regions over two features, with the rows of a data set on top.

use std::ops::Range;
use std::path::Path;

use plotters::prelude::*;

use super::{FONT, color, drawing, pale, save};
use crate::failure::CommandResult;

/// What the picture shows.
pub(crate) struct Regions {
    /// Title.
    pub(crate) title: String,
    /// Names of the two features.
    pub(crate) axes: [String; 2],
    /// Ranges of the two features.
    pub(crate) ranges: [Range<f64>; 2],
    /// Cells along each axis.
    pub(crate) cells: usize,
    /// Class of every cell, the first axis running fastest.
    pub(crate) classes: Vec<usize>,
    /// Names of the classes.
    pub(crate) names: Vec<String>,
    /// Rows: place, class, and whether it is a support vector.
    pub(crate) points: Vec<(f64, f64, usize, bool)>,
}

/// Draws the regions.
pub(crate) fn regions(path: &Path, picture: &Regions) -> CommandResult<()> {
    let [x_range, y_range] = picture.ranges.clone();
    let cells = picture.cells.max(1);
    let step = |range: &Range<f64>| (range.end - range.start) / cells as f64;
    let (width, height) = (step(&x_range), step(&y_range));
    save(path, (760, 680), |canvas| {
        let mut chart = ChartBuilder::on(canvas)
            .caption(&picture.title, (FONT, 20))
            .margin(20)
            .x_label_area_size(45)
            .y_label_area_size(60)
            .build_cartesian_2d(x_range.clone(), y_range.clone())
            .map_err(drawing)?;
        chart
            .configure_mesh()
            .disable_mesh()
            .x_desc(&picture.axes[0])
            .y_desc(&picture.axes[1])
            .label_style((FONT, 13))
            .draw()
            .map_err(drawing)?;
        let bands = picture.classes.chunks(cells).enumerate().flat_map(|(row, line)| {
            let bottom = y_range.start + row as f64 * height;
            let x_start = x_range.start;
            runs(line).into_iter().map(move |(from, to, class)| {
                let corners = [
                    (x_start + from as f64 * width, bottom),
                    (x_start + to as f64 * width, bottom + height),
                ];
                Rectangle::new(corners, pale(class).filled())
            })
        });
        chart.draw_series(bands).map_err(drawing)?;
        for (class, name) in picture.names.iter().enumerate() {
            let here = picture.points.iter().filter(|point| point.2 == class);
            let dots = here.clone().map(|p| Circle::new((p.0, p.1), 3, color(class).filled()));
            let rings = here.filter(|p| p.3).map(|p| Circle::new((p.0, p.1), 5, BLACK.mix(0.6)));
            chart
                .draw_series(dots)
                .map_err(drawing)?
                .label(name.clone())
                .legend(move |(x, y)| Circle::new((x + 9, y), 4, color(class).filled()));
            chart.draw_series(rings).map_err(drawing)?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .label_font((FONT, 13))
            .background_style(WHITE.mix(0.8))
            .border_style(RGBColor(180, 180, 180))
            .draw()
            .map_err(drawing)
    })
}

/// Runs of equal values as (from, to, value).
fn runs(line: &[usize]) -> Vec<(usize, usize, usize)> {
    let mut runs: Vec<(usize, usize, usize)> = Vec::new();
    for (at, &value) in line.iter().enumerate() {
        match runs.last_mut() {
            Some((_, to, last)) if *last == value => *to = at + 1,
            _ => runs.push((at, at + 1, value)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn equal_neighbours_join() {
        assert_eq!(runs(&[1, 1, 0, 2, 2]), [(0, 2, 1), (2, 3, 0), (3, 5, 2)]);
        assert!(runs(&[]).is_empty());
    }
}
