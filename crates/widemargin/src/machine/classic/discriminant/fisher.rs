//! Fisher's linear discriminant (Fisher, 1936).
//!
//! With the class means μ_C and S_W = Σ P_C S_C the score of a class is
//! μ_Cᵀ S_W⁻¹ x − ½ μ_Cᵀ S_W⁻¹ μ_C + ln P_C; for two classes that is y = w·x + b with
//! w = S_W⁻¹(μ₊ − μ₋), which maximises J(w) = wᵀS_B w / wᵀS_W w. The directions of several classes
//! are the generalised eigenvectors of (S_B, S_W) (JHU 685.621, 1.1).

use std::time::Instant;

use super::super::rows::{self, Priors, TrainingSummary, check_labelled, dense_rows, means, table};
use super::super::{Classic, Discriminant};
use super::scatter::{Shrinkage, factor};
use crate::context::Context;
use crate::data::{Classes, Dataset};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::machine::names::{defaults, names};
use crate::machine::{ClassTable, DecisionFunction, KernelExpansion, Model, Precision, Scheme};
use crate::numeric::algebra::{Cholesky, add, add_products, dot, eigen_interruptible};

/// Where the boundary of two classes lies along the direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FisherThreshold {
    /// Where the posteriors are equal for the priors: linear discriminant analysis.
    #[default]
    Prior,
    /// Half-way between the means.
    Midpoint,
    /// Where the fewest training rows are wrong; for two classes only.
    LeastErrors,
}

names!(FisherThreshold, "threshold", Prior: "prior", Midpoint: "midpoint",
       LeastErrors: "least-errors");

/// Fisher's linear discriminant.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::machine::{Fisher, Machine};
/// use widemargin::Context;
///
/// let rows = vec![0., 0., 1., 0., 0., 1., 1., 1., 3., 2., 4., 2., 3., 3., 5., 4.];
/// let rows = Matrix::DenseF64(Dense::new(8, 2, rows)?);
/// let data = Dataset::new(rows, Labels::Int(vec![-1, -1, -1, -1, 1, 1, 1, 1]))?;
/// let context = Context::new();
/// let model = Fisher::default().fit(&data, &context)?;
/// let point = Matrix::DenseF64(Dense::new(1, 2, vec![2.0, 1.0])?);
/// let value = model.predictor(&context)?.decision_values(&point)?;
/// assert!((value.row(0)[0] - 2.0).abs() < 1e-12); // positive: the first class, -1
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Fisher {
    /// Where the boundary lies.
    pub threshold: FisherThreshold,
    /// How class covariances are shrunk.
    pub shrinkage: Shrinkage,
    /// Class probabilities: weights of the class covariances and constants of the scores.
    pub priors: Priors,
    /// Whether class covariances are divided by one less than the number of rows.
    pub unbiased: bool,
    /// Directions kept for projections; `None` for all, which are one fewer than classes.
    pub directions: Option<usize>,
}

defaults!(Fisher {
    threshold: FisherThreshold::Prior,
    shrinkage: Shrinkage::None,
    priors: Priors::Frequencies,
    unbiased: false,
    directions: None,
});

rows::trained_on_selected!(Fisher);

