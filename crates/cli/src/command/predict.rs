//! `predict`: a model's predictions for the rows of a data file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use widemargin::Context;
use widemargin::data::read::is_standard_stream;
use widemargin::data::write::write_atomically;
use widemargin::data::{Dataset, Dense, Labels};
use widemargin::machine::{Model, Scheme};

use crate::arguments::{InputArguments, ResourceArguments, ViewFiles};
use crate::data_file::check_outputs;
use crate::evaluation::Evaluation;
use crate::failure::{CommandResult, Outcome};
use crate::interrupt::Interrupt;
use crate::model_file;
use crate::terminal;
use crate::usage::Stopwatch;

/// Apply a model to a data file
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  widemargin predict new.csv --model heart.wm
  widemargin predict new.csv --model heart.wm --probability -o predictions.txt
  widemargin predict new.txt --model a9a.model --json        # LIBSVM's model files work too
  cut -d, -f1-13 new.csv | widemargin predict - --model heart.wm --label-column none

Predictions go to standard output, or to -o FILE; then standard output has how good they are, if the
data has labels. A line break, tab or other control character in a label is written as \\n, \\t or
\\u001b, so that every row has one line.")]
pub(crate) struct Arguments {
    /// Data file; '-': standard input
    data: PathBuf,

    /// The model, native or LIBSVM's
    #[arg(short, long, value_name = "FILE")]
    model: PathBuf,

    /// Where to write the predictions, one a line [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write the probability of every class after the prediction (the model must be trained with
    /// --probability)
    #[arg(short, long)]
    probability: bool,

    /// Reject rows whose largest probability is below this: their prediction is --reject-label, and how
    /// good the others are is told with the share that was rejected
    #[arg(long, value_name = "PROBABILITY", requires = "probability")]
    reject_below: Option<f64>,

    /// What stands for a rejected row
    #[arg(long, value_name = "TEXT", default_value = "?", requires = "reject_below")]
    reject_label: String,

    /// Write the value of every decision function after the prediction
    #[arg(short, long, conflicts_with = "probability")]
    decision_values: bool,

    /// Print how it went as JSON on standard output; the predictions are then only written to -o FILE
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    views: ViewFiles,
    #[command(flatten)]
    input: InputArguments,
    #[command(flatten)]
    resources: ResourceArguments,
}

/// Predicts and writes, a line per row.
pub(crate) fn run(arguments: &Arguments, interrupt: &Interrupt) -> CommandResult {
    let session = arguments.resources.session(interrupt)?;
    let mut inputs = vec![Some(arguments.data.as_path()), Some(arguments.model.as_path())];
    inputs.push(arguments.input.labels.as_deref());
    inputs.extend(arguments.views.paths.iter().map(|path| Some(path.as_path())));
    check_outputs(&[("-o", arguments.output.as_deref())], &inputs)?;
    let mut model = Model::load(&arguments.model)?;
    let input = &arguments.input;
    let data = session.read("reading", || {
        let files = &arguments.views.paths;
        model_file::read_to_predict(&mut model, input, &arguments.data, files)
    })?;
    let watch = Stopwatch::start();
    let predictions =
        session.ask("predicting", |context| predict(arguments, &model, &data, context))?;
    let spent = watch.stop();
    let accepted = predictions.accepted();
    let evaluation = match accepted.len() == predictions.labels.len() {
        true => Evaluation::new(&model, &data, &predictions.labels, spent)?,
        false => {
            terminal::note(&predictions.rejection(accepted.len()));
            let labels = predictions.labels.select(&accepted);
            Evaluation::new(&model, &data.select_rows(&accepted), &labels, spent)?
        }
    };
    let to_stdout = arguments.output.as_deref().is_none_or(is_standard_stream);
    if !arguments.json || !to_stdout {
        let path = arguments.output.as_deref().unwrap_or(Path::new("-"));
        session.save(|| write_atomically(path, |out| predictions.write(out)))?;
    }
    evaluation.print(arguments.json, to_stdout, arguments.resources.quiet)?;
    Ok(Outcome::Done)
}

