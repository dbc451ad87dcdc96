//! Kernel functions and the engine that evaluates them in blocks.

mod block;
mod cache;
mod function;
mod instruction_set;
mod pool;
mod rows;
mod simd;

pub use block::{KernelBlocks, Queries};
pub use cache::Piece;
pub use function::{CustomKernel, Kernel};
pub use instruction_set::InstructionSet;
pub use pool::Buffer;
pub use rows::{CompactRows, KernelRows, MatrixRows, Reuse, Row, RowsView};
pub use simd::{
    PAIR_WIDTH, PlainLoop, Real, Scan, Weights, accumulate, best_partner, multiply, run_plain,
    scan, shift_and_scan,
};
