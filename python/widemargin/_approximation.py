"""Transformers whose features approximate a Gaussian kernel: `RFF` and `Nystroem`."""

from __future__ import annotations

from dataclasses import field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from widemargin import _core
from widemargin._base import checks_parameters, count_threads
from widemargin._parameters import estimator
from widemargin._tables import checked_rows, to_core

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self


@estimator
class BaseApproximation(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What the transformers share."""

    _rule: ClassVar[str]
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="neither")],
    }

    n_components: int = field(default=100, kw_only=False)
    gamma: float | str = "scale"
    random_state: Any = None
    n_jobs: int | None = None

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    @checks_parameters
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the map.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        rows = self._rows(X, reset=True)
        seed = int(check_random_state(self.random_state).randint(np.iinfo("i").max))
        rule = f"{self._rule}:{self.n_components}"
        # What a pickle keeps: the same rows and seed give the same map.
        gamma = self.gamma if isinstance(self.gamma, str) else repr(float(self.gamma))
        self._map = _core.FeatureMap.fit(rule, gamma, seed, to_core(rows))
        self._n_features_out = self._map.outputs
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the features of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        features : ndarray of shape (n_samples, n_components)
            In single precision.
        """
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        return self._map.transform(to_core(rows), count_threads(self.n_jobs))

    def _rows(self, X: Any, *, reset: bool) -> Any:
        return checked_rows(self, X, reset=reset)


class RFF(BaseApproximation):
    """Random Fourier features of a Gaussian kernel.

    Parameters
    ----------
    n_components : int, default=100
        Number of features; products err by about one over its root.
    gamma : {'scale', 'auto'} or float, default='scale'
        γ of the kernel.
    random_state : int, RandomState instance or None, default=None
        Seeds the frequencies.
    n_jobs : int, default=None
        Threads of `transform`.

    Attributes
    ----------
    n_features_in_ : int
        Number of features of a row.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the training data had any.

    See Also
    --------
    Nystroem : The kernel at some of the rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from widemargin import RFF, LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> make_pipeline(RFF(300, random_state=0), LinearSVC()).fit(X, y).score(X, y) > 0.95
    True
    """

    _rule = "rff"


class Nystroem(BaseApproximation):
    """The Gaussian kernel at some of the rows, made orthogonal.

    Products of its features are those of :class:`sklearn.kernel_approximation.Nystroem` with the
    same rows; the features themselves are turned, and fewer where rows add nothing new.

    Parameters
    ----------
    n_components : int, default=100
        Number of rows taken.
    gamma : {'scale', 'auto'} or float, default='scale'
        γ of the kernel.
    random_state : int, RandomState instance or None, default=None
        Seeds the choice of rows.
    n_jobs : int, default=None
        Threads of `transform`.

    Attributes
    ----------
    n_features_in_ : int
        Number of features of a row.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the training data had any.

    See Also
    --------
    RFF : Random Fourier features.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from widemargin import LinearSVC, Nystroem
    >>> X, y = load_iris(return_X_y=True)
    >>> make_pipeline(Nystroem(50, random_state=0), LinearSVC()).fit(X, y).score(X, y) > 0.95
    True
    """

    _rule = "nystroem"
