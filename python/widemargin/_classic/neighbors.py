"""k nearest neighbours."""

from __future__ import annotations

from dataclasses import field
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions

from widemargin._base import checks_parameters
from widemargin._classic.base import ClassicMachine, PosteriorClassifier
from widemargin._parameters import estimator

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self


_SEARCH = {"auto": "auto", "brute": "brute", "kd_tree": "tree", "ball_tree": "ball-tree"}


@estimator
class _Neighbors(ClassicMachine):
    """The parameters of neighbours."""

    _takes_sparse = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "weights": [StrOptions({"uniform", "distance"})],
        "metric": [StrOptions({"euclidean", "mahalanobis", "mahalanobis-within"})],
        "algorithm": [StrOptions(set(_SEARCH))],
    }

    n_neighbors: int = field(default=5, kw_only=False)
    weights: str = "uniform"
    metric: str = "euclidean"
    algorithm: str = "auto"
    n_jobs: int | None = None

    def _settings(self) -> dict[str, Any]:
        return {
            "neighbours": int(self.n_neighbors),
            "weights": self.weights,
            "metric": self.metric,
            "search": _SEARCH[self.algorithm],
        }

    def _check_rows(self, rows: int) -> None:
        if rows < self.n_neighbors:
            raise ValueError(
                f"Expected n_neighbors <= n_samples, but n_neighbors = {self.n_neighbors}, "
                f"n_samples = {rows}"
            )

    def kneighbors(
        self, X: Any, n_neighbors: int | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the nearest training rows, nearest first, the lower row first among equals.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        n_neighbors : int, default=None
            How many; None is the parameter of the estimator.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_neighbors)
            Their distances.
        indices : ndarray of shape (n_samples, n_neighbors)
            Their places in the training data.
        """
        rows, threads = self._query(X)
        count = self.n_neighbors if n_neighbors is None else n_neighbors
        distances, places = self._model.nearest(rows, int(count), threads)
        return distances, places.astype(np.int64)


class KNeighborsClassifier(_Neighbors, PosteriorClassifier):
    """Classification by the nearest neighbours.

    Ties of votes go to the class with the smaller sum of distances, then to the class of the
    nearest tied neighbour, then to the lower class; rows at the same distance come in the order of
    the training data.

    Parameters
    ----------
    n_neighbors : int, default=5
        How many rows vote.
    weights : {'uniform', 'distance'}, default='uniform'
        What a vote counts; rows at distance 0 alone decide where there are any.
    metric : {'euclidean', 'mahalanobis', 'mahalanobis-within'}, default='euclidean'
        Which distance counts; Mahalanobis's is that of the covariance of all rows, or of the rows
        around the means of their classes.
    algorithm : {'auto', 'brute', 'kd_tree', 'ball_tree'}, default='auto'
        How neighbours are found: by products with all rows, or by a tree of boxes or balls; the
        predictions are the same.
    n_jobs : int, default=None
        Threads.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, ascending.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> from widemargin import KNeighborsClassifier
    >>> model = KNeighborsClassifier(n_neighbors=3).fit([[0], [1], [2], [3]], [0, 0, 1, 1])
    >>> model.predict([[1.1]])
    array([0])
    """

    _kind = "knn"


class KNeighborsRegressor(RegressorMixin, _Neighbors):
    """Regression by the mean of the nearest neighbours.

    Parameters
    ----------
    n_neighbors, weights, metric, algorithm, n_jobs
        As for :class:`KNeighborsClassifier`.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> from widemargin import KNeighborsRegressor
    >>> model = KNeighborsRegressor(n_neighbors=2).fit([[0], [1], [2], [3]], [0.0, 0.0, 1.0, 1.0])
    >>> model.predict([[1.5]])
    array([0.5])
    """

    _kind = "knn-regressor"

    @checks_parameters
    def fit(self, X: Any, y: Any) -> Self:
        """Keep the rows and their values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Values.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X, y = self._rows(X, y, reset=True)
        self._check_rows(X.shape[0])
        targets = column_or_1d(y, warn=True).astype(np.float64)
        return self._learn(X, targets, self._settings())

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the value of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_samples,)
            Means of the neighbours' values.
        """
        rows, threads = self._query(X)
        return self._model.predict(rows, threads)
