//! Prediction: blocks of kernel values between rows and support vectors, times the coefficients of
//! all functions at once.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::classic::{ClassicPart, Ready as ClassicReady};
use super::linear::LinearScores;
use super::model::{DecisionFunction, Model};
use super::parameters::Precision;
use super::probability::{log_sum, softmax};
use super::vote::{elect, scores};
use crate::context::Context;
use crate::data::{Dense, Labels, Matrix};
use crate::error::{Error, Result};
use crate::kernel::{ExpansionTerm, Kernel, KernelBlocks, PreparedMap};
use crate::numeric::simd::{Real, Weights, multiply};

/// Rows predicted by one task.
const TASK_ROWS: usize = 256;

/// Support vectors whose kernel values are held at a time.
const BLOCK_COLUMNS: usize = 512;

/// A model made ready to predict many rows.
pub struct Predictor<'a> {
    model: &'a Model,
    context: &'a Context,
    engine: Arc<Engine>,
}

/// The support vectors of one model, packed for its kernel: what a [`Predictor`] spends its time on
/// before the first row, kept for the next one.
#[derive(Clone)]
pub struct PackedSupport(Arc<Engine>);

enum Engine {
    Single(Ready<f32>),
    Double(Ready<f64>),
    /// A classical machine that has no decision functions.
    Classic(Box<ClassicReady>),
    /// The weights of a linear model.
    Linear(LinearScores),
    /// The same over features that approximate a kernel.
    Mapped(PreparedMap, LinearScores),
}

/// Packed support vectors and the coefficients over each run of them.
struct Ready<T: Real> {
    blocks: KernelBlocks<T>,
    runs: Vec<Run<T>>,
}

/// The coefficients of all functions that use one run of support vectors.
struct Run<T> {
    support: Range<usize>,
    functions: Vec<usize>,
    weights: Weights<T>,
}

/// Room that the tasks of one thread use again and again.
#[derive(Default)]
struct Scratch {
    single: Vec<f32>,
    double: Vec<f64>,
    sums: Vec<f64>,
}

impl Model {
    /// Makes the model ready to predict.
    ///
    /// # Errors
    /// [`Error::Kernel`] when the support vectors do not suit the kernel.
    pub fn predictor<'a>(&'a self, context: &'a Context) -> Result<Predictor<'a>> {
        Ok(self.predictor_with(&self.pack(context)?, context))
    }

    /// Packs the support vectors for predictors to come.
    ///
    /// # Errors
    /// As [`predictor`](Self::predictor).
    pub fn pack(&self, context: &Context) -> Result<PackedSupport> {
        if let Some(ready) = ClassicReady::new(self, context)? {
            return Ok(PackedSupport(Arc::new(Engine::Classic(Box::new(ready)))));
        }
        Ok(PackedSupport(Arc::new(match self.precision {
            _ if self.kind.is_linear() => {
                let scores = LinearScores::new(self, context);
                match &self.preparation.map {
                    Some(map) => Engine::Mapped(map.prepare(context)?, scores),
                    None => Engine::Linear(scores),
                }
            }
            Precision::F32 => match Ready::new(self, context) {
                Err(Error::Overflow { .. }) => Engine::Double(Ready::new(self, context)?),
                single => Engine::Single(single?),
            },
            Precision::F64 => Engine::Double(Ready::new(self, context)?),
        })))
    }

    /// A predictor that uses what [`pack`](Self::pack) of the same model made.
    pub fn predictor_with<'a>(
        &'a self,
        packed: &PackedSupport,
        context: &'a Context,
    ) -> Predictor<'a> {
        Predictor { model: self, context, engine: Arc::clone(&packed.0) }
    }
}

impl<T: Real> Ready<T> {
    fn new(model: &Model, context: &Context) -> Result<Self> {
        let blocks = if model.kernel == Kernel::Precomputed {
            let width = model.support_rows.iter().max().map_or(0, |&row| row + 1);
            KernelBlocks::precomputed_columns(width, &model.support_rows)?
        } else {
            KernelBlocks::new(&model.kernel, &model.support, None, context)?
        };
        Ok(Self { blocks, runs: runs(&model.functions) })
    }

    /// Adds the sums of all functions for the query rows `rows` to `out` on the backend, if it takes
    /// them.
    fn evaluate_on_backend(
        &self,
        functions: &[DecisionFunction],
        queries: &Matrix,
        rows: &[usize],
        out: &mut [f64],
    ) -> Option<Result<()>> {
        let mut terms = Vec::new();
        for (function, f) in functions.iter().enumerate() {
            for part in &f.parts {
                let (support, coefficients) = (part.support.clone(), &part.coefficients[..]);
                terms.push(ExpansionTerm { function, support, coefficients });
            }
        }
        self.blocks.evaluate(queries, rows, &terms, functions.len(), out)
    }

