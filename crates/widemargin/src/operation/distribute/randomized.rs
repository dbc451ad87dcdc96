//! Training on random working sets (PRSVM; Lu 2005, chapter 5, after Balcázar, Dai and Watanabe 2001).
//!
//! Every row has a multiplicity, 1 at first. In a round each of C working sets of r copies is drawn
//! without replacement from the multiset and solved with one copy of each of its rows. A row outside that
//! violates its constraint is a violator. A solution without violators is the optimum over all rows. Where
//! the violators of a working set are few, at most a share 1 / (3δ) of the copies that were left for later
//! sets and the remainder, their multiplicities double, so that they are drawn more often. With
//! δ the combinatorial dimension of the problem and r ≥ 6δ², half of the updates are expected to do so.
//!
//! δ is not known. It starts at the number of features plus 1, at most 50, and doubles, with r, whenever
//! 20 / C rounds pass without an update, which has a probability of about 2⁻²⁰ where δ is right; r also
//! doubles when the support vectors fill a working set, which could then never hold the optimum.

use std::time::Instant;

use super::sampling::Multiset;
use super::{check_sites, local_duals};
use crate::context::Context;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::machine::{LocalDuals, LocalStart, Machine, Model, SolvedDual};
use crate::numeric::random::Generator;
use crate::outcome::{Outcome, Status};

/// Updates that fail one after the other before δ doubles: each fails with probability at most ½.
const FAILURES: u32 = 20;

/// The first guess of δ is at most this, so that the first working sets are at most 15 000 rows.
const LARGEST_FIRST_DIMENSION: usize = 50;

/// Multiplicities beyond this say that δ is wrong: with the right one, their sum stays below the square of
/// a few times the number of rows.
const LARGEST_MULTIPLICITY: u128 = 1 << 100;

/// Training on random working sets.
///
/// ```
/// use widemargin::Context;
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::kernel::Kernel;
/// use widemargin::machine::Svc;
/// use widemargin::operation::distribute::Randomized;
///
/// let values: Vec<f64> = (0..2000).map(|i| f64::from(i) - 999.5).collect();
/// let labels = values.iter().map(|v| i64::from(*v > 0.0)).collect();
/// let data = Dataset::new(Matrix::DenseF64(Dense::new(2000, 1, values)?), Labels::Int(labels))?;
/// let svc = Svc { c: 10.0, kernel: Kernel::Linear, ..Svc::default() };
/// let method = Randomized { working_set: Some(100), ..Randomized::default() };
/// let result = method.train(&svc, &data, &Context::new())?;
/// assert_eq!(result.model.support_rows(), [999, 1000]);
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Randomized {
    /// Working sets drawn in a round, C.
    pub sites: usize,
    /// Copies in a working set, r; `None`: 6δ².
    pub working_set: Option<usize>,
    /// Combinatorial dimension δ; `None`: the largest with 6δ² ≤ r, or a guess.
    pub dimension: Option<usize>,
    /// Whether δ and r grow when the training makes no progress; otherwise it stops.
    pub adaptive: bool,
    /// Limit on rounds.
    pub max_rounds: u32,
}

impl Default for Randomized {
    fn default() -> Self {
        Self { sites: 1, working_set: None, dimension: None, adaptive: true, max_rounds: 10_000 }
    }
}

/// How one function was found.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RandomizedFunction {
    /// Whether no row violates it; otherwise the training stalled or was stopped.
    pub verified: bool,
    /// Fewest violators of a working set, round by round.
    pub violators: Vec<usize>,
    /// Support vectors of that working set.
    pub support: Vec<usize>,
    /// Updates that doubled multiplicities.
    pub successes: u32,
    /// Updates that did not, because there were too many violators.
    pub failures: u32,
    /// The last δ.
    pub dimension: usize,
    /// The last r.
    pub working_set: usize,
    /// Rows that were drawn into working sets, over all rounds.
    pub vectors: u64,
    /// Multiplicity of every row of the function, as a power of two.
    pub doublings: Vec<u8>,
}

