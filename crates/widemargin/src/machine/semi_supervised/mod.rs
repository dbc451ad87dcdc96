//! Classification of rows of which only some have labels: support vector machines that also lower the loss of the
//! others, whatever their class (Joachims 1999; Sindhwani and Keerthi 2006).
//!
//! ```text
//! minimise over w, b and the missing labels
//!   ½‖w‖² + ½b² + C Σ_labelled max(0, 1 − yᵢfᵢ)² + C (V L / U) Σ_unlabelled max(0, 1 − yᵢfᵢ)²,   f = ⟨w, φ(x)⟩ + sb
//! ```
//!
//! over L labelled and U unlabelled rows, of which every class gets a given share; V is the weight of all unlabelled
//! rows beside that of all labelled ones, and s the root mean squared distance of the rows from their mean. Several
//! classes have a function each, and one set of labels for all of them. The local optimum comes from deterministic
//! annealing or label switching ([`semi_supervised`](crate::solver::semi_supervised)); the optimum of the labelled rows
//! alone is the proven lower bound. The [`relaxation`] has hinge losses and a lower bound of its own.

mod landmarks;
mod penalty;
mod relaxation;
mod shares;

use std::time::Instant;

use self::landmarks::Landmarks;
use super::fit::{FitInput, Machine};
use super::label_split::LabelSplit;
use super::linear::{FeatureOrder, RowTask, linear_model, on_occurring_columns, with_rows};
use super::model::{
    ClassTable, DecisionFunction, KernelExpansion, MachineKind, Model, Part, Scheme, Training,
};
use super::names::{defaults, names};
use super::parameters::Precision;
use super::specification::Value;
use super::training::support_table;
use crate::context::{Context, Event};
use crate::data::{ClassOrder, Dataset, Label, Matrix, check_two_classes, memory};
use crate::error::{Error, Result};
use crate::kernel::{Gram, Kernel};
use crate::outcome::Outcome;
use crate::solver::linear::rows::LinearRows;
use crate::solver::semi_supervised::{Descent, Found, Groups, Schedule};

/// How the missing labels are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SemiSupervisedMethod {
    /// Annealing.
    #[default]
    Auto,
    /// Deterministic annealing: probabilities that become certain.
    Annealing,
    /// Label switching, of all pairs at once, while the cost of unlabelled rows grows.
    Switching,
    /// The semidefinite relaxation of two classes with hinge losses, rounded and improved; some hundred rows.
    Relaxation,
}

names!(SemiSupervisedMethod, "labelling", Auto: "auto", Annealing: "annealing",
       Switching: "switching", Relaxation: "relaxation");

/// The share of every class among the rows without labels.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum ClassShares {
    /// Estimated from the labelled rows and the predictions of the supervised machine.
    #[default]
    Auto,
    /// As among the labelled rows.
    Labelled,
    /// Given: one number for every class in their order, or for two classes that of the second.
    Given(Vec<f64>),
}

/// A support vector machine for rows of which only some have labels.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Label, Labels, Matrix};
/// use widemargin::machine::{Machine, SemiSupervisedSvc};
/// use widemargin::Context;
///
/// // Two groups of five rows, a label in each.
/// let rows = vec![0.0, 0.1, 0.2, 0.3, 0.4, 2.0, 2.1, 2.2, 2.3, 2.4];
/// let labels = vec![-1, -1, -1, -1, 0, 1, -1, -1, -1, -1];
/// let data = Dataset::new(Matrix::DenseF64(Dense::new(10, 1, rows)?), Labels::Int(labels))?;
/// let machine = SemiSupervisedSvc { unlabelled: Some(Label::Int(-1)), ..Default::default() };
/// let context = Context::new();
/// let model = machine.fit(&data, &context)?;
/// let found = model.predictor(&context)?.predict(data.features())?;
/// assert_eq!(found, Labels::Int(vec![0, 0, 0, 0, 0, 1, 1, 1, 1, 1]));
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SemiSupervisedSvc {
    /// Price C of the loss of a labelled row; chosen by leave-one-out predictions of them where there is none.
    pub c: Option<f64>,
    /// Weight V of all unlabelled rows beside that of all labelled ones.
    pub unlabelled_weight: f64,
    /// The shares of the classes among the rows without labels.
    pub shares: ClassShares,
    /// The kernel; the linear one learns weights of the features.
    pub kernel: Kernel,
    /// Rows at most that stand for the kernel's feature space; exact where there are no more.
    pub landmarks: usize,
    /// How the missing labels are found.
    pub method: SemiSupervisedMethod,
    /// The label of rows without one.
    pub unlabelled: Option<Label>,
    /// Which class comes first.
    pub class_order: ClassOrder,
    /// Norm of the gradient by the weights, relative to that at 0, that ends the last training; of the relaxation
    /// the relative gap.
    pub tol: f64,
}

