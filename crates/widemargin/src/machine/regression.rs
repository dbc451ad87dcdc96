//! ε-SVR and ν-SVR.
//!
//! ε-SVR (Vapnik, 1995) solves `min ½‖w‖² + C Σ max(0, |yᵢ − f(xᵢ)| − ε)` (or the square of the
//! excess). ν-SVR (Schölkopf et al., 2000) finds ε itself so that at most a share ν of the rows lies
//! outside the tube. Both are quadratic programs over two copies of every row: α pulling the
//! function up (0 ≤ β ≤ C) and α* pulling it down (−C ≤ β ≤ 0).

use super::classification::check_nu;
use super::definiteness;
use super::fit::{FitInput, KernelMachine, kernel_fields};
use super::local_duals::{Form, LocalDuals, table as local_table};
use super::model::{MachineKind, Model};
use super::parameters::{Loss, SolverOptions};
use super::specification::Value;
use super::training::{
    Expansion, TrainingRows, equivalent_nu, fill_up, report_solved, with_precision,
};
use super::warm_start::UsableStart;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::machine::names::defaults;
use crate::numeric::simd::Real;
use crate::solver::smo;

/// Support vector regression with a tube of width ε.
#[derive(Clone, Debug, PartialEq)]
pub struct Svr {
    /// Penalty C of deviations beyond the tube.
    pub c: f64,
    /// Half width ε of the tube.
    pub epsilon: f64,
    /// How deviations beyond the tube are penalised.
    pub loss: Loss,
    /// The kernel.
    pub kernel: Kernel,
    /// Options of the solver.
    pub options: SolverOptions,
}

defaults!(Svr {
    c: 1.0,
    epsilon: 0.1,
    loss: Loss::Hinge,
    kernel: Kernel::Gaussian { gamma: 1.0 },
    options: SolverOptions::default(),
});

/// Support vector regression with ν, the share of rows outside the tube.
#[derive(Clone, Debug, PartialEq)]
pub struct NuSvr {
    /// Penalty C of deviations beyond the tube.
    pub c: f64,
    /// Upper bound on the share of rows outside the tube.
    pub nu: f64,
    /// The kernel.
    pub kernel: Kernel,
    /// Options of the solver.
    pub options: SolverOptions,
}

defaults!(NuSvr {
    c: 1.0,
    nu: 0.5,
    kernel: Kernel::Gaussian { gamma: 1.0 },
    options: SolverOptions::default(),
});

/// What the two machines share once their own parameters are checked.
struct Regressor<'a> {
    kind: MachineKind,
    kernel: &'a Kernel,
    options: &'a SolverOptions,
    c: f64,
    rule: Formulation,
    earlier: UsableStart<'a>,
    parameters: Vec<(String, Value)>,
}

#[derive(Clone, Copy)]
enum Formulation {
    Tube { epsilon: f64, loss: Loss },
    Share { nu: f64 },
}

impl Svr {
    /// The quadratic program that this machine solves, over two copies of every row, for others to
    /// solve.
    pub(in crate::machine) fn dual_problem(&self, input: &FitInput<'_>) -> Result<smo::Problem> {
        Error::check_not_negative("epsilon", self.epsilon)?;
        Error::check_positive("c", self.c)?;
        let bound: Vec<f64> = input.rows().map(|row| self.c * input.weight(row)).collect();
        Ok(tube_problem(&input.labels().values()?, &bound, self.epsilon, self.loss))
    }
}

impl KernelMachine for Svr {
    fn learn(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        Error::check_not_negative("epsilon", self.epsilon)?;
        Regressor {
            kind: MachineKind::EpsilonSvr,
            kernel: &self.kernel,
            options: &self.options,
            c: self.c,
            earlier: input.usable_start().of_penalty(self.c),
            rule: Formulation::Tube { epsilon: self.epsilon, loss: self.loss },
            parameters: vec![("epsilon".into(), self.epsilon.into())],
        }
        .fit(&input, context)
    }

    kernel_fields!();

    fn duals(&self, input: &FitInput<'_>) -> Option<Result<LocalDuals>> {
        Some(self.local(input))
    }
}

impl Svr {
    fn local(&self, input: &FitInput<'_>) -> Result<LocalDuals> {
        Error::check_not_negative("epsilon", self.epsilon)?;
        Error::check_positive("c", self.c)?;
        self.kernel.validate()?;
        self.options.validate()?;
        input.validate()?;
        let mut labels = vec![0.0; input.data().rows()];
        if !labels.is_empty() {
            input.rows().zip(input.labels().values()?).for_each(|(row, y)| labels[row] = y);
        }
        let weights = (0..labels.len()).map(|row| input.weight(row)).collect();
        let numbers = [("epsilon", self.epsilon), ("c", self.c), ("tol", self.options.tol)];
        Ok(LocalDuals {
            kind: MachineKind::EpsilonSvr,
            kernel: self.kernel.clone(),
            options: self.options,
            form: Form::Tube { c: self.c, epsilon: self.epsilon, loss: self.loss },
            parameters: numbers.map(|(name, value)| (name.to_owned(), value.into())).to_vec(),
            table: local_table(input.data(), &self.kernel, labels, weights)?,
            all_rows: input.all_rows(),
            scaler: None,
        })
    }
}

