//! Ctrl-C: once stops the running computation at its next block, twice quits.
//!
//! A computation runs inside [`Interrupt::during`], which is when the first Ctrl-C only cancels;
//! at any other time it quits at once. A file being saved is always finished first, so that
//! nothing half-written stays behind.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use widemargin::CancelToken;

use crate::failure::{EXIT_INTERRUPTED, EXIT_TIME_LIMIT};
use crate::terminal;

/// How the process responds to Ctrl-C.
#[derive(Clone, Default)]
pub(crate) struct Interrupt {
    token: CancelToken,
    computing: Arc<AtomicBool>,
    saving: Arc<Mutex<()>>,
}

impl Interrupt {
    /// Installs the handler; where the system refuses, Ctrl-C keeps its usual meaning.
    pub(crate) fn install() -> Self {
        let interrupt = Self::default();
        let handler = interrupt.clone();
        if ctrlc::set_handler(move || handler.on_signal()).is_err() {
            terminal::warn("Ctrl-C cannot be caught here and will lose unsaved work");
        }
        interrupt
    }

    fn on_signal(&self) {
        if self.computing.load(Ordering::SeqCst) && !self.token.is_cancelled() {
            self.token.cancel();
            terminal::note("\nstopping at the next block; Ctrl-C again quits at once");
            return;
        }
        let _finished = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        std::process::exit(EXIT_INTERRUPTED.into());
    }

    /// Ends the program at the time limit of something that has no partial result, once `tell` has said so.
    pub(crate) fn exit_at_time_limit(&self, tell: impl FnOnce()) -> ! {
        let _finished = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        tell();
        std::process::exit(EXIT_TIME_LIMIT.into());
    }

    /// The token the computation has to watch.
    pub(crate) fn token(&self) -> CancelToken {
        self.token.clone()
    }

    /// Runs a computation that watches the token.
    pub(crate) fn during<R>(&self, compute: impl FnOnce() -> R) -> R {
        self.computing.store(true, Ordering::SeqCst);
        let result = compute();
        self.computing.store(false, Ordering::SeqCst);
        result
    }

    /// Runs a save that must not be cut short.
    pub(crate) fn while_saving<R>(&self, save: impl FnOnce() -> R) -> R {
        let _lock = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        save()
    }
}
