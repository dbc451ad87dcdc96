"""What all estimators have in common: parameters in, the compiled half called, attributes out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
)

from widemargin import _core, _restore
from widemargin._parameters import KernelParameters, RunParameters, check_kernel
from widemargin._progress import Monitor, as_callbacks
from widemargin._strings import StringKernel, string_rows, strings_of
from widemargin._tables import checked_rows, container_of, from_core, to_container, to_core

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self

#: LIBSVM takes an infinite C; the solver wants a number, and no dual variable comes near this one.
_LARGEST_C = 1e100

#: The library starts no more.
_MOST_THREADS = 1024

_NOT_FINITE = (
    "The dual coefficients or intercepts are not finite. The input data may contain large values "
    "and need to be preprocessed."
)
_ADVICE = "Consider pre-processing your data with StandardScaler or MinMaxScaler."


F = TypeVar("F", bound=Callable[..., Any])


def checks_parameters(method: F) -> F:
    """Check the parameters before `fit` runs, as scikit-learn's estimators do."""
    return cast("F", _fit_context(prefer_skip_nested_validation=True)(method))


def count_threads(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` asks for."""
    threads = int(effective_n_jobs(n_jobs))
    if threads > _MOST_THREADS:
        raise ValueError(f"n_jobs must be at most {_MOST_THREADS}. Got {n_jobs} instead.")
    return threads


def _has_probabilities(estimator: Any) -> bool:
    return callable(estimator.predict_proba)


class LogProbabilities:
    """What follows from probabilities of classes."""

    predict_proba: Callable[[Any], NDArray[np.float64]]

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of the probability of every class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        with np.errstate(divide="ignore"):
            logarithms: NDArray[np.float64] = np.log(self.predict_proba(X))
        return logarithms


def _code_entries(code: Any) -> NDArray[np.float64]:
    """Return the entries of a code matrix, class by class."""
    matrix = np.asarray(code, dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError(f"code has to have a row per class, found {matrix.ndim} dimensions")
    return matrix.ravel()


class HoldsModel(BaseEstimator):
    """An estimator with a model of the compiled half: it is saved and pickled as a model file."""

    _model: _core.Model

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model in the native format, which the command line reads too.

        Parameters
        ----------
        path : path-like
            The file (``.wm`` by custom); replaced only when the new one is complete.

        See Also
        --------
        widemargin.load : Reads it again.
        """
        self._check_kept("a model file")
        self._model.save(os.fspath(path))

    def _check_kept(self, where: str) -> None:
        """Raise when the model cannot be kept in that place."""
        check_is_fitted(self)

    def _know_features(self, model: _core.Model) -> None:
        """Set the number and the names of the features of a model from a file."""
        self.n_features_in_ = model.features
        if model.feature_names is not None:
            self.feature_names_in_ = np.array(model.feature_names, dtype=object)

    def __getstate__(self) -> dict[str, Any]:
        """Keep the model as bytes, which pickle and skops both know."""
        state: dict[str, Any] = super().__getstate__()
        model = state.get("_model")
        return state if model is None else {**state, "_model": model.to_bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the model again from its bytes."""
        model = state.get("_model")
        if isinstance(model, bytes):
            state = {**state, "_model": _core.Model.from_bytes(model)}
        super().__setstate__(state)


class ExportsOnnx(HoldsModel):
    """An estimator whose prediction functions can be written as an ONNX graph."""

    def to_onnx(self, *, dtype: Any = np.float64) -> Any:
        """Return every prediction function as one ONNX model; needs the package ``onnx``.

        Parameters
        ----------
        dtype : {float64, float32}, default=float64
            Number format of the input ``X`` and of all computations.

        Returns
        -------
        model : onnx.ModelProto
            With an output for every method that predicts: ``predict``, and where the estimator has
            them ``decision_function``, ``predict_proba``, ``score_samples`` and ``transform``.

        Notes
        -----
        Only operators of the standard domain are used, in the given precision, so that every
        runtime gives the same numbers.
        """
        return self._exported(np.dtype(dtype))

    def _exported(self, dtype: Any) -> Any:
        raise NotImplementedError


class BaseTrained(HoldsModel):
    """What every estimator has that the compiled half trained."""

    # Parameters that every derived class has.
    tol: float
    max_time: float | None
    n_jobs: int | None

    def _threads(self) -> int:
        return count_threads(self.n_jobs)

    def _weights(self, sample_weight: Any, targets: Any, X: Any) -> NDArray[np.float64] | None:
        """Return one weight of at least 0 per row; negative ones take their row out."""
        if sample_weight is None:
            return None
        weights = np.asarray(sample_weight, dtype=np.float64)
        if weights.shape == (0,):
            return None
        if weights.ndim != 1 or weights.shape[0] != X.shape[0]:
            raise ValueError(
                "sample_weight and X have incompatible shapes: "
                f"{weights.shape!r} vs {X.shape!r}; expected one weight per row"
            )
        if np.isnan(weights).any() or np.isposinf(weights).any():
            raise ValueError("sample_weight contains NaN or infinity.")
        if not (weights > 0).any():
            raise ValueError("Invalid input - all samples have zero or negative weights.")
        return np.maximum(weights, 0.0)

    def _warn(self, complaints: list[str]) -> None:
        for complaint in complaints:
            of_kernel = complaint.startswith("the kernel is not ")
            warnings.warn(complaint, UserWarning if of_kernel else ConvergenceWarning, stacklevel=5)
        training = self._model.training
        status = training["status"]
        if status == "iteration limit reached":
            limit = getattr(self, "max_iter", -1)
            limit = limit if limit != -1 else "the default"
            message = f"Solver terminated early (max_iter={limit}).  {_ADVICE}"
        elif status == "time limit reached":
            message = f"Solver terminated early (max_time={self.max_time}).  {_ADVICE}"
        elif status in ("almost solved", "numerical trouble"):
            message = (
                f"Solver stopped at a violation of {training['violation']:.3g}, above "
                f"tol={self.tol}: no further progress was possible.  {_ADVICE}"
            )
        else:
            return
        warnings.warn(message, ConvergenceWarning, stacklevel=5)

    def _training(self, item: str) -> Any:
        if "_model" not in self.__dict__:
            raise AttributeError(f"this {type(self).__name__} instance is not fitted yet")
        return self._model.training[item]

    @property
    def status_(self) -> str:
        """How the training ended, in words."""
        return str(self._training("status"))

    @property
    def objective_(self) -> float:
        """Dual objective reached, summed over all two-class problems."""
        return float(self._training("dual"))

    @property
    def dual_gap_(self) -> float:
        """Primal minus dual objective: at most this much could still be gained."""
        return float(self._training("gap"))

    @property
    def violation_(self) -> float:
        """Largest violation of the optimality conditions."""
        return float(self._training("violation"))


class BaseMachine(KernelParameters, RunParameters, BaseTrained, ExportsOnnx):
    """A kernel machine; derived classes name it and hold its parameters."""

    _kind: ClassVar[str]
    _parameter_constraints: ClassVar[dict[str, list[Any]]]

    # Parameters that a machine may lack.
    C: float = 1.0
    nu: float = 0.5
    epsilon: float = 0.0
    loss: str = "hinge"
    random_state: Any = None
    multi_class: str = "ovo"
    code: Any = None
    decoding: str = "hinge"
    bias: bool = False

    cache_size: float  # every derived class has it

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.string = isinstance(self.kernel, StringKernel)
        return tags

    # Training

    def _kernel_given(self) -> Any:
        """Return the kernel as text, or the user's function."""
        return self.kernel.expression() if isinstance(self.kernel, StringKernel) else self.kernel

    def _strings(self, X: Any, kernel: Any) -> Any:
        """Return rows of characters where the kernel compares strings and `X` is a list of them."""
        strings = None if callable(kernel) else strings_of(X)
        # The text of a learnt kernel may have negative weights, which no kernel is trained with.
        if strings is None or not _core.compares_strings(kernel):
            return None
        return string_rows(strings)

    @checks_parameters
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows with labels, or with numbers for a regression.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Rows; with ``kernel="precomputed"`` their similarities. C-ordered float32 and float64
            arrays are not copied.
        y : array-like of shape (n_samples,)
            Class labels, or numbers to predict.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors on C of the rows; rows of weight 0 or less are left out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._warn_of_parameters()
        return self._fit(X, y, sample_weight)

    def _warn_of_parameters(self) -> None:
        """Warn of parameters that will go."""

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        kernel = self._kernel_given()
        check_kernel(type(self).__name__, kernel)
        random = check_random_state(self.random_state)
        if sp.issparse(X) and isinstance(kernel, str) and kernel == "precomputed":
            raise TypeError("Sparse precomputed kernels are not supported.")
        rows, names = None, None
        characters = self._strings(X, kernel)
        if characters is not None:
            check_consistent_length(X, y)
            X = characters
        elif callable(kernel):
            check_consistent_length(X, y)
            rows, X = X, self._gram(X, X)
            if X.shape[0] != X.shape[1]:
                raise ValueError("X.shape[0] should be equal to X.shape[1]")
        else:
            X, y = checked_rows(self, X, y)
            names = getattr(self, "feature_names_in_", None)
        targets = self._targets(y)
        if isinstance(kernel, str) and kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                "Precomputed matrix must be a square matrix."
                f" Input is a {X.shape[0]}x{X.shape[1]} matrix."
            )
        weights = self._weights(sample_weight, targets, X)
        monitor = Monitor(self.verbose, as_callbacks(self.callbacks))
        try:
            model, steps, complaints = _core.fit(
                self._settings(X, int(random.randint(np.iinfo("i").max))),
                to_core(X),
                targets,
                weights,
                None if names is None else list(names),
                getattr(self, "_model", None) if getattr(self, "warm_start", False) else None,
                monitor if monitor.listens else None,
            )
        except ValueError as error:
            if "expected values within" in str(error):
                raise ValueError(f"{_NOT_FINITE} ({error})") from None
            raise
        monitor.end(model.training, model.support_count)
        # What the user gave; a list of anything, for kernel functions, has only a length.
        self.shape_fit_ = X.shape if rows is None else getattr(rows, "shape", X.shape[:1])
        self._rows_fit = rows
        self._sparse_kind = container_of(X) if sp.issparse(X) else None
        self._adopt(model, steps)
        self._warn(complaints)
        return self

    @classmethod
    def _of(cls, model: _core.Model) -> Self:
        """Return the estimator of a model from a file."""
        given = {
            **_restore.parameters(model, cls._parameter_constraints),
            **_restore.kernel_parameters(model),
            **cls._given(model),
        }
        if "precision" in cls._parameter_constraints:
            is_mixed = _restore.specification(model).get("precision") == "mixed"
            given["precision"] = "auto" if is_mixed else model.precision
        estimator = cls(**given)
        estimator._know_classes(model)
        table = model.support_vectors
        estimator._sparse_kind = "csr_array" if isinstance(table, tuple) else None
        estimator._rows_fit = None
        rows = model.training.get("rows", model.support_count)
        estimator._know_features(model)
        estimator.shape_fit_ = (rows, model.features)
        estimator._adopt(model, np.array([model.training.get("iterations", 0)]))
        return estimator

    @classmethod
    def _given(cls, model: _core.Model) -> dict[str, Any]:
        """Return parameters that only estimators of this kind take, of a model from a file."""
        return {}

    def _know_classes(self, model: _core.Model) -> None:
        """Set the classes of a model from a file."""

    def _settings(self, X: Any, seed: int) -> _core.Settings:
        # Online machines lack some parameters.
        precision = getattr(self, "precision", "double")
        limit = getattr(self, "max_iter", -1)
        formats = {"single": "f32", "double": "f64"}
        own_format = "auto" if X.dtype == np.dtype(np.float32) else "mixed"
        online = self._online()
        kernel = self._kernel_given()
        values: dict[str, Any] = {
            "c": min(float(self.C), _LARGEST_C),
            "nu": float(self.nu),
            "epsilon": float(self.epsilon),
            "loss": "squared-hinge" if self.loss.startswith("squared") else "hinge",
            "kernel": "precomputed" if callable(kernel) else kernel,
            "gamma": self.gamma if isinstance(self.gamma, str) else float(self.gamma),
            "coef0": float(self.coef0),
            "degree": int(self.degree),
            "tol": float(self.tol),
            "shrinking": bool(getattr(self, "shrinking", True)),
            "max_iter": None if limit == -1 else int(limit),
            "precision": formats.get(precision, own_format),
            "multiclass": self.multi_class,
            "code": None if self.code is None else _code_entries(self.code),
            "decoding": self.decoding,
            "bias": bool(self.bias),
            **(online or {}),
        }
        # Attributes of the base class stand for parameters that a machine does not have.
        names = _core.parameter_names(self._kind, online is not None)
        return {
            "machine": self._kind,
            "online": online is not None,
            "parameters": {name: value for name, value in values.items() if name in names},
            "calibration": self._calibration_method(),
            "seed": seed,
            "cache_megabytes": float(self.cache_size),
            "threads": self._threads(),
            "max_seconds": self.max_time,
        }

    def _online(self) -> dict[str, Any] | None:
        return None

    def _calibration_method(self) -> str | None:
        return None

    def _targets(self, y: Any) -> Any:
        return column_or_1d(y, warn=True).astype(np.float64, copy=False)

    def _gram(self, X: Any, rows: Any) -> NDArray[np.float64]:
        """Return what the user's kernel says about `X` and the training rows."""
        values = self.kernel(X, rows)
        if sp.issparse(values):
            values = values.toarray()
        return np.asarray(values, dtype=np.float64, order="C")

    def _adopt(self, model: _core.Model, steps: NDArray[np.int64]) -> None:
        """Take a trained model and set scikit-learn's attributes from it."""
        self._model = model
        self.__dict__.pop("_support_vectors", None)
        self.support_ = model.support
        self._n_support = model.support_counts
        self._intercept_ = model.intercepts
        coefficients: Any = model.dual_coefficients
        if self._sparse_kind is not None:
            coefficients = to_container(coefficients, self._sparse_kind)
        if not (np.isfinite(self._intercept_).all() and np.isfinite(model.dual_coefficients).all()):
            raise ValueError(_NOT_FINITE)
        self._dual_coef_ = coefficients
        self.intercept_ = self._intercept_.copy()
        self.dual_coef_ = coefficients
        self.fit_status_ = 0 if model.training.get("status", "solved") == "solved" else 1
        self.n_iter_: Any = int(steps.sum())

    # Prediction

    def _checked(self, X: Any) -> _core.Table:
        """Return rows to predict, checked as scikit-learn checks them."""
        check_is_fitted(self)
        kernel = self._kernel_given()
        characters = self._strings(X, kernel)
        if characters is not None:
            return to_core(characters)
        if callable(kernel):
            X = self._gram(X, self._rows_fit)
            if X.ndim != 2 or X.shape[1] != self.shape_fit_[0]:
                raise ValueError(
                    f"X.shape[1] = {X.shape[-1]} should be equal to {self.shape_fit_[0]}, "
                    "the number of samples at training time"
                )
            return to_core(X)
        X = checked_rows(self, X, reset=False)
        if sp.issparse(X) and self._sparse_kind is None:
            raise ValueError(
                f"cannot use sparse input in {type(self).__name__!r} trained on dense data"
            )
        if self.kernel == "precomputed" and X.shape[1] != self.shape_fit_[0]:
            raise ValueError(
                f"X.shape[1] = {X.shape[1]} should be equal to {self.shape_fit_[0]}, "
                "the number of samples at training time"
            )
        if self._n_support.sum() != self._model.support_count:
            raise ValueError(f"The internal representation of {type(self).__name__} was altered")
        return to_core(X)

    def _values(self, X: Any) -> NDArray[np.float64]:
        """Return the values of all decision functions."""
        table = self._checked(X)
        return self._model.decision_values(table, self._threads())

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the prediction of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or \
                (n_samples, n_samples_train)
            Rows; with ``kernel="precomputed"`` their similarities with the training rows.

        Returns
        -------
        predictions : ndarray of shape (n_samples,)
            Class labels, numbers, or 1 for rows inside and -1 for rows outside.
        """
        return self._predictions(X)

    def _predictions(self, X: Any) -> NDArray[Any]:
        """Return positions of classes, numbers, or 1 and -1."""
        table = self._checked(X)
        return self._model.predict(table, self._threads())

    # Attributes

    @property
    def support_vectors_(self) -> Any:
        """The support vectors; sparse when trained on sparse data, empty for given kernels."""
        if "_model" not in self.__dict__:
            raise AttributeError(
                f"'{type(self).__name__}' object has no attribute 'support_vectors_'"
            )
        if callable(self._kernel_given()) or self.kernel == "precomputed":
            return np.empty((0, 0))
        if "_support_vectors" not in self.__dict__:
            self._support_vectors = from_core(self._model.support_vectors, self._sparse_kind)
        return self._support_vectors

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """Number of support vectors for each class."""
        try:
            check_is_fitted(self)
        except NotFittedError as error:
            raise AttributeError(str(error)) from None
        return self._n_support

    @property
    def coef_(self) -> Any:
        """Weights assigned to the features when `kernel="linear"`; read-only."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        check_is_fitted(self)
        weights = self._signed(self._model.weights())
        if self._sparse_kind is not None:
            sparse = to_container(weights, self._sparse_kind)
            sparse.data.flags.writeable = False
            return sparse
        weights.flags.writeable = False
        return weights

    def _signed(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values

    @property
    def _gamma(self) -> float:
        """The number that `gamma` became; 0 for kernels without one."""
        return float(self._model.kernel.get("gamma", 0.0))

    # Size

    def compress(
        self,
        X: Any = None,
        y: Any = None,
        *,
        ratio: float | None = None,
        vectors: int | None = None,
        max_difference: float | None = None,
        max_loss: float | None = None,
        lossless: bool = False,
        method: str = "merge",
        shared: bool | None = None,
        refine: int | None = None,
        mmd: float | None = None,
    ) -> Self:
        """Return a copy of this fitted estimator with fewer support vectors, which predicts faster.

        Give one of `ratio`, `vectors`, `max_difference`, `max_loss` and `lossless`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            Rows that did not train the estimator. Probabilities are calibrated again on them.

        y : array-like of shape (n_samples,), default=None
            Their classes or targets.

        ratio : float, default=None
            This share of the vectors.

        vectors : int, default=None
            This many vectors.

        max_difference : float, default=None
            Merge while no decision value of a support vector moves by more than this.

        max_loss : float, default=None
            As few vectors as lower the score on `X` and `y` by at most this; 0.002 is 0.2
            percentage points of accuracy.

        lossless : bool, default=False
            As few vectors as predict exactly the same.

        method : {"merge", "greedy", "fixed-point", "gradient", "prune", "kernel-pca", "l1"}, \
                default="merge"
            How fewer vectors are found. The last three leave out support vectors and work for any
            kernel; the others make new vectors for linear, polynomial and Gaussian ones.

        shared : bool, default=None
            Whether the functions of several classes share vectors. By default they do, except for
            `max_difference` and `lossless`.

        refine : int, default=None
            Most steps of moving all vectors together to where they change the functions least. By
            default 30, fewer for large models, none after a selection.

        mmd : float, default=None
            Earlier name of `max_difference`.

        Returns
        -------
        estimator : object
            A fitted estimator of the same class and parameters. Its `support_` is empty; its
            `relative_residuals_` and `largest_differences_` say what every function lost.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from widemargin import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> model = SVC(gamma=0.5).fit(X, y)
        >>> small = model.compress(ratio=0.25)
        >>> int(model.n_support_.sum()), int(small.n_support_.sum())
        (41, 10)
        """
        from widemargin._compress import compressed

        self._check_kept("a compressed model")
        targets = {
            "ratio": ratio,
            "vectors": vectors,
            "max_difference": max_difference if mmd is None else mmd,
            "max_loss": max_loss,
            "lossless": 0.0 if lossless else None,
        }
        return cast("Self", compressed(self, X, y, targets, method, shared, refine))

    # Files

    def to_libsvm(self) -> str:
        """Return the model as the text of a LIBSVM model file.

        Returns
        -------
        text : str
            What ``svm-predict`` reads; write it to a file.
        """
        self._check_kept("a LIBSVM model file")
        return self._model.to_libsvm().decode()

    def _exported(self, dtype: Any) -> Any:
        from widemargin._onnx import export

        self._check_kept("ONNX")
        return export(self, dtype)

    def _check_kept(self, where: str) -> None:
        check_is_fitted(self)
        if callable(self._kernel_given()):
            raise ValueError(f"a kernel that is a Python function cannot be kept in {where}")

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be had from the model again."""
        state: dict[str, Any] = super().__getstate__()
        state.pop("_support_vectors", None)
        return state
