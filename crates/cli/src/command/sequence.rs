//! `sequence`: a machine for the tags of sequences, trained on a file and applied to others.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use widemargin::Status;
use widemargin::data::read::{
    LoadedSequences, SequenceFormat, SequenceOptions, TokenColumn, is_standard_stream, read_all,
    read_sequences,
};
use widemargin::data::write::write_atomically;
use widemargin::data::{Dictionary, Label, NO_TAG, TaggedSequences, Templates};
use widemargin::machine::sequence::{Emission, Labelling};
use widemargin::machine::specification::Value;
use widemargin::machine::{Body, MachineKind, Model, Specification};
use widemargin::operation::tagging::TagQuality;

use super::train::print_status;
use crate::arguments::{ResourceArguments, SequenceMachineArguments};
use crate::data_file::check_outputs;
use crate::failure::{CommandResult, Failure, Outcome, unless_stopped};
use crate::interrupt::Interrupt;
use crate::model_file::{self, ModelFormatName};
use crate::session::Session;
use crate::table::{Summary, count, duration};
use crate::terminal;
use crate::usage::{Stopwatch, UsedTime};

/// Learn and predict the tags of sequences
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  widemargin sequence train train.txt -o chunks.wm --constraints bio --test test.txt
  widemargin sequence label new.txt --model chunks.wm -o tagged.txt
  widemargin sequence train words.crf.txt --format crfsuite --c 0.05 -o words.wm
  widemargin sequence train letters.txt --format svm-hmm --c 0.16 -o letters.wm
  widemargin sequence train words.txt -s hmm -o words.wm
  widemargin sequence train heights.csv -s hmm --emissions gaussian --states 3 --untagged -o h.wm

A file has columns of tokens with the tag in the last one (CoNLL), CRFsuite's attributes, LIBSVM text with
the sequence as qid (SVM-HMM), or it is a table with a column 'sequence'. Columns become features by
--templates, in CRF++'s notation. A hidden Markov model (-s hmm) takes the first column as the symbol, or all
columns as numbers; '?' marks what is not known.")]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Train(TrainArguments),
    Label(LabelArguments),
}

/// Kinds of files of sequences.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatName {
    /// Columns of tokens, the last one the tag (CoNLL)
    Columns,
    /// CRFsuite's attributes
    Crfsuite,
    /// LIBSVM text with the sequence as qid
    SvmHmm,
    /// A table with a column that names the sequence
    Table,
}

impl From<FormatName> for SequenceFormat {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Columns => Self::Columns,
            FormatName::Crfsuite => Self::Crfsuite,
            FormatName::SvmHmm => Self::SvmHmm,
            FormatName::Table => Self::Table,
        }
    }
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Input")]
struct SequenceInput {
    /// Kind of the file [default: by its content and name]
    #[arg(long, value_enum)]
    format: Option<FormatName>,

    /// Column of a table that names the sequence
    #[arg(long, value_name = "NAME", default_value = "sequence")]
    sequence_column: String,

    /// Column of a table with the tag [default: the last]
    #[arg(long, value_name = "NAME")]
    tag_column: Option<String>,

    /// The mark of an unknown tag
    #[arg(long, value_name = "TAG", default_value = "?")]
    unknown_tag: String,
}

impl SequenceInput {
    fn options(
        &self,
        templates: Option<Templates>,
        tagged: bool,
        numbers: bool,
    ) -> SequenceOptions {
        SequenceOptions {
            numbers,
            format: self.format.map(Into::into),
            templates,
            tagged,
            sequence_column: TokenColumn::Name(self.sequence_column.clone()),
            tag_column: self.tag_column.clone().map(TokenColumn::Name),
            unknown: self.unknown_tag.clone(),
        }
    }
}

/// Train a machine on sequences
#[derive(Args, Debug)]
struct TrainArguments {
    /// Sequences; '-': standard input
    data: PathBuf,

    /// Where to write the model [default: DATA's name with .wm, here]
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Templates of features for columns of tokens, a file in CRF++'s notation [default: words and pairs around
    /// the token; for hmm the first column]
    #[arg(long, value_name = "FILE")]
    templates: Option<PathBuf>,

    /// Sequences to try the model on
    #[arg(long, value_name = "FILE")]
    test: Option<PathBuf>,

    /// The file has no tags, which a hidden Markov model can do without
    #[arg(long)]
    untagged: bool,

    /// Print the summary as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    machine: SequenceMachineArguments,
    #[command(flatten)]
    input: SequenceInput,
    #[command(flatten)]
    resources: ResourceArguments,
}

/// Label sequences with a trained machine
#[derive(Args, Debug)]
struct LabelArguments {
    /// Sequences; '-': standard input
    data: PathBuf,