    /// Adds the sums of all functions for the query rows `rows` to `out`, `functions` values a row.
    fn evaluate(
        &self,
        queries: &Matrix,
        rows: &[usize],
        self_weight: f64,
        (out, functions): (&mut [f64], usize),
        (block, sums): (&mut Vec<T>, &mut Vec<f64>),
        context: &Context,
    ) -> Result<()> {
        let queries = self.blocks.prepare_rows(queries, rows)?;
        let stride = self.blocks.len().min(BLOCK_COLUMNS);
        block.resize(block.len().max(rows.len() * stride), T::ZERO);
        for start in (0..self.blocks.len()).step_by(BLOCK_COLUMNS) {
            let columns = start..(start + BLOCK_COLUMNS).min(self.blocks.len());
            self.blocks.query_block(&queries, 0..rows.len(), columns.clone(), block, stride);
            let from = self.runs.partition_point(|run| run.support.end <= columns.start);
            for run in self.runs[from..].iter().take_while(|run| run.support.start < columns.end) {
                let shared = run.support.start.max(columns.start)..run.support.end.min(columns.end);
                let outputs = run.functions.len();
                if outputs == functions {
                    let first = shared.start - run.support.start;
                    let block = &block[shared.start - columns.start..];
                    let set = context.instruction_set();
                    multiply(set, block, stride, &run.weights, first, shared.len(), out);
                    continue;
                }
                sums.clear();
                sums.resize(rows.len() * outputs, 0.0);
                multiply(
                    context.instruction_set(),
                    &block[shared.start - columns.start..],
                    stride,
                    &run.weights,
                    shared.start - run.support.start,
                    shared.len(),
                    sums,
                );
                for (out, sums) in out.chunks_exact_mut(functions).zip(sums.chunks_exact(outputs)) {
                    for (&f, sum) in run.functions.iter().zip(sums) {
                        out[f] += sum;
                    }
                }
            }
        }
        if self_weight != 0.0 {
            let own = queries.self_similarities()?;
            for (out, own) in out.chunks_exact_mut(functions).zip(own) {
                for value in out {
                    *value -= self_weight * own.to_f64();
                }
            }
        }
        Ok(())
    }
}

/// Neighbouring rows as a range.
fn run_of(rows: &[usize]) -> Range<usize> {
    let first = rows.first().copied().unwrap_or(0);
    first..first + rows.len()
}

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

