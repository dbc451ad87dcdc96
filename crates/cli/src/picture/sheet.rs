//! What pictures are drawn on: places are fractions of pixels, and marks have shapes.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Canvas, FONT, SCALE, drawing};
use crate::failure::CommandResult;

/// A place in pixels, from the upper left corner.
pub(super) type Place = (f64, f64);

/// Ink of words and axes.
pub(super) const INK: RGBColor = RGBColor(40, 40, 40);
/// Grid and frames.
pub(super) const GREY: RGBColor = RGBColor(190, 190, 190);

/// How words stand to their place.
#[derive(Clone, Copy)]
pub(super) enum Align {
    /// They begin at it.
    Left,
    /// It is their middle.
    Middle,
    /// They end at it.
    Right,
}

/// The shape of a mark; classes beyond the palette differ by it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape {
    Circle,
    Triangle,
    Square,
    Diamond,
}

impl Shape {
    /// The shape of the `index`-th kind of points.
    pub(super) fn nth(index: usize) -> Self {
        [Self::Circle, Self::Triangle, Self::Square, Self::Diamond][index % 4]
    }
}

/// A canvas whose backend knows whole pixels, used at [`SCALE`] times the size.
pub(super) struct Sheet<'a, 'b> {
    pub(super) canvas: &'a Canvas<'b>,
}

impl Sheet<'_, '_> {
    fn fine(place: Place) -> (i32, i32) {
        let scale = f64::from(SCALE);
        ((place.0 * scale).round() as i32, (place.1 * scale).round() as i32)
    }

    fn stroke(color: RGBColor, width: f64) -> ShapeStyle {
        color.stroke_width((width * f64::from(SCALE)).round().max(1.0) as u32)
    }

    fn write(
        &self,
        words: &str,
        size: u32,
        align: Align,
        at: Place,
        turn: FontTransform,
    ) -> CommandResult<()> {
        let side = match align {
            Align::Left => HPos::Left,
            Align::Middle => HPos::Center,
            Align::Right => HPos::Right,
        };
        let style = TextStyle::from((FONT, (size * SCALE) as i32)).color(&INK);
        let style = style.pos(Pos::new(side, VPos::Center)).transform(turn);
        self.canvas.draw_text(words, &style, Self::fine(at)).map_err(drawing)
    }

    /// Writes words.
    pub(super) fn text(
        &self,
        words: &str,
        size: u32,
        align: Align,
        at: Place,
    ) -> CommandResult<()> {
        self.write(words, size, align, at, FontTransform::None)
    }

    /// Writes words upwards.
    pub(super) fn upright(
        &self,
        words: &str,
        size: u32,
        align: Align,
        at: Place,
    ) -> CommandResult<()> {
        self.write(words, size, align, at, FontTransform::Rotate270)
    }

    /// Writes words that are seen on a dark ground.
    pub(super) fn white_text(&self, words: &str, size: u32, at: Place) -> CommandResult<()> {
        let style = TextStyle::from((FONT, (size * SCALE) as i32)).color(&WHITE);
        let style = style.pos(Pos::new(HPos::Center, VPos::Center));
        self.canvas.draw_text(words, &style, Self::fine(at)).map_err(drawing)
    }

    /// Draws a line through the places.
    pub(super) fn line(&self, places: &[Place], color: RGBColor, width: f64) -> CommandResult<()> {
        let places: Vec<_> = places.iter().copied().map(Self::fine).collect();
        let line = PathElement::new(places, Self::stroke(color, width));
        self.canvas.draw(&line).map_err(drawing)
    }

    /// Draws a line of strokes and gaps of the given lengths; no gap: a whole line.
    pub(super) fn dashed(
        &self,
        places: &[Place],
        color: RGBColor,
        width: f64,
        (stroke, gap): (f64, f64),
    ) -> CommandResult<()> {
        if gap <= 0.0 {
            return self.line(places, color, width);
        }
        dashes(places, stroke, gap).iter().try_for_each(|dash| self.line(dash, color, width))
    }