/// A model with what is known of its training.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RandomizedResult {
    /// The model of all rows.
    pub model: Model,
    /// Every function.
    pub functions: Vec<RandomizedFunction>,
}

impl Randomized {
    /// Trains `machine` on all rows of `data`; the seed of `context` decides the working sets.
    ///
    /// # Errors
    /// Machines other than C-SVC, ε-SVR and one-class, parameters out of range, and those of a training.
    pub fn train(
        &self,
        machine: &dyn Machine,
        data: &Dataset,
        context: &Context,
    ) -> Result<RandomizedResult> {
        let started = Instant::now();
        check_sites(self.sites)?;
        if self.working_set == Some(0) {
            return Err(Error::parameter("working_set", "at least 1", 0));
        }
        if self.dimension == Some(0) {
            return Err(Error::parameter("dimension", "at least 1", 0));
        }
        let rows: Vec<usize> = (0..data.rows()).collect();
        let duals = local_duals(machine, data, &rows, context)?;
        let (mut points, mut functions) = (Vec::new(), Vec::new());
        for function in 0..duals.functions() {
            let seed = context.seed().wrapping_add(function as u64);
            let search = Search::new(self, &duals, function, seed);
            let (point, found) = search.run(context)?;
            points.push(point);
            functions.push(found);
        }
        let mut support: Vec<usize> =
            points.iter().flat_map(|point| point.coefficients.iter().map(|c| c.0)).collect();
        support.sort_unstable();
        support.dedup();
        let outcome = points.iter().map(|point| point.outcome).reduce(Outcome::join);
        let place = |row: usize| support.partition_point(|&other| other < row);
        let by_place: Vec<Vec<(usize, f64)>> = points
            .iter()
            .map(|point| point.coefficients.iter().map(|&(row, v)| (place(row), v)).collect())
            .collect();
        let table = duals.table().select_rows(&support);
        let with_offsets = by_place.iter().zip(&points).map(|(c, p)| (c.as_slice(), p.offset));
        let (outcome, seconds) = (outcome.ok_or(Error::Interrupted)?, started.elapsed());
        let model = duals.model(
            &table,
            with_offsets.collect(),
            Some(&support),
            outcome,
            seconds.as_secs_f64(),
        )?;
        Ok(RandomizedResult { model, functions })
    }
}

/// The training of one function.
struct Search<'a> {
    settings: &'a Randomized,
    duals: &'a LocalDuals,
    function: usize,
    /// Rows that belong to the function.
    rows: Vec<usize>,
    labels: Vec<f64>,
    multiplicities: Vec<u128>,
    generator: Generator,
    found: RandomizedFunction,
    /// The best solution until now, coefficients by row of the data.
    best: Option<SolvedDual>,
    without_success: u32,
}

/// One working set after its solution.
struct WorkingSet {
    point: SolvedDual,
    /// Places among the rows of the function.
    violators: Vec<usize>,
    largest: f64,
    loss: f64,
}

/// The copies that were drawn for one working set.
struct Draw {
    /// Copies that were there before.
    before: u128,
    /// Drawn places in order of their rows, with copies.
    copies: Vec<(usize, u128)>,
}

impl<'a> Search<'a> {
    fn new(settings: &'a Randomized, duals: &'a LocalDuals, function: usize, seed: u64) -> Self {
        let all = match duals.table().labels() {
            crate::data::Labels::Real(labels) => labels.clone(),
            _ => vec![0.0; duals.table().rows()],
        };
        let takes =
            |row: &usize| duals.takes(function, all[*row]) && duals.table().weight(*row) > 0.0;
        let rows: Vec<usize> = (0..all.len()).filter(takes).collect();
        let labels = rows.iter().map(|&row| all[row]).collect();
        let implied = settings.working_set.map(|r| (((r / 6) as f64).sqrt() as usize).max(1));
        let guess = (duals.table().columns() + 1).min(LARGEST_FIRST_DIMENSION);
        let dimension = settings.dimension.or(implied).unwrap_or(guess);
        let working_set = settings.working_set.unwrap_or(needed(dimension));
        let found = RandomizedFunction {
            dimension,
            working_set: working_set.min(rows.len()),
            ..RandomizedFunction::default()
        };
        Self {
            settings,
            duals,
            function,
            multiplicities: vec![1; rows.len()],
            rows,
            labels,
            generator: Generator::new(seed),
            found,
            best: None,
            without_success: 0,
        }
    }