/// What a model says about rows.
struct Predictions {
    labels: Labels,
    /// Names and numbers to write after every label.
    numbers: Option<(Vec<String>, Dense<f64>)>,
    /// The largest probability below which rows are rejected, and what is written for them.
    reject: Option<(f64, String)>,
}

fn predict(
    arguments: &Arguments,
    model: &Model,
    data: &Dataset,
    context: &Context,
) -> widemargin::Result<Predictions> {
    let predictor = model.predictor(context)?;
    let values = predictor.decision_values_in_time(data.features())?;
    if arguments.probability {
        let probabilities = predictor.probabilities_of(&values)?;
        let labels = predictor.most_probable(&probabilities);
        let reject = arguments.reject_below.map(|below| (below, arguments.reject_label.clone()));
        let numbers = Some((class_names(model), probabilities));
        return Ok(Predictions { labels, numbers, reject });
    }
    let labels = predictor.predictions(&values);
    let numbers = arguments.decision_values.then(|| (function_names(model), values));
    Ok(Predictions { labels, numbers, reject: None })
}

fn class_names(model: &Model) -> Vec<String> {
    match &model.classes {
        Some(table) => table.names.iter().map(ToString::to_string).collect(),
        None if model.kind.is_clusterer() => {
            (0..model.outputs()).map(|cluster| cluster.to_string()).collect()
        }
        None => vec!["1".to_owned(), "-1".to_owned()],
    }
}

/// The class that a positive value of every decision function stands for.
pub(super) fn function_names(model: &Model) -> Vec<String> {
    let Some(table) = &model.classes else {
        return match model.outputs() {
            1 => vec!["value".to_owned()],
            outputs => (0..outputs).map(|cluster| format!("cluster{cluster}")).collect(),
        };
    };
    let names = &table.names;
    match &table.scheme {
        Scheme::OneVsOne | Scheme::Dag => (0..names.len())
            .flat_map(|i| (i + 1..names.len()).map(move |j| (i, j)))
            .map(|(i, j)| format!("{}/{}", names[i], names[j]))
            .collect(),
        Scheme::OneVsRest => names.iter().map(|name| format!("{name}/rest")).collect(),
        Scheme::ErrorCorrecting(_) => {
            (1..=model.outputs()).map(|column| format!("code{column}")).collect()
        }
    }
}

/// One label a line.
pub(super) fn write_labels(labels: &Labels, out: &mut dyn Write) -> io::Result<()> {
    (0..labels.len())
        .filter_map(|i| labels.get(i))
        .try_for_each(|label| writeln!(out, "{}", terminal::one_line(&label.to_string())))
}

impl Predictions {
    /// Whether a row is rejected (Chow 1970): no class is probable enough.
    fn is_rejected(&self, row: usize) -> bool {
        let (Some((below, _)), Some((_, numbers))) = (&self.reject, &self.numbers) else {
            return false;
        };
        numbers.row(row).iter().all(|probability| probability < below)
    }

    /// The rows that are not rejected.
    fn accepted(&self) -> Vec<usize> {
        (0..self.labels.len()).filter(|&row| !self.is_rejected(row)).collect()
    }

    fn rejection(&self, accepted: usize) -> String {
        let all = self.labels.len();
        let share = 100.0 * (all - accepted) as f64 / all.max(1) as f64;
        format!("{} of {all} rows rejected ({share:.2} %)", all - accepted)
    }

    /// One prediction a line; numbers follow after tabs, under a line that names them.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some((names, _)) = &self.numbers {
            let names: Vec<_> = names.iter().map(|name| terminal::one_line(name)).collect();
            writeln!(out, "prediction\t{}", names.join("\t"))?;
        }
        for i in 0..self.labels.len() {
            let rejected = self.reject.as_ref().filter(|_| self.is_rejected(i));
            if let Some((_, text)) = rejected {
                write!(out, "{}", terminal::one_line(text))?;
            } else if let Some(label) = self.labels.get(i) {
                write!(out, "{}", terminal::one_line(&label.to_string()))?;
            }
            if let Some((_, numbers)) = &self.numbers {
                for number in numbers.row(i) {
                    write!(out, "\t{number}")?;
                }
            }
            writeln!(out)?;
        }
        Ok(())
    }
}
