//! Machines that learn the weights of a sum of kernels together with their coefficients.
//!
//! Over K = Σ µᵢ Kᵢ n / tr Kᵢ with Σµ = 1 they minimise the optimum of the training problem itself
//! ([`kernel_weights`]): the Crammer–Singer problem and its relatives, C-SVC with one set of weights for all its
//! two-class problems, ε-SVR or the one-class SVM (Lanckriet et al. 2004; Lu 2005, chapters 2 and 3). The traces
//! are those over all rows given, unlabelled ones included, and for signed weights K has to be positive
//! semidefinite on them. The result is a model of the machine inside with the weighted sum as its kernel.
//!
//! At equal trace the optimum of signed weights is at most that of weights that are not negative, and that at
//! most the optimum of every single kernel. Nothing is promised about errors on new rows.

mod approximate;
mod candidates;
mod duals;
mod formulation;
mod heuristic;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;
use std::time::Instant;

use self::candidates::Candidates;
use self::duals::{KernelDuals, Solutions};
use self::formulation::Formulation;
use super::fit::{FitInput, Machine};
use super::label_split::LabelSplit;
use super::model::Model;
use super::specification::Value;
use super::training::{TrainingCost, in_precision};
use super::{MulticlassSvc, OneClass, Precision, SolverOptions, Svc, Svr};
use crate::context::{Context, Event};
use crate::data::Label;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, MapRule, Repair, catch_out_of_memory};
use crate::numeric::simd::Real;
use crate::outcome::{Outcome, Status};
use crate::solver::kernel_weights::{self, Options, WeightRule, Weights};

/// The machine whose training problem decides the weights; its own kernel is not used.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BaseMachine {
    /// C-SVC, the same weights for all its two-class problems.
    Svc(Svc),
    /// An all-in-one machine without offsets, such as that of Crammer and Singer.
    Multiclass(MulticlassSvc),
    /// ε-SVR.
    Svr(Svr),
    /// The one-class SVM.
    OneClass(OneClass),
}

impl BaseMachine {
    fn options(&self) -> &SolverOptions {
        match self {
            Self::Svc(machine) => &machine.options,
            Self::Multiclass(machine) => &machine.options,
            Self::Svr(machine) => &machine.options,
            Self::OneClass(machine) => &machine.options,
        }
    }
}

/// Learns the weights of several kernels.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::kernel::Kernel;
/// use widemargin::machine::{BaseMachine, Machine, MultipleKernel, Svc};
/// use widemargin::Context;
///
/// let rows = Dense::new(6, 1, vec![-3.0, -2.5, -0.5, 0.5, 2.5, 3.0])?;
/// let data = Dataset::new(Matrix::DenseF64(rows), Labels::Int(vec![1, 1, 0, 0, 1, 1]))?;
/// let machine = MultipleKernel {
///     kernels: vec![Kernel::Linear, Kernel::Gaussian { gamma: 0.5 }],
///     ..MultipleKernel::new(BaseMachine::Svc(Svc::default()))
/// };
/// let context = Context::new();
/// let model = machine.fit(&data, &context)?;
/// assert_eq!(&model.predictor(&context)?.predict(data.features())?, data.labels());
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MultipleKernel {
    /// The machine. Its tolerance is the certified gap: objective minus lower bound, as a share of the
    /// objective.
    pub machine: BaseMachine,
    /// The candidates.
    pub kernels: Vec<Kernel>,
    /// Which weights are admitted.
    pub weights: WeightRule,
    /// Share of the mean diagonal of every candidate that is added to its diagonal while training; needed
    /// for signed weights of candidates that are singular on the rows.
    pub jitter: f64,
    /// What is done about candidates that are not positive semidefinite on the rows given, which are always
    /// warned of: [`Repair::Shift`] takes the smallest eigenvalue from the diagonal, [`Repair::Refuse`] is an
    /// error.
    pub repair: Option<Repair>,
    /// The label of rows without one (transduction): K has to be positive semidefinite on them too, and they
    /// count for the traces. Their predictions are those of the model.
    pub unlabelled: Option<Label>,
    /// Features that take the place of every kernel, for more rows than tables of kernel values can have: the
    /// model is linear in them, and its bounds are those of the approximated problem. Weights of any sign and
    /// those of rules, jitter and repair need kernel values; the machine is C-SVC or ε-SVR with the hinge loss,
    /// that of Crammer and Singer, or the one-class SVM.
    pub approximate: Option<MapRule>,
}

/// Jitter of signed weights by default.
pub(crate) const SIGNED_JITTER: f64 = 1e-6;

