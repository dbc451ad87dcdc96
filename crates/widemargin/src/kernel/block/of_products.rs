//! Kernels whose values are functions of the same products ⟨x, z⟩, each computed from one table of them
//! when it is asked for: as fast as to read a table of values, and many kernels need one table.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use super::transform::Transform;
use super::{PackedRows, Queries};
use crate::data::{Dense, Matrix};
use crate::error::{Error, Result};
use crate::numeric::InstructionSet;
use crate::numeric::simd::Real;

/// What makes a kernel value of the product of two rows.
#[derive(Clone)]
pub(super) struct ValueOfProduct<T> {
    pub(super) set: InstructionSet,
    pub(super) transform: Transform<T>,
    /// That of every row.
    pub(super) statistics: Vec<T>,
}

impl<T: Real> ValueOfProduct<T> {
    /// The values of row `i` with the rows `columns`, given their products; the same bits as those of a block.
    fn of_row(&self, i: usize, columns: Range<usize>, products: &[T], out: &mut [T]) {
        let Self { set, transform, statistics } = self;
        transform.of_row(*set, products, statistics[i], &statistics[columns], out);
    }
}

/// Rows of one kernel over a table of products.
pub(super) struct OfProducts<T: Copy> {
    table: Dense<T>,
    /// Row of the table of every packed row.
    places: Vec<usize>,
    /// Whether packed rows are those of the table.
    whole: bool,
    value: ValueOfProduct<T>,
    diagonal: Vec<T>,
    columns: usize,
}

impl<T: Real> OfProducts<T> {
    /// `table` holds the products of all rows, of which there are as many as values of `diagonal`.
    pub(super) fn new(
        table: Dense<T>,
        value: ValueOfProduct<T>,
        diagonal: Vec<T>,
        columns: usize,
    ) -> Self {
        let places = (0..table.rows()).collect();
        Self { table, places, whole: true, value, diagonal, columns }
    }

    /// Whether both read the same products.
    pub(super) fn shares_table_with(&self, other: &Self) -> bool {
        let first = |own: &Self| own.table.rows().checked_sub(1).map(|_| own.table.row(0).as_ptr());
        self.places.len() == other.places.len()
            && self.table.rows() == other.table.rows()
            && first(self) == first(other)
    }

    /// Whether row i is row i of the table.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    pub(super) fn table(&self) -> &Dense<T> {
        &self.table
    }

    pub(super) fn value(&self) -> &ValueOfProduct<T> {
        &self.value
    }

    /// The products among the rows `keep`, as a table of their own.
    pub(super) fn table_of(&self, keep: &[usize]) -> Dense<T> {
        let place = |row: &usize| self.places[*row];
        let places: Vec<usize> = keep.iter().map(place).collect();
        self.table.select(&places, &places)
    }

    /// The rows `keep` over a table of their products alone.
    pub(super) fn over(&self, table: Dense<T>, keep: &[usize]) -> Self {
        let (value, diagonal) = self.of(keep);
        Self::new(table, value, diagonal, self.columns)
    }

    fn of(&self, keep: &[usize]) -> (ValueOfProduct<T>, Vec<T>) {
        let statistics = keep.iter().map(|&row| self.value.statistics[row]).collect();
        let diagonal = keep.iter().map(|&row| self.diagonal[row]).collect();
        (ValueOfProduct { statistics, ..self.value.clone() }, diagonal)
    }
}

impl<T: Real> PackedRows<T> for OfProducts<T> {
    fn len(&self) -> usize {
        self.places.len()
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn diagonal(&self) -> &[T] {
        &self.diagonal
    }

    fn products_per_value(&self) -> usize {
        1
    }

    fn gather(&self, rows: &[usize]) -> Queries<T> {
        let diagonal = rows.iter().map(|&row| self.diagonal[row]).collect();
        Queries::new(rows.len(), Some(diagonal), rows.to_vec())
    }

    /// # Errors
    /// Always: there are no products with other rows.
    fn prepare(&self, _: &Matrix, _: &[usize]) -> Result<Queries<T>> {
        Err(Error::kernel("table of products", "rows of the table", "rows of other data"))
    }

    fn block(
        &self,
        left: &Queries<T>,
        rows: Range<usize>,
        columns: Range<usize>,
        out: &mut [&mut [T]],
    ) {
        let left: &Vec<usize> = left.packed();
        let mut scratch = vec![T::ZERO; if self.whole { 0 } else { columns.len() }];
        for (&i, out) in left[rows].iter().zip(out) {
            let row = self.table.row(self.places[i]);
            let products = if self.whole {
                &row[columns.clone()]
            } else {
                let places = scratch.iter_mut().zip(&self.places[columns.clone()]);
                places.for_each(|(product, &place)| *product = row[place]);
                &scratch
            };
            self.value.of_row(i, columns.clone(), products, out);
        }
    }

    fn subset(&self, keep: &[usize]) -> Arc<dyn PackedRows<T>> {
        let (value, diagonal) = self.of(keep);
        let places = keep.iter().map(|&row| self.places[row]).collect();
        let table = self.table.clone();
        Arc::new(Self { table, places, whole: false, value, diagonal, columns: self.columns })
    }

    fn shared(&self) -> Option<&dyn Any> {
        Some(self)
    }
}
