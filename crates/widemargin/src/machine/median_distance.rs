//! The median distance of rows, which widths of Gaussian kernels are measured in.

use crate::data::Matrix;

/// Rows of which all pairs are compared; more are thinned evenly.
const MOST_ROWS: usize = 1000;

/// The median of the distances of all pairs of rows, of at most [`MOST_ROWS`] of them; 0 of fewer than two.
pub(super) fn median_distance(features: &Matrix) -> f64 {
    let stride = features.rows().div_ceil(MOST_ROWS).max(1);
    let rows: Vec<usize> = (0..features.rows()).step_by(stride).collect();
    let mut squares =
        if features.is_sparse() { of_sparse(features, &rows) } else { of_dense(features, &rows) };
    let middle = squares.len() / 2;
    if squares.is_empty() {
        return 0.0;
    }
    let (_, median, _) = squares.select_nth_unstable_by(middle, f64::total_cmp);
    median.max(0.0).sqrt()
}

/// Squared distances of all pairs of dense rows, as sums of squared differences.
fn of_dense(features: &Matrix, rows: &[usize]) -> Vec<f64> {
    let width = features.columns();
    let mut table = vec![0.0; rows.len() * width];
    for (out, &i) in table.chunks_exact_mut(width.max(1)).zip(rows) {
        features.copy_row(i, out);
    }
    let row = |a: usize| &table[a * width..][..width];
    let pairs = (0..rows.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
    pairs.map(|(a, b)| row(a).iter().zip(row(b)).map(|(x, z)| (x - z) * (x - z)).sum()).collect()
}

/// Squared distances of all pairs of sparse rows: those of stored values from a row that is spread out, and the
/// squares of what is stored in that row alone.
fn of_sparse(features: &Matrix, rows: &[usize]) -> Vec<f64> {
    let mut spread = vec![0.0; features.columns()];
    let mut squares = Vec::with_capacity(rows.len() * rows.len() / 2);
    for (a, &i) in rows.iter().enumerate() {
        let mut own = 0.0;
        features.for_each_nonzero(i, |j, x| {
            spread[j] = x;
            own += x * x;
        });
        for &other in &rows[..a] {
            let mut square = own;
            features.for_each_nonzero(other, |j, z| {
                let x: f64 = spread[j];
                square += (x - z) * (x - z) - x * x;
            });
            squares.push(square);
        }
        features.for_each_nonzero(i, |j, _| spread[j] = 0.0);
    }
    squares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Layout};

    #[test]
    fn sparse_and_dense_rows_have_the_median_of_all_pairs() {
        let values = vec![0.0, 0.0, 3.0, 0.0, 0.0, 4.0, 0.0, 1.0];
        let dense = Matrix::DenseF64(Dense::new(4, 2, values).unwrap());
        // Squared distances 9, 16, 25, 1, 10, 9; the fourth of the six in their order is 10.
        assert!((median_distance(&dense) - 10.0_f64.sqrt()).abs() < 1e-15);
        let sparse = dense.into_layout(Layout::Sparse);
        assert!(sparse.is_sparse());
        assert!((median_distance(&sparse) - 10.0_f64.sqrt()).abs() < 1e-15);
    }

    #[test]
    fn one_row_has_no_distances() {
        let one = Matrix::DenseF64(Dense::new(1, 2, vec![1.0, 2.0]).unwrap());
        assert_eq!(median_distance(&one), 0.0);
    }
}
