//! What a site needs of a machine: the dual problems of its functions over any rows, and the test whether
//! another row would change their solution.

use super::message::Row;
use crate::context::Context;
use crate::error::Result;
use crate::machine::{LocalStart, SolvedDual};

/// The problem that all sites solve together.
///
/// Its functions are solved one by one; each is a dual problem whose constraints belong to rows, so that
/// a solution over some rows is one over all rows if no other row violates its constraint.
pub(crate) trait LocalProblem: Send + Sync {
    /// Rows with labels and weights.
    type Table: Clone + Send + Sync;

    /// A number that differs between problems.
    fn fingerprint(&self) -> u64;

    /// Number of functions.
    fn functions(&self) -> usize;

    /// Largest violation of a constraint that verification accepts; solutions are at least twice as
    /// accurate, so that rows which took part in them pass.
    fn tolerance(&self) -> f64;

    /// Adds rows below those of a table.
    fn append(&self, table: &mut Self::Table, rows: &[Row]) -> Result<()>;

    /// A table without rows.
    fn empty(&self) -> Self::Table;

    /// A row as it is sent.
    fn row(&self, table: &Self::Table, place: usize, id: u64) -> Row;

    /// Label and weight of a row.
    fn label(&self, table: &Self::Table, place: usize) -> (f64, f64);

    /// Whether rows of a label belong to a function.
    fn takes(&self, function: usize, label: f64) -> bool;

    /// Solves the functions that have a start.
    fn solve(
        &self,
        table: &Self::Table,
        starts: &[Option<LocalStart<'_>>],
        context: &Context,
    ) -> Result<Vec<Option<SolvedDual>>>;

    /// Whether values of two solutions w, w′ differ by at most ‖w − w′‖ √k(x, x).
    fn is_semidefinite(&self) -> bool;

    /// Values of all functions, before offsets, on some rows of `table`, row by row.
    fn values(
        &self,
        support: &Self::Table,
        coefficients: &[Vec<(usize, f64)>],
        table: &Self::Table,
        rows: &[usize],
        context: &Context,
    ) -> Result<Vec<f64>>;

    /// By how much a row without a coefficient violates its constraint; at most 0 if it does not.
    fn slack(&self, function: usize, label: f64, value: f64) -> f64;

    /// What a violation adds to the primal objective.
    fn row_loss(&self, label: f64, weight: f64, slack: f64) -> f64;
}
