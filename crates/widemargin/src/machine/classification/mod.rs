//! C-SVC and ν-SVC, and the reductions of many classes to two.
//!
//! C-SVC solves, for rows of two classes with yᵢ = ±1 (Cortes and Vapnik, 1995),
//! `min ½‖w‖² + Σ Cᵢ ξᵢ` (or `Cᵢ ξᵢ²`) with `yᵢ(⟨w, φ(xᵢ)⟩ − ρ) ≥ 1 − ξᵢ`, `ξᵢ ≥ 0`; Cᵢ is C times
//! the weights of class and row. ν-SVC (Schölkopf et al., 2000) replaces C by ν, an upper bound on
//! the share of margin errors and a lower bound on the share of support vectors.

mod held_out;
mod path;
mod path_start;

pub use self::path::{PathStarts, Paths};

use crate::context::{Context, Event};
use crate::data::{ClassOrder, Classes, Label, check_two_classes};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, RowCaching};
use crate::machine::definiteness;
use crate::machine::fit::{FitInput, KernelMachine, PenaltyPath, kernel_fields};
use crate::machine::local_duals::{Form, LocalDuals, table as local_table};
use crate::machine::model::{ClassTable, MachineKind, Model, Scheme};
use crate::machine::names::defaults;
use crate::machine::parameters::{ClassWeights, Loss, Precision, SolverOptions};
use crate::machine::specification::Value;
use crate::machine::training::{
    Expansion, RowSegments, TrainingCost, TrainingRows, assemble, equivalent_nu, fill_up,
    report_solved, start_from, with_precision,
};
use crate::machine::warm_start::UsableStart;
use crate::numeric::simd::Real;
use crate::solver::{Outcome, Status, smo};

/// Support vector classification with penalty C.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::kernel::Kernel;
/// use widemargin::machine::{Machine, Svc};
/// use widemargin::Context;
///
/// let rows = Dense::new(4, 1, vec![-2.0, -1.0, 1.0, 2.0])?;
/// let data = Dataset::new(Matrix::DenseF64(rows), Labels::Int(vec![0, 0, 1, 1]))?;
/// let svc = Svc { c: 10.0, kernel: Kernel::Linear, ..Svc::default() };
/// let context = Context::new();
/// let model = svc.fit(&data, &context)?;
/// let predicted = model.predictor(&context)?.predict(data.features())?;
/// assert_eq!(predicted, Labels::Int(vec![0, 0, 1, 1]));
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Svc {
    /// Penalty C of margin errors.
    pub c: f64,
    /// The kernel.
    pub kernel: Kernel,
    /// How margin errors are penalised.
    pub loss: Loss,
    /// Factors on C by class.
    pub class_weights: ClassWeights,
    /// How many classes are reduced to two.
    pub scheme: Scheme,
    /// Which class comes first.
    pub class_order: ClassOrder,
    /// Options of the solver.
    pub options: SolverOptions,
}

defaults!(Svc {
    c: 1.0,
    kernel: Kernel::Gaussian { gamma: 1.0 },
    loss: Loss::Hinge,
    class_weights: ClassWeights::Uniform,
    scheme: Scheme::OneVsOne,
    class_order: ClassOrder::Sorted,
    options: SolverOptions::default(),
});

/// Support vector classification with ν, the share of margin errors.
#[derive(Clone, Debug, PartialEq)]
pub struct NuSvc {
    /// Upper bound on the share of margin errors, lower bound on the share of support vectors.
    pub nu: f64,
    /// The kernel.
    pub kernel: Kernel,
    /// Factors on the weight of rows by class.
    pub class_weights: ClassWeights,
    /// How many classes are reduced to two.
    pub scheme: Scheme,
    /// Which class comes first.
    pub class_order: ClassOrder,
    /// Options of the solver.
    pub options: SolverOptions,
}

