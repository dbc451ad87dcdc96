//! One-class SVM and SVDD: where the rows of one distribution lie.
//!
//! The one-class SVM (Schölkopf et al., 2001) separates the rows from the origin:
//! `min ½ αᵀKα` with 0 ≤ αᵢ ≤ 1, Σα = νn; ν bounds the share of rows left outside. SVDD (Tax and
//! Duin, 2004) encloses them in the smallest ball: `max Σ αᵢKᵢᵢ − αᵀKα` with 0 ≤ αᵢ ≤ 1/(νn),
//! Σα = 1. With a kernel of constant diagonal the two agree.

use super::classification::check_nu;
use super::definiteness;
use super::fit::{FitInput, KernelMachine, kernel_fields};
use super::local_duals::{Form, LocalDuals, table as local_table};
use super::model::{Ball, Body, MachineKind, Model};
use super::parameters::SolverOptions;
use super::training::{Expansion, TrainingRows, fill_up, report_solved, with_precision};
use super::warm_start::UsableStart;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::numeric::simd::Real;
use crate::solver::smo;

/// A machine of this module: what it is, and its kind.
macro_rules! machine {
    ($(#[$doc:meta])+ $name:ident) => {
        $(#[$doc])+
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            /// Upper bound on the share of rows outside, lower bound on the share of support vectors.
            pub nu: f64,
            /// The kernel.
            pub kernel: Kernel,
            /// Options of the solver.
            pub options: SolverOptions,
        }

        impl Default for $name {
            fn default() -> Self {
                let (kernel, options) = (Kernel::Gaussian { gamma: 1.0 }, SolverOptions::default());
                Self { nu: 0.5, kernel, options }
            }
        }

        impl KernelMachine for $name {
            fn learn(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
                let (kind, nu, kernel) = (MachineKind::$name, self.nu, &self.kernel);
                let (options, earlier) = (&self.options, input.usable_start());
                Describer { kind, nu, kernel, options, earlier }.fit(&input, context)
            }

            kernel_fields!();

            // A ball's distances need K(x, x), which a table of values against training rows lacks.
            fn shares_kernel(&self) -> bool {
                MachineKind::$name == MachineKind::OneClass
            }

            fn duals(&self, input: &FitInput<'_>) -> Option<Result<LocalDuals>> {
                (MachineKind::$name == MachineKind::OneClass)
                    .then(|| local(self.nu, &self.kernel, &self.options, input))
            }
        }
    };
}

machine! {
    /// The one-class SVM; predicts 1 inside and −1 outside.
    OneClass
}

machine! {
    /// Support vector data description; predicts 1 inside the ball and −1 outside.
    ///
    /// Its decision value is the squared radius minus the squared distance to the centre.
    Svdd
}

/// The problem of a [`OneClass`] for rows at several places.
fn local(
    nu: f64,
    kernel: &Kernel,
    options: &SolverOptions,
    input: &FitInput<'_>,
) -> Result<LocalDuals> {
    check_nu(nu)?;
    kernel.validate()?;
    options.validate()?;
    input.validate()?;
    let used: Vec<f64> = input.rows().map(|row| input.weight(row)).collect();
    let mut weights = vec![0.0; input.data().rows()];
    input.rows().zip(&used).for_each(|(row, weight)| weights[row] = *weight);
    let labels = vec![0.0; weights.len()];
    let total = match input.census() {
        Some(census) => positive_sum(&[census.weight()])?,
        None => positive_sum(&used)?,
    };
    Ok(LocalDuals {
        kind: MachineKind::OneClass,
        kernel: kernel.clone(),
        options: *options,
        form: Form::Sum { sum: nu * total },
        parameters: vec![("nu".into(), nu.into()), ("tol".into(), options.tol.into())],
        table: local_table(input.data(), kernel, labels, weights)?,
        all_rows: input.all_rows(),
        scaler: None,
    })
}

impl OneClass {
    /// The quadratic program that this machine solves, for others to solve.
    pub(in crate::machine) fn dual_problem(&self, input: &FitInput<'_>) -> Result<smo::Problem> {
        check_nu(self.nu)?;
        let upper: Vec<f64> = input.rows().map(|row| input.weight(row)).collect();
        let sum = self.nu * positive_sum(&upper)?;
        Ok(sum_problem(vec![0.0; upper.len()], upper, sum))
    }
}

/// Σ weights, which has to be positive.
fn positive_sum(weights: &[f64]) -> Result<f64> {
    let total = weights.iter().sum::<f64>();
    if total > 0.0 { Ok(total) } else { Err(Error::parameter("weights", "a positive sum", total)) }
}

/// f = Kβ + p with 0 ≤ β ≤ u, Σβ = `sum`.
pub(in crate::machine) fn sum_problem(linear: Vec<f64>, upper: Vec<f64>, sum: f64) -> smo::Problem {
    smo::Problem {
        linear,
        lower: vec![0.0; upper.len()],
        start: fill_up(upper.iter().copied(), sum),
        upper,
        ..smo::Problem::default()
    }
}

struct Describer<'a> {
    kind: MachineKind,
    nu: f64,
    kernel: &'a Kernel,
    options: &'a SolverOptions,
    earlier: UsableStart<'a>,
}

impl Describer<'_> {
    fn fit(&self, part: &FitInput<'_>, context: &Context) -> Result<Model> {
        check_nu(self.nu)?;
        self.kernel.validate()?;
        self.options.validate()?;
        part.validate()?;
        with_precision!(self.options.precision, context, T => self.fit_in::<T>(part, context))
    }

    fn fit_in<T: Real>(&self, part: &FitInput<'_>, context: &Context) -> Result<Model> {
        let weights: Vec<f64> = part.rows().map(|row| part.weight(row)).collect();
        let n = weights.len();
        let total = positive_sum(&weights)?;
        let packed = TrainingRows::<T>::whole(self.kernel, part, context)?;
        let negative = packed.warn_of_indefinite(self.kernel, context)?;
        let is_ball = self.kind == MachineKind::Svdd;
        let (linear, upper, sum) = if is_ball {
            let linear = packed.diagonal().iter().map(|d| -0.5 * d).collect();
            (linear, weights.iter().map(|w| w / (self.nu * total)).collect(), 1.0)
        } else {
            (vec![0.0; n], weights, self.nu * total)
        };
        let mut problem = sum_problem(linear, upper, sum);
        self.earlier.apply(0, part.rows(), &mut problem);
        packed.start_on_backend(&[0], &mut problem, self.options.tol, context);
        let view = packed.rows.view(&[0], context);
        let options = self.options.for_problem(n);
        let solution = smo::solve(&view, &problem, &options, context);
        let scale = if is_ball { 2.0 } else { 1.0 };
        let expansion = Expansion {
            segments: vec![0],
            coefficients: solution.beta.iter().map(|b| scale * b).collect(),
            offset: scale * solution.multipliers[0],
        };
        let largest = |i: usize| scale * problem.upper[i];
        report_solved(context, 0, &expansion, largest, solution.outcome, None);
        let parameters =
            vec![("nu".into(), self.nu.into()), ("tol".into(), self.options.tol.into())];
        let (kind, outcome) = (self.kind, solution.outcome);
        let (model, _) =
            packed.assemble(kind, self.kernel, part, &[expansion], outcome, parameters)?;
        let body = match model.body {
            Body::KernelExpansion(expansion) if is_ball => Ball(expansion).into(),
            body => body,
        };
        Ok(definiteness::noted(Model { body, ..model }, negative))
    }
}
