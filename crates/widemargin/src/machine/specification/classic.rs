//! The classical machines.

use super::entries::Entry;
use super::parameter::{Domain, Fallback, Parameter};
use super::resolver::Resolver;
use super::shared::{GAMMA, KERNEL, MAX_ITER, PRIORS, SCALE, STARTS, TOL, UNLABELLED};
use super::value::Value;
use crate::error::{Error, Result};
use crate::machine::{
    Affinity, CertifiedMixture, Classic, Covariance, Fisher, GaussianMixture, KMeans, KNearest,
    KernelDensity, KernelFisher, MachineKind, MixtureBayes, MixtureCriterion, MixtureStart,
    NetworkInput, Parzen, Priors, ProbabilisticNetwork, Shrinkage, Spectral, WindowWidth,
};

const fn choice(
    name: &'static str,
    names: &'static [&'static str],
    about: &'static str,
) -> Parameter {
    Parameter { name, domain: Domain::Choice(names), default: Fallback::Text(names[0]), about }
}

const fn whole(name: &'static str, default: Fallback, about: &'static str) -> Parameter {
    Parameter { name, domain: Domain::whole(1), default, about }
}

const fn list(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, domain: Domain::Reals(&[]), default: Fallback::Unset, about }
}

const SHARE: Domain = Domain::Real { low: 0.0, above: false, high: 1.0, names: &["none"] };

const SHRINKAGE: Parameter = Parameter {
    name: "shrinkage",
    domain: Domain::Real { low: 0.0, above: false, high: 1.0, names: &["none", "auto"] },
    default: Fallback::Text("none"),
    about: "Share of the mean variance in covariances; auto: Ledoit and Wolf's",
};

const UNBIASED: Parameter = Parameter {
    name: "unbiased",
    domain: Domain::Flag,
    default: Fallback::Flag(false),
    about: "Divide class covariances by one less than the rows",
};

const WIDTH: Parameter = Parameter {
    name: "width",
    domain: Domain::Real {
        low: 0.0,
        above: true,
        high: f64::MAX,
        names: &["scott", "silverman", "cv", "cv-errors"],
    },
    default: Fallback::Text("silverman"),
    about: "Width of Parzen windows: a rule or a number",
};

const WINDOW: Parameter = choice(
    "window",
    &["gaussian", "tophat", "epanechnikov", "exponential", "linear", "cosine"],
    "Shape of Parzen windows",
);

pub(super) const CLUSTERS: Parameter =
    whole("clusters", Fallback::Integer(8), "Number of clusters");

const NEIGHBOUR_COUNT: Parameter =
    whole("neighbours", Fallback::Integer(5), "Neighbours that vote");

const COMPONENTS: Parameter = whole("components", Fallback::Integer(1), "Gaussians of a mixture");

const COVARIANCE: Parameter = choice(
    "covariance",
    &["full", "tied", "diag", "spherical", "eii", "eev", "vev"],
    "Covariances of a mixture",
);

/// The covariances of a clustering, whose shape a criterion may choose.
const COVARIANCE_OR_AUTO: Parameter = choice(
    "covariance",
    &["full", "tied", "diag", "spherical", "eii", "eev", "vev", "auto"],
    "Covariances of a mixture; gmm: auto chooses by the criterion, bic unless given",
);

/// What a mixture of Gaussians takes.
const GAUSSIANS: &[Parameter] = &[
    COMPONENTS,
    Parameter {
        name: "criterion",
        domain: Domain::Choice(&["bic", "aic"]),
        default: Fallback::Unset,
        about: "Choose the number of Gaussians, up to components, by bic or aic",
    },
    Parameter {
        name: "floor",
        domain: Domain::NOT_NEGATIVE,
        default: Fallback::Real(1e-6),
        about: "What EM adds to every variance",
    },
    SHRINKAGE.within(SHARE),
    choice(
        "stop",
        &["likelihood", "parameters"],
        "What must change by less than tol for EM to end",
    ),
    TOL.or(Fallback::Real(1e-6)),
    MAX_ITER.within(Domain::whole(1)).or(Fallback::Integer(200)),
    STARTS,
    choice("init", &["kmeans", "k-means++", "random"], "Where EM starts"),
    list("start-weights", "Weights of the Gaussians to start from"),
    list("start-means", "Means of the Gaussians to start from, one after another"),
    list("start-precisions", "Precisions of the Gaussians to start from, one after another"),
    SCALE,
];

