//! Centres of clusters: a decision value is minus the distance of a row from a centre.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::rows::dense_rows;
use crate::context::Context;
use crate::data::{Matrix, memory};
use crate::error::{Error, Result};
use crate::machine::Classic;
use crate::machine::model::{
    Description, Evaluation, MachineKind, Model, ModelBody, PartsReader, PartsResult, PartsWriter,
    Prepared, from_header, run_of, to_header,
};
use crate::numeric::algebra::{dot, squared_distance};

/// The centres of clusters.
#[derive(Clone, Debug, PartialEq)]
pub struct Centres {
    /// One centre per row.
    pub centres: Matrix,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    features: usize,
}

impl ModelBody for Centres {
    fn suits(&self, kind: MachineKind) -> bool {
        kind == MachineKind::Classic(Classic::KMeans)
    }

    fn vectors(&self) -> &Matrix {
        &self.centres
    }

    fn outputs(&self, _model: &Model) -> usize {
        self.centres.rows()
    }

    fn check(&self, _model: &Model) -> Result<()> {
        if self.centres.rows() == 0 {
            return Err(Error::Empty { what: "row" });
        }
        Ok(())
    }

    fn describe(&self, _model: &Model) -> Description {
        Description::of_vectors("centres")
    }

    fn prepare(&self, _model: &Model, _context: &Context) -> Result<Box<dyn Prepared>> {
        if self.centres.is_sparse() {
            return Ok(Box::new(SparseCentres::new(&self.centres)?));
        }
        let centres = dense_rows(&self.centres)?;
        let norms =
            centres.chunks_exact(self.centres.columns().max(1)).map(|c| dot(c, c)).collect();
        Ok(Box::new(PreparedCentres { centres, norms }))
    }

    fn write(&self, parts: &mut PartsWriter) -> PartsResult<Value> {
        parts.put_matrix("centres", &self.centres);
        to_header(&Header { features: self.centres.columns() })
    }

    fn read(header: Value, parts: &mut PartsReader<'_>) -> PartsResult<Self> {
        let header: Header = from_header(header)?;
        Ok(Self { centres: parts.take_matrix("centres", header.features)? })
    }
}

/// The centres one after another, and their squared norms.
struct PreparedCentres {
    centres: Vec<f64>,
    norms: Vec<f64>,
}

impl Prepared for PreparedCentres {
    fn evaluate(&self, evaluation: Evaluation<'_>) -> Result<()> {
        let Evaluation { queries, rows, out, .. } = evaluation;
        let columns = queries.columns();
        let mut row = vec![0.0; if queries.is_sparse() { 0 } else { columns }];
        for (i, out) in run_of(rows).zip(out.chunks_exact_mut(self.norms.len())) {
            if !queries.is_sparse() {
                queries.copy_row(i, &mut row);
            }
            let each = self.centres.chunks_exact(columns).zip(&self.norms);
            for (out, (centre, norm)) in out.iter_mut().zip(each) {
                let squared = if queries.is_sparse() {
                    // Σ (x − c)² over the stored values, Σ c² over the others.
                    let mut sum = *norm;
                    queries.for_each_nonzero(i, |j, x| sum += x * (x - 2.0 * centre[j]));
                    sum.max(0.0)
                } else {
                    squared_distance(&row, centre)
                };
                *out = -squared.sqrt();
            }
        }
        Ok(())
    }
}

/// Centres of which few columns occur.
struct SparseCentres {
    /// Ascending.
    columns: Vec<u32>,
    /// Column after column, a value for every centre.
    values: Vec<f64>,
    /// Squared norms.
    norms: Vec<f64>,
}

impl SparseCentres {
    fn new(centres: &Matrix) -> Result<Self> {
        let (columns, count) = (centres.occurring_columns(), centres.rows());
        let what = || format!("{count} centres of {} features that occur", columns.len());
        memory::check(what, 8 * columns.len() as u128 * count as u128)?;
        let (mut values, mut norms) = (vec![0.0; columns.len() * count], vec![0.0; count]);
        for (c, norm) in norms.iter_mut().enumerate() {
            centres.for_each_nonzero(c, |j, value| {
                let place = columns.partition_point(|&column| (column as usize) < j);
                values[place * count + c] = value;
                *norm += value * value;
            });
        }
        Ok(Self { columns, values, norms })
    }
}

impl Prepared for SparseCentres {
    fn evaluate(&self, evaluation: Evaluation<'_>) -> Result<()> {
        let Evaluation { queries, rows, out, .. } = evaluation;
        let count = self.norms.len();
        for (i, out) in run_of(rows).zip(out.chunks_exact_mut(count)) {
            // Σ (x − c)² over the values of the row, Σ c² over the others.
            out.copy_from_slice(&self.norms);
            queries.for_each_nonzero(i, |j, x| match self.columns.binary_search(&(j as u32)) {
                Ok(place) => {
                    let centres = &self.values[place * count..(place + 1) * count];
                    out.iter_mut().zip(centres).for_each(|(sum, c)| *sum += x * (x - 2.0 * c));
                }
                Err(_) => out.iter_mut().for_each(|sum| *sum += x * x),
            });
            out.iter_mut().for_each(|value| *value = -value.max(0.0).sqrt());
        }
        Ok(())
    }
}
