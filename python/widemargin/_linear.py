"""Linear machines: `LinearSVC`, `LinearSVR` and `LogisticRegression`."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model._base import LinearClassifierMixin, LinearModel, SparseCoefMixin
from sklearn.utils import check_random_state, column_or_1d, compute_class_weight
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from widemargin import _core
from widemargin._base import BaseTrained, checks_parameters
from widemargin._docs import documented
from widemargin._parameters import choose
from widemargin._progress import Monitor, as_callbacks
from widemargin._svc import class_name
from widemargin._tables import to_core

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self

_SHARED: dict[str, list[Any]] = {
    **choose("tol", "verbose", "max_iter", "max_time", "warm_start", "callbacks", "n_jobs"),
    **choose("C", "random_state"),
    "fit_intercept": ["boolean"],
    "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
    "dual": ["boolean", StrOptions({"auto"})],
    "max_iter": [Interval(Real, 0, None, closed="left")],
}
_NOT_CONVERGED = "Liblinear failed to converge, increase the number of iterations."


class BaseLinear(BaseTrained):
    """What the linear estimators share."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]]

    # Parameters that a machine may lack.
    epsilon: float = 0.0
    penalty: str = "l2"
    multi_class: str = "ovr"
    dual: bool | str = "auto"
    intercept_scaling: float = 1.0

    # Parameters that every derived class sets.
    loss: str
    C: float
    fit_intercept: bool
    verbose: bool | int
    random_state: Any
    max_iter: int
    warm_start: bool
    callbacks: Any

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _linear_settings(self) -> _core.Linear:
        raise NotImplementedError

    def _fit(self, X: Any, y: Any, sample_weight: Any, kind: str) -> Self:
        random = check_random_state(self.random_state)
        X, y = validate_data(
            self,
            X,
            y,
            dtype=[np.float64, np.float32],
            order="C",
            accept_sparse="csr",
            accept_large_sparse=False,
        )
        targets = self._targets(y)
        weights = self._weights(sample_weight, targets, X)
        names = getattr(self, "feature_names_in_", None)
        monitor = Monitor(self.verbose, as_callbacks(self.callbacks))
        settings: _core.Settings = {
            "machine": kind,
            "c": float(self.C),
            "nu": 0.5,
            "epsilon": float(self.epsilon),
            "squared_loss": self.loss.startswith("squared"),
            "kernel": "linear",
            "gamma": 1.0,
            "coef0": 0.0,
            "degree": 1,
            "tol": float(self.tol),
            "shrinking": True,
            "max_iterations": int(self.max_iter),
            "single_precision": X.dtype == np.dtype(np.float32),
            "scheme": "ovr",
            "calibration": None,
            "seed": int(random.randint(np.iinfo("i").max)),
            "cache_megabytes": 0.0,
            "threads": self._threads(),
            "max_seconds": self.max_time,
            "bias": bool(self.fit_intercept),
            "online": None,
            "linear": self._linear_settings(),
        }
        model, _, complaints = _core.fit(
            settings,
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

    def _targets(self, y: Any) -> Any:
        return column_or_1d(y, warn=True).astype(np.float64, copy=False)

    def _adopt(self, model: _core.Model) -> None:
        self._model = model
        self.coef_ = model.weights()
        self.intercept_: Any = model.intercepts if self.fit_intercept else 0.0
        self.n_iter_ = max(int(model.training.get("passes", 1)), 1)

    def _warn(self, complaints: list[str]) -> None:
        if self._model.training.get("status") == "iteration limit reached":
            warnings.warn(_NOT_CONVERGED, ConvergenceWarning, stacklevel=4)
        else:
            super()._warn(complaints)

    def _intercept(self) -> float | None:
        return float(self.intercept_scaling) if self.fit_intercept else None

    def to_liblinear(self) -> str:
        """Return the model as the text of a LIBLINEAR model file.

        Returns
        -------
        text : str
            What LIBLINEAR's ``predict`` reads; write it to a file.
        """
        self._check_kept("a LIBLINEAR model file")
        return self._model.to_liblinear().decode()


class BaseLinearClassifier(LinearClassifierMixin, SparseCoefMixin, BaseLinear):
    """What the linear classifiers share."""

    class_weight: Any

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


@documented
class LinearSVC(BaseLinearClassifier):
    """Linear support vector classification.

    A drop-in for :class:`sklearn.svm.LinearSVC`: the same parameters, attributes and answers, and a
    few parameters more, all keywords. Sparse rows and rows by the million are what it is for.

    Parameters
    ----------
    penalty : {{'l1', 'l2'}}, default='l2'
        What weights cost; ``'l1'`` makes most of them 0.
    loss : {{'hinge', 'squared_hinge'}}, default='squared_hinge'
        What a row beyond its margin costs.
    dual : 'auto' or bool, default='auto'
        Whether the dual or the primal problem is solved; the optimum is the same.
    tol : float, default=1e-4
        LIBLINEAR's tolerance.
    C : float, default=1.0
        Price of the loss.
    multi_class : {{'ovr', 'crammer_singer'}}, default='ovr'
        A function per class against the rest, or all classes in one problem.
    {linear}
    class_weight : dict or 'balanced', default=None
        Factors on C by class.
    {linear_extra}

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Constants of the functions.
    classes_ : ndarray of shape (n_classes,)
        Class labels, ascending.
    {linear_attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> LinearSVC().fit(X, y).score(X, y) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_SHARED,
        **choose("class_weight"),
        "penalty": [StrOptions({"l1", "l2"})],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "multi_class": [StrOptions({"ovr", "crammer_singer"})],
    }

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: bool | str = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1,
        class_weight: Any = None,
        verbose: bool | int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        max_time: float | None = None,
        warm_start: bool = False,
        callbacks: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.n_jobs = n_jobs

    @checks_parameters
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on labelled rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors on the weight of the rows.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight, "linear-svc")

    def _linear_settings(self) -> _core.Linear:
        crammer_singer = self.multi_class == "crammer_singer"
        return {
            "loss": self.loss.replace("_", "-"),
            "penalty": "l2" if crammer_singer else self.penalty,
            "solver": "auto" if crammer_singer else _solver(self),
            "multiclass": self.multi_class.replace("_", "-"),
            "intercept": self._intercept(),
            "class_weights": [float(factor) for factor in self._factors],
        }


@documented
class LogisticRegression(BaseLinearClassifier):
    """Logistic regression, one class against the rest.

    The parameters of :class:`sklearn.linear_model.LogisticRegression` with ``solver="liblinear"``:
    the constant is charged like a weight (less so with a larger `intercept_scaling`), and several
    classes are learnt one against the rest.

    Parameters
    ----------
    penalty : {{'l1', 'l2'}}, default='l2'
        What weights cost; ``'l1'`` makes most of them 0.
    dual : 'auto' or bool, default='auto'
        Whether the dual or the primal problem is solved; the optimum is the same.
    tol : float, default=1e-4
        LIBLINEAR's tolerance.
    C : float, default=1.0
        Price of the loss.
    {linear}
    class_weight : dict or 'balanced', default=None
        Factors on C by class.
    {linear_extra}

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Constants of the functions.
    classes_ : ndarray of shape (n_classes,)
        Class labels, ascending.
    {linear_attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> LogisticRegression().fit(X, y).predict_proba(X[:1]).argmax()
    np.int64(0)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_SHARED,
        **choose("class_weight"),
        "penalty": [StrOptions({"l1", "l2"})],
    }
    loss = "logistic"

    def __init__(
        self,
        penalty: str = "l2",
        *,
        dual: bool | str = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 1,
        class_weight: Any = None,
        verbose: bool | int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        max_time: float | None = None,
        warm_start: bool = False,
        callbacks: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.penalty = penalty
        self.dual = dual
        self.tol = tol
        self.C = C
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.n_jobs = n_jobs

    @checks_parameters
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on labelled rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors on the weight of the rows.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight, "logistic")

    def _linear_settings(self) -> _core.Linear:
        return {
            "loss": "logistic",
            "penalty": self.penalty,
            "solver": _solver(self),
            "multiclass": "ovr",
            "intercept": self._intercept(),
            "class_weights": [float(factor) for factor in self._factors],
        }

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of every class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        probabilities: NDArray[np.float64] = self._predict_proba_lr(X)
        return probabilities

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
        return np.log(self.predict_proba(X))


@documented
class LinearSVR(RegressorMixin, LinearModel, BaseLinear):
    """Linear support vector regression.

    A drop-in for :class:`sklearn.svm.LinearSVR`: the same parameters, attributes and answers, and a
    few parameters more, all keywords.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half width of the tube in which deviations cost nothing.
    tol : float, default=1e-4
        LIBLINEAR's tolerance.
    C : float, default=1.0
        Price of the loss.
    loss : {{'epsilon_insensitive', 'squared_epsilon_insensitive'}}, default='epsilon_insensitive'
        How a deviation ξ beyond the tube is charged: C ξ or C ξ².
    {linear}
    dual : 'auto' or bool, default='auto'
        Whether the dual or the primal problem is solved; the optimum is the same.
    {linear_extra}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features.
    intercept_ : ndarray of shape (1,)
        Constant of the function.
    {linear_attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import LinearSVR
    >>> X = np.arange(6.0).reshape(-1, 1)
    >>> model = LinearSVR(C=100).fit(X, 2 * X.ravel() + 1)
    >>> bool(abs(model.predict([[10.0]])[0] - 21) < 0.1)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_SHARED,
        "epsilon": [Real],
        "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"})],
    }

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        dual: bool | str = "auto",
        verbose: bool | int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        max_time: float | None = None,
        warm_start: bool = False,
        callbacks: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.n_jobs = n_jobs

    @checks_parameters
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows with numbers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Numbers to predict.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors on C of the rows.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight, "linear-svr")

    def _adopt(self, model: _core.Model) -> None:
        super()._adopt(model)
        self.coef_ = self.coef_.ravel()

    def _linear_settings(self) -> _core.Linear:
        return {
            "loss": "squared-hinge",
            "penalty": "l2",
            "solver": _solver(self),
            "multiclass": "ovr",
            "intercept": self._intercept(),
            "class_weights": [],
        }


#: The estimators by the kind of their models.
LINEAR: dict[str, type[LinearSVC | LogisticRegression | LinearSVR]] = {
    "linear-svc": LinearSVC,
    "logistic": LogisticRegression,
    "linear-svr": LinearSVR,
}


def fitted(model: _core.Model) -> LinearSVC | LogisticRegression | LinearSVR:
    """Return the estimator of a linear model from a file."""
    if model.scaling is not None or model.is_mapped:
        raise ValueError(
            "a linear model with scaling or approximate features has no estimator; use the command "
            "line, or a pipeline"
        )
    known = dict(model.training.get("parameters", []))
    kind = LINEAR[model.kind]
    parameters: dict[str, Any] = {
        name: float(known[key]) for key, name in (("c", "C"), ("tol", "tol")) if key in known
    }
    if "penalty" in known and kind is not LinearSVR:
        parameters["penalty"] = known["penalty"]
    if known.get("loss") == "hinge":
        parameters["loss"] = "hinge"
    if kind is LinearSVR and known.get("loss") == "squared-tube":
        parameters["loss"] = "squared_epsilon_insensitive"
    estimator = kind(**parameters)
    estimator.n_features_in_ = model.features
    if model.feature_names is not None:
        estimator.feature_names_in_ = np.array(model.feature_names, dtype=object)
    if isinstance(estimator, BaseLinearClassifier):
        estimator.classes_ = np.array(model.classes)
    estimator._adopt(model)
    return estimator


def _solver(machine: BaseLinear) -> str:
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
