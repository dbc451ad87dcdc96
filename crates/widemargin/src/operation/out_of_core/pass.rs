//! One pass over chunks on disk: the next is read while one is worked on.

use std::sync::mpsc::{channel, sync_channel};

use crate::context::{Context, Event};
use crate::data::chunks::{Chunk, ChunkBuffers, ChunkStore, Rows};
use crate::error::Result;
use crate::solver::Status;
use crate::solver::linear::rows::{LinearRows, One, SparseRows};

/// Name of the stage that is reported.
const STAGE: &str = "rows from disk";

/// Calls `work` with chunk after chunk of `order`; why it stopped early, if it did.
pub(super) fn each_chunk(
    store: &ChunkStore,
    order: &[usize],
    context: &Context,
    mut work: impl FnMut(usize, &Chunk) -> Result<()>,
) -> Result<Option<Status>> {
    context.report(&Event::Stage { name: STAGE, total: order.len() });
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(0);
        let (done, used) = channel();
        scope.spawn(move || {
            let mut buffers = ChunkBuffers::default();
            for &index in order {
                if let Ok(chunk) = used.try_recv() {
                    buffers.take_back(chunk);
                }
                if sender.send((index, store.read(index, &mut buffers))).is_err() {
                    return;
                }
            }
        });
        for _ in order {
            if let Some(status) = context.stop_request() {
                return Ok(Some(status));
            }
            let Ok((index, chunk)) = receiver.recv() else { return Ok(None) };
            let chunk = chunk?;
            work(index, &chunk)?;
            // The reader may have read its last.
            let _ = done.send(chunk);
            context.report(&Event::StageStep { name: STAGE });
        }
        Ok(None)
    })
}

/// A computation over the rows of a chunk.
pub(super) trait ChunkTask {
    type Output;
    fn run<R: LinearRows>(self, rows: &R) -> Self::Output;
}

/// Runs `task` on the rows of a chunk, with the bias as the last feature.
pub(super) fn with_chunk<T: ChunkTask>(rows: &Rows, bias: Option<f64>, task: T) -> T::Output {
    match rows {
        Rows::Ones(table) => {
            let ones = vec![One; table.nonzeros()];
            task.run(&SparseRows::new(table, &ones, bias))
        }
        Rows::Single(table) => task.run(&SparseRows::new(table, table.values(), bias)),
        Rows::Double(table) => task.run(&SparseRows::new(table, table.values(), bias)),
    }
}
