//! Decision functions over support vectors: f(x) = Σ cₛ K(x, xₛ) − ρ for all functions at once.
//!
//! Prediction computes blocks of kernel values between rows and support vectors and multiplies them
//! with the coefficients of all functions that use them, with sums in double precision.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::kernel_depth::check_depth;
use super::parts::{PartsReader, PartsResult, PartsWriter, from_header, to_header};
use super::validate::{check_below, check_classes, check_length, check_rows, fail, reason};
use super::{
    DecisionFunction, Description, Evaluation, MachineKind, Model, ModelBody, Prepared, Scratch,
};
use super::{put_functions, take_functions};
use crate::context::Context;
use crate::data::Matrix;
use crate::error::{Error, Result};
use crate::kernel::{ExpansionTerm, Kernel, KernelBlocks};
use crate::machine::parameters::Precision;
use crate::numeric::simd::{Real, Weights, multiply};

/// Support vectors whose kernel values are held at a time.
const BLOCK_COLUMNS: usize = 512;

/// Decision functions over support vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelExpansion {
    /// The kernel, all parameters resolved.
    pub kernel: Kernel,
    /// Number format prediction computes kernel values in.
    pub precision: Precision,
    /// The support vectors, one per row.
    pub support: Matrix,
    /// Training row (from 0) of every support vector; empty when not known.
    pub support_rows: Vec<usize>,
    /// The decision functions.
    pub functions: Vec<DecisionFunction>,
}

/// Everything but the arrays, as in files.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpansionHeader {
    pub(crate) kernel: Kernel,
    pub(crate) precision: Precision,
    pub(crate) features: usize,
}

impl KernelExpansion {
    /// Checks the kernel, the training rows and the functions.
    pub(in crate::machine) fn check_parts(&self, model: &Model) -> Result<()> {
        check_depth(&self.kernel)?;
        self.kernel.validate()?;
        self.check_support_rows(model)?;
        let count = self.support.rows();
        self.functions.iter().enumerate().try_for_each(|(f, function)| function.check(f, count))
    }

    fn check_support_rows(&self, model: &Model) -> Result<()> {
        let (rows, count) = (&self.support_rows, self.support.rows());
        if !self.kernel.has_given_values() {
            return check_rows(rows, count, model);
        }
        if rows.len() != count {
            let message = "a precomputed kernel needs the training row of every support vector, \
                           found none";
            return fail(message.into());
        }
        check_below(rows, self.support.columns())
    }

    /// Prepared, with −K(x, x) added to every function where `subtracts_own` says so; in double
    /// precision where single precision overflows.
    pub(super) fn prepared(
        &self,
        subtracts_own: bool,
        context: &Context,
    ) -> Result<Box<dyn Prepared>> {
        if self.precision == Precision::F32 {
            match PreparedExpansion::<f32>::new(self, subtracts_own, context) {
                Err(Error::Overflow { .. }) => {}
                single => return Ok(Box::new(single?)),
            }
        }
        Ok(Box::new(PreparedExpansion::<f64>::new(self, subtracts_own, context)?))
    }

    /// The properties, the support vectors under another name.
    pub(in crate::machine) fn described(&self, vectors: &'static str) -> Description {
        Description {
            kernel: Some(self.kernel.clone()),
            precision: self.precision,
            functions: self.functions.len(),
            has_dual: true,
            ..Description::of_vectors(vectors)
        }
    }

    pub(in crate::machine) fn write_parts(
        &self,
        parts: &mut PartsWriter,
    ) -> PartsResult<ExpansionHeader> {
        parts.put_matrix("support", &self.support);
        parts.put_indices("support.rows", &self.support_rows);
        put_functions(parts, "functions", &self.functions);
        check_depth(&self.kernel).map_err(reason)?;
        Ok(ExpansionHeader {
            kernel: self.kernel.clone(),
            precision: self.precision,
            features: self.support.columns(),
        })
    }

    pub(in crate::machine) fn read_parts(
        header: ExpansionHeader,
        parts: &mut PartsReader<'_>,
    ) -> PartsResult<Self> {
        Ok(Self {
            kernel: header.kernel,
            precision: header.precision,
            support: parts.take_matrix("support", header.features)?,
            support_rows: parts.take_indices("support.rows")?,
            functions: take_functions(parts, "functions")?,
        })
    }
}

impl ModelBody for KernelExpansion {
    fn suits(&self, kind: MachineKind) -> bool {
        kind.has_expansion()
    }

    fn vectors(&self) -> &Matrix {
        &self.support
    }

    fn outputs(&self, _model: &Model) -> usize {
        self.functions.len()
    }

