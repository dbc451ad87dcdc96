//! `tune`: which parameters of a machine answer held-out rows best.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Value as Json, json};
use widemargin::data::Dataset;
use widemargin::data::read::read_weights;
use widemargin::data::write::write_atomically;
use widemargin::kernel::Kernel;
use widemargin::machine::{Machine, MachineKind, Preparation, Scaled};
use widemargin::operation::folds::Folds;
use widemargin::operation::tune::{
    Axis, Criterion, Found, Judge, Metric, Plan, Point, Reuse, Space, Strategy, Trial, Value,
    repeated, search,
};

use crate::arguments::value::{value, whole};
use crate::arguments::{
    ClassicArguments, InputArguments, MachineArguments, ResourceArguments, ScaleArguments, Scaling,
};
use crate::data_file::{check_outputs, check_picture};
use crate::failure::{CommandResult, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::model_file::{self, ModelFormatName};
use crate::picture::{Heat, heat};
use crate::table::{Summary, duration, grid};
use crate::terminal;
use crate::usage::{Spent, Stopwatch};

/// Values of C that are tried unless told otherwise.
const USUAL_C: (f64, f64, usize) = (0.031_25, 32_768.0, 11);

/// Values of gamma that are tried unless told otherwise.
const USUAL_GAMMA: (f64, f64, usize) = (0.000_030_517_578_125, 8.0, 10);

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
    /// The grid, taking out points that are clearly behind
    Race,
    /// --points points, chosen by a model of the scores so far
    Model,
}

/// Find good parameters by cross-validation
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  widemargin tune heart.csv --scale standard -o heart.wm
  widemargin tune heart.csv --grid c=0.1:1000:9 --grid gamma=0.001:10:9 --picture heat.svg
  widemargin tune heart.csv --grid kernel=rbf,poly --grid c=1:100:5 --method refine
  widemargin tune prices.csv -s epsilon-svr --grid c=1:1000:7 --grid epsilon=0.01,0.1 --score mae
  widemargin tune heart.csv -s knn --grid neighbours=1,5,9,15 --scale standard
  widemargin tune big.csv --method model --points 40 --max-time 600 --journal big.jsonl

A grid is LOW:HIGH:COUNT, numbers at equal ratios, or a list. Without --grid, C and (for kernels
that have it) gamma are searched over the ranges of LIBSVM's grid.py. Kernel values and solutions
are shared between points and folds; the scores are those of training every machine by itself.
With --journal, the same command goes on where an interrupted one was.")]
pub(crate) struct Arguments {
    /// Data file; '-': standard input
    data: PathBuf,

    /// Values of a parameter: c, nu, epsilon, gamma, degree, coef0, kernel or class-weight; of
    /// classical machines neighbours, weights, components, covariance, width, shrinkage, mu or
    /// landmarks
    #[arg(long, value_name = "NAME=VALUES", value_parser = axis)]
    grid: Vec<Axis>,

    /// How points are chosen
    #[arg(long, value_enum, default_value = "grid")]
    method: StrategyName,

