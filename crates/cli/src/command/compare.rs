//! `compare`: several machines on the same data, with the same folds.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use widemargin::Status;
use widemargin::data::Dataset;
use widemargin::machine::{MachineKind, Specification};
use widemargin::operation::compare::{
    CompareOptions, Compared, Comparison, KernelComparison, KernelOptions, KernelShare, compare,
    compare_kernels, machine_names,
};

use super::prepare::check_strings;
use crate::arguments::{InputArguments, ResourceArguments, View, row_machine, view, with_views};
use crate::data_file::{check_outputs, check_picture};
use crate::failure::{CommandResult, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::picture::{self, Interval, Marks};
use crate::session::Session;
use crate::table::{duration, grid};
use crate::terminal;
use crate::usage::{Stopwatch, UsedTime};

/// Compare support vector machines with the classical classifiers on a data file
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  widemargin compare heart.csv
  widemargin compare heart.csv --repeats 5 --folds 10 --max-time 300 --plot heart.svg
  widemargin compare heart.csv --machines svm-rbf,knn        # also McNemar's test
  widemargin compare heart.csv --kernels \"linear, rbf(gamma=2^-5:2:7)\" --shares shares.svg
  widemargin compare iris.csv --view sepal=1-2:rbf --view petal=3-4:rbf --subsets

Every machine is tuned inside each training part (features standardised, a few settings, at most 800
rows), then trained on all of it. Intervals and p-values are those of the corrected resampled t-test.
With --kernels or --view ways to use several kernels are compared: learnt weights (nonnegative, signed,
lp=2), uniform ones, those of rules (alignment, margin), every kernel alone, the best of them, voting,
and for views their columns side by side.
--max-time ends the comparison with the folds finished by then [default: 50 seconds].")]
pub(crate) struct Arguments {
    /// Labelled data file; '-': standard input
    data: PathBuf,

    /// Machines to compare: svm-rbf, svm-linear, ls-svc, fisher, kernel-fisher, gmm-bayes, knn, parzen
    /// and pnn [default: these], or any other classifier of --help machines
    #[arg(long, value_name = "NAME,NAME,...", value_delimiter = ',')]
    machines: Vec<String>,

    /// Kernels whose use is compared, as train takes them
    #[arg(
        long,
        value_name = "KERNELS",
        allow_hyphen_values = true,
        help_heading = "Kernels",
        conflicts_with = "machines"
    )]
    kernels: Option<String>,

    /// A kernel of some columns beside those of --kernels, as train takes it
    #[arg(long, value_name = "NAME=COLUMNS:KERNEL[:PARAMETERS]", value_parser = view,
          help_heading = "Kernels", conflicts_with = "machines")]
    view: Vec<View>,

    /// The machine that uses the kernels: c-svc, cs or another all-in-one machine
    #[arg(long, short = 's', value_name = "KIND", default_value = "c-svc",
          value_parser = row_machine, help_heading = "Kernels")]
    machine: MachineKind,

    /// Penalties to choose from
    #[arg(long, short = 'c', value_name = "NUM,NUM,...", value_delimiter = ',',
          default_values_t = [1.0, 10.0, 100.0], help_heading = "Kernels")]
    c: Vec<f64>,

    /// Also every subset of the kernels, and the best one
    #[arg(long, help_heading = "Kernels")]
    subsets: bool,

    /// Samples drawn with replacement for the intervals of the kernels' weights; 0: no weights
    #[arg(long, value_name = "N", default_value_t = 50, help_heading = "Kernels")]
    bootstrap: usize,

    /// Draw the weights of the kernels and their shares with intervals (SVG)
    #[arg(long, value_name = "FILE.svg", help_heading = "Kernels")]
    shares: Option<PathBuf>,

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

/// Seconds a comparison takes at most by default.
const BUDGET: Duration = Duration::from_secs(50);

