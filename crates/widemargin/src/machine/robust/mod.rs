//! Support vector machines that some rows do not pull: capped, trimmed and other robust hinge losses.
//!
//! ```text
//! ramp, eta      ½‖w‖²/C + Σ min(1, ξᵢ)          ξᵢ = max(0, 1 − yᵢf(xᵢ))
//! trimmed        ½‖w‖²/C + the ⌈ρn⌉ smallest ξᵢ
//! centroid       ½‖w‖²/C + Σ max(0, 1 − yᵢf(xᵢ) − λ‖φ(xᵢ) − μ(yᵢ)‖²)
//! leave-one-out  Σ ξᵢ + Σ αᵢKᵢᵢ/C, where row i does without a share θ of its own term
//! power          ½‖w‖²/C + Σ ξᵢᵖ, 0 < p ≤ 2
//! ```
//!
//! The first two are the minimum over shares η of rows that count: min(1, ξ) = min over 0 ≤ η ≤ 1 of ηξ + 1 − η.
//! They are not convex. Their semidefinite relaxation has a proven value (Xu, Crammer and Schuurmans 2006) and shows
//! where to start; the other methods descend from several starts. More than two classes are separated one-vs-one.
//! There is no offset without a penalty, which would make the relaxation non-convex; the kernel is lifted by the square
//! of the intercept's feature instead.

mod pair;

use std::time::Instant;

use self::pair::{Pair, Solved};
use super::Bias;
use super::fit::{FitInput, Machine, SharedKernel};
use super::linear::{FeatureOrder, RowTask, with_rows};
use super::model::{ClassTable, MachineKind, Model, Scheme};
use super::names::{auto_or_number, defaults, names};
use super::parameters::{ClassWeights, Precision};
use super::specification::Value;
use super::training::{Expansion, RowSegments, TrainingCost, assemble, report_solved};
use crate::context::Context;
use crate::data::{ClassOrder, Classes, Dataset, check_two_classes, memory};
use crate::error::{Error, Result};
use crate::kernel::{Gram, Kernel};
use crate::outcome::Outcome;
use crate::solver::linear::rows::LinearRows;

/// Rows up to which the relaxation is solved unless a method was chosen: a moment.
const RELAXED: usize = 150;

/// Rows from which linear functions with losses that drop rows are learnt without the matrix of all pairs, unless a
/// method was chosen that needs it: its factors take more than some passes over the rows.
const BY_FEATURES: usize = 1000;

/// Most rows of a matrix of all pairs in memory.
const MOST_ROWS: usize = 12_000;

/// What a row costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RobustLoss {
    /// The hinge loss, at most 1.
    #[default]
    Ramp,
    /// The same by shares η of rows that count, which descends by training and leaving rows out in turn.
    Eta,
    /// The hinge losses of the share of rows where they are smallest.
    Trimmed,
    /// A hinge loss whose margin is smaller for rows far from the mean of their class (Song, Hu and Xie 2002).
    Centroid,
    /// Hinge losses of rows that do without their own term (Weston and Herbrich 2000).
    LeaveOneOut,
    /// A power of the hinge loss.
    Power,
}

names!(RobustLoss, "loss", Ramp: "ramp", Eta: "eta", Trimmed: "trimmed", Centroid: "centroid",
       LeaveOneOut: "leave-one-out", Power: "power");

impl RobustLoss {
    /// Whether some rows do not count, so that there is a method to choose.
    fn drops_rows(self) -> bool {
        matches!(self, Self::Ramp | Self::Eta | Self::Trimmed)
    }
}

/// How the objective of losses that drop rows is minimised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RobustMethod {
    /// The relaxation for few rows without weights; beyond, the procedure of the loss.
    #[default]
    Auto,
    /// The relaxation for the bound, and a complete search of the rows to leave out.
    Enumeration,
    /// The semidefinite relaxation for a bound and a start, then the procedure of the loss.
    Relaxation,
    /// The concave-convex procedure.
    ConcaveConvex,
    /// Training and leaving rows out in turn.
    Alternation,
}

names!(RobustMethod, "robust-method", Auto: "auto", Enumeration: "enumeration", Relaxation: "relaxation",
       ConcaveConvex: "cccp", Alternation: "alternation");

/// The price λ of the squared distance from the mean of the class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum DistancePrice {
    /// Half the inverse of the median squared distance: rows at √2 times the median distance count up to z = 0.
    #[default]
    Auto,
    /// A given value.
    Value(f64),
}

auto_or_number!(DistancePrice, "distance-price");

