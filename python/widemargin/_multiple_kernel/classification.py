"""Classification with a weighted sum of kernels whose weights are learnt."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d, compute_class_weight
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets

from widemargin import _core
from widemargin._docs import documented
from widemargin._parameters import estimator
from widemargin._svc import class_name, written

if TYPE_CHECKING:
    from numpy.typing import NDArray

from widemargin._multiple_kernel.base import BaseMultipleKernel

#: The library asks for half of the margin f_y - f_c that Crammer and Singer (2001) ask for.
_MARGIN = 4.0


@documented
@estimator
class MultipleKernelSVC(ClassifierMixin, BaseMultipleKernel):
    """Classification with a weighted sum of kernels whose weights are learnt.

    Kernels are scaled to the trace n over the rows given; the weights sum to 1 and minimise the
    training objective itself, with a certified lower bound.

    Parameters
    ----------
    {combined_kernels}
    weights : {{'nonnegative', 'signed', 'uniform', 'alignment', 'margin'}} or float, \
            default='nonnegative'
        Which weights are admitted. Signed ones make a kernel that is positive semidefinite on the
        rows given. A number p of at least 1 is the norm of the weights; 1 is 'nonnegative'.
        'alignment' (with the labels) and 'margin' (as in EasyMKL) are computed by a rule first.
    machine : {{'cs', 'c-svc'}}, default='cs'
        Crammer and Singer's problem of all classes, or one-vs-one and one-vs-rest problems with
        the same weights.
    C : float, default=1.0
        Penalty of margin errors. With machine='cs' margins are f_y - f_c as in Crammer and Singer's
        paper; `MulticlassSVC` and the command line halve them, and their C is four times this one.
    multi_class : {{'ovo', 'ovr'}}, default='ovo'
        The two-class problems of 'c-svc'.
    tol : float, default=1e-4
        Certified gap at which the training ends, as a share of the objective.
    {combined_repair}
    class_weight : dict or 'balanced', default=None
        Factors on C by class.
    unlabeled : int, float or str, default=None
        Label of rows without one, such as scikit-learn's -1: they count for the kernels, and the
        predictions for them are `transduction_`.
    {combined_training}

    Attributes
    ----------
    {combined_attributes}
    {combined_transduction}
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    {combined_counts}

    See Also
    --------
    MultipleKernelSVR : The same for regression.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import MultipleKernelSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> kernels = ["linear", {{"kernel": "rbf", "gamma": 0.1}}, {{"kernel": "rbf", "gamma": 10}}]
    >>> model = MultipleKernelSVC(kernels=kernels, C=10).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), bool(model.gap_ <= 1e-4)
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "machine": [StrOptions({"cs", "c-svc"})],
        "multi_class": [StrOptions({"ovo", "ovr"})],
        "unlabeled": [Integral, Real, str, None],
    }

    machine: str = "cs"
    C: float = 1.0
    multi_class: str = "ovo"
    class_weight: Any = None
    unlabeled: Any = None

    def _machine(self) -> tuple[str, dict[str, Any]]:
        own = {} if self.machine == "cs" else {"multiclass": self.multi_class}
        return self.machine, own

    def _scale(self) -> float:
        return _MARGIN if self.machine == "cs" else 1.0

    def _marked(self, y: Any) -> tuple[Any, NDArray[np.bool_]]:
        if self.unlabeled is None or y is None:
            return y, np.zeros(1, dtype=bool)
        return y, np.asarray(np.asarray(y) == self.unlabeled).ravel()

    def _mark(self) -> str:
        return written(self.unlabeled)

    def _predictions(self, table: _core.Table) -> Any:
        return self.classes_.take(self._model.predict(table, self._threads()))

    def _targets(self, y: Any) -> tuple[NDArray[np.int64], list[Any]]:
        labels = column_or_1d(y, warn=True)
        check_classification_targets(y)
        known = labels if self.unlabeled is None else labels[labels != self.unlabeled]
        self.classes_ = np.unique(known)
        if len(self.classes_) < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {len(self.classes_)} class"
            )
        factors = compute_class_weight(self.class_weight, classes=self.classes_, y=known)
        self.class_weight_ = np.asarray(factors, dtype=np.float64)
        everything, codes = np.unique(labels, return_inverse=True)
        return codes.astype(np.int64), [class_name(label) for label in everything]

    def _weights(self, sample_weight: Any, targets: Any, X: Any) -> NDArray[np.float64] | None:
        weights = super()._weights(sample_weight, targets, X)
        if (self.class_weight_ == 1).all():
            return weights
        codes, names = targets
        own = {class_name(c): w for c, w in zip(self.classes_, self.class_weight_, strict=True)}
        factors: NDArray[np.float64] = np.array([own.get(name, 1.0) for name in names])[codes]
        return factors if weights is None else weights * factors

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of all classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of arrays
            Rows, or with precomputed kernels their similarities with the training rows.

        Returns
        -------
        values : ndarray of shape (n_samples, n_classes) or (n_samples,)
            With two classes one value a row, positive for ``classes_[1]``.
        """
        table = self._checked(X)
        threads = self._threads()
        if self.machine == "cs":
            scores: NDArray[np.float64] = self._model.decision_values(table, threads)
            scores = scores / np.sqrt(_MARGIN)
            return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores
        if len(self.classes_) == 2:
            return -self._model.decision_values(table, threads)[:, 0]
        return self._model.class_scores(table, threads)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of arrays
            Rows, or with precomputed kernels their similarities with the training rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Class labels.
        """
        labels: NDArray[Any] = self._predictions(self._checked(X))
        return labels
