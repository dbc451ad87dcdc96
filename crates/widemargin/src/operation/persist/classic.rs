//! What must hold for the part of a model that only its classical machine understands.

use super::validate::{check_classes, check_function, fail};
use crate::error::{Error, Result};
use crate::machine::{Classic, ClassicPart, MachineKind, Mixtures, Model, Neighbours, Windows};

/// Most features of a model with covariances: their matrices must be addressable.
const MAX_FEATURES: usize = 1 << 20;

/// Checks the part; returns the number of decision functions the model has to have.
pub(super) fn check(model: &Model, part: &ClassicPart) -> Result<usize> {
    let MachineKind::Classic(kind) = model.kind else {
        return fail(format!("expected no classical part for {}, found one", model.kind));
    };
    let fits = match part {
        ClassicPart::Discriminant(_) => matches!(kind, Classic::Fisher | Classic::KernelFisher),
        ClassicPart::Mixtures(_) => matches!(kind, Classic::Mixture | Classic::MixtureBayes),
        ClassicPart::Neighbours(_) => {
            matches!(kind, Classic::Neighbours | Classic::NeighboursRegression | Classic::Spectral)
        }
        ClassicPart::Windows(_) => {
            matches!(kind, Classic::Parzen | Classic::Density | Classic::ProbabilisticNetwork)
        }
        ClassicPart::Centres => kind == Classic::KMeans,
    };
    if !fits {
        return fail(format!("expected the part of {kind}, found another machine's"));
    }
    let classes = model.classes.as_ref().map_or(1, |table| table.names.len());
    // Only the rows of windows and the landmarks of the kernel discriminant belong to classes.
    let rows_of_classes = matches!(part, ClassicPart::Windows(_)) || kind == Classic::KernelFisher;
    let support = rows_of_classes.then_some(model.support_count());
    let functions = match &model.classes {
        Some(table) => check_classes(table, support)?,
        None => 0,
    };
    if model.support_count() == 0 {
        return Err(Error::Empty { what: "row" });
    }
    match part {
        ClassicPart::Discriminant(discriminant) => {
            for (index, projection) in discriminant.projections.iter().enumerate() {
                check_function(index, projection, model.support_count())?;
            }
            return Ok(functions);
        }
        ClassicPart::Mixtures(mixtures) => check_mixtures(mixtures, model, classes)?,
        ClassicPart::Neighbours(neighbours) => check_neighbours(neighbours, model, classes)?,
        ClassicPart::Windows(windows) => check_windows(windows, classes)?,
        ClassicPart::Centres => {}
    }
    Ok(0)
}

fn check_mixtures(part: &Mixtures, model: &Model, classes: usize) -> Result<()> {
    let features = model.features();
    if features > MAX_FEATURES {
        return fail(format!("expected at most {MAX_FEATURES} features, found {features}"));
    }
    check_length("mixtures", classes, part.components.len())?;
    let total = part.components.iter().try_fold(0_usize, |sum, &count| sum.checked_add(count));
    if total != Some(model.support_count()) || part.components.contains(&0) {
        let count = model.support_count();
        return fail(format!("expected mixtures of {count} components in all, found others"));
    }
    check_length("component weights", model.support_count(), part.weights.len())?;
    let values = |count: &usize| part.covariance.values(*count, features);
    let expected = part.components.iter().map(values).sum();
    check_length("covariances", expected, part.covariances.len())?;
    check_length("priors", classes, part.log_priors.len())?;
    if !part.loss.is_empty() {
        check_length("losses", classes * classes, part.loss.len())?;
    }
    check_finite("covariances", &part.covariances)?;
    check_finite("component weights", &part.weights)?;
    check_finite("losses", &part.loss)?;
    check_priors(&part.log_priors)
}

fn check_neighbours(part: &Neighbours, model: &Model, classes: usize) -> Result<()> {
    let (rows, columns) = (model.support_count(), model.features());
    if part.k == 0 || part.k > rows {
        return fail(format!("expected 1 to {rows} neighbours, found {}", part.k));
    }
    check_length("targets", rows, part.targets.len())?;
    check_finite("targets", &part.targets)?;
    if !part.whitening.is_empty() {
        if columns > MAX_FEATURES {
            return fail(format!("expected at most {MAX_FEATURES} features, found {columns}"));
        }
        check_length("whitening", columns * columns, part.whitening.len())?;
        check_finite("whitening", &part.whitening)?;
    }
    if model.kind.is_regressor() {
        return Ok(());
    }
    let limit = if model.classes.is_some() { classes } else { rows };
    let sound = |target: &f64| *target >= 0.0 && *target < limit as f64 && target.fract() == 0.0;
    match part.targets.iter().find(|target| !sound(target)) {
        Some(target) => fail(format!("expected targets from 0 to {}, found {target}", limit - 1)),
        None => Ok(()),
    }
}

fn check_windows(part: &Windows, classes: usize) -> Result<()> {
    check_length("widths", classes, part.widths.len())?;
    check_length("priors", classes, part.log_priors.len())?;
    if let Some(width) = part.widths.iter().find(|width| !(width.is_finite() && **width > 0.0)) {
        return fail(format!("expected widths above 0, found {width}"));
    }
    check_priors(&part.log_priors)
}

fn check_length(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::length(what, expected, found)) }
}

fn check_finite(what: &'static str, values: &[f64]) -> Result<()> {
    match values.iter().find(|value| !value.is_finite()) {
        Some(value) => fail(format!("expected finite {what}, found {value}")),
        None => Ok(()),
    }
}

fn check_priors(log_priors: &[f64]) -> Result<()> {
    match log_priors.iter().find(|value| value.is_nan() || **value > 1e-9) {
        Some(value) => fail(format!("expected logarithms of priors of at most 0, found {value}")),
        None => Ok(()),
    }
}
