//! Two-class machines that are not trained by the decomposition of [`Svc`](super::Svc) and still give
//! its kind of model.

use std::time::Instant;

use super::Precision;
use super::model::{
    ClassTable, DecisionFunction, KernelExpansion, MachineKind, Model, Part, Scheme, Training,
};
use super::specification::Value;
use super::training::support_table;
use crate::data::{ClassOrder, Classes, Dataset};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::solver::Outcome;

/// The classes of a data set that has to have two, for the machine `name`.
pub(super) fn two_classes(data: &Dataset, name: &str) -> Result<Classes> {
    let classes = data.labels().classes(ClassOrder::Sorted)?;
    if classes.count() != 2 {
        return Err(Error::labels(
            format!("two classes for {name}"),
            format!("{} classes", classes.count()),
        ));
    }
    Ok(classes)
}

/// What a training found.
pub(super) struct TwoClass<'a> {
    pub(super) data: &'a Dataset,
    pub(super) classes: &'a Classes,
    pub(super) kernel: &'a Kernel,
    pub(super) precision: Precision,
    /// Rows with a coefficient, positive for the first class.
    pub(super) support: Vec<(usize, f64)>,
    pub(super) offset: f64,
    pub(super) outcome: Outcome,
    pub(super) started: Instant,
    pub(super) parameters: Vec<(String, Value)>,
}

impl TwoClass<'_> {
    /// The C-SVC model of these coefficients.
    pub(super) fn model(mut self) -> Model {
        let code = |row: usize| self.classes.codes[row];
        self.support.retain(|(_, coefficient)| *coefficient != 0.0);
        self.support.sort_by_key(|&(row, _)| (code(row), row));
        let first = self.support.iter().filter(|&&(row, _)| code(row) == 0).count();
        let (rows, coefficients): (Vec<usize>, Vec<f64>) = self.support.iter().copied().unzip();
        let part = Part { support: 0..rows.len(), coefficients };
        let classes = ClassTable {
            names: self.classes.names.clone(),
            scheme: Scheme::OneVsOne,
            support: vec![first, rows.len() - first],
        };
        let body = KernelExpansion {
            kernel: self.kernel.clone(),
            precision: self.precision,
            support: support_table(self.kernel, self.data.features(), &rows),
            support_rows: rows,
            functions: vec![DecisionFunction { parts: vec![part], offset: self.offset }],
        };
        Model {
            classes: Some(classes),
            feature_names: self.data.feature_names().map(<[String]>::to_vec),
            training: Some(Training {
                outcome: self.outcome,
                rows: self.data.rows(),
                seconds: self.started.elapsed().as_secs_f64(),
                parameters: self.parameters,
                specification: None,
            }),
            ..Model::new(MachineKind::CSvc, body)
        }
    }
}
