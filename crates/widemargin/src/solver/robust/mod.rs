//! Hinge losses that do not follow every row: capped, trimmed, and raised to a power.
//!
//! ```text
//! ramp     minimise over w  ½‖w‖² + Σ uᵢ min(1, max(0, 1 − zᵢ))
//! trimmed  minimise over w  ½‖w‖² + the k smallest of max(0, 1 − zᵢ)
//! power    minimise over w  ½‖w‖² + Σ uᵢ max(0, 1 − zᵢ)ᵖ
//! ```
//!
//! z = Qa are the signed decision values of coefficients a of the rows, and ‖w‖² = aᵀQa. The first two are not
//! convex: [`Local`] descends by the concave-convex procedure (Collobert, Sinz, Weston and Bottou 2006) or by training
//! and dropping rows in turn (Xu, Crammer and Schuurmans 2006), over a matrix ([`MatrixRows`]) or over rows of features
//! ([`FeatureRows`]); [`enumerate`] finds the best of few rows. [`leave_one_out`] is the linear program of Weston and
//! Herbrich (2000).

mod enumerate;
mod feature_rows;
mod leave_one_out;
mod local;
mod power;

pub(crate) use enumerate::enumerate;
pub(crate) use feature_rows::FeatureRows;
pub(crate) use leave_one_out::{LeaveOneOut, leave_one_out};
pub(crate) use local::{Local, Losses, Procedure};
pub(crate) use power::hinge_power;

use crate::context::Context;
use crate::numeric::algebra::dot;
use crate::outcome::Status;
use crate::solver::elliptope::BoxQp;

/// The quadratic form of a problem's rows.
pub(crate) trait SignedRows {
    /// Qa and aᵀQa.
    fn decision(&self, coefficients: &[f64], context: &Context) -> (Vec<f64>, f64);

    /// The λ with the largest Σ `linear`ᵢλᵢ − ½ λᵀQλ over 0 ≤ λ ≤ `upper`, from `start`, and whether it is accurate.
    /// Errors are relative to that maximum less `offset`.
    fn solve(
        &self,
        linear: &[f64],
        upper: &[f64],
        start: &[f64],
        offset: f64,
        context: &Context,
    ) -> (Vec<f64>, bool);
}

/// Rows by the matrix Q of all pairs.
#[derive(Clone, Copy)]
pub(crate) struct MatrixRows<'a> {
    /// Q, n × n.
    pub q: &'a [f64],
}

/// Relative gap of a quadratic program over a matrix up to which it counts as solved.
const SOLVED: f64 = 1e-9;

impl SignedRows for MatrixRows<'_> {
    fn decision(&self, coefficients: &[f64], context: &Context) -> (Vec<f64>, f64) {
        decision(self.q, coefficients, context)
    }

    fn solve(
        &self,
        linear: &[f64],
        upper: &[f64],
        start: &[f64],
        _offset: f64,
        context: &Context,
    ) -> (Vec<f64>, bool) {
        let solution = BoxQp::within(self.q, linear, upper, start, context);
        (solution.lambda, solution.gap <= SOLVED * solution.value.abs().max(1.0))
    }
}

/// A function of the rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fitted {
    /// Coefficients a, to be multiplied by the signs of the rows.
    pub coefficients: Vec<f64>,
    /// Signed decision values z = Qa.
    pub margins: Vec<f64>,
    /// aᵀQa.
    pub squared_norm: f64,
    /// The objective.
    pub objective: f64,
    /// A proven lower bound on the least objective.
    pub bound: f64,
    /// How it ended.
    pub status: Status,
    /// Quadratic programs solved.
    pub rounds: u64,
}

/// Qa and aᵀQa.
fn decision(q: &[f64], coefficients: &[f64], context: &Context) -> (Vec<f64>, f64) {
    let rows: Vec<&[f64]> = q.chunks_exact(coefficients.len()).collect();
    let margins = context.map(&rows, |row| dot(row, coefficients));
    let squared = dot(&margins, coefficients).max(0.0);
    (margins, squared)
}
