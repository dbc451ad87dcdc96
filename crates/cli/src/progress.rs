//! Progress on standard error: a bar over the sub-problems and the state of the solver.
//!
//! Nothing is drawn unless standard error is a terminal; warnings are always printed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

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
    log: Option<Arc<Log>>,
}

/// The outermost stage under way; stages inside it are not drawn.
#[derive(Default)]
struct Stage {
    name: &'static str,
    total: usize,
    done: usize,
}

impl Progress {
    /// Starts drawing; `quiet` draws nothing, `verbose` writes lines instead.
    pub(crate) fn new(name: &str, quiet: bool, verbose: bool) -> Self {
        let bar = ProgressBar::no_length();
        let log = verbose.then(|| Arc::new(Log::new()));
        if let Some(log) = &log {
            log.write(name);
        }
        if quiet || verbose {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        bar.set_style(style(SPINNER));
        bar.set_prefix(name.to_owned());
        bar.enable_steady_tick(Duration::from_millis(150));
        Self { bar, stage: Arc::default(), log }
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
        if let Some(log) = &self.log {
            log.observe(event);
        }
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

/// Lines of `--verbose`.
struct Log {
    started: Instant,
    /// When the last step of a solver was written: their lines are at least this far apart.
    last_step: Mutex<Option<Instant>>,
}

const STEP_PERIOD: Duration = Duration::from_millis(200);

impl Log {
    fn new() -> Self {
        Self { started: Instant::now(), last_step: Mutex::default() }
    }

    fn write(&self, line: &str) {
        terminal::note(&format!("[{:8.3} s] {line}", self.started.elapsed().as_secs_f64()));
    }

    fn is_due(&self) -> bool {
        let mut last = self.last_step.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| last.elapsed() >= STEP_PERIOD);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }

    fn observe(&self, event: &Event) {
        match event {
            Event::Stage { name, total } => self.write(&format!("{name}: {total} to do")),
            Event::StageStep { name } => self.write(&format!("{name}: one more done")),
            Event::Iteration { iteration, violation, objective, active } if self.is_due() => {
                self.write(&format!(
                    "block {iteration}: KKT violation {violation:.2e}, dual objective \
                     {objective:.6e}, {active} active"
                ));
            }
            Event::Solved(function) => {
                let outcome = &function.outcome;
                self.write(&format!(
                    "function {}: {}, {} support vectors ({} at their bound), {} blocks, {} steps, \
                     {} kernel rows, KKT violation {:.2e}, gap {:.2e}",
                    function.index + 1,
                    outcome.status,
                    function.support,
                    function.bounded,
                    outcome.blocks,
                    outcome.iterations,
                    outcome.kernel_rows,
                    outcome.violation,
                    outcome.gap(),
                ));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_inside_a_stage_do_not_count() {
        let progress = Progress::new("test", true, false);
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
