"""What the linear estimators share."""

from __future__ import annotations

import tempfile
import warnings
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model._base import LinearClassifierMixin, SparseCoefMixin
from sklearn.utils import check_random_state, column_or_1d, compute_class_weight
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from widemargin import _core
from widemargin._base import BaseTrained, ExportsOnnx, checks_parameters
from widemargin._disk import is_file, parse_bytes, write_portions
from widemargin._parameters import RunParameters, estimator
from widemargin._progress import Monitor, as_callbacks
from widemargin._restore import parameters, specification
from widemargin._svc import class_name
from widemargin._tables import checked_rows, to_core

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray
    from typing_extensions import Self

_NOT_CONVERGED = "Liblinear failed to converge, increase the number of iterations."


@estimator
class LinearSolverParameters(RunParameters):
    """What the solvers of linear machines take."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_iter": [Interval(Real, 0, None, closed="left")],
    }

    tol: float = 1e-4
    verbose: bool | int = 0
    random_state: Any = None
    max_iter: int = 1000


@estimator
class LinearParameters(LinearSolverParameters):
    """What the linear estimators with a penalty C take."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "intercept_scaling": [Interval(Real, 0, None, closed="neither"), StrOptions({"free"})],
    }

    dual: bool | str = "auto"
    C: float = 1.0
    fit_intercept: bool = True
    intercept_scaling: float | str = 1
    warm_start: bool = False


class BaseLinear(LinearSolverParameters, BaseTrained, ExportsOnnx):
    """What the linear estimators share."""

    _kind: ClassVar[str]

    # Parameters that a machine may lack.
    dual: bool | str = "auto"
    C: float = 1.0
    fit_intercept: bool = True
    intercept_scaling: float | str = 1
    warm_start: bool = False
    epsilon: float = 0.0
    penalty: str = "l2"
    multi_class: str = "ovr"
    loss: str

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _linear_settings(self) -> dict[str, Any]:
        raise NotImplementedError

    @checks_parameters
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows with labels, or with numbers for a regression.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Class labels, or numbers to predict.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors on C of the rows.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        random = check_random_state(self.random_state)
        X, y = checked_rows(self, X, y)
        targets = self._targets(y)
        weights = self._weights(sample_weight, targets, X)
        names = getattr(self, "feature_names_in_", None)
        monitor = Monitor(self.verbose, as_callbacks(self.callbacks))
        model, _, complaints = _core.fit(
            self._settings(X, int(random.randint(np.iinfo("i").max))),
            to_core(X),
            targets,
            weights,
            None if names is None else list(names),
            getattr(self, "_model", None) if self.warm_start else None,
            monitor if monitor.listens else None,
        )
        monitor.end(model.training, model.support_count)
        self._adopt(model)
        self._warn(complaints)
        return self

    @classmethod
    def _of(cls, model: _core.Model) -> Self:
        """Return the estimator of a model from a file."""
        if model.is_mapped:
            raise ValueError(
                "a linear model with approximate features has no estimator; use the command line, "
                "or a pipeline"
            )
        given = parameters(model, cls._parameter_constraints)
        intercept = specification(model).get("intercept", 1.0)
        if "fit_intercept" not in cls._parameter_constraints:
            pass
        elif intercept == "none":
            given["fit_intercept"] = False
        else:
            given["intercept_scaling"] = "free" if intercept == "free" else float(intercept)
        # By its name: a number that was chosen for the loss.
        if isinstance(given.get("tol"), str):
            del given["tol"]
        estimator = cls(**given)
        estimator._know_features(model)
        if model.classes is not None:
            estimator.__dict__["classes_"] = np.array(model.classes)
        estimator._adopt(model)
        if model.scaling is not None:
            # w(fx + o) + b = (wf)x + (wo + b): weights of the features as they come.
            offset, factor = model.scaling
            weights = np.atleast_2d(estimator.coef_)
            moved = estimator.intercept_ + weights @ offset
            estimator.coef_ = (weights * factor).reshape(estimator.coef_.shape)
            estimator.intercept_ = moved
        return estimator

    def _settings(self, X: Any, seed: int) -> _core.Settings:
        return {
            "machine": self._kind,
            "online": False,
            "parameters": {
                "c": float(self.C),
                "tol": float(self.tol),
                "max_iter": int(self.max_iter),
                "precision": "f32" if X.dtype == np.dtype(np.float32) else "f64",
                **self._linear_settings(),
            },
            "calibration": None,
            "seed": seed,
            "cache_megabytes": 0.0,
            "threads": self._threads(),
            "max_seconds": self.max_time,
        }

    def _targets(self, y: Any) -> Any:
        return column_or_1d(y, warn=True).astype(np.float64, copy=False)

    def _adopt(self, model: _core.Model) -> None:
        self._model = model
        self.coef_ = model.weights()
        self.intercept_: Any = model.intercepts if self.fit_intercept else 0.0
        self.n_iter_ = max(int(model.training.get("passes", 1)), 1)

    def _warn(self, complaints: list[str]) -> None:
        training = self._model.training
        if training.get("status") == "iteration limit reached":
            share = training["gap"] / max(abs(training["primal"]), np.finfo(float).tiny)
            message = f"{_NOT_CONVERGED} The duality gap is {share:.2%} of the objective."
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
        else:
            super()._warn(complaints)

    def _intercept(self) -> float | str:
        if not self.fit_intercept:
            return "none"
        scaling = self.intercept_scaling
        return scaling if isinstance(scaling, str) else float(scaling)

    def to_liblinear(self) -> str:
        """Return the model as the text of a LIBLINEAR model file.

        Returns
        -------
        text : str
            What LIBLINEAR's ``predict`` reads; write it to a file.
        """
        self._check_kept("a LIBLINEAR model file")
        return self._model.to_liblinear().decode()

    def _exported(self, dtype: Any) -> Any:
        from widemargin._onnx import export_linear

        self._check_kept("ONNX")
        return export_linear(self, dtype)


