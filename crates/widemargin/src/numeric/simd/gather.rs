//! A part of a symmetric matrix: copies of some columns of rows.

use super::Real;

/// Rows whose lines stay in the cache while columns are written.
const BLOCK: usize = 16;

/// Writes the entries of every row at `columns` into `out`, one row every `stride` places.
///
/// # Panics
/// When a row has no such column, or `out` no room for all of them.
pub(crate) fn gather<T: Real>(rows: &[&[T]], columns: &[u32], out: &mut [T], stride: usize) {
    let Some(last) = columns.iter().copied().max() else { return };
    assert!(rows.iter().all(|row| (last as usize) < row.len()), "columns that exist");
    assert!(columns.len() <= stride, "room for every column");
    for (row, out) in rows.iter().zip(out.chunks_mut(stride)) {
        for (to, &column) in out[..columns.len()].iter_mut().zip(columns) {
            // SAFETY: no column is beyond the last, which every row has.
            *to = unsafe { *row.get_unchecked(column as usize) };
        }
    }
}

/// Makes a matrix symmetric of which rows from `before` to `count` have come: their entries in the
/// columns before become those of the earlier rows in theirs.
///
/// # Panics
/// When a row or column is beyond the matrix.
pub(crate) fn mirror<T: Real>(matrix: &mut [T], stride: usize, before: usize, count: usize) {
    assert!(before <= count && count <= stride, "columns that exist");
    let (earlier, new) = matrix.split_at_mut(before * stride);
    let new = &new[..(count - before) * stride];
    for (b, rows) in earlier.chunks_mut(BLOCK * stride).enumerate() {
        for (j, from) in new.chunks_exact(stride).enumerate() {
            let from = &from[b * BLOCK..][..rows.len() / stride];
            for (row, &value) in rows.chunks_exact_mut(stride).zip(from) {
                row[before + j] = value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{gather, mirror};

    #[test]
    fn entries_stand_in_the_order_of_the_columns() {
        let (first, second) = ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]);
        let mut out = [0.0; 7];
        gather(&[&first, &second], &[2, 0], &mut out, 4);
        assert_eq!(out, [3.0, 1.0, 0.0, 0.0, 6.0, 4.0, 0.0]);
    }

    #[test]
    fn mirrored_rows_make_a_symmetric_matrix() {
        let (stride, before, count) = (48, 37, 41);
        let value = |i: usize, j: usize| (i.min(j) * 100 + i.max(j)) as f32;
        let mut matrix = vec![-1.0; count * stride];
        for i in 0..count {
            for j in 0..if i < before { before } else { count } {
                matrix[i * stride + j] = value(i, j);
            }
        }
        mirror(&mut matrix, stride, before, count);
        for (i, row) in matrix.chunks(stride).enumerate() {
            let whole: Vec<f32> = (0..count).map(|j| value(i, j)).collect();
            assert_eq!(row[..count], whole);
            assert!(row[count..].iter().all(|&value| value == -1.0));
        }
    }

    #[test]
    #[should_panic(expected = "columns that exist")]
    fn a_column_too_far_is_refused() {
        gather(&[&[1.0, 2.0]], &[2], &mut [0.0], 1);
    }
}
