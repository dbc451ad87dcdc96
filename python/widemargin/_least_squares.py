"""Least-squares machines: `LSSVC` and `LSSVR`."""

from __future__ import annotations

from typing import Any

from widemargin._docs import documented
from widemargin._parameters import TrainingParameters, estimator
from widemargin._svc import BaseSVC
from widemargin._svr import BaseSVR


@documented
@estimator
class LSSVC(TrainingParameters, BaseSVC):
    """Least-squares support vector classification.

    Squared errors in the place of hinge losses: training solves one linear system for all classes,
    and nearly every row becomes a support vector. With more than two classes every class is
    separated from the rest and the largest value wins.

    Parameters
    ----------
    C : float, default=1.0
        Weight of squared errors; smaller is smoother.
    {kernel}
    {least_squares}
    class_weight : dict or 'balanced', default=None
        Factors on C by class.
    {extra}

    Attributes
    ----------
    {attributes_classification}
    {attributes}

    See Also
    --------
    SVC : Hinge losses, which leave most rows out of the model.
    LSSVR : The same for regression.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import LSSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(LSSVC(C=10).fit(X, y).score(X, y) > 0.95)
    True
    """

    _kind = "ls-svc"

    C: float = 1.0
    class_weight: Any = None


@documented
@estimator
class LSSVR(TrainingParameters, BaseSVR):
    """Least-squares support vector regression.

    Kernel ridge regression with an offset that is not penalised.

    Parameters
    ----------
    C : float, default=1.0
        Weight of squared errors; smaller is smoother.
    {kernel}
    {least_squares}
    {extra}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    SVR : The ε-insensitive loss, which leaves rows out of the model.
    LSSVC : The same for classification.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import LSSVR
    >>> X = np.linspace(0, 6, 50).reshape(-1, 1)
    >>> model = LSSVR(C=1000).fit(X, np.sin(X).ravel())
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.02)
    True
    """

    _kind = "ls-svr"

    C: float = 1.0
