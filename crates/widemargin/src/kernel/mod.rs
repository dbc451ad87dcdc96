//! Kernel functions and the engine that evaluates them in blocks.

mod block;
mod cache;
mod feature_map;
mod function;
mod instruction_set;
mod pool;
mod rows;
mod simd;
mod table;

pub use block::{KernelBlocks, Queries};
pub use cache::Piece;
pub use feature_map::{FeatureMap, FourierMap, MapRule, NystroemMap, ReadyMap};
pub use function::{CustomKernel, Kernel};
pub use instruction_set::InstructionSet;
pub use pool::Buffer;
pub use rows::{CompactRows, KernelRows, MatrixRows, Reuse, Row, RowsView};
pub use simd::{
    DenseRows, LinearRows, Look, One, PAIR_WIDTH, PlainLoop, Real, RowLists, Scan, Seat, Seen,
    SparseRows, Stored, Values, WeightTable, Weights, accumulate, accumulate_columns, best_partner,
    exp_of_negative, fetch, gather, mirror, multiply, row_values, run_plain, scan, shift_and_scan,
    sweep,
};
pub use table::fill_table;
