//! Wide sparse tables learnt from by the columns that occur in them, so that two rows with a huge index need no
//! number for every column.

use crate::data::{Csr, Dataset, Matrix};
use crate::error::Result;

/// Columns up to which a number for each costs little.
const FEW_COLUMNS: usize = 1 << 20;

/// The columns that occur in a table of many more.
pub(super) struct Occurring {
    columns: usize,
    /// Ascending.
    used: Vec<u32>,
}

impl Occurring {
    /// Those of a sparse table with many columns and values in fewer than half of them; nothing for others.
    ///
    /// # Errors
    /// As [`Matrix::validate`].
    pub(super) fn of(features: &Matrix) -> Result<Option<Self>> {
        let columns = features.columns();
        if columns <= FEW_COLUMNS || !features.is_sparse() || features.nonzeros() > columns / 2 {
            return Ok(None);
        }
        // Places in the narrow table would mean nothing in a message.
        features.validate()?;
        let mut used = features.occurring_columns();
        if used.is_empty() {
            used.push(0);
        }
        Ok(Some(Self { columns, used }))
    }

    /// The share of the columns that occur.
    pub(super) fn share(&self) -> f64 {
        self.used.len() as f64 / self.columns as f64
    }

    /// The data with these columns alone.
    pub(super) fn narrowed(&self, data: &Dataset) -> Result<Dataset> {
        data.clone().with_features(self.gathered(data.features()))
    }

    /// These columns of a table.
    pub(super) fn gathered(&self, wide: &Matrix) -> Matrix {
        let place = |column: usize| self.used.binary_search(&(column as u32)).ok();
        table(wide, self.used.len(), |column| place(column).map(|place| place as u32))
    }

    /// A table of these columns with all others, which are 0.
    pub(super) fn spread(&self, narrow: &Matrix) -> Matrix {
        table(narrow, self.columns, |column| Some(self.used[column]))
    }
}

/// A sparse table whose columns have other places, in the same order.
fn table(rows: &Matrix, columns: usize, place: impl Fn(usize) -> Option<u32>) -> Matrix {
    let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..rows.rows() {
        rows.for_each_nonzero(i, |column, value| {
            if let Some(place) = place(column) {
                indices.push(place);
                values.push(value);
            }
        });
        starts.push(indices.len());
    }
    Matrix::SparseF64(Csr::from_ascending(columns, starts, indices, values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn rows(columns: usize, value: f64) -> Matrix {
        let indices = vec![2, columns as u32 - 1, 2, 9];
        let rows = Csr::new(columns, vec![0, 2, 2, 4], indices, vec![0.5, value, 1.5, 4.0]);
        Matrix::SparseF64(rows.unwrap())
    }

    #[test]
    fn narrow_tables_become_the_wide_ones_again() {
        let wide = rows(1 << 27, -2.0);
        let occurring = Occurring::of(&wide).unwrap().unwrap();
        let narrow = occurring.gathered(&wide);
        assert_eq!((narrow.rows(), narrow.columns()), (3, 3));
        assert_eq!(occurring.spread(&narrow), wide);
        assert_eq!(occurring.spread(&narrow.into_layout(crate::data::Layout::Dense)), wide);
        assert_eq!(occurring.share(), 3.0 / f64::from(1 << 27));
    }

    #[test]
    fn few_columns_stay_and_numbers_that_are_not_finite_keep_their_place() {
        assert!(Occurring::of(&rows(FEW_COLUMNS, 1.0)).unwrap().is_none());
        let error = Occurring::of(&rows(1 << 27, f64::NAN)).err().unwrap();
        assert!(matches!(error, Error::NonFinite { row: 1, column: 0x800_0000, .. }), "{error:?}");
        let empty = Csr::new(1 << 27, vec![0, 0], Vec::new(), Vec::<f64>::new()).unwrap();
        let occurring = Occurring::of(&Matrix::SparseF64(empty.clone())).unwrap().unwrap();
        assert_eq!(occurring.gathered(&Matrix::SparseF64(empty)).columns(), 1);
    }
}
