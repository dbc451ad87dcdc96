//! `cross-validate`: how good a machine is on rows it was not trained on.

use std::path::PathBuf;

use clap::Args;

use crate::arguments::{InputArguments, MachineArguments, ResourceArguments, ScaleArguments};
use crate::failure::{CommandResult, Failure};
use crate::interrupt::Interrupt;

/// Estimate how good a machine is by k-fold cross-validation
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  widemargin cross-validate heart.csv --c 10 --scale standard
  widemargin cross-validate prices.csv --machine epsilon-svr --folds 10 --json")]
pub(crate) struct Arguments {
    /// Data file; '-': standard input
    data: PathBuf,

    /// Number of parts; each is predicted by a machine trained on the others
    #[arg(long, value_name = "K", default_value_t = 5)]
    folds: usize,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    machine: MachineArguments,
    #[command(flatten)]
    scale: ScaleArguments,
    #[command(flatten)]
    input: InputArguments,
    #[command(flatten)]
    resources: ResourceArguments,
}

/// Cross-validates.
pub(crate) fn run(_arguments: &Arguments, _interrupt: &Interrupt) -> CommandResult {
    Err(Failure::Message("not yet".into()))
}
