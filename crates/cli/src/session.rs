//! One run of a command: its threads, progress bar, time limit and handling of Ctrl-C.

use std::time::Duration;

use widemargin::{CancelToken, Context, Error, Event, Observer};

use crate::failure::{CommandResult, Failure};
use crate::interrupt::Interrupt;
use crate::progress::Progress;

/// What the computations of a command run in.
pub(crate) struct Session<'a> {
    pub(crate) context: Context,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) time_limit: Option<Duration>,
    pub(crate) quiet: bool,
}

impl Session<'_> {
    /// Runs `read` on the threads of the session.
    pub(crate) fn read<R: Send>(
        &self,
        message: &str,
        read: impl FnOnce() -> CommandResult<R> + Send,
    ) -> CommandResult<R> {
        let progress = Progress::new(message, self.quiet);
        let result = self.context.install(read);
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
        let progress = Progress::new(message, self.quiet);
        let bar = progress.clone();
        let context = self.limited().with_observer(move |event: &Event| {
            bar.observe(event);
            observer.observe(event);
        });
        let result = self.interrupt.during(|| compute(&context));
        progress.finish();
        result.map_err(|error| self.failure(error))
    }

    /// Runs a computation that neither the time limit nor an earlier Ctrl-C ends: what is done with the
    /// result of one that they ended.
    pub(crate) fn run_unlimited<R>(
        &self,
        message: &str,
        compute: impl FnOnce(&Context) -> widemargin::Result<R>,
    ) -> CommandResult<R> {
        let progress = Progress::new(message, self.quiet);
        let bar = progress.clone();
        let context = self.context.clone().with_cancel_token(CancelToken::new());
        let context = context.with_observer(move |event: &Event| bar.observe(event));
        let result = compute(&context);
        progress.finish();
        result.map_err(|error| self.failure(error))
    }

    /// The context with the time limit, which begins now.
    fn limited(&self) -> Context {
        let context = self.context.clone();
        match self.time_limit {
            Some(limit) => context.with_time_limit(limit),
            None => context,
        }
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
        let progress = Progress::new(message, self.quiet);
        let result = compute(&self.limited());
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
