//! Linear kernels with explicit weights: one example after another, in random order.
//!
//! w_c = Σᵢ b_{i,c} xᵢ stands in memory, feature by feature, so that scores of an example cost its
//! non-zeros times the classes and there is no kernel matrix. Examples without a violation are
//! shrunk until the others are solved (dual coordinate descent as in Keerthi et al., KDD 2008).

use super::offset::{Offset, totals};
use super::problem::Options;
use super::solve::Ascent;
use crate::context::{Context, Event};
use crate::data::Matrix;
use crate::numeric::random::Generator;
use crate::numeric::simd::{PlainLoop, run_plain};
use crate::solver::Status;
use crate::solver::s2do::shared::example::Example;
use crate::solver::s2do::shared::table::Table;

/// Visits in a row without a violation worth a step after which an example is shrunk.
const SHRINK_AFTER: u8 = 3;

/// Share of the last sweep's violation below which a visit counts as quiet.
const SMALL: f64 = 0.1;

/// Share of the tolerance to which sweeps go, since a step disturbs those before it.
const MARGIN: f64 = 0.5;

/// Examples visited between two checks of the limits.
const CHECK_INTERVAL: usize = 1024;

/// The weights and the rows they come from.
pub(super) struct Linear<'a> {
    rows: Rows,
    classes: usize,
    /// Weights of all classes, feature after feature.
    weights: Vec<f64>,
    options: &'a Options,
    context: &'a Context,
    generator: Generator,
    steps: u64,
    sweeps: u64,
}

/// Non-zeros row after row.
struct Rows {
    ends: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Rows {
    #[inline(always)]
    fn row(&self, i: usize) -> (&[u32], &[f64]) {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        (&self.columns[start..self.ends[i]], &self.values[start..self.ends[i]])
    }
}

impl<'a> Linear<'a> {
    pub(super) fn new(
        features: &Matrix,
        order: &[usize],
        classes: usize,
        options: &'a Options,
        context: &'a Context,
    ) -> Self {
        let mut rows = Rows { ends: Vec::new(), columns: Vec::new(), values: Vec::new() };
        for &row in order {
            features.for_each_nonzero(row, |column, value| {
                rows.columns.push(column as u32);
                rows.values.push(value);
            });
            rows.ends.push(rows.columns.len());
        }
        let weights = vec![0.0; features.columns() * classes];
        let generator = Generator::new(context.seed());
        Self { rows, classes, weights, options, context, generator, steps: 0, sweeps: 0 }
    }

    /// ‖x‖² of every row.
    pub(super) fn squared_lengths(&self) -> Vec<f64> {
        let rows = 0..self.rows.ends.len();
        rows.map(|i| self.rows.row(i).1.iter().map(|x| x * x).sum()).collect()
    }

    fn limit(&self) -> Option<Status> {
        let spent = self.steps >= self.options.max_iterations;
        self.context.stop_request().or(spent.then_some(Status::IterationLimit))
    }
}

impl Ascent for Linear<'_> {
    fn ascend(&mut self, table: &mut Table, offset: &Offset, tol: f64) -> Option<Status> {
        let everyone: Vec<u32> = (0..table.len() as u32).collect();
        let mut active = everyone.clone();
        let mut quiet = vec![0_u8; table.len()];
        let mut total = totals(table);
        let mut last = f64::INFINITY;
        let mut stopped = None;
        loop {
            self.generator.shuffle(&mut active);
            self.sweeps += 1;
            let mut worst = 0.0_f64;
            let still = if last.is_finite() { SMALL * last } else { 0.0 };
            for stretch in active.chunks(CHECK_INTERVAL) {
                let sweep = Sweep {
                    table,
                    rows: &self.rows,
                    weights: &mut self.weights,
                    total: &mut total,
                    offset,
                    examples: stretch,
                    quiet: &mut quiet,
                    still,
                };
                worst = worst.max(run_plain(self.context.instruction_set(), sweep));
                self.steps += stretch.len() as u64;
                stopped = self.limit();
                if stopped.is_some() {
                    break;
                }
            }
            if self.context.is_observed() {
                self.context.report(&Event::Iteration {
                    iteration: self.sweeps as usize,
                    violation: worst,
                    objective: f64::NAN,
                    active: active.len(),
                });
            }
            if stopped.is_some() {
                // A pass over the data, as cheap as a sweep.
                self.refresh(table, offset);
                return stopped;
            }
            if !worst.is_finite() {
                return Some(Status::NumericalTrouble);
            }
            if worst <= MARGIN * tol {
                if active.len() == table.len() {
                    return None;
                }
                active.clone_from(&everyone);
                quiet.fill(0);
                last = f64::INFINITY;
            } else {
                active.retain(|&i| quiet[i as usize] < SHRINK_AFTER);
                last = worst;
            }
        }
    }