defaults!(SemiSupervisedSvc {
    c: None,
    unlabelled_weight: 1.0,
    shares: ClassShares::Auto,
    kernel: Kernel::Linear,
    landmarks: 500,
    method: SemiSupervisedMethod::Auto,
    unlabelled: None,
    class_order: ClassOrder::Sorted,
    tol: 1e-3,
});

impl Machine for SemiSupervisedSvc {
    fn fit_with(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        let learn = |data: &Dataset, _: Option<&Model>| Ok(vec![self.train(data, context)?]);
        let fit = || {
            input.fit_selected(Some(&self.kernel), |data| match self.kernel {
                Kernel::Linear => {
                    on_occurring_columns(data, None, learn)?.pop().ok_or(Error::Interrupted)
                }
                _ => self.train(data, context),
            })
        };
        context.install(fit)
    }

    fn kernel(&self) -> Option<&Kernel> {
        Some(&self.kernel)
    }

    fn unlabelled(&self) -> Option<&Label> {
        self.unlabelled.as_ref()
    }
}

/// The classes of the labelled rows.
struct LabelledRows {
    names: Vec<Label>,
    groups: Vec<Option<u32>>,
}

impl SemiSupervisedSvc {
    fn train(&self, data: &Dataset, context: &Context) -> Result<Model> {
        let started = Instant::now();
        self.check(data)?;
        let known = self.known(data, context)?;
        let given = self.given_shares(&known)?;
        let landmarks = match self.kernel {
            Kernel::Linear => None,
            _ => {
                let labelled: Vec<usize> =
                    (0..data.rows()).filter(|&i| known.groups[i].is_some()).collect();
                let (kernel, features) = (&self.kernel, data.features());
                Some(Landmarks::new(kernel, features, &labelled, self.landmarks, context)?)
            }
        };
        let features = landmarks.as_ref().map_or(data.features(), |(_, table)| table);
        let scale = squared_deviation(features);
        if !scale.is_finite() {
            let expected = "features whose squares are finite (scale them)";
            return Err(Error::parameter("data", expected, format!("a variance of {scale}")));
        }
        if scale <= 0.0 {
            let found = "the same features in all rows";
            return Err(Error::parameter("data", "rows that differ", found));
        }
        let functions = if known.names.len() == 2 { 1 } else { known.names.len() };
        let task = Fit { machine: self, data, known: &known, given, scale, context };
        let (set, bias) = (context.instruction_set(), Some(scale.sqrt()));
        let fitted = with_rows(features, bias, Precision::F32, set, functions, task);
        let Outcome { primal, dual, .. } = fitted.found.outcome;
        check_finite(primal, dual)?;
        if self.method == SemiSupervisedMethod::Relaxation {
            return self.relaxed(data, known, fitted, scale, started, context);
        }
        let landmarks = landmarks.map(|(landmarks, _)| landmarks);
        self.model(data, known, landmarks, fitted, scale.sqrt(), started)
    }

