//! Decision regions over two features, with the rows of a data set on top.

use std::ops::Range;
use std::path::Path;

use super::axis::Scale;
use super::boundary::{Node, areas};
use super::legend::{self, Entry, Sign};
use super::sheet::{Align, GREY, INK, Place, Shape, Sheet};
use super::{color, pale, save_fine};
use crate::failure::CommandResult;

/// What the picture shows.
pub(crate) struct Regions<'a> {
    /// Title.
    pub(crate) title: String,
    /// Words below the title.
    pub(crate) note: Option<String>,
    /// Names of the two features.
    pub(crate) axes: [String; 2],
    /// Ranges of the two features.
    pub(crate) ranges: [Range<f64>; 2],
    /// Nodes along each axis.
    pub(crate) nodes: usize,
    /// Prediction at every node, the first axis running fastest.
    pub(crate) classes: Vec<usize>,
    /// Names of the predictions.
    pub(crate) names: Vec<String>,
    /// How far from the first of two neighbouring nodes with different predictions the boundary is.
    pub(crate) crossing: Box<dyn Fn(usize, usize) -> f64 + 'a>,
    /// Value of the only decision function at every node, when ±1 are its margins.
    pub(crate) margins: Option<Vec<f64>>,
    /// The rows.
    pub(crate) points: Vec<Point>,
    /// Names of the labels of rows when these are not predictions.
    pub(crate) labels: Option<Vec<String>>,
}

/// A row.
pub(crate) struct Point {
    pub(crate) place: (f64, f64),
    /// Among the labels, or the predictions if there are no labels of their own.
    pub(crate) class: usize,
    pub(crate) is_support: bool,
}

const MARGIN_DASH: (f64, f64) = (5.0, 4.0);
const SIZE: f64 = 560.0;

/// Draws the regions.
pub(crate) fn regions(path: &Path, picture: &Regions<'_>) -> CommandResult<()> {
    let nodes = picture.nodes.max(2);
    let found = areas(nodes, &picture.classes, picture.crossing.as_ref());
    let margins = picture.margin_lines(nodes);
    let entries = picture.entries(!found.lines.is_empty(), !margins.is_empty());
    let (left, top) = (80.0, if picture.note.is_some() { 68.0 } else { 50.0 });
    let right = left + SIZE;
    let whole =
        (right + 30.0 + legend::width(&entries), top + SIZE.max(legend::height(&entries)) + 62.0);
    save_fine(path, whole, |sheet| {
        sheet.text(&picture.title, 18, Align::Left, (left, 24.0))?;
        if let Some(note) = &picture.note {
            sheet.text(note, 13, Align::Left, (left, 46.0))?;
        }
        let of_node = |node: &Node| -> Place {
            let step = SIZE / (nodes - 1) as f64;
            (left + step * node.0, top + SIZE - step * node.1)
        };
        for (class, corners) in &found.pieces {
            let corners: Vec<Place> = corners.iter().map(of_node).collect();
            sheet.fill(&grown(&corners), pale(*class))?;
        }
        for line in &found.lines {
            sheet.line(&line.iter().map(of_node).collect::<Vec<_>>(), INK, 1.2)?;
        }
        for line in &margins {
            let line: Vec<Place> = line.iter().map(of_node).collect();
            sheet.dashed(&line, INK, 1.0, MARGIN_DASH)?;
        }
        picture.draw_axes(sheet, (left, top))?;
        let [x, y] = &picture.ranges;
        for point in &picture.points {
            let share =
                |range: &Range<f64>, value| (value - range.start) / (range.end - range.start);
            let at = (
                left + SIZE * share(x, point.place.0),
                top + SIZE * (1.0 - share(y, point.place.1)),
            );
            let (shape, ink) = picture.mark(point.class);
            sheet.mark(shape, at, 3.0, ink)?;
            if point.is_support {
                sheet.ring(at, 5.0, INK)?;
            }
        }
        legend::draw(sheet, &entries, (right + 18.0, top))
    })
}