defaults!(NuSvc {
    nu: 0.5,
    kernel: Kernel::Gaussian { gamma: 1.0 },
    class_weights: ClassWeights::Uniform,
    scheme: Scheme::OneVsOne,
    class_order: ClassOrder::Sorted,
    options: SolverOptions::default(),
});

/// What the two machines share once their own parameters are checked.
struct Classifier<'a> {
    kind: MachineKind,
    kernel: &'a Kernel,
    scheme: &'a Scheme,
    options: &'a SolverOptions,
    classes: Classes,
    /// Weight of every row, class weights included.
    weights: Vec<f64>,
    rule: Formulation,
    earlier: UsableStart<'a>,
    parameters: Vec<(String, Value)>,
}

/// Which quadratic program a two-class problem becomes.
#[derive(Clone, Copy)]
enum Formulation {
    Penalty { c: f64, loss: Loss },
    Share { nu: f64 },
}

/// One two-class problem: segments, ascending, with the sign of their rows.
type Task = Vec<(usize, f64)>;

impl Svc {
    fn classifier<'a>(
        &'a self,
        part: &FitInput<'_>,
        earlier: UsableStart<'a>,
    ) -> Result<Classifier<'a>> {
        Error::check_positive("c", self.c)?;
        part.validate()?;
        let classes = part.classes(self.class_order)?;
        let loss = match self.loss {
            Loss::Hinge => "hinge",
            Loss::SquaredHinge => "squared-hinge",
        };
        Ok(Classifier {
            kind: MachineKind::CSvc,
            kernel: &self.kernel,
            scheme: &self.scheme,
            options: &self.options,
            weights: row_weights(part, &classes, &self.class_weights)?,
            earlier: earlier.of_classes(&classes.names, &self.scheme).of_penalty(self.c),
            classes,
            rule: Formulation::Penalty { c: self.c, loss: self.loss },
            parameters: vec![("c".into(), self.c.into()), ("loss".into(), loss.into())],
        })
    }
}

impl Svc {
    fn local(&self, input: &FitInput<'_>) -> Result<LocalDuals> {
        let classifier = self.classifier(input, UsableStart::NONE)?;
        classifier.check()?;
        let tasks = classifier.tasks()?;
        match input.census() {
            None => classifier.check_weights(&classifier.class_rows(input.rows()), &tasks)?,
            Some(census) => {
                if let Some(name) = census.class_without_weight(&classifier.classes.names) {
                    return Err(lost_class(name));
                }
            }
        }
        let Classifier { classes, weights, mut parameters, .. } = classifier;
        let signs = tasks.iter().map(|task| {
            let mut signs = vec![0.0; classes.count()];
            task.iter().for_each(|&(class, sign)| signs[class] = sign);
            signs
        });
        let mut labels = vec![0.0; input.data().rows()];
        input.rows().zip(&classes.codes).for_each(|(row, code)| labels[row] = f64::from(*code));
        parameters.push(("tol".into(), self.options.tol.into()));
        Ok(LocalDuals {
            kind: MachineKind::CSvc,
            kernel: self.kernel.clone(),
            options: self.options,
            form: Form::Classes {
                signs: signs.collect(),
                names: classes.names,
                scheme: self.scheme.clone(),
                c: self.c,
                loss: self.loss,
            },
            parameters,
            table: local_table(input.data(), &self.kernel, labels, weights)?,
            all_rows: input.all_rows(),
            scaler: None,
        })
    }
}

/// The two-class problems of a classifier, over segments of rows.
pub(in crate::machine) struct TwoClassProblems {
    pub(in crate::machine) classes: Classes,
    /// Rows of the data set, a segment for every class.
    pub(in crate::machine) rows: Vec<Vec<usize>>,
    /// Segments and quadratic program of every function.
    pub(in crate::machine) problems: Vec<(Vec<usize>, smo::Problem)>,
}

