//! Training on kernel values of single precision, with the effect of their rounding measured.
//!
//! Single precision halves the time and the memory of a training. What its rounding does to a solution is
//! seen in the decision values: those of some training rows are computed in both precisions, and where they
//! differ by more than a share of the tolerance the training goes on in double precision from the
//! solution at hand. Where coefficients are so small that the rounding of their kernel values cannot show, nothing
//! is compared.

use super::fit::{FitInput, Machine, PenaltyPath, SharedKernel, WarmStart};
use super::local_duals::LocalDuals;
use super::model::{KernelExpansion, Model};
use super::parameters::Precision;
use super::warm_start::Start;
use crate::context::Context;
use crate::data::{Dense, Label, Matrix};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::numeric::simd::Real;

/// Rows whose decision values are computed in both precisions. Rounding adds up alike in all rows, so
/// that few show its size; as many as this cost little beside a training on more.
const COMPARED_ROWS: usize = 64;

/// How a machine in both precisions is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Rounding {
    /// Models stay in single precision unless rounding shows.
    Tolerated,
    /// Predictions are in double precision either way.
    Unwanted,
}

impl Rounding {
    /// Share of the tolerance by which rounding may move decision values. The violation is a difference of
    /// two of them, so that it stays within 3 and 1.2 times what was asked for.
    fn tolerated_share(self) -> f64 {
        match self {
            Self::Tolerated => 1.0,
            Self::Unwanted => 0.1,
        }
    }
}

/// One machine in both precisions.
pub(in crate::machine) struct MixedPrecision {
    /// In single precision.
    pub(in crate::machine) single: Box<dyn Machine>,
    /// In double precision.
    pub(in crate::machine) double: Box<dyn Machine>,
    /// The tolerance of its optimality conditions.
    pub(in crate::machine) tol: f64,
    pub(in crate::machine) rounding: Rounding,
}

impl Machine for MixedPrecision {
    fn fit_with(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        let model = self.single.fit_with(input, context)?;
        self.verified(model, input, context)
    }

    fn kernel(&self) -> Option<&Kernel> {
        self.usual().kernel()
    }

    fn precision(&self) -> Precision {
        self.usual().precision()
    }

    fn unlabelled(&self) -> Option<&Label> {
        self.usual().unlabelled()
    }

    fn warm_start(&self) -> Option<&dyn WarmStart> {
        self.single.warm_start().map(|_| self as &dyn WarmStart)
    }

    fn penalty_path(&self) -> Option<&dyn PenaltyPath> {
        self.usual().penalty_path()
    }

    fn local_duals(&self, input: &FitInput<'_>) -> Option<Result<LocalDuals>> {
        self.usual().local_duals(input)
    }

    fn shared_kernel(&self) -> Option<&dyn SharedKernel> {
        self.usual().shared_kernel()
    }
}

impl WarmStart for MixedPrecision {
    fn fit_from(&self, input: FitInput<'_>, start: Start<'_>, context: &Context) -> Result<Model> {
        let Some(single) = self.single.warm_start() else { return self.fit_with(input, context) };
        let model = single.fit_from(input, start, context)?;
        self.verified(model, input, context)
    }
}

impl MixedPrecision {
    /// The machine that stands for this one where trainings are not its own.
    fn usual(&self) -> &dyn Machine {
        match self.rounding {
            Rounding::Tolerated => &*self.single,
            Rounding::Unwanted => &*self.double,
        }
    }

    /// The model, trained further where single precision was too coarse.
    fn verified(&self, mut model: Model, input: FitInput<'_>, context: &Context) -> Result<Model> {
        match model.expansion().map(|expansion| expansion.precision) {
            // Its values would have overflowed, and it was trained in double precision.
            Some(Precision::F64) => return Ok(model),
            Some(Precision::F32) if self.is_exact_enough(&mut model, input, context)? => {
                return Ok(model);
            }
            _ => {}
        }
        match self.double.warm_start() {
            Some(double) => double.fit_from(input, Start::Values(&model), context),
            None => self.double.fit_with(input, context),
        }
    }