/// A convex piece and a hair more, so that no seam is seen between it and its neighbours.
fn grown(corners: &[Place]) -> Vec<Place> {
    const HAIR: f64 = 0.4;
    let count = corners.len().max(1) as f64;
    let middle = corners.iter().fold((0.0, 0.0), |sum, c| (sum.0 + c.0, sum.1 + c.1));
    let middle = (middle.0 / count, middle.1 / count);
    let away = |value: f64, from: f64| value + HAIR.copysign(value - from);
    corners.iter().map(|c| (away(c.0, middle.0), away(c.1, middle.1))).collect()
}

impl Regions<'_> {
    /// Shape and colour of rows: the colour of their prediction, or dark shapes for labels of their own.
    fn mark(&self, class: usize) -> (Shape, plotters::style::RGBColor) {
        match self.labels {
            Some(_) => (Shape::nth(class), if class < 4 { INK } else { color(class) }),
            None => (Shape::nth(class / super::PALETTE.len()), color(class)),
        }
    }

    fn margin_lines(&self, nodes: usize) -> Vec<Vec<Node>> {
        let Some(values) = &self.margins else { return Vec::new() };
        let contour = |level: f64| {
            let is_above: Vec<usize> =
                values.iter().map(|value| usize::from(*value > level)).collect();
            let crossing = |a: usize, b: usize| (level - values[a]) / (values[b] - values[a]);
            areas(nodes, &is_above, &crossing).lines
        };
        [-1.0, 1.0].into_iter().flat_map(contour).collect()
    }

    fn entries(&self, has_lines: bool, has_margins: bool) -> Vec<Entry> {
        let mut entries = Vec::new();
        for (class, name) in self.names.iter().enumerate() {
            let (shape, ink) = self.mark(class);
            let sign = match self.labels {
                Some(_) => Sign::Ground(pale(class)),
                None => Sign::PointOn(shape, ink, pale(class)),
            };
            entries.push(Entry::new(sign, name));
        }
        for (class, name) in self.labels.iter().flatten().enumerate() {
            let (shape, ink) = self.mark(class);
            entries.push(Entry::new(Sign::Point(shape, ink), format!("label {name}")));
        }
        if has_lines {
            entries.push(Entry::new(Sign::Line(INK, 1.2, (1.0, 0.0)), "boundary"));
        }
        if has_margins {
            entries.push(Entry::new(Sign::Line(INK, 1.0, MARGIN_DASH), "margins (±1)"));
        }
        if self.points.iter().any(|point| point.is_support) {
            entries.push(Entry::new(Sign::Ring, "support vector"));
        }
        entries
    }

    fn draw_axes(&self, sheet: &Sheet<'_, '_>, (left, top): Place) -> CommandResult<()> {
        let scales = self.ranges.clone().map(|range| Scale::Linear(range.start, range.end));
        for (value, words) in scales[0].ticks() {
            let x = left + SIZE * scales[0].share(value);
            sheet.line(&[(x, top + SIZE), (x, top + SIZE + 4.0)], GREY, 1.0)?;
            sheet.text(&words, 13, Align::Middle, (x, top + SIZE + 14.0))?;
        }
        for (value, words) in scales[1].ticks() {
            let y = top + SIZE * (1.0 - scales[1].share(value));
            sheet.line(&[(left - 4.0, y), (left, y)], GREY, 1.0)?;
            sheet.text(&words, 13, Align::Right, (left - 7.0, y))?;
        }
        sheet.frame((left, top), (left + SIZE, top + SIZE), INK, 0.8)?;
        sheet.text(&self.axes[0], 14, Align::Middle, (left + SIZE / 2.0, top + SIZE + 42.0))?;
        sheet.upright(&self.axes[1], 14, Align::Middle, (18.0, top + SIZE / 2.0))
    }
}
