//! Which machine is trained, with which parameters.
//!
//! The options of parameters are made from the library's table of machines, so that every parameter
//! of a machine is an option of its name. They are only translated into a [`Specification`], which
//! refuses by name what its machine does not have.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::Error as ClapError;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use widemargin::machine::{CalibrationMethod, MachineKind, RobustLoss, Specification};

use super::parameter_options::{given, option, options};
use super::value::{bytes, value};
use crate::failure::{CommandResult, Failure};

/// How probabilities are learnt.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ProbabilityName {
    /// Platt's sigmoid, as LIBSVM's -b 1
    Sigmoid,
    /// A non-decreasing step function
    Isotonic,
}

/// Refuses a method of --probability that stands apart from it, where it would be a data file.
pub(crate) fn check_equals(words: &[OsString]) -> CommandResult<()> {
    let is_method = |word: &OsString| {
        word.to_str().is_some_and(|word| ProbabilityName::from_str(word, false).is_ok())
    };
    let apart = words.windows(2).find(|pair| pair[0] == "--probability" && is_method(&pair[1]));
    apart.map_or(Ok(()), |pair| {
        let method = pair[1].display();
        Err(Failure::usage(format!(
            "--probability takes its method after an equals sign: --probability={method}"
        )))
    })
}

impl From<ProbabilityName> for CalibrationMethod {
    fn from(name: ProbabilityName) -> Self {
        match name {
            ProbabilityName::Sigmoid => Self::Sigmoid,
            ProbabilityName::Isotonic => Self::Isotonic,
        }
    }
}

/// Every machine with what it is for, one a line.
pub(crate) fn machine_list() -> String {
    let line = |kind: MachineKind| {
        format!("{:<18}{}\n", kind.to_string(), Specification::new(kind).entry().summary)
    };
    MachineKind::all().map(line).collect()
}

/// Reads a machine that is trained on rows.
pub(crate) fn row_machine(text: &str) -> Result<MachineKind, String> {
    let kind = value::<MachineKind>(text)?;
    match MachineKind::SEQUENCES.contains(&kind) {
        true => Err("sequences are trained by 'widemargin sequence train'".to_owned()),
        false => Ok(kind),
    }
}

/// The machine that `--linear` makes of `kind`.
pub(crate) fn linear_kind(kind: MachineKind, logistic: bool) -> CommandResult<MachineKind> {
    match kind {
        MachineKind::LinearSvc | MachineKind::CSvc if logistic => Ok(MachineKind::Logistic),
        MachineKind::CSvc => Ok(MachineKind::LinearSvc),
        MachineKind::EpsilonSvr => Ok(MachineKind::LinearSvr),
        MachineKind::OneClass => Ok(MachineKind::LinearOneClass),
        linear if MachineKind::LINEAR.contains(&linear) => Ok(linear),
        other => Err(Failure::usage(format!(
            "--linear goes with c-svc, epsilon-svr and one-class, not with {other}"
        ))),
    }
}

/// The option of help; `help` prints what is asked for before clap comes to it.
fn help_option() -> Arg {
    Arg::new("help")
        .long("help")
        .short('h')
        .action(ArgAction::Help)
        .help("Print help (more: at the end)")
}

/// A kernel of some columns.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// As --kernels reads it.
    kernel: String,
}

