"""Fisher's discriminants."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from widemargin import _core
from widemargin._classic.base import ClassicClassifier, PosteriorClassifier, priors_setting
from widemargin._parameters import KernelParameters, check_kernel, estimator

if TYPE_CHECKING:
    from numpy.typing import NDArray


class _Discriminant(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassicClassifier):
    """Scores and projections."""

    _has_onnx = True

    def _adopt(self, model: _core.Model) -> None:
        super()._adopt(model)
        part = model.attributes
        self.separability_ = float(part["separability"])
        ratios = np.asarray(part["ratios"])
        total = ratios.sum()
        self.explained_variance_ratio_ = ratios / total if total > 0 else ratios
        self._n_features_out = int(part["directions"])
        self._projection = model.projection() or model

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes one value a row, positive for ``classes_[1]``.
        """
        rows, threads = self._query(X)
        values = self._model.decision_values(rows, threads)
        return -values.ravel() if len(self.classes_) == 2 else values

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the projections on the discriminant directions, the best first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        projections : ndarray of shape (n_samples, n_directions)
            At most one direction fewer than classes.
        """
        rows, threads = self._query(X)
        return self._projection.decision_values(rows, threads)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be had from the model again."""
        state = dict(super().__getstate__())
        state.pop("_projection", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the projection again."""
        super().__setstate__(state)
        if "_model" in self.__dict__:
            self._projection = self._model.projection() or self._model


@estimator
class FisherDiscriminant(_Discriminant, PosteriorClassifier):
    """Fisher's linear discriminant, equal to linear discriminant analysis.

    Parameters
    ----------
    threshold : {'prior', 'midpoint', 'least-errors'}, default='prior'
        Where the boundary of two classes lies along the direction: where the posteriors are equal,
        half-way between the means, or where the fewest training rows are wrong.
    shrinkage : 'auto', float or None, default=None
        Shrinkage of the class covariances: Ledoit and Wolf's, or a share from 0 to 1. A singular
        scatter is regularised by itself, with a warning.
    priors : {'frequencies', 'equal'} or array-like of shape (n_classes,), default=None
        Class probabilities.
    unbiased : bool, default=False
        Whether class covariances are divided by one less than the number of rows.
    n_components : int, default=None
        Directions that `transform` keeps.
    n_jobs : int, default=None
        Threads.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, ascending.
    coef_, intercept_ : ndarray
        Weights of the features and constants of `decision_function`.
    separability_ : float
        J at its maximum: for two classes the squared Mahalanobis distance of the means.
    feature_scores_ : ndarray of shape (n_features,)
        Fisher's ratio of every feature taken alone.
    feature_ranking_ : ndarray of shape (n_features,)
        The features by that score, the best first.
    explained_variance_ratio_ : ndarray of shape (n_directions,)
        Share of the between-class scatter along every direction.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import FisherDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> model = FisherDiscriminant().fit(X, y)
    >>> round(model.score(X, y), 2)
    0.98
    >>> model.feature_ranking_
    array([2, 3, 0, 1])
    """

    _kind = "fisher"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "threshold": [StrOptions({"prior", "midpoint", "least-errors"})],
        "shrinkage": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both"), None],
        "priors": [StrOptions({"frequencies", "equal"}), "array-like", None],
        "unbiased": ["boolean"],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
    }

    threshold: str = "prior"
    shrinkage: float | str | None = None
    priors: Any = None
    unbiased: bool = False
    n_components: int | None = None
    n_jobs: int | None = None

    def _settings(self) -> dict[str, Any]:
        return {
            "threshold": self.threshold,
            "shrinkage": "none" if self.shrinkage is None else self.shrinkage,
            "priors": priors_setting(self.priors, len(self.classes_)),
            "unbiased": bool(self.unbiased),
            "directions": self.n_components,
        }

    def _adopt(self, model: _core.Model) -> None:
        super()._adopt(model)
        weights, constants = model.weights(), model.intercepts
        two = len(self.classes_) == 2
        # Positive means the second of two classes to scikit-learn, the first to us.
        self.coef_ = -weights if two else weights
        self.intercept_ = -constants if two else constants
        self.feature_scores_ = np.asarray(model.attributes["feature_scores"])
        self.feature_ranking_ = np.argsort(-self.feature_scores_, kind="stable")


@estimator
class KernelFisherDiscriminant(KernelParameters, _Discriminant):
    """Fisher's discriminant in the feature space of a kernel.

    Parameters
    ----------
    kernel : str, default='rbf'
        As for :class:`widemargin.SVC`.
    mu : float, default=1e-3
        The ridge.
    ridge : {'coefficients', 'norm'}, default='coefficients'
        Whether the ridge penalises the coefficients (N + μI) or the norm (N + μK).
    threshold : {'svm', 'midpoint'}, default='svm'
        Where the boundary of two classes lies among the projections.
    n_landmarks : int, default=None
        Rows in the expansion; None is all up to 20 000 rows and 2 000 beyond (Nyström).
    degree, gamma, coef0
        Parameters of the kernel, as for :class:`widemargin.SVC`.
    priors : {'frequencies', 'equal'} or array-like of shape (n_classes,), default=None
        Class probabilities in the scores of more than two classes.
    random_state : int, RandomState instance or None, default=None
        Seeds the choice of landmarks.
    n_jobs : int, default=None
        Threads.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, ascending.
    separability_ : float
        J at its maximum.
    explained_variance_ratio_ : ndarray of shape (n_directions,)
        Share of the between-class scatter along every direction.
    landmarks_ : ndarray of shape (n_landmarks,)
        Training rows in the expansion.
    dual_coef_ : ndarray of shape (n_functions, n_landmarks)
        Their coefficients in `decision_function`.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from widemargin import KernelFisherDiscriminant
    >>> X, y = make_circles(100, noise=0.1, factor=0.4, random_state=0)
    >>> KernelFisherDiscriminant().fit(X, y).score(X, y)
    1.0
    """

    _kind = "kernel-fisher"
    _takes_sparse = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [str],
        "mu": [Interval(Real, 0, None, closed="neither")],
        "ridge": [StrOptions({"coefficients", "norm"})],
        "threshold": [StrOptions({"svm", "midpoint"})],
        "n_landmarks": [Interval(Integral, 1, None, closed="left"), None],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "priors": [StrOptions({"frequencies", "equal"}), "array-like", None],
    }

    mu: float = 1e-3
    ridge: str = "coefficients"
    threshold: str = "svm"
    n_landmarks: int | None = None
    priors: Any = None
    random_state: Any = None
    n_jobs: int | None = None

    def _settings(self) -> dict[str, Any]:
        check_kernel(type(self).__name__, self.kernel)
        if self.kernel == "precomputed":
            raise ValueError("KernelFisherDiscriminant takes rows, not precomputed kernel values.")
        return {
            "kernel": self.kernel,
            "mu": float(self.mu),
            "ridge": self.ridge,
            "threshold": self.threshold,
            "landmarks": self.n_landmarks,
            "degree": int(self.degree),
            "gamma": self.gamma if isinstance(self.gamma, str) else float(self.gamma),
            "coef0": float(self.coef0),
            "priors": priors_setting(self.priors, len(self.classes_)),
        }

    def _adopt(self, model: _core.Model) -> None:
        super()._adopt(model)
        self.landmarks_ = model.support
        coefficients = model.function_coefficients
        self.dual_coef_ = -coefficients if len(self.classes_) == 2 else coefficients

    @property
    def alpha_(self) -> NDArray[np.float64]:
        """Coefficients of the landmarks in every direction of `transform`."""
        check_is_fitted(self)
        return self._projection.function_coefficients
