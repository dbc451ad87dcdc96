//! Which variables of a dual the next passes look at.
//!
//! A variable that a pass finds idle, at a bound and held there by its gradient, rests for a pass,
//! then for three, then for seven as long as it is found so again: most looks of a hinge machine
//! would be at such variables. Whoever believes to be done calls all of them back first.

use super::variable::Variables;

/// The longest rest, in passes.
const LONGEST: usize = 7;

/// The variables to look at in the next pass, and those at rest.
pub(super) struct Roster {
    pub(super) active: Vec<u32>,
    /// Variables that this pass found idle.
    pub(super) idle: Vec<u32>,
    /// Those that wake before a pass, by its number modulo the length of this list.
    waking: [Vec<u32>; LONGEST + 1],
    pass: usize,
    longest: usize,
}

impl Roster {
    /// All of a list are active; nobody will rest unless `shrinking`.
    pub(super) fn new(list: Vec<u32>, shrinking: bool) -> Self {
        let longest = if shrinking { LONGEST } else { 0 };
        Self { active: list, idle: Vec::new(), waking: Default::default(), pass: 0, longest }
    }

    /// Makes all of a list active again.
    pub(super) fn call(&mut self, list: impl Iterator<Item = u32>) {
        self.active.clear();
        self.active.extend(list);
        self.waking.iter_mut().for_each(Vec::clear);
    }

    /// Ends a pass of which the first `kept` stay active: sends the idle ones to rest and wakes
    /// those whose time has come.
    pub(super) fn end_pass(&mut self, kept: usize, variables: &mut impl Variables) {
        self.active.truncate(kept);
        self.pass += 1;
        for i in self.idle.drain(..) {
            let nap = (2 * usize::from(variables.nap(i as usize)) + 1).min(self.longest);
            variables.set_nap(i as usize, nap as u8);
            self.waking[(self.pass + nap) % (LONGEST + 1)].push(i);
        }
        self.active.append(&mut self.waking[self.pass % (LONGEST + 1)]);
    }
}

#[cfg(test)]
mod tests {
    use super::Roster;
    use crate::solver::linear::variable::{OwnVariables, Variable, Variables};

    fn variables() -> OwnVariables {
        let one =
            Variable { beta: 0.0, lower: 0.0, upper: 1.0, target: 1.0, ridge: 0.0, reach: 1.0 };
        OwnVariables::new(vec![one; 2])
    }

    /// Passes in which variable 0 is looked at, if it is idle whenever it is and 1 never is.
    fn looks(shrinking: bool) -> Vec<usize> {
        let mut variables = variables();
        let mut roster = Roster::new(vec![0, 1], shrinking);
        let mut looks = Vec::new();
        for pass in 0..24 {
            if roster.active.contains(&0) {
                looks.push(pass);
                roster.idle.push(0);
            }
            roster.active = vec![1];
            roster.end_pass(1, &mut variables);
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
        let mut variables = variables();
        let mut roster = Roster::new(vec![0, 1], true);
        roster.idle.push(0);
        roster.active = vec![1];
        roster.end_pass(1, &mut variables);
        assert_eq!(variables.nap(0), 1);
        roster.call([0, 1].into_iter());
        roster.end_pass(2, &mut variables);
        roster.end_pass(2, &mut variables);
        assert_eq!(roster.active, [0, 1]);
    }
}
