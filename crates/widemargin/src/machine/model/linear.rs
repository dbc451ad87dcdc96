//! Weights of the features: f(x) = ⟨w, x⟩ − ρ for all functions of a model in one pass over a row.

use std::ops::Range;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::expansion::subtract;
use super::parts::{PartsReader, PartsResult, PartsWriter, from_header, to_header};
use super::validate::{check_classes, check_finite, check_length};
use super::{Description, Evaluation, MachineKind, Model, ModelBody, Prepared, run_of};
use crate::context::Context;
use crate::data::{Csr, Dense, Matrix};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::numeric::InstructionSet;
use crate::numeric::simd::Real;
use crate::solver::linear::rows::{DenseRows, LinearRows};

/// Features up to which weights that are stored sparsely are laid out as a table.
const FEW_FEATURES: usize = 1 << 20;

/// Linear decision functions.
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    /// The weights, one row per function.
    pub weights: Matrix,
    /// The offset ρ of every function.
    pub offsets: Vec<f64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    features: usize,
}

impl Linear {
    /// The weights of one function.
    pub(crate) fn function_weights(&self, function: usize) -> Vec<f64> {
        let mut weights = vec![0.0; self.weights.columns()];
        self.weights.copy_row(function, &mut weights);
        weights
    }
}

impl ModelBody for Linear {
    fn suits(&self, kind: MachineKind) -> bool {
        MachineKind::LINEAR.contains(&kind) || kind == MachineKind::SemiSupervised
    }

    fn vectors(&self) -> &Matrix {
        &self.weights
    }

    fn outputs(&self, _model: &Model) -> usize {
        self.offsets.len()
    }

    fn check(&self, model: &Model) -> Result<()> {
        check_length("weight vectors", self.offsets.len(), self.weights.rows())?;
        check_finite("offsets", &self.offsets)?;
        let expected = match &model.classes {
            Some(table) => check_classes(table, Some(self.weights.rows()))?,
            None => 1,
        };
        check_length("decision functions", expected, self.offsets.len())
    }

    fn describe(&self, _model: &Model) -> Description {
        Description {
            kernel: Some(Kernel::Linear),
            functions: self.offsets.len(),
            nonzeros: Some(self.weights.nonzeros()),
            has_dual: true,
            ..Description::of_vectors("weights")
        }
    }

    fn prepare(&self, _model: &Model, context: &Context) -> Result<Box<dyn Prepared>> {
        Ok(Box::new(Scores::new(self, context.instruction_set())))
    }

    fn write(&self, parts: &mut PartsWriter) -> PartsResult<Value> {
        parts.put_matrix("weights", &self.weights);
        parts.put_list("offsets", self.offsets.iter().copied());
        to_header(&Header { features: self.weights.columns() })
    }

    fn read(header: Value, parts: &mut PartsReader<'_>) -> PartsResult<Self> {
        let header: Header = from_header(header)?;
        Ok(Self {
            weights: parts.take_matrix("weights", header.features)?,
            offsets: parts.take_list("offsets")?,
        })
    }

    fn linear(&self) -> Option<&Linear> {
        Some(self)
    }

    fn takes_mapped_features(&self) -> bool {
        true
    }

    fn offsets(&self) -> Vec<f64> {
        self.offsets.clone()
    }

    fn offset_mut(&mut self, function: usize) -> Option<&mut f64> {
        self.offsets.get_mut(function)
    }

    fn reorder(&mut self, functions: &[(usize, f64)], _vectors: &[usize]) -> bool {
        self.offsets = functions.iter().map(|&(f, sign)| sign * self.offsets[f]).collect();
        self.weights = arranged(&self.weights, functions);
        true
    }

    fn widen(&mut self, features: usize) -> bool {
        self.weights = self.weights.clone().resized_columns(features);
        true
    }
}

