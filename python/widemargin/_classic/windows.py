"""Parzen windows, densities and the probabilistic neural network."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from widemargin import _core
from widemargin._classic.base import Dense, PosteriorClassifier, Unlabelled, priors_setting
from widemargin._docs import documented
from widemargin._parameters import estimator

_WINDOWS = {"gaussian", "tophat", "epanechnikov", "exponential", "linear", "cosine"}
_RULES = {"scott", "silverman", "cv"}
_WIDTH = [StrOptions(_RULES), Interval(Real, 0, None, closed="neither")]
_CLASS_WIDTH = [StrOptions({*_RULES, "cv-errors"}), Interval(Real, 0, None, closed="neither")]
_PRIORS = [StrOptions({"frequencies", "equal"}), "array-like", None]


def _width(bandwidth: float | str) -> float | str:
    return bandwidth if isinstance(bandwidth, str) else float(bandwidth)


class _Windows(Dense):
    """Windows, around dense or sparse rows."""

    _takes_sparse = True


@estimator
class KernelDensity(_Windows, Unlabelled):
    """A density as the mean of windows around the rows.

    Parameters
    ----------
    bandwidth : {'scott', 'silverman', 'cv'} or float, default=1.0
        Width of the windows: a number, a rule (which, unlike scikit-learn's, knows the variance of
        the data), or the largest leave-one-out likelihood (Gaussian windows).
    kernel : {'gaussian', 'tophat', 'epanechnikov', 'exponential', 'linear', 'cosine'}, \
            default='gaussian'
        Their shape.
    random_state : int, RandomState instance or None, default=None
        Seeds the choice of rows for ``'cv'`` among more than 2 000.
    n_jobs : int, default=None
        Threads.

    Attributes
    ----------
    bandwidth_ : float
        The width.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import KernelDensity
    >>> model = KernelDensity(bandwidth=0.5).fit(np.array([[0.0], [1.0]]))
    >>> model.score_samples(np.array([[0.5]])).round(4)
    array([-0.7258])
    """

    _kind = "density"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "bandwidth": _WIDTH,
        "kernel": [StrOptions(_WINDOWS)],
    }

    bandwidth: float | str = 1.0
    kernel: str = "gaussian"
    random_state: Any = None
    n_jobs: int | None = None

    def _settings(self) -> dict[str, Any]:
        return {"window": self.kernel, "width": _width(self.bandwidth)}

    def _adopt(self, model: _core.Model) -> None:
        super()._adopt(model)
        self.bandwidth_ = float(model.attributes["widths"][0])

    def score(self, X: Any, y: Any = None) -> float:
        """Return the log-likelihood of rows, summed as in scikit-learn.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : Ignored
            For pipelines.

        Returns
        -------
        likelihood : float
            Sum of ln p(x).
        """
        return float(self.score_samples(X).sum())


class _WindowClassifier(_Windows, PosteriorClassifier):
    """Widths of classes."""

    def _adopt(self, model: _core.Model) -> None:
        super()._adopt(model)
        self.bandwidths_ = model.attributes["widths"]


@documented
@estimator
class ParzenClassifier(_WindowClassifier):
    """The Bayes classifier on a Parzen-window density per class.

    Parameters
    ----------
    bandwidth : {{'scott', 'silverman', 'cv', 'cv-errors'}} or float, default='cv'
        Width of the windows: one number for all classes, or a rule that gives every class its own;
        ``'cv'`` is the largest leave-one-out likelihood, ``'cv-errors'`` the fewest leave-one-out
        errors.
    kernel : {{'gaussian', 'tophat', 'epanechnikov', 'exponential', 'linear', 'cosine'}}, \
            default='gaussian'
        Their shape; cross-validated widths need Gaussian ones.
    {class_windows}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import ParzenClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> ParzenClassifier(bandwidth=0.5).fit(X, y).predict(X[:2])
    array([0, 0])
    """

    _kind = "parzen"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "bandwidth": _CLASS_WIDTH,
        "kernel": [StrOptions(_WINDOWS)],
        "priors": _PRIORS,
    }

    bandwidth: float | str = "cv"
    kernel: str = "gaussian"
    priors: Any = None
    random_state: Any = None
    n_jobs: int | None = None

    def _settings(self) -> dict[str, Any]:
        return {
            "window": self.kernel,
            "width": _width(self.bandwidth),
            "priors": priors_setting(self.priors, len(self.classes_)),
        }


@documented
@estimator
class ProbabilisticNeuralNetwork(_WindowClassifier):
    """Specht's probabilistic neural network, with a width for every class.

    Parameters
    ----------
    bandwidth : {{'scott', 'silverman', 'cv', 'cv-errors'}} or float, default='cv-errors'
        Width of the activation; ``'cv-errors'`` finds a width for every class, so that the fewest
        training rows are wrong when left out, ``'cv'`` those with the largest leave-one-out
        likelihood.
    input : {{'distance', 'unit-norm', 'lifted'}}, default='distance'
        What the pattern layer is given: rows as they are (then it is Parzen's classifier), rows
        divided by their length (which loses it), or rows with one more coordinate that gives all
        the same length.
    radius : float, default=None
        Length of lifted rows; None is the largest of a training row.
    {class_windows}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import ProbabilisticNeuralNetwork
    >>> X, y = load_iris(return_X_y=True)
    >>> round(ProbabilisticNeuralNetwork(bandwidth=0.5).fit(X, y).score(X, y), 2)
    0.97
    """

    _kind = "pnn"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "bandwidth": _CLASS_WIDTH,
        "input": [StrOptions({"distance", "unit-norm", "lifted"})],
        "radius": [Interval(Real, 0, None, closed="neither"), None],
        "priors": _PRIORS,
    }

    bandwidth: float | str = "cv-errors"
    input: str = "distance"
    radius: float | None = None
    priors: Any = None
    random_state: Any = None
    n_jobs: int | None = None

    def _settings(self) -> dict[str, Any]:
        return {
            "width": _width(self.bandwidth),
            "input": self.input,
            "radius": self.radius,
            "priors": priors_setting(self.priors, len(self.classes_)),
        }
