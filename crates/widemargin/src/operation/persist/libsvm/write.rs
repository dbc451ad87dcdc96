//! Writes models that LIBSVM's programs read; what would change predictions is refused, not dropped.

use std::fmt::Write;

use super::super::number::{push_feature, push_number};
use super::MACHINES;
use crate::data::Label;
use crate::data::read::IndexBase;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::machine::{Calibration, ClassTable, KernelExpansion, Model, Scheme};

/// The text of a valid model's file.
pub(in super::super) fn write(model: &Model) -> Result<Vec<u8>> {
    let mut text = String::new();
    let machine = MACHINES.iter().find(|(_, kind)| *kind == model.kind).map(|(name, _)| name);
    let (Some(machine), Some(body)) = (machine, model.expansion()) else {
        return refuse(format!("LIBSVM has no {} machine", model.kind));
    };
    if model.preparation.scaler.is_some() {
        return refuse("LIBSVM's format has no place for the scaling of the features".into());
    }
    line(&mut text, "svm_type", [machine]);
    put_kernel(&mut text, &body.kernel)?;
    line(&mut text, "nr_class", [model.classes.as_ref().map_or(2, |table| table.names.len())]);
    line(&mut text, "total_sv", [model.support_count()]);
    numbers(&mut text, "rho", model.offsets());
    if let Some(table) = &model.classes {
        let labels: Result<Vec<i32>> = table.names.iter().map(whole_label).collect();
        line(&mut text, "label", labels?);
    }
    put_calibration(&mut text, model.calibration.as_ref())?;
    if let Some(table) = &model.classes {
        line(&mut text, "nr_sv", &table.support);
    }
    text.push_str("SV\n");
    let coefficients = match &model.classes {
        Some(table) => class_coefficients(body, table)?,
        None => vec![all_coefficients(body)],
    };
    let first = usize::from(model.preparation.index_base != Some(IndexBase::Zero));
    put_vectors(&mut text, body, first, &coefficients);
    Ok(text.into_bytes())
}

fn refuse<T>(reason: String) -> Result<T> {
    Err(Error::model(format!("{reason}; save it in the native format instead")))
}

fn line<T: std::fmt::Display>(text: &mut String, key: &str, values: impl IntoIterator<Item = T>) {
    text.push_str(key);
    for value in values {
        let _ = write!(text, " {value}");
    }
    text.push('\n');
}

fn numbers(text: &mut String, key: &str, values: impl IntoIterator<Item = f64>) {
    text.push_str(key);
    for value in values {
        text.push(' ');
        push_number(text, value);
    }
    text.push('\n');
}

fn put_kernel(text: &mut String, kernel: &Kernel) -> Result<()> {
    let (name, degree, gamma, coef0) = match *kernel {
        Kernel::Linear => ("linear", None, None, None),
        Kernel::Polynomial { gamma, coef0, degree } => {
            ("polynomial", Some(degree), Some(gamma), Some(coef0))
        }
        Kernel::Gaussian { gamma } => ("rbf", None, Some(gamma), None),
        Kernel::Sigmoid { gamma, coef0 } => ("sigmoid", None, Some(gamma), Some(coef0)),
        Kernel::Precomputed => ("precomputed", None, None, None),
        _ => return refuse(format!("LIBSVM has no {} kernel", kernel.name())),
    };
    line(text, "kernel_type", [name]);
    if let Some(degree) = degree {
        if i32::try_from(degree).is_err() {
            return refuse(format!("LIBSVM has no polynomial kernel of degree {degree}"));
        }
        line(text, "degree", [degree]);
    }
    for (key, value) in [("gamma", gamma), ("coef0", coef0)] {
        if let Some(value) = value {
            numbers(text, key, [value]);
        }
    }
    Ok(())
}

fn put_calibration(text: &mut String, calibration: Option<&Calibration>) -> Result<()> {
    match calibration {
        None => {}
        Some(Calibration::Sigmoid { a, b }) => {
            numbers(text, "probA", a.iter().copied());
            numbers(text, "probB", b.iter().copied());
        }
        Some(Calibration::Laplace { scale }) => numbers(text, "probA", [*scale]),
        Some(Calibration::Density { marks }) if marks.len() == 10 => {
            numbers(text, "prob_density_marks", marks.iter().copied());
        }
        Some(Calibration::Density { marks }) => {
            return refuse(format!("LIBSVM needs 10 density marks, the model has {}", marks.len()));
        }
        Some(Calibration::Softmax | Calibration::Shares) => {
            return refuse("LIBSVM has no probabilities without a sigmoid".into());
        }
        Some(Calibration::Isotonic { .. }) => {
            return refuse("LIBSVM has no isotonic probabilities (it has sigmoid ones)".into());
        }
    }
    Ok(())
}

pub(in super::super) fn whole_label(label: &Label) -> Result<i32> {
    let whole = match label {
        Label::Int(value) => i32::try_from(*value).ok(),
        Label::Real(value) if f64::from(*value as i32) == *value => Some(*value as i32),
        Label::Real(_) | Label::Text(_) => None,
    };
    match whole {
        Some(value) => Ok(value),
        None => refuse(format!("LIBSVM's class labels are 32-bit whole numbers, not '{label}'")),
    }
}

/// Column `place` of the list of coefficients for every place, by LIBSVM's placement.
fn class_coefficients(body: &KernelExpansion, table: &ClassTable) -> Result<Vec<Vec<f64>>> {
    if table.scheme != Scheme::OneVsOne {
        let reason = "LIBSVM has only one-vs-one classifiers: train with scheme one-vs-one";
        return Err(Error::model(format!("{reason}, or save in the native format instead")));
    }
    let classes = table.names.len();
    let mut starts = vec![0];
    for count in &table.support {
        starts.push(starts[starts.len() - 1] + count);
    }
    let mut places = vec![vec![0.0; body.support.rows()]; classes.saturating_sub(1)];
    let pairs = (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j)));
    for (function, (i, j)) in body.functions.iter().zip(pairs) {
        let (first, second) = (starts[i]..starts[i + 1], starts[j]..starts[j + 1]);
        for part in &function.parts {
            for (row, &coefficient) in part.support.clone().zip(&part.coefficients) {
                if first.contains(&row) {
                    places[j - 1][row] = coefficient;
                } else if second.contains(&row) {
                    places[i][row] = coefficient;
                } else if coefficient != 0.0 {
                    return refuse("a pair of classes uses support vectors of a third".into());
                }
            }
        }
    }
    Ok(places)
}

/// Coefficients of the only function on all support vectors.
fn all_coefficients(body: &KernelExpansion) -> Vec<f64> {
    let mut all = vec![0.0; body.support.rows()];
    for part in body.functions.iter().flat_map(|function| &function.parts) {
        all[part.support.clone()].copy_from_slice(&part.coefficients);
    }
    all
}

/// One line per support vector, its features counted from `first`.
fn put_vectors(text: &mut String, body: &KernelExpansion, first: usize, coefficients: &[Vec<f64>]) {
    for row in 0..body.support.rows() {
        for place in coefficients {
            push_number(text, place[row]);
            text.push(' ');
        }
        if body.kernel == Kernel::Precomputed {
            let _ = write!(text, "0:{} ", body.support_rows[row] + 1);
        } else {
            body.support.for_each_nonzero(row, |column, value| {
                let _ = write!(text, "{}:", column + first);
                push_feature(text, value);
                text.push(' ');
            });
        }
        text.push('\n');
    }
}
