//! Trains many machines on many parts of a data set and predicts the rows left out.
//!
//! Machines with one kernel share the kernel values of all rows, as long as those fit the cache;
//! classifiers that differ in their penalty alone are solved together
//! ([`PenaltyPath`](crate::machine::PenaltyPath)); any other machine starts from the one before
//! it on the same split: from its dual variables if it had the same kernel, otherwise from its
//! support vectors (Nguyen 2006, section 4.4.2).

mod predictions;

use std::sync::Mutex;
use std::time::Instant;

use super::Split;
use crate::context::{Context, Event};
use crate::data::{ClassOrder, Dataset, Dense, Labels, Matrix};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, KernelBlocks, fill_table};
use crate::machine::{
    FitInput, Machine, Model, PathStarts, Precision, Predictor, ScalingRule, Start,
};
use crate::numeric::simd::Real;
use crate::operation::warnings::warnings_only;
use crate::solver::Status;

/// Name of the stage that is reported.
const STAGE: &str = "trainings";

/// Feature products up to which computing a kernel value costs less than copying it from a table,
/// and how many of them, as a multiple of all, trainings may compute.
const CHEAP_PRODUCTS: usize = 32;
const MOST_COMPUTED: f64 = 2.0;

/// What trainings may have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reuse {
    /// Kernel values, active variables and starts.
    #[default]
    Everything,
    /// Nothing: every machine is trained by itself.
    Nothing,
}

/// What is computed for held-out rows; each item comes with those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Response {
    /// Their class, or the number predicted for them.
    Labels,
    /// The values of the decision functions.
    Values,
    /// Class probabilities.
    Probabilities,
}

/// Predictions for held-out rows, in the order of their split.
#[derive(Clone, Debug, PartialEq)]
pub struct Predictions {
    /// Their classes, or the numbers predicted for them.
    pub labels: Labels,
    /// Their decision values, if they were requested.
    pub values: Option<Dense<f64>>,
    /// Their class probabilities, if they were requested.
    pub probabilities: Option<Dense<f64>>,
}

/// The result of one machine on one split.
pub struct Evaluation<'a> {
    /// What its decision values mean.
    pub predictor: &'a Predictor<'a>,
    /// Its predictions for the held-out rows.
    pub predictions: Predictions,
    /// Seconds of training.
    pub fit_seconds: f64,
    /// Seconds of prediction.
    pub predict_seconds: f64,
    /// Steps of the solver.
    pub iterations: u64,
    /// How the training ended.
    pub status: Status,
}

/// What is evaluated, and how.
pub struct Job<'a> {
    /// The machines.
    pub machines: &'a [Box<dyn Machine>],
    /// The rows.
    pub data: &'a Dataset,
    /// What is learnt from and held out.
    pub splits: &'a [Split],
    /// How the features are scaled on the rows that are learnt from.
    pub scaling: Option<ScalingRule>,
    /// What is computed for held-out rows.
    pub response: Response,
    /// What trainings may have in common.
    pub reuse: Reuse,
}

/// Hands the evaluation of every machine on every split that `wanted` names, or why it has none, to
/// `take` with their places; it may be called from several threads. Returns why some are missing, if
/// so.
///
/// # Errors
/// Features that are not finite, and what `take` returns.
pub fn evaluate(
    job: &Job<'_>,
    wanted: impl Fn(usize, usize) -> bool + Sync,
    take: impl Fn(usize, usize, Result<Evaluation<'_>>) -> Result<()> + Sync,
    context: &Context,
) -> Result<Option<Status>> {
    job.data.features().validate()?;
    // Rows drawn with replacement: what trainings share knows every row once.
    let repeats = |split: &Split| split.train.windows(2).any(|pair| pair[0] == pair[1]);
    let job = &match job.splits.iter().any(repeats) {
        true => Job { reuse: Reuse::Nothing, ..*job },
        false => Job { ..*job },
    };
    let all: Vec<usize> = (0..job.splits.len()).collect();
    let views: Vec<Vec<usize>> = match job.scaling {
        Some(_) => all.into_iter().map(|split| vec![split]).collect(),
        None => vec![all],
    };
    let total = (0..job.machines.len())
        .map(|m| (0..job.splits.len()).filter(|&s| wanted(m, s)).count())
        .sum();
    context.report(&Event::Stage { name: STAGE, total });
    let quiet = warnings_only(context);
    let mut memory = Memory::default();
    for splits in views {
        let features = match job.scaling {
            Some(rule) => {
                let train = job.data.features().select_rows(&job.splits[splits[0]].train);
                Some(rule.fit(&train)?.transform(job.data.features().clone())?)
            }
            None => None,
        };
        let view = View::new(job, splits, features, &wanted, &take, context, &quiet)?;
        match view.run(&mut memory) {
            Err(Error::Interrupted) => {}
            other => other?,
        }
        if let Some(status) = context.stop_request() {
            return Ok(Some(status));
        }
    }
    Ok(None)
}

/// Memory for tables of kernel values.
#[derive(Default)]
struct Memory {
    single: Vec<f32>,
    double: Vec<f64>,
}

/// Splits that see the same features.
struct View<'a, W, K> {
    job: &'a Job<'a>,
    /// The rows, those of a class and held-out set together.
    data: Dataset,
    /// Places of the splits, and their rows in the order of `data`.
    splits: Vec<(usize, Split)>,
    wanted: &'a W,
    take: &'a K,
    context: &'a Context,
    quiet: &'a Context,
}

