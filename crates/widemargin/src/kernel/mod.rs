//! Kernel functions, and the blocks and rows of their matrices.

mod backend;
mod block;
mod feature_map;
mod function;
mod gram;
mod rows;
mod table;

pub use backend::{Backend, Cpu, DualProblem, ExpansionTerm, PackedRows};
pub use block::{KernelBlocks, Queries};
pub use feature_map::{FeatureMap, FourierMap, MapRule, NystroemMap, PreparedMap};
pub use function::{CustomKernel, Kernel};

pub use gram::{Centring, Definiteness, Gram, Repair};

pub(crate) use rows::catch_out_of_memory;
pub use rows::{Buffer, CompactRows, KernelRows, MatrixRows, Piece, Row, RowCaching, RowsView};
pub(crate) use table::fill_table;