    /// Points that --method random and model try
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = whole::<usize>)]
    points: usize,

    /// Finer grids of --method refine
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = whole::<usize>)]
    rounds: usize,

    /// One in how many points --method halving keeps, and how many times more rows it gives them
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<usize>)]
    factor: usize,

    /// Rows of the first round of --method halving
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = whole::<usize>)]
    min_rows: usize,

    /// accuracy, balanced-accuracy, f1, auc, log-loss; mse, mae, r2
    /// [default: accuracy, for numbers mse]
    #[arg(long, value_name = "NAME", value_parser = value::<Metric>)]
    score: Option<Metric>,

    /// Judge c-svc by an estimate from one training instead of folds: xi-alpha, span-bound or
    /// approximate-loo
    #[arg(long, value_name = "NAME", value_parser = value::<Criterion>,
          conflicts_with_all = ["score", "folds", "repeats", "leave_one_out", "grouped"])]
    estimate: Option<Criterion>,

    /// Number of parts; each is predicted by a machine trained on the others
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

    /// Weight of every row, one number a line, multiplied with C
    #[arg(long, value_name = "FILE")]
    sample_weights: Option<PathBuf>,

    /// Train the best machine on all rows and write its model
    #[arg(short = 'o', long, value_name = "FILE")]
    model: Option<PathBuf>,

    /// Write everything that was tried as CSV
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,

    /// Keep everything that was found in a file, and go on from it if it is there
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,

    /// Draw the scores over the first two parameters with several numbers (SVG)
    #[arg(long, value_name = "FILE.svg")]
    picture: Option<PathBuf>,

    /// Train every machine by itself, sharing nothing: the same scores, slower
    #[arg(long)]
    cold: bool,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    machine: MachineArguments,
    #[command(flatten)]
    scale: ScaleArguments,
    #[command(flatten)]
    input: InputArguments,
    #[command(flatten)]
    resources: ResourceArguments,
}

/// Searches, tells, and trains the best machine.
pub(crate) fn run(arguments: &Arguments, interrupt: &Interrupt) -> CommandResult {
    if arguments.machine.probability.is_some() || arguments.machine.online {
        return Err(Failure::usage("--probability and --online go with train, not with tune"));
    }
    let session = arguments.resources.session(interrupt)?;
    if let Some(target) = &arguments.model {
        model_file::check_writable(target)?;
    }
    check_picture(arguments.picture.as_deref())?;
    check_outputs(
        &[
            ("-o", arguments.model.as_deref()),
            ("--table", arguments.table.as_deref()),
            ("--picture", arguments.picture.as_deref()),
            ("--journal", arguments.journal.as_deref()),
        ],
        &[
            Some(&arguments.data),
            arguments.input.labels.as_deref(),
            arguments.sample_weights.as_deref(),
        ],
    )?;
    let (data, preparation) = session.read("reading", || {
        let loaded = arguments.input.read(&arguments.data)?;
        let preparation = Preparation::of_file(&loaded);
        let kernel = arguments.machine.kernel(loaded.dataset.features())?;
        let data = model_file::kernel_values(kernel == Kernel::Precomputed, loaded)?;
        Ok(match &arguments.sample_weights {
            Some(path) => (data.with_weights(read_weights(path)?)?, preparation),
            None => (data, preparation),
        })
    })?;
    let space = space(arguments)?;
    let plan = plan(arguments, &data)?;
    // What gamma = scale means is decided on scaled rows.
    let reference = match plan.scaling {
        Some(rule) => {
            let scaled = rule.fit(data.features())?.transform(data.features().clone())?;
            data.clone().with_features(scaled)?
        }
        None => data.clone(),
    };
    let build = |point: &Point| machine_at(arguments, &reference, point);
    // A parameter that does not exist is told before anything is computed.
    for point in space.grid().iter().take(1) {
        build(point)?;
    }
    let family = |point: &Point| -> widemargin::Result<Box<dyn Machine>> {
        build(point).map_err(|failure| widemargin::Error::Model { message: failure.to_string() })
    };
    let watch = Stopwatch::start();
    let found = session.run("tuning", |context| {
        search(&family, &space, &data, &plan, arguments.journal.as_deref(), context)
    })?;
    let spent = watch.stop();
    if let Some(path) = &arguments.table {
        session.save(|| write_atomically(path, |out| write_table(out, &found)))?;
    }
    if let Some(path) = &arguments.picture {
        draw(path, &space, &found, name_of(&plan))?;
    }
    let best = found.best().ok_or(widemargin::Error::Interrupted)?;
    if let (Some(target), None) = (&arguments.model, found.stopped) {
        let machine = build(&best.point)?;
        let machine: Box<dyn Machine> = match plan.scaling {
            Some(rule) => Box::new(Scaled { rule, machine }),
            None => machine,
        };
        let mut model = session.run("training", |context| machine.fit(&data, context))?;
        model.preparation = Preparation { scaler: model.preparation.scaler.take(), ..preparation };
        session.save(|| model_file::save(&model, target, ModelFormatName::Native))?;
    }
    if arguments.json {
        terminal::print_json(&document(&found, &plan, spent))?;
    } else if !arguments.resources.quiet {
        terminal::print(&text(arguments, &space, &found, &plan, spent))?;
    }
    Ok(tell_status(&found))
}

