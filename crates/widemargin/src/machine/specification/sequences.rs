//! The machines that are trained on sequences with tags.

use super::entries::Entry;
use super::parameter::{Domain, Fallback, Parameter};
use super::resolver::Resolver;
use super::shared::{C, KERNEL, MAX_ITER, TOL};
use crate::error::{Error, Result};
use crate::machine::MachineKind;
use crate::machine::sequence::{ChainSvc, TagConstraints, TagLoss};

/// The entries of this family.
pub(super) fn entry(kind: MachineKind) -> Option<&'static Entry> {
    (kind == MachineKind::ChainSvc).then_some(&CHAIN_SVC)
}

const CHAIN: &[Parameter] = &[
    Parameter { about: "Penalty C of the loss of a sequence", ..C }.or(Fallback::Real(0.1)),
    Parameter {
        name: "loss",
        domain: Domain::Reals(&["hamming"]),
        default: Fallback::Text("hamming"),
        about: "Cost of a wrong tag: 1 (hamming), or a row for every true tag",
    },
    Parameter {
        name: "constraints",
        domain: Domain::Choice(&["none", "bio"]),
        default: Fallback::Text("none"),
        about: "Which tags may follow which; bio: I-X only after B-X and I-X",
    },
    Parameter {
        name: "cut-at-unknown",
        domain: Domain::Flag,
        default: Fallback::Flag(false),
        about: "Cut sequences where a tag is not known",
    },
];

/// A chain's kernel is linear unless another is given.
const CHAIN_KERNEL: &[Parameter] = &[
    Parameter { about: "Kernel of the features of a position, or a combination", ..KERNEL[0] }
        .or(Fallback::Text("linear")),
    KERNEL[1],
    KERNEL[2],
    KERNEL[3],
];

const CHAIN_SOLVER: &[Parameter] = &[
    Parameter { about: "Largest duality gap, relative to the objective", ..TOL }
        .or(Fallback::Real(0.01)),
    Parameter { about: "Most passes over the sequences", ..MAX_ITER }
        .within(Domain::whole(1))
        .or(Fallback::Integer(100)),
];

static CHAIN_SVC: Entry = Entry {
    summary: "tags of sequences with the largest margin to all others",
    groups: &[CHAIN, CHAIN_KERNEL, CHAIN_SOLVER],
    grid: &[],
    build: |values| {
        let kind = values.specification.kind();
        let found = format!("{kind}, which is trained on sequences with tags");
        Err(Error::parameter("machine", "one that is trained on rows", found))
    },
};

pub(super) fn chain_svc(values: &Resolver<'_>) -> Result<ChainSvc> {
    Ok(ChainSvc {
        c: values.real("c")?,
        kernel: values.kernel()?,
        loss: values.reals("loss").map_or(TagLoss::Hamming, TagLoss::Table),
        constraints: match values.is("constraints", "bio") {
            true => TagConstraints::Bio,
            false => TagConstraints::None,
        },
        cut_at_unknown: values.flag("cut-at-unknown")?,
        tol: values.real("tol")?,
        max_iterations: values.whole("max-iter")?,
    })
}
