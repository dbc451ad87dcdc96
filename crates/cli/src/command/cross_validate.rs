//! `cross-validate`: how good a machine is on rows it was not trained on.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use widemargin::Status;
use widemargin::data::Dataset;
use widemargin::data::write::write_atomically;
use widemargin::machine::{Machine, MachineKind};
use widemargin::operation::cross_validate::{CrossValidation, FoldResult, Quality, cross_validate};
use widemargin::operation::folds::Folds;
use widemargin::operation::learning_curve::learning_curve;
use widemargin::operation::tune::{Metric, repeated};

use super::learning_curve;
use super::predict::write_labels;
use super::prepare::{TrainingData, check_strings, training_rows};
use crate::arguments::{InputArguments, MachineArguments, ResourceArguments};
use crate::data_file::{check_outputs, check_picture};
use crate::evaluation::{quality_json, quality_text};
use crate::failure::{CommandResult, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::session::Session;
use crate::table::{duration, grid};
use crate::terminal;
use crate::usage::{Stopwatch, UsedTime};

/// Estimate how good a machine is by k-fold cross-validation
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  widemargin cross-validate heart.csv --c 10 --scale standard
  widemargin cross-validate prices.csv --machine epsilon-svr --folds 10 --json
  widemargin cross-validate queries.txt --grouped            # rows of a qid stay together
  widemargin cross-validate heart.csv --sizes 0.1,0.2,0.5,1 --plot curve.svg

Classes are spread evenly over the folds; --seed decides which rows go where. The scaling is learnt
in every fold without the rows it is tried on.")]
pub(crate) struct Arguments {
    /// Data file; '-': standard input
    data: PathBuf,

    /// Number of parts; each is predicted by a machine trained on the others
    #[arg(long, value_name = "K", default_value_t = 5)]
    folds: usize,

    /// Predict every row by a machine trained on all others
    #[arg(long, conflicts_with_all = ["folds", "grouped"])]
    leave_one_out: bool,

    /// Keep rows with the same group number (qid) in one part
    #[arg(long)]
    grouped: bool,

    /// Weight of every row, one number a line, multiplied with C
    #[arg(long, value_name = "FILE")]
    sample_weights: Option<PathBuf>,

    /// Write the prediction for every row to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Learning curve: shares of the training rows to learn from, such as 0.1,0.3,1
    #[arg(long, value_name = "SHARES", value_delimiter = ',', conflicts_with = "output")]
    sizes: Vec<f64>,

    /// Draw the learning curve (SVG)
    #[arg(long, value_name = "FILE.svg", requires = "sizes")]
    plot: Option<PathBuf>,

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

/// Cross-validates.
pub(crate) fn run(arguments: &Arguments, interrupt: &Interrupt) -> CommandResult {
    if arguments.machine.choice.probability.is_some() {
        return Err(Failure::usage("--probability goes with train, not with cross-validate"));
    }
    if arguments.machine.choice.memory.is_some() {
        return Err(Failure::usage("--memory goes with train, not with cross-validate"));
    }
    let specification = arguments.machine.checked_specification()?;
    check_strings(&arguments.input, &specification)?;
    check_picture(arguments.plot.as_deref())?;
    check_outputs(
        &[("-o", arguments.output.as_deref()), ("--plot", arguments.plot.as_deref())],
        &[
            Some(&arguments.data),
            arguments.input.labels.as_deref(),
            arguments.sample_weights.as_deref(),
        ],
    )?;
    let session = arguments.resources.session(interrupt)?;
    let weights = arguments.sample_weights.as_deref();
    let files = arguments.machine.view_files();
    let TrainingData { data, report, .. } = session.read("reading", || {
        training_rows(&arguments.input, &arguments.data, weights, &files, &specification)
    })?;
    report.warn();
    let machine = specification.build(&data, arguments.resources.seed)?;
    let folds = match (arguments.leave_one_out, arguments.grouped) {
        (true, _) => Folds::LeaveOneOut,
        (_, true) => Folds::Grouped(arguments.folds),
        _ => Folds::usual(specification.kind(), arguments.folds),
    };
    if !arguments.sizes.is_empty() {
        return curve(arguments, &session, specification.kind(), machine, &data, &folds);
    }
    let watch = Stopwatch::start();
    let result = session.run("cross-validating", |context| {
        cross_validate(machine.as_ref(), &data, &folds, context)
    })?;
    let spent = watch.stop();
    if let Some(path) = &arguments.output {
        session.save(|| write_atomically(path, |out| write_labels(&result.predictions, out)))?;
    }
    if arguments.json {
        let mut document = document(&result, spent);
        report.add_to(&mut document);
        terminal::print_json(&document)?;
    } else if !arguments.resources.quiet {
        terminal::print(&text(&result, spent))?;
    }
    Ok(print_status(&result))
}

/// Reports how the quality grows with the rows.
fn curve(
    arguments: &Arguments,
    session: &Session<'_>,
    kind: MachineKind,
    machine: Box<dyn Machine>,
    data: &Dataset,
    folds: &Folds,
) -> CommandResult {
    let metric = Metric::usual(kind);
    let splits = repeated(folds, 1, data, machine.unlabelled(), arguments.resources.seed)?;
    let wanted = arguments.sizes.len();
    let points = session.run("cross-validating", |context| {
        learning_curve(machine, data, &splits, &arguments.sizes, metric, context)
    })?;
    let whole = points.iter().filter(|point| point.held_out.len() == splits.len()).count();
    let status = (whole < wanted).then_some(Status::TimeLimit);
    if let Some(path) = &arguments.plot {
        session.save(|| learning_curve::draw(path, &points, metric))?;
    }
    if arguments.json {
        terminal::print_json(&learning_curve::document(&points, metric, status))?;
    } else if !arguments.resources.quiet {
        terminal::print(&learning_curve::text(&points, metric))?;
    }
    match status {
        None => Ok(Outcome::Done),
        Some(status) => {
            terminal::warn(&format!("only {whole} of {wanted} sizes have all their folds"));
            Ok(status.into())
        }
    }
}

/// One number that says how good a fold was.
fn score(quality: &Option<Quality>) -> String {
    match quality {
        None => String::new(),
        Some(Quality::Classes(confusion)) => format!("{:.2} %", 100.0 * confusion.accuracy()),
        Some(Quality::Numbers(errors)) => format!("{:.6}", errors.mean_squared_error),
        Some(Quality::Orders(orders)) => format!("{:.4}", orders.kendall_tau),
    }
}

fn text(result: &CrossValidation, spent: UsedTime) -> String {
    let heading = match &result.quality {
        None => "",
        Some(Quality::Classes(_)) => "accuracy",
        Some(Quality::Numbers(_)) => "squared error",
        Some(Quality::Orders(_)) => "Kendall's tau-b",
    };
    let mut rows =
        vec![["fold", "rows", "support vectors", "time", heading].map(str::to_owned).to_vec()];
    rows.extend(result.folds.iter().map(|fold| {
        vec![
            (fold.fold + 1).to_string(),
            fold.rows.to_string(),
            fold.support.to_string(),
            duration(fold.seconds),
            score(&fold.quality),
        ]
    }));
    let mut text = grid(&rows);
    text.push_str(&format!("\ntime  {}\n", duration(spent.seconds)));
    if let Some(quality) = &result.quality {
        text.push_str(&quality_text(quality));
    }
    text
}

fn document(result: &CrossValidation, spent: UsedTime) -> Value {
    let fold = |fold: &FoldResult| {
        json!({
            "fold": fold.fold + 1,
            "rows": fold.rows,
            "support_vectors": fold.support,
            "status": fold.status,
            "seconds": fold.seconds,
            "quality": fold.quality.as_ref().map(quality_json),
        })
    };
    let mut document = json!({
        "machine": result.kind,
        "rows": result.rows.len(),
        "folds": result.folds.iter().map(fold).collect::<Vec<_>>(),
        "status": result.status,
        "seconds": spent.seconds,
        "cpu_seconds": spent.cpu_seconds,
    });
    let more = result.quality.as_ref().map_or_else(|| json!({}), quality_json);
    if let (Value::Object(fields), Value::Object(more)) = (&mut document, more) {
        fields.extend(more);
    }
    document
}

fn print_status(result: &CrossValidation) -> Outcome {
    let (done, planned) = (result.folds.len(), result.plan.count());
    match result.status {
        Status::Solved => return Outcome::Done,
        status if done < planned => {
            terminal::warn(&format!("{status}: only {done} of {planned} folds were finished"));
        }
        status => terminal::warn(&format!("{status} in at least one fold")),
    }
    result.status.into()
}
