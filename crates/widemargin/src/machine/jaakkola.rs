//! Jaakkola's heuristic for the width of a Gaussian kernel (Jaakkola, Diekhaus and Haussler 1999).
//!
//! σ² is the median of the squared distances of rows of different classes, over all such pairs or from every
//! row to the nearest row of another class, and γ = 1 / (2 σ²).

use crate::data::{ClassOrder, Labels, Matrix};
use crate::error::{Error, Result};
use crate::numeric::random::Generator;

/// Rows that are compared at most, drawn with the seed of the training: their pairs number some millions.
const MOST_ROWS: usize = 3000;

/// Which distances the median is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Distances {
    /// Those of all pairs of rows of different classes.
    AllPairs,
    /// From every row to the nearest of another class.
    Nearest,
}

/// γ by the median distance of rows of different classes.
///
/// # Errors
/// [`Error::Labels`] without two classes, [`Error::Parameter`] where most rows of different classes are equal.
pub(super) fn gamma(which: Distances, rows: &Matrix, labels: &Labels, seed: u64) -> Result<f64> {
    let classes = labels.classes(ClassOrder::Sorted)?;
    if classes.count() < 2 {
        return Err(Error::labels("two classes for gamma jaakkola", "one class"));
    }
    let mut chosen: Vec<usize> = (0..rows.rows()).collect();
    if chosen.len() > MOST_ROWS {
        Generator::new(seed ^ 0x1aa6).shuffle(&mut chosen);
        chosen.truncate(MOST_ROWS);
        chosen.sort_unstable();
    }
    let mut nearest = vec![f64::INFINITY; chosen.len()];
    let mut all = Vec::new();
    let mut own = vec![0.0; rows.columns()];
    let norm = |row: usize| {
        let mut sum = 0.0;
        rows.for_each_nonzero(row, |_, value| sum += value * value);
        sum
    };
    let norms: Vec<f64> = chosen.iter().map(|&row| norm(row)).collect();
    for (i, &row) in chosen.iter().enumerate() {
        rows.copy_row(row, &mut own);
        for (j, &other) in chosen.iter().enumerate().take(i) {
            if classes.codes[row] == classes.codes[other] {
                continue;
            }
            // ‖x − z‖² by the differences where z is not zero, so that equal rows have distance 0.
            let (mut differences, mut covered) = (0.0, 0.0);
            rows.for_each_nonzero(other, |column, value| {
                differences += (own[column] - value) * (own[column] - value);
                covered += own[column] * own[column];
            });
            let squared = differences + (norms[i] - covered).max(0.0);
            match which {
                Distances::AllPairs => all.push(squared),
                Distances::Nearest => {
                    nearest[i] = nearest[i].min(squared);
                    nearest[j] = nearest[j].min(squared);
                }
            }
        }
    }
    if which == Distances::Nearest {
        all = nearest.into_iter().filter(|squared| squared.is_finite()).collect();
    }
    match median(&mut all) {
        Some(squared) if squared > 0.0 => Ok(0.5 / squared),
        _ => Err(Error::parameter(
            "gamma",
            "rows of different classes that differ, for jaakkola",
            "a median distance of 0",
        )),
    }
}

/// The middle number, or the mean of the two in the middle.
fn median(numbers: &mut [f64]) -> Option<f64> {
    let middle = numbers.len() / 2;
    if numbers.is_empty() {
        return None;
    }
    let even = numbers.len().is_multiple_of(2);
    let (below, upper, _) = numbers.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(if even { 0.5 * (lower + upper) } else { upper })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;

    #[test]
    fn medians_of_distances_between_classes() {
        // Class 0 at 0 and 1, class 1 at 3 and 10: squared distances 9, 100, 4, 81.
        let table = Dense::new(4, 1, vec![0.0, 1.0, 3.0, 10.0]).unwrap();
        let rows = Matrix::DenseF64(table);
        let labels = Labels::Int(vec![0, 0, 1, 1]);
        let all = gamma(Distances::AllPairs, &rows, &labels, 0).unwrap();
        assert_eq!(all, 0.5 / 45.0);
        // To the nearest of the other class: 9, 4, 4, 81.
        let nearest = gamma(Distances::Nearest, &rows, &labels, 0).unwrap();
        assert_eq!(nearest, 0.5 / 6.5);
        let one = Labels::Int(vec![0; 4]);
        assert!(matches!(gamma(Distances::AllPairs, &rows, &one, 0), Err(Error::Labels { .. })));
        let same = Matrix::DenseF64(Dense::new(4, 1, vec![1.0; 4]).unwrap());
        assert!(gamma(Distances::AllPairs, &same, &labels, 0).is_err());
    }
}
