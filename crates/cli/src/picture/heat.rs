//! Scores over two parameters as a heat map.

use std::path::Path;

use super::axis::plain;
use super::legend::{self, Entry, Sign};
use super::shade::Shades;
use super::sheet::{Align, GREY, Sheet};
use super::{color, save_fine};
use crate::failure::CommandResult;

/// Cells with the names and values of the parameters along both sides.
pub(crate) struct HeatMap<'a> {
    pub(crate) title: &'a str,
    /// Words below the title.
    pub(crate) note: Option<String>,
    pub(crate) x: (&'a str, &'a [String]),
    pub(crate) y: (&'a str, &'a [String]),
    /// Row by row, the first at the bottom.
    pub(crate) cells: &'a [Vec<Option<f64>>],
    /// Of scores such as errors.
    pub(crate) lower_is_better: bool,
}

/// Draws the cells from the worst score (pale) to the best (dark), which has a frame, with a colour bar.
pub(crate) fn heat(path: &Path, map: &HeatMap<'_>) -> CommandResult<()> {
    let (columns, rows) = (map.x.1.len().max(1), map.y.1.len().max(1));
    let cell = (640.0 / columns.max(rows) as f64).clamp(16.0, 70.0);
    let longest = |labels: &[String]| labels.iter().map(|l| l.chars().count()).max().unwrap_or(0);
    let (left, top) = (60.0 + 8.0 * longest(map.y.1) as f64, 84.0);
    let (width, height) = (cell * columns as f64, cell * rows as f64);
    let scores: Vec<f64> = map.cells.iter().flatten().flatten().copied().collect();
    let shades = Shades::of(scores.iter().copied(), map.lower_is_better);
    let (low, high) = scores
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &s| (low.min(s), high.max(s)));
    let best = if map.lower_is_better { low } else { high };
    let mut entries = vec![Entry::new(Sign::Line(color(1), 3.0, (1.0, 0.0)), "best")];
    if scores.len() < columns * rows {
        entries.push(Entry::new(Sign::Crossed, "not tried to the end"));
    }
    let label_room = 8.0 * longest(map.x.1) as f64;
    let bar = 200.0_f64.min(height.max(100.0));
    let body = height.max(bar + 30.0 + legend::height(&entries));
    let right = left + width + 26.0;
    let whole = (right + legend::width(&entries).max(120.0), top + body + label_room + 60.0);
    save_fine(path, whole, |sheet| {
        let title = format!("{}: {} to {}", map.title, plain(low), plain(high));
        sheet.text(&title, 18, Align::Left, (20.0, 24.0))?;
        if let Some(note) = &map.note {
            sheet.text(note, 13, Align::Left, (20.0, 46.0))?;
        }
        let small = (cell / 3.0).clamp(9.0, 13.0) as u32;
        let below = top + height + label_room + 30.0;
        sheet.text(map.x.0, 14, Align::Middle, (left + width / 2.0, below))?;
        sheet.upright(map.y.0, 14, Align::Middle, (18.0, top + height / 2.0))?;
        for (j, label) in map.x.1.iter().enumerate() {
            let place = (left + (j as f64 + 0.5) * cell, top + height + 8.0);
            sheet.upright(label, small, Align::Right, place)?;
        }
        for (i, (label, row)) in map.y.1.iter().zip(map.cells).enumerate() {
            let y = top + height - (i as f64 + 1.0) * cell;
            sheet.text(label, small, Align::Right, (left - 8.0, y + cell / 2.0))?;
            for (j, score) in row.iter().enumerate() {
                let x = left + j as f64 * cell;
                draw_cell(sheet, (x, y), cell, *score, shades)?;
            }
        }
        for (i, row) in map.cells.iter().enumerate() {
            for j in (0..row.len()).filter(|&j| row[j] == Some(best)) {
                let corner = (left + j as f64 * cell, top + height - (i as f64 + 1.0) * cell);
                let opposite = (corner.0 + cell - 1.0, corner.1 + cell - 1.0);
                sheet.frame(corner, opposite, color(1), 3.0)?;
            }
        }
        shades.bar(sheet, map.title, (right, top + 10.0), bar - 10.0)?;
        legend::draw(sheet, &entries, (right, top + bar + 24.0))
    })
}

/// Draws one cell, with its score where there is room.
fn draw_cell(
    sheet: &Sheet<'_, '_>,
    (x, y): (f64, f64),
    cell: f64,
    score: Option<f64>,
    shades: Shades,
) -> CommandResult<()> {
    let opposite = (x + cell - 1.0, y + cell - 1.0);
    let Some(score) = score else {
        sheet.frame((x, y), opposite, GREY, 1.0)?;
        return sheet.line(&[(x, y), opposite], GREY, 1.0);
    };
    sheet.block((x, y), opposite, shades.color(score))?;
    let words = plain(score);
    if cell < 7.0 * words.chars().count() as f64 {
        return Ok(());
    }
    let middle = (x + cell / 2.0, y + cell / 2.0);
    match shades.is_dark(score) {
        true => sheet.white_text(&words, 11, middle),
        false => sheet.text(&words, 11, Align::Middle, middle),
    }
}
