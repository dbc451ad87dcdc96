//! Lines and points over two axes, with the legend beside them.

use std::path::Path;

use super::axis::Scale;
use super::legend::{self, Entry, Sign};
use super::shade::Shades;
use super::sheet::{Align, GREY, INK, Place, Shape, Sheet};
use super::{color, save_fine};
use crate::failure::CommandResult;

/// How the points of a series are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Draw {
    /// A line.
    Line,
    /// A line with a mark at every point.
    Marked,
    /// Marks alone.
    Points,
    /// A small mark at every point.
    Specks,
    /// A dashed grey line to compare with.
    Guide,
    /// A circle around every point.
    Rings,
}

/// Some points of one meaning.
pub(crate) struct Series {
    /// Its entry in the legend; empty: none.
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    /// Half the length of the bar at every point; empty: no bars.
    pub(crate) spread: Vec<f64>,
    /// The score of every point that gives it its colour; empty: the colour of the series.
    pub(crate) scores: Vec<f64>,
    pub(crate) draw: Draw,
    /// Its place among the colours and strokes.
    pub(crate) style: usize,
}

impl Series {
    pub(crate) fn new(name: impl Into<String>, draw: Draw, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, spread: Vec::new(), scores: Vec::new(), draw, style: 0 }
    }

    pub(crate) fn styled(self, style: usize) -> Self {
        Self { style, ..self }
    }
}

/// A picture with two axes.
pub(crate) struct Chart {
    pub(crate) title: String,
    /// Words below the title.
    pub(crate) note: Option<String>,
    pub(crate) x: (String, Scale),
    pub(crate) y: (String, Scale),
    pub(crate) series: Vec<Series>,
    /// The colours of scores and what they are.
    pub(crate) shades: Option<(String, Shades)>,
    /// Width and height of what the axes enclose.
    pub(crate) size: (f64, f64),
}

/// Strokes and gaps of lines beyond the palette.
const DASHES: [(f64, f64); 4] = [(1.0, 0.0), (8.0, 4.0), (2.0, 3.0), (14.0, 3.0)];

fn dash(style: usize) -> (f64, f64) {
    DASHES[style / super::PALETTE.len() % DASHES.len()]
}

fn shape(style: usize) -> Shape {
    Shape::nth(style / super::PALETTE.len())
}

impl Chart {
    /// Draws it.
    pub(crate) fn draw(&self, path: &Path) -> CommandResult<()> {
        let entries: Vec<Entry> = self.series.iter().filter_map(Series::entry).collect();
        let (left, top) = (80.0, if self.note.is_some() { 68.0 } else { 50.0 });
        let (width, height) = self.size;
        let bar = if self.shades.is_some() { 110.0 } else { 0.0 };
        let right = left + width;
        let whole = (
            right + bar + legend::width(&entries) + 30.0,
            top + height.max(legend::height(&entries)) + 62.0 + self.label_room(),
        );
        save_fine(path, whole, |sheet| {
            sheet.text(&self.title, 18, Align::Left, (left, 24.0))?;
            if let Some(note) = &self.note {
                sheet.text(note, 13, Align::Left, (left, 46.0))?;
            }
            self.axes(sheet, (left, top))?;
            let place = |(x, y): (f64, f64)| -> Place {
                (
                    left + width * self.x.1.share(x).clamp(0.0, 1.0),
                    top + height * (1.0 - self.y.1.share(y).clamp(0.0, 1.0)),
                )
            };
            for series in &self.series {
                series.draw(sheet, &place, self.shades.as_ref().map(|shades| shades.1))?;
            }
            if let Some((title, shades)) = &self.shades {
                shades.bar(sheet, title, (right + 22.0, top + 24.0), (height - 24.0).min(240.0))?;
            }
            legend::draw(sheet, &entries, (right + bar + 18.0, top))
        })
    }

    /// Room that upright words below the axis need.
    fn label_room(&self) -> f64 {
        match &self.x.1 {
            Scale::Words(words) => {
                let longest = words.iter().map(|word| word.chars().count()).max().unwrap_or(0);
                7.0 * longest.min(24) as f64
            }
            _ => 0.0,
        }
    }

    fn axes(&self, sheet: &Sheet<'_, '_>, (left, top): Place) -> CommandResult<()> {
        let (width, height) = self.size;
        let bottom = top + height;
        for (value, words) in self.x.1.ticks() {
            let x = left + width * self.x.1.share(value);
            sheet.line(&[(x, top), (x, bottom)], GREY, 0.4)?;
            match &self.x.1 {
                Scale::Words(_) => sheet.upright(&words, 13, Align::Right, (x, bottom + 8.0))?,
                _ => sheet.text(&words, 13, Align::Middle, (x, bottom + 14.0))?,
            }
        }
        for (value, words) in self.y.1.ticks() {
            let y = top + height * (1.0 - self.y.1.share(value));
            sheet.line(&[(left, y), (left + width, y)], GREY, 0.4)?;
            sheet.text(&words, 13, Align::Right, (left - 6.0, y))?;
        }
        sheet.frame((left, top), (left + width, bottom), INK, 0.8)?;
        let below = bottom + 40.0 + self.label_room();
        sheet.text(&self.x.0, 14, Align::Middle, (left + width / 2.0, below))?;
        sheet.upright(&self.y.0, 14, Align::Middle, (18.0, top + height / 2.0))
    }
}

impl Series {
    fn entry(&self) -> Option<Entry> {
        let own = color(self.style);
        let sign = match self.draw {
            Draw::Line => Sign::Line(own, 2.0, dash(self.style)),
            Draw::Marked | Draw::Points => Sign::Point(shape(self.style), own),
            Draw::Specks => Sign::Speck(own),
            Draw::Guide => Sign::Line(GREY, 1.5, (5.0, 3.0)),
            Draw::Rings => Sign::Ring,
        };
        (!self.name.is_empty()).then(|| Entry::new(sign, &self.name))
    }

    fn draw(
        &self,
        sheet: &Sheet<'_, '_>,
        place: &dyn Fn((f64, f64)) -> Place,
        shades: Option<Shades>,
    ) -> CommandResult<()> {
        let own = color(self.style);
        let places: Vec<Place> = self.points.iter().copied().map(place).collect();
        for (point, spread) in self.points.iter().zip(&self.spread) {
            let ends = [spread, &-spread].map(|s| place((point.0, point.1 + s)));
            sheet.line(&ends, own, 1.2)?;
            for end in ends {
                sheet.line(&[(end.0 - 3.0, end.1), (end.0 + 3.0, end.1)], own, 1.2)?;
            }
        }
        match self.draw {
            Draw::Line => return sheet.dashed(&places, own, 2.0, dash(self.style)),
            Draw::Guide => return sheet.dashed(&places, GREY, 1.5, (5.0, 3.0)),
            Draw::Marked => sheet.dashed(&places, own, 1.6, dash(self.style))?,
            _ => {}
        }
        for (i, at) in places.iter().enumerate() {
            let fill = match (shades, self.scores.get(i)) {
                (Some(shades), Some(score)) => shades.color(*score),
                _ => own,
            };
            match self.draw {
                Draw::Rings => sheet.ring(*at, 8.0, INK)?,
                Draw::Specks => sheet.mark(shape(self.style), *at, 2.0, fill)?,
                _ => sheet.mark(shape(self.style), *at, 4.0, fill)?,
            }
        }
        Ok(())
    }
}
