//! Support patterns with their vectors, and the steps on them.

use std::time::Instant;

use super::fit::OnlineSvc;
use super::schedule::{Clock, Rates, Step, Strategy};
use super::store::Store;
use crate::data::Matrix;
use crate::error::Result;
use crate::kernel::{PlainLoop, Real, run_plain};
use crate::random::Generator;
use crate::solver::s2do::{Patterns, Pool, Rule, WorkingSet};

/// Seconds that one counted unit of work stands for.
const UNIT: f64 = 1e-9;

/// Patterns among which the partner of a variable is looked for; of more, a random stretch.
const PARTNERS: usize = 256;

/// The part that is there once two classes are known.
pub(super) struct State {
    pub(super) patterns: Patterns,
    pub(super) store: Store<f64>,
    /// Unprojected coefficients of every slot.
    pub(super) coefficients: Vec<f64>,
    /// Slots in use, and where each slot stands among them.
    pub(super) live: Vec<usize>,
    pub(super) place: Vec<usize>,
    pub(super) rates: Rates,
    pub(super) generator: Generator,
    pub(super) steps: u64,
    pub(super) touched: u64,
    pub(super) removed: u64,
}

impl State {
    /// Runs a step and counts its gain per cost.
    pub(super) fn timed(
        &mut self,
        parameters: &OnlineSvc,
        step: Step,
        work: impl FnOnce(&mut Self) -> Result<(Option<usize>, f64)>,
    ) -> Result<Option<usize>> {
        let started = Instant::now();
        let before = (self.store.computed(), self.touched, self.patterns.gains());
        let (slot, gain) = work(self)?;
        let seconds = match parameters.clock {
            Clock::Wall => started.elapsed().as_secs_f64(),
            Clock::Counted => {
                let values = (self.store.computed() - before.0) as f64;
                let entries = (self.touched - before.1) as f64;
                let gains = (self.patterns.gains() - before.2) as f64;
                UNIT * (0.5 * self.store.products() * values + entries + 4.0 * gains)
            }
        };
        self.rates.count(step, gain, seconds);
        Ok(slot)
    }

    /// Unprojected scores of a row with the given kernel values.
    pub(super) fn score<T: Real>(&self, values: &[T]) -> Vec<f64> {
        let mut score = vec![0.0; self.patterns.columns()];
        let coefficients = &self.coefficients;
        let work = Weigh { values, coefficients, score: &mut score };
        run_plain(self.store.instruction_set(), work);
        score
    }

    /// The step on a fresh example.
    pub(super) fn fresh(
        &mut self,
        parameters: &OnlineSvc,
        table: &Matrix,
        row: usize,
        code: u32,
        upper: f64,
    ) -> Result<(Option<usize>, f64)> {
        self.steps += 1;
        let (mut rows, own) = self.store.query(table, row..row + 1)?;
        let (values, own) = (rows.swap_remove(0), own[0]);
        let score = self.score(&values);
        self.touched += self.coefficients.len() as u64;
        let (y, rule) = (code as usize, *self.patterns.rule());
        let gradient = |p: usize| self.patterns.gradient_of(y, p, &score);
        let worst = (0..self.patterns.classes())
            .filter(|&p| rule.uses(y, p))
            .max_by(|&a, &b| gradient(a).total_cmp(&gradient(b)));
        let Some(p) = worst.filter(|&p| gradient(p) >= parameters.tol && upper > 0.0) else {
            return Ok((None, 0.0));
        };
        let slot = self.store.insert(table, row, &values, own)?;
        if slot == self.patterns.len() {
            self.patterns.push(code, upper, own.to_f64(), &score);
            self.coefficients.resize(self.coefficients.len() + self.patterns.columns(), 0.0);
            self.place.push(0);
        } else {
            self.patterns.replace(slot, code, upper, own.to_f64(), &score);
        }
        self.place[slot] = self.live.len();
        self.live.push(slot);
        let (gain, changes) = match parameters.strategy {
            Strategy::WholePattern => self.patterns.solve_pattern(slot),
            Strategy::LaRank => self.patterns.solve_labels(slot, Pool::Patterns, parameters.tol),
            _ => {
                let set = self.patterns.fresh_pair(slot, p, self.store.instruction_set());
                self.patterns.solve(set, own.to_f64())
            }
        };
        self.apply(changes)?;
        if !self.patterns.is_support(slot) {
            self.retire(slot);
            return Ok((None, gain));
        }
        if let Some(budget) = parameters.budget {
            while self.live.len() > budget.max(1) {
                self.give_up_least()?;
            }
        }
        Ok((Some(slot), gain))
    }