/// Rows of weights in another order, multiplied with a sign each.
pub(crate) fn arranged(weights: &Matrix, functions: &[(usize, f64)]) -> Matrix {
    let columns = weights.columns();
    if !weights.is_sparse() {
        let mut values = vec![0.0; functions.len() * columns];
        for (&(f, sign), row) in functions.iter().zip(values.chunks_exact_mut(columns.max(1))) {
            weights.copy_row(f, row);
            row.iter_mut().for_each(|weight| *weight *= sign);
        }
        let table = Dense::new(functions.len(), columns, values);
        return Matrix::DenseF64(table.expect("one value per function and feature"));
    }
    let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for &(f, sign) in functions {
        weights.for_each_nonzero(f, |j, weight| {
            indices.push(j as u32);
            values.push(sign * weight);
        });
        starts.push(indices.len());
    }
    Matrix::SparseF64(Csr::new(columns, starts, indices, values).expect("ascending indices"))
}

/// Weights laid out for prediction.
struct Scores {
    features: usize,
    offsets: Vec<f64>,
    set: InstructionSet,
    layout: WeightLayout,
}

enum WeightLayout {
    Table(Table),
    /// Of so many features that a table is made only for rows that are as large.
    Sparse(SparseWeights),
}

/// All weights.
struct Table {
    /// Function after function.
    by_function: Vec<f64>,
    /// Feature after feature, when there is more than one function.
    by_feature: Vec<f64>,
}

/// The features with a weight that is not 0, and those weights.
struct SparseWeights {
    weights: Matrix,
    /// Ascending.
    used: Vec<u32>,
    /// Feature after feature.
    by_feature: Vec<f64>,
    table: OnceLock<Table>,
}

impl Table {
    fn new(weights: &Matrix) -> Self {
        let (functions, features) = (weights.rows(), weights.columns());
        let mut by_function = vec![0.0; features * functions];
        for (f, own) in by_function.chunks_exact_mut(features.max(1)).enumerate() {
            weights.copy_row(f, own);
        }
        let mut by_feature = Vec::new();
        if functions > 1 {
            by_feature.reserve_exact(by_function.len());
            for j in 0..features {
                by_feature.extend((0..functions).map(|f| by_function[f * features + j]));
            }
        }
        Self { by_function, by_feature }
    }
}

impl SparseWeights {
    fn new(weights: &Matrix) -> Self {
        let functions = weights.rows();
        let mut used = Vec::new();
        for f in 0..functions {
            weights.for_each_nonzero(f, |j, _| used.push(j as u32));
        }
        used.sort_unstable();
        used.dedup();
        let mut by_feature = vec![0.0; used.len() * functions];
        for f in 0..functions {
            weights.for_each_nonzero(f, |j, weight| {
                let place = used.partition_point(|&other| (other as usize) < j);
                by_feature[place * functions + f] = weight;
            });
        }
        Self { weights: weights.clone(), used, by_feature, table: OnceLock::new() }
    }

    fn of_feature(&self, j: u32, functions: usize) -> Option<&[f64]> {
        let place = self.used.binary_search(&j).ok()?;
        Some(&self.by_feature[place * functions..(place + 1) * functions])
    }
}

impl Scores {
    fn new(body: &Linear, set: InstructionSet) -> Self {
        let features = body.weights.columns();
        let layout = if body.weights.is_sparse() && features > FEW_FEATURES {
            WeightLayout::Sparse(SparseWeights::new(&body.weights))
        } else {
            WeightLayout::Table(Table::new(&body.weights))
        };
        Self { features, offsets: body.offsets.clone(), set, layout }
    }

    fn add_dense<T: Real>(&self, queries: &Dense<T>, rows: Range<usize>, out: &mut [f64]) {
        let table = match &self.layout {
            WeightLayout::Table(table) => table,
            WeightLayout::Sparse(sparse) => {
                sparse.table.get_or_init(|| Table::new(&sparse.weights))
            }
        };
        let queries = DenseRows::new(queries, None, self.set);
        for (row, out) in rows.zip(out.chunks_exact_mut(self.offsets.len())) {
            for (value, weights) in
                out.iter_mut().zip(table.by_function.chunks_exact(self.features))
            {
                *value += queries.dot(row, weights);
            }
        }
    }

