//! What has to be known about the columns of a table before its rows are packed.

use crate::data::Matrix;

/// Columns above which those of sparse tables are listed, since a few rows could claim any number.
pub(super) const MANY_COLUMNS: usize = 1 << 22;

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
        let mut used = Vec::new();
        let columns = if matrix.is_sparse() && matrix.columns() > MANY_COLUMNS {
            for &row in order {
                matrix.for_each_nonzero(row, |column, _| used.push(column as u32));
            }
            used.sort_unstable();
            used.dedup();
            used.len()
        } else {
            matrix.columns()
        };
        let listed = !used.is_empty() || columns < matrix.columns();
        let place = |column: usize| match listed {
            true => used.partition_point(|&other| (other as usize) < column),
            false => column,
        };
        let mut counts = vec![0_usize; columns];
        let mut sums = vec![0.0; columns];
        let mut negative = None;
        for &row in order {
            matrix.for_each_nonzero(row, |column, value| {
                let at = place(column);
                counts[at] += 1;
                sums[at] += value;
                if value < 0.0 && negative.is_none() {
                    negative = Some((row, column, value));
                }
            });
        }
        if !listed {
            used = (0..columns).filter(|&k| counts[k] > 0).map(|k| k as u32).collect();
            sums = used.iter().map(|&k| sums[k as usize]).collect();
        }
        let means = sums.into_iter().map(|sum| sum / order.len() as f64).collect();
        let nonzeros = counts.iter().sum();
        Self { rows: order.len(), used, nonzeros, means, negative }
    }

    /// Share of the values in used columns that are not zero.
    pub(super) fn density(&self) -> f64 {
        self.nonzeros as f64 / ((self.rows * self.used.len()) as f64).max(1.0)
    }
}
