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
    /// Whether several sites train, whose rounds are drawn and not the steps of each.
    has_sites: bool,
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
        *stage = Stage { name, total, done: 0, has_sites: stage.has_sites };
        if total > 1 {
            self.bar.set_length(total as u64);
            self.bar.set_position(0);
            self.bar.set_prefix(name);
            self.bar.set_style(style(BAR));
        }
    }

    fn has_sites(&self) -> bool {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner).has_sites
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

/// Sites whose rows are written one by one.
const MOST_SITES: usize = 8;

/// One line about all sites.
fn round_text(number: u32, objectives: &[f64], rows: &[u64]) -> String {
    let known = || objectives.iter().copied().filter(|value| value.is_finite());
    let best = known().fold(f64::NEG_INFINITY, f64::max);
    let worst = known().fold(f64::INFINITY, f64::min);
    let objective = match known().count() {
        0 => "no objective yet".to_owned(),
        count => {
            let without = objectives.len() - count;
            let none = if without > 0 { format!(", {without} without") } else { String::new() };
            let apart = (best - worst) / best.abs().max(f64::MIN_POSITIVE);
            format!("best dual objective {best:.6e}, sites {apart:.1e} apart{none}")
        }
    };
    let rows = match rows.len() {
        0..=MOST_SITES => rows.iter().map(u64::to_string).collect::<Vec<_>>().join(" "),
        _ => {
            let (least, most) = (rows.iter().min(), rows.iter().max());
            format!("{} to {}", least.unwrap_or(&0), most.unwrap_or(&0))
        }
    };
    format!("round {number}: {objective}, rows {rows}")
}

impl Observer for Progress {
    fn observe(&self, event: &Event) {
        if let Some(log) = &self.log {
            log.observe(event);
        }
        match event {
            Event::Stage { name, total } => self.enter(name, *total),
            Event::StageStep { name } => self.step(name),
            Event::Round { number, objectives, rows } => {
                let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
                stage.has_sites = true;
                self.bar.set_message(round_text(*number, objectives, rows));
            }
            Event::Iteration { iteration, violation, active, .. } if !self.has_sites() => {
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
            Event::Round { number, objectives, rows } => {
                self.write(&round_text(*number, objectives, rows));
            }
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
    fn one_line_tells_of_all_sites() {
        let text = round_text(3, &[10.0, f64::NEG_INFINITY, 9.0], &[5, 0, 7]);
        assert_eq!(
            text,
            "round 3: best dual objective 1.000000e1, sites 1.0e-1 apart, 1 without, rows 5 0 7"
        );
        let many = round_text(1, &[f64::NEG_INFINITY; 9], &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(many, "round 1: no objective yet, rows 1 to 9");
        let progress = Progress::new("test", true, false);
        progress.observe(&Event::Round { number: 1, objectives: vec![1.0], rows: vec![2] });
        assert!(progress.has_sites());
    }

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
