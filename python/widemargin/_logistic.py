"""Logistic regression."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from widemargin._base import LogProbabilities
from widemargin._docs import documented
from widemargin._linear_base import BaseLinearClassifier, solver
from widemargin._parameters import estimator

if TYPE_CHECKING:
    from numpy.typing import NDArray


@documented
@estimator
class LogisticRegression(LogProbabilities, BaseLinearClassifier):
    """Logistic regression, one class against the rest.

    The parameters of :class:`sklearn.linear_model.LogisticRegression` with ``solver="liblinear"``:
    the constant is penalised like a weight (less so with a larger `intercept_scaling`), and several
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
    {linear_classifier}
    {linear_attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> LogisticRegression().fit(X, y).predict_proba(X[:1]).argmax()
    np.int64(0)
    """

    _kind = "logistic"
    loss = "logistic"

    penalty: str = field(default="l2", kw_only=False)
    class_weight: Any = None

    def _linear_settings(self) -> dict[str, Any]:
        return {
            "penalty": self.penalty,
            "solver": solver(self),
            "intercept": self._intercept(),
            "class_weight": self._class_factors(),
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
