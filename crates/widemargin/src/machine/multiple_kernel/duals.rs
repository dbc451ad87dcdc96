//! The dual problems of a machine over a weighted sum of kernels, solved again and again with other weights.

use crate::context::Context;
use crate::error::Result;
use crate::kernel::KernelRows;
use crate::machine::SolverOptions;
use crate::numeric::algebra::dot;
use crate::numeric::simd::Real;
use crate::outcome::{Outcome, Status};
use crate::solver::kernel_weights::{Solved, WeightedDual};
use crate::solver::{s2do, smo};

/// Factor on the tolerance of the optimality conditions when the gap is not small enough.
const TIGHTER: f64 = 0.25;

/// The first tolerance of the optimality conditions.
const FIRST_TOLERANCE: f64 = 1e-1;

/// The smallest tolerance of the optimality conditions that is tried.
const LAST_TOLERANCE: f64 = 1e-11;

/// A tighter tolerance has to lower the gap to this share, or rounding has stopped progress.
const PROGRESS: f64 = 0.8;

/// The problems with their last solutions.
pub(super) enum Problems {
    TwoClass(Vec<TwoClass>),
    Classes(Box<s2do::Problem>, Option<s2do::Solution>),
}

/// A problem with one function.
pub(super) struct TwoClass {
    pub(super) segments: Vec<usize>,
    pub(super) problem: smo::Problem,
    pub(super) solution: Option<smo::Solution>,
    /// Violation of the optimality conditions over the gap, as a share of the objective, that the last
    /// solution has: what tolerance a gap is expected to need.
    pub(super) pace: f64,
}

impl Problems {
    /// The last solutions.
    fn solutions(&self) -> Solutions {
        match self {
            Self::TwoClass(problems) => {
                let solved =
                    problems.iter().map(|p| Some((p.segments.clone(), p.solution.clone()?)));
                solved.collect::<Option<_>>().map_or(Solutions::None, Solutions::TwoClass)
            }
            Self::Classes(_, last) => last.clone().map_or(Solutions::None, Solutions::Classes),
        }
    }

    /// Lets the problems start from solutions of the same ones.
    pub(super) fn start_from(&mut self, solutions: Solutions) {
        match (self, solutions) {
            (Self::TwoClass(problems), Solutions::TwoClass(solved)) => {
                for (problem, (_, solution)) in problems.iter_mut().zip(solved) {
                    problem.solution = Some(solution);
                }
            }
            (Self::Classes(_, last), Solutions::Classes(solution)) => *last = Some(solution),
            _ => {}
        }
    }
}

/// The last solutions.
#[derive(Clone)]
pub(super) enum Solutions {
    /// Segments and solution of every function.
    TwoClass(Vec<(Vec<usize>, smo::Solution)>),
    Classes(s2do::Solution),
    None,
}

/// Kernel rows and the problems over them.
pub(super) struct KernelDuals<'a, T: Real> {
    rows: KernelRows<T>,
    /// What makes the trace of every kernel the number of rows.
    factors: Vec<f64>,
    problems: Problems,
    options: SolverOptions,
    /// Tolerance of the optimality conditions of the problem of all classes.
    tol: f64,
    effort: Outcome,
    /// Whether the quadratic forms of a solution were computed.
    has_cut: bool,
    /// The solutions of the best weights.
    kept: Solutions,
    context: &'a Context,
}

impl<'a, T: Real> KernelDuals<'a, T> {
    pub(super) fn new(
        rows: KernelRows<T>,
        factors: Vec<f64>,
        problems: Problems,
        options: SolverOptions,
        context: &'a Context,
    ) -> Self {
        let effort = Outcome {
            status: Status::Solved,
            primal: 0.0,
            dual: 0.0,
            violation: 0.0,
            iterations: 0,
            blocks: 0,
            kernel_rows: 0,
        };
        let (tol, has_cut, kept) = (FIRST_TOLERANCE, false, Solutions::None);
        Self { rows, factors, problems, options, tol, effort, has_cut, kept, context }
    }

    /// Kernel rows computed, work done and the last solutions.
    ///
    /// # Errors
    /// As [`KernelBlocks::check_values`](crate::kernel::KernelBlocks::check_values).
    pub(super) fn finish(self) -> Result<(u64, Outcome, Solutions)> {
        self.rows.blocks().check_values()?;
        let computed = self.rows.requested() / self.rows.blocks().len().max(1) as u64;
        Ok((computed, self.effort, self.problems.solutions()))
    }

    /// Solves every problem with one function to a gap, from its last solution on.
    fn descend_two_class(&mut self, gap: f64) -> Outcome {
        let Problems::TwoClass(problems) = &mut self.problems else { return self.effort };
        let mut outcomes = Vec::with_capacity(problems.len());
        for one in problems {
            let view = self.rows.view(&one.segments, self.context);
            if let Some(last) = one.solution.take() {
                one.problem.initial_working_set = support(&last.beta);
                one.problem.start = last.beta;
                one.problem.bound_tolerance = smo::Problem::BOUND_TOLERANCE;
            }
            let variables = one.problem.linear.len();
            let mut options = self.options.for_problem(variables);
            options.tol = (one.pace * gap).clamp(LAST_TOLERANCE, FIRST_TOLERANCE);
            options.gap = Some(gap);
            let bytes = variables * variables * size_of::<T>();
            if bytes <= self.context.cache_bytes() {
                options.in_memory_up_to = variables;
            }
            let solution = smo::solve(&view, &one.problem, &options, self.context);
            let outcome = solution.outcome;
            let reached = outcome.gap() / outcome.primal.abs();
            if reached > 0.0 && outcome.violation > 0.0 {
                one.pace = outcome.violation / reached;
            }
            outcomes.push(outcome);
            one.solution = Some(solution);
        }
        self.joined(outcomes)
    }

