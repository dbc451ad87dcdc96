//! `compress`: a model with fewer vectors that predicts nearly the same.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use serde_json::{Value, json};
use widemargin::data::Dataset;
use widemargin::machine::Model;
use widemargin::operation::calibrate::recalibrate;
use widemargin::operation::compress::{
    Compressed, CompressionMethod, CompressionTarget, ModelCompression, accuracy_by_size,
    smallest_within,
};
use widemargin::operation::cross_validate::Quality;

use crate::arguments::{InputArguments, ResourceArguments};
use crate::data_file::{check_outputs, check_picture};
use crate::evaluation::Evaluation;
use crate::failure::{CommandResult, Failure, Outcome, unless_stopped};
use crate::interrupt::Interrupt;
use crate::model_file::{self, Content};
use crate::picture;
use crate::session::Session;
use crate::table::{Summary, count, duration, grid};
use crate::terminal;
use crate::usage::{Stopwatch, UsedTime};

/// Make a model smaller and faster
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("target").required(true))]
#[command(after_help = "\
Examples:
  widemargin compress heart.wm --ratio 0.1 -o small.wm
  widemargin compress heart.wm --max-loss 0.2% --data held-out.csv -o small.wm
  widemargin compress usps.wm --max-difference 1.0 --refine 0 -o small.wm    # merging alone
  widemargin compress other.wm --ratio 0.5 --method prune -o small.wm
  widemargin compress linear.wm --lossless -o small.wm

Vectors of Gaussian, linear and polynomial kernels are merged in pairs, then moved together to where
they change the model least; those of any other kernel can be selected (prune, l1, kernel-pca). The
result is an ordinary model in the format of the given one.")]
pub(crate) struct Arguments {
    /// The model, native or LIBSVM's
    model: PathBuf,

    /// Where to write the smaller model
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// As small as possible while accuracy (of a regressor: R²) on --data falls by at most this,
    /// such as 0.2% or 0.002
    #[arg(long, value_name = "LOSS", group = "target", requires = "data", value_parser = share)]
    max_loss: Option<f64>,

    /// This many vectors
    #[arg(long, value_name = "COUNT", group = "target")]
    vectors: Option<usize>,

    /// This share of the vectors, such as 0.1 or 10%
    #[arg(long, value_name = "SHARE", group = "target", value_parser = share)]
    ratio: Option<f64>,

    /// Merge while no decision value of a support vector moves by more than this; the refinement
    /// may then move it a little further
    #[arg(long, alias = "mmd", value_name = "DIFFERENCE", group = "target")]
    max_difference: Option<f64>,

    /// As few vectors as give exactly the same predictions; but for linear and quadratic kernels the
    /// time grows with the cube of their number
    #[arg(long, group = "target")]
    lossless: bool,

    /// How fewer vectors are found: merge, greedy, fixed-point, gradient, prune, kernel-pca or l1
    #[arg(long, value_name = "METHOD", default_value_t = CompressionMethod::Merge)]
    method: CompressionMethod,

    /// Labelled rows that did not train the model, to measure what is lost
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,

    /// Most steps of moving all vectors together; 0: none [default: 30, fewer for large models]
    #[arg(long, value_name = "STEPS")]
    refine: Option<usize>,

    /// Give every decision function vectors of its own, and count them all
    #[arg(long)]
    separate: bool,

    /// Draw the accuracy on --data at sizes down to a few vectors
    #[arg(long, value_name = "FILE.svg", requires = "data")]
    plot: Option<PathBuf>,

    /// Print how it went as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: InputArguments,
    #[command(flatten)]
    resources: ResourceArguments,
}

/// A share, as a number or a percentage.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number, 0.01),
        None => (text, 1.0),
    };
    let number: f64 = number.trim().parse().map_err(|_| "expected a number or a percentage")?;
    Ok(unit * number)
}

