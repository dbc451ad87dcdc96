"""Classification: `SVC` and `NuSVC`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import column_or_1d, compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from widemargin import _core, _restore
from widemargin._base import BaseMachine, LogProbabilities
from widemargin._docs import documented
from widemargin._parameters import (
    HINGE,
    ClassificationParameters,
    TrainingParameters,
    estimator,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GONE = (
    "Attribute `{0}` was deprecated in version 1.9 of scikit-learn and will be removed in its "
    "version 1.11, as the `probability=True` option for SVC and NuSVC; widemargin follows it."
)


def _may_predict_proba(classifier: BaseSVC) -> bool:
    if classifier.probability == "deprecated" or not classifier.probability:
        raise AttributeError("predict_proba is not available when probability=False")
    return True


class BaseSVC(LogProbabilities, ClassifierMixin, BaseMachine):
    """What the two classifiers share."""

    # Parameters that a machine may lack.
    probability: bool | str = False
    decision_function_shape: str = "ovr"
    break_ties: bool = False
    calibration: str = "sigmoid"

    class_weight: Any  # every derived class has it

    @classmethod
    def _given(cls, model: _core.Model) -> dict[str, Any]:
        if "multi_class" not in cls._parameter_constraints:
            return {}
        given: dict[str, Any] = {"multi_class": model.scheme}
        if "code" in _restore.specification(model):
            given["code"] = model.code
        if model.calibration is not None:
            given.update(probability=True, calibration=model.calibration["method"])
        return given

    def _know_classes(self, model: _core.Model) -> None:
        names = model.classes or []
        kinds = {type(name) for name in names}
        self.classes_ = np.array(names, dtype=object if kinds > {str} else None)
        self.class_weight_ = np.ones(len(names))

    def _warn_of_parameters(self) -> None:
        if "probability" in self._parameter_constraints and self.probability != "deprecated":
            name = type(self).__name__
            warnings.warn(
                "The `probability` parameter was deprecated in scikit-learn 1.9 and will be "
                f"removed in its version 1.11. Use `CalibratedClassifierCV({name}(), "
                f"ensemble=False)` instead of `{name}(probability=True)`",
                FutureWarning,
                stacklevel=4,
            )

    def _calibration_method(self) -> str | None:
        wanted = self.probability != "deprecated" and bool(self.probability)
        return self.calibration if wanted else None

    def _targets(self, y: Any) -> tuple[NDArray[np.int64], list[Any]]:
        # scikit-learn's checks take longer than training on a hundred rows.
        is_plain = isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "biuU"
        labels = y if is_plain else column_or_1d(y, warn=True)
        if not is_plain:
            check_classification_targets(y)
        classes, codes = np.unique(labels, return_inverse=True)
        if is_plain and 2 * len(classes) > len(labels):
            check_classification_targets(y)  # warns of numbers taken for classes
        if self.class_weight is None:
            self.class_weight_ = np.ones(len(classes))
        else:
            self.class_weight_ = compute_class_weight(self.class_weight, classes=classes, y=labels)
        if len(classes) < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {len(classes)} class"
            )
        if (self.class_weight_ < 0).any():
            worst = np.argmin(self.class_weight_)
            raise ValueError(
                f"The class_weight of class '{classes[worst]}' must be at least 0. Got "
                f"{self.class_weight_[worst]} instead."
            )
        self.classes_ = classes
        return codes.astype(np.int64), [class_name(label) for label in classes]

    def _weights(self, sample_weight: Any, targets: Any, X: Any) -> NDArray[np.float64] | None:
        weights = super()._weights(sample_weight, targets, X)
        codes, _ = targets
        if weights is not None:
            left = np.unique(codes[weights > 0])
            if len(left) < len(self.classes_):
                self._lost_class(left)
        if (self.class_weight_ == 1).all():
            return weights
        factors: NDArray[np.float64] = np.asarray(self.class_weight_, dtype=np.float64)[codes]
        return factors if weights is None else weights * factors

    def _lost_class(self, left: NDArray[np.int64]) -> None:
        if len(left) == 1:
            raise ValueError(
                "Invalid input - all samples with positive weights belong to the same class."
            )
        lost = np.delete(self.classes_, left)
        raise ValueError(f"Invalid input - no sample of class '{lost[0]}' has a positive weight.")

    def _adopt(self, model: _core.Model, steps: NDArray[np.int64]) -> None:
        super()._adopt(model, steps)
        self.n_iter_ = steps
        # Positive means the second of two classes to scikit-learn, the first to LIBSVM and us.
        if len(self.classes_) == 2:
            self.intercept_ = 0.0 - self.intercept_
            self.dual_coef_ = -self.dual_coef_
        sigmoid = model.calibration or {}
        self._probA: NDArray[np.float64] = sigmoid.get("a", np.empty(0))
        self._probB: NDArray[np.float64] = sigmoid.get("b", np.empty(0))

    def _signed(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return -values if len(self.classes_) == 2 else values

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return decision values.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_functions)
            With two classes one value a row, positive for ``classes_[1]``. With more, a score per
            class (``decision_function_shape="ovr"``) or the value of every function (``"ovo"``).
        """
        table = self._checked(X)
        threads = self._threads()
        if len(self.classes_) == 2:
            values = self._model.decision_values(table, threads)
            # One function of both classes, or one of each.
            return -values.ravel() if values.shape[1] == 1 else values[:, 1] - values[:, 0]
        if self.decision_function_shape == "ovr":
            return self._model.class_scores(table, threads)
        return self._model.decision_values(table, threads)

    def _predictions(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        labels: NDArray[Any] = self.classes_.take(self._class_numbers(X))
        return labels

    def _class_numbers(self, X: Any) -> Any:
        """Return the number of the class of every row."""
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        if self.break_ties and len(self.classes_) > 2:
            return np.argmax(self.decision_function(X), axis=1)
        return super()._predictions(X)

    @available_if(_may_predict_proba)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of every class; needs ``probability=True``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        table = self._checked(X)
        if self._model.calibration is None:
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False"
            )
        return self._model.probabilities(table, self._threads())

    @property
    def probA_(self) -> NDArray[np.float64]:
        """A of every function's sigmoid 1 / (1 + exp(A f + B))."""
        warnings.warn(_GONE.format("probA_"), FutureWarning, stacklevel=2)
        return self._probA

    @property
    def probB_(self) -> NDArray[np.float64]:
        """B of every function's sigmoid 1 / (1 + exp(A f + B))."""
        warnings.warn(_GONE.format("probB_"), FutureWarning, stacklevel=2)
        return self._probB