    fn check(&self, data: &Dataset) -> Result<()> {
        self.c.map_or(Ok(()), |c| Error::check_positive("c", c))?;
        Error::check_positive("unlabelled-weight", self.unlabelled_weight)?;
        Error::check_positive("tol", self.tol)?;
        if self.landmarks == 0 {
            return Err(Error::parameter("landmarks", "at least 1", self.landmarks));
        }
        self.kernel.validate()?;
        data.features().validate()?;
        let n = data.rows() as u128;
        match self.method {
            // The kernel matrix, its products and a factor.
            SemiSupervisedMethod::Relaxation => {
                memory::check(|| format!("the relaxation of {n} rows"), 8 * 5 * n * n)
            }
            _ => Ok(()),
        }
    }

    /// Which rows have labels, and of which class.
    fn known(&self, data: &Dataset, context: &Context) -> Result<LabelledRows> {
        if self.unlabelled.is_none() {
            return Err(Error::parameter("unlabelled", "the label of rows without one", "none"));
        }
        let input = FitInput::new(data);
        let split = LabelSplit::new(self.unlabelled.as_ref(), input)?;
        if split.unlabelled.is_empty() {
            let message = "no row is without a label: the machine learns from labelled rows alone";
            context.report(&Event::Warning { message: message.into() });
        }
        let labelled = split.labelled(input)?;
        let classes = labelled.labels().classes(self.class_order)?;
        check_two_classes(&classes.names)?;
        if self.method == SemiSupervisedMethod::Relaxation && classes.count() > 2 {
            let found = format!("{} classes with labelling relaxation", classes.count());
            return Err(Error::labels("two classes", found));
        }
        let mut groups = vec![None; data.rows()];
        let mut weights = vec![0.0; classes.count()];
        for (row, &code) in labelled.rows().zip(&classes.codes) {
            groups[row] = Some(code);
            weights[code as usize] += data.weight(row);
        }
        if let Some(class) = weights.iter().position(|weight| *weight <= 0.0) {
            let found = format!("none in class '{}'", classes.names[class]);
            return Err(Error::labels("a row of positive weight in every class", found));
        }
        if self.method == SemiSupervisedMethod::Relaxation
            && let Some(row) = (0..data.rows()).find(|&row| data.weight(row) <= 0.0)
        {
            let expected = "weights above 0 with labelling relaxation";
            let found = format!("{} of row {}", data.weight(row), row + 1);
            return Err(Error::parameter("weights", expected, found));
        }
        let mut unlabelled = split.unlabelled.iter().map(|&row| data.weight(row));
        if unlabelled.len() > 0 && unlabelled.all(|weight| weight <= 0.0) {
            let expected = "a positive weight of a row without a label";
            return Err(Error::parameter("weights", expected, 0.0));
        }
        Ok(LabelledRows { names: classes.names, groups })
    }

    /// The shares that were given, one for every class.
    fn given_shares(&self, known: &LabelledRows) -> Result<Option<Vec<f64>>> {
        let ClassShares::Given(shares) = &self.shares else { return Ok(None) };
        let classes = known.names.len();
        let all = match shares[..] {
            [second] if classes == 2 => vec![1.0 - second, second],
            _ => shares.clone(),
        };
        if all.len() != classes {
            let expected = format!("a number for each of {classes} classes");
            return Err(Error::parameter("share", expected, format!("{} numbers", all.len())));
        }
        if let Some(wrong) = all.iter().find(|share| !(**share > 0.0 && **share < 1.0)) {
            return Err(Error::parameter("share", "numbers above 0 and below 1", wrong));
        }
        let total: f64 = all.iter().sum();
        if (total - 1.0).abs() > 1e-6 {
            return Err(Error::parameter("share", "numbers that add up to 1", total));
        }
        Ok(Some(all))
    }

