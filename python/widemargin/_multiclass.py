"""All-in-one multi-class machines: `MulticlassSVC` in batch, `OnlineSVC` online."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from widemargin import _core
from widemargin._base import checks_parameters
from widemargin._docs import documented
from widemargin._parameters import TrainingParameters, check_kernel, estimator
from widemargin._restore import is_online
from widemargin._svc import BaseSVC, class_name
from widemargin._tables import checked_rows, container_of, to_core

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self


class BaseAllInOne(BaseSVC):
    """What the two share: one score per class, the largest wins."""

    machine: str

    @property
    def _kind(self) -> str:  # type: ignore[override]
        return self.machine

    @classmethod
    def _given(cls, model: _core.Model) -> dict[str, Any]:
        return {"machine": model.kind}

    def _adopt(self, model: _core.Model, steps: NDArray[np.int64]) -> None:
        super(BaseSVC, self)._adopt(model, steps)
        self.n_iter_ = max(1, int(model.training.get("iterations", 1)))

    def _signed(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of all classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_samples, n_classes) or (n_samples,)
            A score per class; with two classes the second's minus the first's.
        """
        scores = self._values(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def _class_numbers(self, X: Any) -> Any:
        return np.argmax(self._values(X), axis=1)


@documented
@estimator
class MulticlassSVC(TrainingParameters, BaseAllInOne):
    """All-in-one multi-class support vector classification.

    One score per class, all learnt in one problem, without reduction to two classes.

    Parameters
    ----------
    machine : {{'ww', 'cs', 'llw', 'adm', 'dgi', 'atm', 'ats', 'mmr', 'ova', 'reinforced'}}, \
            default='ww'
        Which machine: Weston and Watkins, Crammer and Singer, Lee, Lin and Wahba, and so on;
        'dgi' is another name of 'adm'.
    C : float, default=1.0
        Price of the loss, where relative margins have a factor one half and targets are 1; C of
        scikit-learn's ``LinearSVC(multi_class="crammer_singer")`` is a quarter of it.
    bias : bool, default=False
        Whether every class has an offset.
    {kernel}
    {training}
    class_weight : dict or 'balanced', default=None
        Factors on C by class.
    random_state : int, RandomState instance or None, default=None
        Not used; the training is not random.
    {extra}

    Attributes
    ----------
    {attributes_classification}
    {attributes}

    See Also
    --------
    OnlineSVC : The same machines from a stream.
    SVC : The reduction to pairs of classes.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import MulticlassSVC
    >>> X = np.array([[-2.0], [-1.0], [0.0], [0.5], [2.0], [3.0]])
    >>> y = np.array(["a", "a", "b", "b", "c", "c"])
    >>> MulticlassSVC(machine="cs", C=10).fit(X, y).predict([[-1.5], [2.5]])
    array(['a', 'c'], dtype='<U1')
    """

    @classmethod
    def _of(cls, model: _core.Model) -> Any:
        return OnlineSVC._of(model) if is_online(model) else super()._of(model)

    machine: str = "ww"
    C: float = 1.0
    bias: bool = False
    shrinking: bool = True
    cache_size: float = 1000
    class_weight: Any = None
    random_state: Any = None


@documented
@estimator
class OnlineSVC(BaseAllInOne):
    """All-in-one multi-class machines trained online.

    `fit` goes through the rows `epochs` times; `partial_fit` learns from a stream and keeps support
    vectors alone.

    Parameters
    ----------
    machine : {{'ww', 'cs', 'llw', 'adm', 'dgi', 'atm', 'ats', 'mmr', 'ova', 'reinforced'}}, \
            default='ww'
        Which machine; 'dgi' is another name of 'adm'.
    C : float, default=1.0
        Price of the loss, as for :class:`MulticlassSVC`.
    epochs : int or 'inf', default=1
        Passes of `fit` over the rows; 'inf' ends at the optimum of the batch machine.
    strategy : {{'blocks', 'all', 'random-all', 'random-pattern', 'whole-pattern', 'larank'}}, \
            default='blocks'
        How the variables of a step are chosen; 'larank' is for ``machine="cs"``.
    budget : int or None, default=None
        Most support vectors kept.
    shuffle : bool, default=True
        Whether `fit` takes the rows in random order.
    steps : 'adaptive' or pair of int, default='adaptive'
        Steps after every row: adaptive, or fixed numbers of those on all kept rows and of those
        on their variables that are not zero.
    multiplier : int, default=None
        Elementary steps of an adaptive step; None is the number of classes.
    clock : {{'counted', 'wall'}}, default='counted'
        What steps cost: counted work, the same everywhere, or seconds.
    rate_step : float, default=0.05
        Share of a new gain per cost in the running one.
    least_share : float, default=0.05
        Least share of every kind of step.
    stop_gap : float, default=None
        With ``epochs="inf"``, the relative duality gap at which `fit` ends as well.
    target_dual : float, default=None
        The dual objective at which `fit` ends.
    kernel : str, default='rbf'
        Name of a kernel or an expression of several; not 'precomputed' and not a function.
    degree : int, default=3
        Degree of the polynomial kernel.
    gamma : {{'scale', 'auto'}} or float, default='scale'
        Width of the kernel; with `partial_fit` that of the first rows.
    coef0 : float, default=0.0
        Constant of the polynomial and the sigmoid kernel.
    tol : float, default=1e-3
        Violation from which a step is worth it.
    cache_size : float, default=1000
        Memory for kernel values in megabytes.
    class_weight : dict or 'balanced', default=None
        Factors on C by class; 'balanced' for `fit` only.
    random_state : int, RandomState instance or None, default=None
        Order of the rows and choice of steps.
    max_time : float or None, default=None
        Seconds after which `fit` returns the model so far.
    verbose : bool or int, default=False
        Whether to print progress.
    callbacks : callable or list, default=None
        Called with progress.
    n_jobs : int or None, default=None
        Threads of prediction.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    support_vectors_ : ndarray of shape (n_SV, n_features)
        The support vectors.
    dual_coef_ : ndarray of shape (n_classes, n_SV)
        Their coefficients in the score of every class.

    See Also
    --------
    MulticlassSVC : The same machines in batch.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import OnlineSVC
    >>> X = np.array([[-2.0], [-1.0], [0.0], [0.5], [2.0], [3.0]])
    >>> y = np.array(["a", "a", "b", "b", "c", "c"])
    >>> model = OnlineSVC(machine="cs", C=10, random_state=0)
    >>> for _ in range(3):
    ...     model = model.partial_fit(X, y, classes=["a", "b", "c"])
    >>> model.predict([[-1.5], [2.5]])
    array(['a', 'c'], dtype='<U1')
    """

    machine: str = "ww"
    C: float = 1.0
    epochs: int | str = 1
    strategy: str = "blocks"
    budget: int | None = None
    shuffle: bool = True
    steps: Any = "adaptive"
    multiplier: int | None = None
    clock: str = "counted"
    rate_step: float = 0.05
    least_share: float = 0.05
    stop_gap: float | None = None
    target_dual: float | None = None
    tol: float = 1e-3
    cache_size: float = 1000
    class_weight: Any = None
    random_state: Any = None

    def _online(self) -> dict[str, Any]:
        return {
            "epochs": self.epochs if self.epochs == "inf" else int(self.epochs),
            "strategy": self.strategy,
            "budget": None if self.budget is None else int(self.budget),
            "shuffle": bool(self.shuffle),
            "steps": self.steps if isinstance(self.steps, str) else np.array(self.steps, float),
            "multiplier": None if self.multiplier is None else int(self.multiplier),
            "clock": self.clock,
            "rate_step": float(self.rate_step),
            "least_share": float(self.least_share),
            "stop_gap": None if self.stop_gap is None else float(self.stop_gap),
            "target_dual": None if self.target_dual is None else float(self.target_dual),
        }

    def _warn(self, complaints: list[str]) -> None:
        # The passes that were asked for are not a limit that was hit.
        if self.epochs == "inf" or self.status_ != "iteration limit reached":
            super()._warn(complaints)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        if callable(self._kernel_given()) or self.kernel == "precomputed":
            raise ValueError("OnlineSVC keeps vectors; it takes no precomputed or Python kernel.")
        self.__dict__.pop("_learner", None)
        return super()._fit(X, y, sample_weight)

    @checks_parameters
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from some rows, each once.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Class labels.
        classes : array-like of shape (n_classes,), default=None
            All classes that will ever come; needed at the first call. After `fit`, or in a copy
            that was pickled, learning goes on from the model, unless other classes are given.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors on C of the rows.

        Returns
        -------
        self : object
            The estimator with what it has learnt so far.
        """
        if callable(self._kernel_given()) or self.kernel == "precomputed":
            raise ValueError("OnlineSVC keeps vectors; it takes no precomputed or Python kernel.")
        check_kernel(type(self).__name__, self.kernel)
        first = "_learner" not in self.__dict__
        known = first and hasattr(self, "_model") and hasattr(self, "classes_")
        resumes = known and (classes is None or np.array_equal(self.classes_, np.unique(classes)))
        X, y = checked_rows(self, X, y, dtype=[np.float64], reset=first and not resumes)
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        if first:
            if classes is None and not hasattr(self, "classes_"):
                raise ValueError("classes must be passed on the first call to partial_fit.")
            if classes is not None:
                self.classes_ = np.unique(np.asarray(classes))
            if len(self.classes_) < 2:
                raise ValueError(
                    "The number of classes has to be greater than one; got "
                    f"{len(self.classes_)} class"
                )
            seed = int(check_random_state(self.random_state).randint(np.iinfo("i").max))
            self._names = [class_name(label) for label in self.classes_]
            settings = self._settings(X, seed)
            self._learner = (
                _core.Learner.resume(settings, self._model, self._names)
                if resumes
                else _core.Learner(settings, to_core(X), self._names)
            )
        elif classes is not None and not np.array_equal(self.classes_, np.unique(classes)):
            raise ValueError("`classes` is not the same as on last call to partial_fit.")
        codes = np.searchsorted(self.classes_, labels)
        codes = np.minimum(codes, len(self.classes_) - 1)
        if not (self.classes_[codes] == labels).all():
            stranger = labels[self.classes_[codes] != labels][0]
            raise ValueError(f"y has the label {stranger!r}, which is not among `classes`.")
        weights = super(BaseSVC, self)._weights(sample_weight, None, X)
        if isinstance(self.class_weight, dict):
            factors = np.array([self.class_weight.get(c, 1.0) for c in self.classes_.tolist()])
            weights = factors[codes] if weights is None else weights * factors[codes]
        elif self.class_weight is not None:
            raise ValueError("class_weight 'balanced' is not known before the stream has ended.")
        self._learner.partial_fit(to_core(X), codes.astype(np.int64), weights)
        self.shape_fit_ = X.shape
        self._rows_fit = None
        self._sparse_kind = container_of(X) if not isinstance(X, np.ndarray) else None
        self._adopt(self._learner.model(), np.zeros(0, dtype=np.int64))
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the learner: a copy goes on from the model when it learns."""
        state = super().__getstate__()
        state.pop("_learner", None)
        return state
