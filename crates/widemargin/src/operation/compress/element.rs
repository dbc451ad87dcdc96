//! Tables of either precision for the block engine, and work on chunks of them.

use crate::context::Context;
use crate::data::{Dense, Matrix};
use crate::error::Result;
use crate::numeric::simd::Real;

/// A number that tables are made of.
pub(super) trait Element: Real {
    /// A table of `rows × columns` values.
    fn table(rows: usize, columns: usize, values: Vec<Self>) -> Result<Matrix>;
}

impl Element for f32 {
    fn table(rows: usize, columns: usize, values: Vec<Self>) -> Result<Matrix> {
        Ok(Matrix::DenseF32(Dense::new(rows, columns, values)?))
    }
}

impl Element for f64 {
    fn table(rows: usize, columns: usize, values: Vec<Self>) -> Result<Matrix> {
        Ok(Matrix::DenseF64(Dense::new(rows, columns, values)?))
    }
}

/// A table of vectors.
pub(super) fn table_of<T: Element>(vectors: &[Vec<f64>]) -> Result<Matrix> {
    let columns = vectors.first().map_or(0, Vec::len);
    let values = vectors.iter().flatten().map(|&v| T::from_f64(v)).collect();
    T::table(vectors.len(), columns, values)
}

/// Calls `work` on chunks of `out`, in parallel where the context has threads.
///
/// # Errors
/// Those of `work`; [`Error::Interrupted`](crate::Error::Interrupted) when the context asks to stop.
pub(super) fn in_chunks<T: Send>(
    context: &Context,
    out: &mut [T],
    chunk: usize,
    work: impl Fn(usize, &mut [T]) -> Result<()> + Sync + Send,
) -> Result<()> {
    context.try_for_each(out.chunks_mut(chunk.max(1)).enumerate(), |(t, out)| {
        context.checkpoint()?;
        work(t, out)
    })
}
