//! Features of several kernels, one block after another, so that weights of groups of features are weights of
//! kernels.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{FeatureMap, FourierMap, MapRule, NystroemMap, PreparedMap};
use crate::context::Context;
use crate::data::{Dense, Matrix};
use crate::error::{Error, Result};
use crate::kernel::Kernel;

/// The features of several kernels side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockMap {
    inputs: usize,
    blocks: Vec<KernelFeatures>,
}

/// The features of one kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum KernelFeatures {
    /// Some columns as they are, whose products are the linear kernel.
    Columns(Vec<Range<usize>>),
    /// Random Fourier features of some columns.
    Fourier {
        /// The columns.
        columns: Vec<Range<usize>>,
        /// Their map.
        map: FourierMap,
    },
    /// Nyström's method.
    Nystroem(NystroemMap),
}

impl MapRule {
    /// Learns the features of any kernel of rows; `at` tells the random features of several kernels apart. A
    /// linear kernel of no more columns than features are asked for is those columns.
    ///
    /// # Errors
    /// [`Error::Kernel`] for a kernel without random Fourier features, of values that are given or not positive
    /// semidefinite; otherwise as [`fit`](Self::fit).
    pub(crate) fn fit_kernel(
        self,
        features: &Matrix,
        kernel: &Kernel,
        at: usize,
        context: &Context,
    ) -> Result<KernelFeatures> {
        kernel.validate()?;
        if kernel.has_given_values() || kernel.takes_any_width() {
            let expected = "a kernel of rows of numbers, whose features can be computed";
            return Err(Error::kernel(kernel.to_string(), expected, "another"));
        }
        let all = 0..features.columns();
        let (columns, inner) = match kernel {
            Kernel::View { columns, kernel } => (&columns[..], &**kernel),
            _ => (std::slice::from_ref(&all), kernel),
        };
        let width: usize = columns.iter().map(Range::len).sum();
        match (self, inner) {
            (Self::Fourier(most) | Self::Nystroem(most), Kernel::Linear) if width <= most => {
                // The columns have to be there.
                features.select_rows(&[]).select_columns(columns)?;
                Ok(KernelFeatures::Columns(columns.to_vec()))
            }
            (Self::Fourier(outputs), Kernel::Gaussian { gamma }) if *gamma > 0.0 => {
                let seed = context.seed().wrapping_add(at as u64);
                let map = FourierMap { gamma: *gamma, inputs: width, outputs, seed };
                Ok(KernelFeatures::Fourier { columns: columns.to_vec(), map })
            }
            (Self::Fourier(_), _) => {
                let expected = "rbf with a positive gamma, or linear with at most as many columns as features, \
                                for random Fourier features (nystroem takes any kernel of rows)";
                Err(Error::kernel(kernel.to_string(), expected, "another"))
            }
            (Self::Nystroem(count), _) => {
                NystroemMap::fit(features, count, kernel.clone(), context)
                    .map(KernelFeatures::Nystroem)
            }
        }
    }
}

impl KernelFeatures {
    /// Features it makes: none of a kernel that is 0 on all landmarks.
    pub(crate) fn outputs(&self) -> usize {
        match self {
            Self::Columns(columns) => columns.iter().map(Range::len).sum(),
            Self::Fourier { map, .. } => map.outputs,
            Self::Nystroem(map) => map.outputs(),
        }
    }

    fn validate(&self, inputs: usize) -> Result<()> {
        let fail = |message: String| Err(Error::Model { message });
        let ascend = |columns: &[Range<usize>]| {
            let in_order = columns.windows(2).all(|pair| pair[0].end <= pair[1].start);
            let filled = !columns.is_empty() && !columns.iter().any(Range::is_empty);
            in_order && filled && columns.last().is_some_and(|last| last.end <= inputs)
        };
        match self {
            Self::Columns(columns) | Self::Fourier { columns, .. } if !ascend(columns) => {
                fail(format!("expected ascending columns of {inputs}, found {columns:?}"))
            }
            Self::Columns(_) => Ok(()),
            Self::Fourier { columns, map } => {
                let width: usize = columns.iter().map(Range::len).sum();
                if width != map.inputs {
                    return Err(Error::length("columns of random features", map.inputs, width));
                }
                map.validate()
            }
            Self::Nystroem(map) if map.inputs() != inputs => {
                Err(Error::length("columns of a Nystroem map", inputs, map.inputs()))
            }
            Self::Nystroem(map) => map.validate(),
        }
    }

