//! A confusion matrix as a heat map, one row per true class.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{FONT, drawing, save};
use crate::failure::CommandResult;

/// Draws `counts[true][predicted]`; every row is coloured by its shares.
pub(crate) fn confusion(
    path: &Path,
    title: &str,
    names: &[String],
    counts: &[Vec<usize>],
) -> CommandResult<()> {
    let classes = names.len().max(1) as i32;
    let cell = (560 / classes).clamp(14, 90);
    let longest = names.iter().map(|n| n.chars().count()).max().unwrap_or(0).min(16) as i32;
    let (left, top) = (60 + longest * 8, 80);
    let side = cell * classes;
    let size = ((left + side + 30).max(360) as u32, (top + side + 70) as u32);
    save(path, size, |canvas| {
        let text = |size: i32| TextStyle::from((FONT, size)).color(&BLACK);
        let middle = Pos::new(HPos::Center, VPos::Center);
        let center = left + side / 2;
        let put = |words: &str, style: &TextStyle<'_>, at: (i32, i32)| {
            canvas.draw_text(words, style, at).map_err(drawing)
        };
        put(title, &text(18).pos(middle), (center, 24))?;
        put("predicted", &text(14).pos(middle), (center, top + side + 45))?;
        let upright = text(14).pos(middle).transform(FontTransform::Rotate270);
        put("true", &upright, (18, top + side / 2))?;
        let label_size = (cell / 2).clamp(8, 14);
        for (i, row) in counts.iter().enumerate() {
            let y = top + i as i32 * cell;
            let name = clipped(&names[i]);
            let right = Pos::new(HPos::Right, VPos::Center);
            put(&name, &text(label_size).pos(right), (left - 8, y + cell / 2))?;
            let below = (left + i as i32 * cell + cell / 2, top + side + 16);
            put(&name, &text(label_size).pos(middle), below)?;
            let total = row.iter().sum::<usize>().max(1) as f64;
            for (j, &count) in row.iter().enumerate() {
                let x = left + j as i32 * cell;
                let share = count as f64 / total;
                let fill = shade(share, i == j);
                let place = [(x, y), (x + cell - 1, y + cell - 1)];
                canvas.draw(&Rectangle::new(place, fill.filled())).map_err(drawing)?;
                if count > 0 && cell >= 18 {
                    let ink = if share > 0.6 { &WHITE } else { &BLACK };
                    let style = text(label_size).color(ink).pos(middle);
                    put(&count.to_string(), &style, (x + cell / 2, y + cell / 2))?;
                }
            }
        }
        Ok(())
    })
}

fn clipped(name: &str) -> String {
    match name.char_indices().nth(16) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// White for 0 to full colour for 1: blue where classes agree, orange where they do not.
fn shade(share: f64, agree: bool) -> RGBColor {
    let (r, g, b) = if agree { (0, 90, 160) } else { (200, 80, 0) };
    let mix = |v: u8| (255.0 + (f64::from(v) - 255.0) * share.sqrt()) as u8;
    RGBColor(mix(r), mix(g), mix(b))
}