    /// Fills a polygon.
    pub(super) fn fill(&self, corners: &[Place], color: RGBColor) -> CommandResult<()> {
        let corners: Vec<_> = corners.iter().copied().map(Self::fine).collect();
        self.canvas.draw(&Polygon::new(corners, color.filled())).map_err(drawing)
    }

    /// Fills a rectangle.
    pub(super) fn block(&self, from: Place, to: Place, color: RGBColor) -> CommandResult<()> {
        let corners = [Self::fine(from), Self::fine(to)];
        self.canvas.draw(&Rectangle::new(corners, color.filled())).map_err(drawing)
    }

    /// Draws the border of a rectangle.
    pub(super) fn frame(
        &self,
        from: Place,
        to: Place,
        color: RGBColor,
        width: f64,
    ) -> CommandResult<()> {
        let corners = [Self::fine(from), Self::fine(to)];
        self.canvas.draw(&Rectangle::new(corners, Self::stroke(color, width))).map_err(drawing)
    }

    /// Draws an empty circle.
    pub(super) fn ring(&self, at: Place, radius: f64, color: RGBColor) -> CommandResult<()> {
        let radius = (radius * f64::from(SCALE)) as i32;
        let ring = Circle::new(Self::fine(at), radius, Self::stroke(color, 1.0));
        self.canvas.draw(&ring).map_err(drawing)
    }

    /// Draws a filled mark.
    pub(super) fn mark(
        &self,
        shape: Shape,
        (x, y): Place,
        radius: f64,
        color: RGBColor,
    ) -> CommandResult<()> {
        let r = radius;
        match shape {
            Shape::Circle => {
                let radius = (r * f64::from(SCALE)) as i32;
                let dot = Circle::new(Self::fine((x, y)), radius, color.filled());
                self.canvas.draw(&dot).map_err(drawing)
            }
            Shape::Square => {
                let r = 0.9 * r;
                self.block((x - r, y - r), (x + r, y + r), color)
            }
            Shape::Triangle => {
                let r = 1.2 * r;
                self.fill(&[(x, y - r), (x + r, y + 0.8 * r), (x - r, y + 0.8 * r)], color)
            }
            Shape::Diamond => {
                let r = 1.3 * r;
                self.fill(&[(x, y - r), (x + r, y), (x, y + r), (x - r, y)], color)
            }
        }
    }
}

/// The strokes of a dashed line.
fn dashes(places: &[Place], stroke: f64, gap: f64) -> Vec<Vec<Place>> {
    let mut strokes = Vec::new();
    let (mut is_on, mut left) = (true, stroke);
    let mut current: Vec<Place> = places.first().copied().into_iter().collect();
    for pair in places.windows(2) {
        let [from, to] = [pair[0], pair[1]];
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let mut done = 0.0;
        while length - done > left {
            done += left;
            let share = done / length;
            let place = (from.0 + share * (to.0 - from.0), from.1 + share * (to.1 - from.1));
            current.push(place);
            if is_on {
                strokes.push(std::mem::take(&mut current));
            }
            is_on = !is_on;
            left = if is_on { stroke } else { gap };
            current = vec![place];
        }
        left -= length - done;
        current.push(to);
    }
    if is_on && current.len() > 1 {
        strokes.push(current);
    }
    strokes
}

#[cfg(test)]
mod tests {
    use super::dashes;

    #[test]
    fn dashes_go_around_corners() {
        let line = [(0.0, 0.0), (3.0, 0.0), (3.0, 4.0)];
        let found = dashes(&line, 4.0, 1.0);
        assert_eq!(
            found,
            [vec![(0.0, 0.0), (3.0, 0.0), (3.0, 1.0)], vec![(3.0, 2.0), (3.0, 4.0)],]
        );
        assert!(dashes(&[], 4.0, 1.0).is_empty());
    }
}
