//! LASVM: the two-class machine with offset, online (Bordes, Ertekin, Weston and Bottou, 2005).
//!
//! Signed coefficients α ∈ [0, C] or [−C, 0] with Σα = 0 ascend `Σ αᵢyᵢ − ½ Σ αᵢαⱼkᵢⱼ` by pairs:
//! PROCESS pairs a fresh example with the most violating partner, REPROCESS the worst pair at hand,
//! after which examples that cannot come back are dropped.

use std::time::Instant;

use super::fit::check_parameters;
use super::learner::GROUP;
use super::schedule::Epochs;
use super::store::{PrefetchedRows, Store};
use crate::context::Context;
use crate::data::{Classes, Dataset};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::machine::definiteness;
use crate::machine::fit::{FitInput, Machine};
use crate::machine::model::Model;
use crate::machine::names::defaults;
use crate::machine::training::{check_outcome, not_finite};
use crate::machine::two_class::{TwoClass, two_classes};
use crate::machine::{ClassWeights, Precision};
use crate::numeric::random::Generator;
use crate::solver::{Outcome, Status};

/// Examples of each class that are processed first.
const SEEDS: usize = 5;

/// Passes after which "until optimal" gives up.
const MOST_EPOCHS: usize = 1000;

/// The online two-class machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Lasvm {
    /// Price C of margin errors.
    pub c: f64,
    /// The kernel.
    pub kernel: Kernel,
    /// How often the examples are gone through; [`Epochs::UntilOptimal`] ends at the optimum of
    /// [`Svc`](crate::machine::Svc).
    pub epochs: Epochs,
    /// Whether there is an offset; without one every row is learnt by itself.
    pub bias: bool,
    /// Factors on C by class.
    pub class_weights: ClassWeights,
    /// Whether the last pass is followed by REPROCESS until no pair violates.
    pub finishing: bool,
    /// Whether the examples come in random order.
    pub shuffle: bool,
    /// Smallest violation worth a step.
    pub tol: f64,
}

defaults!(Lasvm {
    c: 1.0,
    kernel: Kernel::Gaussian { gamma: 1.0 },
    epochs: Epochs::Times(1),
    bias: true,
    class_weights: ClassWeights::Uniform,
    finishing: true,
    shuffle: true,
    tol: 1e-3,
});

/// The example that is being learnt.
#[derive(Clone, Copy)]
struct CurrentExample {
    row: usize,
    slot: usize,
    sign: f64,
    alpha: f64,
    gradient: f64,
    low: f64,
    high: f64,
    own: f64,
}

struct State<'a> {
    data: &'a Dataset,
    signs: &'a [f64],
    bounds: &'a [f64],
    bias: bool,
    tol: f64,
    store: Store<f64>,
    held: Vec<CurrentExample>,
    is_held: Vec<bool>,
    steps: u64,
}

