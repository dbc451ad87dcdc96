//! Progress on standard error: a bar over the sub-problems and the state of the solver.
//!
//! Nothing is drawn unless standard error is a terminal; warnings are always told.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use widemargin::{Event, Observer};

use crate::terminal;

/// Draws the events of a computation.
#[derive(Clone)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Starts drawing; `quiet` draws nothing.
    pub(crate) fn new(message: &str, quiet: bool) -> Self {
        let bar = ProgressBar::no_length();
        if quiet {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        bar.set_style(spinner());
        bar.set_message(message.to_owned());
        bar.enable_steady_tick(Duration::from_millis(150));
        Self { bar }
    }

    /// Removes the bar from the screen.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

fn spinner() -> ProgressStyle {
    style("{spinner} {elapsed} {wide_msg}")
}

impl Observer for Progress {
    fn observe(&self, event: &Event) {
        match event {
            Event::Stage { name, total } => {
                self.bar.set_length(*total as u64);
                self.bar.set_position(0);
                self.bar.set_prefix(*name);
                self.bar.set_style(style(
                    "{prefix} [{bar:30}] {pos}/{len} {elapsed} (about {eta} left) {wide_msg}",
                ));
            }
            Event::StageStep { .. } => self.bar.inc(1),
            Event::Iteration { iteration, violation, objective, active } => {
                self.bar.set_message(format!(
                    "block {iteration}, violation {violation:.2e}, objective {objective:.6}, \
                     {active} active"
                ));
            }
            Event::Warning { message } => self.bar.suspend(|| terminal::warn(message)),
            _ => {}
        }
    }
}
