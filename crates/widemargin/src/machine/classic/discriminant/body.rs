//! What both Fisher discriminants leave in a model: functions over vectors, and the directions that
//! they come from.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::context::Context;
use crate::data::Matrix;
use crate::error::{Error, Result};
use crate::machine::model::{
    Attributes, DecisionFunction, Description, ExpansionHeader, KernelExpansion, MachineKind,
    Model, ModelBody, PartsReader, PartsResult, PartsWriter, Prepared, check_classes, check_length,
    from_header, put_functions, take_functions, to_header,
};
use crate::machine::{Body, Classic};

/// Features shown in the ranking of a description.
const SHOWN: usize = 10;

/// Functions that separate classes, their directions, and how well they do.
#[derive(Clone, Debug, PartialEq)]
pub struct Discriminant {
    /// The decision functions; of the linear machine over its slopes and directions.
    pub expansion: KernelExpansion,
    /// The directions, the best first, as functions over the same vectors.
    pub projections: Vec<DecisionFunction>,
    /// Between-class over within-class scatter along each direction.
    pub ratios: Vec<f64>,
    /// J(w) at its maximum: the squared Mahalanobis distance of the means for two classes, the sum of
    /// the ratios for more.
    pub separability: f64,
    /// Fisher's ratio of every feature taken alone; empty for the kernel machine.
    pub feature_scores: Vec<f64>,
    /// What was added to the within-class scatter: a share for the linear, a number for the kernel
    /// machine.
    pub regularisation: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    expansion: ExpansionHeader,
    separability: f64,
    regularisation: f64,
}

impl Discriminant {
    /// The expansion whose functions are the projections.
    pub(in crate::machine) fn projected(&self) -> KernelExpansion {
        KernelExpansion { functions: self.projections.clone(), ..self.expansion.clone() }
    }

    /// The features by Fisher's ratio of each, the best first.
    fn ranking(&self, model: &Model) -> String {
        let scores = &self.feature_scores;
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let name = |j: usize| match &model.feature_names {
            Some(names) => names[j].clone(),
            None => format!("feature {}", j + 1),
        };
        let best = order.iter().take(SHOWN).map(|&j| format!("{} ({:.4})", name(j), scores[j]));
        best.collect::<Vec<_>>().join(", ")
    }
}

impl ModelBody for Discriminant {
    fn suits(&self, kind: MachineKind) -> bool {
        [Classic::Fisher, Classic::KernelFisher].map(MachineKind::Classic).contains(&kind)
    }

    fn projection(&self) -> Option<Body> {
        Some(self.projected().into())
    }

    fn has_class_scores(&self) -> bool {
        true
    }

    fn vectors(&self) -> &Matrix {
        &self.expansion.support
    }

    fn outputs(&self, _model: &Model) -> usize {
        self.expansion.functions.len()
    }

    fn check(&self, model: &Model) -> Result<()> {
        self.expansion.check_parts(model)?;
        let count = self.expansion.support.rows();
        if count == 0 {
            return Err(Error::Empty { what: "row" });
        }
        // Only the landmarks of the kernel machine belong to classes.
        let is_kernel = model.kind == MachineKind::Classic(Classic::KernelFisher);
        let expected = match &model.classes {
            Some(table) => check_classes(table, is_kernel.then_some(count))?,
            None => 0,
        };
        for (index, projection) in self.projections.iter().enumerate() {
            projection.check(index, count)?;
        }
        check_length("decision functions", expected, self.expansion.functions.len())
    }

    fn describe(&self, model: &Model) -> Description {
        let mut description = self.expansion.described("vectors");
        description.has_dual = false;
        description.details.push(("separability", format!("{:.6}", self.separability)));
        if !self.feature_scores.is_empty() {
            description.details.push(("feature ranking", self.ranking(model)));
        }
        description
    }

    fn attributes(&self, _model: &Model) -> Attributes {
        vec![
            ("ratios", self.ratios.clone().into()),
            ("separability", self.separability.into()),
            ("feature_scores", self.feature_scores.clone().into()),
            ("regularisation", self.regularisation.into()),
            ("directions", self.projections.len().into()),
        ]
    }

    fn prepare(&self, model: &Model, context: &Context) -> Result<Box<dyn Prepared>> {
        self.expansion.prepare(model, context)
    }

    fn write(&self, parts: &mut PartsWriter) -> PartsResult<Value> {
        put_functions(parts, "projections", &self.projections);
        parts.put_list("ratios", self.ratios.iter().copied());
        parts.put_list("feature_scores", self.feature_scores.iter().copied());
        to_header(&Header {
            expansion: self.expansion.write_parts(parts)?,
            separability: self.separability,
            regularisation: self.regularisation,
        })
    }

    fn read(header: Value, parts: &mut PartsReader<'_>) -> PartsResult<Self> {
        let header: Header = from_header(header)?;
        Ok(Self {
            expansion: KernelExpansion::read_parts(header.expansion, parts)?,
            projections: take_functions(parts, "projections")?,
            ratios: parts.take_list("ratios")?,
            separability: header.separability,
            feature_scores: parts.take_list("feature_scores")?,
            regularisation: header.regularisation,
        })
    }

    fn expansion(&self) -> Option<&KernelExpansion> {
        Some(&self.expansion)
    }

    fn expansion_mut(&mut self) -> Option<&mut KernelExpansion> {
        Some(&mut self.expansion)
    }

    fn training_rows(&self) -> &[usize] {
        &self.expansion.support_rows
    }

    fn rename_rows(&mut self, rows: &[usize]) {
        self.expansion.rename_rows(rows);
    }

    fn offsets(&self) -> Vec<f64> {
        self.expansion.offsets()
    }

    fn offset_mut(&mut self, function: usize) -> Option<&mut f64> {
        self.expansion.offset_mut(function)
    }
}
