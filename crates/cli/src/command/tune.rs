//! `tune`: which parameters of a machine predict held-out rows best.

mod picture;

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::{Value as Json, json};
use widemargin::Context;
use widemargin::data::write::write_atomically;
use widemargin::data::{Dataset, Label};
use widemargin::machine::specification::Value;
use widemargin::machine::{MachineKind, Specification};
use widemargin::operation::advice::Advice;
use widemargin::operation::folds::Folds;
use widemargin::operation::tune::{
    Axis, Criterion, Found, Judge, Metric, Plan, Point, Reuse, Space, SpecifiedFamily, Strategy,
    Trial, bootstrap, hold_out, repeated, search,
};

use super::prepare::{TrainingData, check_strings, complete, training_rows};
use super::{train, transduce};
use crate::arguments::value::{value, whole};
use crate::arguments::{InputArguments, MachineArguments, ResourceArguments};
use crate::data_file::{check_outputs, check_picture, check_table};
use crate::failure::{CommandResult, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::model_file::{self, ModelFormatName};
use crate::session::Session;
use crate::table::{Summary, duration, grid};
use crate::terminal;
use crate::usage::{Stopwatch, UsedTime};

/// Rows of the table that is printed.
const SHOWN: usize = 12;

/// How points are chosen.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum StrategyName {
    /// Every combination of the values
    Grid,
    /// The grid, then finer ones around the best point (see --rounds)
    Refine,
    /// --points points between the ends of the values
    Random,
    /// The grid on few rows, then the better ones on more (see --factor, --min-rows)
    Halving,
    /// The grid, eliminating points that are significantly worse
    Race,
    /// The grid, with values beyond an end as long as the best point lies there
    Shift,
    /// From the middle of the ranges to better neighbours, with steps halved --rounds times
    Pattern,
    /// --points points, chosen by a surrogate of the scores so far (a Gaussian process)
    #[value(alias = "model")]
    Surrogate,
}

/// Find good parameters by cross-validation
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  widemargin tune heart.csv --scale standard -o heart.wm
  widemargin tune heart.csv --grid c=0.1:1000:9 --grid gamma=0.001:10:9 --plot heat.svg
  widemargin tune prices.csv -s epsilon-svr --grid c=1:1000:7 --grid epsilon=0.01,0.1 --score mae
  widemargin tune heart.csv -s knn --grid neighbours=1,5,9,15 --scale standard
  widemargin tune big.csv --method surrogate --points 40 --max-time 600 --journal big.jsonl

A grid is LOW:HIGH:COUNT, numbers at equal ratios (2^-5:2^15:11), or a list. Without --grid, C and
(for kernels that have it) gamma are searched over the ranges of LIBSVM's grid.py. Kernel values and
solutions are shared between points and folds; the scores are those of training every machine by
itself. With --journal, the same command goes on where an interrupted one was. With --max-time and
-o, a quarter of the time is kept for training the best point on all rows.")]
pub(crate) struct Arguments {
    /// Data file; '-': standard input
    data: PathBuf,

    /// Values of a parameter of the machine, by the name of its option: c, nu, gamma, kernel,
    /// class-weight, neighbours, components, ...
    #[arg(long, value_name = "NAME=VALUES")]
    grid: Vec<String>,

    /// How points are chosen
    #[arg(long, value_enum, default_value = "grid")]
    method: StrategyName,