/// Compares, prints and draws.
pub(crate) fn run(arguments: &Arguments, interrupt: &Interrupt) -> CommandResult {
    check_picture(arguments.plot.as_deref())?;
    check_picture(arguments.shares.as_deref())?;
    let outputs =
        [("--plot", arguments.plot.as_deref()), ("--shares", arguments.shares.as_deref())];
    check_outputs(&outputs, &[Some(&arguments.data), arguments.input.labels.as_deref()])?;
    let kernels = with_views(arguments.kernels.as_deref(), &arguments.view);
    if kernels.is_none() && (arguments.subsets || arguments.shares.is_some()) {
        return Err(Failure::usage("--subsets and --shares need --kernels or --view"));
    }
    let mut specification = Specification::new(arguments.machine);
    if let Some(kernels) = &kernels {
        specification.parse("kernels", kernels)?;
    }
    check_strings(&arguments.input, &specification)?;
    let mut session = arguments.resources.session(interrupt)?;
    let data = session.read("reading", || Ok(arguments.input.read(&arguments.data)?.dataset))?;
    session.limit_rest(BUDGET);
    let watch = Stopwatch::start();
    let (result, shares) = match kernels {
        Some(_) => {
            let found = of_kernels(arguments, &specification, &data, &session)?;
            (found.comparison, Some((found.shares, found.penalty)))
        }
        None => {
            let options = options(arguments);
            (session.run("comparing", |context| compare(&data, &options, context))?, None)
        }
    };
    let spent = watch.stop();
    let level = format!("{:.0} % interval", 100.0 * arguments.confidence);
    if let Some(path) = &arguments.plot {
        let title = format!("{}: {} folds", arguments.data.display(), result.folds);
        let lines: Vec<Interval> = result.machines.iter().map(interval).collect();
        let marks = Marks { mean: "mean of the folds", interval: &level, value: "one fold" };
        session.save(|| picture::intervals(path, &title, "accuracy", &marks, &lines))?;
    }
    if let (Some(path), Some((shares, _))) = (&arguments.shares, &shares) {
        let title = format!("{}: kernels", arguments.data.display());
        let what = "weight and share of the squared length";
        let lines: Vec<Interval> = shares.iter().enumerate().flat_map(share_intervals).collect();
        let marks = Marks { mean: "on all rows", interval: &level, value: "" };
        session.save(|| picture::intervals(path, &title, what, &marks, &lines))?;
    }
    if arguments.json {
        terminal::print_json(&document(&result, shares.as_ref(), spent))?;
    } else if !arguments.resources.quiet {
        terminal::print(&text(&result, spent, arguments.confidence))?;
        if let Some((shares, penalty)) = &shares {
            terminal::print(&share_text(shares, *penalty, arguments.confidence))?;
        }
    }
    Ok(match print_status(&result) {
        // Without --max-time the limit is part of the comparison.
        Outcome::TimeLimit if arguments.resources.max_time.is_none() => Outcome::Done,
        outcome => outcome,
    })
}

fn options(arguments: &Arguments) -> CompareOptions {
    CompareOptions {
        folds: arguments.folds,
        repeats: arguments.repeats,
        machines: arguments.machines.clone(),
        confidence: arguments.confidence,
    }
}

fn of_kernels(
    arguments: &Arguments,
    specification: &Specification,
    data: &Dataset,
    session: &Session<'_>,
) -> CommandResult<KernelComparison> {
    let options = KernelOptions {
        compare: options(arguments),
        penalties: arguments.c.clone(),
        subsets: arguments.subsets,
        resamples: arguments.bootstrap,
    };
    session.run("comparing", |context| compare_kernels(data, specification, &options, context))
}

/// Weight and share of a kernel as lines of a picture.
fn share_intervals((at, share): (usize, &KernelShare)) -> [Interval; 2] {
    let line = |what: &str, mean: f64, ends: (f64, f64)| Interval {
        name: format!("kernel {}: {what}", at + 1),
        mean,
        ends,
        values: Vec::new(),
    };
    [
        line("weight", share.weight, share.weight_interval),
        line("share", share.contribution, share.contribution_interval),
    ]
}

fn share_text(shares: &[KernelShare], penalty: f64, confidence: f64) -> String {
    if shares.is_empty() {
        return String::new();
    }
    let level = format!("{:.0} % interval", 100.0 * confidence);
    let heading = ["kernel", "weight", &level, "share", &level, ""];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let ends = |(low, high): (f64, f64)| format!("{low:.3} to {high:.3}");
    for (at, share) in shares.iter().enumerate() {
        rows.push(vec![
            (at + 1).to_string(),
            format!("{:.4}", share.weight),
            ends(share.weight_interval),
            format!("{:.4}", share.contribution),
            ends(share.contribution_interval),
            share.kernel.clone(),
        ]);
    }
    format!(
        "\n{}\nlearnt weights of the kernels at c={penalty} on all rows, and their shares of the squared \
         length of the weight vectors; intervals from samples drawn with replacement\n",
        grid(&rows)
    )
}

fn interval(machine: &Compared) -> Interval {
    Interval {
        name: machine.name.clone(),
        mean: machine.mean,
        ends: machine.interval,
        values: machine.accuracies.clone(),
    }
}

fn text(result: &Comparison, spent: UsedTime, confidence: f64) -> String {
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
            machine.name.clone(),
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
        "\n{} folds in {}; p: p-value of the difference from the best (corrected resampled t-test)\n",
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

fn document(
    result: &Comparison,
    shares: Option<&(Vec<KernelShare>, f64)>,
    spent: UsedTime,
) -> Value {
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
        "known_machines": machine_names(),
        "folds": result.folds,
        "planned_folds": result.planned,
        "mcnemar": mcnemar,
        "kernels": shares.map(|(shares, _)| shares.iter().map(share_document).collect::<Vec<_>>()),
        "penalty": shares.map(|(_, penalty)| penalty),
        "status": result.status,
        "seconds": spent.seconds,
        "cpu_seconds": spent.cpu_seconds,
    })
}

fn share_document(share: &KernelShare) -> Value {
    json!({
        "kernel": share.kernel,
        "weight": share.weight,
        "weight_interval": [share.weight_interval.0, share.weight_interval.1],
        "contribution": share.contribution,
        "contribution_interval": [share.contribution_interval.0, share.contribution_interval.1],
    })
}

fn print_status(result: &Comparison) -> Outcome {
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
