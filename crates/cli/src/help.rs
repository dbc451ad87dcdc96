//! Help of the commands that train machines, in three lengths: the common options (`--help`), the
//! parameters of one machine (`--help knn`), everything (`--help all`). The options of other commands
//! fit a screen, and clap prints them.

use std::ffi::OsString;

use clap::{Command, CommandFactory};
use widemargin::machine::{MachineKind, Specification};

use crate::arguments::{linear_kind, machine_list, parameter_help, row_machine};
use crate::command::CommandLine;
use crate::failure::{CommandResult, Failure};

/// Options that most users need, of any command that trains.
const COMMON: &[&str] = &[
    "data",
    "output",
    "test",
    "grid",
    "method",
    "score",
    "folds",
    "plot",
    "json",
    "help",
    "machine",
    "linear",
    "probability",
    "c",
    "class-weight",
    "kernel",
    "gamma",
    "scale",
    "label_column",
    "missing",
    "categorical",
    "text",
    "threads",
    "max_time",
    "quiet",
];

const MORE: &str = "\
More help:
  --help MACHINE   the parameters of one machine, such as --help knn
  --help machines  the machines and what they are for
  --help all       every option";

/// What the user wants to read about.
#[derive(Debug, PartialEq)]
enum Topic {
    Common,
    Machines,
    Machine(Box<Specification>),
    All,
}

/// The help that a command line requests; none when clap is to handle it.
pub(crate) fn requested(arguments: &[OsString]) -> Option<CommandResult<String>> {
    let words: Vec<String> = arguments
        .iter()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .take_while(|word| word != "--")
        .collect();
    let (name, word) = request(&words)?;
    let mut line = CommandLine::command();
    line.build();
    let command = line.find_subcommand(name)?;
    command.get_arguments().find(|argument| argument.get_id() == "machine")?;
    let command = command.clone();
    Some(topic(word, &words).map(|topic| text(command, topic)))
}

/// The command whose help is wanted, and the word that says about what.
fn request(words: &[String]) -> Option<(&str, Option<&str>)> {
    let word = |at: usize| words.get(at).map(String::as_str).filter(|word| !word.starts_with('-'));
    if words.first()? == "help" {
        return Some((word(1)?, word(2)));
    }
    let at = words
        .iter()
        .position(|word| matches!(word.as_str(), "-h" | "--help") || word.starts_with("--help="))?;
    let topic = words[at].strip_prefix("--help=").or_else(|| word(at + 1));
    (at > 0).then_some((words[0].as_str(), topic))
}

fn topic(word: Option<&str>, words: &[String]) -> CommandResult<Topic> {
    let has = |flag: &str| words.iter().any(|word| word == flag);
    let kind = match word {
        Some("all") => return Ok(Topic::All),
        Some("machines") => return Ok(Topic::Machines),
        Some(word) => Some(word),
        None => words.iter().enumerate().find_map(|(at, word)| match word.as_str() {
            "-s" | "--machine" => words.get(at + 1).map(String::as_str),
            _ => word.strip_prefix("--machine="),
        }),
    };
    let kind = match kind {
        None if !has("--linear") && !has("--online") => return Ok(Topic::Common),
        None => MachineKind::CSvc,
        Some(name) if name.parse::<MachineKind>().is_err() => {
            return Err(Failure::usage(format!(
                "--help {name}: expected a machine, 'machines' (which lists them) or 'all'"
            )));
        }
        Some(name) => {
            row_machine(name).map_err(|reason| Failure::usage(format!("{name}: {reason}")))?
        }
    };
    let kind = if has("--linear") { linear_kind(kind, false)? } else { kind };
    let specification = match has("--online") {
        true => Specification::online(kind)?,
        false => Specification::new(kind),
    };
    Ok(Topic::Machine(Box::new(specification)))
}

fn text(command: Command, topic: Topic) -> String {
    match topic {
        Topic::All => command.clone().render_long_help().to_string(),
        Topic::Machines => machine_list(),
        Topic::Common => common(command),
        Topic::Machine(specification) => of_machine(command, &specification),
    }
}

fn common(command: Command) -> String {
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    // The heading and the first three.
    let examples: Vec<&str> = examples.lines().take(4).collect();
    let command = command.mut_args(|argument| {
        let is_common = COMMON.contains(&argument.get_id().as_str());
        let heading = match argument.get_help_heading() {
            Some("Kernel" | "Scaling") => Some("Machine".to_owned()),
            other => other.map(str::to_owned),
        };
        let is_hidden = argument.is_hide_set() || !is_common;
        argument.hide(is_hidden).help_heading(heading.map(leaked))
    });
    let after = format!("{}\n\n{MORE}", examples.join("\n"));
    command.after_help(after).render_help().to_string()
}

fn of_machine(command: Command, specification: &Specification) -> String {
    let name = specification.name();
    let is_linear = MachineKind::LINEAR.contains(&specification.kind());
    let heading = leaked(format!("Parameters of {name}"));
    let command = command.mut_args(|argument| {
        if let Ok(parameter) = specification.parameter(argument.get_id().as_str()) {
            let help = parameter_help(&name, parameter);
            return argument.help(help).help_heading(heading);
        }
        let is_shown = match argument.get_id().as_str() {
            "probability" => is_calibrated(specification.kind()),
            "memory" | "work" => is_linear,
            _ => false,
        };
        argument.hide(!is_shown).help_heading("Options beside its parameters")
    });
    let grid = specification.default_grid();
    let searched = match grid.is_empty() {
        true => String::new(),
        false => format!("Searched by 'tune' without --grid: {}\n\n", grid.join(", ")),
    };
    let about = format!("{name}: {}", specification.entry().summary);
    let after = format!("{searched}'--help' has the options for data, output and resources.");
    command.about(about).long_about(None::<&str>).after_help(after).render_help().to_string()
}

/// Whether `--probability` is for a machine: not for those that have probabilities, or none at all.
fn is_calibrated(kind: MachineKind) -> bool {
    !matches!(kind, MachineKind::Classic(_) | MachineKind::Svdd)
}

/// Clap keeps headings for the life of the program.
fn leaked(text: String) -> &'static str {
    text.leak()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Option<Topic> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let (_, word) = request(&words)?;
        topic(word, &words).ok()
    }

    #[test]
    fn words_around_help_name_the_topic() {
        let machine = |kind| Some(Topic::Machine(Box::new(Specification::new(kind))));
        assert_eq!(found("train --help"), Some(Topic::Common));
        assert_eq!(found("train data.csv -h"), Some(Topic::Common));
        assert_eq!(found("help tune"), Some(Topic::Common));
        assert_eq!(found("help tune all"), Some(Topic::All));
        assert_eq!(found("tune --help machines"), Some(Topic::Machines));
        assert_eq!(found("train --help nu-svc"), machine(MachineKind::NuSvc));
        assert_eq!(found("train --help=nu-svc"), machine(MachineKind::NuSvc));
        assert_eq!(found("train data -s nu-svc --help"), machine(MachineKind::NuSvc));
        assert_eq!(found("train --linear --help"), machine(MachineKind::LinearSvc));
        let online = Specification::online(MachineKind::CSvc).ok().map(Box::new);
        assert_eq!(found("train --help c-svc --online"), online.map(Topic::Machine));
        assert_eq!(found("train --help no-machine"), None);
        assert_eq!(found("train data"), None);
        assert_eq!(found("--help"), None);
    }
}
