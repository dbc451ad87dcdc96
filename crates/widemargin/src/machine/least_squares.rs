//! Least-squares support vector machines (Suykens and Vandewalle, 1999).
//!
//! Both minimise ½‖w‖² + ½C Σ wᵢ (yᵢ − f(xᵢ))² over f(x) = ⟨w, φ(x)⟩ + b. Regression takes the targets as
//! they are; classification takes ±1, one function for each class against the rest, all over one matrix. The
//! dual is a linear system ([`least_squares`]), and nearly every row is a support vector.

use super::definiteness;
use super::fit::{FitInput, KernelMachine, kernel_fields};
use super::model::{ClassTable, MachineKind, Model, Scheme};
use super::parameters::{ClassWeights, SolverOptions};
use super::training::{Expansion, TrainingRows, report_solved, with_precision};
use super::warm_start::UsableStart;
use crate::context::Context;
use crate::data::{ClassOrder, check_two_classes};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, RowCaching};
use crate::machine::names::defaults;
use crate::numeric::simd::Real;
use crate::outcome::Outcome;
use crate::solver::least_squares::{self, Options, Problem};

/// Products with the kernel matrix allowed unless the user sets a limit; some dozens are usual.
const DEFAULT_ITERATIONS: u64 = 1000;

/// Least-squares classification.
#[derive(Clone, Debug, PartialEq)]
pub struct LsSvc {
    /// Weight C of squared errors.
    pub c: f64,
    /// The kernel.
    pub kernel: Kernel,
    /// Factors on C by class.
    pub class_weights: ClassWeights,
    /// Which class comes first.
    pub class_order: ClassOrder,
    /// Options of the solver.
    pub options: SolverOptions,
}

defaults!(LsSvc {
    c: 1.0,
    kernel: Kernel::Gaussian { gamma: 1.0 },
    class_weights: ClassWeights::Uniform,
    class_order: ClassOrder::Sorted,
    options: SolverOptions::default(),
});

/// Least-squares regression: kernel ridge regression with an offset that is not penalised.
#[derive(Clone, Debug, PartialEq)]
pub struct LsSvr {
    /// Weight C of squared errors.
    pub c: f64,
    /// The kernel.
    pub kernel: Kernel,
    /// Options of the solver.
    pub options: SolverOptions,
}

impl Default for LsSvr {
    fn default() -> Self {
        let kernel = Kernel::Gaussian { gamma: 1.0 };
        Self { c: 1.0, kernel, options: SolverOptions::default() }
    }
}

impl KernelMachine for LsSvc {
    fn learn(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        let classes = input.labels().classes(self.class_order)?;
        check_two_classes(&classes.names)?;
        let factors = self.class_weights.resolve(&classes)?;
        let mut segments = vec![Vec::new(); classes.count()];
        for (row, &class) in input.rows().zip(&classes.codes) {
            let weight = input.weight(row) * factors[class as usize];
            segments[class as usize].push((row, weight));
        }
        let scheme = if classes.count() == 2 { Scheme::OneVsOne } else { Scheme::OneVsRest };
        let system = System {
            kind: MachineKind::LsSvc,
            c: self.c,
            kernel: &self.kernel,
            options: &self.options,
            earlier: input.usable_start().of_classes(&classes.names, &scheme),
            segments,
        };
        let column = |positive: usize| {
            let one = |s: usize| if s == positive { 1.0 } else { -1.0 };
            let members = system.segments.iter().enumerate();
            members.flat_map(|(s, rows)| vec![one(s); rows.len()]).collect()
        };
        let targets = (0..scheme.functions(classes.count())).map(column).collect();
        let (mut model, support) = system.fit(&input, targets, context)?;
        model.classes = Some(ClassTable { names: classes.names, scheme, support });
        Ok(model)
    }

    kernel_fields!();
}

impl KernelMachine for LsSvr {
    fn learn(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        let targets = vec![input.labels().values()?];
        let system = System {
            kind: MachineKind::LsSvr,
            c: self.c,
            kernel: &self.kernel,
            options: &self.options,
            earlier: input.usable_start(),
            segments: vec![input.rows().map(|row| (row, input.weight(row))).collect()],
        };
        let (model, _) = system.fit(&input, targets, context)?;
        Ok(model)
    }

    kernel_fields!();
}

/// What the two machines share once their targets are known.
struct System<'a> {
    kind: MachineKind,
    c: f64,
    kernel: &'a Kernel,
    options: &'a SolverOptions,
    earlier: UsableStart<'a>,
    /// Rows with their weights, a segment for every class.
    segments: Vec<Vec<(usize, f64)>>,
}

impl System<'_> {
    /// The model, and the number of support vectors of every segment.
    fn fit(
        mut self,
        input: &FitInput<'_>,
        mut targets: Vec<Vec<f64>>,
        context: &Context,
    ) -> Result<(Model, Vec<usize>)> {
        Error::check_positive("c", self.c)?;
        self.kernel.validate()?;
        self.options.validate()?;
        input.validate()?;
        let counts: Vec<bool> = self.segments.iter().flatten().map(|&(_, w)| w > 0.0).collect();
        for column in &mut targets {
            let mut counts = counts.iter();
            column.retain(|_| counts.next().is_some_and(|&counts| counts));
        }
        self.segments.iter_mut().for_each(|rows| rows.retain(|&(_, weight)| weight > 0.0));
        if self.segments.iter().all(Vec::is_empty) {
            return Err(Error::Empty { what: "row of positive weight" });
        }
        with_precision!(self.options.precision, context, T => self.fit_in::<T>(input, &targets, context))
    }

    fn fit_in<T: Real>(
        &self,
        input: &FitInput<'_>,
        targets: &[Vec<f64>],
        context: &Context,
    ) -> Result<(Model, Vec<usize>)> {
        let rows: Vec<Vec<usize>> =
            self.segments.iter().map(|s| s.iter().map(|&(row, _)| row).collect()).collect();
        let data = input.data();
        let packed = TrainingRows::<T>::new(self.kernel, data, &rows, RowCaching::All, context)?;
        let negative = packed.warn_of_indefinite(self.kernel, context)?;
        let order = || rows.iter().flatten().copied();
        let start = (0..targets.len()).map_while(|f| self.earlier.values(f, order()));
        let problem = Problem {
            ridge: self.segments.iter().flatten().map(|&(_, w)| 1.0 / (self.c * w)).collect(),
            start: start.collect(),
            targets: targets.to_vec(),
        };
        let options = Options {
            tol: self.options.tol,
            max_iterations: self.options.max_iterations.unwrap_or(DEFAULT_ITERATIONS),
        };
        let all: Vec<usize> = (0..self.segments.len()).collect();
        let view = packed.rows.view(&all, context);
        let solutions = least_squares::solve(&view, &problem, &options, context)?;
        drop(view);
        let outcomes = solutions.iter().map(|solution| solution.outcome);
        let outcome = outcomes.reduce(Outcome::join).ok_or(Error::Empty { what: "class" })?;
        let expansions: Vec<Expansion> = solutions
            .into_iter()
            .enumerate()
            .map(|(f, solution)| {
                let (coefficients, offset) = (solution.beta, -solution.bias);
                let expansion = Expansion { segments: all.clone(), coefficients, offset };
                report_solved(context, f, &expansion, |_| f64::INFINITY, solution.outcome, None);
                expansion
            })
            .collect();
        let parameters = vec![("c".into(), self.c.into()), ("tol".into(), self.options.tol.into())];
        let (model, support) =
            packed.assemble(self.kind, self.kernel, input, &expansions, outcome, parameters)?;
        Ok((definiteness::noted(model, negative), support))
    }
}
