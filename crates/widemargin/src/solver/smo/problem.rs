//! The quadratic program and its solution.

use crate::solver::Outcome;

/// A quadratic program; see the [module](crate::solver::smo) for the formula.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Linear term p.
    pub linear: Vec<f64>,
    /// Lower bounds l.
    pub lower: Vec<f64>,
    /// Upper bounds u; may be infinite where `ridge` is positive.
    pub upper: Vec<f64>,
    /// Diagonal r added to the matrix, if any.
    pub ridge: Option<Vec<f64>>,
    /// Group (0 or 1) of every variable; `None` when all are in one.
    pub groups: Option<Vec<u8>>,
    /// A feasible point to start from; it fixes the sums.
    pub start: Vec<f64>,
    /// Share of its box within which a variable counts as at the bound when multipliers are read off;
    /// [`NEXT_TO_BOUND`](Self::NEXT_TO_BOUND) where the start is the solution of another problem.
    pub settled: f64,
    /// Variables (ascending) that are thought not to end at zero and so begin as the working set.
    pub likely: Vec<u32>,
}

impl Problem {
    /// A foreign start leaves variables this near to their bounds that pair steps from a start of its
    /// own would have put on them; where none is inside, those must not decide the multiplier.
    pub const NEXT_TO_BOUND: f64 = 1e-6;
}

/// Accuracy and effort of a solve.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Largest violation m − M accepted.
    pub tol: f64,
    /// Whether variables that seem settled are set aside.
    pub shrinking: bool,
    /// Limit on pair steps.
    pub max_iterations: u64,
    /// Largest working set.
    pub working_set: usize,
    /// Most variables of a problem that holds all the rows it needs instead of taking working sets.
    pub hold_up_to: usize,
    /// Fewest variables for which setting some aside pays for packing the rest anew.
    pub shrink_from: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tol: 1e-3,
            shrinking: true,
            max_iterations: u64::MAX,
            working_set: 2048,
            hold_up_to: 4096,
            shrink_from: 4000,
        }
    }
}

/// A solution with its certificate.
#[derive(Clone, Debug)]
pub struct Solution {
    /// The point β.
    pub beta: Vec<f64>,
    /// Gradient f at β.
    pub gradient: Vec<f64>,
    /// Multiplier ρ of each group's sum constraint: f = ρ on variables strictly inside their box.
    pub multipliers: Vec<f64>,
    /// How it ended, objectives (`dual` is minus the minimum; `primal` is `dual` plus the gap).
    pub outcome: Outcome,
}
