//! What every fit does around its quadratic programs: packing rows once, timing, and joining the
//! solutions into one model.

use std::ops::Range;
use std::time::Instant;

use super::definiteness;
use super::fit::FitInput;
use super::model::{DecisionFunction, KernelExpansion, MachineKind, Model, Part, Training};
use super::parameters::{Precision, SolverOptions};
use super::specification::Value;
use crate::context::{Context, Event, SolvedFunction};
use crate::data::{Csr, Dataset, Matrix};
use crate::error::{Error, Result};
use crate::kernel::{
    DualProblem, Kernel, KernelBlocks, KernelRows, RowCaching, catch_out_of_memory,
};
use crate::numeric::simd::Real;
use crate::solver::{Outcome, smo};

/// Pair steps allowed per sub-problem unless the user sets a limit (LIBSVM's rule, for block steps).
fn default_iterations(variables: usize) -> u64 {
    (1000 * variables as u64).max(10_000_000)
}

impl SolverOptions {
    pub(in crate::machine) fn for_problem(&self, variables: usize) -> smo::Options {
        smo::Options {
            tol: self.tol,
            shrinking: self.shrinking,
            max_iterations: self.max_iterations.unwrap_or_else(|| default_iterations(variables)),
            ..smo::Options::default()
        }
    }
}

/// Trains in the precision asked for, on the threads of `context`. Kernel values that overflow single
/// precision are computed in double; kernel rows that find no memory are an error.
pub(in crate::machine) fn in_precision<R: Send>(
    precision: Precision,
    context: &Context,
    train: impl Fn(Precision) -> Result<R> + Send + Sync,
) -> Result<R> {
    let run = || match train(precision) {
        Err(error @ Error::Overflow { .. }) if precision == Precision::F32 => {
            let message = format!("{error}; training goes on in double precision");
            context.report(&Event::Warning { message });
            train(Precision::F64)
        }
        result => result,
    };
    context.install(|| catch_out_of_memory(run))
}

/// [`in_precision`] of an expression that names the type of the numbers.
macro_rules! with_precision {
    ($wanted:expr, $context:expr, $real:ident => $train:expr) => {
        $crate::machine::training::in_precision($wanted, $context, |precision| match precision {
            $crate::machine::Precision::F32 => {
                type $real = f32;
                $train
            }
            $crate::machine::Precision::F64 => {
                type $real = f64;
                $train
            }
        })
    };
}

pub(in crate::machine) use with_precision;

/// The rows of a data set in segments.
pub(in crate::machine) struct RowSegments {
    /// Row of the data set behind every row of the segments.
    pub(in crate::machine) order: Vec<usize>,
    /// Boundaries of the segments.
    segments: Vec<usize>,
}

impl RowSegments {
    /// One segment per list of rows.
    pub(in crate::machine) fn new(segment_rows: &[Vec<usize>]) -> Self {
        let mut segments = vec![0];
        for rows in segment_rows {
            segments.push(segments[segments.len() - 1] + rows.len());
        }
        Self { order: segment_rows.concat(), segments }
    }

    pub(in crate::machine) fn segment(&self, s: usize) -> Range<usize> {
        self.segments[s]..self.segments[s + 1]
    }

    /// Rows of the data set in some segments, one after the other.
    pub(in crate::machine) fn places(&self, segments: &[usize]) -> Vec<usize> {
        segments.iter().flat_map(|&s| &self.order[self.segment(s)]).copied().collect()
    }

    /// The segment that a row is in.
    pub(in crate::machine) fn segment_of(&self, place: usize) -> usize {
        self.segments.partition_point(|&start| start <= place) - 1
    }

    /// The rows packed for the kernel.
    pub(in crate::machine) fn pack<T: Real>(
        &self,
        kernel: &Kernel,
        data: &Dataset,
        caching: RowCaching,
        context: &Context,
    ) -> Result<KernelRows<T>> {
        let blocks = KernelBlocks::new(kernel, data.features(), Some(&self.order), context)?;
        // Values that are there already need not be kept a second time.
        let caching = if *kernel == Kernel::Precomputed { RowCaching::Off } else { caching };
        Ok(KernelRows::new(blocks, self.segments.clone(), caching, context.cache_bytes()))
    }
}

/// The rows of a data set in segments, packed for the kernel.
pub(in crate::machine) struct TrainingRows<T: Real> {
    pub(in crate::machine) rows: KernelRows<T>,
    pub(in crate::machine) layout: RowSegments,
    started: Instant,
}

impl<T: Real> TrainingRows<T> {
    /// Packs the given rows of `data`, one segment per list.
    pub(in crate::machine) fn new(
        kernel: &Kernel,
        data: &Dataset,
        segment_rows: &[Vec<usize>],
        caching: RowCaching,
        context: &Context,
    ) -> Result<Self> {
        let started = Instant::now();
        let layout = RowSegments::new(segment_rows);
        let rows = layout.pack(kernel, data, caching, context)?;
        Ok(Self { rows, layout, started })
    }