impl MultipleKernel {
    /// No kernels yet, non-negative weights.
    pub fn new(machine: BaseMachine) -> Self {
        let (kernels, weights) = (Vec::new(), WeightRule::default());
        let (jitter, repair, unlabelled, approximate) = (0.0, None, None, None);
        Self { machine, kernels, weights, jitter, repair, unlabelled, approximate }
    }

    fn check(&self) -> Result<()> {
        if self.kernels.is_empty() {
            return Err(Error::parameter("kernels", "at least one kernel", "none"));
        }
        if !(self.jitter.is_finite() && self.jitter >= 0.0) {
            return Err(Error::parameter("jitter", "a finite number of at least 0", self.jitter));
        }
        if let Some(repair @ (Repair::Clip | Repair::Flip)) = self.repair {
            // Other values of the kernel would be those of no function, which new rows need.
            return Err(Error::parameter("repair", "shift or refuse", repair));
        }
        self.kernels.iter().try_for_each(Kernel::validate)?;
        if self.approximate.is_some() {
            self.check_approximation()?;
        }
        self.machine.options().validate()
    }

    /// Signed weights are decided by eigenvalues, which need double precision.
    fn precision(&self) -> Precision {
        match self.weights {
            WeightRule::Signed => Precision::F64,
            _ => self.machine.options().precision,
        }
    }

    /// Trains from solutions of the same problems in another precision; returns its own as well.
    fn fit_in<T: Real>(
        &self,
        input: FitInput<'_>,
        unlabelled: &[usize],
        formulation: &Formulation,
        start: Option<Solutions>,
        context: &Context,
    ) -> Result<(Model, Solutions)> {
        let started = Instant::now();
        let candidates = Candidates::<T>::new(self, input, unlabelled, formulation, context)?;
        let Candidates { mut rows, factors, grams, notes } = candidates;
        let options = self.machine.options();
        let given =
            heuristic::weights(self.weights, &mut rows, &factors, formulation, options, context)?;
        let limits = Options { gap: options.tol, ..Options::default() };
        let mut problems = formulation.problems();
        if let Some(start) = start {
            problems.start_from(start);
        }
        let mut duals = KernelDuals::new(rows, factors.clone(), problems, *options, context);
        let kernels = self.kernels.len();
        let found = match given {
            Some(weights) => kernel_weights::at(&mut duals, weights, &limits)?,
            None => {
                let rule = self.weights;
                kernel_weights::minimise(&mut duals, kernels, rule, &grams, &limits, context)?
            }
        };
        warn_of_signed(&found, context);
        let (kernel_rows, effort, solutions) = duals.finish()?;
        let found_at = solutions.clone();
        let outcome =
            Outcome { status: found.status, primal: found.objective, dual: found.bound, ..effort };
        let kernel = self.combined(&found, &factors);
        let spent = TrainingCost { kernel_rows, seconds: started.elapsed().as_secs_f64() };
        let mut parameters = self.record(&found, formulation);
        let raw: Vec<f64> = found.weights.iter().zip(&factors).map(|(w, f)| w * f).collect();
        parameters.push(("raw-kernel-weights".into(), raw.into()));
        parameters.extend(notes);
        if !unlabelled.is_empty() {
            parameters.push(("unlabelled-rows".into(), unlabelled.len().into()));
        }
        let precision = Precision::of::<T>();
        let mut model =
            formulation.model(input, &kernel, precision, solutions, outcome, spent, parameters)?;
        // Support vectors are counted among all rows given.
        model.training.iter_mut().for_each(|training| training.rows += unlabelled.len());
        Ok((model, found_at))
    }

    /// The weighted sum without the kernels of weight 0.
    fn combined(&self, found: &Weights, factors: &[f64]) -> Kernel {
        let terms = self.kernels.iter().zip(&found.weights).zip(factors);
        let terms = terms.filter(|((_, weight), _)| **weight != 0.0);
        Kernel::Sum(terms.map(|((kernel, w), factor)| (w * factor, kernel.clone())).collect())
    }

    fn record(&self, found: &Weights, formulation: &Formulation) -> Vec<(String, Value)> {
        let mut parameters = formulation.parameters();
        parameters.push(("tol".into(), self.machine.options().tol.into()));
        parameters.push(("weights".into(), WeightsText(self.weights).to_string().into()));
        parameters.push(("kernel-weights".into(), found.weights.clone().into()));
        parameters.push(("kernel-contributions".into(), contributions(found).into()));
        parameters.push(("rounds".into(), found.rounds.into()));
        parameters.push(("solves".into(), found.solves.into()));
        if let Some(smallest) = found.smallest_eigenvalue {
            parameters.push(("smallest-eigenvalue".into(), smallest.into()));
        }
        parameters
    }
}

