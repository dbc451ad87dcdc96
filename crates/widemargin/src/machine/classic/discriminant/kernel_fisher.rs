//! Kernel Fisher discriminant (Mika et al., 1999; JHU 685.621, 1.4).
//!
//! Directions w = Σ αᵢφ(xᵢ) maximise αᵀMα / αᵀN_μα, where (m_C)ᵢ is the mean of K(xᵢ, ·) over class
//! C and N_μ = Σ_C K_C(I − 11ᵀ/l_C)K_Cᵀ + μI (or + μK, which penalises ‖w‖). Two classes give
//! α = N_μ⁻¹(m₊ − m₋); more give the generalised eigenvectors, and the nearest class mean among
//! the projections decides. Beyond [`LARGEST_EXACT`] rows the sum runs over random landmarks
//! (Nyström; Williams and Seeger, 2001) while N is still that of all rows.

use std::time::Instant;

use super::super::rows::{self, Priors, TrainingSummary, check_labelled, class_table, warn};
use super::super::{Classic, Discriminant};
use super::expansion::Expansion;
use super::fisher::deviations;
use crate::context::Context;
use crate::data::{Dataset, Labels, memory};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, KernelBlocks};
use crate::machine::names::{defaults, names};
use crate::machine::training::support_table;
use crate::machine::{
    Calibration, DecisionFunction, FitInput, KernelExpansion, Machine, Model, Part, Precision,
    Scheme, SolverOptions, Svc,
};
use crate::numeric::algebra::{Cholesky, add, dot, eigen_interruptible, times_transposed};
use crate::numeric::random::Generator;

/// Rows up to which every row is in the expansion.
const LARGEST_EXACT: usize = 20_000;

/// Landmarks beyond that, by default.
const LANDMARKS: usize = 2_000;

/// Where the boundary of two classes lies among the projections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KernelFisherThreshold {
    /// Where a linear support vector machine (C = 1) of the standardised projections puts it.
    #[default]
    Svm,
    /// Half-way between the mean projections.
    Midpoint,
}

names!(KernelFisherThreshold, "threshold", Svm: "svm", Midpoint: "midpoint");

/// What the ridge penalises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KernelFisherRidge {
    /// ‖α‖²: N + μI.
    #[default]
    Coefficients,
    /// ‖w‖²: N + μK.
    Norm,
}

names!(KernelFisherRidge, "ridge", Coefficients: "coefficients", Norm: "norm");

/// Kernel Fisher discriminant.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::kernel::Kernel;
/// use widemargin::machine::{KernelFisher, Machine};
/// use widemargin::Context;
///
/// // Exclusive or.
/// let rows = Matrix::DenseF64(Dense::new(4, 2, vec![0., 0., 1., 1., 0., 1., 1., 0.])?);
/// let data = Dataset::new(rows, Labels::Int(vec![0, 0, 1, 1]))?;
/// let machine = KernelFisher { kernel: Kernel::Gaussian { gamma: 1.0 }, ..KernelFisher::default() };
/// let context = Context::new();
/// let model = machine.fit(&data, &context)?;
/// assert_eq!(&model.predictor(&context)?.predict(data.features())?, data.labels());
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct KernelFisher {
    /// The kernel.
    pub kernel: Kernel,
    /// μ > 0.
    pub mu: f64,
    /// What μ penalises.
    pub ridge: KernelFisherRidge,
    /// Where the boundary of two classes lies.
    pub threshold: KernelFisherThreshold,
    /// Class probabilities in the scores of more than two classes.
    pub priors: Priors,
    /// Rows in the expansion, chosen at random; `None` for all up to 20 000 and 2 000 beyond.
    pub landmarks: Option<usize>,
}

defaults!(KernelFisher {
    kernel: Kernel::Gaussian { gamma: 1.0 },
    mu: 1e-3,
    ridge: KernelFisherRidge::Coefficients,
    threshold: KernelFisherThreshold::Svm,
    priors: Priors::Frequencies,
    landmarks: None,
});

impl Machine for KernelFisher {
    fn fit_with(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        input.fit_selected(Some(&self.kernel), |data| self.train(data, context))
    }

    fn kernel(&self) -> Option<&Kernel> {
        Some(&self.kernel)
    }
}