    /// Packs the rows as one segment.
    pub(in crate::machine) fn whole(
        kernel: &Kernel,
        part: &FitInput<'_>,
        context: &Context,
    ) -> Result<Self> {
        Self::new(kernel, part.data(), &[part.rows().collect()], RowCaching::All, context)
    }

    /// What the training cost until now.
    ///
    /// # Errors
    /// [`Error::Kernel`] when a kernel of the user had a value that is not finite.
    pub(in crate::machine) fn spent(&self) -> Result<TrainingCost> {
        self.rows.blocks().check_values()?;
        let kernel_rows = self.rows.requested() / self.layout.order.len().max(1) as u64;
        Ok(TrainingCost { kernel_rows, seconds: self.started.elapsed().as_secs_f64() })
    }

    /// The model of decision functions over these rows; see [`assemble`].
    pub(in crate::machine) fn assemble(
        &self,
        kind: MachineKind,
        kernel: &Kernel,
        part: &FitInput<'_>,
        expansions: &[Expansion],
        outcome: Outcome,
        parameters: Vec<(String, Value)>,
    ) -> Result<(Model, Vec<usize>)> {
        let (precision, spent) = (Precision::of::<T>(), self.spent()?);
        let layout = &self.layout;
        assemble(kind, kernel, precision, part, layout, expansions, outcome, spent, parameters)
    }

    /// The solutions that the backend finds for one problem per list of segments; none where it
    /// leaves problems to the CPU.
    pub(in crate::machine) fn backend_solutions(
        &self,
        segments: &[Vec<usize>],
        problem: impl Fn(usize) -> smo::Problem,
        tol: f64,
        context: &Context,
    ) -> Vec<Vec<f64>> {
        if !self.rows.blocks().takes_duals() {
            return Vec::new();
        }
        let problems: Vec<smo::Problem> = (0..segments.len()).map(problem).collect();
        let jobs = problems.iter().zip(segments).map(|(problem, segments)| DualProblem {
            rows: self.rows.view(segments, context).data_rows(),
            linear: &problem.linear,
            lower: &problem.lower,
            upper: &problem.upper,
            ridge: problem.ridge.as_deref(),
            groups: problem.groups.as_deref(),
            start: &problem.start,
        });
        let jobs: Vec<DualProblem<'_>> = jobs.collect();
        self.rows.blocks().solve_duals(&jobs, tol, context).unwrap_or_default()
    }

    /// Lets a problem over `segments` start from the solution of the backend, where it takes it.
    pub(in crate::machine) fn start_on_backend(
        &self,
        segments: &[usize],
        problem: &mut smo::Problem,
        tol: f64,
        context: &Context,
    ) {
        let solutions =
            self.backend_solutions(&[segments.to_vec()], |_| problem.clone(), tol, context);
        if let Some(solution) = solutions.into_iter().next() {
            start_from(problem, solution);
        }
    }

    /// Warns when the kernel is not positive semidefinite on the rows; returns a negative eigenvalue.
    pub(in crate::machine) fn warn_of_indefinite(
        &self,
        kernel: &Kernel,
        context: &Context,
    ) -> Result<Option<f64>> {
        definiteness::warn(kernel, self.rows.blocks(), context)
    }

    /// Diagonal entry of every packed row.
    pub(in crate::machine) fn diagonal(&self) -> Vec<f64> {
        self.rows.blocks().diagonal().iter().map(|v| v.to_f64()).collect()
    }
}

/// Lets a problem start from a point that another solver found.
pub(in crate::machine) fn start_from(problem: &mut smo::Problem, point: Vec<f64>) {
    problem.start = point;
    problem.bound_tolerance = smo::Problem::BOUND_TOLERANCE;
}

/// Time and kernel rows of a training.
#[derive(Clone, Copy)]
pub(in crate::machine) struct TrainingCost {
    pub(in crate::machine) kernel_rows: u64,
    pub(in crate::machine) seconds: f64,
}

/// A decision function: segments, ascending, and a coefficient for each of their rows.
pub(in crate::machine) struct Expansion {
    pub(in crate::machine) segments: Vec<usize>,
    pub(in crate::machine) coefficients: Vec<f64>,
    pub(in crate::machine) offset: f64,
}