    /// Points that --method random and surrogate try
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = whole::<usize>)]
    points: usize,

    /// Finer grids of --method refine, halved steps of --method pattern
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = whole::<usize>)]
    rounds: usize,

    /// One in how many points --method halving keeps, and how many times more rows it gives them
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<usize>)]
    factor: usize,

    /// Rows of the first round of --method halving
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = whole::<usize>)]
    min_rows: usize,

    /// accuracy, balanced-accuracy, f1, auc, log-loss; mse, mae, r2; tau, ndcg, map
    /// [default: accuracy, for numbers mse]
    #[arg(long, value_name = "NAME", value_parser = value::<Metric>)]
    score: Option<Metric>,

    /// Judge c-svc by an estimate from one training instead of folds: xi-alpha, span-bound or
    /// approximate-loo
    #[arg(long, value_name = "NAME", value_parser = value::<Criterion>,
          conflicts_with_all = ["score", "folds", "repeats", "leave_one_out", "grouped", "hold_out", "bootstrap"])]
    estimate: Option<Criterion>,

    /// Number of parts, each predicted from the others
    #[arg(long, value_name = "K", default_value_t = 5)]
    folds: usize,

    /// Times that the rows are divided into parts anew
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<usize>)]
    repeats: usize,

    /// Predict every row by a machine trained on all others
    #[arg(long, conflicts_with_all = ["folds", "grouped", "repeats"])]
    leave_one_out: bool,

    /// Keep rows with the same group number (qid) in one part
    #[arg(long)]
    grouped: bool,

    /// Hold out this share of the rows of every class instead of folds, --repeats times
    #[arg(long, value_name = "SHARE",
          conflicts_with_all = ["folds", "leave_one_out", "grouped", "bootstrap"])]
    hold_out: Option<f64>,

    /// Learn from as many rows drawn with replacement, and predict the others, instead of folds: N times
    #[arg(long, value_name = "N", value_parser = whole::<usize>,
          conflicts_with_all = ["folds", "leave_one_out", "grouped", "repeats"])]
    bootstrap: Option<usize>,

    /// Weight of every row, one number a line, multiplied with C
    #[arg(long, value_name = "FILE")]
    sample_weights: Option<PathBuf>,

    /// Train the best machine on all rows and write its model
    #[arg(short = 'o', long, alias = "model", value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write everything that was tried as CSV
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,

    /// Keep everything that was found in a file, and go on from it if it is there
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,

    /// Draw the scores as a line, a heat map or points (SVG)
    #[arg(long, alias = "picture", value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    /// Train every machine by itself, sharing nothing: slower, and the same scores but for rows that are
    /// within --tol of a boundary
    #[arg(long)]
    cold: bool,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    machine: MachineArguments,
    #[command(flatten)]
    input: InputArguments,
    #[command(flatten)]
    resources: ResourceArguments,
}

/// Searches, reports, and trains the best machine.
pub(crate) fn run(arguments: &Arguments, interrupt: &Interrupt) -> CommandResult {
    let choice = &arguments.machine.choice;
    if choice.probability.is_some() || choice.memory.is_some() {
        let message = "--probability and --memory go with train, not with tune";
        return Err(Failure::usage(message));
    }
    let specification = arguments.machine.specification()?;
    let space = space(&specification, &arguments.grid)?;
    if !space.axes.iter().any(|axis| ["kernel", "kernels"].contains(&axis.name.as_str())) {
        check_strings(&arguments.input, &specification)?;
    }
    let session = arguments.resources.session(interrupt)?;
    check_outputs(
        &[
            ("-o", arguments.output.as_deref()),
            ("--table", arguments.table.as_deref()),
            ("--plot", arguments.plot.as_deref()),
            ("--journal", arguments.journal.as_deref()),
        ],
        &[
            Some(&arguments.data),
            arguments.input.labels.as_deref(),
            arguments.sample_weights.as_deref(),
        ],
    )?;
    if let Some(target) = &arguments.output {
        model_file::check_writable(target)?;
    }
    check_table(arguments.table.as_deref())?;
    check_picture(arguments.plot.as_deref())?;
    let weights = arguments.sample_weights.as_deref();
    let files = arguments.machine.view_files();
    let TrainingData { data, preparation, mut report } = session.read("reading", || {
        training_rows(&arguments.input, &arguments.data, weights, &files, &specification)
    })?;
    if searches_scaling(&space) {
        report.advice.retain(|advice| !matches!(advice, Advice::UnscaledFeatures { .. }));
    }
    report.warn();
    let family = SpecifiedFamily::new(specification, &data, arguments.resources.seed)?;
    let plan = plan(arguments, &family, &space, &data)?;
    let watch = Stopwatch::start();
    let keeps_model = arguments.output.is_some();
    let found = session.run("tuning", |context| {
        let context = &limited(context, keeps_model);
        search(&family, &space, &data, &plan, arguments.journal.as_deref(), context)
    });
    let found = found.map_err(|failure| match failure {
        Failure::TimeLimit => Failure::TimeLimitWith(NOTHING_TRIED),
        other => other,
    })?;
    let spent = watch.stop();
    // A file that cannot be written must not lose the rest.
    let written = write_files(arguments, &space, &found, &plan, &session);
    let printed = if arguments.json {
        let mut document = document(&found, &plan, spent);
        report.add_to(&mut document);
        terminal::print_json(&document)
    } else if !arguments.resources.quiet {
        terminal::print(&text(arguments, &space, &found, &plan, spent))
    } else {
        Ok(())
    };
    // Nor must a closed standard output.
    let written = written.and(printed);
    let ended = print_status(&found);
    let (Some(target), Some(best)) = (&arguments.output, found.best()) else {
        return written.map(|()| ended);
    };
    let specification = family.specification_at(&best.point)?;
    let machine = specification.build(&data, arguments.resources.seed)?;
    let mut model = session.run_after_stop("training", |context| machine.fit(&data, context))?;
    complete(&mut model, preparation, &specification);
    session.save(|| model_file::save(&model, target, ModelFormatName::Native))?;
    written.map(|()| match train::print_status(&model, target) {
        Outcome::Done => ended,
        unfinished => unfinished,
    })
}

