//! Inputs of the pattern layer of a probabilistic neural network.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::super::rows::table;
use crate::data::{Csr, Matrix};
use crate::error::{Error, Result};

/// How rows are prepared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NetworkInput {
    /// As they are: the network is Parzen's classifier.
    #[default]
    Distance,
    /// Divided by their length, as the notes have it; the length is lost.
    UnitNorm,
    /// Given one more coordinate √(R² − ‖x‖²) and divided by R: unit length, nothing lost.
    Lifted {
        /// R; 0 for the largest length of a training row. Longer rows get the coordinate 0.
        radius: f64,
    },
}

impl FromStr for NetworkInput {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "distance" => Ok(Self::Distance),
            "unit-norm" => Ok(Self::UnitNorm),
            "lifted" => Ok(Self::Lifted { radius: 0.0 }),
            _ => Err(Error::parameter("input", "one of distance, unit-norm, lifted", text)),
        }
    }
}

impl fmt::Display for NetworkInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Distance => "distance",
            Self::UnitNorm => "unit-norm",
            Self::Lifted { .. } => "lifted",
        })
    }
}

impl NetworkInput {
    /// With the radius of the training rows where none is given.
    pub(super) fn resolved(self, rows: &Matrix) -> Result<Self> {
        let Self::Lifted { radius } = self else { return Ok(self) };
        Error::check_not_negative("radius", radius)?;
        let longest = lengths(rows).fold(0.0, f64::max);
        let radius = if radius > 0.0 { radius } else { longest };
        if radius > 0.0 {
            Ok(Self::Lifted { radius })
        } else {
            Err(Error::parameter("radius", "rows that are not all zero", 0))
        }
    }

    /// The prepared rows.
    pub(super) fn prepare(self, rows: &Matrix) -> Result<Matrix> {
        match self {
            Self::Distance => Ok(rows.clone()),
            Self::UnitNorm => mapped(rows, false, |i, length| {
                if length == 0.0 {
                    let found = format!("zeros only in row {}", i + 1);
                    return Err(Error::parameter("input", "rows with a direction", found));
                }
                Ok((length, 0.0))
            }),
            Self::Lifted { radius } => mapped(rows, true, |_, length| {
                Ok((radius, (radius * radius - length * length).max(0.0).sqrt()))
            }),
        }
    }
}

/// Rows divided by a number each, and with one more value where `lifted`; `scale` gives both from the row
/// and its length. Sparse rows stay sparse.
fn mapped(
    rows: &Matrix,
    lifted: bool,
    scale: impl Fn(usize, f64) -> Result<(f64, f64)>,
) -> Result<Matrix> {
    let columns = rows.columns();
    let width = columns + usize::from(lifted);
    let mut values = Vec::new();
    let (mut ends, mut places) = (vec![0], Vec::new());
    for (i, length) in lengths(rows).enumerate() {
        let (divisor, last) = scale(i, length)?;
        let extra = lifted.then_some(last / divisor);
        if rows.is_sparse() {
            rows.for_each_nonzero(i, |j, value| {
                places.push(j as u32);
                values.push(value / divisor);
            });
            if let Some(extra) = extra {
                places.push(columns as u32);
                values.push(extra);
            }
            ends.push(values.len());
        } else {
            let start = values.len();
            values.resize(start + width, 0.0);
            rows.for_each_nonzero(i, |j, value| values[start + j] = value / divisor);
            if let Some(extra) = extra {
                values[start + columns] = extra;
            }
        }
    }
    if rows.is_sparse() {
        Ok(Matrix::SparseF64(Csr::new(width, ends, places, values)?))
    } else {
        table(values, width)
    }
}

fn lengths(rows: &Matrix) -> impl Iterator<Item = f64> + '_ {
    (0..rows.rows()).map(|i| {
        let mut squares = 0.0;
        rows.for_each_nonzero(i, |_, value| squares += value * value);
        squares.sqrt()
    })
}
