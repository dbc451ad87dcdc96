//! Stand-ins for LIBSVM's programs: same options, same files, same summary lines.

mod options;
mod predict;
mod scale;
mod train;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use widemargin::data::Dataset;
use widemargin::data::read::{Format, IndexBase, ReadOptions, read};

use crate::failure::{CommandResult, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::terminal;

/// One of LIBSVM's programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// `svm-train`
    Train,
    /// `svm-predict`
    Predict,
    /// `svm-scale`
    Scale,
}

impl Program {
    /// The program of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "svm-train" => Some(Self::Train),
            "svm-predict" => Some(Self::Predict),
            "svm-scale" => Some(Self::Scale),
            _ => None,
        }
    }

    fn usage(self) -> &'static str {
        match self {
            Self::Train => train::USAGE,
            Self::Predict => predict::USAGE,
            Self::Scale => scale::USAGE,
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
        }
    }
}

/// Threads for a stand-in: `OMP_NUM_THREADS` as for LIBSVM's own OpenMP builds, else all.
fn threads() -> usize {
    std::env::var("OMP_NUM_THREADS").ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// Reads LIBSVM text; of precomputed kernels the serial number in column 0 is dropped.
fn read_data(path: &Path, precomputed: bool) -> CommandResult<Dataset> {
    let options = ReadOptions::new().format(Format::Libsvm);
    let data = if precomputed {
        read(path, &options.index_base(IndexBase::Zero))?.dataset
    } else {
        read(path, &options)?.dataset
    };
    if !precomputed {
        return Ok(data);
    }
    let features = data.features().clone().without_first_column();
    Ok(data.with_features(features)?)
}