/// What k-nearest neighbours take.
const VOTES: &[Parameter] = &[
    NEIGHBOUR_COUNT,
    choice("weights", &["uniform", "distance"], "Weight of a neighbour's vote"),
    choice("metric", &["euclidean", "mahalanobis", "mahalanobis-within"], "Distance of neighbours"),
    choice("search", &["auto", "brute", "tree", "ball-tree"], "How neighbours are found"),
    SCALE,
];

const NEIGHBOUR_GRID: &[&str] = &["neighbours=1,3,5,9,15,25", "weights=uniform,distance"];
const WIDTH_GRID: &[&str] = &["width=cv,cv-errors,silverman,scott"];

/// The entries of this family.
pub(super) fn entry(kind: MachineKind) -> Option<&'static Entry> {
    let MachineKind::Classic(machine) = kind else { return None };
    Some(match machine {
        Classic::Fisher => &FISHER,
        Classic::KernelFisher => &KERNEL_FISHER,
        Classic::Mixture => &MIXTURE,
        Classic::CertifiedMixture => &CERTIFIED_MIXTURE,
        Classic::MixtureBayes => &MIXTURE_BAYES,
        Classic::Neighbours => &NEIGHBOURS,
        Classic::NeighboursRegression => &NEIGHBOURS_REGRESSION,
        Classic::Parzen => &PARZEN,
        Classic::Density => &DENSITY,
        Classic::ProbabilisticNetwork => &PROBABILISTIC_NETWORK,
        Classic::KMeans => &K_MEANS,
        Classic::Spectral => &SPECTRAL,
    })
}

static FISHER: Entry = Entry {
    summary: "Fisher's linear discriminant",
    groups: &[
        &[choice("threshold", &["prior", "midpoint", "least-errors"], "Boundary of two classes")],
        &[SHRINKAGE, PRIORS, UNBIASED],
        &[whole("directions", Fallback::Unset, "Most directions that are kept"), SCALE],
    ],
    grid: &["shrinkage=none,auto,0.1,0.5"],
    build: |values| {
        Ok(Box::new(Fisher {
            threshold: values.choice("threshold")?,
            shrinkage: values.number_or("shrinkage", Shrinkage::Share)?,
            priors: priors(values)?,
            unbiased: values.flag("unbiased")?,
            directions: values.optional_whole("directions"),
        }))
    },
};

static KERNEL_FISHER: Entry = Entry {
    summary: "Fisher's discriminant with a kernel",
    groups: &[
        &[Parameter {
            name: "mu",
            domain: Domain::POSITIVE,
            default: Fallback::Real(1e-3),
            about: "Ridge of the kernel discriminant",
        }],
        &[choice("ridge", &["coefficients", "norm"], "What the ridge penalises")],
        &[choice("threshold", &["svm", "midpoint"], "Boundary of two classes")],
        &[PRIORS, whole("landmarks", Fallback::Unset, "Rows in the expansion")],
        KERNEL,
        &[SCALE],
    ],
    grid: &["gamma=0.001:10:9", "mu=0.0001:1:5"],
    build: |values| {
        Ok(Box::new(KernelFisher {
            kernel: values.kernel()?,
            mu: values.real("mu")?,
            ridge: values.choice("ridge")?,
            threshold: values.choice("threshold")?,
            priors: priors(values)?,
            landmarks: values.optional_whole("landmarks"),
        }))
    },
};

