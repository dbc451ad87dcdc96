//! `completions`: a script that teaches a shell the commands and options.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::CommandLine;
use crate::failure::{CommandResult, Outcome};
use crate::terminal;

/// Print a completion script for a shell
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  widemargin completions bash > ~/.local/share/bash-completion/completions/widemargin
  widemargin completions zsh > ~/.zfunc/_widemargin
  widemargin completions fish > ~/.config/fish/completions/widemargin.fish")]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut CommandLine::command(),
        "widemargin",
        &mut script,
    );
    terminal::print(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Done)
}