/// A classifier that outliers and wrong labels do not pull.
///
/// The model is an ordinary kernel expansion. Its training record keeps for every row an outlier score, the signed
/// distance −y f(x)/‖w‖ from the boundary on the wrong side, and whether the row counts.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::kernel::Kernel;
/// use widemargin::machine::{Machine, RobustSvc};
/// use widemargin::Context;
///
/// // The last row has the wrong label.
/// let rows = Dense::new(7, 1, vec![-3.0, -2.0, -2.5, 2.0, 2.5, 3.0, 9.0])?;
/// let data = Dataset::new(Matrix::DenseF64(rows), Labels::Int(vec![0, 0, 0, 1, 1, 1, 0]))?;
/// let machine = RobustSvc { kernel: Kernel::Linear, ..RobustSvc::default() };
/// let model = machine.fit(&data, &Context::new())?;
/// let outcome = &model.training.as_ref().unwrap().outcome;
/// assert!(outcome.dual <= outcome.primal && outcome.primal < 1.5);
/// assert_eq!(model.training.as_ref().unwrap().reals("kept").unwrap()[6], 0.0);
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RobustSvc {
    /// Penalty C: 1/C is the weight of ½‖w‖² beside the losses.
    pub c: f64,
    /// What a row costs.
    pub loss: RobustLoss,
    /// How the objective is minimised.
    pub method: RobustMethod,
    /// Share ρ of the rows that count with trimmed losses.
    pub keep: f64,
    /// Exponent p of powers of the hinge loss.
    pub power: f64,
    /// Price of distances with the centroid loss.
    pub distance_price: DistancePrice,
    /// Share θ of its own term that a row does without, with the leave-one-out loss.
    pub left_out: f64,
    /// The kernel.
    pub kernel: Kernel,
    /// The constant of the function; one without a penalty is refused.
    pub intercept: Bias,
    /// Random starts beside those that are always tried.
    pub starts: usize,
    /// Factors on the weight of the rows of a class.
    pub class_weights: ClassWeights,
    /// Which class comes first.
    pub class_order: ClassOrder,
    /// Relative gap between the relaxation's value and its bound that ends it.
    pub tol: f64,
}

defaults!(RobustSvc {
    c: 1.0,
    loss: RobustLoss::Ramp,
    method: RobustMethod::Auto,
    keep: 0.8,
    power: 0.5,
    distance_price: DistancePrice::Auto,
    left_out: 1.0,
    kernel: Kernel::Gaussian { gamma: 1.0 },
    intercept: Bias::Appended(1.0),
    starts: 5,
    class_weights: ClassWeights::Uniform,
    class_order: ClassOrder::Sorted,
    tol: 1e-3,
});

impl Machine for RobustSvc {
    fn fit_with(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        self.check()?;
        input.validate()?;
        let fit = || input.fit_selected(Some(&self.kernel), |data| self.train(data, context));
        context.install(fit)
    }

    fn kernel(&self) -> Option<&Kernel> {
        Some(&self.kernel)
    }

    fn precision(&self) -> Precision {
        Precision::F64
    }

    fn shared_kernel(&self) -> Option<&dyn SharedKernel> {
        Some(self)
    }
}

impl SharedKernel for RobustSvc {
    fn with_kernel(&self, kernel: Kernel) -> Box<dyn Machine> {
        Box::new(Self { kernel, ..self.clone() })
    }
}

impl RobustSvc {
    fn check(&self) -> Result<()> {
        Error::check_positive("c", self.c)?;
        Error::check_positive("tol", self.tol)?;
        self.kernel.validate()?;
        if !(self.keep > 0.0 && self.keep <= 1.0) {
            return Err(Error::parameter("keep", "a number above 0 and at most 1", self.keep));
        }
        if !(self.power > 0.0 && self.power <= 2.0) {
            return Err(Error::parameter("power", "a number above 0 and at most 2", self.power));
        }
        if !(0.0..=1.0).contains(&self.left_out) {
            return Err(Error::parameter("left-out", "a number from 0 to 1", self.left_out));
        }
        match self.distance_price {
            DistancePrice::Value(price) if !(price.is_finite() && price >= 0.0) => {
                let expected = "auto or a number of at least 0";
                return Err(Error::parameter("distance-price", expected, price));
            }
            _ => {}
        }
        if !self.loss.drops_rows() && self.method != RobustMethod::Auto {
            let expected = format!("auto with loss {}", self.loss);
            return Err(Error::parameter("robust-method", expected, self.method));
        }
        match self.intercept {
            Bias::Free => {
                let expected =
                    "none or a number above 0: a constant without a penalty has no bound";
                Err(Error::parameter("intercept", expected, "free"))
            }
            Bias::Appended(value) => Error::check_positive("intercept", value),
            Bias::None => Ok(()),
        }
    }

    /// What is added to every kernel value for the intercept.
    fn lift(&self) -> f64 {
        match self.intercept {
            Bias::Appended(value) => value * value,
            _ => 0.0,
        }
    }

