//! Linear classification: hinge, squared hinge and logistic losses, ℓ2 and ℓ1 penalties, many classes
//! one-vs-rest or by Crammer and Singer's machine.
//!
//! `min P(w) + Σ Cᵢ ℓ(yᵢ(⟨w, xᵢ⟩ + b))` with P = ½‖w‖² or ‖w‖₁ for every class against the rest. Cᵢ is C
//! times the row's weight; rows of the class itself also bear the class's weight, as in LIBLINEAR.

use std::time::Instant;

use super::assemble::{ORDER, linear_model};
use super::parameters::{Bias, LinearLoss, LinearMulticlass, LinearOptions, LinearSolver, Penalty};
use super::rows::{FeatureOrder, MOST_SPINNING, RowTask, with_rows};
use super::solve::{Algorithm, LinearPlan, check_finite, check_memory};
use super::wide::on_occurring_columns;
use crate::context::Context;
use crate::data::{ClassOrder, Classes, Dataset, check_two_classes, pieces};
use crate::error::{Error, Result};
use crate::machine::fit::{FitInput, Machine, WarmStart};
use crate::machine::model::{Linear, MachineKind, Model, Training};
use crate::machine::names::defaults;
use crate::machine::parameters::ClassWeights;
use crate::machine::warm_start::Start;
use crate::solver::Outcome;
use crate::solver::linear::rows::LinearRows;
use crate::solver::linear::{
    Choices, Columns, RowLoss, Solution, needs_columns, solve_crammer_singer,
};

/// A linear classifier; with the logistic loss it is logistic regression and has probabilities.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::machine::{LinearSvc, Machine};
/// use widemargin::Context;
///
/// let rows = Dense::new(4, 1, vec![-2.0, -1.0, 1.0, 2.0])?;
/// let data = Dataset::new(Matrix::DenseF64(rows), Labels::Int(vec![0, 0, 1, 1]))?;
/// let context = Context::new();
/// let model = LinearSvc { c: 10.0, ..LinearSvc::default() }.fit(&data, &context)?;
/// let predicted = model.predictor(&context)?.predict(data.features())?;
/// assert_eq!(&predicted, data.labels());
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LinearSvc {
    /// Price C of the loss.
    pub c: f64,
    /// What a row costs.
    pub loss: LinearLoss,
    /// What weights cost.
    pub penalty: Penalty,
    /// How more than two classes are learned.
    pub multiclass: LinearMulticlass,
    /// The constant of the functions.
    pub bias: Bias,
    /// Which algorithm.
    pub solver: LinearSolver,
    /// Factors on C by class.
    pub class_weights: ClassWeights,
    /// Which class comes first.
    pub class_order: ClassOrder,
    /// Options of the solver.
    pub options: LinearOptions,
}

defaults!(LinearSvc {
    c: 1.0,
    loss: LinearLoss::default(),
    penalty: Penalty::default(),
    multiclass: LinearMulticlass::default(),
    bias: Bias::default(),
    solver: LinearSolver::default(),
    class_weights: ClassWeights::Uniform,
    class_order: ORDER,
    options: LinearOptions::default(),
});

impl LinearSvc {
    fn plan(&self, functions: usize) -> LinearPlan {
        let loss = match self.loss {
            LinearLoss::Hinge => RowLoss::Hinge,
            LinearLoss::SquaredHinge => RowLoss::SquaredHinge,
            LinearLoss::Logistic => RowLoss::Logistic,
        };
        let LinearSvc { penalty, bias, solver, options, .. } = *self;
        LinearPlan { loss, penalty, bias, solver, options, functions }
    }

    fn kind(&self) -> MachineKind {
        match (self.multiclass, self.loss) {
            (LinearMulticlass::OneVsRest, LinearLoss::Logistic) => MachineKind::Logistic,
            _ => MachineKind::LinearSvc,
        }
    }

