//! How many threads are faster at present.
//!
//! Threads that synchronise every few microseconds gain nothing where they share cores with other work:
//! waiting for a thread that does not run costs more than it adds. As the result does not depend on their
//! number, it may change at any time. Threads that hardly wait for each other are kept; where they do
//! wait, the time per row decides.

use std::time::{Duration, Instant};

use super::tuning::blocks::{KEPT_MS, TRIAL_MS, WORTHWHILE};

/// How long a number of threads is tried, and how long the better one is kept.
const TRIAL: Duration = Duration::from_millis(TRIAL_MS);
const KEPT: Duration = Duration::from_millis(KEPT_MS);

/// The choice between one thread and all.
pub(super) struct ThreadTuner {
    most: usize,
    single: bool,
    /// Seconds per row of all threads and of one, once known.
    known: [f64; 2],
    /// When the first pass of the stretch was over; until then threads may still be starting.
    began: Option<Instant>,
    length: Duration,
    /// Rows since then, and for how long threads have waited for each other.
    rows: usize,
    waited: Duration,
}

impl ThreadTuner {
    /// For up to so many threads.
    pub(super) fn new(most: usize) -> Self {
        let (rows, waited) = (0, Duration::ZERO);
        Self { most, single: false, known: [f64::NAN; 2], began: None, length: TRIAL, rows, waited }
    }

    /// Begins a stretch and says on how many threads.
    pub(super) fn begin(&mut self) -> usize {
        (self.began, self.rows, self.waited) = (None, 0, Duration::ZERO);
        if self.single { 1 } else { self.most }
    }

    /// Counts the rows of a pass and how long all threads together waited in it; whether the stretch
    /// is over and another number is to be chosen.
    pub(super) fn after(&mut self, rows: usize, waited: Duration) -> bool {
        let Some(began) = self.began else {
            self.began = Some(Instant::now());
            return false;
        };
        self.rows += rows;
        self.waited += waited;
        let taken = began.elapsed();
        if self.most == 1 || taken < self.length || self.rows == 0 {
            return false;
        }
        self.known[usize::from(self.single)] = taken.as_secs_f64() / self.rows as f64;
        let at_work = self.most as f64 - self.waited.as_secs_f64() / taken.as_secs_f64();
        if !self.single && at_work >= WORTHWHILE {
            self.length = KEPT;
            self.begin();
            return false;
        }
        self.choose();
        true
    }

    /// What is better, for long, or what is not known or was not tried for long, briefly.
    fn choose(&mut self) {
        let [all, one] = self.known;
        let single_is_better = one < all;
        let tried = self.length == TRIAL && !all.is_nan() && !one.is_nan();
        if tried {
            (self.single, self.length) = (single_is_better, KEPT);
        } else {
            (self.single, self.length) = (!self.single, TRIAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::Duration;

    use super::ThreadTuner;

    #[test]
    fn the_quicker_number_of_threads_is_kept() {
        for (slow, expected) in [(1, 2), (2, 1)] {
            let mut tuner = ThreadTuner::new(2);
            let mut kept = 0;
            for _ in 0..2 {
                let members = tuner.begin();
                assert!(!tuner.after(1, Duration::ZERO));
                sleep(Duration::from_millis(3));
                let waited = Duration::from_secs(1);
                assert!(tuner.after(if members == slow { 10 } else { 1000 }, waited));
                kept = members;
            }
            assert_eq!(kept, 1);
            assert_eq!(tuner.begin(), expected);
        }
    }

    #[test]
    fn one_thread_is_never_interrupted() {
        let mut tuner = ThreadTuner::new(1);
        assert_eq!(tuner.begin(), 1);
        assert!(!tuner.after(1000, Duration::ZERO));
        sleep(Duration::from_millis(3));
        assert!(!tuner.after(1000, Duration::ZERO));
    }

    #[test]
    fn threads_that_do_not_wait_are_not_interrupted() {
        let mut tuner = ThreadTuner::new(2);
        assert_eq!(tuner.begin(), 2);
        for _ in 0..2 {
            assert!(!tuner.after(10, Duration::ZERO));
            sleep(Duration::from_millis(3));
        }
        assert!(!tuner.after(10, Duration::from_millis(1)));
    }
}
