"""Support vector machines with scikit-learn's interface, fast and exact.

>>> from widemargin import SVC

and the rest of a program that used :class:`sklearn.svm.SVC` stays as it is.
"""

from widemargin._approximation import RFF, Nystroem
from widemargin._chains import ChainClustering, ChainSVC
from widemargin._classic.clusters import KMeans, SpectralClustering
from widemargin._classic.discriminant import FisherDiscriminant, KernelFisherDiscriminant
from widemargin._classic.mixture import (
    CertifiedGaussianMixture,
    GaussianMixture,
    GaussianMixtureClassifier,
)
from widemargin._classic.neighbors import KNeighborsClassifier, KNeighborsRegressor
from widemargin._classic.windows import (
    KernelDensity,
    ParzenClassifier,
    ProbabilisticNeuralNetwork,
)
from widemargin._clustering import MaxMarginClustering
from widemargin._compare import Comparison, KernelComparison, compare, compare_kernels
from widemargin._compare_clusterings import (
    ClusteringComparison,
    cluster_agreement,
    compare_clusterings,
)
from widemargin._core import __version__
from widemargin._files import load
from widemargin._hmm import CategoricalHMM, DensityHMM, GaussianHMM, PoissonHMM
from widemargin._least_squares import LSSVC, LSSVR
from widemargin._linear import LinearOneClassSVM, LinearSVC, LinearSVR
from widemargin._logistic import LogisticRegression
from widemargin._multiclass import MulticlassSVC, OnlineSVC
from widemargin._multiple_kernel import (
    MultipleKernelOneClassSVM,
    MultipleKernelSVC,
    MultipleKernelSVR,
)
from widemargin._novelty import SVDD, OneClassSVM
from widemargin._progress import History, Progress
from widemargin._ranking import RankSVM, ranking_quality
from widemargin._robust import LabelOutlierDetector, RobustSVC
from widemargin._search import SVCSearchCV
from widemargin._semi_supervised import SemiSupervisedSVC
from widemargin._strings import StringKernel
from widemargin._structured import StructuredSVM
from widemargin._svc import SVC, NuSVC
from widemargin._svr import SVR, NuSVR
from widemargin._tune import tune
from widemargin._two_class import LASVM, KernelAdatron

__all__ = [
    "LASVM",
    "LSSVC",
    "LSSVR",
    "RFF",
    "SVC",
    "SVDD",
    "SVR",
    "CategoricalHMM",
    "CertifiedGaussianMixture",
    "ChainClustering",
    "ChainSVC",
    "ClusteringComparison",
    "Comparison",
    "DensityHMM",
    "FisherDiscriminant",
    "GaussianHMM",
    "GaussianMixture",
    "GaussianMixtureClassifier",
    "History",
    "KMeans",
    "KNeighborsClassifier",
    "KNeighborsRegressor",
    "KernelAdatron",
    "KernelComparison",
    "KernelDensity",
    "KernelFisherDiscriminant",
    "LabelOutlierDetector",
    "LinearOneClassSVM",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "MaxMarginClustering",
    "MulticlassSVC",
    "MultipleKernelOneClassSVM",
    "MultipleKernelSVC",
    "MultipleKernelSVR",
    "NuSVC",
    "NuSVR",
    "Nystroem",
    "OneClassSVM",
    "OnlineSVC",
    "ParzenClassifier",
    "PoissonHMM",
    "ProbabilisticNeuralNetwork",
    "Progress",
    "RankSVM",
    "RobustSVC",
    "SVCSearchCV",
    "SemiSupervisedSVC",
    "SpectralClustering",
    "StringKernel",
    "StructuredSVM",
    "__version__",
    "cluster_agreement",
    "compare",
    "compare_clusterings",
    "compare_kernels",
    "load",
    "ranking_quality",
    "tune",
]
