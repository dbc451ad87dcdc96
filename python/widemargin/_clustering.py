"""Maximum-margin clustering."""

from __future__ import annotations

from dataclasses import field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils._param_validation import Interval, StrOptions

from widemargin._classic.base import Grouping
from widemargin._parameters import KernelParameters, RunParameters, check_kernel, estimator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from widemargin import _core


def _links(together: Any, apart: Any) -> str:
    """Return pairs of rows as the compiled half reads them."""
    words = []
    for name, given, sign in (("must_link", together, "="), ("cannot_link", apart, "!")):
        pairs = np.zeros((0, 2)) if given is None else np.asarray(given)
        if pairs.size == 0:
            continue
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(f"{name}: expected pairs of rows, found shape {pairs.shape}")
        if not np.issubdtype(pairs.dtype, np.integer) or (pairs < 0).any():
            raise ValueError(f"{name}: expected row numbers from 0, found {given!r}")
        words += [f"{a}{sign}{b}" for a, b in pairs.tolist()]
    return ",".join(words) or "none"


@estimator
class MaxMarginClustering(KernelParameters, RunParameters, ClusterMixin, Grouping):
    """Clusters whose support vector machine has the largest margin.

    Finds labels yᵢ = ±1 with |Σ yᵢ| ≤ balance that minimise ½β‖w‖² + Σ max(0, 1 − yᵢ⟨w, φ(xᵢ)⟩)
    (Xu, Neufeld, Larson and Schuurmans 2005). The semidefinite relaxation is solved with a proof of
    its value, rounded and improved; up to 12 rows are searched completely. More than two clusters
    have simplex codes in the place of ±1, which the same relaxation bounds.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters.
    kernel : str, default='rbf'
        The kernel, as for :class:`widemargin.SVC`; it has to be positive semidefinite.
    gamma : {'scale', 'auto', 'median', 'multi-scale'} or float, default='scale'
        γ of the kernel. ``'median'``: one over the squared median distance of the rows.
        ``'multi-scale'``: five widths, from a tenth of the median distance to that distance, of
        which the clusters with the largest margin are kept; in five times the time.
    beta : float, default=0.01
        Weight β of ‖w‖²/2 beside the sum of the losses: 1/C.
    balance : 'auto' or float, default='auto'
        Most rows by which the clusters differ in size; below 1 a share of the rows. ``'auto'``: a
        tenth of the rows, at least one.
    method : {'auto', 'enumeration', 'relaxation', 'alternation', 'iterative'}, default='auto'
        A complete search (two clusters), the relaxation, training and relabelling in turn, or the
        same on features that approximate a linear or Gaussian kernel, for many rows. ``'auto'``
        searches up to 12 rows, relaxes up to 2000, alternates up to 4000 and takes features beyond.
    n_starts : int, default=5
        Random directions that ``'iterative'`` starts from beside k-means and principal directions.
    centre : bool, default=False
        Whether the kernel is centred in its feature space.
    tol : float, default=1e-6
        Relative gap between the relaxation's value and its bound that ends it.
    degree, coef0
        Parameters of the kernel.
    must_link, cannot_link : array-like of shape (n_pairs, 2), default=None
        Pairs of rows, numbered from 0, that are in one cluster and in two; of two clusters.
    share : float, default=None
        Share of the rows that one of two clusters has; `balance` is then how far the difference of
        the sizes may be from the one that it makes. None: half.
    max_time : float, default=None
        Seconds after which the best labels so far are taken, with a `ConvergenceWarning`.
    verbose : int, default=0
        Whether to print progress.
    callbacks : callable or list of callables, default=None
        Called with a :class:`widemargin.Progress` on the way; a true return value ends the search
        with the best labels so far.
    random_state : int, RandomState instance or None, default=None
        Seeds the start of the relaxation and the rounding.
    n_jobs : int, default=None
        Threads.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every training row; that of the first row is 0.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Shares of the clusters in every training row by the relaxation, rows summing to 1; NaN
        where no relaxation was solved.
    objective_ : float
        Objective of these labels.
    relaxation_ : float
        Value of the relaxation; NaN for ``'alternation'``.
    bound_ : float
        Proven lower bound on the relaxation, and so on the objective of any labels of this balance.
    gap_ : float
        (``relaxation_`` − ``bound_``) / ``bound_``.
    label_gap_ : float
        (``objective_`` − ``bound_``) / ``bound_``: how far from the best labels these can be.
    status_ : str
        How the search ended.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from widemargin import MaxMarginClustering
    >>> X, y = make_blobs(40, centers=[[-3, 0], [3, 0]], random_state=0)
    >>> model = MaxMarginClustering(gamma=0.1, random_state=0).fit(X)
    >>> bool((model.labels_ == y).all() or (model.labels_ != y).all())
    True
    >>> bool(model.bound_ <= model.relaxation_ <= model.objective_ * (1 + 1e-6))
    True
    """

    _kind = "mmc"
    _takes_sparse = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 2, None, closed="left")],
        "kernel": [str],
        "gamma": [
            StrOptions({"scale", "auto", "median", "multi-scale"}),
            Interval(Real, 0.0, None, closed="left"),
        ],
        "beta": [Interval(Real, 0.0, None, closed="neither")],
        "balance": [StrOptions({"auto"}), Interval(Real, 0.0, None, closed="left")],
        "method": [StrOptions({"auto", "enumeration", "relaxation", "alternation", "iterative"})],
        "n_starts": [Interval(Integral, 0, None, closed="left")],
        "centre": ["boolean"],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "must_link": ["array-like", None],
        "cannot_link": ["array-like", None],
        "share": [Interval(Real, 0.0, 1.0, closed="neither"), None],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
    }

    n_clusters: int = field(default=2, kw_only=False)
    beta: float = 0.01
    balance: float | str = "auto"
    method: str = "auto"
    n_starts: int = 5
    centre: bool = False
    tol: float = 1e-6
    must_link: Any = None
    cannot_link: Any = None
    share: float | None = None
    random_state: Any = None

    def _check_rows(self, rows: int) -> None:
        if rows < self.n_clusters:
            raise ValueError(f"n_samples={rows} should be >= n_clusters={self.n_clusters}.")

    def _settings(self) -> dict[str, Any]:
        check_kernel(type(self).__name__, self.kernel)
        if self.gamma == "multi-scale":
            width: dict[str, Any] = {"widths": "multi-scale"}
        else:
            width = {"gamma": self.gamma if isinstance(self.gamma, str) else float(self.gamma)}
        return {
            "kernel": self.kernel,
            **width,
            "degree": int(self.degree),
            "coef0": float(self.coef0),
            "clusters": int(self.n_clusters),
            "beta": float(self.beta),
            "balance": self.balance if isinstance(self.balance, str) else float(self.balance),
            "centre": bool(self.centre),
            "share": "half" if self.share is None else float(self.share),
            "links": _links(self.must_link, self.cannot_link),
            "labelling": self.method,
            "starts": int(self.n_starts),
            "tol": float(self.tol),
        }

    def _adopt(self, model: _core.Model) -> None:
        super()._adopt(model)
        found = model.attributes
        self.labels_ = found["labels"].astype(np.int64)
        shape = (len(self.labels_), -1)
        missing = np.full((len(self.labels_), int(self.labels_.max()) + 1), np.nan)
        shares = found.get("memberships")
        self.memberships_ = missing if shares is None else np.asarray(shares).reshape(shape)
        self.objective_ = float(found["objective"])
        self.relaxation_ = float(found.get("relaxation", "nan"))
        self.bound_ = float(found["bound"])
        self.gap_ = float(found.get("gap", "nan"))
        self.label_gap_ = float(found["label_gap"])
        self.status_ = str(model.training["status"])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return ⟨w, φ(x)⟩ of every row, positive in cluster 0; of more clusters a value for each.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_clusters)
            Decision values.
        """
        rows, threads = self._query(X)
        values: NDArray[np.float64] = self._model.decision_values(rows, threads)
        return values[:, 0] if values.shape[1] == 2 else values
