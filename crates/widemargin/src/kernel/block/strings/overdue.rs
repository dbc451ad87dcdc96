//! Values that take longer than the time limit leaves: a pair of long strings takes seconds, and a block of such pairs
//! has no other end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::context::Context;
use crate::error::{Error, Result};

/// Time beyond the limit in which what is left to do with a solution may still compute values.
const GRACE: Duration = Duration::from_millis(300);

/// Symbols of a string from which on every row of its table looks at the clock.
const LONG: usize = 1 << 10;

/// The clock of packed strings. Once it was found to be late, values are 0 and mean nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Overdue {
    at: Option<Instant>,
    found: Arc<AtomicBool>,
}

impl Overdue {
    /// That of the time limit of a context.
    pub(super) fn of(context: Option<&Context>) -> Self {
        let limit = context.and_then(Context::deadline);
        Self { at: limit.and_then(|limit| limit.checked_add(GRACE)), found: Arc::default() }
    }

    /// Whether it is too late to compute more.
    pub(super) fn is_late(&self) -> bool {
        let late = self.at.is_some_and(|at| Instant::now() >= at);
        if late {
            self.found.store(true, Ordering::Relaxed);
        }
        late
    }

    /// As [`is_late`](Self::is_late), asked for every row of a table of so many columns.
    pub(super) fn is_late_after_row(&self, places: usize) -> bool {
        places >= LONG && self.is_late()
    }

    /// Fails once values were left out.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(super) fn check(&self) -> Result<()> {
        if self.found.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }
}
