//! One classifier with many penalties on many parts of a data set: the inner loop of a search.
//!
//! Every two-class problem is solved for all parts and penalties over one matrix of kernel values,
//! which stays in the processor's cache; rows outside a part have an empty box. A problem starts from
//! where its neighbours suggest ([`Known`]). The optimum is that of
//! [`Machine::fit_rows`](crate::machine::Machine::fit_rows), whatever the start.

use std::time::Instant;

use rayon::prelude::*;

use super::path_start::Known;
use super::{Classifier, Svc, Task, penalty_problem};
use crate::context::Context;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::kernel::{KernelBlocks, Real, fill_table};
use crate::machine::model::Model;
use crate::machine::parameters::Precision;
use crate::machine::training::{Expansion, Layout, RowsOf, Spent};
use crate::machine::warm_start::Earlier;
use crate::solver::smo::{Solution, WholeMatrix, WholeSolver};
use crate::solver::{Outcome, Status};

/// Most rows of a two-class problem whose matrix is held whole.
const MOST_ROWS: usize = 8192;

/// Share of the active variables below which those in use are gathered anew.
const SPARSE: f64 = 0.7;

/// By two-class problem, then part, then penalty.
type Solutions = Vec<Vec<Vec<Solved>>>;

/// The solutions of a classifier for every part and penalty.
pub struct Paths<'a> {
    data: &'a Dataset,
    parts: &'a [Vec<usize>],
    classifiers: Vec<Classifier<'a>>,
    penalties: Vec<f64>,
    layout: Layout,
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
    outcome: Outcome,
    seconds: f64,
}

impl Solved {
    fn new(solution: &Solution, seconds: f64) -> Self {
        let used = || (0..solution.beta.len()).filter(|&v| solution.beta[v] != 0.0);
        Self {
            places: used().map(|v| v as u32).collect(),
            coefficients: used().map(|v| solution.beta[v]).collect(),
            offset: solution.multipliers[0],
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

impl Svc {
    /// Trains this machine with each of `penalties` (ascending) in the place of its own on each of
    /// `parts`, the rows of `data` to learn from. `earlier`, of the same classifier with another
    /// kernel on the same parts, is where it starts from.
    ///
    /// `None` when that is not possible together: a class without rows in some part, or two-class
    /// problems too large for their matrix to be held.
    ///
    /// # Errors
    /// As [`Machine::fit_rows`](crate::machine::Machine::fit_rows); [`Error::Interrupted`] when it
    /// was stopped.
    pub fn fit_paths<'a>(
        &'a self,
        penalties: &[f64],
        data: &'a Dataset,
        parts: &'a [Vec<usize>],
        earlier: Option<&PathStarts>,
        context: &Context,
    ) -> Result<Option<Paths<'a>>> {
        let mut classifiers = Vec::with_capacity(parts.len());
        for rows in parts {
            let part = RowsOf::some(data, rows)?;
            let classifier = self.classifier(&part, Earlier::NONE)?;
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
        let size = |task: &Task| task.iter().map(|(s, _)| rows[*s].len()).sum::<usize>();
        let largest = tasks.iter().map(size).max().unwrap_or(0);
        let at_once = context.threads().min(tasks.len());
        if largest > MOST_ROWS || at_once * largest * largest * 4 > context.cache_bytes() {
            return Ok(None);
        }
        let layout = Layout::new(&rows);
        let mut paths = Paths {
            data,
            parts,
            penalties: penalties.to_vec(),
            layout,
            solutions: Vec::new(),
            tasks,
            classifiers,
        };
        let earlier = earlier.filter(|earlier| paths.matches(earlier));
        paths.solutions = context.install(|| match self.options.precision {
            Precision::F32 => paths.solve::<f32>(self, earlier, context),
            Precision::F64 => paths.solve::<f64>(self, earlier, context),
        })?;
        Ok(Some(paths))
    }
}

impl Paths<'_> {
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
        let solve = |memory: &mut Vec<T>, at: usize| {
            let earlier = earlier.map(|earlier| &earlier.solutions[at][..]);
            self.solve_task(svc, &self.tasks[at], earlier, memory, context)
        };
        let tasks = 0..self.tasks.len();
        if context.is_parallel() {
            tasks.into_par_iter().map_init(Vec::new, solve).collect()
        } else {
            let mut memory = Vec::new();
            tasks.map(|at| solve(&mut memory, at)).collect()
        }
    }

