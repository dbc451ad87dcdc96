//! What has to be known about the columns of a table before its rows are packed.

use crate::data::Matrix;

/// The outcome of one pass over the rows.
pub(super) struct ColumnStatistics {
    /// Number of rows.
    pub(super) rows: usize,
    /// Columns that are not zero everywhere, ascending.
    pub(super) used: Vec<u32>,
    /// Number of values that are not zero.
    pub(super) nonzeros: usize,
    /// Mean of every used column.
    pub(super) means: Vec<f64>,
    /// A place with a negative value: row, column, value.
    pub(super) negative: Option<(usize, usize, f64)>,
}

impl ColumnStatistics {
    /// Of the rows of `matrix` named by `order`.
    pub(super) fn of(matrix: &Matrix, order: &[usize]) -> Self {
        let mut counts = vec![0_usize; matrix.columns()];
        let mut sums = vec![0.0; matrix.columns()];
        let mut negative = None;
        for &row in order {
            matrix.for_each_nonzero(row, |column, value| {
                counts[column] += 1;
                sums[column] += value;
                if value < 0.0 && negative.is_none() {
                    negative = Some((row, column, value));
                }
            });
        }
        let used: Vec<u32> =
            (0..matrix.columns() as u32).filter(|&k| counts[k as usize] > 0).collect();
        let means = used.iter().map(|&k| sums[k as usize] / order.len() as f64).collect();
        let nonzeros = counts.iter().sum();
        Self { rows: order.len(), used, nonzeros, means, negative }
    }

    /// Share of the values in used columns that are not zero.
    pub(super) fn density(&self) -> f64 {
        self.nonzeros as f64 / ((self.rows * self.used.len()) as f64).max(1.0)
    }
}
