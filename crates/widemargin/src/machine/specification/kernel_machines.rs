//! The support vector machines with a kernel.

use super::classic::CLUSTERS;
use super::entries::Entry;
use super::linear::INTERCEPT;
use super::parameter::{Domain, Fallback, Parameter};
use super::resolver::Resolver;
use super::shared::{
    C, C_OR_INFINITY, CLASS_ORDER, CLASS_WEIGHT, CODES, EPSILON, KERNEL, KERNELS, LOSS, MAX_ITER,
    MULTICLASS, NU, PRECISION, SCALE, SOLVER, STARTS, TOL, UNLABELLED,
};
use crate::error::{Error, Result};
use crate::machine::{
    Balance, BaseMachine, Bias, ClassShares, ClusteringWidths, DistancePrice, KernelAdatron, LsSvc,
    LsSvr, Machine, MachineKind, MaxMarginClustering, MulticlassSvc, NuSvc, NuSvr, OneClass,
    RobustSvc, SemiSupervisedSvc, Svc, Svdd, Svr,
};

/// LIBSVM's `grid.py`.
const C_AND_GAMMA: &[&str] = &["gamma=2^-15:2^3:10", "c=2^-5:2^15:11"];
const NU_AND_GAMMA: &[&str] = &["gamma=2^-15:2^3:10", "nu=0.01:0.8:8"];

/// The entries of this family.
pub(super) fn entry(kind: MachineKind) -> Option<&'static Entry> {
    Some(match kind {
        MachineKind::CSvc => &C_SVC,
        MachineKind::NuSvc => &NU_SVC,
        MachineKind::EpsilonSvr => &EPSILON_SVR,
        MachineKind::NuSvr => &NU_SVR,
        MachineKind::OneClass => &ONE_CLASS,
        MachineKind::Svdd => &SVDD,
        MachineKind::AllInOne(_) => &ALL_IN_ONE,
        MachineKind::LsSvc => &LS_SVC,
        MachineKind::LsSvr => &LS_SVR,
        MachineKind::RobustSvc => &ROBUST_SVC,
        MachineKind::SemiSupervised => &SEMI_SVC,
        MachineKind::MaxMarginClustering => &MAX_MARGIN_CLUSTERING,
        _ => return None,
    })
}

const BIAS: Parameter = Parameter {
    name: "bias",
    domain: Domain::Flag,
    default: Fallback::Flag(false),
    about: "Give the score of every class an offset",
};

/// Another training of two classes, to compare with.
const ADATRON: &[Parameter] = &[
    Parameter {
        name: "algorithm",
        domain: Domain::Choice(&["decomposition", "adatron"]),
        default: Fallback::Text("decomposition"),
        about: "How two classes are trained; adatron: the Kernel-Adatron, whose offset is penalised",
    },
    Parameter {
        name: "rate",
        domain: Domain::Real { low: 0.0, above: true, high: 1.999, names: &[] },
        default: Fallback::Real(1.0),
        about: "Rate of the Kernel-Adatron, below 2",
    },
];

/// Parameters of C-SVC that the Kernel-Adatron does without.
const NOT_OF_ADATRON: &[&str] = &[
    "loss",
    "multiclass",
    "class-weight",
    "class-order",
    "code",
    "decoding",
    "kernels",
    "weights",
];

fn adatron(values: &Resolver<'_>, rate: f64) -> Result<Box<dyn Machine>> {
    if let Some(name) = NOT_OF_ADATRON.iter().find(|name| values.specification.is_given(name)) {
        let expected = format!("decomposition with {name}");
        return Err(Error::parameter("algorithm", expected, "adatron"));
    }
    Ok(Box::new(KernelAdatron {
        c: values.real("c")?,
        kernel: values.kernel()?,
        rate,
        options: values.options()?,
    }))
}

static C_SVC: Entry = Entry {
    summary: "classification with penalty C",
    groups: &[
        &[C_OR_INFINITY, LOSS, MULTICLASS, CLASS_WEIGHT, CLASS_ORDER],
        CODES,
        KERNEL,
        KERNELS,
        SOLVER,
        ADATRON,
        &[SCALE],
    ],
    grid: C_AND_GAMMA,
    build: |values| {
        let rate = values.real("rate")?;
        if values.is("algorithm", "adatron") {
            return adatron(values, rate);
        }
        if values.specification.is_given("rate") {
            return Err(Error::parameter("algorithm", "adatron with rate", "decomposition"));
        }
        let svc = Svc {
            c: values.real("c")?,
            kernel: values.kernel()?,
            loss: values.loss(),
            class_weights: values.class_weights()?,
            scheme: values.scheme()?,
            class_order: values.class_order(),
            options: values.options()?,
        };
        values.machine(svc, BaseMachine::Svc)
    },
};

