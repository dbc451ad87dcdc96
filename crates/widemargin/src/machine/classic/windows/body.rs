//! Parzen windows: a decision value is ln(prior · density) of a class, the density being a mean of
//! windows around its rows. The kernel engine sums them, logarithms only where sums vanish.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::distances::{Distances, ExactDistances};
use super::{NetworkInput, Window};
use crate::context::Context;
use crate::data::Matrix;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, KernelBlocks};
use crate::machine::Classic;
use crate::machine::model::{
    Attributes, Description, Evaluation, MachineKind, Model, ModelBody, PartsReader, PartsResult,
    PartsWriter, Prepared, check_classes, check_length, check_priors, check_rows, fail,
    from_header, to_header,
};
use crate::machine::probability::log_sum;
use crate::numeric::simd::{Weights, multiply};

/// Rows whose windows are held at a time.
const BLOCK_COLUMNS: usize = 512;

/// Sums of Gaussians below this have lost digits and are computed anew from their logarithms.
const SMALLEST_SUM: f64 = 1e-250;

/// Windows around rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Windows {
    /// The rows, class by class.
    pub rows: Matrix,
    /// Training row (from 0) of each; empty when not known.
    pub training_rows: Vec<usize>,
    /// Shape of the windows.
    pub window: Window,
    /// What is done to rows first.
    pub input: NetworkInput,
    /// Width of every class, or one.
    pub widths: Vec<f64>,
    /// ln P of every class; a single 0 without classes.
    pub log_priors: Vec<f64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    features: usize,
    window: Window,
    input: NetworkInput,
}

impl ModelBody for Windows {
    fn suits(&self, kind: MachineKind) -> bool {
        let kinds = [Classic::Parzen, Classic::Density, Classic::ProbabilisticNetwork];
        kinds.map(MachineKind::Classic).contains(&kind)
    }

    fn has_class_scores(&self) -> bool {
        true
    }

    fn vectors(&self) -> &Matrix {
        &self.rows
    }

    fn outputs(&self, _model: &Model) -> usize {
        self.widths.len()
    }

    fn check(&self, model: &Model) -> Result<()> {
        let classes = model.classes.as_ref().map_or(1, |table| table.names.len());
        if let Some(table) = &model.classes {
            check_classes(table, Some(self.rows.rows()))?;
        }
        if self.rows.rows() == 0 {
            return Err(Error::Empty { what: "row" });
        }
        check_rows(&self.training_rows, self.rows.rows(), model)?;
        check_length("widths", classes, self.widths.len())?;
        check_length("priors", classes, self.log_priors.len())?;
        if let Some(width) = self.widths.iter().find(|width| !(width.is_finite() && **width > 0.0))
        {
            return fail(format!("expected widths above 0, found {width}"));
        }
        check_priors(&self.log_priors)
    }

    fn describe(&self, _model: &Model) -> Description {
        let widths: Vec<String> = self.widths.iter().map(|width| format!("{width:.6}")).collect();
        Description {
            details: vec![("widths", widths.join(", "))],
            ..Description::of_vectors("rows")
        }
    }

    fn attributes(&self, _model: &Model) -> Attributes {
        vec![("widths", self.widths.clone().into()), ("log_priors", self.log_priors.clone().into())]
    }

    fn prepare(&self, model: &Model, context: &Context) -> Result<Box<dyn Prepared>> {
        let whole = [self.rows.rows()];
        let counts = model.classes.as_ref().map_or(&whole[..], |table| &table.support);
        Ok(Box::new(PreparedWindows::new(self, counts, context)?))
    }

    fn write(&self, parts: &mut PartsWriter) -> PartsResult<Value> {
        parts.put_matrix("rows", &self.rows);
        parts.put_indices("rows.training", &self.training_rows);
        parts.put_list("widths", self.widths.iter().copied());
        parts.put_list("log_priors", self.log_priors.iter().copied());
        to_header(&Header { features: self.rows.columns(), window: self.window, input: self.input })
    }

    fn read(header: Value, parts: &mut PartsReader<'_>) -> PartsResult<Self> {
        let header: Header = from_header(header)?;
        Ok(Self {
            rows: parts.take_matrix("rows", header.features)?,
            training_rows: parts.take_indices("rows.training")?,
            window: header.window,
            input: header.input,
            widths: parts.take_list("widths")?,
            log_priors: parts.take_list("log_priors")?,
        })
    }

    fn has_density(&self) -> bool {
        true
    }

    fn training_rows(&self) -> &[usize] {
        &self.training_rows
    }