    fn validate(&self, data: &Dataset) -> Result<Classes> {
        Error::check_positive("c", self.c)?;
        self.bias.validate()?;
        self.options.validate()?;
        let (features, classes) = pieces::join(
            data.rows(),
            || data.features().validate(),
            || data.labels().classes(self.class_order),
        );
        features?;
        if self.multiclass == LinearMulticlass::CrammerSinger && self.bias == Bias::Free {
            return Err(Error::parameter("bias", "none or a number with crammer-singer", "free"));
        }
        let classes = classes?;
        check_two_classes(&classes.names)?;
        let mut present = vec![data.weights().is_none(); classes.count()];
        for (&code, &weight) in classes.codes.iter().zip(data.weights().unwrap_or_default()) {
            present[code as usize] |= weight > 0.0;
        }
        match present.iter().position(|there| !there) {
            None => Ok(classes),
            Some(class) => Err(Error::labels(
                "a row of positive weight in every class",
                format!("none in class '{}'", classes.names[class]),
            )),
        }
    }

    /// Trains for every C of a list, each problem from the solution of the one before.
    pub(super) fn learn(
        &self,
        data: &Dataset,
        path: &[f64],
        start: Option<&Model>,
        context: &Context,
    ) -> Result<Vec<Model>> {
        context.install(|| {
            context.with_spinning_threads(MOST_SPINNING, || {
                on_occurring_columns(data, start, |data, start| {
                    self.learn_here(data, path, start, context)
                })
            })
        })
    }

    /// The same on the threads of the pool this is called from.
    fn learn_here(
        &self,
        data: &Dataset,
        path: &[f64],
        start: Option<&Model>,
        context: &Context,
    ) -> Result<Vec<Model>> {
        let classes = self.validate(data)?;
        for &c in path {
            Error::check_positive("c", c)?;
        }
        let factors = self.class_weights.resolve(&classes)?;
        let functions = match (self.multiclass, classes.count()) {
            (LinearMulticlass::OneVsRest, 2) => 1,
            (_, count) => count,
        };
        check_memory(data.columns(), functions)?;
        let same = |model: &&Model| {
            model.classes.as_ref().is_some_and(|table| table.names == classes.names)
        };
        let start = start.filter(same).and_then(Model::linear).filter(|linear| {
            linear.weights.columns() == data.columns() && linear.offsets.len() == functions
        });
        let task = Fit {
            svc: self,
            data,
            classes: &classes,
            factors: &factors,
            functions,
            path,
            start,
            context,
        };
        let (set, precision) = (context.instruction_set(), self.options.precision);
        let bias = self.bias.feature();
        with_rows(data.features(), bias, precision, set, functions, task)
    }
}

impl Machine for LinearSvc {
    fn fit_with(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        let data = input.selected();
        self.learn(&data, &[self.c], None, context)?.pop().ok_or(Error::Interrupted)
    }

    fn warm_start(&self) -> Option<&dyn WarmStart> {
        Some(self)
    }
}

impl WarmStart for LinearSvc {
    fn fit_from(&self, input: FitInput<'_>, start: Start<'_>, context: &Context) -> Result<Model> {
        let data = input.selected();
        self.learn(&data, &[self.c], Some(start.model()), context)?.pop().ok_or(Error::Interrupted)
    }
}

/// A training of a classifier.
pub(super) struct Fit<'a> {
    pub(super) svc: &'a LinearSvc,
    pub(super) data: &'a Dataset,
    pub(super) classes: &'a Classes,
    pub(super) factors: &'a [f64],
    /// How many functions the model has.
    pub(super) functions: usize,
    /// Every C.
    pub(super) path: &'a [f64],
    pub(super) start: Option<&'a Linear>,
    pub(super) context: &'a Context,
}

impl RowTask for Fit<'_> {
    type Output = Result<Vec<Model>>;

    fn run<R: LinearRows>(self, rows: &R, order: &FeatureOrder) -> Result<Vec<Model>> {
        let started = Instant::now();
        if self.svc.multiclass == LinearMulticlass::CrammerSinger {
            let one = |&c: &f64| self.crammer_singer(rows, order, c, started);
            return self.path.iter().map(one).collect();
        }
        let plan = self.svc.plan(self.functions);
        let width = self.data.columns();
        let algorithm = plan.algorithm(rows.rows(), width, rows.nonzeros())?;
        let columns =
            (algorithm == Algorithm::NewtonL1 && needs_columns(rows)).then(|| Columns::new(rows));
        let solved = self.one_vs_rest(rows, order, columns.as_ref(), &plan, algorithm)?;
        (0..self.path.len())
            .map(|at| {
                let solutions: Vec<&Solution> = solved.iter().flat_map(|of| &of[at]).collect();
                let tol = plan.tolerance(algorithm);
                self.model(&solutions, order, self.path[at], tol, started)
            })
            .collect()
    }
}

