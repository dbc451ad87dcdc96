//! The dual problems of a machine as sites see them.

use super::local::LocalProblem;
use super::message::{Row, RowValues};
use crate::context::Context;
use crate::data::{Csr, Dataset, Dense, Labels, Matrix};
use crate::error::{Error, Result};
use crate::machine::{LocalDuals, LocalStart, SolvedDual};

/// The problems of a machine with their fingerprint.
pub(super) struct MachineProblem {
    duals: LocalDuals,
    fingerprint: u64,
    empty: Dataset,
}

impl MachineProblem {
    pub(super) fn new(duals: LocalDuals) -> Self {
        let fingerprint = fingerprint(duals.description().as_bytes());
        let empty = duals.table().select_rows(&[]);
        Self { duals, fingerprint, empty }
    }

    pub(super) fn duals(&self) -> &LocalDuals {
        &self.duals
    }
}

/// FNV-1a (Fowler, Noll and Vo), 64 bits: the same on every machine.
pub(super) fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

impl LocalProblem for MachineProblem {
    type Table = Dataset;

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn functions(&self) -> usize {
        self.duals.functions()
    }

    fn tolerance(&self) -> f64 {
        self.duals.tolerance()
    }

    fn empty(&self) -> Dataset {
        self.empty.clone()
    }

    fn append(&self, table: &mut Dataset, rows: &[Row]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let features = table.features().stacked(&features(rows, table.columns())?)?;
        features.validate()?;
        let number = |place: usize| self.label(table, place);
        let known = (0..table.rows()).map(number).chain(rows.iter().map(|r| (r.label, r.weight)));
        let (labels, weights) = known.unzip();
        *table = Dataset::new(features, Labels::Real(labels))?.with_weights(weights)?;
        Ok(())
    }

    fn row(&self, table: &Dataset, place: usize, id: u64) -> Row {
        let values = match table.features() {
            Matrix::DenseF32(m) => RowValues::DenseF32(m.row(place).to_vec()),
            Matrix::DenseF64(m) => RowValues::DenseF64(m.row(place).to_vec()),
            Matrix::SparseF32(m) => {
                let (indices, values) = m.row(place);
                RowValues::SparseF32(indices.to_vec(), values.to_vec())
            }
            Matrix::SparseF64(m) => {
                let (indices, values) = m.row(place);
                RowValues::SparseF64(indices.to_vec(), values.to_vec())
            }
        };
        let (label, weight) = self.label(table, place);
        Row { id, label, weight, values }
    }

    fn label(&self, table: &Dataset, place: usize) -> (f64, f64) {
        let label = match table.labels() {
            Labels::Real(labels) => labels[place],
            _ => 0.0,
        };
        (label, table.weight(place))
    }

    fn takes(&self, function: usize, label: f64) -> bool {
        self.duals.takes(function, label)
    }

    fn solve(
        &self,
        table: &Dataset,
        starts: &[Option<LocalStart<'_>>],
        context: &Context,
    ) -> Result<Vec<Option<SolvedDual>>> {
        self.duals.solve(table, starts, context)
    }

    fn is_semidefinite(&self) -> bool {
        self.duals.is_semidefinite()
    }

    fn values(
        &self,
        support: &Dataset,
        coefficients: &[Vec<(usize, f64)>],
        table: &Dataset,
        rows: &[usize],
        context: &Context,
    ) -> Result<Vec<f64>> {
        self.duals.values(support, coefficients, table, rows, context)
    }

    fn slack(&self, function: usize, label: f64, value: f64) -> f64 {
        self.duals.slack(function, label, value)
    }

    fn row_loss(&self, _label: f64, weight: f64, slack: f64) -> f64 {
        self.duals.row_loss(weight, slack)
    }
}

/// The table of rows that came in messages, in the storage of the first.
fn features(rows: &[Row], columns: usize) -> Result<Matrix> {
    let other = |row: &Row| {
        let expected = format!("rows of {columns} features in one storage");
        Error::message(expected, format!("row {} otherwise", row.id))
    };
    macro_rules! dense {
        ($variant:ident) => {{
            let mut all = Vec::with_capacity(rows.len() * columns);
            for row in rows {
                match &row.values {
                    RowValues::$variant(values) if values.len() == columns => all.extend(values),
                    _ => return Err(other(row)),
                }
            }
            Dense::new(rows.len(), columns, all).map(Matrix::$variant)
        }};
    }
    macro_rules! sparse {
        ($variant:ident) => {{
            let (mut starts, mut indices, mut all) = (vec![0], Vec::new(), Vec::new());
            for row in rows {
                match &row.values {
                    RowValues::$variant(places, values) if places.len() == values.len() => {
                        indices.extend(places);
                        all.extend(values);
                        starts.push(indices.len());
                    }
                    _ => return Err(other(row)),
                }
            }
            Csr::new(columns, starts, indices, all).map(Matrix::$variant)
        }};
    }
    match &rows[0].values {
        RowValues::DenseF32(_) => dense!(DenseF32),
        RowValues::DenseF64(_) => dense!(DenseF64),
        RowValues::SparseF32(..) => sparse!(SparseF32),
        RowValues::SparseF64(..) => sparse!(SparseF64),
    }
}