    fn run(mut self, context: &Context) -> Result<(SolvedDual, RandomizedFunction)> {
        let mut ended = Status::IterationLimit;
        for _ in 0..self.settings.max_rounds {
            if let Some(request) = context.stop_request() {
                ended = request;
                break;
            }
            let draws = self.draw();
            let solve = |draw: &Draw| self.solve(draw, context);
            let sets: Vec<WorkingSet> =
                context.map(&draws, solve).into_iter().collect::<Result<_>>()?;
            self.record(&draws, &sets);
            if let Some(optimal) = sets.iter().position(|set| set.violators.is_empty()) {
                self.found.verified = true;
                let set = sets.into_iter().nth(optimal).ok_or(Error::Interrupted)?;
                return Ok((verified(set), self.finished()));
            }
            self.update(&draws, &sets);
            if !self.go_on() {
                break;
            }
        }
        let mut best = self.best.take().ok_or(Error::Interrupted)?;
        best.outcome.status = best.outcome.status.max(ended);
        Ok((best, self.finished()))
    }

    fn finished(self) -> RandomizedFunction {
        let doublings = self.multiplicities.iter().map(|u| u.trailing_zeros() as u8).collect();
        RandomizedFunction { doublings, ..self.found }
    }

    /// Draws the working sets one after the other from what is left.
    fn draw(&mut self) -> Vec<Draw> {
        let mut left = Multiset::new(&self.multiplicities);
        (0..self.settings.sites)
            .map(|_| {
                let before = left.total();
                let mut places: Vec<usize> = if self.found.working_set >= self.rows.len() {
                    (0..self.rows.len()).collect()
                } else {
                    (0..self.found.working_set)
                        .map_while(|_| left.draw(&mut self.generator))
                        .collect()
                };
                places.sort_unstable();
                let runs = places.chunk_by(|a, b| a == b);
                Draw { before, copies: runs.map(|run| (run[0], run.len() as u128)).collect() }
            })
            .collect()
    }

    /// Solves a working set and looks for violators among all other rows.
    fn solve(&self, draw: &Draw, context: &Context) -> Result<WorkingSet> {
        let rows: Vec<usize> = draw.copies.iter().map(|&(place, _)| self.rows[place]).collect();
        let table = self.duals.table();
        let mut starts: Vec<Option<LocalStart<'_>>> = vec![None; self.duals.functions()];
        let start = self.best.iter().flat_map(|best| &best.coefficients);
        let at = |&(row, value): &(usize, f64)| Some((rows.binary_search(&row).ok()?, value));
        let coefficients = start.filter_map(at).collect();
        starts[self.function] = Some(LocalStart { coefficients, known: None });
        let mut solved = self.duals.solve(&table.select_rows(&rows), &starts, context)?;
        let mut point = solved[self.function].take().ok_or(Error::Interrupted)?;
        // Its rows are named by their places in the data from here on.
        point.known = None;
        point.coefficients.iter_mut().for_each(|(place, _)| *place = rows[*place]);
        let support: Vec<usize> = point.coefficients.iter().map(|c| c.0).collect();
        let mut coefficients = vec![Vec::new(); self.duals.functions()];
        coefficients[self.function] =
            point.coefficients.iter().enumerate().map(|(i, c)| (i, c.1)).collect();
        let others = self.duals.table().select_rows(&self.rows);
        let values = self.duals.values(
            &table.select_rows(&support),
            &coefficients,
            &others,
            &(0..self.rows.len()).collect::<Vec<_>>(),
            context,
        )?;
        let mut set = WorkingSet { point, violators: Vec::new(), largest: 0.0, loss: 0.0 };
        let mut drawn = draw.copies.iter().map(|c| c.0).peekable();
        for place in 0..self.rows.len() {
            if drawn.next_if_eq(&place).is_some() {
                continue;
            }
            let value = values[place * self.duals.functions() + self.function] - set.point.offset;
            let slack = self.duals.slack(self.function, self.labels[place], value);
            let slack = if slack.is_nan() { f64::INFINITY } else { slack.max(0.0) };
            set.largest = set.largest.max(slack);
            set.loss += self.duals.row_loss(table.weight(self.rows[place]), slack);
            if slack > self.duals.tolerance() {
                set.violators.push(place);
            }
        }
        Ok(set)
    }