impl Machine for MultipleKernel {
    fn fit_with(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        self.check()?;
        input.validate()?;
        let split = LabelSplit::new(self.unlabelled.as_ref(), input)?;
        let (input, unlabelled) = (split.labelled(input)?, &split.unlabelled[..]);
        let formulation = Formulation::new(&self.machine, input)?;
        if let Some(rule) = self.approximate {
            let fit = || self.fit_features(rule, input, unlabelled, &formulation, context);
            return context.install(|| catch_out_of_memory(fit));
        }
        in_precision(self.precision(), context, |precision| {
            let mut start = None;
            if precision == Precision::F32 {
                let (model, solutions) =
                    self.fit_in::<f32>(input, unlabelled, &formulation, None, context)?;
                let status = model.training.as_ref().map(|training| training.outcome.status);
                if !matches!(status, Some(Status::AlmostSolved | Status::NumericalTrouble)) {
                    return Ok(model);
                }
                // The gap is below what single precision carries.
                start = Some(solutions);
            }
            Ok(self.fit_in::<f64>(input, unlabelled, &formulation, start, context)?.0)
        })
    }

    fn precision(&self) -> Precision {
        MultipleKernel::precision(self)
    }

    fn unlabelled(&self) -> Option<&Label> {
        self.unlabelled.as_ref()
    }
}

/// The share µᵢβᵀKᵢβ / βᵀKβ of every kernel in the squared length of the weight vectors.
fn contributions(found: &Weights) -> Vec<f64> {
    let parts: Vec<f64> = found.weights.iter().zip(&found.forms).map(|(w, f)| w * f).collect();
    let total = parts.iter().sum::<f64>();
    let total = if total > 0.0 { total } else { 1.0 };
    parts.iter().map(|part| part / total).collect()
}

/// Says what signed weights do not promise: anything about new rows.
fn warn_of_signed(found: &Weights, context: &Context) {
    if let (true, Some(smallest)) =
        (found.weights.iter().any(|weight| *weight < 0.0), found.smallest_eigenvalue)
    {
        let message = format!(
            "some kernels have negative weights: their sum is positive semidefinite on the rows given, with \
             the smallest eigenvalue {smallest:.3e}, but not necessarily on new ones"
        );
        context.report(&Event::Warning { message });
    }
}

/// A rule for weights as text: `nonnegative`, `signed`, `uniform`, `lp=P`, `alignment` or `margin=L`.
pub(in crate::machine) struct WeightsText(pub(in crate::machine) WeightRule);

/// What [`WeightsText`] reads.
pub(in crate::machine) const WEIGHT_RULES: &str = "nonnegative, signed, uniform, alignment, lp=P with P of at least 1 or margin=L with L from 0 to 1";

/// Default λ of margin weights, that of EasyMKL.
const MARGIN: f64 = 0.1;

impl fmt::Display for WeightsText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            WeightRule::NonNegative => f.write_str("nonnegative"),
            WeightRule::Signed => f.write_str("signed"),
            WeightRule::Uniform => f.write_str("uniform"),
            WeightRule::Norm(p) => write!(f, "lp={p}"),
            WeightRule::Alignment => f.write_str("alignment"),
            WeightRule::Margin(lambda) => write!(f, "margin={lambda}"),
        }
    }
}

impl FromStr for WeightsText {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, number) = match text.split_once('=') {
            Some((name, number)) => (name, number.trim().parse::<f64>().ok()),
            None => (text, None),
        };
        Ok(Self(match (name, number) {
            ("nonnegative", None) => WeightRule::NonNegative,
            ("signed", None) => WeightRule::Signed,
            ("uniform", None) => WeightRule::Uniform,
            ("alignment", None) => WeightRule::Alignment,
            ("margin", None) if text == "margin" => WeightRule::Margin(MARGIN),
            ("margin", Some(lambda)) if (0.0..1.0).contains(&lambda) => WeightRule::Margin(lambda),
            ("lp", Some(1.0)) => WeightRule::NonNegative,
            ("lp", Some(f64::INFINITY)) => WeightRule::Uniform,
            ("lp", Some(p)) if p > 1.0 => WeightRule::Norm(p),
            _ => return Err(Error::parameter("weights", WEIGHT_RULES, text)),
        }))
    }
}