static MIXTURE: Entry = Entry {
    summary: "clustering by a mixture of Gaussians",
    groups: &[GAUSSIANS, &[COVARIANCE_OR_AUTO]],
    grid: &[],
    build: |values| Ok(Box::new(mixture(values)?)),
};

static CERTIFIED_MIXTURE: Entry = Entry {
    summary: "mixture of Gaussians of known variances, its likelihood proven to be the largest",
    groups: &[&[
        COMPONENTS,
        list("variances", "Variance of every Gaussian, or one for all [default: 1]"),
        Parameter {
            name: "gap",
            domain: Domain::NOT_NEGATIVE,
            default: Fallback::Real(1e-3),
            about: "Difference of the log-likelihood and its proven bound at which the search ends",
        },
        MAX_ITER.within(Domain::whole(1)).or(Fallback::Integer(1_000_000)),
        STARTS.or(Fallback::Integer(10)),
        SCALE,
    ]],
    grid: &[],
    build: |values| {
        Ok(Box::new(CertifiedMixture {
            components: values.whole("components")?,
            variances: values.reals("variances").unwrap_or_else(|| vec![1.0]),
            gap: values.real("gap")?,
            max_iterations: values.whole("max-iter")?,
            starts: values.whole("starts")?,
        }))
    },
};

static MIXTURE_BAYES: Entry = Entry {
    summary: "Bayes classifier with a mixture of Gaussians for every class",
    groups: &[
        GAUSSIANS,
        &[COVARIANCE],
        &[PRIORS, UNBIASED, list("losses", "Losses, row by row: the cost of predicting j for i")],
        &[UNLABELLED],
    ],
    grid: &["components=1,2,3,5", "covariance=full,diag"],
    build: |values| {
        Ok(Box::new(MixtureBayes {
            mixture: mixture(values)?,
            priors: priors(values)?,
            loss: values.reals("losses"),
            unbiased: values.flag("unbiased")?,
            unlabelled: values.unlabelled(),
        }))
    },
};

static NEIGHBOURS: Entry = Entry {
    summary: "classification by the k nearest neighbours",
    groups: &[VOTES],
    grid: NEIGHBOUR_GRID,
    build: |values| Ok(Box::new(neighbours(values)?)),
};

static NEIGHBOURS_REGRESSION: Entry = Entry {
    summary: "regression by the k nearest neighbours",
    groups: &[VOTES],
    grid: NEIGHBOUR_GRID,
    build: |values| Ok(Box::new(neighbours(values)?)),
};

static PARZEN: Entry = Entry {
    summary: "classification by Parzen windows",
    groups: &[&[WINDOW, WIDTH.or(Fallback::Text("cv")), PRIORS, SCALE]],
    grid: WIDTH_GRID,
    build: |values| {
        Ok(Box::new(Parzen {
            window: values.choice("window")?,
            width: values.number_or("width", WindowWidth::Value)?,
            priors: priors(values)?,
        }))
    },
};

static DENSITY: Entry = Entry {
    summary: "density estimation by Parzen windows",
    groups: &[&[WINDOW, WIDTH, SCALE]],
    grid: &[],
    build: |values| {
        let width = values.number_or("width", WindowWidth::Value)?;
        Ok(Box::new(KernelDensity { window: values.choice("window")?, width }))
    },
};

static PROBABILISTIC_NETWORK: Entry = Entry {
    summary: "probabilistic neural network",
    groups: &[
        &[choice("input", &["distance", "unit-norm", "lifted"], "What the network is given")],
        &[Parameter {
            name: "radius",
            domain: Domain::NOT_NEGATIVE,
            default: Fallback::Unset,
            about: "Length of lifted rows; unset: that of the longest",
        }],
        &[WIDTH.or(Fallback::Text("cv-errors")), PRIORS, SCALE],
    ],
    grid: WIDTH_GRID,
    build: |values| {
        let input = match (values.choice("input")?, values.specification.value("radius")) {
            (NetworkInput::Lifted { .. }, Some(Value::Real(radius))) => {
                NetworkInput::Lifted { radius }
            }
            (input, None) => input,
            (input @ NetworkInput::Lifted { .. }, Some(_)) => input,
            (input, Some(_)) => return Err(Error::parameter("radius", "input lifted", input)),
        };
        let width = values.number_or("width", WindowWidth::Value)?;
        Ok(Box::new(ProbabilisticNetwork { input, width, priors: priors(values)? }))
    },
};

