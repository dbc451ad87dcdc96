"""What the classical estimators have in common: parameters in, a model out."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from widemargin import _core
from widemargin._base import ExportsOnnx, LogProbabilities, checks_parameters, count_threads
from widemargin._progress import Monitor, as_callbacks
from widemargin._svc import class_name
from widemargin._tables import checked_rows, to_core

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self


class ClassicMachine(ExportsOnnx):
    """A classical machine; derived classes name it and hold its parameters."""

    _kind: ClassVar[str]
    _parameter_constraints: ClassVar[dict[str, list[Any]]]

    #: Whether rows may be sparse.
    _takes_sparse: ClassVar[bool] = False

    #: Whether the prediction functions can be written as an ONNX graph.
    _has_onnx: ClassVar[bool] = False

    n_jobs: int | None
    random_state: Any = None
    max_time: float | None = None
    verbose: bool | int = False
    callbacks: Any = None

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        return tags

    def _rows(self, X: Any, y: Any = "no_validation", *, reset: bool = False) -> Any:
        """Return rows, and targets where there are any, checked as scikit-learn checks them."""
        return checked_rows(
            self, X, y, accept_sparse="csr" if self._takes_sparse else False, reset=reset
        )

    def _settings(self) -> dict[str, Any]:
        """Return the parameters as the compiled half takes them."""
        raise NotImplementedError

    def _check_rows(self, rows: int) -> None:
        """Raise what scikit-learn raises for too few rows."""

    def _learn(self, X: Any, targets: Any, settings: dict[str, Any], weights: Any = None) -> Self:
        """Train on checked rows."""
        random = check_random_state(self.random_state)
        names = getattr(self, "feature_names_in_", None)
        monitor = Monitor(self.verbose, as_callbacks(self.callbacks))
        model, _, complaints = _core.fit(
            {
                "machine": self._kind,
                "online": False,
                "parameters": settings,
                "calibration": None,
                "seed": int(random.randint(np.iinfo("i").max)),
                "cache_megabytes": None,
                "threads": count_threads(self.n_jobs),
                "max_seconds": self.max_time,
            },
            to_core(X),
            targets,
            weights,
            None if names is None else list(names),
            on_event=monitor if monitor.listens else None,
        )
        monitor.end(model.training, model.support_count)
        is_told = False
        for complaint in complaints:
            kind = ConvergenceWarning if "did not" in complaint else UserWarning
            is_told |= kind is ConvergenceWarning
            warnings.warn(complaint, kind, stacklevel=4)
        if not is_told and model.training["status"] == "time limit reached":
            message = f"Search terminated early (max_time={self.max_time})."
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
        self._adopt(model)
        return self

    def _adopt(self, model: _core.Model) -> None:
        """Take a trained model and set attributes from it."""
        self._model = model

    def _query(self, X: Any) -> tuple[_core.Table, int]:
        """Return rows to predict and the number of threads to do it with."""
        check_is_fitted(self)
        return to_core(self._rows(X)), count_threads(self.n_jobs)

    def _exported(self, dtype: Any) -> Any:
        if not self._has_onnx:
            raise NotImplementedError(
                f"{type(self).__name__} has no ONNX export, which discriminants, k-means and "
                "mixtures have; save() keeps the model for Python and the command line"
            )
        check_is_fitted(self)
        from widemargin._onnx.classic import export_classic

        return export_classic(self, dtype)

    @classmethod
    def _of(cls, model: _core.Model) -> Self:
        """Return the estimator of a model from a file; parameters it does not tell are defaults."""
        estimator = cls()
        if model.classes is not None:
            names = model.classes
            mixed = {type(name) for name in names} > {str}
            estimator.__dict__["classes_"] = np.array(names, dtype=object if mixed else None)
        estimator._know_features(model)
        estimator._adopt(model)
        return estimator


class Unlabelled(ClassicMachine):
    """A classical machine that learns from rows alone."""

    @checks_parameters
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : Ignored
            For pipelines.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X = self._rows(X, reset=True)
        self._check_rows(X.shape[0])
        return self._learn(X, None, self._settings())


class Grouping(Unlabelled):
    """A machine that predicts the number of a group."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the group of every row: its cluster or most probable component.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Groups, from 0.
        """
        rows, threads = self._query(X)
        return self._model.predict(rows, threads)


class ClassicClassifier(ClassifierMixin, ClassicMachine):
    """A classical machine that predicts classes."""

    def _known(self, classes: NDArray[Any]) -> NDArray[Any]:
        """Return the labels that stand for a class."""
        return classes

    @checks_parameters
    def fit(self, X: Any, y: Any) -> Self:
        """Train on labelled rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X, y = self._rows(X, y, reset=True)
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        classes, codes = np.unique(labels, return_inverse=True)
        known = self._known(classes)
        if len(known) < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {len(known)} class"
            )
        self.classes_ = known
        self._check_rows(len(labels))
        targets = (codes.astype(np.int64), [class_name(label) for label in classes])
        return self._learn(X, targets, self._settings())

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Class labels.
        """
        rows, threads = self._query(X)
        labels: NDArray[Any] = self.classes_.take(self._model.predict(rows, threads))
        return labels


class Probable(ClassicMachine):
    """A machine that predicts probabilities."""

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of every class or component.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Classes in the order of ``classes_``.
        """
        rows, threads = self._query(X)
        return self._model.probabilities(rows, threads)


class PosteriorClassifier(LogProbabilities, Probable, ClassicClassifier):
    """A classical machine that predicts the probability of every class."""


class Dense(ClassicMachine):
    """A machine that knows the density of rows."""

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of the density at every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        logarithms : ndarray of shape (n_samples,)
            ln p(x); −∞ where no window reaches.
        """
        rows, threads = self._query(X)
        return self._model.log_densities(rows, threads)


def priors_setting(priors: Any, classes: int) -> Any:
    """Return class probabilities as the compiled half takes them."""
    if priors is None or isinstance(priors, str):
        return priors or "frequencies"
    values = np.ascontiguousarray(priors, dtype=np.float64).ravel()
    if len(values) != classes:
        raise ValueError(f"priors must have one number for each of {classes} classes")
    return values


def numbers(values: Any) -> NDArray[np.float64] | None:
    """Return a flat array of numbers, or None."""
    if values is None:
        return None
    flat: NDArray[np.float64] = np.ascontiguousarray(values, dtype=np.float64).ravel()
    return flat
