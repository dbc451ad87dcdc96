"""Mixtures of Gaussians and the Bayes classifier on them."""

from __future__ import annotations

from dataclasses import field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from widemargin import _core
from widemargin._classic.base import (
    Dense,
    Grouping,
    PosteriorClassifier,
    Probable,
    numbers,
    priors_setting,
)
from widemargin._parameters import estimator
from widemargin._svc import written

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHAPES = {"full", "tied", "diag", "spherical", "eii", "eev", "vev"}
_MIXTURE: dict[str, list[Any]] = {
    "n_components": [Interval(Integral, 1, None, closed="left")],
    "covariance_type": [StrOptions(_SHAPES)],
    "criterion": [StrOptions({"bic", "aic"}), None],
    "tol": [Interval(Real, 0, None, closed="left")],
    "reg_covar": [Interval(Real, 0, None, closed="left")],
    "shrinkage": [Interval(Real, 0, 1, closed="both")],
    "stop": [StrOptions({"likelihood", "parameters"})],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "n_init": [Interval(Integral, 1, None, closed="left")],
    "init_params": [StrOptions({"kmeans", "k-means++", "random"})],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
}


@estimator
class _Mixture(Dense):
    """The parameters of EM."""

    _has_onnx = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _MIXTURE

    n_components: int = field(default=1, kw_only=False)
    covariance_type: str = "full"
    criterion: str | None = None
    tol: float = 1e-3
    reg_covar: float = 1e-6
    shrinkage: float = 0.0
    stop: str = "likelihood"
    max_iter: int = 100
    n_init: int = 1
    init_params: str = "kmeans"
    random_state: Any = None
    n_jobs: int | None = None

    def _mixture_settings(self) -> dict[str, Any]:
        return {
            "components": int(self.n_components),
            "criterion": self.criterion,
            "covariance": self.covariance_type,
            "floor": float(self.reg_covar),
            "shrinkage": float(self.shrinkage),
            "stop": self.stop,
            "tol": float(self.tol),
            "max_iter": int(self.max_iter),
            "starts": int(self.n_init),
            "init": self.init_params,
            "start_weights": None,
            "start_means": None,
            "start_precisions": None,
        }

    def _adopt(self, model: _core.Model) -> None:
        super()._adopt(model)
        self.converged_ = model.training["status"] == "solved"
        self.n_iter_ = int(model.training["iterations"])
        self.lower_bound_ = float(model.attributes["log_likelihood"])