impl Svc {
    /// The problems that this machine solves, for others to solve.
    pub(in crate::machine) fn two_class_problems(
        &self,
        input: &FitInput<'_>,
    ) -> Result<TwoClassProblems> {
        let classifier = self.classifier(input, UsableStart::NONE)?;
        classifier.check()?;
        let tasks = classifier.tasks()?;
        let rows = classifier.class_rows(input.rows());
        classifier.check_weights(&rows, &tasks)?;
        let layout = RowSegments::new(&rows);
        let problem = |(index, task): (usize, &Task)| {
            let segments = task.iter().map(|&(s, _)| s).collect();
            (segments, classifier.problem(&layout, index, task))
        };
        let problems = tasks.iter().enumerate().map(problem).collect();
        Ok(TwoClassProblems { classes: classifier.classes, rows, problems })
    }
}

impl KernelMachine for Svc {
    fn learn(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        self.classifier(&input, input.usable_start())?.fit(&input, context)
    }

    kernel_fields!();

    fn duals(&self, input: &FitInput<'_>) -> Option<Result<LocalDuals>> {
        Some(self.local(input))
    }

    fn as_penalty_path(&self) -> Option<&dyn PenaltyPath> {
        Some(self)
    }
}

impl KernelMachine for NuSvc {
    fn learn(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        check_nu(self.nu)?;
        input.validate()?;
        let classes = input.labels().classes(self.class_order)?;
        Classifier {
            kind: MachineKind::NuSvc,
            kernel: &self.kernel,
            scheme: &self.scheme,
            options: &self.options,
            weights: row_weights(&input, &classes, &self.class_weights)?,
            earlier: input.usable_start().of_classes(&classes.names, &self.scheme),
            classes,
            rule: Formulation::Share { nu: self.nu },
            parameters: vec![("nu".into(), self.nu.into())],
        }
        .fit(&input, context)
    }

    kernel_fields!();
}

/// The largest duality gap, relative to the objective, of a ν-SVC without a warning.
const WARNING_GAP: f64 = 0.01;

/// Factors of ten by which the tolerance of a ν-SVC falls at the most to close its gap: from the usual 1e-3 to
/// what double precision can verify. Single precision ends it earlier.
const SMALLER_TOLERANCES: usize = 6;

/// Checks that ν is in (0, 1].
pub(in crate::machine) fn check_nu(nu: f64) -> Result<()> {
    if nu > 0.0 && nu <= 1.0 {
        Ok(())
    } else {
        Err(Error::parameter("nu", "a number above 0 and at most 1", nu))
    }
}

/// A class without a row of positive weight.
fn lost_class(name: &Label) -> Error {
    Error::labels("a row of positive weight in every class", format!("none in class '{name}'"))
}

/// The weight of every row of the data set, 0 for those left out.
fn row_weights(
    part: &FitInput<'_>,
    classes: &Classes,
    by_class: &ClassWeights,
) -> Result<Vec<f64>> {
    let factors = match part.census() {
        Some(census) => by_class.of_counts(&classes.names, &census.class_rows(&classes.names))?,
        None => by_class.resolve(classes)?,
    };
    let mut weights = vec![0.0; part.data().rows()];
    for (row, &code) in part.rows().zip(&classes.codes) {
        weights[row] = part.weight(row) * factors[code as usize];
    }
    Ok(weights)
}

