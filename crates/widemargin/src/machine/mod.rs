//! The machines: what they learn from labelled rows and the models they return.

mod adatron;
mod approximated;
mod class_order;
mod classic;
mod classification;
mod clustering;
mod codes;
mod coefficients;
mod definiteness;
mod fit;
mod jaakkola;
mod kernel_expression;
mod kernel_list;
mod label_split;
mod least_squares;
mod linear;
mod local_duals;
mod median_distance;
mod mixed_precision;
mod model;
mod multiclass;
mod multiple_kernel;
pub(crate) mod names;
mod novelty;
mod occurring;
mod online;
mod parameters;
mod predictor;
mod preparation;
mod probability;
mod regression;
mod robust;
mod scaled;
mod semi_supervised;
pub mod sequence;
pub mod specification;
mod string_expression;
mod structured;
mod training;
mod two_class;
mod vote;
mod warm_start;

pub use adatron::KernelAdatron;
pub use approximated::Approximated;
pub use classic::{
    Affinity, Centres, CertifiedMixture, Classic, Covariance, Cut, Discriminant, Fisher,
    FisherThreshold, GaussianMixture, Initialisation, KMeans, KNearest, KernelDensity,
    KernelFisher, KernelFisherRidge, KernelFisherThreshold, MixtureBayes, MixtureCriterion,
    MixtureStart, MixtureStop, Mixtures, NeighbourMetric, NeighbourSearch, Neighbours,
    NetworkInput, Parzen, Priors, ProbabilisticNetwork, Shrinkage, Spectral, Weighting, Window,
    WindowWidth, Windows,
};
pub use classification::{NuSvc, PathStarts, Paths, Svc};
pub use clustering::{
    Balance, ClusteringMethod, ClusteringWidths, Links, MarginClusters, MaxMarginClustering,
};
pub use codes::{Decoding, OutputCode, error_correcting_code};
pub use fit::{FitInput, Machine, PathMachine, PenaltyPath, SharedKernel, WarmStart};
pub use kernel_expression::{KernelDefaults, KernelExpression};
pub(crate) use kernel_list::kernel_texts;
pub use least_squares::{LsSvc, LsSvr};
pub use linear::{
    Bias, LinearLoss, LinearMulticlass, LinearOneClass, LinearOptions, LinearSolver, LinearSvc,
    LinearSvr, PathStep, Penalty, RankSvm,
};
pub(crate) use linear::{is_worth_blocks, linear_model, newton_tolerance, newton_tolerance_at};
pub use local_duals::LocalDuals;
pub(crate) use local_duals::{KnownValues, LocalStart, SolvedDual, distance};
#[cfg(test)]
pub(crate) use model::MAX_KERNEL_DEPTH;
pub use model::{
    Ball, Body, Calibration, ClassTable, DecisionFunction, Description, KernelExpansion, Linear,
    MachineKind, Model, Part, Scheme, Training,
};
pub(crate) use model::{PartsReader, PartsWriter, arranged, reason};
pub use multiclass::{AllInOne, MulticlassSvc};
pub(crate) use multiple_kernel::SIGNED_JITTER;
pub use multiple_kernel::{BaseMachine, MultipleKernel};
pub use novelty::{OneClass, Svdd};
pub use online::{
    Clock, Epochs, Lasvm, OnlineLearner, OnlineSchedule, OnlineSvc, WorkingSetStrategy,
};
pub use parameters::{
    CalibrationMethod, ClassWeights, Gamma, HARD_MARGIN, Loss, Precision, SolverOptions,
};
pub use predictor::{PackedSupport, Predictor};
pub use preparation::Preparation;
pub use regression::{NuSvr, Svr};
pub use robust::{DistancePrice, RobustLoss, RobustMethod, RobustSvc};
pub use scaled::{Scaled, ScalingRule};
pub use semi_supervised::{ClassShares, SemiSupervisedMethod, SemiSupervisedSvc};
pub use specification::Specification;
pub use structured::{StructuredFit, StructuredProblem, StructuredSvm};
pub use warm_start::Start;

pub use crate::solver::kernel_weights::WeightRule;
