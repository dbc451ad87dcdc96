"""Classification and outlier detection with losses that outliers do not pull."""

from __future__ import annotations

from dataclasses import field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from widemargin._base import checks_parameters
from widemargin._docs import documented
from widemargin._parameters import KernelParameters, estimator
from widemargin._restore import specification
from widemargin._svc import BaseSVC

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self

    from widemargin import _core

#: What a row costs.
LOSSES = ("ramp", "eta", "trimmed", "centroid", "leave-one-out", "power")
METHODS = ("auto", "enumeration", "relaxation", "cccp", "alternation")

#: The parameter that only one loss has.
_OF_ONE_LOSS = {
    "trimmed": "keep",
    "power": "power",
    "centroid": "distance_price",
    "leave-one-out": "left_out",
}


@documented
@estimator
class RobustSVC(BaseSVC):
    """Support vector classification that outliers and wrong labels do not pull.

    A row far on the wrong side costs no more than 1 (``loss='ramp'``, ``'eta'``), or nothing if it
    is among the worst (``'trimmed'``), so that it may be given up. These problems are not convex.
    Their semidefinite relaxation (Xu, Crammer and Schuurmans 2006) has a value that bounds the
    objective from below, with a proof; its solution, random halves of the rows and the plain
    machine are where the descent starts.

    Parameters
    ----------
    loss : {'ramp', 'eta', 'trimmed', 'centroid', 'leave-one-out', 'power'}, default='ramp'
        With ξ = max(0, 1 − y f(x)): the sum of min(1, ξ), the same by shares of rows that count,
        the smallest ξ of a share of the rows, hinge losses with smaller margins for rows far from
        the mean of their class, hinge losses of rows that do without their own term, or the sum of
        ξ ** power.
    C : float, default=1.0
        Penalty: the objective is ‖w‖²/(2 C) plus the losses.
    {kernel}
    method : {'auto', 'enumeration', 'relaxation', 'cccp', 'alternation'}, default='auto'
        How the first three losses are minimised: a complete search (few rows), the relaxation and a
        descent from its solution, the concave-convex procedure, or training and leaving rows out in
        turn. ``'auto'`` relaxes pairs of classes of up to 150 rows without weights.
    keep : float, default=0.8
        Share of the rows that count with ``loss='trimmed'``.
    power : float, default=0.5
        Exponent of ``loss='power'``, up to 2.
    distance_price : 'auto' or float, default='auto'
        What a squared distance from the mean of the class takes off the margin with
        ``loss='centroid'``; ``'auto'`` is half the inverse of the median squared distance.
    left_out : float, default=1.0
        Share of its own term that a row does without with ``loss='leave-one-out'``.
    fit_intercept : bool, default=True
        Whether the functions have a constant.
    intercept_scaling : float, default=1.0
        Value of the appended feature whose weight makes the constant; that weight is charged like
        the others, without which the relaxation would not be convex.
    n_starts : int, default=5
        Random starts beside those that are always tried.
    class_weight : dict or 'balanced', default=None
        Factors on the losses by class; not with ``'trimmed'`` or the relaxation.
    tol : float, default=1e-3
        Relative gap between the relaxation's value and its bound that ends it.
    random_state : int, RandomState instance or None, default=None
        Seeds the random starts.
    verbose : bool, default=False
        Whether to print progress.
    max_time : float, default=None
        Seconds after which training stops with a `ConvergenceWarning` and the best model so far.
    callbacks : callable or list of callables, default=None
        Called with a :class:`widemargin.Progress` while training; returning True stops it.
    n_jobs : int, default=None
        Threads. The result is the same for all.

    Attributes
    ----------
    outlier_scores_ : ndarray of shape (n_samples,)
        −y f(x)/‖w‖ of every training row: its distance from the boundary on the wrong side. With
        more than two classes the largest over the pairs that a row is in.
    kept_ : ndarray of shape (n_samples,)
        Whether a row counts: not given up by ``'ramp'`` and ``'eta'``, not left out by
        ``'trimmed'``.
    shares_ : ndarray of shape (n_samples,)
        The share η of every row in the relaxation; 1 where none was solved.
    objective_ : float
        The objective of the functions, summed over pairs of classes.
    bound_ : float
        Proven lower bound on the least objective; 0 where nothing better is known.
    relaxation_ : float
        Value of the relaxation; NaN where none was solved.
    gap_ : float
        (``relaxation_`` − ``bound_``) / ``relaxation_``.
    optimality_gap_ : float
        (``objective_`` − ``bound_``) / ``objective_``: how far from the least objective this can
        be.
    {attributes_classification}
    {attributes}

    See Also
    --------
    SVC : Hinge losses, which follow every row.
    LabelOutlierDetector : Rows whose label does not fit, by trimmed losses.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import RobustSVC
    >>> X = np.array([[-3.0], [-2.5], [-2.0], [2.0], [2.5], [3.0], [9.0]])
    >>> y = np.array([0, 0, 0, 1, 1, 1, 0])
    >>> model = RobustSVC(kernel="linear").fit(X, y)
    >>> model.predict(X).tolist()
    [0, 0, 0, 1, 1, 1, 1]
    >>> model.kept_.tolist()
    [True, True, True, True, True, True, False]
    >>> bool(model.bound_ <= model.objective_)
    True
    """

    _kind = "robust-svc"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "loss": [StrOptions(set(LOSSES))],
        "method": [StrOptions(set(METHODS))],
        "keep": [Interval(Real, 0.0, 1.0, closed="right")],
        "power": [Interval(Real, 0.0, 2.0, closed="right")],
        "distance_price": [StrOptions({"auto"}), Interval(Real, 0.0, None, closed="left")],
        "left_out": [Interval(Real, 0.0, 1.0, closed="both")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0.0, None, closed="neither")],
        "n_starts": [Interval(Integral, 0, None, closed="left")],
    }

    probability = "deprecated"
    decision_function_shape = "ovr"
    break_ties = False
    calibration = "sigmoid"
    cache_size = 200

    loss: str = "ramp"
    C: float = 1.0
    method: str = "auto"
    keep: float = 0.8
    power: float = 0.5
    distance_price: float | str = "auto"
    left_out: float = 1.0
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    n_starts: int = 5
    class_weight: Any = None
    tol: float = 1e-3
    random_state: Any = None

    @classmethod
    def _given(cls, model: _core.Model) -> dict[str, Any]:
        intercept = specification(model).get("intercept", 1.0)
        if intercept == "none":
            return {"fit_intercept": False}
        return {"intercept_scaling": float(intercept)}

    def _settings(self, X: Any, seed: int) -> _core.Settings:
        settings = super()._settings(X, seed)
        own: dict[str, Any] = {
            "loss": self.loss,
            "robust_method": self.method,
            "intercept": float(self.intercept_scaling) if self.fit_intercept else "none",
            "starts": int(self.n_starts),
        }
        if self.loss in _OF_ONE_LOSS:
            name = _OF_ONE_LOSS[self.loss]
            value = getattr(self, name)
            own[name] = value if isinstance(value, str) else float(value)
        settings["parameters"].update(own)
        return settings

    def _adopt(self, model: _core.Model, steps: NDArray[np.int64]) -> None:
        super()._adopt(model, steps)
        known = dict(model.training["parameters"])
        self.outlier_scores_ = np.asarray(known["outlier-scores"], dtype=np.float64)
        self.kept_ = np.asarray(known["kept"]) > 0
        shares = known.get("shares")
        self.shares_ = np.ones(len(self.kept_)) if shares is None else np.asarray(shares)
        self.relaxation_ = float(known.get("relaxation", np.nan))

    @property
    def objective_(self) -> float:
        """The objective of the functions, summed over pairs of classes."""
        return float(self._training("primal"))

    @property
    def bound_(self) -> float:
        """Proven lower bound on the least objective."""
        return float(self._training("dual"))

    @property
    def gap_(self) -> float:
        """(``relaxation_`` − ``bound_``) / ``relaxation_``."""
        return _share(self.relaxation_ - self.bound_, self.relaxation_)

    @property
    def optimality_gap_(self) -> float:
        """(``objective_`` − ``bound_``) / ``objective_``."""
        return _share(self.objective_ - self.bound_, self.objective_)


