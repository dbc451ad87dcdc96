//! Support patterns with their vectors, and the steps on them.

use std::time::Instant;

use super::fit::OnlineSvc;
use super::schedule::{Clock, Rates, Step, WorkingSetStrategy};
use super::store::{PrefetchedRows, Store};
use crate::data::Matrix;
use crate::error::Result;
use crate::machine::training::not_finite;
use crate::numeric::random::Generator;
use crate::numeric::simd::{PlainLoop, Real, run_plain};
use crate::solver::s2do::{Changes, MulticlassLoss, Patterns, Pool, WorkingSet};

/// Number format of kernel values; scores are summed in double precision.
pub(super) type Value = f32;

/// Seconds that one counted unit of work stands for.
const SECONDS_PER_UNIT: f64 = 1e-9;

/// Units of a feature product, of a score or variable touched, and of a gain computed.
const PRODUCT: f64 = 0.05;
const ENTRY: f64 = 0.5;
const GAIN: f64 = 4.0;

/// Patterns among which the partner of a variable is looked for; of more, a random stretch.
const PARTNERS: usize = 256;

/// Patterns among which a step on many looks for those that violate most.
const CANDIDATES: usize = 512;

/// Patterns of such a step.
const JOINT_PATTERNS: usize = 64;

/// Such a step ends at this share of the violation it found.
const TARGET_SHARE: f64 = 0.2;

/// Elementary steps of such a step per pattern.
const STEPS_PER_PATTERN: u64 = 10;