/// Writes the table and the picture.
fn write_files(
    arguments: &Arguments,
    space: &Space,
    found: &Found,
    plan: &Plan,
    session: &Session<'_>,
) -> CommandResult<()> {
    if let Some(path) = &arguments.table {
        session.save(|| write_atomically(path, |out| write_table(out, found)))?;
    }
    match &arguments.plot {
        Some(path) => session.save(|| picture::draw(path, space, found, plan)),
        None => Ok(()),
    }
}

/// What helps when the time limit came before the first point had been tried on a single split.
const NOTHING_TRIED: &str = "the time limit was reached before one point had been tried on one split; \
    a larger --max-time, --method halving with a small --min-rows, or a smaller file would help";

/// Share of --max-time that the search may take when the best point is then trained on all rows. A point
/// takes several trainings on nearly as many rows, so that a quarter of the time is enough for one more
/// unless the search saw hardly one point.
const SEARCH_SHARE: f64 = 0.75;

/// The context of the search: with less time when a model is to be trained afterwards.
fn limited(context: &Context, keeps_model: bool) -> Context {
    match context.time_left() {
        Some(left) if keeps_model => context.clone().with_time_limit(left.mul_f64(SEARCH_SHARE)),
        _ => context.clone(),
    }
}

/// The parameters to search: those asked for, or the usual ones of the machine.
fn space(specification: &Specification, grid: &[String]) -> CommandResult<Space> {
    let texts: Vec<&str> = match grid {
        [] => specification.default_grid(),
        given => given.iter().map(String::as_str).collect(),
    };
    if texts.is_empty() {
        let name = specification.name();
        let message =
            format!("{name} has no predictions to score; tune what has classes or numbers");
        return Err(Failure::usage(message));
    }
    let axes = texts.into_iter().map(|text| Axis::parse(specification, text));
    Ok(Space { axes: axes.collect::<widemargin::Result<_>>()? })
}

/// Whether the machines of a space scale by themselves, each in its own way.
fn searches_scaling(space: &Space) -> bool {
    space.axes.iter().any(|axis| axis.name == "scale")
}

