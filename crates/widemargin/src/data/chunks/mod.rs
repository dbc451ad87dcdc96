//! Rows on disk in compressed, checksummed chunks that are read one at a time.
//!
//! A folder holds `chunks.json`, which says what the rows are and what files they came from (size and
//! checksum of their content, and how it was read), and files of some tens of megabytes each. Column
//! indices are kept as differences of as many bytes as the widest of a row needs (one or two mostly),
//! values not at all when they are all 1, in single precision where that loses nothing or is allowed,
//! else in double precision.

mod code;
mod store;

pub(crate) use code::{Chunk, ChunkBuffers, Rows};
pub(crate) use store::{ChunkStore, ChunkWriter, Origin, Source};
