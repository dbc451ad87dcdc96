//! `train`: from a data file to a model file.

use std::fs::File;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use widemargin::Error;
use widemargin::Status;
use widemargin::data::Dataset;
use widemargin::data::read::is_standard_stream;
use widemargin::data::write::write_atomically;
use widemargin::machine::specification::Value as Setting;
use widemargin::machine::{CalibrationMethod, MachineKind, Model, Specification};
use widemargin::operation::calibrate::calibrate;

use super::prepare::{TrainingData, check_strings, complete, training_rows};
use super::{distribute, from_disk, inspect, stream, transduce};
use crate::arguments::{
    DistributionArguments, InputArguments, MachineArguments, ResourceArguments,
};
use crate::data_file::check_outputs;
use crate::evaluation::Evaluation;
use crate::failure::{CommandResult, Failure, Outcome, unless_stopped};
use crate::interrupt::Interrupt;
use crate::model_file::{self, ModelFormatName};
use crate::report::DataReport;
use crate::session::Session;
use crate::table::{Summary, bytes, count, duration};
use crate::terminal;
use crate::usage::{Stopwatch, UsedTime, peak_memory_bytes};

/// Train a machine on a data file
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  widemargin train heart.csv                            # C-SVC, Gaussian kernel, heart.wm
  widemargin train heart.csv --c 10 --gamma 0.02 --scale minmax -o heart.wm --test new.csv
  widemargin train images.idx.gz --labels labels.idx.gz --c 10 --gamma 0.02
  widemargin train prices.csv --machine epsilon-svr --kernel poly --degree 2 --epsilon 0.5
  widemargin train a9a.txt --kernel \"0.7*rbf(gamma=0.05) + linear\" --class-weight balanced
  zcat a9a.gz | widemargin train - -o a9a.wm --max-time 60
  widemargin train few.csv --kernels \"linear, rbf\" --transduce rest.csv --transduced rest.txt
  widemargin train news.txt --linear --loss logistic --penalty l1
  widemargin train clicks.txt --linear --memory 1GB -o clicks.wm   # larger than memory
  widemargin train north.csv south.csv --sites 2 --schedule async -o all.wm
  widemargin train north.csv --sites 3 --listen 127.0.0.1:7000  # then: widemargin site --help
  zcat news.gz | widemargin train - --machine ww --online --kernel linear -o news.wm

Ctrl-C once stops at the next block and writes the best model so far; twice quits.")]
pub(crate) struct Arguments {
    /// Data file: LIBSVM text, CSV, TSV, IDX or NPY, also .gz .xz .zst .bz2; '-': standard input
    pub(super) data: PathBuf,

    /// Further data files, one for each of --sites
    #[arg(value_name = "DATA")]
    pub(super) more: Vec<PathBuf>,

    /// Where to write the model; '-': standard output [default: DATA's name with .wm, here]
    #[arg(short = 'o', long, alias = "model", value_name = "FILE")]
    output: Option<PathBuf>,

    /// Format of the model file
    #[arg(long, value_enum, default_value = "native")]
    model_format: ModelFormatName,

    /// Weight of every row, one number a line, multiplied with C
    #[arg(long, value_name = "FILE")]
    pub(super) sample_weights: Option<PathBuf>,

    /// Model of an earlier --online training to go on from
    #[arg(long, value_name = "FILE", requires = "online")]
    pub(super) resume: Option<PathBuf>,

    /// Rows without labels that take part in the training of --kernels, gmm-bayes or semi-svc and
    /// are predicted (transduction); their labels, if any, are ignored
    #[arg(long, value_name = "FILE", requires = "transduced", conflicts_with_all = ["memory", "online"])]
    transduce: Option<PathBuf>,

    /// Where to write the predictions for the rows without labels, one a line: those of DATA that
    /// --unlabelled names, then those of --transduce
    #[arg(long, value_name = "FILE", conflicts_with_all = ["memory", "online"])]
    transduced: Option<PathBuf>,

    /// Where robust-svc writes a line for every row: its outlier score, the distance from the
    /// boundary on the wrong side, and 1 if it counts, 0 if it was given up
    #[arg(long, value_name = "FILE", conflicts_with_all = ["memory", "online"])]
    outliers: Option<PathBuf>,

    /// Data to try the model on
    #[arg(long, value_name = "FILE")]
    test: Option<PathBuf>,

    /// Labels of the --test file (IDX, NPY, or text with one label a line)
    #[arg(long, value_name = "FILE", requires = "test")]
    test_labels: Option<PathBuf>,

