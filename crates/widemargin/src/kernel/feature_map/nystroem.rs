//! Nyström's method: φ(x) = L⁻¹ k(x), with k(x) the kernel's values at some rows and LLᵀ their kernel
//! matrix, so that ⟨φ(x), φ(z)⟩ = k(x)ᵀK⁻¹k(z) (Williams and Seeger, 2001).
//!
//! The factorisation takes rows in the order of what is left of their diagonal and stops when
//! nothing is, so that duplicates do no harm.

use std::ops::Range;

use serde::{Deserialize, Deserializer, Serialize};

use super::list;
use crate::context::Context;
use crate::data::{Csr, Matrix, memory};
use crate::error::{Error, Result};
use crate::kernel::{Gram, Kernel, KernelBlocks};
use crate::numeric::InstructionSet;
use crate::numeric::random::Generator;
use crate::numeric::simd::{Weights, multiply};

/// What is left of the largest diagonal value, as a share, when a row adds nothing new.
const RANK_TOLERANCE: f64 = 1e-6;

/// Rows of the kernel matrix that one task computes.
const TASK_ROWS: usize = 64;

/// A Nyström map over some rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NystroemMap {
    /// Older files have the γ of a Gaussian kernel in its place.
    #[serde(alias = "gamma", deserialize_with = "kernel_or_gamma")]
    kernel: Kernel,
    inputs: usize,
    /// The rows, sparse.
    starts: Vec<usize>,
    indices: Vec<u32>,
    #[serde(with = "list")]
    values: Vec<f32>,
    /// L⁻¹, row by row.
    #[serde(with = "list")]
    inverse: Vec<f32>,
}

/// A kernel, or the γ of a Gaussian one.
fn kernel_or_gamma<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Kernel, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Gamma(f64),
        Kernel(Kernel),
    }
    Ok(match Written::deserialize(deserializer)? {
        Written::Gamma(gamma) => Kernel::Gaussian { gamma },
        Written::Kernel(kernel) => kernel,
    })
}

impl NystroemMap {
    /// Learns the map of a kernel of rows; those of a kernel that is not positive semidefinite on the rows
    /// chosen do not exist.
    pub(super) fn fit(
        features: &Matrix,
        count: usize,
        kernel: Kernel,
        context: &Context,
    ) -> Result<Self> {
        let mut order: Vec<usize> = (0..features.rows()).collect();
        Generator::new(context.seed()).shuffle(&mut order);
        order.truncate(count);
        let m = order.len();
        // The kernel matrix, its factor and the inverse of that.
        let bytes = 3 * size_of::<f64>() as u128 * (m as u128).pow(2);
        memory::check(|| format!("the kernel matrix of {m} rows of a Nystroem map"), bytes)?;
        let blocks = KernelBlocks::<f64>::new(&kernel, features, Some(&order), context)?;
        let queries = blocks.prepare(&features.select_rows(&order), 0..m)?;
        let mut matrix = vec![0.0; m * m];
        let task = |(t, out): (usize, &mut [f64])| {
            context.checkpoint()?;
            let first = t * TASK_ROWS;
            blocks.query_block(&queries, first..first + out.len() / m, 0..m, out, m);
            Ok(())
        };
        context.try_for_each(matrix.chunks_mut(TASK_ROWS * m).enumerate(), task)?;
        if !kernel.is_semidefinite() {
            Gram::new(m, matrix.clone())?.check_semidefinite(&kernel, context)?;
        }
        let (chosen, inverse) = inverse_factor(&matrix, m, context)?;
        let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for &at in &chosen {
            features.for_each_nonzero(order[at], |j, value| {
                indices.push(j as u32);
                values.push(value as f32);
            });
            starts.push(indices.len());
        }
        let inverse = inverse.into_iter().map(|v| v as f32).collect();
        Ok(Self { kernel, inputs: features.columns(), starts, indices, values, inverse })
    }

    pub(super) fn inputs(&self) -> usize {
        self.inputs
    }