    fn check(&self, model: &Model) -> Result<()> {
        self.check_parts(model)?;
        let expected = match &model.classes {
            Some(table) => check_classes(table, Some(self.support.rows()))?,
            None => 1,
        };
        check_length("decision functions", expected, self.functions.len())
    }

    fn describe(&self, _model: &Model) -> Description {
        self.described("support vectors")
    }

    fn prepare(&self, _model: &Model, context: &Context) -> Result<Box<dyn Prepared>> {
        self.prepared(false, context)
    }

    fn write(&self, parts: &mut PartsWriter) -> PartsResult<Value> {
        to_header(&self.write_parts(parts)?)
    }

    fn read(header: Value, parts: &mut PartsReader<'_>) -> PartsResult<Self> {
        Self::read_parts(from_header(header)?, parts)
    }

    fn expansion(&self) -> Option<&KernelExpansion> {
        Some(self)
    }

    fn replaceable(&self) -> Option<&KernelExpansion> {
        Some(self)
    }

    fn expansion_mut(&mut self) -> Option<&mut KernelExpansion> {
        Some(self)
    }

    fn training_rows(&self) -> &[usize] {
        &self.support_rows
    }

    fn rename_rows(&mut self, rows: &[usize]) {
        self.support_rows.iter_mut().for_each(|row| *row = rows[*row]);
    }

    fn offsets(&self) -> Vec<f64> {
        self.functions.iter().map(|function| function.offset).collect()
    }

    fn offset_mut(&mut self, function: usize) -> Option<&mut f64> {
        self.functions.get_mut(function).map(|function| &mut function.offset)
    }

    fn reorder(&mut self, functions: &[(usize, f64)], vectors: &[usize]) -> bool {
        let moved = |&(f, sign): &(usize, f64)| self.functions[f].moved(sign, vectors);
        self.functions = functions.iter().map(moved).collect();
        self.support = self.support.select_rows(vectors);
        if !self.support_rows.is_empty() {
            self.support_rows = vectors.iter().map(|&s| self.support_rows[s]).collect();
        }
        true
    }

    fn widen(&mut self, features: usize) -> bool {
        let can = !self.kernel.has_given_values() && !self.kernel.has_strings_in_a_view();
        if can {
            self.support = self.support.clone().resized_columns(features);
        }
        can
    }
}

/// Packed support vectors and the coefficients over each run of them.
struct PreparedExpansion<T: Real> {
    blocks: KernelBlocks<T>,
    runs: Vec<Run<T>>,
    offsets: Vec<f64>,
    subtracts_own: bool,
}

/// The coefficients of all functions that use one run of support vectors.
struct Run<T> {
    support: Range<usize>,
    functions: Vec<usize>,
    weights: Weights<T>,
}

impl<T: Real> PreparedExpansion<T> {
    fn new(body: &KernelExpansion, subtracts_own: bool, context: &Context) -> Result<Self> {
        let blocks =
            KernelBlocks::of_support(&body.kernel, &body.support, &body.support_rows, context)?;
        Ok(Self { blocks, runs: runs(&body.functions), offsets: body.offsets(), subtracts_own })
    }

    fn on_backend(
        &self,
        functions: &[DecisionFunction],
        queries: &Matrix,
        rows: &[usize],
        out: &mut [f64],
    ) -> Option<Result<()>> {
        if self.subtracts_own {
            return None;
        }
        let mut terms = Vec::new();
        for (function, f) in functions.iter().enumerate() {
            for part in &f.parts {
                let (support, coefficients) = (part.support.clone(), &part.coefficients[..]);
                terms.push(ExpansionTerm { function, support, coefficients });
            }
        }
        let result = self.blocks.evaluate(queries, rows, &terms, functions.len(), out)?;
        Some(result.map(|()| subtract(out, &self.offsets)))
    }

    fn add(
        &self,
        queries: &Matrix,
        rows: &[usize],
        out: &mut [f64],
        (block, sums): (&mut Vec<T>, &mut Vec<f64>),
        context: &Context,
    ) -> Result<()> {
        let queries = self.blocks.prepare_rows(queries, rows)?;
        let (set, functions) = (context.instruction_set(), self.offsets.len());
        let stride = self.blocks.len().min(BLOCK_COLUMNS);
        block.resize(block.len().max(rows.len() * stride), T::ZERO);
        for start in (0..self.blocks.len()).step_by(BLOCK_COLUMNS) {
            let columns = start..(start + BLOCK_COLUMNS).min(self.blocks.len());
            self.blocks.query_block(&queries, 0..rows.len(), columns.clone(), block, stride);
            let from = self.runs.partition_point(|run| run.support.end <= columns.start);
            for run in self.runs[from..].iter().take_while(|run| run.support.start < columns.end) {
                let shared = run.support.start.max(columns.start)..run.support.end.min(columns.end);
                let outputs = run.functions.len();
                let first = shared.start - run.support.start;
                let block = &block[shared.start - columns.start..];
                if outputs == functions {
                    multiply(set, block, stride, &run.weights, first, shared.len(), out);
                    continue;
                }
                sums.clear();
                sums.resize(rows.len() * outputs, 0.0);
                multiply(set, block, stride, &run.weights, first, shared.len(), sums);
                for (out, sums) in out.chunks_exact_mut(functions).zip(sums.chunks_exact(outputs)) {
                    for (&f, sum) in run.functions.iter().zip(sums) {
                        out[f] += sum;
                    }
                }
            }
        }
        self.blocks.check_values()?;
        if self.subtracts_own {
            let own = queries.self_similarities()?;
            for (out, own) in out.chunks_exact_mut(functions).zip(own) {
                out.iter_mut().for_each(|value| *value -= own.to_f64());
            }
        }
        subtract(out, &self.offsets);
        Ok(())
    }
}