/// Reads `NAME=LOW:HIGH:COUNT` or `NAME=VALUE,VALUE,...`.
fn axis(text: &str) -> Result<Axis, String> {
    let (name, values) =
        text.split_once('=').ok_or("expected NAME=LOW:HIGH:COUNT or NAME=VALUE,VALUE,...")?;
    let parts: Vec<&str> = values.split(':').collect();
    if let [low, high, count] = parts[..] {
        let range = (low.parse(), high.parse(), count.parse());
        let (Ok(low), Ok(high), Ok(count)) = range else {
            return Err(format!("expected numbers LOW:HIGH:COUNT, found '{values}'"));
        };
        return Axis::logarithmic(name, low, high, count).map_err(|error| error.to_string());
    }
    let one = |text: &str| match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Value::Number(number),
        _ => Value::Text(text.to_owned()),
    };
    Ok(Axis::list(name, values.split(',').map(one).collect()))
}

/// The parameters to search: those asked for, or the usual ones of the machine.
fn space(arguments: &Arguments) -> CommandResult<Space> {
    if !arguments.grid.is_empty() {
        return Ok(Space { axes: arguments.grid.clone() });
    }
    if let MachineKind::Classic(kind) = arguments.machine.machine {
        let lists = ClassicArguments::usual_grid(kind);
        if lists.is_empty() {
            let message =
                format!("{kind} has no answers to judge; tune what has classes or numbers");
            return Err(Failure::usage(message));
        }
        let axes = lists.iter().map(|text| axis(text).map_err(Failure::usage));
        return Ok(Space { axes: axes.collect::<CommandResult<_>>()? });
    }
    let usual = |name: &str, (low, high, count): (f64, f64, usize)| {
        Axis::logarithmic(name, low, high, count).expect("a range")
    };
    let mut axes = Vec::new();
    if matches!(arguments.machine.kernel.as_str(), "rbf" | "laplacian" | "chi2" | "sigmoid") {
        axes.push(usual("gamma", USUAL_GAMMA));
    }
    axes.push(match arguments.machine.machine {
        MachineKind::NuSvc | MachineKind::OneClass | MachineKind::Svdd => {
            usual("nu", (0.01, 0.8, 8))
        }
        _ => usual("c", USUAL_C),
    });
    Ok(Space { axes })
}

fn plan(arguments: &Arguments, data: &Dataset) -> CommandResult<Plan> {
    let kind = arguments.machine.machine;
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
            Judge::Splits { splits: repeated(&folds, arguments.repeats, data, seed)?, metric }
        }
    };
    let Scaling(scaling) = arguments.scale.scale;
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
        StrategyName::Model => Strategy::ModelBased { points },
    };
    let reuse = if arguments.cold { Reuse::Nothing } else { Reuse::Everything };
    Ok(Plan { strategy, judge, scaling, reuse })
}

/// The machine of the command line with the parameters of a point.
fn machine_at(
    arguments: &Arguments,
    data: &Dataset,
    point: &Point,
) -> CommandResult<Box<dyn Machine>> {
    let mut machine = arguments.machine.clone();
    for (name, value) in &point.0 {
        machine.set(name, value)?;
    }
    machine.build(data, Scaling(None), arguments.resources.seed)
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
        Judge::Splits { metric: Metric::Determination | Metric::Auc, .. } => format!("{score:.4}"),
        _ => format!("{:.2} %", 100.0 * score),
    }
}

