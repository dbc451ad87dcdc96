//! Training on kernel values of single precision, with the effect of their rounding measured.
//!
//! Single precision halves the time and the memory of a training. What its rounding does to a solution is
//! seen in the decision values: those of some training rows are computed in both precisions, and where they
//! differ by more than a share of the tolerance the training goes on in double precision from the
//! solution at hand. Predictions are in double precision either way.

use super::fit::{FitInput, Machine, PenaltyPath, SharedKernel, WarmStart};
use super::local_duals::LocalDuals;
use super::model::Model;
use super::parameters::Precision;
use super::warm_start::Start;
use crate::context::Context;
use crate::error::Result;
use crate::kernel::Kernel;

/// Rows whose decision values are computed in both precisions. Rounding adds up alike in all rows, so
/// that few show its size; as many as this cost little beside a training on more.
const COMPARED_ROWS: usize = 64;

/// Share of the tolerance by which rounding may move decision values. The violation is a difference
/// of two of them, so that it stays within 1.2 times what was asked for.
const TOLERATED_SHARE: f64 = 0.1;

/// One machine in both precisions.
pub(in crate::machine) struct MixedPrecision {
    /// In single precision.
    pub(in crate::machine) single: Box<dyn Machine>,
    /// In double precision.
    pub(in crate::machine) double: Box<dyn Machine>,
    /// The tolerance of its optimality conditions.
    pub(in crate::machine) tol: f64,
}

impl Machine for MixedPrecision {
    fn fit_with(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        let model = self.single.fit_with(input, context)?;
        self.verified(model, input, context)
    }

    fn kernel(&self) -> Option<&Kernel> {
        self.double.kernel()
    }

    fn precision(&self) -> Precision {
        self.double.precision()
    }

    fn warm_start(&self) -> Option<&dyn WarmStart> {
        self.single.warm_start().map(|_| self as &dyn WarmStart)
    }

    fn penalty_path(&self) -> Option<&dyn PenaltyPath> {
        self.double.penalty_path()
    }

    fn local_duals(&self, input: &FitInput<'_>) -> Option<Result<LocalDuals>> {
        self.double.local_duals(input)
    }

    fn shared_kernel(&self) -> Option<&dyn SharedKernel> {
        self.double.shared_kernel()
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
    /// The model with predictions in double precision, trained further where single precision was
    /// too coarse.
    fn verified(&self, mut model: Model, input: FitInput<'_>, context: &Context) -> Result<Model> {
        match model.expansion().map(|expansion| expansion.precision) {
            // Its values would have overflowed, and it was trained in double precision.
            Some(Precision::F64) => return Ok(model),
            Some(Precision::F32) => {
                let difference = rounding(&mut model, input, context)?;
                if difference <= TOLERATED_SHARE * self.tol || context.stop_request().is_some() {
                    return Ok(model);
                }
            }
            None => {}
        }
        match self.double.warm_start() {
            Some(double) => double.fit_from(input, Start::Values(&model), context),
            None => self.double.fit_with(input, context),
        }
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

    fn machine(c: f64, data: &Dataset) -> Box<dyn Machine> {
        let mut specification = Specification::new(MachineKind::CSvc);
        specification.set("c", c).unwrap();
        specification.set("gamma", 2.0).unwrap();
        specification.set("precision", "mixed").unwrap();
        specification.build(data, 0).unwrap()
    }

    #[test]
    fn the_optimum_is_that_of_double_precision() {
        let (data, context) = (data(300), Context::new());
        for c in [1.0, 1e6] {
            let mixed = machine(c, &data).fit(&data, &context).unwrap();
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
        let model = machine(1.0, &data).fit(&data, &Context::new()).unwrap();
        assert_eq!(model.precision(), Precision::F32);
    }
}