/// Subtracts the offsets from the values of every row.
pub(super) fn subtract(values: &mut [f64], offsets: &[f64]) {
    for row in values.chunks_exact_mut(offsets.len().max(1)) {
        row.iter_mut().zip(offsets).for_each(|(value, offset)| *value -= offset);
    }
}

macro_rules! prepared {
    ($type:ty, $block:ident) => {
        impl Prepared for PreparedExpansion<$type> {
            fn evaluate(&self, evaluation: Evaluation<'_>) -> Result<()> {
                let Evaluation { queries, rows, out, scratch, context } = evaluation;
                let Scratch { $block, sums, .. } = scratch;
                self.add(queries, rows, out, ($block, sums), context)
            }

            fn evaluate_on_backend(
                &self,
                model: &Model,
                queries: &Matrix,
                rows: &[usize],
                out: &mut [f64],
            ) -> Option<Result<()>> {
                self.on_backend(model.functions(), queries, rows, out)
            }

            fn takes_any_rows(&self) -> bool {
                true
            }

            fn refuses_non_finite(&self) -> bool {
                self.blocks.refuses_non_finite()
            }
        }
    };
}

prepared!(f32, single);
prepared!(f64, double);

/// Cuts the support vectors where a part of any function begins or ends, and stacks the
/// coefficients on each run.
fn runs<T: Real>(functions: &[DecisionFunction]) -> Vec<Run<T>> {
    let parts = || functions.iter().flat_map(|f| &f.parts);
    let mut cuts: Vec<usize> =
        parts().flat_map(|part| [part.support.start, part.support.end]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts.windows(2)
        .map(|cut| {
            let support = cut[0]..cut[1];
            let (mut users, mut weights) = (Vec::new(), Vec::new());
            for (f, function) in functions.iter().enumerate() {
                let covers = |r: &Range<usize>| r.start <= cut[0] && cut[1] <= r.end;
                if let Some(part) = function.parts.iter().find(|part| covers(&part.support)) {
                    let offset = cut[0] - part.support.start;
                    let coefficients = &part.coefficients[offset..offset + cut[1] - cut[0]];
                    users.push(f);
                    weights.extend(coefficients.iter().map(|&c| T::from_f64(c)));
                }
            }
            Run { weights: Weights::new(support.len(), weights), support, functions: users }
        })
        .filter(|run| !run.functions.is_empty() && !run.support.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Part;
    use super::*;
    use crate::data::Csr;

    #[test]
    fn many_features_cost_what_is_stored() {
        let features = u32::MAX as usize;
        let rows = |starts: Vec<usize>, indices: Vec<u32>, values: Vec<f64>| {
            Matrix::SparseF64(Csr::new(features, starts, indices, values).unwrap())
        };
        let context = Context::new();
        for (kernel, expected) in [
            (Kernel::Linear, [2.0 * 2.0 - 3.0 * 4.0 - 0.5, -0.5]),
            (Kernel::Gaussian { gamma: 0.0 }, [2.0 - 0.5, 2.0 - 0.5]),
        ] {
            let body = KernelExpansion {
                kernel,
                precision: Precision::F64,
                support: rows(vec![0, 1, 2], vec![5, features as u32 - 1], vec![2.0, -3.0]),
                support_rows: Vec::new(),
                functions: vec![DecisionFunction {
                    parts: vec![Part { support: 0..2, coefficients: vec![1.0, 1.0] }],
                    offset: 0.5,
                }],
            };
            let model = Model::new(MachineKind::OneClass, body);
            let queries =
                rows(vec![0, 2, 3], vec![5, features as u32 - 1, 77], vec![2.0, 4.0, 1.0]);
            let values = model.predictor(&context).unwrap().decision_values(&queries).unwrap();
            assert_eq!(values.values(), expected);
        }
    }
}
