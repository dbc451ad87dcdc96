//! One classifier with many penalties on many parts of a data set: the inner loop of a search.
//!
//! Every two-class problem is solved for all parts and penalties over one matrix of kernel values, of
//! which the rows in use stay in the processor's cache; rows outside a part have an empty box. A
//! problem starts from where its neighbours suggest ([`AdjacentSolutions`]). The optimum is that of
//! [`Machine::fit_with`](crate::machine::Machine::fit_with), whatever the start.

use std::time::Instant;

use super::held_out::HeldOut;
use super::path_start::AdjacentSolutions;
use super::{Classifier, Svc, Task, penalty_problem};
use crate::context::Context;
use crate::data::{Dataset, Dense};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, KernelRows, MatrixRows, fill_table};
use crate::machine::definiteness;
use crate::machine::fit::{FitInput, PathMachine, PenaltyPath};
use crate::machine::model::Model;
use crate::machine::parameters::Precision;
use crate::machine::training::{Expansion, RowSegments, TrainingCost, in_precision};
use crate::machine::warm_start::UsableStart;
use crate::numeric::parallel::Scratches;
use crate::numeric::simd::Real;
use crate::solver::smo::{self, FetchedRows, PathRows, PathSolver, Solution, WholeMatrix};
use crate::solver::{Outcome, Status};

/// Part of the cache that matrices held whole may take, all threads together.
const WHOLE_SHARE: usize = 2;

/// Most rows of a two-class problem whose matrix is computed whole: few rows of larger ones are
/// needed.
const LARGEST_COMPUTED: usize = 2048;

/// The same where the values are there already.
const LARGEST_COPIED: usize = 8192;

/// Part of the cache that values of rows outside the parts may take.
const HELD_OUT_SHARE: usize = 4;

/// Memory that is kept from one two-class problem to the next.
#[derive(Default)]
struct Memory<T> {
    matrix: Vec<T>,
    solver: Vec<T>,
}

/// By two-class problem, then part, then penalty.
type Solutions = Vec<Vec<Vec<Solved>>>;

/// The solutions of a classifier for every part and penalty.
pub struct Paths<'a> {
    data: &'a Dataset,
    parts: &'a [Vec<usize>],
    held_out: Vec<HeldOut>,
    classifiers: Vec<Classifier<'a>>,
    penalties: Vec<f64>,
    layout: RowSegments,
    precision: Precision,
    tasks: Vec<Task>,
    solutions: Solutions,
}

/// The solutions of a classifier, for the same one with another kernel to start from.
pub struct PathStarts {
    order: Vec<usize>,
    tasks: Vec<Task>,
    penalties: Vec<f64>,
    solutions: Solutions,
}

/// A solution by its coefficients that are not zero.
struct Solved {
    places: Vec<u32>,
    coefficients: Vec<f64>,
    offset: f64,
    /// Decision values of rows outside the part.
    held_out: Vec<f64>,
    outcome: Outcome,
    seconds: f64,
}

impl Solved {
    fn new(solution: &Solution, held_out: Vec<f64>, seconds: f64) -> Self {
        let beta = &solution.beta;
        // Kept for long, hence without room to spare.
        let places = smo::nonzero_places(beta)[..].to_vec();
        Self {
            coefficients: places.iter().map(|&v| beta[v as usize]).collect(),
            places,
            offset: solution.multipliers[0],
            held_out,
            outcome: solution.outcome,
            seconds,
        }
    }

    /// All coefficients of a problem of `len` variables.
    fn dense(&self, len: usize) -> Vec<f64> {
        let mut dense = vec![0.0; len];
        for (&place, &coefficient) in self.places.iter().zip(&self.coefficients) {
            dense[place as usize] = coefficient;
        }
        dense
    }

    fn same_function(&self, other: &Self) -> bool {
        self.offset == other.offset
            && self.places == other.places
            && self.coefficients == other.coefficients
    }
}

impl PenaltyPath for Svc {
    fn penalty(&self) -> f64 {
        self.c
    }

    fn tolerance(&self) -> f64 {
        self.options.tol
    }

    fn without_penalty(&self) -> PathMachine {
        PathMachine::Svc(Self { c: 1.0, ..self.clone() })
    }

