//! Which variables enter the next working set, and which may be shrunk.
//!
//! Half of a working set is taken from the variables that most want to rise, half from those that
//! most want to fall. A row that is not in the cache costs a computation, so only the worst few of
//! those enter at a time; variables whose rows are at hand fill the rest. Which rows are at hand is
//! counted here, not asked of the cache, and ties go to the lower index, so that the path is the same
//! for any number of threads.

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::state::{Extremes, State};
use crate::context::Context;
use crate::numeric::simd::{PlainLoop, run_plain};

/// Variables scanned together; most of them are no candidates.
const SCAN_WIDTH: usize = 8;

/// A variable and by how much it violates the optimality conditions.
type Candidate = (f64, u32);

/// Chooses working sets.
pub(super) struct Selector {
    recent: RecentRows,
    candidates: [Vec<Candidate>; 2],
}

/// The variables with the most recently used rows, as many as the cache holds.
struct RecentRows {
    /// Clock of the last use of each variable, 0 when its row is not at hand.
    last_use: Vec<u64>,
    /// Uses in order, those overtaken by a later one included.
    uses: VecDeque<(u64, u32)>,
    count: usize,
    clock: u64,
    capacity: usize,
}

impl RecentRows {
    fn new(variables: usize, capacity: usize) -> Self {
        Self { last_use: vec![0; variables], uses: VecDeque::new(), count: 0, clock: 0, capacity }
    }

    fn has(&self, v: usize) -> bool {
        self.last_use[v] != 0
    }

    fn take(&mut self, variables: &[u32]) {
        self.clock += 1;
        for &v in variables {
            self.count += usize::from(!self.has(v as usize));
            self.last_use[v as usize] = self.clock;
            self.uses.push_back((self.clock, v));
        }
        while self.count > self.capacity.max(variables.len()) {
            let Some((clock, v)) = self.uses.pop_front() else { break };
            if self.last_use[v as usize] == clock {
                self.last_use[v as usize] = 0;
                self.count -= 1;
            }
        }
    }
}

impl Selector {
    /// A selector that counts on finding the last `capacity` rows used again.
    pub(super) fn new(variables: usize, capacity: usize) -> Self {
        Self { recent: RecentRows::new(variables, capacity), candidates: [Vec::new(), Vec::new()] }
    }

    /// A working set of at most `size` variables, at most `fresh` of them with rows not at hand,
    /// ascending. Contains the most violating pair.
    pub(super) fn select(
        &mut self,
        state: &State,
        extremes: &[Extremes; 2],
        size: usize,
        fresh: usize,
    ) -> Vec<u32> {
        if state.len() <= size {
            return (0..state.len() as u32).collect();
        }
        let [rising, falling] = &mut self.candidates;
        find_rising(state, extremes, |_| true, rising);
        find_falling(state, extremes, |_| true, falling);
        let mut chosen = Vec::with_capacity(size);
        for side in &mut self.candidates {
            let mut fresh_left = (fresh / 2).max(1);
            let mut room = size / 2;
            keep_worst(side, 4 * size);
            side.sort_unstable_by(worse_first);
            for &(_, v) in side.iter() {
                if room == 0 {
                    break;
                }
                let recent = self.recent.has(v as usize);
                if recent || fresh_left > 0 {
                    fresh_left -= usize::from(!recent);
                    room -= 1;
                    chosen.push(v);
                }
            }
        }
        chosen.sort_unstable();
        chosen.dedup();
        self.recent.take(&chosen);
        chosen
    }

    /// The `size` worst violators, fewer when some of them violate on both sides, ascending.
    pub(super) fn select_worst(
        &mut self,
        state: &State,
        extremes: &[Extremes; 2],
        size: usize,
        context: &Context,
    ) -> Vec<u32> {
        let [rising, falling] = &mut self.candidates;
        let mut rise = || {
            find_rising(state, extremes, |_| true, rising);
            keep_worst(rising, size / 2);
        };
        let mut fall = || {
            find_falling(state, extremes, |_| true, falling);
            keep_worst(falling, size / 2);
        };
        if context.is_parallel() {
            rayon::join(rise, fall);
        } else {
            rise();
            fall();
        }
        self.chosen()
    }

    /// The candidates of both sides, ascending.
    fn chosen(&self) -> Vec<u32> {
        let mut chosen: Vec<u32> = self.candidates.iter().flatten().map(|&(_, v)| v).collect();
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    }
}

