"""Ranking: scores whose order within queries is learnt from pairs of rows."""

from __future__ import annotations

from dataclasses import field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import (
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
)

from widemargin import _core
from widemargin._base import BaseTrained, checks_parameters
from widemargin._parameters import RunParameters, estimator
from widemargin._progress import Monitor, as_callbacks
from widemargin._restore import specification
from widemargin._tables import checked_rows, to_core

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self


def _queries(qid: Any, rows: int) -> NDArray[np.int64] | None:
    """Return a number per row that is the same for the rows of a query."""
    if qid is None:
        return None
    qid = column_or_1d(qid)
    if len(qid) != rows:
        raise ValueError(f"qid has {len(qid)} entries, X has {rows} rows; expected one per row")
    return np.unique(qid, return_inverse=True)[1].astype(np.int64)


def _labels(y: Any) -> NDArray[np.float64]:
    values = np.ascontiguousarray(column_or_1d(y, warn=True), dtype=np.float64)
    assert_all_finite(values, input_name="y")
    return values


def ranking_quality(y_true: Any, y_score: Any, qid: Any = None) -> dict[str, Any]:
    """Return how good the order of scores within queries is.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels; larger ones belong first.
    y_score : array-like of shape (n_samples,)
        Scores.
    qid : array-like of shape (n_samples,), default=None
        Query of each row; without, all rows are one query.

    Returns
    -------
    quality : dict
        ``pair_accuracy`` over all pairs, and means over the queries of ``ndcg`` and ``ndcg_at_10``
        (gains 2^y - 1; None unless labels are from 0 to 53), ``mean_average_precision`` (labels
        above 0 are relevant; None if some are below 0) and ``kendall_tau`` (tau-b); ``queries`` is
        the number of queries that have different labels.

    Examples
    --------
    >>> from widemargin import ranking_quality
    >>> ranking_quality([2, 1, 0], [0.9, 0.1, 0.3])["pair_accuracy"]
    0.6666666666666666
    """
    truth, scores = _labels(y_true), _labels(y_score)
    check_consistent_length(truth, scores)
    return _core.ranking_quality(truth, scores, _queries(qid, len(scores)))


@estimator
class RankSVM(RunParameters, BaseTrained):
    """Ranking support vector machine (SVM-rank).

    Learns weights w so that, of two rows of one query, the one with the larger label has the larger
    score: minimises ½‖w‖² + C Σ max(0, 1 - w·(xᵢ - xⱼ)) over all such pairs, in O(n log n) time per
    pass whatever their number.

    Parameters
    ----------
    C : float, default=1.0
        Price of the loss of a pair; times the number of queries it is the ``-c`` of Joachims'
        ``svm_rank_learn``.
    loss : {'hinge', 'squared_hinge'}, default='hinge'
        What a pair in the wrong order costs.
    tol : float, default=1e-3
        Largest duality gap, relative to the objective.
    max_iter : int, default=-1
        Limit on Newton steps, -1 for none.
    verbose : int, default=0
        Whether to print progress.
    max_time : float, default=None
        Seconds after which training stops with a `ConvergenceWarning` and the best model so far.
    callbacks : callable or list of callables, default=None
        Called with a :class:`widemargin.Progress` while training; a true return value stops it.
    n_jobs : int, default=None
        Threads; None is 1 unless joblib says otherwise, -1 is all. The result is the same for all.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features.
    n_iter_ : int
        Newton steps.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the training data had any.
    status_, objective_, dual_gap_, violation_
        How the training ended, the dual objective, the gap to the primal one, and the norm of the
        gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import RankSVM
    >>> X = np.array([[1.0], [2.0], [3.0], [11.0], [10.0]])
    >>> model = RankSVM().fit(X, [0, 1, 2, 1, 0], qid=[1, 1, 1, 2, 2])
    >>> model.score(X, [0, 1, 2, 1, 0], qid=[1, 1, 1, 2, 2])
    1.0
    """

    _kind = "rank-svm"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
    }

    C: float = field(default=1.0, kw_only=False)
    loss: str = "hinge"
    tol: float = 1e-3
    max_iter: int = -1
    verbose: bool | int = 0

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    @classmethod
    def _of(cls, model: _core.Model) -> Self:
        """Return the estimator of a model from a file."""
        if model.is_mapped:
            raise ValueError(
                "a ranking model with approximate features has no estimator; use the command line"
            )
        known = specification(model)
        given = {name: known[key] for key, name in (("c", "C"), ("gap", "tol")) if key in known}
        given["loss"] = str(known.get("loss", "hinge")).replace("-", "_")
        estimator = cls(**given)
        estimator._know_features(model)
        estimator._adopt(model)
        return estimator

    @checks_parameters
    def fit(self, X: Any, y: Any, qid: Any = None) -> Self:
        """Train on rows of queries.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels; within a query, larger ones belong first.
        qid : array-like of shape (n_samples,), default=None
            Query of each row; without, all rows are one query.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X, y = checked_rows(self, X, y, ensure_min_samples=2)
        names = getattr(self, "feature_names_in_", None)
        monitor = Monitor(self.verbose, as_callbacks(self.callbacks))
        settings: _core.Settings = {
            "machine": self._kind,
            "online": False,
            "parameters": {
                "c": float(self.C),
                "loss": self.loss.replace("_", "-"),
                "gap": float(self.tol),
                "max_iter": None if self.max_iter == -1 else int(self.max_iter),
                "precision": "f32" if X.dtype == np.dtype(np.float32) else "f64",
            },
            "calibration": None,
            "seed": int(check_random_state(0).randint(np.iinfo("i").max)),
            "cache_megabytes": 0.0,
            "threads": self._threads(),
            "max_seconds": self.max_time,
        }
        model, _, complaints = _core.fit(
            settings,
            to_core(X),
            _labels(y),
            None,
            None if names is None else list(names),
            None,
            monitor if monitor.listens else None,
            _queries(qid, X.shape[0]),
        )
        monitor.end(model.training, model.support_count)
        self._adopt(model)
        self._warn(complaints)
        return self

    def _adopt(self, model: _core.Model) -> None:
        self._model = model
        self.coef_ = model.weights().ravel()
        if model.scaling is not None:
            # The order of w·(fx + o) is that of (wf)·x.
            self.coef_ = self.coef_ * model.scaling[1]
        self.n_iter_ = max(int(model.training.get("passes", 1)), 1)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the score of each row; larger ones belong first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Scores, to be compared within a query.
        """
        check_is_fitted(self)
        X = checked_rows(self, X, reset=False)
        return np.asarray(self._model.predict(to_core(X), self._threads()), dtype=np.float64)

    def score(self, X: Any, y: Any, qid: Any = None) -> float:
        """Return the mean over queries of Kendall's tau-b of scores and labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        qid : array-like of shape (n_samples,), default=None
            Query of each row; without, all rows are one query.

        Returns
        -------
        tau : float
            1 for the best order, less where labels are equal; -1 for the reverse.
            :func:`widemargin.ranking_quality` has NDCG and average precision.
        """
        return float(ranking_quality(y, self.predict(X), qid)["kendall_tau"])
