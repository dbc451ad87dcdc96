"""Linear support vector machines, and estimators of linear models from files."""

from __future__ import annotations

from dataclasses import field
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import OutlierMixin, RegressorMixin
from sklearn.linear_model._base import LinearModel
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import _num_samples, check_is_fitted

from widemargin import _core
from widemargin._base import checks_parameters
from widemargin._docs import documented
from widemargin._linear_base import (
    BaseLinear,
    BaseLinearClassifier,
    BasePenalised,
    solver,
)
from widemargin._logistic import LogisticRegression
from widemargin._parameters import HINGE, TUBE, choose, estimator
from widemargin._tables import checked_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self


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
            "class_weight": self._class_factors(),
        }


@documented
@estimator
class LinearSVR(RegressorMixin, BasePenalised, LinearModel):
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

    def _steps(self, C: Any, epsilon: Any) -> list[dict[str, float]]:
        tubes = [self.epsilon] if epsilon is None else list(epsilon)
        return [{"C": float(c), "epsilon": float(tube)} for tube in tubes for c in C]

    def _linear_settings(self) -> dict[str, Any]:
        return {
            "epsilon": float(self.epsilon),
            "loss": "squared-hinge" if self.loss.startswith("squared") else "hinge",
            "solver": solver(self),
            "intercept": self._intercept(),
        }


@documented
@estimator
class LinearOneClassSVM(OutlierMixin, BaseLinear):
    """The linear one-class SVM: a half-space of the features that holds most of the rows.

    Exact, for sparse rows and rows by the million; with :class:`RFF` or :class:`Nystroem` before it
    the boundary is curved, as with :class:`sklearn.linear_model.SGDOneClassSVM`.

    Parameters
    ----------
    nu : float, default=0.5
        Upper bound on the share of training rows outside and lower bound on the share of support
        vectors, in (0, 1].
    tol : float, default=1e-4
        Tolerance of the optimality conditions.
    {linear_extra}

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights of the features.
    intercept_ : ndarray of shape (1,)
        ``-offset_``.
    offset_ : ndarray of shape (1,)
        ``decision_function(X) = score_samples(X) - offset_``.
    {linear_attributes}

    See Also
    --------
    OneClassSVM : The same with a kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import LinearOneClassSVM
    >>> X = np.array([[1.0, 1.0], [2.0, 1.5], [1.5, 2.0], [0.1, 0.2]])
    >>> LinearOneClassSVM(nu=0.3).fit(X).predict([[2.0, 2.0], [0.0, 0.0]])
    array([ 1, -1])
    """

    _kind = "linear-one-class"
    loss = "hinge"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = choose("nu")

    nu: float = 0.5

    @checks_parameters
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn where the rows lie.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors on the weight of the rows.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, np.ones(_num_samples(X)), sample_weight)

    def _targets(self, y: Any) -> Any:
        return None

    def _settings(self, X: Any, seed: int) -> _core.Settings:
        settings = super()._settings(X, seed)
        del settings["parameters"]["c"]
        return settings

    def _linear_settings(self) -> dict[str, Any]:
        return {"nu": float(self.nu)}

    def _adopt(self, model: _core.Model) -> None:
        super()._adopt(model)
        self.offset_ = 0.0 - np.atleast_1d(self.intercept_)

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the decision values without the offset.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            ``decision_function(X) + offset_``.
        """
        check_is_fitted(self)
        X = checked_rows(self, X, reset=False)
        scores: NDArray[np.float64] = safe_sparse_dot(X, self.coef_.T, dense_output=True).ravel()
        return scores

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return how far inside (positive) or outside (negative) every row is.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_samples,)
            Decision values.
        """
        values: NDArray[np.float64] = self.score_samples(X) - self.offset_
        return values

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Return 1 for rows inside and -1 for rows outside.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            1 and -1.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)


#: The estimators by the kind of their models.
LINEAR: dict[str, type[LinearSVC | LogisticRegression | LinearSVR]] = {
    "linear-svc": LinearSVC,
    "logistic": LogisticRegression,
    "linear-svr": LinearSVR,
}
