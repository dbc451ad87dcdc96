//! The command line of widemargin: it reads options, calls the library and prints what it says.
//!
//! Every command is one file under `command`; `libsvm` and `liblinear` hold the programs that stand
//! in for those. Nothing here computes: numbers come from the library.

mod arguments;
mod command;
mod data_file;
mod evaluation;
mod failure;
mod help;
mod input_lines;
mod interrupt;
mod liblinear;
mod libsvm;
mod model_file;
mod picture;
mod progress;
mod report;
mod session;
mod table;
mod terminal;
mod usage;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;

use crate::command::CommandLine;
use crate::failure::Outcome;
use crate::interrupt::Interrupt;
use crate::libsvm::Program;

/// Keeps what is freed for the next list of the same size: the C library gives lists of a hundred
/// kilobytes back to the system each time, which took up to a quarter of short trainings on two
/// threads.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some((program, rest)) = stand_in(&arguments) {
        return program.run(rest, &Interrupt::install());
    }
    let outcome = match help::requested(&arguments) {
        Some(text) => text.and_then(|text| terminal::print(&text)).map(|()| Outcome::Done),
        None => arguments::check_equals(&arguments)
            .and_then(|()| CommandLine::parse_from(arguments).run(&Interrupt::install())),
    };
    match outcome {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            terminal::report(&failure);
            failure.exit_code()
        }
    }
}

/// The LIBSVM program asked for, by the name of this binary or as the first argument.
fn stand_in(arguments: &[OsString]) -> Option<(Program, &[OsString])> {
    let called_as = Path::new(arguments.first()?).file_stem()?.to_str()?;
    if let Some(program) = Program::called(called_as) {
        return Some((program, &arguments[1..]));
    }
    let program = Program::named(arguments.get(1)?.to_str()?)?;
    Some((program, &arguments[2..]))
}