    fn rename_rows(&mut self, rows: &[usize]) {
        self.training_rows.iter_mut().for_each(|row| *row = rows[*row]);
    }
}

/// The windows of every class, packed for the kernel engine.
struct PreparedWindows {
    window: Window,
    input: NetworkInput,
    classes: Vec<Class>,
}

struct Class {
    engine: Engine,
    width: f64,
    count: usize,
    /// ln(prior / (rows · ∫ window))
    constant: f64,
    /// The rows, for queries far from all of them.
    rows: Matrix,
}

enum Engine {
    Gaussian(KernelBlocks<f64>),
    Other(Distances<f64>),
}

impl PreparedWindows {
    fn new(body: &Windows, counts: &[usize], context: &Context) -> Result<Self> {
        let prepared = body.input.prepare(&body.rows)?;
        let mut first = 0;
        let mut classes = Vec::with_capacity(counts.len());
        for (c, &count) in counts.iter().enumerate() {
            let own: Vec<usize> = (first..first + count).collect();
            first += count;
            let rows = prepared.select_rows(&own);
            let width = body.widths[c];
            let engine = match body.window {
                Window::Gaussian => {
                    let kernel = Kernel::Gaussian { gamma: 0.5 / (width * width) };
                    Engine::Gaussian(KernelBlocks::new(&kernel, &rows, None, context)?)
                }
                _ => Engine::Other(Distances::new(&rows, context)?),
            };
            let integral = body.window.log_integral(rows.columns(), width);
            let constant = body.log_priors[c] - (count as f64).ln() - integral;
            classes.push(Class { engine, width, count, constant, rows });
        }
        Ok(Self { window: body.window, input: body.input, classes })
    }
}

impl Prepared for PreparedWindows {
    /// ln(prior · density) of every class.
    fn evaluate(&self, evaluation: Evaluation<'_>) -> Result<()> {
        let Evaluation { queries, rows, out, context, .. } = evaluation;
        let queries = self.input.prepare(&queries.select_rows(rows))?;
        let width = self.classes.len();
        for (c, class) in self.classes.iter().enumerate() {
            let sums = class.sums(&queries, self.window, context)?;
            for (i, sum) in sums.into_iter().enumerate() {
                let logarithm = if sum >= SMALLEST_SUM || self.window != Window::Gaussian {
                    sum.ln()
                } else {
                    class.far(&queries, i)
                };
                out[i * width + c] = class.constant + logarithm;
            }
        }
        Ok(())
    }
}

impl Class {
    /// Σ of the windows for every query.
    fn sums(&self, queries: &Matrix, window: Window, context: &Context) -> Result<Vec<f64>> {
        let rows = queries.rows();
        let stride = self.count.min(BLOCK_COLUMNS);
        let mut block = vec![0.0; rows * stride];
        let mut sums = vec![0.0; rows];
        match &self.engine {
            Engine::Gaussian(blocks) => {
                let packed = blocks.prepare(queries, 0..rows)?;
                let ones = Weights::new(stride, vec![1.0; stride]);
                for start in (0..self.count).step_by(BLOCK_COLUMNS) {
                    let columns = start..(start + BLOCK_COLUMNS).min(self.count);
                    blocks.query_block(&packed, 0..rows, columns.clone(), &mut block, stride);
                    let set = context.instruction_set();
                    multiply(set, &block, stride, &ones, 0, columns.len(), &mut sums);
                }
            }
            Engine::Other(distances) => {
                let measured = distances.measure(queries, 0..rows)?;
                for start in (0..self.count).step_by(BLOCK_COLUMNS) {
                    let columns = start..(start + BLOCK_COLUMNS).min(self.count);
                    distances.products(&measured, columns.clone(), &mut block, stride);
                    let norms = &distances.norms()[columns.clone()];
                    for (i, sum) in sums.iter_mut().enumerate() {
                        let products = &block[i * stride..][..columns.len()];
                        for (product, norm) in products.iter().zip(norms) {
                            let squared = measured.norms[i] + norm - 2.0 * product;
                            *sum += window.value(squared, self.width);
                        }
                    }
                }
            }
        }
        Ok(sums)
    }

    /// ln Σ exp(−‖x − xᵢ‖²/2σ²) of a query x, row `q` of `queries`, far from all rows.
    fn far(&self, queries: &Matrix, q: usize) -> f64 {
        let gamma = 0.5 / (self.width * self.width);
        let squared = ExactDistances::new(queries, &self.rows).squared(q, 0..self.count);
        log_sum(&squared.iter().map(|squared| -gamma * squared).collect::<Vec<f64>>())
    }
}
