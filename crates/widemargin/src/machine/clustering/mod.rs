//! Maximum-margin clustering (Xu, Neufeld, Larson and Schuurmans 2005): labels whose support vector machine has the
//! largest soft margin.
//!
//! ```text
//! minimise over y in {−1, 1}ⁿ with |Σ yᵢ| ≤ ε   min over w  ½β‖w‖² + Σ max(0, 1 − yᵢ⟨w, φ(xᵢ)⟩)
//! ```
//!
//! There is no offset, which would make the relaxation non-convex; centring the kernel does part of its work. The
//! problem is NP-hard. Its semidefinite relaxation is solved with a proof of its value
//! ([`elliptope`](crate::solver::elliptope)), rounded and improved; few rows are searched completely. More than two
//! clusters have simplex codes, and many rows features in the place of their matrix.

mod body;
mod iterative;
mod links;
mod many;
mod memberships;
mod widths;

use std::time::Instant;

pub use body::MarginClusters;
pub use links::Links;
use links::{allowed_counts, largest_difference};
use many::{Coded, ManyClusters, allowed_sizes, largest_sum};
use memberships::memberships;
pub use widths::ClusteringWidths;

use super::fit::{FitInput, Machine};
use super::model::{Body, DecisionFunction, KernelExpansion, MachineKind, Model, Part, Training};
use super::names::{auto_or_number, defaults, names};
use super::parameters::Precision;
use super::training::support_table;
use crate::context::{Context, Event};
use crate::data::{Dataset, memory};
use crate::error::{Error, Result};
use crate::kernel::{Gram, Kernel};
use crate::outcome::{Outcome, Status};
use crate::solver::elliptope::{self, Labelling, Options, Problem, Relaxation, Signs};

/// Rows up to which all labels are searched unless a method was chosen: a moment, also where nothing can be pruned.
const ENUMERATED: usize = 12;

/// Rows up to which the relaxation is solved unless a method was chosen: a minute or two.
const RELAXED: usize = 2000;

/// Rows up to which training and relabelling hold the matrix of all pairs where features would do.
const LARGEST_ALTERNATED_MATRIX: usize = 4000;

/// Share of the rows by which the clusters may differ in size by default.
const SHARE: f64 = 0.1;

/// Share of nβ/2, the value for an identity matrix, from which a kernel hardly distinguishes rows.
const INDISTINCT_SHARE: f64 = 0.98;

/// How the labels are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClusteringMethod {
    /// By the number of rows.
    #[default]
    Auto,
    /// The relaxation for the bound, and a complete search of the labels.
    Enumeration,
    /// The relaxation, rounded and improved.
    Relaxation,
    /// Training and relabelling in turn, from leading eigenvectors: a local optimum and a weak bound.
    Alternation,
    /// Regression and relabelling in turn on features that approximate the kernel, then machines with hinge losses: a
    /// local optimum without a bound, for many rows.
    Iterative,
}

names!(ClusteringMethod, "labelling", Auto: "auto", Enumeration: "enumeration",
       Relaxation: "relaxation", Alternation: "alternation", Iterative: "iterative");

/// How far the clusters may differ in size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Balance {
    /// By a tenth of the rows, rounded up, or one.
    #[default]
    Auto,
    /// By so many rows; a number below 1 is a share of the rows.
    Most(f64),
}

auto_or_number!(Balance, "balance");

/// Maximum-margin clustering.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::kernel::Kernel;
/// use widemargin::machine::{Body, Machine, MaxMarginClustering};
/// use widemargin::Context;
///
/// let rows = Matrix::DenseF64(Dense::new(4, 1, vec![0.0, 1.0, 10.0, 11.0])?);
/// let data = Dataset::new(rows, Labels::None)?;
/// let kernel = Kernel::Gaussian { gamma: 0.1 };
/// let model = MaxMarginClustering { kernel, ..Default::default() }.fit(&data, &Context::new())?;
/// let Body::MarginClusters(found) = &model.body else { panic!() };
/// assert_eq!(found.labels, [0, 0, 1, 1]);
/// assert!(found.bound <= found.objective);
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MaxMarginClustering {
    /// Number of clusters.
    pub clusters: usize,
    /// Weight β of ‖w‖²/2 beside the sum of the losses: 1/C.
    pub beta: f64,
    /// The kernel.
    pub kernel: Kernel,
    /// Whether the kernel is centred in its feature space.
    pub centre: bool,
    /// How far any two clusters may differ in size, or with a `share` their difference from the one it makes.
    pub balance: Balance,
    /// Share of the rows that one of two clusters has; half of them where there is none.
    pub share: Option<f64>,
    /// Pairs of rows that are in one cluster, or in two, of two clusters.
    pub links: Links,
    /// How the labels are found.
    pub method: ClusteringMethod,
    /// Whether several widths of a Gaussian kernel are tried.
    pub widths: ClusteringWidths,
    /// Random directions that [`ClusteringMethod::Iterative`] starts from beside others.
    pub starts: usize,
    /// Relative gap between the relaxation's value and its bound that ends it.
    pub tol: f64,
}

