//! Vectors with their weights in all functions, packed for the products that the residual and its
//! curvature are made of: kernel values, sums over vectors and sums of vectors.

use super::element::{Element, table_of};
use super::merge_kernel::MergeKernel;
use super::pool::VectorPool;
use crate::error::Result;
use crate::kernel::{Kernel, KernelBlocks};
use crate::numeric::InstructionSet;
use crate::numeric::simd::{Weights, multiply};

/// Vectors u of one block.
pub(super) const COLUMNS: usize = 512;

/// Some vectors u with their weights in all functions.
pub(super) struct Chunk<T: Element> {
    /// The vectors for the kernel, or for the product under its power.
    pub(super) base: KernelBlocks<T>,
    pub(super) features: Features<T>,
    pub(super) weights: Weights<T>,
    /// Function after function.
    pub(super) coefficients: Vec<Vec<T>>,
}

/// The features of some vectors, for products with slopes.
pub(super) enum Features<T: Element> {
    /// As the outputs of a product, when there are few.
    Few(Weights<T>),
    /// As the rows of a linear kernel.
    Many(KernelBlocks<T>),
}

/// Features that are few.
const FEW_FEATURES: usize = 96;

impl<T: Element> Features<T> {
    pub(super) fn new(vectors: &[Vec<f64>], set: InstructionSet) -> Result<Self> {
        let (n, columns) = (vectors.len(), vectors[0].len());
        let mut turned = Vec::with_capacity(n * columns);
        for j in 0..columns {
            turned.extend(vectors.iter().map(|v| T::from_f64(v[j])));
        }
        if columns <= FEW_FEATURES {
            return Ok(Self::Few(Weights::new(n, turned)));
        }
        let turned = T::table(columns, n, turned)?;
        Ok(Self::Many(KernelBlocks::on_cpu(&Kernel::Linear, &turned, None, set)?))
    }

    /// Adds Σᵤ slopes[j][u] u to `out[j]`.
    pub(super) fn multiply(
        &self,
        slopes: Vec<T>,
        n: usize,
        out: &mut [f64],
        set: InstructionSet,
    ) -> Result<()> {
        let rows = slopes.len() / n;
        match self {
            Self::Few(weights) => multiply(set, &slopes, n, weights, 0, n, out),
            Self::Many(blocks) => {
                let columns = blocks.len();
                let ready = blocks.prepare(&T::table(rows, n, slopes)?, 0..rows)?;
                let mut products = vec![T::ZERO; rows * columns];
                blocks.query_block(&ready, 0..rows, 0..columns, &mut products, columns);
                for (out, product) in out.iter_mut().zip(products) {
                    *out += product.to_f64();
                }
            }
        }
        Ok(())
    }
}

impl<T: Element> Chunk<T> {
    fn new(
        rule: &MergeKernel,
        vectors: &[Vec<f64>],
        weights: &[Vec<T>],
        set: InstructionSet,
    ) -> Result<Self> {
        Ok(Self {
            base: KernelBlocks::on_cpu(&rule.base(), &table_of::<T>(vectors)?, None, set)?,
            features: Features::new(vectors, set)?,
            weights: Weights::new(vectors.len(), weights.concat()),
            coefficients: weights.to_vec(),
        })
    }

    /// All vectors with the weights that `sign` gives them.
    pub(super) fn all(
        rule: &MergeKernel,
        pool: &VectorPool,
        sign: f64,
        set: InstructionSet,
    ) -> Result<Vec<Self>> {
        let chunk = |start: usize| {
            let end = (start + COLUMNS).min(pool.len());
            let part =
                |w: &Vec<f64>| w[start..end].iter().map(|&w| T::from_f64(sign * w)).collect();
            let weights: Vec<Vec<T>> = pool.weights.iter().map(part).collect();
            Self::new(rule, &pool.vectors[start..end], &weights, set)
        };
        (0..pool.len()).step_by(COLUMNS).map(chunk).collect()
    }
}