impl Classifier<'_> {
    fn fit(self, part: &FitInput<'_>, context: &Context) -> Result<Model> {
        self.check()?;
        with_precision!(self.options.precision, context, T => self.fit_in::<T>(part, context))
    }

    /// Warns of a ν-SVC whose margin r is so small that the tolerance, which is measured before the
    /// division by r, leaves a large gap after it.
    fn warn_of_gap(&self, outcome: &Outcome, context: &Context) {
        let share = outcome.gap() / outcome.primal.abs();
        let is_share = matches!(self.rule, Formulation::Share { .. });
        if is_share && outcome.status.is_solved() && share > WARNING_GAP {
            let message = format!(
                "the duality gap is {:.0} % of the objective although the tolerance {:e} is met: the \
                 margin is small beside it; a smaller tol or a larger nu would help",
                100.0 * share,
                self.options.tol
            );
            context.report(&Event::Warning { message });
        }
    }

    /// Checks the kernel, the options and that there are at least two classes.
    fn check(&self) -> Result<()> {
        self.kernel.validate()?;
        self.options.validate()?;
        check_two_classes(&self.classes.names)
    }

    /// The rows of every class that have a weight.
    fn class_rows(&self, rows: impl Iterator<Item = usize>) -> Vec<Vec<usize>> {
        let mut by_class = vec![Vec::new(); self.classes.count()];
        for (row, &code) in rows.zip(&self.classes.codes) {
            if self.weights[row] > 0.0 {
                by_class[code as usize].push(row);
            }
        }
        by_class
    }

    fn fit_in<T: Real>(&self, part: &FitInput<'_>, context: &Context) -> Result<Model> {
        let tasks = self.tasks()?;
        let rows = self.class_rows(part.rows());
        self.check_weights(&rows, &tasks)?;
        let packed =
            TrainingRows::<T>::new(self.kernel, part.data(), &rows, self.caching(), context)?;
        let negative = packed.warn_of_indefinite(self.kernel, context)?;
        context.report(&Event::Stage { name: "two-class problems", total: tasks.len() });
        let segments: Vec<Vec<usize>> =
            tasks.iter().map(|task| task.iter().map(|&(s, _)| s).collect()).collect();
        let problem = |index: usize| self.problem(&packed.layout, index, &tasks[index]);
        let starts = packed.backend_solutions(&segments, problem, self.options.tol, context);
        let solve = |(index, task): (usize, &Task)| {
            let mut problem = problem(index);
            if let Some(start) = starts.get(index) {
                start_from(&mut problem, start.clone());
            }
            let solved = self.solve(&packed, index, task, &problem, context);
            context.report(&Event::StageStep { name: "two-class problems" });
            solved
        };
        let solved: Vec<(Expansion, Outcome)> = context.map(tasks.iter().enumerate(), solve);
        let (expansions, outcomes): (Vec<_>, Vec<_>) = solved.into_iter().unzip();
        let outcome = outcomes.into_iter().reduce(Outcome::join).ok_or(Error::Interrupted)?;
        self.warn_of_gap(&outcome, context);
        let precision = Precision::of::<T>();
        let spent = packed.spent()?;
        let model = self.model(part, precision, &packed.layout, &expansions, outcome, spent)?;
        Ok(definiteness::noted(model, negative))
    }

    /// Which parts of kernel rows several tasks need.
    fn caching(&self) -> RowCaching {
        match self.scheme {
            Scheme::OneVsOne | Scheme::Dag => RowCaching::OwnSegment,
            Scheme::OneVsRest | Scheme::ErrorCorrecting(_) => RowCaching::All,
        }
    }

    /// The model of the decision functions of all tasks.
    fn model(
        &self,
        part: &FitInput<'_>,
        precision: Precision,
        layout: &RowSegments,
        expansions: &[Expansion],
        outcome: Outcome,
        spent: TrainingCost,
    ) -> Result<Model> {
        let mut parameters = self.parameters.clone();
        parameters.push(("tol".into(), self.options.tol.into()));
        let (mut model, support) = assemble(
            self.kind,
            self.kernel,
            precision,
            part,
            layout,
            expansions,
            outcome,
            spent,
            parameters,
        )?;
        let names = self.classes.names.clone();
        model.classes = Some(ClassTable { names, scheme: self.scheme.clone(), support });
        Ok(model)
    }

    /// The two-class problems of the scheme.
    fn tasks(&self) -> Result<Vec<Task>> {
        let k = self.classes.count();
        match self.scheme {
            Scheme::OneVsOne | Scheme::Dag => Ok((0..k)
                .flat_map(|i| (i + 1..k).map(move |j| vec![(i, 1.0), (j, -1.0)]))
                .collect()),
            Scheme::OneVsRest => {
                let sign = |positive: usize, s: usize| if s == positive { 1.0 } else { -1.0 };
                Ok((0..k).map(|c| (0..k).map(|s| (s, sign(c, s))).collect()).collect())
            }
            Scheme::ErrorCorrecting(codes) => {
                crate::machine::codes::check(codes, k)?;
                let column = |f: usize| {
                    (0..k)
                        .filter(move |&s| codes[s][f] != 0)
                        .map(move |s| (s, f64::from(codes[s][f])))
                };
                Ok((0..codes[0].len()).map(|f| column(f).collect()).collect())
            }
        }
    }

    fn check_weights(&self, rows: &[Vec<usize>], tasks: &[Task]) -> Result<()> {
        if let Some(class) = rows.iter().position(Vec::is_empty) {
            return Err(lost_class(&self.classes.names[class]));
        }
        let Formulation::Share { nu } = self.rule else { return Ok(()) };
        let total = |task: &Task, sign: f64| -> f64 {
            let segments = task.iter().filter(|(_, s)| *s == sign);
            segments.flat_map(|(s, _)| &rows[*s]).map(|&row| self.weights[row]).sum()
        };
        for task in tasks {
            let (positive, negative) = (total(task, 1.0), total(task, -1.0));
            let largest = 2.0 * positive.min(negative) / (positive + negative);
            if nu > largest {
                let names: Vec<String> =
                    task.iter().map(|(s, _)| format!("'{}'", self.classes.names[*s])).collect();
                let reason = format!("classes {} allow at most {largest}", names.join(" and "));
                return Err(Error::InfeasibleNu { nu, reason });
            }
        }
        Ok(())
    }

    /// The quadratic program of a task.
    fn problem(&self, layout: &RowSegments, index: usize, task: &Task) -> smo::Problem {
        let signed_rows =
            || task.iter().flat_map(|&(s, sign)| layout.segment(s).map(move |row| (row, sign)));
        let weights: Vec<f64> =
            signed_rows().map(|(row, _)| self.weights[layout.order[row]]).collect();
        let signs: Vec<f64> = signed_rows().map(|(_, sign)| sign).collect();
        let mut problem = match self.rule {
            Formulation::Penalty { c, loss } => penalty_problem(&signs, &weights, c, loss),
            Formulation::Share { nu } => share_problem(&signs, &weights, nu),
        };
        let rows = signed_rows().map(|(row, _)| layout.order[row]);
        self.earlier.apply(index, rows, &mut problem);
        problem
    }

    fn solve<T: Real>(
        &self,
        packed: &TrainingRows<T>,
        index: usize,
        task: &Task,
        problem: &smo::Problem,
        context: &Context,
    ) -> (Expansion, Outcome) {
        let segments: Vec<usize> = task.iter().map(|&(s, _)| s).collect();
        let view = packed.rows.view(&segments, context);
        let variables = problem.linear.len();
        let options = self.options.for_problem(variables);
        let mut solution = smo::solve(&view, problem, &options, context);
        if matches!(self.rule, Formulation::Share { .. }) {
            solution = close_gap(solution, problem, options, |problem, options| {
                smo::solve(&view, problem, options, context)
            });
        }
        let mut outcome = solution.outcome;
        let mut scale = 1.0;
        let (coefficients, offset) = match self.rule {
            Formulation::Penalty { .. } => (solution.beta, solution.multipliers[0]),
            Formulation::Share { .. } => {
                // Rescaled so that the margin is 1, as LIBSVM does.
                let (up, down) = (solution.multipliers[0], solution.multipliers[1]);
                let margin = 0.5 * (up - down);
                let margin = if margin > 0.0 { margin } else { 1.0 };
                outcome.dual /= margin * margin;
                outcome.primal /= margin * margin;
                scale = 1.0 / margin;
                let scaled = solution.beta.iter().map(|b| b / margin).collect();
                (scaled, 0.5 * (up + down) / margin)
            }
        };
        let expansion = Expansion { segments, coefficients, offset };
        let bound = |i: usize| scale * problem.upper[i].max(-problem.lower[i]);
        let determined = match self.rule {
            Formulation::Penalty { .. } => {
                let bounds: Vec<f64> = (0..variables).map(bound).collect();
                equivalent_nu(&expansion, &bounds)
            }
            Formulation::Share { .. } => Some(("C", scale)),
        };
        report_solved(context, index, &expansion, bound, outcome, determined);
        (expansion, outcome)
    }
}

