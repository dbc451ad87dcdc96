//! How many threads are worth their while right now.
//!
//! Threads that meet every few microseconds gain nothing where they share processors with other
//! work: whoever waits for one that does not run loses more than the second one adds. As the
//! result does not depend on their number, it may change at any time; the time per row decides.

use std::time::{Duration, Instant};

/// How long a number of threads is tried, and how long the better one is kept.
const TRIAL: Duration = Duration::from_millis(2);
const STAY: Duration = Duration::from_millis(60);

/// The choice between one thread and all.
pub(super) struct Pace {
    most: usize,
    alone: bool,
    /// Seconds per row of all threads and of one, once known.
    known: [f64; 2],
    /// When the first pass of the stretch was over; until then threads may still be on their way.
    began: Option<Instant>,
    length: Duration,
    rows: usize,
}

impl Pace {
    /// For up to so many threads.
    pub(super) fn new(most: usize) -> Self {
        Self { most, alone: false, known: [f64::NAN; 2], began: None, length: TRIAL, rows: 0 }
    }

    /// Begins a stretch and says on how many threads.
    pub(super) fn begin(&mut self) -> usize {
        (self.began, self.rows) = (None, 0);
        if self.alone { 1 } else { self.most }
    }

    /// Counts the rows of a pass; whether the stretch is over and another number is to be chosen.
    pub(super) fn after(&mut self, rows: usize) -> bool {
        let Some(began) = self.began else {
            self.began = Some(Instant::now());
            return false;
        };
        self.rows += rows;
        let taken = began.elapsed();
        if self.most == 1 || taken < self.length || self.rows == 0 {
            return false;
        }
        self.known[usize::from(self.alone)] = taken.as_secs_f64() / self.rows as f64;
        self.choose();
        true
    }

    /// What is better, for long, or what is not known or was not tried for long, briefly.
    fn choose(&mut self) {
        let [all, one] = self.known;
        let better_alone = one < all;
        let tried = self.length == TRIAL && !all.is_nan() && !one.is_nan();
        if tried {
            (self.alone, self.length) = (better_alone, STAY);
        } else {
            (self.alone, self.length) = (!self.alone, TRIAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::Duration;

    use super::Pace;

    #[test]
    fn the_quicker_number_of_threads_is_kept() {
        for (slow, expected) in [(1, 2), (2, 1)] {
            let mut pace = Pace::new(2);
            let mut kept = 0;
            for _ in 0..2 {
                let members = pace.begin();
                assert!(!pace.after(1));
                sleep(Duration::from_millis(3));
                assert!(pace.after(if members == slow { 10 } else { 1000 }));
                kept = members;
            }
            assert_eq!(kept, 1);
            assert_eq!(pace.begin(), expected);
        }
    }

    #[test]
    fn one_thread_is_never_interrupted() {
        let mut pace = Pace::new(1);
        assert_eq!(pace.begin(), 1);
        assert!(!pace.after(1000));
        sleep(Duration::from_millis(3));
        assert!(!pace.after(1000));
    }
}
