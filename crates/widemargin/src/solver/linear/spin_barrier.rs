//! A barrier for a few threads that synchronise many thousand times a second.
//!
//! A round of the block-partitioned dual takes some microseconds, less than it takes to wake a sleeping
//! thread; so threads spin for a while before they yield.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::tuning::blocks::SPINS;

/// A barrier for a fixed number of threads, used again and again.
pub(super) struct SpinBarrier {
    members: usize,
    arrived: Padded,
    generation: Padded,
    broken: AtomicBool,
}

/// A count in a cache line of its own: a thread that arrives does not disturb those that wait.
#[repr(align(128))]
struct Padded(AtomicUsize);

impl SpinBarrier {
    pub(super) fn new(members: usize) -> Self {
        Self {
            members,
            arrived: Padded(AtomicUsize::new(0)),
            generation: Padded(AtomicUsize::new(0)),
            broken: AtomicBool::new(false),
        }
    }

    /// Waits until all members have arrived, and says how long.
    fn wait(&self) -> Duration {
        let generation = self.generation.0.load(Ordering::Acquire);
        if self.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == self.members {
            self.arrived.0.store(0, Ordering::Relaxed);
            self.generation.0.store(generation.wrapping_add(1), Ordering::Release);
            return Duration::ZERO;
        }
        let began = Instant::now();
        let mut spins = 0;
        while self.generation.0.load(Ordering::Acquire) == generation {
            assert!(!self.broken.load(Ordering::Relaxed), "another thread of the team panicked");
            if spins < SPINS {
                spins += 1;
                spin_loop();
            } else {
                thread::yield_now();
            }
        }
        began.elapsed()
    }

    /// Lets the others go when this thread panics before the guard is dropped.
    pub(super) fn guard(&self) -> BarrierGuard<'_> {
        BarrierGuard { barrier: self, waited: Duration::ZERO }
    }
}

/// A thread's place at the barrier.
pub(super) struct BarrierGuard<'a> {
    barrier: &'a SpinBarrier,
    /// How long it has waited for the others so far.
    pub(super) waited: Duration,
}

impl BarrierGuard<'_> {
    /// Waits until all members have arrived; what they did before is seen by all after.
    ///
    /// # Panics
    /// When another member has panicked.
    pub(super) fn wait(&mut self) {
        self.waited += self.barrier.wait();
    }
}

impl Drop for BarrierGuard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.barrier.broken.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::SpinBarrier;

    #[test]
    fn no_thread_is_a_round_ahead() {
        let barrier = SpinBarrier::new(3);
        let work: Vec<AtomicUsize> = (0..3).map(|_| AtomicUsize::new(0)).collect();
        thread::scope(|scope| {
            for own in &work {
                scope.spawn(|| {
                    let mut guard = barrier.guard();
                    for round in 0..500 {
                        own.store(round + 1, Ordering::Relaxed);
                        guard.wait();
                        assert!(work.iter().all(|w| w.load(Ordering::Relaxed) == round + 1));
                        guard.wait();
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_lets_the_others_go() {
        let barrier = SpinBarrier::new(2);
        let outcome = thread::scope(|scope| {
            let other = scope.spawn(|| {
                barrier.guard().wait();
            });
            let failing = scope.spawn(|| {
                let _guard = barrier.guard();
                panic!("on purpose");
            });
            (other.join().is_err(), failing.join().is_err())
        });
        assert_eq!(outcome, (true, true));
    }
}
