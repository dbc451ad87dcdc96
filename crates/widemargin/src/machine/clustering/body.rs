//! What maximum-margin clustering leaves: the decision function, the clusters of the training rows, and the proof.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::context::Context;
use crate::data::Matrix;
use crate::error::{Error, Result};
use crate::machine::model::{
    Attributes, Description, ExpansionHeader, KernelExpansion, MachineKind, Model, ModelBody,
    PartsReader, PartsResult, PartsWriter, Prepared, fail, from_header, to_header,
};

/// Clusters with a margin between them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MarginClusters {
    /// One function for each cluster; the largest value wins.
    pub expansion: KernelExpansion,
    /// Cluster of every training row, from 0.
    pub labels: Vec<usize>,
    /// Objective of these labels: ½β‖w‖² + Σ hinge losses at its least.
    pub objective: f64,
    /// Value of the semidefinite relaxation, where one was solved.
    pub relaxation: Option<f64>,
    /// A proven lower bound on the relaxation and on the objective of any labels of this balance.
    pub bound: f64,
    /// Largest difference of the numbers of rows of two clusters that was allowed.
    pub imbalance: f64,
    /// Shares of the clusters in every training row by the relaxation, rows × clusters; empty where none was solved.
    pub memberships: Vec<f64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    expansion: ExpansionHeader,
    objective: f64,
    relaxation: Option<f64>,
    bound: f64,
    imbalance: f64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    memberships: bool,
}

impl MarginClusters {
    /// (relaxation − bound) / |bound|, where a relaxation was solved.
    pub fn gap(&self) -> Option<f64> {
        self.relaxation.map(|value| relative(value, self.bound))
    }

    /// (objective − bound) / |bound|: how far from the best labels these can be.
    pub fn label_gap(&self) -> f64 {
        relative(self.objective, self.bound)
    }
}

fn relative(value: f64, bound: f64) -> f64 {
    ((value - bound) / bound.abs().max(f64::MIN_POSITIVE)).max(0.0)
}

impl ModelBody for MarginClusters {
    fn suits(&self, kind: MachineKind) -> bool {
        kind == MachineKind::MaxMarginClustering
    }

    fn takes_mapped_features(&self) -> bool {
        true
    }

    fn vectors(&self) -> &Matrix {
        self.expansion.vectors()
    }

    fn outputs(&self, _model: &Model) -> usize {
        self.expansion.functions.len()
    }

    fn check(&self, model: &Model) -> Result<()> {
        self.expansion.check_parts(model)?;
        let count = self.expansion.functions.len();
        if count < 2 {
            return fail(format!(
                "expected a decision function for each of at least 2 clusters, found {count}"
            ));
        }
        if let Some(label) = self.labels.iter().find(|label| **label >= count) {
            return fail(format!("expected clusters from 0 to {}, found {label}", count - 1));
        }
        let shares = self.memberships.len();
        if shares != 0 && shares != count * self.labels.len() {
            let expected = count * self.labels.len();
            return fail(format!("expected {expected} memberships, found {shares}"));
        }
        if self.memberships.iter().any(|share| !(0.0..=1.0).contains(share)) {
            return fail("expected memberships from 0 to 1".to_owned());
        }
        let numbers = [self.objective, self.bound, self.imbalance, self.relaxation.unwrap_or(0.0)];
        match numbers.iter().find(|value| !value.is_finite()) {
            Some(value) => Err(Error::model(format!("expected a finite objective, found {value}"))),
            None => Ok(()),
        }
    }

    fn describe(&self, _model: &Model) -> Description {
        let mut description = self.expansion.described("support vectors");
        let count = |r: usize| self.labels.iter().filter(|label| **label == r).count().to_string();
        let sizes: Vec<String> = (0..self.expansion.functions.len()).map(count).collect();
        let details = &mut description.details;
        details.push(("clusters", format!("{} rows", sizes.join(", "))));
        details.push(("objective", format!("{:.9}", self.objective)));
        if let Some(value) = self.relaxation {
            details.push(("relaxation", format!("{value:.9}")));
        }
        details.push(("proven bound", format!("{:.9}", self.bound)));
        description
    }

    fn attributes(&self, _model: &Model) -> Attributes {
        let labels: Vec<f64> = self.labels.iter().map(|&label| label as f64).collect();
        let mut attributes: Attributes = vec![
            ("labels", labels.into()),
            ("objective", self.objective.into()),
            ("bound", self.bound.into()),
            ("label_gap", self.label_gap().into()),
        ];
        if let (Some(relaxation), Some(gap)) = (self.relaxation, self.gap()) {
            attributes.extend([("relaxation", relaxation.into()), ("gap", gap.into())]);
        }
        if !self.memberships.is_empty() {
            attributes.push(("memberships", self.memberships.clone().into()));
        }
        attributes
    }

    fn prepare(&self, model: &Model, context: &Context) -> Result<Box<dyn Prepared>> {
        self.expansion.prepare(model, context)
    }

    fn write(&self, parts: &mut PartsWriter) -> PartsResult<Value> {
        parts.put_indices("labels", &self.labels);
        if !self.memberships.is_empty() {
            parts.put_list("memberships", self.memberships.iter().copied());
        }
        to_header(&Header {
            expansion: self.expansion.write_parts(parts)?,
            objective: self.objective,
            relaxation: self.relaxation,
            bound: self.bound,
            imbalance: self.imbalance,
            memberships: !self.memberships.is_empty(),
        })
    }

    fn read(header: Value, parts: &mut PartsReader<'_>) -> PartsResult<Self> {
        let header: Header = from_header(header)?;
        Ok(Self {
            labels: parts.take_indices("labels")?,
            expansion: KernelExpansion::read_parts(header.expansion, parts)?,
            objective: header.objective,
            relaxation: header.relaxation,
            bound: header.bound,
            imbalance: header.imbalance,
            memberships: match header.memberships {
                true => parts.take_list("memberships")?,
                false => Vec::new(),
            },
        })
    }

    fn training_rows(&self) -> &[usize] {
        self.expansion.training_rows()
    }

    fn rename_rows(&mut self, rows: &[usize]) {
        self.expansion.rename_rows(rows);
    }
}
