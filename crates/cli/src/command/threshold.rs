//! `threshold`: a model that makes few errors of one kind.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use serde_json::json;
use widemargin::data::Label;
use widemargin::machine::Model;
use widemargin::operation::threshold::{ErrorLimit, move_threshold};

use super::compress::share;
use crate::arguments::{InputArguments, ResourceArguments};
use crate::data_file::check_outputs;
use crate::failure::{CommandResult, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::model_file;
use crate::table::Summary;
use crate::terminal;

/// Move the boundary of two classes to limit one kind of error
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("limit").required(true))]
#[command(after_help = "\
Examples:
  widemargin threshold heart.wm held-out.csv --positive ill --false-negatives 2% -o careful.wm
  widemargin threshold spam.wm held-out.csv --false-positives 0.001 -o mild.wm

Needs a model of two classes with one decision function: a support vector machine, a linear machine or
a discriminant. 'plot roc' draws all thresholds.")]
pub(crate) struct Arguments {
    /// The model
    model: PathBuf,

    /// Labelled rows that did not train the model
    data: PathBuf,

    /// The class that is looked for [default: the second, in ascending order]
    #[arg(long, value_name = "LABEL", allow_hyphen_values = true)]
    positive: Option<String>,

    /// Largest share of the other class that may be taken for it, such as 0.05 or 5%
    #[arg(long, value_name = "SHARE", group = "limit", value_parser = share)]
    false_positives: Option<f64>,

    /// Largest share of it that may be missed
    #[arg(long, value_name = "SHARE", group = "limit", value_parser = share)]
    false_negatives: Option<f64>,

    /// Where to write the moved model
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Print how it went as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: InputArguments,
    #[command(flatten)]
    resources: ResourceArguments,
}

/// Moves the boundary.
pub(crate) fn run(arguments: &Arguments, interrupt: &Interrupt) -> CommandResult {
    let session = arguments.resources.session(interrupt)?;
    check_outputs(
        &[("-o", Some(&arguments.output))],
        &[Some(&arguments.model), Some(&arguments.data), arguments.input.labels.as_deref()],
    )?;
    model_file::check_writable(&arguments.output)?;
    let mut model = Model::load(&arguments.model)?;
    let data = session
        .read("reading", || model_file::read_for(&mut model, &arguments.input, &arguments.data))?;
    let positive = match (&arguments.positive, &model.classes) {
        (Some(label), _) => Label::Text(label.clone()),
        (None, Some(table)) if table.names.len() == 2 => table.names[table.positive()].clone(),
        _ => return Err(Failure::usage("threshold needs a model of two classes")),
    };
    let limit = match (arguments.false_positives, arguments.false_negatives) {
        (Some(share), _) => ErrorLimit::FalsePositives(share),
        (_, Some(share)) => ErrorLimit::FalseNegatives(share),
        _ => return Err(Failure::usage("expected --false-positives or --false-negatives")),
    };
    let moved = session
        .ask("predicting", |context| move_threshold(&model, &data, &positive, limit, context))?;
    session.save(|| moved.model.save(&arguments.output))?;
    if arguments.json {
        terminal::print_json(&json!({
            "positive": positive.to_string(),
            "shift": moved.shift,
            "false_positives": moved.false_positives,
            "false_negatives": moved.false_negatives,
            "area": moved.curve.area,
        }))?;
    } else if !arguments.resources.quiet {
        let percent = |share: f64| format!("{:.2} %", 100.0 * share);
        let mut summary = Summary::default();
        summary
            .line("positive class", positive)
            .line("boundary moved by", format!("{:.6}", moved.shift))
            .line("false positives", percent(moved.false_positives))
            .line("false negatives", percent(moved.false_negatives))
            .line("area under ROC", format!("{:.4}", moved.curve.area))
            .line("model", arguments.output.display());
        terminal::print(&summary.text())?;
    }
    Ok(Outcome::Done)
}
