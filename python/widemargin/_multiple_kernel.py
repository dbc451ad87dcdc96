"""Machines that learn the weights of kernels, for classes, numbers and novelty."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils import column_or_1d, compute_class_weight
from sklearn.utils._indexing import _get_column_indices
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_array, check_is_fitted

from widemargin import _core
from widemargin._base import BaseTrained, checks_parameters
from widemargin._docs import documented
from widemargin._parameters import choose
from widemargin._progress import Monitor, as_callbacks
from widemargin._svc import class_name, written
from widemargin._tables import checked_rows, to_core

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self

_SHARED: dict[str, list[Any]] = {
    "kernels": [list, tuple, StrOptions({"precomputed"})],
    "views": [list, tuple, None],
    "weights": [
        StrOptions({"nonnegative", "signed", "uniform", "alignment", "margin"}),
        Interval(Real, 1.0, None, closed="left"),
    ],
    "jitter": [Interval(Real, 0.0, None, closed="left"), None],
    "repair": [StrOptions({"shift", "refuse"}), None],
    **choose("C", "tol", "cache_size", "verbose", "max_time", "callbacks", "n_jobs"),
}

#: The library asks for half of the margin f_y - f_c that Crammer and Singer (2001) ask for.
_MARGIN = 4.0


class _MultipleKernel(BaseTrained):
    """What classifier and regressor share."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]]

    kernels: Any
    views: Any
    weights: Any
    unlabeled: Any
    transduction_: NDArray[Any]
    C: float
    jitter: float | None
    repair: str | None
    cache_size: float
    verbose: bool | int
    callbacks: Any

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._takes_tables()
        return tags

    def _takes_tables(self) -> bool:
        """Return whether rows are given as lists of kernel values."""
        if self.views is not None:
            return False
        if isinstance(self.kernels, str):
            return True
        return any(isinstance(k, str) and k == "precomputed" for k in self.kernels)

    # Training

    def _machine(self) -> tuple[str, dict[str, Any]]:
        """Return the name of the machine and its own parameters."""
        raise NotImplementedError

    def _scale(self) -> float:
        """Return what the library's objective is divided by."""
        return 1.0

    def _penalty(self) -> dict[str, float]:
        """Return C as the library takes it."""
        return {"c": float(self.C) * self._scale()}

    def _train(self, X: Any, y: Any, sample_weight: Any) -> Self:
        if self.views is None and not self._takes_tables() and len(self.kernels) == 0:
            raise ValueError("kernels: expected at least one kernel, found none")
        y, unlabelled = self._marked(y)
        if self._takes_tables():
            tables = self._tables(X, None)
            table, texts = np.hstack(tables), _table_views([k.shape[1] for k in tables])
            y = column_or_1d(y, warn=True)
            if len(y) != table.shape[0]:
                raise ValueError(f"y: expected {table.shape[0]} values, found {len(y)}")
            self._rows_fit, names = None, None
            self._order = table.shape[0]
        else:
            entries = _candidates(self.kernels, self.views, X)
            X, y = checked_rows(self, X, y)
            self._entries = entries
            names = getattr(self, "feature_names_in_", None)
            self._rows_fit = X if any(callable(k) for k, _ in entries) else None
            self._order = X.shape[0]
            table, texts = self._table(X), self._texts(X)
        if unlabelled.any() and unlabelled.all():
            raise ValueError("y: expected at least one label, found unlabeled rows only")
        self._unlabelled = unlabelled
        targets = self._targets(y)
        weights = self._weights(sample_weight, targets, table)
        kind, own = self._machine()
        rule = self.weights if isinstance(self.weights, str) else f"lp={float(self.weights)}"
        monitor = Monitor(self.verbose, as_callbacks(self.callbacks))
        settings: _core.Settings = {
            "machine": kind,
            "online": False,
            "parameters": {
                **self._penalty(),
                "kernels": ", ".join(texts),
                "weights": rule,
                "jitter": None if self.jitter is None else float(self.jitter),
                "repair": self.repair,
                "tol": float(self.tol),
                "unlabelled": self._mark() if unlabelled.any() else None,
                **own,
            },
            "calibration": None,
            "seed": 0,
            "cache_megabytes": float(self.cache_size),
            "threads": self._threads(),
            "max_seconds": self.max_time,
        }
        names = None if names is None or self._rows_fit is not None else list(names)
        model, _, complaints = _core.fit(
            settings,
            to_core(table),
            targets,
            weights,
            names,
            None,
            monitor if monitor.listens else None,
        )
        monitor.end(model.training, model.support_count)
        self._model = model
        known = dict(model.training["parameters"])
        self.kernel_weights_ = np.array(known["kernel-weights"], dtype=np.float64)
        self.raw_kernel_weights_ = np.array(known["raw-kernel-weights"], dtype=np.float64)
        self.n_iter_ = int(known["rounds"])
        self.n_solves_ = int(known["solves"])
        self.kernel_contributions_ = np.array(known["kernel-contributions"], dtype=np.float64)
        self.support_ = model.support
        self._transduce(table, unlabelled)
        for complaint in complaints:
            warnings.warn(complaint, UserWarning, stacklevel=4)
        self._warn([])
        return self

    def _targets(self, y: Any) -> Any:
        raise NotImplementedError

    def _marked(self, y: Any) -> tuple[Any, NDArray[np.bool_]]:
        """Return targets that pass scikit-learn's checks, and which rows have none."""
        raise NotImplementedError

    def _mark(self) -> str:
        """Return the label of rows without one as the compiled half writes it."""
        raise NotImplementedError

    def _predictions(self, table: _core.Table) -> Any:
        """Return the predictions for a checked table."""
        return self._model.predict(table, self._threads())

    def _transduce(self, table: Any, unlabelled: NDArray[np.bool_]) -> None:
        """Set `transduction_`: predictions for the rows without labels."""
        if hasattr(self, "transduction_"):
            del self.transduction_
        if unlabelled.any():
            self.transduction_ = self._predictions(to_core(table[np.flatnonzero(unlabelled)]))

    def _tables(self, X: Any, columns: int | None) -> list[NDArray[np.float64]]:
        """Return the given kernel values, checked: one table for every kernel."""
        tables = [check_array(table, dtype=np.float64, order="C") for table in X]
        expected = len(tables) if isinstance(self.kernels, str) else len(self.kernels)
        if not tables or len(tables) != expected:
            raise ValueError(f"X: expected {expected} Gram matrices, found {len(tables)}")
        if not isinstance(self.kernels, str) and any(k != "precomputed" for k in self.kernels):
            raise ValueError("kernels: expected 'precomputed' for all kernels or for none")
        width = tables[0].shape[0] if columns is None else columns
        for at, table in enumerate(tables):
            shape = (tables[0].shape[0], width)
            if table.shape != shape:
                raise ValueError(
                    f"X: expected a Gram matrix of {shape[0]} x {shape[1]} for every kernel, found "
                    f"{table.shape[0]} x {table.shape[1]} for kernel {at + 1}"
                )
        return tables

    def _texts(self, X: Any) -> list[str]:
        """Return every kernel as the library reads it."""
        plain = not any(callable(k) for k, _ in self._entries)
        texts, width = [], X.shape[1]
        for kernel, columns in self._entries:
            if callable(kernel):
                texts.append(f"view({width + 1}-{width + X.shape[0]}: precomputed)")
                width += X.shape[0]
            elif columns is not None or plain:
                texts.append(_viewed(kernel, columns))
            else:
                texts.append(f"view(1-{X.shape[1]}: {_text(kernel)})")
        return texts

    def _table(self, X: Any) -> Any:
        """Return rows with the values of kernels that are functions beside them."""
        functions = [(k, columns) for k, columns in self._entries if callable(k)]
        if not functions:
            return X
        values = [self._values_of(k, columns, X) for k, columns in functions]
        dense = X.toarray() if sp.issparse(X) else X
        return np.hstack([dense.astype(np.float64), *values])

    def _values_of(self, kernel: Any, columns: Any, X: Any) -> NDArray[np.float64]:
        def seen(rows: Any) -> Any:
            return rows if columns is None else rows[:, columns]

        values = kernel(seen(X), seen(self._rows_fit))
        values = values.toarray() if sp.issparse(values) else np.asarray(values, dtype=np.float64)
        if values.shape != (X.shape[0], self._order):
            raise ValueError(
                f"kernels: expected {X.shape[0]} x {self._order} values of a kernel that is a "
                f"function, found {' x '.join(map(str, values.shape))}"
            )
        return values

    # Prediction

    def _checked(self, X: Any) -> _core.Table:
        check_is_fitted(self)
        if self._takes_tables():
            return to_core(np.hstack(self._tables(X, self._order)))
        X = checked_rows(self, X, reset=False)
        return to_core(self._table(X))

    # Attributes

    @property
    def objective_(self) -> float:
        """Primal objective ½‖w‖² + C Σξ at the learnt kernel."""
        return float(self._training("primal")) / self._scale()

    @property
    def bound_(self) -> float:
        """Certified lower bound of the objective over all weights that are admitted."""
        return float(self._training("dual")) / self._scale()

    @property
    def gap_(self) -> float:
        """Objective minus bound, as a share of the objective."""
        return (self.objective_ - self.bound_) / max(abs(self.objective_), 1e-300)

    @property
    def smallest_eigenvalue_(self) -> float | None:
        """Smallest eigenvalue of the learnt kernel over all rows; None where it was not needed."""
        found = dict(self._training("parameters")).get("smallest-eigenvalue")
        return None if found is None else float(found)

    @property
    def diagonal_shifts_(self) -> NDArray[np.float64]:
        """What `repair` added to the diagonal of every kernel."""
        found = dict(self._training("parameters")).get("diagonal-shifts")
        return np.zeros(len(self.kernel_weights_)) if found is None else np.array(found)


