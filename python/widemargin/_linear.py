"""Linear support vector machines, and estimators of linear models from files."""

from __future__ import annotations

from dataclasses import field
from numbers import Real
from typing import Any, ClassVar

from sklearn.base import RegressorMixin
from sklearn.linear_model._base import LinearModel
from sklearn.utils._param_validation import StrOptions

from widemargin import _core
from widemargin._docs import documented
from widemargin._linear_base import BaseLinear, BaseLinearClassifier, solver
from widemargin._logistic import LogisticRegression
from widemargin._parameters import HINGE, TUBE, estimator


@documented
@estimator
class LinearSVC(BaseLinearClassifier):
    """Linear support vector classification.

    A drop-in for :class:`sklearn.svm.LinearSVC`: the same parameters, attributes and results, and a
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
    {linear_classifier}
    {linear_attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> LinearSVC().fit(X, y).score(X, y) > 0.9
    True
    """

    _kind = "linear-svc"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **HINGE,
        "multi_class": [StrOptions({"ovr", "crammer_singer"})],
    }

    penalty: str = field(default="l2", kw_only=False)
    loss: str = field(default="squared_hinge", kw_only=False)
    multi_class: str = "ovr"
    class_weight: Any = None

    def _linear_settings(self) -> dict[str, Any]:
        # Crammer and Singer's machine has a loss and a solver of its own.
        crammer_singer = self.multi_class == "crammer_singer"
        return {
            "loss": None if crammer_singer else self.loss.replace("_", "-"),
            "penalty": "l2" if crammer_singer else self.penalty,
            "solver": None if crammer_singer else solver(self),
            "multiclass": self.multi_class.replace("_", "-"),
            "intercept": self._intercept(),
            "class_weight": [float(factor) for factor in self._factors],
        }


@documented
@estimator
class LinearSVR(RegressorMixin, BaseLinear, LinearModel):
    """Linear support vector regression.

    A drop-in for :class:`sklearn.svm.LinearSVR`: the same parameters, attributes and results, and a
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
        How a deviation ξ beyond the tube is penalised: C ξ or C ξ².
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

    _kind = "linear-svr"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TUBE,
        "epsilon": [Real],
    }

    epsilon: float = 0.0
    loss: str = "epsilon_insensitive"

    def _adopt(self, model: _core.Model) -> None:
        super()._adopt(model)
        self.coef_ = self.coef_.ravel()

    def _linear_settings(self) -> dict[str, Any]:
        return {
            "epsilon": float(self.epsilon),
            "loss": "squared-hinge" if self.loss.startswith("squared") else "hinge",
            "solver": solver(self),
            "intercept": self._intercept(),
        }


#: The estimators by the kind of their models.
LINEAR: dict[str, type[LinearSVC | LogisticRegression | LinearSVR]] = {
    "linear-svc": LinearSVC,
    "logistic": LogisticRegression,
    "linear-svr": LinearSVR,
}
