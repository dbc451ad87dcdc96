//! One classifier with many penalties on many parts of a data set: the inner loop of a search.
//!
//! Every two-class problem is solved for all parts and penalties over one matrix of kernel values,
//! which stays in the processor's cache; rows outside a part have an empty box. A problem starts from
//! where its neighbours suggest: the solution of the next smaller penalty, moved as the solution of
//! the part before moved between the same two penalties. The optimum is that of
//! [`Machine::fit_rows`](crate::machine::Machine::fit_rows), whatever the start.

use std::time::Instant;

use rayon::prelude::*;

use super::{Classifier, Svc, Task, penalty_problem};
use crate::context::Context;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::kernel::{KernelBlocks, Real, fill_table};
use crate::machine::model::Model;
use crate::machine::parameters::Precision;
use crate::machine::training::{Expansion, Layout, RowsOf, Spent};
use crate::machine::warm_start::{Earlier, feasible};
use crate::solver::smo::{Problem, WholeMatrix, WholeSolver};
use crate::solver::{Outcome, Status};

/// Most rows of a two-class problem whose matrix is held whole.
const MOST_ROWS: usize = 8192;

/// The solutions of a classifier for every part and penalty.
pub struct Paths<'a> {
    data: &'a Dataset,
    parts: &'a [Vec<usize>],
    classifiers: Vec<Classifier<'a>>,
    penalties: Vec<f64>,
    layout: Layout,
    tasks: Vec<Task>,
    /// By task, then part, then penalty.
    solutions: Vec<Vec<Vec<Solved>>>,
}

/// A solution by its coefficients that are not zero.
struct Solved {
    places: Vec<u32>,
    coefficients: Vec<f64>,
    offset: f64,
    outcome: Outcome,
    seconds: f64,
}

impl Svc {
    /// Trains this machine with each of `penalties` (ascending) in the place of its own on each of
    /// `parts`, the rows of `data` to learn from.
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
        paths.solutions = context.install(|| match self.options.precision {
            Precision::F32 => paths.solve::<f32>(self, context),
            Precision::F64 => paths.solve::<f64>(self, context),
        })?;
        Ok(Some(paths))
    }
}

impl Paths<'_> {
    fn solve<T: Real>(&self, svc: &Svc, context: &Context) -> Result<Vec<Vec<Vec<Solved>>>> {
        let solve = |memory: &mut Vec<T>, task: &Task| self.solve_task(svc, task, memory, context);
        if context.is_parallel() {
            self.tasks.par_iter().map_init(Vec::new, solve).collect()
        } else {
            let mut memory = Vec::new();
            self.tasks.iter().map(|task| solve(&mut memory, task)).collect()
        }
    }

    fn solve_task<T: Real>(
        &self,
        svc: &Svc,
        task: &Task,
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
        let mut smaller: Vec<Vec<f64>> = Vec::new();
        let mut solved: Vec<Vec<Solved>> = self.parts.iter().map(|_| Vec::new()).collect();
        for &c in &self.penalties {
            let mut betas: Vec<Vec<f64>> = Vec::with_capacity(self.parts.len());
            for (part, weights) in weights.iter().enumerate() {
                let started = Instant::now();
                let mut problem = penalty_problem(&signs, weights, c, svc.loss);
                if let Some(start) = predicted(&problem, part, &betas, &smaller) {
                    problem.start = start;
                }
                let solution = solver.solve(&problem, &options, context);
                if matches!(solution.outcome.status, Status::Interrupted | Status::TimeLimit) {
                    return Err(Error::Interrupted);
                }
                let used = || (0..rows.len()).filter(|&v| solution.beta[v] != 0.0);
                solved[part].push(Solved {
                    places: used().map(|v| v as u32).collect(),
                    coefficients: used().map(|v| solution.beta[v]).collect(),
                    offset: solution.multipliers[0],
                    outcome: solution.outcome,
                    seconds: started.elapsed().as_secs_f64(),
                });
                betas.push(solution.beta);
            }
            let used = |v: &u32| betas.iter().any(|beta| beta[*v as usize] != 0.0);
            solver.retain(&(0..rows.len() as u32).filter(used).collect::<Vec<_>>());
            smaller = betas;
        }
        Ok(solved)
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
            let mut coefficients = vec![0.0; len];
            for (&place, &coefficient) in solved.places.iter().zip(&solved.coefficients) {
                coefficients[place as usize] = coefficient;
            }
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

/// Where the problem of a part probably ends: at its solution for the penalty before, moved as the
/// solution of the part before moved from there.
fn predicted(
    problem: &Problem,
    part: usize,
    betas: &[Vec<f64>],
    smaller: &[Vec<f64>],
) -> Option<Vec<f64>> {
    let candidate: Vec<f64> = match (betas.last(), smaller.get(part)) {
        (None, None) => return None,
        (Some(neighbour), None) => neighbour.clone(),
        (None, Some(own)) => own.clone(),
        (Some(neighbour), Some(own)) => {
            let before = &smaller[part - 1];
            (0..own.len()).map(|v| own[v] + neighbour[v] - before[v]).collect()
        }
    };
    feasible(problem, candidate)
}