impl KernelMachine for NuSvr {
    fn learn(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        check_nu(self.nu)?;
        Regressor {
            kind: MachineKind::NuSvr,
            kernel: &self.kernel,
            options: &self.options,
            c: self.c,
            earlier: input.usable_start().of_penalty(self.c),
            rule: Formulation::Share { nu: self.nu },
            parameters: vec![("nu".into(), self.nu.into())],
        }
        .fit(&input, context)
    }

    kernel_fields!();
}

impl Regressor<'_> {
    fn fit(mut self, part: &FitInput<'_>, context: &Context) -> Result<Model> {
        Error::check_positive("c", self.c)?;
        self.kernel.validate()?;
        self.options.validate()?;
        part.validate()?;
        let targets = part.labels().values()?;
        self.parameters.push(("c".into(), self.c.into()));
        self.parameters.push(("tol".into(), self.options.tol.into()));
        with_precision!(self.options.precision, context, T => self.fit_in::<T>(part, &targets, context))
    }

    fn fit_in<T: Real>(
        &self,
        part: &FitInput<'_>,
        targets: &[f64],
        context: &Context,
    ) -> Result<Model> {
        let packed = TrainingRows::<T>::whole(self.kernel, part, context)?;
        let negative = packed.warn_of_indefinite(self.kernel, context)?;
        let n = targets.len();
        let bound: Vec<f64> = part.rows().map(|row| self.c * part.weight(row)).collect();
        let mut problem = match self.rule {
            Formulation::Tube { epsilon, loss } => tube_problem(targets, &bound, epsilon, loss),
            Formulation::Share { nu } => share_problem(targets, &bound, nu),
        };
        self.earlier.apply(0, part.rows().chain(part.rows()), &mut problem);
        packed.start_on_backend(&[0, 0], &mut problem, self.options.tol, context);
        let view = packed.rows.view(&[0, 0], context);
        let options = self.options.for_problem(2 * n);
        let solution = smo::solve(&view, &problem, &options, context);
        let offset =
            solution.multipliers.iter().sum::<f64>() / solution.multipliers.len().max(1) as f64;
        let coefficients = (0..n).map(|i| solution.beta[i] + solution.beta[n + i]).collect();
        let expansion = Expansion { segments: vec![0], coefficients, offset };
        let mut parameters = self.parameters.clone();
        let determined = match solution.multipliers[..] {
            [up, down] => {
                let epsilon = 0.5 * (down - up);
                parameters.push(("epsilon".into(), epsilon.into()));
                Some(("epsilon", epsilon))
            }
            _ => equivalent_nu(&expansion, &problem.upper[..n]),
        };
        let largest = |i: usize| problem.upper[i];
        report_solved(context, 0, &expansion, largest, solution.outcome, determined);
        let (kind, outcome) = (self.kind, solution.outcome);
        let (model, _) =
            packed.assemble(kind, self.kernel, part, &[expansion], outcome, parameters)?;
        Ok(definiteness::noted(model, negative))
    }
}

/// f = Kθ ± ε − y over both copies, Σβ = 0.
pub(in crate::machine) fn tube_problem(
    targets: &[f64],
    bound: &[f64],
    epsilon: f64,
    loss: Loss,
) -> smo::Problem {
    let n = targets.len();
    let (bound, ridge): (Vec<f64>, _) = match loss {
        Loss::Hinge => (bound.to_vec(), None),
        Loss::SquaredHinge => {
            let ridge: Vec<f64> = bound.iter().map(|b| 0.5 / b).collect();
            let bound = bound.iter().map(|&b| if b > 0.0 { f64::INFINITY } else { 0.0 }).collect();
            (bound, Some([ridge.clone(), ridge].concat()))
        }
    };
    let ridge = ridge.map(|r| r.into_iter().map(|v| if v.is_finite() { v } else { 0.0 }).collect());
    let up = targets.iter().map(|y| epsilon - y);
    let down = targets.iter().map(|y| -epsilon - y);
    smo::Problem {
        linear: up.chain(down).collect(),
        lower: vec![0.0; n].into_iter().chain(bound.iter().map(|b| -b)).collect(),
        upper: bound.iter().copied().chain(vec![0.0; n]).collect(),
        ridge,
        start: vec![0.0; 2 * n],
        ..smo::Problem::default()
    }
}

/// f = Kθ − y over both copies, ±ν ΣC / 2 as the sum of each.
fn share_problem(targets: &[f64], bound: &[f64], nu: f64) -> smo::Problem {
    let n = targets.len();
    let linear: Vec<f64> = targets.iter().map(|y| -y).collect();
    let start = fill_up(bound.iter().copied(), 0.5 * nu * bound.iter().sum::<f64>());
    smo::Problem {
        linear: [&linear[..], &linear].concat(),
        lower: vec![0.0; n].into_iter().chain(bound.iter().map(|b| -b)).collect(),
        upper: bound.iter().copied().chain(vec![0.0; n]).collect(),
        groups: Some([vec![0; n], vec![1; n]].concat()),
        start: start.iter().copied().chain(start.iter().map(|b| -b)).collect(),
        ..smo::Problem::default()
    }
}