/// Compresses a model.
pub(crate) fn run(arguments: &Arguments, interrupt: &Interrupt) -> CommandResult {
    let session = arguments.resources.session(interrupt)?;
    check_outputs(
        &[("-o", Some(&arguments.output)), ("--plot", arguments.plot.as_deref())],
        &[Some(&arguments.model), arguments.data.as_deref(), arguments.input.labels.as_deref()],
    )?;
    model_file::check_writable(&arguments.output)?;
    check_picture(arguments.plot.as_deref())?;
    let (format, mut model) = match model_file::open(&arguments.model, &arguments.input)? {
        Content::Model(format, model) => (format, *model),
        Content::Data(_) => {
            let name = arguments.model.display();
            return Err(Failure::usage(format!("{name} holds data; a model was expected")));
        }
    };
    let held_out = match &arguments.data {
        Some(path) => Some(
            session.read("reading", || model_file::read_for(&mut model, &arguments.input, path))?,
        ),
        None => None,
    };
    let how = compression(arguments);
    let watch = Stopwatch::start();
    let compressed =
        session.run("compressing", |context| match (arguments.max_loss, &held_out) {
            (Some(loss), Some(data)) => smallest_within(&model, data, loss, &how, context),
            _ => how.apply(&model, context).map(Some),
        })?;
    let spent = watch.stop();
    let Some(mut compressed) = compressed else {
        return Err(Failure::Message(
            "no smaller model tried keeps the accuracy asked for; allow a larger --max-loss".into(),
        ));
    };
    let stopped = session.context.stop_request();
    let held_out = held_out.filter(|_| stopped.is_none());
    if let Some(data) = &held_out {
        compressed.model =
            session.run("calibrating", |context| recalibrate(data, compressed.model, context))?;
    }
    session.save(|| model_file::save(&compressed.model, &arguments.output, format))?;
    let measured = match &held_out {
        Some(data) => unless_stopped(measure(&session, &model, &compressed.model, data))?,
        None => None,
    };
    let report = Report { model: &model, compressed: &compressed, spent, measured };
    if arguments.json {
        terminal::print_json(&report.json(arguments))?;
    } else if !arguments.resources.quiet {
        terminal::print(&report.text(arguments))?;
    }
    if let (Some(path), Some(data), Some(_)) = (&arguments.plot, &held_out, &report.measured) {
        let points = unless_stopped(
            session.run("measuring sizes", |context| accuracy_by_size(&model, data, &how, context)),
        )?;
        let points = points.iter().flatten().map(|p| (p.vectors, p.score)).collect::<Vec<_>>();
        picture::sizes(path, score_name(&model), &points, compressed.model.support_count())?;
    }
    let Some(status) = session.context.stop_request() else { return Ok(Outcome::Done) };
    let missing = match (stopped, &report.measured) {
        (Some(_), _) if arguments.data.is_some() => {
            "the model is the best so far; it may be larger than asked for and was not measured on --data"
        }
        (Some(_), _) => "the model is the best so far; it may be larger than asked for",
        (None, None) if arguments.data.is_some() => "the model was not measured on --data",
        _ if arguments.plot.is_some() => "the picture does not show all sizes",
        _ => return Ok(Outcome::Done),
    };
    terminal::warn(&format!("{status}: {missing}"));
    Ok(status.into())
}

/// What the arguments ask for.
fn compression(arguments: &Arguments) -> ModelCompression {
    let target = match (arguments.vectors, arguments.ratio, arguments.max_difference) {
        _ if arguments.lossless => CompressionTarget::Lossless,
        (Some(count), _, _) => CompressionTarget::Vectors(count),
        (_, Some(ratio), _) => CompressionTarget::Ratio(ratio),
        (_, _, Some(difference)) => CompressionTarget::Difference(difference),
        // A loss is sought among numbers of vectors.
        _ => CompressionTarget::Vectors(1),
    };
    let usual = ModelCompression::new(target);
    ModelCompression {
        method: arguments.method,
        shared: usual.shared && !arguments.separate,
        refinement: arguments.refine,
        ..usual
    }
}

/// Times that a prediction is repeated, the fastest being reported.
const REPEATS: usize = 3;

/// The predictions of both models for held-out rows, and what they took.
fn measure(
    session: &Session<'_>,
    before: &Model,
    after: &Model,
    data: &Dataset,
) -> CommandResult<[Evaluation; 2]> {
    let ask = |model: &Model| -> CommandResult<Evaluation> {
        let mut best: Option<Evaluation> = None;
        for _ in 0..REPEATS {
            let watch = Stopwatch::start();
            let predictions = session.ask("predicting", |context| {
                model.predictor(context)?.predict_in_time(data.features())
            })?;
            let evaluation = Evaluation::new(model, data, &predictions, watch.stop())?;
            if best.as_ref().is_none_or(|b| evaluation.spent.seconds < b.spent.seconds) {
                best = Some(evaluation);
            }
        }
        best.ok_or_else(|| Failure::Message("nothing was predicted".into()))
    };
    Ok([ask(before)?, ask(after)?])
}

