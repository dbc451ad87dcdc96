//! Parameters of the classical machines.

use clap::Args;
use widemargin::data::{Label, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{
    Affinity, Classic, Covariance, Cut, Fisher, FisherThreshold, Gamma, GaussianMixture,
    Initialisation, KMeans, KNearest, KernelDensity, KernelFisher, KernelFisherRidge,
    KernelFisherThreshold, Machine, MixtureBayes, MixtureCriterion, MixtureStop, NeighbourMetric,
    NeighbourSearch, NetworkInput, Parzen, Priors, ProbabilisticNetwork, Shrinkage, Spectral,
    Weighting, Window, WindowWidth,
};

use super::value::{number, value, whole};
use crate::failure::{CommandResult, Failure};

/// What the classical machines take beside a kernel.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Classical machines")]
pub(crate) struct ClassicArguments {
    /// Neighbours that vote (knn, knn-regressor) or that a row is joined with (spectral)
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    neighbours: Option<usize>,

    /// What a neighbour's vote counts: uniform or distance (1 / distance)
    #[arg(long, value_name = "RULE", default_value = "uniform", value_parser = value::<Weighting>)]
    weights: Weighting,

    /// Distance of neighbours: euclidean, mahalanobis or mahalanobis-within (classes)
    #[arg(long, value_name = "NAME", default_value = "euclidean", value_parser = value::<NeighbourMetric>)]
    metric: NeighbourMetric,

    /// How neighbours are found: auto, brute, tree (of boxes) or ball-tree; the answers are the same
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = value::<NeighbourSearch>)]
    search: NeighbourSearch,

    /// Gaussians of a mixture (gmm, gmm-bayes: of every class)
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    components: Option<usize>,

    /// Choose the number of Gaussians, up to --components, by bic or aic
    #[arg(long, value_name = "NAME", value_parser = value::<MixtureCriterion>)]
    criterion: Option<MixtureCriterion>,

    /// Covariances of a mixture: full, tied, diag, spherical, eii, eev or vev
    #[arg(long, value_name = "SHAPE", default_value = "full", value_parser = value::<Covariance>)]
    covariance: Covariance,

    /// Where EM starts: kmeans, k-means++ or random
    #[arg(long, value_name = "NAME", default_value = "kmeans",
          value_parser = value::<Initialisation>)]
    init: Initialisation,

    /// What EM adds to every variance
    #[arg(long, value_name = "NUM", default_value_t = 1e-6, value_parser = number)]
    floor: f64,

    /// What must change by less than --tol for EM to end: likelihood or parameters
    #[arg(long, value_name = "NAME", default_value = "likelihood", value_parser = value::<MixtureStop>)]
    stop: MixtureStop,

    /// Divide class covariances by one less than the rows (fisher, gmm-bayes)
    #[arg(long)]
    unbiased: bool,

    /// Label of rows whose class is not known, which gmm-bayes learns from too
    #[arg(long, value_name = "LABEL", allow_hyphen_values = true)]
    unlabelled: Option<String>,

    /// Starts of EM and k-means, of which the best is kept
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    starts: Option<usize>,

    /// Width of windows: scott, silverman, cv (largest leave-one-out likelihood), cv-errors (fewest
    /// leave-one-out errors), or a number [default: parzen cv, pnn cv-errors, density silverman]
    #[arg(long, value_name = "RULE", value_parser = value::<WindowWidth>)]
    width: Option<WindowWidth>,

    /// Shape of windows: gaussian, tophat, epanechnikov, exponential, linear or cosine
    #[arg(long, value_name = "NAME", default_value = "gaussian", value_parser = value::<Window>)]
    window: Window,

    /// What pnn is given: distance, unit-norm or lifted
    #[arg(long, value_name = "NAME", default_value = "distance", value_parser = value::<NetworkInput>)]
    input: NetworkInput,

    /// Length of the rows that pnn lifts [default: that of the longest]
    #[arg(long, value_name = "NUM", default_value_t = 0.0, hide_default_value = true,
          value_parser = number)]
    radius: f64,

    /// Clusters of kmeans and spectral
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = whole::<usize>)]
    clusters: usize,

    /// How spectral cuts: kmeans (Ng, Jordan, Weiss) or normalised (two clusters)
    #[arg(long, value_name = "NAME", default_value = "kmeans", value_parser = value::<Cut>)]
    cut: Cut,

    /// Boundary of two classes: prior, midpoint or least-errors (fisher); svm or midpoint
    /// (kernel-fisher)
    #[arg(long, value_name = "NAME")]
    threshold: Option<String>,

    /// Shrinkage of covariances: none, a share from 0 to 1, or (fisher) auto: Ledoit and Wolf's
    #[arg(long, value_name = "RULE", default_value = "none", value_parser = value::<Shrinkage>)]
    shrinkage: Shrinkage,

    /// Ridge of kernel-fisher
    #[arg(long, value_name = "NUM", default_value_t = 1e-3, value_parser = number)]
    mu: f64,

    /// What that ridge penalises: coefficients or norm
    #[arg(long, value_name = "NAME", default_value = "coefficients", value_parser = value::<KernelFisherRidge>)]
    ridge: KernelFisherRidge,

    /// Rows in the expansion of kernel-fisher [default: all up to 20000, then 2000]
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    landmarks: Option<usize>,

    /// Class probabilities: frequencies, equal, or a number for every class, ascending
    #[arg(long, value_name = "RULE", default_value = "frequencies", value_parser = priors)]
    priors: Priors,

    /// Losses of gmm-bayes, row by row: what answering class j costs for class i
    #[arg(long, value_name = "NUM,NUM,...", value_delimiter = ',', value_parser = number)]
    losses: Option<Vec<f64>>,
}