    /// Print the summary as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    pub(super) machine: MachineArguments,
    #[command(flatten)]
    pub(super) distribution: DistributionArguments,
    #[command(flatten)]
    pub(super) input: InputArguments,
    #[command(flatten)]
    pub(super) resources: ResourceArguments,
}

/// Trains, saves and reports.
pub(crate) fn run(arguments: &Arguments, interrupt: &Interrupt) -> CommandResult {
    let session = arguments.resources.session(interrupt)?;
    let target = model_file::target(arguments.output.as_deref(), &arguments.data)?;
    check_files(arguments, &target)?;
    model_file::check_writable(&target)?;
    let start = arguments.resume.as_ref().map(Model::load).transpose()?;
    let specification = match &start {
        Some(start) => arguments.machine.resumed_specification(start.kind)?,
        None => arguments.machine.checked_specification()?,
    };
    let specification = with_unlabelled(arguments, specification)?;
    check(arguments, &specification)?;
    distribute::check(arguments, &specification)?;
    let method: Option<CalibrationMethod> = arguments.machine.choice.probability.map(Into::into);
    let Trained { model, shape, spent, unlabelled, distribution } =
        fit(arguments, &specification, method, start, &session)?;
    session.save(|| model_file::save(&model, &target, arguments.model_format))?;
    let mut unpredicted = None;
    if let (Some(rows), Some(path)) = (unlabelled, &arguments.transduced) {
        let written = transduce::write_predictions(&model, &rows, path, &session);
        if unless_stopped(written)?.is_none() {
            let status = session.context.stop_request().unwrap_or(Status::TimeLimit);
            terminal::warn(&format!("{status}: the rows without labels were not predicted"));
            unpredicted = Some(status);
        }
    }
    if let Some(path) = &arguments.outliers {
        session.save(|| write_outliers(&model, path))?;
    }
    let limited = matches!(specification.value("epochs"), Some(Setting::Integer(_)));
    let ended = model.training.as_ref().map(|training| training.outcome.status);
    let as_asked = limited && ended == Some(Status::IterationLimit);
    let outcome = match if as_asked { Outcome::Done } else { print_status(&model, &target) } {
        _ if interrupt.token().is_cancelled() => Outcome::Interrupted,
        // Why there are no probabilities was printed when it happened.
        Outcome::Done if method.is_some() && model.calibration.is_none() => Outcome::NotConverged,
        outcome => outcome,
    };
    if let (Some(report), Some(folder)) = (&distribution, &arguments.distribution.site_pictures) {
        report.draw(folder)?;
    }
    let trained = Trained { model, shape, spent, unlabelled: None, distribution };
    let threads = session.threads();
    let test = match &arguments.test {
        Some(path) => {
            let at_limit = || {
                not_tested(Status::TimeLimit);
                // Whoever closed standard output has the model.
                let _ = print_report(arguments, &trained, &target, threads, None);
            };
            test(arguments, path, trained.model.clone(), &session, at_limit)?
        }
        None => None,
    };
    let untested =
        session.context.stop_request().filter(|_| test.is_none() && arguments.test.is_some());
    let outcome = untested.or(unpredicted).map_or(outcome, Outcome::from);
    print_report(arguments, &trained, &target, threads, test.as_ref())?;
    Ok(outcome)
}

/// Prints how the training and the test went.
fn print_report(
    arguments: &Arguments,
    trained: &Trained,
    target: &Path,
    threads: usize,
    test: Option<&Evaluation>,
) -> CommandResult<()> {
    let Trained { model, shape, spent, distribution, .. } = trained;
    let to_stdout = target.as_os_str() != "-";
    if arguments.json {
        let mut document = document(shape, model, *spent, threads, target);
        if let Some(report) = &shape.report {
            report.add_to(&mut document);
        }
        if let (Some(test), Value::Object(fields)) = (test, &mut document) {
            fields.insert("test".to_owned(), test.json());
        }
        if let (Some(distribution), Value::Object(fields)) = (distribution, &mut document) {
            fields.insert("distribution".to_owned(), distribution.json());
        }
        return say(to_stdout, &format!("{document:#}\n"));
    }
    if arguments.resources.quiet {
        return Ok(());
    }
    let mut lines = summary(shape, model);
    if let Some(distribution) = distribution {
        distribution.lines(&mut lines, arguments.distribution.schedule);
    }
    let mut text = with_costs(lines, *spent, target, threads);
    if let (Some(test), Some(path)) = (test, &arguments.test) {
        text.push_str(&format!("\ntest on {}\n{}", path.display(), test.text()));
    }
    say(to_stdout, &text)
}

