//! Colours of scores: the lowest is pale, not white, and a bar says which colour is which score.

use plotters::style::RGBColor;

use super::axis::plain;
use super::sheet::{Align, GREY, Place, Sheet};
use crate::failure::CommandResult;

/// Scores from the worst to the best as colours from pale to dark blue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shades {
    worst: f64,
    best: f64,
}

impl Shades {
    /// The colours of `scores`, of which the lowest is best when `lower_is_better`.
    pub(crate) fn of(scores: impl IntoIterator<Item = f64>, lower_is_better: bool) -> Self {
        let ends = (f64::INFINITY, f64::NEG_INFINITY);
        let (low, high) = scores.into_iter().fold(ends, |(low, high), s| (low.min(s), high.max(s)));
        let (worst, best) = if lower_is_better { (high, low) } else { (low, high) };
        Self { worst, best }
    }

    fn share(self, score: f64) -> f64 {
        match self.best - self.worst {
            0.0 => 1.0,
            width => ((score - self.worst) / width).clamp(0.0, 1.0),
        }
    }

    /// The colour of a score.
    pub(super) fn color(self, score: f64) -> RGBColor {
        let share = self.share(score);
        let mix = |pale: f64, dark: f64| (pale + share * (dark - pale)).round() as u8;
        RGBColor(mix(214.0, 8.0), mix(230.0, 64.0), mix(244.0, 129.0))
    }

    /// Whether words on the colour of a score are white.
    pub(super) fn is_dark(self, score: f64) -> bool {
        self.share(score) > 0.5
    }

    /// Draws the bar, the best at its upper end.
    pub(super) fn bar(
        self,
        sheet: &Sheet<'_, '_>,
        title: &str,
        (x, y): Place,
        height: f64,
    ) -> CommandResult<()> {
        const STEPS: usize = 50;
        const WIDTH: f64 = 18.0;
        let score = |share: f64| self.worst + share * (self.best - self.worst);
        for step in 0..STEPS {
            let [top, bottom] = [step, step + 1].map(|s| y + height * s as f64 / STEPS as f64);
            let share = 1.0 - (step as f64 + 0.5) / STEPS as f64;
            // Over the next step, so that no seam is seen.
            let bottom = (bottom + 1.0).min(y + height);
            sheet.block((x, top), (x + WIDTH, bottom), self.color(score(share)))?;
        }
        sheet.frame((x, y), (x + WIDTH, y + height), GREY, 0.5)?;
        let marks = if self.best == self.worst { 0..=0 } else { 0..=4 };
        for mark in marks {
            let share = f64::from(mark) / 4.0;
            let place = (x + WIDTH + 6.0, y + height * (1.0 - share));
            sheet.text(&plain(score(share)), 12, Align::Left, place)?;
        }
        sheet.text(title, 13, Align::Left, (x, y - 16.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_score_is_visible_and_the_best_is_dark() {
        let sum = |color: RGBColor| u32::from(color.0) + u32::from(color.1) + u32::from(color.2);
        let up = Shades::of([0.5, 0.9, 0.7], false);
        assert!(sum(up.color(0.5)) < 700 && sum(up.color(0.9)) < 250);
        assert!(sum(up.color(0.5)) > sum(up.color(0.7)) && !up.is_dark(0.5) && up.is_dark(0.9));
        let down = Shades::of([0.5, 0.9, 0.7], true);
        assert_eq!(down.color(0.5), up.color(0.9));
        assert_eq!(Shades::of([0.5], false).color(0.5), up.color(0.9));
    }
}
