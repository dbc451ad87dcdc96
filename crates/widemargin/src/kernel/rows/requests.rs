//! Which kernel values were requested for. Each is counted once, independently of the order of requests and of the cache, so
//! that the count does not depend on the number of threads.

use std::sync::atomic::{AtomicU64, Ordering};

/// Keys that were requested for, and the entries behind them.
pub(super) struct Requests {
    requested: Vec<AtomicU64>,
    entries: AtomicU64,
}

impl Requests {
    /// No request yet for any of so many keys.
    pub(super) fn new(keys: usize) -> Self {
        let requested = (0..keys.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Self { requested, entries: AtomicU64::new(0) }
    }

    /// Counts the entries behind a key if it was not requested for before.
    pub(super) fn ask(&self, key: usize, entries: usize) {
        let bit = 1 << (key % 64);
        if self.requested[key / 64].fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            self.entries.fetch_add(entries as u64, Ordering::Relaxed);
        }
    }

    /// Counts all keys anew, on top of what was counted: their values have changed.
    pub(super) fn renew(&mut self) {
        self.requested.iter_mut().for_each(|word| *word.get_mut() = 0);
    }

    /// Entries counted so far.
    pub(super) fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }
}
