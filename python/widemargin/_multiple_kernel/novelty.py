"""Novelty detection with a weighted sum of kernels whose weights are learnt."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _num_samples

from widemargin._docs import documented
from widemargin._parameters import estimator

if TYPE_CHECKING:
    from numpy.typing import NDArray

from widemargin._multiple_kernel.base import BaseMultipleKernel


@documented
@estimator
class MultipleKernelOneClassSVM(OutlierMixin, BaseMultipleKernel):
    """Novelty detection with a weighted sum of kernels whose weights are learnt.

    Kernels are scaled to the trace n over the rows given; the weights sum to 1 and minimise the
    training objective itself, with a certified lower bound. Not in scikit-learn.

    Parameters
    ----------
    {combined_kernels}
    weights : {{'nonnegative', 'signed', 'uniform'}} or float, default='nonnegative'
        Which weights are admitted. Signed ones make a kernel that is positive semidefinite on the
        rows given. A number p of at least 1 is the norm of the weights; 1 is 'nonnegative'.
    nu : float, default=0.5
        Upper bound on the share of training rows outside and lower bound on the share of support
        vectors, in (0, 1].
    tol : float, default=1e-4
        Certified gap at which the training ends, as a share of the objective.
    {combined_repair}
    {combined_training}

    Attributes
    ----------
    {combined_attributes}
    offset_ : float
        ``decision_function(X) = score_samples(X) - offset_``. Here `objective_` is minus half the
        squared length of the weight vector, where coefficients sum to nu times the number of rows.
    {combined_counts}

    See Also
    --------
    OneClassSVM : One kernel.
    MultipleKernelSVC : The same for classes.

    Examples
    --------
    >>> from widemargin import MultipleKernelOneClassSVM
    >>> X = [[0], [0.44], [0.45], [0.46], [1]]
    >>> kernels = [{{"kernel": "rbf", "gamma": 1}}, {{"kernel": "rbf", "gamma": 100}}]
    >>> model = MultipleKernelOneClassSVM(kernels, nu=0.4).fit(X)
    >>> model.predict([[0.45], [7]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "weights": [
            StrOptions({"nonnegative", "signed", "uniform"}),
            Interval(Real, 1.0, None, closed="left"),
        ],
    }

    nu: float = 0.5

    def _machine(self) -> tuple[str, dict[str, Any]]:
        return "one-class", {"nu": float(self.nu)}

    def _penalty(self) -> dict[str, float]:
        return {}

    def _given(self, X: Any, y: Any) -> NDArray[np.float64]:
        return np.ones(_num_samples(X[0] if self._takes_tables() and len(X) > 0 else X))

    @property
    def offset_(self) -> NDArray[np.float64]:
        """What `score_samples` exceeds inside."""
        return 0.0 - self._model.intercepts

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