defaults!(MaxMarginClustering {
    clusters: 2,
    beta: 0.01,
    kernel: Kernel::Gaussian { gamma: 1.0 },
    centre: false,
    balance: Balance::Auto,
    share: None,
    links: Links::default(),
    method: ClusteringMethod::Auto,
    widths: ClusteringWidths::Given,
    starts: 5,
    tol: 1e-6,
});

impl Machine for MaxMarginClustering {
    fn fit_with(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        if input.is_part() && !self.links.is_empty() {
            return Err(Error::parameter("links", "no links where rows are left out", &self.links));
        }
        let train = |data: &Dataset| {
            let model = match self.widths {
                ClusteringWidths::Given => self.train(data, context),
                ClusteringWidths::MultiScale => self.train_widths(data, context),
            }?;
            self.warn_of_width(&model, data.rows(), context);
            Ok(model)
        };
        context.install(|| input.fit_selected(Some(&self.kernel), train))
    }

    fn kernel(&self) -> Option<&Kernel> {
        Some(&self.kernel)
    }

    fn precision(&self) -> Precision {
        Precision::F64
    }
}

/// What was found before it becomes a model.
struct Found {
    labels: Coded,
    relaxation: Option<Relaxation>,
    bound: f64,
    /// Shares of the clusters in every row, where a relaxation was solved.
    memberships: Vec<f64>,
}

impl MaxMarginClustering {
    fn train(&self, data: &Dataset, context: &Context) -> Result<Model> {
        let started = Instant::now();
        let n = data.rows();
        self.check(data)?;
        let imbalance = self.imbalance(n)?;
        let method = self.method(n);
        if method == ClusteringMethod::Iterative {
            return self.iterate(data, imbalance, started, context);
        }
        // The matrix, its factor, and a scaled one with as much again for its search.
        let bytes = 4 * 8 * n as u128 * n as u128;
        memory::check(|| format!("the matrices of {n} rows"), bytes)?;
        let mut gram = Gram::of(&self.kernel, data.features(), context)?;
        self.check_gram(&gram, context)?;
        let means: Vec<f64> = match self.centre {
            true => (0..n).map(|i| gram.row(i).iter().sum::<f64>() / n as f64).collect(),
            false => Vec::new(),
        };
        if self.centre {
            gram.centre();
        }
        let scaled: Vec<f64> = gram.values().iter().map(|value| value / self.beta).collect();
        drop(gram);
        let found = self.search(data, scaled, method, imbalance, context)?;
        self.model(data, imbalance, &means, found, started)
    }

    fn check(&self, data: &Dataset) -> Result<()> {
        Error::check_positive("beta", self.beta)?;
        Error::check_positive("tol", self.tol)?;
        self.kernel.validate()?;
        self.check_beforehand()?;
        if data.weights().is_some() {
            return Err(Error::parameter("weights", "no row weights for clustering", "some"));
        }
        if self.clusters < 2 {
            return Err(Error::parameter("clusters", "at least 2", self.clusters));
        }
        if data.rows() < self.clusters {
            let what =
                if self.clusters == 2 { "rows for two clusters" } else { "rows for clusters" };
            return Err(Error::length(what, self.clusters, data.rows()));
        }
        if self.clusters > 2 && self.method == ClusteringMethod::Enumeration {
            let expected = "auto, relaxation, alternation or iterative for more than 2 clusters";
            return Err(Error::parameter("labelling", expected, self.method));
        }
        if self.method == ClusteringMethod::Iterative && !self.has_features() {
            let expected =
                "a linear or Gaussian kernel that is not centred with labelling iterative";
            return Err(Error::parameter("kernel", expected, self.kernel.name()));
        }
        data.features().validate()
    }