/// Fails where an output is an input.
fn check_files(arguments: &Arguments, target: &Path) -> CommandResult<()> {
    // Only --memory reads folders. A model that is resumed may be replaced by what it becomes.
    let reads_data = arguments.machine.choice.memory.is_some() || !arguments.data.is_dir();
    let mut inputs = vec![
        arguments.transduce.as_deref(),
        reads_data.then_some(arguments.data.as_path()),
        arguments.input.labels.as_deref(),
        arguments.sample_weights.as_deref(),
        arguments.test.as_deref(),
        arguments.test_labels.as_deref(),
    ];
    let files = arguments.machine.view_files();
    inputs.extend(arguments.more.iter().chain(&files).map(|path| Some(path.as_path())));
    let outputs = [
        ("-o", Some(target)),
        ("--transduced", arguments.transduced.as_deref()),
        ("--outliers", arguments.outliers.as_deref()),
    ];
    check_outputs(&outputs, &inputs)
}

/// With rows of --transduce the label of rows without one is `?` unless --unlabelled names it.
fn with_unlabelled(
    arguments: &Arguments,
    mut specification: Specification,
) -> CommandResult<Specification> {
    let mark = transduce::mark(&specification);
    if arguments.transduce.is_some() && mark.is_none() {
        specification.set("unlabelled", transduce::NO_LABEL)?;
    } else if arguments.transduced.is_some() && mark.is_none() {
        return Err(Failure::usage(
            "--transduced needs rows without labels: --unlabelled LABEL or --transduce FILE",
        ));
    }
    let has_mark = transduce::mark(&specification).is_some();
    if has_mark && arguments.machine.choice.probability.is_some() {
        return Err(Failure::usage("--probability needs labels of all rows"));
    }
    Ok(specification)
}

/// A model with the report of its training.
struct Trained {
    model: Model,
    shape: Shape,
    spent: UsedTime,
    unlabelled: Option<Dataset>,
    distribution: Option<distribute::DistributedReport>,
}

/// Trains in the way that the options ask for.
fn fit(
    arguments: &Arguments,
    specification: &Specification,
    method: Option<CalibrationMethod>,
    start: Option<Model>,
    session: &Session<'_>,
) -> CommandResult<Trained> {
    let (mut unlabelled, mut distribution) = (None, None);
    let (model, shape, spent) = match (arguments.machine.choice.memory, start) {
        _ if arguments.distribution.is_given() => {
            let (trained, shape, spent, report) =
                distribute::train(arguments, specification, method, session)?;
            distribution = Some(report);
            (trained, shape, spent)
        }
        (Some(memory), _) => from_disk::train(arguments, specification, memory, session)?,
        (None, Some(start)) => stream::resume(arguments, specification, start, session)?,
        (None, None) if stream::is_streamed(arguments, specification) => {
            stream::train(arguments, specification, session)?
        }
        (None, None) => {
            let (trained, shape, spent, rows) = train(arguments, specification, method, session)?;
            unlabelled = rows;
            (trained, shape, spent)
        }
    };
    Ok(Trained { model, shape, spent, unlabelled, distribution })
}

/// Reads all rows, then trains; gives the rows without labels as well.
fn train(
    arguments: &Arguments,
    specification: &Specification,
    method: Option<CalibrationMethod>,
    session: &Session<'_>,
) -> CommandResult<(Model, Shape, UsedTime, Option<Dataset>)> {
    let weights = arguments.sample_weights.as_deref();
    let mark = transduce::mark(specification);
    let TrainingData { data, preparation, report } = session.read("reading", || {
        let input = &arguments.input;
        let files = arguments.machine.view_files();
        let mut rows = training_rows(input, &arguments.data, weights, &files, specification)?;
        if let (Some(path), Some(mark)) = (&arguments.transduce, &mark) {
            rows.data = transduce::add_rows(rows.data, path, input, &rows.preparation, mark)?;
        }
        Ok(rows)
    })?;
    report.warn();
    let machine = specification.build(&data, arguments.resources.seed)?;
    let watch = Stopwatch::start();
    let mut model = session.run("training", |context| {
        let model = machine.fit(&data, context)?;
        match method {
            Some(method) => calibrate(machine.as_ref(), &data, model, method, context),
            None => Ok(model),
        }
    })?;
    let spent = watch.stop();
    complete(&mut model, preparation, specification);
    let unlabelled = mark.map(|mark| transduce::unlabelled(&data, &mark)).transpose()?;
    Ok((model, Shape { report: Some(report), ..Shape::of(&data) }, spent, unlabelled))
}