    pub(super) fn outputs(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    fn rows(&self) -> Result<Csr<f32>> {
        let (starts, indices) = (self.starts.clone(), self.indices.clone());
        Csr::new(self.inputs, starts, indices, self.values.clone())
    }

    pub(super) fn validate(&self) -> Result<()> {
        let fail = |message: &str| Err(Error::model(message));
        let outputs = self.outputs();
        self.kernel.validate()?;
        let flat = matches!(self.kernel, Kernel::Gaussian { gamma: 0.0 });
        if flat || self.kernel.has_given_values() || outputs == 0 {
            return fail("expected a Nystroem map with rows and a kernel of rows, found another");
        }
        if Some(self.inverse.len()) != outputs.checked_mul(outputs) {
            return Err(Error::length(
                "numbers of a Nystroem map",
                outputs.saturating_mul(outputs),
                self.inverse.len(),
            ));
        }
        if !self.values.iter().chain(&self.inverse).all(|v| v.is_finite()) {
            return fail("expected a Nystroem map of finite numbers, found another");
        }
        self.rows().map(|_| ())
    }
}

/// Rows of a factor L of the matrix, by pivot, and L⁻¹ row by row.
pub(crate) fn inverse_factor(
    matrix: &[f64],
    m: usize,
    context: &Context,
) -> Result<(Vec<usize>, Vec<f64>)> {
    let mut left: Vec<f64> = (0..m).map(|i| matrix[i * m + i]).collect();
    let nothing = RANK_TOLERANCE * left.iter().copied().fold(0.0, f64::max);
    let mut chosen: Vec<usize> = Vec::new();
    // Row k of `factor` holds column k of L over all rows.
    let mut factor: Vec<Vec<f64>> = Vec::new();
    while chosen.len() < m {
        context.checkpoint()?;
        let pivot = (0..m).fold(0, |best, i| if left[i] > left[best] { i } else { best });
        if left[pivot] <= nothing {
            break;
        }
        let root = left[pivot].sqrt();
        let mut column = matrix[pivot * m..(pivot + 1) * m].to_vec();
        for earlier in &factor {
            let scale = earlier[pivot];
            column.iter_mut().zip(earlier).for_each(|(c, e)| *c -= scale * e);
        }
        for i in 0..m {
            column[i] /= root;
            left[i] -= column[i] * column[i];
        }
        left[pivot] = f64::NEG_INFINITY;
        chosen.push(pivot);
        factor.push(column);
    }
    let r = chosen.len();
    let mut inverse = vec![0.0; r * r];
    for i in 0..r {
        context.checkpoint()?;
        inverse[i * r + i] = 1.0;
        for k in 0..i {
            let scale = factor[k][chosen[i]];
            let (before, own) = inverse.split_at_mut(i * r);
            let row = &before[k * r..(k + 1) * r];
            own[..r].iter_mut().zip(row).for_each(|(o, b)| *o -= scale * b);
        }
        let diagonal = factor[i][chosen[i]];
        inverse[i * r..(i + 1) * r].iter_mut().for_each(|v| *v /= diagonal);
    }
    Ok((chosen, inverse))
}

/// The rows packed for the kernel, and L⁻¹ stacked.
pub(super) struct NystroemBlocks {
    blocks: KernelBlocks<f32>,
    inverse: Weights<f32>,
    set: InstructionSet,
}

impl NystroemBlocks {
    pub(super) fn new(map: &NystroemMap, context: &Context) -> Result<Self> {
        let blocks =
            KernelBlocks::new(&map.kernel, &Matrix::SparseF32(map.rows()?), None, context)?;
        let inverse = Weights::new(map.outputs(), map.inverse.clone());
        Ok(Self { blocks, inverse, set: context.instruction_set() })
    }

    /// Adds the features of rows to `out`.
    pub(super) fn add(&self, features: &Matrix, rows: Range<usize>, out: &mut [f64]) -> Result<()> {
        let (count, columns) = (rows.len(), self.blocks.len());
        let queries = self.blocks.prepare(features, rows)?;
        let mut block = vec![0.0_f32; count * columns];
        self.blocks.query_block(&queries, 0..count, 0..columns, &mut block, columns);
        multiply(self.set, &block, columns, &self.inverse, 0, columns, out);
        Ok(())
    }
}
