//! The legend: beside what is drawn, so that it hides nothing.

use plotters::style::RGBColor;

use super::sheet::{Align, GREY, INK, Place, Shape, Sheet};
use crate::failure::CommandResult;

/// What stands before the words of an entry.
#[derive(Clone, Copy)]
pub(super) enum Sign {
    /// A point.
    Point(Shape, RGBColor),
    /// A small point.
    Speck(RGBColor),
    /// An empty circle.
    Ring,
    /// A coloured ground.
    Ground(RGBColor),
    /// A point on its ground.
    PointOn(Shape, RGBColor, RGBColor),
    /// A line of strokes and gaps.
    Line(RGBColor, f64, (f64, f64)),
    /// An untried cell.
    Crossed,
}

/// One line of the legend.
pub(super) struct Entry {
    pub(super) sign: Sign,
    pub(super) words: String,
}

impl Entry {
    pub(super) fn new(sign: Sign, words: impl Into<String>) -> Self {
        Self { sign, words: words.into() }
    }
}

/// Height of an entry.
const STEP: f64 = 20.0;
/// Most characters of an entry that are shown.
const LONGEST: usize = 60;

/// Width of the legend.
pub(super) fn width(entries: &[Entry]) -> f64 {
    let longest = entries.iter().map(|entry| entry.words.chars().count().min(LONGEST)).max();
    longest.map_or(0.0, |longest| 40.0 + 6.8 * longest as f64)
}

/// Height of the legend.
pub(super) fn height(entries: &[Entry]) -> f64 {
    STEP * entries.len() as f64
}

/// Draws the entries below each other.
pub(super) fn draw(sheet: &Sheet<'_, '_>, entries: &[Entry], corner: Place) -> CommandResult<()> {
    for (place, entry) in entries.iter().enumerate() {
        let (x, y) = (corner.0, corner.1 + STEP * (place as f64 + 0.5));
        let middle = (x + 12.0, y);
        let box_of = |r: f64| ((x + 12.0 - 1.5 * r, y - r), (x + 12.0 + 1.5 * r, y + r));
        match entry.sign {
            Sign::Point(shape, color) => sheet.mark(shape, middle, 4.0, color)?,
            Sign::Speck(color) => sheet.mark(Shape::Circle, middle, 2.0, color)?,
            Sign::Ring => sheet.ring(middle, 5.0, INK)?,
            Sign::Ground(color) => sheet.block(box_of(7.0).0, box_of(7.0).1, color)?,
            Sign::PointOn(shape, color, ground) => {
                sheet.block(box_of(7.0).0, box_of(7.0).1, ground)?;
                sheet.mark(shape, middle, 4.0, color)?;
            }
            Sign::Line(color, width, dash) => {
                sheet.dashed(&[(x, y), (x + 24.0, y)], color, width, dash)?;
            }
            Sign::Crossed => {
                let (from, to) = box_of(7.0);
                sheet.frame(from, to, GREY, 1.0)?;
                sheet.line(&[from, to], GREY, 1.0)?;
            }
        }
        sheet.text(&clipped(&entry.words), 13, Align::Left, (x + 32.0, y))?;
    }
    Ok(())
}

fn clipped(words: &str) -> String {
    match words.char_indices().nth(LONGEST) {
        Some(_) => words.chars().take(LONGEST - 1).chain(['…']).collect(),
        None => words.to_owned(),
    }
}