    fn train(&self, data: &Dataset, context: &Context) -> Result<Model> {
        let started = Instant::now();
        let classes = data.labels().classes(self.class_order)?;
        check_two_classes(&classes.names)?;
        let segments = self.segments(data, &classes)?;
        if self.learns_by_features(data.rows()) {
            return self.train_by_features(data, classes, &segments, started, context);
        }
        // The matrix, that of the two classes, and a copy and a factor of either.
        let n = data.rows() as u128;
        memory::check(|| format!("the matrices of {n} rows"), 4 * 8 * n * n)?;
        let gram = Gram::of(&self.kernel, data.features(), context)?;
        self.check_gram(&gram, context)?;
        let solved = pairs(classes.count()).map(|pair| {
            let rows = members(&segments, pair);
            let pair_of = Pair { machine: self, gram: &gram, rows, first: segments[pair[0]].len() };
            Ok((pair, pair_of.solve(context)?))
        });
        let solved: Vec<([usize; 2], Solved)> = solved.collect::<Result<_>>()?;
        drop(gram);
        self.model(data, classes, &segments, solved, started, context)
    }

    /// Whether functions of so many rows are learnt without the matrix of all pairs.
    fn learns_by_features(&self, rows: usize) -> bool {
        let method = matches!(
            self.method,
            RobustMethod::Auto | RobustMethod::ConcaveConvex | RobustMethod::Alternation
        );
        self.kernel == Kernel::Linear && self.loss.drops_rows() && method && rows > BY_FEATURES
    }

    /// Linear functions without the matrix of all pairs.
    fn train_by_features(
        &self,
        data: &Dataset,
        classes: Classes,
        segments: &[Vec<(usize, f64)>],
        started: Instant,
        context: &Context,
    ) -> Result<Model> {
        // A vector of weights and a dense row.
        let bytes = 2 * 8 * data.columns() as u128;
        memory::check(|| format!("the weights of {} features", data.columns()), bytes)?;
        let bias = match self.intercept {
            Bias::Appended(value) => Some(value),
            _ => None,
        };
        let task = ByFeatures { machine: self, segments, context };
        let set = context.instruction_set();
        let solved = with_rows(data.features(), bias, Precision::F64, set, 1, task);
        if let Some(wrong) = solved.iter().find(|(_, s)| !s.outcome().primal.is_finite()) {
            let expected = "features whose products are finite (scale them)";
            let found = format!("an objective of {}", wrong.1.outcome().primal);
            return Err(Error::parameter("data", expected, found));
        }
        self.model(data, classes, segments, solved, started, context)
    }

    /// Rows of positive weight and their weights, class by class.
    fn segments(&self, data: &Dataset, classes: &Classes) -> Result<Vec<Vec<(usize, f64)>>> {
        let factors = self.class_weights.resolve(classes)?;
        let mut segments = vec![Vec::new(); classes.count()];
        for (row, &class) in classes.codes.iter().enumerate() {
            let weight = data.weight(row) * factors[class as usize];
            if weight > 0.0 {
                segments[class as usize].push((row, weight));
            }
        }
        if let Some(class) = segments.iter().position(Vec::is_empty) {
            return Err(Error::labels(
                "a row of positive weight in every class",
                format!("none in class '{}'", classes.names[class]),
            ));
        }
        let weighted = segments.iter().flatten().any(|(_, weight)| *weight != 1.0);
        if weighted && self.loss == RobustLoss::Trimmed {
            let expected = "rows of weight 1 with trimmed losses, which count rows";
            return Err(Error::parameter("weights", expected, "others"));
        }
        if data.rows() > MOST_ROWS && !self.learns_by_features(data.rows()) {
            let expected = format!(
                "at most {MOST_ROWS} rows for a matrix of all pairs, or a linear kernel with loss ramp, eta or trimmed"
            );
            return Err(Error::parameter("rows", expected, data.rows()));
        }
        Ok(segments)
    }

    /// Matrices of kernels that can have negative eigenvalues are checked.
    fn check_gram(&self, gram: &Gram, context: &Context) -> Result<()> {
        if matches!(self.kernel, Kernel::Linear | Kernel::Gaussian { .. }) {
            return Ok(());
        }
        gram.check_semidefinite(&self.kernel, context)
    }