/// Size, speed and accuracy before and after.
struct Report<'a> {
    model: &'a Model,
    compressed: &'a Compressed,
    spent: UsedTime,
    measured: Option<[Evaluation; 2]>,
}

/// What makes a model good.
fn score_name(model: &Model) -> &'static str {
    if model.kind.is_regressor() { "determination (R²)" } else { "accuracy" }
}

/// Name and value of what makes a model good.
fn score(quality: &Quality) -> (&'static str, f64) {
    match quality {
        Quality::Classes(confusion) => ("accuracy", confusion.accuracy()),
        Quality::Numbers(errors) => ("determination", errors.determination),
        Quality::Orders(orders) => ("kendall_tau", orders.kendall_tau),
    }
}

/// A loss for people.
fn measured(lost: f64) -> String {
    if lost.is_nan() { "not measured".into() } else { format!("{lost:.4}") }
}

impl Report<'_> {
    /// Vectors counted over all functions, before and after.
    fn sizes(&self) -> [usize; 2] {
        let functions = &self.compressed.functions;
        [functions.iter().map(|f| f.before).sum(), functions.iter().map(|f| f.after).sum()]
    }

    /// The largest loss of a function; not a number where one was not measured.
    fn largest(&self, of: impl Fn(&widemargin::operation::compress::Reduction) -> f64) -> f64 {
        let larger = |most: f64, lost: f64| if lost <= most { most } else { lost };
        self.compressed
            .functions
            .iter()
            .map(of)
            .fold(0.0, |most: f64, lost| if most.is_nan() { most } else { larger(most, lost) })
    }

    fn text(&self, arguments: &Arguments) -> String {
        let [before, after] = self.sizes();
        let distinct = [self.model.support_count(), self.compressed.model.support_count()];
        let mut rows = vec![
            ["", "before", "after"].map(str::to_owned).to_vec(),
            vec!["vectors of all functions".into(), count(before as u64), count(after as u64)],
            vec!["different vectors".into(), count(distinct[0] as u64), count(distinct[1] as u64)],
        ];
        if let Some([old, new]) = &self.measured {
            if let (Some(a), Some(b)) = (&old.quality, &new.quality) {
                let ((name, a), (_, b)) = (score(a), score(b));
                rows.push(vec![
                    format!("{name} %"),
                    format!("{:.4}", 100.0 * a),
                    format!("{:.4}", 100.0 * b),
                ]);
            }
            let time = |e: &Evaluation| duration(e.spent.seconds);
            rows.push(vec!["time to predict".into(), time(old), time(new)]);
            let factor = format!("{:.1} times", old.spent.seconds / new.spent.seconds);
            rows.push(vec!["faster".into(), String::new(), factor]);
        }
        let mut lines = Summary::default();
        lines
            .line("largest relative residual", measured(self.largest(|f| f.relative_residual)))
            .line("largest difference", measured(self.largest(|f| f.largest_difference)))
            .line("time", duration(self.spent.seconds));
        if self.model.calibration.is_some() {
            let what = match self.measured {
                Some(_) => "calibrated again on the given data",
                None => "kept; --data calibrates them again",
            };
            lines.line("probabilities", what);
        }
        lines.line("model", arguments.output.display());
        format!("{}\n{}", grid(&rows), lines.text())
    }

    fn json(&self, arguments: &Arguments) -> Value {
        let [before, after] = self.sizes();
        let mut report = json!({
            "model": arguments.output,
            "vectors_before": before,
            "vectors_after": after,
            "distinct_before": self.model.support_count(),
            "distinct_after": self.compressed.model.support_count(),
            "largest_relative_residual": self.largest(|f| f.relative_residual),
            "largest_difference": self.largest(|f| f.largest_difference),
            "seconds": self.spent.seconds,
            "cpu_seconds": self.spent.cpu_seconds,
        });
        if let (Some([old, new]), Value::Object(fields)) = (&self.measured, &mut report) {
            fields.insert("before".into(), old.json());
            fields.insert("after".into(), new.json());
        }
        report
    }
}
