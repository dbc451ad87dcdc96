"""Other trainings of two classes: LASVM online, and the Kernel-Adatron to compare with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.multiclass import type_of_target

from widemargin._docs import documented
from widemargin._parameters import estimator
from widemargin._svc import BaseSVC

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from widemargin import _core


class BaseTwoClass(BaseSVC):
    """What machines for two classes share whose models are those of `SVC`."""

    probability = "deprecated"
    decision_function_shape = "ovr"
    break_ties = False
    calibration = "sigmoid"
    multi_class = "ovo"
    warm_start = False

    @property
    def _kind(self) -> str:  # type: ignore[override]
        # No attribute of the class: files with such a model are loaded as `SVC`.
        return "c-svc"

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _targets(self, y: Any) -> tuple[NDArray[np.int64], list[Any]]:
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind == "multiclass":
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass."
            )
        return super()._targets(y)


@documented
@estimator
class LASVM(BaseTwoClass):
    """Two classes, learnt online with an offset (Bordes, Ertekin, Weston and Bottou 2005).

    One pass over the rows gives nearly the machine of :class:`SVC` and computes far fewer kernel
    values; ``epochs="inf"`` reaches its optimum. Several classes and streams are learnt by
    :class:`OnlineSVC`, without an offset.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of margin errors.
    bias : bool, default=True
        Whether there is an offset.
    epochs : int or 'inf', default=1
        Passes over the rows; 'inf' ends at the optimum.
    finish : bool, default=True
        Whether the rows that are kept are solved to the tolerance after the last pass.
    shuffle : bool, default=True
        Whether the rows come in random order.
    kernel : str, default='rbf'
        Name of a kernel or an expression of several; not 'precomputed' and not a function.
    degree : int, default=3
        Degree of the polynomial kernel.
    gamma : {{'scale', 'auto', 'jaakkola', 'jaakkola-nearest'}} or float, default='scale'
        Width of the kernel.
    coef0 : float, default=0.0
        Constant of the polynomial and the sigmoid kernel.
    tol : float, default=1e-3
        Violation from which a step is worth it.
    cache_size : float, default=200
        Memory for kernel values in megabytes.
    class_weight : dict or 'balanced', default=None
        Factors on C by class.
    random_state : int, RandomState instance or None, default=None
        Order of the rows.
    max_time : float, default=None
        Seconds after which `fit` returns the model so far.
    verbose : bool or int, default=False
        Whether to print progress.
    callbacks : callable or list, default=None
        Called with progress.
    n_jobs : int, default=None
        Threads of prediction.

    Attributes
    ----------
    {attributes_classification}
    {attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import LASVM
    >>> X = np.array([[-1, -1], [-2, -1], [1, 1], [2, 1]])
    >>> LASVM(gamma="auto", random_state=0).fit(X, [1, 1, 2, 2]).predict([[-0.8, -1]])
    array([1])
    """

    C: float = 1.0
    bias: bool = True
    epochs: int | str = 1
    finish: bool = True
    shuffle: bool = True
    tol: float = 1e-3
    cache_size: float = 200
    class_weight: Any = None
    random_state: Any = None

    def _online(self) -> dict[str, Any]:
        return {
            "epochs": self.epochs if self.epochs == "inf" else int(self.epochs),
            "finish": bool(self.finish),
            "shuffle": bool(self.shuffle),
            "without_bias": not self.bias,
        }

    def _warn(self, complaints: list[str]) -> None:
        # The passes that were asked for are not a limit that was hit.
        if self.epochs == "inf" or self.status_ != "iteration limit reached":
            super()._warn(complaints)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        if callable(self._kernel_given()) or self.kernel == "precomputed":
            raise ValueError("LASVM keeps vectors; it takes no precomputed or Python kernel.")
        return super()._fit(X, y, sample_weight)


@documented
@estimator
class KernelAdatron(BaseTwoClass):
    """Two classes by the Kernel-Adatron (Friess, Cristianini and Campbell 1998).

    One dual variable after the other moves along its gradient; the offset is penalised like a
    weight. A classic to compare with: :class:`SVC` is many times as fast.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of margin errors.
    rate : float, default=1.0
        Rate of a step, below 2; 1 goes to the best value of every variable.
    {kernel}
    {training}
    class_weight : dict or 'balanced', default=None
        Factors on C by class.
    random_state : int, RandomState instance or None, default=None
        Not used; the training is not random.
    precision : {{'auto', 'single', 'double'}}, default='auto'
        Number format of kernel values.
    max_time : float, default=None
        Seconds after which training stops with a `ConvergenceWarning` and the best model so far.
    callbacks : callable or list of callables, default=None
        Called with progress.
    n_jobs : int, default=None
        Threads.

    Attributes
    ----------
    {attributes_classification}
    {attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import KernelAdatron
    >>> X = np.array([[-1, -1], [-2, -1], [1, 1], [2, 1]])
    >>> KernelAdatron(gamma="auto").fit(X, [1, 1, 2, 2]).predict([[-0.8, -1]])
    array([1])
    """

    C: float = 1.0
    rate: float = 1.0
    shrinking: bool = True
    tol: float = 1e-3
    cache_size: float = 200
    max_iter: int = -1
    precision: str = "auto"
    class_weight: Any = None
    random_state: Any = None

    def _settings(self, X: Any, seed: int) -> _core.Settings:
        settings = super()._settings(X, seed)
        parameters = settings["parameters"]
        for name in ("loss", "multiclass", "code", "decoding"):
            parameters.pop(name, None)
        parameters.update(algorithm="adatron", rate=float(self.rate))
        return settings
