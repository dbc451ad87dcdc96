//! Kernel functions and the engine that evaluates them in blocks.

mod function;
mod instruction_set;
mod simd;

pub use function::{CustomKernel, Kernel};
pub use instruction_set::InstructionSet;
pub use simd::{Real, accumulate, multiply};