fn plan(
    arguments: &Arguments,
    family: &SpecifiedFamily<'_>,
    space: &Space,
    data: &Dataset,
) -> CommandResult<Plan> {
    let kind = family.specification().kind();
    let judge = match arguments.estimate {
        Some(which) => Judge::Estimate(which),
        None => {
            let folds = match (arguments.leave_one_out, arguments.grouped) {
                (true, _) => Folds::LeaveOneOut,
                (_, true) => Folds::Grouped(arguments.folds),
                _ => Folds::usual(kind, arguments.folds),
            };
            let metric = arguments.score.unwrap_or_else(|| Metric::usual(kind));
            let seed = arguments.resources.seed;
            let mark = transduce::mark(family.specification()).map(Label::Text);
            let (repeats, mark) = (arguments.repeats, mark.as_ref());
            let splits = match (arguments.hold_out, arguments.bootstrap) {
                (Some(share), _) => hold_out(share, repeats, data, mark, seed)?,
                (None, Some(times)) => bootstrap(times, data, mark, seed)?,
                (None, None) => repeated(&folds, repeats, data, mark, seed)?,
            };
            Judge::Splits { splits, metric }
        }
    };
    let scaling = family.scaling().filter(|_| !searches_scaling(space));
    if scaling.is_some() && arguments.estimate.is_some() {
        return Err(Failure::usage("--estimate needs rows that are scaled already: see 'scale'"));
    }
    let points = arguments.points;
    let strategy = match arguments.method {
        StrategyName::Grid => Strategy::Grid,
        StrategyName::Refine => Strategy::Refined { rounds: arguments.rounds },
        StrategyName::Random => Strategy::Random { points },
        StrategyName::Halving => {
            Strategy::Halving { factor: arguments.factor, smallest: arguments.min_rows }
        }
        StrategyName::Race => Strategy::Race,
        StrategyName::Shift => Strategy::Shifted,
        StrategyName::Pattern => Strategy::Pattern { halvings: arguments.rounds },
        StrategyName::Surrogate => Strategy::Surrogate { points },
    };
    let reuse = if arguments.cold { Reuse::Nothing } else { Reuse::Everything };
    Ok(Plan { strategy, judge, scaling, reuse })
}

fn name_of(plan: &Plan) -> &'static str {
    match &plan.judge {
        Judge::Splits { metric, .. } => metric.name(),
        Judge::Estimate(which) => which.name(),
    }
}

/// The score of a trial for people: errors without their sign.
fn shown(score: f64, plan: &Plan) -> String {
    match &plan.judge {
        Judge::Splits { metric: Metric::SquaredError | Metric::AbsoluteError, .. }
        | Judge::Splits { metric: Metric::LogLoss, .. } => format!("{:.6}", -score),
        Judge::Splits { metric: Metric::Determination | Metric::Auc, .. }
        | Judge::Splits {
            metric: Metric::Ndcg | Metric::AveragePrecision | Metric::KendallTau,
            ..
        } => format!("{score:.4}"),
        _ => format!("{:.2} %", 100.0 * score),
    }
}

fn text(
    arguments: &Arguments,
    space: &Space,
    found: &Found,
    plan: &Plan,
    spent: UsedTime,
) -> String {
    let seen = |trial: &Trial| (trial.rows, trial.scored_splits());
    let best = found.best().map_or((0, 0), seen);
    let mut order: Vec<&Trial> = found.trials.iter().filter(|trial| seen(trial) == best).collect();
    order.sort_by(|a, b| {
        let mean = |trial: &Trial| trial.partial_mean().unwrap_or(f64::NEG_INFINITY);
        mean(b).total_cmp(&mean(a))
    });
    let names = space.axes.iter().map(|axis| axis.name.clone());
    let mut lines =
        vec![names.chain([name_of(plan).into(), "+/-".into(), "time".into()]).collect()];
    for trial in order.iter().take(SHOWN) {
        let values = trial.point.0.iter().map(|(_, value)| short(value));
        let mean = trial.partial_mean().map_or_else(String::new, |mean| shown(mean, plan));
        let spread = trial.deviation().map_or_else(String::new, |d| match plan.judge {
            Judge::Splits { metric, .. } if metric == Metric::usual(MachineKind::CSvc) => {
                format!("{:.2}", 100.0 * d)
            }
            _ => format!("{d:.4}"),
        });
        lines.push(values.chain([mean, spread, duration(trial.fit_seconds())]).collect::<Vec<_>>());
    }
    let mut text = grid(&lines);
    let mut summary = Summary::default();
    let failed = found.trials.iter().filter(|trial| trial.failure.is_some()).count();
    summary.line("tried", format!("{} points", found.trials.len()));
    if failed > 0 {
        summary.line("failed", format!("{failed} points (see --table)"));
    }
    if let Some(best) = found.best() {
        let words = best.point.0.iter().map(|(name, value)| format!("{name} = {}", short(value)));
        summary.line("best", words.collect::<Vec<_>>().join(", "));
        let (scored, splits) = (best.scored_splits(), best.records.len());
        if scored < splits {
            summary.line("judged by", format!("{scored} of {splits} splits: no point has more"));
        }
        summary.line(
            "as good",
            format!("{} points within one standard error", found.near_best().len()),
        );
        let ends = space.ends(&best.point);
        if !ends.is_empty() {
            summary.line(
                "note",
                format!("the best {} is at the end of its range", ends.join(" and ")),
            );
        }
    }
    if let Some(path) = &arguments.output {
        summary.line("model", path.display());
    }
    summary.line("time", duration(spent.seconds));
    text.push('\n');
    text.push_str(&summary.text());
    text
}