    /// The model
    #[arg(short, long, value_name = "FILE")]
    model: PathBuf,

    /// Where to write the tags, one a line, an empty line after every sequence [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The file has no tags
    #[arg(long)]
    untagged: bool,

    /// Write this many labellings of every sequence, each under a line with its rank and score
    #[arg(long, value_name = "N")]
    n_best: Option<usize>,

    /// Take the most probable state of every position instead of the most probable path
    #[arg(long, conflicts_with = "n_best")]
    posterior: bool,

    /// Print how good the tags are as JSON on standard output; the tags are then only written to -o FILE
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: SequenceInput,
    #[command(flatten)]
    resources: ResourceArguments,
}

/// Trains or labels.
pub(crate) fn run(arguments: &Arguments, interrupt: &Interrupt) -> CommandResult {
    match &arguments.action {
        Action::Train(arguments) => train(arguments, interrupt),
        Action::Label(arguments) => label(arguments, interrupt),
    }
}

fn train(arguments: &TrainArguments, interrupt: &Interrupt) -> CommandResult {
    let specification = arguments.machine.specification()?;
    if arguments.untagged && arguments.test.is_some() {
        return Err(Failure::usage("--test needs tags, which --untagged says there are none of"));
    }
    let session = arguments.resources.session(interrupt)?;
    let target = model_file::target(arguments.output.as_deref(), &arguments.data)?;
    check_outputs(
        &[("-o", Some(&target))],
        &[Some(&arguments.data), arguments.templates.as_deref(), arguments.test.as_deref()],
    )?;
    model_file::check_writable(&target)?;
    let numbers = takes_numbers(&specification);
    let templates = match &arguments.templates {
        Some(_) if numbers => {
            return Err(Failure::usage(
                "--templates: the columns are numbers for these --emissions",
            ));
        }
        Some(path) => Some(read_templates(path)?),
        None if specification.kind() == MachineKind::HiddenMarkov => {
            Some(Templates::parse(FIRST_COLUMN)?)
        }
        None => None,
    };
    let options = arguments.input.options(templates, !arguments.untagged, numbers);
    let mut dictionary = Dictionary::new();
    let loaded = session
        .read("reading", || Ok(read_sequences(&arguments.data, &options, &mut dictionary)?))?;
    let data = &loaded.data;
    let watch = Stopwatch::start();
    let mut model = match specification.kind() {
        MachineKind::HiddenMarkov => {
            let machine = specification.hidden_markov()?;
            session.run("training", |context| machine.fit(data, context))?
        }
        _ => {
            let machine = specification.chain_svc(data.rows())?;
            session.run("training", |context| machine.fit(data, context))?
        }
    };
    let spent = watch.stop();
    specification.record(&mut model);
    let templates = loaded.templates.as_ref().map(ToString::to_string);
    match &mut model.body {
        Body::Chain(chain) => chain.templates = templates,
        Body::HiddenMarkov(markov) => markov.templates = templates,
        _ => {}
    }
    session.save(|| model_file::save(&model, &target, ModelFormatName::Native))?;
    let outcome = print_status(&model, &target);
    let quality = match &arguments.test {
        Some(path) => {
            let at_limit = || {
                not_tested(Status::TimeLimit);
                // Whoever closed standard output has the model.
                let _ = report(arguments, &loaded.data, &model, None, spent, &target);
            };
            test(path, &arguments.input, &model, &session, at_limit)?
        }
        None => None,
    };
    report(arguments, &loaded.data, &model, quality, spent, &target)?;
    Ok(session.context.stop_request().map_or(outcome, Outcome::from))
}

/// What a hidden Markov model of symbols reads of columns of tokens.
const FIRST_COLUMN: &str = "U00:%x[0,0]";

/// Whether columns of tokens are numbers for a machine.
fn takes_numbers(specification: &Specification) -> bool {
    match specification.value("emissions") {
        Some(Value::Text(emissions)) => emissions != "symbols",
        _ => false,
    }
}

fn not_tested(status: Status) {
    terminal::warn(&format!("{status}: the model was not tested"));
}

/// How good the tags of a file are; nothing where a limit or Ctrl-C ended it. `at_limit` is called where the
/// program ends because reading takes too long.
fn test(
    path: &Path,
    input: &SequenceInput,
    model: &Model,
    session: &Session<'_>,
    at_limit: impl FnOnce() + Send,
) -> CommandResult<Option<TagQuality>> {
    // A training may end a little before its limit, which the file would then be read beyond.
    let ended = model.training.as_ref().map(|training| training.outcome.status);
    let ended = ended.filter(|one| matches!(one, Status::TimeLimit | Status::Interrupted));
    let tested = match ended.or(session.context.stop_request()) {
        Some(_) => None,
        None => {
            let read = || read_for(model, input, path, true);
            let loaded = session.read_or("reading", read, at_limit)?;
            let found = unless_stopped(labels(model, &loaded.data, session))?;
            found.map(|found| quality(model, &loaded.data, &found)).transpose()?
        }
    };
    if let (None, Some(status)) = (&tested, ended.or(session.context.stop_request())) {
        not_tested(status);
    }
    Ok(tested)
}