fn text(arguments: &Arguments, space: &Space, found: &Found, plan: &Plan, spent: Spent) -> String {
    let mut order: Vec<&Trial> = found.trials.iter().filter(|t| t.mean().is_some()).collect();
    let rows = found.best().map_or(0, |best| best.rows);
    order.retain(|trial| trial.rows == rows);
    order.sort_by(|a, b| {
        let mean = |trial: &Trial| trial.mean().unwrap_or(f64::NEG_INFINITY);
        mean(b).total_cmp(&mean(a))
    });
    let names = space.axes.iter().map(|axis| axis.name.clone());
    let mut lines =
        vec![names.chain([name_of(plan).into(), "+/-".into(), "time".into()]).collect()];
    for trial in order.iter().take(SHOWN) {
        let values = trial.point.0.iter().map(|(_, value)| short(value));
        let mean = trial.mean().map_or_else(String::new, |mean| shown(mean, plan));
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
        summary.line("best", &best.point);
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
    if let (Some(path), None) = (&arguments.model, found.stopped) {
        summary.line("model", path.display());
    }
    summary.line("time", duration(spent.seconds));
    text.push('\n');
    text.push_str(&summary.text());
    text
}

fn short(value: &Value) -> String {
    match value {
        Value::Number(number) => {
            let rounded = format!("{number:.6}");
            let plain = rounded.trim_end_matches('0').trim_end_matches('.');
            if *number != 0.0 && number.abs() < 1e-3 {
                format!("{number:.3e}")
            } else {
                plain.to_owned()
            }
        }
        Value::Text(text) => text.clone(),
    }
}

fn document(found: &Found, plan: &Plan, spent: Spent) -> Json {
    let point = |point: &Point| -> Json {
        let value = |value: &Value| match value {
            Value::Number(number) => json!(number),
            Value::Text(text) => json!(text),
        };
        Json::Object(point.0.iter().map(|(name, v)| (name.clone(), value(v))).collect())
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
        "score": found.best().and_then(Trial::mean),
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

/// Draws the best mean for every pair of values of two parameters.
fn draw(path: &Path, space: &Space, found: &Found, metric: &str) -> CommandResult<()> {
    let mut names = space.axes.iter().filter(|axis| axis.values.len() > 1).map(|axis| &axis.name);
    let (Some(y), x) = (names.next(), names.next()) else {
        return Err(Failure::usage("--picture needs a parameter with several values"));
    };
    let x = x.unwrap_or(y);
    let distinct = |name: &str| {
        let values = found.trials.iter().filter_map(|trial| trial.point.get(name));
        let mut distinct: Vec<&Value> = Vec::new();
        for value in values {
            if !distinct.contains(&value) {
                distinct.push(value);
            }
        }
        distinct.sort_by(|a, b| match (a, b) {
            (Value::Number(a), Value::Number(b)) => a.total_cmp(b),
            _ => a.to_string().cmp(&b.to_string()),
        });
        distinct
    };
    let (columns, rows) = (distinct(x), distinct(y));
    let mut cells = vec![vec![None; columns.len()]; rows.len()];
    for trial in &found.trials {
        let place = |values: &[&Value], name: &str| {
            values.iter().position(|value| trial.point.get(name) == Some(*value))
        };
        if let (Some(i), Some(j), Some(mean)) = (place(&rows, y), place(&columns, x), trial.mean())
        {
            let cell: &mut Option<f64> = &mut cells[i][j];
            *cell = Some(cell.map_or(mean, |other| other.max(mean)));
        }
    }
    let labels = |values: &[&Value]| values.iter().map(|value| short(value)).collect::<Vec<_>>();
    heat(
        path,
        &Heat { title: metric, x: (x, &labels(&columns)), y: (y, &labels(&rows)), cells: &cells },
    )
}

fn tell_status(found: &Found) -> Outcome {
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
