//! Stand-ins for LIBSVM's programs: same options, same files, same summary lines.

mod options;
mod predict;
mod scale;
mod train;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use widemargin::Context;
use widemargin::data::Layout;
use widemargin::data::read::{Format, IndexBase, Loaded, ReadOptions, StoredPrecision, read};

pub(crate) use options::{Words, unknown};
pub(crate) use predict::{PredictOptions, predict, summary, write as write_predictions};
pub(crate) use train::{class_weights, folds, print_status, training_files, validate};

use crate::failure::{CommandResult, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::liblinear;
use crate::session::Session;
use crate::terminal;

/// One of LIBSVM's or LIBLINEAR's programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// `svm-train`
    Train,
    /// `svm-predict`
    Predict,
    /// `svm-scale`
    Scale,
    /// LIBLINEAR's `train`
    LinearTrain,
    /// LIBLINEAR's `predict`
    LinearPredict,
}

impl Program {
    /// The program of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "svm-train" => Some(Self::Train),
            "svm-predict" => Some(Self::Predict),
            "svm-scale" => Some(Self::Scale),
            "ll-train" => Some(Self::LinearTrain),
            "ll-predict" => Some(Self::LinearPredict),
            _ => None,
        }
    }

    /// The program that this binary stands for when it is called by a name: also LIBLINEAR's own, which
    /// as a first argument would be commands of ours.
    pub(crate) fn called(name: &str) -> Option<Self> {
        match name {
            "train" | "liblinear-train" => Some(Self::LinearTrain),
            "predict" | "liblinear-predict" => Some(Self::LinearPredict),
            name => Self::named(name),
        }
    }

    fn usage(self) -> &'static str {
        match self {
            Self::Train => train::USAGE,
            Self::Predict => predict::USAGE,
            Self::Scale => scale::USAGE,
            Self::LinearTrain => liblinear::TRAIN_USAGE,
            Self::LinearPredict => liblinear::PREDICT_USAGE,
        }
    }

    /// Runs the program; like LIBSVM's it exits with 1 on any mistake and with 0 also when the
    /// iteration limit was reached.
    pub(crate) fn run(self, arguments: &[OsString], interrupt: &Interrupt) -> ExitCode {
        let help = matches!(arguments, [only] if only == "--help" || only == "-help");
        let result = if help || arguments.is_empty() {
            terminal::print(self.usage()).and(if help {
                Ok(Outcome::Done)
            } else {
                Err(Failure::BrokenPipe)
            })
        } else {
            self.execute(arguments, interrupt)
        };
        match result {
            Ok(Outcome::Interrupted) => Outcome::Interrupted.into(),
            Ok(_) => ExitCode::SUCCESS,
            Err(Failure::BrokenPipe) => ExitCode::FAILURE,
            Err(Failure::Usage(message)) => {
                terminal::note(&message);
                let _ = terminal::print(self.usage());
                ExitCode::FAILURE
            }
            Err(failure) => {
                terminal::report(&failure);
                ExitCode::FAILURE
            }
        }
    }

    fn execute(self, arguments: &[OsString], interrupt: &Interrupt) -> CommandResult {
        match self {
            Self::Train => train::run(arguments, interrupt),
            Self::Predict => predict::run(arguments, interrupt),
            Self::Scale => scale::run(arguments, interrupt),
            Self::LinearTrain => liblinear::train(arguments, interrupt),
            Self::LinearPredict => liblinear::predict(arguments, interrupt),
        }
    }
}

/// Threads for a stand-in: `OMP_NUM_THREADS` as for LIBSVM's own OpenMP builds, else all.
fn threads() -> usize {
    std::env::var("OMP_NUM_THREADS").ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// A session of a stand-in: all threads, no progress on the screen.
pub(crate) fn session(interrupt: &Interrupt) -> CommandResult<Session<'_>> {
    let context = Context::new().with_threads(threads())?.with_cancel_token(interrupt.token());
    Ok(Session { context, interrupt, quiet: true, verbose: false })
}

/// Reads LIBSVM text for a kernel; `base` is that of the training file, if known.
pub(crate) fn read_data(
    path: &Path,
    precomputed: bool,
    base: Option<IndexBase>,
    layout: Layout,
    precision: StoredPrecision,
) -> CommandResult<Loaded> {
    let mut options = ReadOptions::new().format(Format::Libsvm).layout(layout).precision(precision);
    if precomputed {
        options = options.index_base(IndexBase::Zero);
    } else if let Some(base) = base {
        options = options.index_base(base);
    }
    Ok(read(path, &options)?)
}