impl Predictor<'_> {
    /// The model behind it.
    pub fn model(&self) -> &Model {
        self.model
    }

    /// The values of all decision functions, one row per row of `features`.
    ///
    /// # Errors
    /// [`Error::Length`] when the rows do not have as many features as the model;
    /// [`Error::NonFinite`] when a value is not finite.
    pub fn decision_values(&self, features: &Matrix) -> Result<Dense<f64>> {
        if features.rows() == 0 {
            return Dense::new(0, self.model.outputs(), Vec::new());
        }
        let refused_later = match &*self.engine {
            Engine::Single(ready) => ready.blocks.refuses_non_finite(),
            Engine::Double(ready) => ready.blocks.refuses_non_finite(),
            _ => false,
        };
        if !refused_later || self.model.preparation.scaler.is_some() {
            features.validate()?;
        }
        if matches!(*self.engine, Engine::Classic(_)) && features.columns() != self.model.features()
        {
            return Err(Error::length("features", self.model.features(), features.columns()));
        }
        let values = self.decision_values_of(features, &(0..features.rows()).collect::<Vec<_>>());
        values.map_err(|error| features.validate().err().unwrap_or(error))
    }

    /// The values of all decision functions for the rows of `features` named by `rows`; the table
    /// is taken to be finite.
    ///
    /// # Errors
    /// [`Error::Length`] when the rows do not have as many features as the model.
    ///
    /// # Panics
    /// When a row does not exist.
    pub fn decision_values_of(&self, features: &Matrix, rows: &[usize]) -> Result<Dense<f64>> {
        if let Some(scaler) = &self.model.preparation.scaler {
            let scaled = scaler.transform(features.select_rows(rows))?;
            scaled.validate()?;
            return self.sums(&scaled, &(0..rows.len()).collect::<Vec<_>>());
        }
        let is_run = rows.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        let wants_runs = !matches!(*self.engine, Engine::Single(_) | Engine::Double(_));
        if wants_runs && !is_run {
            let part = features.select_rows(rows);
            return self.sums(&part, &(0..rows.len()).collect::<Vec<_>>());
        }
        self.sums(features, rows)
    }

    fn sums(&self, features: &Matrix, rows: &[usize]) -> Result<Dense<f64>> {
        let functions = self.model.outputs();
        let mut values = vec![0.0; rows.len() * functions];
        let weight = self.model.self_weight;
        if weight != 0.0 && self.model.kernel == Kernel::Precomputed {
            return Err(Error::Model {
                message: "SVDD with a precomputed kernel cannot predict: K(x, x) is not given"
                    .into(),
            });
        }
        let on_backend = match &*self.engine {
            _ if weight != 0.0 => None,
            Engine::Single(ready) => {
                ready.evaluate_on_backend(&self.model.functions, features, rows, &mut values)
            }
            Engine::Double(ready) => {
                ready.evaluate_on_backend(&self.model.functions, features, rows, &mut values)
            }
            _ => None,
        };
        if let Some(result) = on_backend {
            result?;
            self.subtract_offsets(&mut values);
            return Dense::new(rows.len(), functions, values);
        }
        let task = |scratch: &mut Scratch, (out, rows): (&mut [f64], &[usize])| {
            let Scratch { single, double, sums } = scratch;
            let to = (&mut *out, functions);
            match &*self.engine {
                Engine::Single(ready) => {
                    ready.evaluate(features, rows, weight, to, (single, sums), self.context)?;
                }
                Engine::Double(ready) => {
                    ready.evaluate(features, rows, weight, to, (double, sums), self.context)?;
                }
                Engine::Classic(ready) => {
                    ready.evaluate(features, run_of(rows), out, self.context)?;
                }
                Engine::Linear(scores) => scores.add(features, run_of(rows), out)?,
                Engine::Mapped(map, scores) => {
                    let mapped = Matrix::DenseF32(map.transform(features, run_of(rows))?);
                    scores.add(&mapped, 0..rows.len(), out)?;
                }
            }
            self.subtract_offsets(out);
            Ok(())
        };
        let chunk = TASK_ROWS * functions.max(1);
        self.context.install(|| {
            if self.context.is_parallel() {
                let rows = rows.par_chunks(TASK_ROWS);
                values.par_chunks_mut(chunk).zip(rows).try_for_each_init(Scratch::default, task)
            } else {
                let mut scratch = Scratch::default();
                let mut tasks = values.chunks_mut(chunk).zip(rows.chunks(TASK_ROWS));
                tasks.try_for_each(|part| task(&mut scratch, part))
            }
        })?;
        Dense::new(rows.len(), functions, values)
    }

    fn subtract_offsets(&self, values: &mut [f64]) {
        for row in values.chunks_exact_mut(self.model.outputs().max(1)) {
            for (value, function) in row.iter_mut().zip(&self.model.functions) {
                *value -= function.offset;
            }
        }
    }

    /// For models of neighbours: distances and training rows of the k nearest of every row.
    ///
    /// # Errors
    /// [`Error::Model`] for other models; otherwise as [`decision_values`](Self::decision_values).
    pub fn nearest(&self, features: &Matrix, k: usize) -> Result<Vec<Vec<(f64, usize)>>> {
        features.validate()?;
        if features.columns() != self.model.features() {
            return Err(Error::length("features", self.model.features(), features.columns()));
        }
        if k == 0 || k > self.model.support_count() {
            let expected = format!("at least 1 and at most {}", self.model.support_count());
            return Err(Error::parameter("k", expected, k));
        }
        let scaled = match &self.model.preparation.scaler {
            Some(scaler) => Some(scaler.transform(features.clone())?),
            None => None,
        };
        let features = scaled.as_ref().unwrap_or(features);
        let task = |start: usize| match &*self.engine {
            Engine::Classic(ready) => {
                ready.nearest(features, start..(start + TASK_ROWS).min(features.rows()), k)
            }
            _ => Ok(None),
        };
        let starts: Vec<usize> = (0..features.rows()).step_by(TASK_ROWS).collect();
        let found: Vec<Option<Vec<_>>> = self.context.install(|| {
            if self.context.is_parallel() {
                starts.into_par_iter().map(task).collect::<Result<_>>()
            } else {
                starts.into_iter().map(task).collect()
            }
        })?;
        let found: Option<Vec<Vec<_>>> = found.into_iter().collect();
        found.map(|parts| parts.concat()).ok_or_else(|| Error::Model {
            message: format!("{} has no neighbours", self.model.kind),
        })
    }

    /// The logarithm of the density at every row, for mixtures and windows.
    ///
    /// # Errors
    /// [`Error::Model`] for models without a density; otherwise as
    /// [`decision_values`](Self::decision_values).
    pub fn log_densities(&self, features: &Matrix) -> Result<Vec<f64>> {
        self.log_densities_of(&self.decision_values(features)?)
    }

    /// The logarithms of densities that decision values stand for.
    ///
    /// # Errors
    /// [`Error::Model`] for models without a density.
    pub fn log_densities_of(&self, values: &Dense<f64>) -> Result<Vec<f64>> {
        match &self.model.classic {
            Some(ClassicPart::Mixtures(_) | ClassicPart::Windows(_)) => {
                Ok((0..values.rows()).map(|i| log_sum(values.row(i))).collect())
            }
            _ => Err(Error::Model { message: format!("{} has no density", self.model.kind) }),
        }
    }

    /// The answer for every row: a class label, a number, or 1 (inside) and −1 (outside).
    ///
    /// # Errors
    /// As [`decision_values`](Self::decision_values).
    pub fn predict(&self, features: &Matrix) -> Result<Labels> {
        Ok(self.answers(&self.decision_values(features)?))
    }

    /// The answers that decision values stand for.
    pub fn answers(&self, values: &Dense<f64>) -> Labels {
        let rows = 0..values.rows();
        match (self.model.kind, &self.model.classes) {
            (kind, _) if kind.is_clusterer() => {
                Labels::Int(rows.map(|i| first_largest(values.row(i)) as i64).collect())
            }
            (kind, _) if kind.is_novelty_detector() => {
                Labels::Int(rows.map(|i| if values.row(i)[0] > 0.0 { 1 } else { -1 }).collect())
            }
            (_, Some(_)) => self.labels_of(&self.class_indices(values)),
            _ => Labels::Real(rows.map(|i| values.row(i)[0]).collect()),
        }
    }

    /// The labels of classes given by their places in the model's list; none for a model without
    /// classes.
    ///
    /// # Panics
    /// When a class does not exist.
    pub fn labels_of(&self, classes: &[usize]) -> Labels {
        match &self.model.classes {
            Some(table) => Labels::from_labels(&table.names).select(classes),
            None => Labels::None,
        }
    }

    /// The place, in the model's list of classes, of the class that each row of decision values
    /// elects; empty for a model without classes.
    pub fn class_indices(&self, values: &Dense<f64>) -> Vec<usize> {
        let Some(table) = &self.model.classes else { return Vec::new() };
        if let Some(ClassicPart::Mixtures(part)) = &self.model.classic
            && !part.loss.is_empty()
        {
            return (0..values.rows()).map(|i| least_loss(values.row(i), &part.loss)).collect();
        }
        let class = |i| elect(&table.scheme, table.names.len(), values.row(i));
        (0..values.rows()).map(class).collect()
    }

    /// A score of every class for every row of decision values, the largest being the best.
    ///
    /// With a function per pair: votes, plus the sum s of the values in favour, squeezed into
    /// (−⅓, ⅓) by s / (3(|s| + 1)) so that it decides ties only (scikit-learn's `ovr` shape).
    /// With one per class: the values. With a code: minus the hinge loss of the class's code.
    pub fn class_scores(&self, values: &Dense<f64>) -> Dense<f64> {
        let classes = self.model.classes.as_ref().map_or(0, |table| table.names.len());
        let mut all = Vec::with_capacity(values.rows() * classes);
        if let Some(table) = &self.model.classes {
            for i in 0..values.rows() {
                all.extend(scores(&table.scheme, classes, values.row(i)));
            }
        }
        Dense::new(values.rows(), classes, all).expect("one score per class and row")
    }
}