/// A value for people: powers of two with many digits as such.
fn short(value: &Value) -> String {
    let Value::Real(number) = value else { return value.to_string() };
    let plain = format!("{number:.6}");
    let plain = plain.trim_end_matches('0').trim_end_matches('.');
    let exponent = number.log2();
    if *number > 0.0 && exponent.fract() == 0.0 && plain.parse() != Ok(*number) {
        format!("2^{exponent}")
    } else if *number != 0.0 && number.abs() < 1e-3 {
        format!("{number:.3e}")
    } else {
        plain.to_owned()
    }
}

fn document(found: &Found, plan: &Plan, spent: UsedTime) -> Json {
    let point = |point: &Point| -> Json {
        Json::Object(point.0.iter().map(|(name, value)| (name.clone(), json!(value))).collect())
    };
    let trial = |trial: &Trial| {
        json!({
            "parameters": point(&trial.point),
            "rows": trial.rows,
            "mean": trial.mean(),
            "deviation": trial.deviation(),
            "splits": trial.records,
            "failure": trial.failure,
        })
    };
    json!({
        "metric": name_of(plan),
        "best": found.best().map(|best| point(&best.point)),
        "score": found.best().and_then(Trial::partial_mean),
        "scored_splits": found.best().map(Trial::scored_splits),
        "within_one_standard_error": found.near_best(),
        "trials": found.trials.iter().map(trial).collect::<Vec<_>>(),
        "stopped": found.stopped,
        "seconds": spent.seconds,
        "cpu_seconds": spent.cpu_seconds,
    })
}

fn write_table(out: &mut dyn Write, found: &Found) -> std::io::Result<()> {
    let quoted = |text: String| match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    };
    let Some(first) = found.trials.first() else { return Ok(()) };
    let mut heading: Vec<String> = first.point.0.iter().map(|(name, _)| name.clone()).collect();
    let fixed = ["rows", "mean", "deviation", "fit_seconds", "iterations", "failure"];
    heading.extend(fixed.map(str::to_owned));
    heading.extend((0..first.records.len()).map(|split| format!("split_{}", split + 1)));
    writeln!(out, "{}", heading.join(","))?;
    let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
    for trial in &found.trials {
        let mut cells: Vec<String> = trial.point.0.iter().map(|(_, v)| v.to_string()).collect();
        cells.push(trial.rows.to_string());
        cells.extend([number(trial.mean()), number(trial.deviation())]);
        cells.extend([trial.fit_seconds().to_string(), trial.iterations().to_string()]);
        cells.push(trial.failure.clone().unwrap_or_default());
        cells.extend(trial.records.iter().map(|record| number(record.and_then(|r| r.score))));
        writeln!(out, "{}", cells.into_iter().map(quoted).collect::<Vec<_>>().join(","))?;
    }
    Ok(())
}

fn print_status(found: &Found) -> Outcome {
    match found.stopped {
        None => Outcome::Done,
        Some(status) => {
            let done = found.trials.iter().filter(|trial| trial.mean().is_some()).count();
            let all = found.trials.len();
            terminal::warn(&format!("{status}: {done} of {all} points were finished"));
            status.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_shown_can_be_read_back() {
        let shown = |number: f64| short(&Value::Real(number));
        for (number, text) in [
            (1.0, "1"),
            (0.03125, "0.03125"),
            (32768.0, "32768"),
            (2_f64.powi(-15), "2^-15"),
            (2_f64.powi(-7), "2^-7"),
            (0.1, "0.1"),
            (1e-5, "1.000e-5"),
            (0.0, "0"),
        ] {
            assert_eq!(shown(number), text);
        }
        // Those of the default grids, which are what grid.py of LIBSVM tries.
        for exponent in -15..=15 {
            let number = 2_f64.powi(exponent);
            let read = widemargin::machine::specification::number(&shown(number));
            assert_eq!(read.and_then(|value| value.number()), Some(number), "{number}");
        }
    }
}