    /// The block made ready for many rows.
    ///
    /// # Errors
    /// As [`FeatureMap::prepare`].
    pub(crate) fn prepare(&self, context: &Context) -> Result<PreparedBlock> {
        let (columns, map) = match self {
            Self::Columns(columns) => (Some(columns.clone()), None),
            Self::Fourier { columns, map } => {
                (Some(columns.clone()), Some(FeatureMap::Fourier(map.clone())))
            }
            Self::Nystroem(map) => (None, Some(FeatureMap::Nystroem(map.clone()))),
        };
        let map = map.map(|map| map.prepare(context)).transpose()?;
        Ok(PreparedBlock { outputs: self.outputs(), columns, map })
    }
}

impl BlockMap {
    /// The blocks in their order, of rows with so many features.
    pub(crate) fn new(inputs: usize, blocks: Vec<KernelFeatures>) -> Self {
        Self { inputs, blocks }
    }

    /// Features it takes.
    pub(super) fn inputs(&self) -> usize {
        self.inputs
    }

    /// Features it makes.
    pub(super) fn outputs(&self) -> usize {
        self.blocks.iter().fold(0, |sum, block| sum.saturating_add(block.outputs()))
    }

    /// Kernels.
    pub fn kernels(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn validate(&self) -> Result<()> {
        if self.blocks.is_empty() {
            return Err(Error::model("expected features of at least one kernel, found none"));
        }
        self.blocks.iter().try_for_each(|block| block.validate(self.inputs))
    }

    pub(super) fn prepare(&self, context: &Context) -> Result<Vec<PreparedBlock>> {
        self.blocks.iter().map(|block| block.prepare(context)).collect()
    }
}

/// The features of one kernel with everything they are computed from.
pub(crate) struct PreparedBlock {
    outputs: usize,
    /// The columns it sees; all of them without.
    columns: Option<Vec<Range<usize>>>,
    /// Columns without a map are features themselves.
    map: Option<PreparedMap>,
}

impl PreparedBlock {
    /// Features it makes.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Writes the features of some rows into `out`, `stride` apart from row to row.
    ///
    /// # Errors
    /// As [`PreparedMap::transform`].
    pub(crate) fn write(
        &self,
        features: &Matrix,
        rows: Range<usize>,
        out: &mut [f32],
        stride: usize,
    ) -> Result<()> {
        let count = rows.len();
        let narrow = match &self.columns {
            Some(columns) => {
                let rows: Vec<usize> = rows.clone().collect();
                Some(features.select_rows(&rows).select_columns(columns)?)
            }
            None => None,
        };
        let mut values = vec![0.0_f32; self.outputs];
        match (&self.map, &narrow) {
            (Some(map), _) => {
                let mapped = match &narrow {
                    Some(narrow) => map.transform(narrow, 0..count)?,
                    None => map.transform(features, rows)?,
                };
                for (i, out) in out.chunks_mut(stride).enumerate().take(count) {
                    out[..self.outputs].copy_from_slice(mapped.row(i));
                }
            }
            (None, Some(narrow)) => {
                for (i, out) in out.chunks_mut(stride).enumerate().take(count) {
                    values.fill(0.0);
                    narrow.for_each_nonzero(i, |j, value| values[j] = value as f32);
                    out[..self.outputs].copy_from_slice(&values);
                }
            }
            (None, None) => {}
        }
        Ok(())
    }
}

/// The features of some rows, block after block.
pub(super) fn transform(
    blocks: &[PreparedBlock],
    features: &Matrix,
    rows: Range<usize>,
) -> Result<Dense<f32>> {
    let width: usize = blocks.iter().map(PreparedBlock::outputs).sum();
    let mut values = vec![0.0; rows.len() * width];
    let (count, mut start) = (rows.len(), 0);
    for block in blocks {
        if count > 0 {
            block.write(features, rows.clone(), &mut values[start..], width)?;
        }
        start += block.outputs();
    }
    Dense::new(count, width, values)
}
