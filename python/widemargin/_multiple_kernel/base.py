"""What the machines that learn the weights of kernels share."""

from __future__ import annotations

import warnings
from dataclasses import field
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from widemargin import _core
from widemargin._base import BaseTrained, checks_parameters
from widemargin._parameters import RunParameters, estimator
from widemargin._progress import Monitor, as_callbacks
from widemargin._tables import checked_rows, to_core

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self

from widemargin._multiple_kernel.kernels import as_text, candidates, table_views, viewed


@estimator
class MultipleKernelParameters(RunParameters):
    """What the machines that learn the weights of kernels take."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernels": [list, tuple, StrOptions({"precomputed"})],
        "views": [list, tuple, None],
        "weights": [
            StrOptions({"nonnegative", "signed", "uniform", "alignment", "margin"}),
            Interval(Real, 1.0, None, closed="left"),
        ],
        "jitter": [Interval(Real, 0.0, None, closed="left"), None],
        "repair": [StrOptions({"shift", "refuse"}), None],
        "approximate": [str, None],
    }

    kernels: Any = field(default=("linear", "rbf"), kw_only=False)
    views: Any = None
    weights: str | float = "nonnegative"
    tol: float = 1e-4
    jitter: float | None = None
    repair: str | None = None
    approximate: str | None = None
    cache_size: float = 1000


class BaseMultipleKernel(MultipleKernelParameters, BaseTrained):
    """What classifier, regressor and detector share."""

    unlabeled: Any
    transduction_: NDArray[Any]
    C: float

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

    @checks_parameters
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of arrays
            Rows, or with precomputed kernels a Gram matrix for each.
        y : array-like of shape (n_samples,)
            Class labels or numbers; those that `unlabeled` names are none. Not used where there is
            nothing to predict.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors on C (or on nu) of the rows.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._train(X, self._given(X, y), sample_weight)

    def _train(self, X: Any, y: Any, sample_weight: Any) -> Self:
        if self.approximate is not None and self._takes_tables():
            raise ValueError("approximate: expected None with Gram matrices, found features")
        if self.views is None and not self._takes_tables() and len(self.kernels) == 0:
            raise ValueError("kernels: expected at least one kernel, found none")
        y, unlabelled = self._marked(y)
        if self._takes_tables():
            tables = self._tables(X, None)
            table, texts = np.hstack(tables), table_views([k.shape[1] for k in tables])
            y = column_or_1d(y, warn=True)
            if len(y) != table.shape[0]:
                raise ValueError(f"y: expected {table.shape[0]} values, found {len(y)}")
            self._rows_fit, names = None, None
            self._order = table.shape[0]
        else:
            entries = candidates(self.kernels, self.views, X)
            if self.approximate is not None and any(callable(k) for k, _ in entries):
                raise ValueError("kernels: expected no functions with approximate, found one")
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
                "approximate": self.approximate,
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

    def _given(self, X: Any, y: Any) -> Any:
        """Return the targets of the rows as the caller gave them."""
        return y

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
                texts.append(viewed(kernel, columns))
            else:
                texts.append(f"view(1-{X.shape[1]}: {as_text(kernel)})")
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
