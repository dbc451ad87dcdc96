"""Support vector classification of rows of which only some have labels."""

from __future__ import annotations

from dataclasses import field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from widemargin._base import checks_parameters, count_threads
from widemargin._classic.base import ClassicClassifier
from widemargin._parameters import KernelParameters, RunParameters, check_kernel, estimator
from widemargin._svc import class_name, written
from widemargin._tables import to_core

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self

    from widemargin import _core


@estimator
class SemiSupervisedSVC(KernelParameters, RunParameters, ClassicClassifier):
    """Support vector classification of rows of which only some have labels.

    Minimises the squared norm of the weights and the squared hinge losses of all rows, those of
    unlabelled rows for the better of their possible labels, while every class gets its share of
    them (Joachims 1999), by deterministic annealing or label switching (Sindhwani and Keerthi
    2006). Rows that are not labelled are marked by `unlabeled` in ``y``.

    Parameters
    ----------
    kernel : str, default='linear'
        The kernel, as for :class:`widemargin.SVC`. The linear one takes sparse rows by the
        hundred thousand.
    C : 'auto' or float, default='auto'
        Price of the loss of a labelled row. ``'auto'``: the best of four by leave-one-out
        predictions of the labelled rows.
    class_prior : 'auto', 'labelled', float or array-like of shape (n_classes,), default='auto'
        Share of the classes among the rows without labels, which their labels have in the training;
        predictions follow the function. Of two classes that of ``classes_[1]`` is enough.
        ``'labelled'``: as among the labelled rows. ``'auto'``: estimated from these and from the
        predictions of the supervised machine, each as far as it is certain.
    method : {'auto', 'annealing', 'switching', 'relaxation'}, default='auto'
        How the missing labels are found; ``'auto'`` is annealing. ``'relaxation'`` has hinge losses
        instead of squared ones: the semidefinite relaxation of two classes (Xu 2007; De Bie and
        Cristianini 2004) with a proven bound, rounded and improved, for some hundred rows.
    unlabeled_weight : float, default=1.0
        Weight of all rows without labels beside that of all with one.
    unlabeled : int, float or str, default=-1
        The label of rows without one.
    gamma : {'scale', 'auto', 'median'} or float, default='scale'
        γ of the kernel.
    degree, coef0
        Parameters of the kernel.
    n_landmarks : int, default=500
        Most rows whose kernel values approximate the feature space of a kernel that is not linear;
        exact where there are no more rows.
    tol : float, default=1e-3
        Norm of the gradient, relative to that at 0, that ends the last training; of the relaxation
        the relative gap.
    max_time : float, default=None
        Seconds after which the best labels so far are taken, with a `ConvergenceWarning`.
    verbose : int, default=0
        Whether to print progress.
    callbacks : callable or list of callables, default=None
        Called with a :class:`widemargin.Progress` on the way; a true return value ends the search
        with the best labels so far.
    random_state : int, RandomState instance or None, default=None
        Chooses the landmarks.
    n_jobs : int, default=None
        Threads.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, ascending.
    transduction_ : ndarray of shape (n_samples,)
        The label of every training row: the one given, or the prediction.
    class_prior_ : ndarray of shape (n_classes,)
        Share of the classes among the rows without labels that was asked for.
    C_ : float
        Price of the loss of a labelled row.
    objective_ : float
        Objective of the labels that were found.
    bound_ : float
        Proven lower bound on the objective of any labels with these shares: the optimum of the
        labelled rows alone, or that of the relaxation.
    gap_ : float
        (``objective_`` − ``bound_``) / ``bound_``.
    relaxation_ : float
        Value of the relaxation, NaN with other methods.
    status_ : str
        How the training ended.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    MaxMarginClustering : No labels at all.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_blobs
    >>> from widemargin import SemiSupervisedSVC
    >>> X, y = make_blobs(60, centers=[[-2, 0], [2, 0]], random_state=0)
    >>> few = np.where(np.arange(60) < 6, y, -1)
    >>> model = SemiSupervisedSVC().fit(X, few)
    >>> float((model.transduction_ == y).mean()) > 0.95
    True
    >>> bool(model.bound_ <= model.objective_)
    True
    """

    _kind = "semi-svc"
    _takes_sparse = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [str],
        "C": [StrOptions({"auto"}), Interval(Real, 0.0, None, closed="neither")],
        "class_prior": [
            StrOptions({"auto", "labelled"}),
            Interval(Real, 0.0, 1.0, closed="neither"),
            "array-like",
        ],
        "method": [StrOptions({"auto", "annealing", "switching", "relaxation"})],
        "unlabeled_weight": [Interval(Real, 0.0, None, closed="neither")],
        "unlabeled": [Integral, Real, str],
        "gamma": [
            StrOptions({"scale", "auto", "median"}),
            Interval(Real, 0.0, None, closed="left"),
        ],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "n_landmarks": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
    }

    kernel: str = field(default="linear", kw_only=False)
    C: float | str = "auto"
    class_prior: Any = "auto"
    method: str = "auto"
    unlabeled_weight: float = 1.0
    unlabeled: Any = -1
    n_landmarks: int = 500
    tol: float = 1e-3
    random_state: Any = None

    @checks_parameters
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows of which some are labelled.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Class labels; those that equal `unlabeled` are none.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors on the price of the rows.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        check_kernel(type(self).__name__, self.kernel)
        X, y = self._rows(X, y, reset=True)
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        everything, codes = np.unique(labels, return_inverse=True)
        marked = labels == self.unlabeled
        if np.all(marked):
            raise ValueError("y: expected at least one label, found unlabeled rows only")
        self.classes_ = np.unique(labels[np.logical_not(marked)])
        if len(self.classes_) < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {len(self.classes_)} class"
            )
        targets = (codes.astype(np.int64), [class_name(label) for label in everything])
        weights = self._sample_weights(sample_weight, X.shape[0])
        self._learn(X, targets, self._settings(), weights)
        found = self.classes_.take(self._model.predict(to_core(X), count_threads(self.n_jobs)))
        self.transduction_ = np.where(marked, found, labels)
        return self

    def _sample_weights(self, weights: Any, rows: int) -> NDArray[np.float64] | None:
        if weights is None:
            return None
        checked: NDArray[np.float64] = np.asarray(weights, dtype=np.float64)
        if checked.shape != (rows,):
            raise ValueError(
                f"sample_weight: expected {rows} numbers, found an array of shape {checked.shape}"
            )
        if not np.isfinite(checked).all() or (checked < 0).any():
            raise ValueError("sample_weight: expected finite numbers of at least 0")
        if not checked.any():
            raise ValueError("Invalid input - all samples have zero or negative weights.")
        return checked

    def _settings(self) -> dict[str, Any]:
        share = self.class_prior
        if not isinstance(share, str):
            share = np.atleast_1d(np.asarray(share, dtype=np.float64)).ravel()
        return {
            "kernel": self.kernel,
            "gamma": self.gamma if isinstance(self.gamma, str) else float(self.gamma),
            "degree": int(self.degree),
            "coef0": float(self.coef0),
            "c": self.C if isinstance(self.C, str) else float(self.C),
            "share": share,
            "labelling": self.method,
            "unlabelled_weight": float(self.unlabeled_weight),
            "unlabelled": written(self.unlabeled),
            "landmarks": int(self.n_landmarks),
            "tol": float(self.tol),
        }

    def _adopt(self, model: _core.Model) -> None:
        super()._adopt(model)
        training = model.training
        known = dict(training["parameters"])
        self.C_ = float(known["c"])
        self.class_prior_ = np.array(known["shares"], dtype=np.float64)
        self.objective_ = float(training["primal"])
        self.bound_ = float(training["dual"])
        self.gap_ = (self.objective_ - self.bound_) / max(self.bound_, 1e-300)
        self.relaxation_ = float(known.get("relaxation", np.nan))
        self.status_ = str(training["status"])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the values that decide.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes one value a row, positive for ``classes_[1]``.
        """
        rows, threads = self._query(X)
        values: NDArray[np.float64] = self._model.decision_values(rows, threads)
        return -values[:, 0] if len(self.classes_) == 2 else values
