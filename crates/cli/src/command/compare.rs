//! `compare`: several machines on the same data, with the same folds.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use widemargin::Status;
use widemargin::operation::compare::{
    CompareOptions, Compared, Comparison, compare, contender_names,
};

use crate::arguments::{InputArguments, ResourceArguments};
use crate::data_file::{check_outputs, check_picture};
use crate::failure::{CommandResult, Outcome};
use crate::interrupt::Interrupt;
use crate::picture::{self, Interval};
use crate::table::{duration, grid};
use crate::terminal;
use crate::usage::{Spent, Stopwatch};

/// Compare support vector machines with the classical classifiers on a data file
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  widemargin compare heart.csv
  widemargin compare heart.csv --repeats 5 --folds 10 --max-time 300 --plot heart.svg
  widemargin compare heart.csv --machines svm-rbf,knn        # also McNemar's test

Every machine is tuned inside each training part (features standardised, a few settings, at most 800
rows), then trained on all of it. Intervals and p-values are those of the corrected resampled t-test.
--max-time ends the comparison with the folds finished by then [default: 50 seconds].")]
pub(crate) struct Arguments {
    /// Labelled data file; '-': standard input
    data: PathBuf,

    /// Machines to compare, of svm-rbf, svm-linear, fisher, kernel-fisher, gmm-bayes, knn, parzen
    /// and pnn [default: all]
    #[arg(long, value_name = "NAME,NAME,...", value_delimiter = ',')]
    machines: Vec<String>,

    /// Folds of one repetition
    #[arg(long, value_name = "N", default_value_t = 5)]
    folds: usize,

    /// Repetitions with other folds
    #[arg(long, value_name = "N", default_value_t = 2)]
    repeats: usize,

    /// Probability that an interval holds the accuracy
    #[arg(long, value_name = "NUM", default_value_t = 0.95)]
    confidence: f64,

    /// Draw the intervals (SVG)
    #[arg(short = 'o', long, alias = "output", value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: InputArguments,
    #[command(flatten)]
    resources: ResourceArguments,
}

/// Seconds a comparison takes at most unless told otherwise.
const BUDGET: Duration = Duration::from_secs(50);

/// Compares, prints and draws.
pub(crate) fn run(arguments: &Arguments, interrupt: &Interrupt) -> CommandResult {
    check_picture(arguments.plot.as_deref())?;
    check_outputs(
        &[("--plot", arguments.plot.as_deref())],
        &[Some(&arguments.data), arguments.input.labels.as_deref()],
    )?;
    let mut session = arguments.resources.session(interrupt)?;
    let data = session.read("reading", || Ok(arguments.input.read(&arguments.data)?.dataset))?;
    session.limit_rest(BUDGET);
    let options = CompareOptions {
        folds: arguments.folds,
        repeats: arguments.repeats,
        machines: arguments.machines.clone(),
        confidence: arguments.confidence,
    };
    let watch = Stopwatch::start();
    let result = session.run("comparing", |context| compare(&data, &options, context))?;
    let spent = watch.stop();
    if let Some(path) = &arguments.plot {
        let title = format!("{}: {} folds", arguments.data.display(), result.folds);
        let lines: Vec<Interval> = result.machines.iter().map(interval).collect();
        session.save(|| picture::intervals(path, &title, &lines))?;
    }
    if arguments.json {
        terminal::print_json(&document(&result, spent))?;
    } else if !arguments.resources.quiet {
        terminal::print(&text(&result, spent, arguments.confidence))?;
    }
    Ok(match tell_status(&result) {
        // Without --max-time the limit is part of the comparison.
        Outcome::TimeLimit if arguments.resources.max_time.is_none() => Outcome::Done,
        outcome => outcome,
    })
}

fn interval(machine: &Compared) -> Interval {
    Interval {
        name: machine.name.to_owned(),
        mean: machine.mean,
        ends: machine.interval,
        values: machine.accuracies.clone(),
    }
}

fn text(result: &Comparison, spent: Spent, confidence: f64) -> String {
    let level = format!("{:.0} % interval", 100.0 * confidence);
    let heading =
        ["machine", "accuracy", &level, "p", "tuning", "training", "prediction", "settings"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for (place, machine) in result.machines.iter().enumerate() {
        let [tuning, training, prediction] = machine.seconds.map(duration);
        let (low, high) = machine.interval;
        let p_value = match place {
            0 => "best".to_owned(),
            _ => format!("{:.3}", machine.p_value),
        };
        rows.push(vec![
            machine.name.to_owned(),
            format!("{:.2} %", 100.0 * machine.mean),
            format!("{:.2} to {:.2}", 100.0 * low, 100.0 * high),
            p_value,
            tuning,
            training,
            prediction,
            machine.settings.clone(),
        ]);
    }
    let mut text = grid(&rows);
    text.push_str(&format!(
        "\n{} folds in {}; p: of a difference to the best that large if there were none \
         (corrected resampled t-test)\n",
        result.folds,
        duration(spent.seconds)
    ));
    if let ([first, second], Some(test)) = (&result.machines[..], result.mcnemar(0, 1)) {
        text.push_str(&format!(
            "McNemar: {} rows only {} gets right, {} only {}: p = {:.4}\n",
            test.first_only, first.name, test.second_only, second.name, test.p_value
        ));
    }
    text
}

fn document(result: &Comparison, spent: Spent) -> Value {
    let machine = |machine: &Compared| {
        let [tuning, training, prediction] = machine.seconds;
        json!({
            "name": machine.name,
            "accuracy": machine.mean,
            "interval": [machine.interval.0, machine.interval.1],
            "p_value": machine.p_value,
            "accuracies": machine.accuracies,
            "tuning_seconds": tuning,
            "training_seconds": training,
            "prediction_seconds": prediction,
            "settings": machine.settings,
        })
    };
    let mcnemar = match result.machines.len() {
        2 => result.mcnemar(0, 1).map(|test| {
            json!({
                "first_only": test.first_only,
                "second_only": test.second_only,
                "p_value": test.p_value,
            })
        }),
        _ => None,
    };
    json!({
        "machines": result.machines.iter().map(machine).collect::<Vec<_>>(),
        "known_machines": contender_names(),
        "folds": result.folds,
        "planned_folds": result.planned,
        "mcnemar": mcnemar,
        "status": result.status,
        "seconds": spent.seconds,
        "cpu_seconds": spent.cpu_seconds,
    })
}

fn tell_status(result: &Comparison) -> Outcome {
    match result.status {
        Status::Solved => return Outcome::Done,
        status => terminal::warn(&format!(
            "{status}: only {} of {} folds were finished",
            result.folds, result.planned
        )),
    }
    match result.status {
        status @ (Status::Interrupted | Status::TimeLimit) => status.into(),
        _ => Outcome::Done,
    }
}