    /// Solves the problem of all classes to the present tolerance, from its last solution on.
    fn descend_classes(&mut self) -> Outcome {
        let Problems::Classes(problem, solution) = &mut self.problems else { return self.effort };
        let view = self.rows.view(&[0], self.context);
        if let Some(last) = solution.take() {
            let own = |(i, b): (usize, &[f64])| {
                let class = problem.codes[i] as usize;
                problem.loss.variables(class, b, problem.upper[i])
            };
            let rows = last.coefficients.chunks_exact(problem.classes).enumerate();
            problem.start = Some(rows.flat_map(own).collect());
        }
        let options = s2do::Options {
            tol: self.tol,
            shrinking: self.options.shrinking,
            max_iterations: self.options.max_iterations.unwrap_or(u64::MAX),
        };
        let solved = s2do::solve(&view, problem, &options, self.context);
        let outcome = solved.outcome;
        *solution = Some(solved);
        drop(view);
        self.joined(vec![outcome])
    }

    fn joined(&mut self, outcomes: Vec<Outcome>) -> Outcome {
        let joined = outcomes.into_iter().reduce(Outcome::join).unwrap_or(self.effort);
        self.effort.iterations += joined.iterations;
        self.effort.blocks += joined.blocks;
        self.effort.violation = joined.violation;
        joined
    }

    /// Solves the problem of all classes to a gap: to tolerances that are tightened until it is reached.
    fn tighten_classes(&mut self, gap: f64) -> Outcome {
        self.tol = (self.tol / TIGHTER).min(FIRST_TOLERANCE);
        let mut last = f64::INFINITY;
        loop {
            let outcome = self.descend_classes();
            let reached = outcome.gap() <= gap * outcome.primal.abs();
            let ended = !matches!(outcome.status, Status::Solved | Status::AlmostSolved);
            let stalled = outcome.gap() > PROGRESS * last && self.tol < gap;
            if reached || ended || stalled || self.tol <= LAST_TOLERANCE {
                return outcome;
            }
            last = outcome.gap();
            self.tol *= TIGHTER;
        }
    }

    /// The linear term of the last solutions, and their quadratic form with every kernel.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted) when `context` asks to stop.
    fn cut(&self, weights: &[f64], dual: f64, context: &Context) -> Result<(f64, Vec<f64>)> {
        let mut forms = vec![0.0; self.factors.len()];
        let mut add = |own: Vec<f64>| {
            for ((form, own), factor) in forms.iter_mut().zip(own).zip(&self.factors) {
                *form += 0.5 * own * factor;
            }
        };
        match &self.problems {
            Problems::TwoClass(problems) => {
                let mut linear = 0.0;
                for one in problems {
                    let Some(solution) = &one.solution else { continue };
                    let beta = &solution.beta;
                    let view = self.rows.view(&one.segments, self.context);
                    add(view.term_forms(beta, 1, context)?);
                    linear -= dot(&one.problem.linear, beta);
                    if let Some(ridge) = &one.problem.ridge {
                        let squares = ridge.iter().zip(beta).map(|(r, b)| r * b * b);
                        linear -= 0.5 * squares.sum::<f64>();
                    }
                }
                Ok((linear, forms))
            }
            Problems::Classes(problem, solution) => {
                if let Some(solution) = solution {
                    let view = self.rows.view(&[0], self.context);
                    let columns = problem.classes;
                    add(view.term_forms(&solution.coefficients, columns, context)?);
                }
                Ok((dual + dot(&forms, weights), forms))
            }
        }
    }
}

/// The variables that are not zero.
fn support(beta: &[f64]) -> Vec<u32> {
    (0..beta.len() as u32).filter(|&v| beta[v as usize] != 0.0).collect()
}

impl<T: Real> WeightedDual for KernelDuals<'_, T> {
    fn solve(&mut self, weights: &[f64], gap: f64) -> Result<Solved> {
        let raw: Vec<f64> = weights.iter().zip(&self.factors).map(|(w, f)| w * f).collect();
        self.rows.reweight(&raw)?;
        let outcome = match self.problems {
            Problems::TwoClass(_) => self.descend_two_class(gap),
            Problems::Classes(..) => self.tighten_classes(gap),
        };
        // The first solution is the only one there is: its forms are waited for.
        let (linear, forms) = match self.has_cut {
            true => self.cut(weights, outcome.dual, self.context)?,
            false => self.cut(weights, outcome.dual, &self.context.after_stop())?,
        };
        self.has_cut = true;
        Ok(Solved { linear, forms, primal: outcome.primal, status: outcome.status })
    }

    fn keep(&mut self) {
        self.kept = self.problems.solutions();
    }

    fn restore(&mut self, weights: &[f64]) -> Result<()> {
        let raw: Vec<f64> = weights.iter().zip(&self.factors).map(|(w, f)| w * f).collect();
        self.rows.reweight(&raw)?;
        self.problems.start_from(std::mem::replace(&mut self.kept, Solutions::None));
        Ok(())
    }
}