    fn model(
        &self,
        data: &Dataset,
        known: LabelledRows,
        landmarks: Option<Landmarks>,
        fitted: Fitted,
        bias: f64,
        started: Instant,
    ) -> Result<Model> {
        let Fitted { found: Found { weights, groups, outcome }, c, shares, .. } = fitted;
        let kind = MachineKind::SemiSupervised;
        let constant = |weights: &Vec<f64>| bias * weights[weights.len() - 1];
        let constants: Vec<f64> = weights.iter().map(constant).collect();
        let mut model = match landmarks {
            None => {
                let width = data.columns();
                let own = weights.iter().flat_map(|w| w[..width].iter().copied()).collect();
                linear_model(kind, width, own, &constants, Some(known.names))?
            }
            Some(landmarks) => {
                let body = self.expansion(data, &landmarks, &groups, &weights, &constants);
                let classes = Some(class_table(known.names, &body, &groups));
                Model { classes, ..Model::new(kind, body) }
            }
        };
        model.feature_names = data.feature_names().map(<[String]>::to_vec);
        let unlabelled = known.groups.iter().filter(|group| group.is_none()).count();
        let parameters = self.record(c, shares, unlabelled);
        model.training = Some(Training::new(outcome, data.rows(), started, parameters));
        Ok(model)
    }

    /// The relaxation of two classes, from the labels that were found without it.
    fn relaxed(
        &self,
        data: &Dataset,
        known: LabelledRows,
        fitted: Fitted,
        scale: f64,
        started: Instant,
        context: &Context,
    ) -> Result<Model> {
        let Fitted { found, c, shares, costs } = fitted;
        let mut gram = Gram::of(&self.kernel, data.features(), context)?.values().to_vec();
        gram.iter_mut().for_each(|value| *value += scale);
        let side = |group: u32| if group == 0 { 1 } else { -1 };
        let start: Vec<i8> = found.groups.iter().map(|&group| side(group)).collect();
        let sides = known.groups.iter().map(|group| group.map_or(0, side)).collect();
        let unknown = known.groups.iter().filter(|group| group.is_none()).count();
        let positive = found.groups.iter().zip(&known.groups);
        let positive = positive.filter(|(found, known)| known.is_none() && **found == 0).count();
        let rows = relaxation::Rows { gram, known: sides, costs, positive };
        let solved = rows.solve(self.tol, start, context);
        let groups: Vec<u32> = solved.labels.iter().map(|&label| u32::from(label < 0)).collect();
        let used: Vec<usize> =
            (0..data.rows()).filter(|&i| solved.coefficients[i] != 0.0).collect();
        let constant = scale * solved.coefficients.iter().sum::<f64>();
        let kind = MachineKind::SemiSupervised;
        let mut model = match self.kernel {
            Kernel::Linear => {
                let mut weights = vec![0.0; data.columns()];
                for &i in &used {
                    let own = solved.coefficients[i];
                    data.features().for_each_nonzero(i, |j, value| weights[j] += own * value);
                }
                linear_model(kind, data.columns(), weights, &[constant], Some(known.names))?
            }
            _ => {
                let mut support_rows = used;
                support_rows.sort_by_key(|&row| (groups[row], row));
                let coefficients = support_rows.iter().map(|&i| solved.coefficients[i]).collect();
                let parts = vec![Part { support: 0..support_rows.len(), coefficients }];
                let body = KernelExpansion {
                    kernel: self.kernel.clone(),
                    precision: Precision::F64,
                    support: support_table(&self.kernel, data.features(), &support_rows),
                    functions: vec![DecisionFunction { parts, offset: -constant }],
                    support_rows,
                };
                let classes = Some(class_table(known.names, &body, &groups));
                Model { classes, ..Model::new(kind, body) }
            }
        };
        model.feature_names = data.feature_names().map(<[String]>::to_vec);
        let (primal, dual) = (solved.objective, solved.relaxation.bound.min(solved.objective));
        if primal.is_nan() {
            check_finite(primal, dual)?;
        }
        let outcome = Outcome {
            status: solved.status,
            primal,
            dual,
            violation: ((primal - dual) / dual.abs().max(f64::MIN_POSITIVE)).min(f64::MAX),
            iterations: solved.relaxation.products,
            blocks: solved.relaxation.rounds,
            kernel_rows: data.rows() as u64,
        };
        let mut parameters = self.record(c, shares, unknown);
        if solved.relaxation.value.is_finite() {
            parameters.push(("relaxation", solved.relaxation.value.into()));
        }
        model.training = Some(Training::new(outcome, data.rows(), started, parameters));
        Ok(model)
    }