    /// Whether rounding moves the decision values of a model in single precision by less than is tolerated;
    /// leaves it in the precision of its predictions.
    fn is_exact_enough(
        &self,
        model: &mut Model,
        input: FitInput<'_>,
        context: &Context,
    ) -> Result<bool> {
        let tolerated = self.rounding.tolerated_share() * self.tol;
        let is_small =
            model.expansion().and_then(rounding_estimate).is_some_and(|most| most <= tolerated);
        let is_exact = is_small
            || rounding(model, input, context)? <= tolerated
            || context.stop_request().is_some();
        let stays = is_exact && self.rounding == Rounding::Tolerated;
        if let Some(expansion) = model.expansion_mut() {
            expansion.precision = if stays { Precision::F32 } else { Precision::F64 };
        }
        Ok(is_exact)
    }
}

/// The largest difference between the decision values of some rows in single and in double precision;
/// leaves the model in double precision.
fn rounding(model: &mut Model, input: FitInput<'_>, context: &Context) -> Result<f64> {
    let count = input.rows().count();
    let stride = count.div_ceil(COMPARED_ROWS).max(1);
    let rows: Vec<usize> = input.rows().step_by(stride).collect();
    let values = |model: &Model| -> Result<Vec<f64>> {
        let predictor = model.predictor(context)?;
        Ok(predictor.decision_values_of(input.data().features(), &rows)?.values().to_vec())
    };
    let single = values(model)?;
    if let Some(expansion) = model.expansion_mut() {
        expansion.precision = Precision::F64;
    }
    let double = values(model)?;
    Ok(single.iter().zip(&double).map(|(s, d)| (s - d).abs()).fold(0.0, f64::max))
}

/// Most that rounding in single precision moves decision values for vectors about as far from their mean as the
/// support vectors are; `None` where a look at some values costs less than knowing.
///
/// A value exp(−γ(‖x‖² + ‖z‖² − 2⟨x, z⟩)) of centred x and z has a relative error of some units of
/// precision for itself and of as many times γ(‖x‖² + ‖z‖²) for the sums, and all of them may add up.
fn rounding_estimate(expansion: &KernelExpansion) -> Option<f64> {
    let Kernel::Gaussian { gamma } = expansion.kernel else { return None };
    let distances = match &expansion.support {
        Matrix::DenseF32(vectors) => distances_from_mean(vectors),
        Matrix::DenseF64(vectors) => distances_from_mean(vectors),
        Matrix::SparseF32(_) | Matrix::SparseF64(_) => return None,
    };
    let error = |(s, coefficient): (usize, &f64)| {
        coefficient.abs() * 2.0 * (1.0 + 2.0 * gamma * distances[s])
    };
    let of_function = |parts: &[super::model::Part]| -> f64 {
        parts.iter().flat_map(|part| part.support.clone().zip(&part.coefficients)).map(error).sum()
    };
    let largest =
        expansion.functions.iter().map(|function| of_function(&function.parts)).fold(0.0, f64::max);
    Some(f64::from(f32::EPSILON) * largest)
}

