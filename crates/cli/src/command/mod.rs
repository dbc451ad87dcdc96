//! The commands, one file each.

mod cluster;
mod cluster_comparison;
mod compare;
mod completions;
mod compress;
mod convert;
mod cross_validate;
mod distribute;
mod from_disk;
mod inspect;
mod learning_curve;
mod man;
mod plot;
mod predict;
mod prepare;
mod rank;
mod scale;
mod sequence;
mod site;
mod site_pictures;
mod stream;
mod threshold;
mod train;
mod transduce;
mod tune;

use clap::{Parser, Subcommand};

use crate::failure::CommandResult;
use crate::interrupt::Interrupt;

const EXAMPLES: &str = "\
Examples:
  widemargin train heart.csv --c 10 --scale standard -o heart.wm
  widemargin predict new.csv --model heart.wm -o predictions.txt
  widemargin cross-validate heart.csv --kernel poly --degree 2 --folds 10
  widemargin tune heart.csv --scale standard --plot heat.svg -o heart.wm
  widemargin compare heart.csv -o heart.svg
  widemargin inspect heart.wm
  widemargin compress heart.wm --max-loss 0.2% --data held-out.csv -o small.wm
  widemargin plot confusion heart.csv --model heart.wm -o confusion.svg

Exit codes:
  0    done
  1    the data, a file or the model is at fault
  2    the command line is at fault
  3    a model was written, but its tolerance was not reached
  124  stopped by --max-time (what was reached is kept, such as train's best model so far)
  130  stopped by Ctrl-C (train: the best model so far was written)

LIBSVM's own command lines work too: 'widemargin svm-train -c 10 -g 0.1 heart', or this binary
linked under the names svm-train, svm-predict and svm-scale; LIBLINEAR's as 'widemargin ll-train'
and 'widemargin ll-predict', or linked under the names train, predict, liblinear-train and
liblinear-predict.";

/// Train, apply, check and look at support vector machines.
#[derive(Debug, Parser)]
#[command(name = "widemargin", version, after_help = EXAMPLES, max_term_width = 100)]
#[command(arg_required_else_help = true, subcommand_required = true)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

/// Words passed on to one of LIBSVM's programs.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
struct Forwarded {
    /// As for LIBSVM's program; without any, prints them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, num_args = 0..)]
    options: Vec<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Train(train::Arguments),
    Site(site::Arguments),
    Predict(predict::Arguments),
    Cluster(cluster::Arguments),
    CrossValidate(cross_validate::Arguments),
    Tune(tune::Arguments),
    Compare(compare::Arguments),
    Scale(scale::Arguments),
    Inspect(inspect::Arguments),
    Convert(convert::Arguments),
    Compress(compress::Arguments),
    Threshold(threshold::Arguments),
    Sequence(sequence::Arguments),
    Rank(rank::Arguments),
    Plot(plot::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
    /// LIBSVM's svm-train: same options, files and output
    #[command(name = "svm-train")]
    SvmTrain(Forwarded),
    /// LIBSVM's svm-predict: same options, files and output
    #[command(name = "svm-predict")]
    SvmPredict(Forwarded),
    /// LIBSVM's svm-scale: same options, files and output
    #[command(name = "svm-scale")]
    SvmScale(Forwarded),
    /// LIBLINEAR's train: same options, files and output
    #[command(name = "ll-train")]
    LinearTrain(Forwarded),
    /// LIBLINEAR's predict: same options, files and output
    #[command(name = "ll-predict")]
    LinearPredict(Forwarded),
}

impl CommandLine {
    /// Runs the command.
    pub(crate) fn run(self, interrupt: &Interrupt) -> CommandResult {
        match self.command {
            Command::Train(arguments) => train::run(&arguments, interrupt),
            Command::Site(arguments) => site::run(&arguments, interrupt),
            Command::Predict(arguments) => predict::run(&arguments, interrupt),
            Command::Cluster(arguments) => cluster::run(&arguments, interrupt),
            Command::CrossValidate(arguments) => cross_validate::run(&arguments, interrupt),
            Command::Tune(arguments) => tune::run(&arguments, interrupt),
            Command::Compare(arguments) => compare::run(&arguments, interrupt),
            Command::Scale(arguments) => scale::run(&arguments, interrupt),
            Command::Inspect(arguments) => inspect::run(&arguments),
            Command::Convert(arguments) => convert::run(&arguments, interrupt),
            Command::Compress(arguments) => compress::run(&arguments, interrupt),
            Command::Threshold(arguments) => threshold::run(&arguments, interrupt),
            Command::Sequence(arguments) => sequence::run(&arguments, interrupt),
            Command::Rank(arguments) => rank::run(&arguments, interrupt),
            Command::Plot(arguments) => plot::run(&arguments, interrupt),
            Command::Completions(arguments) => completions::run(&arguments),
            Command::Man(arguments) => man::run(&arguments),
            // `main` hands these over before clap sees them; here they are listed in the help.
            Command::SvmTrain(_)
            | Command::SvmPredict(_)
            | Command::SvmScale(_)
            | Command::LinearTrain(_)
            | Command::LinearPredict(_) => Ok(crate::failure::Outcome::Done),
        }
    }
}
