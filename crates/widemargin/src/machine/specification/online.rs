//! The machines that learn from one row after another.

use super::entries::Entry;
use super::parameter::{Domain, Fallback, Parameter};
use super::resolver::Resolver;
use super::shared::{C, EPOCHS, KERNEL, SCALE, SHUFFLE, TOL};
use crate::error::Result;
use crate::machine::{Lasvm, MachineKind, OnlineSvc};

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

const C_AND_GAMMA: &[&str] = &["gamma=2^-15:2^3:10", "c=2^-5:2^15:11"];

pub(super) static LASVM: Entry = Entry {
    summary: "classification into two classes, online (LASVM)",
    groups: &[&[C, EPOCHS, SHUFFLE, TOL], KERNEL, &[SCALE]],
    grid: C_AND_GAMMA,
    build: |values| {
        Ok(Box::new(Lasvm {
            c: values.real("c")?,
            kernel: values.kernel()?,
            epochs: values.epochs()?,
            shuffle: values.flag("shuffle")?,
            tol: values.real("tol")?,
            ..Lasvm::default()
        }))
    },
};

pub(super) static ONLINE: Entry = Entry {
    summary: "classification with all classes in one problem, online",
    groups: &[&[C, EPOCHS, STRATEGY, BUDGET, SHUFFLE, TOL], KERNEL, &[SCALE]],
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
        shuffle: values.flag("shuffle")?,
        tol: values.real("tol")?,
        ..OnlineSvc::default()
    })
}