impl Fisher {
    fn train(&self, data: &Dataset, context: &Context) -> Result<Model> {
        let started = Instant::now();
        self.shrinkage.validate()?;
        let classes = check_labelled(data)?;
        let count = classes.count();
        if self.threshold == FisherThreshold::LeastErrors && count != 2 {
            return Err(Error::parameter("threshold", "prior or midpoint", "least errors"));
        }
        let columns = data.columns();
        rows::check_square("the within-class scatter", columns)?;
        let rows = dense_rows(data.features())?;
        let members = classes.rows_by_class();
        let counts: Vec<usize> = members.iter().map(Vec::len).collect();
        let log_priors = self.priors.logarithms(&counts)?;
        let (class_means, scatter) =
            self.moments(&rows, columns, &members, &log_priors, context)?;
        let (factor, share) = factor(&scatter, columns, context)?;
        let spread = ClassSeparation::new(&class_means, &log_priors, &scatter, &factor, context)?;
        let scores = self.scores(&class_means, &log_priors, &factor, context)?;
        let (mut support, functions, scheme) = if count == 2 {
            let (slope, function) = self.boundary(&scores, &rows, &classes, context);
            (slope, vec![function], Scheme::OneVsOne)
        } else {
            let slopes = scores.iter().flat_map(|(slope, _)| slope).copied().collect();
            let function = |(c, (_, constant)): (usize, &(_, f64))| {
                DecisionFunction::single(c, 1.0, -constant)
            };
            (slopes, scores.iter().enumerate().map(function).collect(), Scheme::OneVsRest)
        };
        let first = support.len() / columns;
        let kept = self.directions.unwrap_or(usize::MAX).min(spread.directions.len());
        let centre = means(rows.chunks_exact(columns), columns);
        let mut projections = Vec::with_capacity(kept);
        for (place, direction) in spread.directions[..kept].iter().enumerate() {
            projections.push(DecisionFunction::single(first + place, 1.0, dot(direction, &centre)));
            support.extend_from_slice(direction);
        }
        let body = Discriminant {
            expansion: KernelExpansion {
                kernel: Kernel::Linear,
                precision: Precision::F64,
                support: table(support, columns)?,
                support_rows: Vec::new(),
                functions,
            },
            projections,
            ratios: spread.ratios,
            separability: spread.separability,
            feature_scores: spread.feature_scores,
            regularisation: share,
        };
        let parameters = [
            ("threshold", self.threshold.to_string().into()),
            ("shrinkage", self.shrinkage.to_string().into()),
        ];
        let effort = TrainingSummary::closed_form(started, &parameters);
        let mut model = rows::model(Classic::Fisher, data, body, effort);
        model.classes = Some(ClassTable { names: classes.names, scheme, support: vec![0; count] });
        Ok(model)
    }

    /// The mean of every class and S_W.
    fn moments(
        &self,
        rows: &[f64],
        columns: usize,
        members: &[Vec<usize>],
        log_priors: &[f64],
        context: &Context,
    ) -> Result<(Vec<Vec<f64>>, Vec<f64>)> {
        let mut class_means = Vec::with_capacity(members.len());
        let mut scatter = vec![0.0; columns * columns];
        for (members, log_prior) in members.iter().zip(log_priors) {
            context.checkpoint()?;
            let own: Vec<&[f64]> =
                members.iter().map(|&i| &rows[i * columns..(i + 1) * columns]).collect();
            class_means.push(means(own.iter().copied(), columns));
            let covariance = self.shrinkage.covariance(&own, columns, context)?;
            let factor = log_prior.exp() * rows::divisor_factor(own.len(), self.unbiased);
            add(&mut scatter, &covariance, factor);
        }
        Ok((class_means, scatter))
    }

    /// S_W⁻¹μ and the constant of the score of every class.
    fn scores(
        &self,
        class_means: &[Vec<f64>],
        log_priors: &[f64],
        factor: &Cholesky,
        context: &Context,
    ) -> Result<Vec<(Vec<f64>, f64)>> {
        let score = |(mean, log_prior): (&Vec<f64>, &f64)| {
            context.checkpoint()?;
            let mut slope = mean.clone();
            factor.solve(&mut slope);
            let prior = if self.threshold == FisherThreshold::Prior { *log_prior } else { 0.0 };
            let constant = prior - 0.5 * dot(&slope, mean);
            Ok((slope, constant))
        };
        context.try_map(class_means.iter().zip(log_priors), score)
    }

    /// The direction of two classes and the decision function along it, positive for the first class.
    fn boundary(
        &self,
        scores: &[(Vec<f64>, f64)],
        rows: &[f64],
        classes: &Classes,
        context: &Context,
    ) -> (Vec<f64>, DecisionFunction) {
        let slope: Vec<f64> = scores[1].0.iter().zip(&scores[0].0).map(|(b, a)| b - a).collect();
        if slope.iter().all(|value| *value == 0.0) {
            rows::warn(context, "the class means are equal: the larger class is predicted");
        }
        let mut constant = scores[1].1 - scores[0].1;
        if self.threshold == FisherThreshold::LeastErrors {
            let values: Vec<f64> =
                rows.chunks_exact(slope.len()).map(|row| dot(row, &slope)).collect();
            constant = -least_errors(&values, classes);
        }
        (slope, DecisionFunction::single(0, -1.0, constant))
    }
}

/// The discriminant directions and how well they separate the classes.
struct ClassSeparation {
    directions: Vec<Vec<f64>>,
    ratios: Vec<f64>,
    separability: f64,
    feature_scores: Vec<f64>,
}

