//! Where a few threads wait for each other many thousand times a second.
//!
//! A round of the bucketed dual takes some microseconds, less than it takes to wake a sleeping
//! thread; so threads turn on the spot for a while before they let others run.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Turns on the spot before a thread lets others run.
const TURNS: u32 = 1 << 12;

/// A place where a fixed number of threads meet, again and again.
pub(super) struct Meeting {
    members: usize,
    arrived: Alone,
    held: Alone,
    broken: AtomicBool,
}

/// A count in a cache line of its own: whoever arrives does not disturb those who watch.
#[repr(align(128))]
struct Alone(AtomicUsize);

impl Meeting {
    pub(super) fn new(members: usize) -> Self {
        Self {
            members,
            arrived: Alone(AtomicUsize::new(0)),
            held: Alone(AtomicUsize::new(0)),
            broken: AtomicBool::new(false),
        }
    }

    /// Waits until all members have come, and says how long.
    fn wait(&self) -> Duration {
        let held = self.held.0.load(Ordering::Acquire);
        if self.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == self.members {
            self.arrived.0.store(0, Ordering::Relaxed);
            self.held.0.store(held.wrapping_add(1), Ordering::Release);
            return Duration::ZERO;
        }
        let began = Instant::now();
        let mut turns = 0;
        while self.held.0.load(Ordering::Acquire) == held {
            assert!(!self.broken.load(Ordering::Relaxed), "another thread of the team panicked");
            if turns < TURNS {
                turns += 1;
                spin_loop();
            } else {
                thread::yield_now();
            }
        }
        began.elapsed()
    }

    /// Lets the others go when this thread panics before the guard is gone.
    pub(super) fn attend(&self) -> Attendance<'_> {
        Attendance { meeting: self, waited: Duration::ZERO }
    }
}

/// A thread's promise to come to all meetings.
pub(super) struct Attendance<'a> {
    meeting: &'a Meeting,
    /// For the others, so far.
    pub(super) waited: Duration,
}

impl Attendance<'_> {
    /// Waits until all members have come; what they did before is seen by all after.
    ///
    /// # Panics
    /// When another member has panicked.
    pub(super) fn wait(&mut self) {
        self.waited += self.meeting.wait();
    }
}

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.meeting.broken.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::Meeting;

    #[test]
    fn nobody_is_a_round_ahead() {
        let meeting = Meeting::new(3);
        let work: Vec<AtomicUsize> = (0..3).map(|_| AtomicUsize::new(0)).collect();
        thread::scope(|scope| {
            for own in &work {
                scope.spawn(|| {
                    let mut attendance = meeting.attend();
                    for round in 0..500 {
                        own.store(round + 1, Ordering::Relaxed);
                        attendance.wait();
                        assert!(work.iter().all(|w| w.load(Ordering::Relaxed) == round + 1));
                        attendance.wait();
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_lets_the_others_go() {
        let meeting = Meeting::new(2);
        let outcome = thread::scope(|scope| {
            let other = scope.spawn(|| {
                meeting.attend().wait();
            });
            let failing = scope.spawn(|| {
                let _attendance = meeting.attend();
                panic!("on purpose");
            });
            (other.join().is_err(), failing.join().is_err())
        });
        assert_eq!(outcome, (true, true));
    }
}
