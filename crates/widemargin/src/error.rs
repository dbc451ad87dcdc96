//! The one error type of the library: each variant says what was expected, what was found and where.

use std::path::PathBuf;

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong before, during or after training.
///
/// Non-convergence is not here: it is a [`Status`](crate::solver::Status) carried by the model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be opened, read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// File the operation was on; `-` is standard input or output.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },

    /// A text or binary file does not follow its format.
    #[error("{}:{line}:{column}: expected {expected}, found {found}", path.display())]
    Parse {
        /// File being read; `-` is standard input.
        path: PathBuf,
        /// Line, from 1; for binary files 1.
        line: usize,
        /// Column in bytes, from 1; for binary files the byte offset plus 1.
        column: usize,
        /// What the format asks for here.
        expected: String,
        /// What stands there.
        found: String,
    },

    /// A file is of a kind this build or this operation cannot read.
    #[error("{}: {message}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Why it cannot be used.
        message: String,
    },

    /// A value in the data is NaN or infinite.
    #[error("row {row}, feature {column}: expected a finite number, found {value}")]
    NonFinite {
        /// Row, from 1.
        row: usize,
        /// Feature, from 1.
        column: usize,
        /// The value.
        value: f64,
    },

    /// The data has no rows, or no features.
    #[error("expected at least one {what}, found none")]
    Empty {
        /// `row`, `feature`, ...
        what: &'static str,
    },

    /// A classifier was given rows of a single class.
    #[error("expected at least two classes, found only '{label}'")]
    OneClass {
        /// The one label present.
        label: String,
    },

    /// Two things that must have the same length do not.
    #[error("{what}: expected {expected}, found {found}")]
    Length {
        /// What was counted.
        what: String,
        /// The count it has to have.
        expected: usize,
        /// The count it has.
        found: usize,
    },

    /// A parameter is outside its range.
    #[error("parameter {name}: expected {expected}, found {found}")]
    Parameter {
        /// Name as in the public interface.
        name: &'static str,
        /// The admissible range.
        expected: String,
        /// The value given.
        found: String,
    },

    /// A machine was given a parameter that it does not have.
    #[error("{machine} has no parameter '{parameter}'; it has {known}")]
    UnknownParameter {
        /// The machine.
        machine: String,
        /// The parameter.
        parameter: String,
        /// The parameters that it has.
        known: String,
    },

    /// The labels do not suit the machine.
    #[error("labels: expected {expected}, found {found}")]
    Labels {
        /// What the machine needs.
        expected: String,
        /// What the data has.
        found: String,
    },

    /// No feasible point exists for the requested ν.
    #[error("nu = {nu} is infeasible: {reason}")]
    InfeasibleNu {
        /// The value asked for.
        nu: f64,
        /// The largest feasible value and what bounds it.
        reason: String,
    },

    /// The kernel and the data do not fit together.
    #[error("kernel {kernel}: expected {expected}, found {found}")]
    Kernel {
        /// Name of the kernel.
        kernel: String,
        /// What it needs.
        expected: String,
        /// What it was given.
        found: String,
    },

    /// Kernel values are too large for the precision.
    #[error(
        "kernel {kernel}: expected values within {precision} precision, found about {size:e} in row \
         {row}; scale the data or choose smaller kernel parameters"
    )]
    Overflow {
        /// Name of the kernel.
        kernel: String,
        /// Row, from 1.
        row: usize,
        /// Size of the values.
        size: f64,
        /// `single` or `double`.
        precision: &'static str,
    },

    /// The operation would need more memory than allowed or addressable.
    #[error("{what} needs {bytes} bytes, more than the limit of {limit} bytes")]
    TooLarge {
        /// What would be allocated.
        what: String,
        /// Its size.
        bytes: u128,
        /// The limit in force.
        limit: u128,
    },

    /// The system has no memory left.
    #[error("out of memory: {bytes} bytes for {what}; use a smaller cache or fewer rows")]
    OutOfMemory {
        /// What was to be allocated.
        what: &'static str,
        /// Its size.
        bytes: usize,
    },

    /// The model cannot do what was asked.
    #[error("model: {message}")]
    Model {
        /// Which ability is missing, and how to get it.
        message: String,
    },

    /// A message between the sites of a distributed training is not what it has to be.
    #[error("message: expected {expected}, found {found}")]
    Message {
        /// What the receiver needs.
        expected: String,
        /// What came.
        found: String,
    },

    /// A journal of a search cannot be continued.
    #[error("{}: expected the journal of this search, found {found}; name another file, or delete it to begin anew", path.display())]
    Journal {
        /// The file.
        path: PathBuf,
        /// What it holds.
        found: String,
    },

    /// A thread pool could not be started.
    #[error("cannot start {threads} threads: {message}")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// The error of the operating system.
        message: String,
    },

    /// The user asked to stop before there was anything to keep.
    #[error("interrupted before a model existed")]
    Interrupted,
}

impl Error {
    /// Wraps an operating-system error with the file it concerns.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io { path: path.into(), source }
    }

    /// A parameter outside its range.
    pub fn parameter(
        name: &'static str,
        expected: impl Into<String>,
        found: impl ToString,
    ) -> Self {
        Self::Parameter { name, expected: expected.into(), found: found.to_string() }
    }

    /// Checks that a parameter is finite and above 0.
    pub(crate) fn check_positive(name: &'static str, value: f64) -> Result<()> {
        match value.is_finite() && value > 0.0 {
            true => Ok(()),
            false => Err(Self::parameter(name, "a finite number above 0", value)),
        }
    }

    /// Checks that a parameter is finite and at least 0.
    pub(crate) fn check_not_negative(name: &'static str, value: f64) -> Result<()> {
        match value.is_finite() && value >= 0.0 {
            true => Ok(()),
            false => Err(Self::parameter(name, "a finite number of at least 0", value)),
        }
    }

    /// A kernel that does not fit the data.
    pub(crate) fn kernel(
        kernel: impl Into<String>,
        expected: impl Into<String>,
        found: impl ToString,
    ) -> Self {
        Self::Kernel { kernel: kernel.into(), expected: expected.into(), found: found.to_string() }
    }

    /// Labels that do not suit the machine.
    pub(crate) fn labels(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self::Labels { expected: expected.into(), found: found.into() }
    }

    /// A model that cannot do what was asked.
    pub(crate) fn model(message: impl Into<String>) -> Self {
        Self::Model { message: message.into() }
    }

    /// A message that is not what it has to be.
    pub(crate) fn message(expected: impl Into<String>, found: impl ToString) -> Self {
        Self::Message { expected: expected.into(), found: found.to_string() }
    }

    /// A length that does not match.
    pub fn length(what: impl Into<String>, expected: usize, found: usize) -> Self {
        Self::Length { what: what.into(), expected, found }
    }
}
