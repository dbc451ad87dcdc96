"""Smaller models from fitted estimators."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.validation import check_consistent_length

from widemargin import _core

if TYPE_CHECKING:
    from widemargin._base import BaseMachine


def compressed(
    estimator: BaseMachine,
    X: Any,
    y: Any,
    targets: dict[str, float | None],
    method: str,
    shared: bool | None,
    refine: int | None,
) -> Any:
    """Return a copy of a fitted estimator with fewer vectors; see `BaseMachine.compress`."""
    given = {name: value for name, value in targets.items() if value is not None}
    if len(given) != 1:
        raise ValueError(f"expected one of {', '.join(targets)}; got {', '.join(given) or 'none'}")
    ((name, amount),) = given.items()
    if refine is not None and refine < 0:
        raise ValueError(f"refine must be at least 0. Got {refine} instead.")
    if name == "vectors" and not amount >= 1:
        raise ValueError(f"vectors must be at least 1. Got {amount} instead.")
    if (X is None) != (y is None):
        raise ValueError("X and y must be given together")
    if name == "max_loss" and X is None:
        raise ValueError("max_loss needs X and y, rows that did not train the estimator")
    model, reductions = _core.compress(
        estimator._model,
        (name, float(amount)),
        method,
        shared,
        refine,
        None if X is None else _held_out(estimator, X, y),
        int(check_random_state(estimator.random_state).randint(np.iinfo("i").max)),
        estimator._threads(),
    )
    smaller = copy.copy(estimator)
    steps = np.atleast_1d(np.asarray(estimator.n_iter_, dtype=np.int64))
    smaller._adopt(model, steps)
    smaller.relative_residuals_ = np.array([residual for _, _, residual, _ in reductions])
    smaller.largest_differences_ = np.array([difference for *_, difference in reductions])
    return smaller


def _held_out(estimator: BaseMachine, X: Any, y: Any) -> Any:
    """Return labelled rows as the compiled half takes them."""
    check_consistent_length(X, y)
    table = estimator._checked(X)
    labels = column_or_1d(y, warn=True)
    if is_regressor(estimator):
        return table, labels.astype(np.float64, copy=False)
    if not is_classifier(estimator):
        raise ValueError(
            f"{type(estimator).__name__} has no score on labelled rows; give a number of vectors, "
            "a ratio or max_difference, without X and y"
        )
    classes: Any = estimator.classes_
    codes = np.searchsorted(classes, labels).clip(0, len(classes) - 1)
    unknown = np.unique(labels[classes[codes] != labels])
    if len(unknown):
        raise ValueError(f"y contains labels that the estimator was not trained on: {unknown}")
    return table, (codes.astype(np.int64), estimator._model.classes)