/// The squared distance of every row from the mean row.
fn distances_from_mean<T: Real>(rows: &Dense<T>) -> Vec<f64> {
    let mut mean = vec![0.0; rows.columns()];
    for row in (0..rows.rows()).map(|i| rows.row(i)) {
        mean.iter_mut().zip(row).for_each(|(sum, value)| *sum += value.to_f64());
    }
    let count = rows.rows().max(1) as f64;
    mean.iter_mut().for_each(|sum| *sum /= count);
    let distance = |i: usize| {
        rows.row(i).iter().zip(&mean).map(|(value, mean)| (value.to_f64() - mean).powi(2)).sum()
    };
    (0..rows.rows()).map(distance).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dataset, Dense, Labels, Matrix};
    use crate::machine::{MachineKind, Specification, Svc};
    use crate::numeric::random::Generator;

    /// Two overlapping classes.
    fn data(rows: usize) -> Dataset {
        let mut generator = Generator::new(3);
        let labels: Vec<i64> = (0..rows).map(|i| (i % 2) as i64).collect();
        let place = |i: usize| (i % 2) as f64;
        let values = (0..2 * rows).map(|at| place(at / 2) + 1.5 * generator.unit()).collect();
        let features = Matrix::DenseF64(Dense::new(rows, 2, values).unwrap());
        Dataset::new(features, Labels::Int(labels)).unwrap()
    }

    fn machine(c: f64, data: &Dataset, precision: &str) -> Box<dyn Machine> {
        let mut specification = Specification::new(MachineKind::CSvc);
        specification.set("c", c).unwrap();
        specification.set("gamma", 2.0).unwrap();
        specification.set("precision", precision).unwrap();
        specification.build(data, 0).unwrap()
    }

    #[test]
    fn the_optimum_is_that_of_double_precision() {
        let (data, context) = (data(300), Context::new());
        for c in [1.0, 1e6] {
            let mixed = machine(c, &data, "mixed").fit(&data, &context).unwrap();
            let kernel = Kernel::Gaussian { gamma: 2.0 };
            let options = crate::machine::SolverOptions {
                precision: Precision::F64,
                ..crate::machine::SolverOptions::default()
            };
            let double = Svc { c, kernel, options, ..Svc::default() }.fit(&data, &context).unwrap();
            let dual = |model: &Model| model.training.as_ref().unwrap().outcome.dual;
            assert_eq!(mixed.precision(), Precision::F64);
            let difference = (dual(&mixed) - dual(&double)).abs() / dual(&double);
            assert!(difference < 1e-5, "C = {c}: {difference}");
            // The conditions hold for decision values in double precision.
            let values = mixed.predictor(&context).unwrap();
            let values = values.decision_values(data.features()).unwrap();
            let mut coefficient = vec![0.0; data.rows()];
            let expansion = mixed.expansion().unwrap();
            for (s, &row) in expansion.support_rows.iter().enumerate() {
                coefficient[row] = expansion.functions[0].coefficient(s);
            }
            let support = coefficient.iter().position(|&value| value != 0.0).unwrap();
            let sign = if (coefficient[support] > 0.0) == (support % 2 == 0) { 1.0 } else { -1.0 };
            for i in 0..data.rows() {
                let y = if i % 2 == 0 { sign } else { -sign };
                let (margin, alpha) = (y * values.values()[i] - 1.0, y * coefficient[i]);
                assert!(alpha < 1e-9 * c || margin < 1.3e-3, "row {i}: {margin}, {alpha}");
                assert!(alpha > c * (1.0 - 1e-9) || margin > -1.3e-3, "row {i}: {margin}, {alpha}");
            }
        }
    }

    #[test]
    fn rows_that_single_precision_holds_are_trained_and_predicted_in_it() {
        let features = Dense::new(4, 1, vec![0.0_f64, 1.0, 3.0, 4.0]).unwrap();
        let data = Dataset::new(Matrix::DenseF64(features), Labels::Int(vec![0, 0, 1, 1])).unwrap();
        for precision in ["mixed", "auto"] {
            let model = machine(1.0, &data, precision).fit(&data, &Context::new()).unwrap();
            assert_eq!(model.precision(), Precision::F32);
        }
    }

    /// Of the same rows in single precision, so that only kernel values are rounded.
    #[test]
    fn rounding_that_shows_is_refined_where_nothing_else_was_asked_for() {
        let (data, context) = (data(300), Context::new());
        let Matrix::DenseF64(rows) = data.features() else { unreachable!() };
        let rows: Vec<f32> = rows.values().iter().map(|&value| value as f32).collect();
        let rows = Matrix::DenseF32(Dense::new(300, 2, rows).unwrap());
        let data = Dataset::new(rows, data.labels().clone()).unwrap();
        let fit = |c: f64, precision: &str| machine(c, &data, precision).fit(&data, &context);
        for (c, expected) in [(1.0, Precision::F32), (1e6, Precision::F64)] {
            let (model, double) = (fit(c, "auto").unwrap(), fit(c, "f64").unwrap());
            assert_eq!(model.precision(), expected, "C = {c}");
            let dual = |model: &Model| model.training.as_ref().unwrap().outcome.dual;
            assert!((dual(&model) / dual(&double) - 1.0).abs() < 1e-6, "C = {c}");
        }
        let single = fit(1e6, "f32").unwrap();
        assert_eq!(single.precision(), Precision::F32);
    }

    #[test]
    fn the_estimate_of_rounding_is_not_below_it() {
        let (data, context) = (data(300), Context::new());
        for c in [1.0, 100.0, 1e4] {
            let mut model = machine(c, &data, "f32").fit(&data, &context).unwrap();
            let estimate = rounding_estimate(model.expansion().unwrap()).unwrap();
            let difference = rounding(&mut model, FitInput::new(&data), &context).unwrap();
            assert!(difference <= estimate, "C = {c}: {difference:e} above {estimate:e}");
            assert!(estimate <= 1e3 * difference, "C = {c}: {estimate:e} for {difference:e}");
        }
    }
}
