//! What must hold for every model, however it came to be.

use std::collections::HashSet;

use super::{Calibration, ClassTable, MachineKind, Model, ModelBody, Scheme};
use crate::data::{Label, Matrix};
use crate::error::{Error, Result};

/// Most features of a model with covariances: their matrices must be addressable.
pub(in crate::machine) const MAX_SQUARE: usize = 1 << 20;

/// Column indices are 32-bit.
const MAX_FEATURES: u64 = 1 << 32;

impl Model {
    /// Checks everything prediction relies on: a body that suits the kind and holds together (finite
    /// numbers, lengths that agree, as many functions as the classes ask for), and classes,
    /// preparation, names and calibration that suit the body.
    ///
    /// # Errors
    /// [`Error::Model`], [`Error::Length`], [`Error::Parameter`] or [`Error::NonFinite`], naming
    /// what does not hold.
    pub fn validate(&self) -> Result<()> {
        let (body, kind) = (self.body.get(), self.kind);
        if !body.suits(kind) {
            return fail(format!("expected the body of {kind}, found {}", self.body.name()));
        }
        if body.vectors().rows() > 0 {
            body.vectors().validate()?;
        }
        let features = self.features();
        if features as u64 > MAX_FEATURES {
            return fail(format!("expected at most {MAX_FEATURES} features, found {features}"));
        }
        match (&self.classes, kind.is_classifier()) {
            (Some(_), false) => return fail(format!("expected no classes for {kind}, found some")),
            (None, true) => return fail(format!("expected classes for {kind}, found none")),
            _ => body.check(self)?,
        }
        if let Some(scaler) = &self.preparation.scaler {
            check_length("scaled features", features, scaler.columns())?;
        }
        if let Some(map) = &self.preparation.map {
            map.validate()?;
            if !body.takes_mapped_features() {
                return fail(format!("expected no approximate features for {kind}, found some"));
            }
            check_length("features made", body.vectors().columns(), map.outputs())?;
        }
        if let Some(names) = &self.feature_names {
            check_length("feature names", features, names.len())?;
        }
        match &self.calibration {
            Some(calibration) => check_calibration(calibration, kind, body),
            None => Ok(()),
        }
    }
}

/// What does not hold, for an error that names the file itself.
pub(crate) fn reason(error: Error) -> String {
    match error {
        Error::Model { message } => message,
        other => other.to_string(),
    }
}

pub(in crate::machine) fn fail<T>(message: String) -> Result<T> {
    Err(Error::Model { message })
}

pub(in crate::machine) fn check_length(
    what: &'static str,
    expected: usize,
    found: usize,
) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::length(what, expected, found)) }
}

pub(in crate::machine) fn check_finite(what: &'static str, values: &[f64]) -> Result<()> {
    match values.iter().find(|value| !value.is_finite()) {
        Some(value) => fail(format!("expected finite {what}, found {value}")),
        None => Ok(()),
    }
}

/// Checks training rows, if known: one for each of `count` vectors, below the number of rows.
pub(in crate::machine) fn check_rows(rows: &[usize], count: usize, model: &Model) -> Result<()> {
    if !rows.is_empty() && rows.len() != count {
        return Err(Error::length("training rows of support vectors", count, rows.len()));
    }
    match &model.training {
        Some(training) => check_below(rows, training.rows),
        None => Ok(()),
    }
}

/// Checks that training rows are below a number of rows.
pub(super) fn check_below(rows: &[usize], limit: usize) -> Result<()> {
    match rows.iter().find(|&&row| row >= limit) {
        Some(row) => fail(format!("expected training rows below {limit}, found {row}")),
        None => Ok(()),
    }
}

/// Checks that vectors which prediction needs densely are stored so: a few bytes of sparse vectors
/// could ask for any amount of memory.
pub(in crate::machine) fn check_dense(what: &'static str, vectors: &Matrix) -> Result<()> {
    match vectors.is_sparse() {
        true => fail(format!("expected {what} stored densely, found them sparse")),
        false => Ok(()),
    }
}

