//! The functions of a classifier, each class against the rest: which are solved as a batch, and from which
//! start.

use std::borrow::Cow;
use std::ops::Range;

use super::assemble::start_weights;
use super::classification::Fit;
use super::rows::FeatureOrder;
use super::solve::{Algorithm, LinearPlan, Start};
use crate::context::{Context, Event, SolvedFunction};
use crate::data::pieces;
use crate::error::Result;
use crate::numeric::parallel::{self, Threads};
use crate::solver::linear::rows::{LinearRows, RowLists};
use crate::solver::linear::{
    BatchInputs, Columns, OneVsRestProblems, RowLoss, Solution, is_coarse, solve_batch,
    solve_batch_in_singles, solve_logistic_batch,
};

/// Solves a batch of functions.
type Solver<R> = fn(&BatchInputs<'_, R>) -> Vec<Solution>;

/// How many functions make a batch.
struct BatchSize<R> {
    /// As many as cost about the same as fewer.
    least: usize,
    /// The most, on one thread and on every one of several.
    most: [usize; 2],
    /// For at most so many functions.
    narrow: (usize, Solver<R>),
    /// For more.
    wide: Solver<R>,
}

impl<R: LinearRows> BatchSize<R> {
    fn new(plan: &LinearPlan, algorithm: Algorithm, rows: usize) -> Self {
        let options = plan.options(plan.tolerance(algorithm));
        match plan.loss {
            RowLoss::Logistic => Self {
                least: 1,
                // Its steps cost more than the reading that large batches save.
                most: [8, 4],
                narrow: (4, solve_logistic_batch::<4, R>),
                wide: solve_logistic_batch::<8, R>,
            },
            _ if is_coarse(&options, rows) => Self {
                least: 4,
                most: [16, 16],
                narrow: (8, solve_batch_in_singles::<8, R>),
                wide: solve_batch_in_singles::<16, R>,
            },
            _ => Self {
                least: 1,
                most: [8, 8],
                narrow: (4, solve_batch::<4, R>),
                wide: solve_batch::<8, R>,
            },
        }
    }

    /// How many groups so many functions make.
    fn groups(&self, functions: usize, threads: usize) -> usize {
        let most = self.most[usize::from(threads > 1)];
        let groups = functions.div_ceil(most).next_multiple_of(threads);
        groups.min(functions.div_ceil(self.least))
    }

    /// The solver of so many functions.
    fn solver(&self, functions: usize) -> Solver<R> {
        if functions <= self.narrow.0 { self.narrow.1 } else { self.wide }
    }
}

/// What all functions are solved from, and how.
#[derive(Clone, Copy)]
struct FitInputs<'a, R> {
    rows: &'a R,
    order: &'a FeatureOrder,
    columns: Option<&'a Columns>,
    plan: &'a LinearPlan,
    algorithm: Algorithm,
    context: &'a Context,
}

