"""Several ways to cluster the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_array, check_random_state, column_or_1d

from widemargin import _core
from widemargin._base import count_threads
from widemargin._svc import class_name
from widemargin._tables import to_core

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class ClusteringComparison:
    """What the machines of a comparison found, in the order in which they were given.

    Attributes
    ----------
    machines : list of dict
        Of every machine its ``estimator``, ``labels`` of all rows, ``sizes`` of the clusters,
        ``stability`` (mean adjusted Rand index of pairs of models of parts of the rows, or None),
        ``with_first`` (adjusted Rand index with the first machine), ``seconds``, and where classes
        were given ``error`` of the best matching, ``adjusted_rand`` and ``v_measure``.
    """

    def __init__(self, machines: list[dict[str, Any]]) -> None:
        self.machines = machines

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.machines)

    def __len__(self) -> int:
        return len(self.machines)

    @property
    def most_stable(self) -> dict[str, Any] | None:
        """The machine whose clusters are the most stable, the first of equals."""
        known = [machine for machine in self.machines if machine["stability"] is not None]
        return max(known, key=lambda machine: machine["stability"], default=None)

    def __repr__(self) -> str:
        names = [repr(machine["estimator"]).replace("\n", "") for machine in self.machines]
        width = max([9, *map(len, names)])
        lines = [f"{'estimator':{width}}  stability  with first  seconds  error %   ARI    sizes"]
        for name, machine in zip(names, self.machines, strict=True):
            stability, error = machine["stability"], machine["error"]
            shown = "        –" if stability is None else f"{stability:9.3f}"
            known = "      –      –"
            if error is not None:
                known = f"{100 * error:7.2f}  {machine['adjusted_rand']:5.3f}"
            sizes = ", ".join(map(str, machine["sizes"]))
            lines.append(
                f"{name:{width}}  {shown}  {machine['with_first']:10.3f}  "
                f"{machine['seconds']:7.3f}  {known}  {sizes}"
            )
        return "\n".join(lines)


def compare_clusterings(
    X: Any,
    y: Any = None,
    *,
    estimators: Iterable[Any],
    pairs: int = 5,
    share: float = 0.8,
    max_time: float | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> ClusteringComparison:
    """Compare clusterings of the same rows, such as numbers of clusters or widths of a kernel.

    The stability of an estimator is the mean adjusted Rand index of pairs of models, each of a
    random part of the rows and then asked for the clusters of all rows. The estimator whose
    clusters are the most stable is a choice that needs no labels.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,), default=None
        Classes to compare the clusters with.
    estimators : iterable of MaxMarginClustering, KMeans, SpectralClustering or GaussianMixture
        What is compared, of this package.
    pairs : int, default=5
        Pairs of parts of the rows; 0 for no stability.
    share : float, default=0.8
        Share of the rows in a part.
    max_time : float, default=None
        Seconds after which the comparison ends with what is finished by then.
    n_jobs : int, default=None
        Threads.
    random_state : int, RandomState instance or None, default=None
        Seeds the parts and the machines.

    Returns
    -------
    comparison : ClusteringComparison
        What was found; prints as a table.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from widemargin import KMeans, MaxMarginClustering, compare_clusterings
    >>> X, y = make_blobs(60, centers=[[-4, 0], [4, 0], [0, 7]], random_state=0)
    >>> tried = [KMeans(k) for k in (3, 4, 5)] + [MaxMarginClustering(3, gamma=0.05, tol=1e-2)]
    >>> found = compare_clusterings(X, y, estimators=tried, random_state=0)
    >>> found.most_stable["sizes"], found.machines[3]["error"]
    ([20, 20, 20], 0.0)
    """
    tried = list(estimators)
    for estimator in tried:
        if not hasattr(type(estimator), "_kind") or not hasattr(estimator, "_settings"):
            raise TypeError(
                f"estimators: expected estimators of this package that cluster, found {estimator!r}"
            )
        estimator._validate_params()
    X = check_array(X, dtype=[np.float64, np.float32], order="C", accept_sparse="csr")
    targets = None
    if y is not None:
        classes, codes = np.unique(column_or_1d(y), return_inverse=True)
        if len(codes) != X.shape[0]:
            raise ValueError(f"y: expected {X.shape[0]} classes, found {len(codes)}")
        targets = (codes.astype(np.int64), [class_name(label) for label in classes])
    seed = int(check_random_state(random_state).randint(np.iinfo("i").max))
    threads = count_threads(n_jobs)
    settings: list[_core.Settings] = [
        {
            "machine": estimator._kind,
            "online": False,
            "parameters": estimator._settings(),
            "calibration": None,
            "seed": seed,
            "cache_megabytes": None,
            "threads": threads,
            "max_seconds": None,
        }
        for estimator in tried
    ]
    found = _core.compare_clusterings(
        to_core(X), targets, settings, int(pairs), float(share), max_time, threads, seed
    )
    # Those for which there was no time are missing.
    for estimator, machine in zip(tried, found, strict=False):
        machine["estimator"] = estimator
    return ClusteringComparison(found)


def cluster_agreement(y: Any, labels: Any) -> dict[str, float]:
    """Return how well clusters agree with classes.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Classes.
    labels : array-like of shape (n_samples,)
        Clusters.

    Returns
    -------
    agreement : dict
        ``error`` of the best matching of clusters with classes, ``many_to_one_error`` where every
        cluster stands for its most frequent class, ``adjusted_rand``, ``homogeneity``,
        ``completeness`` and ``v_measure``.

    Examples
    --------
    >>> from widemargin import cluster_agreement
    >>> found = cluster_agreement(["a", "a", "b", "b"], [1, 1, 0, 2])
    >>> found["error"], found["many_to_one_error"]
    (0.25, 0.0)
    """
    classes = np.unique(column_or_1d(y), return_inverse=True)[1].astype(np.int64)
    clusters = np.unique(column_or_1d(labels), return_inverse=True)[1].astype(np.int64)
    if len(classes) != len(clusters):
        raise ValueError(f"expected a cluster for each of {len(classes)} rows: {len(clusters)}")
    return _core.cluster_agreement(classes, clusters)