pub(in crate::machine) fn check_priors(log_priors: &[f64]) -> Result<()> {
    match log_priors.iter().find(|value| value.is_nan() || **value > 1e-9) {
        Some(value) => fail(format!("expected logarithms of priors of at most 0, found {value}")),
        None => Ok(()),
    }
}

/// The number of functions the classes ask for.
pub(in crate::machine) fn check_classes(
    table: &ClassTable,
    support: Option<usize>,
) -> Result<usize> {
    let classes = table.names.len();
    if classes == 0 {
        return fail("expected at least one class, found none".into());
    }
    let mut seen = HashSet::new();
    for name in &table.names {
        if matches!(name, Label::Real(value) if value.is_nan()) {
            return fail("expected class labels, found NaN".into());
        }
        if !seen.insert(name.to_string()) {
            return fail(format!("expected distinct class labels, found '{name}' twice"));
        }
    }
    if table.support.len() != classes {
        return Err(Error::length("support counts by class", classes, table.support.len()));
    }
    let total = table.support.iter().try_fold(0_usize, |sum, &n| sum.checked_add(n));
    if let Some(support) = support
        && total != Some(support)
    {
        return fail(format!(
            "expected class counts that add up to {support} support vectors, found {}",
            total.map_or("far more".into(), |total| total.to_string())
        ));
    }
    if let Scheme::ErrorCorrecting(codes) = &table.scheme {
        if codes.len() != classes {
            return Err(Error::length("code words", classes, codes.len()));
        }
        let length = codes[0].len();
        if let Some(code) = codes.iter().find(|code| code.len() != length) {
            return Err(Error::length("length of a code word", length, code.len()));
        }
        if let Some(entry) = codes.iter().flatten().find(|entry| !(-1..=1).contains(*entry)) {
            return fail(format!("expected code entries -1, 0 or 1, found {entry}"));
        }
    }
    Ok(table.scheme.functions(classes))
}

fn check_calibration(
    calibration: &Calibration,
    kind: MachineKind,
    body: &dyn ModelBody,
) -> Result<()> {
    let functions = body.offsets().len();
    let fits = match calibration {
        Calibration::Sigmoid { .. } | Calibration::Isotonic { .. } => kind.is_classifier(),
        Calibration::Laplace { .. } => kind.is_regressor(),
        Calibration::Density { .. } => {
            matches!(kind, MachineKind::OneClass | MachineKind::LinearOneClass)
        }
        Calibration::Softmax | Calibration::Shares => body.has_class_scores(),
    };
    if !fits {
        return fail(format!("expected a calibration made for {kind}, found another machine's"));
    }
    match calibration {
        Calibration::Sigmoid { a, b } => {
            for (what, list) in [("calibration slopes", a), ("calibration offsets", b)] {
                if list.len() != functions {
                    return Err(Error::length(what, functions, list.len()));
                }
                if let Some(value) = list.iter().find(|value| !value.is_finite()) {
                    return fail(format!("expected finite {what}, found {value}"));
                }
            }
        }
        Calibration::Isotonic { knots } => {
            if knots.len() != functions {
                return Err(Error::length("calibration curves", functions, knots.len()));
            }
            for list in knots {
                check_knots(list)?;
            }
        }
        Calibration::Softmax | Calibration::Shares => {}
        Calibration::Laplace { scale } => {
            if !(scale.is_finite() && *scale >= 0.0) {
                return fail(format!(
                    "expected a finite Laplace scale of at least 0, found {scale}"
                ));
            }
        }
        Calibration::Density { marks } => {
            let finite = marks.iter().all(|mark| mark.is_finite());
            if marks.is_empty() || !finite || !marks.is_sorted() {
                return fail("expected ascending density marks, found others".into());
            }
        }
    }
    Ok(())
}

fn check_knots(knots: &[(f64, f64)]) -> Result<()> {
    let sound = |&(value, probability): &(f64, f64)| {
        value.is_finite() && (0.0..=1.0).contains(&probability)
    };
    let ascending = knots.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
    if knots.is_empty() || !knots.iter().all(sound) || !ascending {
        return fail("expected a non-decreasing calibration curve, found another".into());
    }
    Ok(())
}
