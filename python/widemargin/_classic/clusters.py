"""k-means and spectral clustering."""

from __future__ import annotations

from dataclasses import field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions

from widemargin import _core
from widemargin._classic.base import Grouping, numbers
from widemargin._parameters import estimator

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self


class _Clusters(ClusterMixin, Grouping):
    """What the two have in common."""

    _takes_sparse = True

    n_clusters: int

    def _check_rows(self, rows: int) -> None:
        if rows < self.n_clusters:
            raise ValueError(f"n_samples={rows} should be >= n_clusters={self.n_clusters}.")


@estimator
class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _Clusters):
    """k-means clusters.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    init : 'k-means++' or array-like of shape (n_clusters, n_features), default='k-means++'
        Where it starts.
    n_init : int, default=1
        Starts, of which the best is kept.
    max_iter : int, default=300
        Most rounds from one start.
    tol : float, default=1e-4
        Ends when the squared moves of the centres sum to less than this times the mean variance.
    random_state : int, RandomState instance or None, default=None
        Seeds the starts.
    n_jobs : int, default=None
        Threads.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres.
    labels_ : ndarray of shape (n_samples,)
        Cluster of every training row.
    inertia_ : float
        Sum of squared distances to the nearest centre.
    n_iter_ : int
        Rounds of the best start.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import KMeans
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> sorted(KMeans(n_clusters=2, random_state=0).fit(X).cluster_centers_.ravel().tolist())
    [0.5, 10.5]
    """

    _kind = "kmeans"
    _has_onnx = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"k-means++"}), "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    n_clusters: int = field(default=8, kw_only=False)
    init: Any = "k-means++"
    n_init: int = 1
    max_iter: int = 300
    tol: float = 1e-4
    random_state: Any = None
    n_jobs: int | None = None

    def _settings(self) -> dict[str, Any]:
        return {
            "clusters": int(self.n_clusters),
            "starts": int(self.n_init),
            "max_iter": int(self.max_iter),
            "tol": float(self.tol),
            "centres": None if isinstance(self.init, str) else numbers(self.init),
        }

    def _learn(self, X: Any, targets: Any, settings: dict[str, Any], weights: Any = None) -> Self:
        super()._learn(X, targets, settings, weights)
        self.labels_ = self.predict(X)
        return self

    def _adopt(self, model: _core.Model) -> None:
        super()._adopt(model)
        self.cluster_centers_ = model.support_vectors
        self.inertia_ = float(model.training["primal"])
        self.n_iter_ = int(model.training["iterations"])
        self._n_features_out = model.support_count

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the distances to the centres.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            To every centre.
        """
        rows, threads = self._query(X)
        return -self._model.decision_values(rows, threads)

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the sum of squared distances to the nearest centres.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : Ignored
            For pipelines.

        Returns
        -------
        score : float
            Larger is better.
        """
        return -float((self.transform(X).min(axis=1) ** 2).sum())


@estimator
class SpectralClustering(_Clusters):
    """Clusters by the eigenvectors of a graph of similarities.

    New rows join the cluster of the nearest training row.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    affinity : {'rbf', 'nearest_neighbors'}, default='rbf'
        Similarities exp(−γ‖x − z‖²), or 1 among nearest neighbours (½ where it is one-sided).
    gamma : {'scale', 'auto'} or float, default=1.0
        γ of ``'rbf'``.
    n_neighbors : int, default=10
        Neighbours of ``'nearest_neighbors'``.
    assign_labels : {'kmeans', 'normalised', 'ratio'}, default='kmeans'
        Ng, Jordan and Weiss's way for any number of clusters, or the least normalised or ratio cut
        of two.
    n_init : int, default=10
        Starts of k-means.
    random_state : int, RandomState instance or None, default=None
        Seeds k-means and the eigenvectors.
    n_jobs : int, default=None
        Threads.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every training row.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from widemargin import SpectralClustering
    >>> X, y = make_circles(200, noise=0.05, factor=0.3, random_state=0)
    >>> model = SpectralClustering(n_clusters=2, gamma=20.0, random_state=0).fit(X)
    >>> bool((model.labels_ == y).all() or (model.labels_ != y).all())
    True
    """

    _kind = "spectral"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "affinity": [StrOptions({"rbf", "nearest_neighbors"})],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="neither")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "assign_labels": [StrOptions({"kmeans", "normalised", "ratio"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
    }

    n_clusters: int = field(default=8, kw_only=False)
    affinity: str = "rbf"
    gamma: float | str = 1.0
    n_neighbors: int = 10
    assign_labels: str = "kmeans"
    n_init: int = 10
    random_state: Any = None
    n_jobs: int | None = None

    def _settings(self) -> dict[str, Any]:
        return {
            "clusters": int(self.n_clusters),
            "neighbours": self.n_neighbors if self.affinity == "nearest_neighbors" else None,
            "gamma": None if self.affinity == "nearest_neighbors" else self.gamma,
            "cut": self.assign_labels,
            "starts": int(self.n_init),
        }

    def _adopt(self, model: _core.Model) -> None:
        super()._adopt(model)
        self.labels_ = model.attributes["targets"].astype(np.int64)