static NU_SVC: Entry = Entry {
    summary: "classification with a bound on the share of margin errors",
    groups: &[&[NU, MULTICLASS, CLASS_WEIGHT, CLASS_ORDER], CODES, KERNEL, SOLVER, &[SCALE]],
    grid: NU_AND_GAMMA,
    build: |values| {
        Ok(Box::new(NuSvc {
            nu: values.real("nu")?,
            kernel: values.kernel()?,
            class_weights: values.class_weights()?,
            scheme: values.scheme()?,
            class_order: values.class_order(),
            options: values.options()?,
        }))
    },
};

static EPSILON_SVR: Entry = Entry {
    summary: "regression with a tube of given width",
    groups: &[&[C, EPSILON, LOSS], KERNEL, KERNELS, SOLVER, &[SCALE]],
    grid: C_AND_GAMMA,
    build: |values| {
        let svr = Svr {
            c: values.real("c")?,
            epsilon: values.real("epsilon")?,
            loss: values.loss(),
            kernel: values.kernel()?,
            options: values.options()?,
        };
        values.machine(svr, BaseMachine::Svr)
    },
};

static NU_SVR: Entry = Entry {
    summary: "regression with a bound on the share of rows outside the tube",
    groups: &[&[C, NU], KERNEL, SOLVER, &[SCALE]],
    grid: C_AND_GAMMA,
    build: |values| {
        Ok(Box::new(NuSvr {
            c: values.real("c")?,
            nu: values.real("nu")?,
            kernel: values.kernel()?,
            options: values.options()?,
        }))
    },
};

static ONE_CLASS: Entry = Entry {
    summary: "novelty detection: a half-space away from the origin",
    groups: &[&[NU], KERNEL, KERNELS, SOLVER, &[SCALE]],
    grid: NU_AND_GAMMA,
    build: |values| {
        let (nu, kernel, options) = (values.real("nu")?, values.kernel()?, values.options()?);
        values.machine(OneClass { nu, kernel, options }, BaseMachine::OneClass)
    },
};

static SVDD: Entry = Entry {
    summary: "novelty detection: the smallest ball",
    groups: &[&[NU], KERNEL, SOLVER, &[SCALE]],
    grid: NU_AND_GAMMA,
    build: |values| {
        let (nu, kernel, options) = (values.real("nu")?, values.kernel()?, values.options()?);
        Ok(Box::new(Svdd { nu, kernel, options }))
    },
};

static ALL_IN_ONE: Entry = Entry {
    summary: "classification with all classes in one problem",
    groups: &[&[C_OR_INFINITY, BIAS, CLASS_WEIGHT, CLASS_ORDER], KERNEL, KERNELS, SOLVER, &[SCALE]],
    grid: C_AND_GAMMA,
    build: |values| {
        let machine = match values.specification.kind() {
            MachineKind::AllInOne(machine) => machine,
            _ => Default::default(),
        };
        let svc = MulticlassSvc {
            machine,
            c: values.real("c")?,
            kernel: values.kernel()?,
            bias: values.flag("bias")?,
            class_weights: values.class_weights()?,
            classes: None,
            class_order: values.class_order(),
            options: values.options()?,
        };
        values.machine(svc, BaseMachine::Multiclass)
    },
};

/// What the solver of a linear system takes.
const LINEAR_SYSTEM: &[Parameter] = &[TOL, PRECISION, MAX_ITER, SCALE];

static LS_SVC: Entry = Entry {
    summary: "classification by least squares",
    groups: &[&[C, CLASS_WEIGHT, CLASS_ORDER], KERNEL, LINEAR_SYSTEM],
    grid: C_AND_GAMMA,
    build: |values| {
        Ok(Box::new(LsSvc {
            c: values.real("c")?,
            kernel: values.kernel()?,
            class_weights: values.class_weights()?,
            class_order: values.class_order(),
            options: values.options()?,
        }))
    },
};

