//! `compress`: a model with fewer vectors that answers nearly the same.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use serde_json::{Value, json};
use widemargin::data::Dataset;
use widemargin::machine::Model;
use widemargin::operation::compress::{Compressed, Compression, Target, smallest_within};
use widemargin::operation::cross_validate::Quality;

use crate::arguments::{InputArguments, ResourceArguments};
use crate::evaluation::Evaluation;
use crate::failure::{CommandResult, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::model_file::{self, Content};
use crate::session::Session;
use crate::table::{Summary, count, duration, grid};
use crate::terminal;
use crate::usage::{Spent, Stopwatch};

/// Make a model smaller and faster
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("target").required(true))]
#[command(after_help = "\
Examples:
  widemargin compress heart.wm --ratio 0.1 -o small.wm
  widemargin compress heart.wm --max-loss 0.2% --data held-out.csv -o small.wm
  widemargin compress usps.wm --mmd 1.0 --refine 0 -o small.wm    # merging alone

Vectors of Gaussian, linear and polynomial kernels are merged in pairs, then moved together to where
they change the model least. The result is an ordinary model in the format of the given one.")]
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

    /// This many vectors, counted over all decision functions
    #[arg(long, value_name = "COUNT", group = "target")]
    vectors: Option<usize>,

    /// This share of the vectors, such as 0.1 or 10%
    #[arg(long, value_name = "SHARE", group = "target", value_parser = share)]
    ratio: Option<f64>,

    /// Merge while no decision value of a support vector moves by more than this; the refinement
    /// may then move it a little further
    #[arg(long, value_name = "DIFFERENCE", group = "target")]
    mmd: Option<f64>,

    /// Labelled rows that did not train the model, to measure what is lost
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,

    /// Most steps of moving all vectors together; 0: none
    #[arg(long, value_name = "STEPS", default_value_t = 300)]
    refine: usize,

    /// Print how it went as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: InputArguments,
    #[command(flatten)]
    resources: ResourceArguments,
}

/// A share, as a number or a percentage.
fn share(text: &str) -> Result<f64, String> {
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
    let watch = Stopwatch::start();
    let compressed =
        session.run("compressing", |context| match (arguments.max_loss, &held_out) {
            (Some(loss), Some(data)) => {
                smallest_within(&model, data, loss, arguments.refine, context)
            }
            _ => {
                let compression =
                    Compression { target: target(arguments), refinement: arguments.refine };
                compression.apply(&model, context).map(Some)
            }
        })?;
    let spent = watch.stop();
    let Some(compressed) = compressed else {
        return Err(Failure::Message(
            "no smaller model tried keeps the accuracy asked for; allow a larger --max-loss".into(),
        ));
    };
    let small = &compressed.model;
    let measured = held_out.as_ref().map(|data| measure(&session, &model, small, data));
    let measured = measured.transpose()?;
    session.save(|| model_file::save(small, &arguments.output, format))?;
    let report = Report { model: &model, compressed: &compressed, spent, measured };
    if arguments.json {
        terminal::print_json(&report.json(arguments))?;
    } else if !arguments.resources.quiet {
        terminal::print(&report.text(arguments))?;
    }
    Ok(if interrupt.token().is_cancelled() { Outcome::Interrupted } else { Outcome::Done })
}

fn target(arguments: &Arguments) -> Target {
    match (arguments.vectors, arguments.ratio, arguments.mmd) {
        (Some(count), _, _) => Target::Vectors(count),
        (_, Some(ratio), _) => Target::Ratio(ratio),
        (_, _, difference) => Target::Difference(difference.unwrap_or_default()),
    }
}

/// The answers of both models to held-out rows, and what they took.
fn measure(
    session: &Session<'_>,
    before: &Model,
    after: &Model,
    data: &Dataset,
) -> CommandResult<[Evaluation; 2]> {
    let ask = |model: &Model| -> CommandResult<Evaluation> {
        let watch = Stopwatch::start();
        let answers = session
            .ask("predicting", |context| model.predictor(context)?.predict(data.features()))?;
        Evaluation::new(model, data.labels(), &answers, watch.stop())
    };
    Ok([ask(before)?, ask(after)?])
}

/// Size, speed and accuracy before and after.
struct Report<'a> {
    model: &'a Model,
    compressed: &'a Compressed,
    spent: Spent,
    measured: Option<[Evaluation; 2]>,
}

/// Name and value of what makes a model good.
fn score(quality: &Quality) -> (&'static str, f64) {
    match quality {
        Quality::Classes(confusion) => ("accuracy", confusion.accuracy()),
        Quality::Numbers(errors) => ("determination", errors.determination),
    }
}

impl Report<'_> {
    /// Vectors counted over all functions, before and after.
    fn sizes(&self) -> [usize; 2] {
        let functions = &self.compressed.functions;
        [functions.iter().map(|f| f.before).sum(), functions.iter().map(|f| f.after).sum()]
    }

    fn largest(&self, of: impl Fn(&widemargin::operation::compress::Reduction) -> f64) -> f64 {
        self.compressed.functions.iter().map(of).fold(0.0, f64::max)
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
        }
        let mut lines = Summary::default();
        lines
            .line(
                "largest relative residual",
                format!("{:.4}", self.largest(|f| f.relative_residual)),
            )
            .line("largest difference", format!("{:.4}", self.largest(|f| f.largest_difference)))
            .line("time", duration(self.spent.seconds))
            .line("model", arguments.output.display());
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
