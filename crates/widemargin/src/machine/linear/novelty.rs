//! The linear one-class machine: a half-space ⟨w, x⟩ ≥ ρ that leaves at most a share ν of the rows
//! outside (Schölkopf et al., 2001; Chou, Lin and Lin, 2020).

use std::time::Instant;

use super::assemble::linear_model;
use super::parameters::{LinearOptions, LinearSolver, Penalty};
use super::rows::{FeatureOrder, RowTask, with_rows};
use super::solve::{Algorithm, LinearPlan, check_finite, check_memory};
use super::wide::on_occurring_columns;
use crate::context::Context;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::machine::Bias;
use crate::machine::classification::check_nu;
use crate::machine::fit::{FitInput, Machine};
use crate::machine::model::{MachineKind, Model, Training};
use crate::solver::linear::rows::LinearRows;
use crate::solver::linear::{HalfSpace, RowLoss, solve_one_class};

/// The linear one-class machine; predicts 1 inside and −1 outside.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearOneClass {
    /// Upper bound on the share of rows outside.
    pub nu: f64,
    /// Options of the solver.
    pub options: LinearOptions,
}

impl Default for LinearOneClass {
    fn default() -> Self {
        Self { nu: 0.5, options: LinearOptions::default() }
    }
}

impl Machine for LinearOneClass {
    fn fit_with(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        let learn = |data: &Dataset, _: Option<&Model>| Ok(vec![self.learn(data, context)?]);
        on_occurring_columns(&input.selected(), None, learn)?.pop().ok_or(Error::Interrupted)
    }
}

impl LinearOneClass {
    fn learn(&self, data: &Dataset, context: &Context) -> Result<Model> {
        check_nu(self.nu)?;
        self.options.validate()?;
        data.features().validate()?;
        check_memory(data.columns(), 1)?;
        let started = Instant::now();
        let upper = data.weights().map_or_else(|| vec![1.0; data.rows()], <[f64]>::to_vec);
        let total = self.nu * upper.iter().sum::<f64>();
        if total <= 0.0 {
            return Err(Error::Empty { what: "row of positive weight" });
        }
        let plan = LinearPlan {
            loss: RowLoss::Hinge,
            penalty: Penalty::L2,
            bias: Bias::None,
            solver: LinearSolver::Dual,
            options: self.options,
            functions: 1,
        };
        // LIBLINEAR's default tolerance for this machine.
        let tol = self.options.tol.unwrap_or_else(|| 0.1 * plan.tolerance(Algorithm::Dual));
        let options = plan.options(tol);
        let task = Fit { upper: &upper, total, options, context };
        let (set, precision) = (context.instruction_set(), self.options.precision);
        let half = context.install(|| with_rows(data.features(), None, precision, set, 1, task));
        let solution = half.solution;
        check_finite(&solution.outcome, &solution.weights, data.features())?;
        let kind = MachineKind::LinearOneClass;
        let mut model =
            linear_model(kind, data.columns(), solution.weights, &[-half.offset], None)?;
        model.feature_names = data.feature_names().map(<[String]>::to_vec);
        let parameters = [("nu", self.nu.into()), ("tol", tol.into())];
        model.training = Some(Training::new(solution.outcome, data.rows(), started, parameters));
        Ok(model)
    }
}

struct Fit<'a> {
    upper: &'a [f64],
    total: f64,
    options: crate::solver::linear::Options,
    context: &'a Context,
}

impl RowTask for Fit<'_> {
    type Output = HalfSpace;

    fn run<R: LinearRows>(self, rows: &R, order: &FeatureOrder) -> HalfSpace {
        let mut half = solve_one_class(rows, self.upper, self.total, &self.options, self.context);
        half.solution.weights = order.restored(&half.solution.weights).collect();
        half
    }
}
