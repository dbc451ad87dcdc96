//! `cluster`: from a data file to the cluster of every row.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::error::Error as ClapError;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use widemargin::Status;
use widemargin::data::read::is_standard_stream;
use widemargin::data::write::write_atomically;
use widemargin::data::{Dataset, Labels};
use widemargin::machine::{Body, Model};
use widemargin::operation::agreement::ClusterAgreement;

use super::cluster_comparison::ComparisonArguments;
use super::prepare::{TrainingData, check_strings, complete, training_rows};
use super::train::print_status;
use crate::arguments::{InputArguments, MachineArguments, ResourceArguments};
use crate::data_file::check_outputs;
use crate::evaluation::Evaluation;
use crate::failure::{CommandResult, Failure, Outcome, unless_stopped};
use crate::interrupt::Interrupt;
use crate::model_file::{self, ModelFormatName};
use crate::session::Session;
use crate::table::Summary;
use crate::terminal;
use crate::usage::Stopwatch;

/// A machine that clusters, maximum-margin clustering by default.
#[derive(Clone, Debug)]
struct Clusterer(MachineArguments);

impl Args for Clusterer {
    fn augment_args(command: Command) -> Command {
        MachineArguments::augment_args(command)
            .mut_arg("machine", |machine| machine.default_value("mmc"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Clusterer {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, ClapError> {
        MachineArguments::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), ClapError> {
        self.0.update_from_arg_matches(matches)
    }
}

/// Group the rows of a data file
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  widemargin cluster points.csv --label-column none --gamma 0.5      # two clusters, largest margin
  widemargin cluster points.csv --balance 0.2 --save-model points.wm -o clusters.txt
  widemargin cluster iris.csv --machine kmeans --clusters 3 --starts 10
  widemargin cluster iris.csv --try clusters=2,3,4 --beside kmeans,spectral --scale standard

The cluster of every row goes to standard output, one a line, or to -o FILE. Labels of the file are not
learnt from; they are compared with the clusters. With --try and --beside several machines are compared,
also by how stable their clusters are, and -o gets the clusters of the most stable one.")]
pub(crate) struct Arguments {
    /// Data file: LIBSVM text, CSV, TSV, IDX or NPY, also .gz .xz .zst .bz2; '-': standard input
    data: PathBuf,

    /// Where to write the clusters, one a line [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Where to write the shares of the clusters in every row by the relaxation of mmc, a row a line
    #[arg(long, value_name = "FILE")]
    memberships: Option<PathBuf>,

    /// Where to write the model, which can cluster other rows
    #[arg(long, value_name = "FILE")]
    save_model: Option<PathBuf>,

    #[command(flatten)]
    comparison: ComparisonArguments,
    #[command(flatten)]
    machine: Clusterer,
    #[command(flatten)]
    input: InputArguments,
    #[command(flatten)]
    resources: ResourceArguments,
}

/// Clusters, writes and reports.
pub(crate) fn run(arguments: &Arguments, interrupt: &Interrupt) -> CommandResult {
    if arguments.machine.0.choice.probability.is_some() {
        return Err(Failure::usage("--probability goes with train, not with cluster"));
    }
    if arguments.machine.0.choice.memory.is_some() {
        return Err(Failure::usage("--memory goes with train, not with cluster"));
    }
    let session = arguments.resources.session(interrupt)?;
    let (output, model_path) = (arguments.output.as_deref(), arguments.save_model.as_deref());
    let shares_path = arguments.memberships.as_deref();
    check_outputs(
        &[("-o", output), ("--save-model", model_path), ("--memberships", shares_path)],
        &[Some(&arguments.data), arguments.input.labels.as_deref()],
    )?;
    if let Some(path) = model_path {
        model_file::check_writable(path)?;
    }
    let specification = arguments.machine.0.checked_specification()?;
    if !specification.kind().is_clusterer() {
        let kind = specification.kind();
        return Err(Failure::usage(format!(
            "--machine {kind}: expected one that clusters: mmc, kmeans, spectral, gmm or \
             certified-gmm"
        )));
    }
    check_strings(&arguments.input, &specification)?;
    let TrainingData { data, preparation, .. } = session.read("reading", || {
        training_rows(&arguments.input, &arguments.data, None, &specification)
    })?;
    if arguments.comparison.is_wanted() {
        if model_path.is_some() || shares_path.is_some() {
            return Err(Failure::usage("a comparison writes no model and no memberships"));
        }
        return arguments.comparison.run(&data, &specification, output, &session);
    }
    let machine = specification.build(&data, arguments.resources.seed)?;
    let watch = Stopwatch::start();
    let mut model = session.run("clustering", |context| machine.fit(&data, context))?;
    complete(&mut model, preparation, &specification);
    if let Some(path) = model_path {
        session.save(|| model_file::save(&model, path, ModelFormatName::Native))?;
    }
    let path = output.unwrap_or(Path::new("-"));
    let outcome = print_status(&model, model_path.unwrap_or(path));
    let outcome = if interrupt.token().is_cancelled() { Outcome::Interrupted } else { outcome };
    let Some(clusters) = unless_stopped(assigned(&model, &data, &session))? else {
        let status = session.context.stop_request().unwrap_or(Status::TimeLimit);
        terminal::warn(&format!("{status}: the rows were not assigned to clusters"));
        return Ok(status.into());
    };
    let spent = watch.stop();
    session.save(|| write_atomically(path, |out| write(&clusters, out)))?;
    if let Some(path) = shares_path {
        write_memberships(&model, path, &session)?;
    }
    if !arguments.resources.quiet {
        let evaluation = Evaluation::new(&model, &data, &clusters, spent)?;
        let agreement = agreement(&data, &clusters)?;
        let text = format!("{}{agreement}{}", evaluation.text(), proof(&model));
        match output.is_none_or(is_standard_stream) {
            true => terminal::note(text.trim_end()),
            false => terminal::print(&text)?,
        }
    }
    Ok(outcome)
}

/// The cluster of every row.
fn assigned(model: &Model, data: &Dataset, session: &Session<'_>) -> CommandResult<Labels> {
    match &model.body {
        Body::MarginClusters(found) => {
            Ok(Labels::Int(found.labels.iter().map(|&label| label as i64).collect()))
        }
        _ => session.run_after_stop("assigning", |context| {
            model.predictor(context)?.predict_in_time(data.features())
        }),
    }
}

pub(super) fn write(clusters: &Labels, out: &mut dyn Write) -> io::Result<()> {
    (0..clusters.len())
        .filter_map(|i| clusters.get(i))
        .try_for_each(|label| writeln!(out, "{label}"))
}

/// Writes the memberships of a model that has them.
fn write_memberships(model: &Model, path: &Path, session: &Session<'_>) -> CommandResult<()> {
    let (shares, clusters) = match &model.body {
        Body::MarginClusters(found) => (&found.memberships[..], found.expansion.functions.len()),
        _ => (&[][..], 1),
    };
    if shares.is_empty() {
        terminal::warn("no relaxation was solved: no memberships are written");
        return Ok(());
    }
    let write = |out: &mut dyn Write| {
        shares.chunks_exact(clusters).try_for_each(|row| {
            let words: Vec<String> = row.iter().map(|share| format!("{share:.6}")).collect();
            writeln!(out, "{}", words.join(" "))
        })
    };
    session.save(|| write_atomically(path, write))?;
    Ok(())
}

/// How well the clusters agree with the labels of the file, if it has any.
fn agreement(data: &Dataset, clusters: &Labels) -> CommandResult<String> {
    if matches!(data.labels(), Labels::None) {
        return Ok(String::new());
    }
    let found = ClusterAgreement::new(data.labels(), clusters)?;
    let mut lines = Summary::default();
    lines
        .line("adjusted Rand index", format!("{:.4}", found.adjusted_rand))
        .line("V-measure (NMI)", format!("{:.4}", found.v_measure));
    Ok(lines.text())
}

/// What is known about the objective.
fn proof(model: &Model) -> String {
    let Body::MarginClusters(found) = &model.body else { return String::new() };
    let mut lines = Summary::default();
    lines.line("objective", format!("{:.6e}", found.objective));
    if let Some(value) = found.relaxation {
        lines.line("relaxation", format!("{value:.6e}"));
    }
    lines.line("proven bound", format!("{:.6e}", found.bound));
    lines.text()
}
