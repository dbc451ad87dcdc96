//! Resources of a computation: threads, cache bytes, seed, observer, deadline, cancellation and backend.
//!
//! A [`Context`] is handed down through every layer; nothing in the crate is global.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::kernel::{Backend, Cpu};
use crate::numeric::InstructionSet;
use crate::numeric::parallel::{self, Threads};
use crate::outcome::{Outcome, Status};

/// Kernel-row cache used by default, in bytes (as LIBSVM's `-m 200`, but larger).
pub(crate) const DEFAULT_CACHE_BYTES: usize = 1 << 30;

/// Most worker threads of one computation.
pub(crate) const MAX_THREADS: usize = 1024;

/// Reports of a long computation while it runs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// `total` sub-problems of a stage (pairs of classes, folds, ...) are about to start.
    Stage {
        /// Name of the stage, such as `one-vs-one` or `fold`.
        name: &'static str,
        /// Number of sub-problems.
        total: usize,
    },
    /// One sub-problem of the current stage has ended.
    StageStep {
        /// Name of the stage.
        name: &'static str,
    },
    /// A solver finished one block of its sub-problem.
    Iteration {
        /// Blocks solved so far.
        iteration: usize,
        /// Largest violation m(α) − M(α) of the optimality conditions.
        violation: f64,
        /// Dual objective reached.
        objective: f64,
        /// Variables still active after shrinking.
        active: usize,
    },
    /// A machine has one decision function more.
    Solved(SolvedFunction),
    /// Sites that train together have finished a round.
    Round {
        /// Its number, from 1.
        number: u32,
        /// Dual objective of every site.
        objectives: Vec<f64>,
        /// Rows that every site holds.
        rows: Vec<u64>,
    },
    /// Something the user should know although the computation goes on.
    Warning {
        /// The message.
        message: String,
    },
}

/// How one decision function was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SolvedFunction {
    /// Its place in [`Model::functions`](crate::machine::Model::functions).
    pub index: usize,
    /// What its solver reached.
    pub outcome: Outcome,
    /// Its offset ρ.
    pub offset: f64,
    /// Coefficients that are not zero.
    pub support: usize,
    /// Coefficients at their bound.
    pub bounded: usize,
    /// What the solution determines and the machine was not given: `nu` for machines given C
    /// (unless the rows have weights), `C` for ν-SVC, `epsilon` for ν-SVR.
    pub determined: Option<(&'static str, f64)>,
}

/// Receives [`Event`]s; called from worker threads.
pub trait Observer: Send + Sync {
    /// Called at every event; must return quickly.
    fn observe(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync> Observer for F {
    fn observe(&self, event: &Event) {
        self(event);
    }
}

/// A flag that asks a running computation to stop at the next block.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A token not yet cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks every computation that holds this token to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether [`cancel`](Self::cancel) was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Time for finishing after a request to stop: half of what a limit may be overrun by.
const GRACE: Duration = Duration::from_millis(250);

/// How long a thread spins without finding work.
const SPIN_LIMIT: Duration = Duration::from_micros(500);

/// Runs jobs of the pool until `done`, on any thread but `owner`, which waits for the others. Returns
/// early when there are no jobs, because another caller may be waiting for this thread.
fn spin(owner: usize, done: &AtomicBool) {
    let mut since = Instant::now();
    while rayon::current_thread_index() != Some(owner)
        && !done.load(Ordering::Acquire)
        && since.elapsed() < SPIN_LIMIT
    {
        match rayon::yield_now() {
            Some(rayon::Yield::Executed) => since = Instant::now(),
            _ => std::hint::spin_loop(),
        }
    }
}

/// Sets a flag when it is dropped, also by a panic.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Threads, memory, randomness and control of one computation.
///
/// ```
/// use widemargin::Context;
/// let context = Context::new().with_threads(2)?.with_cache_bytes(256 << 20);
/// assert_eq!(context.threads(), 2);
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone)]
pub struct Context {
    pool: Option<Arc<rayon::ThreadPool>>,
    cache_bytes: usize,
    seed: u64,
    observer: Option<Arc<dyn Observer>>,
    deadline: Option<Instant>,
    cancel: CancelToken,
    instruction_set: Option<InstructionSet>,
    backend: Arc<dyn Backend>,
}