/// Prints how the training went.
fn report(
    arguments: &TrainArguments,
    data: &TaggedSequences,
    model: &Model,
    quality: Option<TagQuality>,
    spent: UsedTime,
    target: &Path,
) -> CommandResult<()> {
    let outcome = model.training.as_ref().map(|training| training.outcome);
    if arguments.json {
        terminal::print_json(&json!({
            "sequences": data.count(),
            "positions": data.positions(),
            "features": data.rows().columns(),
            "tags": tags(model)?,
            "log_likelihood": log_likelihood(model),
            "status": outcome.map(|o| o.status),
            "primal": outcome.map(|o| o.primal),
            "dual": outcome.map(|o| o.dual),
            "gap": outcome.map(|o| o.violation),
            "passes": outcome.map(|o| o.blocks),
            "fit_seconds": spent.seconds,
            "fit_cpu_seconds": spent.cpu_seconds,
            "test": quality.as_ref().map(quality_json),
            "model": target.display().to_string(),
        }))?;
    } else if !arguments.resources.quiet {
        let mut lines = Summary::default();
        lines
            .line("sequences", count(data.count() as u64))
            .line("positions", count(data.positions() as u64))
            .line("features", count(data.rows().columns() as u64))
            .line("tags", tags(model)?.len());
        if let (Some(outcome), Some(likelihood)) = (outcome, log_likelihood(model)) {
            lines
                .line("status", outcome.status)
                .line("log-likelihood", format!("{likelihood:.6}"))
                .line("iterations", outcome.iterations);
        } else if let Some(outcome) = outcome {
            lines
                .line("status", outcome.status)
                .line(
                    "objective",
                    format!("primal {:.6}, dual {:.6}", outcome.primal, outcome.dual),
                )
                .line("gap", format!("{:.3} %", 100.0 * outcome.violation))
                .line("passes", outcome.blocks);
        }
        lines.line("time", duration(spent.seconds)).line("model", target.display());
        let mut text = lines.text();
        if let (Some(quality), Some(path)) = (&quality, &arguments.test) {
            text.push_str(&format!("\ntest on {}\n{}", path.display(), quality_text(quality)));
        }
        terminal::print(&text)?;
    }
    Ok(())
}

fn label(arguments: &LabelArguments, interrupt: &Interrupt) -> CommandResult {
    let session = arguments.resources.session(interrupt)?;
    check_outputs(
        &[("-o", arguments.output.as_deref())],
        &[Some(&arguments.data), Some(&arguments.model)],
    )?;
    let model = Model::load(&arguments.model)?;
    let tagged = !arguments.untagged;
    let read = || read_for(&model, &arguments.input, &arguments.data, tagged);
    let loaded = session.read("reading", read)?;
    let needs = |option: &str, kind: MachineKind| {
        Failure::usage(format!("{option} needs a model of {kind}, found one of {}", model.kind))
    };
    let found = match (arguments.n_best, &model.body) {
        (Some(n), Body::Chain(chain)) => {
            session.ask("labelling", |context| chain.labeller(context)?.n_best(&loaded.data, n))?
        }
        (Some(_), _) => return Err(needs("--n-best", MachineKind::ChainSvc)),
        (None, Body::HiddenMarkov(markov)) if arguments.posterior => single(
            session.ask("labelling", |context| markov.label_positions(&loaded.data, context))?,
        ),
        (None, _) if arguments.posterior => {
            return Err(needs("--posterior", MachineKind::HiddenMarkov));
        }
        (None, _) => single(labels(&model, &loaded.data, &session)?),
    };
    let to_stdout = arguments.output.as_deref().is_none_or(is_standard_stream);
    if !arguments.json || !to_stdout {
        let path = arguments.output.as_deref().unwrap_or(Path::new("-"));
        let names = tags(&model)?;
        let ranked = arguments.n_best.is_some();
        session.save(|| write_atomically(path, |out| write(&found, names, ranked, out)))?;
    }
    let best: Vec<Labelling> =
        found.into_iter().filter_map(|list| list.into_iter().next()).collect();
    if loaded.data.tags().is_some() {
        let quality = quality(&model, &loaded.data, &best)?;
        if arguments.json {
            terminal::print_json(&quality_json(&quality))?;
        } else if !arguments.resources.quiet && to_stdout {
            terminal::note(quality_text(&quality).trim_end());
        } else if !arguments.resources.quiet {
            terminal::print(&quality_text(&quality))?;
        }
    }
    Ok(Outcome::Done)
}