/// The place of the largest value, the first of equals.
fn first_largest(values: &[f64]) -> usize {
    (1..values.len()).fold(0, |best, i| if values[i] > values[best] { i } else { best })
}

/// The class whose expected loss is the least, given ln(prior · density) of every class.
fn least_loss(values: &[f64], loss: &[f64]) -> usize {
    let posterior = softmax(values);
    let classes = posterior.len();
    let expected = |j: usize| -> f64 {
        let terms = posterior.iter().enumerate();
        terms.map(|(i, p)| if *p > 0.0 { p * loss[i * classes + j] } else { 0.0 }).sum()
    };
    let negative: Vec<f64> = (0..classes).map(|j| -expected(j)).collect();
    first_largest(&negative)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dataset;
    use crate::data::scaling::Scaler;
    use crate::machine::{Machine, Svr};

    #[test]
    fn a_model_scales_rows_as_its_training_rows_were() {
        let raw = Dense::new(4, 1, vec![10.0, 20.0, 30.0, 50.0]).unwrap();
        let raw = Matrix::DenseF64(raw);
        let scaler = Scaler::fit_range(&raw, 0.0, 1.0).unwrap();
        let scaled = scaler.transform(raw.clone()).unwrap();
        let data = Dataset::new(scaled.clone(), Labels::Real(vec![1.0, 2.0, 3.0, 5.0])).unwrap();
        let context = Context::new();
        let mut model = Svr { c: 100.0, ..Svr::default() }.fit(&data, &context).unwrap();
        let by_hand = model.predictor(&context).unwrap().predict(&scaled).unwrap();
        model.preparation.scaler = Some(scaler);
        let by_itself = model.predictor(&context).unwrap().predict(&raw).unwrap();
        assert_eq!(by_itself, by_hand);
    }
}