impl KernelFisher {
    fn train(&self, data: &Dataset, context: &Context) -> Result<Model> {
        let started = Instant::now();
        Error::check_positive("mu", self.mu)?;
        self.kernel.validate()?;
        let classes = check_labelled(data)?;
        let members = classes.rows_by_class();
        let counts: Vec<usize> = members.iter().map(Vec::len).collect();
        let log_priors = self.priors.logarithms(&counts)?;
        let order = members.concat();
        let starts = starts(&counts);
        let chosen = self.choose(&order, context)?;
        let landmarks: Vec<usize> = chosen.iter().map(|&place| order[place]).collect();
        let vectors = landmarks.len() as u128;
        // The products of the kernel values, their sum with the ridge, and its factor.
        memory::check(|| format!("the matrices of {vectors} vectors"), 3 * 8 * vectors * vectors)?;
        let expansion = Expansion {
            blocks: KernelBlocks::new(&self.kernel, data.features(), Some(&landmarks), context)?,
            rows: data.features().select_rows(&order),
            starts: starts.clone(),
            context,
        };
        let means = expansion.class_means()?;
        let (factor, mu) = self.factor(&expansion, &means, context)?;
        let parameters = [
            ("mu", self.mu.into()),
            ("landmarks", landmarks.len().into()),
            ("threshold", self.threshold.to_string().into()),
        ];
        let effort = TrainingSummary::closed_form(started, &parameters);
        let solved = match means.as_slice() {
            [first, second] => self.two_classes(&expansion, &factor, first, second)?,
            _ => several_classes(&means, &log_priors, &factor, data.rows(), context)?,
        };
        let body = Discriminant {
            expansion: KernelExpansion {
                kernel: self.kernel.clone(),
                precision: Precision::F64,
                support: support_table(&self.kernel, data.features(), &landmarks),
                support_rows: landmarks,
                functions: solved.functions.into_iter().map(|(a, b)| whole(a, b)).collect(),
            },
            projections: solved.directions.into_iter().map(|(a, b)| whole(a, b)).collect(),
            separability: solved.separability,
            ratios: solved.ratios,
            feature_scores: Vec::new(),
            regularisation: mu,
        };
        let mut model = rows::model(Classic::KernelFisher, data, body, effort);
        let class_of = |place: usize| starts.partition_point(|&start| start <= place) - 1;
        let mut support_counts = vec![0; counts.len()];
        chosen.iter().for_each(|&place| support_counts[class_of(place)] += 1);
        let mut table = class_table(&classes, support_counts);
        if counts.len() == 2 {
            table.scheme = Scheme::OneVsOne;
        }
        model.classes = Some(table);
        model.calibration = (counts.len() > 2).then_some(Calibration::Softmax);
        Ok(model)
    }
}

/// Coefficients and offsets of functions over the expansion.
struct Solved {
    functions: Vec<(Vec<f64>, f64)>,
    directions: Vec<(Vec<f64>, f64)>,
    ratios: Vec<f64>,
    separability: f64,
}

impl KernelFisher {
    /// Places of the landmarks among the rows, ascending.
    fn choose(&self, order: &[usize], context: &Context) -> Result<Vec<usize>> {
        let rows = order.len();
        let count = match self.landmarks {
            None if rows <= LARGEST_EXACT => rows,
            None => LANDMARKS,
            Some(0) => return Err(Error::parameter("landmarks", "at least 1", 0)),
            Some(count) => count.min(rows),
        };
        let mut places: Vec<usize> = (0..rows).collect();
        if count < rows {
            Generator::new(context.seed()).shuffle(&mut places);
            places.truncate(count);
            places.sort_unstable();
        }
        Ok(places)
    }

    /// The factor of N_μ, and the μ it took.
    fn factor(
        &self,
        expansion: &Expansion<'_>,
        means: &[Vec<f64>],
        context: &Context,
    ) -> Result<(Cholesky, f64)> {
        let width = expansion.blocks.len();
        // N + μK of dependent rows is singular; a ridge of rounding's size decides then.
        let mut ridge = if self.ridge == KernelFisherRidge::Coefficients { self.mu } else { 0.0 };
        for _ in 0..20 {
            // Computed anew after a failure, which is rare: a second copy may not fit.
            let mut matrix = expansion.within(means)?;
            if self.ridge == KernelFisherRidge::Norm {
                expansion.add_gram(&mut matrix, self.mu);
            }
            let level = (0..width).map(|i| matrix[i * width + i]).sum::<f64>() / width as f64;
            (0..width).for_each(|i| matrix[i * width + i] += ridge);
            if let Some(factor) = Cholesky::interruptible(matrix, width, context)? {
                if self.ridge == KernelFisherRidge::Coefficients && ridge > self.mu {
                    warn(context, format!("mu was raised to {ridge:e} to make N + mu I regular"));
                    return Ok((factor, ridge));
                }
                return Ok((factor, self.mu));
            }
            ridge = if ridge == 0.0 { level * f64::EPSILON } else { 10.0 * ridge };
        }
        Err(Error::parameter("mu", "large enough to make N + mu I positive definite", self.mu))
    }

