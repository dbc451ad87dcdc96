//! Centres of clusters: a decision value is minus the distance of a row from a centre.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::rows::dense_rows;
use crate::context::Context;
use crate::data::Matrix;
use crate::error::{Error, Result};
use crate::machine::Classic;
use crate::machine::model::{
    Description, Evaluation, MachineKind, Model, ModelBody, PartsReader, PartsResult, PartsWriter,
    Prepared, check_dense, from_header, run_of, to_header,
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
        check_dense("centres", &self.centres)
    }

    fn describe(&self, _model: &Model) -> Description {
        Description::of_vectors("centres")
    }

    fn prepare(&self, _model: &Model, _context: &Context) -> Result<Box<dyn Prepared>> {
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