    fn model(
        &self,
        data: &Dataset,
        classes: Classes,
        segments: &[Vec<(usize, f64)>],
        solved: Vec<([usize; 2], Solved)>,
        started: Instant,
        context: &Context,
    ) -> Result<Model> {
        let rows: Vec<Vec<usize>> =
            segments.iter().map(|s| s.iter().map(|&(row, _)| row).collect()).collect();
        let layout = RowSegments::new(&rows);
        let record = Record::new(data.rows(), &layout, &solved);
        let lift = self.lift();
        let outcomes = solved.iter().map(|(_, solved)| solved.outcome());
        let outcome = outcomes.reduce(Outcome::join).ok_or(Error::Empty { what: "class" })?;
        let expansions = solved.into_iter().enumerate().map(|(f, (pair, solved))| {
            let coefficients = solved.signed_coefficients(self.c);
            let offset = -lift * coefficients.iter().sum::<f64>();
            let expansion = Expansion { segments: pair.to_vec(), coefficients, offset };
            report_solved(context, f, &expansion, |_| self.c, solved.outcome(), None);
            expansion
        });
        let expansions: Vec<Expansion> = expansions.collect();
        let spent = TrainingCost {
            kernel_rows: data.rows() as u64,
            seconds: started.elapsed().as_secs_f64(),
        };
        let (kind, precision) = (MachineKind::RobustSvc, Precision::F64);
        let part = FitInput::new(data);
        let parameters = self.parameters(record);
        let (mut model, support) = assemble(
            kind,
            &self.kernel,
            precision,
            &part,
            &layout,
            &expansions,
            outcome,
            spent,
            parameters,
        )?;
        let scheme = Scheme::OneVsOne;
        model.classes = Some(ClassTable { names: classes.names, scheme, support });
        Ok(model)
    }

    fn parameters(&self, record: Record) -> Vec<(String, Value)> {
        let mut parameters: Vec<(String, Value)> = vec![
            ("c".into(), self.c.into()),
            ("loss".into(), self.loss.name().into()),
            ("intercept".into(), self.intercept.into()),
            ("tol".into(), self.tol.into()),
        ];
        if let Some(value) = record.relaxation {
            parameters.push(("relaxation".into(), value.into()));
        }
        parameters.push(("outlier-scores".into(), record.scores.into()));
        parameters.push(("kept".into(), record.kept.into()));
        if let Some(shares) = record.shares {
            parameters.push(("shares".into(), shares.into()));
        }
        parameters
    }
}

/// All pairs of classes.
fn pairs(count: usize) -> impl Iterator<Item = [usize; 2]> {
    (0..count).flat_map(move |i| (i + 1..count).map(move |j| [i, j]))
}

/// Rows of two classes and their weights.
fn members(segments: &[Vec<(usize, f64)>], pair: [usize; 2]) -> Vec<(usize, f64)> {
    pair.iter().flat_map(|&s| segments[s].clone()).collect()
}

/// Functions of all pairs of classes over rows of any storage.
struct ByFeatures<'a> {
    machine: &'a RobustSvc,
    segments: &'a [Vec<(usize, f64)>],
    context: &'a Context,
}

impl RowTask for ByFeatures<'_> {
    type Output = Vec<([usize; 2], Solved)>;

    fn run<R: LinearRows>(self, rows: &R, _: &FeatureOrder) -> Self::Output {
        let Self { machine, segments, context } = self;
        let solve = |pair: [usize; 2]| {
            let first = segments[pair[0]].len();
            (pair, machine.solve_linear(rows, &members(segments, pair), first, context))
        };
        pairs(segments.len()).map(solve).collect()
    }
}

/// What is kept of every training row.
struct Record {
    /// Values of the relaxations together, where all were solved.
    relaxation: Option<f64>,
    /// The largest −y f(x)/‖w‖ over the functions that a row is in; 0 for rows without weight.
    scores: Vec<f64>,
    /// 1 where a row counts in all of them, otherwise 0.
    kept: Vec<f64>,
    /// The least share η of a row in the relaxations.
    shares: Option<Vec<f64>>,
}

impl Record {
    fn new(rows: usize, layout: &RowSegments, solved: &[([usize; 2], Solved)]) -> Self {
        let (mut scores, mut kept) = (vec![f64::NEG_INFINITY; rows], vec![1.0_f64; rows]);
        let mut shares = vec![1.0_f64; rows];
        let mut relaxation = Some(0.0);
        for (pair, solved) in solved {
            for (k, &row) in layout.places(pair).iter().enumerate() {
                scores[row] = scores[row].max(solved.scores[k]);
                kept[row] = kept[row].min(f64::from(u8::from(!solved.dropped[k])));
                if let Some(relaxed) = &solved.relaxed {
                    shares[row] = shares[row].min(relaxed.shares[k]);
                }
            }
            let value = solved.relaxed.as_ref().map(|relaxed| relaxed.value);
            relaxation = relaxation.zip(value).map(|(sum, value)| sum + value);
        }
        scores.iter_mut().filter(|score| !score.is_finite()).for_each(|score| *score = 0.0);
        let relaxed = solved.iter().all(|(_, solved)| solved.relaxed.is_some());
        let relaxation = relaxation.filter(|value| value.is_finite());
        Self { relaxation, scores, kept, shares: relaxed.then_some(shares) }
    }
}