impl State<'_> {
    /// The variables with the largest gradient that may rise and the smallest that may fall.
    fn extremes(&self) -> (Option<usize>, Option<usize>) {
        let (mut up, mut down): (Option<usize>, Option<usize>) = (None, None);
        for (s, held) in self.held.iter().enumerate() {
            let above = |t: usize| held.gradient > self.held[t].gradient;
            let below = |t: usize| held.gradient < self.held[t].gradient;
            if held.alpha < held.high && up.is_none_or(above) {
                up = Some(s);
            }
            if held.alpha > held.low && down.is_none_or(below) {
                down = Some(s);
            }
        }
        (up, down)
    }

    /// Moves mass from `down` to `up`; whether that was worth it.
    fn step(&mut self, up: usize, down: usize) -> Result<bool> {
        let (i, j) = (self.held[up], self.held[down]);
        let slope = i.gradient - j.gradient;
        if up == down || slope <= self.tol || i.alpha >= i.high || j.alpha <= j.low {
            return Ok(false);
        }
        let first = self.store.row(i.slot)?.to_vec();
        let second = self.store.row(j.slot)?;
        let curvature = i.own + j.own - 2.0 * first[j.slot];
        let free = if curvature > 1e-12 { slope / curvature } else { f64::INFINITY };
        let (rise, fall) = (i.high - i.alpha, j.alpha - j.low);
        let size = free.min(rise).min(fall);
        // Bounds are met exactly, so that comparisons with them are.
        self.held[up].alpha = if size == rise { i.high } else { i.alpha + size };
        self.held[down].alpha = if size == fall { j.low } else { j.alpha - size };
        for held in &mut self.held {
            held.gradient -= size * (first[held.slot] - second[held.slot]);
        }
        self.steps += 1;
        Ok(true)
    }

    /// Without an offset: moves one variable to its best value; whether that was worth it.
    fn step_alone(&mut self, s: usize) -> Result<bool> {
        let held = self.held[s];
        let blocked =
            if held.gradient > 0.0 { held.alpha >= held.high } else { held.alpha <= held.low };
        if held.gradient.abs() <= self.tol || blocked {
            return Ok(false);
        }
        let free =
            if held.own > 1e-12 { held.gradient / held.own } else { held.gradient * f64::MAX };
        let next = (held.alpha + free).clamp(held.low, held.high);
        let row = self.store.row(held.slot)?;
        let size = next - held.alpha;
        for other in &mut self.held {
            other.gradient -= size * row[other.slot];
        }
        self.held[s].alpha = next;
        self.steps += 1;
        Ok(true)
    }

    /// A step on what violates most, whether it was worth it: a pair, or without an offset one variable.
    fn step_on_worst(&mut self) -> Result<bool> {
        match self.extremes() {
            (Some(up), Some(down)) if self.bias => self.step(up, down),
            _ if self.bias => Ok(false),
            (Some(up), Some(down)) => {
                let rises = self.held[up].gradient >= -self.held[down].gradient;
                self.step_alone(if rises { up } else { down })
            }
            (Some(one), None) | (None, Some(one)) => self.step_alone(one),
            (None, None) => Ok(false),
        }
    }

    /// Kernel values of those of `rows` that may be taken up.
    fn look_ahead(&mut self, rows: &[usize]) -> Result<(Vec<usize>, PrefetchedRows<f64>)> {
        let fresh = |row: &usize| !self.is_held[*row] && self.bounds[*row] > 0.0;
        let rows: Vec<usize> = rows.iter().copied().filter(fresh).collect();
        let group = self.store.look_ahead(self.data.features(), &rows)?;
        Ok((rows, group))
    }

    /// Takes up a fresh example, row `k` of a group, and pairs it.
    fn process(&mut self, group: &mut PrefetchedRows<f64>, k: usize, row: usize) -> Result<()> {
        let (values, own) = (group.values(k, self.store.slots()), group.own(k));
        let sum: f64 = self.held.iter().map(|held| held.alpha * values[held.slot]).sum();
        if !(sum.is_finite() && own.is_finite()) {
            let found = format!("k(x, x) = {own} and a score of {sum} for row {}", row + 1);
            return Err(not_finite(self.store.kernel(), found));
        }
        let slot = self.store.insert(group, k, values);
        let (sign, bound) = (self.signs[row], self.bounds[row]);
        self.is_held[row] = true;
        self.held.push(CurrentExample {
            row,
            slot,
            sign,
            alpha: 0.0,
            gradient: sign - sum,
            low: if sign > 0.0 { 0.0 } else { -bound },
            high: if sign > 0.0 { bound } else { 0.0 },
            own,
        });
        let fresh = self.held.len() - 1;
        if !self.bias {
            self.step_alone(fresh)?;
            return Ok(());
        }
        let (up, down) = self.extremes();
        let (up, down) = if sign > 0.0 { (Some(fresh), down) } else { (up, Some(fresh)) };
        if let (Some(up), Some(down)) = (up, down) {
            self.step(up, down)?;
        }
        Ok(())
    }

    /// A step on the worst pair, then drops what cannot come back; whether there was a step.
    fn reprocess(&mut self) -> Result<bool> {
        if !self.step_on_worst()? {
            return Ok(false);
        }
        let ends = match self.extremes() {
            _ if !self.bias => Some((0.0, 0.0)),
            (Some(up), Some(down)) => Some((self.held[up].gradient, self.held[down].gradient)),
            _ => None,
        };
        if let Some((highest, lowest)) = ends {
            let mut s = 0;
            while s < self.held.len() {
                let held = self.held[s];
                let optimal = if held.sign > 0.0 {
                    held.gradient <= lowest
                } else {
                    held.gradient >= highest
                };
                if held.alpha == 0.0 && optimal {
                    self.store.remove(held.slot);
                    self.is_held[held.row] = false;
                    self.held.swap_remove(s);
                } else {
                    s += 1;
                }
            }
        }
        Ok(true)
    }

    fn finish(&mut self, context: &Context) -> Result<Option<Status>> {
        while self.reprocess()? {
            if let Some(status) = context.stop_request() {
                return Ok(Some(status));
            }
        }
        Ok(None)
    }

    fn offset(&self) -> f64 {
        match self.extremes() {
            _ if !self.bias => 0.0,
            (Some(up), Some(down)) => -0.5 * (self.held[up].gradient + self.held[down].gradient),
            (Some(one), None) | (None, Some(one)) => -self.held[one].gradient,
            (None, None) => 0.0,
        }
    }

    /// Hinge losses of all rows, and the largest violation of a row that is not at hand; infinite, that
    /// is unknown, when there is no time for it.
    fn sweep(&mut self, context: &Context) -> Result<(f64, f64)> {
        let (offset, rows) = (self.offset(), self.data.rows());
        let mut cost = 0.0;
        let (mut highest, mut lowest) = (f64::NEG_INFINITY, f64::INFINITY);
        for start in (0..rows).step_by(GROUP) {
            if context.stop_request().is_some() {
                return Ok((f64::INFINITY, f64::INFINITY));
            }
            let range = start..(start + GROUP).min(rows);
            let values = self.store.query(self.data.features(), range.clone())?;
            for (row, values) in range.zip(&values) {
                let sum: f64 = self.held.iter().map(|h| h.alpha * values[h.slot]).sum();
                let sign = self.signs[row];
                cost += self.bounds[row] * (1.0 - sign * (sum - offset)).max(0.0);
                if !self.is_held[row] {
                    if sign > 0.0 {
                        highest = highest.max(sign - sum);
                    } else {
                        lowest = lowest.min(sign - sum);
                    }
                }
            }
        }
        let (up, down) = self.extremes();
        highest = up.map_or(highest, |up| highest.max(self.held[up].gradient));
        lowest = down.map_or(lowest, |down| lowest.min(self.held[down].gradient));
        let violation = if self.bias { highest - lowest } else { highest.max(-lowest) };
        Ok((cost, violation.max(0.0)))
    }
}

