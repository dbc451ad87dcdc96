//! What `examples/kernel_engine.rs` measures. No part of the API: it may change in any version.

use crate::data::Matrix;
use crate::error::Result;
use crate::kernel::{Kernel, KernelBlocks};
use crate::numeric::InstructionSet;
use crate::numeric::simd::{self, Real, Weights};

/// Computes the kernel values of some rows with all rows of a table.
pub type Block<T> = Box<dyn Fn(&[usize], &mut [&mut [T]])>;

fn block<T: Real>(kernel: &Kernel, rows: &Matrix, set: InstructionSet) -> Result<Block<T>> {
    let blocks = KernelBlocks::<T>::on_cpu(kernel, rows, None, set)?;
    Ok(Box::new(move |left, out| blocks.block(left, 0..blocks.len(), out)))
}

/// Blocks in single precision.
///
/// # Errors
/// When the kernel cannot take the data.
pub fn block_f32(kernel: &Kernel, rows: &Matrix, set: InstructionSet) -> Result<Block<f32>> {
    block(kernel, rows, set)
}

/// Blocks in double precision.
///
/// # Errors
/// When the kernel cannot take the data.
pub fn block_f64(kernel: &Kernel, rows: &Matrix, set: InstructionSet) -> Result<Block<f64>> {
    block(kernel, rows, set)
}

/// Adds the rows, times their coefficients, to the gradient.
pub fn accumulate(set: InstructionSet, gradient: &mut [f64], rows: &[&[f32]], by: &[f64]) {
    simd::accumulate(set, gradient, rows, by);
}

/// Multiplies a block of `columns` columns with coefficients given output by output.
pub fn multiply(
    set: InstructionSet,
    columns: usize,
    coefficients: Vec<f32>,
) -> impl Fn(&[f32], &mut [f64]) {
    let weights = Weights::new(columns, coefficients);
    move |block, out| simd::multiply(set, block, columns, &weights, 0, columns, out)
}