    fn add_sparse<T: Real>(&self, queries: &Csr<T>, rows: Range<usize>, out: &mut [f64]) {
        let functions = self.offsets.len();
        for (row, out) in rows.zip(out.chunks_exact_mut(functions)) {
            let (indices, values) = queries.row(row);
            let pairs = indices.iter().zip(values).map(|(&j, value)| (j, value.to_f64()));
            match (&self.layout, &mut *out) {
                (WeightLayout::Table(table), [out]) => {
                    pairs.for_each(|(j, value)| *out += value * table.by_function[j as usize]);
                }
                (WeightLayout::Table(table), out) => pairs.for_each(|(j, value)| {
                    let first = j as usize * functions;
                    add_times(out, value, &table.by_feature[first..first + functions]);
                }),
                (WeightLayout::Sparse(sparse), out) => pairs.for_each(|(j, value)| {
                    if let Some(weights) = sparse.of_feature(j, functions) {
                        add_times(out, value, weights);
                    }
                }),
            }
        }
    }
}

/// Adds `value` times the weights.
fn add_times(out: &mut [f64], value: f64, weights: &[f64]) {
    out.iter_mut().zip(weights).for_each(|(out, weight)| *out += value * weight);
}

impl Prepared for Scores {
    fn evaluate(&self, evaluation: Evaluation<'_>) -> Result<()> {
        let Evaluation { queries, rows, out, .. } = evaluation;
        if queries.columns() != self.features {
            return Err(Error::length("features", self.features, queries.columns()));
        }
        let rows = run_of(rows);
        match queries {
            Matrix::DenseF32(table) => self.add_dense(table, rows, out),
            Matrix::DenseF64(table) => self.add_dense(table, rows, out),
            Matrix::SparseF32(table) => self.add_sparse(table, rows, out),
            Matrix::SparseF64(table) => self.add_sparse(table, rows, out),
        }
        subtract(out, &self.offsets);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scratch;
    use super::*;
    use crate::data::Layout as Storage;

    /// Two functions over so many features that a table of their weights would take 64 GiB.
    fn wide(features: usize) -> Linear {
        let indices = vec![3, features as u32 - 1, 3, 7];
        let weights = Csr::new(features, vec![0, 2, 4], indices, vec![0.5, -2.0, 1.5, 4.0]);
        Linear { weights: Matrix::SparseF64(weights.unwrap()), offsets: vec![0.25, -1.0] }
    }

    #[test]
    fn many_features_cost_what_is_stored() {
        let features = u32::MAX as usize;
        let model = Model::new(MachineKind::LinearSvr, wide(features));
        let context = Context::new();
        let prepared = model.body.get().prepare(&model, &context).unwrap();
        let query = Csr::new(features, vec![0, 2, 3], vec![3, 9, 7], vec![2.0, 1.0, 3.0]).unwrap();
        let mut out = vec![0.0; 4];
        let rows = Matrix::SparseF64(query);
        let (scratch, context) = (&mut Scratch::default(), &context);
        let (queries, rows, values) = (&rows, &[0, 1], &mut out[..]);
        let evaluation = Evaluation { queries, rows, out: values, scratch, context };
        prepared.evaluate(evaluation).unwrap();
        assert_eq!(out, [0.75, 4.0, -0.25, 13.0]);
    }

    #[test]
    fn both_layouts_give_the_same_values() {
        let features = FEW_FEATURES + 5;
        let (sparse, context) = (wide(features), Context::new());
        let dense = sparse.weights.clone().into_layout(Storage::Dense);
        let dense = Linear { weights: dense, ..sparse.clone() };
        let values: Vec<f64> = (0..features).map(|j| ((j * 7) % 11) as f64 - 5.0).collect();
        let query = Matrix::DenseF64(Dense::new(1, features, values).unwrap());
        for rows in [query.clone(), query.into_layout(Storage::Sparse)] {
            let [a, b] = [&sparse, &dense].map(|body| {
                let model = Model::new(MachineKind::LinearSvr, body.clone());
                let prepared = model.body.get().prepare(&model, &context).unwrap();
                let mut values = vec![0.0; 2];
                let (queries, rows, out) = (&rows, &[0], &mut values[..]);
                let (scratch, context) = (&mut Scratch::default(), &context);
                prepared.evaluate(Evaluation { queries, rows, out, scratch, context }).unwrap();
                values
            });
            assert_eq!(a, b);
        }
    }
}