    fn solve_task<T: Real>(
        &self,
        svc: &Svc,
        task: &Task,
        earlier: Option<&[Vec<Solved>]>,
        memory: &mut Vec<T>,
        context: &Context,
    ) -> Result<Vec<Vec<Solved>>> {
        let places =
            || task.iter().flat_map(|&(s, sign)| self.layout.segment(s).map(move |p| (p, sign)));
        let rows: Vec<usize> = places().map(|(place, _)| self.layout.order[place]).collect();
        let signs: Vec<f64> = places().map(|(_, sign)| sign).collect();
        let set = context.instruction_set();
        let blocks = KernelBlocks::new(&svc.kernel, self.data.features(), Some(&rows), set)?;
        fill_table(&blocks, WholeMatrix::<T>::stride(rows.len()), memory, context);
        let mut solver = WholeSolver::new(WholeMatrix::new(memory, rows.len()));
        let options = svc.options.for_problem(rows.len());
        let weights: Vec<Vec<f64>> = self
            .classifiers
            .iter()
            .map(|classifier| rows.iter().map(|&row| classifier.weights[row]).collect())
            .collect();
        let mut known = Known::default();
        let mut solved: Vec<Vec<Solved>> = self.parts.iter().map(|_| Vec::new()).collect();
        for (penalty, &c) in self.penalties.iter().enumerate() {
            if let Some(earlier) = earlier {
                known.other_kernel(earlier.iter().map(|of| of[penalty].dense(rows.len())));
            }
            for (part, weights) in weights.iter().enumerate() {
                let started = Instant::now();
                let mut problem = penalty_problem(&signs, weights, c, svc.loss);
                let solution = match known.unchanged(part, &problem, &solver, &options) {
                    Some(solution) => solution,
                    None => {
                        if let Some(start) = known.start(part, &problem, &mut solver, context) {
                            problem.start = start;
                        }
                        solver.solve(&problem, &options, context)
                    }
                };
                if matches!(solution.outcome.status, Status::Interrupted | Status::TimeLimit) {
                    return Err(Error::Interrupted);
                }
                solved[part].push(Solved::new(&solution, started.elapsed().as_secs_f64()));
                known.add(solution);
            }
            let used = known.next_penalty();
            if (used.len() as f64) < SPARSE * solver.active() as f64 {
                solver.retain(&used);
            }
        }
        Ok(solved)
    }

    /// What the same classifier with another kernel may start from.
    pub fn into_starts(self) -> PathStarts {
        let (order, tasks) = (self.layout.order, self.tasks);
        PathStarts { order, tasks, penalties: self.penalties, solutions: self.solutions }
    }

    /// Whether a part has the same functions for two penalties, as where no variable is at its
    /// bound.
    pub fn repeats(&self, part: usize, one: usize, other: usize) -> bool {
        let same = |of: &[Solved]| of[one].same_function(&of[other]);
        self.solutions.iter().all(|of_task| same(&of_task[part]))
    }

    /// The model of one part and penalty.
    pub fn model(&self, part: usize, penalty: usize) -> Result<Model> {
        let classifier = &self.classifiers[part];
        let mut outcome: Option<Outcome> = None;
        let mut seconds = 0.0;
        let mut expansions = Vec::with_capacity(self.tasks.len());
        for (task, solutions) in self.tasks.iter().zip(&self.solutions) {
            let solved = &solutions[part][penalty];
            let segments: Vec<usize> = task.iter().map(|(s, _)| *s).collect();
            let len = segments.iter().map(|&s| self.layout.segment(s).len()).sum();
            let coefficients = solved.dense(len);
            expansions.push(Expansion { segments, coefficients, offset: solved.offset });
            outcome = Some(outcome.map_or(solved.outcome, |all| all.join(solved.outcome)));
            seconds += solved.seconds;
        }
        let spent = Spent { kernel_rows: 0, seconds };
        let part = RowsOf::some(self.data, &self.parts[part])?;
        let outcome = outcome.ok_or(Error::Interrupted)?;
        let mut model = classifier.model(&part, &self.layout, &expansions, outcome, spent);
        if let Some(training) = &mut model.training {
            training.set_penalty(self.penalties[penalty]);
        }
        Ok(model)
    }
}
