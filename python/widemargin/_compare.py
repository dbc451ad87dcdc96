"""Several machines, or ways to use several kernels, on the same data."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state, check_X_y
from sklearn.utils.multiclass import check_classification_targets

from widemargin import _core
from widemargin._base import count_threads
from widemargin._multiple_kernel import kernel_texts
from widemargin._svc import class_name
from widemargin._tables import to_core

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Comparison:
    """What the machines of a comparison did, the best first.

    Attributes
    ----------
    machines : list of dict
        Of every machine its name, mean accuracy and confidence interval, the p-value of its
        difference to the best, accuracies of the folds, seconds and the settings chosen most often.
    folds, planned_folds : int
        Finished folds, and those that were asked for.
    mcnemar : tuple or None
        Rows that only the first of two machines gets right, those of the second, and the p-value.
    """

    def __init__(self, result: dict[str, Any]) -> None:
        self.machines: list[dict[str, Any]] = result["machines"]
        self.folds: int = result["folds"]
        self.planned_folds: int = result["planned_folds"]
        self.mcnemar: tuple[int, int, float] | None = result.get("mcnemar")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.machines)

    def __len__(self) -> int:
        return len(self.machines)

    def __repr__(self) -> str:
        width = max([14, *(len(machine["machine"]) for machine in self.machines)])
        lines = [f"{'machine':{width}}  accuracy  interval           p       training  settings"]
        for place, machine in enumerate(self.machines):
            low, high = machine["interval"]
            p = "best " if place == 0 else f"{machine['p_value']:.3f}"
            lines.append(
                f"{machine['machine']:{width}}  {100 * machine['accuracy']:6.2f} %  "
                f"{100 * low:6.2f} to {100 * high:6.2f}  {p:>6}  "
                f"{machine['training_seconds']:7.3f} s  {machine['settings']}"
            )
        return "\n".join(lines)


class KernelComparison(Comparison):
    """What ways to use several kernels did, the best first, and what the learnt sum owes to each.

    Attributes
    ----------
    machines, folds, planned_folds, mcnemar
        As those of a comparison of machines.
    kernels : list of dict
        Of every kernel its learnt weight on all rows, its share of the squared length of the weight
        vectors ("contribution"), and intervals of both.
    C : float
        The penalty of these weights: that chosen most often.
    """

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__(result)
        self.kernels: list[dict[str, Any]] = result["kernels"]
        self.C: float = result["C"]

    def __repr__(self) -> str:
        lines = [super().__repr__()]
        if self.kernels:
            lines.append(
                f"\nkernel  weight  interval        share   interval        (C={self.C:g})"
            )
        for place, kernel in enumerate(self.kernels, 1):
            cells = []
            for name in ("weight", "contribution"):
                low, high = kernel[f"{name}_interval"]
                cells.append(f"{kernel[name]:6.3f}  {low:5.3f} to {high:5.3f}")
            lines.append(f"{place:6}  {'  '.join(cells)}  {kernel['kernel']}")
        return "\n".join(lines)


def compare(
    X: Any,
    y: Any,
    *,
    machines: Iterable[str] = (),
    folds: int = 5,
    repeats: int = 2,
    confidence: float = 0.95,
    max_time: float | None = 50.0,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Comparison:
    """Compare support vector machines with the classical classifiers.

    Every machine is tuned inside each training part (features standardised, a few settings, at most
    800 rows), then trained on all of it; all see the same folds.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Class labels.
    machines : iterable of str, default=()
        Of ``'svm-rbf'``, ``'svm-linear'``, ``'ls-svc'``, ``'fisher'``, ``'kernel-fisher'``,
        ``'gmm-bayes'``, ``'knn'``, ``'parzen'`` and ``'pnn'``, which none stands for, or any other
        classifier by its name on the command line, such as ``'nu-svc'``.
    folds, repeats : int
        Repeated stratified cross-validation.
    confidence : float, default=0.95
        Probability that an interval holds the accuracy.
    max_time : float or None, default=50.0
        Seconds after which the comparison ends with the folds finished by then.
    n_jobs : int, default=None
        Threads.
    random_state : int, RandomState instance or None, default=None
        Seeds the folds.

    Returns
    -------
    comparison : Comparison
        The machines, the best first; prints as a table.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import widemargin
    >>> X, y = load_iris(return_X_y=True)
    >>> result = widemargin.compare(X, y, machines=["fisher", "knn"], random_state=0)
    >>> [machine["machine"] for machine in result]
    ['fisher', 'knn']
    """
    X, y = check_X_y(X, y, dtype=[np.float64, np.float32], order="C")
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    seed = int(check_random_state(random_state).randint(np.iinfo("i").max))
    targets = (codes.astype(np.int64), [class_name(label) for label in classes])
    return Comparison(
        _core.compare(
            to_core(X),
            targets,
            list(machines),
            int(folds),
            int(repeats),
            float(confidence),
            max_time,
            count_threads(n_jobs),
            seed,
        )
    )


def compare_kernels(
    X: Any,
    y: Any,
    kernels: Any = ("linear", "rbf"),
    *,
    views: Any = None,
    machine: str = "c-svc",
    C: Any = (1.0, 10.0, 100.0),
    subsets: bool = False,
    bootstrap: int = 50,
    folds: int = 5,
    repeats: int = 2,
    confidence: float = 0.95,
    max_time: float | None = 50.0,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> KernelComparison:
    """Compare ways to use several kernels.

    Learnt weights ("nonnegative", "signed" up to 1000 training rows, "lp=2"), equal ones
    ("uniform"), those of rules ("alignment" with the labels, "margin" as EasyMKL's), every kernel
    alone ("kernel 1", ...), the best of them ("best-single"), a vote of all ("voting") and, for
    views, their columns side by side ("concatenation", "concatenation-zscore",
    "concatenation-unit-block"). All see the same folds; penalties, the best kernel and the best
    subset are chosen by cross-validation inside every training part.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features) or list of arrays
        Rows, or Gram matrices with ``kernels="precomputed"``.
    y : array-like of shape (n_samples,)
        Class labels.
    kernels, views
        As `MultipleKernelSVC` takes them, functions excepted; an expression may stand for a grid,
        such as ``"rbf(gamma=2^-3:2^3:7)"`` or ``"poly(degree=1:4, coef0=1)"``.
    machine : {'c-svc', 'cs'}, default='c-svc'
        The machine that uses the kernels.
    C : float or iterable of float, default=(1.0, 10.0, 100.0)
        Penalties to choose from, in the units of the command line.
    subsets : bool, default=False
        Whether also every subset of at most 8 kernels is tried, and the best one ("best-subset").
    bootstrap : int, default=50
        Samples of the rows drawn with replacement for the intervals of weights; 0 for no weights.
    folds, repeats : int
        Repeated stratified cross-validation.
    confidence : float, default=0.95
        Probability that an interval holds the accuracy.
    max_time : float or None, default=50.0
        Seconds after which the comparison ends with the folds finished by then.
    n_jobs : int, default=None
        Threads.
    random_state : int, RandomState instance or None, default=None
        Seeds the folds and the samples.

    Returns
    -------
    comparison : KernelComparison
        The ways, the best first; prints as two tables.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import widemargin
    >>> X, y = load_iris(return_X_y=True)
    >>> kernels = ["linear", {"kernel": "rbf", "gamma": 0.1}]
    >>> found = widemargin.compare_kernels(X, y, kernels, C=10, random_state=0, bootstrap=10)
    >>> names = {way["machine"] for way in found}
    >>> {"nonnegative", "uniform", "best-single", "voting"} <= names, len(found.kernels)
    (True, 2)
    """
    table, texts = kernel_texts(kernels, views, X)
    table, y = check_X_y(table, y, dtype=[np.float64, np.float32], order="C", accept_sparse="csr")
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    seed = int(check_random_state(random_state).randint(np.iinfo("i").max))
    targets = (codes.astype(np.int64), [class_name(label) for label in classes])
    penalties = [float(C)] if isinstance(C, Real) else [float(c) for c in C]
    return KernelComparison(
        _core.compare_kernels(
            to_core(table),
            targets,
            machine,
            ", ".join(texts),
            penalties,
            bool(subsets),
            int(bootstrap),
            int(folds),
            int(repeats),
            float(confidence),
            max_time,
            count_threads(n_jobs),
            seed,
        )
    )