/// f = Kβ − y with 0 ≤ yβ ≤ wC, Σβ = 0.
pub(in crate::machine) fn penalty_problem(
    signs: &[f64],
    weights: &[f64],
    c: f64,
    loss: Loss,
) -> smo::Problem {
    let (bound, ridge): (Vec<f64>, _) = match loss {
        Loss::Hinge => (weights.iter().map(|w| c * w).collect(), None),
        Loss::SquaredHinge => {
            let of_weight =
                |w: f64| if w > 0.0 { (f64::INFINITY, 0.5 / (c * w)) } else { (0.0, 0.0) };
            let (bound, ridge) = weights.iter().map(|&w| of_weight(w)).unzip();
            (bound, Some(ridge))
        }
    };
    smo::Problem {
        linear: signs.iter().map(|y| -y).collect(),
        lower: signs.iter().zip(&bound).map(|(&y, &b)| if y > 0.0 { 0.0 } else { -b }).collect(),
        upper: signs.iter().zip(&bound).map(|(&y, &b)| if y > 0.0 { b } else { 0.0 }).collect(),
        ridge,
        start: vec![0.0; signs.len()],
        ..smo::Problem::default()
    }
}

/// Lowers the tolerance of a ν-SVC until its gap is no longer large beside the objective: the tolerance is
/// measured before the division by the margin, which may be as small as the tolerance itself.
fn close_gap(
    mut solution: smo::Solution,
    problem: &smo::Problem,
    mut options: smo::Options,
    solve: impl Fn(&smo::Problem, &smo::Options) -> smo::Solution,
) -> smo::Solution {
    let tol = options.tol;
    for _ in 0..SMALLER_TOLERANCES {
        let outcome = solution.outcome;
        if !outcome.status.is_solved() || outcome.gap() <= WARNING_GAP * outcome.primal.abs() {
            break;
        }
        options.tol *= 0.1;
        options.max_iterations = options.max_iterations.saturating_sub(outcome.iterations);
        let mut problem = problem.clone();
        start_from(&mut problem, solution.beta);
        solution = solve(&problem, &options);
        solution.outcome.iterations += outcome.iterations;
        solution.outcome.blocks += outcome.blocks;
        solution.outcome.kernel_rows += outcome.kernel_rows;
    }
    if solution.outcome.violation <= tol && solution.outcome.is_finite() {
        solution.outcome.status = Status::Solved;
    }
    solution
}

/// f = Kβ with 0 ≤ yβ ≤ w, and ±ν Σw / 2 as the sum of each sign.
fn share_problem(signs: &[f64], weights: &[f64], nu: f64) -> smo::Problem {
    let half = 0.5 * nu * weights.iter().sum::<f64>();
    let of_sign =
        |sign: f64| signs.iter().zip(weights).map(move |(&y, &w)| if y == sign { w } else { 0.0 });
    let (positive, negative) = (fill_up(of_sign(1.0), half), fill_up(of_sign(-1.0), half));
    smo::Problem {
        linear: vec![0.0; signs.len()],
        lower: of_sign(-1.0).map(|w| -w).collect(),
        upper: of_sign(1.0).collect(),
        groups: Some(signs.iter().map(|&y| u8::from(y < 0.0)).collect()),
        start: positive.iter().zip(&negative).map(|(p, n)| p - n).collect(),
        ..smo::Problem::default()
    }
}
