//! What can end a command, and the exit code and message each end gives.

use std::fmt;
use std::io;
use std::process::ExitCode;

use widemargin::Error;
use widemargin::Status;

/// How a command that did its work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything asked for was done.
    Done,
    /// A model was written, but its tolerance was not reached.
    NotConverged,
    /// --max-time ended the work; what was reached is kept.
    TimeLimit,
    /// Ctrl-C ended the work; what was reached is kept.
    Interrupted,
}

/// Exit code of work that --max-time ended: that of `timeout`.
pub(crate) const EXIT_TIME_LIMIT: u8 = 124;

/// Exit code of work that Ctrl-C ended: that of shells.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;

impl From<Status> for Outcome {
    fn from(status: Status) -> Self {
        match status {
            Status::Solved => Self::Done,
            Status::TimeLimit => Self::TimeLimit,
            Status::Interrupted => Self::Interrupted,
            _ => Self::NotConverged,
        }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::SUCCESS,
            Outcome::NotConverged => Self::from(3),
            Outcome::TimeLimit => Self::from(EXIT_TIME_LIMIT),
            Outcome::Interrupted => Self::from(EXIT_INTERRUPTED),
        }
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of the library.
    Library(Error),
    /// The options make no sense together.
    Usage(String),
    /// Anything else.
    Message(String),
    /// --max-time ended the work before there was anything to keep.
    TimeLimit,
    /// The same, with what would help.
    TimeLimitWith(&'static str),
    /// The reader of standard output has closed it; nothing can be reported.
    BrokenPipe,
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Library(Error::Parameter { .. } | Error::UnknownParameter { .. })
            | Self::Usage(_) => ExitCode::from(2),
            Self::Library(Error::Interrupted) => ExitCode::from(EXIT_INTERRUPTED),
            Self::TimeLimit | Self::TimeLimitWith(_) => ExitCode::from(EXIT_TIME_LIMIT),
            Self::BrokenPipe => ExitCode::SUCCESS,
            Self::Library(_) | Self::Message(_) => ExitCode::FAILURE,
        }
    }

    /// What the user may try, for mistakes with one likely cause.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        let Self::Library(error) = self else { return None };
        match error {
            Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("check the path; '-' reads standard input")
            }
            Error::NonFinite { .. } => {
                Some("remove the row or fill the value in; --missing only fills gaps")
            }
            Error::OneClass { .. } => {
                Some("--machine one-class learns from rows of a single kind; check --label-column")
            }
            Error::Labels { expected, .. } if expected.starts_with("one ") => Some(
                "--machine epsilon-svr needs numbers, --machine c-svc classes; \
                      --label-column names the label of a table, --labels a file of labels",
            ),
            Error::UnknownParameter { parameter, .. } => match parameter.as_str() {
                "epochs" | "strategy" | "budget" | "shuffle" => Some("it goes with --online"),
                "penalty" | "solver" | "intercept" => Some("it goes with --linear"),
                "approximate" => Some("it goes with --linear or --kernels"),
                _ => None,
            },
            Error::Format { message, .. } if message.contains("archive unpacks to more") => {
                Some("--max-unpacked allows more")
            }
            Error::TooLarge { what, .. } if what.contains("dense table") => {
                Some("--sparse needs less memory for data with many zeros")
            }
            _ => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Library(error) => error.fmt(f),
            Self::Usage(message) | Self::Message(message) => f.write_str(message),
            Self::TimeLimit => {
                f.write_str("the time limit was reached before there was a result to keep")
            }
            Self::TimeLimitWith(help) => f.write_str(help),
            Self::BrokenPipe => f.write_str("standard output was closed"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe => {
                Self::BrokenPipe
            }
            other => Self::Library(other),
        }
    }
}

/// What every command returns.
pub(crate) type CommandResult<T = Outcome> = Result<T, Failure>;

/// What a limit or Ctrl-C did not let come about is nothing, for work whose result is saved already.
pub(crate) fn unless_stopped<T>(result: CommandResult<T>) -> CommandResult<Option<T>> {
    match result {
        Err(Failure::TimeLimit | Failure::Library(Error::Interrupted)) => Ok(None),
        other => other.map(Some),
    }
}