/// What the machines of one kernel leave to those of the next.
struct EarlierKernel {
    /// The last model of every split.
    models: Vec<Option<Model>>,
    /// The solutions of every list of classifiers that differ in their penalty alone.
    c_paths: Vec<Option<PathStarts>>,
}

/// A machine with its place among all.
type Placed<'a> = (usize, &'a dyn Machine);

impl<'a, W, K> View<'a, W, K>
where
    W: Fn(usize, usize) -> bool + Sync,
    K: Fn(usize, usize, Result<Evaluation<'_>>) -> Result<()> + Sync,
{
    fn new(
        job: &'a Job<'a>,
        places: Vec<usize>,
        features: Option<Matrix>,
        wanted: &'a W,
        take: &'a K,
        context: &'a Context,
        quiet: &'a Context,
    ) -> Result<Self> {
        let classifies = job.machines.iter().any(|machine| machine.penalty_path().is_some());
        let mut key: Vec<(u32, usize)> = vec![(0, usize::MAX); job.data.rows()];
        if classifies && let Ok(classes) = job.data.labels().classes(ClassOrder::Sorted) {
            for (key, &code) in key.iter_mut().zip(&classes.codes) {
                key.0 = code;
            }
        }
        for &split in places.iter().rev() {
            for &row in &job.splits[split].test {
                key[row].1 = split;
            }
        }
        let mut order: Vec<usize> = (0..key.len()).collect();
        order.sort_by_key(|&row| (key[row], row));
        let mut place = vec![0; order.len()];
        for (to, &from) in order.iter().enumerate() {
            place[from] = to;
        }
        let moved = |rows: &[usize]| rows.iter().map(|&row| place[row]).collect::<Vec<_>>();
        let splits = places
            .into_iter()
            .map(|split| {
                let mut train = moved(&job.splits[split].train);
                train.sort_unstable();
                (split, Split { train, test: moved(&job.splits[split].test) })
            })
            .collect();
        let data = match features {
            Some(features) => job.data.clone().with_features(features)?,
            None => job.data.clone(),
        };
        let data = data.select_rows(&order);
        Ok(Self { job, data, splits, wanted, take, context, quiet })
    }

    fn run(&self, memory: &mut Memory) -> Result<()> {
        let is_wanted = |m: usize| self.splits.iter().any(|(split, _)| (self.wanted)(m, *split));
        let mut groups: Vec<Vec<Placed<'_>>> = Vec::new();
        for (m, machine) in self.job.machines.iter().enumerate().filter(|(m, _)| is_wanted(*m)) {
            let same = |group: &&mut Vec<Placed<'_>>| {
                let first = group[0].1;
                machine.kernel().is_some()
                    && first.kernel() == machine.kernel()
                    && first.precision() == machine.precision()
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.push((m, &**machine)),
                None => groups.push(vec![(m, &**machine)]),
            }
        }
        let mut earlier =
            EarlierKernel { models: vec![None; self.splits.len()], c_paths: Vec::new() };
        for group in groups {
            if self.context.stop_request().is_some() {
                return Err(Error::Interrupted);
            }
            match (self.job.reuse, group[0].1.precision()) {
                (Reuse::Nothing, _) => self.train(&self.data, &group, &mut earlier)?,
                (_, Precision::F32) => {
                    self.with_table::<f32>(&group, &mut memory.single, &mut earlier)?;
                }
                (_, Precision::F64) => {
                    self.with_table::<f64>(&group, &mut memory.double, &mut earlier)?;
                }
            }
        }
        Ok(())
    }

    /// Trains a group of machines of one kernel on a table of its values, if that is worth it.
    fn with_table<T: Tabled>(
        &self,
        group: &[Placed<'_>],
        memory: &mut Vec<T>,
        earlier: &mut EarlierKernel,
    ) -> Result<()> {
        let rows = self.data.rows();
        let bytes = rows.checked_mul(rows).and_then(|n| n.checked_mul(size_of::<T>()));
        let fits = bytes.is_some_and(|bytes| bytes <= self.context.cache_bytes());
        let computed: Option<f64> = c_paths(group)
            .iter()
            .map(|c_path| c_path[0].1.penalty_path()?.values_computed(c_path.len(), &self.data))
            .sum();
        let few = computed == Some(0.0);
        let kernel = group[0].1.kernel().filter(|kernel| **kernel != Kernel::Precomputed);
        let given: Option<Vec<Box<dyn Machine>>> =
            group.iter().map(|(_, machine)| given_values(*machine)).collect();
        let (Some(kernel), Some(given), true) = (kernel, given, fits && !few) else {
            return self.train(&self.data, group, earlier);
        };
        let Ok(blocks) = KernelBlocks::<T>::new(kernel, self.data.features(), None, self.context)
        else {
            return self.train(&self.data, group, earlier);
        };
        if blocks.products_per_value() <= CHEAP_PRODUCTS
            && computed.is_some_and(|computed| computed <= MOST_COMPUTED)
        {
            return self.train(&self.data, group, earlier);
        }
        fill_table(&blocks, rows, memory, self.context)?;
        let table = Dense::new(rows, rows, std::mem::take(memory))?;
        let data = self.data.clone().with_features(T::matrix(table))?;
        let places = group.iter().map(|(m, _)| *m);
        let group: Vec<Placed<'_>> = places.zip(given.iter().map(|machine| &**machine)).collect();
        self.train(&data, &group, earlier)?;
        *memory = T::values(data.into_features());
        Ok(())
    }

    /// Trains a group of machines of one kernel.
    fn train(
        &self,
        data: &Dataset,
        group: &[Placed<'_>],
        earlier: &mut EarlierKernel,
    ) -> Result<()> {
        if self.job.reuse == Reuse::Nothing {
            return self.each_split(|_, split| {
                for (m, machine) in group {
                    self.one(data, *m, *machine, split, None)?;
                }
                Ok(())
            });
        }
        let mut chain: Vec<Placed<'_>> = Vec::new();
        let c_paths = c_paths(group);
        earlier.c_paths.resize_with(c_paths.len(), || None);
        for (c_path, earlier) in c_paths.into_iter().zip(&mut earlier.c_paths) {
            if !self.c_path(data, &c_path, earlier)? {
                chain.extend(c_path);
            }
        }
        let models = earlier.models.iter_mut();
        let last: Vec<Mutex<Option<Model>>> = models.map(|model| model.take().into()).collect();
        self.each_split(|at, split| {
            let mut last = last[at].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let mut same_kernel = false;
            for (m, machine) in &chain {
                let start = last.as_ref().map(|model| match same_kernel {
                    true => Start::Values(model),
                    false => Start::Support(model),
                });
                let model = self.one(data, *m, *machine, split, start)?;
                if model.is_some() {
                    *last = model;
                    same_kernel = true;
                }
            }
            Ok(())
        })?;
        for (to, from) in earlier.models.iter_mut().zip(last) {
            *to = from.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        Ok(())
    }

    fn each_split(&self, work: impl Fn(usize, &(usize, Split)) -> Result<()> + Sync) -> Result<()> {
        self.context.try_for_each(self.splits.iter().enumerate(), |(at, split)| work(at, split))
    }

    /// Trains one machine on one split by itself; `None` where it is not wanted.
    fn one(
        &self,
        data: &Dataset,
        m: usize,
        machine: &dyn Machine,
        (place, split): &(usize, Split),
        start: Option<Start<'_>>,
    ) -> Result<Option<Model>> {
        if !(self.wanted)(m, *place) {
            return Ok(None);
        }
        let started = Instant::now();
        let input = FitInput::with_rows(data, &split.train)?;
        let fitted = match (start, machine.warm_start()) {
            (Some(start), Some(warm)) => warm.fit_from(input, start, self.quiet),
            _ => machine.fit_with(input, self.quiet),
        };
        let model = match fitted {
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => {
                (self.take)(m, *place, Err(error))?;
                self.context.report(&Event::StageStep { name: STAGE });
                return Ok(None);
            }
            Ok(model) => model,
        };
        let seconds = started.elapsed().as_secs_f64();
        let status = model.training.as_ref().map(|training| training.outcome.status);
        if matches!(status, Some(Status::Interrupted | Status::TimeLimit)) {
            return Err(Error::Interrupted);
        }
        self.predict(data, m, *place, split, &model, seconds)?;
        Ok(Some(model))
    }

    /// Trains machines that differ in their penalty alone together; false when that cannot be done.
    /// They start from the solutions in `earlier`, which theirs replace. When stopped, the penalties
    /// finished so far are answered for.
    fn c_path(
        &self,
        data: &Dataset,
        c_path: &[Placed<'_>],
        earlier: &mut Option<PathStarts>,
    ) -> Result<bool> {
        let Some(path) = c_path[0].1.penalty_path() else { return Ok(false) };
        let penalties: Vec<f64> = c_path.iter().map(|(_, machine)| penalty(*machine)).collect();
        let is_wanted = |place: usize| c_path.iter().any(|(m, _)| (self.wanted)(*m, place));
        let splits: Vec<&(usize, Split)> =
            self.splits.iter().filter(|(place, _)| is_wanted(*place)).collect();
        let parts: Vec<Vec<usize>> = splits.iter().map(|(_, split)| split.train.clone()).collect();
        let tests: Vec<Vec<usize>> = splits.iter().map(|(_, split)| split.test.clone()).collect();
        let starts = earlier.as_ref();
        let paths = match path.fit_paths(&penalties, data, &parts, &tests, starts, self.quiet) {
            Ok(Some(paths)) => paths,
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            // Each machine will say by itself what is wrong.
            Ok(None) | Err(_) => return Ok(false),
        };
        let work = |part: usize| {
            let (place, split) = splits[part];
            let is_stopped = self.context.stop_request().is_some();
            let wanted: Vec<(usize, usize)> = (0..paths.finished(part))
                .map(|penalty| (c_path[penalty].0, penalty))
                .filter(|(m, _)| (self.wanted)(*m, *place))
                .filter(|&(_, penalty)| !is_stopped || self.is_known(&paths, part, penalty))
                .collect();
            self.predict_path(data, *place, split, &paths, part, &wanted)
        };
        self.context.try_for_each(0..parts.len(), work)?;
        if (0..parts.len()).any(|part| paths.finished(part) < penalties.len()) {
            return Err(Error::Interrupted);
        }
        *earlier = Some(paths.into_starts());
        Ok(true)
    }
}

/// The same machine with its kernel values given, if it can use them.
fn given_values(machine: &dyn Machine) -> Option<Box<dyn Machine>> {
    machine.shared_kernel().map(|shared| shared.with_kernel(Kernel::Precomputed))
}

/// The penalty of a machine that can follow a path of them.
fn penalty(machine: &dyn Machine) -> f64 {
    machine.penalty_path().map_or(0.0, |path| path.penalty())
}

/// Machines of one kernel in lists of those that differ in their penalty alone, ascending, and of all
/// others.
fn c_paths<'a>(group: &[Placed<'a>]) -> Vec<Vec<Placed<'a>>> {
    let same_path =
        |one: &dyn Machine, other: &dyn Machine| match (one.penalty_path(), other.penalty_path()) {
            (Some(one), Some(other)) => one.without_penalty() == other.without_penalty(),
            (None, None) => true,
            _ => false,
        };
    let mut c_paths: Vec<Vec<Placed<'a>>> = Vec::new();
    for &(m, machine) in group {
        match c_paths.iter_mut().find(|c_path| same_path(c_path[0].1, machine)) {
            Some(c_path) => c_path.push((m, machine)),
            None => c_paths.push(vec![(m, machine)]),
        }
    }
    for c_path in &mut c_paths {
        c_path.sort_by(|a, b| penalty(a.1).total_cmp(&penalty(b.1)));
    }
    c_paths
}

/// Precisions that tables of kernel values come in.
trait Tabled: Real {
    fn matrix(table: Dense<Self>) -> Matrix;
    fn values(matrix: Matrix) -> Vec<Self>;
}

impl Tabled for f32 {
    fn matrix(table: Dense<Self>) -> Matrix {
        Matrix::DenseF32(table)
    }

    fn values(matrix: Matrix) -> Vec<Self> {
        match matrix {
            Matrix::DenseF32(table) => table.into_values(),
            _ => Vec::new(),
        }
    }
}

impl Tabled for f64 {
    fn matrix(table: Dense<Self>) -> Matrix {
        Matrix::DenseF64(table)
    }

    fn values(matrix: Matrix) -> Vec<Self> {
        match matrix {
            Matrix::DenseF64(table) => table.into_values(),
            _ => Vec::new(),
        }
    }
}