    fn values_computed(&self, penalties: usize, data: &Dataset) -> Option<f64> {
        if penalties < Paths::MANY_PENALTIES {
            return Some(0.0);
        }
        let classifier = self.classifier(&FitInput::new(data), UsableStart::NONE).ok()?;
        let rows = classifier.class_rows(0..data.rows());
        let sizes = classifier
            .tasks()
            .ok()?
            .into_iter()
            .map(|task| task.iter().map(|&(segment, _)| rows[segment].len()).sum::<usize>());
        let all = data.rows() as f64 * data.rows() as f64;
        sizes.map(|size| (size <= LARGEST_COMPUTED).then(|| size as f64 * size as f64 / all)).sum()
    }

    fn fit_paths<'a>(
        &'a self,
        penalties: &[f64],
        data: &'a Dataset,
        parts: &'a [Vec<usize>],
        held_rows: &[Vec<usize>],
        earlier: Option<&PathStarts>,
        context: &Context,
    ) -> Result<Option<Paths<'a>>> {
        let mut classifiers = Vec::with_capacity(parts.len());
        for rows in parts {
            let part = FitInput::with_rows(data, rows)?;
            let classifier = self.classifier(&part, UsableStart::NONE)?;
            classifier.check()?;
            classifiers.push(classifier);
        }
        let Some(first) = classifiers.first() else { return Ok(None) };
        if classifiers.iter().any(|other| other.classes.names != first.classes.names) {
            return Ok(None);
        }
        let mut class_of = vec![None; data.rows()];
        for (classifier, rows) in classifiers.iter().zip(parts) {
            for (&row, &code) in rows.iter().zip(&classifier.classes.codes) {
                if classifier.weights[row] > 0.0 {
                    class_of[row] = Some(code as usize);
                }
            }
        }
        let mut rows = vec![Vec::new(); first.classes.count()];
        for (row, class) in class_of.iter().enumerate() {
            if let Some(class) = class {
                rows[*class].push(row);
            }
        }
        let tasks = first.tasks()?;
        for (classifier, part) in classifiers.iter().zip(parts) {
            let in_part = classifier.class_rows(part.iter().copied());
            classifier.check_weights(&in_part, &tasks)?;
        }
        let layout = RowSegments::new(&rows);
        let held_out = held_out(&layout, &classifiers, &tasks, held_rows, penalties.len(), context);
        let mut paths = Paths {
            data,
            parts,
            held_out,
            penalties: penalties.to_vec(),
            layout,
            precision: self.options.precision,
            solutions: Vec::new(),
            tasks,
            classifiers,
        };
        let earlier = earlier.filter(|earlier| paths.matches(earlier));
        let solve = |precision| match precision {
            Precision::F32 => Ok((paths.solve::<f32>(self, earlier, context)?, precision)),
            Precision::F64 => Ok((paths.solve::<f64>(self, earlier, context)?, precision)),
        };
        (paths.solutions, paths.precision) = in_precision(self.options.precision, context, solve)?;
        Ok(Some(paths))
    }
}