def _candidates(kernels: Any, views: Any, X: Any) -> list[tuple[Any, NDArray[np.intp] | None]]:
    """Return every kernel and the columns that it sees, None for all."""
    if views is None:
        return [(kernel, None) for kernel in kernels]
    if len(views) == 0:
        raise ValueError("views: expected at least one view, found none")
    entries: list[tuple[Any, NDArray[np.intp] | None]] = []
    for view in views:
        if not (isinstance(view, (tuple, list)) and len(view) == 3 and isinstance(view[0], str)):
            raise ValueError(
                "views: expected (name, kernel, columns) such as ('shape', 'rbf', [0, 1]), "
                f"found {view!r}"
            )
        name, kernel, columns = view
        columns = columns(X) if callable(columns) else columns
        at = np.asarray(_get_column_indices(X, columns), dtype=np.intp)
        if len(at) == 0:
            raise ValueError(f"views: expected columns of '{name}', found none")
        if isinstance(kernel, str) and kernel == "precomputed" and (np.diff(at) < 0).any():
            raise ValueError(f"views: expected the columns of '{name}' in ascending order")
        entries.append((kernel, np.unique(at)))
    return entries


def _viewed(kernel: Any, columns: NDArray[np.intp] | None) -> str:
    """Return a kernel and its columns as the library reads them."""
    return _text(kernel) if columns is None else f"view({_ranges(columns)}: {_text(kernel)})"