def _share(part: float, whole: float) -> float:
    return max(part, 0.0) / max(abs(whole), float(np.finfo(float).tiny))


@estimator
class LabelOutlierDetector(KernelParameters, BaseEstimator):
    """Rows whose label does not fit, by a machine with trimmed losses.

    Trains :class:`RobustSVC` with ``loss='trimmed'``, which leaves out the rows that it fits worst
    (robust outlier detection; Xu, Crammer and Schuurmans 2006), and ranks all rows by how far they
    are on the wrong side. Unlike scikit-learn's detectors it needs labels: an outlier is a row
    that the others, with their labels, contradict.

    Parameters
    ----------
    contamination : float, default=0.1
        Share of the rows that are left out and flagged; the detector keeps at least the others.
    C : float, default=1.0
        Penalty of the machine.
    kernel, degree, gamma, coef0
        The kernel, as for :class:`SVC`.
    method : {'auto', 'enumeration', 'relaxation', 'cccp', 'alternation'}, default='auto'
        As for :class:`RobustSVC`.
    fit_intercept : bool, default=True
        Whether the function has a constant.
    intercept_scaling : float, default=1.0
        Value of the appended feature whose weight makes the constant.
    n_starts : int, default=5
        Random starts of the descent.
    tol : float, default=1e-3
        Relative gap of the relaxation.
    random_state : int, RandomState instance or None, default=None
        Seeds the random starts.
    n_jobs : int, default=None
        Threads.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        1 for rows that count, −1 for outliers.
    outlier_scores_ : ndarray of shape (n_samples,)
        The larger, the less the label fits.
    shares_ : ndarray of shape (n_samples,)
        The share η of every row in the relaxation; 1 where none was solved.
    classifier_ : RobustSVC
        The machine.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import LabelOutlierDetector
    >>> X = np.array([[-3.0], [-2.5], [-2.0], [2.0], [2.5], [3.0], [9.0]])
    >>> y = np.array([0, 0, 0, 1, 1, 1, 0])
    >>> LabelOutlierDetector(0.15, kernel="linear").fit_predict(X, y).tolist()
    [1, 1, 1, 1, 1, 1, -1]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "contamination": [Interval(Real, 0.0, 1.0, closed="left")],
        **{
            name: RobustSVC._parameter_constraints[name]
            for name in ("C", "kernel", "degree", "gamma", "coef0", "method", "fit_intercept")
        },
        **{
            name: RobustSVC._parameter_constraints[name]
            for name in ("intercept_scaling", "n_starts", "tol", "random_state", "n_jobs")
        },
    }

    contamination: float = field(default=0.1, kw_only=False)
    C: float = 1.0
    method: str = "auto"
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    n_starts: int = 5
    tol: float = 1e-3
    random_state: Any = None
    n_jobs: int | None = None

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    @checks_parameters
    def fit(self, X: Any, y: Any) -> Self:
        """Find the rows whose label does not fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        self : object
            The fitted detector.
        """
        shared = {k: v for k, v in self.get_params().items() if k != "contamination"}
        classifier = RobustSVC(loss="trimmed", keep=1.0 - self.contamination, **shared)
        self.classifier_ = classifier.fit(X, y)
        self.n_features_in_ = classifier.n_features_in_
        if hasattr(classifier, "feature_names_in_"):
            self.feature_names_in_ = classifier.feature_names_in_
        self.outlier_scores_ = classifier.outlier_scores_
        self.shares_ = classifier.shares_
        self.labels_ = np.where(classifier.kept_, 1, -1)
        return self

    def fit_predict(self, X: Any, y: Any) -> NDArray[np.int64]:
        """Return 1 for rows whose label fits and −1 for outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            1 or −1.
        """
        labels: NDArray[np.int64] = self.fit(X, y).labels_
        return labels

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class that the machine without the outliers gives every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Class labels.
        """
        check_is_fitted(self)
        return self.classifier_.predict(X)
