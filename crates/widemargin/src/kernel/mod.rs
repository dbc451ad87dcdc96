//! Kernel functions and the engine that evaluates them in blocks.

mod cache;
mod function;
mod instruction_set;
mod rows;
mod simd;
mod stub;
mod vectorize;

pub use cache::Piece;
pub use function::{CustomKernel, Kernel};
pub use instruction_set::InstructionSet;
pub use rows::{CompactRows, KernelRows, MatrixRows, Row, RowsView};
pub use simd::{Real, accumulate, multiply};
pub use stub::KernelBlocks;
pub use vectorize::{Vectorize, vectorize};