    fn two_classes(
        &self,
        expansion: &Expansion<'_>,
        factor: &Cholesky,
        first: &[f64],
        second: &[f64],
    ) -> Result<Solved> {
        let difference: Vec<f64> = second.iter().zip(first).map(|(b, a)| b - a).collect();
        let mut alpha = difference.clone();
        factor.solve(&mut alpha);
        let separability = dot(&difference, &alpha);
        let (slope, constant) = match self.threshold {
            KernelFisherThreshold::Midpoint => {
                (1.0, -0.5 * (dot(first, &alpha) + dot(second, &alpha)))
            }
            KernelFisherThreshold::Svm => svm_threshold(expansion, &alpha)?,
        };
        // A positive value stands for the first class.
        let coefficients = alpha.iter().map(|value| -slope * value).collect();
        Ok(Solved {
            functions: vec![(coefficients, constant)],
            directions: vec![(alpha, 0.0)],
            ratios: vec![separability],
            separability,
        })
    }
}

/// Slope and constant of a linear support vector machine on the projections, the second class
/// being positive.
fn svm_threshold(expansion: &Expansion<'_>, alpha: &[f64]) -> Result<(f64, f64)> {
    let mut projected = Vec::with_capacity(expansion.rows.rows());
    let mut labels = Vec::with_capacity(expansion.rows.rows());
    expansion.each_block(|class, _, values| {
        for row in values.chunks_exact(alpha.len()) {
            projected.push(dot(row, alpha));
            labels.push(class as i64);
        }
        Ok(())
    })?;
    let count = projected.len() as f64;
    let mean = projected.iter().sum::<f64>() / count;
    let variance = projected.iter().map(|p| (p - mean) * (p - mean)).sum::<f64>() / count;
    let deviation = if variance > 0.0 { variance.sqrt() } else { 1.0 };
    let standard = projected.iter().map(|p| (p - mean) / deviation).collect();
    let data = Dataset::new(rows::table(standard, 1)?, Labels::Int(labels))?;
    let options =
        SolverOptions { tol: 1e-6, precision: Precision::F64, ..SolverOptions::default() };
    let svm = Svc { c: 1.0, kernel: Kernel::Linear, options, ..Svc::default() };
    let model = svm.fit(&data, expansion.context)?;
    // The machine is positive for the first class.
    let slope = -model.linear_weights()?.row(0)[0] / deviation;
    let constant = model.offsets()[0] - slope * mean;
    Ok((slope.max(0.0), constant))
}

fn several_classes(
    means: &[Vec<f64>],
    log_priors: &[f64],
    factor: &Cholesky,
    rows: usize,
    context: &Context,
) -> Result<Solved> {
    let (count, width) = (means.len(), means[0].len());
    let deviations = deviations(means, log_priors);
    let mut solved = deviations.clone();
    context.try_for_each(solved.iter_mut(), |deviation| {
        context.checkpoint()?;
        factor.solve(deviation);
        Ok(())
    })?;
    let gram = times_transposed(&deviations.concat(), &solved.concat(), width, context)?;
    let eigen = eigen_interruptible(gram, count, context)?;
    let mut directions = Vec::new();
    let mut ratios = Vec::new();
    let scale = rows as f64;
    for i in (0..count - 1).take_while(|&i| eigen.values[i] > 1e-12 * eigen.values[0]) {
        context.checkpoint()?;
        let mut alpha = vec![0.0; width];
        // Within-class variance 1 along the direction.
        let unit = (scale / eigen.values[i]).sqrt();
        for (solved, entry) in solved.iter().zip(eigen.vector(i)) {
            add(&mut alpha, solved, unit * entry);
        }
        directions.push((alpha, 0.0));
        ratios.push(scale * eigen.values[i]);
    }
    let functions = means
        .iter()
        .zip(log_priors)
        .map(|(mean, log_prior)| {
            context.checkpoint()?;
            let (mut coefficients, mut offset) = (vec![0.0; width], -log_prior);
            for (alpha, _) in &directions {
                let place = dot(alpha, mean);
                add(&mut coefficients, alpha, place);
                offset += 0.5 * place * place;
            }
            Ok((coefficients, offset))
        })
        .collect::<Result<_>>()?;
    let separability = ratios.iter().sum();
    Ok(Solved { functions, directions, ratios, separability })
}

fn starts(counts: &[usize]) -> Vec<usize> {
    let mut starts = vec![0];
    counts.iter().for_each(|count| starts.push(starts[starts.len() - 1] + count));
    starts
}

/// A function over all support vectors.
fn whole(coefficients: Vec<f64>, offset: f64) -> DecisionFunction {
    DecisionFunction { parts: vec![Part { support: 0..coefficients.len(), coefficients }], offset }
}
