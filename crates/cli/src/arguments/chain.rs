//! The chain that `sequence train` learns: every parameter of it is an option.

use clap::error::Error as ClapError;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use widemargin::machine::{MachineKind, Specification};

use super::parameter_options::{given, option, options_of};
use crate::failure::CommandResult;

/// The parameters that were given, by name.
#[derive(Clone, Debug)]
pub(crate) struct ChainArguments {
    given: Vec<(&'static str, String)>,
}

impl ChainArguments {
    fn plain() -> Specification {
        Specification::new(MachineKind::ChainSvc)
    }

    /// The chain with the parameters that were given.
    pub(crate) fn specification(&self) -> CommandResult<Specification> {
        let mut specification = Self::plain();
        for (name, text) in &self.given {
            specification.parse(name, text)?;
        }
        specification.check_kernel_parameters()?;
        Ok(specification)
    }
}

impl Args for ChainArguments {
    fn augment_args(command: Command) -> Command {
        let options = options_of(&Self::plain());
        options.into_iter().fold(command, |command, parameters| command.arg(option(&parameters)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ChainArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, ClapError> {
        Ok(Self { given: given(matches, &options_of(&Self::plain())) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), ClapError> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