/// Writes the outlier score of every row and whether it counts.
fn write_outliers(model: &Model, path: &Path) -> widemargin::Result<()> {
    let reals = |name| model.training.as_ref().and_then(|training| training.reals(name));
    let (scores, kept) = (reals("outlier-scores"), reals("kept"));
    let rows = scores.unwrap_or_default().iter().zip(kept.unwrap_or_default());
    write_atomically(path, |out| {
        rows.clone().try_for_each(|(score, kept)| writeln!(out, "{score} {kept}"))
    })
}

/// The report about the rows a model was trained on.
pub(super) struct Shape {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) is_sparse: bool,
    /// The report about the file, when it was read whole.
    pub(super) report: Option<DataReport>,
}

impl Shape {
    pub(super) fn of(data: &Dataset) -> Self {
        let is_sparse = data.features().is_sparse();
        Self { rows: data.rows(), columns: data.columns(), is_sparse, report: None }
    }
}

/// Fails now rather than after the training.
fn check(arguments: &Arguments, specification: &Specification) -> CommandResult<()> {
    if specification.scaling()?.is_some() && arguments.model_format != ModelFormatName::Native {
        return Err(Failure::usage(
            "LIBSVM's and LIBLINEAR's model files have no place for --scale; scale the data with 'scale' first",
        ));
    }
    check_strings(&arguments.input, specification)?;
    let kind = specification.kind();
    if arguments.outliers.is_some() && kind != MachineKind::RobustSvc {
        return Err(Failure::usage(format!(
            "--outliers is for robust-svc (--robust LOSS), not for {kind}"
        )));
    }
    if arguments.machine.choice.probability.is_some() && !kind.has_probabilities() {
        let instead = if kind == MachineKind::Svdd { "; use --machine one-class" } else { "" };
        return Err(Failure::usage(format!("{kind} has no probabilities{instead}")));
    }
    let elsewhere = [
        ("--test", arguments.test.is_some()),
        ("--transduce", arguments.transduce.is_some()),
        ("--text", arguments.input.text.is_some()),
        ("--resume", arguments.resume.is_some()),
        ("--memory", arguments.machine.choice.memory.is_some()),
        ("--online", arguments.machine.choice.online),
        ("--sites", arguments.distribution.is_given()),
    ];
    if let Some((option, _)) = elsewhere.iter().find(|(_, is_given)| *is_given)
        && !arguments.machine.view_files().is_empty()
    {
        return Err(Failure::usage(format!(
            "{option} cannot be used with --view NAME=FILE:KERNEL"
        )));
    }
    for path in arguments.test.iter().chain(&arguments.test_labels).chain(&arguments.transduce) {
        // Opening a pipe would wait for its writer.
        let is_file = |path: &Path| Ok(path.metadata()?.is_file());
        if !is_standard_stream(path) {
            is_file(path)
                .and_then(|is_file| if is_file { File::open(path).map(|_| ()) } else { Ok(()) })
                .map_err(|source| Error::io(path, source))?;
        }
    }
    Ok(())
}

/// Standard output unless the model went there.
fn say(to_stdout: bool, text: &str) -> CommandResult<()> {
    if to_stdout {
        terminal::print(text)
    } else {
        terminal::note(text.trim_end());
        Ok(())
    }
}

/// Warns when the promised tolerance was not reached.
pub(super) fn print_status(model: &Model, target: &Path) -> Outcome {
    let Some(training) = &model.training else { return Outcome::Done };
    let outcome = &training.outcome;
    if outcome.status.is_solved() {
        return Outcome::Done;
    }
    let (status, violation, target) = (outcome.status, outcome.violation, target.display());
    let share = outcome.gap() / outcome.primal.abs();
    let gap = match model.linear() {
        Some(_) if share.is_finite() => {
            format!(" and the duality gap is {:.2} % of the objective", 100.0 * share)
        }
        _ => String::new(),
    };
    terminal::warn(&format!(
        "{status}: the optimality conditions hold only to {violation:.1e}{gap}; \
         the best model so far is in {target}"
    ));
    status.into()
}

fn not_tested(status: Status) {
    terminal::warn(&format!("{status}: the model was not tested"));
}

/// What the model makes of the test file; nothing where a limit or Ctrl-C ended it. `at_limit` is called where
/// the program ends because reading takes too long.
fn test(
    arguments: &Arguments,
    path: &Path,
    mut model: Model,
    session: &Session<'_>,
    at_limit: impl FnOnce() + Send,
) -> CommandResult<Option<Evaluation>> {
    if let Some(status) = session.context.stop_request() {
        not_tested(status);
        return Ok(None);
    }
    let input = arguments.input.with_labels(arguments.test_labels.as_deref());
    let read = || model_file::read_for(&mut model, &input, path);
    let data = session.read_or("reading", read, at_limit)?;
    let watch = Stopwatch::start();
    let predictions = unless_stopped(
        session
            .ask("testing", |context| model.predictor(context)?.predict_in_time(data.features())),
    )?;
    let Some(predictions) = predictions else {
        not_tested(session.context.stop_request().unwrap_or(Status::TimeLimit));
        return Ok(None);
    };
    Evaluation::new(&model, &data, &predictions, watch.stop()).map(Some)
}

