//! Which variables enter the next working set, and which may be set aside.
//!
//! Half of a working set is taken from the variables that most want to rise, half from those that
//! most want to fall. Rows not used before cost a computation, so only the worst few of those enter
//! at a time; variables met before fill the rest. All choices depend on the state alone, ties going
//! to the lower index, so that the path is the same for any number of threads.

use super::state::{Extremes, State};

/// A variable and by how much it violates the optimality conditions.
type Candidate = (f64, u32);

/// Chooses working sets.
pub(super) struct Selector {
    /// Whether a variable was in a working set before.
    met: Vec<bool>,
    candidates: [Vec<Candidate>; 2],
}

impl Selector {
    pub(super) fn new(variables: usize) -> Self {
        Self { met: vec![false; variables], candidates: [Vec::new(), Vec::new()] }
    }

    /// A working set of at most `size` variables, at most `fresh` of them not met before,
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
        self.find_candidates(state, extremes, |_| true);
        let mut chosen = Vec::with_capacity(size);
        for side in &mut self.candidates {
            let mut fresh_left = (fresh / 2).max(1);
            let mut room = size / 2;
            worst_first(side, 4 * size);
            for &(_, v) in side.iter() {
                if room == 0 {
                    break;
                }
                let met = self.met[v as usize];
                if met || fresh_left > 0 {
                    fresh_left -= usize::from(!met);
                    room -= 1;
                    chosen.push(v);
                }
            }
        }
        chosen.sort_unstable();
        chosen.dedup();
        for &v in &chosen {
            self.met[v as usize] = true;
        }
        chosen
    }

    /// The worst `size` violators not met before, ascending.
    pub(super) fn select_fresh(
        &mut self,
        state: &State,
        extremes: &[Extremes; 2],
        size: usize,
    ) -> Vec<u32> {
        let met = std::mem::take(&mut self.met);
        self.find_candidates(state, extremes, |v| !met[v]);
        self.met = met;
        let mut chosen = Vec::with_capacity(size);
        for side in &mut self.candidates {
            worst_first(side, size / 2);
            chosen.extend(side.iter().map(|&(_, v)| v));
        }
        chosen.sort_unstable();
        chosen.dedup();
        for &v in &chosen {
            self.met[v as usize] = true;
        }
        chosen
    }

    /// Lists the violating variables that `admitted` lets, those that want to rise and those that
    /// want to fall.
    fn find_candidates(
        &mut self,
        state: &State,
        extremes: &[Extremes; 2],
        admitted: impl Fn(usize) -> bool,
    ) {
        let [rising, falling] = &mut self.candidates;
        rising.clear();
        falling.clear();
        for v in (0..state.len()).filter(|&v| admitted(v)) {
            let value = -state.gradient[v];
            let e = extremes[state.group(v)];
            if state.can_rise(v) && value > e.down {
                rising.push((value - e.down, v as u32));
            }
            if state.can_fall(v) && value < e.up {
                falling.push((e.up - value, v as u32));
            }
        }
    }

    /// The selector of the variables that stay after shrinking.
    pub(super) fn compact(&self, keep: &[u32]) -> Self {
        Self {
            met: keep.iter().map(|&v| self.met[v as usize]).collect(),
            candidates: [Vec::new(), Vec::new()],
        }
    }
}

/// Moves the `count` largest candidates to the front, sorted, and drops the others.
fn worst_first(candidates: &mut Vec<Candidate>, count: usize) {
    let order = |a: &Candidate, b: &Candidate| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    if candidates.len() > count {
        candidates.select_nth_unstable_by(count, order);
        candidates.truncate(count);
    }
    candidates.sort_unstable_by(order);
}

/// The variables that may still move: all but those at a bound that the optimality conditions hold
/// there with room to spare.
pub(super) fn unsettled(state: &State, extremes: &[Extremes; 2]) -> Vec<u32> {
    (0..state.len())
        .filter(|&v| {
            let value = -state.gradient[v];
            let e = extremes[state.group(v)];
            match (state.can_rise(v), state.can_fall(v)) {
                (true, true) => true,
                (true, false) => value >= e.down,
                (false, true) => value <= e.up,
                (false, false) => false,
            }
        })
        .map(|v| v as u32)
        .collect()
}
