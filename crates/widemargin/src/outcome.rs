//! How a solver ended, and what it can prove about its solution.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a computation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Status {
    /// The promised tolerance was verified on the full problem with a fresh gradient.
    Solved,
    /// Rounding stopped progress with a violation above the tolerance but below ten times it.
    AlmostSolved,
    /// The iteration limit was reached.
    IterationLimit,
    /// The time limit was reached.
    TimeLimit,
    /// The user asked to stop.
    Interrupted,
    /// No further progress was possible; the kernel matrix is probably not positive semidefinite.
    NumericalTrouble,
}

impl Status {
    /// Whether the tolerance was met.
    pub fn is_solved(self) -> bool {
        self == Self::Solved
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Solved => "solved",
            Self::AlmostSolved => "almost solved",
            Self::IterationLimit => "iteration limit reached",
            Self::TimeLimit => "time limit reached",
            Self::Interrupted => "interrupted",
            Self::NumericalTrouble => "numerical trouble",
        })
    }
}

/// What a solver reached, summed or taken at its worst over the sub-problems of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// How it ended; the worst of the sub-problems.
    pub status: Status,
    /// Primal objective.
    pub primal: f64,
    /// Dual objective, as a maximum: at most the primal.
    pub dual: f64,
    /// Largest m(α) − M(α), on the full problem with a fresh gradient.
    pub violation: f64,
    /// Pair steps of the inner solver.
    pub iterations: u64,
    /// Working sets solved.
    pub blocks: u64,
    /// Kernel rows asked for, each counted once (parts of rows by their share).
    pub kernel_rows: u64,
}

impl Outcome {
    /// Primal minus dual objective.
    pub fn gap(&self) -> f64 {
        self.primal - self.dual
    }

    /// Whether its numbers can be trusted: objectives are numbers, and finite where it is solved.
    pub fn is_finite(&self) -> bool {
        let finite = self.primal.is_finite() && self.dual.is_finite() && self.violation.is_finite();
        let numbers = !(self.primal.is_nan() || self.dual.is_nan() || self.violation.is_nan());
        finite || (numbers && !matches!(self.status, Status::Solved | Status::AlmostSolved))
    }

    /// The same, which is not solved where a number is not finite.
    #[must_use]
    pub(crate) fn with_checked_status(self) -> Self {
        let status = if self.is_finite() { self.status } else { Status::NumericalTrouble };
        Self { status, ..self }
    }

    /// Joins the outcome of another sub-problem.
    #[must_use]
    pub(crate) fn join(self, other: Self) -> Self {
        Self {
            status: self.status.max(other.status),
            primal: self.primal + other.primal,
            dual: self.dual + other.dual,
            violation: self.violation.max(other.violation),
            iterations: self.iterations + other.iterations,
            blocks: self.blocks + other.blocks,
            kernel_rows: self.kernel_rows + other.kernel_rows,
        }
    }
}
