//! What a chain machine leaves: scores of tags by features, and scores of pairs of tags.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::lattice::{Transitions, padded};
use crate::context::Context;
use crate::data::{Label, Matrix};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::machine::model::{
    Description, ExpansionHeader, KernelExpansion, MachineKind, Model, ModelBody, PartsReader,
    PartsResult, PartsWriter, Prepared, check_length, fail, from_header, to_header,
};

/// The scores of tags at a position.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TagScores {
    /// Weights of the features, a row for every tag.
    Weights(Matrix),
    /// A function over support vectors for every tag.
    Expansion(KernelExpansion),
}

/// A chain of tags: scores of the tags at every position and of neighbouring tags.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Chain {
    /// The tags.
    pub tags: Vec<Label>,
    /// Scores at a position.
    pub scores: TagScores,
    /// Score of every pair, row by row: the tag before, then its follower. −∞ where it is forbidden.
    pub pairs: Vec<f64>,
    /// Tags that no sequence begins with.
    pub first_forbidden: Vec<bool>,
    /// The templates by which text became features, if it was text.
    pub templates: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    tags: Vec<Label>,
    first_forbidden: Vec<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    templates: Option<String>,
    features: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expansion: Option<ExpansionHeader>,
}

impl Chain {
    pub(super) fn transitions(&self) -> Transitions {
        let (count, width) = (self.tags.len(), padded(self.tags.len()));
        let mut rows = vec![0.0; count * width];
        for (row, scores) in rows.chunks_exact_mut(width).zip(self.pairs.chunks(count.max(1))) {
            row[..count].copy_from_slice(scores);
        }
        let score = |forbidden: &bool| if *forbidden { f64::NEG_INFINITY } else { 0.0 };
        Transitions::of_scores(self.first_forbidden.iter().map(score).collect(), rows)
    }
}

impl ModelBody for Chain {
    fn suits(&self, kind: MachineKind) -> bool {
        kind == MachineKind::ChainSvc
    }

    fn vectors(&self) -> &Matrix {
        match &self.scores {
            TagScores::Weights(weights) => weights,
            TagScores::Expansion(expansion) => &expansion.support,
        }
    }

    fn outputs(&self, _model: &Model) -> usize {
        self.tags.len()
    }

    fn check(&self, model: &Model) -> Result<()> {
        let count = self.tags.len();
        if count < 2 {
            return fail(format!("expected at least 2 tags, found {count}"));
        }
        check_length("pairs of tags", count * count, self.pairs.len())?;
        check_length("first tags", count, self.first_forbidden.len())?;
        if let Some(score) =
            self.pairs.iter().find(|score| score.is_nan() || **score == f64::INFINITY)
        {
            return fail(format!(
                "expected scores of pairs that are finite or -inf, found {score}"
            ));
        }
        match &self.scores {
            TagScores::Weights(weights) => check_length("weight vectors", count, weights.rows()),
            TagScores::Expansion(expansion) => {
                expansion.check_parts(model)?;
                check_length("decision functions", count, expansion.functions.len())
            }
        }
    }

    fn describe(&self, _model: &Model) -> Description {
        let mut description = match &self.scores {
            TagScores::Weights(weights) => Description {
                kernel: Some(Kernel::Linear),
                functions: weights.rows(),
                has_dual: true,
                ..Description::of_vectors("weights")
            },
            TagScores::Expansion(expansion) => expansion.described("support vectors"),
        };
        let names: Vec<String> = self.tags.iter().map(ToString::to_string).collect();
        let details = &mut description.details;
        details.push(("tags", names.join(", ")));
        let forbidden = self.pairs.iter().filter(|score| score.is_infinite()).count();
        if forbidden > 0 {
            details.push(("forbidden pairs", forbidden.to_string()));
        }
        description
    }

    fn prepare(&self, _model: &Model, _context: &Context) -> Result<Box<dyn Prepared>> {
        Err(Error::model(
            "a chain labels sequences, not rows: use 'widemargin sequence label', ChainSVC in Python or \
             Chain::label in Rust",
        ))
    }

    fn write(&self, parts: &mut PartsWriter) -> PartsResult<Value> {
        let count = self.tags.len();
        parts.put("pairs", vec![count, count], self.pairs.iter().copied());
        let expansion = match &self.scores {
            TagScores::Weights(weights) => {
                parts.put_matrix("weights", weights);
                None
            }
            TagScores::Expansion(expansion) => Some(expansion.write_parts(parts)?),
        };
        to_header(&Header {
            tags: self.tags.clone(),
            first_forbidden: self.first_forbidden.clone(),
            templates: self.templates.clone(),
            features: self.vectors().columns(),
            expansion,
        })
    }

    fn read(header: Value, parts: &mut PartsReader<'_>) -> PartsResult<Self> {
        let header: Header = from_header(header)?;
        let (_, pairs) = parts.take::<f64, 2>("pairs")?;
        let scores = match header.expansion {
            Some(expansion) => TagScores::Expansion(KernelExpansion::read_parts(expansion, parts)?),
            None => TagScores::Weights(parts.take_matrix("weights", header.features)?),
        };
        Ok(Self {
            tags: header.tags,
            scores,
            pairs,
            first_forbidden: header.first_forbidden,
            templates: header.templates,
        })
    }

    fn training_rows(&self) -> &[usize] {
        match &self.scores {
            TagScores::Weights(_) => &[],
            TagScores::Expansion(expansion) => expansion.training_rows(),
        }
    }
}