    /// What the training record keeps.
    fn record(&self, c: f64, shares: Vec<f64>, unlabelled: usize) -> Vec<(&'static str, Value)> {
        vec![
            ("c", c.into()),
            ("unlabelled-weight", self.unlabelled_weight.into()),
            ("labelling", self.method.to_string().into()),
            ("shares", Value::from(shares)),
            ("unlabelled-rows", unlabelled.into()),
            ("tol", self.tol.into()),
        ]
    }

    /// The functions as sums of kernel values, landmarks in the order of their classes.
    fn expansion(
        &self,
        data: &Dataset,
        landmarks: &Landmarks,
        groups: &[u32],
        weights: &[Vec<f64>],
        constants: &[f64],
    ) -> KernelExpansion {
        let mut order: Vec<usize> = (0..landmarks.rows.len()).collect();
        order.sort_by_key(|&at| (groups[landmarks.rows[at]], landmarks.rows[at]));
        let support_rows: Vec<usize> = order.iter().map(|&at| landmarks.rows[at]).collect();
        let function = |(weights, constant): (&Vec<f64>, &f64)| {
            let all = landmarks.coefficients(weights);
            let coefficients = order.iter().map(|&at| all[at]).collect();
            let parts = vec![Part { support: 0..order.len(), coefficients }];
            DecisionFunction { parts, offset: -constant }
        };
        KernelExpansion {
            kernel: self.kernel.clone(),
            precision: Precision::F32,
            support: support_table(&self.kernel, data.features(), &support_rows),
            support_rows,
            functions: weights.iter().zip(constants).map(function).collect(),
        }
    }
}

/// Refuses an objective or a bound that overflowed.
fn check_finite(primal: f64, dual: f64) -> Result<()> {
    if primal.is_finite() && dual.is_finite() {
        return Ok(());
    }
    let expected = "features and a C whose objective and gradient are finite (scale them)";
    let found = format!("an objective of {primal} and a bound of {dual}");
    Err(Error::parameter("scale", expected, found))
}

/// The classes of an expansion over rows of these groups.
fn class_table(names: Vec<Label>, body: &KernelExpansion, groups: &[u32]) -> ClassTable {
    let mut support = vec![0; names.len()];
    body.support_rows.iter().for_each(|&row| support[groups[row] as usize] += 1);
    let single = body.functions.len() == 1;
    let scheme = if single { Scheme::OneVsOne } else { Scheme::OneVsRest };
    ClassTable { names, scheme, support }
}

/// Σᵢ ‖xᵢ − mean‖² / n.
fn squared_deviation(features: &Matrix) -> f64 {
    let n = features.rows() as f64;
    let mut sums = vec![0.0; features.columns()];
    let mut squares = 0.0;
    for i in 0..features.rows() {
        features.for_each_nonzero(i, |j, value| {
            sums[j] += value;
            squares += value * value;
        });
    }
    squares / n - sums.iter().map(|sum| (sum / n).powi(2)).sum::<f64>()
}

/// A training over rows of any storage.
struct Fit<'a> {
    machine: &'a SemiSupervisedSvc,
    data: &'a Dataset,
    known: &'a LabelledRows,
    given: Option<Vec<f64>>,
    scale: f64,
    context: &'a Context,
}