    fn record(&mut self, draws: &[Draw], sets: &[WorkingSet]) {
        self.found.vectors += draws.iter().map(|draw| draw.copies.len() as u64).sum::<u64>();
        if let Some(set) = sets.iter().min_by_key(|set| set.violators.len()) {
            self.found.violators.push(set.violators.len());
            self.found.support.push(set.point.coefficients.len());
        }
        for set in sets {
            let best = self.best.as_ref().map_or(f64::NEG_INFINITY, |best| best.outcome.dual);
            if self.best.is_none() || set.point.outcome.dual > best {
                self.best = Some(set.point.clone());
            }
        }
    }

    /// Doubles the multiplicities of violators where they are few.
    fn update(&mut self, draws: &[Draw], sets: &[WorkingSet]) {
        let before = self.multiplicities.clone();
        let mut earlier = vec![0_u128; self.rows.len()];
        let mut success = false;
        for (draw, set) in draws.iter().zip(sets) {
            let copies: u128 = set.violators.iter().map(|&v| before[v] - earlier[v]).sum();
            if copies.saturating_mul(3 * self.found.dimension as u128) <= draw.before {
                self.found.successes += 1;
                success = true;
                set.violators.iter().for_each(|&v| self.multiplicities[v] *= 2);
            } else {
                self.found.failures += 1;
            }
            draw.copies.iter().for_each(|&(place, copies)| earlier[place] += copies);
        }
        self.without_success = if success { 0 } else { self.without_success + 1 };
    }

    /// Enlarges δ and r where they are too small; whether to go on.
    fn go_on(&mut self) -> bool {
        let support = self.found.support.last().copied().unwrap_or(0);
        let full = support >= self.found.working_set;
        let patience = FAILURES.div_ceil(self.settings.sites as u32);
        let overflow = self.multiplicities.iter().any(|&u| u > LARGEST_MULTIPLICITY);
        let stalled = self.without_success >= patience || overflow;
        if !full && !stalled {
            return true;
        }
        if !self.settings.adaptive {
            return false;
        }
        if overflow {
            self.multiplicities.fill(1);
        }
        if stalled {
            self.found.dimension = self.found.dimension.saturating_mul(2);
        }
        let larger = needed(self.found.dimension).max(2 * self.found.working_set);
        self.found.working_set = larger.min(self.rows.len());
        self.without_success = 0;
        true
    }
}

/// 6δ², the copies for which half of the updates are expected to succeed.
fn needed(dimension: usize) -> usize {
    dimension.saturating_mul(dimension).saturating_mul(6)
}

/// The solution of a working set without violators.
fn verified(set: WorkingSet) -> SolvedDual {
    let outcome = set.point.outcome;
    let violation = (outcome.violation + set.largest).max(2.0 * set.largest);
    let primal = outcome.primal + set.loss;
    SolvedDual { outcome: Outcome { violation, primal, ..outcome }, ..set.point }
}
