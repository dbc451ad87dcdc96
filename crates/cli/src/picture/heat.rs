//! Scores over two parameters as a heat map.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{FONT, drawing, save};
use crate::failure::CommandResult;

/// Cells with the names and values of the parameters along both sides.
pub(crate) struct Heat<'a> {
    pub(crate) title: &'a str,
    pub(crate) x: (&'a str, &'a [String]),
    pub(crate) y: (&'a str, &'a [String]),
    /// Row by row, the first at the bottom.
    pub(crate) cells: &'a [Vec<Option<f64>>],
}

/// Draws the cells from the lowest score (white) to the highest (blue), which has a frame.
pub(crate) fn heat(path: &Path, map: &Heat<'_>) -> CommandResult<()> {
    let (columns, rows) = (map.x.1.len().max(1) as i32, map.y.1.len().max(1) as i32);
    let cell = (640 / columns.max(rows)).clamp(16, 70);
    let (left, top) = (120, 60);
    let (width, height) = (cell * columns, cell * rows);
    let size = ((left + width + 40) as u32, (top + height + 110) as u32);
    let scores = || map.cells.iter().flatten().flatten().copied();
    let (low, high) =
        (scores().fold(f64::INFINITY, f64::min), scores().fold(f64::NEG_INFINITY, f64::max));
    save(path, size, |canvas| {
        let text = |size: i32| TextStyle::from((FONT, size)).color(&BLACK);
        let middle = Pos::new(HPos::Center, VPos::Center);
        let put = |words: &str, style: &TextStyle<'_>, at: (i32, i32)| {
            canvas.draw_text(words, style, at).map_err(drawing)
        };
        let title = format!("{}: {low:.4} to {high:.4}", map.title);
        put(&title, &text(18).pos(middle), (left + width / 2, 24))?;
        put(map.x.0, &text(14).pos(middle), (left + width / 2, top + height + 95))?;
        let upright = |size: i32| text(size).transform(FontTransform::Rotate270);
        put(map.y.0, &upright(14).pos(middle), (18, top + height / 2))?;
        let small = (cell / 3).clamp(9, 13);
        for (j, label) in map.x.1.iter().enumerate() {
            let place = (left + j as i32 * cell + cell / 2, top + height + 12);
            let style = upright(small).pos(Pos::new(HPos::Right, VPos::Center));
            put(label, &style, place)?;
        }
        for (i, (label, row)) in map.y.1.iter().zip(map.cells).enumerate() {
            let y = top + height - (i as i32 + 1) * cell;
            let style = text(small).pos(Pos::new(HPos::Right, VPos::Center));
            put(label, &style, (left - 8, y + cell / 2))?;
            for (j, score) in row.iter().enumerate() {
                let x = left + j as i32 * cell;
                let place = [(x, y), (x + cell - 1, y + cell - 1)];
                let fill = score.map_or(RGBColor(230, 230, 230), |score| shade(score, low, high));
                canvas.draw(&Rectangle::new(place, fill.filled())).map_err(drawing)?;
                if *score == Some(high) {
                    let frame = RGBColor(213, 94, 0).stroke_width(3);
                    canvas.draw(&Rectangle::new(place, frame)).map_err(drawing)?;
                }
            }
        }
        Ok(())
    })
}

/// White for the lowest score to blue for the highest.
fn shade(score: f64, low: f64, high: f64) -> RGBColor {
    let share = if high > low { (score - low) / (high - low) } else { 1.0 };
    let mix = |v: f64| (255.0 + (v - 255.0) * share * share) as u8;
    RGBColor(mix(0.0), mix(90.0), mix(160.0))
}