static LS_SVR: Entry = Entry {
    summary: "regression by least squares",
    groups: &[&[C], KERNEL, LINEAR_SYSTEM],
    grid: C_AND_GAMMA,
    build: |values| {
        let (c, kernel, options) = (values.real("c")?, values.kernel()?, values.options()?);
        Ok(Box::new(LsSvr { c, kernel, options }))
    },
};

/// What semi-supervised classification takes beside the kernel.
const SEMI_SUPERVISED: &[Parameter] = &[
    C.within(Domain::Real { low: 0.0, above: true, high: f64::MAX, names: &["auto"] })
        .or(Fallback::Text("auto")),
    Parameter {
        name: "unlabelled-weight",
        domain: Domain::POSITIVE,
        default: Fallback::Real(1.0),
        about: "Weight of all rows without a label beside that of all with one",
    },
    Parameter {
        name: "share",
        domain: Domain::Reals(&["auto", "labelled"]),
        default: Fallback::Text("auto"),
        about: "Share of the classes among rows without a label, or of the second of two; auto: estimated",
    },
    Parameter {
        name: "labelling",
        domain: Domain::Choice(&["auto", "annealing", "switching", "relaxation"]),
        default: Fallback::Text("auto"),
        about: "How missing labels are found",
    },
    Parameter {
        name: "landmarks",
        domain: Domain::whole(1),
        default: Fallback::Integer(500),
        about: "Most rows whose kernel values approximate the feature space",
    },
    UNLABELLED.or(Fallback::Text("?")),
    CLASS_ORDER,
    TOL,
    SCALE,
];

/// A kernel, linear by default.
const LINEAR_KERNEL: &[Parameter] =
    &[KERNEL[0].or(Fallback::Text("linear")), KERNEL[1], KERNEL[2], KERNEL[3]];

static SEMI_SVC: Entry = Entry {
    summary: "classification from rows of which only some have labels",
    groups: &[SEMI_SUPERVISED, LINEAR_KERNEL],
    grid: &["c=2^-5:2^15:11"],
    build: |values| {
        let shares = match values.reals("share") {
            Some(shares) => ClassShares::Given(shares),
            None if values.is("share", "labelled") => ClassShares::Labelled,
            None => ClassShares::Auto,
        };
        Ok(Box::new(SemiSupervisedSvc {
            c: if values.is("c", "auto") { None } else { Some(values.real("c")?) },
            unlabelled_weight: values.real("unlabelled-weight")?,
            shares,
            kernel: values.kernel()?,
            landmarks: values.optional_whole("landmarks").unwrap_or(500),
            method: values.choice("labelling")?,
            unlabelled: values.unlabelled(),
            class_order: values.class_order(),
            tol: values.real("tol")?,
        }))
    },
};

/// What clustering takes beside the kernel.
const CLUSTERING: &[Parameter] = &[
    CLUSTERS.or(Fallback::Integer(2)).within(Domain::whole(2)),
    Parameter {
        name: "beta",
        domain: Domain::POSITIVE,
        default: Fallback::Real(0.01),
        about: "Weight of the squared norm beside the sum of the losses; 1/C",
    },
    Parameter {
        name: "balance",
        domain: Domain::Real { low: 0.0, above: false, high: f64::MAX, names: &["auto"] },
        default: Fallback::Text("auto"),
        about: "Most rows by which clusters differ in size, below 1 a share; auto: a tenth",
    },
    Parameter {
        name: "share",
        domain: Domain::Real { low: 0.0, above: true, high: 1.0, names: &["half"] },
        default: Fallback::Text("half"),
        about: "Share of the rows that one of two clusters has; balance is then from that",
    },
    Parameter {
        name: "links",
        domain: Domain::Links,
        default: Fallback::Text("none"),
        about: "Rows from 0 in one of two clusters, or in both: 0=3,1!5",
    },
    Parameter {
        name: "centre",
        domain: Domain::Flag,
        default: Fallback::Flag(false),
        about: "Centre the kernel in its feature space",
    },
    Parameter {
        name: "labelling",
        domain: Domain::Choice(&["auto", "enumeration", "relaxation", "alternation", "iterative"]),
        default: Fallback::Text("auto"),
        about: "How the labels of clusters are found",
    },
    Parameter {
        name: "widths",
        domain: Domain::Choice(&["given", "multi-scale"]),
        default: Fallback::Text("given"),
        about: "Whether the largest margin of five Gaussian widths is taken, in the place of gamma",
    },
    STARTS.within(Domain::whole(0)).or(Fallback::Integer(5)),
    TOL.or(Fallback::Real(1e-6)),
    SCALE,
];