    /// A step on kept examples; returns its gain.
    pub(super) fn old(&mut self, parameters: &OnlineSvc, pool: Pool) -> Result<f64> {
        if self.live.is_empty() {
            return Ok(0.0);
        }
        self.steps += 1;
        let set = self.store.instruction_set();
        let everyone = 0..self.patterns.len();
        let some = |state: &mut Self| match state.patterns.len() {
            count if count <= PARTNERS => 0..count,
            count => {
                let start = state.generator.below(count - PARTNERS + 1);
                start..start + PARTNERS
            }
        };
        let drawn = |state: &mut Self| {
            let i = state.live[state.generator.below(state.live.len())];
            i..i + 1
        };
        let (range, partners) = match parameters.strategy {
            Strategy::All => (everyone, some(self)),
            Strategy::RandomPatternAll => (drawn(self), some(self)),
            Strategy::RandomPattern => {
                let own = drawn(self);
                (own.clone(), own)
            }
            Strategy::WholePattern => {
                let i = drawn(self).start;
                self.touched += self.patterns.columns() as u64;
                if self.patterns.violation_at(i) < parameters.tol {
                    return Ok(0.0);
                }
                let (gain, changes) = self.patterns.solve_pattern(i);
                self.apply(changes)?;
                return Ok(gain);
            }
            Strategy::LaRank => {
                let i = drawn(self).start;
                self.touched += self.patterns.columns() as u64;
                let (gain, changes) = self.patterns.solve_labels(i, pool, parameters.tol);
                self.apply(changes)?;
                return Ok(gain);
            }
        };
        self.touched += (range.len() * self.patterns.classes()) as u64;
        let first = self.patterns.first(range, pool, parameters.tol, set);
        let (working_set, k) = match first {
            None => return Ok(0.0),
            Some(WorkingSet::One(variable)) => {
                let row = self.store.row(variable.0)?;
                let chosen = self.patterns.partner(variable, partners, pool, row, set);
                let k = match chosen {
                    WorkingSet::Two(_, second) => row[second.0].to_f64(),
                    WorkingSet::One(_) => 0.0,
                };
                (chosen, k)
            }
            Some(WorkingSet::Two(up, down)) => {
                let row = self.store.row(up.0)?;
                (WorkingSet::Two(up, down), row[down.0].to_f64())
            }
        };
        let (gain, changes) = self.patterns.solve(working_set, k);
        self.apply(changes)?;
        Ok(gain.max(0.0))
    }

    /// Brings changes of coefficients into all scores, and lets go of examples without influence.
    pub(super) fn apply(&mut self, changes: Vec<(usize, Vec<f64>)>) -> Result<()> {
        let (set, columns) = (self.store.instruction_set(), self.patterns.columns());
        for (slot, change) in &changes {
            let row = self.store.row(*slot)?;
            self.patterns.update(row, change, set);
            let own = &mut self.coefficients[slot * columns..(slot + 1) * columns];
            own.iter_mut().zip(change).for_each(|(b, change)| *b += change);
            self.touched += (self.patterns.len() * columns) as u64;
        }
        for (slot, _) in changes {
            if !self.patterns.is_support(slot) {
                self.retire(slot);
            }
        }
        Ok(())
    }

    /// Takes an example with variables that are not zero; scores have to be computed afterwards.
    pub(super) fn adopt(
        &mut self,
        table: &Matrix,
        row: usize,
        code: u32,
        upper: f64,
        alpha: &[f64],
    ) -> Result<()> {
        let (mut rows, own) = self.store.query(table, row..row + 1)?;
        let (values, own) = (rows.swap_remove(0), own[0]);
        let slot = self.store.insert(table, row, &values, own)?;
        self.patterns.push(code, upper, own.to_f64(), &vec![0.0; self.patterns.columns()]);
        self.patterns.set(slot, alpha);
        let mut own = Vec::new();
        self.patterns.coefficients(slot, &mut own);
        self.coefficients.extend(own);
        self.place.push(self.live.len());
        self.live.push(slot);
        Ok(())
    }

    /// Computes the scores of all examples that were adopted, from scores of zero.
    pub(super) fn rescore(&mut self) -> Result<()> {
        let (set, columns) = (self.store.instruction_set(), self.patterns.columns());
        for slot in 0..self.patterns.len() {
            let row = self.store.row(slot)?;
            self.patterns.update(row, &self.coefficients[slot * columns..][..columns], set);
        }
        self.patterns.recount();
        Ok(())
    }

    pub(super) fn retire(&mut self, slot: usize) {
        let columns = self.patterns.columns();
        self.coefficients[slot * columns..(slot + 1) * columns].fill(0.0);
        self.patterns.retire(slot);
        self.store.remove(slot);
        let place = self.place[slot];
        self.live.swap_remove(place);
        if let Some(&moved) = self.live.get(place) {
            self.place[moved] = place;
        }
    }

    /// Removes the example whose part of the weights is shortest.
    pub(super) fn give_up_least(&mut self) -> Result<()> {
        let (mut least, mut own) = ((f64::INFINITY, 0), Vec::new());
        for &slot in &self.live {
            self.patterns.coefficients(slot, &mut own);
            let length: f64 = own[..self.patterns.classes()].iter().map(|b| b * b).sum::<f64>();
            if length < least.0 {
                least = (length, slot);
            }
        }
        let change = self.patterns.clear(least.1);
        self.removed += 1;
        self.apply(vec![(least.1, change)])
    }

    pub(super) fn grow(&mut self, rule: Rule, classes: usize) {
        let old = self.patterns.columns();
        self.patterns.grow(rule);
        let columns = self.patterns.columns();
        let mut grown = Vec::with_capacity(self.patterns.len() * columns);
        for own in self.coefficients.chunks_exact(old) {
            let mut next = own[..classes - 1].to_vec();
            next.push(0.0);
            if columns > classes {
                next.push(next.iter().sum::<f64>() / classes as f64);
            }
            grown.extend(next);
        }
        self.coefficients = grown;
    }
}

/// score += Σ value · coefficients.
struct Weigh<'a, T> {
    values: &'a [T],
    coefficients: &'a [f64],
    score: &'a mut [f64],
}

impl<T: Real> PlainLoop for Weigh<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let columns = self.score.len();
        for (slot, k) in self.values.iter().enumerate() {
            let k = k.to_f64();
            let own = &self.coefficients[slot * columns..][..columns];
            for c in 0..columns {
                self.score[c] += k * own[c];
            }
        }
    }
}