impl Default for Context {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("threads", &self.threads())
            .field("cache_bytes", &self.cache_bytes)
            .field("seed", &self.seed)
            .field("deadline", &self.deadline)
            .field("instruction_set", &self.instruction_set)
            .field("backend", &self.backend.name())
            .finish_non_exhaustive()
    }
}

impl Context {
    /// One thread, the default cache, seed 0, no observer, no deadline.
    pub fn new() -> Self {
        Self {
            pool: None,
            cache_bytes: DEFAULT_CACHE_BYTES,
            seed: 0,
            observer: None,
            deadline: None,
            cancel: CancelToken::new(),
            instruction_set: None,
            backend: Arc::new(Cpu),
        }
    }

    /// Uses `threads` worker threads; 0 means one per logical processor.
    ///
    /// # Errors
    /// [`Error::Parameter`] for more than 1024, [`Error::Threads`] when the system
    /// refuses to start them.
    pub fn with_threads(mut self, threads: usize) -> Result<Self> {
        if threads > MAX_THREADS {
            return Err(Error::parameter("threads", format!("at most {MAX_THREADS}"), threads));
        }
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        };
        self.pool = if threads == 1 {
            None
        } else {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .map_err(|e| Error::Threads { threads, message: e.to_string() })?;
            Some(Arc::new(pool))
        };
        Ok(self)
    }

    /// Bounds the kernel-row cache.
    pub fn with_cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Seeds everything random (folds, codes).
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Reports events to `observer`.
    pub fn with_observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Stops with the best model so far once `limit` has passed from now.
    pub fn with_time_limit(mut self, limit: Duration) -> Self {
        self.deadline = Instant::now().checked_add(limit);
        self
    }

    /// Stops with the best model so far once `token` is cancelled.
    pub fn with_cancel_token(mut self, token: CancelToken) -> Self {
        self.cancel = token;
        self
    }

    /// Forces a SIMD path instead of the best one of this processor.
    ///
    /// # Errors
    /// [`Error::Parameter`] when this processor lacks the instruction set.
    pub fn with_instruction_set(mut self, set: InstructionSet) -> Result<Self> {
        if !set.is_available() {
            let best = InstructionSet::detect();
            return Err(Error::parameter(
                "instruction_set",
                format!("one this processor has (best: {best})"),
                set,
            ));
        }
        self.instruction_set = Some(set);
        Ok(self)
    }

    /// Computes kernel values by `backend`, and by the CPU what it does not take.
    pub fn with_backend(mut self, backend: impl Backend + 'static) -> Self {
        self.backend = Arc::new(backend);
        self
    }

    /// Number of worker threads.
    pub fn threads(&self) -> usize {
        self.pool.as_ref().map_or(1, |p| p.current_num_threads())
    }

    /// Bytes the kernel-row cache may hold.
    pub fn cache_bytes(&self) -> usize {
        self.cache_bytes
    }

    /// Seed of everything random.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The SIMD path in force.
    pub fn instruction_set(&self) -> InstructionSet {
        self.instruction_set.unwrap_or_else(InstructionSet::detect)
    }

    /// Who computes kernel values.
    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    /// Runs `work` on this context's threads; rayon iterators inside use them.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let Some(pool) = &self.pool else { return work() };
        let (mut work, mut result) = (Some(work), None);
        parallel::install(pool, &mut || result = work.take().map(|work| work()));
        result.unwrap_or_else(|| unreachable!("the pool returns when the work is done"))
    }

    fn task_threads(&self) -> Threads<'_> {
        self.pool.as_ref().map_or(Threads::Caller, |pool| Threads::Pool(pool))
    }

    /// What `task` makes of each item, in their order, computed on this context's threads.
    pub(crate) fn map<I: Send, R: Send>(
        &self,
        items: impl IntoIterator<Item = I>,
        task: impl Fn(I) -> R + Sync,
    ) -> Vec<R> {
        parallel::map(self.task_threads(), items, task)
    }

    /// Runs `task` on each item, on this context's threads.
    pub(crate) fn for_each<I: Send>(
        &self,
        items: impl IntoIterator<Item = I>,
        task: impl Fn(I) + Sync,
    ) {
        self.map(items, task);
    }

    /// As [`for_each`](Self::for_each), but on the calling thread unless other threads are `worth` waking.
    pub(crate) fn for_each_if<I: Send>(
        &self,
        worth: bool,
        items: impl IntoIterator<Item = I>,
        task: impl Fn(I) + Sync,
    ) {
        if worth {
            self.for_each(items, task);
        } else {
            items.into_iter().for_each(task);
        }
    }

    /// As [`map`](Self::map), until a task fails.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(crate) fn try_map<I: Send, R: Send>(
        &self,
        items: impl IntoIterator<Item = I>,
        task: impl Fn(I) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        parallel::try_map(self.task_threads(), items, task)
    }

    /// As [`for_each`](Self::for_each), until a task fails.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(crate) fn try_for_each<I: Send>(
        &self,
        items: impl IntoIterator<Item = I>,
        task: impl Fn(I) -> Result<()> + Sync,
    ) -> Result<()> {
        self.try_map(items, task).map(|_| ())
    }

    /// Runs `work`, whose parallel sections are short and follow each other closely: the other threads
    /// of the pool, up to `most`, spin between sections, since waking a sleeping thread would take as
    /// long as a section.
    pub(crate) fn with_spinning_threads<R: Send>(
        &self,
        most: usize,
        work: impl FnOnce() -> R + Send,
    ) -> R {
        let Some(owner) = rayon::current_thread_index().filter(|_| self.is_parallel()) else {
            return work();
        };
        let done = AtomicBool::new(false);
        rayon::in_place_scope(|scope| {
            for _ in 1..most.min(self.threads()) {
                scope.spawn(|_| spin(owner, &done));
            }
            let _set_done = SetOnDrop(&done);
            work()
        })
    }

    /// Whether rayon iterators are worth their overhead here.
    pub fn is_parallel(&self) -> bool {
        self.pool.is_some()
    }

    /// Whether there is an observer, so that events need to be made up.
    pub(crate) fn is_observed(&self) -> bool {
        self.observer.is_some()
    }

    /// Tells the observer, if there is one.
    pub fn report(&self, event: &Event) {
        if let Some(observer) = &self.observer {
            observer.observe(event);
        }
    }

    /// When the time limit is reached, if there is one.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Time until the deadline, if there is one.
    pub fn time_left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Ends a computation that has no partial result to keep.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when it must stop now.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        self.stop_request().map_or(Ok(()), |_| Err(Error::Interrupted))
    }

    /// The same without deadline, cancellation and observer, for the short work that makes a result of what was
    /// reached when the computation was asked to stop.
    pub(crate) fn after_stop(&self) -> Self {
        let mut context = self.clone().with_cancel_token(CancelToken::new());
        context.deadline = None;
        context.observer = None;
        context
    }

    /// The same with [`GRACE`] more, from now where it was cancelled, for work that makes a result of what was
    /// reached and may be too long to be [waited for](Self::after_stop).
    pub(crate) fn with_grace(&self) -> Self {
        let mut context = self.clone();
        context.deadline = self.deadline.map(|deadline| deadline + GRACE);
        if self.cancel.is_cancelled() {
            context.cancel = CancelToken::new();
            context.deadline = Some(Instant::now() + GRACE);
        }
        context
    }

    /// Why the computation must stop now, if it must.
    pub fn stop_request(&self) -> Option<Status> {
        if self.cancel.is_cancelled() {
            Some(Status::Interrupted)
        } else if self.deadline.is_some_and(|d| Instant::now() >= d) {
            Some(Status::TimeLimit)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinning_threads_change_no_result() {
        use rayon::prelude::*;
        for threads in [1, 2, 3] {
            let context = Context::new().with_threads(threads).unwrap();
            let sums = || (0..50_u64).map(|k| (0..k).into_par_iter().sum::<u64>()).sum::<u64>();
            let nested =
                || context.with_spinning_threads(8, sums) + context.with_spinning_threads(2, sums);
            assert_eq!(
                context.install(|| context.with_spinning_threads(threads, nested)),
                2 * 19_600
            );
            let fails = || {
                context
                    .install(|| context.with_spinning_threads::<()>(2, || panic!("as it should")))
            };
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(fails)).is_err());
        }
    }
}
