//! Parameters that several machines have, each declared once.

use super::parameter::{Domain, Fallback, Parameter};

const fn parameter(
    name: &'static str,
    domain: Domain,
    default: Fallback,
    about: &'static str,
) -> Parameter {
    Parameter { name, domain, default, about }
}

pub(super) const C: Parameter =
    parameter("c", Domain::POSITIVE, Fallback::Real(1.0), "Penalty C of an error");

/// A penalty that may be infinite.
pub(super) const C_OR_INFINITY: Parameter = parameter(
    "c",
    Domain::Real { low: 0.0, above: true, high: f64::MAX, names: &["inf"] },
    Fallback::Real(1.0),
    "Penalty C of an error; inf: none is allowed (hard margin)",
);

pub(super) const NU: Parameter =
    parameter("nu", Domain::SHARE, Fallback::Real(0.5), "Bound on the share of errors; in (0, 1]");

pub(super) const EPSILON: Parameter = parameter(
    "epsilon",
    Domain::NOT_NEGATIVE,
    Fallback::Real(0.1),
    "Half the width of the tube in which errors cost nothing",
);

pub(super) const LOSS: Parameter = parameter(
    "loss",
    Domain::Choice(&["hinge", "squared-hinge"]),
    Fallback::Text("hinge"),
    "Whether an error costs C times itself or C times its square",
);

pub(super) const MULTICLASS: Parameter = parameter(
    "multiclass",
    Domain::Choice(&["ovo", "ovr", "dag", "ecoc"]),
    Fallback::Text("ovo"),
    "How more than two classes are reduced to two-class problems",
);

/// The code of `multiclass=ecoc`.
pub(super) const CODES: &[Parameter] = &[
    parameter(
        "code",
        Domain::Reals(&[]),
        Fallback::Unset,
        "Code of --multiclass ecoc: entries -1, 0, 1 of every class, one class after the other",
    ),
    parameter(
        "decoding",
        Domain::Choice(&["hinge", "hamming", "exponential", "linear"]),
        Fallback::Text("hinge"),
        "Loss of a decision value by which --multiclass ecoc elects the class",
    ),
];

pub(super) const CLASS_WEIGHT: Parameter = parameter(
    "class-weight",
    Domain::ClassWeights,
    Fallback::Text("none"),
    "Factors on C by class",
);

pub(super) const CLASS_ORDER: Parameter = parameter(
    "class-order",
    Domain::Choice(&["sorted", "first-seen"]),
    Fallback::Text("sorted"),
    "Which class comes first: the smallest label, or the first of the file as in LIBSVM",
);

pub(super) const GAMMA: Parameter = parameter(
    "gamma",
    Domain::Real {
        low: 0.0,
        above: false,
        high: f64::MAX,
        names: &["scale", "auto", "median", "jaakkola", "jaakkola-nearest"],
    },
    Fallback::Text("scale"),
    "Width of the kernel; scale: 1/(features * variance), auto: 1/features, median: 1/median squared distance, \
     jaakkola: by that of rows of different classes (of all pairs, or -nearest)",
);

/// The kernel and its parameters.
pub(super) const KERNEL: &[Parameter] = &[
    parameter("kernel", Domain::Kernel, Fallback::Text("rbf"), "The kernel, or a combination"),
    GAMMA,
    parameter(
        "degree",
        Domain::whole(0),
        Fallback::Integer(3),
        "Exponent of the polynomial kernel",
    ),
    parameter(
        "coef0",
        Domain::Real { low: f64::MIN, above: false, high: f64::MAX, names: &[] },
        Fallback::Real(0.0),
        "Constant of the polynomial and sigmoid kernels",
    ),
];

pub(super) const UNLABELLED: Parameter = parameter(
    "unlabelled",
    Domain::Label,
    Fallback::Unset,
    "Label of rows whose class or value is not known",
);

pub(super) const APPROXIMATE: Parameter = parameter(
    "approximate",
    Domain::Map,
    Fallback::Unset,
    "Learn on features that approximate a Gaussian kernel of the given gamma, or each of --kernels",
);

/// Several kernels whose weights are learnt.
pub(super) const KERNELS: &[Parameter] = &[
    parameter(
        "kernels",
        Domain::Kernels,
        Fallback::Unset,
        "Kernels whose weights are learnt, such as \"linear, poly(degree=2), rbf(gamma=0.1)\"",
    ),
    parameter(
        "weights",
        Domain::KernelWeights,
        Fallback::Text("nonnegative"),
        "Weights of the kernels: nonnegative, signed, uniform, lp=P for those of a P-norm, or by a rule: alignment, margin=L",
    ),
    parameter(
        "jitter",
        Domain::NOT_NEGATIVE,
        Fallback::Unset,
        "Share of its mean diagonal added to that of every kernel of --kernels [signed: 1e-6]",
    ),
    parameter(
        "repair",
        Domain::Choice(&["none", "shift", "refuse"]),
        Fallback::Text("none"),
        "What is done about --kernels that are not positive semidefinite, beside a warning",
    ),
    APPROXIMATE,
    UNLABELLED,
];

pub(super) const TOL: Parameter = parameter(
    "tol",
    Domain::POSITIVE,
    Fallback::Real(1e-3),
    "Stop when the optimality conditions hold to this tolerance",
);

pub(super) const MAX_ITER: Parameter = parameter(
    "max-iter",
    Domain::whole(0),
    Fallback::Unset,
    "Stop each sub-problem after this many steps",
);

pub(super) const PRECISION: Parameter = parameter(
    "precision",
    Domain::Choice(&["auto", "mixed", "f32", "f64"]),
    Fallback::Text("auto"),
    "Number format of kernel values; auto: f32, but f64 below a tolerance of 1e-5 and where rounding moves \
     decision values by more than the tolerance; mixed: by more than a tenth of it",
);

pub(super) const SHRINKING: Parameter = parameter(
    "shrinking",
    Domain::Flag,
    Fallback::Flag(true),
    "Whether variables that stay at their bounds are left out for a while",
);

/// What the solvers of dual problems take.
pub(super) const SOLVER: &[Parameter] = &[TOL, PRECISION, SHRINKING, MAX_ITER];

pub(super) const EPOCHS: Parameter = parameter(
    "epochs",
    Domain::Integer { low: 1, names: &["inf"] },
    Fallback::Integer(1),
    "Passes over the rows; inf: until the optimum of the batch machine",
);

pub(super) const SHUFFLE: Parameter = parameter(
    "shuffle",
    Domain::Flag,
    Fallback::Flag(true),
    "Whether the rows come in random order",
);

/// How the features are scaled, which every machine takes.
pub(super) const SCALE: Parameter = parameter(
    "scale",
    Domain::Scaling,
    Fallback::Text("none"),
    "How the features are scaled; part of the model",
);

pub(super) const PRIORS: Parameter = parameter(
    "priors",
    Domain::Reals(&["frequencies", "equal"]),
    Fallback::Text("frequencies"),
    "Class probabilities",
);

pub(super) const STARTS: Parameter =
    parameter("starts", Domain::whole(1), Fallback::Integer(1), "Starts of which the best is kept");
