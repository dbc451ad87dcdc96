//! The active set of a dual: which variables the next passes look at.
//!
//! A variable that a pass finds at a bound, held there by its gradient, is skipped for a pass, then for
//! three, then for seven as long as it is found so again: most looks of a hinge machine would be at such
//! variables. A descent that met its goal reactivates all of them first.

use super::tuning::dual::MOST_SKIPPED;

/// Passes whose skipped variables are distinguished.
const PASSES: usize = MOST_SKIPPED as usize + 1;

/// The variables to look at in the next pass, and those that are skipped.
pub(super) struct ActiveSet {
    pub(super) active: Vec<u32>,
    pub(super) skipped: Skipped,
}

/// Variables that passes skip.
pub(super) struct Skipped {
    /// Those that return before a pass, by its number modulo the length of this list.
    returning: [Vec<u32>; PASSES],
    pass: usize,
    most: u8,
}

impl Skipped {
    /// Skips a variable that was skipped for `before` passes last; for how many it is now.
    #[inline(always)]
    pub(super) fn skip(&mut self, i: u32, before: u8) -> u8 {
        let passes = (2 * before + 1).min(self.most);
        self.returning[(self.pass + 1 + usize::from(passes)) % PASSES].push(i);
        passes
    }
}

impl ActiveSet {
    /// All of a list are active; none is skipped unless `shrinking`.
    pub(super) fn new(list: Vec<u32>, shrinking: bool) -> Self {
        let most = if shrinking { MOST_SKIPPED } else { 0 };
        Self { active: list, skipped: Skipped { returning: Default::default(), pass: 0, most } }
    }

    /// Makes all of a list active again.
    pub(super) fn reactivate(&mut self, list: &[u32]) {
        self.active.clear();
        self.active.extend_from_slice(list);
        self.skipped.returning.iter_mut().for_each(Vec::clear);
    }

    /// Ends a pass of which the first `kept` stay active; those whose time has come return.
    pub(super) fn end_pass(&mut self, kept: usize) {
        let Skipped { returning, pass, .. } = &mut self.skipped;
        *pass += 1;
        self.active.truncate(kept);
        self.active.append(&mut returning[*pass % PASSES]);
    }
}

#[cfg(test)]
mod tests {
    use super::ActiveSet;

    /// Passes that look at variable 0, if it can never move and 1 always can.
    fn looks(shrinking: bool) -> Vec<usize> {
        let mut set = ActiveSet::new(vec![0, 1], shrinking);
        let (mut looks, mut skipped) = (Vec::new(), 0);
        for pass in 0..24 {
            if set.active.contains(&0) {
                looks.push(pass);
                skipped = set.skipped.skip(0, skipped);
            }
            set.active = vec![1];
            set.end_pass(1);
        }
        looks
    }

    #[test]
    fn variables_that_cannot_move_are_skipped_for_longer_and_longer() {
        assert_eq!(looks(true), [0, 2, 6, 14, 22]);
        assert_eq!(looks(false), (0..24).collect::<Vec<_>>());
    }

    #[test]
    fn reactivated_variables_return_once() {
        let mut set = ActiveSet::new(vec![0, 1], true);
        assert_eq!(set.skipped.skip(0, 0), 1);
        set.active = vec![1];
        set.end_pass(1);
        set.reactivate(&[0, 1]);
        set.end_pass(2);
        set.end_pass(2);
        assert_eq!(set.active, [0, 1]);
    }
}
