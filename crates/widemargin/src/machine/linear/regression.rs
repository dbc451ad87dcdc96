//! Linear regression with a tube: `min ½‖w‖² + Σ Cᵢ max(0, |⟨w, xᵢ⟩ + b − yᵢ| − ε)`, or the square of
//! the excess (Ho and Lin, 2012).

use std::time::Instant;

use super::assemble::{linear_model, start_weights};
use super::parameters::{Bias, LinearOptions, LinearSolver, Penalty};
use super::rows::{FeatureOrder, RowTask, with_rows};
use super::solve::{Algorithm, LinearPlan, Start, check_finite, check_memory};
use super::wide::on_occurring_columns;
use crate::context::{Context, Event, SolvedFunction};
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::machine::fit::{FitInput, Machine, WarmStart};
use crate::machine::model::{Linear, MachineKind, Model, Training};
use crate::machine::names::defaults;
use crate::solver::linear::rows::LinearRows;
use crate::solver::linear::{RowLoss, Solution};

/// A linear regressor.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearSvr {
    /// Price C of deviations beyond the tube.
    pub c: f64,
    /// Half width ε of the tube.
    pub epsilon: f64,
    /// Whether the excess is squared.
    pub squared: bool,
    /// The constant of the function.
    pub bias: Bias,
    /// Which algorithm.
    pub solver: LinearSolver,
    /// Options of the solver.
    pub options: LinearOptions,
}

defaults!(LinearSvr {
    c: 1.0,
    epsilon: 0.1,
    squared: false,
    bias: Bias::default(),
    solver: LinearSolver::default(),
    options: LinearOptions::default(),
});

impl LinearSvr {
    /// Trains for every (C, ε) of a list, each problem from the solution of the one before.
    pub(super) fn learn(
        &self,
        data: &Dataset,
        path: &[(f64, f64)],
        start: Option<&Model>,
        context: &Context,
    ) -> Result<Vec<Model>> {
        on_occurring_columns(data, start, |data, start| self.learn_all(data, path, start, context))
    }

    /// The same with weights of all columns.
    fn learn_all(
        &self,
        data: &Dataset,
        path: &[(f64, f64)],
        start: Option<&Model>,
        context: &Context,
    ) -> Result<Vec<Model>> {
        for &(c, epsilon) in path {
            Error::check_positive("c", c)?;
            Error::check_not_negative("epsilon", epsilon)?;
        }
        self.bias.validate()?;
        self.options.validate()?;
        data.features().validate()?;
        let targets = data.labels().values()?;
        check_memory(data.columns(), 1)?;
        let start = start
            .filter(|model| model.kind == MachineKind::LinearSvr)
            .and_then(Model::linear)
            .filter(|linear| linear.weights.columns() == data.columns());
        let task = Fit { svr: self, data, targets: &targets, path, start, context };
        let (set, precision) = (context.instruction_set(), self.options.precision);
        context.install(|| with_rows(data.features(), self.bias.feature(), precision, set, 1, task))
    }
}

impl Machine for LinearSvr {
    fn fit_with(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        let path = [(self.c, self.epsilon)];
        let data = input.selected();
        self.learn(&data, &path, None, context)?.pop().ok_or(Error::Interrupted)
    }

    fn warm_start(&self) -> Option<&dyn WarmStart> {
        Some(self)
    }
}

impl WarmStart for LinearSvr {
    fn fit_from(
        &self,
        input: FitInput<'_>,
        start: crate::machine::Start<'_>,
        context: &Context,
    ) -> Result<Model> {
        let path = [(self.c, self.epsilon)];
        let data = input.selected();
        self.learn(&data, &path, Some(start.model()), context)?.pop().ok_or(Error::Interrupted)
    }
}

struct Fit<'a> {
    svr: &'a LinearSvr,
    data: &'a Dataset,
    targets: &'a [f64],
    path: &'a [(f64, f64)],
    start: Option<&'a Linear>,
    context: &'a Context,
}

impl RowTask for Fit<'_> {
    type Output = Result<Vec<Model>>;

    fn run<R: LinearRows>(self, rows: &R, order: &FeatureOrder) -> Result<Vec<Model>> {
        let mut models = Vec::new();
        let mut last: Option<(f64, Solution)> = None;
        let feature = self.svr.bias.feature();
        let given = self.start.map(|start| order.arrange(&start_weights(start, 0, feature)));
        for &(c, epsilon) in self.path {
            let started = Instant::now();
            let plan = self.plan(epsilon);
            let width = self.data.columns();
            let algorithm = plan.algorithm(rows.rows(), width, rows.nonzeros())?;
            let costs: Vec<f64> = match self.data.weights() {
                Some(weights) => weights.iter().map(|w| c * w).collect(),
                None => vec![c; rows.rows()],
            };
            let scaled;
            let start = match (&last, &given) {
                (Some((_, last)), _) if algorithm == Algorithm::Newton => {
                    Start::Weights(&last.weights)
                }
                (Some((before, last)), _) => {
                    scaled = last.dual.iter().map(|b| c / before * b).collect::<Vec<f64>>();
                    Start::Dual(&scaled)
                }
                (None, Some(weights)) => Start::Weights(weights),
                (None, None) => Start::Nowhere,
            };
            let problem = plan.problem(self.targets, &costs);
            let solution = plan.solve(algorithm, rows, None, problem, start, self.context);
            let details = TrainingDetails {
                costs: &costs,
                c,
                epsilon,
                tol: plan.tolerance(algorithm),
                started,
            };
            models.push(self.model(&solution, order, details)?);
            last = Some((c, solution));
        }
        Ok(models)
    }
}

/// What the model of a regression records about its training.
struct TrainingDetails<'a> {
    costs: &'a [f64],
    c: f64,
    epsilon: f64,
    tol: f64,
    started: Instant,
}

impl Fit<'_> {
    fn plan(&self, epsilon: f64) -> LinearPlan {
        let LinearSvr { squared, bias, solver, options, .. } = *self.svr;
        let loss = if squared { RowLoss::SquaredTube(epsilon) } else { RowLoss::Tube(epsilon) };
        LinearPlan { loss, penalty: Penalty::L2, bias, solver, options, functions: 1 }
    }

    fn model(
        &self,
        solution: &Solution,
        order: &FeatureOrder,
        details: TrainingDetails<'_>,
    ) -> Result<Model> {
        let TrainingDetails { costs, c, epsilon, tol, started } = details;
        check_finite(&solution.outcome, &solution.weights, self.data.features())?;
        let width = self.data.columns();
        let constant = self.svr.bias.feature().map_or(0.0, |bias| bias * solution.weights[width]);
        let pairs = || solution.dual.iter().zip(costs).filter(|(b, _)| **b != 0.0);
        self.context.report(&Event::Solved(SolvedFunction {
            index: 0,
            outcome: solution.outcome,
            offset: -constant,
            support: pairs().count(),
            bounded: pairs().filter(|(b, c)| b.abs() >= **c).count(),
            determined: None,
        }));
        let weights = order.restored(&solution.weights).take(width).collect();
        let mut model = linear_model(MachineKind::LinearSvr, width, weights, &[constant], None)?;
        model.feature_names = self.data.feature_names().map(<[String]>::to_vec);
        let loss = if self.svr.squared { "squared-tube" } else { "tube" };
        let parameters = [
            ("c", c.into()),
            ("epsilon", epsilon.into()),
            ("loss", loss.into()),
            ("bias", self.svr.bias.into()),
            ("tol", tol.into()),
        ];
        let rows = self.data.rows();
        model.training = Some(Training::new(solution.outcome, rows, started, parameters));
        Ok(model)
    }
}