    /// Checks what is said of two clusters alone.
    fn check_beforehand(&self) -> Result<()> {
        if let Some(share) = self.share
            && !(share > 0.0 && share < 1.0)
        {
            return Err(Error::parameter("share", "a number between 0 and 1", share));
        }
        let said = match (self.share, self.links.is_empty()) {
            (None, true) => return Ok(()),
            (Some(_), _) => "share",
            (None, false) => "links",
        };
        if self.clusters > 2 {
            return Err(Error::parameter(said, "none with more than 2 clusters", self.clusters));
        }
        if self.method == ClusteringMethod::Iterative {
            let expected = "none with labelling iterative";
            return Err(Error::parameter(said, expected, self.method));
        }
        Ok(())
    }

    /// The method for so many rows.
    fn method(&self, n: usize) -> ClusteringMethod {
        match self.method {
            ClusteringMethod::Auto if n <= ENUMERATED && self.clusters == 2 => {
                ClusteringMethod::Enumeration
            }
            ClusteringMethod::Auto if n <= RELAXED => ClusteringMethod::Relaxation,
            ClusteringMethod::Auto
                if n > LARGEST_ALTERNATED_MATRIX
                    && self.has_features()
                    && self.share.is_none()
                    && self.links.is_empty() =>
            {
                ClusteringMethod::Iterative
            }
            ClusteringMethod::Auto => ClusteringMethod::Alternation,
            method => method,
        }
    }

    /// The largest difference of the sizes of two clusters; all of them have a row.
    fn imbalance(&self, rows: usize) -> Result<f64> {
        let n = rows as f64;
        let most = match self.balance {
            Balance::Auto => (SHARE * n).ceil().max(1.0),
            Balance::Most(most) if most.is_finite() && most >= 0.0 => {
                if most < 1.0 {
                    most * n
                } else {
                    most
                }
            }
            Balance::Most(most) => {
                return Err(Error::parameter("balance", "a number of at least 0", most));
            }
        };
        let uneven = !rows.is_multiple_of(self.clusters) && self.share.is_none();
        if uneven && most < 1.0 {
            let parts = if self.clusters == 2 {
                "halves".into()
            } else {
                format!("{} parts", self.clusters)
            };
            let expected = format!("at least 1 row, since {rows} rows have no equal {parts}");
            return Err(Error::parameter("balance", expected, most));
        }
        Ok(most.min(n - self.clusters as f64).max(f64::from(u8::from(uneven))))
    }

    /// The matrix must be positive semidefinite, and distinguish rows.
    fn check_gram(&self, gram: &Gram, context: &Context) -> Result<()> {
        let first = gram.values().first().copied().unwrap_or(0.0);
        if gram.values().iter().all(|value| (value - first).abs() <= 1e-12 * first.abs()) {
            let found = format!("the value {first} for all pairs of rows");
            return Err(Error::kernel(self.kernel.name(), "values that tell rows apart", found));
        }
        gram.check_semidefinite(&self.kernel, context)
    }

    fn search(
        &self,
        data: &Dataset,
        scaled: Vec<f64>,
        method: ClusteringMethod,
        imbalance: f64,
        context: &Context,
    ) -> Result<Found> {
        let n = data.rows();
        let ties = self.links.ties(n)?;
        let allowed = allowed_counts(n, imbalance, self.share);
        let limit = match self.clusters {
            2 => largest_difference(n, imbalance, self.share),
            clusters => largest_sum(clusters, imbalance),
        };
        let problem = Problem::tied(scaled, &ties, limit);
        let signs = match self.clusters {
            2 => Some(Signs::new(&problem.gram, &ties, &allowed, context).ok_or_else(|| {
                let expected = "clusters whose sizes share and links can make";
                Error::parameter("balance", expected, imbalance)
            })?),
            _ => None,
        };
        let options = Options { gap: self.tol, ..Options::default() };
        let relaxation = (method != ClusteringMethod::Alternation)
            .then(|| elliptope::relax(&problem, &options, context));
        let bound = relaxation.as_ref().map_or_else(|| problem.first_bound(), |r| r.bound);
        let labels = if let Some(signs) = signs {
            let mut labelling = signs.search(relaxation.as_ref());
            if method == ClusteringMethod::Enumeration {
                labelling =
                    elliptope::enumerate(&problem.gram, &ties, &allowed, labelling, context);
            }
            two_clusters(labelling)
        } else {
            let many = ManyClusters {
                gram: &problem.gram,
                clusters: self.clusters,
                sizes: allowed_sizes(n, self.clusters, imbalance),
                context,
            };
            in_order(many.search(data, relaxation.as_ref())?, self.clusters)
        };
        let memberships = relaxation.as_ref().map_or_else(Vec::new, |relaxation| {
            let vectors = ties.vectors_of_rows(&relaxation.vectors, relaxation.width);
            memberships(&vectors, relaxation.width, &labels.labels, self.clusters)
        });
        Ok(Found { labels, relaxation, bound, memberships })
    }