impl ClassSeparation {
    /// The generalised eigenvectors of (S_B, S_W) from L⁻¹S_B L⁻ᵀ, or from the matrix of products of the
    /// columns of L⁻¹B, S_B = BBᵀ, where there are fewer classes than features.
    fn new(
        class_means: &[Vec<f64>],
        log_priors: &[f64],
        scatter: &[f64],
        factor: &Cholesky,
        context: &Context,
    ) -> Result<Self> {
        let (count, columns) = (class_means.len(), class_means[0].len());
        let deviations = deviations(class_means, log_priors);
        let mut whitened = deviations.clone();
        context.try_for_each(whitened.iter_mut(), |deviation| {
            context.checkpoint()?;
            factor.solve_lower(deviation);
            Ok(())
        })?;
        let order = count.min(columns);
        let few = count <= columns;
        let panel: Vec<f64> = match few {
            true => whitened.concat(),
            false => (0..columns).flat_map(|j| whitened.iter().map(move |w| w[j])).collect(),
        };
        let mut products = vec![0.0; order * order];
        add_products(&mut products, order, &panel, panel.len() / order, context)?;
        let eigen = eigen_interruptible(products, order, context)?;
        let largest = eigen.values[0].max(0.0);
        let (mut directions, mut ratios) = (Vec::new(), Vec::new());
        for (i, &ratio) in eigen.values.iter().enumerate().take((count - 1).min(columns)) {
            if ratio <= 1e-12 * largest {
                break;
            }
            context.checkpoint()?;
            let mut direction = vec![0.0; columns];
            if few {
                for (whitened, entry) in whitened.iter().zip(eigen.vector(i)) {
                    add(&mut direction, whitened, entry / ratio.sqrt());
                }
            } else {
                // The sign that makes the largest of its products with the class means positive.
                let along = whitened.iter().map(|w| dot(w, eigen.vector(i)));
                let largest = along.fold(0.0_f64, |b, v| if v.abs() > b.abs() { v } else { b });
                add(&mut direction, eigen.vector(i), 1.0_f64.copysign(largest));
            }
            factor.solve_upper(&mut direction);
            directions.push(direction);
            ratios.push(ratio);
        }
        let total: f64 = ratios.iter().sum();
        // For two classes S_B of the notes is that of the definition over P₋P₊.
        let scale = if count == 2 { (-log_priors[0] - log_priors[1]).exp() } else { 1.0 };
        let feature_scores = (0..columns)
            .map(|j| {
                let between: f64 = deviations.iter().map(|d| d[j] * d[j]).sum();
                if between > 0.0 { scale * between / scatter[j * columns + j] } else { 0.0 }
            })
            .collect();
        Ok(Self { directions, ratios, separability: scale * total, feature_scores })
    }
}

/// √P (μ − centre) of every class, the centre being the mean of the class means weighted by P.
pub(super) fn deviations(class_means: &[Vec<f64>], log_priors: &[f64]) -> Vec<Vec<f64>> {
    let mut centre = vec![0.0; class_means[0].len()];
    for (mean, log_prior) in class_means.iter().zip(log_priors) {
        add(&mut centre, mean, log_prior.exp());
    }
    let deviation = |(mean, log_prior): (&Vec<f64>, &f64)| {
        let root = log_prior.exp().sqrt();
        mean.iter().zip(&centre).map(|(m, c)| root * (m - c)).collect()
    };
    class_means.iter().zip(log_priors).map(deviation).collect()
}

/// The place on the line that separates the second class, above, from the first with the fewest
/// errors; half-way between the two rows it lies between, the first such place.
fn least_errors(values: &[f64], classes: &Classes) -> f64 {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    // Below all rows: every row is given the second class.
    let mut errors = classes.codes.iter().filter(|&&code| code == 0).count() as i64;
    let mut best = (errors, order.first().map_or(0.0, |&i| values[i]));
    for (at, &i) in order.iter().enumerate() {
        errors += if classes.codes[i] == 0 { -1 } else { 1 };
        let here = values[i];
        let next = order.get(at + 1).map_or(here, |&j| values[j]);
        let last = at + 1 == order.len();
        if errors < best.0 && (next > here || last) {
            let place = if last { here + here.abs().max(1.0) * 1e-9 } else { 0.5 * (here + next) };
            best = (errors, place);
        }
    }
    best.1
}