class _Components(DensityMixin, Probable, Grouping):
    """What every mixture without classes can do."""

    def _adopt(self, model: _core.Model) -> None:
        super()._adopt(model)
        part = model.attributes
        self.weights_ = part["weights"]
        self.means_ = model.support_vectors
        count, features = len(self.weights_), model.features
        shapes = {
            "tied": (features, features),
            "diag": (count, features),
            "spherical": (count,),
            "eii": (1,),
        }
        shape = shapes.get(part["covariance"], (count, features, features))
        self.covariances_ = part["covariances"].reshape(shape)

    def _parameter_count(self) -> int:
        """Return how many numbers were estimated."""
        return int(self._model.attributes["parameters"])

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[Any]:
        """Fit the mixture and return the component of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : Ignored
            For pipelines.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Components, from 0.
        """
        return self.fit(X, y).predict(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : Ignored
            For pipelines.

        Returns
        -------
        likelihood : float
            Mean of ln p(x).
        """
        return float(self.score_samples(X).mean())

    def bic(self, X: Any) -> float:
        """Return Bayes's information criterion of rows; lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        criterion : float
            −2 ln p + q ln n.
        """
        logarithms = self.score_samples(X)
        price = self._parameter_count() * np.log(len(logarithms))
        return float(-2 * logarithms.sum() + price)

    def aic(self, X: Any) -> float:
        """Return Akaike's information criterion of rows; lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        criterion : float
            −2 ln p + 2 q.
        """
        return float(-2 * self.score_samples(X).sum() + 2 * self._parameter_count())

    def sample(self, n_samples: int = 1) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Draw rows from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            How many.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows.
        y : ndarray of shape (n_samples,)
            Their components.
        """
        check_is_fitted(self)
        random = check_random_state(self.random_state)
        features = self.n_features_in_
        y = np.sort(random.choice(len(self.weights_), n_samples, p=self.weights_))
        covariances = self.covariances_
        if covariances.ndim == 3:
            each = covariances
        elif self._model.attributes["covariance"] == "tied":
            each = np.broadcast_to(covariances, (len(self.weights_), features, features))
        else:
            wide = np.broadcast_to(
                covariances.reshape(len(covariances), -1), (len(self.weights_), features)
            )
            each = np.stack([np.diag(row) for row in wide])
        rows = [random.multivariate_normal(self.means_[k], each[k]) for k in y]
        return np.asarray(rows), y.astype(np.int64)


@estimator
class GaussianMixture(_Components, _Mixture):
    """A mixture of Gaussians by expectation and maximisation.

    Parameters
    ----------
    n_components : int, default=1
        Number of Gaussians; with a `criterion` the largest number tried.
    covariance_type : {'full', 'tied', 'diag', 'spherical', 'eii', 'eev', 'vev', 'auto'}, \
            default='full'
        The shape of the covariances, 'auto' the best by `criterion` (BIC unless given);
        the last three are equal spheres, and ellipsoids of equal
        shape with equal or variable volumes.
    criterion : {'bic', 'aic'}, default=None
        Chooses the number of components from 1 on.
    tol : float, default=1e-3
        EM ends when the mean log-likelihood changes by less. (The command line has 1e-6.)
    reg_covar : float, default=1e-6
        What is added to every variance.
    shrinkage : float, default=0.0
        Share τ of (1 − τ)Σ + τ tr Σ/d I, from 0 to 1, for components of few rows.
    stop : {'likelihood', 'parameters'}, default='likelihood'
        Whether `tol` bounds the change of the mean log-likelihood or of every weight, mean and
        covariance.
    max_iter : int, default=100
        Most iterations from one start.
    n_init : int, default=1
        Starts, of which the best is kept.
    init_params : {'kmeans', 'k-means++', 'random'}, default='kmeans'
        Where EM starts.
    weights_init, means_init, precisions_init : array-like, default=None
        Parameters to start from, in scikit-learn's shapes.
    random_state : int, RandomState instance or None, default=None
        Seeds the starts.
    n_jobs : int, default=None
        Threads.

    Attributes
    ----------
    weights_, means_, covariances_ : ndarray
        The components, in scikit-learn's shapes.
    converged_ : bool
        Whether `tol` was reached.
    n_iter_ : int
        Iterations of the best start.
    lower_bound_ : float
        Mean log-likelihood it reached.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import GaussianMixture
    >>> X = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]])
    >>> model = GaussianMixture(n_components=2, random_state=0).fit(X)
    >>> sorted(model.means_.ravel().round(1).tolist())
    [0.1, 9.1]
    """

    _kind = "gmm"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "covariance_type": [StrOptions(_SHAPES | {"auto"})],
        "weights_init": ["array-like", None],
        "means_init": ["array-like", None],
        "precisions_init": ["array-like", None],
    }

    weights_init: Any = None
    means_init: Any = None
    precisions_init: Any = None

    def _settings(self) -> dict[str, Any]:
        return {
            **self._mixture_settings(),
            "start_weights": numbers(self.weights_init),
            "start_means": numbers(self.means_init),
            "start_precisions": numbers(self.precisions_init),
        }

    def _check_rows(self, rows: int) -> None:
        if rows < self.n_components:
            raise ValueError(
                f"Expected n_samples >= n_components but got n_components = {self.n_components}, "
                f"n_samples = {rows}"
            )


