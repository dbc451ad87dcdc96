//! What must hold for every model, however it came to be.

use std::collections::HashSet;

use super::{MAX_KERNEL_DEPTH, classic};
use crate::data::Label;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::machine::{Calibration, ClassTable, DecisionFunction, MachineKind, Model, Scheme};

/// Column indices are 32-bit.
const MAX_FEATURES: u64 = 1 << 32;

impl Model {
    /// Checks everything prediction relies on: finite numbers, runs of support vectors that are
    /// disjoint, ascending and inside the list, one coefficient each, class counts that add up, and
    /// as many functions and calibrations as the scheme asks for.
    ///
    /// # Errors
    /// [`Error::Model`], [`Error::Length`], [`Error::Parameter`] or [`Error::NonFinite`], naming
    /// what does not hold.
    pub fn validate(&self) -> Result<()> {
        check(self)
    }
}

/// What does not hold, for an error that names the file itself.
pub(super) fn reason(error: Error) -> String {
    match error {
        Error::Model { message } => message,
        other => other.to_string(),
    }
}

/// [`Model::validate`].
pub(super) fn check(model: &Model) -> Result<()> {
    check_depth(&model.kernel, MAX_KERNEL_DEPTH)?;
    model.kernel.validate()?;
    let count = model.support_count();
    if count > 0 {
        model.support.validate()?;
    }
    if model.features() as u64 > MAX_FEATURES {
        let found = model.features();
        return fail(format!("expected at most {MAX_FEATURES} features, found {found}"));
    }
    check_support_rows(model)?;
    for (index, function) in model.functions.iter().enumerate() {
        check_function(index, function, count)?;
    }
    if model.classic.is_some() != matches!(model.kind, MachineKind::Classic(_)) {
        return fail(format!("expected the part of a classical machine for {} only", model.kind));
    }
    if model.kind.is_linear() {
        check_linear(model)?;
    }
    let self_weight = f64::from(u8::from(model.kind == MachineKind::Svdd));
    if model.self_weight != self_weight {
        return fail(format!("expected self weight {self_weight}, found {}", model.self_weight));
    }
    let functions = match &model.classes {
        Some(table) if model.kind.is_classifier() => match &model.classic {
            Some(part) => classic::check(model, part)?,
            None => check_classes(table, Some(count))?,
        },
        None if !model.kind.is_classifier() => match &model.classic {
            Some(part) => classic::check(model, part)?,
            None => 1,
        },
        Some(_) => return fail(format!("expected no classes for {}, found some", model.kind)),
        None => return fail(format!("expected classes for {}, found none", model.kind)),
    };
    if model.functions.len() != functions {
        return Err(Error::length("decision functions", functions, model.functions.len()));
    }
    if let Some(scaler) = &model.preparation.scaler
        && scaler.columns() != model.features()
    {
        return Err(Error::length("scaled features", model.features(), scaler.columns()));
    }
    if let Some(map) = &model.preparation.map {
        map.validate()?;
        if !model.kind.is_linear() {
            return fail(format!(
                "expected no approximate features for {}, found some",
                model.kind
            ));
        }
        if map.outputs() != model.support.columns() {
            return Err(Error::length("features made", model.support.columns(), map.outputs()));
        }
    }
    if let Some(names) = &model.feature_names
        && names.len() != model.features()
    {
        return Err(Error::length("feature names", model.features(), names.len()));
    }
    match &model.calibration {
        Some(calibration) => check_calibration(calibration, model.kind, functions),
        None => Ok(()),
    }
}

pub(super) fn fail<T>(message: String) -> Result<T> {
    Err(Error::Model { message })
}

fn check_depth(kernel: &Kernel, depth: usize) -> Result<()> {
    let inner = |kernel: &Kernel| match depth.checked_sub(1) {
        Some(depth) => check_depth(kernel, depth),
        None => {
            fail(format!("expected kernels nested at most {MAX_KERNEL_DEPTH} deep, found more"))
        }
    };
    match kernel {
        Kernel::Sum(terms) => terms.iter().try_for_each(|(_, kernel)| inner(kernel)),
        Kernel::Product(factors) => factors.iter().try_for_each(inner),
        _ => Ok(()),
    }
}

fn check_support_rows(model: &Model) -> Result<()> {
    let (rows, count) = (&model.support_rows, model.support_count());
    if !rows.is_empty() && rows.len() != count {
        return Err(Error::length("training rows of support vectors", count, rows.len()));
    }
    let limit = match (&model.kernel, &model.training) {
        (Kernel::Precomputed, _) => {
            if rows.len() != count {
                return fail(
                    "a precomputed kernel needs the training row of every support \
                             vector, found none"
                        .into(),
                );
            }
            model.features()
        }
        (_, Some(training)) => training.rows,
        (_, None) => return Ok(()),
    };
    match rows.iter().find(|&&row| row >= limit) {
        Some(row) => fail(format!("expected training rows below {limit}, found {row}")),
        None => Ok(()),
    }
}

pub(super) fn check_function(
    index: usize,
    function: &DecisionFunction,
    count: usize,
) -> Result<()> {
    let place = || format!("function {}", index + 1);
    let mut next = 0;
    for part in &function.parts {
        let range = &part.support;
        if range.start < next || range.end < range.start || range.end > count {
            return fail(format!(
                "{}: expected ascending runs of {count} support vectors, found {range:?}",
                place()
            ));
        }
        if part.coefficients.len() != range.len() {
            let what = format!("{}: coefficients", place());
            return Err(Error::length(what, range.len(), part.coefficients.len()));
        }
        if let Some(value) = part.coefficients.iter().find(|value| !value.is_finite()) {
            return fail(format!("{}: expected finite coefficients, found {value}", place()));
        }
        next = range.end;
    }
    if function.offset.is_finite() {
        Ok(())
    } else {
        fail(format!("{}: expected a finite offset, found {}", place(), function.offset))
    }
}

/// The shape that linear models have: a weight vector for every function, in order.
fn check_linear(model: &Model) -> Result<()> {
    if model.kernel != Kernel::Linear {
        return fail(format!("expected a linear kernel for {}, found another", model.kind));
    }
    if model.support_count() != model.functions.len() {
        return Err(Error::length("weight vectors", model.functions.len(), model.support_count()));
    }
    let sound = |(f, function): (usize, &DecisionFunction)| {
        matches!(&function.parts[..], [part]
            if part.support == (f..f + 1) && matches!(part.coefficients[..], [factor] if factor.abs() == 1.0))
    };
    if model.functions.iter().enumerate().all(sound) {
        Ok(())
    } else {
        fail("expected one weight vector per function, in order, found another shape".into())
    }
}

/// The number of functions the classes ask for.
pub(super) fn check_classes(table: &ClassTable, support: Option<usize>) -> Result<usize> {
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

fn check_calibration(calibration: &Calibration, kind: MachineKind, functions: usize) -> Result<()> {
    let fits = match calibration {
        Calibration::Sigmoid { .. } | Calibration::Isotonic { .. } => kind.is_classifier(),
        Calibration::Laplace { .. } => kind.is_regressor(),
        Calibration::Density { .. } => {
            matches!(kind, MachineKind::OneClass | MachineKind::LinearOneClass)
        }
        Calibration::Softmax | Calibration::Shares => matches!(kind, MachineKind::Classic(_)),
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
