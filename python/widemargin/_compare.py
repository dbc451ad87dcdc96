"""Several machines on the same data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state, check_X_y
from sklearn.utils.multiclass import check_classification_targets

from widemargin import _core
from widemargin._base import count_threads
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
        lines = [f"{'machine':14}  accuracy  interval           p       training  settings"]
        for place, machine in enumerate(self.machines):
            low, high = machine["interval"]
            p = "best " if place == 0 else f"{machine['p_value']:.3f}"
            lines.append(
                f"{machine['machine']:14}  {100 * machine['accuracy']:6.2f} %  "
                f"{100 * low:6.2f} to {100 * high:6.2f}  {p:>6}  "
                f"{machine['training_seconds']:7.3f} s  {machine['settings']}"
            )
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
        Of ``'svm-rbf'``, ``'svm-linear'``, ``'fisher'``, ``'kernel-fisher'``, ``'gmm-bayes'``,
        ``'knn'``, ``'parzen'`` and ``'pnn'``; none is all.
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
