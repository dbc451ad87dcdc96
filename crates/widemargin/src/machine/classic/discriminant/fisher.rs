//! Fisher's linear discriminant (Fisher, 1936).
//!
//! With the class means μ_C and S_W = Σ P_C S_C the score of a class is
//! μ_Cᵀ S_W⁻¹ x − ½ μ_Cᵀ S_W⁻¹ μ_C + ln P_C; for two classes that is y = w·x + b with
//! w = S_W⁻¹(μ₊ − μ₋), which maximises J(w) = wᵀS_B w / wᵀS_W w. The directions of several classes
//! are the generalised eigenvectors of (S_B, S_W) (JHU 685.621, 1.1).

use std::time::Instant;

use super::super::names::names;
use super::super::rows::{self, Effort, Priors, check_labelled, dense_rows, means, table};
use super::super::{Classic, Discriminant};
use super::scatter::{Shrinkage, factor};
use crate::context::Context;
use crate::data::{Classes, Dataset};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::machine::{
    ClassTable, DecisionFunction, KernelExpansion, Machine, Model, Precision, Scheme,
};
use crate::solver::algebra::{Cholesky, dot, eigen_symmetric};

/// Where the boundary of two classes lies along the direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threshold {
    /// Where the posteriors are equal for the priors: linear discriminant analysis.
    #[default]
    Prior,
    /// Half-way between the means.
    Midpoint,
    /// Where the fewest training rows are wrong; for two classes only.
    LeastErrors,
}

names!(Threshold, "threshold", Prior: "prior", Midpoint: "midpoint", LeastErrors: "least-errors");

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
    pub threshold: Threshold,
    /// How class covariances are shrunk.
    pub shrinkage: Shrinkage,
    /// Class probabilities: weights of the class covariances and constants of the scores.
    pub priors: Priors,
    /// Whether class covariances are divided by one less than the number of rows.
    pub unbiased: bool,
    /// Directions kept for projections; `None` for all, which are one fewer than classes.
    pub directions: Option<usize>,
}

impl Default for Fisher {
    fn default() -> Self {
        Self {
            threshold: Threshold::Prior,
            shrinkage: Shrinkage::None,
            priors: Priors::Frequencies,
            unbiased: false,
            directions: None,
        }
    }
}

impl Machine for Fisher {
    fn fit(&self, data: &Dataset, context: &Context) -> Result<Model> {
        let started = Instant::now();
        self.shrinkage.validate()?;
        let classes = check_labelled(data)?;
        let count = classes.count();
        if self.threshold == Threshold::LeastErrors && count != 2 {
            return Err(Error::parameter("threshold", "prior or midpoint", "least errors"));
        }
        let columns = data.columns();
        rows::check_square("the within-class scatter", columns)?;
        let rows = dense_rows(data.features());
        let row = |i: usize| &rows[i * columns..(i + 1) * columns];
        let members = classes.rows_by_class();
        let counts: Vec<usize> = members.iter().map(Vec::len).collect();
        let log_priors = self.priors.logarithms(&counts)?;
        let priors: Vec<f64> = log_priors.iter().map(|p| p.exp()).collect();
        let mut class_means = Vec::with_capacity(count);
        let mut scatter = vec![0.0; columns * columns];
        for (members, prior) in members.iter().zip(&priors) {
            let own: Vec<&[f64]> = members.iter().map(|&i| row(i)).collect();
            class_means.push(means(own.iter().copied(), columns));
            let covariance = self.shrinkage.covariance(&own, columns);
            let factor = prior * rows::divisor_factor(own.len(), self.unbiased);
            for (sum, value) in scatter.iter_mut().zip(&covariance) {
                *sum += factor * value;
            }
        }
        let (factor, share) = factor(&scatter, columns, context)?;
        let spread = Spread::new(&class_means, &priors, &scatter, &factor, columns);
        let parameters =
            [("threshold", self.threshold.to_string()), ("shrinkage", self.shrinkage.to_string())];
        let effort = Effort::closed_form(started, &parameters);
        let slopes: Vec<Vec<f64>> = class_means
            .iter()
            .map(|mean| {
                let mut slope = mean.clone();
                factor.solve(&mut slope);
                slope
            })
            .collect();
        let constants: Vec<f64> = (0..count)
            .map(|c| {
                let prior = if self.threshold == Threshold::Prior { log_priors[c] } else { 0.0 };
                prior - 0.5 * dot(&slopes[c], &class_means[c])
            })
            .collect();
        let (mut support, functions, scheme) = if count == 2 {
            let slope: Vec<f64> = slopes[1].iter().zip(&slopes[0]).map(|(b, a)| b - a).collect();
            if slope.iter().all(|value| *value == 0.0) {
                rows::warn(context, "the class means are equal: the larger class is the answer");
            }
            let mut constant = constants[1] - constants[0];
            if self.threshold == Threshold::LeastErrors {
                let values: Vec<f64> = (0..data.rows()).map(|i| dot(row(i), &slope)).collect();
                constant = -least_errors(&values, &classes);
            }
            // Positive speaks for the first class.
            (slope, vec![DecisionFunction::single(0, -1.0, constant)], Scheme::OneVsOne)
        } else {
            let functions =
                (0..count).map(|c| DecisionFunction::single(c, 1.0, -constants[c])).collect();
            (slopes.concat(), functions, Scheme::OneVsRest)
        };
        let first = support.len() / columns;
        let kept = self.directions.unwrap_or(usize::MAX).min(spread.directions.len());
        let centre = means((0..data.rows()).map(row), columns);
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
        let mut model = rows::model(Classic::Fisher, data, body, effort);
        model.classes = Some(ClassTable { names: classes.names, scheme, support: vec![0; count] });
        Ok(model)
    }
}

