"""Regression: `SVR` and `NuSVR`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.base import RegressorMixin

from widemargin._base import BaseMachine
from widemargin._docs import documented
from widemargin._parameters import TUBE, TrainingParameters, estimator

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class BaseSVR(RegressorMixin, BaseMachine):
    """What the two regressors share."""

    if TYPE_CHECKING:

        def predict(self, X: Any) -> NDArray[np.float64]:
            """Return numbers."""


@documented
@estimator
class SVR(TrainingParameters, BaseSVR):
    """Support vector regression with a tube of half width ε.

    A drop-in for :class:`sklearn.svm.SVR`: the same parameters, attributes and results, and a few
    parameters more, all keywords.

    Parameters
    ----------
    {kernel}
    C : float, default=1.0
        Penalty of deviations beyond the tube; smaller is smoother. May be infinite.
    epsilon : float, default=0.1
        Half width of the tube in which deviations cost nothing.
    {training}
    loss : {{'epsilon_insensitive', 'squared_epsilon_insensitive'}}, default='epsilon_insensitive'
        How a deviation ξ beyond the tube is penalised: C ξ or C ξ².
    {extra}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    NuSVR : The same with ν, the share of rows outside the tube, in the place of ε.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import SVR
    >>> X = np.linspace(0, 6, 50).reshape(-1, 1)
    >>> model = SVR(C=100, epsilon=0.01).fit(X, np.sin(X).ravel())
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.02)
    True
    """

    _kind = "epsilon-svr"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = TUBE

    C: float = 1.0
    epsilon: float = 0.1
    shrinking: bool = True
    loss: str = "epsilon_insensitive"


@documented
@estimator
class NuSVR(TrainingParameters, BaseSVR):
    """Support vector regression with ν, the share of rows outside the tube.

    A drop-in for :class:`sklearn.svm.NuSVR`: the same parameters, attributes and results, and a few
    parameters more, all keywords.

    Parameters
    ----------
    nu : float, default=0.5
        Upper bound on the share of rows outside the tube and lower bound on the share of support
        vectors, in (0, 1].
    C : float, default=1.0
        Penalty of deviations beyond the tube; smaller is smoother.
    {kernel}
    {training}
    {extra}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    SVR : The same with a tube of given width.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import NuSVR
    >>> X = np.linspace(0, 6, 50).reshape(-1, 1)
    >>> model = NuSVR(C=100, nu=0.3).fit(X, np.sin(X).ravel())
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.02)
    True
    """

    _kind = "nu-svr"

    nu: float = 0.5
    C: float = 1.0
    shrinking: bool = True
