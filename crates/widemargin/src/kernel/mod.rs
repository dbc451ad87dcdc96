//! Kernel functions, and the blocks and rows of their matrices.

mod backend;
mod block;
mod feature_map;
mod function;
mod gram;
mod rows;
mod string;
mod table;

pub use backend::{Backend, Cpu, DualProblem, ExpansionTerm, PackedRows};
pub(crate) use block::{KernelBlocks, TermScratch, TermSums};
pub use block::{Queries, SubstringFeatures};
pub use feature_map::{BlockMap, FeatureMap, FourierMap, MapRule, NystroemMap};
pub(crate) use feature_map::{KernelFeatures, PreparedMap, inverse_factor};
pub use function::{CustomKernel, Kernel};

pub use gram::{Centring, Definiteness, Gram, Repair};
pub use string::{StringKernel, StringSimilarity};

pub(crate) use rows::catch_out_of_memory;
pub(crate) use rows::{Buffer, KernelRows, MatrixRows, Row, RowCaching};
pub(crate) use table::fill_table;