/// The tags of a model, or the names of its states.
fn tags(model: &Model) -> CommandResult<&[Label]> {
    match &model.body {
        Body::Chain(chain) => Ok(&chain.tags),
        Body::HiddenMarkov(markov) => Ok(markov.names()),
        _ => Err(Failure::usage(format!(
            "the model is of {}; 'sequence' needs one of {}",
            model.kind,
            MachineKind::SEQUENCES.map(MachineKind::name).join(" or ")
        ))),
    }
}

/// ln p of the training sequences, for hidden Markov models.
fn log_likelihood(model: &Model) -> Option<f64> {
    let training = model.training.as_ref()?;
    training.parameters.iter().find(|(name, _)| name == "log-likelihood")?.1.number()
}

fn read_templates(path: &Path) -> CommandResult<Templates> {
    let bytes = read_all(path)?;
    Ok(Templates::parse(&String::from_utf8_lossy(&bytes))?)
}

/// One labelling of every sequence.
fn single(found: Vec<Labelling>) -> Vec<Vec<Labelling>> {
    found.into_iter().map(|one| vec![one]).collect()
}

/// Reads sequences with the features that a model knows.
fn read_for(
    model: &Model,
    input: &SequenceInput,
    path: &Path,
    tagged: bool,
) -> CommandResult<LoadedSequences> {
    tags(model)?;
    let (templates, numbers) = match &model.body {
        Body::Chain(chain) => (chain.templates.as_deref(), false),
        Body::HiddenMarkov(markov) => {
            let symbols = matches!(markov.hmm().emission(), Emission::Categorical { .. });
            (markov.templates.as_deref(), !symbols)
        }
        _ => (None, false),
    };
    let templates = templates.map(Templates::parse).transpose()?;
    let options = input.options(templates, tagged, numbers);
    let mut dictionary = Dictionary::closed(model.feature_names.as_deref().unwrap_or_default());
    let mut loaded = read_sequences(path, &options, &mut dictionary)?;
    // LIBSVM text has no number of columns.
    if loaded.format == SequenceFormat::SvmHmm {
        loaded.data = loaded.data.resized(model.features());
    }
    Ok(loaded)
}

fn labels(
    model: &Model,
    data: &TaggedSequences,
    session: &Session<'_>,
) -> CommandResult<Vec<Labelling>> {
    tags(model)?;
    session.ask("labelling", |context| match &model.body {
        Body::Chain(chain) => chain.labeller(context)?.label(data),
        Body::HiddenMarkov(markov) => markov.label(data, context),
        // `tags` has refused it.
        _ => Ok(Vec::new()),
    })
}

fn quality(
    model: &Model,
    data: &TaggedSequences,
    found: &[Labelling],
) -> CommandResult<TagQuality> {
    let names: Vec<String> = tags(model)?.iter().map(ToString::to_string).collect();
    let (truth, codes): (Vec<String>, &[u32]) = match data.tags() {
        Some(tags) => (tags.names.iter().map(ToString::to_string).collect(), &tags.codes),
        None => (Vec::new(), &[]),
    };
    let name = |code: &u32| (*code != NO_TAG).then(|| truth[*code as usize].as_str());
    let sequences = found.iter().enumerate().map(|(s, labelling)| {
        let known = codes[data.span(s)].iter().map(name).collect();
        let own = labelling.tags.iter().map(|&tag| names[tag as usize].as_str()).collect();
        (known, own)
    });
    Ok(TagQuality::new(sequences)?)
}

fn quality_text(quality: &TagQuality) -> String {
    let mut lines = Summary::default();
    let share = 100.0 * quality.accuracy();
    lines.line("right tags", format!("{share:.2} % ({} of {})", quality.right, quality.positions));
    if let Some(chunks) = &quality.chunks {
        lines.line("chunks, F1", format!("{:.2} %", 100.0 * chunks.f1()));
    }
    lines.text()
}

fn quality_json(quality: &TagQuality) -> serde_json::Value {
    json!({
        "positions": quality.positions,
        "right": quality.right,
        "accuracy": quality.accuracy(),
        "chunk_f1": quality.chunks.map(|chunks| chunks.f1()),
    })
}

/// One tag a line and an empty line after every sequence; ranked lists with a line `# rank score` before each.
fn write(
    found: &[Vec<Labelling>],
    names: &[Label],
    ranked: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    for list in found {
        for (rank, labelling) in list.iter().enumerate() {
            if ranked {
                writeln!(out, "# {} {}", rank + 1, labelling.score)?;
            }
            for &tag in &labelling.tags {
                writeln!(out, "{}", terminal::one_line(&names[tag as usize].to_string()))?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}