@estimator
class CertifiedGaussianMixture(_Components, Dense):
    """A mixture of Gaussians of known variances with a proven likelihood.

    EM ends at one of many maxima. Here weights and means are searched by branch and bound until no
    others can have a log-likelihood larger by more than `tol`. The work hardly grows with the rows
    but exponentially with components times features: for few of both.

    Parameters
    ----------
    n_components : int, default=1
        Number of Gaussians.
    variances : float or array-like of shape (n_components,), default=1.0
        The known variance of every Gaussian along every axis, or one for all.
    tol : float, default=1e-3
        The search ends when the log-likelihood of all rows and its bound differ by no more.
    max_iter : int, default=1000000
        Most boxes of means whose bound is computed.
    max_time : float, default=None
        Seconds after which the search ends with the best mixture and the bound so far.
    n_init : int, default=10
        Starts of EM for the first mixture.
    random_state : int, RandomState instance or None, default=None
        Seeds the starts.
    n_jobs : int, default=None
        Threads.

    Attributes
    ----------
    weights_, means_, covariances_ : ndarray
        The components, in scikit-learn's shapes for spherical covariances.
    log_likelihood_ : float
        Log-likelihood of all training rows.
    bound_ : float
        What no weights and means exceed.
    gap_ : float
        `bound_` less `log_likelihood_`.
    converged_ : bool
        Whether the gap is at most `tol`.
    status_ : str
        How the search ended.
    n_iter_ : int
        Boxes whose bound was computed.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import CertifiedGaussianMixture
    >>> X = np.array([[0.0], [0.1], [0.2], [0.7], [0.8], [0.9]])
    >>> model = CertifiedGaussianMixture(2, variances=0.01, random_state=0).fit(X)
    >>> model.means_.ravel().round(2).tolist(), bool(model.gap_ <= 1e-3)
    ([0.1, 0.8], True)
    """

    _kind = "certified-gmm"
    _has_onnx = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "variances": [Interval(Real, 0, None, closed="neither"), "array-like"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "n_init": [Interval(Integral, 1, None, closed="left")],
    }

    n_components: int = field(default=1, kw_only=False)
    variances: Any = 1.0
    tol: float = 1e-3
    max_iter: int = 1_000_000
    max_time: float | None = None
    n_init: int = 10
    random_state: Any = None
    n_jobs: int | None = None

    def _settings(self) -> dict[str, Any]:
        return {
            "components": int(self.n_components),
            "variances": numbers(np.atleast_1d(self.variances)),
            "gap": float(self.tol),
            "max_iter": int(self.max_iter),
            "starts": int(self.n_init),
        }

    def _adopt(self, model: _core.Model) -> None:
        super()._adopt(model)
        training = model.training
        self.status_ = str(training["status"])
        self.converged_ = self.status_ == "solved"
        self.n_iter_ = int(training["iterations"])
        self.log_likelihood_ = -float(training["primal"])
        self.bound_ = -float(training["dual"])
        self.gap_ = self.bound_ - self.log_likelihood_

    def _parameter_count(self) -> int:
        """Return how many numbers were estimated: the variances were known."""
        return len(self.weights_) * (1 + int(self.n_features_in_)) - 1


@estimator
class GaussianMixtureClassifier(PosteriorClassifier, _Mixture):
    """The Bayes classifier on a mixture of Gaussians per class.

    With one component a class it is quadratic discriminant analysis.

    Parameters
    ----------
    n_components : int, default=1
        Gaussians of every class; with a `criterion` the largest number tried.
    covariance_type, criterion, tol, reg_covar, shrinkage, stop, max_iter, n_init, init_params, \
            random_state, n_jobs
        As for :class:`GaussianMixture`.
    priors : {'frequencies', 'equal'} or array-like of shape (n_classes,), default=None
        Class probabilities.
    loss_matrix : array-like of shape (n_classes, n_classes), default=None
        What predicting class j costs for class i; `predict` has the least expected loss. None is 1
        for every error.
    unbiased : bool, default=False
        Whether covariances are divided by one less than the number of rows; for one component a
        class.
    unlabeled : int, float or str, default=None
        The label of rows whose class is not known (-1 by custom); EM shares them among all
        classes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, ascending.
    converged_ : bool
        Whether EM reached `tol` in every class.
    n_iter_ : int
        Iterations of all classes together.
    lower_bound_ : float
        Mean log-likelihood of the rows in their classes.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import GaussianMixtureClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> round(GaussianMixtureClassifier().fit(X, y).score(X, y), 2)
    0.98
    """

    _kind = "gmm-bayes"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "priors": [StrOptions({"frequencies", "equal"}), "array-like", None],
        "loss_matrix": ["array-like", None],
        "unbiased": ["boolean"],
        "unlabeled": [Integral, Real, str, None],
    }

    priors: Any = None
    loss_matrix: Any = None
    unbiased: bool = False
    unlabeled: Any = None

    def _settings(self) -> dict[str, Any]:
        return {
            **self._mixture_settings(),
            "priors": priors_setting(self.priors, len(self.classes_)),
            "losses": numbers(self.loss_matrix),
            "unbiased": bool(self.unbiased),
            "unlabelled": None if self.unlabeled is None else written(self.unlabeled),
        }

    def _known(self, classes: NDArray[Any]) -> NDArray[Any]:
        return classes if self.unlabeled is None else classes[classes != self.unlabeled]
