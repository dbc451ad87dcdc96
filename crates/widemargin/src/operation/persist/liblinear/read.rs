//! Reads LIBLINEAR's model files; every mistake in them is reported with line and column.

use std::path::Path;

use super::super::tokens::{Token, Tokens};
use super::{CRAMMER_SINGER, SOLVERS};
use crate::data::Label;
use crate::data::read::IndexBase;
use crate::error::{Error, Result};
use crate::machine::{MachineKind, Model, Preparation, linear_model, reason};

/// The model in a file's bytes.
pub(in super::super) fn read(path: &Path, bytes: &[u8]) -> Result<Model> {
    let mut tokens = Tokens::new(path, bytes);
    let header = Header::read(&mut tokens)?;
    let (name, kind) = header.solver;
    let functions = match (kind.is_classifier(), header.classes) {
        (false, _) => 1,
        (true, 2) if name != CRAMMER_SINGER => 1,
        (true, classes) => classes,
    };
    let lines = header.features + usize::from(header.bias >= 0.0);
    if lines.checked_mul(functions).is_none_or(|count| count > bytes.len()) {
        return Err(Error::Format {
            path: path.into(),
            message: format!(
                "expected {lines} lines of {functions} weights, found a file too short for them"
            ),
        });
    }
    let mut weights = vec![0.0; header.features * functions];
    let mut constants = vec![0.0; functions];
    for feature in 0..header.features {
        for function in 0..functions {
            let weight = tokens.next_finite("a weight", "a finite weight")?;
            weights[function * header.features + feature] = weight;
        }
    }
    if header.bias >= 0.0 {
        for constant in &mut constants {
            *constant = header.bias * tokens.next_finite("a weight", "a finite weight")?;
        }
    }
    if let Some(token) = tokens.next() {
        return Err(tokens.unexpected(token, "the end of the file"));
    }
    if kind == MachineKind::LinearOneClass {
        constants[0] -= header.rho;
    }
    let classes = match (kind.is_classifier(), header.labels) {
        (true, Some(labels)) => Some(labels.into_iter().map(Label::Int).collect()),
        (true, None) => return Err(tokens.missing("'label' in the header of a classifier")),
        (false, _) => None,
    };
    let fail = |error| Error::Format { path: path.into(), message: reason(error) };
    let mut model =
        linear_model(kind, header.features, weights, &constants, classes).map_err(fail)?;
    model.preparation = Preparation { index_base: Some(IndexBase::One), ..Preparation::default() };
    model.validate().map(|()| model).map_err(fail)
}

struct Header {
    solver: (&'static str, MachineKind),
    classes: usize,
    labels: Option<Vec<i64>>,
    features: usize,
    bias: f64,
    rho: f64,
}

impl Header {
    fn read(tokens: &mut Tokens<'_>) -> Result<Self> {
        let (mut solver, mut classes, mut labels) = (None, None, None);
        let (mut features, mut bias, mut rho) = (None, None, 0.0);
        loop {
            let key = tokens.next().ok_or_else(|| tokens.missing("'w' and weights"))?;
            match key.text {
                b"solver_type" => {
                    let token = value(tokens, "a solver")?;
                    let known = SOLVERS.iter().find(|(name, _)| name.as_bytes() == token.text);
                    let names = || SOLVERS.map(|(name, _)| name).join(", ");
                    solver =
                        Some(*known.ok_or_else(|| {
                            tokens.unexpected(token, format!("one of {}", names()))
                        })?);
                }
                b"nr_class" => {
                    let token = value(tokens, "a number of classes")?;
                    let count: u32 = tokens.parse(token, "a number of classes")?;
                    if count == 0 {
                        return Err(tokens.unexpected(token, "at least one class"));
                    }
                    classes = Some(count as usize);
                }
                b"label" => {
                    let count =
                        classes.ok_or_else(|| tokens.unexpected(key, "'nr_class' before it"))?;
                    let mut list = Vec::new();
                    for _ in 0..count {
                        let token = value(tokens, "a class label")?;
                        list.push(tokens.parse(token, "a whole number")?);
                    }
                    labels = Some(list);
                }
                b"nr_feature" => {
                    let token = value(tokens, "a number of features")?;
                    let count: u32 = tokens.parse(token, "a number of features")?;
                    if count == 0 {
                        return Err(tokens.unexpected(token, "at least one feature"));
                    }
                    features = Some(count as usize);
                }
                b"bias" => bias = Some(number(tokens)?),
                b"rho" => rho = number(tokens)?,
                b"w" => break,
                _ => {
                    let keys = "solver_type, nr_class, label, nr_feature, bias, rho or w";
                    return Err(tokens.unexpected(key, keys));
                }
            }
        }
        Ok(Self {
            solver: solver.ok_or_else(|| tokens.missing("'solver_type' before the weights"))?,
            classes: classes.ok_or_else(|| tokens.missing("'nr_class' before the weights"))?,
            labels,
            features: features.ok_or_else(|| tokens.missing("'nr_feature' before the weights"))?,
            bias: bias.unwrap_or(-1.0),
            rho,
        })
    }
}

fn value<'a>(tokens: &mut Tokens<'a>, expected: &str) -> Result<Token<'a>> {
    tokens.next().ok_or_else(|| tokens.missing(expected))
}

fn number(tokens: &mut Tokens<'_>) -> Result<f64> {
    let token = value(tokens, "a finite number")?;
    tokens.parse_finite(token, "a finite number")
}
