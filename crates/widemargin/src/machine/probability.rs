//! Probabilities of classes from calibrated decision values.
//!
//! One-vs-one and DAG couple the probabilities of all pairs as LIBSVM does; one-vs-rest divides the
//! probabilities of the classes by their sum; an error-correcting code couples the probabilities of
//! its splits.

use super::model::{Calibration, ClassTable, Scheme};
use super::predictor::Predictor;
use crate::data::{Dense, Label, Labels, Matrix};
use crate::error::{Error, Result};
use crate::solver::calibration::{
    Sigmoid, couple_pairs, couple_splits, density_probability, isotonic_value,
};

/// Probabilities of the sides of a function stay this far from 0 and 1, as in LIBSVM.
const SMALLEST: f64 = 1e-7;

impl Predictor<'_> {
    /// The probability of every class, one row per row of `features`, classes in the model's order;
    /// for one-class machines the probabilities of inside and outside.
    ///
    /// # Errors
    /// [`Error::Model`] when the model was not calibrated or is a regressor; otherwise as
    /// [`decision_values`](Self::decision_values).
    pub fn probabilities(&self, features: &Matrix) -> Result<Dense<f64>> {
        self.check_calibrated()?;
        self.probabilities_of(&self.decision_values(features)?)
    }

    /// The probabilities that decision values stand for.
    ///
    /// # Errors
    /// [`Error::Model`] when the model was not calibrated or is a regressor.
    pub fn probabilities_of(&self, values: &Dense<f64>) -> Result<Dense<f64>> {
        let calibration = self.check_calibrated()?;
        if let Calibration::Density { marks } = calibration {
            let inside = |i: usize| density_probability(marks, values.row(i)[0]);
            let both = (0..values.rows()).flat_map(|i| [inside(i), 1.0 - inside(i)]);
            return Dense::new(values.rows(), 2, both.collect());
        }
        if let Calibration::Softmax | Calibration::Shares = calibration {
            // One function of two classes.
            let both = values.columns() == 1 && self.model().classes.is_some();
            let width = if both { 2 } else { values.columns() };
            let row = |i: usize| match (calibration, both) {
                (Calibration::Shares, _) => values.row(i).iter().map(|v| v.min(1.0)).collect(),
                (_, true) => softmax(&[values.row(i)[0], 0.0]),
                (_, false) => softmax(values.row(i)),
            };
            return Dense::new(values.rows(), width, (0..values.rows()).flat_map(row).collect());
        }
        let Some(table) = &self.model().classes else { return Err(no_probabilities()) };
        let mut all = Vec::with_capacity(values.rows() * table.names.len());
        for i in 0..values.rows() {
            let sides: Vec<f64> = values
                .row(i)
                .iter()
                .enumerate()
                .map(|(f, &value)| positive_side(calibration, f, value))
                .collect();
            all.extend(classes(table, &sides));
        }
        Dense::new(values.rows(), table.names.len(), all)
    }

    /// The most probable prediction of every row, the first of equals: what LIBSVM's `-b 1` predicts.
    pub fn most_probable(&self, probabilities: &Dense<f64>) -> Labels {
        let best = |i: usize| {
            let row = probabilities.row(i);
            (1..row.len()).fold(0, |best, c| if row[c] > row[best] { c } else { best })
        };
        let rows = 0..probabilities.rows();
        match &self.model().classes {
            Some(table) => {
                let labels: Vec<Label> = rows.map(|i| table.names[best(i)].clone()).collect();
                Labels::from_labels(&labels)
            }
            None => Labels::Int(rows.map(|i| if best(i) == 0 { 1 } else { -1 }).collect()),
        }
    }

    fn check_calibrated(&self) -> Result<&Calibration> {
        match &self.model().calibration {
            Some(Calibration::Laplace { scale }) => Err(Error::model(format!(
                "a regressor has no class probabilities; its noise is Laplace distributed with \
                     scale {scale}"
            ))),
            Some(calibration) => Ok(calibration),
            None => Err(no_probabilities()),
        }
    }
}

fn no_probabilities() -> Error {
    Error::model("has no probabilities; train it with probability estimates")
}

/// ln Σ exp, without overflow.
pub(super) fn log_sum(values: &[f64]) -> f64 {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    largest + values.iter().map(|value| (value - largest).exp()).sum::<f64>().ln()
}

/// Exponentials divided by their sum; equal shares where all are 0.
pub(super) fn softmax(values: &[f64]) -> Vec<f64> {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return vec![1.0 / values.len() as f64; values.len()];
    }
    shares(values.iter().map(|value| (value - largest).exp()).collect())
}

/// Probability of the positive side of function `f`.
fn positive_side(calibration: &Calibration, f: usize, value: f64) -> f64 {
    let probability = match calibration {
        Calibration::Sigmoid { a, b } => Sigmoid { a: a[f], b: b[f] }.probability(value),
        Calibration::Isotonic { knots } => isotonic_value(&knots[f], value),
        _ => 0.5,
    };
    probability.clamp(SMALLEST, 1.0 - SMALLEST)
}

fn classes(table: &ClassTable, sides: &[f64]) -> Vec<f64> {
    match &table.scheme {
        Scheme::OneVsOne | Scheme::Dag => couple_pairs(table.names.len(), sides),
        Scheme::OneVsRest => shares(sides.to_vec()),
        Scheme::ErrorCorrecting(codes) => couple_splits(codes, sides),
    }
}

/// The numbers divided by their sum, which is positive.
fn shares(mut numbers: Vec<f64>) -> Vec<f64> {
    let total: f64 = numbers.iter().sum();
    numbers.iter_mut().for_each(|number| *number /= total);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(scheme: Scheme) -> ClassTable {
        ClassTable { names: (0..3).map(Label::Int).collect(), scheme, support: vec![0; 3] }
    }

    #[test]
    fn one_vs_rest_shares_add_up() {
        assert_eq!(classes(&table(Scheme::OneVsRest), &[0.2, 0.2, 0.6]), [0.2, 0.2, 0.6]);
        assert_eq!(classes(&table(Scheme::OneVsRest), &[0.5, 0.5, 0.25]), [0.4, 0.4, 0.2]);
    }
}
