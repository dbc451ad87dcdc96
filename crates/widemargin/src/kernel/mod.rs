//! Kernel functions and the engine that evaluates them in blocks.

mod block;
mod cache;
mod feature_map;
mod function;
mod pool;
mod rows;
mod table;

pub use block::{KernelBlocks, Queries};
pub use cache::Piece;
pub use feature_map::{FeatureMap, FourierMap, MapRule, NystroemMap, ReadyMap};
pub use function::{CustomKernel, Kernel};
pub use pool::Buffer;
pub use rows::{CompactRows, KernelRows, MatrixRows, Reuse, Row, RowsView};
pub use table::fill_table;