/// What it leaves, weights in the order of the features.
struct Fitted {
    found: Found,
    c: f64,
    shares: Vec<f64>,
    costs: Vec<f64>,
}

impl RowTask for Fit<'_> {
    type Output = Fitted;

    fn run<R: LinearRows>(self, rows: &R, order: &FeatureOrder) -> Fitted {
        let Fit { machine, known, scale, context, .. } = self;
        let count = known.names.len();
        let c = machine
            .c
            .unwrap_or_else(|| penalty::choose(rows, &known.groups, count, scale, context));
        let costs = self.costs(c);
        let labelled = shares::of_labels(&known.groups, count);
        let groups = Groups { known: &known.groups, count, costs: &costs, shares: &labelled };
        let mut descent = Descent::new(rows, groups, machine.tol, context);
        let shares = match (&machine.shares, self.given.clone()) {
            (_, Some(given)) => given,
            (ClassShares::Labelled, _) => labelled.clone(),
            _ => self.estimated(&descent, &costs),
        };
        descent.set_shares(&shares);
        let mut found = descent.run(match machine.method {
            SemiSupervisedMethod::Switching => Schedule::Switching,
            _ => Schedule::Annealing,
        });
        found.weights.iter_mut().for_each(|weights| *weights = order.restored(weights).collect());
        Fitted { found, c, shares, costs }
    }
}

impl Fit<'_> {
    /// The shares that are not given: of two classes of few labelled rows by the margin.
    fn estimated<R: LinearRows>(&self, descent: &Descent<'_, R>, costs: &[f64]) -> Vec<f64> {
        let (known, count) = (&self.known.groups, self.known.names.len());
        let usual = shares::estimated(known, count, descent.values());
        let possible = if count == 2 { shares::possible(known) } else { Vec::new() };
        let cost = |group: Option<u32>| -> f64 {
            costs.iter().zip(known).filter(|(_, own)| **own == group).map(|(cost, _)| cost).sum()
        };
        let (first, unlabelled) = (cost(Some(0)), cost(None));
        let labelled = first + cost(Some(1));
        // The objective over that of constants; label switching is faster than annealing, and its objectives
        // are in the same order.
        let left = |share: f64| -> f64 {
            let pair = [share, 1.0 - share];
            let found = descent.with_shares(&pair).run(Schedule::Switching);
            let constant = shares::loss_of_constant(share, first, labelled, unlabelled);
            found.outcome.primal / (constant * constant)
        };
        let mut best: Option<(f64, f64)> = None;
        let try_share = |share: f64, best: &mut Option<(f64, f64)>| {
            if self.context.stop_request().is_none() {
                let found = (left(share), share);
                if best.is_none_or(|best| found.0 < best.0) {
                    *best = Some(found);
                }
            }
        };
        possible.iter().for_each(|&share| try_share(share, &mut best));
        if let [lowest, next, .., highest] = possible[..] {
            let mut step = next - lowest;
            for _ in 0..shares::REFINEMENTS {
                step *= 0.5;
                let Some((_, middle)) = best else { break };
                for share in [middle - step, middle + step] {
                    if (lowest..=highest).contains(&share) {
                        try_share(share, &mut best);
                    }
                }
            }
        }
        best.map_or(usual, |(_, share)| vec![share, 1.0 - share])
    }

    /// The cost of every row.
    fn costs(&self, c: f64) -> Vec<f64> {
        let total = |labelled: bool| -> f64 {
            let rows =
                (0..self.data.rows()).filter(|&i| self.known.groups[i].is_some() == labelled);
            rows.map(|row| self.data.weight(row)).sum()
        };
        let unlabelled = total(false).max(f64::MIN_POSITIVE);
        let share = self.machine.unlabelled_weight * total(true) / unlabelled;
        let cost = |i: usize| match self.known.groups[i] {
            Some(_) => c * self.data.weight(i),
            None => c * share * self.data.weight(i),
        };
        (0..self.data.rows()).map(cost).collect()
    }
}