/// The worst `size` violators of those that `admitted` lets, ascending.
pub(super) fn worst_violators(
    state: &State,
    extremes: &[Extremes; 2],
    size: usize,
    admitted: impl Fn(usize) -> bool,
    context: &Context,
) -> Vec<u32> {
    let (mut rising, mut falling) = (Vec::new(), Vec::new());
    let len = state.len();
    let (beta, gradient) = (&state.beta[..len], &state.gradient[..len]);
    let (lower, upper) = (&state.lower[..len], &state.upper[..len]);
    let mut take = |v: usize| {
        let Extremes { up, down } = extremes[state.group(v)];
        let value = -gradient[v];
        if admitted(v) && value > down && beta[v] < upper[v] {
            rising.push((value - down, v as u32));
        }
        if admitted(v) && value < up && beta[v] > lower[v] {
            falling.push((up - value, v as u32));
        }
    };
    if state.group_count == 1 {
        let violated = Violated { beta, gradient, lower, upper, extremes: extremes[0] };
        for start in run_plain(context.instruction_set(), violated) {
            (start..(start + SCAN_WIDTH).min(len)).for_each(&mut take);
        }
    } else {
        (0..len).for_each(take);
    }
    keep_worst(&mut rising, size / 2);
    keep_worst(&mut falling, size / 2);
    let mut chosen: Vec<u32> = rising.iter().chain(&falling).map(|&(_, v)| v).collect();
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

/// Where some of the next few variables of one group violate the optimality conditions.
struct Violated<'a> {
    beta: &'a [f64],
    gradient: &'a [f64],
    lower: &'a [f64],
    upper: &'a [f64],
    extremes: Extremes,
}

impl PlainLoop for Violated<'_> {
    type Output = Vec<usize>;

    #[inline(always)]
    fn run(self) -> Vec<usize> {
        let Extremes { up, down } = self.extremes;
        let (beta, rest) = self.beta.as_chunks::<SCAN_WIDTH>();
        let gradient = self.gradient.as_chunks::<SCAN_WIDTH>().0;
        let lower = self.lower.as_chunks::<SCAN_WIDTH>().0;
        let upper = self.upper.as_chunks::<SCAN_WIDTH>().0;
        let mut starts = Vec::new();
        for c in 0..beta.len() {
            let (beta, gradient, lower, upper) = (&beta[c], &gradient[c], &lower[c], &upper[c]);
            let mut any = false;
            for lane in 0..SCAN_WIDTH {
                let value = -gradient[lane];
                any |= (value > down) & (beta[lane] < upper[lane]);
                any |= (value < up) & (beta[lane] > lower[lane]);
            }
            if any {
                starts.push(c * SCAN_WIDTH);
            }
        }
        if !rest.is_empty() {
            starts.push(beta.len() * SCAN_WIDTH);
        }
        starts
    }
}

/// Lists the variables that violate by being too small, of those that `admitted` lets.
fn find_rising(
    state: &State,
    extremes: &[Extremes; 2],
    admitted: impl Fn(usize) -> bool,
    candidates: &mut Vec<Candidate>,
) {
    let violation = |v: usize| -state.gradient[v] - extremes[state.group(v)].down;
    let rising = (0..state.len()).filter(|&v| admitted(v) && state.can_rise(v));
    candidates.clear();
    candidates.extend(rising.map(|v| (violation(v), v as u32)).filter(|c| c.0 > 0.0));
}

/// Lists the variables that violate by being too large, of those that `admitted` lets.
fn find_falling(
    state: &State,
    extremes: &[Extremes; 2],
    admitted: impl Fn(usize) -> bool,
    candidates: &mut Vec<Candidate>,
) {
    let violation = |v: usize| extremes[state.group(v)].up + state.gradient[v];
    let falling = (0..state.len()).filter(|&v| admitted(v) && state.can_fall(v));
    candidates.clear();
    candidates.extend(falling.map(|v| (violation(v), v as u32)).filter(|c| c.0 > 0.0));
}

/// Larger violations first, then lower indices.
fn worse_first(a: &Candidate, b: &Candidate) -> Ordering {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
}

/// Drops all but the `count` worst candidates, in any order.
fn keep_worst(candidates: &mut Vec<Candidate>, count: usize) {
    if candidates.len() > count {
        candidates.select_nth_unstable_by(count, worse_first);
        candidates.truncate(count);
    }
}

/// The variables that may still move.
pub(super) fn active_variables(state: &State, extremes: &[Extremes; 2]) -> Vec<u32> {
    (0..state.len()).filter(|&v| is_active(state, extremes, v)).map(|v| v as u32).collect()
}

/// Whether a variable may still move: it is not at a bound that the optimality conditions hold it at
/// with room to spare.
pub(super) fn is_active(state: &State, extremes: &[Extremes; 2], v: usize) -> bool {
    let value = -state.gradient[v];
    let e = extremes[state.group(v)];
    match (state.can_rise(v), state.can_fall(v)) {
        (true, true) => true,
        (true, false) => value >= e.down,
        (false, true) => value <= e.up,
        (false, false) => false,
    }
}
