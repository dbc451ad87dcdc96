//! Which variables of a dual the next passes look at.
//!
//! A variable that a pass finds idle, at a bound and held there by its gradient, rests for a pass,
//! then for three, then for seven as long as it is found so again: most looks of a hinge machine
//! would be at such variables. Whoever believes to be done calls all of them back first.

/// The longest rest, in passes.
const LONGEST: u8 = 7;

/// Passes whose sleepers can be told apart.
const NIGHTS: usize = LONGEST as usize + 1;

/// The variables to look at in the next pass, and those at rest.
pub(super) struct Roster {
    pub(super) active: Vec<u32>,
    pub(super) rests: Rests,
}

/// Variables that passes found idle.
pub(super) struct Rests {
    /// Those that wake before a pass, by its number modulo the length of this list.
    waking: [Vec<u32>; NIGHTS],
    pass: usize,
    longest: u8,
}

impl Rests {
    /// Sends a variable to rest that rested for `nap` passes last; for how many it will now.
    #[inline(always)]
    pub(super) fn send(&mut self, i: u32, nap: u8) -> u8 {
        let nap = (2 * nap + 1).min(self.longest);
        self.waking[(self.pass + 1 + usize::from(nap)) % NIGHTS].push(i);
        nap
    }
}

impl Roster {
    /// All of a list are active; nobody will rest unless `shrinking`.
    pub(super) fn new(list: Vec<u32>, shrinking: bool) -> Self {
        let longest = if shrinking { LONGEST } else { 0 };
        Self { active: list, rests: Rests { waking: Default::default(), pass: 0, longest } }
    }

    /// Makes all of a list active again.
    pub(super) fn call(&mut self, list: impl Iterator<Item = u32>) {
        self.active.clear();
        self.active.extend(list);
        self.rests.waking.iter_mut().for_each(Vec::clear);
    }

    /// Ends a pass of which the first `kept` stay active: wakes those whose time has come.
    pub(super) fn end_pass(&mut self, kept: usize) {
        let Rests { waking, pass, .. } = &mut self.rests;
        *pass += 1;
        self.active.truncate(kept);
        self.active.append(&mut waking[*pass % NIGHTS]);
    }
}

#[cfg(test)]
mod tests {
    use super::Roster;

    /// Passes in which variable 0 is looked at, if it is idle whenever it is and 1 never is.
    fn looks(shrinking: bool) -> Vec<usize> {
        let mut roster = Roster::new(vec![0, 1], shrinking);
        let (mut looks, mut nap) = (Vec::new(), 0);
        for pass in 0..24 {
            if roster.active.contains(&0) {
                looks.push(pass);
                nap = roster.rests.send(0, nap);
            }
            roster.active = vec![1];
            roster.end_pass(1);
        }
        looks
    }

    #[test]
    fn idle_variables_rest_for_longer_and_longer() {
        assert_eq!(looks(true), [0, 2, 6, 14, 22]);
        assert_eq!(looks(false), (0..24).collect::<Vec<_>>());
    }

    #[test]
    fn a_call_wakes_everybody_once() {
        let mut roster = Roster::new(vec![0, 1], true);
        assert_eq!(roster.rests.send(0, 0), 1);
        roster.active = vec![1];
        roster.end_pass(1);
        roster.call([0, 1].into_iter());
        roster.end_pass(2);
        roster.end_pass(2);
        assert_eq!(roster.active, [0, 1]);
    }
}
