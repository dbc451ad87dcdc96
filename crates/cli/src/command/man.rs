//! `man`: manual pages, made from the options as they are.

use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use widemargin::data::write::write_atomically;

use super::CommandLine;
use crate::failure::{CommandResult, Failure, Outcome};

/// Write the manual pages of all commands into a folder
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  widemargin man ~/.local/share/man/man1
  man widemargin-train")]
pub(crate) struct Arguments {
    /// The folder; it is made where it is missing
    folder: PathBuf,
}

/// Writes the pages.
pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    let folder = &arguments.folder;
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::Message(format!("{}: {error}", folder.display())))?;
    let mut command = CommandLine::command();
    command.build();
    write_pages(&command, folder)?;
    Ok(Outcome::Done)
}

/// Writes the page of a command and those of the commands below it.
fn write_pages(command: &Command, folder: &Path) -> CommandResult<()> {
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)
        .map_err(|error| Failure::Message(format!("{}: {error}", page.get_filename())))?;
    write_atomically(&folder.join(page.get_filename()), |out| out.write_all(&text))?;
    let shown = command.get_subcommands().filter(|below| below.get_name() != "help");
    shown.filter(|below| !below.is_hide_set()).try_for_each(|below| write_pages(below, folder))
}
