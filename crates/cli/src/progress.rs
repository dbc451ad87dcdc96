//! Progress on standard error: a bar over the sub-problems and the state of the solver.
//!
//! Nothing is drawn unless standard error is a terminal; warnings are always printed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use widemargin::{Event, Observer};

use crate::terminal;

const SPINNER: &str = "{spinner} {prefix} {elapsed} {wide_msg}";
const BAR: &str = "{prefix} [{bar:24}] {pos}/{len} {elapsed}, {eta} left {wide_msg}";

/// Draws the events of a computation.
#[derive(Clone)]
pub(crate) struct Progress {
    bar: ProgressBar,
    stage: Arc<Mutex<Stage>>,
}

/// The outermost stage under way; stages inside it are not drawn.
#[derive(Default)]
struct Stage {
    name: &'static str,
    total: usize,
    done: usize,
}

impl Progress {
    /// Starts drawing; `quiet` draws nothing.
    pub(crate) fn new(name: &str, quiet: bool) -> Self {
        let bar = ProgressBar::no_length();
        if quiet {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        bar.set_style(style(SPINNER));
        bar.set_prefix(name.to_owned());
        bar.enable_steady_tick(Duration::from_millis(150));
        Self { bar, stage: Arc::default() }
    }

    /// Removes the bar from the screen.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn enter(&self, name: &'static str, total: usize) {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        if stage.done < stage.total {
            return;
        }
        *stage = Stage { name, total, done: 0 };
        if total > 1 {
            self.bar.set_length(total as u64);
            self.bar.set_position(0);
            self.bar.set_prefix(name);
            self.bar.set_style(style(BAR));
        }
    }

    fn step(&self, name: &'static str) {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        if stage.name == name && stage.done < stage.total {
            stage.done += 1;
            self.bar.set_position(stage.done as u64);
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

impl Observer for Progress {
    fn observe(&self, event: &Event) {
        match event {
            Event::Stage { name, total } => self.enter(name, *total),
            Event::StageStep { name } => self.step(name),
            Event::Iteration { iteration, violation, active, .. } => {
                self.bar.set_message(format!(
                    "block {iteration}, KKT violation {violation:.1e}, {active} active"
                ));
            }
            Event::Warning { message } => self.bar.suspend(|| terminal::warn(message)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_inside_a_stage_do_not_count() {
        let progress = Progress::new("test", true);
        let place = || {
            let stage = progress.stage.lock().expect("no panic");
            (stage.name, stage.done)
        };
        progress.observe(&Event::Stage { name: "folds", total: 2 });
        progress.observe(&Event::Stage { name: "pairs", total: 3 });
        progress.observe(&Event::StageStep { name: "pairs" });
        assert_eq!(place(), ("folds", 0));
        progress.observe(&Event::StageStep { name: "folds" });
        progress.observe(&Event::StageStep { name: "folds" });
        assert_eq!(place(), ("folds", 2));
        progress.observe(&Event::Stage { name: "pairs", total: 3 });
        assert_eq!(place(), ("pairs", 0));
    }
}