static K_MEANS: Entry = Entry {
    summary: "clustering by k-means",
    groups: &[
        &[CLUSTERS, STARTS, TOL.or(Fallback::Real(1e-4)).within(Domain::NOT_NEGATIVE)],
        &[MAX_ITER.within(Domain::whole(1)).or(Fallback::Integer(300))],
        &[list("centres", "Centres to start from, one after another"), SCALE],
    ],
    grid: &[],
    build: |values| {
        Ok(Box::new(KMeans {
            clusters: values.whole("clusters")?,
            starts: values.whole("starts")?,
            max_iterations: values.whole("max-iter")?,
            tol: values.real("tol")?,
            centres: values.reals("centres"),
        }))
    },
};

static SPECTRAL: Entry = Entry {
    summary: "spectral clustering",
    groups: &[
        &[CLUSTERS, NEIGHBOUR_COUNT.or(Fallback::Unset), GAMMA],
        &[choice("cut", &["kmeans", "normalised", "ratio"], "How the graph is cut")],
        &[STARTS.or(Fallback::Integer(10)), SCALE],
    ],
    grid: &[],
    build: |values| {
        let affinity = match values.optional_whole("neighbours") {
            Some(_) if values.specification.is_given("gamma") => {
                return Err(Error::parameter("neighbours", "no gamma beside it", "both"));
            }
            Some(count) => Affinity::Neighbours { count },
            None => Affinity::Gaussian { gamma: values.gamma()?.resolve(values.features) },
        };
        let (clusters, starts) = (values.whole("clusters")?, values.whole("starts")?);
        Ok(Box::new(Spectral { clusters, affinity, cut: values.choice("cut")?, starts }))
    },
};

fn priors(values: &Resolver<'_>) -> Result<Priors> {
    Ok(match values.reals("priors") {
        Some(shares) => Priors::Given(shares),
        None if values.is("priors", "equal") => Priors::Equal,
        None => Priors::Frequencies,
    })
}

fn mixture(values: &Resolver<'_>) -> Result<GaussianMixture> {
    let shrinkage = match values.number_or("shrinkage", Shrinkage::Share)? {
        Shrinkage::Share(share) => share,
        _ => 0.0,
    };
    let is_chosen = values.is("covariance", "auto");
    let criterion = match values.specification.has("criterion") {
        true => Some(values.choice("criterion")?),
        false => is_chosen.then_some(MixtureCriterion::Bic),
    };
    Ok(GaussianMixture {
        components: values.whole("components")?,
        criterion,
        covariance: if is_chosen { Covariance::Full } else { values.choice("covariance")? },
        shapes: if is_chosen { Covariance::ALL.to_vec() } else { Vec::new() },
        floor: values.real("floor")?,
        shrinkage,
        stop: values.choice("stop")?,
        tol: values.real("tol")?,
        max_iterations: values.whole("max-iter")?,
        starts: values.whole("starts")?,
        initialisation: values.choice("init")?,
        start: MixtureStart {
            weights: values.reals("start-weights"),
            means: values.reals("start-means"),
            precisions: values.reals("start-precisions"),
        },
    })
}

fn neighbours(values: &Resolver<'_>) -> Result<KNearest> {
    let regression = MachineKind::Classic(Classic::NeighboursRegression);
    Ok(KNearest {
        k: values.whole("neighbours")?,
        weighting: values.choice("weights")?,
        metric: values.choice("metric")?,
        search: values.choice("search")?,
        regression: values.specification.kind() == regression,
    })
}
