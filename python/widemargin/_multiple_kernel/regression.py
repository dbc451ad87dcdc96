"""Regression with a weighted sum of kernels whose weights are learnt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import StrOptions

from widemargin._docs import documented
from widemargin._parameters import estimator

if TYPE_CHECKING:
    from numpy.typing import NDArray

from widemargin._multiple_kernel.base import BaseMultipleKernel


@documented
@estimator
class MultipleKernelSVR(RegressorMixin, BaseMultipleKernel):
    """Regression with a weighted sum of kernels whose weights are learnt.

    Kernels are scaled to the trace n over the rows given; the weights sum to 1 and minimise the
    training objective itself, with a certified lower bound.

    Parameters
    ----------
    {combined_kernels}
    weights : {{'nonnegative', 'signed', 'uniform', 'alignment'}} or float, default='nonnegative'
        Which weights are admitted. Signed ones make a kernel that is positive semidefinite on the
        rows given. A number p of at least 1 is the norm of the weights; 1 is 'nonnegative'.
        'alignment' weights are computed from the targets first.
    C : float, default=1.0
        Penalty of deviations beyond the tube.
    epsilon : float, default=0.1
        Half width of the tube in which deviations cost nothing.
    tol : float, default=1e-4
        Certified gap at which the training ends, as a share of the objective.
    {combined_repair}
    unlabeled : {{'nan'}}, default=None
        With 'nan' rows whose target is NaN count for the kernels, and the predictions for them are
        `transduction_`.
    {combined_training}

    Attributes
    ----------
    {combined_attributes}
    {combined_transduction}
    {combined_counts}

    See Also
    --------
    MultipleKernelSVC : The same for classification.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import MultipleKernelSVR
    >>> X = np.linspace(0, 6, 50).reshape(-1, 1)
    >>> model = MultipleKernelSVR(["linear", "rbf"], C=100, epsilon=0.01)
    >>> model = model.fit(X, np.sin(X).ravel())
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.02)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "unlabeled": [StrOptions({"nan"}), None],
    }

    C: float = 1.0
    epsilon: float = 0.1
    unlabeled: str | None = None

    def _machine(self) -> tuple[str, dict[str, Any]]:
        return "epsilon-svr", {"epsilon": float(self.epsilon)}

    def _marked(self, y: Any) -> tuple[Any, NDArray[np.bool_]]:
        if self.unlabeled is None or y is None:
            return y, np.zeros(1, dtype=bool)
        values = np.asarray(y, dtype=np.float64)
        missing = np.isnan(values)
        return np.where(missing, 0.0, values), missing.ravel()

    def _mark(self) -> str:
        return "NaN"

    def _targets(self, y: Any) -> Any:
        values = column_or_1d(y, warn=True).astype(np.float64, copy=False)
        return np.where(self._unlabelled, np.nan, values) if self._unlabelled.any() else values

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the number predicted for every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of arrays
            Rows, or with precomputed kernels their similarities with the training rows.

        Returns
        -------
        values : ndarray of shape (n_samples,)
            Predictions.
        """
        values: NDArray[np.float64] = self._predictions(self._checked(X))
        return values