impl Machine for Lasvm {
    fn fit_with(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        input.fit_selected(Some(&self.kernel), |data| self.train(data, context))
    }

    fn kernel(&self) -> Option<&Kernel> {
        Some(&self.kernel)
    }
}

impl Lasvm {
    fn train(&self, data: &Dataset, context: &Context) -> Result<Model> {
        check_parameters(self.c, self.tol, &self.kernel)?;
        data.features().validate()?;
        let classes = two_classes(data, "lasvm")?;
        let started = Instant::now();
        let negative = definiteness::warn_of_rows(&self.kernel, data.features(), context)?;
        let signs: Vec<f64> =
            classes.codes.iter().map(|&code| if code == 0 { 1.0 } else { -1.0 }).collect();
        let bounds = self.bounds(data, &classes)?;
        let mut state = State {
            data,
            signs: &signs,
            bounds: &bounds,
            bias: self.bias,
            tol: self.tol,
            store: Store::new(
                self.kernel.clone(),
                context.instruction_set(),
                context.cache_bytes(),
                false,
            ),
            held: Vec::new(),
            is_held: vec![false; data.rows()],
            steps: 0,
        };
        let mut order: Vec<usize> = (0..data.rows()).collect();
        let mut generator = Generator::new(context.seed() ^ 0x1a57);
        if self.shuffle {
            generator.shuffle(&mut order);
        }
        for sign in [1.0, -1.0] {
            let seeds = order.iter().copied().filter(|&row| signs[row] == sign).take(SEEDS);
            let (rows, mut group) = state.look_ahead(&seeds.collect::<Vec<usize>>())?;
            for (k, &row) in rows.iter().enumerate() {
                state.process(&mut group, k, row)?;
            }
        }
        let (mut status, mut found) =
            self.run_epochs(&mut state, &mut order, &mut generator, context)?;
        if self.finishing && status == Status::IterationLimit {
            state.finish(context)?;
            found = None;
        }
        let (cost, violation) = match found {
            Some(found) => found,
            None => state.sweep(context)?,
        };
        if violation <= self.tol {
            status = Status::Solved;
        }
        let linear: f64 = state.held.iter().map(|h| h.alpha * h.sign).sum();
        let norm: f64 = state.held.iter().map(|h| h.alpha * (h.sign - h.gradient)).sum();
        let outcome = Outcome {
            status,
            primal: 0.5 * norm + cost,
            dual: linear - 0.5 * norm,
            violation,
            iterations: state.steps,
            blocks: 0,
            kernel_rows: state.store.computed() / data.rows().max(1) as u64,
        };
        check_outcome(&self.kernel, &outcome)?;
        let found = TwoClass {
            data,
            classes: &classes,
            kernel: &self.kernel,
            precision: Precision::F64,
            support: state.held.iter().map(|held| (held.row, held.alpha)).collect(),
            offset: state.offset(),
            outcome,
            started,
            parameters: vec![
                ("c".into(), self.c.into()),
                ("tol".into(), self.tol.into()),
                ("bias".into(), self.bias.to_string().into()),
                ("online".into(), "lasvm".into()),
            ],
        };
        Ok(definiteness::noted(found.model(), negative))
    }