impl Fit<'_> {
    /// b, if there is one.
    pub(super) fn constant(&self, weights: &[f64]) -> Option<f64> {
        self.svc.bias.feature().map(|bias| bias * weights[self.data.columns()])
    }

    fn model(
        &self,
        solutions: &[&Solution],
        order: &FeatureOrder,
        c: f64,
        tol: f64,
        started: Instant,
    ) -> Result<Model> {
        let width = self.data.columns();
        let mut weights = vec![0.0; width * solutions.len()];
        let restore = |(own, solution): (&mut [f64], &&Solution)| {
            own.iter_mut().zip(order.restored(&solution.weights)).for_each(|(w, own)| *w = own);
        };
        self.context.for_each(weights.chunks_mut(width).zip(solutions), restore);
        let constants: Vec<f64> =
            solutions.iter().map(|s| self.constant(&s.weights).unwrap_or(0.0)).collect();
        let outcome = solutions.iter().map(|s| s.outcome).reduce(Outcome::join);
        self.finish(weights, &constants, outcome.ok_or(Error::Interrupted)?, c, tol, started)
    }

    fn crammer_singer<R: LinearRows>(
        &self,
        rows: &R,
        order: &FeatureOrder,
        c: f64,
        started: Instant,
    ) -> Result<Model> {
        let plan = self.svc.plan(self.functions);
        if self.svc.penalty == Penalty::L1 {
            return Err(Error::parameter("penalty", "l2 with crammer-singer", "l1"));
        }
        let codes = &self.classes.codes;
        let costs: Vec<f64> = (0..rows.rows())
            .map(|row| c * self.data.weight(row) * self.factors[codes[row] as usize])
            .collect();
        let choices = Choices { count: self.functions, right: codes, costs: &costs };
        let tol = plan.tolerance(Algorithm::Dual);
        let solution = solve_crammer_singer(rows, choices, &plan.options(tol), None, self.context);
        let (width, features) = (rows.width(), self.data.columns());
        let own = |f: usize| &solution.weights[f * width..(f + 1) * width];
        let mut weights = Vec::with_capacity(features * self.functions);
        (0..self.functions).for_each(|f| weights.extend(order.restored(own(f)).take(features)));
        let constants: Vec<f64> =
            (0..self.functions).map(|f| self.constant(own(f)).unwrap_or(0.0)).collect();
        self.finish(weights, &constants, solution.outcome, c, tol, started)
    }

    fn finish(
        &self,
        weights: Vec<f64>,
        constants: &[f64],
        outcome: Outcome,
        c: f64,
        tol: f64,
        started: Instant,
    ) -> Result<Model> {
        check_finite(&outcome, &weights, self.data.features())?;
        let names = Some(self.classes.names.clone());
        let width = self.data.columns();
        let mut model = linear_model(self.svc.kind(), width, weights, constants, names)?;
        model.feature_names = self.data.feature_names().map(<[String]>::to_vec);
        let mut parameters = vec![("c", c.into())];
        let multiclass = self.svc.multiclass;
        match multiclass {
            LinearMulticlass::CrammerSinger => {
                parameters.push(("multiclass", multiclass.to_string().into()));
            }
            LinearMulticlass::OneVsRest => {
                parameters.push(("loss", self.svc.loss.to_string().into()));
                parameters.push(("penalty", self.svc.penalty.to_string().into()));
            }
        }
        parameters.push(("bias", self.svc.bias.into()));
        parameters.push(("tol", tol.into()));
        model.training = Some(Training::new(outcome, self.data.rows(), started, parameters));
        Ok(model)
    }
}