fn priors(text: &str) -> Result<Priors, String> {
    match text {
        "frequencies" => Ok(Priors::Frequencies),
        "equal" => Ok(Priors::Equal),
        _ => text
            .split(',')
            .map(|word| word.trim().parse().ok())
            .collect::<Option<Vec<f64>>>()
            .map(Priors::Given)
            .ok_or_else(|| "expected frequencies, equal or NUM,NUM,...".to_owned()),
    }
}

impl ClassicArguments {
    /// The machine, its kernel resolved on the table.
    pub(crate) fn build(
        &self,
        kind: Classic,
        features: &Matrix,
        kernel: Kernel,
        gamma: Gamma,
        (tol, max_iterations): (Option<f64>, Option<usize>),
    ) -> CommandResult<Box<dyn Machine>> {
        let priors = self.priors.clone();
        Ok(match kind {
            Classic::Fisher => {
                let threshold = match &self.threshold {
                    Some(name) => name.parse::<FisherThreshold>()?,
                    None => FisherThreshold::default(),
                };
                let (shrinkage, unbiased) = (self.shrinkage, self.unbiased);
                Box::new(Fisher { threshold, shrinkage, priors, unbiased, directions: None })
            }
            Classic::KernelFisher => {
                let threshold = match &self.threshold {
                    Some(name) => name.parse::<KernelFisherThreshold>()?,
                    None => KernelFisherThreshold::default(),
                };
                let (mu, ridge, landmarks) = (self.mu, self.ridge, self.landmarks);
                Box::new(KernelFisher { kernel, mu, ridge, threshold, priors, landmarks })
            }
            Classic::Mixture => Box::new(self.mixture(tol, max_iterations)?),
            Classic::MixtureBayes => Box::new(MixtureBayes {
                mixture: self.mixture(tol, max_iterations)?,
                priors,
                loss: self.losses.clone(),
                unbiased: self.unbiased,
                unlabelled: self.unlabelled.clone().map(Label::Text),
            }),
            Classic::Neighbours | Classic::NeighboursRegression => Box::new(KNearest {
                k: self.neighbours.unwrap_or(5),
                weighting: self.weights,
                metric: self.metric,
                search: self.search,
                regression: kind == Classic::NeighboursRegression,
            }),
            Classic::Parzen => {
                let width = self.width.unwrap_or(Parzen::default().width);
                Box::new(Parzen { window: self.window, width, priors })
            }
            Classic::Density => {
                let width = self.width.unwrap_or_default();
                Box::new(KernelDensity { window: self.window, width })
            }
            Classic::ProbabilisticNetwork => {
                let width = self.width.unwrap_or(ProbabilisticNetwork::default().width);
                let input = match self.input {
                    NetworkInput::Lifted { .. } => NetworkInput::Lifted { radius: self.radius },
                    input => input,
                };
                Box::new(ProbabilisticNetwork { input, width, priors })
            }
            Classic::KMeans => {
                let usual = KMeans::default();
                Box::new(KMeans {
                    clusters: self.clusters,
                    starts: self.starts.unwrap_or(usual.starts),
                    tol: tol.unwrap_or(usual.tol),
                    max_iterations: max_iterations.unwrap_or(usual.max_iterations),
                    centres: None,
                })
            }
            Classic::Spectral => {
                let affinity = match self.neighbours {
                    Some(count) => Affinity::Neighbours { count },
                    None => Affinity::Gaussian { gamma: gamma.resolve(features) },
                };
                let starts = self.starts.unwrap_or(10);
                Box::new(Spectral { clusters: self.clusters, affinity, cut: self.cut, starts })
            }
        })
    }

