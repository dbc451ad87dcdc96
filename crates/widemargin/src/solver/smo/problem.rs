//! The quadratic program and its solution.

use crate::solver::Outcome;

/// A quadratic program; see the [module](crate::solver::smo) for the formula.
#[derive(Clone, Debug, Default)]
pub(crate) struct Problem {
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
    /// [`BOUND_TOLERANCE`](Self::BOUND_TOLERANCE) where the start is the solution of another problem.
    pub bound_tolerance: f64,
    /// Variables (ascending) expected to be non-zero at the optimum: the first working set.
    pub initial_working_set: Vec<u32>,
}

impl Problem {
    /// Panics unless every array has one entry for each of `n` variables.
    pub(super) fn assert_lengths(&self, n: usize) {
        let arrays = [&self.linear, &self.lower, &self.upper, &self.start];
        assert!(
            arrays.iter().all(|array| array.len() == n),
            "one entry of every array per variable"
        );
    }

    /// A warm start leaves variables this close to bounds that pair steps from a cold start would have
    /// reached exactly; where no variable is inside its box, those must not decide the multiplier.
    pub(crate) const BOUND_TOLERANCE: f64 = 1e-6;
}

/// Accuracy and effort of a solve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Largest KKT violation m − M accepted.
    pub tol: f64,
    /// Difference of primal and dual objective, as a share of the primal one, that is accepted: `tol` is
    /// tightened until it is reached or rounding stops progress. The tolerance alone decides without it.
    pub gap: Option<f64>,
    /// Whether shrinking is used: variables that seem to stay at their bounds are left out.
    pub shrinking: bool,
    /// Limit on pair steps.
    pub max_iterations: u64,
    /// Largest working set.
    pub working_set: usize,
    /// Most variables of a problem that keeps all the rows it needs in memory instead of taking
    /// working sets.
    pub in_memory_up_to: usize,
    /// Most variables inside their boxes for which a Newton step is taken: the memory of its factor is
    /// this number squared, in double precision.
    pub newton_up_to: usize,
    /// Cost of pair steps before a Newton step, in units of what that is expected to cost; at 0 there is
    /// one after every few pair steps.
    pub pairs_share: f64,
    /// Fewest variables for which shrinking pays for packing the rest again.
    pub shrink_from: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tol: 1e-3,
            gap: None,
            shrinking: true,
            max_iterations: u64::MAX,
            working_set: 2048,
            in_memory_up_to: 4096,
            newton_up_to: 4096,
            pairs_share: 1.0,
            shrink_from: 4000,
        }
    }
}

/// A solution with its certificate.
#[derive(Clone, Debug)]
pub(crate) struct Solution {
    /// The point β.
    pub beta: Vec<f64>,
    /// Gradient f at β.
    pub gradient: Vec<f64>,
    /// Multiplier ρ of each group's sum constraint: f = ρ on variables strictly inside their box.
    pub multipliers: Vec<f64>,
    /// How it ended, objectives (`dual` is minus the minimum; `primal` is `dual` plus the gap).
    pub outcome: Outcome,
}
