//! Independent tasks on several threads.
//!
//! A parallel iterator compiles some thousand lines of machinery for every closure it is given. Here
//! that machinery is compiled once, for a list of task numbers, and a task is a dynamic call; tasks are blocks
//! of rows, folds or sub-problems, so that the call and a lock that nobody else wants cost nothing beside them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::ThreadPool;
use rayon::prelude::*;

use crate::error::Result;

/// Tasks are handed out in runs of at least so many for each thread: enough that unequal tasks even out,
/// and that thousands of small ones do not become a job each.
const RUNS_PER_THREAD: usize = 64;

/// An item before, and a result after its task.
type Slot<I, R> = Mutex<(Option<I>, Option<R>)>;

fn with_slot<I, R, A>(
    slot: &Slot<I, R>,
    access: impl FnOnce(&mut (Option<I>, Option<R>)) -> A,
) -> A {
    access(&mut slot.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Where tasks run.
#[derive(Clone, Copy)]
pub(crate) enum Threads<'a> {
    /// On the calling thread, one after the other.
    Caller,
    /// On the pool that the calling thread belongs to.
    CurrentPool,
    /// On this pool.
    Pool(&'a ThreadPool),
}

impl Threads<'_> {
    /// The current pool where that is worth it, else the calling thread.
    pub(crate) fn of_current_pool(worth: bool) -> Self {
        if worth { Self::CurrentPool } else { Self::Caller }
    }

    fn run(self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        let on_pool = || {
            let longest = count.div_ceil(RUNS_PER_THREAD * rayon::current_num_threads()).max(1);
            (0..count).into_par_iter().with_max_len(longest).for_each(task);
        };
        match self {
            Self::Caller => (0..count).for_each(task),
            Self::CurrentPool => on_pool(),
            Self::Pool(pool) => pool.install(on_pool),
        }
    }
}

/// Runs `work` on a pool.
pub(crate) fn install(pool: &ThreadPool, work: &mut (dyn FnMut() + Send)) {
    pool.install(work);
}

/// What `task` makes of each item, in their order.
pub(crate) fn map<I: Send, R: Send>(
    threads: Threads<'_>,
    items: impl IntoIterator<Item = I>,
    task: impl Fn(I) -> R + Sync,
) -> Vec<R> {
    if matches!(threads, Threads::Caller) {
        return items.into_iter().map(task).collect();
    }
    let slots: Vec<Slot<I, R>> =
        items.into_iter().map(|item| Mutex::new((Some(item), None))).collect();
    threads.run(slots.len(), &|k| {
        if let Some(item) = with_slot(&slots[k], |slot| slot.0.take()) {
            let result = task(item);
            with_slot(&slots[k], |slot| slot.1 = Some(result));
        }
    });
    let ended =
        slots.into_iter().map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
    ended.filter_map(|(_, result)| result).collect()
}

/// As [`map`], until a task fails: tasks that have not begun by then are left out.
///
/// # Errors
/// Those of the tasks.
pub(crate) fn try_map<I: Send, R: Send>(
    threads: Threads<'_>,
    items: impl IntoIterator<Item = I>,
    task: impl Fn(I) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    if matches!(threads, Threads::Caller) {
        return items.into_iter().map(task).collect();
    }
    let failed = AtomicBool::new(false);
    let results = map(threads, items, |item| {
        if failed.load(Ordering::Relaxed) {
            return None;
        }
        let result = task(item);
        failed.fetch_or(result.is_err(), Ordering::Relaxed);
        Some(result)
    });
    results.into_iter().flatten().collect()
}

/// Memory that tasks reuse, one piece per task in progress.
pub(crate) struct Scratches<S>(Mutex<Vec<S>>);

impl<S: Default> Scratches<S> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Runs `task` with a piece that no other task has meanwhile.
    pub(crate) fn with<R>(&self, task: impl FnOnce(&mut S) -> R) -> R {
        let spare = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = spare().pop().unwrap_or_default();
        let result = task(&mut scratch);
        spare().push(scratch);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn results_stand_in_the_order_of_the_items_on_any_threads() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let mut squares: Vec<usize> = (0..1000).collect();
        for threads in [Threads::Caller, Threads::CurrentPool, Threads::Pool(&pool)] {
            let sums = map(threads, squares.chunks_mut(7).enumerate(), |(c, chunk)| {
                chunk.iter_mut().enumerate().for_each(|(k, x)| *x = (7 * c + k).pow(2));
                chunk.iter().sum::<usize>()
            });
            assert!(squares.iter().enumerate().all(|(k, x)| *x == k * k));
            let expected: Vec<usize> = squares.chunks(7).map(|c| c.iter().sum()).collect();
            assert_eq!(sums, expected);
            assert!(map(threads, 0..0, |k: usize| k).is_empty());
        }
    }

    #[test]
    fn a_failing_task_is_the_result() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        for threads in [Threads::Caller, Threads::Pool(&pool)] {
            let task = |k: usize| if k == 70 { Err(Error::Interrupted) } else { Ok(k) };
            assert!(matches!(try_map(threads, 0..100, task), Err(Error::Interrupted)));
            assert_eq!(try_map(threads, 0..70, task).unwrap().len(), 70);
        }
    }

    #[test]
    fn scratches_are_never_shared_by_two_tasks() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
        let scratches = Scratches::<Vec<usize>>::new();
        map(Threads::Pool(&pool), 0..200, |k| {
            scratches.with(|scratch| {
                scratch.push(k);
                std::thread::yield_now();
                assert_eq!(scratch.pop(), Some(k));
            });
        });
        assert!(scratches.0.into_inner().unwrap().len() <= 4);
    }
}
