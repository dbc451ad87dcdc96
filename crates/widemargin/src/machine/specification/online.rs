//! The machines that learn from one row after another.

use super::entries::Entry;
use super::parameter::{Domain, Fallback, Parameter};
use super::resolver::Resolver;
use super::shared::{C, CLASS_WEIGHT, EPOCHS, KERNEL, SCALE, SHUFFLE, TOL};
use crate::error::{Error, Result};
use crate::machine::{Lasvm, MachineKind, OnlineSchedule, OnlineSvc};

const STRATEGY: Parameter = Parameter {
    name: "strategy",
    domain: Domain::Choice(&[
        "blocks",
        "all",
        "random-all",
        "random-pattern",
        "whole-pattern",
        "larank",
    ]),
    default: Fallback::Text("blocks"),
    about: "How the variables of a step are chosen",
};

const BUDGET: Parameter = Parameter {
    name: "budget",
    domain: Domain::whole(1),
    default: Fallback::Unset,
    about: "Most support vectors that are kept",
};

const FINISH: Parameter = Parameter {
    name: "finish",
    domain: Domain::Flag,
    default: Fallback::Flag(true),
    about: "Solve among the rows that are kept after the last pass",
};

const OFFSET: Parameter = Parameter {
    name: "without-bias",
    domain: Domain::Flag,
    default: Fallback::Flag(false),
    about: "Learn a decision function without an offset",
};

/// How steps on earlier rows follow a fresh one, and when training ends.
const CONTROLS: &[Parameter] = &[
    Parameter {
        name: "steps",
        domain: Domain::Reals(&["adaptive"]),
        default: Fallback::Text("adaptive"),
        about: "Steps after each row: adaptive, or OLD,SUPPORTS, fixed numbers of the two kinds",
    },
    Parameter {
        name: "multiplier",
        domain: Domain::whole(1),
        default: Fallback::Unset,
        about: "Elementary steps of each adaptive step [default: the number of classes]",
    },
    Parameter {
        name: "clock",
        domain: Domain::Choice(&["counted", "wall"]),
        default: Fallback::Text("counted"),
        about: "Cost of steps: counted work, the same everywhere, or seconds",
    },
    Parameter {
        name: "rate-step",
        domain: Domain::SHARE,
        default: Fallback::Real(0.05),
        about: "Share of a new gain per cost in the running one (beta)",
    },
    Parameter {
        name: "least-share",
        domain: Domain::Real { low: 0.0, above: false, high: 0.333, names: &[] },
        default: Fallback::Real(0.05),
        about: "Least share of each kind of step in the sum of rates (eta)",
    },
    Parameter {
        name: "stop-gap",
        domain: Domain::POSITIVE,
        default: Fallback::Unset,
        about: "With --epochs inf, end at this duality gap relative to the objective as well",
    },
    Parameter {
        name: "target-dual",
        domain: Domain::Real { low: f64::MIN, above: false, high: f64::MAX, names: &[] },
        default: Fallback::Unset,
        about: "End after the pass that reaches this dual objective",
    },
];

const C_AND_GAMMA: &[&str] = &["gamma=2^-15:2^3:10", "c=2^-5:2^15:11"];

pub(super) static LASVM: Entry = Entry {
    summary: "classification into two classes, online (LASVM)",
    groups: &[&[C, EPOCHS, OFFSET, FINISH, CLASS_WEIGHT, SHUFFLE, TOL], KERNEL, &[SCALE]],
    grid: C_AND_GAMMA,
    build: |values| {
        Ok(Box::new(Lasvm {
            c: values.real("c")?,
            kernel: values.kernel()?,
            epochs: values.epochs()?,
            bias: !values.flag("without-bias")?,
            finishing: values.flag("finish")?,
            class_weights: values.class_weights()?,
            shuffle: values.flag("shuffle")?,
            tol: values.real("tol")?,
        }))
    },
};

pub(super) static ONLINE: Entry = Entry {
    summary: "classification with all classes in one problem, online",
    groups: &[
        &[C, EPOCHS, STRATEGY, BUDGET, CLASS_WEIGHT, SHUFFLE, TOL],
        CONTROLS,
        KERNEL,
        &[SCALE],
    ],
    grid: C_AND_GAMMA,
    build: |values| Ok(Box::new(online_svc(values)?)),
};

pub(super) fn online_svc(values: &Resolver<'_>) -> Result<OnlineSvc> {
    let machine = match values.specification.kind() {
        MachineKind::AllInOne(machine) => machine,
        _ => Default::default(),
    };
    Ok(OnlineSvc {
        machine,
        c: values.real("c")?,
        kernel: values.kernel()?,
        epochs: values.epochs()?,
        strategy: values.choice("strategy")?,
        budget: values.optional_whole("budget"),
        schedule: schedule(values)?,
        clock: values.choice("clock")?,
        rate_step: values.real("rate-step")?,
        least_share: values.real("least-share")?,
        multiplier: values.optional_whole("multiplier"),
        class_weights: values.class_weights()?,
        gap: values.optional_real("stop-gap"),
        target_dual: values.optional_real("target-dual"),
        shuffle: values.flag("shuffle")?,
        tol: values.real("tol")?,
        classes: None,
    })
}

/// The schedule of steps on earlier rows.
fn schedule(values: &Resolver<'_>) -> Result<OnlineSchedule> {
    let Some(counts) = values.reals("steps") else { return Ok(OnlineSchedule::Adaptive) };
    let whole = |count: &f64| count.fract() == 0.0 && (0.0..=1e6).contains(count);
    match counts[..] {
        [old, supports] if counts.iter().all(whole) => {
            Ok(OnlineSchedule::Fixed { old: old as usize, supports: supports as usize })
        }
        _ => Err(Error::parameter("steps", "adaptive or two whole numbers", format!("{counts:?}"))),
    }
}