/// The kernels of a list and those of views, as --kernels reads them.
pub(crate) fn with_views(kernels: Option<&str>, views: &[View]) -> Option<String> {
    let views = views.iter().map(|view| view.kernel.as_str());
    let all: Vec<&str> = kernels.into_iter().chain(views).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Reads `shape=1-4,7:rbf:gamma=0.5`.
pub(crate) fn view(text: &str) -> Result<View, String> {
    let parts = text.split_once('=').and_then(|(name, rest)| {
        let (columns, kernel) = rest.split_once(':')?;
        let (kernel, parameters) = kernel.split_once(':').unwrap_or((kernel, ""));
        let given = [name, columns, kernel].iter().all(|part| !part.trim().is_empty());
        given.then_some((columns, kernel, parameters))
    });
    match parts {
        Some((columns, kernel, "")) => Ok(View { kernel: format!("view({columns}: {kernel})") }),
        Some((columns, kernel, parameters)) => {
            Ok(View { kernel: format!("view({columns}: {kernel}({parameters}))") })
        }
        None => Err("expected NAME=COLUMNS:KERNEL such as shape=1-4:rbf:gamma=0.5".to_owned()),
    }
}

/// What is no parameter of a machine.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Machine")]
pub(crate) struct Choice {
    /// The machine; --help machines lists them
    #[arg(long, short = 's', value_name = "KIND", default_value = "c-svc",
          long_help = format!("The machine:\n{}", machine_list()),
          value_parser = row_machine)]
    machine: MachineKind,

    /// Learn from one row after another and keep only support vectors: ww, cs, llw, ..., and c-svc
    /// with two classes (LASVM)
    #[arg(long)]
    pub(crate) online: bool,

    /// Learn weights of the features instead of a kernel expansion, for wide and sparse data:
    /// c-svc becomes linear-svc or logistic, epsilon-svr linear-svr, one-class linear-one-class
    #[arg(long, conflicts_with_all = ["online", "kernel"])]
    linear: bool,

    /// Learn with a loss that outliers and wrong labels do not pull: ramp, eta, trimmed, centroid,
    /// leave-one-out or power; the same as --machine robust-svc --loss LOSS
    #[arg(long, value_name = "LOSS", value_parser = value::<RobustLoss>,
          conflicts_with_all = ["online", "linear", "loss"])]
    robust: Option<RobustLoss>,

    /// Learn probabilities by an internal cross-validation
    #[arg(long, value_enum, value_name = "METHOD", num_args = 0..=1, require_equals = true,
          default_missing_value = "sigmoid")]
    pub(crate) probability: Option<ProbabilityName>,

    /// A kernel of some columns whose weight is learnt beside those of other views and of --kernels:
    /// a name, columns counted from 1, the kernel and its parameters; may be given several times
    #[arg(long, value_name = "NAME=COLUMNS:KERNEL[:PARAMETERS]", value_parser = view)]
    view: Vec<View>,

    /// Train a linear machine from disk with rows in at most this much memory, such as 1GB or
    /// 500MB; DATA may then be a folder of files
    #[arg(long, value_name = "BYTES", value_parser = bytes, conflicts_with = "approximate",
          help_heading = "Linear machines")]
    pub(crate) memory: Option<usize>,

    /// Folder for the rows on disk and for going on after an interruption [default: the name of the
    /// data with .chunks, here]
    #[arg(long, value_name = "FOLDER", requires = "memory", help_heading = "Linear machines")]
    pub(crate) work: Option<PathBuf>,
}

