//! What a hidden Markov model leaves in a model: probabilities, emissions and the names of the states.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::chain::Labelling;
use super::super::emission::Emission;
use super::super::hmm::{Hmm, Posteriors};
use super::super::observations::Sequences;
use super::observed;
use crate::context::Context;
use crate::data::{Dense, Label, Matrix, TaggedSequences};
use crate::error::{Error, Result};
use crate::machine::Covariance;
use crate::machine::model::{
    Attributes, Description, MAX_SQUARE, MachineKind, Model, ModelBody, PartsReader, PartsResult,
    PartsWriter, Prepared, check_length, fail, from_header, to_header,
};

/// A hidden Markov model with names of its states.
#[derive(Clone, Debug, PartialEq)]
pub struct HiddenMarkov {
    hmm: Hmm,
    names: Vec<Label>,
    /// Probabilities of symbols, means or rates, a row for every state.
    table: Matrix,
    /// The templates by which text became symbols, if it was text.
    pub templates: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    names: Vec<Label>,
    emissions: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    covariance: Option<Covariance>,
    features: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    templates: Option<String>,
}

impl HiddenMarkov {
    /// A model whose states have these names.
    ///
    /// # Errors
    /// [`Error::Length`] when there is not one name per state, [`Error::Parameter`] for densities of the caller, which
    /// no file can keep.
    pub fn new(hmm: Hmm, names: Vec<Label>) -> Result<Self> {
        if names.len() != hmm.states() {
            return Err(Error::length("names of states", hmm.states(), names.len()));
        }
        let values = match hmm.emission() {
            Emission::Categorical { probabilities } => probabilities,
            Emission::Gaussian { means, .. } => means,
            Emission::Poisson { rates } => rates,
            Emission::Given => {
                let expected = "emissions that a file can keep";
                return Err(Error::parameter("emission", expected, "densities of the caller"));
            }
        };
        let size = hmm.emission().size(hmm.states());
        let table = Matrix::DenseF64(Dense::new(hmm.states(), size, values.clone())?);
        Ok(Self { hmm, names, table, templates: None })
    }

    /// The model.
    pub fn hmm(&self) -> &Hmm {
        &self.hmm
    }

    /// Names of the states.
    pub fn names(&self) -> &[Label] {
        &self.names
    }

    /// The observations of sequences, as the emissions take them. Positions of symbols that the training data did not have
    /// count as not observed.
    ///
    /// # Errors
    /// Observations that do not suit the emissions.
    pub fn observations(&self, data: &TaggedSequences) -> Result<Sequences> {
        observed(data, self.hmm.emission(), self.hmm.states())
    }

    /// The most probable path of every sequence and ln p of it and the observations.
    ///
    /// # Errors
    /// As [`observations`](Self::observations), and an interruption.
    pub fn label(&self, data: &TaggedSequences, context: &Context) -> Result<Vec<Labelling>> {
        let paths = self.hmm.best_paths(&self.observations(data)?, context)?;
        Ok(paths.into_iter().map(|(tags, score)| Labelling { tags, score }).collect())
    }

    /// The most probable state of every position, and as the score the sum of their probabilities.
    ///
    /// # Errors
    /// As [`label`](Self::label).
    pub fn label_positions(
        &self,
        data: &TaggedSequences,
        context: &Context,
    ) -> Result<Vec<Labelling>> {
        let Posteriors { states, .. } =
            self.hmm.posteriors(&self.observations(data)?, false, context)?;
        let most = |k: usize| {
            let row = states.row(k);
            let mut best = 0;
            for (i, p) in row.iter().enumerate() {
                best = if *p > row[best] { i } else { best };
            }
            best
        };
        let label = |sequence: usize| {
            let tags: Vec<u32> = data.span(sequence).map(|k| most(k) as u32).collect();
            let positions = data.span(sequence).zip(&tags);
            Labelling { score: positions.map(|(k, &i)| states.row(k)[i as usize]).sum(), tags }
        };
        Ok((0..data.count()).map(label).collect())
    }
}

impl ModelBody for HiddenMarkov {
    fn suits(&self, kind: MachineKind) -> bool {
        kind == MachineKind::HiddenMarkov
    }