    fn mixture(
        &self,
        tol: Option<f64>,
        max_iterations: Option<usize>,
    ) -> CommandResult<GaussianMixture> {
        let usual = GaussianMixture::default();
        let shrinkage = match self.shrinkage {
            Shrinkage::None => 0.0,
            Shrinkage::Share(share) => share,
            Shrinkage::Auto => {
                return Err(Failure::usage(
                    "--shrinkage auto is for fisher; mixtures take a share",
                ));
            }
        };
        Ok(GaussianMixture {
            components: self.components.unwrap_or(1),
            criterion: self.criterion,
            covariance: self.covariance,
            floor: self.floor,
            shrinkage,
            stop: self.stop,
            tol: tol.unwrap_or(usual.tol),
            max_iterations: max_iterations.unwrap_or(usual.max_iterations),
            starts: self.starts.unwrap_or(1),
            initialisation: self.init,
            ..usual
        })
    }

    /// Parameters that a search may set.
    pub(crate) const SEARCHED: [&str; 8] = [
        "neighbours",
        "weights",
        "components",
        "covariance",
        "width",
        "shrinkage",
        "mu",
        "landmarks",
    ];

    /// What is searched for a machine unless told otherwise; nothing where there is nothing to judge.
    pub(crate) fn usual_grid(kind: Classic) -> &'static [&'static str] {
        match kind {
            Classic::Fisher => &["shrinkage=none,auto,0.1,0.5"],
            Classic::KernelFisher => &["gamma=0.001:10:9", "mu=0.0001:1:5"],
            Classic::MixtureBayes => &["components=1,2,3,5", "covariance=full,diag"],
            Classic::Neighbours | Classic::NeighboursRegression => {
                &["neighbours=1,3,5,9,15,25", "weights=uniform,distance"]
            }
            Classic::Parzen | Classic::ProbabilisticNetwork => {
                &["width=cv,cv-errors,silverman,scott"]
            }
            Classic::Mixture | Classic::Density | Classic::KMeans | Classic::Spectral => &[],
        }
    }

    /// Sets one of [`SEARCHED`](Self::SEARCHED), or tells what was expected.
    pub(crate) fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        match name {
            "neighbours" => self.neighbours = Some(whole(text)?),
            "weights" => self.weights = value(text)?,
            "components" => self.components = Some(whole(text)?),
            "covariance" => self.covariance = value(text)?,
            "width" => self.width = Some(value(text)?),
            "shrinkage" => self.shrinkage = value(text)?,
            "mu" => self.mu = number(text)?,
            _ => self.landmarks = Some(whole(text)?),
        }
        Ok(())
    }
}