    /// The price of every row, by its class and weight.
    fn bounds(&self, data: &Dataset, classes: &Classes) -> Result<Vec<f64>> {
        let factors = self.class_weights.resolve(classes)?;
        let bound = |row: usize| self.c * factors[classes.codes[row] as usize] * data.weight(row);
        Ok((0..data.rows()).map(bound).collect())
    }

    /// Goes through the examples; how that ended, and cost and violation where a sweep found them.
    fn run_epochs(
        &self,
        state: &mut State<'_>,
        order: &mut [usize],
        generator: &mut Generator,
        context: &Context,
    ) -> Result<(Status, Option<(f64, f64)>)> {
        let (most, until_optimal) = match self.epochs {
            Epochs::Times(times) => (times, false),
            Epochs::UntilOptimal => (MOST_EPOCHS, true),
        };
        let mut found = None;
        for _ in 0..most {
            if let Some(stopped) = context.stop_request() {
                return Ok((stopped, found));
            }
            let mut learnt = false;
            for rows in order.chunks(GROUP) {
                let (rows, mut group) = state.look_ahead(rows)?;
                learnt |= !rows.is_empty();
                for (k, &row) in rows.iter().enumerate() {
                    state.process(&mut group, k, row)?;
                    state.reprocess()?;
                    if let Some(stopped) = context.stop_request() {
                        return Ok((stopped, found));
                    }
                }
            }
            if until_optimal {
                if let Some(stopped) = state.finish(context)? {
                    return Ok((stopped, found));
                }
                let (cost, violation) = state.sweep(context)?;
                found = Some((cost, violation));
                if violation <= self.tol {
                    return Ok((Status::Solved, found));
                }
            }
            // Rows that are all among the support vectors change nothing, however often they come.
            if !learnt && !until_optimal {
                break;
            }
            if self.shuffle {
                generator.shuffle(order);
            }
        }
        Ok((Status::IterationLimit, found))
    }
}
