//! The linear machines, on the features or on those that approximate a Gaussian kernel.

use super::entries::Entry;
use super::parameter::{Domain, Fallback, Parameter};
use super::resolver::Resolver;
use super::shared::{
    APPROXIMATE, C, CLASS_ORDER, CLASS_WEIGHT, EPSILON, GAMMA, LOSS, MAX_ITER, MULTICLASS, NU,
    PRECISION, SCALE, SHRINKING, TOL,
};
use crate::error::{Error, Result};
use crate::machine::{
    LinearLoss, LinearOneClass, LinearOptions, LinearSvc, LinearSvr, MachineKind, RankSvm,
};
use crate::solver::linear::DEFAULT_GAP;

const PENALTY: Parameter = Parameter {
    name: "penalty",
    domain: Domain::Choice(&["l2", "l1"]),
    default: Fallback::Text("l2"),
    about: "What weights cost: l2, or l1, which makes most of them 0",
};

const ALGORITHM: Parameter = Parameter {
    name: "solver",
    domain: Domain::Choice(&["auto", "dual", "blocks", "newton", "buckets"]),
    default: Fallback::Text("auto"),
    about: "The algorithm; the optimum is the same",
};

const GAP: Parameter = Parameter {
    name: "gap",
    domain: Domain::POSITIVE,
    default: Fallback::Real(DEFAULT_GAP),
    about: "Largest duality gap of a solution, relative to its objective; held beside tol",
};

pub(super) const INTERCEPT: Parameter = Parameter {
    name: "intercept",
    domain: Domain::Real { low: 0.0, above: true, high: f64::MAX, names: &["none", "free"] },
    default: Fallback::Real(1.0),
    about: "The constant of linear functions: none, free (without a penalty), or the value of an appended feature",
};

const LINEAR_TOL: Parameter =
    TOL.within(Domain::Real { low: 0.0, above: true, high: f64::MAX, names: &["auto"] });

const LINEAR_LOSS: Parameter = LOSS.or(Fallback::Text("squared-hinge"));

/// What the solvers take, the feature map and the scaling.
const COMMON: &[Parameter] =
    &[LINEAR_TOL, GAP, PRECISION, SHRINKING, MAX_ITER, APPROXIMATE, GAMMA, SCALE];

const GRID: &[&str] = &["gamma=2^-15:2^3:10", "c=2^-5:2^15:11"];

/// The entries of this family.
pub(super) fn entry(kind: MachineKind) -> Option<&'static Entry> {
    Some(match kind {
        MachineKind::LinearSvc => &LINEAR_SVC,
        MachineKind::Logistic => &LOGISTIC,
        MachineKind::LinearSvr => &LINEAR_SVR,
        MachineKind::LinearOneClass => &LINEAR_ONE_CLASS,
        MachineKind::RankSvm => &RANK_SVM,
        _ => return None,
    })
}

static LINEAR_SVC: Entry = Entry {
    summary: "linear classification with hinge losses",
    groups: &[
        &[C, LINEAR_LOSS, PENALTY],
        &[MULTICLASS.within(Domain::Choice(&["ovr", "crammer-singer"])).or(Fallback::Text("ovr"))],
        &[INTERCEPT, ALGORITHM, CLASS_WEIGHT, CLASS_ORDER],
        COMMON,
    ],
    grid: GRID,
    build: |values| Ok(Box::new(classifier(values)?)),
};

static LOGISTIC: Entry = Entry {
    summary: "logistic regression",
    groups: &[
        &[C, LOSS.within(Domain::Choice(&["logistic"])).or(Fallback::Text("logistic")), PENALTY],
        &[MULTICLASS.within(Domain::Choice(&["ovr"])).or(Fallback::Text("ovr"))],
        &[INTERCEPT, ALGORITHM, CLASS_WEIGHT, CLASS_ORDER],
        COMMON,
    ],
    grid: GRID,
    build: |values| Ok(Box::new(classifier(values)?)),
};

static LINEAR_SVR: Entry = Entry {
    summary: "linear regression with a tube of given width",
    groups: &[&[C, EPSILON, LOSS, INTERCEPT, ALGORITHM], COMMON],
    grid: GRID,
    build: |values| Ok(Box::new(regressor(values)?)),
};

static LINEAR_ONE_CLASS: Entry = Entry {
    summary: "novelty detection: a half-space of the features themselves",
    groups: &[&[NU], COMMON],
    grid: &["gamma=2^-15:2^3:10", "nu=0.01:0.8:8"],
    build: |values| {
        Ok(Box::new(LinearOneClass { nu: values.real("nu")?, options: options(values)? }))
    },
};

static RANK_SVM: Entry = Entry {
    summary: "linear ranking within queries (qid) by pairs of rows",
    groups: &[&[C, LOSS, GAP, PRECISION, MAX_ITER, APPROXIMATE, GAMMA, SCALE]],
    grid: &["gamma=2^-15:2^3:10", "c=2^-15:2^5:11"],
    build: |values| {
        check_gamma(values)?;
        let options = LinearOptions {
            gap: values.real("gap")?,
            precision: values.precision()?,
            max_iterations: values.max_iterations(),
            ..LinearOptions::default()
        };
        Ok(Box::new(RankSvm {
            c: values.real("c")?,
            squared: values.is("loss", "squared-hinge"),
            options,
        }))
    },
};

fn options(values: &Resolver<'_>) -> Result<LinearOptions> {
    check_gamma(values)?;
    let tol = if values.is("tol", "auto") { None } else { Some(values.real("tol")?) };
    Ok(LinearOptions {
        tol,
        gap: values.real("gap")?,
        precision: values.precision()?,
        shrinking: values.flag("shrinking")?,
        max_iterations: values.max_iterations(),
    })
}

fn check_gamma(values: &Resolver<'_>) -> Result<()> {
    let specification = values.specification;
    if !specification.has("approximate") && specification.is_given("gamma") {
        return Err(Error::parameter("gamma", "approximate beside it", "a linear machine alone"));
    }
    Ok(())
}

pub(super) fn classifier(values: &Resolver<'_>) -> Result<LinearSvc> {
    let crammer_singer = values.is("multiclass", "crammer-singer");
    for name in ["loss", "solver"] {
        if crammer_singer && values.specification.is_given(name) && !values.is(name, "auto") {
            let found = format!("{name} beside crammer-singer, which has its own");
            return Err(Error::parameter("multiclass", "ovr", found));
        }
    }
    Ok(LinearSvc {
        c: values.real("c")?,
        loss: match values.specification.kind() {
            MachineKind::Logistic => LinearLoss::Logistic,
            _ => values.choice("loss")?,
        },
        penalty: values.choice("penalty")?,
        multiclass: values.choice("multiclass")?,
        bias: values.number_or("intercept", crate::machine::Bias::Appended)?,
        solver: values.choice("solver")?,
        class_weights: values.class_weights()?,
        class_order: values.class_order(),
        options: options(values)?,
    })
}

pub(super) fn regressor(values: &Resolver<'_>) -> Result<LinearSvr> {
    Ok(LinearSvr {
        c: values.real("c")?,
        epsilon: values.real("epsilon")?,
        squared: values.is("loss", "squared-hinge"),
        bias: values.number_or("intercept", crate::machine::Bias::Appended)?,
        solver: values.choice("solver")?,
        options: options(values)?,
    })
}