/// The machine to train.
#[derive(Clone, Debug)]
pub(crate) struct MachineArguments {
    pub(crate) choice: Choice,
    /// Whether --machine was given.
    names_machine: bool,
    /// The parameters that were given, by name.
    given: Vec<(&'static str, String)>,
}

impl Args for MachineArguments {
    fn augment_args(command: Command) -> Command {
        let command = Choice::augment_args(command.disable_help_flag(true).arg(help_option()));
        options().into_iter().fold(command, |command, parameters| command.arg(option(&parameters)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for MachineArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, ClapError> {
        let mut given = given(matches, &options());
        let robust = matches.get_one::<RobustLoss>("robust");
        given.extend(robust.map(|loss| ("loss", loss.to_string())));
        let names_machine = matches.value_source("machine") == Some(ValueSource::CommandLine);
        let choice = Choice::from_arg_matches(matches)?;
        let at = given.iter().position(|(name, _)| *name == "kernels");
        let kernels = at.map(|at| given.swap_remove(at).1);
        if let Some(kernels) = with_views(kernels.as_deref(), &choice.view) {
            given.push(("kernels", kernels));
        }
        Ok(Self { choice, names_machine, given })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), ClapError> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl MachineArguments {
    /// The machine with the parameters that were given.
    pub(crate) fn specification(&self) -> CommandResult<Specification> {
        self.specification_of(self.kind()?)
    }

    /// The machine of a model with the parameters that were given.
    pub(crate) fn resumed_specification(&self, kind: MachineKind) -> CommandResult<Specification> {
        if !matches!(kind, MachineKind::AllInOne(_)) {
            return Err(Failure::usage("--resume is for models of ww, cs, llw, ..."));
        }
        let named = self.choice.machine;
        if self.names_machine && named != kind {
            let message = format!("--machine {named}: the model of --resume is of {kind}");
            return Err(Failure::usage(message));
        }
        self.specification_of(kind)
    }

    fn specification_of(&self, kind: MachineKind) -> CommandResult<Specification> {
        let mut specification = match self.choice.online {
            true => Specification::online(kind)?,
            false => Specification::new(kind),
        };
        for (name, text) in &self.given {
            specification.parse(name, text)?;
        }
        Ok(specification)
    }

    /// The machine of the command line alone, for training: nothing that was given is without effect.
    pub(crate) fn checked_specification(&self) -> CommandResult<Specification> {
        let specification = self.specification()?;
        specification.check_kernel_parameters()?;
        Ok(specification)
    }

    /// The kind of machine, `--linear` and `--loss logistic` taken into account.
    fn kind(&self) -> CommandResult<MachineKind> {
        let logistic = self.given.iter().any(|(name, text)| *name == "loss" && text == "logistic");
        let kind = match (self.choice.robust, self.choice.machine) {
            (None, kind) => kind,
            (Some(_), MachineKind::CSvc | MachineKind::RobustSvc) => MachineKind::RobustSvc,
            (Some(_), other) => {
                return Err(Failure::usage(format!("--robust goes with c-svc, not with {other}")));
            }
        };
        if logistic && kind == MachineKind::CSvc && !self.choice.linear {
            return Err(Failure::usage("--loss logistic is for linear machines: add --linear"));
        }
        match kind {
            MachineKind::LinearSvc if logistic => Ok(MachineKind::Logistic),
            kind if self.choice.linear => linear_kind(kind, logistic),
            kind => Ok(kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use widemargin::machine::specification::Domain;

    use super::super::parameter_options::{Form, Owned, form};
    use super::*;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        machine: MachineArguments,
    }

    fn specification(words: &[String]) -> Result<Specification, String> {
        let words = std::iter::once("widemargin".to_owned()).chain(words.iter().cloned());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        line.machine.specification().map_err(|failure| failure.to_string())
    }

    /// Words that set a parameter to something else than its default, in every way that a machine
    /// may have it.
    fn settings(owned: &[Owned]) -> Vec<Vec<String>> {
        let name = owned[0].1.name;
        match form(owned[0].1) {
            Form::Switch(true) => return vec![vec![format!("--{name}")]],
            Form::Switch(false) => return vec![vec![format!("--no-{name}")]],
            Form::Value => {}
        }
        let mut values: Vec<String> = Vec::new();
        for (_, parameter) in owned {
            match parameter.domain {
                Domain::Real { .. } => values.extend(["0.25".into(), "0.5".into()]),
                Domain::Integer { .. } => values.push("7".into()),
                Domain::Choice(names) => values.extend(names.iter().map(|name| (*name).to_owned())),
                Domain::Kernel => values.push("poly".into()),
                Domain::Kernels => values.push("linear, rbf".into()),
                Domain::KernelWeights => values.push("signed".into()),
                Domain::ClassWeights => values.push("balanced".into()),
                Domain::Reals(_) => values.push("1,2".into()),
                Domain::Scaling => values.push("standard".into()),
                Domain::Map => values.push("rff:10".into()),
                Domain::Links => values.push("0=1".into()),
                _ => values.push("none".into()),
            }
        }
        values.into_iter().map(|value| vec![format!("--{name}"), value]).collect()
    }

    #[test]
    fn every_option_on_every_machine_has_an_effect_or_is_refused_by_name() {
        let mut tried = 0;
        for machine in Specification::all() {
            let mut words = vec!["-s".to_owned(), machine.kind().to_string()];
            if machine.is_online() {
                words.push("--online".into());
            }
            let base = specification(&words).unwrap();
            assert_eq!(base, machine);
            for owned in options() {
                let name = owned[0].1.name;
                let mut accepted = false;
                for setting in settings(&owned) {
                    tried += 1;
                    let all: Vec<String> = words.iter().cloned().chain(setting).collect();
                    match specification(&all) {
                        Ok(found) => {
                            assert!(found != base, "{all:?}");
                            // --loss logistic names a machine of its own.
                            assert!(found.is_given(name), "{all:?}");
                            accepted |= found.value(name) != base.value(name);
                        }
                        Err(message) => {
                            let unknown = format!("has no parameter '{name}'");
                            let value = format!("parameter {name}: expected");
                            let loss = "--loss logistic";
                            let named = [unknown.as_str(), value.as_str(), loss];
                            assert!(
                                named.iter().any(|t| message.contains(t)),
                                "{all:?}: {message}"
                            );
                        }
                    }
                }
                let only = matches!(
                    machine.parameter(name).map(|own| own.domain),
                    Ok(Domain::Choice([_]))
                );
                assert_eq!(accepted, machine.parameter(name).is_ok() && !only, "{machine} {name}");
            }
        }
        assert!(tried > 2000, "{tried}");
    }

    #[test]
    fn linear_names_the_linear_machine() {
        let kind = |text: &str| {
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            specification(&words).map(|found| found.kind())
        };
        assert_eq!(kind("--linear"), Ok(MachineKind::LinearSvc));
        assert_eq!(kind("--linear --loss logistic"), Ok(MachineKind::Logistic));
        assert_eq!(kind("-s epsilon-svr --linear"), Ok(MachineKind::LinearSvr));
        assert_eq!(kind("-s one-class --linear"), Ok(MachineKind::LinearOneClass));
        assert!(kind("-s nu-svc --linear").is_err());
        assert!(kind("--loss logistic").is_err());
        assert!(kind("--linear --kernel rbf").is_err());
    }
}