fn summary(data: &Shape, model: &Model) -> Summary {
    let mut lines = Summary::default();
    let storage = if data.is_sparse { "sparse" } else { "dense" };
    let support = model.support_count();
    let share = 100.0 * support as f64 / data.rows.max(1) as f64;
    lines
        .line("rows", count(data.rows as u64))
        .line("features", format!("{} ({storage})", count(data.columns as u64)));
    if let Some(words) = data.report.as_ref().and_then(DataReport::words) {
        lines.line("read as words", words);
    }
    if let Some(classes) = &model.classes {
        lines.line("classes", classes.names.len());
    }
    match model.kernel() {
        Some(kernel) => lines.line("machine", format!("{}, kernel {kernel}", model.kind)),
        None => lines.line("machine", model.kind),
    };
    let body = model.describe();
    if let (Some(training), false) = (&model.training, body.has_dual) {
        lines.line("status", training.outcome.status);
        if training.outcome.iterations > 0 {
            lines
                .line("objective", format!("{:.6}", training.outcome.primal))
                .line("iterations", count(training.outcome.iterations));
        }
    } else if let Some(training) = &model.training {
        let outcome = &training.outcome;
        let (primal, dual) = (outcome.primal, outcome.dual);
        lines
            .line("status", outcome.status)
            .line("objective", format!("primal {primal:.6}, dual {dual:.6}"))
            .line("gap", format!("{:.3e}, KKT violation {:.3e}", outcome.gap(), outcome.violation))
            .line(
                "iterations",
                match body.nonzeros {
                    Some(_) => {
                        format!("{} in {} passes", count(outcome.iterations), count(outcome.blocks))
                    }
                    // Of several sites they are not counted.
                    None if outcome.kernel_rows == 0 => {
                        format!("{} in {} blocks", count(outcome.iterations), count(outcome.blocks))
                    }
                    None => format!(
                        "{} in {} blocks, {} kernel rows",
                        count(outcome.iterations),
                        count(outcome.blocks),
                        count(outcome.kernel_rows)
                    ),
                },
            );
    }
    match body.nonzeros {
        Some(used) => lines.line(body.vectors, inspect::weights_text(model, used)),
        None if body.has_dual => {
            lines.line(body.vectors, format!("{} ({share:.1} %)", count(support as u64)))
        }
        None => lines.line(body.vectors, count(support as u64)),
    };
    lines
}

fn with_costs(mut lines: Summary, spent: UsedTime, target: &Path, threads: usize) -> String {
    let mut time = format!("{} on {threads} threads", duration(spent.seconds));
    if let Some(cpu) = spent.cpu_seconds {
        time.push_str(&format!(", processor {}", duration(cpu)));
    }
    if let Some(peak) = peak_memory_bytes() {
        time.push_str(&format!(", peak memory {}", bytes(peak)));
    }
    lines.line("time", time).line("model", target.display());
    lines.text()
}

fn document(data: &Shape, model: &Model, spent: UsedTime, threads: usize, target: &Path) -> Value {
    let outcome = model.training.as_ref().map(|training| training.outcome);
    json!({
        "rows": data.rows,
        "features": data.columns,
        "classes": model.classes.as_ref().map(|classes| &classes.names),
        "machine": model.kind,
        "kernel": model.describe().kernel.map(|kernel| kernel.to_string()),
        "precision": model.precision(),
        "parameters": model.training.as_ref().map(|t| {
            t.parameters.iter().cloned().collect::<std::collections::BTreeMap<_, _>>()
        }),
        "status": outcome.map(|o| o.status),
        "primal": outcome.map(|o| o.primal),
        "dual": outcome.map(|o| o.dual),
        "gap": outcome.map(|o| o.gap()),
        "violation": outcome.map(|o| o.violation),
        "iterations": outcome.map(|o| o.iterations),
        "blocks": outcome.map(|o| o.blocks),
        "kernel_rows": outcome.map(|o| o.kernel_rows),
        "support_vectors": model.support_count(),
        "threads": threads,
        "fit_seconds": spent.seconds,
        "fit_cpu_seconds": spent.cpu_seconds,
        "peak_rss_bytes": peak_memory_bytes(),
        "model": target.display().to_string(),
    })
}