/// The part that is there once two classes are known.
pub(super) struct State {
    pub(super) patterns: Patterns,
    pub(super) store: Store<Value>,
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
    /// What looking ahead took for every fresh example.
    pub(super) ahead_seconds: f64,
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
        self.check("gain of a step", &[gain])?;
        let fresh = step == Step::New;
        let seconds = match parameters.clock {
            Clock::Wall => {
                let ahead = if fresh { self.ahead_seconds } else { 0.0 };
                started.elapsed().as_secs_f64() + ahead
            }
            Clock::Counted => {
                let ahead = if fresh { self.store.slots() as u64 } else { 0 };
                let values = (self.store.computed() - before.0 + ahead) as f64;
                let entries = (self.touched - before.1) as f64;
                let gains = (self.patterns.gains() - before.2) as f64;
                SECONDS_PER_UNIT
                    * (PRODUCT * self.store.products() * values + ENTRY * entries + GAIN * gains)
            }
        };
        self.rates.count(step, gain, seconds);
        Ok(slot)
    }

    /// Checks that numbers are finite.
    fn check(&self, what: &str, numbers: &[f64]) -> Result<()> {
        match numbers.iter().find(|number| !number.is_finite()) {
            None => Ok(()),
            Some(number) => Err(not_finite(self.store.kernel(), format!("{what} {number}"))),
        }
    }

    /// Unprojected scores of a row with the given kernel values.
    pub(super) fn score<T: Real>(&self, values: &[T]) -> Vec<f64> {
        let mut score = vec![0.0; self.patterns.columns()];
        let coefficients = &self.coefficients;
        let work = Weigh { values, coefficients, score: &mut score };
        run_plain(self.store.instruction_set(), work);
        score
    }

    /// Kernel values of the named rows of a table, which are to be learnt from next.
    pub(super) fn look_ahead(
        &mut self,
        table: &Matrix,
        rows: &[usize],
    ) -> Result<PrefetchedRows<Value>> {
        let started = Instant::now();
        let group = self.store.look_ahead(table, rows)?;
        self.ahead_seconds = started.elapsed().as_secs_f64() / rows.len().max(1) as f64;
        Ok(group)
    }

    /// The step on a fresh example, row `k` of a group.
    pub(super) fn fresh(
        &mut self,
        parameters: &OnlineSvc,
        group: &mut PrefetchedRows<Value>,
        k: usize,
        code: u32,
        upper: f64,
    ) -> Result<(Option<usize>, f64)> {
        self.steps += 1;
        let (values, own) = (group.values(k, self.store.slots()), group.own(k));
        let score = self.score(&values);
        self.check("k(x, x)", &[own.to_f64()])?;
        self.check("score of a row", &score)?;
        self.touched += self.coefficients.len() as u64;
        let (y, loss) = (code as usize, *self.patterns.loss());
        let gradient = |p: usize| self.patterns.gradient_of(y, p, &score);
        let worst = (0..self.patterns.classes())
            .filter(|&p| loss.uses(y, p))
            .max_by(|&a, &b| gradient(a).total_cmp(&gradient(b)));
        let Some(p) = worst.filter(|&p| gradient(p) >= parameters.tol && upper > 0.0) else {
            return Ok((None, 0.0));
        };
        let slot = self.store.insert(group, k, values);
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
            WorkingSetStrategy::Blocks | WorkingSetStrategy::WholePattern => {
                self.patterns.solve_pattern(slot)
            }
            WorkingSetStrategy::LaRank => {
                self.patterns.solve_labels(slot, Pool::Patterns, parameters.tol)
            }
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
            WorkingSetStrategy::All => (everyone, some(self)),
            WorkingSetStrategy::RandomPatternAll => (drawn(self), some(self)),
            WorkingSetStrategy::RandomPattern => {
                let own = drawn(self);
                (own.clone(), own)
            }
            WorkingSetStrategy::Blocks => return self.old_together(parameters.tol),
            WorkingSetStrategy::WholePattern => {
                let i = drawn(self).start;
                self.touched += self.patterns.columns() as u64;
                if self.patterns.violation_at(i) < parameters.tol {
                    return Ok(0.0);
                }
                let (gain, changes) = self.patterns.solve_pattern(i);
                self.apply(changes)?;
                return Ok(gain);
            }
            WorkingSetStrategy::LaRank => {
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

    /// A step on those of a stretch of kept examples that violate most; returns its gain.
    fn old_together(&mut self, tol: f64) -> Result<f64> {
        let (count, set) = (self.patterns.len(), self.store.instruction_set());
        let start = match count {
            count if count <= CANDIDATES => 0,
            count => self.generator.below(count - CANDIDATES + 1),
        };
        let range = start..count.min(start + CANDIDATES);
        let violations = self.patterns.violations(range.clone(), set);
        self.touched += (range.len() * self.patterns.classes()) as u64;
        let worst = violations.iter().copied().fold(0.0, f64::max);
        if worst < tol {
            return Ok(0.0);
        }
        let mut block: Vec<usize> =
            range.clone().filter(|&i| violations[i - range.start] >= tol).collect();
        let most = JOINT_PATTERNS.min(self.store.most_rows() / 2).max(1);
        if block.len() > most {
            let worse = |a: &usize, b: &usize| {
                violations[b - start].total_cmp(&violations[a - start]).then(a.cmp(b))
            };
            block.select_nth_unstable_by(most, worse);
            block.truncate(most);
        }
        block.sort_by_key(|&i| (self.patterns.code(i), i));
        let mut values = Vec::with_capacity(block.len() * block.len());
        for &i in &block {
            let row = self.store.row(i)?;
            values.extend(block.iter().map(|&j| row[j]));
        }
        let max_steps = STEPS_PER_PATTERN * block.len() as u64;
        let target = (TARGET_SHARE * worst).max(0.5 * tol);
        let (steps, changes) =
            self.patterns.solve_together(&block, &values, target, max_steps, set);
        self.steps += steps;
        self.touched += steps * (block.len() * self.patterns.classes()) as u64;
        self.check("change of a coefficient", &changes.amounts)?;
        Ok(self.apply_together(&changes))
    }

    /// As [`apply`](Self::apply) for changes of many patterns, whose rows are at hand; returns the
    /// gain.
    fn apply_together(&mut self, changes: &Changes) -> f64 {
        let (set, columns) = (self.store.instruction_set(), self.patterns.columns());
        let rows: Vec<&[Value]> =
            changes.patterns.iter().filter_map(|&i| self.store.ready(i)).collect();
        let gain = self.patterns.update_all(&rows, changes, set);
        // An eighth: many rows at once are a product of matrices.
        self.touched += (changes.patterns.len() * self.patterns.len() * columns) as u64 / 8;
        for (&slot, change) in changes.patterns.iter().zip(changes.amounts.chunks_exact(columns)) {
            let own = &mut self.coefficients[slot * columns..(slot + 1) * columns];
            own.iter_mut().zip(change).for_each(|(b, change)| *b += change);
        }
        for &slot in &changes.patterns {
            if !self.patterns.is_support(slot) {
                self.retire(slot);
            }
        }
        gain
    }

    /// Brings changes of coefficients into all scores, and lets go of examples without influence.
    pub(super) fn apply(&mut self, changes: Vec<(usize, Vec<f64>)>) -> Result<()> {
        let (set, columns) = (self.store.instruction_set(), self.patterns.columns());
        for (slot, change) in &changes {
            self.check("change of a coefficient", change)?;
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
        group: &mut PrefetchedRows<Value>,
        k: usize,
        code: u32,
        upper: f64,
        alpha: &[f64],
    ) {
        let (values, own) = (group.values(k, self.store.slots()), group.own(k));
        let slot = self.store.insert(group, k, values);
        self.patterns.push(code, upper, own.to_f64(), &vec![0.0; self.patterns.columns()]);
        self.patterns.set(slot, alpha);
        let mut own = Vec::new();
        self.patterns.coefficients(slot, &mut own);
        self.coefficients.extend(own);
        self.place.push(self.live.len());
        self.live.push(slot);
    }

    /// Computes the scores of all examples afresh.
    pub(super) fn rescore(&mut self) -> Result<()> {
        let (set, columns) = (self.store.instruction_set(), self.patterns.columns());
        self.patterns.clear_scores();
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

    pub(super) fn grow(&mut self, loss: MulticlassLoss, classes: usize) {
        let old = self.patterns.columns();
        self.patterns.grow(loss);
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
