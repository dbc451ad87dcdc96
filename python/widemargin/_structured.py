"""Large-margin learning of any structure that the user decodes."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import check_is_fitted

from widemargin import _core
from widemargin._base import checks_parameters
from widemargin._parameters import choose, stores_parameters
from widemargin._progress import Monitor, as_callbacks

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self


class StructuredSVM(BaseEstimator):
    """Support vector machine for structures: trees, matchings, segments, sets of labels.

    Minimises ½‖w‖² + C Σ max over u of [loss(y, u) - w·(Φ(x, y) - Φ(x, u))] and proves how close it
    came.

    Parameters
    ----------
    problem : object
        Says what is learnt, by two methods: ``joint_features(x, y)`` returns Φ(x, y), an array or a
        dict of values by place; ``decode(x, w, y)`` returns the output u with the largest
        w·Φ(x, u) + loss(y, u), without the loss where `y` is None. An optional method ``loss(y,
        u)`` is 0 for u = y and at least 0 otherwise; without it a wrong output costs 1.
    n_features : int
        Number of joint features.
    C : float, default=1.0
        Price of the loss of an example.
    tol : float, default=0.01
        Largest duality gap, relative to the primal objective.
    max_iter : int, default=100
        Most passes over the examples.
    verbose : int, default=0
        Whether to print progress.
    max_time : float, default=None
        Seconds after which training stops with a `ConvergenceWarning` and the best model so far.
    callbacks : callable or list of callables, default=None
        Called with a :class:`widemargin.Progress` while training; returning True stops it.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the joint features.
    gap_ : float
        Proven bound on (objective - optimum) / objective, as far as `decode` finds the largest
        value.
    objective_ : float
        Dual objective, a lower bound on the optimum.
    status_ : str
        How the training ended.
    n_iter_ : int
        Passes over the examples.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import StructuredSVM
    >>> class Classes:
    ...     def joint_features(self, x, y):
    ...         return {2 * y: x[0], 2 * y + 1: x[1]}
    ...     def decode(self, x, w, y=None):
    ...         losses = np.zeros(3) if y is None else np.arange(3) != y
    ...         return int(np.argmax(losses + w.reshape(3, 2) @ x))
    >>> X, y = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]), [0, 1, 2]
    >>> StructuredSVM(Classes(), 6, C=10.0).fit(X, y).predict(2 * X)
    [0, 1, 2]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **choose("C", "verbose", "max_time", "callbacks"),
        "problem": [HasMethods(["joint_features", "decode"])],
        "n_features": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    coef_: NDArray[np.float64]

    problem: Any
    n_features: int
    C: float
    tol: float
    max_iter: int
    verbose: bool | int
    max_time: float | None
    callbacks: Any

    @stores_parameters
    def __init__(
        self,
        problem: Any,
        n_features: int,
        C: float = 1.0,
        *,
        tol: float = 0.01,
        max_iter: int = 100,
        verbose: bool | int = 0,
        max_time: float | None = None,
        callbacks: Any = None,
    ) -> None: ...

    @checks_parameters
    def fit(self, X: Any, y: Any) -> Self:
        """Train on examples.

        Parameters
        ----------
        X : sequence
            Inputs, of whatever kind the problem takes.
        y : sequence
            Their outputs.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        inputs, outputs = list(X), list(y)
        if len(inputs) != len(outputs):
            raise ValueError(f"X has {len(inputs)} examples, y has {len(outputs)}")
        monitor = Monitor(self.verbose, as_callbacks(self.callbacks))
        self.coef_, result, warnings_ = _core.fit_structured(
            self.problem,
            int(self.n_features),
            inputs,
            outputs,
            float(self.C),
            float(self.tol),
            int(self.max_iter),
            self.max_time,
            monitor if monitor.listens else None,
        )
        self.status_ = result["status"]
        self.objective_ = float(result["dual"])
        self.gap_ = float(result["violation"])
        self.n_iter_ = max(int(result["passes"]), 1)
        for text in warnings_:
            warnings.warn(text, ConvergenceWarning, stacklevel=2)
        if self.status_ in ("iteration limit reached", "time limit reached"):
            message = f"{self.status_}: the gap is {100 * self.gap_:.3g} % of the objective"
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        return self

    def predict(self, X: Any) -> list[Any]:
        """Return the best output for each input."""
        check_is_fitted(self, "coef_")
        return [self.problem.decode(x, self.coef_, None) for x in X]