static MAX_MARGIN_CLUSTERING: Entry = Entry {
    summary: "clustering with the largest margin, with a proven bound",
    groups: &[KERNEL, CLUSTERING],
    grid: &[],
    build: |values| {
        let widths: ClusteringWidths = values.choice("widths")?;
        if widths == ClusteringWidths::MultiScale && values.specification.is_given("gamma") {
            let expected = "either gamma or several widths";
            return Err(Error::parameter("widths", expected, "both"));
        }
        Ok(Box::new(MaxMarginClustering {
            clusters: values.whole("clusters")?,
            beta: values.real("beta")?,
            kernel: values.kernel()?,
            centre: values.flag("centre")?,
            balance: values.number_or("balance", Balance::Most)?,
            share: if values.is("share", "half") { None } else { Some(values.real("share")?) },
            links: values.choice("links")?,
            method: values.choice("labelling")?,
            widths,
            starts: values.whole("starts")?,
            tol: values.real("tol")?,
        }))
    },
};

/// What robust machines take beside the kernel.
const ROBUST: &[Parameter] = &[
    C,
    LOSS.within(Domain::Choice(&["ramp", "eta", "trimmed", "centroid", "leave-one-out", "power"]))
        .or(Fallback::Text("ramp")),
    Parameter {
        name: "robust-method",
        domain: Domain::Choice(&["auto", "enumeration", "relaxation", "cccp", "alternation"]),
        default: Fallback::Text("auto"),
        about: "How losses that leave rows out are minimised",
    },
    Parameter {
        name: "keep",
        domain: Domain::SHARE,
        default: Fallback::Real(0.8),
        about: "Share of the rows that count with trimmed losses",
    },
    Parameter {
        name: "power",
        domain: Domain::Real { low: 0.0, above: true, high: 2.0, names: &[] },
        default: Fallback::Real(0.5),
        about: "Exponent of powers of the hinge loss",
    },
    Parameter {
        name: "distance-price",
        domain: Domain::Real { low: 0.0, above: false, high: f64::MAX, names: &["auto"] },
        default: Fallback::Text("auto"),
        about: "What a squared distance from the mean of the class takes off the margin",
    },
    Parameter {
        name: "left-out",
        domain: Domain::Real { low: 0.0, above: false, high: 1.0, names: &[] },
        default: Fallback::Real(1.0),
        about: "Share of its own term that a row of leave-one-out losses does without",
    },
    INTERCEPT.within(Domain::Real { low: 0.0, above: true, high: f64::MAX, names: &["none"] }),
    STARTS.within(Domain::whole(0)).or(Fallback::Integer(5)),
    CLASS_WEIGHT,
    CLASS_ORDER,
    TOL,
    SCALE,
];

/// Parameters that only one loss has.
const OF_ONE_LOSS: &[(&str, &str)] = &[
    ("keep", "trimmed"),
    ("power", "power"),
    ("distance-price", "centroid"),
    ("left-out", "leave-one-out"),
];

static ROBUST_SVC: Entry = Entry {
    summary: "classification with losses that outliers do not pull, with a proven bound",
    groups: &[KERNEL, ROBUST],
    grid: C_AND_GAMMA,
    build: |values| {
        for &(name, loss) in OF_ONE_LOSS {
            if values.specification.is_given(name) && !values.is("loss", loss) {
                return Err(Error::parameter(name, format!("loss {loss} with it"), "another"));
            }
        }
        Ok(Box::new(RobustSvc {
            c: values.real("c")?,
            loss: values.choice("loss")?,
            method: values.choice("robust-method")?,
            keep: values.real("keep")?,
            power: values.real("power")?,
            distance_price: values.number_or("distance-price", DistancePrice::Value)?,
            left_out: values.real("left-out")?,
            kernel: values.kernel()?,
            intercept: values.number_or("intercept", Bias::Appended)?,
            starts: values.whole("starts")?,
            class_weights: values.class_weights()?,
            class_order: values.class_order(),
            tol: values.real("tol")?,
        }))
    },
};