/// How far apart the classes lie.
struct Spread {
    directions: Vec<Vec<f64>>,
    ratios: Vec<f64>,
    separability: f64,
    feature_scores: Vec<f64>,
}

impl Spread {
    fn new(
        class_means: &[Vec<f64>],
        priors: &[f64],
        scatter: &[f64],
        factor: &Cholesky,
        columns: usize,
    ) -> Self {
        let count = class_means.len();
        let mut centre = vec![0.0; columns];
        for (mean, prior) in class_means.iter().zip(priors) {
            centre.iter_mut().zip(mean).for_each(|(sum, value)| *sum += prior * value);
        }
        let deviations: Vec<Vec<f64>> = class_means
            .iter()
            .zip(priors)
            .map(|(mean, p)| mean.iter().zip(&centre).map(|(m, c)| p.sqrt() * (m - c)).collect())
            .collect();
        let whitened: Vec<Vec<f64>> = deviations
            .iter()
            .map(|deviation| {
                let mut deviation = deviation.clone();
                factor.solve_lower(&mut deviation);
                deviation
            })
            .collect();
        let mut gram = vec![0.0; count * count];
        for i in 0..count {
            for j in 0..count {
                gram[i * count + j] = dot(&whitened[i], &whitened[j]);
            }
        }
        let eigen = eigen_symmetric(gram, count);
        let largest = eigen.values[0].max(0.0);
        let mut directions = Vec::new();
        let mut ratios = Vec::new();
        for i in 0..(count - 1).min(columns) {
            if eigen.values[i] <= 1e-12 * largest {
                break;
            }
            let mut direction = vec![0.0; columns];
            for (whitened, factor) in whitened.iter().zip(eigen.vector(i)) {
                let scale = factor / eigen.values[i].sqrt();
                direction.iter_mut().zip(whitened).for_each(|(sum, v)| *sum += scale * v);
            }
            factor.solve_upper(&mut direction);
            directions.push(direction);
            ratios.push(eigen.values[i]);
        }
        let total: f64 = ratios.iter().sum();
        // For two classes S_B of the notes is that of the definition over P₋P₊.
        let scale = if count == 2 { 1.0 / (priors[0] * priors[1]) } else { 1.0 };
        let feature_scores = (0..columns)
            .map(|j| {
                let between: f64 = deviations.iter().map(|d| d[j] * d[j]).sum();
                if between > 0.0 { scale * between / scatter[j * columns + j] } else { 0.0 }
            })
            .collect();
        Self { directions, ratios, separability: scale * total, feature_scores }
    }
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
