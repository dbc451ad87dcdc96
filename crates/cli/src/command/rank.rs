//! `rank`: learning an order from queries, and putting the rows of new queries in it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use widemargin::data::read::is_standard_stream;
use widemargin::data::write::write_atomically;
use widemargin::data::{Dataset, Labels};
use widemargin::machine::{MachineKind, Model};

use super::CommandLine;
use crate::arguments::{InputArguments, ResourceArguments};
use crate::data_file::check_outputs;
use crate::evaluation::Evaluation;
use crate::failure::{CommandResult, Failure, Outcome};
use crate::help;
use crate::interrupt::Interrupt;
use crate::model_file;
use crate::terminal;
use crate::usage::Stopwatch;

/// Learn an order from queries, and put the rows of queries in order
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  widemargin rank train queries.txt --c 0.01 -o rank.wm --test more.txt
  widemargin rank order new.txt --model rank.wm --top 10

Rows of a query share a number: 'qid:' in LIBSVM text. Data without such numbers is one query.")]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Train(TrainArguments),
    Order(Box<OrderArguments>),
}

/// Train a ranking machine: the same as 'widemargin train -s rank-svm', whose options it takes
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
struct TrainArguments {
    /// Data file and options of 'widemargin train'
    #[arg(value_name = "DATA|OPTION", trailing_var_arg = true, allow_hyphen_values = true, num_args = 0..)]
    words: Vec<OsString>,
}

/// Put the rows of every query in order, best first
#[derive(Args, Debug)]
struct OrderArguments {
    /// Data file; '-': standard input
    data: PathBuf,

    /// The model of a ranking machine
    #[arg(short, long, value_name = "FILE")]
    model: PathBuf,

    /// Where to write the order: a line with query, rank, row of the file and score each [default: standard
    /// output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Only this many rows of every query
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Print how good the order is as JSON on standard output; the order is then only written to -o FILE
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: InputArguments,
    #[command(flatten)]
    resources: ResourceArguments,
}

/// Trains or orders.
pub(crate) fn run(arguments: &Arguments, interrupt: &Interrupt) -> CommandResult {
    match &arguments.action {
        Action::Train(arguments) => train(arguments, interrupt),
        Action::Order(arguments) => order(arguments, interrupt),
    }
}

fn train(arguments: &TrainArguments, interrupt: &Interrupt) -> CommandResult {
    let kind = MachineKind::RankSvm.name();
    let wants_help = arguments.words.is_empty()
        || arguments.words.iter().any(|word| word == "-h" || word == "--help");
    if wants_help {
        let words = ["widemargin", "train", "--help", kind].map(OsString::from);
        if let Some(text) = help::requested(&words) {
            terminal::print(&text?)?;
        }
        return Ok(Outcome::Done);
    }
    let before = ["widemargin", "train"].map(OsString::from);
    let after = ["--machine", kind].map(OsString::from);
    let words = before.into_iter().chain(arguments.words.iter().cloned()).chain(after);
    CommandLine::parse_from(words).run(interrupt)
}

fn order(arguments: &OrderArguments, interrupt: &Interrupt) -> CommandResult {
    let session = arguments.resources.session(interrupt)?;
    let inputs = [
        Some(arguments.data.as_path()),
        Some(arguments.model.as_path()),
        arguments.input.labels.as_deref(),
    ];
    check_outputs(&[("-o", arguments.output.as_deref())], &inputs)?;
    let mut model = Model::load(&arguments.model)?;
    if !model.kind.is_ranker() {
        let message = format!("the model is of {}; 'rank order' needs one of rank-svm", model.kind);
        return Err(Failure::usage(message));
    }
    let input = &arguments.input;
    let data = session
        .read("reading", || model_file::read_to_predict(&mut model, input, &arguments.data, &[]))?;
    let watch = Stopwatch::start();
    let scores = session.ask("ranking", |context| {
        let values = model.predictor(context)?.decision_values_in_time(data.features())?;
        Ok(values.into_values())
    })?;
    let spent = watch.stop();
    let evaluation = Evaluation::new(&model, &data, &Labels::Real(scores.clone()), spent)?;
    let to_stdout = arguments.output.as_deref().is_none_or(is_standard_stream);
    if !arguments.json || !to_stdout {
        let path = arguments.output.as_deref().unwrap_or(Path::new("-"));
        let top = arguments.top.unwrap_or(usize::MAX);
        session.save(|| write_atomically(path, |out| write(&data, &scores, top, out)))?;
    }
    evaluation.print(arguments.json, to_stdout, arguments.resources.quiet)?;
    Ok(Outcome::Done)
}

/// Query, rank, row and score, tabs between them, under a line that names them; rows of one score in the order of the
/// file.
fn write(data: &Dataset, scores: &[f64], top: usize, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "query\trank\trow\tscore")?;
    let groups = data.groups();
    let query = |row: usize| groups.map_or(0, |groups| groups[row]);
    let mut places: Vec<i64> = Vec::new();
    let mut queries: HashMap<i64, Vec<usize>> = HashMap::new();
    for row in 0..scores.len() {
        let rows = queries.entry(query(row)).or_default();
        if rows.is_empty() {
            places.push(query(row));
        }
        rows.push(row);
    }
    for query in places {
        let mut rows = queries.remove(&query).unwrap_or_default();
        rows.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        for (rank, row) in rows.into_iter().take(top).enumerate() {
            writeln!(out, "{query}\t{}\t{}\t{}", rank + 1, row + 1, scores[row])?;
        }
    }
    Ok(())
}
