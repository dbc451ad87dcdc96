//! The same classifier with its classes in another order.
//!
//! A function f of the pair (i, j) becomes −f when the pair turns round; support vectors move with
//! their class.

use super::codes::OutputCode;
use super::model::{Calibration, ClassTable, Model, Scheme};
use super::vote::pair_index;
use crate::data::{ClassOrder, Labels};

impl Model {
    /// The same model with ascending classes (LIBSVM keeps them as they come in the file).
    ///
    /// Models without classes, those whose classes ascend already, and those of classical machines,
    /// which put them in order when they train, come back as they are.
    #[must_use]
    pub fn with_sorted_classes(self) -> Self {
        let Some(table) = &self.classes else { return self };
        let labels = Labels::from_labels(&table.names);
        let Ok(sorted) = labels.classes(ClassOrder::Sorted) else { return self };
        // old class → new class
        let rank: Vec<usize> = sorted.codes.iter().map(|&code| code as usize).collect();
        if rank.is_sorted() || sorted.names.len() != table.names.len() {
            return self;
        }
        self.with_class_order(&rank)
    }

    /// `rank[old]` is the new place of class `old`.
    fn with_class_order(mut self, rank: &[usize]) -> Self {
        let Some(table) = &self.classes else { return self };
        let classes = rank.len();
        let mut old_of = vec![0; classes];
        for (old, &new) in rank.iter().enumerate() {
            old_of[new] = old;
        }
        let mut starts = vec![0];
        for count in &table.support {
            starts.push(starts[starts.len() - 1] + count);
        }
        let order: Vec<usize> =
            old_of.iter().flat_map(|&old| starts[old]..starts[old + 1]).collect();
        // Function and sign of every new function.
        let sources: Vec<(usize, f64)> = match &table.scheme {
            Scheme::OneVsOne | Scheme::Dag => (0..classes)
                .flat_map(|i| (i + 1..classes).map(move |j| (i, j)))
                .map(|(i, j)| match (old_of[i], old_of[j]) {
                    (a, b) if a < b => (pair_index(classes, a, b), 1.0),
                    (a, b) => (pair_index(classes, b, a), -1.0),
                })
                .collect(),
            Scheme::OneVsRest => old_of.iter().map(|&old| (old, 1.0)).collect(),
            Scheme::ErrorCorrecting(_) => (0..self.outputs()).map(|f| (f, 1.0)).collect(),
        };
        let scheme = match &table.scheme {
            Scheme::ErrorCorrecting(codes) => {
                let rows = old_of.iter().map(|&old| codes[old].clone()).collect();
                Scheme::ErrorCorrecting(OutputCode { rows, decoding: codes.decoding })
            }
            other => other.clone(),
        };
        let classes = ClassTable {
            names: old_of.iter().map(|&old| table.names[old].clone()).collect(),
            scheme,
            support: old_of.iter().map(|&old| table.support[old]).collect(),
        };
        if self.body.get_mut().reorder(&sources, &order) {
            self.calibration = self.calibration.as_ref().map(|found| turned(found, &sources));
            self.classes = Some(classes);
        }
        self
    }
}

/// P(first | f) of a turned pair is 1 − P(first | −f).
fn turned(calibration: &Calibration, sources: &[(usize, f64)]) -> Calibration {
    match calibration {
        Calibration::Sigmoid { a, b } => Calibration::Sigmoid {
            // 1 − 1/(1 + exp(−A f + B)) = 1/(1 + exp(A f − B))
            a: sources.iter().map(|&(f, _)| a[f]).collect(),
            b: sources.iter().map(|&(f, sign)| sign * b[f]).collect(),
        },
        Calibration::Isotonic { knots } => Calibration::Isotonic {
            knots: sources
                .iter()
                .map(|&(f, sign)| match sign > 0.0 {
                    true => knots[f].clone(),
                    false => knots[f].iter().rev().map(|&(v, p)| (-v, 1.0 - p)).collect(),
                })
                .collect(),
        },
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;
    use crate::data::{Dataset, Dense, Label, Matrix};
    use crate::machine::{CalibrationMethod, Machine, Svc};
    use crate::operation::calibrate::calibrate;

    /// Rows around three corners; labels first seen as 3, 1, 2.
    fn corners() -> Dataset {
        let centres = [(0.0, 0.0), (2.0, 0.0), (0.0, 2.0)];
        let values = (0..60).flat_map(|i| {
            let (x, y) = centres[i % 3];
            let spread = |k: usize| 1.5 * ((i * k % 17) as f64 / 17.0 - 0.5);
            [x + spread(5), y + spread(7)]
        });
        let labels = (0..60).map(|i| [3, 1, 2][i % 3]).collect();
        let rows = Matrix::DenseF64(Dense::new(60, 2, values.collect()).unwrap());
        Dataset::new(rows, Labels::Int(labels)).unwrap()
    }

    #[test]
    fn sorting_the_classes_changes_no_answer() {
        let (data, context) = (corners(), Context::new());
        for scheme in [Scheme::OneVsOne, Scheme::OneVsRest, Scheme::Dag] {
            for method in [CalibrationMethod::Sigmoid, CalibrationMethod::Isotonic] {
                let svc = Svc {
                    scheme: scheme.clone(),
                    class_order: ClassOrder::FirstSeen,
                    ..Svc::default()
                };
                let model = svc.fit(&data, &context).unwrap();
                let model = calibrate(&svc, &data, model, method, &context).unwrap();
                let sorted = model.clone().with_sorted_classes();
                sorted.validate().unwrap();
                let names = sorted.classes.as_ref().unwrap().names.clone();
                assert_eq!(names, [1, 2, 3].map(Label::Int));
                let (before, after) =
                    (model.predictor(&context).unwrap(), sorted.predictor(&context).unwrap());
                let expected = before.predict(data.features()).unwrap();
                assert_eq!(after.predict(data.features()).unwrap(), expected);
                let before = before.probabilities(data.features()).unwrap();
                let after = after.probabilities(data.features()).unwrap();
                for i in 0..data.rows() {
                    let (old, new) = (before.row(i), after.row(i));
                    // Old order 3, 1, 2.
                    for (a, b) in [(old[1], new[0]), (old[2], new[1]), (old[0], new[2])] {
                        assert!((a - b).abs() < 1e-2, "row {i}: {a} and {b}");
                    }
                }
            }
        }
    }
}
