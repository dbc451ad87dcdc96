"""`tune`: which points a search tries."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state

from widemargin._search import WITHOUT_GAMMA, SVCSearchCV
from widemargin._svc import NuSVC


def tune(
    estimator: Any,
    X: Any,
    y: Any,
    param_grid: Any = None,
    *,
    method: Literal["grid", "refine", "random"] = "grid",
    n_iter: int = 50,
    rounds: int = 2,
    random_state: Any = None,
    **options: Any,
) -> SVCSearchCV:
    """Find good parameters: a fitted :class:`SVCSearchCV`.

    Parameters
    ----------
    estimator : estimator object
        The machine whose parameters are searched.
    X, y
        Rows and what they are labelled with.
    param_grid : dict or list of dict, default=None
        Values of parameters. Without it the penalty and, for kernels that have it, gamma are
        searched over the ranges of LIBSVM's ``grid.py``.
    method : {"grid", "refine", "random"}, default="grid"
        Every combination; the same, then `rounds` grids of half the distance around the best, of
        which the last is returned; or `n_iter` points between the ends of the values, at equal
        ratios where all are positive. Consecutive whole numbers and values that are no numbers are
        taken as they are.
    n_iter : int, default=50
        Points of ``method="random"``.
    rounds : int, default=2
        Finer grids of ``method="refine"``.
    random_state : int, RandomState instance or None, default=None
        What ``method="random"`` draws from.
    **options : dict
        Options of :class:`SVCSearchCV`.

    Returns
    -------
    search : SVCSearchCV
        The fitted search.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC, tune
    >>> X, y = load_iris(return_X_y=True)
    >>> search = tune(SVC(), X, y, {"C": [1, 10]}, cv=3)
    >>> search.n_splits_
    3
    >>> search = tune(SVC(), X, y, {"C": [1, 100]}, method="random", n_iter=7, random_state=0)
    >>> len(search.cv_results_["params"])
    7
    """
    grid = _default_grid(estimator) if param_grid is None else param_grid
    if method == "grid":
        return SVCSearchCV(estimator, grid, **options).fit(X, y)
    if method == "random":
        _at_least_one("n_iter", n_iter)
        points = _drawn(grid, n_iter, check_random_state(random_state))
        return SVCSearchCV(estimator, points, **options).fit(X, y)
    if method != "refine":
        expected = "one of 'grid', 'refine' and 'random'"
        raise ValueError(f"method has to be {expected}, not {method!r}")
    _at_least_one("rounds", rounds)
    search = SVCSearchCV(estimator, grid, **options).fit(X, y)
    if not hasattr(search, "best_params_"):
        raise ValueError("method='refine' needs one metric to go by: name it in refit")
    distances = _distances(_grid_of(search.best_params_, grid))
    for level in range(1, rounds + 1):
        finer = {
            name: _around(search.best_params_[name], distance, 0.5**level)
            for name, distance in distances.items()
        }
        search = SVCSearchCV(estimator, finer, **options).fit(X, y)
    return search


def _default_grid(estimator: Any) -> dict[str, list[float]]:
    penalty = "nu" if isinstance(estimator, NuSVC) else "C"
    steps = np.geomspace(0.05, 0.8, 5) if penalty == "nu" else 2.0 ** np.arange(-5, 16, 2)
    grid = {penalty: list(steps)}
    if getattr(estimator, "kernel", "rbf") not in WITHOUT_GAMMA:
        grid["gamma"] = list(2.0 ** np.arange(-15, 4, 2))
    return grid


def _at_least_one(name: str, value: int) -> None:
    if not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} has to be an integer of at least 1, not {value!r}")


def _is_range(values: Any) -> bool:
    """Tell whether what lies between the values means something."""
    reals = all(isinstance(v, Real) and not isinstance(v, (bool, np.bool_)) for v in values)
    whole = all(isinstance(v, Integral) for v in values)
    return reals and not (whole and max(values) - min(values) < len(values)) and len(values) > 1


def _drawn(grid: Any, count: int, generator: np.random.RandomState) -> list[dict[str, list[Any]]]:
    """Draw points, each as a grid of its own."""
    list(ParameterGrid(grid))  # Says what is wrong with the grid, if anything is.
    grids = grid if isinstance(grid, list) else [grid]
    points = []
    for _ in range(count):
        of = grids[generator.randint(len(grids))]
        points.append({name: [_draw(of[name], generator)] for name in sorted(of)})
    return points


def _draw(values: Any, generator: np.random.RandomState) -> Any:
    values = list(values)
    if not _is_range(values):
        return values[generator.randint(len(values))]
    low, high = float(min(values)), float(max(values))
    if low > 0.0:
        return float(np.exp(generator.uniform(np.log(low), np.log(high))))
    return float(generator.uniform(low, high))


def _grid_of(point: dict[str, Any], grid: Any) -> dict[str, Any]:
    """Find the grid that a point is of."""
    grids = grid if isinstance(grid, list) else [grid]
    return next(
        each
        for each in grids
        if set(each) == set(point) and all(point[name] in list(each[name]) for name in each)
    )


def _distances(grid: dict[str, Any]) -> dict[str, Any]:
    """Find how far the values of each parameter are apart: a ratio, a difference, or not at all."""
    distances: dict[str, Any] = {}
    for name, values in grid.items():
        values = list(values)
        if not _is_range(values):
            distances[name] = None
            continue
        steps = len(values) - 1
        low, high = float(min(values)), float(max(values))
        distances[name] = (
            ("ratio", (high / low) ** (1.0 / steps))
            if low > 0.0
            else ("step", (high - low) / steps)
        )
    return distances


def _around(value: Any, distance: Any, share: float) -> list[Any]:
    if distance is None:
        return [value]
    kind, size = distance
    if kind == "ratio":
        return [float(value * size**exponent) for exponent in (-share, 0.0, share)]
    return [float(value + size * factor) for factor in (-share, 0.0, share)]