def kernel_texts(kernels: Any, views: Any, X: Any) -> tuple[Any, list[str]]:
    """Return rows and every kernel as the library reads it; functions are refused."""
    if views is None and isinstance(kernels, str) and kernels == "precomputed":
        tables = [check_array(table, dtype=np.float64, order="C") for table in X]
        return np.hstack(tables), _table_views([table.shape[1] for table in tables])
    kernels = [kernels] if isinstance(kernels, (str, dict)) else kernels
    entries = _candidates(kernels, views, X)
    if not entries:
        raise ValueError("kernels: expected at least one kernel, found none")
    if any(callable(kernel) for kernel, _ in entries):
        raise ValueError("kernels: expected names, expressions or dictionaries, found a function")
    return X, [_viewed(kernel, columns) for kernel, columns in entries]


def _text(kernel: Any) -> str:
    """Return a kernel given by name, expression or dictionary as the library reads it."""
    if isinstance(kernel, str):
        return kernel
    if not isinstance(kernel, dict) or "kernel" not in kernel:
        raise ValueError(
            "kernels: expected names, dictionaries such as {'kernel': 'rbf', 'gamma': 0.1} or "
            f"functions, found {kernel!r}"
        )
    given = [f"{name}={value}" for name, value in kernel.items() if name != "kernel"]
    return f"{kernel['kernel']}({', '.join(given)})" if given else str(kernel["kernel"])


