//! A table by columns, for coordinate descent over the features.

use crate::solver::linear::rows::LinearRows;

/// The table by columns: rows and values of every feature.
pub(crate) struct Columns {
    starts: Vec<usize>,
    rows: Vec<u32>,
    values: Values,
}

/// Values in as little memory as they need.
enum Values {
    Ones,
    Single(Vec<f32>),
    Double(Vec<f64>),
}

impl Columns {
    /// The columns of rows.
    pub(crate) fn new<R: LinearRows>(table: &R) -> Self {
        let mut starts = vec![0_usize; table.width() + 1];
        let (mut ones, mut single) = (true, true);
        for i in 0..table.rows() {
            table.visit(i, |j, value| {
                starts[j + 1] += usize::from(value != 0.0);
                ones &= value == 1.0 || value == 0.0;
                single &= f64::from(value as f32) == value;
            });
        }
        for j in 0..table.width() {
            starts[j + 1] += starts[j];
        }
        let total = starts[table.width()];
        let mut rows = vec![0; total];
        let mut next = starts.clone();
        let mut place = |store: &mut dyn FnMut(usize, f64)| {
            for i in 0..table.rows() {
                table.visit(i, |j, value| {
                    if value != 0.0 {
                        rows[next[j]] = i as u32;
                        store(next[j], value);
                        next[j] += 1;
                    }
                });
            }
        };
        let values = if ones {
            place(&mut |_, _| {});
            Values::Ones
        } else if single {
            let mut values = vec![0.0; total];
            place(&mut |at, value| values[at] = value as f32);
            Values::Single(values)
        } else {
            let mut values = vec![0.0; total];
            place(&mut |at, value| values[at] = value);
            Values::Double(values)
        };
        Self { starts, rows, values }
    }

    /// Calls `visit(row, value)` for the stored values of column `j`.
    #[inline(always)]
    pub(super) fn visit(&self, j: usize, mut visit: impl FnMut(usize, f64)) {
        let range = self.starts[j]..self.starts[j + 1];
        let rows = &self.rows[range.clone()];
        match &self.values {
            Values::Ones => rows.iter().for_each(|&i| visit(i as usize, 1.0)),
            Values::Single(values) => {
                let pairs = rows.iter().zip(&values[range]);
                pairs.for_each(|(&i, &x)| visit(i as usize, f64::from(x)));
            }
            Values::Double(values) => {
                rows.iter().zip(&values[range]).for_each(|(&i, &x)| visit(i as usize, x));
            }
        }
    }
}
