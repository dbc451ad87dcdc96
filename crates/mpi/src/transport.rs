//! Processes of an MPI job as the library's distributed training sees them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use mpi::point_to_point::MatchedReceiveVec;
use mpi::request::{Request, StaticScope};
use mpi::topology::{Process, SimpleCommunicator};
use mpi::traits::{Communicator, Destination, Source};
use widemargin::Result;
use widemargin::operation::distribute::Transport;

/// Time between two checks for messages.
const POLL_INTERVAL: Duration = Duration::from_micros(100);

/// The processes of a communicator.
pub(crate) struct MpiTransport {
    world: SimpleCommunicator,
    /// Messages that are still on their way, oldest first.
    sending: VecDeque<Sending>,
}

/// A message on its way with its memory, which MPI reads until it has arrived.
struct Sending {
    request: Request<'static, [u8], StaticScope>,
    memory: *mut [u8],
}

impl MpiTransport {
    pub(crate) fn new(world: SimpleCommunicator) -> Self {
        Self { world, sending: VecDeque::new() }
    }

    fn process(&self, rank: usize) -> Process<'_> {
        self.world.process_at_rank(rank as i32)
    }

    /// Frees the memory of messages that have arrived.
    fn collect(&mut self) {
        for _ in 0..self.sending.len() {
            let Some(Sending { request, memory }) = self.sending.pop_front() else { return };
            match request.test() {
                // SAFETY: the memory came from a box, and MPI has finished with it.
                Ok(_) => drop(unsafe { Box::from_raw(memory) }),
                Err(request) => self.sending.push_back(Sending { request, memory }),
            }
        }
    }

    /// Waits until every message has arrived.
    pub(crate) fn finish(mut self) {
        while !self.sending.is_empty() {
            self.collect();
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Transport for MpiTransport {
    fn rank(&self) -> usize {
        self.world.rank() as usize
    }

    fn size(&self) -> usize {
        self.world.size() as usize
    }

    fn send(&mut self, to: usize, bytes: Vec<u8>) -> Result<()> {
        self.collect();
        let memory = Box::into_raw(bytes.into_boxed_slice());
        // SAFETY: the memory lives until its request has been tested successfully; nobody writes to it.
        let content: &'static [u8] = unsafe { &*memory };
        let request = self.process(to).immediate_send(StaticScope, content);
        self.sending.push_back(Sending { request, memory });
        Ok(())
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<(usize, Vec<u8>)>> {
        let started = Instant::now();
        loop {
            self.collect();
            let found = self.world.any_process().immediate_matched_probe();
            if let Some(message) = found {
                let (bytes, status) = message.matched_receive_vec::<u8>();
                return Ok(Some((status.source_rank() as usize, bytes)));
            }
            if started.elapsed() >= wait {
                return Ok(None);
            }
            std::thread::sleep(POLL_INTERVAL.min(wait.saturating_sub(started.elapsed())));
        }
    }
}