    /// A kernel that is nearly the identity gives all labels nearly the same objective.
    fn warn_of_width(&self, model: &Model, rows: usize, context: &Context) {
        let Body::MarginClusters(found) = &model.body else { return };
        let identity = 0.5 * self.beta * rows as f64;
        let has_width = matches!(self.kernel, Kernel::Gaussian { .. });
        let is_indistinct = found.relaxation.is_some() && found.bound > INDISTINCT_SHARE * identity;
        if has_width && self.beta <= 1.0 && is_indistinct {
            let message = "the kernel is so narrow that all labels have nearly the same objective: \
                           the clusters mean little; a smaller gamma is a wider kernel";
            context.report(&Event::Warning { message: message.into() });
        }
    }

    fn model(
        &self,
        data: &Dataset,
        imbalance: f64,
        means: &[f64],
        found: Found,
        started: Instant,
    ) -> Result<Model> {
        let Found { labels, relaxation, bound, memberships } = found;
        let Coded { labels, lambda, objective, status: ended } = labels;
        let n = data.rows();
        let products = many::products(self.clusters);
        let codes = |r: usize, s: usize| products[r * self.clusters + s];
        let used: Vec<usize> = match self.centre {
            true => (0..n).collect(),
            false => (0..n).filter(|&i| lambda[i] != 0.0).collect(),
        };
        let function = |r: usize| {
            let each = lambda.iter().zip(&labels);
            let mut coefficients: Vec<f64> =
                each.map(|(lambda, &s)| lambda * codes(r, s) / self.beta).collect();
            let mut offset = 0.0;
            if self.centre {
                // f(x) = Σ cᵢ k̃(xᵢ, x) written with k itself.
                let all = means.iter().sum::<f64>() / n as f64;
                let terms = coefficients.iter().zip(means);
                offset = terms.map(|(c, mean)| c * (mean - all)).sum();
                let mean = coefficients.iter().sum::<f64>() / n as f64;
                coefficients.iter_mut().for_each(|c| *c -= mean);
            }
            let coefficients = used.iter().map(|&i| coefficients[i]).collect();
            DecisionFunction { parts: vec![Part { support: 0..used.len(), coefficients }], offset }
        };
        let functions = (0..self.clusters).map(function).collect();
        let expansion = KernelExpansion {
            kernel: self.kernel.clone(),
            precision: Precision::F64,
            support: support_table(&self.kernel, data.features(), &used),
            functions,
            support_rows: used,
        };
        let value = relaxation.as_ref().map(|r| r.value).filter(|value| value.is_finite());
        let (status, iterations, rounds) =
            relaxation.as_ref().map_or((Status::Solved, 0, 0), |relaxation| {
                (relaxation.status, relaxation.products, relaxation.rounds)
            });
        let primal = value.unwrap_or(objective);
        let outcome = Outcome {
            status: status.max(ended),
            primal,
            dual: bound,
            violation: (primal - bound) / bound.abs().max(f64::MIN_POSITIVE),
            iterations,
            blocks: rounds,
            kernel_rows: n as u64,
        };
        let relaxation = value;
        let bound = bound.min(objective);
        let body = MarginClusters {
            expansion,
            labels,
            objective,
            relaxation,
            bound,
            imbalance,
            memberships,
        };
        let parameters = [("beta", self.beta.into()), ("tol", self.tol.into())];
        Ok(Model {
            feature_names: data.feature_names().map(<[String]>::to_vec),
            training: Some(Training::new(outcome, n, started, parameters)),
            ..Model::new(MachineKind::MaxMarginClustering, body)
        })
    }
}

/// Labels ±1 as clusters 0 and 1.
fn two_clusters(labelling: Labelling) -> Coded {
    let Labelling { labels, lambda, objective, status } = labelling;
    let labels = labels.iter().map(|&label| usize::from(label < 0)).collect();
    Coded { labels, lambda, objective, status }
}

/// The clusters numbered in the order of their first rows.
fn in_order(mut coded: Coded, clusters: usize) -> Coded {
    let order = first_seen(&coded.labels, clusters);
    coded.labels.iter_mut().for_each(|label| *label = order[*label]);
    coded
}

/// The number of every cluster in the order of their first rows.
fn first_seen(labels: &[usize], clusters: usize) -> Vec<usize> {
    let mut numbers = vec![usize::MAX; clusters];
    let mut next = 0;
    for &label in labels {
        if numbers[label] == usize::MAX {
            (numbers[label], next) = (next, next + 1);
        }
    }
    numbers
}
