//! The machine that `sequence train` trains: every parameter of one of them is an option.

use clap::builder::PossibleValuesParser;
use clap::error::Error as ClapError;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use widemargin::machine::{MachineKind, Specification};

use super::parameter_options::{Owned, given, option, options_of};
use super::value::value;
use crate::failure::CommandResult;

/// A machine that is trained on sequences and the parameters that were given, by name.
#[derive(Clone, Debug)]
pub(crate) struct SequenceMachineArguments {
    kind: MachineKind,
    given: Vec<(&'static str, String)>,
}

impl SequenceMachineArguments {
    /// The machine with the parameters that were given.
    pub(crate) fn specification(&self) -> CommandResult<Specification> {
        let mut specification = Specification::new(self.kind);
        for (name, text) in &self.given {
            specification.parse(name, text)?;
        }
        specification.check_kernel_parameters()?;
        Ok(specification)
    }
}

/// Every parameter of a machine for sequences, each with the machines that have it.
fn options() -> Vec<Vec<Owned>> {
    let mut all: Vec<Vec<Owned>> = Vec::new();
    for kind in MachineKind::SEQUENCES {
        for owned in options_of(&Specification::new(kind)) {
            match all.iter_mut().find(|known| known[0].1.name == owned[0].1.name) {
                Some(known) => known.extend(owned),
                None => all.push(owned),
            }
        }
    }
    all
}

impl Args for SequenceMachineArguments {
    fn augment_args(command: Command) -> Command {
        let names = MachineKind::SEQUENCES.map(MachineKind::name);
        let about =
            |kind: MachineKind| format!("{kind}: {}", Specification::new(kind).entry().summary);
        let machine = Arg::new("machine")
            .short('s')
            .long("machine")
            .value_name("MACHINE")
            .help(format!("The machine; {}", MachineKind::SEQUENCES.map(about).join("; ")))
            .help_heading("Machine")
            .default_value(names[0])
            .hide_possible_values(true)
            .value_parser(PossibleValuesParser::new(names));
        options().iter().fold(command.arg(machine), |command, owned| command.arg(option(owned)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SequenceMachineArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, ClapError> {
        let name = matches.get_one::<String>("machine").map_or("chain-svc", String::as_str);
        let kind = value(name).unwrap_or(MachineKind::ChainSvc);
        Ok(Self { kind, given: given(matches, &options()) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), ClapError> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