/// Joins decision functions into a model whose support vectors are the rows any of them uses.
pub(in crate::machine) fn assemble(
    kind: MachineKind,
    kernel: &Kernel,
    precision: Precision,
    part: &FitInput<'_>,
    layout: &RowSegments,
    expansions: &[Expansion],
    outcome: Outcome,
    spent: TrainingCost,
    parameters: Vec<(String, Value)>,
) -> Result<(Model, Vec<usize>)> {
    check_solution(kernel, expansions, &outcome)?;
    let mut used = vec![false; layout.order.len()];
    for expansion in expansions {
        let mut at = 0;
        for &s in &expansion.segments {
            for row in layout.segment(s) {
                used[row] |= expansion.coefficients[at] != 0.0;
                at += 1;
            }
        }
    }
    let support: Vec<usize> = (0..used.len()).filter(|&row| used[row]).collect();
    let position = |row: usize| support.partition_point(|&s| s < row);
    let bounds: Vec<usize> = layout.segments.iter().map(|&start| position(start)).collect();
    let functions = expansions
        .iter()
        .map(|expansion| {
            let mut parts: Vec<Part> = Vec::new();
            let mut at = 0;
            for &s in &expansion.segments {
                let segment = layout.segment(s);
                let run = bounds[s]..bounds[s + 1];
                let coefficients = support[run.clone()]
                    .iter()
                    .map(|&row| expansion.coefficients[at + row - segment.start]);
                match parts.last_mut() {
                    Some(last) if last.support.end == run.start => {
                        last.coefficients.extend(coefficients);
                        last.support.end = run.end;
                    }
                    _ => parts
                        .push(Part { support: run.clone(), coefficients: coefficients.collect() }),
                }
                at += segment.len();
            }
            DecisionFunction { parts, offset: expansion.offset }
        })
        .collect();
    let support_rows: Vec<usize> = support.iter().map(|&row| layout.order[row]).collect();
    let per_segment = bounds.windows(2).map(|b| b[1] - b[0]).collect();
    let body = KernelExpansion {
        kernel: kernel.clone(),
        precision,
        support: support_table(kernel, part.data().features(), &support_rows),
        support_rows,
        functions,
    };
    let model = Model {
        feature_names: part.data().feature_names().map(<[String]>::to_vec),
        training: Some(Training {
            outcome: Outcome { kernel_rows: spent.kernel_rows, ..outcome },
            rows: part.rows().count(),
            seconds: spent.seconds,
            parameters,
            specification: None,
        }),
        ..Model::new(kind, body)
    };
    Ok((model, per_segment))
}

/// A solution is called solved only if it consists of finite numbers.
fn check_solution(kernel: &Kernel, expansions: &[Expansion], outcome: &Outcome) -> Result<()> {
    check_outcome(kernel, outcome)?;
    let mut numbers = expansions.iter().flat_map(|e| e.coefficients.iter().chain([&e.offset]));
    match numbers.find(|value| !value.is_finite()) {
        None => Ok(()),
        Some(value) => Err(not_finite(kernel, value.to_string())),
    }
}

/// The objectives of a training have to be numbers, and finite where it is solved.
pub(in crate::machine) fn check_outcome(kernel: &Kernel, outcome: &Outcome) -> Result<()> {
    if outcome.is_finite() {
        return Ok(());
    }
    let (primal, dual) = (outcome.primal, outcome.dual);
    Err(not_finite(kernel, format!("primal objective {primal} and dual objective {dual}")))
}

/// A training that left the range of its numbers.
pub(in crate::machine) fn not_finite(kernel: &Kernel, found: String) -> Error {
    Error::kernel(
        kernel.name(),
        "a solution of finite numbers; scale the data or choose other parameters",
        found,
    )
}

/// The support vectors; those of a precomputed kernel are known by their training rows alone, so
/// that their table has its width but no values.
pub(super) fn support_table(kernel: &Kernel, features: &Matrix, rows: &[usize]) -> Matrix {
    if kernel.has_only_given_values() {
        let starts = vec![0; rows.len() + 1];
        let table = Csr::new(features.columns(), starts, Vec::new(), Vec::<f64>::new());
        return Matrix::SparseF64(table.expect("empty rows are valid"));
    }
    features.select_rows(rows)
}

/// Tells the observer about a decision function; `bound(i)` is the largest size of coefficient i.
pub(in crate::machine) fn report_solved(
    context: &Context,
    index: usize,
    expansion: &Expansion,
    bound: impl Fn(usize) -> f64,
    outcome: Outcome,
    determined: Option<(&'static str, f64)>,
) {
    let coefficients = || expansion.coefficients.iter().enumerate().filter(|(_, c)| **c != 0.0);
    context.report(&Event::Solved(SolvedFunction {
        index,
        outcome,
        offset: expansion.offset,
        support: coefficients().count(),
        bounded: coefficients().filter(|(i, c)| c.abs() >= bound(*i)).count(),
        determined,
    }));
}

/// ν of a machine that was given C: Σ|β| / (C n), for rows that all weigh the same.
pub(in crate::machine) fn equivalent_nu(
    expansion: &Expansion,
    bounds: &[f64],
) -> Option<(&'static str, f64)> {
    let &c = bounds.first()?;
    let total: f64 = expansion.coefficients.iter().map(|b| b.abs()).sum();
    let same = c.is_finite() && bounds.iter().all(|b| *b == c);
    same.then(|| ("nu", total / (c * bounds.len() as f64)))
}

/// Fills variables from the first on with up to `upper` each until `total` is spent: LIBSVM's
/// feasible start for sums that are not zero.
pub(in crate::machine) fn fill_up(upper: impl Iterator<Item = f64>, mut total: f64) -> Vec<f64> {
    upper
        .map(|bound| {
            let take = bound.min(total).max(0.0);
            total -= take;
            take
        })
        .collect()
}