def class_name(label: Any) -> int | float | str:
    """Return a label as model files keep it: a whole number, a real number or a word."""
    if isinstance(label, (bool, np.bool_)):
        return int(label)
    if isinstance(label, (int, np.integer)) and -(2**63) <= int(label) < 2**63:
        return int(label)
    if isinstance(label, (float, np.floating)):
        return float(label)
    return str(label)


def written(label: Any) -> str:
    """Return a label as the compiled half writes it."""
    name = class_name(label)
    return format(name, "g") if isinstance(name, float) else str(name)


@documented
@estimator
class SVC(ClassificationParameters, TrainingParameters, BaseSVC):
    """Support vector classification with penalty C.

    A drop-in for :class:`sklearn.svm.SVC`: the same parameters, attributes and results, and a few
    parameters more, all keywords.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of margin errors; smaller is smoother. May be infinite.
    {kernel}
    {classification}
    {training}
    loss : {{'hinge', 'squared_hinge'}}, default='hinge'
        How a margin error ξ is penalised: C ξ or C ξ².
    {extra_classification}
    {extra}

    Attributes
    ----------
    {attributes_classification}
    {attributes}

    See Also
    --------
    NuSVC : The same with ν, the share of margin errors, in the place of C.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import SVC
    >>> X = np.array([[-1, -1], [-2, -1], [1, 1], [2, 1]])
    >>> y = np.array([1, 1, 2, 2])
    >>> model = SVC(gamma="auto").fit(X, y)
    >>> model.predict([[-0.8, -1]])
    array([1])
    >>> model.status_
    'solved'
    """

    _kind = "c-svc"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = HINGE

    C: float = 1.0
    shrinking: bool = True
    loss: str = "hinge"

    def leave_one_out_error(self, X: Any, y: Any, *, method: str = "approximate-loo") -> float:
        """Estimate the leave-one-out error from this one training, without held-out rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows that the estimator was trained on.
        y : array-like of shape (n_samples,)
            Their classes.
        method : {"approximate-loo", "span-bound", "xi-alpha"}, default="approximate-loo"
            Vapnik and Chapelle's span rule, which is close to the true error, their span bound, or
            Joachims' ξα-estimate. Of :class:`SVC` with one-vs-one or one-vs-rest.

        Returns
        -------
        error : float
            The estimated share of rows that would be wrong without having been seen.
        """
        check_is_fitted(self)
        table = self._checked(X)
        codes = np.searchsorted(self.classes_, column_or_1d(y)).astype(np.int64)
        settings = self._settings(X if hasattr(X, "dtype") else np.asarray(X), 0)
        settings["parameters"]["precision"] = "f64"
        names = [class_name(label) for label in self.classes_]
        return _core.leave_one_out_error(settings, self._model, table, (codes, names), method)


@documented
@estimator
class NuSVC(ClassificationParameters, TrainingParameters, BaseSVC):
    """Support vector classification with ν, the share of margin errors.

    A drop-in for :class:`sklearn.svm.NuSVC`: the same parameters, attributes and results, and a few
    parameters more, all keywords. Unlike there, `class_weight` has an effect.

    Parameters
    ----------
    nu : float, default=0.5
        Upper bound on the share of margin errors and lower bound on the share of support vectors,
        in (0, 1].
    {kernel}
    {classification}
    {training}
    {extra_classification}
    {extra}

    Attributes
    ----------
    {attributes_classification}
    {attributes}

    See Also
    --------
    SVC : The same with a penalty C in the place of ν.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import NuSVC
    >>> X = np.array([[-1, -1], [-2, -1], [1, 1], [2, 1]])
    >>> y = np.array(["left", "left", "right", "right"])
    >>> NuSVC().fit(X, y).predict([[-0.8, -1]])
    array(['left'], dtype='<U5')
    """

    _kind = "nu-svc"

    nu: float = 0.5
    shrinking: bool = True

    def _lost_class(self, left: NDArray[np.int64]) -> None:
        raise ValueError("specified nu is infeasible: a class has no sample of positive weight.")