/// The rows outside every part whose values are kept, none where those would take too much memory.
fn held_out(
    layout: &RowSegments,
    classifiers: &[Classifier<'_>],
    tasks: &[Task],
    held_rows: &[Vec<usize>],
    penalties: usize,
    context: &Context,
) -> Vec<HeldOut> {
    let mut place = vec![None; classifiers.first().map_or(0, |first| first.weights.len())];
    for (at, &row) in layout.order.iter().enumerate() {
        place[row] = Some(at);
    }
    let segments = classifiers.first().map_or(0, |first| first.classes.count());
    let tasks_of_row = tasks.iter().map(Vec::len).sum::<usize>().div_ceil(segments.max(1));
    let rows: usize = held_rows.iter().map(Vec::len).sum();
    let values = rows.saturating_mul(tasks_of_row).saturating_mul(penalties);
    let fits = values <= context.cache_bytes() / (HELD_OUT_SHARE * size_of::<f64>());
    let of_part = |(part, classifier): (usize, &Classifier<'_>)| {
        let held_rows = held_rows.get(part).map_or(&[][..], |rows| rows);
        let place = if fits { &place[..] } else { &[] };
        HeldOut::new(layout, segments, place, held_rows, &classifier.weights)
    };
    classifiers.iter().enumerate().map(of_part).collect()
}

impl Paths<'_> {
    /// Penalties from which on computing a matrix whole pays: before, few of its rows are read.
    const MANY_PENALTIES: usize = 3;

    /// Whether solutions are those of the same problems but for the kernel.
    fn matches(&self, earlier: &PathStarts) -> bool {
        earlier.order == self.layout.order
            && earlier.tasks == self.tasks
            && earlier.penalties == self.penalties
            && earlier.solutions.iter().all(|of_task| of_task.len() == self.parts.len())
    }

    fn solve<T: Real>(
        &self,
        svc: &Svc,
        earlier: Option<&PathStarts>,
        context: &Context,
    ) -> Result<Solutions> {
        let caching = self.classifiers[0].caching();
        let rows = self.layout.pack::<T>(&svc.kernel, self.data, caching, context)?;
        definiteness::warn(&svc.kernel, rows.blocks(), context)?;
        let memories = Scratches::<Memory<T>>::new();
        context.try_map(0..self.tasks.len(), |at| {
            let earlier = earlier.map(|earlier| &earlier.solutions[at][..]);
            memories.with(|memory| {
                self.solve_task(svc, &self.tasks[at], earlier, &rows, memory, context)
            })
        })
    }

    fn solve_task<T: Real>(
        &self,
        svc: &Svc,
        task: &Task,
        earlier: Option<&[Vec<Solved>]>,
        rows: &KernelRows<T>,
        memory: &mut Memory<T>,
        context: &Context,
    ) -> Result<Vec<Vec<Solved>>> {
        let segments: Vec<usize> = task.iter().map(|&(s, _)| s).collect();
        let view = rows.view(&segments, context);
        let size = view.len();
        let at_once = context.threads().min(self.tasks.len());
        let room = context.cache_bytes() / (WHOLE_SHARE * at_once * size_of::<T>());
        let largest = match svc.kernel {
            Kernel::Precomputed => LARGEST_COPIED,
            _ if self.penalties.len() < Self::MANY_PENALTIES => 0,
            _ => LARGEST_COMPUTED,
        };
        if size > room.isqrt().min(largest) {
            let (matrix, kept) = (FetchedRows::new(&view), std::mem::take(&mut memory.solver));
            let mut solver = PathSolver::new(matrix, room.isqrt(), kept);
            let solved = self.follow(svc, task, earlier, &view, &mut solver, context);
            memory.solver = solver.into_memory();
            return solved;
        }
        let places: Vec<usize> = segments.iter().flat_map(|&s| self.layout.segment(s)).collect();
        let blocks = rows.blocks().subset(&places);
        let Memory { matrix, solver: kept } = memory;
        match fill_table(&blocks, WholeMatrix::<T>::stride(size), matrix, context) {
            Err(Error::Interrupted) => return Ok(self.parts.iter().map(|_| Vec::new()).collect()),
            filled => filled?,
        }
        let mut solver =
            PathSolver::new(WholeMatrix::new(matrix, size), size, std::mem::take(kept));
        let solved = self.follow(svc, task, earlier, &view, &mut solver, context);
        *kept = solver.into_memory();
        solved
    }

    /// Solves one two-class problem for every part and penalty, or as many as there is time for.
    fn follow<M: PathRows>(
        &self,
        svc: &Svc,
        task: &Task,
        earlier: Option<&[Vec<Solved>]>,
        view: &impl MatrixRows,
        solver: &mut PathSolver<M>,
        context: &Context,
    ) -> Result<Vec<Vec<Solved>>> {
        let places =
            || task.iter().flat_map(|&(s, sign)| self.layout.segment(s).map(move |p| (p, sign)));
        let rows: Vec<usize> = places().map(|(place, _)| self.layout.order[place]).collect();
        let signs: Vec<f64> = places().map(|(_, sign)| sign).collect();
        let options = svc.options.for_problem(rows.len());
        let weights: Vec<Vec<f64>> = self
            .classifiers
            .iter()
            .map(|classifier| rows.iter().map(|&row| classifier.weights[row]).collect())
            .collect();
        let mut known = AdjacentSolutions::default();
        let mut solved: Vec<Vec<Solved>> = self.parts.iter().map(|_| Vec::new()).collect();
        for (penalty, &c) in self.penalties.iter().enumerate() {
            if let Some(earlier) = earlier {
                known.other_kernel(earlier.iter().map(|of| of[penalty].dense(rows.len())));
            }
            let ratio = c / self.penalties[penalty.saturating_sub(1)];
            for (part, weights) in weights.iter().enumerate() {
                let started = Instant::now();
                let mut problem = penalty_problem(&signs, weights, c, svc.loss);
                problem.bound_tolerance = smo::Problem::BOUND_TOLERANCE;
                let solution = match known.unchanged(part, &problem, solver, &options) {
                    Some(solution) => solution,
                    None => {
                        let start = known.start(part, &problem, ratio, solver, context);
                        problem.start.clone_from(&start.beta);
                        let solution = solver.solve(&problem, start, &options, context);
                        solution.unwrap_or_else(|| smo::solve(view, &problem, &options, context))
                    }
                };
                if matches!(solution.outcome.status, Status::Interrupted | Status::TimeLimit) {
                    return Ok(solved);
                }
                let held_out = self.held_out[part].values(task, &self.layout, &solution);
                let seconds = started.elapsed().as_secs_f64();
                solved[part].push(Solved::new(&solution, held_out, seconds));
                known.add(solution);
            }
            known.next_penalty();
            solver.refresh();
        }
        Ok(solved)
    }

    /// How many of the penalties, from the smallest on, a part was solved for: fewer than all where the
    /// training was stopped.
    pub fn finished(&self, part: usize) -> usize {
        self.solutions.iter().map(|of_task| of_task[part].len()).min().unwrap_or(0)
    }

    /// What the same classifier with another kernel may start from; all penalties must be
    /// [`finished`](Self::finished).
    pub fn into_starts(mut self) -> PathStarts {
        let (order, tasks) = (self.layout.order, self.tasks);
        let all = self.solutions.iter_mut().flatten().flatten();
        all.for_each(|solved| solved.held_out = Vec::new());
        PathStarts { order, tasks, penalties: self.penalties, solutions: self.solutions }
    }

    /// Whether a part has the same functions for two penalties, as where no variable is at its
    /// bound.
    pub fn repeats(&self, part: usize, one: usize, other: usize) -> bool {
        let same = |of: &[Solved]| of[one].same_function(&of[other]);
        self.solutions.iter().all(|of_task| same(&of_task[part]))
    }

    /// The decision values of the held-out rows of a part, if the solver knows all of them.
    pub fn held_out_values(&self, part: usize, penalty: usize) -> Option<Dense<f64>> {
        self.held_out[part].table(&self.tasks, self.known(part, penalty))
    }

    /// The classes, by their places in the list of classes, of the held-out rows of a part, as
    /// far as the solver knows them.
    pub fn winners(&self, part: usize, penalty: usize) -> Vec<Option<usize>> {
        let scheme = self.classifiers[part].scheme;
        self.held_out[part].winners(scheme, &self.tasks, self.known(part, penalty))
    }

    fn known(&self, part: usize, penalty: usize) -> impl Iterator<Item = &[f64]> {
        self.solutions.iter().map(move |of_task| &of_task[part][penalty].held_out[..])
    }

    /// The model of one part and penalty.
    pub fn model(&self, part: usize, penalty: usize) -> Result<Model> {
        let mut model = self.stacked(part, &[penalty])?;
        if let Some(training) = &mut model.training {
            training.set_penalty(self.penalties[penalty]);
        }
        Ok(model)
    }

    /// A model of one part with the functions of every one of `penalties`, one after the other: what
    /// gives the values of all of them at once.
    pub(crate) fn stacked(&self, part: usize, penalties: &[usize]) -> Result<Model> {
        let mut expansions = Vec::with_capacity(penalties.len() * self.tasks.len());
        let mut all: Option<(Outcome, f64)> = None;
        for &penalty in penalties {
            for (task, solutions) in self.tasks.iter().zip(&self.solutions) {
                let solved = &solutions[part][penalty];
                let segments: Vec<usize> = task.iter().map(|(s, _)| *s).collect();
                let len = segments.iter().map(|&s| self.layout.segment(s).len()).sum();
                let coefficients = solved.dense(len);
                expansions.push(Expansion { segments, coefficients, offset: solved.offset });
            }
            let (outcome, seconds) = self.outcome(part, penalty)?;
            all = Some(match all {
                Some((before, spent)) => (before.join(outcome), spent + seconds),
                None => (outcome, seconds),
            });
        }
        let (outcome, seconds) = all.ok_or(Error::Empty { what: "penalty" })?;
        let spent = TrainingCost { kernel_rows: 0, seconds };
        let rows = FitInput::with_rows(self.data, &self.parts[part])?;
        let classifier = &self.classifiers[part];
        classifier.model(&rows, self.precision, &self.layout, &expansions, outcome, spent)
    }

    /// How the problems of one part and penalty ended, and the seconds they took.
    pub(crate) fn outcome(&self, part: usize, penalty: usize) -> Result<(Outcome, f64)> {
        let solved = || self.solutions.iter().map(|of_task| &of_task[part][penalty]);
        let outcome = solved().map(|solved| solved.outcome).reduce(Outcome::join);
        let seconds = solved().map(|solved| solved.seconds).sum();
        Ok((outcome.ok_or(Error::Interrupted)?, seconds))
    }
}
