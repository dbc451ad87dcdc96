//! What the batch solver is given and gives back.

use crate::solver::Outcome;
use crate::solver::s2do::shared::multiclass_loss::MulticlassLoss;

/// A dual problem; see the [module](crate::solver::s2do) for the formula.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    /// The multi-class loss.
    pub loss: MulticlassLoss,
    /// Number of classes, those without examples included.
    pub classes: usize,
    /// Class of every example, ascending.
    pub codes: Vec<u32>,
    /// Bound U of every example.
    pub upper: Vec<f64>,
    /// Variables to start from, example after example; clipped to be feasible.
    pub start: Option<Vec<f64>>,
    /// Whether every class has an offset of its own, which is not penalised.
    pub bias: bool,
}

/// Accuracy and effort of a solve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Largest violation of the optimality conditions accepted.
    pub tol: f64,
    /// Whether examples whose variables seem to stay at their bounds are left out for a while.
    pub shrinking: bool,
    /// Limit on steps.
    pub max_iterations: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { tol: 1e-3, shrinking: true, max_iterations: u64::MAX }
    }
}

/// A solution with its certificate.
#[derive(Clone, Debug)]
pub(crate) struct Solution {
    /// Coefficients of every class's score, projected where the scores sum to zero, example after
    /// example.
    pub coefficients: Vec<f64>,
    /// Offsets added to the scores, one per class.
    pub bias: Vec<f64>,
    /// How it ended.
    pub outcome: Outcome,
}
