//! Prediction by weights: ⟨wf, x⟩ for all functions f of a linear model in one pass over a row.

use std::ops::Range;

use crate::context::Context;
use crate::data::{Csr, Dense, Matrix};
use crate::error::{Error, Result};
use crate::machine::model::Model;
use crate::numeric::InstructionSet;
use crate::numeric::simd::Real;
use crate::solver::linear::rows::{DenseRows, LinearRows};

/// The weights of a model, laid out for prediction.
pub(in crate::machine) struct LinearScores {
    features: usize,
    functions: usize,
    /// Function after function.
    weights: Vec<f64>,
    /// Feature after feature, when there is more than one function.
    turned: Vec<f64>,
    set: InstructionSet,
}

impl LinearScores {
    pub(in crate::machine) fn new(model: &Model, context: &Context) -> Self {
        let (features, functions) = (model.support.columns(), model.functions.len());
        let mut weights = vec![0.0; features * functions];
        for (f, function) in model.functions.iter().enumerate() {
            let sign = function.coefficient(f);
            let own = &mut weights[f * features..(f + 1) * features];
            model.support.copy_row(f, own);
            own.iter_mut().for_each(|weight| *weight *= sign);
        }
        let mut turned = Vec::with_capacity(if functions > 1 { weights.len() } else { 0 });
        if functions > 1 {
            for j in 0..features {
                turned.extend((0..functions).map(|f| weights[f * features + j]));
            }
        }
        Self { features, functions, weights, turned, set: context.instruction_set() }
    }

    /// Adds the scores of the rows to `out`, all functions of a row side by side.
    pub(in crate::machine) fn add(
        &self,
        features: &Matrix,
        rows: Range<usize>,
        out: &mut [f64],
    ) -> Result<()> {
        if features.columns() != self.features {
            return Err(Error::length("features", self.features, features.columns()));
        }
        match features {
            Matrix::DenseF32(table) => self.add_dense(table, rows, out),
            Matrix::DenseF64(table) => self.add_dense(table, rows, out),
            Matrix::SparseF32(table) => self.add_sparse(table, rows, out),
            Matrix::SparseF64(table) => self.add_sparse(table, rows, out),
        }
        Ok(())
    }

    fn add_dense<T: Real>(&self, table: &Dense<T>, rows: Range<usize>, out: &mut [f64]) {
        let table = DenseRows::new(table, None, self.set);
        for (row, out) in rows.zip(out.chunks_exact_mut(self.functions)) {
            for (value, weights) in out.iter_mut().zip(self.weights.chunks_exact(self.features)) {
                *value += table.dot(row, weights);
            }
        }
    }

    fn add_sparse<T: Real>(&self, table: &Csr<T>, rows: Range<usize>, out: &mut [f64]) {
        for (row, out) in rows.zip(out.chunks_exact_mut(self.functions)) {
            let (indices, values) = table.row(row);
            for (&j, value) in indices.iter().zip(values) {
                let (j, value) = (j as usize, value.to_f64());
                if let [out] = out {
                    *out += value * self.weights[j];
                } else {
                    let weights = &self.turned[j * self.functions..(j + 1) * self.functions];
                    for (out, weight) in out.iter_mut().zip(weights) {
                        *out += value * weight;
                    }
                }
            }
        }
    }
}
