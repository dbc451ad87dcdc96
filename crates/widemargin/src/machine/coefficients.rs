//! A model's coefficients as other programs lay them out.

use super::model::{Model, Scheme};
use crate::data::{Dense, memory};
use crate::error::{Error, Result};
use crate::kernel::Kernel;

impl Model {
    /// The coefficients of all support vectors, row by row, with the number of rows.
    ///
    /// With a function per pair of k classes this is LIBSVM's `sv_coef`: k − 1 rows, a support
    /// vector of class i holding its coefficient against class j in row j (j < i) or j − 1 (j > i).
    /// Otherwise there is a row per function.
    pub fn dual_coefficients(&self) -> (usize, Vec<f64>) {
        let count = self.support_count();
        match &self.classes {
            Some(table) if matches!(table.scheme, Scheme::OneVsOne | Scheme::Dag) => {
                let classes = table.names.len();
                let mut starts = vec![0];
                for support in &table.support {
                    starts.push(starts[starts.len() - 1] + support);
                }
                let rows = classes.saturating_sub(1);
                let mut values = vec![0.0; rows * count];
                let pairs = (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j)));
                for ((i, j), function) in pairs.zip(self.functions()) {
                    for part in &function.parts {
                        for (s, &coefficient) in part.support.clone().zip(&part.coefficients) {
                            let row = if s < starts[i + 1] { j - 1 } else { i };
                            values[row * count + s] = coefficient;
                        }
                    }
                }
                (rows, values)
            }
            _ => {
                let mut values = vec![0.0; self.functions().len() * count];
                for (f, function) in self.functions().iter().enumerate() {
                    for part in &function.parts {
                        let start = f * count + part.support.start;
                        values[start..start + part.coefficients.len()]
                            .copy_from_slice(&part.coefficients);
                    }
                }
                (self.functions().len(), values)
            }
        }
    }

    /// The weight of every feature in every function, one row per function; for a linear kernel
    /// w = Σ cₛ xₛ.
    ///
    /// # Errors
    /// [`Error::Model`] unless the functions are linear; [`Error::TooLarge`] when there is no memory for them.
    pub fn linear_weights(&self) -> Result<Dense<f64>> {
        // The weights and those of one function while they are collected.
        let bytes = 8 * (self.outputs() as u128 + 1) * self.features() as u128;
        memory::check(|| format!("the weights of {} features", self.features()), bytes)?;
        if let Some(linear) = self.linear() {
            let weights = (0..self.outputs()).flat_map(|f| linear.function_weights(f)).collect();
            return Dense::new(self.outputs(), linear.weights.columns(), weights);
        }
        let Some(expansion) = self.expansion().filter(|e| e.kernel == Kernel::Linear) else {
            let found = self.kernel().map_or(self.kind.to_string(), |kernel| kernel.name().into());
            return Err(Error::model(format!("only a linear kernel has weights, not {found}")));
        };
        let (functions, width) = (&expansion.functions, expansion.support.columns());
        let mut weights = vec![0.0; functions.len() * width];
        for (function, weights) in functions.iter().zip(weights.chunks_mut(width.max(1))) {
            for part in &function.parts {
                for (s, &coefficient) in part.support.clone().zip(&part.coefficients) {
                    expansion.support.for_each_nonzero(s, |j, x| weights[j] += coefficient * x);
                }
            }
        }
        Dense::new(functions.len(), width, weights)
    }
}

#[cfg(test)]
mod tests {
    use crate::Context;
    use crate::data::{Csr, Dataset, Dense, Labels, Matrix};
    use crate::kernel::Kernel;
    use crate::machine::model::Part;
    use crate::machine::{
        DecisionFunction, FitInput, KernelExpansion, Machine, MachineKind, Model, Precision,
        Scheme, Start, Svc, WarmStart,
    };

    fn trained(scheme: Scheme) -> (Dataset, Model) {
        let value = |i: usize| ((i * 7919) % 101) as f64 / 50.0 - 1.0;
        let rows = Dense::new(60, 3, (0..180).map(value).collect()).unwrap();
        let labels = (0..60).map(|i| (i % 4) as i64).collect();
        let data = Dataset::new(Matrix::DenseF64(rows), Labels::Int(labels)).unwrap();
        let svc = Svc { kernel: Kernel::Linear, scheme, ..Svc::default() };
        let model = svc.fit(&data, &Context::new()).unwrap();
        (data, model)
    }

    #[test]
    fn weights_and_offsets_are_the_decision_functions() {
        for scheme in [Scheme::OneVsOne, Scheme::OneVsRest] {
            let (data, model) = trained(scheme);
            let context = Context::new();
            let values =
                model.predictor(&context).unwrap().decision_values(data.features()).unwrap();
            let weights = model.linear_weights().unwrap();
            let mut row = [0.0; 3];
            for i in 0..data.rows() {
                data.features().copy_row(i, &mut row);
                for (f, function) in model.functions().iter().enumerate() {
                    let dot: f64 = weights.row(f).iter().zip(&row).map(|(w, x)| w * x).sum();
                    assert!((dot - function.offset - values.row(i)[f]).abs() < 1e-4);
                }
            }
        }
    }

    #[test]
    fn pairs_lie_where_libsvm_puts_them() {
        let (_, model) = trained(Scheme::OneVsOne);
        let (rows, values) = model.dual_coefficients();
        let (count, table) = (model.support_count(), model.classes.as_ref().unwrap());
        assert_eq!((rows, values.len()), (3, 3 * count));
        let class_of: Vec<usize> =
            table.support.iter().enumerate().flat_map(|(c, &n)| vec![c; n]).collect();
        for s in 0..count {
            for other in (0..4).filter(|&other| other != class_of[s]) {
                let (i, j) = (class_of[s].min(other), class_of[s].max(other));
                let pair = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
                let f = pair.iter().position(|&p| p == (i, j)).unwrap();
                let row = if other > class_of[s] { other - 1 } else { other };
                assert_eq!(values[row * count + s], model.functions()[f].coefficient(s));
            }
        }
    }

    #[test]
    fn a_start_at_the_optimum_needs_no_steps() {
        let (data, model) = trained(Scheme::OneVsOne);
        let svc = Svc { kernel: Kernel::Linear, ..Svc::default() };
        let again =
            svc.fit_from(FitInput::new(&data), Start::of(&model, &svc), &Context::new()).unwrap();
        let steps = |model: &Model| model.training.as_ref().unwrap().outcome.iterations;
        assert!(steps(&model) > 20 && steps(&again) <= 6, "{} {}", steps(&model), steps(&again));
    }

    #[test]
    fn weights_that_memory_cannot_hold_are_refused() {
        let support = Csr::new(1 << 50, vec![0, 1], vec![7], vec![1.0]).unwrap();
        let part = Part { support: 0..1, coefficients: vec![1.0] };
        let body = KernelExpansion {
            kernel: Kernel::Linear,
            precision: Precision::F64,
            support: Matrix::SparseF64(support),
            support_rows: Vec::new(),
            functions: vec![DecisionFunction { parts: vec![part], offset: 0.0 }],
        };
        let error = Model::new(MachineKind::EpsilonSvr, body).linear_weights().unwrap_err();
        assert!(matches!(error, crate::Error::TooLarge { .. }), "{error}");
    }
}