def _ranges(columns: NDArray[np.intp]) -> str:
    """Return ascending columns as the library reads them, counted from 1."""
    parts = np.split(columns, np.flatnonzero(np.diff(columns) != 1) + 1)
    return ",".join(f"{part[0] + 1}-{part[-1] + 1}" for part in parts)


def _table_views(widths: list[int]) -> list[str]:
    """Return a view of the columns of every table."""
    ends = np.cumsum(widths)
    return [
        f"view({end - width + 1}-{end}: precomputed)"
        for end, width in zip(ends, widths, strict=True)
    ]


@documented
class MultipleKernelSVC(ClassifierMixin, _MultipleKernel):
    """Classification with a weighted sum of kernels whose weights are learnt.

    Kernels are scaled to the trace n over the rows given; the weights sum to 1 and minimise the
    training objective itself, with a certified lower bound.

    Parameters
    ----------
    {combined_kernels}
    weights : {{'nonnegative', 'signed', 'uniform', 'alignment', 'margin'}} or float, \
            default='nonnegative'
        Which weights are admitted. Signed ones make a kernel that is positive semidefinite on the
        rows given. A number p of at least 1 is the norm of the weights; 1 is 'nonnegative'.
        'alignment' (with the labels) and 'margin' (as in EasyMKL) are computed by a rule first.
    machine : {{'cs', 'c-svc'}}, default='cs'
        Crammer and Singer's problem of all classes, or one-vs-one and one-vs-rest problems with
        the same weights.
    C : float, default=1.0
        Penalty of margin errors. With machine='cs' margins are f_y - f_c as in Crammer and Singer's
        paper; `MulticlassSVC` and the command line halve them, and their C is four times this one.
    multi_class : {{'ovo', 'ovr'}}, default='ovo'
        The two-class problems of 'c-svc'.
    tol : float, default=1e-4
        Certified gap at which the training ends, as a share of the objective.
    {combined_repair}
    class_weight : dict or 'balanced', default=None
        Factors on C by class.
    unlabeled : int, float or str, default=None
        Label of rows without one, such as scikit-learn's -1: they count for the kernels, and the
        predictions for them are `transduction_`.
    {combined_training}

    Attributes
    ----------
    {combined_attributes}
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    {combined_counts}

    See Also
    --------
    MultipleKernelSVR : The same for regression.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import MultipleKernelSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> kernels = ["linear", {{"kernel": "rbf", "gamma": 0.1}}, {{"kernel": "rbf", "gamma": 10}}]
    >>> model = MultipleKernelSVC(kernels=kernels, C=10).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), bool(model.gap_ <= 1e-4)
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_SHARED,
        "machine": [StrOptions({"cs", "c-svc"})],
        "multi_class": [StrOptions({"ovo", "ovr"})],
        "unlabeled": [Integral, Real, str, None],
        **choose("class_weight"),
    }

    def __init__(
        self,
        kernels: Any = ("linear", "rbf"),
        *,
        views: Any = None,
        weights: str | float = "nonnegative",
        machine: str = "cs",
        C: float = 1.0,
        multi_class: str = "ovo",
        tol: float = 1e-4,
        jitter: float | None = None,
        repair: str | None = None,
        class_weight: Any = None,
        unlabeled: Any = None,
        cache_size: float = 1000,
        verbose: bool | int = False,
        max_time: float | None = None,
        callbacks: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernels = kernels
        self.views = views
        self.weights = weights
        self.machine = machine
        self.C = C
        self.multi_class = multi_class
        self.tol = tol
        self.jitter = jitter
        self.repair = repair
        self.class_weight = class_weight
        self.unlabeled = unlabeled
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_time = max_time
        self.callbacks = callbacks
        self.n_jobs = n_jobs

    @checks_parameters
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on labelled rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of arrays
            Rows, or with precomputed kernels a Gram matrix for each.
        y : array-like of shape (n_samples,)
            Class labels; those that equal `unlabeled` are none.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors on C of the rows.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._train(X, y, sample_weight)

    def _machine(self) -> tuple[str, dict[str, Any]]:
        own = {} if self.machine == "cs" else {"multiclass": self.multi_class}
        return self.machine, own

    def _scale(self) -> float:
        return _MARGIN if self.machine == "cs" else 1.0

    def _marked(self, y: Any) -> tuple[Any, NDArray[np.bool_]]:
        if self.unlabeled is None or y is None:
            return y, np.zeros(1, dtype=bool)
        return y, np.asarray(np.asarray(y) == self.unlabeled).ravel()

    def _mark(self) -> str:
        return written(self.unlabeled)

    def _predictions(self, table: _core.Table) -> Any:
        return self.classes_.take(self._model.predict(table, self._threads()))

    def _targets(self, y: Any) -> tuple[NDArray[np.int64], list[Any]]:
        labels = column_or_1d(y, warn=True)
        check_classification_targets(y)
        known = labels if self.unlabeled is None else labels[labels != self.unlabeled]
        self.classes_ = np.unique(known)
        if len(self.classes_) < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {len(self.classes_)} class"
            )
        factors = compute_class_weight(self.class_weight, classes=self.classes_, y=known)
        self.class_weight_ = np.asarray(factors, dtype=np.float64)
        everything, codes = np.unique(labels, return_inverse=True)
        return codes.astype(np.int64), [class_name(label) for label in everything]

    def _weights(self, sample_weight: Any, targets: Any, X: Any) -> NDArray[np.float64] | None:
        weights = super()._weights(sample_weight, targets, X)
        if (self.class_weight_ == 1).all():
            return weights
        codes, names = targets
        own = {class_name(c): w for c, w in zip(self.classes_, self.class_weight_, strict=True)}
        factors: NDArray[np.float64] = np.array([own.get(name, 1.0) for name in names])[codes]
        return factors if weights is None else weights * factors

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of all classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of arrays
            Rows, or with precomputed kernels their similarities with the training rows.

        Returns
        -------
        values : ndarray of shape (n_samples, n_classes) or (n_samples,)
            With two classes one value a row, positive for ``classes_[1]``.
        """
        table = self._checked(X)
        threads = self._threads()
        if self.machine == "cs":
            scores: NDArray[np.float64] = self._model.decision_values(table, threads)
            scores = scores / np.sqrt(_MARGIN)
            return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores
        if len(self.classes_) == 2:
            return -self._model.decision_values(table, threads)[:, 0]
        return self._model.class_scores(table, threads)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of arrays
            Rows, or with precomputed kernels their similarities with the training rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Class labels.
        """
        labels: NDArray[Any] = self._predictions(self._checked(X))
        return labels


@documented
class MultipleKernelSVR(RegressorMixin, _MultipleKernel):
    """Regression with a weighted sum of kernels whose weights are learnt.

    Kernels are scaled to the trace n over the rows given; the weights sum to 1 and minimise the
    training objective itself, with a certified lower bound.

    Parameters
    ----------
    {combined_kernels}
    weights : {{'nonnegative', 'signed', 'uniform', 'alignment'}} or float, default='nonnegative'
        Which weights are admitted. Signed ones make a kernel that is positive semidefinite on the
        rows given. A number p of at least 1 is the norm of the weights; 1 is 'nonnegative'.
        'alignment' weights are computed from the targets first.
    C : float, default=1.0
        Penalty of deviations beyond the tube.
    epsilon : float, default=0.1
        Half width of the tube in which deviations cost nothing.
    tol : float, default=1e-4
        Certified gap at which the training ends, as a share of the objective.
    {combined_repair}
    unlabeled : {{'nan'}}, default=None
        With 'nan' rows whose target is NaN count for the kernels, and the predictions for them are
        `transduction_`.
    {combined_training}

    Attributes
    ----------
    {combined_attributes}
    {combined_counts}

    See Also
    --------
    MultipleKernelSVC : The same for classification.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import MultipleKernelSVR
    >>> X = np.linspace(0, 6, 50).reshape(-1, 1)
    >>> model = MultipleKernelSVR(["linear", "rbf"], C=100, epsilon=0.01)
    >>> model = model.fit(X, np.sin(X).ravel())
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.02)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_SHARED,
        "unlabeled": [StrOptions({"nan"}), None],
        **choose("epsilon"),
    }

    def __init__(
        self,
        kernels: Any = ("linear", "rbf"),
        *,
        views: Any = None,
        weights: str | float = "nonnegative",
        C: float = 1.0,
        epsilon: float = 0.1,
        tol: float = 1e-4,
        jitter: float | None = None,
        repair: str | None = None,
        unlabeled: str | None = None,
        cache_size: float = 1000,
        verbose: bool | int = False,
        max_time: float | None = None,
        callbacks: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernels = kernels
        self.views = views
        self.weights = weights
        self.C = C
        self.epsilon = epsilon
        self.tol = tol
        self.jitter = jitter
        self.repair = repair
        self.unlabeled = unlabeled
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_time = max_time
        self.callbacks = callbacks
        self.n_jobs = n_jobs

    @checks_parameters
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows with numbers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of arrays
            Rows, or with precomputed kernels a Gram matrix for each.
        y : array-like of shape (n_samples,)
            Numbers to predict.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors on C of the rows.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._train(X, y, sample_weight)

    def _machine(self) -> tuple[str, dict[str, Any]]:
        return "epsilon-svr", {"epsilon": float(self.epsilon)}

    def _marked(self, y: Any) -> tuple[Any, NDArray[np.bool_]]:
        if self.unlabeled is None or y is None:
            return y, np.zeros(1, dtype=bool)
        values = np.asarray(y, dtype=np.float64)
        missing = np.isnan(values)
        return np.where(missing, 0.0, values), missing.ravel()

    def _mark(self) -> str:
        return "NaN"

    def _targets(self, y: Any) -> Any:
        values = column_or_1d(y, warn=True).astype(np.float64, copy=False)
        return np.where(self._unlabelled, np.nan, values) if self._unlabelled.any() else values

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the number predicted for every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of arrays
            Rows, or with precomputed kernels their similarities with the training rows.

        Returns
        -------
        values : ndarray of shape (n_samples,)
            Predictions.
        """
        values: NDArray[np.float64] = self._predictions(self._checked(X))
        return values


class MultipleKernelOneClassSVM(OutlierMixin, _MultipleKernel):
    """Novelty detection with a weighted sum of kernels whose weights are learnt.

    Kernels are scaled to the trace n over the rows given; the weights sum to 1 and minimise the
    training objective itself, with a certified lower bound. Not in scikit-learn.

    Parameters
    ----------
    kernels : list, tuple or 'precomputed', default=('linear', 'rbf')
        Names, expressions, dictionaries such as ``{"kernel": "rbf", "gamma": 0.1}``, functions of
        two tables of rows, or "precomputed" for every one: rows are then lists of Gram matrices.
    views : list of (name, kernel, columns), default=None
        Kernels that see some columns only, in the place of `kernels`. Columns are given as in
        ColumnTransformer: names, numbers, slices, masks or a function of the rows. A kernel
        "precomputed" takes as many columns as there are training rows.
    weights : {'nonnegative', 'signed', 'uniform'} or float, default='nonnegative'
        Which weights are admitted. Signed ones make a kernel that is positive semidefinite on the
        rows given. A number p of at least 1 is the norm of the weights; 1 is 'nonnegative'.
    nu : float, default=0.5
        Upper bound on the share of training rows outside and lower bound on the share of support
        vectors, in (0, 1].
    tol : float, default=1e-4
        Certified gap at which the training ends, as a share of the objective.
    jitter : float, default=None
        Share of its mean diagonal that is added to the diagonal of every kernel; None is 1e-6 for
        signed weights and 0 otherwise.
    repair : {'shift', 'refuse'}, default=None
        What is done about kernels that are not positive semidefinite on the rows, beside a warning:
        their smallest eigenvalue is taken from the diagonal (`diagonal_shifts_`), or an error.
    cache_size : float, default=1000
        Memory for kernel values in MB; tables that do not fit are computed block by block.
    verbose : bool, default=False
        Whether to print progress.
    max_time : float, default=None
        Seconds after which the best weights so far are taken.
    callbacks : callable or list, default=None
        Called with every event of the training.
    n_jobs : int, default=None
        Threads.

    Attributes
    ----------
    kernel_weights_ : ndarray of shape (n_kernels,)
        Weights of the kernels scaled to trace n, summing to 1.
    raw_kernel_weights_ : ndarray of shape (n_kernels,)
        Weights of the kernels as they were given: the learnt kernel is their sum.
    kernel_contributions_ : ndarray of shape (n_kernels,)
        Share of every kernel in the squared length of the weight vector.
    offset_ : float
        ``decision_function(X) = score_samples(X) - offset_``.
    objective_ : float
        Primal objective at the learnt kernel: minus half the squared length of the weight vector,
        where coefficients sum to nu times the number of rows.
    bound_ : float
        Certified lower bound of the objective over all weights that are admitted.
    gap_ : float
        Objective minus bound, as a share of the objective.
    smallest_eigenvalue_ : float or None
        Of the learnt kernel over all rows, for signed weights.
    diagonal_shifts_ : ndarray of shape (n_kernels,)
        What `repair` added to the diagonal of every kernel.
    n_iter_ : int
        Rounds.
    n_solves_ : int
        Training problems solved.

    See Also
    --------
    OneClassSVM : One kernel.
    MultipleKernelSVC : The same for classes.

    Examples
    --------
    >>> from widemargin import MultipleKernelOneClassSVM
    >>> X = [[0], [0.44], [0.45], [0.46], [1]]
    >>> kernels = [{"kernel": "rbf", "gamma": 1}, {"kernel": "rbf", "gamma": 100}]
    >>> model = MultipleKernelOneClassSVM(kernels, nu=0.4).fit(X)
    >>> model.predict([[0.45], [7]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{name: rule for name, rule in _SHARED.items() if name not in ("weights", "C")},
        "weights": [
            StrOptions({"nonnegative", "signed", "uniform"}),
            Interval(Real, 1.0, None, closed="left"),
        ],
        **choose("nu"),
    }

    def __init__(
        self,
        kernels: Any = ("linear", "rbf"),
        *,
        views: Any = None,
        weights: str | float = "nonnegative",
        nu: float = 0.5,
        tol: float = 1e-4,
        jitter: float | None = None,
        repair: str | None = None,
        cache_size: float = 1000,
        verbose: bool | int = False,
        max_time: float | None = None,
        callbacks: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernels = kernels
        self.views = views
        self.weights = weights
        self.nu = nu
        self.tol = tol
        self.jitter = jitter
        self.repair = repair
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_time = max_time
        self.callbacks = callbacks
        self.n_jobs = n_jobs

    @checks_parameters
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn where the rows lie.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of arrays
            Rows, or with precomputed kernels a Gram matrix for each.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors on the weight of the rows.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        rows = X[0] if self._takes_tables() and len(X) > 0 else X
        self._train(X, np.ones(_num_samples(rows)), sample_weight)
        self.offset_ = 0.0 - self._model.intercepts
        return self

    def _machine(self) -> tuple[str, dict[str, Any]]:
        return "one-class", {"nu": float(self.nu)}

    def _penalty(self) -> dict[str, float]:
        return {}

    def _marked(self, y: Any) -> tuple[Any, NDArray[np.bool_]]:
        return y, np.zeros(1, dtype=bool)

    def _targets(self, y: Any) -> None:
        return None

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return how far inside (positive) or outside (negative) every row is.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of arrays
            Rows, or with precomputed kernels their similarities with the training rows.

        Returns
        -------
        values : ndarray of shape (n_samples,)
            Decision values.
        """
        table = self._checked(X)
        return self._model.decision_values(table, self._threads()).ravel()

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the decision values without the offset.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of arrays
            Rows, or with precomputed kernels their similarities with the training rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            ``decision_function(X) + offset_``.
        """
        scores: NDArray[np.float64] = self.decision_function(X) + self.offset_
        return scores

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Return 1 for rows inside and -1 for rows outside.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of arrays
            Rows, or with precomputed kernels their similarities with the training rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            1 and -1.
        """
        labels: NDArray[np.intp] = self._predictions(self._checked(X))
        return labels
