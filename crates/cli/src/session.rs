//! One run of a command: its threads, progress bar, time limit and handling of Ctrl-C.
//!
//! The time limit is one for the whole command and starts with it. Computations end at it by themselves;
//! reading, which has no partial result, is ended together with the program.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use widemargin::{CancelToken, Context, Error, Event, Observer};

use crate::failure::{CommandResult, Failure};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::terminal;

/// Time for what makes a result of what there is when the limit is reached.
pub(crate) const LAST_MOMENTS: Duration = Duration::from_millis(250);

/// What the computations of a command run in.
pub(crate) struct Session<'a> {
    pub(crate) context: Context,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) quiet: bool,
    /// Whether events are written as lines instead of drawn as a bar.
    pub(crate) verbose: bool,
}

impl Session<'_> {
    /// Limits the rest of the command to `limit` from now on unless it has a limit already.
    pub(crate) fn limit_rest(&mut self, limit: Duration) {
        if self.context.time_left().is_none() {
            self.context = self.context.clone().with_time_limit(limit);
        }
    }

    /// Runs `read` on the threads of the session; at the time limit the program ends.
    pub(crate) fn read<R: Send>(
        &self,
        message: &str,
        read: impl FnOnce() -> CommandResult<R> + Send,
    ) -> CommandResult<R> {
        self.read_or(message, read, || {
            let message = "the time limit was reached while the data was read".to_owned();
            terminal::report(&Failure::Message(message));
        })
    }

    /// As [`read`](Self::read), for a command that has a result already: `at_limit` tells about it before the
    /// program ends.
    pub(crate) fn read_or<R: Send>(
        &self,
        message: &str,
        read: impl FnOnce() -> CommandResult<R> + Send,
        at_limit: impl FnOnce() + Send,
    ) -> CommandResult<R> {
        let progress = Progress::new(message, self.quiet, self.verbose);
        let result = std::thread::scope(|scope| {
            let (finished, end) = channel::<()>();
            if let Some(limit) = self.context.time_left() {
                scope.spawn(move || {
                    if end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                        self.interrupt.exit_at_time_limit(at_limit);
                    }
                });
            }
            let result = self.context.install(read);
            drop(finished);
            result
        });
        progress.finish();
        result
    }

    /// Runs a computation: with a progress bar, inside the time limit, stoppable by Ctrl-C.
    pub(crate) fn run<R>(
        &self,
        message: &str,
        compute: impl FnOnce(&Context) -> widemargin::Result<R>,
    ) -> CommandResult<R> {
        self.run_observed(message, |_: &Event| {}, compute)
    }

    /// As [`run`](Self::run), the events going to `observer` as well.
    pub(crate) fn run_observed<R>(
        &self,
        message: &str,
        observer: impl Observer + 'static,
        compute: impl FnOnce(&Context) -> widemargin::Result<R>,
    ) -> CommandResult<R> {
        let progress = Progress::new(message, self.quiet, self.verbose);
        let bar = progress.clone();
        let context = self.context.clone().with_observer(move |event: &Event| {
            bar.observe(event);
            observer.observe(event);
        });
        let result = self.interrupt.during(|| compute(&context));
        progress.finish();
        result.map_err(|error| self.failure(error))
    }

    /// Runs what is done with the result of a computation that a limit or Ctrl-C may have ended: it has
    /// [`LAST_MOMENTS`] even at the limit, and an earlier Ctrl-C does not end it. The next one quits.
    pub(crate) fn run_after_stop<R>(
        &self,
        message: &str,
        compute: impl FnOnce(&Context) -> widemargin::Result<R>,
    ) -> CommandResult<R> {
        let progress = Progress::new(message, self.quiet, self.verbose);
        let bar = progress.clone();
        let mut context = self.context.clone().with_cancel_token(CancelToken::new());
        if let Some(left) = context.time_left() {
            context = context.with_time_limit(left.max(LAST_MOMENTS));
        }
        let context = context.with_observer(move |event: &Event| bar.observe(event));
        let result = compute(&context);
        progress.finish();
        result.map_err(|error| self.failure(error))
    }

    /// Work that ended although nobody pressed Ctrl-C ran out of time.
    fn failure(&self, error: Error) -> Failure {
        match error {
            Error::Interrupted if !self.interrupt.token().is_cancelled() => Failure::TimeLimit,
            other => other.into(),
        }
    }

    /// Predicts within the time limit; Ctrl-C may end it at once because nothing would be lost.
    pub(crate) fn ask<R>(
        &self,
        message: &str,
        compute: impl FnOnce(&Context) -> widemargin::Result<R>,
    ) -> CommandResult<R> {
        let progress = Progress::new(message, self.quiet, self.verbose);
        let result = compute(&self.context);
        progress.finish();
        result.map_err(|error| self.failure(error))
    }

    /// Runs a save that Ctrl-C must not cut short.
    pub(crate) fn save<R>(&self, save: impl FnOnce() -> R) -> R {
        self.interrupt.while_saving(save)
    }

    /// Number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.context.threads()
    }
}