impl Fit<'_> {
    /// Solves all functions, some at a time: the solutions of every such group, for every C.
    pub(super) fn one_vs_rest<R: LinearRows>(
        &self,
        rows: &R,
        order: &FeatureOrder,
        columns: Option<&Columns>,
        plan: &LinearPlan,
        algorithm: Algorithm,
    ) -> Result<Vec<Vec<Vec<Solution>>>> {
        let name = "two-class problems";
        self.context.report(&Event::Stage { name, total: self.functions });
        let at_once = self.context.is_parallel() && self.functions > 1;
        // Threads that have a function each have none to spare for its blocks.
        let context = match algorithm {
            Algorithm::Blocks if at_once => &self.context.clone().with_threads(1)?,
            _ => self.context,
        };
        let inputs = FitInputs { rows, order, columns, plan, algorithm, context };
        let lists = rows.lists().filter(|_| self.functions > 1 && plan.is_batched(algorithm));
        let sizes = BatchSize::new(plan, algorithm, rows.rows());
        // A function's bits do not depend on the others of its batch.
        let groups = match &lists {
            None => self.functions,
            Some(_) => sizes.groups(self.functions, self.context.threads()),
        };
        let first = |g: usize| g * self.functions / groups;
        let group = |g: usize| {
            let functions = first(g)..first(g + 1);
            let solutions = match &lists {
                None => self.function(&inputs, first(g)),
                Some(lists) => self.batch(&inputs, lists, sizes.solver(functions.len()), functions),
            };
            (first(g)..first(g + 1)).for_each(|_| self.context.report(&Event::StageStep { name }));
            solutions
        };
        Ok(parallel::map(Threads::of_current_pool(at_once), 0..groups, group))
    }

    /// Solves function `f` for every C.
    fn function<R: LinearRows>(&self, inputs: &FitInputs<'_, R>, f: usize) -> Vec<Vec<Solution>> {
        let FitInputs { rows, order, columns, plan, algorithm, context } = *inputs;
        let targets = self.by_side(f, 1.0, -1.0);
        let given = self.given(order, f);
        let mut solved: Vec<Vec<Solution>> = Vec::new();
        for (at, &c) in self.path.iter().enumerate() {
            let costs = self.costs(c, f);
            let scaled;
            let start = match (solved.last(), &given, algorithm) {
                (Some(last), _, Algorithm::Newton | Algorithm::NewtonL1) => {
                    Start::Weights(&last[0].weights)
                }
                (Some(last), _, _) => {
                    scaled = self.scaled_dual(&last[0], at);
                    Start::Dual(&scaled)
                }
                (None, Some(weights), _) => Start::Weights(weights),
                (None, None, _) => Start::Nowhere,
            };
            let problem = plan.problem(&targets, &costs);
            let solution = plan.solve(algorithm, rows, columns, problem, start, context);
            if self.context.is_observed() {
                self.report(f, &solution, &costs);
            }
            solved.push(vec![solution]);
        }
        solved
    }

    /// Solves a batch of functions for every C.
    fn batch<R: LinearRows>(
        &self,
        inputs: &FitInputs<'_, R>,
        lists: &RowLists<'_>,
        solve: Solver<R>,
        functions: Range<usize>,
    ) -> Vec<Vec<Solution>> {
        let FitInputs { rows, order, plan, algorithm, context, .. } = *inputs;
        let codes = &self.classes.codes;
        let mut solved: Vec<Vec<Solution>> = Vec::new();
        for (at, &c) in self.path.iter().enumerate() {
            let costs = |own: bool| -> Vec<f64> {
                let class = |row: usize| if own { codes[row] as usize } else { usize::MAX };
                (0..rows.rows()).map(|row| c * self.weight(row, class(row))).collect()
            };
            let (rest_costs, own_costs) = (costs(false), costs(true));
            let (loss, rest_costs, own_costs) = (plan.loss, &rest_costs[..], &own_costs[..]);
            let problems = OneVsRestProblems { loss, codes, rest_costs, own_costs };
            let start = |f: usize| match (solved.last(), self.given(order, f)) {
                (Some(last), _) => Some(self.scaled_dual(&last[f - functions.start], at)),
                (None, Some(weights)) => {
                    let (targets, costs) = problems.targets_and_costs(f);
                    let problem = plan.problem(&targets, &costs);
                    Start::Weights(&weights).dual(rows, &problem).map(Cow::into_owned)
                }
                (None, None) => None,
            };
            let starts: Vec<Option<Vec<f64>>> = functions.clone().map(start).collect();
            let starts: Vec<Option<&[f64]>> = starts.iter().map(Option::as_deref).collect();
            let options = &plan.options(plan.tolerance(algorithm));
            let (problems, classes, starts) = (&problems, functions.clone(), &starts[..]);
            let solutions =
                solve(&BatchInputs { rows, lists, problems, classes, options, starts, context });
            if self.context.is_observed() {
                for (f, solution) in functions.clone().zip(&solutions) {
                    self.report(f, solution, &problems.targets_and_costs(f).1);
                }
            }
            solved.push(solutions);
        }
        solved
    }

    /// The factor on C of a row in the problem of class `f`.
    fn weight(&self, row: usize, f: usize) -> f64 {
        let factor = match (self.classes.codes[row] as usize == f, self.functions) {
            (true, _) => self.factors[f],
            (false, 1) => self.factors[1],
            (false, _) => 1.0,
        };
        factor * self.data.weight(row)
    }

    /// What every row costs in the problem of class `f`.
    fn costs(&self, c: f64, f: usize) -> Vec<f64> {
        if self.data.weights().is_some() {
            return (0..self.classes.codes.len()).map(|row| c * self.weight(row, f)).collect();
        }
        let rest = if self.functions == 1 { self.factors[1] } else { 1.0 };
        self.by_side(f, c * self.factors[f], c * rest)
    }

    /// One number for rows of class `f`, another for the rest.
    fn by_side(&self, f: usize, own: f64, rest: f64) -> Vec<f64> {
        let side = |&code: &u32| if code as usize == f { own } else { rest };
        pieces::map(&self.classes.codes, side)
    }

    /// The weights of function `f` to begin with.
    fn given(&self, order: &FeatureOrder, f: usize) -> Option<Vec<f64>> {
        let bias = self.svc.bias.feature();
        self.start.map(|start| order.arrange(&start_weights(start, f, bias)))
    }

    /// Dual variables for the C at a place of the path, from a solution for the one before.
    fn scaled_dual(&self, last: &Solution, at: usize) -> Vec<f64> {
        let factor = self.path[at] / self.path[at - 1];
        last.dual.iter().map(|b| factor * b).collect()
    }

    fn report(&self, index: usize, solution: &Solution, costs: &[f64]) {
        let (mut support, mut bounded) = (0, 0);
        for (beta, cost) in solution.dual.iter().zip(costs) {
            support += usize::from(*beta != 0.0);
            bounded += usize::from(*beta != 0.0 && beta.abs() >= *cost);
        }
        self.context.report(&Event::Solved(SolvedFunction {
            index,
            outcome: solution.outcome,
            offset: self.constant(&solution.weights).map_or(0.0, |constant| -constant),
            support,
            bounded,
            determined: None,
        }));
    }
}
