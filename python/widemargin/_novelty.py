"""Novelty detection: `OneClassSVM` and `SVDD`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import _num_samples

from widemargin._base import BaseMachine, checks_parameters
from widemargin._docs import documented
from widemargin._parameters import TrainingParameters, estimator

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self


@estimator
class BaseNovelty(OutlierMixin, TrainingParameters, BaseMachine):
    """What the two detectors share."""

    nu: float = 0.5
    shrinking: bool = True

    @checks_parameters
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn where the rows lie.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Rows; with ``kernel="precomputed"`` their similarities. C-ordered float32 and float64
            arrays are not copied.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors on the weight of the rows; rows of weight 0 or less are left out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, np.ones(_num_samples(X)), sample_weight)

    def _targets(self, y: Any) -> None:
        return None

    def _adopt(self, model: Any, steps: NDArray[np.int64]) -> None:
        super()._adopt(model, steps)
        self.offset_ = 0.0 - self._intercept_

    if TYPE_CHECKING:

        def predict(self, X: Any) -> NDArray[np.intp]:
            """Return 1 and -1."""

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
        return self._values(X).ravel()

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
        scores: NDArray[np.float64] = self.decision_function(X) + self.offset_
        return scores


@documented
class OneClassSVM(BaseNovelty):
    """The one-class SVM: a half-space that holds most of the rows.

    A drop-in for :class:`sklearn.svm.OneClassSVM`: the same parameters, attributes and results, and
    a few parameters more, all keywords.

    Parameters
    ----------
    {kernel}
    {novelty}
    {training}
    {extra}

    Attributes
    ----------
    offset_ : float
        ``decision_function(X) = score_samples(X) - offset_``.
    {attributes}

    See Also
    --------
    SVDD : The smallest ball instead of a half-space.

    Examples
    --------
    >>> from widemargin import OneClassSVM
    >>> X = [[0], [0.44], [0.45], [0.46], [1]]
    >>> OneClassSVM(gamma="auto").fit(X).predict(X)
    array([-1,  1,  1,  1, -1])
    """

    _kind = "one-class"


@documented
class SVDD(BaseNovelty):
    """Support vector data description: the smallest ball that holds most of the rows.

    With a kernel whose K(x, x) is constant, such as ``"rbf"``, it agrees with the one-class SVM;
    with others, such as ``"linear"`` or ``"poly"``, it does not. Not in scikit-learn.

    Parameters
    ----------
    {kernel}
    {novelty}
    {training}
    {extra}

    Attributes
    ----------
    offset_ : float
        ``decision_function(X) = score_samples(X) - offset_``; the decision value is the squared
        radius minus the squared distance to the centre.
    {attributes}

    See Also
    --------
    OneClassSVM : A half-space instead of a ball.

    References
    ----------
    Tax and Duin, "Support Vector Data Description", Machine Learning 54, 2004.

    Examples
    --------
    >>> from widemargin import SVDD
    >>> X = [[0], [0.44], [0.45], [0.46], [1]]
    >>> SVDD(kernel="linear", nu=0.5).fit(X).predict([[0.5], [9.0]])
    array([ 1, -1])
    """

    _kind = "svdd"
