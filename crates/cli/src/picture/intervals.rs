//! Shares such as accuracies, or errors, of several machines with their intervals, one line each.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{FONT, color, drawing, save};
use crate::failure::CommandResult;

/// One line of the picture.
pub(crate) struct Interval {
    /// Its name.
    pub(crate) name: String,
    /// The mean, not negative.
    pub(crate) mean: f64,
    /// The ends of the interval.
    pub(crate) ends: (f64, f64),
    /// Every single value.
    pub(crate) values: Vec<f64>,
}

/// What the marks of the picture are.
pub(crate) struct Marks<'a> {
    /// The large dot.
    pub(crate) mean: &'a str,
    /// The bar.
    pub(crate) interval: &'a str,
    /// The small dots; empty where there are none.
    pub(crate) value: &'a str,
    /// Whether values are shares, which are written in percent.
    pub(crate) is_share: bool,
}

impl Marks<'_> {
    /// A value in words.
    fn words(&self, value: f64, places: usize) -> String {
        match self.is_share {
            true => format!("{:.places$} %", 100.0 * value),
            false => format!("{value:.4}"),
        }
    }
}

/// Draws means, intervals and single values of `what`, the first line on top.
pub(crate) fn intervals(
    path: &Path,
    title: &str,
    what: &str,
    marks: &Marks<'_>,
    lines: &[Interval],
) -> CommandResult<()> {
    let longest = lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
    let (left, top, step, width) = (150.max(20 + 8 * longest as i32), 80, 36, 520);
    let height = step * lines.len() as i32;
    let size = ((left + width + 110) as u32, (top + height + 70) as u32);
    let all = || {
        let ends = lines.iter().flat_map(|line| [line.ends.0, line.ends.1]);
        ends.chain(lines.iter().flat_map(|line| line.values.iter().copied()))
    };
    let low = all().fold(f64::INFINITY, f64::min).max(0.0);
    let high = all().fold(0.0, f64::max).max(low);
    // Errors may be larger than shares can be.
    let most = if high > 1.0 { f64::INFINITY } else { 1.0 };
    let margin = 0.05 * (high - low).max(0.01);
    let (low, high) = ((low - margin).max(0.0), (high + margin).min(most));
    let place = |value: f64| left + ((value - low) / (high - low) * f64::from(width)) as i32;
    save(path, size, |canvas| {
        let text = |size: i32| TextStyle::from((FONT, size)).color(&BLACK);
        let put = |words: &str, style: &TextStyle<'_>, at: (i32, i32)| {
            canvas.draw_text(words, style, at).map_err(drawing)
        };
        let middle = Pos::new(HPos::Center, VPos::Center);
        put(title, &text(18).pos(middle), (left + width / 2, 26))?;
        let beside = Pos::new(HPos::Left, VPos::Center);
        let mut at = left;
        let bar = [(at, 52), (at + 22, 52)];
        canvas.draw(&PathElement::new(bar, color(0).stroke_width(2))).map_err(drawing)?;
        put(marks.interval, &text(13).pos(beside), (at + 28, 52))?;
        at += 58 + 7 * marks.interval.chars().count() as i32;
        canvas.draw(&Circle::new((at, 52), 5, color(1).filled())).map_err(drawing)?;
        put(marks.mean, &text(13).pos(beside), (at + 10, 52))?;
        at += 40 + 7 * marks.mean.chars().count() as i32;
        if !marks.value.is_empty() {
            let dot = Circle::new((at, 52), 2, RGBColor(170, 170, 170).filled());
            canvas.draw(&dot).map_err(drawing)?;
            put(marks.value, &text(13).pos(beside), (at + 8, 52))?;
        }
        for mark in 0..=4 {
            let value = low + (high - low) * f64::from(mark) / 4.0;
            let x = place(value);
            let grid = PathElement::new([(x, top), (x, top + height)], RGBColor(220, 220, 220));
            canvas.draw(&grid).map_err(drawing)?;
            let words = marks.words(value, 1);
            put(&words, &text(13).pos(middle), (x, top + height + 18))?;
        }
        put(what, &text(14).pos(middle), (left + width / 2, top + height + 45))?;
        for (i, line) in lines.iter().enumerate() {
            let y = top + step * i as i32 + step / 2;
            let right = Pos::new(HPos::Right, VPos::Center);
            put(&line.name, &text(14).pos(right), (left - 10, y))?;
            for value in &line.values {
                let dot = Circle::new((place(*value), y), 2, RGBColor(170, 170, 170).filled());
                canvas.draw(&dot).map_err(drawing)?;
            }
            let style = color(0).stroke_width(2);
            let bar = [(place(line.ends.0), y), (place(line.ends.1), y)];
            canvas.draw(&PathElement::new(bar, style)).map_err(drawing)?;
            let mean = Circle::new((place(line.mean), y), 5, color(1).filled());
            canvas.draw(&mean).map_err(drawing)?;
            let words = marks.words(line.mean, 2);
            put(&words, &text(13).pos(beside), (left + width + 12, y))?;
        }
        Ok(())
    })
}