    fn vectors(&self) -> &Matrix {
        &self.table
    }

    fn outputs(&self, _model: &Model) -> usize {
        self.names.len()
    }

    fn check(&self, _model: &Model) -> Result<()> {
        check_length("names of states", self.hmm.states(), self.names.len())?;
        let features = self.table.columns();
        match self.hmm.emission() {
            Emission::Gaussian { .. } if features > MAX_SQUARE => {
                fail(format!("expected at most {MAX_SQUARE} features, found {features}"))
            }
            _ => Ok(()),
        }
    }

    fn describe(&self, _model: &Model) -> Description {
        let mut description = Description::of_vectors("states");
        let names: Vec<String> = self.names.iter().map(ToString::to_string).collect();
        let details = &mut description.details;
        details.push(("states", names.join(", ")));
        details.push(("emissions", emission_name(self.hmm.emission()).to_owned()));
        if let Emission::Gaussian { shape, .. } = self.hmm.emission() {
            details.push(("covariances", shape.to_string()));
        }
        if self.hmm.inputs() > 1 {
            details.push(("inputs", self.hmm.inputs().to_string()));
        }
        description
    }

    fn attributes(&self, _model: &Model) -> Attributes {
        let covariances = match self.hmm.emission() {
            Emission::Gaussian { covariances, .. } => covariances.clone(),
            _ => Vec::new(),
        };
        vec![
            ("emissions", emission_name(self.hmm.emission()).to_owned().into()),
            ("start", self.hmm.start().to_vec().into()),
            ("transition", self.hmm.transition().to_vec().into()),
            ("covariances", covariances.into()),
        ]
    }

    fn prepare(&self, _model: &Model, _context: &Context) -> Result<Box<dyn Prepared>> {
        Err(Error::model(
            "a hidden Markov model labels sequences, not rows: use 'widemargin sequence label', the methods of \
             CategoricalHMM and its like in Python or HiddenMarkov::label in Rust",
        ))
    }

    fn write(&self, parts: &mut PartsWriter) -> PartsResult<Value> {
        parts.put_list("start", self.hmm.start().iter().copied());
        parts.put_list("transition", self.hmm.transition().iter().copied());
        parts.put_matrix("emissions", &self.table);
        let covariance = match self.hmm.emission() {
            Emission::Gaussian { shape, covariances, .. } => {
                parts.put_list("covariances", covariances.iter().copied());
                Some(*shape)
            }
            _ => None,
        };
        to_header(&Header {
            names: self.names.clone(),
            emissions: emission_name(self.hmm.emission()).to_owned(),
            covariance,
            features: self.table.columns(),
            templates: self.templates.clone(),
        })
    }

    fn read(header: Value, parts: &mut PartsReader<'_>) -> PartsResult<Self> {
        let header: Header = from_header(header)?;
        let (start, transition) = (parts.take_list("start")?, parts.take_list("transition")?);
        let Matrix::DenseF64(table) = parts.take_matrix("emissions", header.features)? else {
            return Err("expected emissions as a dense table of 64-bit numbers".to_owned());
        };
        let values = table.into_values();
        let emission = match (header.emissions.as_str(), header.covariance) {
            ("symbols", None) => Emission::Categorical { probabilities: values },
            ("poisson", None) => Emission::Poisson { rates: values },
            ("gaussian", Some(shape)) => Emission::Gaussian {
                means: values,
                shape,
                covariances: parts.take_list("covariances")?,
            },
            (name, _) => {
                return Err(format!(
                    "expected emissions of symbols, poisson or, with a covariance, gaussian, found '{name}'"
                ));
            }
        };
        let model =
            Hmm::new(start, transition, emission).and_then(|hmm| Self::new(hmm, header.names));
        let model = model.map_err(|error| error.to_string())?;
        Ok(Self { templates: header.templates, ..model })
    }
}

fn emission_name(emission: &Emission) -> &'static str {
    match emission {
        Emission::Categorical { .. } => "symbols",
        Emission::Gaussian { .. } => "gaussian",
        Emission::Poisson { .. } => "poisson",
        Emission::Given => "given",
    }
}