class BasePenalised(LinearParameters, BaseLinear):
    """What the linear estimators with a penalty C share."""

    def _steps(self, C: Sequence[float], epsilon: Any) -> list[dict[str, float]]:
        """Return the parameters of every step of a path."""
        if epsilon is not None:
            raise TypeError("epsilon is a parameter of LinearSVR")
        return [{"C": float(c)} for c in C]

    @checks_parameters
    def fit_path(
        self, X: Any, y: Any, C: Sequence[float], *, epsilon: Any = None, sample_weight: Any = None
    ) -> list[Self]:
        """Train for several penalties, each from the solution of the one before.

        That takes less time than training for each by itself. In the given order; ascending
        penalties are fastest.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Class labels or numbers.
        C : sequence of float
            Penalties.
        epsilon : sequence of float, default=None
            Widths of the tube for :class:`LinearSVR`, each with every penalty; None is the
            parameter of the estimator.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors on the weight of the rows.

        Returns
        -------
        estimators : list of estimators
            One fitted estimator for every step of the path.
        """
        steps = self._steps(C, epsilon)
        if not steps:
            raise ValueError("expected at least one C, found none")
        if not all(0 < step["C"] < np.inf for step in steps):
            raise ValueError(f"every C has to be a finite number above 0, found {list(C)}")
        random = check_random_state(self.random_state)
        X, y = checked_rows(self, X, y)
        targets = self._targets(y)
        names = getattr(self, "feature_names_in_", None)
        monitor = Monitor(self.verbose, as_callbacks(self.callbacks))
        models, complaints = _core.fit_path(
            self._settings(X, int(random.randint(np.iinfo("i").max))),
            to_core(X),
            targets,
            [(step["C"], step.get("epsilon", self.epsilon)) for step in steps],
            self._weights(sample_weight, targets, X),
            None if names is None else list(names),
            monitor if monitor.listens else None,
        )
        found = []
        for step, model in zip(steps, models, strict=True):
            estimator = clone(self).set_params(**step)
            estimator._know_features(model)
            if hasattr(self, "classes_"):
                estimator.__dict__["classes_"] = self.classes_
            estimator._adopt(model)
            estimator._warn(complaints)
            complaints = []
            found.append(estimator)
        return found

    @checks_parameters
    def fit_from_disk(
        self,
        source: str | os.PathLike[str] | Iterable[tuple[Any, Any]],
        *,
        memory: int | str = "1GB",
        folder: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Train on rows that memory need not hold.

        The rows are converted to compressed chunks on disk, from which the optimum of `fit` is
        reached chunk by chunk. Labels are numbers; several classes are one against the rest. The
        penalty is ``"l2"`` and the intercept is penalised.

        Parameters
        ----------
        source : path-like or iterable of (X, y)
            A file of LIBSVM text, also compressed, or a folder of such files; or portions of rows
            with their labels, none of which is kept.
        memory : int or str, default="1GB"
            Bytes that rows may take in memory.
        folder : path-like, default=None
            Where the chunks and the state are kept, so that a training that was stopped goes on
            there; None is a folder that is removed afterwards.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        seed = int(check_random_state(self.random_state).randint(np.iinfo("i").max))
        monitor = Monitor(self.verbose, as_callbacks(self.callbacks))
        self._factors = None
        settings = self._settings(np.empty((0, 0)), seed)
        bytes_ = parse_bytes(memory)
        with tempfile.TemporaryDirectory() as own:
            work = Path(own if folder is None else folder)
            work.mkdir(parents=True, exist_ok=True)
            if is_file(source):
                inputs = [str(Path(source))]  # type: ignore[arg-type]
            else:
                portions = work / "rows"
                portions.mkdir(exist_ok=True)
                inputs = write_portions(source, portions)  # type: ignore[arg-type]
            model, complaints = _core.fit_files(
                settings,
                inputs,
                str(work / "chunks"),
                bytes_,
                monitor if monitor.listens else None,
            )
        monitor.end(model.training, model.support_count)
        self._know_features(model)
        if model.classes is not None:
            self.__dict__["classes_"] = np.array(model.classes)
        self._adopt(model)
        self._warn(complaints)
        return self


class BaseLinearClassifier(LinearClassifierMixin, SparseCoefMixin, BasePenalised):
    """What the linear classifiers share."""

    class_weight: Any

    def _class_factors(self) -> Any:
        """Return the factors on C as the compiled half takes them: of the classes, or by label."""
        if self._factors is not None:
            return [float(factor) for factor in self._factors]
        if isinstance(self.class_weight, dict):
            raise ValueError("class_weight is None or 'balanced' where rows are learnt from disk")
        return self.class_weight

    def _targets(self, y: Any) -> tuple[NDArray[np.int64], list[Any]]:
        labels = column_or_1d(y, warn=True)
        check_classification_targets(y)
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                "This solver needs samples of at least 2 classes in the data, but the data contains"
                f" only one class: {classes[0]!r}"
            )
        self.classes_ = classes
        self._factors = compute_class_weight(self.class_weight, classes=classes, y=labels)
        return codes.astype(np.int64), [class_name(label) for label in classes]

    def _adopt(self, model: _core.Model) -> None:
        super()._adopt(model)
        if self.coef_.shape[0] == 1:
            # Positive means the second of two classes to scikit-learn, the first to LIBLINEAR.
            self.coef_ = -self.coef_
            self.intercept_ = 0.0 - self.intercept_
        elif len(self.classes_) == 2:
            self.coef_ = (self.coef_[1] - self.coef_[0]).reshape(1, -1)
            if self.fit_intercept:
                self.intercept_ = np.array([self.intercept_[1] - self.intercept_[0]])


def solver(machine: BaseLinear) -> str:
    """Return the algorithm for what scikit-learn calls `dual`, or its error when there is none."""
    smooth = machine.loss == "logistic" or machine.loss.startswith("squared")
    dual = machine.dual
    kinds = f"penalty={machine.penalty!r} and loss={machine.loss!r}"
    if machine.penalty == "l1" and not smooth:
        raise ValueError(
            f"Unsupported set of arguments: The combination of {kinds} is not supported, "
            f"Parameters: penalty={machine.penalty!r}, loss={machine.loss!r}, dual={dual!r}"
        )
    if (machine.penalty == "l1" and dual is True) or (dual is False and not smooth):
        raise ValueError(
            f"Unsupported set of arguments: The combination of {kinds} are not supported when "
            f"dual={dual}, Parameters: penalty={machine.penalty!r}, loss={machine.loss!r}, "
            f"dual={dual!r}"
        )
    if dual == "auto" or machine.penalty == "l1":
        return "auto"
    return "dual" if dual else "newton"