    fn refresh(&mut self, table: &mut Table, offset: &Offset) {
        let d = self.classes;
        self.weights.fill(0.0);
        let (mut own, mut total) = (Vec::new(), vec![0.0; d]);
        for i in (0..table.len()).filter(|&i| table.is_support(i)) {
            table.coefficients(i, &mut own);
            add(&self.rows, i, &own, &mut self.weights);
            total.iter_mut().zip(&own).for_each(|(total, b)| *total += b);
        }
        let mut score = vec![0.0; d];
        for i in 0..table.len() {
            scores(&self.rows, i, &self.weights, &total, offset, &mut score);
            table.score.iter_mut().zip(&score).for_each(|(column, &score)| column[i] = score);
        }
    }

    fn effort(&self) -> (u64, u64, u64) {
        (self.steps, self.sweeps, 0)
    }
}

/// One visit to each of some examples; returns the largest violation met.
struct Sweep<'a> {
    table: &'a mut Table,
    rows: &'a Rows,
    weights: &'a mut [f64],
    total: &'a mut [f64],
    offset: &'a Offset,
    examples: &'a [u32],
    quiet: &'a mut [u8],
    /// Violation that counts as quiet.
    still: f64,
}

impl PlainLoop for Sweep<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let mut worst = 0.0_f64;
        let (mut score, mut change) = (vec![0.0; self.total.len()], Vec::new());
        let mut example = Example::default();
        for &i in self.examples {
            let i = i as usize;
            scores(self.rows, i, self.weights, self.total, self.offset, &mut score);
            let violation = self.table.visit(i, |c| score[c], &mut example);
            worst = worst.max(violation);
            self.quiet[i] = if violation <= self.still { self.quiet[i] + 1 } else { 0 };
            if violation > 0.0 && self.table.improve(i, &mut example, &mut change) {
                add(self.rows, i, &change, self.weights);
                self.total.iter_mut().zip(&change).for_each(|(total, b)| *total += b);
            }
        }
        worst
    }
}

/// Scores of example `i`.
#[inline(always)]
fn scores(rows: &Rows, i: usize, weights: &[f64], total: &[f64], offset: &Offset, out: &mut [f64]) {
    let d = out.len();
    for c in 0..d {
        out[c] = offset.centre[c] + offset.strength * total[c];
    }
    let (columns, values) = rows.row(i);
    for (&column, &x) in columns.iter().zip(values) {
        let weights = &weights[column as usize * d..][..d];
        for c in 0..d {
            out[c] += x * weights[c];
        }
    }
}

/// Adds example `i` times `amounts` to the weights.
#[inline(always)]
fn add(rows: &Rows, i: usize, amounts: &[f64], weights: &mut [f64]) {
    let d = amounts.len();
    let (columns, values) = rows.row(i);
    for (&column, &x) in columns.iter().zip(values) {
        let weights = &mut weights[column as usize * d..][..d];
        for c in 0..d {
            weights[c] += x * amounts[c];
        }
    }
}
