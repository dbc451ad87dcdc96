//! The machines that are trained on sequences with tags.

use super::entries::Entry;
use super::parameter::{Domain, Fallback, Parameter};
use super::resolver::Resolver;
use super::shared::{C, KERNEL, MAX_ITER, STARTS, TOL};
use crate::error::{Error, Result};
use crate::machine::sequence::{ChainSvc, HiddenMarkovMachine, TagConstraints, TagLoss};
use crate::machine::{Machine, MachineKind};

/// The entries of this family.
pub(super) fn entry(kind: MachineKind) -> Option<&'static Entry> {
    match kind {
        MachineKind::ChainSvc => Some(&CHAIN_SVC),
        MachineKind::HiddenMarkov => Some(&HIDDEN_MARKOV),
        _ => None,
    }
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
    build: |values| not_of_rows(values),
};

const MARKOV: &[Parameter] = &[
    Parameter {
        name: "states",
        domain: Domain::whole(1),
        default: Fallback::Unset,
        about: "Number of states [default: that of the tags]",
    },
    Parameter {
        name: "emissions",
        domain: Domain::Choice(&["symbols", "gaussian", "poisson"]),
        default: Fallback::Text("symbols"),
        about: "What a state emits: one symbol, numbers of a normal distribution, or counts",
    },
    Parameter {
        name: "covariance",
        domain: Domain::Choice(&["diag", "full", "tied", "spherical"]),
        default: Fallback::Text("diag"),
        about: "Covariances of normal distributions",
    },
    Parameter {
        name: "smoothing",
        domain: Domain::NOT_NEGATIVE,
        default: Fallback::Real(0.1),
        about: "Added to every count of starts, transitions and symbols of known states",
    },
    STARTS,
];

const MARKOV_SOLVER: &[Parameter] = &[
    Parameter { about: "Growth of the log-likelihood below which Baum-Welch ends", ..TOL }
        .or(Fallback::Real(1e-4)),
    Parameter { about: "Most iterations of Baum-Welch", ..MAX_ITER }
        .within(Domain::whole(1))
        .or(Fallback::Integer(200)),
];

static HIDDEN_MARKOV: Entry = Entry {
    summary: "hidden Markov model of sequences whose states are known, partly known or unknown",
    groups: &[MARKOV, MARKOV_SOLVER],
    grid: &[],
    build: |values| not_of_rows(values),
};

fn not_of_rows(values: &Resolver<'_>) -> Result<Box<dyn Machine>> {
    let kind = values.specification.kind();
    let found = format!("{kind}, which is trained on sequences with tags");
    Err(Error::parameter("machine", "one that is trained on rows", found))
}

pub(super) fn hidden_markov(values: &Resolver<'_>) -> Result<HiddenMarkovMachine> {
    Ok(HiddenMarkovMachine {
        states: values.optional_whole("states"),
        emissions: values.choice("emissions")?,
        covariance: values.choice("covariance")?,
        smoothing: values.real("smoothing")?,
        starts: values.whole("starts")?,
        tol: values.real("tol")?,
        max_iterations: values.whole("max-iter")?,
    })
}

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
