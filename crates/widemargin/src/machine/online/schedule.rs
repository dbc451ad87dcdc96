//! What is done between two fresh examples: strategies, clocks and the choice of steps.
//!
//! Step s is drawn with probability proportional to its running gain per cost,
//! r ← β · gain / (10⁻⁵ + cost) + (1 − β) r, floored at a share η of all (LaRank's scheduling).

use std::str::FromStr;

use crate::error::{Error, Result};
use crate::machine::names::names;
use crate::numeric::random::Generator;

/// β of Trinh (2012): share of a new rate in the running one.
pub(super) const RATE_STEP: f64 = 0.05;

/// η of Trinh (2012): smallest share of a step in the sum of all rates.
pub(super) const LEAST_SHARE: f64 = 0.05;

/// Seconds added to every cost.
const COST_OFFSET: f64 = 1e-5;

/// Largest gain per cost, which keeps sums of rates finite.
const LARGEST: f64 = 1e290;

/// Old steps after one fresh example; the floor makes more than a hundred unlikely.
pub(super) const MOST_OLD_STEPS: usize = 1000;

/// How the working set of an old step is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkingSetStrategy {
    /// Many patterns at once, those of a random stretch that violate most.
    #[default]
    Blocks,
    /// The worst variable of all, and the partner that gains most with it.
    All,
    /// The worst variable of a random pattern, and the best partner among all.
    RandomPatternAll,
    /// The worst variable of a random pattern, and the best partner in that pattern.
    RandomPattern,
    /// All variables of a random pattern at once.
    WholePattern,
    /// LaRank's exchange between two labels of a random pattern; for Crammer and Singer's machine.
    LaRank,
}

names!(WorkingSetStrategy, "strategy", Blocks: "blocks", All: "all", RandomPatternAll: "random-all",
       RandomPattern: "random-pattern", WholePattern: "whole-pattern", LaRank: "larank");

/// How often the examples are gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Epochs {
    /// A number of passes.
    Times(usize),
    /// Until a sweep over every example finds no violation.
    UntilOptimal,
}

impl FromStr for Epochs {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "inf" => Ok(Self::UntilOptimal),
            _ => match text.parse() {
                Ok(times) if times > 0 => Ok(Self::Times(times)),
                _ => Err(Error::parameter("epochs", "a number of at least 1, or inf", text)),
            },
        }
    }
}

/// What the cost of a step is measured in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Clock {
    /// Counted work: half a nanosecond for each score or variable touched, four for each gain, and a
    /// twentieth of one for each feature product. The same on every machine.
    #[default]
    Counted,
    /// Seconds; runs are then not repeatable.
    Wall,
}

names!(Clock, "clock", Counted: "counted", Wall: "wall");

/// How many old steps follow a fresh example.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnlineSchedule {
    /// By gain per cost.
    #[default]
    Adaptive,
    /// Fixed numbers of steps on all variables of the patterns and on their supports.
    Fixed {
        /// Steps on all variables.
        old: usize,
        /// Steps on variables that are not zero.
        supports: usize,
    },
}

/// A kind of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    New,
    Old,
    Supports,
}

/// Running gains per cost of the three steps.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    rates: [f64; 3],
    /// Running costs in seconds.
    costs: [f64; 3],
    /// Share of a new rate in the running one.
    step: f64,
    /// Smallest share of a step in the sum of all rates.
    least: f64,
}

impl Rates {
    pub(super) fn new(step: f64, least: f64) -> Self {
        Self { rates: [1.0; 3], costs: [COST_OFFSET; 3], step, least }
    }

    /// Counts a step's gain and cost in seconds.
    pub(super) fn count(&mut self, step: Step, gain: f64, seconds: f64) {
        let rate = &mut self.rates[step as usize];
        *rate =
            self.step * (gain / (COST_OFFSET + seconds)).min(LARGEST) + (1.0 - self.step) * *rate;
        let least = self.least * self.rates.iter().sum::<f64>();
        self.rates.iter_mut().for_each(|rate| *rate = rate.max(least));
        let cost = &mut self.costs[step as usize];
        *cost = self.step * (COST_OFFSET + seconds) + (1.0 - self.step) * *cost;
    }

    /// Draws the next step in proportion to the rates.
    pub(super) fn draw(&self, generator: &mut Generator) -> Step {
        match drawn(&self.rates, generator) {
            0 => Step::New,
            1 => Step::Old,
            _ => Step::Supports,
        }
    }

    /// Draws a fresh example or an old step such that the time of each, not its number, is in
    /// proportion to its rate, and old steps take at most half of it: for old steps that cost many
    /// times a fresh example.
    pub(super) fn draw_by_time(&self, generator: &mut Generator) -> Step {
        let [fresh, old] = [Step::New as usize, Step::Old as usize];
        let rates = [self.rates[fresh], self.rates[old].min(self.rates[fresh])];
        match drawn(&[rates[0] / self.costs[fresh], rates[1] / self.costs[old]], generator) {
            0 => Step::New,
            _ => Step::Old,
        }
    }
}

/// An index drawn in proportion to the weights.
fn drawn(weights: &[f64], generator: &mut Generator) -> usize {
    let total: f64 = weights.iter().sum();
    let mut at = total * (generator.bits() >> 11) as f64 / (1_u64 << 53) as f64;
    for (i, weight) in weights.iter().enumerate() {
        if at < *weight {
            return i;
        }
        at -= weight;
    }
    weights.len() - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_step_falls_below_its_floor() {
        let mut rates = Rates::new(RATE_STEP, LEAST_SHARE);
        for _ in 0..1000 {
            rates.count(Step::New, 1e6, 1e-6);
            rates.count(Step::Old, 0.0, 1.0);
        }
        let total: f64 = rates.rates.iter().sum();
        assert!(rates.rates.iter().all(|rate| rate / total > 0.04), "{rates:?}");
        let mut generator = Generator::new(3);
        let fresh = (0..10_000).filter(|_| rates.draw(&mut generator) == Step::New).count();
        assert!((8_500..9_500).contains(&fresh), "{fresh}");
    }
}
