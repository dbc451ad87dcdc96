//! Offsets of the classes by the method of multipliers.

use super::problem::Problem;
use crate::solver::s2do::shared::table::Table;

/// The offsets of the classes: a centre that stays while variables move, and a constant added to
/// every kernel value, which charges offsets by their distance to it.
///
/// A solve moves the centre to the offsets it found and starts again (the proximal point method, on
/// the dual side the method of multipliers for Σᵢ b_{i,c} = 0).
pub(super) struct Offset {
    pub(super) centre: Vec<f64>,
    pub(super) strength: f64,
}

impl Offset {
    pub(super) fn none(problem: &Problem) -> Self {
        Self { centre: vec![0.0; problem.classes], strength: 0.0 }
    }

    /// The offsets that the scores of `table` hold.
    pub(super) fn bias(&self, table: &Table) -> Vec<f64> {
        self.centre.iter().zip(totals(table)).map(|(b, r)| b + self.strength * r).collect()
    }
}

/// Σᵢ b_{i,c} for every class.
pub(super) fn totals(table: &Table) -> Vec<f64> {
    let (mut total, mut own) = (vec![0.0; table.classes], Vec::new());
    for i in 0..table.len() {
        table.coefficients(i, &mut own);
        total.iter_mut().zip(&own).for_each(|(t, b)| *t += b);
    }
    total
}

/// A constant of the size of the kernel values.
pub(super) fn strength(table: &Table) -> f64 {
    let mean = table.diagonal.iter().sum::<f64>() / table.len().max(1) as f64;
    if mean > 0.0 { mean } else { 1.0 }
}
